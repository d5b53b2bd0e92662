"""The listening socket and the certificate of the page's server."""

import errno
import ipaddress
import socket
import ssl
from pathlib import Path
from typing import Final

from spectrod.lib.errors import BusyError, ConfigError, SpectrodError, UnavailableError
from spectrod.lib.regular_files import open_regular
from spectrod.wire.endpoint import Endpoint, parse_endpoint

UNSENT_MAX_BYTES: Final = 16384
"""What the kernel takes of a connection before it can send it; it would buffer megabytes, seconds
of a stream that a slow reader has not seen."""
BACKLOG: Final = 1024
"""Connections that wait to be accepted; of one more the peer would try again after a second, then
three, while a flood fills each place that becomes free."""


def parse_address(text: str) -> Endpoint:
    """Parse ``HOST:PORT`` of ``--listen``; ``*`` is every address of this machine.

    Raises
    ------
    ConfigError
        If it is malformed.
    """
    try:
        return parse_endpoint(f"tcp://{text}")
    except ConfigError as error:
        raise ConfigError(f"listen={text!r}: must be HOST:PORT, such as 127.0.0.1:8765") from error


def open_listener(endpoint: Endpoint) -> socket.socket:
    """Bind and listen.

    Raises
    ------
    BusyError
        If the port is in use.
    ConfigError
        If it needs a right that this process lacks.
    UnavailableError
        If the address is unknown, or not of this machine.
    """
    name = f"listen={endpoint.text.removeprefix('tcp://')!r}"
    if endpoint.host == "*" and socket.has_dualstack_ipv6():
        family, address = int(socket.AF_INET6), ("::", endpoint.port)
    else:
        family, address = _resolve(name, endpoint)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            only = endpoint.host != "*"
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
        prepare(listener)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _bind_error(name, error) from error
    return listener


def prepare(listener: socket.socket) -> None:
    """Set the options that accepted connections inherit."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_MAX_BYTES)


def _resolve(name: str, endpoint: Endpoint) -> tuple[int, tuple[str, int]]:
    host = None if endpoint.host == "*" else endpoint.host
    try:
        found = socket.getaddrinfo(
            host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:  # UnicodeError: a label of more than 63 characters
        reason = error.strerror if isinstance(error, OSError) else "no such name"
        raise UnavailableError(f"{name}: {reason}") from error
    family, _, _, _, address = found[0]
    text, port = str(address[0]), int(address[1])
    if endpoint.host == "localhost" and not ipaddress.ip_address(text).is_loopback:
        raise ConfigError(f"{name}: localhost is {text} here")
    return family, (text, port)


def _bind_error(name: str, error: OSError) -> SpectrodError:
    if error.errno == errno.EADDRINUSE:
        return BusyError(f"{name}: another program has this port; --listen HOST:PORT takes another")
    if error.errno == errno.EACCES:
        return ConfigError(f"{name}: {error.strerror}; ports below 1024 are root's, use another")
    return UnavailableError(f"{name}: {error.strerror}")


def load_certificate(
    certificate: Path, key: Path, context: ssl.SSLContext | None = None
) -> ssl.SSLContext:
    """Return the context of a TLS server, version 1.2 or later.

    Parameters
    ----------
    certificate, key : Path
        PEM files.
    context : ssl.SSLContext or None
        A context that takes them for its next connections.

    Raises
    ------
    ConfigError
        If a file cannot be read, is no PEM file, is encrypted, or they do not belong together.
    """
    for option, path in (("tls-cert", certificate), ("tls-key", key)):
        try:
            open_regular(path).close()  # of a FIFO OpenSSL would wait for a writer
        except OSError as error:
            raise ConfigError(f"{option}={path}: {error.strerror}") from error
    if context is None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without the password OpenSSL would ask for it on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ConfigError(
            f"tls-cert={certificate}, tls-key={key}: must be a certificate and its key, "
            f"unencrypted PEM files: {reason}"
        ) from error
    return context
