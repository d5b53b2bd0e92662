"""The server's connections: accepted from one socket, served until the end, closed in time."""

import asyncio
import socket
import ssl
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from typing import Final

from starlette.types import ASGIApp
from uvicorn import Config

from spectrod.apps.web.listen import BACKLOG
from spectrod.apps.web.page_connection import (
    HEAD_MAX_BYTES,
    BoundedHttp,
    BoundedState,
    BoundedWebSocket,
)

MESSAGE_MAX_BYTES: Final = 16384
"""Message of a WebSocket from the page."""
HANDSHAKE_S: Final = 5.0
CLOSE_S: Final = 0.3
"""Time in which peers must read what is left when the server ends [s]."""
_DATE_S = 1.0


@dataclass(slots=True, eq=False)
class Server:
    """Serves an ASGI application by HTTP/1.1 and WebSockets.

    Parameters
    ----------
    app : ASGIApp
    listener : socket.socket
        Bound and listening; closed at the end.
    tls : ssl.SSLContext or None
    connections_max : int
        Connections at once.

    Notes
    -----
    It takes uvicorn's protocols, not its ``Server``: that one handles signals by itself, waits for
    peers without a limit when it ends, and gives a TLS handshake a minute.
    """

    app: ASGIApp
    listener: socket.socket
    tls: ssl.SSLContext | None = None
    connections_max: int = 128
    _state: BoundedState = field(init=False)

    def __post_init__(self) -> None:
        self._state = BoundedState(self.connections_max)

    async def serve(self) -> None:
        """Serve until cancelled; then close every connection, within ``CLOSE_S``."""
        config = self._config()
        config.load()
        listening = await asyncio.get_running_loop().create_server(
            partial(BoundedHttp, config, self._state, {}),
            sock=self.listener,
            ssl=self.tls,
            ssl_handshake_timeout=HANDSHAKE_S if self.tls else None,
            ssl_shutdown_timeout=CLOSE_S if self.tls else None,
            backlog=BACKLOG,
        )
        try:
            while True:
                self._state.default_headers = [
                    (b"date", formatdate(time.time(), usegmt=True).encode())
                ]
                await asyncio.sleep(_DATE_S)
        finally:
            listening.close()
            await self._close()

    def _config(self) -> Config:
        return Config(
            self.app,
            http=BoundedHttp,
            ws=BoundedWebSocket,
            ws_max_size=MESSAGE_MAX_BYTES,
            ws_per_message_deflate=False,
            h11_max_incomplete_event_size=HEAD_MAX_BYTES,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            log_level="error",  # its warnings tell of peers, who could fill the log
            access_log=False,
            server_header=False,
            # A proxy on this machine says who its peers are; nobody else is believed.
            proxy_headers=True,
            forwarded_allow_ips="127.0.0.1,::1",
            timeout_keep_alive=5,
        )

    async def _close(self) -> None:
        """Close connections: WebSockets with 1012, which their pages take as a restart."""
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=CLOSE_S)
        for connection in list(self._state.connections):
            connection.transport.abort()
        for task in list(self._state.tasks):
            task.cancel()
