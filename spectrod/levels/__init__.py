"""Sound levels in the time domain: weightings as filters, levels, loudness."""

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
