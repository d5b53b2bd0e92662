"""The server's own memory of rows: the newest minutes as rows, hours as cells of a second.

Live rows, and those of a daemon's replay, which are older than live ones but come after them.

Bounded: 24 MiB of rows and 16 MiB of cells of all topics together; the oldest go first.
"""

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.web.history.axis import NOTHING, HistoryAxis, Int16Array
from spectrod.apps.web.history.columns import codes_of, from_wire, powers_of
from spectrod.dsp.units import NS_PER_S, Float64Array, Int64Array
from spectrod.wire.headers import BandsHeader, SpectrumHeader

ROWS_BYTES_MAX: Final = 24 << 20
"""Memory of all rows [bytes]."""
CELLS_BYTES_MAX: Final = 16 << 20
"""Memory of all cells [bytes]."""
CELL_NS: Final = NS_PER_S
"""Length of a cell [ns]."""
_BLOCK_ROWS: Final = 128
_BLOCK_BYTES: Final = 1 << 20
_BLOCKS_MIN: Final = 16
"""Blocks that fit into the memory at least, unless single rows are larger."""

UInt16Array = NDArray[np.uint16]
Edges = Float64Array | tuple[Float64Array, Float64Array]
Stream = tuple[int, bool]
"""A topic's number, and whether its rows are those of a replay."""


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """Rows or cells of one topic with one axis; arrays are read-only.

    Attributes
    ----------
    axis : HistoryAxis
        Axis of the values.
    length_ns : int
        Time from one to the next [ns].
    middle_ns : (n,) int64
        Middle of each [ns since 1970].
    effort_s : (n,) float64
        Duration of the sound in each [s].
    greatest, mean : (n, values) int16
        Codes of the levels, see ``spectrod.apps.web.history.columns``.
    """

    axis: HistoryAxis
    length_ns: int
    middle_ns: Int64Array
    effort_s: Float64Array
    greatest: Int16Array
    mean: Int16Array


class _Block:
    """Memory for some rows. Written by one thread; readers see the first ``count`` rows."""

    def __init__(
        self, stream: Stream, axis: HistoryAxis, length_ns: int, shape: tuple[int, int]
    ) -> None:
        n_rows, layers = shape
        self.stream, self.axis, self.length_ns = stream, axis, length_ns
        self.codes = np.empty((n_rows, layers, len(axis)), np.int16)
        self.middle_ns = np.empty(n_rows, np.int64)
        self.effort_s = np.empty(n_rows, np.float64)
        self.count = 0

    @property
    def is_full(self) -> bool:
        return self.count == len(self.codes)

    @property
    def n_bytes(self) -> int:
        return int(self.codes.nbytes + self.middle_ns.nbytes + self.effort_s.nbytes)

    def append(self, middle_ns: int, effort_s: float, *layers: Int16Array) -> None:
        n = self.count
        for layer, codes in enumerate(layers):
            self.codes[n, layer] = codes
        self.middle_ns[n], self.effort_s[n] = middle_ns, effort_s
        self.count = n + 1  # after the values, so that a reader never sees unwritten ones

    def between(self, t0_ns: int, t1_ns: int) -> Remembered | None:
        times = self.middle_ns[: self.count]
        found = np.flatnonzero((times >= t0_ns) & (times < t1_ns))
        if not found.size:
            return None
        begin, end = int(found[0]), int(found[-1]) + 1
        # Rows that follow each other, as nearly all do, are not copied: none is written again.
        rows = slice(begin, end) if end - begin == found.size else found
        middle_ns, effort_s, codes = times[rows], self.effort_s[rows], self.codes[rows]
        for one in (middle_ns, effort_s, codes):
            one.flags.writeable = False
        return Remembered(self.axis, self.length_ns, middle_ns, effort_s, codes[:, 0], codes[:, -1])


class _Store:
    """Blocks of all topics, bounded in bytes; the oldest are dropped first."""

    def __init__(self, bytes_max: int, layers: int) -> None:
        self._bytes_max, self._layers = bytes_max, layers
        self._blocks: deque[_Block] = deque()
        self._newest: dict[Stream, _Block] = {}
        self._n_bytes = 0
        self._lock = threading.Lock()

    def block(self, stream: Stream, axis: HistoryAxis, length_ns: int) -> _Block:
        """Return a block with room; the oldest blocks are dropped for a new one."""
        newest = self._newest.get(stream)
        if newest and newest.axis is axis and newest.length_ns == length_ns and not newest.is_full:
            return newest
        block_bytes = min(_BLOCK_BYTES, self._bytes_max // _BLOCKS_MIN)
        n_rows = max(1, min(_BLOCK_ROWS, block_bytes // (2 * self._layers * len(axis))))
        made = _Block(stream, axis, length_ns, (n_rows, self._layers))
        with self._lock:
            self._blocks.append(made)
            self._newest[stream] = made
            self._n_bytes += made.n_bytes
            while self._n_bytes > self._bytes_max and len(self._blocks) > 1:
                dropped = self._blocks.popleft()
                self._n_bytes -= dropped.n_bytes
                if self._newest.get(dropped.stream) is dropped:
                    del self._newest[dropped.stream]
        return made

    def between(self, stream: Stream, t0_ns: int, t1_ns: int) -> Iterator[Remembered]:
        with self._lock:
            blocks = [block for block in self._blocks if block.stream == stream]
        for block in blocks:
            found = block.between(t0_ns, t1_ns)
            if found is not None:
                yield found

    def span_ns(self, stream: Stream) -> tuple[int, int] | None:
        """Return the begin of a stream's oldest row and the end of its newest [ns]."""
        with self._lock:
            blocks = [block for block in self._blocks if block.stream == stream and block.count]
        if not blocks:
            return None
        oldest, newest = blocks[0], blocks[-1]
        begin_ns = int(oldest.middle_ns[0]) - oldest.length_ns // 2
        return begin_ns, int(newest.middle_ns[newest.count - 1]) + newest.length_ns // 2

    def forget(self, stream: Stream) -> None:
        """Drop the blocks of a stream."""
        with self._lock:
            self._blocks = deque(block for block in self._blocks if block.stream != stream)
            self._newest.pop(stream, None)
            self._n_bytes = sum(block.n_bytes for block in self._blocks)

    @property
    def n_bytes(self) -> int:
        with self._lock:
            return self._n_bytes


@dataclass(slots=True)
class _Topic:
    """The present axis of a topic, and the cell that is being filled."""

    axis: HistoryAxis
    analysis: tuple[object, ...]
    length_ns: int
    span_ns: int
    unit: str
    enbw_hz: float
    weighting: str
    cell: int = -1
    n_rows: int = 0
    greatest: Int16Array = field(default_factory=lambda: np.empty(0, np.int16))
    power: Float64Array = field(default_factory=lambda: np.empty(0))


class Ring:
    """Rows of live topics. One thread pushes; any may read.

    Parameters
    ----------
    rows_bytes, cells_bytes : int
        Limits of the memory [bytes].
    """

    def __init__(
        self, rows_bytes: int = ROWS_BYTES_MAX, cells_bytes: int = CELLS_BYTES_MAX
    ) -> None:
        self._rows = _Store(rows_bytes, layers=1)
        self._cells = _Store(cells_bytes, layers=2)
        self._topics: dict[Stream, _Topic] = {}

    @property
    def n_bytes(self) -> int:
        """Memory in use [bytes]."""
        return self._rows.n_bytes + self._cells.n_bytes

    def push(
        self,
        topic_id: int,
        header: SpectrumHeader | BandsHeader,
        row: UInt16Array,
        edges_hz: Edges | None = None,
        *,
        is_replayed: bool = False,
    ) -> None:
        """Add the newest row of a topic, or the next one of its replay.

        Parameters
        ----------
        topic_id : int
            Number of the topic in this server.
        header : SpectrumHeader or BandsHeader
            Header of its message.
        row : (values,) uint16
            Levels of all bins or bands, codes of the page's protocol.
        edges_hz : (lower, upper), optional
            Edges of bands from the topic's description [Hz].
        is_replayed : bool
            Whether it is from a replay: older than the live rows, newer than earlier replayed ones.

        Raises
        ------
        ConfigError
            If the edges are not those of the bands.
        """
        stream = topic_id, is_replayed
        topic = self._topic(stream, header, edges_hz)
        middle_ns = header.t_utc_ns + topic.span_ns // 2
        codes = from_wire(row)
        effort_s = topic.length_ns / NS_PER_S
        block = self._rows.block(stream, topic.axis, topic.length_ns)
        block.append(middle_ns, effort_s, codes)
        self._add_to_cell(stream, topic, middle_ns // CELL_NS, codes)

    def forget(self, topic_id: int) -> None:
        """Drop all rows and cells of a topic."""
        for stream in ((topic_id, False), (topic_id, True)):
            if self._topics.pop(stream, None) is not None:
                self._rows.forget(stream)
                self._cells.forget(stream)

    def axis(self, topic_id: int) -> HistoryAxis | None:
        """Return the axis of the newest row of a topic; None if there was none."""
        topic = self._topics.get((topic_id, False))
        return topic.axis if topic else None

    def unit_and_enbw_hz(self, topic_id: int) -> tuple[str, float] | None:
        """Return the unit of the newest row of a topic and its window's noise bandwidth [Hz]."""
        topic = self._topics.get((topic_id, False))
        return (topic.unit, topic.enbw_hz) if topic else None

    def enbw_hz_and_weighting(self, topic_id: int) -> tuple[float, str] | None:
        """Return the noise bandwidth of the newest row's window [Hz] and its weighting."""
        topic = self._topics.get((topic_id, False))
        return (topic.enbw_hz, topic.weighting) if topic else None

    def span_ns(self, topic_id: int) -> tuple[int, int] | None:
        """Return the span of the rows and cells of a topic [ns]; None if there are none."""
        streams = (topic_id, True), (topic_id, False)
        stores = self._cells, self._rows
        spans = [span for one in stores for stream in streams if (span := one.span_ns(stream))]
        if not spans:
            return None
        return min(begin for begin, _ in spans), max(end for _, end in spans)

    def rows(
        self, topic_id: int, t0_ns: int, t1_ns: int, *, is_replayed: bool = False
    ) -> Iterator[Remembered]:
        """Yield the rows of a topic whose middles are in a span of time."""
        return self._rows.between((topic_id, is_replayed), t0_ns, t1_ns)

    def cells(
        self, topic_id: int, t0_ns: int, t1_ns: int, *, is_replayed: bool = False
    ) -> Iterator[Remembered]:
        """Yield the complete cells of a topic whose middles are in a span of time."""
        return self._cells.between((topic_id, is_replayed), t0_ns, t1_ns)

    def _topic(
        self, stream: Stream, header: SpectrumHeader | BandsHeader, edges_hz: Edges | None
    ) -> _Topic:
        """Return the state of a topic; a new one if the analysis has changed."""
        analysis = _analysis(header)
        topic = self._topics.get(stream)
        if topic is None or topic.analysis != analysis:
            axis = HistoryAxis.of_header(header, edges_hz)
            topic = self._topics[stream] = _Topic(
                axis=axis,
                analysis=analysis,
                length_ns=_row_ns(header),
                span_ns=_span_ns(header),
                unit=header.unit,
                enbw_hz=header.enbw_hz,
                weighting=header.weighting,
            )
        return topic

    def _add_to_cell(self, stream: Stream, topic: _Topic, cell: int, codes: Int16Array) -> None:
        if topic.cell != cell:
            self._finish_cell(stream, topic)
            topic.cell, topic.n_rows = cell, 0
            topic.greatest = np.full(len(codes), NOTHING, np.int16)
            topic.power = np.zeros(len(codes))
        topic.n_rows += 1
        np.maximum(topic.greatest, codes, out=topic.greatest)
        topic.power += powers_of(codes)

    def _finish_cell(self, stream: Stream, topic: _Topic) -> None:
        """Store a complete cell; rows longer than a cell need none."""
        if not topic.n_rows or topic.length_ns > CELL_NS:
            return
        effort_s = min(1.0, topic.n_rows * topic.length_ns / NS_PER_S)
        mean = codes_of(topic.power / topic.n_rows)
        block = self._cells.block(stream, topic.axis, CELL_NS)
        block.append(topic.cell * CELL_NS + CELL_NS // 2, effort_s, topic.greatest, mean)


def _analysis(header: SpectrumHeader | BandsHeader) -> tuple[object, ...]:
    """Return what the meaning of a row's values and times depends on."""
    own = (
        (header.first_bin, header.center_frequency_hz)
        if isinstance(header, SpectrumHeader)
        else (header.bands,)
    )
    times = (header.hop, header.frame_hop, header.averaging_frames, header.rate_hz)
    levels = (header.unit, header.enbw_hz, header.weighting)
    lengths = (header.epoch, header.fs, header.nfft, header.win_length, header.shape)
    return (*lengths, *times, *levels, *own)


def _row_ns(header: SpectrumHeader | BandsHeader) -> int:
    """Return the time from one row to the next [ns]."""
    return round(NS_PER_S / header.rate_hz if header.rate_hz else header.hop * NS_PER_S / header.fs)


def _span_ns(header: SpectrumHeader | BandsHeader) -> int:
    """Return the time from a row's first sample to its last [ns], as ``SpectrumSpec.row_span``."""
    hop = header.frame_hop or header.hop
    return round((header.win_length + (header.averaging_frames - 1) * hop) * NS_PER_S / header.fs)
