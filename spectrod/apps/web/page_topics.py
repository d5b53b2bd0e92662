"""Topics of daemons: their numbers, their axes, and what is constant of their rows."""

import logging
from collections import OrderedDict
from collections.abc import Container, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import count
from typing import Any, Final

import msgspec
import numpy as np

from spectrod.apps.web.page_view import TOPICS_MAX
from spectrod.apps.web.slicing import TopicAxis
from spectrod.dsp.row_grid import row_period_s
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import WireError
from spectrod.lib.text import printable
from spectrod.wire.headers import (
    MEASUREMENTS,
    BandsHeader,
    HeartbeatHeader,
    IntervalTopic,
    ValuesHeader,
)
from spectrod.wire.schema import BandFrame, Frame, IntervalFrame, Meta, MetaHeader

_log = logging.getLogger(__name__)
_json = msgspec.json.encode
TIME_MAX_NS: Final = 1 << 62
"""Time of a row from 1970 [ns]: 146 years."""
ROW_MAX_S: Final = 366 * 86400.0
"""Duration of a row, and time from one to the next [s]."""
_TEXT_MAX: Final = 300
_KINDS_OF_ROWS = ("spec", "bands")
VALUES_PREFIXES = tuple(f"{word}/" for word in MEASUREMENTS)
"""Beginnings of topics of measurements."""


@dataclass(slots=True)
class _Gone:
    """A topic that went, and whether something may be kept of its rows."""

    endpoint: str
    topic: str
    since_s: float
    has_memory: bool = True


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic of an endpoint, as pages see it."""

    id: int
    topic: str
    kind: str
    """First word of the topic: ``spec``, ``bands``, or the kind of measurement."""
    endpoint: str
    source: str
    channel: str
    product: str
    unit: str
    fs: float
    """Sample rate [Hz]; 0 before the first message of measurements."""
    interval_s: float | None = None
    """Length of an interval of measurements [s]."""
    time_zone: str = ""
    """Name of its source's time zone; empty: none is known."""
    is_silent: bool = False
    """Whether recordings alone say that there is such a topic: its daemon has not described it."""

    @property
    def facts(self) -> tuple[str, float, float | None, str, bool]:
        """What may change of it, in the order of its fields."""
        return self.unit, self.fs, self.interval_s, self.time_zone, self.is_silent

    @property
    def has_rows(self) -> bool:
        """Whether its messages are spectra."""
        return self.kind in _KINDS_OF_ROWS


_INFO_FIELDS = tuple(field.name for field in fields(TopicInfo))


class TopicTable:
    """The topics of all endpoints, at most ``TOPICS_MAX``; further ones are counted.

    A topic keeps its number if it goes and comes again, unless ``TOPICS_MAX`` others have gone
    since. No other topic ever gets its number.

    Attributes
    ----------
    topics : dict of int to TopicInfo
        The topics that exist, by their numbers.
    version : int
        Grows with every change of ``topics``.
    refused : int
        Messages of topics beyond the bound.
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], int] = {}
        self._numbers = count()
        self._seen_s: dict[int, float] = {}
        self._epochs: dict[int, int] = {}
        self._gone: OrderedDict[int, _Gone] = OrderedDict()
        self._listed: dict[tuple[str, str], tuple[IntervalTopic, ...]] = {}
        self.topics: dict[int, TopicInfo] = {}
        self.version = self.refused = 0

    def note_meta(self, endpoint: str, meta: Meta, now_s: float) -> None:
        """Add a described topic, or what has changed in it."""
        word = "bands" if meta.header.bands else "spec"
        name = f"{word}/{meta.topic.removeprefix('meta/')}"
        zone = "" if meta.header.time_zone is msgspec.UNSET else meta.header.time_zone
        unit = level_unit(meta.header.unit)
        self._note(endpoint, name, unit, meta.header.fs, now_s, time_zone=zone)

    def note_frame(
        self, endpoint: str, frame: Frame | BandFrame | IntervalFrame, now_s: float
    ) -> TopicInfo | None:
        """Add a topic from which a message came; None if there are too many."""
        h = frame.header
        if isinstance(frame, IntervalFrame):
            return self._note(endpoint, frame.topic, "", h.fs, now_s, frame.header.interval_s)
        return self._note(endpoint, frame.topic, level_unit(frame.header.unit), h.fs, now_s)

    def note_recorded(self, topic: TopicInfo, now_s: float) -> None:
        """Add a topic that recordings of a silent source have, with a number of this table."""
        words = (topic.endpoint, topic.topic, topic.unit, topic.fs, now_s)
        self._note(*words, time_zone=topic.time_zone, is_silent=True)

    def described_sources(self) -> set[tuple[str, str]]:
        """Return endpoint and name of the sources whose spectra their daemons have described."""
        found = (one for one in self.topics.values() if one.has_rows and not one.is_silent)
        return {(one.endpoint, one.source) for one in found}

    def note_heartbeat(
        self, endpoint: str, source: str, beat: HeartbeatHeader, now_s: float
    ) -> None:
        """Add the topics of intervals that a source lists, and remove those it lists no more."""
        before, listed = self._listed.get((endpoint, source), ()), beat.interval_topics
        if listed == before:
            return
        self._listed[endpoint, source] = listed
        gone = {one.topic for one in before} - {one.topic for one in listed}
        for topic in list(self._of(endpoint)):
            if topic.source == source and topic.topic in gone:
                self._remove(topic, now_s)
        for one in listed:
            is_known = self._ids.get((endpoint, one.topic)) in self.topics
            is_own = one.topic.startswith(VALUES_PREFIXES) and one.topic.split("/")[1] == source
            if is_own and not is_known:
                self._note(endpoint, one.topic, "", 0.0, now_s, one.interval_s)

    def take_forgotten(self, since_s: float) -> list[int]:
        """Return the numbers of topics that went before a monotonic time [s], each once.

        What is kept of their rows can go.
        """
        found = [n for n, gone in self._gone.items() if gone.since_s < since_s and gone.has_memory]
        for number in found:
            self._gone[number].has_memory = False
        return found + self._drop_oldest()

    def _drop_oldest(self) -> list[int]:
        """Forget the numbers of those that went first, of too many; return them."""
        dropped = []
        while len(self._gone) > TOPICS_MAX:
            number, gone = self._gone.popitem(last=False)
            del self._ids[gone.endpoint, gone.topic]
            self._seen_s.pop(number, None)
            self._epochs.pop(number, None)
            if gone.has_memory:
                dropped.append(number)
        return dropped

    def is_new_epoch(self, topic: TopicInfo, epoch: int) -> bool:
        """Note the epoch of a topic's message; return whether it follows one of another epoch.

        Unlike a subscription it remembers the epoch while nobody subscribes to the topic.
        """
        before = self._epochs.get(topic.id, epoch)
        self._epochs[topic.id] = epoch
        return before != epoch

    def forget(self, endpoint: str, source: str, now_s: float) -> None:
        """Remove the topics of a source that has ended."""
        self._listed.pop((endpoint, source), None)
        for topic in list(self._of(endpoint)):
            if topic.source == source:
                self._remove(topic, now_s)

    def forget_others(self, endpoint: str, sources: Container[str], now_s: float) -> None:
        """Remove the topics of intervals of sources that an endpoint has no more."""
        for of, source in list(self._listed):
            if of == endpoint and source not in sources:
                self.forget(endpoint, source, now_s)

    def forget_unseen(self, endpoint: str, since_s: float, now_s: float) -> None:
        """Remove spectra of an endpoint that were not described since a monotonic time [s]."""
        for topic in list(self._of(endpoint)):
            if topic.has_rows and self._seen_s[topic.id] < since_s:
                self._remove(topic, now_s)

    def listed(self) -> list[dict[str, Any]]:
        """Return the topics for a page, by endpoint and name."""
        by_name = sorted(self.topics.values(), key=lambda topic: (topic.endpoint, topic.topic))
        # ``asdict`` copies every text and number, which takes 0.1 ms a topic.
        found = [{name: getattr(topic, name) for name in _INFO_FIELDS} for topic in by_name]
        texts = ("unit", "time_zone")  # a hostile daemon's
        return [one | {name: _shown(one[name]) for name in texts} for one in found]

    def _remove(self, topic: TopicInfo, now_s: float) -> None:
        del self.topics[topic.id]
        self._gone[topic.id] = _Gone(topic.endpoint, topic.topic, now_s)
        self.version += 1

    def _of(self, endpoint: str) -> Iterator[TopicInfo]:
        return (topic for topic in self.topics.values() if topic.endpoint == endpoint)

    def _note(  # noqa: PLR0913 - each is a fact of a topic
        self,
        endpoint: str,
        name: str,
        unit: str,
        fs: float,
        now_s: float,
        interval_s: float | None = None,
        *,
        time_zone: str | None = None,
        is_silent: bool = False,
    ) -> TopicInfo | None:
        """Add a topic, or what has changed in it; None: its time zone is as it was."""
        number = self._ids.get((endpoint, name))
        if number not in self.topics:
            if len(self.topics) >= TOPICS_MAX:
                if not self.refused:
                    _log.warning(
                        "%s: %s and all further topics are left out: %d are the most allowed",
                        *(endpoint, name, TOPICS_MAX),
                    )
                self.refused += 1
                return None
            if number is None:
                number = self._ids[endpoint, name] = next(self._numbers)
            self._gone.pop(number, None)
        assert number is not None
        self._seen_s[number] = now_s
        known = self.topics.get(number)
        if time_zone is None:
            time_zone = "" if known is None else known.time_zone
        facts = (unit, fs, interval_s, time_zone, is_silent)
        if known is None or known.facts != facts:
            kind, source, channel, product, _ = name.split("/")
            words = (name, kind, endpoint, source, channel, product)
            known = self.topics[number] = TopicInfo(number, *words, *facts)
            self.version += 1
        return known


def level_unit(unit: str) -> str:
    """Return the unit of levels of values: the unit itself, or ``dB re UNIT``."""
    return unit if unit.startswith("dB") else f"dB re {unit}"


def _shown(value: Any) -> Any:
    """Return a field of a header for pages; its texts may come from a hostile daemon."""
    return printable(value, _TEXT_MAX) if isinstance(value, str) else value


@dataclass(frozen=True, eq=False)
class RowFacts:
    """What is constant of a topic's rows, until a message of it differs.

    Attributes
    ----------
    topic : TopicInfo
    axis : TopicAxis
    header : SpectrumHeader, BandsHeader or MetaHeader
        Header of the first message, or of the topic's description.
    row_s : float
        Time from one message to the next [s].
    half_ms : float
        Time from a row's first sample to its middle [ms].
    """

    topic: TopicInfo
    axis: TopicAxis
    header: ValuesHeader | MetaHeader
    row_s: float
    half_ms: float

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The fields of a ``stream`` text that describe the topic; the edges of bands as JSON."""
        h, axis, topic = self.header, self.axis, self.topic
        names = ("fs", "nfft", "win_length", "hop", "averaging", "averaging_frames", "window")
        more = ("enbw_hz", "ref", "cal_id", "engine", "weighting")
        edges = None if axis.edges_hz is None else msgspec.Raw(_json(axis.edges_hz.tolist()))
        return {
            "topic_id": topic.id,
            "topic": topic.topic,
            "kind": topic.kind,
            "endpoint": topic.endpoint,
            "epoch": str(h.epoch),
            "frame_hop": h.frame_hop or h.hop,
            "unit": _shown(level_unit(h.unit)),
            "row_s": self.row_s,
            "first_hz": axis.first_hz,
            "bin_hz": axis.bin_hz,
            "edges_hz": edges,
            "n_bins": axis.n_bins,
            **{name: _shown(getattr(h, name)) for name in (*names, *more)},
        }


def check_times(h: ValuesHeader | MetaHeader) -> None:
    """Check that a row's time and duration can be reckoned with.

    Raises
    ------
    WireError
        If the protocol's bounds allow them and those here do not: ``TIME_MAX_NS``, ``ROW_MAX_S``.
    """
    if abs(h.t_utc_ns) > TIME_MAX_NS:
        raise WireError(f"t_utc_ns={h.t_utc_ns}: must be at most {TIME_MAX_NS} from 1970")
    row_s = 1.0 / h.rate_hz if h.rate_hz else h.hop / h.fs
    span_s = (h.win_length + (h.averaging_frames - 1) * (h.frame_hop or h.hop)) / h.fs
    for name, duration_s in (("rows apart", row_s), ("a row", span_s)):
        if not duration_s <= ROW_MAX_S:
            raise WireError(f"{name}: {duration_s:g} s: must be at most {ROW_MAX_S:g} s")


def facts_of(topic: TopicInfo, frame: Frame | BandFrame, edges: Float64Array | None) -> RowFacts:
    """Return what is constant of a topic's rows.

    Notes
    -----
    The middle of a row is its first sample + (win_length + (averaging_frames - 1) frame_hop) / 2 fs
    as in recordings.
    """
    return _facts(topic, frame.header, len(frame.values), edges)


def facts_of_meta(topic: TopicInfo, meta: Meta) -> RowFacts:
    """Return what is constant of a topic's rows by its description, before any of them came.

    Raises
    ------
    WireError
        As ``check_times``.
    """
    check_times(meta.header)
    return _facts(topic, meta.header, len(meta.f), meta.edges)


def _facts(
    topic: TopicInfo, h: ValuesHeader | MetaHeader, n_values: int, edges: Float64Array | None
) -> RowFacts:
    bin_hz = h.fs / h.nfft
    first_hz = 0.0
    if not isinstance(h, BandsHeader) and edges is None:
        first_hz = h.center_frequency_hz + h.first_bin * bin_hz
    axis = TopicAxis(n_values, first_hz, bin_hz, edges)
    row_s = float(row_period_s(h.rate_hz)) if h.rate_hz else h.hop / h.fs
    return RowFacts(topic, axis, h, row_s, middle_ms(h, h.averaging_frames))


def middle_ms(h: ValuesHeader | MetaHeader, frames: int) -> float:
    """Return the time from a row's first sample to its middle [ms]."""
    samples = h.win_length + (frames - 1) * (h.frame_hop or h.hop)
    return samples / (2.0 * h.fs) * 1e3


def constants(frame: Frame | BandFrame) -> tuple[object, ...]:
    """Return all that a row's description depends on."""
    h = frame.header
    lengths = (h.epoch, h.fs, h.nfft, h.win_length, h.hop, h.frame_hop, h.rate_hz)
    average = (h.averaging, h.averaging_frames, h.window, h.enbw_hz, h.weighting)
    units = (h.unit, h.ref, h.cal_id, h.engine, len(frame.values))
    if isinstance(frame, Frame):
        return (
            *lengths,
            *average,
            *units,
            frame.header.first_bin,
            frame.header.center_frequency_hz,
        )
    return (*lengths, *average, *units)


def same_edges(a: Float64Array | None, b: Float64Array | None) -> bool:
    """Return whether two topics have the same bands."""
    return a is b or (a is not None and b is not None and np.array_equal(a, b))
