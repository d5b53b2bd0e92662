"""Axes of frequency, and spectra with no more points than an axis can show."""

from typing import Any, Final

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.lib.optional_packages import need

COLUMNS_MAX: Final = 4096
"""Parts of an axis that are drawn by their extremes where they have several points."""
_LOG_RATIO_MIN = 5.0
"""Least ratio of the ends of a logarithmic axis; less has too few round frequencies."""
SMOOTHING_OCTAVE = 12
"""Smoothed lines are means over this part of an octave."""
_POINTS_MAX = 480
_MULTIPLES = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
_LABEL_IN, _MARGINS_IN = 0.4, 0.8
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class SpectrumAxis:
    """Horizontal axis of frequency, logarithmic if its ends are positive and far enough apart.

    Parameters
    ----------
    low_hz, high_hz : float
        Its ends [Hz].
    """

    def __init__(self, low_hz: float, high_hz: float) -> None:
        self._low_hz, self._high_hz = low_hz, high_hz
        self.is_log = low_hz > 0.0 and high_hz >= _LOG_RATIO_MIN * low_hz

    def share(self, frequencies: Float64Array) -> Float64Array:
        """Return where frequencies are, 0 to 1 from end to end, (n,)."""
        scale = np.log if self.is_log else np.asarray
        low, high = scale(self._low_hz), scale(self._high_hz)
        return np.asarray((scale(frequencies) - low) / (high - low))

    def line(
        self, frequencies: Float64Array, values: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the points of a line, at most ``2 * COLUMNS_MAX``.

        Parameters
        ----------
        frequencies : (n,) float64
            Ascending [Hz].
        values : (n,) float64

        Returns
        -------
        x, y : (points,) float64
            All points on the axis, or of each part of it the lowest value and the highest.
        """
        within = (frequencies >= self._low_hz) & (frequencies <= self._high_hz)
        x, y = frequencies[within], np.where(np.isfinite(values), values, np.nan)[within]
        if len(x) <= 2 * COLUMNS_MAX:
            return x, y
        part = np.minimum(COLUMNS_MAX - 1, np.floor(self.share(x) * COLUMNS_MAX))
        starts = np.flatnonzero(np.diff(part, prepend=-1.0))
        ends = np.append(starts[1:], len(x)) - 1
        extremes = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
        return np.stack([x[starts], x[ends]], axis=1).ravel(), np.stack(extremes, axis=1).ravel()

    def _labelled(self, panel: Any) -> tuple[float, ...]:
        """Return the multiples of powers of ten whose labels a panel has room for."""
        n_decades = np.log10(self._high_hz / self._low_hz)
        room = (panel.figure.get_figwidth() - _MARGINS_IN) / _LABEL_IN
        return next((one for one in _MULTIPLES if len(one) * n_decades <= room), _MULTIPLES[-1])

    def label(self, panel: Any, *, has_labels: bool = True) -> None:
        """Set scale, limits and ticks of a panel, with or without labels."""
        ticker = need("matplotlib.ticker", "plot")
        if self.is_log:
            panel.set_xscale("log")
            panel.xaxis.set_major_locator(
                ticker.LogLocator(subs=self._labelled(panel), numticks=99)
            )
            panel.xaxis.set_minor_locator(ticker.LogLocator(subs=np.arange(1.0, 10.0), numticks=99))
            panel.xaxis.set_minor_formatter(ticker.NullFormatter())
        panel.xaxis.set_major_formatter(ticker.FuncFormatter(_tick_text))
        panel.set_xlim(self._low_hz, self._high_hz)
        panel.tick_params(labelbottom=has_labels)
        panel.set_xlabel("frequency [Hz]" if has_labels else "")


def smoothed_db(
    frequencies: Float64Array, levels_db: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return a line through means of power over 1/12 octave about each of its points.

    Parameters
    ----------
    frequencies : (n,) float64
        Ascending [Hz].
    levels_db : (n,) float64
        Levels; those that are NaN have no part in means, and stay NaN [dB].

    Returns
    -------
    x, y : (points,) float64
        Frequencies out of the given ones, closer than the width of a mean [Hz], and levels [dB].
    """
    is_known = ~np.isnan(levels_db)
    power = np.where(is_known, 10.0 ** (np.where(is_known, levels_db, 0.0) / 10.0), 0.0)
    sums = np.concatenate([[0.0], np.cumsum(power)])
    counts = np.concatenate([[0], np.cumsum(is_known)])
    lowest = frequencies[np.searchsorted(frequencies, 0.0, side="right")]
    wanted = np.geomspace(lowest, frequencies[-1], _POINTS_MAX)
    chosen = np.unique(np.minimum(np.searchsorted(frequencies, wanted), len(frequencies) - 1))
    x, half = frequencies[chosen], 2.0 ** (0.5 / SMOOTHING_OCTAVE)
    first = np.searchsorted(frequencies, x / half, side="left")
    stop = np.searchsorted(frequencies, x * half, side="right")
    with np.errstate(divide="ignore", invalid="ignore"):
        y = 10.0 * np.log10((sums[stop] - sums[first]) / (counts[stop] - counts[first]))
    return x, np.where(is_known[chosen], y, np.nan)


def _tick_text(hz: float, _position: int | None) -> str:
    # A function of the module, since a figure with a lambda cannot be pickled.
    return frequency_text(hz)


def frequency_text(hz: float) -> str:
    """Return a frequency as 31.5, 2k or 433.92M."""
    for factor, prefix in _PREFIXES:
        if abs(hz) >= factor:
            return f"{hz / factor:.9g}{prefix}"
    return f"{hz:.9g}"
