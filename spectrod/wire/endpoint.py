"""Endpoints of messages: their syntax and safety rules, without opening anything."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal

from spectrod.lib.errors import ConfigError
from spectrod.lib.names import NAME_PATTERN

IPC_PATH_MAX_BYTES = 107
"""Size of Linux's sockaddr_un.sun_path without its final NUL."""

CLOSED_SUFFIX = ".closed"
"""Suffix of an IPC socket's name while there are too many connections."""

_PORT_MAX = 65535
_RAW32_TOPIC = re.compile(rf"(spec|bands)(/{NAME_PATTERN}){{3}}/")
_NAME = re.compile(r"[A-Za-z0-9._-]+|\*")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A parsed endpoint.

    Attributes
    ----------
    text : str
        The text as written, which is passed to ZeroMQ.
    transport : {"tcp", "ipc"}
    host : str
        TCP: an address, a host or interface name, or ``*`` for all interfaces; "" for IPC.
    port : int
        TCP: 1 to 65535, or 0 for any free one (written ``0`` or ``*``).
    path : str
        IPC: path of the socket; "" for TCP.
    """

    text: str
    transport: Literal["tcp", "ipc"]
    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_ipv6(self) -> bool:
        """True if the host is an IPv6 address."""
        return ":" in self.host

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach the endpoint."""
        if self.transport == "ipc" or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_endpoint(text: str) -> Endpoint:
    """Parse ``tcp://HOST:PORT`` or ``ipc://PATH``.

    Raises
    ------
    ConfigError
        If the text is neither. (ZeroMQ itself takes a port of 70000 as 4464.)
    """
    transport, separator, address = text.partition("://")
    if separator and transport == "tcp":
        return _parse_tcp(text, address)
    if separator and transport == "ipc":
        return _parse_ipc(text, address)
    raise ConfigError(f"endpoint={text!r}: must be tcp://HOST:PORT or ipc://PATH")


def parse_listen(text: str, *, insecure: bool = False) -> Endpoint:
    """Parse ``HOST:PORT`` of ``http.listen``.

    Raises
    ------
    ConfigError
        If it is malformed, or other machines could reach it and insecure is not set.
    """
    name = f"http.listen={text!r}"
    try:
        endpoint = parse_endpoint(f"tcp://{text}")
    except ConfigError as error:
        raise ConfigError(f"{name}: must be HOST:PORT, such as 127.0.0.1:9733") from error
    if not (insecure or endpoint.is_local):
        raise ConfigError(
            f"{name}: anyone on the network could read the metrics; bind to 127.0.0.1, or allow it "
            "with http.insecure = true"
        )
    return endpoint


def parse_raw32(text: str) -> tuple[Endpoint, str]:
    """Parse ``ENDPOINT TOPIC``: the destination of plain vectors, and their topic.

    Raises
    ------
    ConfigError
        If one of both is missing, or the topic is not that of one channel's spectra or bands.
    """
    endpoint, _, topic = text.strip().partition(" ")
    topic = topic.strip()
    if not _RAW32_TOPIC.fullmatch(topic):
        raise ConfigError(
            f"raw32={text!r}: must be an endpoint and a topic with a space between, for example "
            "'tcp://127.0.0.1:5558 spec/mic/0/dbfs/'"
        )
    return parse_endpoint(endpoint), topic


def parse_remote(text: str) -> Endpoint:
    """Parse an endpoint to connect to, which must state host and port.

    Raises
    ------
    ConfigError
        Like ``parse_endpoint``, and if the host or the port is missing.
    """
    endpoint = parse_endpoint(text)
    if endpoint.transport == "tcp" and (endpoint.host == "*" or endpoint.port == 0):
        raise ConfigError(f"endpoint={text!r}: to connect, name a host and a port of 1 to 65535")
    return endpoint


def check_bindable(endpoint: Endpoint, *, insecure: bool, has_keys: bool = False) -> None:
    """Refuse an endpoint that strangers could use.

    Raises
    ------
    ConfigError
        If other machines could reach it, there are no keys, and insecure is not set.
    """
    if not (insecure or has_keys or endpoint.is_local):
        raise ConfigError(
            f"endpoint={endpoint.text!r}: anyone on the network could listen; bind to 127.0.0.1, "
            "set security.server_key and security.client_keys, or allow it with --insecure"
        )


def _parse_tcp(text: str, address: str) -> Endpoint:
    host, _, port = address.rpartition(":")
    if port != "*" and not (re.fullmatch(r"[0-9]{1,5}", port) and int(port) <= _PORT_MAX):
        raise ConfigError(f"endpoint={text!r}: the port must be 0 to {_PORT_MAX}, or * for any")
    return Endpoint(text, "tcp", host=_parse_host(text, host), port=int(port) if port != "*" else 0)


def _parse_host(text: str, host: str) -> str:
    if host.startswith("[") and host.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            pass  # reported below
    elif _NAME.fullmatch(host):
        return host
    raise ConfigError(f"endpoint={text!r}: the host must be a name, an address, [IPv6] or *")


def _parse_ipc(text: str, path: str) -> Endpoint:
    if not path or path[0] in "@*" or "\0" in path:
        # ZeroMQ's abstract sockets (@) have no permissions: every local user could listen.
        raise ConfigError(f"endpoint={text!r}: ipc:// must be followed by the path of a socket")
    try:
        size_bytes = len(path.encode())
    except UnicodeEncodeError as error:  # bytes of another encoding on the command line
        raise ConfigError(f"endpoint={text!r}: its path must be valid UTF-8") from error
    if size_bytes > IPC_PATH_MAX_BYTES:
        raise ConfigError(
            f"endpoint={text!r}: its path has {size_bytes} bytes, at most {IPC_PATH_MAX_BYTES} fit"
        )
    return Endpoint(text, "ipc", path=path)
