"""Pictures of figures of matplotlib in notebooks, where pyplot does not know the figures."""

import io
from functools import partial
from typing import Any, Final

_DPI: Final = 100


def show_figure(shown: Any, figure: Any) -> Any:
    """Return an object that a notebook shows as the picture of a figure; it stays as it is.

    Notebooks draw the figures of pyplot alone, and print the others as text.

    Parameters
    ----------
    shown : matplotlib.figure.Figure or matplotlib.axes.Axes
        What a cell may end with: the figure, or its axes.
    figure : matplotlib.figure.Figure
    """
    shown._repr_png_ = partial(png_of, figure)
    return shown


def png_of(figure: Any) -> bytes:
    """Return a figure as PNG, at 100 pixels per inch."""
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=_DPI)
    return memory.getvalue()
