"""Settings of sound levels; ``default.toml`` describes each key."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.lib.flag import flag
from spectrod.lib.names import check_name
from spectrod.lib.time_zones import zone_name
from spectrod.measure.intervals import DAY_S
from spectrod.measure.levels.level_quantities import (
    BAND_FORMS,
    BAND_QUANTITIES_DEFAULT,
    BAND_RANGE_HZ,
    FORMS,
    QUANTITIES_DEFAULT,
)
from spectrod.measure.measurement import check_message
from spectrod.measure.measurement_config import (
    BoundMeter,
    Cuts,
    Interval,
    IntervalAlign,
    IntervalMeter,
    MeasuredSignals,
    MeasurementConfig,
    MeasurementFacts,
    TimeZone,
)

if TYPE_CHECKING:
    from spectrod.measure.levels.level_meter import LevelMeter

_OCTAVES = "fractional octaves, by filters of IEC 61260-1"
_ANY_FS = 48000.0
"""A sample rate that all settings fit [Hz]."""


class LevelsConfig(MeasurementConfig, frozen=True):
    """Sound levels that the daemon publishes; ``default.toml`` describes each key."""

    title = "Sound levels"
    depends_on_fs = False
    takes_iq = False

    quantities: Annotated[
        tuple[str, ...], flag("NAME,...", f"{FORMS} (%(default)s)", name="quantity")
    ] = QUANTITIES_DEFAULT
    interval_s: Interval = 1.0
    align: IntervalAlign = "utc"
    time_zone: TimeZone = ""
    channel_weights: Annotated[
        tuple[float, ...], flag("W,...", "of the loudness; 1, 2, 5 and 6 channels have one")
    ] = ()
    """Weights of the channels in the loudness; empty: those of BS.1770."""
    lower_limit_db: Annotated[
        float, flag("DB", "flag rows with a level below this", name="lower-limit")
    ] = -1000.0
    """Level below which rows are flagged; no level is as low as the default."""
    bands: Annotated[
        str, flag("NAME", f"measure in bands as well: {BAND_FORMS}", group=_OCTAVES)
    ] = ""
    """Fractional octaves; empty: none."""
    band_quantities: Annotated[
        tuple[str, ...],
        flag(
            "NAME,...",
            "LZeq, LZE, or LZF or LZS alone or with max, min or a percentage exceeded "
            f"({','.join(BAND_QUANTITIES_DEFAULT)})",
            name="band-quantity",
            group=_OCTAVES,
        ),
    ] = ()
    """Levels in each band; empty: LZeq."""
    f_min_hz: Annotated[
        float,
        flag(
            "LO",
            "nominal frequencies of the first and the last band (%(default)s)",
            name="band-range",
            group=_OCTAVES,
        ),
    ] = BAND_RANGE_HZ[0]
    f_max_hz: Annotated[float, flag("HI", name="band-range")] = BAND_RANGE_HZ[1]

    @property
    def cuts(self) -> Cuts:
        """See ``MeasurementConfig``."""
        return "gaps"

    @property
    def band_range_hz(self) -> tuple[float, float]:
        """Nominal mid-band frequencies of the first and the last band [Hz]."""
        return self.f_min_hz, self.f_max_hz

    @property
    def has_days(self) -> bool:
        """Whether files and tables have local days beside shorter intervals: for Lden."""
        return self.interval_s < DAY_S and "Lden" in self.quantities

    def check(
        self,
        fs: float | None = None,
        channels: int | None = None,
        *,
        iq: bool = False,
    ) -> None:
        """Check what can be checked without the source; see ``MeasurementConfig``."""
        del fs, channels, iq  # levels fit any source, or are left out
        check_name("name of levels", self.name)
        n_channels = max(1, len(self.channel_weights))
        check_message(self.meter(_ANY_FS, (None,) * n_channels).message_quantities)

    def bind(self, signals: MeasuredSignals) -> BoundMeter:
        """Bind to the signals of a source; raises ConfigError if they do not fit."""
        from spectrod.measure.levels.equalizer import response_notes  # noqa: PLC0415
        from spectrod.measure.levels.octave_levels import band_levels  # noqa: PLC0415

        responses = [one.response if one else None for one in signals.calibrations]
        notes = tuple(response_notes(responses, signals.fs)) if any(responses) else ()
        bands = band_levels(
            self.bands, self.band_quantities, signals.fs, self.interval_s, self.band_range_hz
        )
        facts = MeasurementFacts(
            self.title,
            bands=bands,
            time_zone=zone_name(self.time_zone),
            notes=notes,
            has_days=self.has_days,
        )
        return BoundMeter(signals, partial(self._open, signals), facts)

    def meter(
        self,
        fs: float,
        calibrations: Sequence[ChannelCalibration | None],
        speakers: Sequence[str] = (),
        **options: Any,
    ) -> "LevelMeter":
        """Make a meter.

        Parameters
        ----------
        fs : float
            Sample rate [Hz].
        calibrations : sequence of (ChannelCalibration or None)
            Calibration of each channel.
        speakers : sequence of str
            Position of each channel's loudspeaker; empty if unknown.
        **options
            Further arguments of ``LevelMeter``.
        """
        # Most configurations have no levels.
        from spectrod.measure.levels.level_meter import LevelMeter  # noqa: PLC0415
        from spectrod.measure.levels.level_values import UNCALIBRATED_DB  # noqa: PLC0415

        return LevelMeter(
            fs,
            len(calibrations),
            quantities=self.quantities,
            interval_s=self.interval_s,
            align=self.align,
            time_zone=self.time_zone,
            full_scale_db=[
                UNCALIBRATED_DB if one is None else one.full_scale_db for one in calibrations
            ],
            channel_weights=self.channel_weights or None,
            speakers=speakers,
            lower_limit_db=self.lower_limit_db,
            bands=self.bands,
            band_quantities=self.band_quantities,
            band_range_hz=self.band_range_hz,
            responses=[one.response if one else None for one in calibrations],
            **options,
        )

    def _open(self, signals: MeasuredSignals, first_sample: int) -> IntervalMeter:
        return self.meter(
            signals.fs,
            signals.calibrations,
            signals.speakers,
            first_sample=first_sample,
            days=self.has_days,
        )
