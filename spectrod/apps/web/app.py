"""The application: routes of the page, its questions, and its stream."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

import spectrod
from spectrod.apps.web.gate import Gate, Visitor
from spectrod.apps.web.guard import Guard, GuardLimits
from spectrod.apps.web.page_files import FIRST_FILE, MODULES_FILE, PageFile, file_response

PROTOCOL_VERSION: Final = 1
TOKEN_MAX_BYTES: Final = 256
CONTROL_MAX_BYTES: Final = 16384
BODY_S: Final = 2.0
"""Time in which the body of a request must arrive [s]: its packets follow that of the head."""
_COOKIE_S = 30 * 86400


class Streamer(Protocol):
    """What serves the stream: the hub."""

    async def serve(self, websocket: WebSocket) -> None:
        """Serve an accepted WebSocket until it ends."""


Relay = Callable[[bytes], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes lead to.

    Attributes
    ----------
    files : mapping
        Files of the page by name.
    streamer : Streamer
    control : callable or None
        Answers the body of a request to ``api/control``; None without ``--control``.
    history : sequence of BaseRoute
        Routes below ``api/`` that answer from the past.
    """

    files: Mapping[str, PageFile]
    streamer: Streamer
    control: Relay | None = None
    history: Sequence[BaseRoute] = ()


def make_app(services: Services, gate: Gate, limits: GuardLimits) -> Guard:
    """Return the application with its guard around it."""
    routes = _Routes(services, gate)
    app = Starlette(routes=list(routes.all()))
    # A path with a slash too many is another path: a redirect would name the server's idea of its
    # own address, which is wrong behind a proxy.
    app.router.redirect_slashes = False
    guard = Guard(app, gate, limits)
    routes.guard = guard
    return guard


class _Routes:
    """Handlers of all routes."""

    guard: Guard

    def __init__(self, services: Services, gate: Gate) -> None:
        self._services, self._gate = services, gate

    def all(self) -> list[BaseRoute]:
        """Return the routes of what there is."""
        routes: list[BaseRoute] = [
            Route("/", self._index),
            Route("/page/{name:path}", self._file),
            Route("/api/hello", self._hello),
            Route("/api/token", self._token, methods=["POST"]),
            WebSocketRoute("/api/stream", self._stream),
            *self._services.history,
        ]
        if self._services.control is not None:
            routes.append(Route("/api/control", self._control, methods=["POST"]))
        return routes

    async def _index(self, request: Request) -> Response:
        has_modules = "modules" in request.query_params
        return self._find(request, MODULES_FILE if has_modules else FIRST_FILE)

    async def _file(self, request: Request) -> Response:
        return self._find(request, request.path_params["name"])

    def _find(self, request: Request, name: str) -> Response:
        file = self._services.files.get(name)
        if file is None:
            return PlainTextResponse("404 Not Found\n", 404)
        return file_response(request, file)

    async def _hello(self, request: Request) -> Response:
        visitor = _visitor(request)
        return JSONResponse(
            {
                "version": PROTOCOL_VERSION,
                "program": f"spectrod {spectrod.__version__}",
                "needs_token": not visitor.is_authorized,
                "refused": self.guard.why_refused(visitor.address),
            }
        )

    async def _token(self, request: Request) -> Response:
        body = await _read_body(request, TOKEN_MAX_BYTES)
        if isinstance(body, Response):
            return body
        if not self._gate.token.matches(body.decode("latin-1").strip()):
            return _error(403, "token: wrong; open the link that the server printed")
        # A proxy may not say that it has TLS; its browsers' pages do.
        is_https = request.headers.get("origin", "").startswith("https:")
        response = Response(status_code=204)
        # No path: browsers take that of this request, so two servers behind a proxy keep apart.
        response.set_cookie(
            self._gate.cookie,
            self._gate.token.reveal(),
            max_age=_COOKIE_S,
            path=None,
            secure=is_https or _visitor(request).scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    async def _stream(self, websocket: WebSocket) -> None:
        await websocket.accept()
        await self._services.streamer.serve(websocket)

    async def _control(self, request: Request) -> Response:
        assert self._services.control is not None
        # Also on this machine: any user's program can send the Origin of the page, and the daemon's
        # control socket is not for all users.
        if not _visitor(request).has_token:
            return _error(403, "token: needed to control; open the link that the server printed")
        body = await _read_body(request, CONTROL_MAX_BYTES)
        return body if isinstance(body, Response) else await self._services.control(body)


def _visitor(request: Request) -> Visitor:
    visitor = request.scope["state"]["visitor"]
    assert isinstance(visitor, Visitor)
    return visitor


async def _read_body(request: Request, most_bytes: int) -> bytes | Response:
    """Return the body of a request; an error if it is too long or does not arrive in time."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > most_bytes:
                    return _error(413, f"body: must be at most {most_bytes} bytes")
    except TimeoutError:
        return _error(408, f"body: must arrive within {BODY_S:g} s")
    except ClientDisconnect:
        return _error(400, "body: incomplete")
    return bytes(body)


def _error(status: int, why: str) -> Response:
    # Closed: what is left of the body need not be read.
    return JSONResponse({"error": why}, status, headers={"connection": "close"})
