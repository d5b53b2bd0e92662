"""Frequency response, impulse response and harmonic distortion from a recording of a sweep."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.frame_spectra import Complex128Array
from spectrod.measure.transfer.channel_pairs import as_samples
from spectrod.measure.transfer.plotted import Plotted
from spectrod.measure.transfer.reverberation import (
    OCTAVES_HZ,
    Reverberation,
    octave_edges,
    reverberation,
)
from spectrod.measure.transfer.sweep import ImpulseResponse, Sweep

LENGTH_DEFAULT = 1 << 16
"""Length of an impulse response after time 0, where the recording has as much [samples]."""
HARMONICS_DEFAULT = 5

_FADE_SHARE = 1.0 / 8.0
"""Share of an impulse response's length in which its end fades out: a cut would be a ripple."""
_REGULARISATION = 1e-6
"""Power that is added to that of the reference, over its largest: below the band it has none."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SweepResponse(Plotted):
    """What a sweep says about a system.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    band_hz : (float, float)
        Lowest and highest frequency of which the values hold [Hz].
    frequencies : (bins,) float64
        Frequencies from 0 Hz to fs / 2 [Hz].
    h : (bins,) complex128
        Response over the reference, or over the sweep; its phase is that after ``begin``.
    harmonics : (orders, bins) float64
        Amplitude of the second harmonic and on, that of order k at k times the frequency, over that
        of the linear response at the frequency [1]; NaN where the output is beyond the band.
    begin : int
        Sample of the recording that is time 0.
    delay_samples : int or None
        Delay of the response's peak against that of the reference; None without a reference
        [samples].
    whole_samples : int
        Length of the impulse response after time 0 before it fades out [samples].
    """

    fs: float
    band_hz: tuple[float, float]
    frequencies: Float64Array
    h: Complex128Array
    harmonics: Float64Array
    begin: int
    delay_samples: int | None
    whole_samples: int

    def __repr__(self) -> str:
        """Return one line: frequencies, harmonics, begin and delay."""
        low, high = self.band_hz
        after = "" if self.delay_samples is None else f", delay {self.delay_samples} samples"
        return (
            f"<SweepResponse: {low:.6g} to {high:.6g} Hz, {len(self.frequencies)} bins, "
            f"{len(self.harmonics)} harmonics, time 0 at sample {self.begin}{after}>"
        )

    @property
    def thd(self) -> Float64Array:
        """Root of the sum of the squares of the harmonics, (bins,) [1]; NaN without any."""
        has_any = np.isfinite(self.harmonics).any(axis=0)
        power = np.nansum(np.square(self.harmonics), axis=0)
        return np.asarray(np.sqrt(np.where(has_any, power, np.nan)))

    def impulse_response(self, lead_samples: int = 0) -> Float64Array:
        """Return the impulse response of ``h``, (n,), whose time 0 is at ``lead_samples``."""
        nfft = 2 * (len(self.frequencies) - 1)
        turns = np.exp(-2j * np.pi * self.frequencies / self.fs * lead_samples)
        return np.asarray(np.fft.irfft(self.h * turns, nfft))

    def reverberation(self) -> list[Reverberation]:
        """Return the reverberation of all frequencies, then of each octave within the band.

        Octaves whose edges are within the band and below fs / 2 count; see ``reverberation``.

        Raises
        ------
        ConfigError
            See ``reverberation``.
        """
        low, high = self.band_hz
        n_lead = min(round(self.fs / low), len(self.frequencies) // 4)
        whole = self.impulse_response(n_lead)[: n_lead + self.whole_samples]
        edges = [octave_edges(one) for one in OCTAVES_HZ]
        inside = [one for one in edges if low <= one[0] and one[1] <= min(high, 0.499 * self.fs)]
        return [reverberation(whole, self.fs, band) for band in (None, *inside)]

    def scaled(self, x_factors: Float64Array, y_factors: Float64Array) -> "SweepResponse":
        """Return what calibrated channels would give.

        Parameters
        ----------
        x_factors, y_factors : (bins,) float64
            Factors of the power of reference and response, see ``calibrated.power_factors``.
        """
        gains = np.sqrt(y_factors)
        orders = range(2, 2 + len(self.harmonics))
        of_outputs = np.array([_at_multiples(gains, k) for k in orders])
        return replace(
            self,
            h=self.h * gains / np.sqrt(x_factors),
            harmonics=self.harmonics * of_outputs.reshape(self.harmonics.shape) / gains,
        )


@naming_arrays
def measure_sweep(
    sweep: Sweep,
    response: ArrayLike,
    reference: ArrayLike | None = None,
    *,
    delay_samples: int | None = None,
    length: int = LENGTH_DEFAULT,
    harmonics: int = HARMONICS_DEFAULT,
) -> SweepResponse:
    """Measure a system through which a sweep was played.

    Parameters
    ----------
    sweep : Sweep
        What was played.
    response : (n,) array-like
        Recording of the system's output, of which the sweep is a part [FS].
    reference : (n,) array-like, optional
        Recording of its input in the same time [FS]; without, the sweep itself, of amplitude 1, is
        the reference.
    delay_samples : int, optional
        Delay of time 0 after the sweep of the reference, or after the first sample [samples]; by
        default the peak of the response is time 0.
    length : int
        Length of the impulse response after time 0 that counts, at least 16; its last eighth fades
        out [samples]. A shorter one leaves out later reflections and noise.
    harmonics : int
        Highest order; see ``Sweep.impulse_responses``.

    Returns
    -------
    found : SweepResponse

    Raises
    ------
    ConfigError, InputError
        If a parameter breaks a rule, or the sweep is not in a recording or not whole.

    References
    ----------
    .. [1] A. Farina, "Simultaneous measurement of impulse response and distortion with a swept-sine
       technique", AES 108th convention, 2000.
    """
    if length < 16:
        raise ConfigError(f"length={length}: must be 16 or more")
    y = as_samples("response", response)
    peak, origin = sweep.begin_in(y), 0
    of_x: list[ImpulseResponse] = []
    if reference is not None:
        x = as_samples("reference", reference)
        origin = sweep.begin_in(x)
        of_x = _gated(sweep.impulse_responses(_from(sweep, x, origin, origin), 1), length)
    begin = peak if delay_samples is None else origin + delay_samples
    of_y = _gated(sweep.impulse_responses(_from(sweep, y, begin, peak), harmonics), length)
    nfft = 1 << (max(len(one.samples) for one in (*of_y, *of_x)) - 1).bit_length()
    frequencies, linear = of_y[0].response(nfft)
    h = _ratio(linear, of_x[0].response(nfft)[1]) if of_x else linear
    return SweepResponse(
        sweep.fs,
        sweep.band_hz,
        frequencies,
        h,
        _harmonics(of_y[1:], frequencies, linear, sweep.band_hz[1]),
        begin,
        None if reference is None else peak - origin,
        min(_whole_samples(one) for one in (of_y[0], *of_x)),
    )


def _from(sweep: Sweep, recording: Float64Array, begin: int, peak: int) -> Float64Array:
    """Return a recording from time 0 on; a sweep that is cut would ring in all of its results."""
    if min(begin, peak) < 0 or max(begin, peak) + sweep.n_samples > len(recording):
        raise InputError(
            f"recording of {len(recording)} samples: must have the whole sweep, {sweep.n_samples} "
            f"samples from {peak} on" + (f", and from {begin} on" if begin != peak else "")
        )
    return recording[begin:]


def _gated(found: tuple[ImpulseResponse, ...], length: int) -> list[ImpulseResponse]:
    """Cut responses some samples after time 0."""
    return [_cut(one, length) for one in found]


def _cut(found: ImpulseResponse, length: int) -> ImpulseResponse:
    stop = min(len(found.samples), int(found.lead_samples) + length)
    samples = found.samples[:stop].copy()
    n = _fade_samples(stop - int(found.lead_samples))
    samples[-n:] *= np.square(np.cos(np.pi / 2.0 * (np.arange(n) + 0.5) / n))
    return replace(found, samples=samples)


def _fade_samples(n_after: int) -> int:
    return max(1, int(_FADE_SHARE * n_after))


def _whole_samples(found: ImpulseResponse) -> int:
    n_after = len(found.samples) - int(found.lead_samples)
    return n_after - _fade_samples(n_after)


def _ratio(y: Complex128Array, x: Complex128Array) -> Complex128Array:
    power = np.square(np.abs(x))
    return np.asarray(y * x.conj() / (power + _REGULARISATION * power.max()))


def _harmonics(
    found: list[ImpulseResponse], frequencies: Float64Array, linear: Complex128Array, top_hz: float
) -> Float64Array:
    nfft = 2 * (len(frequencies) - 1)
    ratios = np.full((len(found), len(frequencies)), np.nan)
    for row, one in zip(ratios, found, strict=True):
        size = _at_multiples(np.abs(one.response(nfft)[1]), one.order)
        with np.errstate(divide="ignore", invalid="ignore"):
            row[:] = np.where(one.order * frequencies <= top_hz, size / np.abs(linear), np.nan)
    return ratios


def _at_multiples(values: Float64Array, order: int) -> Float64Array:
    """Return the value at ``order`` times each frequency, (bins,); NaN beyond the last."""
    found = np.full(len(values), np.nan)
    chosen = values[::order]
    found[: len(chosen)] = chosen
    return found
