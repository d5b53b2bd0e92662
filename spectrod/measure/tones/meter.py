"""The power of tones at known frequencies in one row, free of noise and of other tones' leakage."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.noise_floor import mean_over_median
from spectrod.measure.rows import one_row, require_bins, to_density
from spectrod.measure.tones.kernel import tone_leakage, window_kernel
from spectrod.measure.tones.row_factors import row_factors, without_factors

MISSED_MAX = 1e-9
"""Energy of a tone that its bins may miss, over that of the strongest tone, if there is room."""

_LEAKAGE_MAX = 1e-8
"""Share of a tone outside its bins that is never too much [1]: -80 dB."""

_FREE_MIN = 0.05
"""Smallest share of the band's bins that must be free of tones, for the noise."""


class ToneMeter:
    """Measures tones of one row, the strongest first.

    A tone has the energy of +-m bins around it. What its window leaks into the bins of others, and
    into the noise, is computed from the window and subtracted.

    Parameters
    ----------
    values : (bins,) array-like
        Row in ``spec.scale.unit``.
    spec : SpectrumSpec
        Definition of the row: one-sided, unweighted, without bands.
    what : str
        What is measured, in the plural, for the texts of errors.

    Attributes
    ----------
    kernel : WindowKernel
        Kernel of the window.
    energy : (bins,) float64
        Mean square in each bin; their sum is that of the windowed signal. It and all that is
        measured in it is without the correction of a frequency response, which ``corrected`` adds.
    leakage : (bins,) float64
        Modelled energy of all tones so far, 0 Hz included.
    is_free : (bins,) bool
        Bins of no tone and not of 0 Hz.

    Raises
    ------
    ConfigError, InputError
        If the spec or the row cannot be measured.
    """

    def __init__(self, values: ArrayLike, spec: SpectrumSpec, what: str) -> None:
        require_bins(spec, what, unweighted=True)
        if spec.iq:
            raise ConfigError(f"iq=True: {what} are measured in real signals")
        if spec.averaging not in ("none", "mean", "exponential"):
            raise ConfigError(
                f"averaging={spec.averaging!r}: {what} are measured in frames or their mean"
            )
        self._spec = spec
        self.kernel = window_kernel(spec.taper, spec.nfft)
        self._factors = row_factors(spec, 0)
        density = to_density(one_row(values, spec), spec)
        self.energy = without_factors(density, spec, self._factors) * spec.delta_f
        self.leakage = np.zeros(spec.n_bins)
        self.is_free = np.ones(spec.n_bins, np.bool_)
        self._last: tuple[float, int, Float64Array] = (np.nan, 0, np.empty(0))

    def half_width(self, frequency_hz: float, missed_max: float, limit: int) -> tuple[int, float]:
        """Return the bins to sum on either side of a tone, and the share of it that they miss.

        Parameters
        ----------
        frequency_hz : float
            Frequency of the tone [Hz].
        missed_max : float
            Share that may be missed [1].
        limit : int
            Maximum of bins on either side, at least the main lobe's.

        Returns
        -------
        m : int
            At least the half width of the main lobe, at most limit.
        missed : float
            Share of the tone's energy outside +-m bins [1].
        """
        _, share = self._placed(frequency_hz)
        half = len(share) // 2
        pairs = share[1:half] + share[:-half:-1]
        beyond = np.append(np.cumsum(pairs[::-1])[::-1], 0.0)
        enough = int(np.argmax(beyond <= missed_max))
        m = min(max(enough, self.kernel.lobe_bins), limit, len(beyond) - 1)
        return m, float(beyond[m])

    def measure(self, frequency_hz: float, m: int) -> float:
        """Return the mean square of a tone, and take its bins and leakage out of the rest.

        Parameters
        ----------
        frequency_hz : float
            Frequency, above 0 to below fs / 2 [Hz].
        m : int
            Bins to sum on either side.

        Returns
        -------
        power : float
            Mean square, with the noise in these bins; NaN if one of them is another tone's.
        """
        k, share = self._placed(frequency_hz)
        bins = self._bins(k, m)
        if not self.is_free[bins].all():
            return np.nan
        own = self._one_sided(k, share)
        power = float(np.sum(self.energy[bins] - self.leakage[bins]) / np.sum(own[bins]))
        self.is_free[bins] = False
        self.leakage += max(power, 0.0) * own
        return power

    def corrected(self, power: float, frequency_hz: float) -> float:
        """Return a power with the correction of the frequency response at a frequency."""
        if self._factors is None:
            return power
        return power * float(self._factors(np.array([frequency_hz]))[0])

    def rest(self) -> Float64Array:
        """Return the energy of bins that no tone explains, corrected, (bins,); of either sign."""
        left = self.energy - self.leakage
        return left if self._factors is None else left * self._factors(self._spec.bin_frequencies)

    def floor_per_bin(self) -> float:
        """Return the noise in a free bin by their median, which further tones do not move."""
        left = (self.energy - self.leakage)[self.is_free]
        return max(0.0, float(np.median(left)) * mean_over_median(self._spec)) if len(left) else 0.0

    def noise_per_bin(self, in_band: NDArray[np.bool_]) -> float:
        """Return the mean corrected energy of the free bins of a band.

        Raises InputError for too few.
        """
        free = self.is_free & in_band
        if np.count_nonzero(free) < max(1.0, _FREE_MIN * np.count_nonzero(in_band)):
            raise InputError(
                f"{np.count_nonzero(free)} of {np.count_nonzero(in_band)} bins are free of tones: "
                "must be 5 % or more; a longer window, or one with lower side lobes, needs fewer"
            )
        left = self.rest()[free]
        # Without any noise the model's rounding is left, of either sign.
        return max(float(np.mean(left)), 0.0) or float(np.mean(np.abs(left)))

    def require_room(self, frequency_hz: float, what: str) -> int:
        """Return the maximum of m for tones that far apart; raises InputError without room."""
        limit = int((frequency_hz / self._spec.delta_f - 1.0) // 2)
        if limit < self.kernel.lobe_bins:
            needed = 2 * self.kernel.lobe_bins + 1
            raise InputError(
                f"{what} of {frequency_hz:.6g} Hz is {frequency_hz / self._spec.delta_f:.3g} bins: "
                f"must be {needed} or more with window {self._spec.window!r}; take a longer one"
            )
        return limit

    def require_little_leakage(self, missed: float, power: float, rest: float) -> None:
        """Raise InputError if a tone leaks over a tenth of all that is measured beside it.

        The leakage is subtracted, but without its phase only to within about half of it.

        Parameters
        ----------
        missed : float
            Share of the tone outside its bins [1].
        power, rest : float
            Mean square of the tone, and of all that is measured beside it.
        """
        if missed > _LEAKAGE_MAX and missed * power > 0.1 * rest:
            raise InputError(
                f"window={self._spec.window!r}: {10.0 * np.log10(missed):.1f} dB of the tone are "
                "outside its bins, too much beside what is measured: take a window with lower side "
                "lobes, as blackmanharris, or a longer one"
            )

    def remove_offset(self, limit: int) -> None:
        """Take 0 Hz, and what it leaks, out of the rest; with +-limit bins at most."""
        m, _ = self.half_width(0.0, MISSED_MAX * self._share_of_offset(), limit)
        self.is_free[: m + 1] = False

    def _share_of_offset(self) -> float:
        """Model the leakage of 0 Hz; return the power of everything else over that of 0 Hz."""
        k, share = self._placed(0.0)
        own = self._one_sided(k, share)
        power = float(self.energy[0] / own[0])
        self.leakage += power * own
        return float(np.sum(self.energy)) / max(power, 1e-300)

    def _placed(self, frequency_hz: float) -> tuple[int, Float64Array]:
        """Return the nearest bin of a tone, and its shares around it."""
        if frequency_hz != self._last[0]:
            position = frequency_hz / self._spec.delta_f
            k = int(np.floor(position + 0.5))
            share = tone_leakage(self._spec.taper, self._spec.nfft, position - k)
            self._last = frequency_hz, k, share
        return self._last[1:]

    def _bins(self, k: int, m: int) -> slice:
        return slice(max(0, k - m), min(self._spec.n_bins, k + m + 1))

    def _one_sided(self, k: int, share: Float64Array) -> Float64Array:
        """Return the energy of a real tone of mean square 1 in each bin, its image included."""
        nfft, n_bins = self._spec.nfft, self._spec.n_bins
        bins = np.arange(n_bins)
        own: Float64Array = share[(bins - k) % nfft] + share[-(bins + k) % nfft]
        own[0] /= 2.0
        if nfft % 2 == 0:
            own[-1] /= 2.0
        return own


def without_noise(power: float, m: int, noise: float) -> float:
    """Return a tone's power without the mean noise of its bins; 0 if it is not above it.

    Parameters
    ----------
    power : float
        Energy of 2 m + 1 bins; NaN stays NaN.
    m : int
        Bins on either side.
    noise : float
        Energy of a bin of noise.
    """
    clean = power - (2 * m + 1) * noise
    return max(clean, 0.0)
