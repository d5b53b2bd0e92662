"""What tells people where the page is: its address, as a link and as a QR code."""

import io
import socket

from spectrod.apps.web.page_origin import is_loopback
from spectrod.wire.endpoint import Endpoint

_ELSEWHERE = ("192.0.2.1", 9)
"""An address that no machine has (RFC 5737)."""
_WHITE_ON_BLACK, _RESET = "\x1b[97;40m", "\x1b[0m"
_WILDCARDS = {"*": "", "0.0.0.0": "", "::": ""}  # noqa: S104 - recognized, not bound


def is_local(endpoint: Endpoint) -> bool:
    """Return whether only this machine reaches an address."""
    return endpoint.host == "localhost" or is_loopback(endpoint.host)


def page_link(
    endpoint: Endpoint,
    port: int,
    *,
    tls: bool,
    token: str | None = None,
    elsewhere: tuple[str, int] = _ELSEWHERE,
) -> str:
    """Return the address of the page.

    Parameters
    ----------
    endpoint : Endpoint
        Where the server listens; of all addresses, that of the default route is taken.
    port : int
        The actual port.
    tls : bool
        Whether the server has a certificate.
    token : str or None
        Token for the fragment, which browsers send to no server.
    elsewhere : (str, int)
        Address and port; this machine's own address is that of the route to it. Nothing is sent.
    """
    host = _WILDCARDS.get(endpoint.host, endpoint.host) or _own_address(elsewhere)
    name = f"[{host}]" if ":" in host else host
    scheme, default = ("https", 443) if tls else ("http", 80)
    place = name if port == default else f"{name}:{port}"
    return f"{scheme}://{place}/" + ("" if token is None else f"#k={token}")


def qr_code(link: str) -> str:
    """Return a QR code of a link for a terminal with UTF-8, in half blocks.

    White on black whatever the terminal's colours are: not every camera reads an inverted code.
    """
    import segno  # noqa: PLC0415 - only where a code is shown

    out = io.StringIO()
    segno.make(link, micro=False).terminal(out, border=2, compact=True)
    return "".join(f"{_WHITE_ON_BLACK}{line}{_RESET}\n" for line in out.getvalue().splitlines())


def _own_address(elsewhere: tuple[str, int]) -> str:
    """Return this machine's address on the route to another, or its name without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(elsewhere)
        except OSError:
            return socket.gethostname()
        return str(probe.getsockname()[0])
