"""XPUB sockets as the publisher uses them: bounded to both sides, exact about what is wanted."""

from collections.abc import Iterator

import zmq

_LINGER_MS = 200
_MAX_INBOUND_BYTES = 64 * 1024  # peers send subscriptions, nothing larger
_REQUESTS_A_TURN = 256  # a flood of them must not hold the spectra up


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
    # Every subscription is to be answered, and of ends only a prefix's last is to be told:
    # XPUB_VERBOSER would also tell those of a peer that takes back what others have asked for.
    socket.setsockopt(zmq.XPUB_VERBOSE, 1)
    socket.setsockopt(zmq.HEARTBEAT_IVL, 2000)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 6000)
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    return socket


def take_requests(socket: zmq.SyncSocket) -> Iterator[bytes]:
    """Yield what peers have sent; at most some of it, so that a flood lets others have their turn.

    The rest waits in libzmq, which has no bound for it.
    """
    for _ in range(_REQUESTS_A_TURN):
        try:
            yield socket.recv(zmq.NOBLOCK)
        except zmq.Again:
            return
