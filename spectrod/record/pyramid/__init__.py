"""Spectrogram pyramids: minimum, mean and maximum per cell, from milliseconds to days."""

from spectrod.record.pyramid.reader import Columns, PyramidReader
from spectrod.record.pyramid.writer import PyramidOptions, PyramidWriter

__all__ = ["Columns", "PyramidOptions", "PyramidReader", "PyramidWriter"]
