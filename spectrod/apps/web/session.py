"""A page's WebSocket: its texts are read and its messages sent, each in their own task."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.messages import encode_text
from spectrod.apps.web.page_view import PageText, parse_text
from spectrod.lib.errors import ConfigError
from spectrod.lib.rate_limit import TokenBucket

BATCH_S: Final = 0.045
"""Least time from one binary message to the next [s]."""
TEXTS_S: Final = 60.0
"""Texts that a page may send, acknowledgements included [1/s]."""
TEXTS_BURST: Final = 120.0
"""Texts that it may send at once."""

_TOO_MANY_TEXTS = (1008, "too many texts")
_NOTHING_DRAWN = (1013, "nothing was acknowledged for too long")
_CLOSE_S = 1.0


class PageSession:
    """Serves one page until its connection ends.

    Parameters
    ----------
    websocket : WebSocket
        Accepted.
    client : PageClient
        What is kept for it.
    limits : Limits
        Bounds.
    on_text : callable
        Called with what the page says.
    """

    def __init__(
        self,
        websocket: WebSocket,
        client: PageClient,
        limits: Limits,
        on_text: Callable[[PageText], None],
    ) -> None:
        self._websocket = websocket
        self._client = client
        self._limits = limits
        self._on_text = on_text
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Send what waits."""
        self._wake.set()

    async def run(self) -> None:
        """Serve the page; close the connection if it is not the page that ended it."""
        tasks = [asyncio.create_task(work) for work in (self._read(), self._write())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, tuple):
                await self._close(*end)
            elif isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect):
                raise end

    async def _read(self) -> tuple[int, str] | None:
        """Process texts until the page has gone or sends too many."""
        allowed = TokenBucket(TEXTS_S, TEXTS_BURST, time.monotonic())
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            if not allowed.take(time.monotonic()):
                return _TOO_MANY_TEXTS
            self._take(message.get("text"))
            self.wake()

    def _take(self, text: str | None) -> None:
        try:
            self._on_text(parse_text(text or "", self._limits))
        except ConfigError as error:
            self._client.refuse("text", str(error))

    async def _write(self) -> tuple[int, str]:
        """Send texts and rows until the page is gone."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            now_s = time.monotonic()
            self._client.adapt(now_s)
            if self._client.is_gone(now_s):
                return _NOTHING_DRAWN
            try:
                async with asyncio.timeout(self._limits.silent_s):
                    await self._send(now_s)
            except TimeoutError:
                return _NOTHING_DRAWN
            await asyncio.sleep(BATCH_S - (time.monotonic() - now_s))

    async def _send(self, now_s: float) -> None:
        for text in self._client.outbox.take():
            await self._websocket.send_text(text)
        while (found := self._client.take_rows(now_s)) is not None:
            descriptions, message = found
            for one in descriptions:  # encoded one by one, as the page takes them
                await self._websocket.send_text(encode_text("stream", **one.fields))
            await self._websocket.send_bytes(message)

    async def _close(self, code: int, reason: str) -> None:
        # A page that does not read may not take this either: its connection then ends by its pings.
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            async with asyncio.timeout(_CLOSE_S):
                await self._websocket.close(code, reason)
