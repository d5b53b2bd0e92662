"""Levels as integers, and the range of a product's levels in eight bits.

Integers of this package are one above those of 16 bits on the wire: 0 is no data, so the maximum of
integers is the integer of the maximum, with and without missing values.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float32Array

CODE_FLOOR_DB: Final = -327.67
"""Level of the code 1, and of the wire's 0 [dB]."""
CODE_STEP_DB: Final = 0.01
"""Step of codes [dB]."""
CODE_MAX: Final = 65535

BYTE_STEP_DB: Final = 0.5
"""Step of bytes [dB]."""
BYTE_MAX: Final = 255

_SPAN_DB = (BYTE_MAX - 1) * BYTE_STEP_DB
_HEADROOM_DB = 20.0
_HEADROOM_RAISED_DB = 10.0
_GRID_DB = 5.0
_ROWS_TO_LOWER = 64

Codes = NDArray[np.uint16]
Bytes = NDArray[np.uint8]
Integers = NDArray[np.unsignedinteger[Any]]


def to_codes(levels: Float32Array) -> Codes:
    """Convert levels to codes.

    Parameters
    ----------
    levels : (...) float32
        Levels; NaN: no data [dB].

    Returns
    -------
    codes : (...) uint16
        0: no data; else 1 + (level - ``CODE_FLOOR_DB``) / ``CODE_STEP_DB``, rounded. Levels beyond
        the ends, and infinite ones, are at the ends.
    """
    with np.errstate(over="ignore"):  # beyond the end all the same
        codes = levels * np.float32(1.0 / CODE_STEP_DB)
    codes += np.float32(1.0 - CODE_FLOOR_DB / CODE_STEP_DB)
    np.rint(codes, out=codes)
    return _clipped(codes, CODE_MAX).astype(np.uint16)


def code_levels(codes: Codes) -> Float32Array:
    """Return the levels of codes, (...) float32 [dB]; NaN where there is no data."""
    levels = codes.astype(np.float32) - np.float32(1.0 - CODE_FLOOR_DB / CODE_STEP_DB)
    levels *= np.float32(CODE_STEP_DB)
    levels[codes == 0] = np.nan
    return levels


def to_bytes(levels: Float32Array, lo_db: float) -> Bytes:
    """Convert levels to bytes: 0 no data, else 1 + (level - lo_db) / ``BYTE_STEP_DB``, rounded.

    Parameters
    ----------
    levels : (...) float32
        Levels; NaN: no data [dB].
    lo_db : float
        Level of the byte 1; lower levels have it too [dB].
    """
    with np.errstate(over="ignore"):
        codes = levels * np.float32(1.0 / BYTE_STEP_DB)
    codes += np.float32(1.0 - lo_db / BYTE_STEP_DB)
    np.rint(codes, out=codes)
    return _clipped(codes, BYTE_MAX).astype(np.uint8)


def wire_bytes(integers: Integers) -> bytes:
    """Return integers as the wire has them: codes less one, no data as 65535; bytes unchanged."""
    if integers.dtype == np.uint8:
        return integers.tobytes()
    return (integers - np.uint16(1)).astype("<u2", copy=False).tobytes()


def _clipped(values: Float32Array, greatest: int) -> Float32Array:
    """Bound rounded values in place; NaN becomes 0."""
    missing = np.isnan(values)
    np.clip(values, 1.0, greatest, out=values)
    if missing.any():
        values[missing] = 0.0
    return values


@dataclass(slots=True)
class ByteRange:
    """The levels of a product that bytes can express: 127 dB with room above its highest ones.

    A level above the range moves it up at once. It moves down only after 64 rows in turn whose
    levels are all in its lower half, so that a level that comes and goes does not move it.

    Parameters
    ----------
    top_max_db : float
        Highest level that the range ever contains [dB].

    Attributes
    ----------
    lo_db : float
        Level of the byte 1; NaN before the first row with data [dB].
    """

    top_max_db: float = float("inf")
    lo_db: float = float("nan")
    _rows_below: int = 0
    _highest_below_db: float = 0.0

    def include(self, codes: Codes) -> None:
        """Move the range so that it contains a row's highest level."""
        highest = int(codes.max(initial=0))
        if not highest:
            return
        highest_db = CODE_FLOOR_DB + (highest - 1) * CODE_STEP_DB
        if math.isnan(self.lo_db):
            self._move(highest_db + _HEADROOM_DB)
        elif highest_db > self.lo_db + _SPAN_DB:
            self._move(highest_db + _HEADROOM_RAISED_DB)
        elif highest_db < self.lo_db + _SPAN_DB / 2.0:
            self._note_below(highest_db)
        else:
            self._rows_below = 0

    def _note_below(self, highest_db: float) -> None:
        if not self._rows_below or highest_db > self._highest_below_db:
            self._highest_below_db = highest_db
        self._rows_below += 1
        if self._rows_below >= _ROWS_TO_LOWER:
            self._move(self._highest_below_db + _HEADROOM_DB)

    def _move(self, top_db: float) -> None:
        top_db = min(math.ceil(top_db / _GRID_DB) * _GRID_DB, self.top_max_db)
        self.lo_db = top_db - _SPAN_DB
        self._rows_below = 0
