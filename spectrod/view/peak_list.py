"""The strongest tones of a spectrum, with their notes."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spectrod.units import FLOOR_DBFS, Float64Array
from spectrod.view.peak import Peak, interpolate_peak, level_unit
from spectrod.view.status import plain
from spectrod.wire.schema import SpectrumHeader

PEAKS_MAX = 10
"""Maximum number of peaks in a list."""
PROMINENCE_DB = 6.0
"""Height of a peak above the higher of the two valleys that separate it from higher ones [dB]."""
ABOVE_FLOOR_DB = 8.0
"""Height of a peak above the median of the 128 bins around: most peaks of noise are lower [dB]."""
LIST_WIDTH = 34
"""Width of a list [characters]."""

_FLOOR_BINS = 128
_CANDIDATES = 64
"""Local maxima that are examined, the highest first."""
_A4_HZ, _A4_NUMBER = 440.0, 69
_NOTES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")


def find_peaks(
    levels: Float64Array,
    header: SpectrumHeader,
    first: int = 0,
    last: int | None = None,
    *,
    count: int = PEAKS_MAX,
) -> list[Peak]:
    """Find the highest tones, the highest first.

    Parameters
    ----------
    levels : (n_bins,) float64
        Spectrum [dB].
    header : SpectrumHeader
        Has window, lengths and sample rate.
    first, last : int
        First and last-plus-one bin in which peaks are looked for; None for the last bin.
    count : int
        Maximum number of peaks.

    Returns
    -------
    peaks : list of Peak
        Each at least ``PROMINENCE_DB`` prominent and ``ABOVE_FLOOR_DB``
        above the noise.
    """
    part = levels[first:last]
    if len(part) < 3:
        return []
    candidates = _local_maxima(part)
    candidates = candidates[part[candidates] >= _floor(part)[candidates] + ABOVE_FLOOR_DB]
    order = np.argsort(-part[candidates], kind="stable")[:_CANDIDATES]
    peaks: list[Peak] = []
    for k in candidates[order].tolist():
        if len(peaks) == count:
            break
        if _prominence_db(part, k) >= PROMINENCE_DB:
            peaks.append(interpolate_peak(levels, first + k, header))
    return peaks


def _local_maxima(levels: Float64Array) -> NDArray[np.int64]:
    """Return bins that exceed the one before and are not below the one after."""
    middle = levels[1:-1]
    is_peak = (middle > levels[:-2]) & (middle >= levels[2:]) & (middle > FLOOR_DBFS)
    return np.flatnonzero(is_peak) + 1


def _floor(levels: Float64Array) -> Float64Array:
    """Return the median of the block of bins that each bin lies in, shape (n_bins,) [dB]."""
    n = len(levels)
    n_blocks = max(1, n // _FLOOR_BINS)
    size = min(n, _FLOOR_BINS)
    medians = np.median(levels[: n_blocks * size].reshape(n_blocks, size), axis=1)
    block = np.minimum(np.arange(n) // max(1, size), n_blocks - 1)
    return np.asarray(medians[block])


def _prominence_db(levels: Float64Array, k: int) -> float:
    """Return the height above the higher of the valleys towards higher bins, or the ends."""
    higher = np.flatnonzero(levels > levels[k])
    at = int(np.searchsorted(higher, k))
    left = int(higher[at - 1]) if at else 0
    right = int(higher[at]) if at < len(higher) else len(levels) - 1
    valley = max(levels[left : k + 1].min(), levels[k : right + 1].min())
    return float(levels[k] - valley)


def note_name(frequency_hz: float) -> str:
    """Return the nearest note in equal temperament, A4 = 440 Hz, and the cents above it.

    Source: note number ``69 + 12 log2(f / 440 Hz)`` of the MIDI tuning standard.
    """
    if not (math.isfinite(frequency_hz) and frequency_hz > 0.0):
        return ""
    number = _A4_NUMBER + 12.0 * math.log2(frequency_hz / _A4_HZ)
    nearest = round(number)
    cents = round(100.0 * (number - nearest))
    return f"{_NOTES[nearest % 12]}{nearest // 12 - 1} {cents:+d}"


def peak_lines(peaks: Sequence[Peak], header: SpectrumHeader) -> list[str]:
    """Return a table of peaks: frequency, level and note with cents."""
    unit = plain(level_unit(header))[:9]
    title = f"{'Hz':>13}  {unit:>9}  note"
    rows = [
        f"{p.frequency_hz:>13.1f}  {p.level_db:>9.1f}  {note_name(p.frequency_hz)}" for p in peaks
    ]
    return [line[:LIST_WIDTH] for line in (title, *(rows or ["no peak of 6 dB".rjust(24)]))]
