"""Palette entries of powers by table, without the logarithm of every pixel."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float32Array, power_to_dbfs
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.theme import N_LEVELS

_KEY_SHIFT = np.uint32(16)
_N_KEYS = 1 << 16
_INFINITY_BITS = 0x7F800000
_PIECE_VALUES = 1 << 16
"""Values whose keys and table entries fit a processor's cache."""


@dataclass(frozen=True, slots=True)
class PeakLevels:
    """The levels of powers; the larger the power, the higher the level.

    Attributes
    ----------
    offset_db : float
        Offset of all levels [dB].
    """

    offset_db: float = 0.0

    def __call__(self, power: Float32Array) -> Float32Array:
        """Return levels [dB] of powers, (...) float32, ``FLOOR_DBFS`` or more before the offset."""
        levels = power_to_dbfs(power)
        levels += np.float32(self.offset_db)
        return levels

    def least(self, level: float) -> np.float32:
        """Return the least power whose level is above the given one."""
        return _least_power(self, level)


class _Table(NamedTuple):
    """Entry of the least power of each key, and the power from which on it is one more."""

    entries: Uint8Array
    steps: Float32Array


def entries_per_db(lo: float, hi: float) -> np.float32:
    """Return the number of palette entries of a decibel."""
    # All painters use exactly this number, so that entries are bit-identical.
    return np.float32((N_LEVELS - 1) / (hi - lo))


def level_entries(levels: Float32Array, lo: float, hi: float) -> Uint8Array:
    """Return the palette entries of levels, (...) uint8; of NaN any."""
    scaled = (levels - np.float32(lo)) * entries_per_db(lo, hi)
    np.clip(scaled, np.float32(0.0), np.float32(N_LEVELS - 1), out=scaled)
    np.copyto(scaled, np.float32(0.0), where=np.isnan(scaled))
    return np.asarray(np.rint(scaled, out=scaled).astype(np.uint8))


def peak_entries(power: Float32Array, scale: PeakLevels, lo: float, hi: float) -> Uint8Array:
    """Return the palette entries of powers: exactly those of their levels.

    The upper half of a number's bits selects an entry and the power from which on it is one more:
    a range of 0.03 dB, in which there is at most one such step unless the colour scale is short.

    Parameters
    ----------
    power : (rows, columns) float32
        Powers, at least 0, or NaN.
    scale : PeakLevels
        Their levels.
    lo, hi : float
        Levels of the first and the last entry [dB].

    Returns
    -------
    entries : (rows, columns) uint8
        Of NaN any.
    """
    table = _table(scale, lo, hi)
    if table is None:
        return level_entries(scale(power), lo, hi)
    entries = np.empty(power.shape, np.uint8)
    n_rows = max(1, _PIECE_VALUES // power.shape[1])
    for first in range(0, len(power), n_rows):
        part = power[first : first + n_rows]
        # Of the type of indices, which ``take`` would make of it twice.
        keys = (part.view(np.uint32) >> _KEY_SHIFT).astype(np.intp)
        np.add(
            table.entries.take(keys),
            part >= table.steps.take(keys),
            out=entries[first : first + n_rows],
        )
    return entries


@lru_cache(maxsize=64)
def _least_power(scale: PeakLevels, level: float) -> np.float32:
    bits = _least_bits(lambda powers: scale(powers) > level, 1)
    return np.float32(bits.view(np.float32)[0])


@lru_cache(maxsize=16)
def _table(scale: PeakLevels, lo: float, hi: float) -> _Table | None:
    """Return the table of a colour scale; None if a key has two steps."""
    numbers = np.arange(1, N_LEVELS)
    bits = _least_bits(lambda powers: level_entries(scale(powers), lo, hi) >= numbers, len(numbers))
    keys = bits >> _KEY_SHIFT
    n_steps = np.bincount(keys, minlength=_N_KEYS)
    if n_steps.max() > 1:
        return None
    steps = np.full(_N_KEYS, np.nan, np.float32)  # no power is at or above NaN
    steps[keys] = bits.view(np.float32)
    return _Table((np.cumsum(n_steps) - n_steps).astype(np.uint8), steps)


def _least_bits(
    is_above: Callable[[Float32Array], NDArray[np.bool_]], n: int
) -> NDArray[np.uint32]:
    """Return the bits of the least powers for which n rising conditions hold, by bisection."""
    below, above = np.zeros(n, np.uint32), np.full(n, _INFINITY_BITS, np.uint32)
    while (below < above).any():
        middle = below + ((above - below) >> np.uint32(1))
        holds = is_above(middle.view(np.float32))
        above = np.where(holds, middle, above)
        below = np.where(holds, below, np.minimum(middle + np.uint32(1), above))
    return above
