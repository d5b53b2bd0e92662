"""Describes streams of topics from which no rows come, so that pages can show their past."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.apps.web.session import PageSession
from spectrod.apps.web.streams import RowStream
from spectrod.apps.web.topic_past import TopicPast
from spectrod.wire.schema import Meta

SILENT_S: Final = 1.0
"""Time for which a stream waits for the first row of its topic before it is described without [s].

Rows of most topics come sooner than that, and a page that gets some needs nothing else."""
AGAIN_S: Final = 3.0
"""Time from one look at what is known of a topic to the next [s]: recordings are indexed bit by
bit, and go on where another program records."""
_TICK_S = 0.5  # a stream is described later than ``SILENT_S`` by as much at most

FindPast = Callable[[TopicInfo, Meta | None], TopicPast | None]
"""Finds what is known of a topic without its rows, beside its daemon's description, if there is
one; called by one thread at a time."""


@dataclass(slots=True)
class _Waiting:
    """A stream without rows: since when, and what its page was told last."""

    since_s: float
    told: TopicPast | None = None


@dataclass(frozen=True, slots=True)
class _FoundPast:
    """What was found of a topic, and when."""

    past: TopicPast | None
    at_s: float


class SilentTopics:
    """Describes streams that have waited for ``SILENT_S``. Used by one event loop.

    Parameters
    ----------
    sessions : mapping of PageClient to PageSession
        The pages, which others add and remove.
    topics : callable
        Returns the topics that exist by their numbers.
    meta_of : callable
        Returns the description that the daemon of a topic has sent, or None.
    find : callable
        See ``FindPast``.
    """

    def __init__(
        self,
        sessions: Mapping[PageClient, PageSession],
        topics: Callable[[], Mapping[int, TopicInfo]],
        meta_of: Callable[[TopicInfo], Meta | None],
        find: FindPast,
    ) -> None:
        self._sessions, self._topics = sessions, topics
        self._meta_of, self._find = meta_of, find
        self._waiting: dict[RowStream, _Waiting] = {}
        self._found: dict[int, _FoundPast] = {}

    async def run(self) -> None:
        """Describe streams until cancelled."""
        while True:
            await asyncio.sleep(_TICK_S)
            self._note_waiting(time.monotonic())
            for client, number, stream in list(self._silent()):
                past = await self._past(stream.wish.topic_id)
                if past is not None:
                    self._tell(client, number, stream, past)

    def _note_waiting(self, now_s: float) -> None:
        """Note the streams without rows, and forget what is known of topics that have none."""
        streams = [stream for _, _, stream in self._streams()]
        self._waiting = {one: self._waiting.get(one) or _Waiting(now_s) for one in streams}
        shown = {stream.wish.topic_id for stream in streams}
        self._found = {n: found for n, found in self._found.items() if n in shown}

    def _streams(self) -> Iterator[tuple[PageClient, int, RowStream]]:
        for client in self._sessions:
            for number, stream in client.streams.items():
                if not stream.has_rows:
                    yield client, number, stream

    def _silent(self) -> Iterator[tuple[PageClient, int, RowStream]]:
        """Yield the streams that have waited for long enough."""
        since_s = time.monotonic() - SILENT_S
        for client, number, stream in self._streams():
            waiting = self._waiting.get(stream)
            if waiting is not None and waiting.since_s <= since_s:
                yield client, number, stream

    async def _past(self, topic_id: int) -> TopicPast | None:
        """Return what is known of a topic: what there was a moment ago, else what there is now."""
        found = self._found.get(topic_id)
        if found is None or time.monotonic() - found.at_s >= AGAIN_S:
            found = self._found[topic_id] = await self._look(topic_id)
        return found.past

    async def _look(self, topic_id: int) -> _FoundPast:
        topic = self._topics().get(topic_id)
        past = None
        if topic is not None:
            past = await asyncio.to_thread(self._find, topic, self._meta_of(topic))
        return _FoundPast(past, time.monotonic())

    def _tell(self, client: PageClient, number: int, stream: RowStream, past: TopicPast) -> None:
        """Describe a stream, unless it has gone or has rows by now, or its page knows it all."""
        session, waiting = self._sessions.get(client), self._waiting.get(stream)
        is_there = client.streams.get(number) is stream and not stream.has_rows
        if session is None or waiting is None or not is_there or past == waiting.told:
            return
        waiting.told = past
        client.describe(number, past.facts, newest_ms=past.newest_ms)
        session.wake()
