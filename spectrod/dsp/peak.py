"""The highest tone of a spectrum in decibels, between two bins."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from spectrod.dsp.units import FLOOR_DBFS, Float64Array
from spectrod.dsp.windows import get_window
from spectrod.lib.errors import ConfigError

_LOBE_POINTS = 33
_LOBE_FLOOR_DB = -200.0


class Bins(Protocol):
    """What a header says about the bins of a spectrum; see ``wire.headers.SpectrumHeader``."""

    @property
    def fs(self) -> float:
        """Sample rate [Hz]."""

    @property
    def window(self) -> str:
        """Name of the window."""

    @property
    def win_length(self) -> int:
        """Samples under the window."""

    @property
    def nfft(self) -> int:
        """Length of the transform."""

    @property
    def first_bin(self) -> int:
        """Number of the first bin."""

    @property
    def center_frequency_hz(self) -> float:
        """Frequency of bin 0 [Hz]."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The highest point of a spectrum."""

    frequency_hz: float
    level_db: float
    is_interpolated: bool
    """False if only the bin is known: at the spectrum's ends, or with an unknown window."""


def find_peak(levels: Float64Array, header: Bins) -> Peak | None:
    """Find the highest tone.

    Parameters
    ----------
    levels : (n_bins,) float64
        Spectrum [dB].
    header : Bins
        Has window, lengths and sample rate.

    Returns
    -------
    peak : Peak or None
        None if all is silent.

    Notes
    -----
    The difference between two bins gives the position of a single tone between them, because the
    window's transform is known. The result is exact for one steady tone with any window and
    padding, except for leakage from the tone's mirror image at negative frequency. The level is
    corrected by the window's loss there.
    """
    k = int(np.argmax(levels))
    return None if levels[k] <= FLOOR_DBFS else interpolate_peak(levels, k, header)


def interpolate_peak(levels: Float64Array, k: int, header: Bins) -> Peak:
    """Return the tone at a local maximum in bin k; see ``find_peak``."""
    delta_f = header.fs / header.nfft
    lobe = _lobe_or_none(header)
    # A neighbour at DC or Nyquist is not doubled; the ends of a two-sided spectrum have only one
    # neighbour.
    if lobe is None or not 2 <= k <= len(levels) - 3:
        bin_hz = header.center_frequency_hz + (header.first_bin + k) * delta_f
        return Peak(bin_hz, float(levels[k]), is_interpolated=False)
    offsets, loss_db, difference_db = lobe
    side = 1 if levels[k + 1] > levels[k - 1] else -1
    offset = np.interp(levels[k + side] - levels[k], difference_db, offsets)
    level = levels[k] + np.interp(offset, offsets, loss_db)
    offset_hz = (header.first_bin + k + side * offset) * delta_f
    frequency_hz = header.center_frequency_hz + offset_hz
    return Peak(float(frequency_hz), float(level), is_interpolated=True)


_Lobe = tuple[Float64Array, Float64Array, Float64Array]


def _lobe_or_none(header: Bins) -> _Lobe | None:
    # A header may claim anything; only nfft is verified, by the size of the payload.
    if not 2 <= header.win_length <= header.nfft:
        return None
    try:
        return _main_lobe(header.window, header.win_length, header.nfft)
    except ConfigError:
        return None


@lru_cache(maxsize=8)
def _main_lobe(window: str, win_length: int, nfft: int) -> _Lobe:
    """Tabulate a tone's offset from its bin, the loss there, the neighbour's level under it."""
    taper = get_window(window, win_length)
    phase = 2.0j * np.pi * np.arange(win_length) / nfft

    def response_db(offset_bins: Float64Array) -> Float64Array:
        sums = [abs(np.exp(-offset * phase) @ taper.samples) for offset in offset_bins]
        floor = 10.0 ** (_LOBE_FLOOR_DB / 20.0)
        return np.asarray(20.0 * np.log10(np.maximum(np.array(sums) / taper.s1, floor)))

    offsets = np.linspace(0.0, 0.5, _LOBE_POINTS)
    at_bin = response_db(offsets)
    return offsets, -at_bin, response_db(1.0 - offsets) - at_bin
