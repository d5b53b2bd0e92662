"""Around the application: refuses what ``Gate`` refuses, and bounds what all together may take."""

import asyncio
import http
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spectrod.apps.web.gate import Gate, Refusal, Visitor
from spectrod.apps.web.page_origin import is_loopback, network_of
from spectrod.lib.rate_limit import TokenBucket

ADDRESSES_MAX: Final = 256
"""Addresses whose last refusal is remembered."""
_PAGE_POLICY = (
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS: Final[Sequence[tuple[bytes, bytes]]] = (
    (b"content-security-policy", _PAGE_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """Bounds for all clients together, and for each."""

    clients: int = 32
    """WebSockets of all clients."""
    clients_of_address: int = 4
    """WebSockets of an IPv4 address or a /64 of IPv6; those of this machine share ``clients``."""
    bytes_s: float = 32e6
    """Bytes to all clients together [bytes/s]."""


@dataclass(slots=True, eq=False)
class Guard:
    """ASGI middleware, the outermost.

    Parameters
    ----------
    app : ASGIApp
        The application.
    gate : Gate
    limits : GuardLimits
    clock : callable
        Monotonic time [s].
    """

    app: ASGIApp
    gate: Gate
    limits: GuardLimits = field(default_factory=GuardLimits)
    clock: Callable[[], float] = time.monotonic
    _clients: Counter[str] = field(default_factory=Counter, init=False)
    _refused: OrderedDict[str, str] = field(default_factory=OrderedDict, init=False)
    _budget: TokenBucket = field(init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        self._budget = TokenBucket(self.limits.bytes_s, self.limits.bytes_s, self.clock())

    @property
    def n_clients(self) -> int:
        """Number of open WebSockets."""
        return self._clients.total()

    def why_refused(self, address: str) -> str:
        """Return why the last WebSocket of an address was refused; empty if it was not."""
        return self._refused.get(address, "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it to the application."""
        visitor = self.gate.visitor(scope)
        refusal = self.gate.refuse(scope, visitor)
        if root := self.gate.mounted_at(scope["path"]):
            scope["root_path"] = root
        scope.setdefault("state", {})["visitor"] = visitor
        metered = self._metered(send)
        if scope["type"] == "websocket":
            await self._stream(scope, receive, metered, refusal)
        elif refusal is not None:
            await _answer(_with_headers(send), refusal, is_json="/api/" in scope["path"])
        else:
            await self.app(scope, receive, _with_headers(metered))

    async def _stream(
        self, scope: Scope, receive: Receive, send: Send, refusal: Refusal | None
    ) -> None:
        visitor: Visitor = scope["state"]["visitor"]
        refusal = refusal or self._refuse_client(visitor)
        if refusal is not None:
            self._remember(visitor.address, refusal.why)
            await _answer(send, refusal, prefix="websocket.")
            return
        self._refused.pop(visitor.address, None)
        network = network_of(visitor.address)
        self._clients[network] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._clients -= Counter({network: 1})

    def _refuse_client(self, visitor: Visitor) -> Refusal | None:
        if self.n_clients >= self.limits.clients:
            return Refusal(503, f"clients: {self.limits.clients} are connected, the most allowed")
        most = self.limits.clients_of_address
        if self._clients[network_of(visitor.address)] >= most and not is_loopback(visitor.address):
            return Refusal(429, f"clients: {most} of this address are connected, the most allowed")
        return None

    def _remember(self, address: str, why: str) -> None:
        self._refused.pop(address, None)
        while len(self._refused) >= ADDRESSES_MAX:
            self._refused.popitem(last=False)
        self._refused[address] = why

    def _metered(self, send: Send) -> Send:
        """Let all wait, in turn, who would send more than ``bytes_s`` together."""

        async def send_metered(message: Message) -> None:
            size = len(message.get("bytes") or message.get("body") or message.get("text") or "")
            tokens = min(float(size), self.limits.bytes_s)
            async with self._turn:
                while not self._budget.take(self.clock(), tokens):  # noqa: ASYNC110 - time alone ends it
                    await asyncio.sleep(self._budget.wait_s(self.clock(), tokens))
            await send(message)

        return send_metered


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = [(name.lower(), value) for name, value in message.get("headers", [])]
            added = [*SECURITY_HEADERS, (b"cache-control", b"no-store")]
            names = {name for name, _ in given}
            message["headers"] = [*given, *(pair for pair in added if pair[0] not in names)]
        await send(message)

    return send_with_headers


async def _answer(send: Send, refusal: Refusal, prefix: str = "", *, is_json: bool = False) -> None:
    """Refuse with a status and the reason, before the application or a handshake."""
    text = f"{refusal.status} {http.HTTPStatus(refusal.status).phrase}: {refusal.why}\n"
    body = msgspec.json.encode({"error": refusal.why}) if is_json else text.encode()
    headers = [
        (b"content-type", b"application/json" if is_json else b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    start = f"{prefix}http.response.start"
    await send({"type": start, "status": refusal.status, "headers": headers})
    await send({"type": f"{prefix}http.response.body", "body": body})
