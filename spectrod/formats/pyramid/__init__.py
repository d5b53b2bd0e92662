"""Spectrogram pyramids: minimum, mean and maximum per cell, from milliseconds to days."""

from spectrod.formats.pyramid.pyramid_reader import Cells, Columns, PyramidReader
from spectrod.formats.pyramid.pyramid_writer import PyramidOptions, PyramidWriter

__all__ = ["Cells", "Columns", "PyramidOptions", "PyramidReader", "PyramidWriter"]
