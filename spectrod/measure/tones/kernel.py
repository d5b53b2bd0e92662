"""The spectrum of a window at fractions of a bin, and its inverse: exact interpolation of peaks.

A tone between bins k and k + 1 has in each bin the amplitude of the window's own spectrum, its
kernel, at the distance from that bin. The ratio of two bins in the main lobe therefore gives the
distance, and the distance gives the loss of amplitude. One numeric way serves every window:
cosine sums, Kaiser, Bartlett, and arrays, with zero-padding or without.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array
from spectrod.dsp.windows import Window
from spectrod.lib.errors import ConfigError

_NODES_MIN, _NODES_PER_BIN = 20, 3
"""Chebyshev nodes, and those for each bin of the unpadded transform between the two bins that are
compared: the kernel is band-limited, and a polynomial of this degree holds it to 1e-14."""

_GRID = 8193
"""Points of the tables: linear interpolation between them errs by less than 1e-7 bins."""

_STEP_AMPLITUDE = 0.85
"""Largest amplitude, over the maximum, of the bins that the highest bin is compared with."""

_SIDE_ZERO = 0.01
"""Amplitude in the bins that are compared, of a tone in the middle of its bin, below which they do
not tell its side [1]."""

_LOBE_TOP_DB, _LOBE_DB = -10.0, -60.0
"""A main lobe ends at its first minimum below the first of these, a flat top having minima above
it, or at the second [dB]."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowKernel:
    """Tables of a window's kernel over the distance of a tone from its highest bin.

    Attributes
    ----------
    step : int
        Distance from the highest bin to the bins that it is compared with [bins]: 1 without
        zero-padding, 2 with a flat top, and more with zero-padding.
    offset : (n,) float64
        Distance of the tone from the highest bin, 0 to step / 2 [bins].
    ratio : (n,) float64
        Amplitude ``step`` bins further, on the tone's side, over that of the highest bin,
        ascending to 1.
    gain : (n,) float64
        Power of the highest bin over that of the tone [1].
    offset_variance : (n,) float64
        Variance of the interpolated offset over the ratio of noise to tone in a bin [bins^2].
    level_variance : (n,) float64
        Variance of the natural logarithm of the tone's amplitude over the same ratio [1].
    offset_shift, level_shift : (n,) float64
        The same for what another tone leaks, over the ratio of its leakage to the tone [bins^2, 1]:
        its phase is random, but its sign changes from each bin to the next, which noise does not.
    lobe_bins : int
        Half of the main lobe's width, rounded up [bins].
    """

    step: int
    offset: Float64Array
    ratio: Float64Array
    gain: Float64Array
    offset_variance: Float64Array
    level_variance: Float64Array
    offset_shift: Float64Array
    level_shift: Float64Array
    lobe_bins: int

    def interpolate(
        self, below: Float64Array, peak: Float64Array, above: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the offset and the power of tones from three bins of each.

        Parameters
        ----------
        below, peak, above : (n,) float64
            Powers of the bins k - step, k and k + step, where k is the highest; peak > 0.

        Returns
        -------
        offset : (n,) float64
            Frequency of the tone minus that of bin k, -step / 2 to step / 2 [bins].
        power : (n,) float64
            Power of the tone, as a bin at its frequency would show it.
        """
        ratio = np.sqrt(np.maximum(below, above) / peak)
        offset = np.interp(ratio, self.ratio, self.offset)
        power = peak / np.interp(offset, self.offset, self.gain)
        return np.where(above >= below, offset, -offset), power

    def deviation(
        self,
        offset: Float64Array,
        noise: Float64Array,
        leakage: Float64Array,
        sides: Float64Array,
    ) -> tuple[Float64Array, Float64Array]:
        """Return standard deviations of ``interpolate`` in white noise, to first order.

        Parameters
        ----------
        offset : (n,) float64
            Offset of the tone [bins].
        noise : (n,) float64
            Mean power of the noise in a bin, over the power of the tone [1].
        leakage : (n,) float64
            Power that other tones leak into the bins, likewise [1].
        sides : (n,) float64
            Difference of the amplitudes of the two bins that were compared with the highest one,
            over that of the tone [1].

        Returns
        -------
        offset_sd : (n,) float64
            Standard deviation of the offset [bins].
        level_sd : (n,) float64
            Standard deviation of the level [dB].

        Notes
        -----
        Two bins of a tapered frame hold less than the frame: these are above the Cramer-Rao bounds
        ``sqrt(6 / (4 pi^2 rho)) nfft / win_length`` bins and ``20 / (ln 10 sqrt(2 rho))`` dB, with
        rho the ratio of tone to noise in a bin of the untapered frame [1]_.

        A kernel that is 0 in both bins beside a tone in the middle of its bin, as that of a
        rectangular window, hardly tells the side on which the tone is. The deviation of the
        frequency then includes that of the wrong side, with a logistic probability.

        References
        ----------
        .. [1] D. C. Rife and R. R. Boorstyn, "Single-tone parameter estimation from discrete-time
           observations", IEEE Trans. Information Theory 20(5), 1974.
        """
        distance = np.abs(offset)
        of_offset = np.interp(distance, self.offset, self.offset_variance)
        of_level = np.interp(distance, self.offset, self.level_variance)
        frequency = of_offset * noise
        frequency += np.interp(distance, self.offset, self.offset_shift) * leakage
        level = of_level * noise + np.interp(distance, self.offset, self.level_shift) * leakage
        if self.ratio[0] < _SIDE_ZERO:
            doubt = np.abs(sides) / np.sqrt(np.maximum(noise + leakage, 1e-300))
            frequency += np.square(2.0 * distance) / (1.0 + np.exp(np.minimum(1.7 * doubt, 700.0)))
        return np.sqrt(frequency), 20.0 / np.log(10.0) * np.sqrt(level)


@lru_cache(maxsize=16)
def window_kernel(window: Window, nfft: int) -> WindowKernel:
    """Return the kernel of a window in a transform of nfft points.

    Parameters
    ----------
    window : Window
        A window of at most nfft samples.
    nfft : int
        Transform length.

    Returns
    -------
    kernel : WindowKernel
        Shared between callers and read-only.

    Raises
    ------
    ConfigError
        If the samples are unknown, or the window has no main lobe that falls from its middle: two
        bins of it do not give a frequency.
    """
    if np.isnan(window.samples[0]):
        raise ConfigError("its samples are unknown, no tone is measured", window=window.name)
    step = _step(window, nfft)
    offset = np.linspace(0.0, step / 2.0, _GRID)
    near, far = _spectra(window, nfft, step, offset)
    ratio = np.abs(far) / np.abs(near)
    if not (np.diff(ratio) > 0.0).all():
        raise ConfigError(
            "its main lobe does not fall from the middle to both sides, no tone is interpolated",
            window=window.name,
        )
    variances = _variances(window, nfft, step, near, far)
    gain = np.abs(near) ** 2
    for table in (offset, ratio, gain, *variances):
        table.setflags(write=False)
    return WindowKernel(step, offset, ratio, gain, *variances, _lobe_bins(window, nfft))


@lru_cache(maxsize=4)
def leakage_envelope(window: Window, nfft: int) -> Float64Array:
    """Return the largest power of a tone at and beyond each distance from it.

    Parameters
    ----------
    window : Window
        A window of at most nfft samples.
    nfft : int
        Transform length.

    Returns
    -------
    envelope : (nfft + 1,) float64
        Power over that of the tone, at distances of 0, 1/2, 1, ... nfft/2 bins, not ascending;
        read-only.
    """
    # Quarters of a bin miss less than 0.7 dB of a side lobe's maximum.
    power = np.abs(np.fft.rfft(window.samples / window.s1, 4 * nfft)) ** 2
    envelope: Float64Array = np.maximum.accumulate(power[::-1])[::-2].copy()
    envelope.setflags(write=False)
    return envelope


def tone_leakage(window: Window, nfft: int, offset: float) -> Float64Array:
    """Return the share of a tone's energy in each bin.

    Parameters
    ----------
    window : Window
        A window of at most nfft samples.
    nfft : int
        Transform length.
    offset : float
        Frequency of the tone minus that of a bin [bins].

    Returns
    -------
    share : (nfft,) float64
        Share in the bins 0, 1, ... above that bin; the last ones are those below it. The sum is 1.
    """
    turns = np.exp(2j * np.pi * offset / nfft * np.arange(len(window.samples)))
    power = np.abs(np.fft.fft(window.samples * turns, nfft)) ** 2
    return np.asarray(power / (nfft * window.s2))


def _step(window: Window, nfft: int) -> int:
    """Return the smallest distance at which the main lobe has clearly fallen [bins]."""

    def depth(step: int) -> float:
        return -abs(_transform(window, float(step), nfft))

    # The amplitude falls over the main lobe, and side lobes are lower.
    last, limit = 1, max(1, nfft // 4)
    while last < limit and depth(last) < -_STEP_AMPLITUDE:
        last = min(2 * last, limit)
    between = range(last // 2 + 1, last)
    return (last // 2 + 1) + bisect_left(between, -_STEP_AMPLITUDE, key=depth)


def _spectra(
    window: Window, nfft: int, step: int, offset: Float64Array
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Return the kernel at the highest bin and at ``step`` bins further, over its middle."""
    n_nodes = _NODES_MIN + int(np.ceil(_NODES_PER_BIN * step * len(window.samples) / nfft))
    nodes = np.polynomial.chebyshev.chebpts1(n_nodes)
    sampled = [_transform(window, step * (node + 1.0) / 2.0, nfft) for node in nodes]
    series = np.polynomial.chebyshev.chebfit(nodes, np.array(sampled), n_nodes - 1)

    def at(distance: Float64Array) -> NDArray[np.complex128]:
        values = np.polynomial.chebyshev.chebval(2.0 * distance / step - 1.0, series)
        return np.asarray(values)

    return at(offset).conj(), at(step - offset)


def _transform(window: Window, distance: float, nfft: int, power: int = 1) -> complex:
    """Transform a window, or its square, about its middle, over its sum, at a distance [bins]."""
    n = len(window.samples)
    phase = -2.0 * np.pi * distance / nfft * (np.arange(n) - n / 2.0)
    samples, total = (
        (window.samples, window.s1) if power == 1 else (np.square(window.samples), window.s2)
    )
    # Sums, not products of matrices: those start threads, which cost more than they save.
    return complex(np.sum(samples * np.cos(phase)), np.sum(samples * np.sin(phase))) / total


def _variances(
    window: Window,
    nfft: int,
    step: int,
    near: NDArray[np.complex128],
    far: NDArray[np.complex128],
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """Propagate the noise of two bins, and its covariance, to the offset and the level.

    Then the same for leakage of one size and of opposite signs in both.

    Each bin's amplitude errs by the component of its noise along the tone, of half the noise's
    power: d ln |near| = a, d ratio = (b - ratio a), with a and b over the amplitude of near.
    """
    turn = far.conj() / np.abs(far) * near / np.abs(near)
    # Far beyond the last zero of a rectangular window both are exactly in phase.
    turn = np.where(np.abs(far) > 0.0, turn, near / np.abs(near))
    covariance = np.real(turn * _transform(window, float(step), nfft, power=2))
    size = np.abs(near)
    ratio = np.abs(far) / size
    spacing = step / 2.0 / (_GRID - 1)
    slope = np.gradient(ratio, spacing, edge_order=2)
    fall = np.gradient(np.log(size), spacing, edge_order=2)
    of_a, of_b = 1.0 + fall * ratio / slope, -fall / slope
    noise = 0.5 / size**2
    of_offset = noise * (1.0 + ratio**2 - 2.0 * ratio * covariance) / slope**2
    of_level = noise * (of_a**2 + of_b**2 + 2.0 * of_a * of_b * covariance)
    shift = noise * (1.0 + ratio) ** 2 / slope**2
    return of_offset, of_level, shift, noise * (np.abs(of_a) + np.abs(of_b)) ** 2


def _lobe_bins(window: Window, nfft: int) -> int:
    """Return half of the main lobe's width [bins]."""
    power = np.abs(np.fft.rfft(window.samples / window.s1, 4 * nfft)) ** 2
    top = int(np.argmax(power < 10.0 ** (_LOBE_TOP_DB / 10.0)))
    rises = top + np.flatnonzero(np.diff(power[top:]) > 0.0)
    low = np.flatnonzero(power < 10.0 ** (_LOBE_DB / 10.0))
    ends = [int(found[0]) for found in (rises, low) if len(found)]
    return max(1, -(-min(ends, default=len(power)) // 4))
