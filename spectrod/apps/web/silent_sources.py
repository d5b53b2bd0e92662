"""Lists what was recorded of sources of which no sample has come since their daemon started."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.feed import Feed
from spectrod.apps.web.page_topics import TopicInfo, TopicTable
from spectrod.apps.web.session import PageSession

LOOK_S: Final = 3.0
"""Time from one look at the recordings of silent sources to the next, while a page is open [s]."""
SILENT_TOPICS_MAX: Final = 1024
"""Topics of silent sources; others that may be listed are for what daemons describe."""
_TICK_S = 0.5
_SILENT = frozenset({"waiting", "paused", "finished", "failed"})
"""States in which a source may have had no sample; in others its description is on its way."""

FindRecorded = Callable[[str, str], Sequence[TopicInfo]]
"""Finds the recorded topics of a source of an endpoint; called by one thread at a time."""


def nothing_recorded(_endpoint: str, _source: str) -> Sequence[TopicInfo]:
    """Find no topics, as ``FindRecorded``."""
    return ()


class SilentSources:
    """Adds topics of silent sources to a table. Used by one event loop.

    A topic that is no longer found is removed as one that its daemon no longer describes.

    Parameters
    ----------
    feeds : sequence of Feed
        Those of the daemons.
    table : TopicTable
        Topics that were described, to which those of recordings are added.
    sessions : mapping of PageClient to PageSession
        The pages, which others add and remove; without one nothing is looked for.
    find : callable
        See ``FindRecorded``.
    """

    def __init__(
        self,
        feeds: Sequence[Feed],
        table: TopicTable,
        sessions: Mapping[PageClient, PageSession],
        find: FindRecorded,
    ) -> None:
        self._feeds, self._table, self._sessions, self._find = feeds, table, sessions, find

    async def run(self) -> None:
        """Look for topics until cancelled."""
        looked_s = -math.inf
        while True:
            await asyncio.sleep(_TICK_S)
            if self._sessions and time.monotonic() - looked_s >= LOOK_S:
                await self._look()
                looked_s = time.monotonic()

    async def _look(self) -> None:
        n_left = SILENT_TOPICS_MAX
        for endpoint, source in self._silent():
            found = await asyncio.to_thread(self._find, endpoint, source)
            if (endpoint, source) not in self._silent():  # it has been described since
                continue
            for topic in found[:n_left]:
                self._table.note_recorded(topic, time.monotonic())
            n_left -= len(found[:n_left])

    def _silent(self) -> list[tuple[str, str]]:
        """Return endpoint and name of the sources that have no described topic of spectra."""
        described = self._table.described_sources()
        return [
            (feed.endpoint, name)
            for feed in self._feeds
            for name, beat in feed.heartbeats.items()
            if beat.state in _SILENT and (feed.endpoint, name) not in described
        ]
