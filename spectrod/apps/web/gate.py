"""Who may ask the server for what: rules for the heads of requests. Pure.

Every request must name this server (``Host``). A WebSocket and a POST must come from the server's
own page (``Origin``), or bring the token, as programs do. Where browsers need the token too, all of
``api/`` does but the questions whether it is needed and right.
"""

from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from spectrod.apps.web.page_origin import ServerNames
from spectrod.apps.web.token import Token

ADDRESS_MAX_CHARS: Final = 64
_OPEN_PATHS = frozenset({"/api/hello", "/api/token"})


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sent a request; ``scope["state"]["visitor"]`` of the application.

    Attributes
    ----------
    address : str
        The peer's, or what a proxy on this machine says it is.
    has_token : bool
    is_authorized : bool
        Whether it may read.
    scheme : {"http", "https"}
        As the browser sees it.
    """

    address: str
    has_token: bool
    is_authorized: bool
    scheme: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Status and reason of a refused request."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class Gate:
    """What the server asks of those who come.

    Attributes
    ----------
    names : ServerNames
    token : Token
        Lets programs in, and browsers from elsewhere.
    needs_token : bool
        Whether browsers need it as well.
    cookie : str
        Name of the cookie that has it.
    root_path : str
        Path that a proxy leaves in front of every path, or empty.
    """

    names: ServerNames
    token: Token
    needs_token: bool = False
    cookie: str = "spectrod"
    root_path: str = ""

    def visitor(self, scope: Scope) -> Visitor:
        """Return who sent a request."""
        has_token = self._has_token(Headers(scope=scope))
        client = scope.get("client") or ("", 0)
        return Visitor(
            address=str(client[0])[:ADDRESS_MAX_CHARS],
            has_token=has_token,
            is_authorized=has_token or not self.needs_token,
            scheme="https" if scope["scheme"] in ("https", "wss") else "http",
        )

    def refuse(self, scope: Scope, visitor: Visitor) -> Refusal | None:
        """Return why a request is refused; None if it is not."""
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self.names.knows(hosts[0]):
            return Refusal(421, "Host: names another server; --allow-host NAME adds a name")
        is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        is_own = len(origins) == 1 and self.names.is_own_origin(
            origins[0], hosts[0], visitor.scheme
        )
        path = self._path(scope)
        if is_read and path.startswith("/api/"):
            if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
                return Refusal(403, "Sec-Fetch-Site: a page of another site")
        elif not is_read and origins and not is_own:
            return Refusal(403, "Origin: a page of another site")
        return self._refuse_without_token(path, visitor, is_trusted=is_read or is_own)

    def mounted_at(self, path: str) -> str:
        """Return the part of a path that is the proxy's."""
        root = self.root_path
        return root if root and path.startswith(f"{root}/") else ""

    def _path(self, scope: Scope) -> str:
        path = str(scope["path"])
        return path[len(self.mounted_at(path)) :]

    def _refuse_without_token(
        self, path: str, visitor: Visitor, *, is_trusted: bool
    ) -> Refusal | None:
        if not path.startswith("/api/") or path in _OPEN_PATHS:
            return None
        if not visitor.is_authorized:
            return Refusal(403, "token: missing or wrong; open the link that the server printed")
        if not (is_trusted or visitor.has_token):
            return Refusal(403, "token: needed without an Origin")
        return None

    def _has_token(self, headers: Headers) -> bool:
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.token.matches(text.strip())
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        morsel = cookies.get(self.cookie)
        return morsel is not None and self.token.matches(morsel.value)
