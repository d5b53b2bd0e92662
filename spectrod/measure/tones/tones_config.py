"""Settings of tones; ``default.toml`` describes each key."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.flag import flag
from spectrod.lib.names import check_name
from spectrod.measure.frames_config import FramesConfig, Frequency
from spectrod.measure.measurement_config import BoundMeter, Cuts, IntervalMeter, MeasuredSignals
from spectrod.measure.quantity_names import known_quantities
from spectrod.measure.tones.tone_quantities import FORMS, TRACK_QUANTITIES, UNITS

if TYPE_CHECKING:
    from spectrod.measure.tones.tone_tally import ToneSettings

TONES_DEFAULT = ("fundamental", "level", "THD", "SINAD")

# Modules that compute are imported where they are needed: most configurations have no tones.


class TonesConfig(FramesConfig, frozen=True):
    """Tones and tracks that the daemon publishes."""

    title = "Tones"

    window: Annotated[str, flag("NAME", "(%(default)s)", group="frames")] = "blackmanharris"
    win_length: Annotated[int, flag("N", "samples (%(default)s)", group="frames")] = 8192
    low_hz: Annotated[
        Frequency, flag("LO", "band of distortion and noise, as 20 20k (all)", name="band")
    ] = 0.0
    quantities: Annotated[
        tuple[str, ...], flag("NAME,...", f"{FORMS} (%(default)s)", name="quantity")
    ] = TONES_DEFAULT
    max_tracks: Annotated[
        int, Meta(ge=1, le=1024), flag("N", "tracks of a channel (%(default)s)")
    ] = 32
    threshold_db: Annotated[
        float,
        Meta(ge=0, le=200),
        flag("DB", "of a track's peak, over the noise floor (%(default)s)", name="threshold"),
    ] = 13.0
    max_step_hz: Annotated[
        Frequency,
        flag(
            "HZ",
            "of a track, from an interval to the next (half of the window's main lobe)",
            name="max-step",
        ),
    ] = 0.0
    max_missed: Annotated[
        int,
        Meta(ge=0, le=1_000_000),
        flag("N", "intervals that a track may be without a peak (%(default)s)"),
    ] = 2
    harmonics: Annotated[int, flag("N", "highest harmonic of the distortion (%(default)s)")] = 10

    @property
    def cuts(self) -> Cuts:
        """See ``MeasurementConfig``."""
        return "nowhere" if "tracks" in self.quantities else "intervals"

    def check(
        self, fs: float | None = None, channels: int | None = None, *, iq: bool = False
    ) -> None:
        """Check what can be checked without the source; see ``MeasurementConfig``."""
        from spectrod.measure.tones.tone_tally import ToneTally  # noqa: PLC0415

        check_name("name of tones", self.name)
        self.check_intervals()
        quantities = known_quantities(self.quantities, self.interval_s, UNITS)
        if fs is not None:
            spec = self.spec(fs, channels or (2 if iq else 1), iq=iq)
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

    def bind(self, signals: MeasuredSignals) -> BoundMeter:
        """Bind to the signals of a source; raises ConfigError if they do not fit."""
        spec = self.spec_of(signals)
        # Tracks have new identities whenever somebody wants the product again.
        return BoundMeter(
            signals,
            partial(self._open, spec, [0] * spec.n_signals),
            self.facts(spec),
            self.header_fields(spec),
            TRACK_QUANTITIES,
        )

    def _open(
        self, spec: SpectrumSpec, next_identity: list[int], first_sample: int
    ) -> IntervalMeter:
        from spectrod.measure.tones.tone_meter import tone_meter  # noqa: PLC0415

        return tone_meter(
            spec,
            self.quantities,
            interval_s=self.interval_s,
            align=self.align,
            time_zone=self.time_zone,
            settings=self.tone_settings(spec),
            first_sample=first_sample,
            next_identity=next_identity,
        )
