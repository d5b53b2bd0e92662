"""State that a subscriber builds from its messages. Opens no socket."""

import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from spectrod.client.bounded_dict import BoundedDict
from spectrod.lib.errors import WireError
from spectrod.lib.stats import State
from spectrod.lib.text import printable
from spectrod.wire.headers import WORDS
from spectrod.wire.schema import (
    HEARTBEAT_PERIOD_S,
    BandFrame,
    EventMessage,
    Frame,
    Heartbeat,
    HeartbeatHeader,
    IntervalFrame,
    Message,
    Meta,
    decode,
)

AnyFrame = Frame | BandFrame | IntervalFrame
"""Class of messages with values, by the first word of their topics."""

SILENCE_S = 3.0 * HEARTBEAT_PERIOD_S
"""Time without any message after which a daemon counts as gone [s]."""

REPLAY_LIMIT = 64
"""Messages in one replay request."""

_ENDED: tuple[State, ...] = ("finished", "failed", "stopped")
_KINDS = tuple(f"{word}/".encode() for word in (*WORDS, "last", "meta", "hb", "event"))
_EVENTS_KEPT = 1000

TOPICS_MAX = 1 << 16
"""Maximum number of topics whose last sequence number and description are kept."""
SOURCES_MAX = 1024
"""Maximum number of sources whose last heartbeat is kept."""
META_MAX_BYTES = 256 << 20
"""Descriptions that are remembered [bytes]."""
_HEARTBEATS_MAX_BYTES = 16 << 20
GONE_S = 600.0
"""Time without a heartbeat of a source, while others come, after which it is forgotten [s]."""
_SWEEP_S = 10.0
_SEEN_BYTES = 300  # a topic, its numbers, and entries in two dictionaries


def described_topic(meta: Meta) -> str:
    """Return the topic with the values that a message describes."""
    kind = "bands/" if meta.header.bands else "spec/"
    return kind + meta.topic.removeprefix("meta/")


class ReplayRequest(NamedTuple):
    """Parameters of a ``replay`` request that fills a hole."""

    topic: str
    first_seq: int
    epoch: int
    limit: int


class _Seen(NamedTuple):
    epoch: int
    seq: int
    t_utc_ns: int


class _Hole:
    """Missing messages before a frame, while they are being requested."""

    def __init__(self, frame: AnyFrame) -> None:
        self.frame = frame
        self.next_seq = frame.header.seq - frame.missed

    def fill(self, frame: AnyFrame) -> AnyFrame | None:
        """Return a replayed frame with its counters set; None if it is not in the hole."""
        end, found = self.frame, frame.header
        if not self.next_seq <= found.seq < end.header.seq or found.epoch != end.header.epoch:
            return None
        missed, self.next_seq = found.seq - self.next_seq, found.seq + 1
        self.frame = replace(
            end, missed=end.header.seq - self.next_seq, restarted=False, away_s=0.0
        )
        away_s = end.away_s - (end.header.t_utc_ns - found.t_utc_ns) / 1e9 if end.restarted else 0.0
        return replace(frame, missed=missed, restarted=end.restarted, away_s=away_s, replayed=True)


class Tracker:
    """Decodes messages and counts the missing ones.

    Call ``feed`` with each message, then ``step`` until it returns None. If it returns a
    ``ReplayRequest``, call ``answer`` before the next step.

    Bounded, whatever a daemon sends: it holds the frames of one answer, the last 65 536 topics
    (their descriptions in 256 MiB), 1024 sources (their heartbeats in 16 MiB) and 1000 events. The
    least recently updated entry is dropped first, and a source that sends no heartbeats for 10
    minutes while others do is dropped with its topics: the next message of a dropped topic counts
    as its first, with no missed messages before it.

    Parameters
    ----------
    name : str
        The endpoint, for error texts.
    replays : bool
        Fill holes: ``step`` returns ``ReplayRequest``s.
    meta_max_bytes : int
        Size of the descriptions that are remembered [bytes].

    Attributes
    ----------
    missed : int
        Messages lost so far, over all topics.
    meta : dict of str to Meta
        The last description of each topic, by the described topic.
    heartbeats : dict of str to HeartbeatHeader
        The last heartbeat of each source, by the source's name.
    heartbeat : HeartbeatHeader or None
        The last heartbeat of any source.
    events : deque of EventMessage
        The last 1000 events, if subscribed to; the caller may remove them.
    """

    def __init__(
        self, name: str, *, replays: bool = False, meta_max_bytes: int = META_MAX_BYTES
    ) -> None:
        self._name = name
        self._replays = replays
        self._last_seen: BoundedDict[_Seen] = BoundedDict(TOPICS_MAX, TOPICS_MAX * _SEEN_BYTES)
        self._last_message_s = -math.inf
        self._beats_since_s = self._newest_beat_s = -math.inf
        self._beat_s: dict[str, float] = {}
        self._swept_s = -math.inf
        self._ready: deque[AnyFrame] = deque()
        self._hole: _Hole | None = None
        self.missed = 0
        self.meta: BoundedDict[Meta] = BoundedDict(TOPICS_MAX, meta_max_bytes)
        self.heartbeats: BoundedDict[HeartbeatHeader] = BoundedDict(
            SOURCES_MAX, _HEARTBEATS_MAX_BYTES
        )
        self.heartbeat: HeartbeatHeader | None = None
        self.events: deque[EventMessage] = deque(maxlen=_EVENTS_KEPT)

    @property
    def silence_s(self) -> float:
        """Time since the last message was read [s]; infinite before the first."""
        return time.monotonic() - self._last_message_s

    @property
    def alive(self) -> bool:
        """Whether a message came recently and at least one source has not ended."""
        states = {beat.state for beat in self.heartbeats.values()}
        has_announced_end = bool(states) and states.issubset(_ENDED)
        return self.silence_s < SILENCE_S and not has_announced_end

    def feed(self, parts: Sequence[bytes]) -> Message | None:
        """Process a message, and return it; None for a kind of topic of a later version.

        Raises
        ------
        WireError
            If it does not follow the protocol; later messages can still be processed.
        """
        self._last_message_s = time.monotonic()
        if not parts[0].startswith(_KINDS):
            return None
        message = decode(parts)
        match message:
            case Meta() as meta:
                self._compare(meta)
                self.meta.put(described_topic(meta), meta, sum(map(len, parts)))
            case Heartbeat() as beat:
                self._compare(beat)
                self.heartbeat = beat.header
                self.heartbeats.put(beat.source, beat.header, sum(map(len, parts)))
                self._note_beat(beat.source, self._last_message_s)
            case EventMessage() as event:
                self._compare(event)
                self.events.append(event)
            case Frame() | BandFrame() | IntervalFrame() as frame:
                self._take(frame)
        return message

    def forget(self, prefix: str) -> None:
        """Count nothing as missed before the next message of each topic with a prefix."""
        for topic in [name for name in self._last_seen if name.startswith(prefix)]:
            self._last_seen.discard(topic)

    def discard(self, topics: Iterable[str]) -> None:
        """Forget topics that are no more: their numbers and descriptions, and of ``hb/`` states."""
        for topic in topics:
            self._last_seen.discard(topic)
            self.meta.discard(topic)
            if topic.startswith("hb/"):
                self.heartbeats.discard(topic.split("/")[1])

    def step(self) -> AnyFrame | ReplayRequest | None:
        """Return the next frame or a replay request; None if it needs another message."""
        if self._ready:
            frame = self._ready.popleft()
            self.missed += frame.missed
            return frame
        if self._hole is None:
            return None
        header = self._hole.frame.header
        limit = min(REPLAY_LIMIT, header.seq - self._hole.next_seq)
        return ReplayRequest(self._hole.frame.topic, self._hole.next_seq, header.epoch, limit)

    def answer(self, messages: Sequence[Sequence[bytes]], *, more: bool) -> None:
        """Process replayed messages, in order; without any, the hole remains.

        Raises
        ------
        WireError
            If one does not follow the protocol; the rest of this hole is then given up.
        """
        hole, self._hole = self._hole, None
        if hole is None:
            return
        first_seq = hole.next_seq
        try:
            found = [decode(parts) for parts in messages]
        except WireError:
            self._ready.append(hole.frame)
            raise
        filled = [hole.fill(frame) for frame in found if isinstance(frame, AnyFrame)]
        self._ready += [frame for frame in filled if frame is not None]
        if more and hole.frame.missed and hole.next_seq > first_seq:
            self._hole = hole
        else:
            self._ready.append(hole.frame)

    def why_nothing(self, timeout_s: float) -> str:
        """Return the text that explains why no frame came in time."""
        wait = f"within {timeout_s:g} s"
        if self.alive and self.heartbeat is not None:
            why, state = printable(self.heartbeat.waiting_for), printable(self.heartbeat.state)
            state = f"{state} ({why})" if why else state
            return f"{self._name}: the daemon is {state} but sent no spectrum {wait}"
        return f"{self._name}: nothing came {wait}; is the daemon running there?"

    def _note_beat(self, source: str, now_s: float) -> None:
        """Note when a source was heard; now and then forget those that have gone."""
        if now_s - self._newest_beat_s > SILENCE_S:  # the daemon was away, or its connection
            self._beats_since_s = now_s
        self._newest_beat_s = self._beat_s[source] = now_s
        if now_s - self._swept_s >= _SWEEP_S or len(self._beat_s) > 2 * SOURCES_MAX:
            self._swept_s = now_s
            self._forget_gone(now_s - GONE_S)

    def _forget_gone(self, since_s: float) -> None:
        """Forget sources without a heartbeat since a time, if others had some all the time."""
        self._beat_s = {one: s for one, s in self._beat_s.items() if one in self.heartbeats}
        if self._beats_since_s > since_s:
            return
        gone = {one for one, beat_s in self._beat_s.items() if beat_s < since_s}
        for source in gone:
            self.heartbeats.discard(source)
        for table in (self.meta, self._last_seen) if gone else ():
            for topic in [name for name in table if name.split("/")[1] in gone]:
                table.discard(topic)

    def _take(self, frame: AnyFrame) -> None:
        if frame.topic.startswith("last/"):  # a message that was resent
            self._ready.append(frame)
            return
        before = self._compare(frame)
        header = frame.header
        if before is None:
            self._ready.append(frame)
        elif before.epoch != header.epoch:
            away_s = (header.t_utc_ns - before.t_utc_ns) / 1e9
            self._queue(replace(frame, missed=header.seq, restarted=True, away_s=away_s))
        elif header.seq > before.seq + 1:
            self._queue(replace(frame, missed=header.seq - before.seq - 1))
        else:
            self._ready.append(frame)

    def _queue(self, frame: AnyFrame) -> None:
        if self._replays and frame.missed:
            self._hole = _Hole(frame)
        else:
            self._ready.append(frame)

    def _compare(self, message: Message) -> _Seen | None:
        """Return the last numbers of the topic; raise WireError if the number does not increase."""
        header = message.header
        before = self._last_seen.get(message.topic)
        seen = _Seen(header.epoch, header.seq, header.t_utc_ns)
        self._last_seen.put(message.topic, seen, _SEEN_BYTES)
        if before is not None and before.epoch == header.epoch and header.seq <= before.seq:
            raise WireError(
                f"{message.topic}: seq={header.seq}: must be above {before.seq}, the one before"
            )
        return before
