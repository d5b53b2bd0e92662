"""Choice of a picture's frames, and of the number that a device averages to a row."""

import math
from dataclasses import replace

from spectrod.dsp.bands import AUDIBLE_MIN_HZ
from spectrod.dsp.constant_q import win_length_from
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import NFFT_MAX
from spectrod.formats.picture.pooling import Pooling

PRODUCT = "picture"
"""Name of the picture's spectra beside other products of the same samples."""

_WINDOW_SECONDS = 0.043
_WINDOW_MIN, _WINDOW_MAX = 64, 8192
_C1_HZ = 32.7
_FILTER_SHARE_MAX = 0.25
"""Longest filter that is chosen, as a share of the recording: half of it is missing at each end."""
_ROWS_PER_PIXEL = 2
_AVERAGING_FRAMES_MAX = 256
"""Largest number of frames per row: a device's cores share the rows of a batch."""


def window_for(fs: float) -> int:
    """Return a window length for speech and music: the power of two nearest to 43 ms [samples]."""
    exponent = round(math.log2(fs * _WINDOW_SECONDS))
    return int(min(max(2**exponent, _WINDOW_MIN), _WINDOW_MAX))


def window_of_filters(bands: str, fs: float, f_min_hz: float | None, n_samples: int | None) -> int:
    """Return a window length for the filters of a constant-Q transform [samples].

    Its longest filter is that of ``f_min_hz``, by default of the note C1, or of a variable-Q
    transform the lowest one; and by default at most a quarter of the recording's ``n_samples``.
    """
    default_hz = AUDIBLE_MIN_HZ if bands.startswith("vqt:") else _C1_HZ
    lowest_hz = max(default_hz if f_min_hz is None else f_min_hz, fs / NFFT_MAX)
    win_length = min(win_length_from(bands, fs, lowest_hz), NFFT_MAX)
    if f_min_hz is None and n_samples is not None:
        longest = max(window_for(fs), int(_FILTER_SHARE_MAX * n_samples))
        return min(win_length, longest)
    return win_length


def hop_for(win_length: int, n_samples: int | None, width: int) -> int:
    """Return a suitable hop for a picture [samples].

    Short recordings get a frame per pixel, so that no pixels repeat. Long ones, and those of
    unknown length, get half-overlapping frames, which weight all samples about equally.

    Parameters
    ----------
    win_length : int
        Length of the window [samples].
    n_samples : int or None
        Expected samples per channel, if known.
    width : int
        Width of the picture [px].
    """
    half = win_length // 2
    return max(1, half if n_samples is None else min(half, n_samples // width))


def pooled(spec: SpectrumSpec, n_samples: int | None, width: int, pooling: Pooling) -> SpectrumSpec:
    """Return the spec with averages over as many frames as leave two rows per pixel.

    Parameters
    ----------
    spec : SpectrumSpec
        Frames without averaging and without a rate; other specs keep their averaging.
    n_samples : int or None
        Expected samples per channel, if known; otherwise every frame is a row.
    width : int
        Width of the picture [px].
    pooling : {"mean", "max", "min"}
        How a pixel combines the power of its frames.
    """
    if spec.averaging != "none" or spec.rate_hz:
        return replace(spec, product=PRODUCT)
    n_frames = 1 if n_samples is None else spec.n_frames(n_samples)
    per_row = -(-n_frames // (_ROWS_PER_PIXEL * width))
    per_row = max(1, min(per_row, _AVERAGING_FRAMES_MAX))
    averaging = pooling if per_row > 1 else "none"
    return replace(spec, averaging=averaging, averaging_frames=per_row, product=PRODUCT)
