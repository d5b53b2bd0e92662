"""Spectrogram pyramids: minimum, mean and maximum per cell, from milliseconds to days."""

from spectrod.formats.pyramid.reader import Columns, PyramidReader
from spectrod.formats.pyramid.writer import PyramidOptions, PyramidWriter

__all__ = ["Columns", "PyramidOptions", "PyramidReader", "PyramidWriter"]
