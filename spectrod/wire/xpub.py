"""XPUB sockets as the publisher uses them: bounded to both sides, exact about what is wanted.

What a peer sends is bounded here by message; by number, ``Upstream`` and ``FloodWatch`` bound it.
"""

import zmq

from spectrod.wire.liveness import notice_gone_peers

_LINGER_MS = 200
# A subscription to the longest topic has 202 bytes, or 235 as a message of CURVE. The largest part
# of CURVE's handshake has about 300.
_MAX_INBOUND_BYTES = 512
# Of the operating system, which takes its least, 2304 on Linux. With it all peers together can send
# about 5 MB a second, however many they are; with 4096 that is 30, and with the default 200.
_RECEIVE_BUFFER_BYTES = 1024


def open_xpub(context: "zmq.Context[zmq.SyncSocket]", high_water_mark: int) -> zmq.SyncSocket:
    """Make a socket with the options that every endpoint shares; not bound.

    Parameters
    ----------
    context : zmq.Context
        Whose socket it is.
    high_water_mark : int
        Messages that may wait for one subscriber; then new ones are discarded for it alone.
    """
    socket = context.socket(zmq.XPUB)
    # Linger comes before bind: without it, terminating the context waits for slow subscribers.
    socket.setsockopt(zmq.LINGER, _LINGER_MS)
    socket.setsockopt(zmq.SNDHWM, high_water_mark)
    socket.setsockopt(zmq.MAXMSGSIZE, _MAX_INBOUND_BYTES)
    # Not bounded by number, see liveness.py: a peer that fills such a queue and goes could end the
    # process. What has come waits in libzmq, so whoever sends much is cut off.
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.RCVBUF, _RECEIVE_BUFFER_BYTES)
    # Every subscription is to be answered, and of ends only a prefix's last is to be told:
    # XPUB_VERBOSER would also tell those of a peer that takes back what others have asked for.
    socket.setsockopt(zmq.XPUB_VERBOSE, 1)
    notice_gone_peers(socket)
    return socket
