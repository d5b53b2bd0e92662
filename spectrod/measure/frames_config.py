"""Settings of measurements of frames; ``default.toml`` describes each key."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from msgspec import Meta

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import FS_MAX_HZ, WIN_LENGTH_DEFAULT
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.lib.flag import flag
from spectrod.lib.time_zones import zone_name
from spectrod.measure.intervals import check_intervals
from spectrod.measure.measurement import check_interval
from spectrod.measure.measurement_config import (
    Interval,
    IntervalAlign,
    MeasuredSignals,
    MeasurementConfig,
    MeasurementFacts,
    TimeZone,
)

Frequency = Annotated[float, Meta(ge=0, le=FS_MAX_HZ)]


class FramesConfig(MeasurementConfig, frozen=True):
    """Keys of all measurements of frames."""

    interval_s: Interval = 1.0
    align: IntervalAlign = "utc"
    time_zone: TimeZone = ""
    window: Annotated[str, flag("NAME", "(%(default)s)", group="frames")] = "hann"
    win_length: Annotated[int, flag("N", "samples (%(default)s)", group="frames")] = (
        WIN_LENGTH_DEFAULT
    )
    hop: Annotated[
        int,
        Meta(ge=0),
        flag("N", "samples between starts of frames (half of a frame)", group="frames"),
    ] = 0
    low_hz: Annotated[Frequency, flag("LO", "band that counts, as 200 10k (all)", name="band")] = (
        0.0
    )
    high_hz: Annotated[Frequency, flag("HI", name="band")] = 0.0

    def check_intervals(self) -> None:
        """Check what intervals need without the source; raises ConfigError."""
        check_intervals(self.interval_s, self.align, self.time_zone)

    def spec(self, fs: float, channels: int, *, iq: bool = False) -> SpectrumSpec:
        """Return the definition of the frames, uncalibrated.

        Raises
        ------
        ConfigError
            If a rule is broken.
        """
        signals = MeasuredSignals("", fs, ("",) * (channels // 2 if iq else channels), (), is_iq=iq)
        return self.spec_of(signals)

    def spec_of(self, signals: MeasuredSignals) -> SpectrumSpec:
        """Return the definition of the frames; raises ConfigError if a rule is broken."""
        spec = SpectrumSpec(
            signals.fs,
            len(signals.channels) * (2 if signals.is_iq else 1),
            self.window,
            self.win_length,
            self.hop or max(1, self.win_length // 2),
            iq=signals.is_iq,
            center_frequency_hz=signals.center_frequency_hz,
            calibration=signals.calibrations,
        )
        check_interval(self.interval_s, spec.win_length, spec.fs)
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

    def header_fields(self, spec: SpectrumSpec) -> dict[str, object]:
        """Return the fields of headers that define the frames."""
        return {
            "window": spec.window,
            "win_length": spec.win_length,
            "nfft": spec.nfft,
            "hop": spec.hop,
            "band_hz": self.limits_hz(spec),
        }

    def facts(
        self,
        spec: SpectrumSpec,
        attributes: Mapping[str, str | float] | None = None,
        spectra: Mapping[str, str] | None = None,
        frequencies: Float64Array | None = None,
    ) -> MeasurementFacts:
        """Return what files say about the rows, the frames included."""
        low_hz, high_hz = self.limits_hz(spec)
        return MeasurementFacts(
            self.title,
            {
                "window": spec.window,
                "win_length": spec.win_length,
                "hop": spec.hop,
                "nfft": spec.nfft,
                "low_hz": low_hz,
                "high_hz": high_hz,
                **(attributes or {}),
            },
            spectra or {},
            np.empty(0) if frequencies is None else frequencies,
            time_zone=zone_name(self.time_zone),
        )

    def _check_band(self, spec: SpectrumSpec) -> None:
        top_hz = float(spec.bin_frequencies[-1])
        for key, value in (("low_hz", self.low_hz), ("high_hz", self.high_hz)):
            if value > top_hz:
                raise ConfigError(
                    f"{key}={value:g}: must be at most {top_hz:g} Hz, the last bin", key
                )
        if self.high_hz and self.low_hz >= self.high_hz:
            raise ConfigError(
                f"must be below high_hz={self.high_hz:g}", "high_hz", low_hz=self.low_hz
            )
