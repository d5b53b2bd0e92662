"""Sound levels in the time domain: weightings as filters, levels, loudness."""

from spectrod.levels.meter import LevelFlag, LevelMeter, LevelRow
from spectrod.levels.quantities import LevelQuantity, parse_quantity

__all__ = ["LevelFlag", "LevelMeter", "LevelQuantity", "LevelRow", "parse_quantity"]
