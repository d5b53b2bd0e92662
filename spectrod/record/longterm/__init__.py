"""Long-term views: what the levels of a long recording were, and how often."""

from spectrod.record.longterm.sink import SPD_SUFFIXES, SpdSink
from spectrod.record.longterm.statistics import LevelStatistics

__all__ = ["SPD_SUFFIXES", "LevelStatistics", "SpdSink"]
