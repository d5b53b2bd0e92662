"""Conditions of samples: what checks found in those that a row is made of. Pure."""

from collections.abc import Collection
from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

UInt8Array = NDArray[np.uint8]


class Condition(IntFlag):
    """What is true of samples of a signal; values are those in files."""

    CHECKED = 1
    """All of them were checked; without it the others are a part of the truth."""
    GAP = 2
    """Samples are missing between them; a pause of a schedule is no gap."""
    CLIPPING = 4
    """Three or more in a row are at full scale."""
    DC = 8
    """They have a steady offset."""
    SILENT = 16
    """They are exact zeros for more than a second."""
    MISSING = 32
    """They are silent, while those of another channel are not."""
    STUCK = 64
    """They have one value other than zero for more than a second."""
    SUSPECTED = 128
    """Some may be missing: the sound system or the clock says so."""


_WORDS = {one: str(one.name).lower() for one in Condition}


def names_of(conditions: int) -> tuple[str, ...]:
    """Return the words of conditions, such as ``clipping``, as files and messages have them."""
    return tuple(_WORDS[one] for one in Condition if conditions & one)


def from_names(names: Collection[str]) -> Condition:
    """Return the conditions of words; others, of later versions, are left out."""
    return Condition(sum(one for one, word in _WORDS.items() if word in names))


def combined(conditions: UInt8Array) -> UInt8Array:
    """Return the conditions of several rows together.

    Parameters
    ----------
    conditions : (rows, signals) uint8
        At least one row.

    Returns
    -------
    conditions : (signals,) uint8
        What any of them has, and ``CHECKED`` where all have it.
    """
    is_any: UInt8Array = np.bitwise_or.reduce(conditions, axis=0)
    is_all: UInt8Array = np.bitwise_and.reduce(conditions, axis=0)
    found: UInt8Array = is_any & (is_all | np.uint8(255 - Condition.CHECKED))
    return found
