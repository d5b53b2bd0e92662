"""Spectral kurtosis: how much the power of each bin varies over frames, against Gaussian noise."""

import numpy as np
from numpy.typing import ArrayLike

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.features.indices import ratios
from spectrod.measure.features.selected_rows import SelectedRows


class KurtosisSums:
    """Sums of the powers of frames and of their squares, from which the kurtosis follows.

    Memory is two numbers for each value, for any number of frames.

    Parameters
    ----------
    shape : tuple of int
        Shape of a frame.

    Attributes
    ----------
    n_frames : int
        Frames so far.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n_frames = 0
        self._powers, self._squares = np.zeros(shape), np.zeros(shape)

    def add(self, power: Float64Array) -> None:
        """Add frames, (frames, ...) powers."""
        self._powers += power.sum(axis=0)
        self._squares += np.square(power).sum(axis=0)
        self.n_frames += len(power)

    def values(self) -> Float64Array:
        """Return the kurtosis of each value; NaN of fewer than two frames, and without power."""
        m = self.n_frames
        if m < 2:
            return np.full(self._powers.shape, np.nan)
        ratio = ratios(self._squares, np.square(self._powers))
        found = m / (m - 1.0) * ((m + 1.0) * ratio - 2.0)
        return np.where(self._powers > 0.0, found, np.nan)


@naming_arrays
def spectral_kurtosis(
    values: ArrayLike, spec: SpectrumSpec, *, band_hz: tuple[float, float] | None = None
) -> tuple[Float64Array, Float64Array]:
    """Compute the spectral kurtosis of each bin over all rows.

    Parameters
    ----------
    values : (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``, of any scaling; frames without averaging.
    spec : SpectrumSpec
        Definition of the rows.
    band_hz : tuple of float, optional
        Lowest and highest frequency [Hz]; by default all but 0 Hz of one-sided rows.

    Returns
    -------
    frequencies : (n,) float64
        Frequency of each bin [Hz].
    kurtosis : (signals, n) float64
        0 of stationary Gaussian noise, -1 of a steady tone, above 0 of what comes and goes [1]; of
        M independent frames it is at most M, and of such noise its standard deviation is about
        2 / sqrt(M). Nyquist, whose power has one degree of freedom, has 1 in noise.

    Raises
    ------
    ConfigError, InputError
        If the spec, the band or the shape breaks a rule, or there are fewer than two rows.

    Notes
    -----
    M / (M - 1) ((M + 1) S2 / S1^2 - 2), with S1 and S2 the sums of the powers and of their squares:
    without bias for Gaussian noise and independent frames [1]_. Powers of overlapping frames are
    correlated, which makes it low, by about the correlation over M.

    References
    ----------
    .. [1] V. Vrabie, P. Granjon and C. Serviere, "Spectral kurtosis: from definition to
       application", IEEE-EURASIP NSIP, 2003.
    .. [2] J. Antoni, "The spectral kurtosis: a useful tool for characterising non-stationary
       signals", Mechanical Systems and Signal Processing 20, 2006.
    """
    selected = SelectedRows(values, spec, band_hz, "features")
    if selected.shape[0] < 2:
        raise InputError(f"{selected.shape[0]} rows: spectral kurtosis needs two or more")
    sums = KurtosisSums((selected.shape[1], len(selected.frequencies)))
    for _, power in selected.blocks():
        sums.add(power)
    return selected.frequencies, sums.values()
