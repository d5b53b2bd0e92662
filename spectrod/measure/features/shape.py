"""The shape of spectra: centroid, spread, roll-off, flatness, flux, entropy, crest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.features.selected_rows import SelectedRows


@dataclass(frozen=True, slots=True, eq=False)
class SpectralShape:
    """Features of each row, (rows, signals) float64; NaN of rows without any power.

    All are of power, P, over the n bins of the band; p is P over its sum.

    Attributes
    ----------
    centroid_hz : (rows, signals) float64
        Mean frequency, the sum of f p [Hz].
    spread_hz : (rows, signals) float64
        Standard deviation around it [Hz].
    rolloff_hz : (rows, signals) float64
        Frequency of the first bin at which ``rolloff_share`` of the power is reached [Hz].
    flatness : (rows, signals) float64
        Geometric over arithmetic mean of P, 0 to 1 [1].
    crest : (rows, signals) float64
        Maximum over arithmetic mean of P, 1 to n [1].
    entropy : (rows, signals) float64
        Shannon entropy of p over that of n equal bins, 0 to 1 [1].
    flux : (rows, signals) float64
        Euclidean distance of sqrt(p) from that of the row before, 0 to sqrt(2) [1]; NaN in the
        first row.
    rolloff_share : float
        Share of the power below the roll-off [1].

    References
    ----------
    .. [1] G. Peeters, "A large set of audio features for sound description", IRCAM, 2004; there of
       amplitudes, here of power.
    .. [2] ISO/IEC 15938-4 (MPEG-7 audio): flatness of power.
    .. [3] E. Scheirer and M. Slaney, "Construction and evaluation of a robust multifeature
       speech/music discriminator", ICASSP 1997: flux, roll-off.
    """

    centroid_hz: Float64Array
    spread_hz: Float64Array
    rolloff_hz: Float64Array
    flatness: Float64Array
    crest: Float64Array
    entropy: Float64Array
    flux: Float64Array
    rolloff_share: float


@naming_arrays
def spectral_shape(
    values: ArrayLike,
    spec: SpectrumSpec,
    *,
    band_hz: tuple[float, float] | None = None,
    rolloff_share: float = 0.85,
) -> SpectralShape:
    """Compute the features of each row.

    Parameters
    ----------
    values : (bins,), (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``, of any scaling.
    spec : SpectrumSpec
        Definition of the rows: bins of power. A weighting applies.
    band_hz : tuple of float, optional
        Lowest and highest frequency that counts [Hz]; by default all but 0 Hz of one-sided rows.
    rolloff_share : float
        Share of the power below the roll-off, above 0 to 1 [1].

    Returns
    -------
    shape : SpectralShape

    Raises
    ------
    ConfigError, InputError
        If a parameter, the spec or the shape breaks a rule.
    """
    if not 0.0 < rolloff_share <= 1.0:
        raise ConfigError(f"rolloff_share={rolloff_share:g}: must be above 0 and at most 1")
    selected = SelectedRows(values, spec, band_hz, "features")
    found = np.full((7, *selected.shape), np.nan)
    before: Float64Array | None = None
    for first, power in selected.blocks():
        rows = slice(first, first + len(power))
        total = power.sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = power / total[..., np.newaxis]
        found[:6, rows] = _features(power, shares, selected.frequencies, rolloff_share)
        root = np.sqrt(shares)
        found[6, rows] = _flux(root, before)
        before = root[-1]
    centroid, spread, rolloff, flatness, crest, entropy, flux = found
    return SpectralShape(centroid, spread, rolloff, flatness, crest, entropy, flux, rolloff_share)


def _features(
    power: Float64Array, shares: Float64Array, frequencies: Float64Array, rolloff_share: float
) -> Float64Array:
    """Return the features but the flux, (6, rows, signals)."""
    n = len(frequencies)
    centroid = shares @ frequencies
    deviation = frequencies - centroid[..., np.newaxis]
    spread = np.sqrt((shares * deviation**2).sum(axis=-1))
    is_known = np.isfinite(centroid)
    # Rounding must not keep the whole power from being reached.
    reached = np.cumsum(shares, axis=-1) >= rolloff_share * (1.0 - 1e-12)
    rolloff = np.where(is_known, frequencies[np.argmax(reached, axis=-1)], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        flatness = np.exp(np.log(power).mean(axis=-1)) / power.mean(axis=-1)
        terms = np.where(shares == 0.0, 0.0, -shares * np.log(shares))
        entropy = terms.sum(axis=-1) / np.log(n) if n > 1 else np.where(is_known, 0.0, np.nan)
    crest = shares.max(axis=-1) * n
    return np.array([centroid, spread, rolloff, flatness, crest, entropy])


def _flux(root: Float64Array, before: Float64Array | None) -> Float64Array:
    previous = np.concatenate([root[:1] * np.nan if before is None else before[np.newaxis], root])
    return np.asarray(np.sqrt(np.square(np.diff(previous, axis=0)).sum(axis=-1)))
