"""A trigger of one source: from batches of spectra to events with their numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectrod.dsp.blocks import duration_ns
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Float32Array, Int64Array
from spectrod.measure.triggers.adaptive_floor import KEPT_ROWS
from spectrod.measure.triggers.detectors import Readings, check_unit, open_detector
from spectrod.measure.triggers.hysteresis import Change, Hysteresis
from spectrod.measure.triggers.mask import Mask
from spectrod.measure.triggers.pulses import Pulses
from spectrod.measure.triggers.trigger_config import TriggerConfig


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """The begin or the end of an event, with the value furthest over its threshold so far.

    Attributes
    ----------
    name, kind : str
        Name and kind of the trigger; of a track of tones its name and ``track``.
    state : {"begun", "ended"}
        Which of the two.
    reason : str
        Why it ended: ``released``, ``gap`` or ``stopped``; empty while it lasts.
    product, channel : str
        The product, and the channel of the value.
    f_min_hz, f_max_hz : float
        Range of frequencies that the trigger examines [Hz].
    frequency_hz : float or None
        Frequency of the value; None for the level of the whole range [Hz].
    level : float
        The value, in ``unit``.
    threshold : float or None
        Its threshold, in ``unit``; None of a track of tones, which has none.
    floor : float or None
        Noise floor there, in ``unit``; None if the trigger has none.
    unit : str
        Unit of the levels.
    begin_utc_ns, end_utc_ns : int
        First and last sample of the condition so far [ns since 1970].
    peak_utc_ns : int
        First sample of the value's row [ns since 1970].
    duration_s : float
        Length of the condition so far [s].
    pulses : int or None
        Number of pulses so far, from the first to the last of which the other times are; None
        without a pattern.
    """

    name: str
    kind: str
    state: Change
    reason: str
    product: str
    channel: str
    f_min_hz: float
    f_max_hz: float
    frequency_hz: float | None
    level: float
    threshold: float | None
    floor: float | None
    unit: str
    begin_utc_ns: int
    end_utc_ns: int
    peak_utc_ns: int
    duration_s: float
    pulses: int | None = None

    @property
    def text(self) -> str:
        """Describe the event in a line."""
        where = f"{self.f_min_hz:g} to {self.f_max_hz:g} Hz"
        if self.frequency_hz is not None:
            where = f"at {self.frequency_hz:.6g} Hz"
        threshold = "" if self.threshold is None else f", threshold {self.threshold:.1f}"
        floor = "" if self.floor is None else f", floor {self.floor:.1f}"
        text = (
            f"{self.kind} {where}, channel {self.channel}: {self.level:.1f} {self.unit}"
            f"{threshold}{floor}"
        )
        if self.pulses is not None:
            text += f", {self.pulses} pulse{'' if self.pulses == 1 else 's'}"
        if self.state == "begun":
            return text
        return f"{text}; {self.reason} after {self.duration_s:.3g} s"


@dataclass(slots=True)
class _Peak:
    """The value furthest over its threshold in a condition, and the condition's begin."""

    begin_utc_ns: int
    height_db: float
    t_utc_ns: int
    signal: int
    f_hz: float
    level: float
    threshold: float
    floor: float


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRows:
    """Consecutive rows, as a trigger measures them one by one.

    Attributes
    ----------
    measured : (rows, signals, n) float32 or Readings
        See ``Detector.measure``.
    sample_index, t_utc_ns : (rows,) int64
        Index and UTC [ns] of the first sample of each row.
    span : int
        Samples of a row, from its first frame's first to its last frame's last.
    is_after_gap : bool
        Whether samples or rows are missing before them.
    """

    measured: Float32Array | Readings
    sample_index: Int64Array
    t_utc_ns: Int64Array
    span: int
    is_after_gap: bool

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.sample_index)

    @property
    def n_bytes(self) -> int:
        """Memory of the levels that wait for their floor [bytes]."""
        return 0 if isinstance(self.measured, Readings) else int(self.measured.nbytes)


class Trigger:
    """Finds the events of one trigger in the rows of one product, live or of a file; one thread.

    With a pattern, the conditions are pulses, and an event is a series of them; else it is one.
    A condition ends before a gap and before rows that were not computed. A value with its noise in
    several channels counts in the channel where it is furthest over its threshold.

    Parameters
    ----------
    config : TriggerConfig
        The trigger.
    spec : SpectrumSpec
        Definition of the rows.
    channels : sequence of str
        Name of each signal.
    mask : Mask, optional
        The learned mask that the trigger names.

    Raises
    ------
    ConfigError
        If a rule is broken.
    """

    def __init__(
        self,
        config: TriggerConfig,
        spec: SpectrumSpec,
        channels: Sequence[str],
        mask: Mask | None = None,
    ) -> None:
        config.check()
        check_unit(config, spec, mask)
        self.config, self.spec = config, spec
        self._channels = channels
        self._detector = open_detector(config, spec, mask)
        self._state = _state_of(config, spec.fs)
        # Of the condition that lasts, and of the event: without a pattern they are the same.
        self._present: _Peak | None = None
        self._peak: _Peak | None = None

    @property
    def floor_rows(self) -> int:
        """Rows in the window of the adaptive floor; 0 without one."""
        if self._detector.floor is None:
            return 0
        return round(self.config.floor_s / self.spec.row_s)

    def learn(self, batches: Sequence[MeasuredRows]) -> None:
        """Take the adaptive floor of rows that are still to be pushed, the next ones.

        So it is known before the first event. It holds until a whole window of rows was pushed,
        and is then that of the rows before, as always. Less than 16 rows have no floor, and none
        of them begins an event.

        Parameters
        ----------
        batches : sequence of MeasuredRows
            Of their rows at most those of a window count.
        """
        floor = self._detector.floor
        if floor is None:
            return
        n_rows = min(self.floor_rows, sum(batch.n_rows for batch in batches))
        every = max(1, round(n_rows / KEPT_ROWS))
        kept, n_seen = [], 0
        for batch in batches:
            assert not isinstance(batch.measured, Readings)
            stop = min(batch.n_rows, n_rows - n_seen)
            kept.append(batch.measured[-n_seen % every : stop : every])
            n_seen += stop
            if n_seen == n_rows:
                break
        floor.learn(np.concatenate(kept))

    @property
    def is_active(self) -> bool:
        """Whether an event is in progress."""
        return self._state.is_active

    @property
    def n_left_out(self) -> int:
        """Events so far that began and ended within the hold-off of another one."""
        return self._state.n_left_out

    @property
    def span_utc_ns(self) -> tuple[int, int]:
        """First and last sample of the event so far [ns since 1970]."""
        assert self._peak is not None
        n = self._state.stop - 1 - self._state.first
        begin_ns = self._peak.begin_utc_ns
        return begin_ns, begin_ns + duration_ns(n, self.spec.fs)

    def measure(self, batch: SpectrumBatch) -> MeasuredRows:
        """Measure rows one by one: the part of ``push`` that needs no rows before them."""
        n_frames = batch.cut_frames or self.spec.averaging_frames
        return MeasuredRows(
            self._detector.measure(batch.values),
            batch.sample_index,
            batch.t_utc_ns,
            (n_frames - 1) * self.spec.hop + self.spec.win_length,
            bool(batch.gap_samples or batch.skipped_rows or batch.discontinuity),
        )

    def push(self, batch: SpectrumBatch) -> list[TriggerEvent]:
        """Read the next rows; return the events that begin and end in them, in order."""
        return self.push_measured(self.measure(batch))

    def push_measured(self, rows: MeasuredRows) -> list[TriggerEvent]:
        """Read the next rows that ``measure`` has measured; see ``push``."""
        found: list[TriggerEvent] = []
        if rows.is_after_gap:
            found += self.end("gap")
        if not rows.n_rows:
            return found
        readings = self._detector.read(rows.measured)
        if self._state.is_idle and not np.any(readings.height_db >= 0.0):
            return found
        for row in range(rows.n_rows):
            found += self._push_row(rows, row, readings)
        return found

    def _push_row(self, rows: MeasuredRows, row: int, readings: Readings) -> list[TriggerEvent]:
        state, first = self._state, int(rows.sample_index[row])
        height = float(readings.height_db[row])
        was_held, stop = state.is_held, state.stop
        change = state.push(first, first + rows.span, height)
        if state.is_held:
            if not was_held:
                self._present = None
            self._see(readings, row, int(rows.t_utc_ns[row]))
        if state.stop != stop:
            self._keep()
        if change is None:
            return []
        return [self._event(change, "released" if change == "ended" else "")]

    def _see(self, readings: Readings, row: int, t_utc_ns: int) -> None:
        """Take a row of the condition that lasts."""
        seen = self._present
        if seen is None or readings.height_db[row] > seen.height_db:
            begin_utc_ns = t_utc_ns if seen is None else seen.begin_utc_ns
            self._present = _peak_of(begin_utc_ns, readings, row, t_utc_ns)

    def _keep(self) -> None:
        """Add the present condition to the event, or begin one with it."""
        before, present = self._peak, self._present
        assert present is not None
        if self._state.n_pulses > 1 and before is not None:
            higher = max(before, present, key=lambda one: one.height_db)
            present = replace(higher, begin_utc_ns=before.begin_utc_ns)
        self._peak = present

    def end(self, reason: str) -> list[TriggerEvent]:
        """End the event with the last row; return it if there is one."""
        return [self._event("ended", reason)] if self._state.end() else []

    def _event(self, state: Change, reason: str) -> TriggerEvent:
        peak, config = self._peak, self.config
        assert peak is not None
        low, high = self._detector.range_hz
        begin_utc_ns, end_utc_ns = self.span_utc_ns
        return TriggerEvent(
            config.name,
            config.kind,
            state,
            reason,
            self.spec.product,
            self._channels[peak.signal],
            low,
            high,
            None if math.isnan(peak.f_hz) else peak.f_hz,
            peak.level,
            peak.threshold,
            None if math.isnan(peak.floor) else peak.floor,
            self._detector.unit,
            begin_utc_ns,
            end_utc_ns,
            peak.t_utc_ns,
            (self._state.stop - self._state.first) / self.spec.fs,
            None if config.pattern is None else self._state.n_pulses,
        )


def _state_of(config: TriggerConfig, fs: float) -> Hysteresis | Pulses:
    hold_off_samples = math.ceil(config.hold_off_s * fs)
    if config.pattern is not None:
        return Pulses(config.pattern, fs, config.release_db, hold_off_samples)
    return Hysteresis(config.release_db, math.ceil(config.for_s * fs), hold_off_samples)


def _peak_of(begin_utc_ns: int, readings: Readings, row: int, t_utc_ns: int) -> _Peak:
    numbers: Any = (readings.f_hz, readings.level, readings.threshold, readings.floor)
    return _Peak(
        begin_utc_ns,
        float(readings.height_db[row]),
        t_utc_ns,
        int(readings.signal[row]),
        *(float(one[row]) for one in numbers),
    )
