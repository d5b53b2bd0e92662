"""Spectrogram pyramids: minimum, mean and maximum per cell, from milliseconds to days."""

from spectrod.formats.pyramid.reader import Cells, Columns, PyramidReader
from spectrod.formats.pyramid.writer import PyramidOptions, PyramidWriter

__all__ = ["Cells", "Columns", "PyramidOptions", "PyramidReader", "PyramidWriter"]
