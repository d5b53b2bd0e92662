"""Reads a ZMTP greeting without ZeroMQ, to find whether an endpoint requires keys.

libzmq may close a connection with the wrong mechanism before it has sent its own; the client then
sees only the end. The layout is that of ZMTP 3.1: signature, version, mechanism, rest.
"""

import socket
import time

from spectrod.wire.endpoint import Endpoint

# Signature and major version: a peer that has received these sends its whole greeting.
_GREETING_START = b"\xff" + bytes(8) + b"\x7f\x03"
_GREETING_BYTES = 64
_SIGNATURE = slice(0, 10, 9)  # its first and last byte; those between are padding
_MECHANISM = slice(12, 32)


def read_mechanism(endpoint: Endpoint, timeout_s: float) -> str | None:
    """Read the mechanism of an endpoint.

    Parameters
    ----------
    endpoint : Endpoint
        The endpoint to probe.
    timeout_s : float
        Timeout [s].

    Returns
    -------
    mechanism : str or None
        ``NULL``, ``CURVE`` or ``PLAIN``; None without a listener, or if it does not speak ZMTP 3.
    """
    deadline_s = time.monotonic() + timeout_s
    try:
        with _connect(endpoint, timeout_s) as connection:
            connection.sendall(_GREETING_START)
            greeting = _receive(connection, deadline_s)
    except OSError:
        return None
    if len(greeting) < _GREETING_BYTES or greeting[_SIGNATURE] != _GREETING_START[_SIGNATURE]:
        return None
    return greeting[_MECHANISM].rstrip(b"\0").decode("ascii", "replace")


def _connect(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    if endpoint.transport == "tcp":
        return socket.create_connection((endpoint.host, endpoint.port), timeout=timeout_s)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_s)
        connection.connect(endpoint.path)
    except OSError:
        connection.close()
        raise
    return connection


def _receive(connection: socket.socket, deadline_s: float) -> bytes:
    greeting = b""
    while len(greeting) < _GREETING_BYTES:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0.0:
            raise TimeoutError
        connection.settimeout(left_s)
        part = connection.recv(_GREETING_BYTES - len(greeting))
        if not part:
            break
        greeting += part
    return greeting
