"""Rows of any scaling as the two linear forms that measurements need: tones and densities."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError


def require_bins(spec: SpectrumSpec, what: str, *, unweighted: bool = False) -> None:
    """Check that rows hold powers of bins.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the rows.
    what : str
        What is to be measured, in the plural, for the text of the error.
    unweighted : bool
        Whether a frequency weighting is an error too.

    Raises
    ------
    ConfigError
        For complex spectra, bands, channels of different units, and a weighting if that is an
        error.
    """
    if spec.output != "power":
        raise ConfigError(f"output={spec.output!r}: {what} are measured in spectra of power")
    if spec.bands:
        raise ConfigError(f"bands={spec.bands!r}: {what} are measured in bins, without bands")
    if unweighted and spec.weighting != "Z":
        raise ConfigError(f"weighting={spec.weighting!r}: {what} are measured unweighted, with 'Z'")
    if len(set(spec.scale.units)) > 1:
        raise ConfigError(
            f"calibration: {what} need one unit of all channels, not {spec.scale.unit}"
        )


def as_rows(values: ArrayLike, spec: SpectrumSpec) -> NDArray[Any]:
    """Check the shape of rows.

    Parameters
    ----------
    values : (bins,), (rows, bins) or (rows, signals, bins) array-like
        Values in ``spec.scale.unit``.
    spec : SpectrumSpec
        Definition of the rows.

    Returns
    -------
    rows : (rows, signals, bins) float32 or float64
        A view, if the input is an array of one of these types.

    Raises
    ------
    InputError
        If the shape is another, or the values are not real numbers.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise InputError(f"rows of dtype {array.dtype}: must be real numbers")
    if array.ndim not in (1, 2, 3) or array.shape[-1] != spec.n_bins:
        raise InputError(
            f"rows of shape {array.shape}: must be (bins,), (rows, bins) or (rows, signals, bins) "
            f"with {spec.n_bins} bins"
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.ndim == 3:
        return array
    return array[:, np.newaxis] if array.ndim == 2 else array[np.newaxis, np.newaxis]


def one_row(values: ArrayLike, spec: SpectrumSpec) -> NDArray[Any]:
    """Check a single row, (bins,); raises InputError for others, and if a value is not finite."""
    rows = as_rows(values, spec)
    if np.ndim(values) != 1:
        raise InputError(f"row of shape {np.shape(values)}: must be one row, (bins,)")
    row: NDArray[Any] = rows[0, 0]
    if not np.isfinite(spec.scale.to_power(row)).all():
        raise InputError("row: holds values that are not finite")
    return row


def to_spectrum(values: NDArray[Any], spec: SpectrumSpec) -> Float64Array:
    """Convert (..., bins) rows to mean squares of tones at their bins, float64.

    Bins at 0 Hz and Nyquist, which are not doubled, hold half of a tone's mean square.
    """
    power = spec.scale.to_power(values.astype(np.float64))
    return power * spec.enbw_hz if spec.scaling == "density" else power


def to_density(values: NDArray[Any], spec: SpectrumSpec) -> Float64Array:
    """Convert (..., bins) rows to power spectral densities, float64, in unit^2/Hz.

    The sum over bins times ``spec.delta_f`` is the mean square of the windowed signal.
    """
    power = spec.scale.to_power(values.astype(np.float64))
    return power if spec.scaling == "density" else power / spec.enbw_hz


@lru_cache(maxsize=16)
def level_spec(spec: SpectrumSpec) -> SpectrumSpec:
    """Return the spec of levels of the same rows: its ``unit`` is the unit of tones' levels."""
    return replace(spec, scaling="dbfs", product="")


def tone_level(power: ArrayLike, spec: SpectrumSpec) -> Float64Array:
    """Convert mean squares to levels in ``level_spec(spec).scale.unit``; zero is minus infinity."""
    reference = level_spec(spec).scale.reference_power
    with np.errstate(divide="ignore"):
        return np.asarray(10.0 * np.log10(np.asarray(power, np.float64) / reference))


def full_scale_sine_db(spec: SpectrumSpec) -> float:
    """Return the level of a full-scale sine [unit of ``level_spec``]; NaN if channels differ.

    It is 0 dBFS without a calibration.
    """
    if spec.scale.calibrated is None:
        return 0.0
    levels = {one.full_scale_db if one else np.nan for one in spec.calibration}
    return levels.pop() - 10.0 * np.log10(2.0) if len(levels) == 1 else np.nan
