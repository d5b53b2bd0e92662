"""What a picture shall look like; validated when it is made."""

from dataclasses import dataclass

from spectrod.errors import ConfigError
from spectrod.record.picture.axes import (
    FREQUENCY_SCALES,
    FrequencyAxis,
    FrequencyScale,
    nice_step,
)
from spectrod.record.picture.clock import TIME_SCALES, TimeScale
from spectrod.record.picture.colormaps import colormap
from spectrod.record.picture.theme import THEMES
from spectrod.types import SpectrumSpec

WIDTH_MIN, WIDTH_MAX = 200, 8000
HEIGHT_MIN, HEIGHT_MAX = 50, 8000
_PIXELS_MAX = 100_000_000
"""Most data pixels of all channels together; many viewers refuse larger pictures."""

_HEIGHT_MONO, _HEIGHT_MORE = 512, 288
_LOG_SPAN = 1000.0
"""A logarithmic axis shows three decades unless told otherwise."""

_LEVEL_LIMIT_DB, _LEVEL_SPAN_MIN_DB = 1000.0, 0.01
_F_RESOLUTION = 1e-6
"""Least frequency that an axis tells from another, as a share of the Nyquist frequency."""


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """What a spectrogram picture shall look like.

    Attributes
    ----------
    width, height : int
        Plot area of each channel [px]; height 0 stands for 512 with one channel, 288 with more.
    f_scale : {"linear", "log"}
        Frequency axis.
    f_min, f_max : float or None
        Its ends [Hz]; None stands for 0 (on a logarithmic axis about f_max / 1000, but not
        less than a bin width) and for the Nyquist frequency.
    levels : (float, float) or None
        Lowest and highest level of the colour map [dBFS or dB re FS^2/Hz]; None chooses both from
        the picture.
    colormap : str
        See ``spectrod.record.picture.colormaps``.
    time_axis : {"elapsed", "utc"}
        Time since the first sample, or wall clock.
    title : str
        First line, usually the source; empty for none.
    theme : {"light", "dark"}
        Of paper and ink around the plot.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    width: int = 1000
    height: int = 0
    f_scale: FrequencyScale = "linear"
    f_min: float | None = None
    f_max: float | None = None
    levels: tuple[float, float] | None = None
    colormap: str = "inferno"
    time_axis: TimeScale = "elapsed"
    title: str = ""
    theme: str = "light"

    def __post_init__(self) -> None:
        if not WIDTH_MIN <= self.width <= WIDTH_MAX:
            raise ConfigError(f"width={self.width}: must be {WIDTH_MIN} to {WIDTH_MAX} pixels")
        if self.height != 0 and not HEIGHT_MIN <= self.height <= HEIGHT_MAX:
            rule = f"must be 0 (automatic) or {HEIGHT_MIN} to {HEIGHT_MAX} pixels"
            raise ConfigError(f"height={self.height}: {rule}")
        for name, choices in (
            ("f_scale", FREQUENCY_SCALES),
            ("time_axis", TIME_SCALES),
            ("theme", tuple(THEMES)),
        ):
            if getattr(self, name) not in choices:
                rule = f"must be one of {', '.join(choices)}"
                raise ConfigError(f"{name}={getattr(self, name)!r}: {rule}")
        if self.levels is not None:
            _check_levels(*self.levels)
        colormap(self.colormap, 2)

    def height_for(self, channels: int) -> int:
        """Rows of each channel's plot [px].

        Raises
        ------
        ConfigError
            If all channels together would make the picture too large.
        """
        height = self.height or (_HEIGHT_MONO if channels == 1 else _HEIGHT_MORE)
        if self.width * height * channels > _PIXELS_MAX:
            raise ConfigError(
                f"width={self.width}, height={height}, channels={channels}: must not exceed "
                f"{_PIXELS_MAX} pixels together"
            )
        return height

    def frequency_axis(self, spec: SpectrumSpec) -> FrequencyAxis:
        """Frequency axis for spectra of the given kind.

        Raises
        ------
        ConfigError
            If f_min and f_max do not fit each other or the sample rate.
        """
        nyquist = spec.fs / 2.0
        least = _F_RESOLUTION * nyquist
        f_max = nyquist if self.f_max is None else self.f_max
        if not least <= f_max <= nyquist:
            raise ConfigError(f"f_max={f_max:g}: must be {least:g} to {nyquist:g} Hz")
        f_min = self._default_f_min(f_max, spec.delta_f) if self.f_min is None else self.f_min
        if not 0.0 <= f_min <= f_max - least:
            rule = f"must be at least 0 and {least:g} Hz below f_max ({f_max:g} Hz)"
            raise ConfigError(f"f_min={f_min:g}: {rule}")
        if self.f_scale == "log" and f_min < least:
            rule = f"must be at least {least:g} Hz on a logarithmic axis"
            raise ConfigError(f"f_min={f_min:g}: {rule}")
        return FrequencyAxis(self.f_scale, f_min, f_max)

    def _default_f_min(self, f_max: float, delta_f: float) -> float:
        if self.f_scale == "linear":
            return 0.0
        # Half as much and rounded up: 22050 and 24000 Hz both begin at 20 Hz.
        three_decades = nice_step(f_max / _LOG_SPAN / 2.0)
        return min(max(three_decades, delta_f), f_max / 2.0)


def _check_levels(lo: float, hi: float) -> None:
    # Comparisons with NaN are false, so it breaks the rule as well.
    are_levels = all(abs(level) <= _LEVEL_LIMIT_DB for level in (lo, hi))
    if not (are_levels and hi - lo >= _LEVEL_SPAN_MIN_DB):
        raise ConfigError(
            f"levels={lo:g},{hi:g}: must be two numbers of dB, lower first, "
            f"{_LEVEL_SPAN_MIN_DB:g} or more apart, within -{_LEVEL_LIMIT_DB:g} to "
            f"{_LEVEL_LIMIT_DB:g}"
        )
