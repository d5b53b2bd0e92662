"""Averagings that need all frames of a row: percentiles and the noise floor."""

import re

FLOOR = "floor"
_FLOOR_EXCEEDED_PERCENT = 80.0
"""Percentage of the frames of pure noise above the percentile of a noise floor [%]: what sounds in
less than four fifths of the time hardly changes it."""

KEPT_FRAMES_MAX = 4000
"""Maximum number of frames of a row that are kept; frames of longer rows are counted in as many
classes, which takes as much memory."""
PERCENTILE_BYTES_MAX = 1 << 28
"""Maximum memory for the percentiles of one product [bytes]."""

EXCEEDED_RULE = "L and the percentage of the time, such as L90"
_EXCEEDED = re.compile(r"L(?!0$)(?:0|[1-9]\d?)(?:\.\d{0,2}[1-9])?", re.ASCII)


def exceeded_percent(averaging: str) -> float | None:
    """Return the percentage of frames that exceed a row; None for other averagings [%].

    Of ``"L90"`` it is 90: the value exceeded 90 % of the time is the 10th percentile.
    """
    if averaging == FLOOR:
        return _FLOOR_EXCEEDED_PERCENT
    return float(averaging[1:]) if _EXCEEDED.fullmatch(averaging) else None


def percentile_bytes(n_frames: int, n_values: int) -> int:
    """Return the memory for percentiles over rows of n_frames of n_values values [bytes]."""
    return 4 * n_values * min(n_frames, KEPT_FRAMES_MAX)
