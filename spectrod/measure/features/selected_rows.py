"""Rows and bins that features are computed from."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.measure.rows import as_rows, require_bins, to_density

_BLOCK_VALUES = 1 << 21
"""Values that are converted to float64 at a time."""


class SelectedRows:
    """Rows of densities within a band, in float64, some at a time.

    Parameters
    ----------
    values : (bins,), (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``, of any scaling.
    spec : SpectrumSpec
        Definition of the rows.
    band_hz : tuple of float, optional
        Lowest and highest frequency that counts [Hz]; by default all but 0 Hz of one-sided rows.
    what : str
        What is computed, in the plural, for the texts of errors.

    Attributes
    ----------
    frequencies : (n,) float64
        Frequencies of the chosen bins [Hz].
    shape : tuple of int
        Rows and signals.

    Raises
    ------
    ConfigError, InputError
        If the spec or the shape breaks a rule, or no bin is in the band.
    """

    def __init__(
        self,
        values: ArrayLike,
        spec: SpectrumSpec,
        band_hz: tuple[float, float] | None,
        what: str,
    ) -> None:
        require_bins(spec, what)
        self._spec, self._rows = spec, as_rows(values, spec)
        self._chosen = _bins(spec, band_hz)
        self.frequencies = spec.bin_frequencies[self._chosen]
        self.shape = self._rows.shape[:2]

    def blocks(self, step_rows: int = 1) -> Iterator[tuple[int, Float64Array]]:
        """Yield the first row, and densities (rows, signals, n), of a multiple of step_rows."""
        n = max(1, _BLOCK_VALUES // max(1, self._rows[:1].size) // step_rows) * step_rows
        for first in range(0, len(self._rows), n):
            rows = self._rows[first : first + n]
            yield first, to_density(rows[..., self._chosen], self._spec)


def _bins(spec: SpectrumSpec, band_hz: tuple[float, float] | None) -> slice:
    frequencies = spec.bin_frequencies
    if band_hz is None:
        return slice(0 if spec.iq else 1, spec.n_bins)
    low, high = band_hz
    if not -np.inf < low < high < np.inf:
        raise ConfigError(f"band_hz=({low:g}, {high:g}): must be two ascending frequencies")
    found: NDArray[np.int64] = np.flatnonzero((frequencies >= low) & (frequencies <= high))
    if len(found) == 0:
        raise ConfigError(
            f"band_hz=({low:g}, {high:g}): has no bin: bins are {spec.delta_f:g} Hz apart, from "
            f"{frequencies[0]:g} to {frequencies[-1]:g} Hz"
        )
    return slice(int(found[0]), int(found[-1]) + 1)
