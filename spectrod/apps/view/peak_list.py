"""The strongest tones of a spectrum, with their notes."""

import math
from collections.abc import Sequence

from spectrod.apps.view.frame_levels import level_unit
from spectrod.apps.view.status import plain
from spectrod.dsp.peak import Peak, interpolate_peak
from spectrod.dsp.peak_search import find_peak_bins
from spectrod.dsp.units import Float64Array
from spectrod.wire.schema import SpectrumHeader

PEAKS_MAX = 10
"""Maximum number of peaks in a list."""
LIST_WIDTH = 34
"""Width of a list [characters]."""

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
        As ``find_peak_bins`` finds them.
    """
    bins = find_peak_bins(levels[first:last], count)
    return [interpolate_peak(levels, first + k, header) for k in bins]


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
    return [line[:LIST_WIDTH] for line in (title, *(rows or ["none".rjust(13)]))]
