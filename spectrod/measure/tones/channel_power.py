"""Power of channels: occupied bandwidth, power in a band, adjacent channel ratio."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.rows import as_rows, require_bins, to_density

OCCUPIED_SHARE = 0.99
"""Share of the power that an occupied bandwidth holds (ITU-R SM.328)."""


@dataclass(frozen=True, slots=True, eq=False)
class OccupiedBandwidth:
    """Bandwidth that holds a share of the power.

    Attributes
    ----------
    low_hz, high_hz : (rows, signals) float64
        Frequencies below and above which half of the rest each lies [Hz]; NaN without any power.
    power : (rows, signals) float64
        Mean square of the whole row.
    share : float
        Share between them [1].
    """

    low_hz: Float64Array
    high_hz: Float64Array
    power: Float64Array
    share: float

    @property
    def width_hz(self) -> Float64Array:
        """Occupied bandwidth, (rows, signals) [Hz]."""
        return self.high_hz - self.low_hz


@naming_arrays
def occupied_bandwidth(
    values: ArrayLike, spec: SpectrumSpec, share: float = OCCUPIED_SHARE
) -> OccupiedBandwidth:
    """Measure the occupied bandwidth of rows.

    Parameters
    ----------
    values : (bins,), (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``; one-sided, or two-sided of I/Q.
    spec : SpectrumSpec
        Definition of the rows.
    share : float
        Share of the power, above 0 to below 1.

    Returns
    -------
    bandwidth : OccupiedBandwidth
        The power within a bin counts as evenly spread. Noise counts too: a long silence around a
        weak signal is most of the power.

    Raises
    ------
    ConfigError, InputError
        If a parameter, the spec or the shape breaks a rule.

    References
    ----------
    .. [1] Recommendation ITU-R SM.328-11, 1.1: occupied bandwidth, beta/2 = 0.5 %.
    """
    require_bins(spec, "bandwidths")
    if not 0.0 < share < 1.0:
        raise ConfigError(f"share={share:g}: must be above 0 and below 1")
    edges, each = _energies(values, spec)
    shape = each.shape[:2]
    energy = np.zeros((*shape, spec.n_bins + 1))
    np.cumsum(each, axis=-1, out=energy[..., 1:])
    ends = np.full((2, *shape), np.nan)
    for index in np.ndindex(shape):
        total = energy[index][-1]
        if total > 0.0 and np.isfinite(total):
            rest = (1.0 - share) / 2.0
            ends[(slice(None), *index)] = np.interp(
                [rest * total, (1.0 - rest) * total], energy[index], edges
            )
    return OccupiedBandwidth(ends[0], ends[1], energy[..., -1].copy(), share)


@naming_arrays
def channel_power(
    values: ArrayLike, spec: SpectrumSpec, low_hz: float, high_hz: float
) -> Float64Array:
    """Return the mean square between two frequencies.

    Parameters
    ----------
    values : (bins,), (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``; one-sided, or two-sided of I/Q.
    spec : SpectrumSpec
        Definition of the rows.
    low_hz, high_hz : float
        Edges, ascending and within the frequencies of the row; of a bin that holds one, its share
        counts [Hz].

    Returns
    -------
    power : (rows, signals) float64
        Mean square, in the square of the unit of the samples.

    Raises
    ------
    ConfigError, InputError
        If an edge, the spec or the shape breaks a rule.
    """
    require_bins(spec, "channels")
    edges, energy = _energies(values, spec)
    return _between(edges, energy, low_hz, high_hz)


@naming_arrays
def adjacent_channel_ratio(
    values: ArrayLike,
    spec: SpectrumSpec,
    center_hz: float,
    bandwidth_hz: float,
    spacing_hz: float,
) -> tuple[Float64Array, Float64Array]:
    """Return the power of the two adjacent channels over that of a channel.

    Parameters
    ----------
    values : (bins,), (rows, bins) or (rows, signals, bins) array-like
        Rows in ``spec.scale.unit``; one-sided, or two-sided of I/Q.
    spec : SpectrumSpec
        Definition of the rows.
    center_hz, bandwidth_hz : float
        Middle and width of the channel; the adjacent ones are as wide [Hz].
    spacing_hz : float
        Distance of the middles of adjacent channels, at least the width [Hz].

    Returns
    -------
    lower_db, upper_db : (rows, signals) float64
        ACPR of either side [dB].

    Raises
    ------
    ConfigError, InputError
        If a channel reaches beyond the row, or another rule is violated.
    """
    if not 0.0 < bandwidth_hz <= spacing_hz:
        raise ConfigError(
            f"bandwidth_hz={bandwidth_hz:g}: must be above 0 and at most spacing_hz={spacing_hz:g}"
        )
    require_bins(spec, "channels")
    edges, energy = _energies(values, spec)

    def at(middle_hz: float) -> Float64Array:
        half = bandwidth_hz / 2.0
        return _between(edges, energy, middle_hz - half, middle_hz + half)

    own, lower, upper = (at(center_hz + by * spacing_hz) for by in (0, -1, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return 10.0 * np.log10(lower / own), 10.0 * np.log10(upper / own)


def _energies(values: ArrayLike, spec: SpectrumSpec) -> tuple[Float64Array, Float64Array]:
    """Return the edges of bins, (bins + 1,), and the energy of each, (rows, signals, bins).

    The first and, for an even transform length, the last bin of a one-sided row are half as wide.
    """
    energy = to_density(as_rows(values, spec), spec) * spec.delta_f
    middles = spec.bin_frequencies
    edges = np.append(middles - spec.delta_f / 2.0, middles[-1] + spec.delta_f / 2.0)
    if not spec.iq:
        edges = np.clip(edges, 0.0, spec.fs / 2.0)
    return edges, energy


def _between(
    edges: Float64Array, energy: Float64Array, low_hz: float, high_hz: float
) -> Float64Array:
    slack = 1e-9 * (edges[-1] - edges[0])
    if not edges[0] - slack <= low_hz < high_hz <= edges[-1] + slack:
        raise ConfigError(
            f"channel of {low_hz:g} to {high_hz:g} Hz: must be ascending and within "
            f"{edges[0]:g} to {edges[-1]:g} Hz"
        )
    inside = np.minimum(edges[1:], high_hz) - np.maximum(edges[:-1], low_hz)
    touched = np.flatnonzero(inside > 0.0)
    # A difference of cumulated energies would lose weak channels beside strong ones to rounding.
    return np.asarray(energy[..., touched] @ (inside[touched] / np.diff(edges)[touched]))
