"""Names under which the page may be asked for, and origins that may open its stream. Pure.

A page of another site can make a browser on this machine connect here. Two headers that its scripts
cannot change tell it apart: ``Origin`` names the site of the page; ``Host`` names whom the browser
believes to talk to, which is the other site's name if that site's DNS points to this machine (DNS
rebinding).
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from spectrod.lib.errors import ConfigError
from spectrod.wire.endpoint import Endpoint

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://([^/?#@]{1,260})")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_WILDCARDS = ("*", "0.0.0.0", "::")  # noqa: S104 - recognized, not bound


def parse_host(text: str) -> tuple[str, int | None] | None:
    """Parse ``HOST[:PORT]``; return the canonical name and the port, None if it is malformed."""
    match = _HOST.fullmatch(text)
    if match is None:
        return None
    name, port = match[1].lower(), match[2]
    if name.startswith("["):
        try:
            name = str(ipaddress.IPv6Address(name[1:-1]))
        except ValueError:
            return None
    return name, None if port is None else int(port)


def is_loopback(host: str) -> bool:
    """Return whether a peer's address is one of this machine's own."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


@lru_cache(1024)
def network_of(host: str) -> str:
    """Return whom a peer's address belongs to: an IPv4 address, or the /64 of an IPv6 address.

    Whoever has one address of a /64 has all of them (RFC 6177). Text that is no address is its own.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return str(ipaddress.IPv6Network((int(address), 64), strict=False))
        address = address.ipv4_mapped
    return str(address)


@dataclass(frozen=True, slots=True)
class ServerNames:
    """Who the server is to its browsers.

    Attributes
    ----------
    names : frozenset of str
        Lower-case names and addresses that ``Host`` may have, at any port: a tunnel may change it.
    proxied : frozenset of str
        Those of them that a proxy may serve by TLS without saying so.
    any_address : bool
        Whether ``Host`` may be any address. No other site's page can have one of this machine's.
    """

    names: frozenset[str]
    proxied: frozenset[str] = frozenset()
    any_address: bool = False

    def knows(self, host: str) -> bool:
        """Return whether a request's ``Host`` names this server."""
        parsed = parse_host(host)
        if parsed is None:
            return False
        name = parsed[0]
        return name in self.names or (self.any_address and _is_address(name))

    def is_own_origin(self, origin: str, host: str, scheme: str) -> bool:
        """Return whether a page of this server, as its request names it, has an origin.

        Parameters
        ----------
        origin : str
            The request's ``Origin``.
        host : str
            Its ``Host``, which ``knows``.
        scheme : {"http", "https"}
            How the server was reached.
        """
        match = _ORIGIN.fullmatch(origin)
        source, own = parse_host(match[2]) if match else None, parse_host(host)
        if match is None or source is None or own is None:
            return False
        is_right_scheme = match[1] == scheme or (match[1] == "https" and own[0] in self.proxied)
        default = _DEFAULT_PORTS[match[1]]
        return is_right_scheme and (source[0], source[1] or default) == (own[0], own[1] or default)


def server_names(
    endpoint: Endpoint, allow_hosts: Iterable[str] = (), machine: str = ""
) -> ServerNames:
    """Return the names of a server.

    Parameters
    ----------
    endpoint : Endpoint
        Where it listens.
    allow_hosts : iterable of str
        Further names, as ``--allow-host`` gives them.
    machine : str
        This machine's name, which counts where it listens on all addresses, also with ``.local``.

    Raises
    ------
    ConfigError
        If a further name is malformed, or has a port: ports do not matter.
    """
    further = frozenset(_further(name) for name in allow_hosts)
    names = {"localhost", "127.0.0.1", "::1"}
    is_wildcard = endpoint.host in _WILDCARDS
    if not is_wildcard:
        names.add(endpoint.host.lower())
    elif parse_host(machine) is not None:
        names |= {machine.lower(), f"{machine.lower()}.local"}
    return ServerNames(frozenset(names | further), further, any_address=is_wildcard)


def _further(text: str) -> str:
    parsed = parse_host(text)
    if parsed is None or parsed[1] is not None:
        raise ConfigError(f"allow-host={text!r}: must be a name or an address, without a port")
    return parsed[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
