"""The pauses between files of a folder: those of a schedule, and those that it does not explain."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spectrod.dsp.duty_cycle import PAUSE_MIN_S, DutyCycle, find_duty_cycle
from spectrod.dsp.units import Int64Array
from spectrod.source.base import StreamFile


@dataclass(frozen=True, slots=True)
class Gap:
    """Time without samples after a file.

    Attributes
    ----------
    after : str
        Name of the file.
    begin : int
        Index of the first missing sample.
    duration_s : float
        Length [s].
    """

    after: str
    begin: int
    duration_s: float


def longest_sound_s(files: Sequence[StreamFile], fs: float) -> float:
    """Return the longest time without a gap of 2 s or more in files, at least one [s]."""
    begins, ends, first, last = _stretches(files, fs)
    return float((ends[last] - begins[first]).max() / fs)


def find_gaps(files: Sequence[StreamFile], fs: float) -> tuple[DutyCycle | None, list[Gap]]:
    """Return the schedule of a folder's files, and the gaps of 2 s or more that it is no cause of.

    Parameters
    ----------
    files : sequence of StreamFile
        In the order of the stream.
    fs : float
        Sample rate [Hz].

    Returns
    -------
    cycle : DutyCycle or None
        None without a schedule; see ``find_duty_cycle``.
    gaps : list of Gap
        Gaps that no schedule explains, in order of time.
    """
    if not files:
        return None, []
    begins, ends, first, last = _stretches(files, fs)
    cycle, breaks = find_duty_cycle(begins[first] / fs, ends[last] / fs), last[:-1]
    if cycle is not None:
        breaks = breaks[~cycle.is_scheduled]
    return cycle, [
        Gap(Path(files[k].path).name, int(ends[k]), float((begins[k + 1] - ends[k]) / fs))
        for k in breaks.tolist()
    ]


def _stretches(
    files: Sequence[StreamFile], fs: float
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return begins and ends of files [samples], and the first and last file between gaps."""
    begins = np.array([one.first for one in files])
    ends = np.maximum.accumulate([one.first + one.n_samples for one in files])
    breaks = np.flatnonzero(begins[1:] - ends[:-1] >= PAUSE_MIN_S * fs)
    return begins, ends, np.append(0, breaks + 1), np.append(breaks, len(files) - 1)
