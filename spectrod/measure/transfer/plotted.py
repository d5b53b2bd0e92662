"""The figure of a result of two channels."""

from typing import TYPE_CHECKING, Any

from spectrod.lib.output_formats import load

if TYPE_CHECKING:
    from spectrod.formats.figure.figure_look import FigureLook

_PLOT = "spectrod.formats.figure.plots:plot_transfer"
"""Figures are a room above this one, and loaded by name when one is drawn."""


class Plotted:
    """A transfer function or the response to a sweep, which can be drawn."""

    __slots__ = ()

    def plot(self, look: "FigureLook | None" = None) -> Any:
        """Draw the figure of ``spectrod.formats.figure.plots.plot_transfer``.

        Parameters
        ----------
        look : FigureLook, optional
            Title, size and resolution.

        Returns
        -------
        figure : matplotlib.figure.Figure
            A notebook shows it where a cell ends with it; pyplot does not.

        Raises
        ------
        UnavailableError
            If matplotlib is not installed: ``pip install 'spectrod[plot]'``.
        """
        return load(_PLOT)(self, look=look)
