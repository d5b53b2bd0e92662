"""Keys that control the picture: levels, frequencies, pause, help."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from spectrod.units import FLOOR_DBFS, Float64Array
from spectrod.view.axes import ALL, LevelRange, Span, level_range

ARROWS: Final = ("up", "down", "right", "left")
"""Names of these keys."""

HELP: Final = (
    ("q", "quit"),
    ("1-9", "channel"),
    ("p", "next product"),
    ("up, down", "higher or lower levels"),
    ("[, ]", "fewer or more decibels"),
    ("a", "fit levels to the spectrum"),
    ("+, -", "zoom frequencies in or out"),
    ("left, right", "lower or higher frequencies"),
    ("space", "pause or resume"),
    ("r", "reset levels, frequencies and peaks"),
    ("?", "show or hide this help"),
)
"""Keys and their functions."""

_LEVEL_STEP_DB = 10.0
_SPAN_MIN_DB, _SPAN_MAX_DB = 20.0, 240.0
_LOWEST_DB, _HIGHEST_DB = -300.0, 100.0
_AUTO_PERCENTILE = 5.0
_ZOOM = 2.0
_ZOOM_MAX = 64.0
_PAN = 0.25


@dataclass(slots=True)
class Look:
    """Settings of the picture.

    Attributes
    ----------
    levels : LevelRange or None
        Levels from the bottom of the picture to its top; None for the unit's default.
    span : Span
        Visible part of the frequencies.
    is_paused, is_helping : bool
        Whether the picture is paused, and whether help is shown instead.
    """

    levels: LevelRange | None = None
    span: Span = ALL
    is_paused: bool = False
    is_helping: bool = False

    def press(self, key: str, unit: str, shown: Sequence[Float64Array]) -> bool:
        """Handle a key.

        Parameters
        ----------
        key : str
            A character, or ``up``, ``down``, ``left``, ``right``.
        unit : str
            Unit of the levels, as for ``level_range``; empty without levels.
        shown : sequence of (n_bins,) float64
            Visible levels [dB].

        Returns
        -------
        is_known : bool
            Whether the key has a function here.
        """
        if key in ("?", "h"):
            self.is_helping = not self.is_helping
        elif key == " ":
            self.is_paused = not self.is_paused
        elif key == "r":
            self.levels, self.span = None, ALL
        elif key in ("+", "=", "-", "left", "right"):
            self.span = _moved(self.span, key)
        elif key in ("up", "down", "[", "]", "a") and unit:
            self._change_levels(key, unit, shown)
        else:
            return False
        return True

    def shown_levels(self, unit: str) -> LevelRange:
        """Return the levels from the bottom of the picture to its top."""
        return self.levels or level_range(unit)

    def _change_levels(self, key: str, unit: str, shown: Sequence[Float64Array]) -> None:
        if key == "a":
            self.levels = _fitting(shown) or self.levels
            return
        now = self.shown_levels(unit)
        top, span = now.top_db, now.top_db - now.bottom_db
        if key in ("up", "down"):
            top += _LEVEL_STEP_DB if key == "up" else -_LEVEL_STEP_DB
        else:
            span += -_LEVEL_STEP_DB if key == "[" else _LEVEL_STEP_DB
            span = min(max(span, _SPAN_MIN_DB), _SPAN_MAX_DB)
        top = min(max(top, _LOWEST_DB + span), _HIGHEST_DB)
        self.levels = LevelRange(top - span, top)


def _moved(span: Span, key: str) -> Span:
    """Zoom about the middle, or move by a quarter, within the whole axis."""
    first, last = span
    width = last - first
    if key in ("left", "right"):
        step = width * (_PAN if key == "right" else -_PAN)
        first = min(max(first + step, 0.0), 1.0 - width)
        return first, first + width
    visible = width * _ZOOM if key == "-" else width / _ZOOM
    visible = min(max(visible, 1.0 / _ZOOM_MAX), 1.0)
    first = min(max((first + last - visible) / 2.0, 0.0), 1.0 - visible)
    return first, first + visible


def _fitting(shown: Sequence[Float64Array]) -> LevelRange | None:
    """Choose tens of decibels that contain nearly all visible levels; None if all is silent."""
    if not shown:
        return None
    levels = np.concatenate(shown)
    levels = levels[levels > FLOOR_DBFS]
    if not len(levels):
        return None
    step = _LEVEL_STEP_DB
    top = math.ceil(float(levels.max()) / step) * step
    bottom = math.floor(float(np.percentile(levels, _AUTO_PERCENTILE)) / step) * step
    return LevelRange(min(bottom, top - _SPAN_MIN_DB), top)
