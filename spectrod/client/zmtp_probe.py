"""Reads what a ZMTP endpoint says of itself without ZeroMQ: its mechanism and kind of socket.

libzmq may close a connection with the wrong mechanism before it has sent its own, and does so with
a kind of socket that does not fit; the client then sees only the end. The layout is that of ZMTP
3.1: a greeting of signature, version, mechanism and rest, then commands.
"""

import socket
import time
from dataclasses import dataclass

from spectrod.wire.endpoint import Endpoint

# Signature and major version: a peer that has received these sends its whole greeting.
_GREETING_START = b"\xff" + bytes(8) + b"\x7f\x03"
_GREETING_BYTES = 64
_SIGNATURE = slice(0, 10, 9)  # its first and last byte; those between are padding
_MECHANISM = slice(12, 32)
_NULL = b"NULL"
_GREETING_REST = bytes(1) + _NULL.ljust(20, b"\0") + bytes(32)
_COMMAND = 0x04  # flags of a command of up to 255 bytes, whose length is the next byte
_READY = b"\x05READY"
_KIND = b"socket-type"


@dataclass(frozen=True, slots=True)
class ZmtpPeer:
    """What an endpoint says of itself.

    Attributes
    ----------
    mechanism : str
        ``NULL``, ``CURVE`` or ``PLAIN``.
    kind : str
        Its kind of socket, such as ``ROUTER``; empty if it does not say so without keys.
    """

    mechanism: str
    kind: str


def read_peer(endpoint: Endpoint, timeout_s: float) -> ZmtpPeer | None:
    """Read the mechanism and the kind of socket of an endpoint.

    Parameters
    ----------
    endpoint : Endpoint
        The endpoint to probe.
    timeout_s : float
        Timeout [s].

    Returns
    -------
    peer : ZmtpPeer or None
        None without a listener, or if it does not speak ZMTP 3.
    """
    deadline_s = time.monotonic() + timeout_s
    try:
        with _connect(endpoint, timeout_s) as connection:
            connection.sendall(_GREETING_START)
            greeting = _receive(connection, _GREETING_BYTES, deadline_s)
            if len(greeting) < _GREETING_BYTES:
                return None
            if greeting[_SIGNATURE] != _GREETING_START[_SIGNATURE]:
                return None
            mechanism = greeting[_MECHANISM].rstrip(b"\0")
            kind = _read_kind(connection, deadline_s) if mechanism == _NULL else ""
    except OSError:
        return None
    return ZmtpPeer(mechanism.decode("ascii", "replace"), kind)


def _read_kind(connection: socket.socket, deadline_s: float) -> str:
    """Read the kind of socket from the command READY, which comes before ours is due."""
    try:
        connection.sendall(_GREETING_REST)
        head = _receive(connection, 2, deadline_s)
        if len(head) < 2 or head[0] != _COMMAND:
            return ""
        return _kind_in(_receive(connection, head[1], deadline_s))
    except OSError:
        return ""


def _kind_in(command: bytes) -> str:
    """Return the property of a command READY; names and values have their lengths before them."""
    if not command.startswith(_READY):
        return ""
    rest = command[len(_READY) :]
    while rest:
        name, rest = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
        end = 4 + int.from_bytes(rest[:4], "big")
        value, rest = rest[4:end], rest[end:]
        if name.lower() == _KIND and len(value) == end - 4:
            return value.decode("ascii", "replace")
    return ""


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


def _receive(connection: socket.socket, n_bytes: int, deadline_s: float) -> bytes:
    """Return so many bytes, or those before the end of the connection."""
    received = b""
    while len(received) < n_bytes:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0.0:
            raise TimeoutError
        connection.settimeout(left_s)
        part = connection.recv(n_bytes - len(received))
        if not part:
            break
        received += part
    return received
