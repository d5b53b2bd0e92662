"""Sound levels in the time domain: weightings as filters, levels, loudness.

The settings import this package at every start: the names below load their modules on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectrod.levels.meter import LevelFlag, LevelMeter, LevelRow
    from spectrod.levels.octave_bank import OctaveMeter, OctaveRow
    from spectrod.levels.octave_filters import OctaveFilter
    from spectrod.levels.quantities import LevelQuantity, parse_quantity

__all__ = [
    "LevelFlag",
    "LevelMeter",
    "LevelQuantity",
    "LevelRow",
    "OctaveFilter",
    "OctaveMeter",
    "OctaveRow",
    "parse_quantity",
]

_HOMES = {
    "LevelFlag": "meter",
    "LevelMeter": "meter",
    "LevelQuantity": "quantities",
    "LevelRow": "meter",
    "OctaveFilter": "octave_filters",
    "OctaveMeter": "octave_bank",
    "OctaveRow": "octave_bank",
    "parse_quantity": "quantities",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
