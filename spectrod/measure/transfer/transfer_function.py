"""Transfer function, coherence and what follows from averaged spectra of two channels."""

from dataclasses import dataclass, replace

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.measure.frame_spectra import Complex128Array
from spectrod.measure.transfer.plotted import Plotted

_LATE_SHARE_MIN, _LATE_RATIO_MIN = 1.5e-4, 5.0
"""Energy of an impulse response in the part from an eighth to half of its length that flattens
resonances: as a share of all, and re that at the same negative times, which is noise [1]."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TransferFunction(Plotted):
    """Averaged spectra of a reference x and a response y, and what follows from them.

    Attributes
    ----------
    frequencies : (bins,) float64
        Centre of each bin [Hz].
    gxx, gyy : (bins,) float64
        One-sided densities of reference and response [FS^2/Hz].
    gxy : (bins,) complex128
        Cross spectrum, the mean of conj(X) Y, as ``scipy.signal.csd(x, y)`` [FS^2/Hz].
    n_frames : int
        Frames in the means, at least 2.
    n_averages : float
        Independent frames that they are worth; see ``spectrod.dsp.welch``.

    References
    ----------
    .. [1] J. S. Bendat and A. G. Piersol, "Random data", 4th ed., 2010, 9.2: bias and deviations.
    .. [2] G. C. Carter, C. H. Knapp and A. H. Nuttall, "Estimation of the magnitude-squared
       coherence function", IEEE Trans. Audio Electroacoustics 21(4), 1973: significance.
    """

    frequencies: Float64Array
    gxx: Float64Array
    gyy: Float64Array
    gxy: Complex128Array
    n_frames: int
    n_averages: float

    def __repr__(self) -> str:
        """Return one line: bins, frequencies, averages and coherence."""
        f = self.frequencies
        return (
            f"<TransferFunction: {len(f)} bins, {f[0]:.6g} to {f[-1]:.6g} Hz, {self.n_frames} "
            f"frames, worth {self.n_averages:.4g} averages, mean coherence "
            f"{self.mean_coherence():.3g}>"
        )

    @property
    def coherence(self) -> Float64Array:
        """Magnitude-squared coherence, 0 to 1, (bins,); NaN where a channel is silent [1]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.minimum(1.0, np.abs(self.gxy) ** 2 / (self.gxx * self.gyy)))

    @property
    def outlasts_frames(self) -> bool:
        """Whether the impulse response is longer than a frame shows: H1 of resonances is too low.

        Of a frame with a Hann window, a response after an eighth of it is noticeably weakened. A
        resonance of 12 dB at 120 Hz with Q 5 is 3.2 dB too low in 4096 samples at 48 kHz, and its
        impulse response has 0.15 % of its energy there; in 16384 samples 0.7 dB and 0.018 %.
        """
        h1 = self.h1
        impulse = np.fft.irfft(np.where(np.isfinite(h1), h1, 0.0))
        energy, n = np.square(impulse), len(impulse)
        late, early = energy[n // 8 : n // 2].sum(), energy[n // 2 : n - n // 8].sum()
        return bool(late > _LATE_SHARE_MIN * energy.sum() and late > _LATE_RATIO_MIN * early)

    @property
    def coherence_bias(self) -> Float64Array:
        """Expected error of the coherence, (1 - g)^2 (1 + 2 g / K) / K, (bins,) [1]."""
        g, k = self.coherence, self.n_averages
        return (1.0 - g) ** 2 * (1.0 + 2.0 * g / k) / k

    @property
    def significant_coherence(self) -> float:
        """Coherence that unrelated channels exceed in 5 % of the bins [1]."""
        return float(1.0 - 0.05 ** (1.0 / (self.n_averages - 1.0)))

    @property
    def h1(self) -> Complex128Array:
        """Gxy / Gxx, (bins,): unbiased by noise at the output."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.gxy / self.gxx)

    @property
    def h2(self) -> Complex128Array:
        """Gyy / Gyx, (bins,): unbiased by noise at the input."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.gyy / self.gxy.conj())

    @property
    def relative_sd(self) -> Float64Array:
        """Standard deviation of |H1| over |H1|, and of its phase, (bins,) [1, rad]."""
        g = self.coherence
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.sqrt((1.0 - g) / (2.0 * g * self.n_averages)))

    def scaled(self, x_factors: Float64Array, y_factors: Float64Array) -> "TransferFunction":
        """Return what calibrated channels would give.

        Parameters
        ----------
        x_factors, y_factors : (bins,) float64
            Factors of the power of reference and response, see ``calibrated.power_factors``. Phases
            do not change, and neither does the coherence.
        """
        return replace(
            self,
            gxx=self.gxx * x_factors,
            gyy=self.gyy * y_factors,
            gxy=self.gxy * np.sqrt(x_factors * y_factors),
        )

    def level_difference_db(self, band_hz: tuple[float, float] | None = None) -> float:
        """Return the level of the response over that of the reference.

        Parameters
        ----------
        band_hz : tuple of float, optional
            Lowest and highest frequency that counts [Hz]; by default all but 0 Hz.

        Returns
        -------
        difference : float
            Ratio of the powers [dB]; NaN without any power.

        Raises
        ------
        ConfigError
            If no bin is in the band.
        """
        chosen = bins_within(self.frequencies, band_hz)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.sum(self.gyy[chosen]) / np.sum(self.gxx[chosen])
            return float(10.0 * np.log10(ratio))

    def mean_coherence(self, band_hz: tuple[float, float] | None = None) -> float:
        """Return the mean of the coherence, weighted by the power of the response.

        Parameters
        ----------
        band_hz : tuple of float, optional
            See ``level_difference_db``.

        Returns
        -------
        coherence : float
            Coherent output power over all power of the response: the share of it that is linear in
            the reference [1]; NaN if the response has no power.

        Raises
        ------
        ConfigError
            If no bin is in the band.
        """
        chosen = bins_within(self.frequencies, band_hz)
        power = self.gyy[chosen]
        coherent = np.nan_to_num(self.coherence[chosen]) * power
        with np.errstate(invalid="ignore"):
            return float(np.sum(coherent) / np.sum(power))


def bins_within(frequencies: Float64Array, band_hz: tuple[float, float] | None) -> slice:
    """Return the bins of a band, by default all but 0 Hz; raises ConfigError if it has none."""
    low, high = (np.nextafter(0.0, 1.0), np.inf) if band_hz is None else band_hz
    first, stop = np.searchsorted(frequencies, [low, np.nextafter(high, np.inf)])
    if first >= stop:
        raise ConfigError(f"band_hz=({low:g}, {high:g}): has no bin")
    return slice(int(first), int(stop))
