"""Flags of intervals of measurements: their values in files, their names in messages and tables."""

from collections.abc import Collection
from enum import IntFlag
from typing import Any, Final

import numpy as np


class IntervalFlag(IntFlag):
    """Why a row is not what a complete, undisturbed interval would give."""

    OVERLOAD = 1
    """At least one sample of the channel is at full scale."""
    UNDER_RANGE = 2
    """A level of the channel is below the lower limit that was set."""
    SETTLING = 4
    """The interval holds samples within the settling time of a start or of a gap."""
    GAP = 8
    """Samples are missing in the interval."""
    PARTIAL = 16
    """The interval has fewer samples than its length, at the start, the end or for a gap."""


FLAGS: Final = {flag: str(flag.name).lower() for flag in IntervalFlag}
"""Names of the flags."""
FLAG_ATTRIBUTES: Final[dict[str, Any]] = {
    "long_name": "flags of the interval",
    "flag_masks": np.array([int(flag) for flag in FLAGS], np.uint8),
    "flag_meanings": " ".join(FLAGS.values()),
    "coordinates": "channel_name",
    "coverage_content_type": "qualityInformation",
}
"""Attributes of a variable of flags, by CF 1.11."""


def flags_of(names: Collection[str]) -> IntervalFlag:
    """Return the flags of names; others, of later versions, are left out."""
    return IntervalFlag(sum(flag for flag, name in FLAGS.items() if name in names))
