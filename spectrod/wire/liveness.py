"""Detection of dead peers by TCP keepalive instead of ZeroMQ's heartbeats.

An assertion in libzmq 4.3.5 (``!_io_error``) aborts the process if it writes to a connection that
has ended and that was not read because a queue was full. It writes if its own heartbeat is due
(``HEARTBEAT_IVL``), or if the peer's last bytes, read when there is room, contain a ``PING``. So
neither side sends ZeroMQ's heartbeats, and the sockets of a daemon have no queue that can be full
(``RCVHWM`` is 0): otherwise a daemon that stops could abort each slow subscriber, and a peer could
abort a daemon with a hundred bytes.
"""

import zmq

GONE_S = 6
"""Time without an answer after which a connection over TCP counts as ended [s]."""

_IDLE_S = 2
_PROBE_S = 2


def notice_gone_peers(socket: zmq.SyncSocket) -> None:
    """End future connections of a socket when the peer does not answer for ``GONE_S``.

    Over IPC the operating system reports the end at once. A connection also ends if nothing can be
    sent for ``GONE_S`` because the peer does not read.
    """
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, _IDLE_S)
    socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, _PROBE_S)
    socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, (GONE_S - _IDLE_S) // _PROBE_S)
    socket.setsockopt(zmq.TCP_MAXRT, GONE_S * 1000)
