"""How sockets learn of a peer that has gone without a word: from TCP, not from ZeroMQ.

libzmq 4.3.5 ends the process by an assertion (``!_io_error``) if it has to write to a connection
that has ended, and from which nothing was read because a queue was full. It writes there if
heartbeats of our own are due (``HEARTBEAT_IVL``), or if the peer's last bytes, read when there is
room, ask for one (``PING``). So neither end has heartbeats of its own, and the sockets of a daemon
have no queue that can be full (``RCVHWM`` is 0): otherwise a daemon that ends could end each slow
subscriber, and a peer could end a daemon by a hundred bytes.
"""

import zmq

GONE_S = 6
"""After this long without a sign of life a connection over TCP counts as ended [s]."""

_IDLE_S = 2
_PROBE_S = 2


def notice_gone_peers(socket: zmq.SyncSocket) -> None:
    """Have connections end that are made from now on, once the other side gives no sign of life.

    Of IPC the operating system tells it at once. A connection is ended as well over which nothing
    can be sent for ``GONE_S`` because the other side does not read.
    """
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, _IDLE_S)
    socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, _PROBE_S)
    socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, (GONE_S - _IDLE_S) // _PROBE_S)
    socket.setsockopt(zmq.TCP_MAXRT, GONE_S * 1000)
