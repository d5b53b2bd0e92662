"""One message of a daemon as every client needs it: quantized once, pooled once for each view."""

from functools import cached_property
from typing import Final, Literal

import numpy as np

from spectrod.apps.web.messages import GAP, NEW_EPOCH, REPLAYED
from spectrod.apps.web.page_peaks import PeakFields, find_peaks_of
from spectrod.apps.web.page_topics import (
    RowFacts,
    TopicInfo,
    constants,
    facts_of,
    middle_ms,
    same_edges,
)
from spectrod.apps.web.pooling import BinSlice, MaxLevels, pool_mean, to_power
from spectrod.apps.web.quantize import (
    BYTE_STEP_DB,
    CODE_FLOOR_DB,
    CODE_STEP_DB,
    ByteRange,
    Codes,
    Integers,
    to_bytes,
    to_codes,
    wire_bytes,
)
from spectrod.dsp.units import NS_PER_S, Float32Array, Float64Array, power_to_level
from spectrod.wire.schema import BandFrame, Frame

Slices = tuple[BinSlice, ...]
Bits = Literal[8, 16]

_MS_PER_NS: Final = 1e3 / NS_PER_S


class SpectrumRow:
    """A message with a spectrum, its levels as integers, and slices of them, each computed once.

    Parameters
    ----------
    frame : Frame or BandFrame
        The message.
    facts : RowFacts
        What is constant of it.
    byte_range : ByteRange
        That of the product; the row's levels are included in it.

    Attributes
    ----------
    lo_db : float
        Level of the byte 1 [dB].
    levels : (n,) float32
        Levels; NaN: no data [dB].
    codes : (n,) uint16
        The levels, see ``quantize``.
    t_ms : float
        Middle of the row [ms since 1970, UTC].
    """

    def __init__(self, frame: Frame | BandFrame, facts: RowFacts, byte_range: ByteRange) -> None:
        self.frame = frame
        self.facts = facts
        self.levels = levels_of(frame)
        self.codes: Codes = to_codes(self.levels)
        byte_range.include(self.codes)
        self.lo_db = byte_range.lo_db
        h = frame.header
        half_ms = middle_ms(h, h.cut_frames) if h.cut_frames else facts.half_ms
        self.t_ms = h.t_utc_ns * _MS_PER_NS + half_ms
        self._pooled: dict[tuple[Bits, Slices], Integers] = {}
        self._peaks: list[PeakFields] = []
        self._n_peaks = 0
        self._data: dict[tuple[Bits, Slices], bytes] = {}
        self._means: dict[Slices, Float64Array] = {}

    @property
    def flags(self) -> int:
        """Flags of the row, as on the wire."""
        flags = GAP if self.frame.header.gap_samples else 0
        flags |= NEW_EPOCH if self.frame.restarted else 0
        return flags | (REPLAYED if self.frame.replayed else 0)

    @cached_property
    def power(self) -> Float64Array:
        """Power of each bin, (n,) float64, re the power of 0 dB."""
        return to_power(self.levels)

    @property
    def wire_codes(self) -> Codes:
        """The codes as the wire has them, (n,) uint16; 65535: no data."""
        return self.codes - np.uint16(1)

    def maxima(self, bits: Bits, slices: Slices) -> Integers:
        """Return the maxima of slices, one after another, as integers; not to be changed."""
        found = self._pooled.get((bits, slices))
        if found is None:
            levels = self._code_maxima if bits == 16 else self._byte_maxima
            found = join([levels.pool(piece) for piece in slices])
            self._pooled[bits, slices] = found
        return found

    def means(self, slices: Slices) -> Float64Array:
        """Return the mean power of slices, one after another; not to be changed."""
        found = self._means.get(slices)
        if found is None:
            found = np.concatenate([pool_mean(self.power, piece) for piece in slices])
            self._means[slices] = found
        return found

    def wire_maxima(self, bits: Bits, slices: Slices) -> bytes:
        """Return ``maxima`` as the wire has them."""
        found = self._data.get((bits, slices))
        if found is None:
            found = self._data[bits, slices] = wire_bytes(self.maxima(bits, slices))
        return found

    def peaks(self, count: int) -> list[PeakFields]:
        """Return the strongest peaks; found once for all clients that want no more."""
        if count > self._n_peaks:
            self._peaks, self._n_peaks = find_peaks_of(self.levels, self.facts, count), count
        return self._peaks[:count]

    @cached_property
    def _code_maxima(self) -> MaxLevels:
        return MaxLevels(self.codes)

    @cached_property
    def _byte_maxima(self) -> MaxLevels:
        return MaxLevels(to_bytes(self.levels, self.lo_db))


class RowMaker:
    """Makes the rows of one topic, and notices when their description changes.

    Parameters
    ----------
    topic : TopicInfo
        The topic.
    """

    def __init__(self, topic: TopicInfo) -> None:
        self.topic = topic
        self._constants: tuple[object, ...] = ()
        self._facts: RowFacts | None = None
        self._range = ByteRange()

    def make(self, frame: Frame | BandFrame, edges: Float64Array | None) -> SpectrumRow | None:
        """Return the row of a message.

        Parameters
        ----------
        frame : Frame or BandFrame
            The message.
        edges : (2, n) float64 or None
            Edges of bands, of the topic's last description [Hz].

        Returns
        -------
        row : SpectrumRow or None
            None of bands whose edges have not come.
        """
        if isinstance(frame, BandFrame) and (edges is None or edges.shape[1] != len(frame.values)):
            return None
        now = constants(frame)
        facts = self._facts
        if facts is None or now != self._constants or not same_edges(edges, facts.axis.edges_hz):
            if facts is None or facts.header.unit != frame.header.unit:
                self._range = ByteRange(top_max_db(frame.header.unit))
            facts = self._facts = facts_of(self.topic, frame, edges)
            self._constants = now
        return SpectrumRow(frame, facts, self._range)


def levels_of(frame: Frame | BandFrame) -> Float32Array:
    """Return a message's values as levels, (n,) float32 [``level_unit``]; NaN: no data."""
    with np.errstate(invalid="ignore"):  # a negative power is no data
        # Adding makes a signalling NaN a quiet one, of which no later step warns.
        values = np.asarray(frame.values, np.float32) + np.float32(0.0)
        return values if frame.header.unit.startswith("dB") else power_to_level(values)


def top_max_db(unit: str) -> float:
    """Return the highest level that bytes of a unit express [dB]."""
    return 10.0 if unit == "dBFS" else float("inf")


def scale_of(bits: Bits, lo_db: float) -> tuple[float, float]:
    """Return ``lo`` and ``step`` of a description [dB]; 0 while a topic has no data at all."""
    if bits == 16:
        return CODE_FLOOR_DB, CODE_STEP_DB
    return (0.0 if np.isnan(lo_db) else lo_db), BYTE_STEP_DB


def join(parts: list[Integers]) -> Integers:
    """Return integers one after another."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
