"""What a spectrum means: the spec of an analysis, validated when it is made."""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from math import ceil
from operator import index
from typing import Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.averaging import (
    EXCEEDED_RULE,
    FLOOR,
    PERCENTILE_BYTES_MAX,
    exceeded_percent,
    percentile_bytes,
)
from spectrod.dsp.bands import REASSIGNED, Bands, get_bands
from spectrod.dsp.calibration import ChannelCalibration, Response, common_text
from spectrod.dsp.calibration.level_reference import squared
from spectrod.dsp.constant_q import constant_q_bands, is_constant_q
from spectrod.dsp.row_grid import (
    RowGrid,
    exact_row_step,
    frames_starting_in,
    frames_within,
)
from spectrod.dsp.units import (
    FLOOR_DBFS,
    FULL_SCALE_SINE_FS2,
    REFERENCES,
    SCALINGS,
    UNITS,
    Float,
    Float64Array,
    Scaling,
    level_to_power,
    power_to_level,
)
from spectrod.dsp.weighting import WEIGHTINGS, Weighting
from spectrod.dsp.windows import (
    CUSTOM,
    LENGTH_MAX,
    WINDOW_NAMES,
    Window,
    WindowLike,
    get_window,
    make_window,
    window_derivative,
    window_length,
)
from spectrod.lib.errors import ConfigError

Output = Literal["power", "complex"]
Averaging = Literal["none", "mean", "max", "min", "exponential"]
Align = Literal["start", "utc"]

NFFT_MIN, NFFT_MAX = 16, LENGTH_MAX
REASSIGNED_HOPS_MAX = 64
"""Largest number of hops in a window of a reassigned spectrogram, which has transforms for each."""
CHANNELS_MAX = 4096
WIN_LENGTH_DEFAULT = 4096
FS_MIN_HZ, FS_MAX_HZ = 1e-3, 1e10
CENTER_FREQUENCY_MAX_HZ = 1e12
BAND_RESPONSES_MAX = 64
"""Different frequency responses of channels with bands, each of which is computed apart."""
HOP_MAX = (1 << 31) - 1
AVERAGING_FRAMES_MAX = (1 << 31) - 1

ZERO_DB = "0 dB"
"""Begins the reference of calibrated values: ``0 dB = 20 uPa``."""

_NFFT_CHOSEN_MIN = 64
_NO_WINDOW = Window("", np.empty(0), 0.0, 0.0)
_WHOLE_MAX = 2.0**53
"""Largest float accepted as a whole number: all larger floats are whole for lack of bits."""


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

    def __post_init__(self) -> None:
        for name in ("channels", "win_length", "hop", "nfft", "averaging_frames"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        object.__setattr__(self, "fs", _positive("fs", self.fs, "Hz"))
        object.__setattr__(self, "averaging_s", _positive("averaging_s", self.averaging_s, "s"))
        self._check_frames()
        self._check_choices()
        self._check_output()
        self._place_rows()
        self._check_averaging()
        if not self.product:
            object.__setattr__(self, "product", self.scaling)
        object.__setattr__(self, "taper", self._checked_taper())
        self._check_calibration()
        self.band_table  # noqa: B018 - refuses unknown ones
        if self.bands == REASSIGNED:
            self._check_reassigned()

    def _check_calibration(self) -> None:
        given = self.calibration
        if not any(given):
            object.__setattr__(self, "calibration", ())
            return
        if len(given) != self.n_signals:
            raise ConfigError(
                f"calibration: of {len(given)} channels: must be of {self.n_signals}, one for "
                "each spectrum"
            )
        n_responses = len(self.responses)
        if self.bands and n_responses > BAND_RESPONSES_MAX:
            raise ConfigError(
                f"channels with {n_responses} frequency responses: must be "
                f"at most {BAND_RESPONSES_MAX}; analyse them apart, or without bands",
                bands=self.bands,
            )

    def _check_reassigned(self) -> None:
        window_derivative(self.window, 2)  # refuses windows without one
        least = ceil(self.win_length / REASSIGNED_HOPS_MAX)
        if self.hop < least:
            raise ConfigError(
                f"bands='reassigned' needs at least win_length/{REASSIGNED_HOPS_MAX}, {least}",
                "bands",
                hop=self.hop,
            )

    def _check_frames(self) -> None:
        if not FS_MIN_HZ <= self.fs <= FS_MAX_HZ:
            raise ConfigError(f"fs={self.fs:g}: must be {FS_MIN_HZ:g} to {FS_MAX_HZ:g} Hz")
        if not 1 <= self.channels <= CHANNELS_MAX:
            raise ConfigError(f"must be 1 to {CHANNELS_MAX}", channels=self.channels)
        if not 2 <= self.win_length <= NFFT_MAX:
            raise ConfigError(f"must be 2 to {NFFT_MAX}", win_length=self.win_length)
        if self.hop < 1:
            raise ConfigError("must be at least 1 sample", hop=self.hop)
        if self.hop > HOP_MAX:
            raise ConfigError(f"must be at most {HOP_MAX} samples", hop=self.hop)
        if self.nfft == 0:
            chosen = max(_NFFT_CHOSEN_MIN, _next_power_of_two(self.win_length))
            object.__setattr__(self, "nfft", chosen)
        if not NFFT_MIN <= self.nfft <= NFFT_MAX:
            raise ConfigError(f"must be {NFFT_MIN} to {NFFT_MAX}", nfft=self.nfft)
        if self.win_length > self.nfft:
            raise ConfigError(
                f"must not exceed nfft={self.nfft}", "nfft", win_length=self.win_length
            )

    def _check_choices(self) -> None:
        if not isinstance(self.window, str):  # such as SciPy's ("kaiser", 8.6)
            raise ConfigError(
                f"window={self.window!r}: must be a name, one of {', '.join(WINDOW_NAMES)}",
                "window",
            )
        if not isinstance(self.bands, str):
            raise ConfigError(f"bands={self.bands!r}: must be a name, or '' for bins", "bands")
        if self.broadband and not self.bands:
            raise ConfigError("broadband=True: needs bands")
        _one_of("scaling", self.scaling, SCALINGS)
        _one_of("output", self.output, get_args(Output))
        _one_of("weighting", self.weighting, WEIGHTINGS)
        check_averaging(self.averaging)
        _one_of("align", self.align, get_args(Align))

    def _checked_taper(self) -> Window:
        """Return the window itself: the named or the given custom one."""
        if self.window != CUSTOM:
            return get_window(self.window, self.win_length)
        if self.taper.name != CUSTOM:
            raise ConfigError(f"window={CUSTOM!r}: must be given as an array, it has no name")
        n = len(self.taper.samples)
        if n != self.win_length:
            raise ConfigError(
                f"window: {n} samples: must be as many as win_length={self.win_length}"
            )
        return self.taper

    def _check_output(self) -> None:
        if self.output == "complex":
            if self.scaling == "dbfs":
                raise ConfigError("complex spectra have no level", scaling="dbfs")
            self._require_none("complex spectra have none", "weighting", "bands", "averaging")
        if self.iq:
            if self.channels % 2:
                raise ConfigError("must be even, I and Q in turn", channels=self.channels)
            self._require_none("I/Q signals have none", "weighting", "bands")
        self._check_center_frequency()

    def _check_center_frequency(self) -> None:
        given = self.center_frequency_hz
        try:
            value = float(given)
        except (TypeError, ValueError, OverflowError):
            value = np.nan
        if not abs(value) <= CENTER_FREQUENCY_MAX_HZ:
            raise ConfigError(
                f"center_frequency_hz={given}: must be a frequency within "
                f"+-{CENTER_FREQUENCY_MAX_HZ:g} Hz",
                "center_frequency_hz",
            )
        if value and not self.iq:
            raise ConfigError(
                f"center_frequency_hz={value:.15g}: needs I/Q samples, iq", "center_frequency_hz"
            )
        object.__setattr__(self, "center_frequency_hz", value + 0.0)  # no -0.0

    def _place_rows(self) -> None:
        """Check rate_hz, and set the fields that follow from it."""
        if not self.rate_hz:
            object.__setattr__(self, "rate_hz", 0.0)
            if self.align != "start":
                raise ConfigError("needs rate_hz", align=self.align)
            return
        object.__setattr__(self, "rate_hz", _positive("rate_hz", self.rate_hz, "Hz"))
        step = self.fs / self.rate_hz  # not exact: only for limits
        if not step >= 1.0:
            raise ConfigError(f"must be at most fs={self.fs:g}", rate_hz=self.rate_hz)
        if step > HOP_MAX:
            rule = f"must be at least {self.fs / HOP_MAX:.3g}, fs={self.fs:g}"
            raise ConfigError(rule, rate_hz=self.rate_hz)
        whole = int(self.row_step)
        if self.averaging == "none":
            object.__setattr__(self, "hop", whole)
            return
        if self.hop > whole:
            raise ConfigError(
                f"rows of {whole} samples have no frame of hop="
                f"{self.hop}: hop must be at most {whole}, or rate_hz {self.fs / self.hop:.6g}",
                "hop",
                rate_hz=self.rate_hz,
            )
        given = self.averaging_frames
        if self.averaging == "mean":
            frames = frames_within(whole, self.win_length, self.hop)
        else:
            frames = frames_starting_in(whole, self.hop)
        if given not in {1, frames}:
            raise ConfigError(
                f"averaging_frames={given}: rate_hz={self.rate_hz:g} makes it {frames}", "rate_hz"
            )
        object.__setattr__(self, "averaging_frames", frames)

    def _check_averaging(self) -> None:
        self._check_percentile()
        if self.averaging_frames < 1:
            raise ConfigError(f"averaging_frames={self.averaging_frames}: must be at least 1")
        if self.averaging_frames > AVERAGING_FRAMES_MAX:
            raise ConfigError(
                f"averaging_frames={self.averaging_frames}: must be at most {AVERAGING_FRAMES_MAX}"
            )
        if self.averaging == "none" and self.averaging_frames > 1:
            raise ConfigError(
                f"averaging_frames={self.averaging_frames}: must be 1 without averaging"
            )

    def _check_percentile(self) -> None:
        averaging = self.averaging
        if exceeded_percent(averaging) is None:
            return
        if averaging == FLOOR and self.bands:
            raise ConfigError(
                "is of bins, the power of a band is distributed otherwise: "
                "choose a percentile such as L90, or no bands",
                averaging=FLOOR,
            )
        n_values = self.n_signals * self.n_computed
        n_bytes = percentile_bytes(self.averaging_frames, n_values)
        if n_bytes > PERCENTILE_BYTES_MAX:
            raise ConfigError(
                f"{n_values} values over {self.averaging_frames} frames "
                f"need {n_bytes >> 20} MiB: must be at most {PERCENTILE_BYTES_MAX >> 20} MiB; "
                "choose bands, a smaller nfft or fewer channels",
                averaging=averaging,
            )

    def _require_none(self, why: str, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value not in ("Z", "", "none"):
                raise ConfigError(f"{name}={value!r}: {why}", name)

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
    def units(self) -> tuple[str, ...]:
        """Unit of the values of each signal, shape (n_signals,)."""
        return self._of_signals(self._unit_in)

    @property
    def unit(self) -> str:
        """Unit of the values; those of different signals are joined by commas."""
        return common_text(self.units)

    def _unit_in(self, calibration: ChannelCalibration | None) -> str:
        if self.output == "power" and self.scaling == "dbfs":
            return calibration.unit if calibration else UNITS["dbfs"]
        base = calibration.linear_unit if calibration else "FS"
        if self.output == "complex":
            return f"{base}/Hz^0.5" if self.scaling == "density" else base
        return f"{squared(base)}/Hz" if self.scaling == "density" else squared(base)

    @property
    def broadband_unit(self) -> str:
        """Unit of the broadband values: a level or a mean square, even beside densities."""
        if self.scaling == "dbfs":
            return self.unit
        return common_text(self._of_signals(lambda one: squared(one.linear_unit if one else "FS")))

    @property
    def level_unit(self) -> str:
        """Unit of ``to_level``."""
        if self.calibrated is None:
            return "dB re FS^2/Hz" if self.scaling == "density" else UNITS["dbfs"]
        reference = self.calibrated.reference
        return reference.density_level_unit if self.scaling == "density" else reference.level_unit

    @property
    def calibrated(self) -> ChannelCalibration | None:
        """Calibration of the first signal; it has the unit of all if there is one unit."""
        return self.calibration[0] if self.calibration else None

    @property
    def cal_ids(self) -> tuple[str, ...]:
        """Identity of the calibration of each signal, empty without one, shape (n_signals,)."""
        return self._of_signals(lambda one: one.cal_id if one else "")

    @property
    def cal_id(self) -> str:
        """Identity of the calibration; those of different signals are joined by commas."""
        return common_text(filter(None, self.cal_ids))

    @property
    def common_response(self) -> Response | None:
        """Frequency response that power of all signals is corrected for; None if they differ."""
        if self.output == "complex" or not self.calibration:
            return None
        responses = self.responses
        return responses[0] if len(responses) == 1 else None

    @property
    def responses(self) -> tuple[Response | None, ...]:
        """The different frequency responses of the signals, in their order."""
        found = [one.response if one else None for one in self.calibration]
        # Many signals share one, whose rows are hashed once.
        return tuple(dict.fromkeys({id(response): response for response in found}.values()))

    @property
    def signal_factors(self) -> Float64Array:
        """Factor from power [FS^2] to that of the results, shape (n_signals,).

        Of levels it is the factor to the power relative to 0 dB.
        """
        is_level = self.scaling == "dbfs"
        uncalibrated = 1.0 / self.uncalibrated_reference_power if is_level else 1.0
        factors = [
            uncalibrated
            if one is None
            else 10.0 ** (one.full_scale_db / 10.0)
            if is_level
            else one.full_scale**2
            for one in self.calibration or (None,) * self.n_signals
        ]
        return np.array(factors)

    def _of_signals(self, text: Callable[[ChannelCalibration | None], str]) -> tuple[str, ...]:
        if not self.calibration:
            return (text(None),) * self.n_signals
        return tuple(text(one) for one in self.calibration)

    @property
    def reference_power(self) -> float:
        """Power of 0 dB [FS^2; for a density FS^2/Hz; or in the unit of the calibration].

        It is that of a full-scale sine, for I/Q of a complex tone of amplitude 1, for a density 1;
        with a calibration the square of its reference.
        """
        if self.calibrated is not None:
            return self.calibrated.reference.value**2
        return self.uncalibrated_reference_power

    @property
    def uncalibrated_reference_power(self) -> float:
        """Power of 0 dB of signals without a calibration [FS^2; for a density FS^2/Hz]."""
        return 1.0 if self.iq or self.scaling == "density" else FULL_SCALE_SINE_FS2

    def to_power(self, values: NDArray[Float]) -> NDArray[Float]:
        """Convert values to linear power [FS^2, for a density FS^2/Hz], of the same dtype.

        With a calibration it is in the square of its linear unit.
        """
        return level_to_power(values, self.reference_power) if self.scaling == "dbfs" else values

    def to_level(self, values: NDArray[Float]) -> NDArray[Float]:
        """Convert values to levels re ``reference_power`` [``level_unit``], of the same dtype.

        Levels in dBFS are at least ``FLOOR_DBFS``; a density of 0 is minus infinity.
        """
        if self.scaling == "dbfs":
            return values
        floor_db = -np.inf if self.scaling == "density" else FLOOR_DBFS
        return power_to_level(values, self.reference_power, floor_db)

    @property
    def references(self) -> tuple[str, ...]:
        """Reference of the unit of each signal, shape (n_signals,)."""
        return self._of_signals(self._reference_in)

    @property
    def reference(self) -> str:
        """Reference of the unit; those of different signals are joined by commas."""
        return common_text(self.references)

    def _reference_in(self, calibration: ChannelCalibration | None) -> str:
        if calibration is not None:
            zero = f"{ZERO_DB} = {calibration.reference.name}"
            return zero if self.scaling == "dbfs" else f"{zero}, {self._meaning}"
        if self.output == "power" and not self.iq and not self.bands:
            return REFERENCES[self.scaling]
        if self.scaling == "dbfs":
            return "0 dBFS = complex tone of amplitude 1" if self.iq else REFERENCES["dbfs"]
        return f"FS = digital full scale (1.0), {self._meaning}"

    @property
    def _meaning(self) -> str:
        if self.bands:
            return "a band's mean density" if self.scaling == "density" else "a band's mean square"
        if self.output == "complex":
            return "of each side"
        if not self.iq:
            return "one-sided" if self.scaling == "density" else "a sine's mean square at its bin"
        return "two-sided" if self.scaling == "density" else "a complex tone's mean square"

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
    one.name for one in fields(SpectrumSpec) if one.name not in {"taper", "calibration"}
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
    n = _whole("win_length", win_length)
    if not 2 <= n <= NFFT_MAX:
        raise ConfigError(f"win_length={n}: must be 2 to {NFFT_MAX}")
    return make_window(window, n)


def _whole(name: str, value: object) -> int:
    """Return an integer of any type, or a whole float, as int, the only type in messages."""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if abs(number) <= _WHOLE_MAX and number.is_integer():
            return int(number)
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(f"{name}={value!r}: must be a whole number", name) from None


def _positive(name: str, given: float, unit: str) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = np.nan
    if not (np.isfinite(value) and value > 0.0):
        raise ConfigError(f"{name}={given}: must be a positive number of {unit}", name)
    return value


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name}={value!r}: must be one of {', '.join(allowed)}", name)


def check_averaging(name: object) -> None:
    """Raise ConfigError if there is no such averaging."""
    if name in get_args(Averaging) or (isinstance(name, str) and exceeded_percent(name)):
        return
    known = ", ".join((*get_args(Averaging), FLOOR))
    raise ConfigError(f"must be one of {known}, or {EXCEEDED_RULE}", averaging=name)


def _next_power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
