"""Settings of named values of frames, such as features; ``default.toml`` describes each key."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.spectrum import FS_MAX_HZ, Align, SpectrumSpec
from spectrod.lib.errors import ConfigError
from spectrod.lib.names import check_name
from spectrod.measure.interval_row import INTERVAL_MAX_S, check_interval

if TYPE_CHECKING:
    from spectrod.measure.tones.tone_tally import ToneSettings

TONES_DEFAULT = ("fundamental", "level", "THD", "SINAD")
TRANSFER_DEFAULT = (
    "delay",
    "level_difference",
    "mean_coherence",
    "significant_coherence",
    "averages",
)
TRANSFER_SPECTRA_DEFAULT = ("coherence", "h1", "h1_phase")
PAIRS_MAX = 64
"""Maximum number of responses of a reference."""
PAIR_VALUES_MAX = 1 << 20
"""Maximum number of values of a frame of a reference and its responses, and of a row's values of
bins of all responses: at most 200 MB of memory."""
DELAY_MAX_SAMPLES = 1 << 16
"""Maximum delay that is removed from a running source [samples]."""
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
        from spectrod.measure.features.feature_quantities import check_spectra, parse_features  # noqa: PLC0415
        from spectrod.measure.features.feature_tally import FeatureTally  # noqa: PLC0415

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
        from spectrod.measure.tones.tone_quantities import parse_tones  # noqa: PLC0415
        from spectrod.measure.tones.tone_tally import ToneTally  # noqa: PLC0415

        check_name("name of tones", self.name)
        quantities = parse_tones(self.quantities, self.interval_s)
        if fs is not None:
            spec = self.spec(fs, channels, iq=iq)
            ToneTally(quantities, spec, self.interval_s, self.tone_settings(spec))

    def tone_settings(self, spec: SpectrumSpec) -> "ToneSettings":
        """Return how tones are found and tracked."""
        from spectrod.measure.tones.tone_tally import ToneSettings  # noqa: PLC0415

        return ToneSettings(
            self.band_hz(spec),
            self.max_tracks,
            self.threshold_db,
            self.max_step_hz,
            self.max_missed,
            self.harmonics,
        )


class TransferConfig(FramesConfig, frozen=True):
    """Transfer functions from a reference to its responses that the daemon publishes."""

    reference: Annotated[int, Meta(ge=0)] = 0
    responses: tuple[Annotated[int, Meta(ge=0)], ...] = ()
    """Channels of the responses; none named: all but the reference."""
    quantities: tuple[str, ...] = TRANSFER_DEFAULT
    spectra: tuple[str, ...] = TRANSFER_SPECTRA_DEFAULT
    averaging: Literal["mean", "exponential"] = "mean"
    averaging_s: Annotated[float, Meta(ge=0, le=INTERVAL_MAX_S)] = 0.0
    """Time constant of an exponential average [s]; 0 for a mean."""
    delay_samples: Annotated[int, Meta(ge=-DELAY_MAX_SAMPLES, le=DELAY_MAX_SAMPLES)] = 0
    """Delay of the responses that is removed first [samples]."""

    def check(self, fs: float | None, channels: int | None, *, iq: bool) -> None:
        """Check what can be checked without the source.

        Parameters
        ----------
        fs : float or None
            Sample rate [Hz]; None if it is not known: what depends on it is not checked.
        channels : int or None
            Number of channels; None if it is not known.
        iq : bool
            Whether each two of them are I and Q.

        Raises
        ------
        ConfigError
            If a rule is broken.
        """
        # Most configurations have no transfer functions.
        from spectrod.measure.transfer.transfer_quantities import (  # noqa: PLC0415
            check_transfer_spectra,
            parse_transfer,
        )

        check_name("name of transfer functions", self.name)
        parse_transfer(self.quantities, self.interval_s)
        check_transfer_spectra(self.spectra)
        self._check_averaging()
        self._check_responses()
        if iq:
            raise ConfigError("sources: I/Q samples have no transfer functions; name other sources")
        if channels is not None:
            self.pairs(channels)
        if fs is not None:
            self.pair_spec(fs, max(2, channels or 1 + len(self.responses)))

    def pairs(self, channels: int) -> tuple[int, ...]:
        """Return the channel of the reference and of each response; raises ConfigError."""
        if channels < 2:
            raise ConfigError(
                "sources: a source of 1 channel has no transfer functions; name sources of two or "
                "more"
            )
        for key, values in (("reference", (self.reference,)), ("responses", self.responses)):
            for value in values:
                if value >= channels:
                    raise ConfigError(
                        f"{key}={value}: must be a channel from 0 to {channels - 1} of the source"
                    )
        all_others = tuple(one for one in range(channels) if one != self.reference)
        found = self.responses or all_others
        if len(found) > PAIRS_MAX:
            raise ConfigError(f"responses: {len(found)} channels: must be at most {PAIRS_MAX}")
        return self.reference, *found

    def pair_spec(self, fs: float, channels: int) -> SpectrumSpec:
        """Return the definition of the frames of a reference and its responses.

        Parameters
        ----------
        fs : float
            Sample rate [Hz].
        channels : int
            Number of channels of the source.

        Raises
        ------
        ConfigError
            If a rule is broken.
        """
        n = len(self.responses) or min(channels - 1, PAIRS_MAX)
        spec = self.spec(fs, 1 + n)
        frames_s = (spec.win_length + spec.hop) / fs
        if self.averaging == "mean" and self.interval_s < frames_s:
            raise ConfigError(
                f"interval_s={self.interval_s:g}: must hold two frames, {frames_s:g} s: the "
                "coherence of one is always 1"
            )
        if self.averaging == "exponential" and self.averaging_s * fs < spec.hop:
            raise ConfigError(
                f"averaging_s={self.averaging_s:g}: must be at least hop={spec.hop} of "
                f"{spec.hop / fs:g} s"
            )
        self._check_size(spec)
        return spec

    def _check_averaging(self) -> None:
        if (self.averaging == "exponential") != (self.averaging_s > 0.0):
            rule = "above 0 with averaging='exponential', and 0 with 'mean'"
            raise ConfigError(f"averaging_s={self.averaging_s:g}: must be {rule}")

    def _check_responses(self) -> None:
        if len(self.responses) > PAIRS_MAX:
            n = len(self.responses)
            raise ConfigError(f"responses: {n} channels: must be at most {PAIRS_MAX}")
        for value in self.responses:
            if value == self.reference:
                raise ConfigError(f"responses={value}: must be another channel than reference")
            if self.responses.count(value) > 1:
                raise ConfigError(f"responses={value}: is given twice")

    def _check_size(self, spec: SpectrumSpec) -> None:
        from spectrod.measure.transfer.transfer_function import bins_within  # noqa: PLC0415

        chosen = bins_within(spec.frequencies, self.band_hz(spec))
        n_table = (spec.channels - 1) * len(self.spectra) * (chosen.stop - chosen.start)
        n = max(n_table, spec.channels * spec.n_bins)
        if n > PAIR_VALUES_MAX:
            raise ConfigError(
                f"{spec.channels - 1} responses, win_length={spec.win_length}: {n} values of bins; "
                f"must be at most {PAIR_VALUES_MAX}"
            )
