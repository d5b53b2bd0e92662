"""XPUB sockets of the publisher: bounded in both directions, exact about subscriptions.

These options bound the size of a peer's messages; ``Upstream`` and ``FloodWatch`` bound their
number.
"""

from collections.abc import Sequence

import zmq

from spectrod.wire.liveness import notice_gone_peers

GOODBYE_S = 1.0
"""Time that subscribers have at the end to take what waits for them, the last heartbeats too [s]:
a busy machine lets a subscriber wait for its turn longer than 0.2 s, and the end of the daemon may
take 4 s, with other parts."""
# A subscription to the longest topic has 204 bytes, or 237 as a message of CURVE. The largest part
# of CURVE's handshake has about 300.
_MAX_INBOUND_BYTES = 512
# Below the operating system's minimum, 2304 on Linux, which then applies. All peers together can
# then send about 5 MB a second, whatever their number; with 4096 about 30, with the default 200.
_RECEIVE_BUFFER_BYTES = 1024


def open_xpub(context: "zmq.Context[zmq.SyncSocket]", high_water_mark: int) -> zmq.SyncSocket:
    """Make an unbound socket with the options that all endpoints share.

    Parameters
    ----------
    context : zmq.Context
        Context of the socket.
    high_water_mark : int
        Queue length of each subscriber [messages]; further ones are dropped for that subscriber
        only.
    """
    socket = context.socket(zmq.XPUB)
    # Set linger before bind: without it, terminating the context waits for slow subscribers.
    socket.setsockopt(zmq.LINGER, round(GOODBYE_S * 1e3))
    socket.setsockopt(zmq.SNDHWM, high_water_mark)
    socket.setsockopt(zmq.MAXMSGSIZE, _MAX_INBOUND_BYTES)
    # Unbounded, see liveness.py: a peer that fills a bounded queue and goes could abort the
    # process. Received messages wait in libzmq, so peers that send much are cut.
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.RCVBUF, _RECEIVE_BUFFER_BYTES)
    # Report every subscription, to answer it, but only the last unsubscription of a prefix:
    # XPUB_VERBOSER would also report an unsubscription while others are still subscribed.
    socket.setsockopt(zmq.XPUB_VERBOSE, 1)
    notice_gone_peers(socket)
    return socket


def send_parts(socket: zmq.SyncSocket, parts: Sequence[bytes]) -> None:
    """Send a message to the subscribers whose queues are not full.

    libzmq notes what subscribers have taken from their queues at most once in some 3 million ticks
    of the processor's clock while it sends, about a millisecond, and takes the queue of one that
    has read everything for full meanwhile. Reading the socket's events makes it note that.
    """
    socket.get(zmq.EVENTS)
    # Copying is faster than zero-copy at these sizes.
    socket.send_multipart(parts, copy=True)
