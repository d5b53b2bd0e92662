"""Many cells at once: pooling of values, and cells of the next coarser level."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array, Int64Array
from spectrod.formats.pyramid.cell import (
    MAX,
    MEAN,
    MIN,
    Int16Array,
    level_codes,
    seal,
    to_codes,
    to_power,
)

_LEAST, _GREATEST = np.iinfo(np.int16).min, np.iinfo(np.int16).max


def slots_of_levels(
    level: Float64Array, effort_ns: Int64Array, starts: Int64Array, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Make cells of one row each.

    Parameters
    ----------
    level : (cells, signals, bands) float64
        Levels [dB]; NaN is stored as the greatest level.
    effort_ns : (cells,) int64
        Duration of the samples of each; 0 where there is no row: such a cell is not written.
    starts : (values,) int64
        First band of each value.
    dtype : dtype
        See ``slot_dtype``.

    Returns
    -------
    slots : (cells,) structured
    """
    codes = level_codes(level)
    slots = np.zeros(len(level), dtype)
    slots["effort_ns"] = effort_ns
    slots["codes"][:, MIN] = np.minimum.reduceat(codes, starts, axis=-1)
    slots["codes"][:, MEAN] = _pooled_mean(codes, starts)
    slots["codes"][:, MAX] = np.maximum.reduceat(codes, starts, axis=-1)
    return _sealed(slots)


def coarser_slots(slots: NDArray[Any], ratio: int) -> NDArray[Any]:
    """Make the cells of the next coarser level; means are weighted by effort.

    Parameters
    ----------
    slots : (cells * ratio,) structured
        Cells that follow each other from the first one of a coarser cell on; "mark" is 0 for
        missing ones.
    ratio : int
        Finer cells in a coarser one.

    Returns
    -------
    slots : (cells,) structured
    """
    finer = slots.reshape(-1, ratio)
    is_there = finer["mark"] != 0
    effort_ns = np.where(is_there, finer["effort_ns"], 0)
    total = effort_ns.sum(axis=1)
    weight = effort_ns / np.maximum(total, 1)[:, np.newaxis]
    least = np.full(finer["codes"][:, 0, MIN].shape, _GREATEST, np.int16)
    greatest = np.full(least.shape, _LEAST, np.int16)
    mean = np.zeros(least.shape)
    for k in range(ratio):
        there = is_there[:, k, np.newaxis, np.newaxis]
        codes = finer["codes"][:, k]
        np.minimum(least, codes[:, MIN], out=least, where=there)
        np.maximum(greatest, codes[:, MAX], out=greatest, where=there)
        mean += weight[:, k, np.newaxis, np.newaxis] * to_power(codes[:, MEAN])
    coarser = np.zeros(len(finer), slots.dtype)
    coarser["effort_ns"] = total
    coarser["codes"][:, MIN], coarser["codes"][:, MAX] = least, greatest
    coarser["codes"][:, MEAN] = to_codes(mean)
    return _sealed(coarser)


def _pooled_mean(codes: Int16Array, starts: Int64Array) -> Int16Array:
    if len(starts) == codes.shape[-1]:
        return codes
    counts = np.diff([*starts, codes.shape[-1]])
    return to_codes(np.add.reduceat(to_power(codes), starts, axis=-1) / counts)


def _sealed(slots: NDArray[Any]) -> NDArray[Any]:
    """Seal the cells with effort; the others stay zeros, as holes of a file."""
    is_there = slots["effort_ns"] > 0
    slots[~is_there] = np.zeros((), slots.dtype)
    some = slots[is_there]
    seal(some)
    slots[is_there] = some
    return slots
