"""Where the columns of a transfer function go: tables, figures, standard output."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spectrod.apps.measurements.text_file import columns_text, write_text
from spectrod.dsp.units import Float64Array
from spectrod.formats.figure.drawing import write_figure
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.transfer_figure import SweepImpulse, draw_transfer
from spectrod.formats.values.value_writer import FIGURE_SUFFIXES

SUFFIXES = (".csv", *FIGURE_SUFFIXES)
"""Suffixes of files of a transfer function."""


def write_response(
    paths: Sequence[str],
    about: Mapping[str, Any],
    columns: Mapping[str, Float64Array],
    look: FigureLook,
    impulse: SweepImpulse | None = None,
) -> None:
    """Write a transfer function to files, or without any to standard output.

    Parameters
    ----------
    paths : sequence of str
        With suffixes of ``SUFFIXES``.
    about : mapping of str to object
        Comments.
    columns : mapping of str to (n,) float64
        Columns by name.
    look : FigureLook
        Of figures.
    impulse : SweepImpulse, optional
        Drawn in figures.

    Raises
    ------
    StorageError
        If a file cannot be written.
    """
    text = columns_text(about, list(columns), list(columns.values()))
    for path in map(Path, paths):
        if path.suffix.lower() in FIGURE_SUFFIXES:
            write_figure(path, lambda: draw_transfer(about, columns, look, impulse))
        else:
            write_text(path, text)
    if not paths:
        sys.stdout.write(text)
