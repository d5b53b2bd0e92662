"""Cross spectrum, coherence and transfer function of two channels by Welch's method.

The spectra are NumPy's in float64: the engines' complex spectra are rounded to float32, which would
bound the phase and the coherence of strongly related channels.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from spectrod.errors import ConfigError, InputError
from spectrod.two_channel.samples import as_pair
from spectrod.types import SpectrumSpec, taper_for
from spectrod.units import Float64Array
from spectrod.welch import effective_averages
from spectrod.windows import WindowLike

Complex128Array = NDArray[np.complex128]

DELAY_MAX_SAMPLES = 1 << 20
"""Maximum delay between the channels that is removed [samples]."""

_BLOCK_VALUES = 1 << 18
"""Samples of frames that are transformed at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class TransferFunction:
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
        Independent frames that they are worth; see ``spectrod.welch``.

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

    @property
    def coherence(self) -> Float64Array:
        """Magnitude-squared coherence, 0 to 1, (bins,); NaN where a channel is silent [1]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.minimum(1.0, np.abs(self.gxy) ** 2 / (self.gxx * self.gyy)))

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

    def without_responses(
        self, x_factors: Float64Array, y_factors: Float64Array
    ) -> "TransferFunction":
        """Return what channels without their frequency responses would give.

        Parameters
        ----------
        x_factors, y_factors : (bins,) float64
            Factors of the power of reference and response, as of ``Response.power_factors``. Phases
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
        low, high = (np.nextafter(0.0, 1.0), np.inf) if band_hz is None else band_hz
        chosen = (self.frequencies >= low) & (self.frequencies <= high)
        if not chosen.any():
            raise ConfigError(f"band_hz=({low:g}, {high:g}): has no bin")
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.sum(self.gyy[chosen]) / np.sum(self.gxx[chosen])
            return float(10.0 * np.log10(ratio))


class TransferMeter:
    """Averages the cross spectrum of two channels of a stream.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    window, win_length
        As for ``spectrod.spectrogram``.
    hop : int, optional
        Samples from one frame to the next; by default half of win_length.
    nfft : int
        Transform length, see ``SpectrumSpec``.
    delay_samples : int
        Delay of the response that is removed first, within +-``DELAY_MAX_SAMPLES``; negative if it
        is early. A delay of a noticeable part of the window lowers the coherence.

    Attributes
    ----------
    spec : SpectrumSpec
        Definition of the frames.
    n_frames : int
        Frames so far.

    Raises
    ------
    ConfigError
        If a parameter breaks a rule.
    """

    def __init__(
        self,
        fs: float,
        *,
        window: WindowLike = "hann",
        win_length: int | None = None,
        hop: int | None = None,
        nfft: int = 0,
        delay_samples: int = 0,
    ) -> None:
        taper = taper_for(window, win_length)
        n = len(taper.samples)
        self.spec = SpectrumSpec(
            fs,
            2,
            taper.name,
            n,
            max(1, n // 2) if hop is None else hop,
            nfft,
            output="complex",
            taper=taper,
        )
        if abs(delay_samples) > DELAY_MAX_SAMPLES:
            raise ConfigError(
                f"delay_samples={delay_samples}: must be within +-{DELAY_MAX_SAMPLES}"
            )
        self._delay_samples = delay_samples
        self.n_frames = 0
        self._sums = [np.zeros(self.spec.n_bins, kind) for kind in "ddD"]
        self.restart()

    def restart(self) -> None:
        """Continue after a gap: no frame spans it, and the averages remain."""
        self._kept = np.empty(0), np.empty(0)
        self._skip = [max(0, -self._delay_samples), max(0, self._delay_samples)]

    def push(self, reference: ArrayLike, response: ArrayLike) -> None:
        """Add samples of both channels.

        Parameters
        ----------
        reference, response : (n,) array-like
            Samples that follow those pushed before [FS].

        Raises
        ------
        InputError
            If the shapes differ, the samples are integers, or a sample is not finite.
        """
        given = as_pair(reference, response)
        first, second = (self._follow(channel, one) for channel, one in enumerate(given))
        n_frames = self.spec.n_frames(min(len(first), len(second)))
        for n in range(0, n_frames, self._step):
            stop = min(n + self._step, n_frames)
            self._add(self._frames(first, n, stop), self._frames(second, n, stop))
        left = n_frames * self.spec.hop
        self._kept = first[left:].copy(), second[left:].copy()
        for channel, one in enumerate((first, second)):
            # A hop beyond the end of what came skips samples to come.
            self._skip[channel] += max(0, left - len(one))

    def result(self) -> TransferFunction:
        """Return the averages so far.

        Raises
        ------
        InputError
            With fewer than two frames, whose coherence is always 1.
        """
        if self.n_frames < 2:
            raise InputError(
                f"{self.n_frames} frames of {self.spec.win_length} samples: coherence needs 2 or "
                "more; take more samples, or a shorter window"
            )
        scale = np.full(self.spec.n_bins, 2.0 * self.spec.power_scale / self.n_frames)
        scale[0] /= 2.0
        if self.spec.nfft % 2 == 0:
            scale[-1] /= 2.0
        gxx, gyy, gxy = (total * scale for total in self._sums)
        averages = effective_averages(self.spec.taper, self.spec.hop, self.n_frames)
        return TransferFunction(self.spec.frequencies, gxx, gyy, gxy, self.n_frames, averages)

    @property
    def _step(self) -> int:
        return max(1, _BLOCK_VALUES // self.spec.nfft)

    def _follow(self, channel: int, given: Float64Array) -> Float64Array:
        """Append samples to those kept of a channel, without those to be skipped."""
        skipped = min(self._skip[channel], len(given))
        self._skip[channel] -= skipped
        return np.concatenate([self._kept[channel], given[skipped:]])

    def _frames(self, samples: Float64Array, first: int, stop: int) -> Complex128Array:
        """Transform windowed frames, (frames, bins)."""
        spec = self.spec
        part = samples[first * spec.hop : (stop - 1) * spec.hop + spec.win_length]
        frames = sliding_window_view(part, spec.win_length)[:: spec.hop]
        return np.asarray(np.fft.rfft(frames * spec.taper.samples, spec.nfft, axis=-1))

    def _add(self, x: Complex128Array, y: Complex128Array) -> None:
        self.n_frames += len(x)
        for n, product in enumerate((np.abs(x) ** 2, np.abs(y) ** 2, x.conj() * y)):
            self._sums[n] += product.sum(axis=0)


def measure_transfer(  # noqa: PLR0913 - the measurement has these settings
    reference: ArrayLike,
    response: ArrayLike,
    fs: float,
    *,
    window: WindowLike = "hann",
    win_length: int | None = None,
    hop: int | None = None,
    nfft: int = 0,
    delay_samples: int = 0,
) -> TransferFunction:
    """Measure the transfer function from one channel to another; see ``TransferMeter``.

    Parameters
    ----------
    reference, response : (n,) array-like
        Input and output of the system [FS].
    fs : float
        Sample rate [Hz].
    window, win_length, hop, nfft, delay_samples
        See ``TransferMeter``.

    Returns
    -------
    transfer : TransferFunction

    Raises
    ------
    ConfigError, InputError
        If a parameter breaks a rule, or there are fewer than two frames.
    """
    meter = TransferMeter(
        fs,
        window=window,
        win_length=win_length,
        hop=hop,
        nfft=nfft,
        delay_samples=delay_samples,
    )
    meter.push(reference, response)
    return meter.result()
