"""The figure of tones."""

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.output_formats import load

if TYPE_CHECKING:
    from spectrod.formats.figure.figure_look import FigureLook

_PLOT = "spectrod.formats.figure.plots:plot_tones"
"""Figures are a room above this one, and loaded by name when one is drawn."""


class PlottedTones:
    """Tones, or the distortion of one, which can be drawn."""

    __slots__ = ()

    def plot(
        self,
        look: "FigureLook | None" = None,
        *,
        values: ArrayLike | None = None,
        spec: SpectrumSpec | None = None,
    ) -> Any:
        """Draw the figure of ``spectrod.formats.figure.plots.plot_tones``.

        Parameters
        ----------
        look : FigureLook, optional
            Title, size and resolution.
        values : (bins,), (rows, bins) or (rows, signals, bins) array-like, optional
            The rows that were measured, whose mean is drawn behind the tones.
        spec : SpectrumSpec, optional
            Definition of the rows; must be given with them.

        Returns
        -------
        figure : matplotlib.figure.Figure
            A notebook shows it where a cell ends with it; pyplot does not.

        Raises
        ------
        ConfigError, InputError
            See ``plot_tones``.
        UnavailableError
            If matplotlib is not installed: ``pip install 'spectrod[plot]'``.
        """
        return load(_PLOT)(self, values=values, spec=spec, look=look)
