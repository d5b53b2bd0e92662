"""Cells: the least, mean and greatest power of all rows in a span of time, as levels.

Levels are stored as 16-bit integers of 0.01 dB. The mean of a coarser cell is that of the finer
cells' rounded means; over at most eleven levels the error stays within 0.06 dB.
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float32Array, Float64Array, level_to_power, power_to_level

STEP_DB = 0.01
FLOOR_DB = -327.67
"""Lowest stored level; lower ones and zero power are stored as this."""

_CODE_MAX = 32767
MIN, MEAN, MAX = 0, 1, 2
_MARK = 0x31585053
"""Mark of a written cell; a hole in a file reads as zeros."""

Int16Array = NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Statistics of a span of time.

    Attributes
    ----------
    effort_ns : int
        Duration of the rows in it [ns], more than 0.
    power : (3, signals, values) float64
        Least, mean and greatest power.
    """

    effort_ns: int
    power: Float64Array


def merge(cells: list[Cell]) -> Cell:
    """Merge cells, at least one; the mean is weighted by effort."""
    efforts = np.array([cell.effort_ns for cell in cells], np.float64)
    powers = np.stack([cell.power for cell in cells])
    total = float(efforts.sum())
    mean = np.tensordot(efforts / total, powers[:, MEAN], axes=1)
    power = np.stack([powers[:, MIN].min(axis=0), mean, powers[:, MAX].max(axis=0)])
    return Cell(sum(cell.effort_ns for cell in cells), power)


def to_codes(power: Float64Array) -> Int16Array:
    """Convert powers to integers of 0.01 dB; infinity and NaN become the greatest."""
    return level_codes(power_to_level(power))


def level_codes(level: Float64Array) -> Int16Array:
    """Convert levels [dB] to integers of 0.01 dB, see ``to_codes``."""
    codes = np.rint(level / STEP_DB)
    codes = np.nan_to_num(codes, copy=False, nan=_CODE_MAX, posinf=_CODE_MAX, neginf=-_CODE_MAX)
    return np.clip(codes, -_CODE_MAX, _CODE_MAX).astype(np.int16)


def to_levels(codes: Int16Array) -> Float32Array:
    """Convert integers of 0.01 dB to levels [dB]."""
    return codes.astype(np.float32) * np.float32(STEP_DB)


def to_power(codes: Int16Array) -> Float64Array:
    """Convert integers of 0.01 dB to powers."""
    return level_to_power(codes.astype(np.float64) * STEP_DB)


def slot_dtype(n_signals: int, n_values: int) -> np.dtype[Any]:
    """Return the layout of a cell in a file: checksum of the rest, mark, effort, codes."""
    shape = (3, n_signals, n_values)
    return np.dtype(
        [("crc", "<u4"), ("mark", "<u4"), ("effort_ns", "<i8"), ("codes", "<i2", shape)]
    )


def encode(cell: Cell, dtype: np.dtype[Any]) -> bytes:
    """Encode a cell."""
    slot = np.zeros((), dtype)
    slot["mark"], slot["effort_ns"] = _MARK, cell.effort_ns
    slot["codes"] = to_codes(cell.power)
    data = slot.tobytes()
    return zlib.crc32(data[4:]).to_bytes(4, "little") + data[4:]


def seal(slots: NDArray[Any]) -> None:
    """Mark slots as written and set their checksums; effort and codes are set already."""
    slots["mark"] = _MARK
    size, view = slots.dtype.itemsize, slots.view(np.uint8).data
    for n in range(len(slots)):
        slots["crc"][n] = zlib.crc32(view[n * size + 4 : (n + 1) * size])


def is_whole(data: bytes | memoryview) -> bool:
    """Return whether these bytes are a complete written cell."""
    stored = int.from_bytes(data[:4], "little")
    is_marked = int.from_bytes(data[4:8], "little") == _MARK
    return is_marked and stored == zlib.crc32(data[4:])
