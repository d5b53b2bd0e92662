"""Pictures as integers in memory, and conversion of filtered values to integers."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float32Array, Float64Array
from spectrod.lib.errors import ConfigError, InputError

Pixels = NDArray[np.uint8] | NDArray[np.uint16]
Planes = Float32Array | Float64Array
Tone = Literal["keep", "centre", "stretch"]
TONES: tuple[Tone, ...] = get_args(Tone)

PIXELS_MAX = 1 << 26
"""Maximum number of pixels of a picture: 8192 x 8192, a camera of 67 megapixels."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A grey or colour picture.

    Attributes
    ----------
    planes : (channels, rows, columns) uint8 or uint16
        One channel of grey, or red, green and blue; 0 is black.
    maxval : int
        Value of full brightness, 1 to 65535; uint8 up to 255.
    alpha : (rows, columns) uint8, optional
        Opacity, never changed here.
    """

    planes: Pixels
    maxval: int
    alpha: NDArray[np.uint8] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        _, rows, columns = self.planes.shape
        return rows, columns

    @property
    def is_colour(self) -> bool:
        """Whether it has three channels."""
        return len(self.planes) == 3


def check_size(columns: int, rows: int) -> None:
    """Raise InputError for a picture that would take too much memory, before it is decoded."""
    if columns * rows > PIXELS_MAX:
        raise InputError(
            f"{columns} x {rows} = {columns * rows} pixels: must be at most {PIXELS_MAX}"
        )


def to_pixels(planes: Planes, maxval: int, tone: Tone) -> Pixels:
    """Round values to pixels; clip values out of range.

    Parameters
    ----------
    planes : (channels, rows, columns) float
        In grey levels.
    maxval : int
        Level of full brightness.
    tone : {"keep", "centre", "stretch"}
        Levels as they are; plus half of full brightness, for values around zero; or from the
        lowest, which becomes black, to the highest of all channels, which becomes full brightness.

    Returns
    -------
    pixels : (channels, rows, columns) uint8 or uint16
        uint8 up to a maxval of 255.

    Raises
    ------
    ConfigError
        If the tone is unknown.
    """
    if tone not in TONES:
        raise ConfigError(f"tone={tone!r}: must be one of {', '.join(TONES)}")
    if tone == "centre":
        planes = planes + (maxval + 1) // 2
    elif tone == "stretch":
        low, high = planes.min(), planes.max()
        planes = (planes - low) * (maxval / (high - low) if high > low else 0.0)
    return narrowed(np.clip(np.rint(planes), 0, maxval), maxval)


def narrowed(levels: NDArray[Any], maxval: int) -> Pixels:
    """Return levels from 0 to maxval in the smallest type that holds them."""
    return levels.astype(np.uint8) if maxval <= 255 else levels.astype(np.uint16)
