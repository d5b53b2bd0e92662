"""Sound levels in the time domain: weightings as filters, levels, loudness.

The settings import this package at every start: the names below load their modules on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectrod.measure.levels.level_meter import LevelFlag, LevelMeter, LevelRow
    from spectrod.measure.levels.level_quantities import LevelQuantity, parse_quantity
    from spectrod.measure.levels.octave_bank import OctaveMeter, OctaveRow
    from spectrod.measure.levels.octave_filters import OctaveFilter

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
    "LevelFlag": "level_meter",
    "LevelMeter": "level_meter",
    "LevelQuantity": "level_quantities",
    "LevelRow": "level_meter",
    "OctaveFilter": "octave_filters",
    "OctaveMeter": "octave_bank",
    "OctaveRow": "octave_bank",
    "parse_quantity": "level_quantities",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
