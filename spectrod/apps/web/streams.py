"""The rows of one stream of one client: sliced as it asked, and merged where it wants fewer."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectrod.apps.web.holds import Hold
from spectrod.apps.web.messages import DROPPED, GAP, MERGED_MAX, NEW_EPOCH, ROW_BYTES, StreamRow
from spectrod.apps.web.page_rows import Slices, SpectrumRow, join, scale_of
from spectrod.apps.web.page_topics import RowFacts
from spectrod.apps.web.page_view import StreamWish
from spectrod.apps.web.pooling import MaxLevels, pool_mean, to_power
from spectrod.apps.web.quantize import Integers, to_bytes, to_codes, wire_bytes
from spectrod.apps.web.slicing import slices_of
from spectrod.dsp.units import Float32Array, Float64Array, power_to_level

HIDDEN_ROWS_S = 1.0
"""Rows a second of a page that nobody sees, and the least of one that is slow [1/s]."""
SLOW_WATERFALL_ROWS_S = 2.0
"""The least of a slow page's waterfalls, whose rows of 8 bits are short: they show it goes on."""
SLOW_LINES_FIRST = 4
"""Factor by which line spectra are slower than waterfalls of a slow page: theirs are rows of 16
bits, 20 a second, of which all but the last are seen no more; those of waterfalls stay."""


@dataclass(slots=True, eq=False)
class StreamDescription:
    """What a ``stream`` text says; all rows with its generation are as it says."""

    stream: int
    """The page's number of the stream."""
    generation: int
    """Number of the description, unique within its connection."""
    values: int
    """Values of a row."""
    bits: int
    """Bits of a value."""
    fields: dict[str, Any]
    is_sent: bool = False


@dataclass(frozen=True, slots=True)
class DescribedRow:
    """A row, and what describes it."""

    description: StreamDescription
    row: StreamRow

    @property
    def size_bytes(self) -> int:
        """Size of it in a message [bytes]."""
        return ROW_BYTES + len(self.row.data)


class RowStream:
    """Makes one stream's rows of a topic's rows. Used by one client.

    Parameters
    ----------
    wish : StreamWish
        What the page asked for.
    hold : Hold or None
        The hold whose state the rows are; None: the rows themselves.
    describe : callable
        Makes a ``StreamDescription`` of fields.

    Attributes
    ----------
    wish : StreamWish
        What the page asked for; a wish of the same stream may replace it.
    slowdown : int
        Factor by which rows come slower than asked for, at least 1.
    is_hidden : bool
        Whether nobody sees the page.
    has_rows : bool
        Whether a row of the topic has come.
    """

    def __init__(
        self,
        wish: StreamWish,
        hold: Hold | None,
        describe: Callable[[dict[str, Any]], StreamDescription],
    ) -> None:
        self.wish = wish
        self.hold = hold
        self.slowdown = 1
        self.is_hidden = self.has_rows = False
        self._newest: SpectrumRow | None = None
        self._make_description = describe
        self._facts: RowFacts | None = None
        self._lo_db = math.nan
        self._slices: Slices = ()
        self._description: StreamDescription | None = None
        self._merging: _Merging | None = None
        self._has_dropped = False

    def push(self, row: SpectrumRow) -> list[DescribedRow]:
        """Take a row of the topic; return the rows that are complete, at most two."""
        done = []
        self.has_rows = True
        if self._is_described_otherwise(row):
            done += self.finish()
            self.describe(row.facts, row.lo_db)
        elif row.flags & (GAP | NEW_EPOCH) or row.frame.missed:
            done += self.finish()
        if self.wish.measure is not None:
            self._newest = row
        if self._merging is None:
            self._merging = _Merging(row, self._has_dropped)
            self._has_dropped = False
        self._merge(self._merging, row)
        if self._merging.merged >= self._every():
            done += self.finish()
        return done

    def finish(self) -> list[DescribedRow]:
        """Return the row that is being merged, if any, as it is."""
        merging, self._merging = self._merging, None
        if merging is None or self._description is None:
            return []
        return [DescribedRow(self._description, merging.row(self._data(merging)))]

    def note_dropped(self) -> None:
        """Mark the next row: rows before it were dropped for this client."""
        self._has_dropped = True

    def take_newest(self) -> SpectrumRow | None:
        """Return the newest row that is to be measured, once."""
        row, self._newest = self._newest, None
        return row

    def levels(self, row: SpectrumRow) -> Float32Array:
        """Return the levels of all bins: of a row, or of the hold [dB]."""
        return row.levels if self.hold is None else self.hold.levels()

    def _is_described_otherwise(self, row: SpectrumRow) -> bool:
        return row.facts is not self._facts or (self.wish.bits == 8 and row.lo_db != self._lo_db)

    def describe(self, facts: RowFacts, lo_db: float = math.nan) -> StreamDescription:
        """Return a description of the rows that follow.

        Parameters
        ----------
        facts : RowFacts
            What is constant of them.
        lo_db : float, optional
            Level of the byte 1; NaN while it is not known [dB].
        """
        wish = self.wish
        self._slices = slices_of(facts.axis, wish.f0, wish.f1, wish.px, wish.axis)
        self._facts, self._lo_db = facts, lo_db
        fields = _fields(wish, facts, lo_db)
        slices = [piece._asdict() for piece in self._slices]
        self._description = self._make_description(fields | {"slices": slices})
        return self._description

    def _every(self) -> int:
        """Return how many messages make a row."""
        assert self._facts is not None
        is_waterfall = self.hold is None and self.wish.bits == 8
        least = SLOW_WATERFALL_ROWS_S if is_waterfall else HIDDEN_ROWS_S
        slowdown = max(1.0, self.slowdown / SLOW_LINES_FIRST) if is_waterfall else self.slowdown
        rows_s = max(self.wish.rows_s / slowdown, min(self.wish.rows_s, least))
        if self.is_hidden:
            rows_s = min(self.wish.rows_s, HIDDEN_ROWS_S)
        messages = 1.0 / (self._facts.row_s * rows_s)
        return max(1, math.ceil(min(messages, MERGED_MAX) - 1e-3))

    def _merge(self, merging: "_Merging", row: SpectrumRow) -> None:
        merging.note(row)
        if self.hold is not None:
            return
        if self.wish.stat == "mean":
            merging.add_power(row.means(self._slices))
        else:
            merging.add_maxima(row.maxima(self.wish.bits, self._slices))

    def _data(self, merging: "_Merging") -> bytes:
        if self.hold is not None:
            return wire_bytes(self._of_hold(self.hold))
        if self.wish.stat == "mean":
            return wire_bytes(self._integers(power_to_level(merging.mean_power())))
        if merging.merged == 1:
            return merging.last.wire_maxima(self.wish.bits, self._slices)
        return wire_bytes(merging.maxima)

    def _of_hold(self, hold: Hold) -> Integers:
        levels = hold.levels()
        if self.wish.stat == "mean":
            power = to_power(levels)
            means = np.concatenate([pool_mean(power, piece) for piece in self._slices])
            return self._integers(power_to_level(means))
        maxima = MaxLevels(self._integers(levels))
        return join([maxima.pool(piece) for piece in self._slices])

    def _integers(self, levels: Float32Array | Float64Array) -> Integers:
        levels = levels.astype(np.float32, copy=False)
        return to_codes(levels) if self.wish.bits == 16 else to_bytes(levels, self._lo_db)


def _fields(wish: StreamWish, facts: RowFacts, lo_db: float) -> dict[str, Any]:
    """Return what a description says, but its slices and numbers."""
    lo, step = scale_of(wish.bits, lo_db)
    asked = {"id": wish.id, "of": wish.of, "statistic": wish.stat, "bits": wish.bits}
    return asked | facts.fields | {"lo": lo, "step": step}


class _Merging:
    """A row that is being made of several messages."""

    def __init__(self, first: SpectrumRow, has_dropped: bool) -> None:  # noqa: FBT001 - private
        self._first = self.last = first
        self.merged = 0
        self._missed = self._gap_samples = 0
        self._flags = DROPPED if has_dropped else 0
        self.maxima: Integers = np.zeros(0, np.uint8)
        self._power: Float64Array = np.zeros(0)
        self._counts: Float64Array = np.zeros(0)

    def note(self, row: SpectrumRow) -> None:
        self.last = row
        self.merged += 1
        self._missed += row.frame.missed
        self._gap_samples += row.frame.header.gap_samples
        self._flags |= row.flags

    def add_maxima(self, maxima: Integers) -> None:
        self.maxima = maxima if self.merged == 1 else np.maximum(self.maxima, maxima)

    def add_power(self, power: Float64Array) -> None:
        missing = np.isnan(power)
        if self.merged == 1:
            self._power, self._counts = np.zeros(len(power)), np.zeros(len(power))
        with np.errstate(over="ignore"):
            self._power += np.where(missing, 0.0, power)
        self._counts += ~missing

    def mean_power(self) -> Float64Array:
        with np.errstate(invalid="ignore"):  # 0 of 0 rows is NaN, no data
            return self._power / self._counts

    def row(self, data: bytes) -> StreamRow:
        t_ms = (self._first.t_ms + self.last.t_ms) / 2.0
        seq = self.last.frame.header.seq
        missed, gap = self._missed, self._gap_samples
        return StreamRow(seq, missed, self.merged, self._flags, t_ms, gap, data)
