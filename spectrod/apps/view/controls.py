"""Keys that control the picture: levels, frequencies, holds, lists, pause, help."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from spectrod.apps.view.axes import ALL, LevelRange, Span, level_range
from spectrod.apps.view.history import PERIODS_S
from spectrod.apps.view.holds import HoldKind
from spectrod.apps.view.scales import AXIS_KINDS, AxisKind
from spectrod.dsp.ballistics import HOLD_FOREVER, Ballistics
from spectrod.dsp.units import FLOOR_DBFS, Float64Array
from spectrod.lib.errors import ConfigError

ARROWS: Final = ("up", "down", "right", "left")
"""Names of these keys."""

HELP: Final = (
    ("q", "quit"),
    ("1-9, tab", "channel, next channel"),
    ("o", "overlay all channels"),
    ("p", "next product"),
    ("b", "bars or line"),
    ("m, n, v", "max hold, min hold, average"),
    ("c", "reset holds"),
    ("l", "list of peaks"),
    ("f", "next frequency axis"),
    ("+, -", "zoom frequencies in or out"),
    ("left, right", "pan frequencies down or up"),
    ("up, down", "level range up or down"),
    ("[, ]", "narrower or wider level range"),
    ("a, A", "fit level range: once, always"),
    ("<, >", "slower or faster waterfall"),
    ("g", "waterfall of pixels or characters"),
    ("space", "pause or resume"),
    ("r", "reset levels, frequencies and peaks"),
    ("Ctrl-L", "redraw"),
    ("?", "show or hide this help"),
)
"""Keys and their functions."""

HOLD_KEYS: Final[Mapping[str, HoldKind]] = {"m": "max", "n": "min", "v": "mean"}

_LEVEL_STEP_DB = 10.0
_SPAN_MIN_DB, _SPAN_MAX_DB = 20.0, 240.0
_LOWEST_DB, _HIGHEST_DB = -300.0, 100.0
_AUTO_PERCENTILE = 5.0
_AUTO_SLACK_DB = 15.0
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
    is_fitting : bool
        Whether the levels follow the spectrum.
    span : Span
        Visible part of the frequencies.
    axis : AxisKind
        Scale of the frequencies of a one-sided spectrum.
    holds : frozenset of HoldKind
        Holds that are shown.
    ballistics : Ballistics
        How they decay; constant.
    is_line, is_overlaid, is_listing, is_pixels : bool
        Whether the spectrum is a line instead of bars, all channels are shown, peaks are listed,
        and the waterfall is of pixels where the terminal shows them.
    period_s : float
        Time that a row of the waterfall covers [s].
    is_paused, is_helping : bool
        Whether the picture is paused, and whether help is shown instead.
    """

    levels: LevelRange | None = None
    is_fitting: bool = False
    span: Span = ALL
    axis: AxisKind = "log"
    holds: frozenset[HoldKind] = frozenset()
    ballistics: Ballistics = HOLD_FOREVER
    is_line: bool = False
    is_overlaid: bool = False
    is_listing: bool = False
    is_pixels: bool = True
    period_s: float = PERIODS_S[1]
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
        if key in _SWITCHES:
            name = _SWITCHES[key]
            setattr(self, name, not getattr(self, name))
        elif key in HOLD_KEYS:
            self.holds ^= {HOLD_KEYS[key]}
        elif key == "r":
            self.levels, self.is_fitting, self.span = None, False, ALL
        elif key == "f":
            self.axis = AXIS_KINDS[(AXIS_KINDS.index(self.axis) + 1) % len(AXIS_KINDS)]
        elif key in ("<", ">"):
            self.period_s = _next_period_s(self.period_s, 1 if key == "<" else -1)
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

    def follow(self, shown: Sequence[Float64Array]) -> None:
        """Fit the levels, when they follow the spectrum, unless they nearly fit."""
        fitting = _fitting(shown) if self.is_fitting else None
        if fitting is None:
            return
        now = self.levels
        ends = [] if now is None else [
            (now.top_db, fitting.top_db), (now.bottom_db, fitting.bottom_db)
        ]  # fmt: skip
        is_clipped = now is None or fitting.top_db > now.top_db
        if is_clipped or any(abs(one - other) > _AUTO_SLACK_DB for one, other in ends):
            self.levels = fitting

    def _change_levels(self, key: str, unit: str, shown: Sequence[Float64Array]) -> None:
        self.is_fitting = False
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


def check_levels(levels: LevelRange) -> LevelRange:
    """Return levels that the keys could have chosen.

    Raises
    ------
    ConfigError
        If they are out of bounds.
    """
    span = levels.top_db - levels.bottom_db
    in_bounds = levels.bottom_db >= _LOWEST_DB and levels.top_db <= _HIGHEST_DB
    if not (in_bounds and _SPAN_MIN_DB <= span <= _SPAN_MAX_DB):
        raise ConfigError(
            f"must lie within {_LOWEST_DB:g} to {_HIGHEST_DB:g} dB, {_SPAN_MIN_DB:g} to "
            f"{_SPAN_MAX_DB:g} dB apart"
        )
    return levels


_SWITCHES: Final = {
    "?": "is_helping",
    "h": "is_helping",
    " ": "is_paused",
    "b": "is_line",
    "o": "is_overlaid",
    "l": "is_listing",
    "A": "is_fitting",
    "g": "is_pixels",
}
"""Attributes of ``Look`` that a key turns on and off."""


def _next_period_s(period_s: float, step: int) -> float:
    """Return the next longer or shorter time of a row, within bounds."""
    here = min(range(len(PERIODS_S)), key=lambda k: abs(PERIODS_S[k] - period_s))
    return PERIODS_S[min(max(here + step, 0), len(PERIODS_S) - 1)]


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
