"""Title, size and resolution of figures."""

import re
from dataclasses import dataclass
from typing import Final

from spectrod.lib.errors import ConfigError

WIDTH_IN: Final = 8.0
DPI: Final = 150
_MM_PER_IN = 25.4
_SIDE_MIN_MM, _SIDE_MAX_MM = 50.0, 1000.0
_DPI_MIN, _DPI_MAX = 50, 1200
_PIXELS_MAX = 100_000_000
"""Many viewers refuse larger pictures."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(?:x(\d+(?:\.\d+)?))?(mm|cm|in)?")
_UNITS_IN = {"mm": 1.0 / _MM_PER_IN, "cm": 10.0 / _MM_PER_IN, "in": 1.0}
SIZE_RULE = "must be a width, or WIDTHxHEIGHT, in mm, cm or in: 180, 85x60, 18x12cm, 7x5in"


@dataclass(frozen=True, slots=True)
class FigureLook:
    """What a user chooses of a figure.

    Attributes
    ----------
    title : str or None
        Heading; empty for none, None for that of the measurement.
    width_in : float
        Width, 50 to 1000 mm [inch].
    height_in : float or None
        Height, 50 to 1000 mm; None for as much as the panels need [inch].
    dpi : int
        Pixels per inch of ``.png``, 50 to 1200.

    Raises
    ------
    ConfigError
        If a value breaks its rule.
    """

    title: str | None = None
    width_in: float = WIDTH_IN
    height_in: float | None = None
    dpi: int = DPI

    def __post_init__(self) -> None:
        for name, side_in in (("width", self.width_in), ("height", self.height_in)):
            # NaN breaks the rule as well.
            if side_in is not None and not _SIDE_MIN_MM <= side_in * _MM_PER_IN <= _SIDE_MAX_MM:
                rule = f"must be {_SIDE_MIN_MM:g} to {_SIDE_MAX_MM:g} mm"
                raise ConfigError(f"size: {name} {side_in * _MM_PER_IN:.4g} mm: {rule}")
        if not _DPI_MIN <= self.dpi <= _DPI_MAX:
            raise ConfigError(f"dpi={self.dpi}: must be {_DPI_MIN} to {_DPI_MAX}")

    def size_in(self, needed_in: float) -> tuple[float, float]:
        """Return width and height of a figure whose panels need a height [inch].

        Raises
        ------
        ConfigError
            If it has too many pixels.
        """
        height_in = self.height_in or needed_in
        if self.width_in * height_in * self.dpi**2 > _PIXELS_MAX:
            size = f"{self.width_in * _MM_PER_IN:.0f} x {height_in * _MM_PER_IN:.0f} mm"
            raise ConfigError(f"dpi={self.dpi}: {size} must not exceed {_PIXELS_MAX} pixels")
        return self.width_in, height_in


def parse_size(text: str) -> tuple[float, float | None]:
    """Return width and height [inch] of a text such as ``180x120``; None for no height.

    Raises
    ------
    ConfigError
        If it is none.
    """
    match = _SIZE.fullmatch(text.strip().lower()) if len(text) <= 40 else None
    if match is None:
        raise ConfigError(f"--size {text}: {SIZE_RULE}")
    unit_in = _UNITS_IN[match[3] or "mm"]
    return float(match[1]) * unit_in, None if match[2] is None else float(match[2]) * unit_in
