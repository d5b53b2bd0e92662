"""What a spectrum means: the spec of an analysis, validated when it is made."""

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from math import ceil
from typing import Any, TypedDict

import numpy as np

from spectrod.dsp.bands import Bands, get_bands
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.constant_q import constant_q_bands, is_constant_q
from spectrod.dsp.row_grid import RowGrid, exact_row_step
from spectrod.dsp.spectrum_rules import (
    NFFT_MAX,
    WIN_LENGTH_DEFAULT,
    Align,
    Output,
    check,
    fill_in,
    whole,
)
from spectrod.dsp.units import Float64Array, Scaling
from spectrod.dsp.value_scale import ValueScale
from spectrod.dsp.weighting import Weighting
from spectrod.dsp.windows import Window, WindowLike, make_window, window_length
from spectrod.lib.errors import ConfigError


class SpectrumParameters(TypedDict, total=False):
    """Fields of ``SpectrumSpec`` that ``spectrogram`` and ``Stft`` accept unchanged."""

    scaling: Scaling
    output: Output
    iq: bool
    weighting: Weighting
    bands: str
    averaging: str
    averaging_frames: int
    averaging_s: float
    rate_hz: float
    center_frequency_hz: float


class StreamParameters(SpectrumParameters, total=False):
    """Fields for a stream, which has times."""

    align: Align


_NO_WINDOW = Window("", np.empty(0), 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SpectrumSpec:
    """Complete definition of a spectrum; validated on creation.

    Frames are windowed, transformed, squared, weighted, summed into bands and averaged; the last
    three steps are optional.

    Attributes
    ----------
    fs : float
        Sample rate, ``FS_MIN_HZ`` to ``FS_MAX_HZ`` [Hz].
    channels : int
        Channels of the source, 1 to ``CHANNELS_MAX``.
    window : str
        Name of the window; see ``spectrod.dsp.windows``.
    win_length : int
        Samples under the window, 2 to nfft.
    hop : int
        Samples from one frame to the next, 1 to ``HOP_MAX``; may exceed win_length. With rate_hz
        and no averaging it follows from the rate, whatever is given.
    nfft : int
        Transform length, ``NFFT_MIN`` to ``NFFT_MAX``; 0 selects the smallest power of two from
        64 on that holds the window. Frames are zero-padded to it.
    scaling : {"density", "spectrum", "dbfs"}
        Bins: one-sided PSD [FS^2/Hz], mean square of a sine at its bin [FS^2], or its level
        [dBFS]. Bands: mean density [FS^2/Hz], mean square [FS^2], or its level [dBFS]. Complex
        spectra: spectral density of amplitude [FS/Hz^0.5], or the amplitude on each of the
        spectrum's two sides [FS].
    output : {"power", "complex"}
        Complex spectra cannot be weighted, summed or averaged, and have no level.
    iq : bool
        True if each pair of channels is the real and the imaginary part of one signal. Its spectrum
        is two-sided; 0 dBFS is a complex tone of amplitude 1. Excludes weightings and bands.
    weighting : {"Z", "A", "C"}
        Frequency weighting; see ``spectrod.dsp.weighting``.
    bands : str
        Name of bands, see ``spectrod.bands``; "" for bins.
    averaging : {"none", "mean", "max", "min", "exponential", "floor"} or str
        Averaging of power over frames; all but "exponential" are over the frames of one row.
        ``"L90"`` is the value exceeded 90 % of the time, the 10th percentile, for any percentage
        above 0 and below 100 of up to three decimals. "floor" is the noise floor, see
        ``spectrod.analysis.percentile``; of bins only.
    averaging_frames : int
        Frames per row, 1 to ``AVERAGING_FRAMES_MAX``; 1 without averaging. With rate_hz it follows
        from the rate: give 1 or that number.
    averaging_s : float
        Time constant of the exponential average, > 0 [s]; the default is F of a sound level meter
        (IEC 61672-1).
    product : str
        Name in topics; the default is the scaling.
    rate_hz : float
        Rows per second, exactly; 0 for rows of ``averaging_frames * hop`` samples [Hz]. Row k
        starts at sample ``floor(k * fs / rate_hz)`` after the start. A mean is over all frames, hop
        apart, that fit into the row: Welch's estimate of that time alone. A maximum, a minimum and
        an exponential average, and a mean if rows are shorter than a window, are over the frames
        that start in the row, so that no sample falls between rows. Without averaging there is
        one frame, at the start of the row.
    align : {"start", "utc"}
        Start of the rows of rate_hz: the first sample, and the first one after each gap; or whole
        multiples of 1 / rate_hz in UTC.
    center_frequency_hz : float
        Frequency to which the receiver of I/Q samples is tuned, represented by 0 Hz of the samples,
        within +-``CENTER_FREQUENCY_MAX_HZ`` [Hz]. It is added to all frequencies of bins.
    broadband : bool
        True if a row also holds the power of all bins, 0 Hz and Nyquist included, beside its bands:
        the mean square of the windowed, weighted sound. Requires bands.
    taper : Window
        The window itself. It follows from the name; ``window="custom"`` requires it, see
        ``spectrod.dsp.windows.make_window``.
    calibration : tuple of ChannelCalibration or None
        Calibration of each signal, None for one without; empty if no signal has one. Results are
        then in its unit instead of FS: ``Pa^2/Hz``, ``Pa^2``, ``dB SPL``.
    scale : ValueScale
        What the values mean: unit, reference, power and level. It follows from the rest.

    Raises
    ------
    ConfigError
        If a rule is violated, with the name, the value and the rule.
    """

    fs: float
    channels: int = 1
    window: str = "hann"
    win_length: int = WIN_LENGTH_DEFAULT
    hop: int = 1024
    nfft: int = 0
    scaling: Scaling = "density"
    output: Output = "power"
    iq: bool = False
    weighting: Weighting = "Z"
    bands: str = ""
    averaging: str = "none"
    averaging_frames: int = 1
    averaging_s: float = 0.125
    product: str = ""
    rate_hz: float = 0.0
    align: Align = "start"
    center_frequency_hz: float = 0.0
    broadband: bool = False
    taper: Window = field(default=_NO_WINDOW, repr=False)
    calibration: tuple[ChannelCalibration | None, ...] = field(default=(), repr=False)
    scale: ValueScale = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        for name, value in fill_in(given).items():
            object.__setattr__(self, name, value)
        of_bands = bool(self.bands)
        scale = ValueScale(
            self.scaling, self.output, self.iq, of_bands, self.n_signals, self.calibration
        )
        object.__setattr__(self, "scale", scale)
        check(self)

    @property
    def n_signals(self) -> int:
        """Channels of the result: one per channel, or one per I/Q pair."""
        return self.channels // 2 if self.iq else self.channels

    @property
    def n_bins(self) -> int:
        """Bins from 0 Hz to fs / 2, the Nyquist frequency included; nfft of them for I/Q."""
        return self.nfft if self.iq else self.nfft // 2 + 1

    @property
    def n_values(self) -> int:
        """Values of a spectrum: bands, or bins without bands."""
        bands = self.band_table
        return self.n_bins if bands is None else len(bands)

    @property
    def n_computed(self) -> int:
        """Computed values of a spectrum: ``n_values``, and the broadband one."""
        return self.n_values + self.broadband

    @property
    def delta_f(self) -> float:
        """Bin width [Hz]."""
        return self.fs / self.nfft

    @property
    def bin_frequencies(self) -> Float64Array:
        """Centre of each bin, shape (n_bins,), ascending [Hz]."""
        first = -(self.nfft // 2) if self.iq else 0
        bins = np.arange(first, first + self.n_bins, dtype=np.float64)
        return bins * self.delta_f + self.center_frequency_hz

    @property
    def frequencies(self) -> Float64Array:
        """Frequency of each value, shape (n_values,): the centre of the bin or band [Hz]."""
        bands = self.band_table
        return self.bin_frequencies if bands is None else bands.centre

    @property
    def band_table(self) -> Bands | None:
        """The bands, with their edges and widths; None for bins."""
        if not self.bands:
            return None
        if is_constant_q(self.bands):
            return constant_q_bands(self.bands, self.fs, self.win_length, self.window)
        return get_bands(self.bands, self.fs, self.nfft)

    @property
    def resolving_win_length(self) -> int:
        """Window length that resolves all bands in ``Bands.unresolved``; 0 if there are none."""
        bands = self.band_table
        return ceil(self.fs / bands.resolving_hz) if bands and bands.unresolved else 0

    @property
    def enbw_hz(self) -> float:
        """Equivalent noise bandwidth of the window, and thus of a bin, not of a band [Hz]."""
        return self.taper.enbw_hz(self.fs)

    @property
    def power_scale(self) -> float:
        """Factor from ``|X|^2`` of the windowed frame to linear power, before one-sided doubling.

        1 / (fs S2) for a density, 1 / S1^2 for a spectrum (Heinzel et al. 2002, eq. 23 and 24).
        Bands are sums of densities.
        """
        if self.scaling == "density" or self.bands:
            return 1.0 / (self.fs * self.taper.s2)
        return 1.0 / self.taper.s1**2

    @property
    def row_step(self) -> Fraction:
        """Exact number of samples from one row to the next; with rate_hz it need not be whole."""
        if self.rate_hz:
            return exact_row_step(self.fs, self.rate_hz)
        return Fraction(self.averaging_frames * self.hop)

    @property
    def row_s(self) -> float:
        """Time from one row to the next [s]."""
        return float(self.row_step) / self.fs

    @property
    def row_span(self) -> int:
        """Samples of a whole row, from its first frame's first to its last frame's last."""
        return (self.averaging_frames - 1) * self.hop + self.win_length

    @property
    def uncovered(self) -> int:
        """Samples of each row that are in none of its frames, because no more frames fit."""
        if self.averaging != "mean" or not self.rate_hz or self.hop > self.win_length:
            return 0
        return max(0, int(self.row_step) - self.row_span)

    @property
    def grid(self) -> RowGrid:
        """Positions of the frames."""
        return RowGrid(self.win_length, self.hop, self.averaging_frames, self.row_step)

    def n_frames(self, n_samples: int) -> int:
        """Return the number of whole frames in n_samples consecutive samples."""
        return self.grid.count(n_samples)


SPEC_FIELDS = tuple(
    one.name
    for one in fields(SpectrumSpec)
    if one.init and one.name not in {"taper", "calibration"}
)
"""Fields of a spectrum that are numbers and names."""
SPEC_DEFAULTS: dict[str, Any] = {
    one.name: one.default for one in fields(SpectrumSpec) if one.default is not MISSING
}


def chosen(spec: SpectrumSpec, names: Iterable[str]) -> dict[str, Any]:
    """Return the named fields of an analysis that differ from the defaults."""
    found = {name: getattr(spec, name) for name in names}
    return {name: value for name, value in found.items() if value != SPEC_DEFAULTS.get(name)}


def taper_for(window: WindowLike, win_length: int | None) -> Window:
    """Return the window of an analysis.

    Parameters
    ----------
    window : str, tuple or array-like
        See ``spectrod.dsp.windows.make_window``.
    win_length : int, optional
        Number of samples; the default is the length of an array, or ``WIN_LENGTH_DEFAULT``.

    Raises
    ------
    ConfigError
        If one of them violates a rule.
    """
    if win_length is None:
        return make_window(window, window_length(window) or WIN_LENGTH_DEFAULT)
    n = whole("win_length", win_length)
    if not 2 <= n <= NFFT_MAX:
        raise ConfigError(f"win_length={n}: must be 2 to {NFFT_MAX}")
    return make_window(window, n)
