"""Frames of samples, collected in intervals."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.blocks import Block
from spectrod.dsp.interval_flags import IntervalFlag
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import FULL_SCALE, Float64Array
from spectrod.lib.earlier_name import earlier_name
from spectrod.lib.errors import ConfigError
from spectrod.lib.signatures import naming_arrays
from spectrod.lib.time_zones import find_zone
from spectrod.measure.frames import FrameSource, PowerFrames
from spectrod.measure.intervals import IntervalBounds, LevelAlign, check_intervals
from spectrod.measure.measurement import (
    Measurement,
    Quantity,
    check_interval,
    meter_text,
)
from spectrod.measure.sample_chunks import checked_samples

_GROUP_FRAMES = 32
_GROUP_VALUES = 1 << 20
"""Largest number of frames, and of their values, that are added to a tally at a time."""


class FrameTally(Protocol):
    """Accumulates the frames of an interval."""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The values that it computes."""

    @property
    def tables(self) -> tuple[Float64Array, ...]:
        """Further values of each signal, after ``values``: see ``Measurement``."""

    def clear(self) -> None:
        """Begin the next interval."""

    def skip(self, n_intervals: int) -> None:
        """Pass over intervals without any sample."""

    def interrupt(self) -> None:
        """Let the next frame be one that does not follow the last."""

    def add(self, rows: NDArray[Any]) -> None:
        """Add frames, (frames, signals, bins)."""

    def values(self) -> Float64Array:
        """Return the values of the frames since ``clear``, (quantities, signals)."""


class FrameMeter:
    """Measures the frames of intervals.

    The first frame of an interval begins with it, further ones every hop as long as they end in it,
    and after a gap frames begin with the first sample. So an interval depends on its own samples
    alone: its values are the same whenever the measurement began. Continuous frames go on from one
    interval to the next instead. Frames are tallied in groups that count from the begin of the
    interval: results do not depend, to the bit, on how the samples are cut into blocks.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the frames: bins, without averaging.
    tally : FrameTally
        What is measured.
    interval_s : float
        Length of an interval, at least a frame [s].
    align : {"start", "utc", "local"}
        Bounds of intervals: counted from sample 0, from 1970-01-01T00:00Z or from local midnight.
        The last two need the time of the samples.
    time_zone : str, optional
        Time zone of local intervals; see ``find_zone``.
    utc_ns : int, optional
        UTC of the first sample [ns].
    first_sample : int
        Index of the first sample, from which those of rows are counted.
    frames : FrameSource, optional
        Computes the frames; by default densities in float32.

    Attributes
    ----------
    quantities : tuple of Quantity
        The values of each row.

    Raises
    ------
    ConfigError
        If an interval is shorter than a frame, or its settings break a rule of
        ``check_intervals``.
    """

    def __init__(  # noqa: PLR0913 - the settings of a meter
        self,
        spec: SpectrumSpec,
        tally: FrameTally,
        *,
        interval_s: float,
        align: LevelAlign = "start",
        time_zone: str = "",
        utc_ns: int | None = None,
        first_sample: int = 0,
        frames: FrameSource | None = None,
    ) -> None:
        check_interval(interval_s, spec.win_length, spec.fs)
        self.spec, self.interval_s, self.align = spec, float(interval_s), align
        check_intervals(interval_s, align, time_zone)
        self.quantities = tally.quantities
        self._tally = tally
        self._bounds = IntervalBounds(
            spec.fs,
            self.interval_s,
            align,
            find_zone(time_zone),
            first_sample=first_sample,
            utc_ns=utc_ns,
        )
        self._frames = frames or PowerFrames(spec)
        n_values = spec.n_signals * spec.n_bins
        n_group = max(1, min(_GROUP_FRAMES, _GROUP_VALUES // n_values))
        self._group = np.empty((n_group, spec.n_signals, spec.n_bins), self._frames.dtype)
        self._n_grouped = 0
        self._position = first_sample
        self._last_end: int | None = None
        self._span: _FrameSpan | None = None
        self._restarts = True
        self._follows_gap = False

    def __repr__(self) -> str:
        """Return one line: rate, channels, quantities and interval."""
        spec = self.spec
        return meter_text(self, spec.fs, spec.n_signals, self.quantities, self.interval_s)

    @property
    def message_quantities(self) -> tuple[Quantity, ...]:
        """The values of a message."""
        return self.quantities

    @naming_arrays
    def push(
        self, samples: ArrayLike, missing_samples: int | None = 0, utc_ns: int | None = None
    ) -> list[Measurement]:
        """Measure the next samples.

        Parameters
        ----------
        samples : (channels, n) or (n,) array_like
            Finite samples, floating-point [FS].
        missing_samples : int or None
            Samples that are missing before them; None if it is unknown how many. No frame spans
            them.
        utc_ns : int, optional
            UTC of the first sample [ns]. Where it differs by more than 10 ms from the time by
            count, the next interval uses it.

        Returns
        -------
        rows : list of Measurement
            The intervals that are complete.

        Raises
        ------
        ConfigError
            If the shape or dtype is wrong, or the time is needed and there is none.
        InputError
            If a sample is not finite.
        """
        given = checked_samples(samples, self.spec.channels, self._position)
        rows = [] if missing_samples == 0 else self._skip(missing_samples or 0)
        if utc_ns is not None:
            self._bounds.set_utc(self._position, utc_ns)
        elif self.align != "start" and not self._bounds.has_utc:
            raise ConfigError("utc_ns: intervals on the clock need the time of the samples")
        first, n = 0, given.shape[1]
        while first < n:
            span = self._span or self._open()
            stop = min(n, first + span.end - self._position)
            self._add(span, given[:, first:stop])
            first = stop
            if self._position == span.end:
                rows.append(self._take_row(span))
        return rows

    feed = earlier_name("feed", "push")

    def finish(self) -> list[Measurement]:
        """Return the row of the unfinished interval, which is partial."""
        return [] if self._span is None else [self._take_row(self._span)]

    def _skip(self, missing_samples: int) -> list[Measurement]:
        """Continue after a gap."""
        self._position += missing_samples
        self._restarts = self._follows_gap = True
        self._add_group()
        self._tally.interrupt()
        span = self._span
        if span is None:
            return []
        span.has_gap = True
        return [self._take_row(span)] if self._position >= span.end else []

    def _open(self) -> "_FrameSpan":
        """Begin the interval that holds the next sample."""
        index = self._position
        begin, end = self._bounds.begin_at(index)
        if self._last_end is not None and begin > self._last_end:
            n_missed = round((begin - self._last_end) / (self.interval_s * self.spec.fs))
            self._tally.skip(n_missed)
        self._span = _FrameSpan(
            first=index,
            end=end,
            due_samples=end - begin,
            begin_utc_ns=self._bounds.clock.utc_ns(index),
            has_gap=self._follows_gap and index > begin,
            is_overloaded=np.zeros(self.spec.n_signals, np.bool_),
        )
        self._restarts |= not self._frames.is_continuous
        self._follows_gap = False
        self._tally.clear()
        return self._span

    def _add(self, span: "_FrameSpan", samples: NDArray[Any]) -> None:
        """Compute the frames of samples of one interval."""
        block = Block(
            np.ascontiguousarray(samples, np.float32),
            self._position,
            0,
            0,
            discontinuity=self._restarts,
            fs=self.spec.fs,
        )
        self._restarts = False
        self._position += block.n_samples
        span.n_samples += block.n_samples
        span.stop = self._position
        is_full = (np.abs(samples) >= FULL_SCALE).any(axis=1)
        span.is_overloaded |= is_full.reshape(self.spec.n_signals, -1).any(axis=1)
        for values in self._frames.push(block):
            span.n_frames += len(values)
            self._collect(values)

    def _collect(self, values: NDArray[Any]) -> None:
        first = 0
        while first < len(values):
            n = min(len(values) - first, len(self._group) - self._n_grouped)
            self._group[self._n_grouped : self._n_grouped + n] = values[first : first + n]
            self._n_grouped += n
            first += n
            if self._n_grouped == len(self._group):
                self._add_group()

    def _add_group(self) -> None:
        if self._n_grouped:
            self._tally.add(self._group[: self._n_grouped])
            self._n_grouped = 0

    def _take_row(self, span: "_FrameSpan") -> Measurement:
        """Return the row of an interval that has ended."""
        self._add_group()
        self._span, self._last_end = None, span.end
        values = self._tally.values()
        return Measurement(
            span.first,
            span.n_samples,
            span.due_samples,
            span.begin_utc_ns if self._bounds.has_utc else None,
            span.n_samples / self.spec.fs,
            values,
            span.flags(),
            span.n_frames,
            self._tally.tables,
            span_samples=span.stop - span.first,
        )


@dataclass(slots=True)
class _FrameSpan:
    """An interval that is being measured; fields as of ``Measurement``.

    Attributes
    ----------
    end : int
        Index after the interval.
    stop : int
        Index after its last sample.
    is_overloaded : (signals,) bool
        Whether a sample of the signal is at full scale.
    """

    first: int
    end: int
    due_samples: int
    begin_utc_ns: int
    has_gap: bool
    is_overloaded: NDArray[np.bool_]
    n_samples: int = 0
    n_frames: int = 0
    stop: int = 0

    def flags(self) -> NDArray[np.uint8]:
        """Return the flags of each signal."""
        common = IntervalFlag.GAP * self.has_gap | IntervalFlag.PARTIAL * (
            self.n_samples < self.due_samples
        )
        flags = np.full(len(self.is_overloaded), common, np.uint8)
        flags[self.is_overloaded] |= np.uint8(IntervalFlag.OVERLOAD)
        return flags
