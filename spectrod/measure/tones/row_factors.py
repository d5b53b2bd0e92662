"""Factors over frequency that rows hold: corrections of frequency responses, and weightings.

A window's kernel is that of the samples' own spectrum. Rows whose bins were multiplied each by its
own factor tilt it, which would shift the interpolated frequency. Tones are therefore fitted in rows
without the factors, and have the factor of their own frequency.
"""

from collections.abc import Callable

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.dsp.weighting import power_factors

Factors = Callable[[Float64Array], Float64Array]
"""Returns the factors of power at frequencies (n,) [Hz]."""


def row_factors(spec: SpectrumSpec, signal: int) -> Factors | None:
    """Return the factors over frequency that the rows of a signal hold; None for none."""
    # Rows of any number of signals may be measured by a spec of one.
    calibration = (
        spec.calibration[min(signal, len(spec.calibration) - 1)] if spec.calibration else None
    )
    response = calibration.response if calibration else None
    if response is None and spec.weighting == "Z":
        return None

    def at(frequencies_hz: Float64Array) -> Float64Array:
        factors = np.ones(np.shape(frequencies_hz))
        if response is not None:
            factors *= response.power_factors(frequencies_hz)
        if spec.weighting != "Z":
            factors *= power_factors(spec.weighting, np.abs(frequencies_hz))
        return factors

    return at


def without_factors(
    rows: Float64Array, spec: SpectrumSpec, factors: Factors | None
) -> Float64Array:
    """Return rows, (..., bins), without factors; bins whose factor is 0 are 0."""
    if factors is None:
        return rows
    of_bins = factors(spec.bin_frequencies)
    return np.divide(rows, of_bins, out=np.zeros_like(rows), where=of_bins > 0.0)
