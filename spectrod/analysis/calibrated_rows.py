"""Factors of rows whose signals have different calibrations.

Stages compute all signals with one scale and one table of weights. What all signals share is in
these; only differences between signals are applied to finished rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import FLOOR_DBFS, Float64Array


class CalibratedRows:
    """Applies the differences between the calibrations of signals; mostly there are none.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        self._is_level = spec.scaling == "dbfs" and spec.output == "power"
        factors = _factors(spec)
        if spec.output == "complex":
            factors = np.sqrt(factors)
        differs = not np.array_equal(factors, np.ones_like(factors))
        changes = 10.0 * np.log10(factors) if self._is_level else factors
        self._changes = changes.astype(np.float32) if differs else None
        # Sensitivities only lower levels, and silence stays the floor; a response may raise them.
        self._raises = bool(changes.max() > 0.0)

    def apply(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows, (rows, signals, computed values), in the units of their signals."""
        if self._changes is None:
            return rows
        if not self._is_level:
            return np.asarray(rows * self._changes, rows.dtype)
        levels = np.asarray(rows + self._changes)
        np.maximum(levels, np.float32(FLOOR_DBFS), out=levels)
        if self._raises:
            levels[rows <= FLOOR_DBFS] = FLOOR_DBFS
        return levels


def _factors(spec: SpectrumSpec) -> Float64Array:
    """Return factors of power, (signals, 1) or (signals, bins), beyond those of the stages."""
    relative: Float64Array = spec.scale.signal_factors / spec.scale.signal_factors.max()
    factors = relative[:, np.newaxis]
    # Those of bands are applied before the bins are summed, see ``response_plan``.
    if spec.bands or spec.scale.common_response is not None or not any(spec.scale.responses):
        return factors
    f = spec.bin_frequencies
    ones = np.ones(len(f))
    corrections = [
        one.response.power_factors(f) if one and one.response else ones for one in spec.calibration
    ]
    return factors * np.array(corrections)
