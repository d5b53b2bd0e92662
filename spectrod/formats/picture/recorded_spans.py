"""The spans of samples of which a picture has rows, and their schedule; bounded memory."""

from array import array
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spectrod.dsp.duty_cycle import (
    NOTHING,
    OWN_TIME,
    PAUSE_MIN_S,
    DutyCycle,
    find_duty_cycle,
)
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Int64Array
from spectrod.formats.picture.raster import ShownRecordings

SPANS_MAX = 1 << 17
"""Most spans that are kept: of more, even the widest picture has many in each column."""


class Pauses(NamedTuple):
    """Gaps that a schedule explains."""

    n_pauses: int = 0
    duration_s: float = 0.0
    """Time that is missing in all of them [s]."""
    period_s: float = 0.0
    """Period of the schedule; 0 without one [s]."""


NO_PAUSES = Pauses()


@dataclass(frozen=True, slots=True, eq=False)
class PictureSchedule:
    """Schedule of the rows of a picture.

    Attributes
    ----------
    duty_cycle : DutyCycle
        The schedule; times since the first row.
    begins, ends : (recordings,) int64
        First sample of each recording, and the one after the sound of its last row.
    last_rows : (recordings,) int64
        First sample of each recording's last row.
    pauses : Pauses
        Gaps that the schedule explains.
    row_s : float
        Time from row to row [s].
    fs : float
        Sample rate [Hz].
    """

    duty_cycle: DutyCycle
    begins: Int64Array
    ends: Int64Array
    last_rows: Int64Array
    pauses: Pauses
    row_s: float
    fs: float

    def shown(self, span: tuple[int, int], width: int) -> ShownRecordings | None:
        """Return the recordings that pixels stand for; None if all stand for their own time.

        Parameters
        ----------
        span : (int, int)
            Absolute index of the first pixel's first sample, and number of samples in all pixels.
        width : int
            Number of pixels.
        """
        begin, n_samples = span
        edges = begin - self.begins[0] + np.linspace(0.0, n_samples, width + 1)
        found = self.duty_cycle.recording_of(edges / self.fs, self.row_s)
        if (found == OWN_TIME).all():
            return None
        is_shown = found >= 0
        some = found[is_shown]
        known = self.begins, self.ends, self.last_rows
        limits = (one[some].astype(np.float64) for one in known)
        return ShownRecordings(is_shown, found == NOTHING, *limits)


class RecordedSpans:
    """Collects the spans of samples of which there are rows.

    Gaps shorter than ``PAUSE_MIN_S`` do not end a span. Memory is 32 bytes a span, of at most
    ``SPANS_MAX``; of more there is no schedule. Thread: one at a time.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows.

    Attributes
    ----------
    row_frames : int
        Most frames that a row is an average of: fewer than those of the spec if gaps cut off all
        rows; 0 without rows.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        self._fs, self._row_s = spec.fs, spec.row_s
        # Rows of a rate may be farther apart than they are long.
        self._row_samples = max(spec.row_span, int(spec.row_step))
        self._win_length, self._hop = spec.win_length, spec.hop
        self.row_frames = 0
        self._begins, self._ends, self._missing = array("q"), array("q"), array("q")
        self._last_rows = array("q")
        self._is_full = False

    def add(self, batch: SpectrumBatch) -> None:
        """Add the rows of a batch, which follow each other."""
        begin, last = int(batch.sample_index[0]), int(batch.sample_index[-1])
        n_frames, n_samples = batch.spec.averaging_frames, self._row_samples
        if batch.cut_frames:  # a row may be as long as the period of a schedule, its sound is not
            n_frames = batch.cut_frames
            n_samples = self._win_length + (n_frames - 1) * self._hop
        end, self.row_frames = last + n_samples, max(self.row_frames, n_frames)
        if self._ends and begin - self._ends[-1] < PAUSE_MIN_S * self._fs:
            self._ends[-1], self._last_rows[-1] = end, last
        elif len(self._begins) < SPANS_MAX:
            self._begins.append(begin)
            self._ends.append(end)
            self._last_rows.append(last)
            self._missing.append(batch.gap_samples)
        else:
            self._is_full = True

    def schedule(self) -> PictureSchedule | None:
        """Return the schedule of the rows so far; None without one."""
        if self._is_full or not self._begins:
            return None
        begins, ends, missing = map(np.array, (self._begins, self._ends, self._missing))
        last_rows = np.array(self._last_rows)
        limits_s = ((limits - begins[0]) / self._fs for limits in (begins, ends))
        found = find_duty_cycle(*limits_s)
        if found is None:
            return None
        explained = missing[1:][found.is_scheduled]
        pauses = Pauses(len(explained), float(explained.sum() / self._fs), found.period_s)
        return PictureSchedule(found, begins, ends, last_rows, pauses, self._row_s, self._fs)
