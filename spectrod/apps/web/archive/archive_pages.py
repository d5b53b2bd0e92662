"""Serves the stream of pages that show archives: topics and their descriptions, and never a row.

The past that such a page draws comes from ``api/history``, as that of a daemon's topics does.
"""

import asyncio
import math
import time
from typing import Any, Final

from starlette.websockets import WebSocket

import spectrod
from spectrod.apps.web.archive.archives import Archives
from spectrod.apps.web.archive.stored_events import StoredEvents
from spectrod.apps.web.client import PageClient
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.messages import VERSION, encode_text
from spectrod.apps.web.page_view import PageText, View
from spectrod.apps.web.session import PageSession
from spectrod.apps.web.state import now_ms

LOOK_S: Final = 3.0
"""Time from one look at the folders to the next, while a page is open [s]."""
VIEWS_S: Final = 0.1
"""Least time from one view of pages to the next [s]."""


class ArchivePages:
    """The server's side of pages that show archives. Used by one event loop.

    Parameters
    ----------
    archives : Archives
        What is shown.
    limits : Limits
        Bounds of each page.
    events : StoredEvents, optional
        Its events, whose version pages get; None: of none.
    """

    def __init__(
        self, archives: Archives, limits: Limits, events: StoredEvents | None = None
    ) -> None:
        self._archives, self._limits, self._events = archives, limits, events
        self._sessions: dict[PageClient, PageSession] = {}
        self._views: dict[PageClient, View] = {}
        self._shown_s = -math.inf

    async def run(self) -> None:
        """Show views, and what is new or has gone while a page is open, until cancelled."""
        looked_s = time.monotonic()
        while True:
            await asyncio.sleep(VIEWS_S)
            self._show_views()
            if not self._sessions or time.monotonic() - looked_s < LOOK_S:
                continue
            if await asyncio.to_thread(self._refresh):
                for client in self._sessions:
                    self._list(client)
                self._wake_all()
            looked_s = time.monotonic()

    def _refresh(self) -> bool:
        is_other = self._archives.refresh()
        return (self._events is not None and self._events.refresh()) or is_other

    async def serve(self, websocket: WebSocket) -> None:
        """Serve a page until its connection ends.

        Parameters
        ----------
        websocket : WebSocket
            Accepted, of a peer that may see everything.
        """
        client = PageClient(self._limits)

        def on_text(text: PageText) -> None:
            self._on_text(client, text)

        session = PageSession(websocket, client, self._limits, on_text)
        self._sessions[client] = session
        client.outbox.add(encode_text("hello", **self._hello()))
        self._list(client)
        session.wake()
        try:
            await session.run()
        finally:
            del self._sessions[client]
            self._views.pop(client, None)

    def _hello(self) -> dict[str, Any]:
        limits = self._limits
        shown = ("streams", "values", "rows_s", "clients", "message_bytes")
        return {
            "version": VERSION,
            "program": f"spectrod {spectrod.__version__}",
            "now_ms": now_ms(),
            "limits": {name: getattr(limits, name) for name in shown},
            "can_control": False,
            "has_history": True,
            "has_sound": False,
            "is_archive": True,
        }

    def _list(self, client: PageClient) -> None:
        client.outbox.set("topics", encode_text("topics", topics=self._archives.listed()))
        client.outbox.set("state", encode_text("state", **self._state()))

    def _state(self) -> dict[str, Any]:
        endpoints = [
            {
                "endpoint": one.name,
                "is_archive": True,
                "connected": not one.why,
                "silence_s": 0.0,
                "missed": 0,
                "broken": 0,
                "why": one.why,
            }
            for one in self._archives.archives
        ]
        n_clients = len(self._sessions)
        return {
            "endpoints": endpoints,
            "sources": [],
            "clients": n_clients,
            "now_ms": now_ms(),
            "events_version": self._events.listed.version if self._events else 0,
        }

    def _on_text(self, client: PageClient, text: PageText) -> None:
        if isinstance(text, View):  # no message has rows, and no hold is kept
            self._views[client] = text
            self._show_views()

    def _show_views(self) -> None:
        """Describe the streams of the last view of each page, ten times a second at most."""
        now_s = time.monotonic()
        if not self._views or now_s - self._shown_s < VIEWS_S:
            return
        self._shown_s = now_s
        views, self._views = self._views, {}
        for client, view in views.items():
            client.set_view(view, self._archives.topics)
            for number, stream in list(client.streams.items()):
                facts = self._archives.facts(stream.wish.topic_id)
                if facts is not None:  # else it has gone since
                    client.describe(number, facts)
        self._wake_all()

    def _wake_all(self) -> None:
        for session in self._sessions.values():
            session.wake()
