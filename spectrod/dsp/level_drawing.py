"""Levels drawn with matplotlib: over frequency, and over time and frequency."""

from typing import Any

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.lib.notebook import axes_for

DYNAMIC_RANGE_DB = 100.0
"""Levels are drawn down to this below the highest [dB]."""


def draw_spectrum(
    ax: Any, f: Float64Array, level: Float64Array, label: str, *, is_log: bool = False
) -> Any:
    """Draw levels over frequency.

    Parameters
    ----------
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: the axes of a new figure.
    f, level : (n,) float64
        Frequencies [Hz], and their levels [dB].
    label : str
        Of the axis of levels.
    is_log : bool
        Whether the axis of frequencies is logarithmic.

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    UnavailableError
        If matplotlib is not installed: ``pip install 'spectrod[plot]'``.
    """
    ax = axes_for(ax)
    ax.plot(f, bounded(level), linewidth=1.0)
    ax.set(xlabel="frequency [Hz]", ylabel=label)
    ax.margins(x=0.0)
    if is_log:
        ax.set_xscale("log")
    return ax


def draw_spectra(
    ax: Any,
    f: Float64Array,
    t: Float64Array,
    level: Float64Array,
    label: str,
    *,
    is_log: bool = False,
) -> Any:
    """Draw levels over time and frequency; see ``draw_spectrum``.

    Parameters
    ----------
    t : (rows,) float64
        Middle of each row [s]; at least two.
    level : (n, rows) float64
        Levels [dB].
    """
    ax = axes_for(ax)
    mesh = ax.pcolormesh(t, f, bounded(level), shading="nearest", rasterized=True)
    ax.set(xlabel="time [s]", ylabel="frequency [Hz]")
    if is_log:
        ax.set_yscale("log")
    ax.figure.colorbar(mesh, ax=ax, label=label)
    return ax


def bounded(level: Float64Array) -> Float64Array:
    """Return levels that are at most ``DYNAMIC_RANGE_DB`` below the highest finite one."""
    top = float(level.max(initial=-np.inf, where=np.isfinite(level)))
    top = top if np.isfinite(top) else 0.0
    return np.maximum(level, top - DYNAMIC_RANGE_DB)
