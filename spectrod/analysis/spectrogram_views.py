"""What notebooks, xarray and matplotlib get of a spectrogram."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from spectrod.dsp.units import power_to_level
from spectrod.dsp.value_names import long_name, values_name
from spectrod.lib.errors import ConfigError
from spectrod.lib.notebook import png_of, show_figure
from spectrod.lib.optional_packages import need

if TYPE_CHECKING:
    from spectrod.analysis.spectrogram import Spectrogram

_DYNAMIC_RANGE_DB = 100.0
_PIXELS_MAX = 2000
"""Most rows and most values that are drawn; more are averaged, since a picture has fewer pixels."""


def summary(found: "Spectrogram") -> str:
    """Return one line: sizes, ranges and unit."""
    spec = found.spec
    sizes = f"{len(found.f)} values of {len(found.t)} rows"
    signals = f"{found.values.shape[0]} signals, " if found.values.ndim == 3 else ""
    times = f"{found.t[0]:.6g} to {found.t[-1]:.6g} s"
    return (
        f"<Spectrogram: {signals}{sizes}, {found.f[0]:.6g} to {found.f[-1]:.6g} Hz, {times}, "
        f"{long_name(spec)} in {found.unit}, {spec.window} window of {spec.win_length}, "
        f"hop {spec.hop}>"
    )


_TIME = {"units": "s", "long_name": "time of the middle of a frame since the first sample"}
"""Files and ``open_dataset`` have the time of a row's first sample, as their names say."""


def data_array(found: "Spectrogram") -> Any:
    """Return the values as ``xarray.DataArray``; see ``Spectrogram.to_xarray``."""
    xarray = need("xarray", "xarray")
    spec = found.spec
    dims = ("channel", "frequency", "time")[-found.values.ndim :]
    frequency = {"units": "Hz", "standard_name": "sound_frequency", "long_name": "frequency"}
    if spec.iq:
        frequency = {"units": "Hz", "long_name": "frequency"}
    return xarray.DataArray(
        found.values,
        {
            "frequency": ("frequency", found.f, frequency),
            "time": ("time", found.t, _TIME),
        },
        dims,
        values_name(spec),
        {
            "long_name": long_name(spec),
            "units": found.unit,
            "sampling_frequency": spec.fs,
            "window": spec.window,
            "win_length": spec.win_length,
            "hop": spec.hop,
            "nfft": spec.nfft,
        },
    )


def draw(found: "Spectrogram", ax: Any = None, signal: int = 0) -> Any:
    """Draw one signal with matplotlib; see ``Spectrogram.plot``."""
    need("matplotlib", "plot")
    if ax is None:
        figure = import_module("matplotlib.figure").Figure((8.0, 4.0), layout="constrained")
        ax = show_figure(figure.subplots(), show_figure(figure, figure))
    n_signals = found.values.shape[0] if found.values.ndim == 3 else 1
    if not 0 <= signal < n_signals:
        raise ConfigError(f"must be 0 to {n_signals - 1}", signal=signal)
    values = found.values[signal] if found.values.ndim == 3 else found.values
    scale = found.spec.scale
    power = np.square(np.abs(values)) if scale.output == "complex" else scale.to_power(values)
    f, t, power = _pooled(found.f, found.t, power)
    level = power_to_level(power, scale.reference_power)
    top = float(level.max(initial=-np.inf, where=np.isfinite(level)))
    top = top if np.isfinite(top) else 0.0
    level = np.maximum(level, top - _DYNAMIC_RANGE_DB)
    mesh = ax.pcolormesh(t, f, level, shading="nearest", rasterized=True)
    ax.set(xlabel="time [s]", ylabel="frequency [Hz]")
    if found.spec.band_table is not None and f[0] > 0.0:  # millidecades begin at 0 Hz
        ax.set_yscale("log")
    ax.figure.colorbar(mesh, ax=ax, label=f"{long_name(found.spec)} [{scale.level_unit}]")
    return ax


def png(found: "Spectrogram") -> bytes | None:
    """Return a picture of the first signal as PNG; None without matplotlib."""
    if find_spec("matplotlib") is None:
        return None
    return png_of(draw(found).figure)


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
