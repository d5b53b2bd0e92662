"""Asks daemons for the rows that they sent before this server listened, from their replay."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from spectrod.apps.web.page_rows import levels_of
from spectrod.apps.web.page_topics import TopicInfo, check_times
from spectrod.apps.web.quantize import Codes, to_codes
from spectrod.client.connection import KeyFile
from spectrod.client.control import Control
from spectrod.client.rpc_codec import messages_of
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import SpectrodError, UnavailableError
from spectrod.lib.text import printable
from spectrod.wire.endpoint import parse_remote
from spectrod.wire.endpoint_discovery import beside
from spectrod.wire.headers import ValuesHeader
from spectrod.wire.schema import BandFrame, Frame, decode

HOLE_BYTES_MAX: Final = 32 << 20
"""Codes of the rows of one hole; older ones stay out [bytes]."""
HOLE_ROWS_MAX: Final = 32768
HOLES_MAX: Final = 64
"""Holes of a daemon that wait; the oldest are given up."""
MESSAGES_AT_ONCE: Final = 128
"""Messages of a request, which are decoded between two steps of the event loop."""
REPLY_S: Final = 5.0
"""Time for a reply [s]."""
SETTLED_S: Final = 2.0
"""Time for which a request for the past waits for the rows of its topic [s]."""

AskReplay = Callable[[str, Mapping[str, Any]], Awaitable[tuple[Any, Sequence[bytes]]]]
"""Asks the daemon of an endpoint, with the parameters of ``replay``; returns result and parts."""

_log = logging.getLogger(__name__)


class RowSink(Protocol):
    """What keeps the rows: ``Ring.push``."""

    def __call__(
        self,
        topic_id: int,
        header: ValuesHeader,
        row: Codes,
        edges_hz: Float64Array | None,
        *,
        is_replayed: bool,
    ) -> None:
        """Keep a row."""


@dataclass(frozen=True, slots=True)
class _MissedRows:
    """Rows of a topic that did not come: from ``first_seq`` to before ``end_seq``."""

    topic: TopicInfo
    epoch: int
    first_seq: int
    end_seq: int
    n_values: int
    edges_hz: Float64Array | None


@dataclass(slots=True)
class _Endpoint:
    """Holes of the topics of one daemon, and the task that fills them, if any."""

    holes: deque[_MissedRows] = field(default_factory=lambda: deque(maxlen=HOLES_MAX))
    task: "asyncio.Task[None] | None" = None
    has_failed: bool = False


class ReplayedRows:
    """Fills the holes in the rows of topics: before the first one, and where messages were lost.

    Of one daemon a request at a time is on its way. A daemon without a control socket that this
    process may use has no replay: its holes stay. Used by one event loop.

    Parameters
    ----------
    topics : callable
        Returns the topics of the server by their numbers.
    keep : callable
        Takes the rows, the oldest of a hole first.
    ask : callable
        Asks a daemon; raises SpectrodError.
    """

    def __init__(
        self, topics: Callable[[], Mapping[int, TopicInfo]], keep: RowSink, ask: AskReplay
    ) -> None:
        self._topics, self._keep, self._ask = topics, keep, ask
        self._last: dict[int, tuple[int, int]] = {}
        self._endpoints: dict[str, _Endpoint] = {}

    def note(
        self, topic_id: int, header: ValuesHeader, row: Codes, edges_hz: Float64Array | None
    ) -> None:
        """Note a live row; a hole before it is filled in a task of its own."""
        epoch, seq = self._last.get(topic_id, (header.epoch, -1))
        self._last[topic_id] = header.epoch, header.seq
        first = seq + 1 if epoch == header.epoch else 0
        n_max = min(HOLE_ROWS_MAX, HOLE_BYTES_MAX // (2 * len(row)))
        first = max(first, header.seq - n_max)
        topic = self._topics().get(topic_id)
        if first >= header.seq or topic is None:
            return
        hole = _MissedRows(topic, header.epoch, first, header.seq, len(row), edges_hz)
        of = self._endpoints.setdefault(topic.endpoint, _Endpoint())
        of.holes.append(hole)
        if of.task is None or of.task.done():
            of.task = asyncio.create_task(self._fill(topic.endpoint, of))

    def forget(self, topic_id: int) -> None:
        """Forget the last row of a topic."""
        self._last.pop(topic_id, None)

    async def settled(self, topic_id: int) -> None:
        """Wait until the holes of a topic's daemon are filled, ``SETTLED_S`` at most."""
        topic = self._topics().get(topic_id)
        of = None if topic is None else self._endpoints.get(topic.endpoint)
        if of is not None and of.task is not None and not of.task.done():
            await asyncio.wait({of.task}, timeout=SETTLED_S)

    def close(self) -> None:
        """End all requests; idempotent."""
        for of in self._endpoints.values():
            if of.task is not None:
                of.task.cancel()

    async def _fill(self, endpoint: str, of: _Endpoint) -> None:
        while of.holes:
            try:
                await self._fill_hole(of.holes.popleft())
            except SpectrodError as error:
                of.holes.clear()
                if not of.has_failed:
                    _log.info("%s: no replay: %s", endpoint, printable(str(error)))
                of.has_failed = True
            else:
                of.has_failed = False

    async def _fill_hole(self, hole: _MissedRows) -> None:
        first, more = hole.first_seq, True
        while more and first < hole.end_seq:
            limit = min(MESSAGES_AT_ONCE, hole.end_seq - first)
            params = {"first_seq": first, "epoch": hole.epoch, "limit": limit}
            answer = await self._ask(hole.topic.endpoint, {"topic": hole.topic.topic, **params})
            messages, more = messages_of(*answer)
            before = first
            for parts in messages:
                first = self._take(hole, first, parts)
            more = more and first > before  # a daemon that repeats itself is asked no more
            await asyncio.sleep(0)

    def _take(self, hole: _MissedRows, first: int, parts: Sequence[bytes]) -> int:
        """Keep a message that is in the hole; return the number that may come next."""
        frame = decode(parts)
        if not isinstance(frame, Frame | BandFrame) or frame.topic != hole.topic.topic:
            return first
        header = frame.header
        is_inside = first <= header.seq < hole.end_seq and header.epoch == hole.epoch
        if not is_inside:
            return first
        # Another analysis may have had other bands, whose edges are not known any more.
        if hole.edges_hz is None or len(frame.values) == hole.n_values:
            check_times(header)
            codes = to_codes(levels_of(frame)) - 1
            self._keep(hole.topic.id, header, codes, hole.edges_hz, is_replayed=True)
        return header.seq + 1


class ReplayClient:
    """Asks daemons of this machine for their replay, by the control sockets beside their endpoints.

    Parameters
    ----------
    server_key, key_file : str, path or None
        As of ``Control``.
    """

    def __init__(self, server_key: KeyFile | None, key_file: KeyFile | None) -> None:
        self._server_key, self._key_file = server_key, key_file

    async def ask(self, endpoint: str, params: Mapping[str, Any]) -> tuple[Any, Sequence[bytes]]:
        """Ask a daemon.

        Raises
        ------
        SpectrodError
            If it has no control socket here, refuses, or does not answer in time.
        """
        found = beside(parse_remote(endpoint))
        if found is None:
            raise UnavailableError(f"{endpoint}: has no control socket that this user may use")
        with Control(
            found, timeout_s=REPLY_S, server_key=self._server_key, key_file=self._key_file
        ) as control:
            return await control.call_parts_async("replay", **params)
