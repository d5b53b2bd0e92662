"""What matplotlib and xarray get of rows of spectra."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.level_drawing import draw_spectra, draw_spectrum
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array, power_to_level
from spectrod.dsp.value_names import long_name, values_name
from spectrod.lib.errors import ConfigError
from spectrod.lib.optional_packages import need

_PIXELS_MAX = 2000
"""Most rows and most values that are drawn; more are averaged, since a picture has fewer pixels."""
TIME = {"units": "s", "long_name": "time of the middle of a frame since the first sample"}
"""Files and ``open_dataset`` have the time of a row's first sample, as their names say."""


def draw_rows(ax: Any, spec: SpectrumSpec, t: Float64Array, values: NDArray[Any]) -> Any:
    """Draw the levels of one signal: a spectrogram, or the spectrum of one row alone.

    The axis of bands is logarithmic, unless one lies at 0 Hz.

    Parameters
    ----------
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: the axes of a new figure.
    spec : SpectrumSpec
        Description of the values.
    t : (rows,) float64
        Middle of each row [s]; at least one.
    values : (n_values, rows) float32 or complex64

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    UnavailableError
        If matplotlib is not installed: ``pip install 'spectrod[plot]'``.
    """
    scale = spec.scale
    power = np.square(np.abs(values)) if scale.output == "complex" else scale.to_power(values)
    f, t, power = _pooled(spec.frequencies, t, power)
    level = power_to_level(power, scale.reference_power)
    label = f"{long_name(spec)} [{scale.level_unit}]"
    is_log = spec.band_table is not None and f[0] > 0.0  # millidecades begin at 0 Hz
    if len(t) == 1:  # its cell would have no width
        return draw_spectrum(ax, f, level[:, 0], label, is_log=is_log)
    return draw_spectra(ax, f, t, level, label, is_log=is_log)


def check_signal(signal: int, n_signals: int) -> None:
    """Check the number of a signal; raises ConfigError."""
    if not 0 <= signal < n_signals:
        raise ConfigError(f"must be 0 to {n_signals - 1}", signal=signal)


def data_array(
    spec: SpectrumSpec,
    values: NDArray[Any],
    dims: tuple[str, ...],
    coordinates: dict[str, tuple[str, Any, dict[str, str]]],
) -> Any:
    """Return values, which are not copied, as an ``xarray.DataArray`` named as in files.

    Parameters
    ----------
    spec : SpectrumSpec
        Description of the values.
    values : ndarray
    dims : tuple of str
        Names of its axes.
    coordinates : dict
        Dimension, values and attributes of each beside the frequency.

    Raises
    ------
    UnavailableError
        If xarray is not installed: ``pip install 'spectrod[xarray]'``.
    """
    xarray = need("xarray", "xarray")
    frequency = {"units": "Hz", "standard_name": "sound_frequency", "long_name": "frequency"}
    if spec.iq:
        frequency = {"units": "Hz", "long_name": "frequency"}
    return xarray.DataArray(
        values,
        {"frequency": ("frequency", spec.frequencies, frequency), **coordinates},
        dims,
        values_name(spec),
        {
            "long_name": long_name(spec),
            "units": spec.scale.unit,
            "sampling_frequency": spec.fs,
            "window": spec.window,
            "win_length": spec.win_length,
            "hop": spec.hop,
            "nfft": spec.nfft,
        },
    )


def _pooled(f: Any, t: Any, power: Any) -> tuple[Any, Any, Any]:
    """Return means of neighbours where there are more values than a picture has pixels."""
    n_f, n_t = (-(-len(axis) // _PIXELS_MAX) for axis in (f, t))
    means = [_means(axis, n, 0) for axis, n in ((f, n_f), (t, n_t))]
    return means[0], means[1], _means(_means(power, n_f, 0), n_t, 1)


def _means(values: Any, n: int, axis: int) -> Any:
    """Return the mean of each n neighbours along an axis; the last has the rest."""
    if n == 1:
        return values
    starts = np.arange(0, values.shape[axis], n)
    counts = np.diff(np.append(starts, values.shape[axis]))
    shape = (-1, 1) if values.ndim == 2 and axis == 0 else (-1,)
    return np.add.reduceat(values, starts, axis=axis) / counts.reshape(shape)
