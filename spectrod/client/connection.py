"""How a client connects: socket options, keys, and the same of both for every kind of client."""

from dataclasses import dataclass

import zmq

from spectrod.wire.endpoint import Endpoint

RECONNECT_MS = 100
"""Intervals that grow would miss a daemon that starts by up to as long as it took to start."""


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """What a CURVE connection needs, each a key in Z85, 40 bytes of ASCII."""

    server_key: bytes
    """The daemon's public key: whoever has not its secret half is not talked to."""
    public_key: bytes
    secret_key: bytes


def connect(
    socket: "zmq.Socket[bytes]", endpoint: Endpoint, credentials: Credentials | None
) -> None:
    """Set what every client's socket needs, and connect; it goes on trying for ever."""
    # Linger comes before connect: without it, terminating the context waits for a daemon.
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
    socket.setsockopt(zmq.HEARTBEAT_IVL, 2000)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 6000)
    socket.setsockopt(zmq.IPV6, endpoint.is_ipv6)
    if credentials is not None:
        socket.setsockopt(zmq.CURVE_SERVERKEY, credentials.server_key)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, credentials.public_key)
        socket.setsockopt(zmq.CURVE_SECRETKEY, credentials.secret_key)
    socket.connect(endpoint.text)
