"""Settings of named values of frames, such as features; ``default.toml`` describes each key."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from spectrod.calibration import ChannelCalibration
from spectrod.errors import ConfigError
from spectrod.interval_values import check_interval
from spectrod.names import check_name
from spectrod.types import FS_MAX_HZ, Align, SpectrumSpec

if TYPE_CHECKING:
    from spectrod.tones.tally import ToneSettings

TONES_DEFAULT = ("fundamental", "level", "THD", "SINAD")
FEATURES_DEFAULT = ("centroid", "spread", "rolloff", "flatness", "entropy", "flux")

_Frequency = Annotated[float, Meta(ge=0, le=FS_MAX_HZ)]


class FramesConfig(Struct, frozen=True):
    """Keys of all products of named values of frames."""

    name: str
    """The PRODUCT of their topics."""
    sources: tuple[str, ...] = ()
    """Which are measured; none named: all."""
    interval_s: float = 1.0
    align: Align = "utc"
    window: str = "hann"
    win_length: int = 4096
    hop: Annotated[int, Meta(ge=0)] = 0
    low_hz: _Frequency = 0.0
    high_hz: _Frequency = 0.0

    def spec(
        self,
        fs: float,
        channels: int,
        *,
        iq: bool = False,
        center_frequency_hz: float = 0.0,
        calibration: Sequence[ChannelCalibration | None] = (),
    ) -> SpectrumSpec:
        """Return the definition of the frames; raises ConfigError if a rule is broken."""
        spec = SpectrumSpec(
            fs,
            channels,
            self.window,
            self.win_length,
            self.hop or max(1, self.win_length // 2),
            iq=iq,
            center_frequency_hz=center_frequency_hz,
            calibration=tuple(calibration),
        )
        check_interval(self.interval_s, spec.win_length, fs)
        self._check_band(spec)
        return spec

    def band_hz(self, spec: SpectrumSpec) -> tuple[float, float] | None:
        """Return the band that counts [Hz]; None without a limit."""
        if not (self.low_hz or self.high_hz):
            return None
        return self.low_hz, self.high_hz or float(spec.bin_frequencies[-1])

    def limits_hz(self, spec: SpectrumSpec) -> tuple[float, float]:
        """Return the lowest and the highest frequency that counts [Hz]."""
        first, last = spec.bin_frequencies[[0 if spec.iq else 1, -1]]
        return self.band_hz(spec) or (float(first), float(last))

    def _check_band(self, spec: SpectrumSpec) -> None:
        top_hz = float(spec.bin_frequencies[-1])
        for key, value in (("low_hz", self.low_hz), ("high_hz", self.high_hz)):
            if value > top_hz:
                raise ConfigError(f"{key}={value:g}: must be at most {top_hz:g} Hz, the last bin")
        if self.high_hz and self.low_hz >= self.high_hz:
            raise ConfigError(f"low_hz={self.low_hz:g}: must be below high_hz={self.high_hz:g}")


class FeaturesConfig(FramesConfig, frozen=True):
    """Features that the daemon publishes."""

    quantities: tuple[str, ...] = FEATURES_DEFAULT
    spectra: tuple[str, ...] = ()

    def check(self, fs: float | None, channels: int, *, iq: bool) -> None:
        """Check what can be checked without the source.

        Parameters
        ----------
        fs : float or None
            Sample rate [Hz]; None if it is not known: what depends on it is not checked.
        channels : int
            Number of channels.
        iq : bool
            Whether each two of them are I and Q.

        Raises
        ------
        ConfigError
            If a rule is broken.
        """
        # Most configurations have no features.
        from spectrod.features.quantities import check_spectra, parse_features  # noqa: PLC0415
        from spectrod.features.tally import FeatureTally  # noqa: PLC0415

        check_name("name of features", self.name)
        quantities = parse_features(self.quantities, self.interval_s)
        check_spectra(self.spectra)
        if fs is not None:
            spec = self.spec(fs, channels, iq=iq)
            FeatureTally(quantities, spec, self.band_hz(spec), self.spectra)


class TonesConfig(FramesConfig, frozen=True):
    """Tones and tracks that the daemon publishes."""

    window: str = "blackmanharris"
    win_length: int = 8192
    quantities: tuple[str, ...] = TONES_DEFAULT
    max_tracks: Annotated[int, Meta(ge=1, le=1024)] = 32
    threshold_db: Annotated[float, Meta(ge=0, le=200)] = 13.0
    max_step_hz: _Frequency = 0.0
    max_missed: Annotated[int, Meta(ge=0, le=1_000_000)] = 2
    harmonics: int = 10

    def check(self, fs: float | None, channels: int, *, iq: bool) -> None:
        """Check what can be checked without the source; see ``FeaturesConfig.check``."""
        # Most configurations have no tones.
        from spectrod.tones.quantities import parse_tones  # noqa: PLC0415
        from spectrod.tones.tally import ToneTally  # noqa: PLC0415

        check_name("name of tones", self.name)
        quantities = parse_tones(self.quantities, self.interval_s)
        if fs is not None:
            spec = self.spec(fs, channels, iq=iq)
            ToneTally(quantities, spec, self.interval_s, self.tone_settings(spec))

    def tone_settings(self, spec: SpectrumSpec) -> "ToneSettings":
        """Return how tones are found and tracked."""
        from spectrod.tones.tally import ToneSettings  # noqa: PLC0415

        return ToneSettings(
            self.band_hz(spec),
            self.max_tracks,
            self.threshold_db,
            self.max_step_hz,
            self.max_missed,
            self.harmonics,
        )
