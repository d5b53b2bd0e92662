"""What the tones of a row leak beyond their main lobes, from the window's own transform."""

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.measure.tones.kernel import leakage_envelope, tone_leakage

_TONES_MAX = 32
"""Tones of a row whose leakage is computed, the strongest; that of others counts as noise."""
_NOTICED = 0.05
"""Leakage, over the noise, from which on a tone's is computed [1]."""
_REACH = 4
"""Part of a block of bins at which the leakage is compared with the noise."""


class RowLeakage:
    """Models the leakage of tones into the bins of one row.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the row.
    n_block : int
        Bins from which the noise beside a tone is estimated.
    """

    def __init__(self, spec: SpectrumSpec, n_block: int) -> None:
        self._spec = spec
        reach = min(spec.nfft, 2 * max(1, n_block // _REACH))
        self._beyond = float(leakage_envelope(spec.taper, spec.nfft)[reach])
        taper = spec.taper
        self._scale = spec.nfft * taper.s2 / taper.s1**2

    def of_tones(
        self,
        power: Float64Array,
        bins: NDArray[np.int64],
        offset: Float64Array,
        tone_power: Float64Array,
        floor: Float64Array,
        step: int,
    ) -> tuple[Float64Array, Float64Array]:
        """Return the leakage into all bins, and that of other tones and images at each tone.

        Parameters
        ----------
        power : (bins,) float64
            Powers of the row.
        bins, offset, tone_power : (n,)
            Nearest bins of the tones, their distance [bins] and their power.
        floor : (n,) float64
            About the noise in a bin at each tone.
        step : int
            Distance of the bins that an interpolation compares.

        Returns
        -------
        leakage : (bins,) float64
            Power; of 0 Hz too in one-sided rows.
        of_others : (n,) float64
            Largest power that other tones, images and 0 Hz leak into the bins of each tone.
        """
        n_bins = len(power)
        leakage = np.zeros(n_bins)
        near = np.clip(bins[:, np.newaxis] + np.array([-step, 0, step]), 0, n_bins - 1)
        own = np.zeros(near.shape)
        strong = np.flatnonzero(tone_power * self._beyond > _NOTICED * floor)
        for n in strong[np.argsort(-tone_power[strong], kind="stable")][:_TONES_MAX]:
            share = tone_power[n] * self._scale * self._shares(float(offset[n]))
            k = int(bins[n])
            direct = share[(np.arange(n_bins) - k) % self._spec.nfft]
            own[n] = direct[near[n]]
            leakage += direct
            if not self._spec.iq:
                leakage += share[-(np.arange(n_bins) + k) % self._spec.nfft]
        if not self._spec.iq and power[0] * self._beyond > _NOTICED * floor.min(initial=np.inf):
            leakage += power[0] * self._scale * self._shares(0.0)[:n_bins]
        of_others = np.maximum(leakage[near] - own, 0.0).max(axis=1, initial=0.0)
        return leakage, of_others

    def _shares(self, offset: float) -> Float64Array:
        return tone_leakage(self._spec.taper, self._spec.nfft, offset)
