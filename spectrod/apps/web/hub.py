"""The hub: daemons on one side, pages on the other, one event loop for all."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from starlette.websockets import WebSocket

import spectrod
from spectrod.apps.web.client import PageClient
from spectrod.apps.web.feed import Feed
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.measure import measured_fields
from spectrod.apps.web.messages import VERSION, encode_text
from spectrod.apps.web.page_rows import RowMaker
from spectrod.apps.web.page_topics import TopicInfo, TopicTable, check_times
from spectrod.apps.web.page_values import NewestValues, values_fields
from spectrod.apps.web.page_view import Acknowledgement, HoldReset, PageText, View
from spectrod.apps.web.quantize import Codes
from spectrod.apps.web.session import PageSession
from spectrod.apps.web.silent_sources import FindRecorded, SilentSources, nothing_recorded
from spectrod.apps.web.silent_topics import FindPast, SilentTopics
from spectrod.apps.web.state import event_fields, now_ms, state_fields
from spectrod.apps.web.topic_past import described_past
from spectrod.apps.web.wanted import WantedTopics
from spectrod.client.connection import KeyFile
from spectrod.client.tracker import AnyFrame
from spectrod.dsp.units import Float64Array
from spectrod.wire.headers import ValuesHeader
from spectrod.wire.schema import EventMessage, IntervalFrame, Meta

RowListener = Callable[[int, ValuesHeader, Codes, Float64Array | None], object]
"""Called with a topic's number, a message's header, its levels as the wire's u16 (65535: no data),
and the lower and upper edges of bands."""

_TICK_S = 0.1
_TICKS_OF_MEASURED = 2
_TICKS_OF_STATE = 10
_LIST_S = 0.5  # least time from one list of topics to the next
_UNDESCRIBED_S = 35.0  # descriptions come every 10 s
EVENTS_KEPT: Final = 200
"""Newest events, which each page receives when it connects."""
KEPT_S: Final = 600.0
"""Time for which rows of a topic that has gone are kept: daemons restart [s]."""
_ENDED = "stopped"


class Hub:
    """Subscribes to daemons, and sends pages what they show. Used by one event loop.

    Bounded: 4096 topics, and for each page what ``PageClient`` keeps. How many pages there are is
    up to the caller of ``serve``.

    Parameters
    ----------
    endpoints : sequence of str
        Endpoints where daemons publish; they may start later.
    server_key, key_file : str, path or None
        For endpoints with keys, as for ``spectrod.client.subscribe``.
    limits : Limits
        Bounds of each page.
    history : bool
        Whether pages may ask for the past.
    can_control : bool
        Whether pages may change anything.

    Attributes
    ----------
    has_sound : bool
        Whether pages may ask for recorded sound; to be set before the first comes.
    find_past : callable
        See ``FindPast``; what descriptions say alone. To be set before ``run``.
    find_recorded : callable
        See ``FindRecorded``; nothing. To be set before ``run``.

    Raises
    ------
    ConfigError
        If an endpoint is invalid, or a key cannot be read.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        server_key: KeyFile | None,
        key_file: KeyFile | None,
        limits: Limits,
        history: bool,
        can_control: bool,
    ) -> None:
        self._limits = limits
        self._can_control, self._has_history = can_control, history
        self.has_sound = False
        self._table = TopicTable()
        self._sessions: dict[PageClient, PageSession] = {}
        self._views: dict[PageClient, View] = {}
        self._shown_s = -math.inf
        self._shown_by: dict[int, list[PageClient]] = {}
        self._makers: dict[int, RowMaker] = {}
        self._listeners: list[RowListener] = []
        self._forgetters: list[Callable[[int], object]] = []
        self._values = NewestValues()
        self._events: deque[str] = deque(maxlen=EVENTS_KEPT)
        self._listed, self._listed_version = encode_text("topics", topics=[]), 0
        self._may_list_s = 0.0
        self._state: object = None
        self.find_past: FindPast = described_past
        self.find_recorded: FindRecorded = nothing_recorded
        self._feeds = [
            Feed(name, server_key, key_file, self._on_frame, self._on_event)
            for name in dict.fromkeys(endpoints)
        ]
        self._wanted = [WantedTopics(feed.endpoint) for feed in self._feeds]

    @property
    def topics(self) -> dict[int, TopicInfo]:
        """The topics that exist, by their numbers."""
        return self._table.topics

    def add_listener(self, listener: RowListener) -> None:
        """Call a function with every row that some page shows."""
        self._listeners.append(listener)

    def add_forgetter(self, forget: Callable[[int], object]) -> None:
        """Call a function with the number of a topic that has gone for ``KEPT_S``."""
        self._forgetters.append(forget)

    async def run(self) -> None:
        """Subscribe to the daemons until cancelled."""
        silent = SilentTopics(self._sessions, lambda: self.topics, self._meta_of, self.find_past)
        sources = SilentSources(self._feeds, self._table, self._sessions, self.find_recorded)
        async with asyncio.TaskGroup() as group:
            for feed in self._feeds:
                group.create_task(feed.run())
            group.create_task(self._tick())
            group.create_task(silent.run())
            group.create_task(sources.run())

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
        self._greet(client)
        session.wake()
        try:
            await session.run()
        finally:
            del self._sessions[client]
            self._views.pop(client, None)
            self._index()

    # ---- pages

    def _greet(self, client: PageClient) -> None:
        limits = self._limits
        shown = ("streams", "values", "rows_s", "clients", "message_bytes")
        hello = {
            "version": VERSION,
            "program": f"spectrod {spectrod.__version__}",
            "now_ms": now_ms(),
            "limits": {name: getattr(limits, name) for name in shown},
            "can_control": self._can_control,
            "has_history": self._has_history,
            "has_sound": self.has_sound,
        }
        client.outbox.add(encode_text("hello", **hello))
        client.outbox.set("topics", self._listed)
        client.outbox.set("state", self._state_text())
        for text in self._events:
            client.outbox.add(text)

    def _on_text(self, client: PageClient, text: PageText) -> None:
        if isinstance(text, Acknowledgement):
            if not client.credits.acknowledge(text.message, time.monotonic()):
                client.refuse("ack", f"message={text.message}: must be one that was sent")
        elif isinstance(text, HoldReset):
            client.reset_holds(text.topic_id)
        else:
            self._views[client] = text
            self._show_views(time.monotonic())

    def _show_views(self, now_s: float) -> None:
        """Show the last view of each page, ten times a second at most."""
        if not self._views or now_s - self._shown_s < _TICK_S:
            return
        self._shown_s = now_s
        views, self._views = self._views, {}
        for client, view in views.items():
            client.set_view(view, self.topics)
        self._index()
        self._want(now_s)

    def _index(self) -> None:
        """Find the pages of each topic; forget what rows of other topics needed."""
        shown_by: dict[int, list[PageClient]] = {}
        for client in self._sessions:
            for topic_id in client.topics():
                shown_by.setdefault(topic_id, []).append(client)
        self._shown_by = shown_by
        self._makers = {n: maker for n, maker in self._makers.items() if n in shown_by}

    def _send_all(self, key: object, text: str) -> None:
        for client in self._sessions:
            client.outbox.set(key, text)

    # ---- daemons

    def _on_frame(self, feed: Feed, frame: AnyFrame) -> None:
        topic = self._table.note_frame(feed.endpoint, frame, time.monotonic())
        if topic is None:
            return
        if isinstance(frame, IntervalFrame):
            self._values.put(topic.id, frame)
            return
        check_times(frame.header)
        if self._table.is_new_epoch(topic, frame.header.epoch):
            frame = replace(frame, restarted=True)
        shown_by = self._shown_by.get(topic.id)
        if not shown_by:
            return
        meta = feed.meta.get(frame.topic)
        row = self._maker(topic).make(frame, None if meta is None else meta.edges)
        if row is None:
            return
        for listener in self._listeners:
            listener(topic.id, frame.header, row.wire_codes, row.facts.axis.edges_hz)
        for client in shown_by:
            client.push(topic.id, row)
            self._sessions[client].wake()

    def _maker(self, topic: TopicInfo) -> RowMaker:
        maker = self._makers.get(topic.id)
        if maker is None or maker.topic is not topic:
            maker = self._makers[topic.id] = RowMaker(topic)
        return maker

    def _on_event(self, feed: Feed, event: EventMessage) -> None:
        text = encode_text("event", **event_fields(feed.endpoint, event))
        self._events.append(text)
        for client, session in self._sessions.items():
            client.outbox.add(text)
            session.wake()

    def _meta_of(self, topic: TopicInfo) -> Meta | None:
        metas = (one.meta.get(topic.topic) for one in self._feeds if one.endpoint == topic.endpoint)
        return next(metas, None)

    def _want(self, now_s: float) -> None:
        for feed, wanted in zip(self._feeds, self._wanted, strict=True):
            feed.want(wanted.update(self._sessions, self.topics, now_s))

    # ---- from time to time

    async def _tick(self) -> None:
        for tick in count():
            now_s = time.monotonic()
            self._show_views(now_s)
            self._send_values()
            if tick % _TICKS_OF_MEASURED == 0:
                self._send_measured(is_due=tick % _TICKS_OF_STATE == 0)
            self._send_state(is_due=tick % _TICKS_OF_STATE == 0)
            self._note_topics(now_s)
            if tick % _TICKS_OF_STATE == 0:
                self._want(now_s)
            for session in self._sessions.values():
                session.wake()
            await asyncio.sleep(_TICK_S)

    def _send_values(self) -> None:
        for topic_id, frame in self._values.take().items():
            clients = [one for one in self._sessions if one.wants_values(topic_id)]
            if clients:
                text = encode_text("values", **values_fields(topic_id, frame))
                for client in clients:
                    client.outbox.set(("values", topic_id), text)

    def _send_measured(self, *, is_due: bool) -> None:
        """Send what was measured; once a second to pages that take rows slowly."""
        for client in self._sessions:
            if client.queue.slowdown > 1 and not is_due:
                continue
            for stream in client.streams.values():
                fields = measured_fields(stream)
                if fields is not None:
                    text = encode_text("measured", **fields)
                    client.outbox.set(("measured", stream.wish.id), text)

    def _send_state(self, *, is_due: bool) -> None:
        """Send the state if it is due, or a connection or a source's state has changed."""
        state = [(feed.connected, feed.why, _states(feed)) for feed in self._feeds]
        if self._sessions and (is_due or state != self._state):
            self._send_all("state", self._state_text())
        self._state = state

    def _state_text(self) -> str:
        return encode_text("state", **state_fields(self._feeds, len(self._sessions)))

    def _note_topics(self, now_s: float) -> None:
        """Note described topics and those that have ended; tell pages if the list has changed."""
        for feed in self._feeds:
            self._note_described(feed, now_s)
        for number in self._table.take_forgotten(now_s - KEPT_S):
            for forget in self._forgetters:
                forget(number)
        if self._table.version != self._listed_version and now_s >= self._may_list_s:
            self._listed_version, self._may_list_s = self._table.version, now_s + _LIST_S
            self._listed = encode_text("topics", topics=self._table.listed())
            self._send_all("topics", self._listed)

    def _note_described(self, feed: Feed, now_s: float) -> None:
        for meta in feed.new_meta():
            self._table.note_meta(feed.endpoint, meta, now_s)
        for source, beat in feed.heartbeats.items():
            if beat.state == _ENDED:
                self._table.forget(feed.endpoint, source, now_s)
            else:
                self._table.note_heartbeat(feed.endpoint, source, beat, now_s)
        if feed.connected:
            self._table.forget_unseen(feed.endpoint, now_s - _UNDESCRIBED_S, now_s)
            self._table.forget_others(feed.endpoint, feed.heartbeats, now_s)


def _states(feed: Feed) -> list[tuple[str, str]]:
    return [(name, beat.state) for name, beat in feed.heartbeats.items()]
