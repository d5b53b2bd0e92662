"""Which frames a picture is made of, and how many of them a device averages to a row."""

import math
from dataclasses import replace

from spectrod.formats.picture.pooling import Pooling
from spectrod.types import SpectrumSpec

PRODUCT = "picture"
"""What the picture's spectra are called beside others of the same samples."""

_WINDOW_SECONDS = 0.043
_WINDOW_MIN, _WINDOW_MAX = 64, 8192
_ROWS_PER_PIXEL = 2
_AVERAGING_FRAMES_MAX = 256
"""Most frames of a row: rows of a batch are what a device's cores share."""


def window_for(fs: float) -> int:
    """Window that shows speech and music well: the power of two nearest to 43 ms [samples]."""
    exponent = round(math.log2(fs * _WINDOW_SECONDS))
    return int(min(max(2**exponent, _WINDOW_MIN), _WINDOW_MAX))


def hop_for(win_length: int, n_samples: int | None, width: int) -> int:
    """Step that suits a picture [samples].

    Short recordings get a frame for each pixel, so that they are not made of blocks; long ones, and
    those of unknown length, half-overlapping frames, which use every sample about evenly.

    Parameters
    ----------
    win_length : int
        Samples under the window.
    n_samples : int or None
        Samples a channel that there will be, if that is known.
    width : int
        Of the picture [px].
    """
    half = win_length // 2
    return max(1, half if n_samples is None else min(half, n_samples // width))


def pooled(spec: SpectrumSpec, n_samples: int | None, width: int, pooling: Pooling) -> SpectrumSpec:
    """Make a device average as many frames as leave two rows a pixel.

    Parameters
    ----------
    spec : SpectrumSpec
        Frames without averaging and without a rate; others are left as they are.
    n_samples : int or None
        Samples a channel that there will be, if that is known; if not, every frame is a row.
    width : int
        Of the picture [px].
    pooling : {"mean", "max", "min"}
        What a pixel shall show of its frames.
    """
    if spec.averaging != "none" or spec.rate_hz:
        return replace(spec, product=PRODUCT)
    n_frames = 1 if n_samples is None else spec.n_frames(n_samples)
    per_row = -(-n_frames // (_ROWS_PER_PIXEL * width))
    per_row = max(1, min(per_row, _AVERAGING_FRAMES_MAX))
    averaging = pooling if per_row > 1 else "none"
    return replace(spec, averaging=averaging, averaging_frames=per_row, product=PRODUCT)
