"""Options of a picture; validated on construction."""

from dataclasses import dataclass, fields
from datetime import tzinfo
from typing import Annotated, Any, Literal, get_args

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.picture.axes import (
    FREQUENCY_SCALES,
    FrequencyAxis,
    FrequencyScale,
    nice_step,
)
from spectrod.formats.picture.colormaps import colormap, colormap_names
from spectrod.formats.picture.pooling import POOLINGS, Pooling
from spectrod.formats.picture.theme import THEMES
from spectrod.formats.picture.time_ticks import TIME_SCALES, TimeScale
from spectrod.lib.errors import ConfigError
from spectrod.lib.flag import flag
from spectrod.lib.time_zones import find_zone

Strip = Literal["waveform", "level"]
STRIPS: tuple[Strip, ...] = get_args(Strip)
ChannelsAs = Literal["rows", "files"]
CHANNELS_AS: tuple[ChannelsAs, ...] = get_args(ChannelsAs)

WIDTH_MIN, WIDTH_MAX = 200, 8000
HEIGHT_MIN, HEIGHT_MAX = 50, 8000
"""Limits of a plot with axes, whose labels would overlap below; without axes the lower is 1."""
_PIXELS_MAX = 100_000_000
"""Largest number of data pixels of all channels; many viewers refuse larger pictures."""

_HEIGHT_MONO, _HEIGHT_MORE = 512, 288
_LOG_SPAN = 1000.0
"""Default range of a logarithmic axis: three decades."""

_FROM_ABOVE_ZERO = ("log", "octave")

_LEVEL_LIMIT_DB, _LEVEL_SPAN_MIN_DB = 1000.0, 0.01
_DYNAMIC_RANGE_MIN_DB, _DYNAMIC_RANGE_MAX_DB = 1.0, 300.0
_F_RESOLUTION = 1e-6
"""Smallest range of a frequency axis, as a share of the Nyquist frequency."""


def unnamed_signal(number: int) -> str:
    """Return what files call a channel that has no name; a number from 0 on."""
    return f"channel {number}"


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """Options of a spectrogram picture.

    Attributes
    ----------
    width, height : int
        Size of each channel's plot, 200 to 8000 and 50 to 8000, from 1 on if ``raw`` [px]; height 0
        means 512 for one channel and 288 for more.
    f_scale : {"linear", "log", "mel", "octave", "bark", "erb"}
        Frequency axis; mel is Slaney's, bark Traunmueller's, erb Glasberg and Moore's. I/Q spectra
        have negative frequencies and need "linear".
    f_min, f_max : float or None
        Ends of the frequency axis [Hz]. By default from 0 (on a logarithmic or octave axis about
        f_max / 1000, but at least a bin width) to the Nyquist frequency, for I/Q that much below
        and above the centre frequency, for bands from the first band's to the last band's edge.
    levels : (float, float) or None
        Lowest and highest level of the colour map [dBFS or dB re FS^2/Hz]; None chooses both from
        the picture.
    dynamic_range_db : float or None
        Range of the colour map below its highest level, 1 to 300 [dB]; not with ``levels``.
    percentiles : (float, float) or None
        Percentiles of the picture's levels for the ends of the colour map, 0 to 100, lower first
        [percent]; None chooses robust ones. Not with ``levels``.
    colormap : str
        Name of a colour map, see ``spectrod.formats.picture.colormaps``.
    time_axis : {"elapsed", "utc"}
        Time since the first sample, or wall clock.
    time_zone : str
        Time zone of the wall clock, which the time axis then has; see ``find_zone``. Empty: UTC.
    title : str
        First line, usually the source; empty for none.
    theme : {"light", "dark"}
        Colours of paper and ink around the plot.
    strips : tuple of {"waveform", "level"}
        Strips along each plot: the samples' least and greatest values above it, their RMS and peak
        level below.
    signals : tuple of str
        Names of the channels, one for each; empty for numbers.
    channels_as : {"rows", "files"}
        All plots on one page, or a page for each.
    raw : bool
        Only the plots' pixels, ``width`` wide, each ``height`` high, directly above each other.
    pool : {"mean", "max", "min"}
        How a pixel combines the power of its frames.

    Raises
    ------
    ConfigError
        If a rule is broken; the text gives name, value and rule.
    """

    width: Annotated[int, flag("PX", "width of the plot (%(default)s)")] = 1000
    height: Annotated[int, flag("PX", "height of each channel's plot (512; 288)")] = 0
    f_scale: Annotated[
        FrequencyScale, flag("", "frequency axis (%(default)s)", choices=FREQUENCY_SCALES)
    ] = "linear"
    f_min: Annotated[float | None, flag("HZ", "its lower end, as 100 or 1.5kHz")] = None
    f_max: Annotated[float | None, flag("HZ", "its upper end, as 4000, 4k or 0.5MHz")] = None
    levels: Annotated[
        tuple[float, float] | None,
        flag("LO,HI", "ends of the colour scale in dB, as in --levels -100,-20 (automatic)"),
    ] = None
    colormap: Annotated[str, flag("NAME", f"{', '.join(colormap_names())}; reversed: NAME_r")] = (
        "inferno"
    )
    time_axis: Annotated[
        TimeScale, flag("", "time axis (utc if the time is known)", choices=TIME_SCALES)
    ] = "elapsed"
    time_zone: Annotated[
        str,
        flag(
            "ZONE",
            "time axis of the wall clock in this zone: Europe/Berlin, or local: this machine's",
        ),
    ] = ""
    title: Annotated[str, flag("", "first line (the source's name)")] = ""
    theme: Annotated[str, flag("", "colours of the page (%(default)s)", choices=tuple(THEMES))] = (
        "light"
    )
    dynamic_range_db: Annotated[
        float | None,
        flag("DB", "range of the colour scale (30 to 90, automatic)", name="dynamic-range"),
    ] = None
    percentiles: Annotated[
        tuple[float, float] | None,
        flag(
            "LO,HI",
            "percentiles of the picture's levels at the ends of the scale (about 5,99.95)",
        ),
    ] = None
    strips: Annotated[
        tuple[Strip, ...],
        flag("NAME,...", f"{' and '.join(STRIPS)}, above and below each plot (none)"),
    ] = ()
    signals: Annotated[
        tuple[str, ...],
        flag("NAME,...", "names of the channels (numbers)", name="channel-names"),
    ] = ()
    channels_as: Annotated[
        ChannelsAs, flag("", "all on one page, or one file each (%(default)s)", choices=CHANNELS_AS)
    ] = "rows"
    raw: Annotated[
        bool,
        flag("", "the plots' pixels alone, without axes and texts, from 1 x 1 pixels on"),
    ] = False
    pool: Pooling = "mean"

    def __post_init__(self) -> None:
        check_width("width=", self.width, raw=self.raw)
        least = 1 if self.raw else HEIGHT_MIN
        if self.height != 0 and not least <= self.height <= HEIGHT_MAX:
            rule = f"must be 0 (automatic) or {HEIGHT_MIN} to {HEIGHT_MAX} pixels"
            raise ConfigError(f"height={self.height}: {rule}, from 1 on without axes (raw)")
        for name, choices in (
            ("f_scale", FREQUENCY_SCALES),
            ("time_axis", TIME_SCALES),
            ("theme", tuple(THEMES)),
            ("channels_as", CHANNELS_AS),
            ("pool", POOLINGS),
        ):
            if getattr(self, name) not in choices:
                rule = f"must be one of {', '.join(choices)}"
                raise ConfigError(f"{name}={getattr(self, name)!r}: {rule}")
        find_zone(self.time_zone)
        self._check_range()
        self._check_strips()
        colormap(self.colormap, 2)

    @property
    def has_clock(self) -> bool:
        """Whether times are those of the wall clock."""
        return self.time_axis == "utc" or bool(self.time_zone)

    @property
    def zone(self) -> tzinfo:
        """Time zone of the wall clock."""
        return find_zone(self.time_zone)

    def _check_range(self) -> None:
        if self.levels is not None:
            _check_levels(*self.levels)
            for name in ("dynamic_range_db", "percentiles"):
                if getattr(self, name) is not None:
                    raise ConfigError(f"{name}={getattr(self, name)}: not together with levels")
        if self.percentiles is not None:
            lo, hi = self.percentiles
            if not 0.0 <= lo < hi <= 100.0:
                raise ConfigError(
                    f"percentiles={lo:g},{hi:g}: must be two numbers of percent, lower first, "
                    "within 0 to 100"
                )
        span = self.dynamic_range_db
        if span is not None and not _DYNAMIC_RANGE_MIN_DB <= span <= _DYNAMIC_RANGE_MAX_DB:
            raise ConfigError(
                f"dynamic_range_db={span:g}: must be {_DYNAMIC_RANGE_MIN_DB:g} to "
                f"{_DYNAMIC_RANGE_MAX_DB:g} dB"
            )

    def _check_strips(self) -> None:
        for strip in self.strips:
            if strip not in STRIPS or self.strips.count(strip) > 1:
                raise ConfigError(
                    f"strips={','.join(self.strips)}: must be {' and '.join(STRIPS)}, or one of "
                    "them"
                )
        if self.raw and self.strips:
            raise ConfigError(f"strips={','.join(self.strips)}: a raw picture has none")

    def chosen(self) -> dict[str, Any]:
        """Return the options that differ from the defaults, as JSON values.

        The title is excluded, because it belongs to one source.
        """
        chosen = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "title" and value != field.default:
                chosen[field.name] = list(value) if isinstance(value, tuple) else value
        return chosen

    def names(self, n_signals: int) -> tuple[str, ...]:
        """Return the name of each channel.

        Raises
        ------
        ConfigError
            If the number of names differs from that of the channels.
        """
        if not self.signals:
            return tuple(map(unnamed_signal, range(n_signals)))
        if len(self.signals) != n_signals:
            raise ConfigError(
                f"signals={','.join(self.signals)}: must be as many names as channels, {n_signals}"
            )
        return self.signals

    def height_for(self, channels: int) -> int:
        """Return the height of each channel's plot [px].

        Raises
        ------
        ConfigError
            If all channels together exceed the largest size.
        """
        height = self.height or (_HEIGHT_MONO if channels == 1 else _HEIGHT_MORE)
        if self.width * height * channels > _PIXELS_MAX:
            raise ConfigError(
                f"width={self.width}, height={height}, channels={channels}: must not exceed "
                f"{_PIXELS_MAX} pixels together"
            )
        return height

    def frequency_axis(self, spec: SpectrumSpec) -> FrequencyAxis:
        """Return the frequency axis for spectra of this spec.

        Raises
        ------
        ConfigError
            If f_min and f_max contradict each other or the sample rate.
        """
        nyquist = spec.fs / 2.0
        lowest, highest = _frequency_limits(spec)
        if spec.iq and self.f_scale != "linear":
            raise ConfigError(f"f_scale={self.f_scale!r}: must be 'linear' of I/Q spectra")
        least = _F_RESOLUTION * nyquist
        bands = spec.band_table
        default_f_max = highest if bands is None else float(bands.upper[-1])
        f_max = default_f_max if self.f_max is None else self.f_max
        if not lowest + least <= f_max <= highest:
            rule = f"must be {lowest + least:.10g} to {highest:.10g} Hz"
            raise ConfigError(f"f_max={f_max:.10g}: {rule}")
        f_min = self._default_f_min(f_max, spec) if self.f_min is None else self.f_min
        if not lowest <= f_min <= f_max - least:
            rule = f"must be at least {lowest:.10g} and {least:g} Hz below f_max ({f_max:.10g} Hz)"
            raise ConfigError(f"f_min={f_min:.10g}: {rule}")
        if self.f_scale in _FROM_ABOVE_ZERO and f_min < least:
            rule = f"must be at least {least:g} Hz on a logarithmic axis"
            raise ConfigError(f"f_min={f_min:g}: {rule}")
        return FrequencyAxis(self.f_scale, f_min, f_max)

    def _default_f_min(self, f_max: float, spec: SpectrumSpec) -> float:
        lowest, _ = _frequency_limits(spec)
        if spec.iq:
            return lowest
        if spec.band_table is not None:
            lowest = float(spec.band_table.lower[0])
        if self.f_scale not in _FROM_ABOVE_ZERO or lowest > 0.0:
            return min(lowest, f_max / 2.0)
        # Of half the value, rounded up: 22050 and 24000 Hz both give 20 Hz.
        three_decades = nice_step(f_max / _LOG_SPAN / 2.0)
        return min(max(three_decades, spec.delta_f), f_max / 2.0)


def width_min(*, raw: bool) -> int:
    """Return the smallest width of a plot with or without axes [px]."""
    return 1 if raw else WIDTH_MIN


def check_width(name: str, width: int, *, raw: bool) -> None:
    """Check the width of a plot [px]; raises ConfigError with the name and the rule."""
    if not width_min(raw=raw) <= width <= WIDTH_MAX:
        rule = f"must be {WIDTH_MIN} to {WIDTH_MAX} pixels, from 1 on without axes (raw)"
        raise ConfigError(f"{name}{width}: {rule}")


def _frequency_limits(spec: SpectrumSpec) -> tuple[float, float]:
    """Return the lowest and highest frequency of a spectrum [Hz]."""
    nyquist = spec.fs / 2.0
    if not spec.iq:
        return 0.0, nyquist
    return spec.center_frequency_hz - nyquist, spec.center_frequency_hz + nyquist


def _check_levels(lo: float, hi: float) -> None:
    # Comparisons with NaN are False, so NaN breaks the rule as well.
    are_levels = all(abs(level) <= _LEVEL_LIMIT_DB for level in (lo, hi))
    if not (are_levels and hi - lo >= _LEVEL_SPAN_MIN_DB):
        raise ConfigError(
            f"levels={lo:g},{hi:g}: must be two numbers of dB, lower first, "
            f"{_LEVEL_SPAN_MIN_DB:g} or more apart, within -{_LEVEL_LIMIT_DB:g} to "
            f"{_LEVEL_LIMIT_DB:g}"
        )
