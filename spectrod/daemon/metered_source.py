"""The products of named values of a running source, as its settings define them."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spectrod.config.measure_settings import (
    FeaturesConfig,
    FramesConfig,
    TonesConfig,
    TransferConfig,
)
from spectrod.config.settings import LevelsConfig, SourceTable
from spectrod.daemon.demand import Demand
from spectrod.daemon.live_meters import IntervalMeter, LiveMeter, OpenMeter, Submit
from spectrod.daemon.publisher.interval_encoder import IntervalEncoder
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.values.value_description import LevelDescription
from spectrod.lib.errors import ConfigError
from spectrod.lib.names import name_channels
from spectrod.measure.interval_row import NamedQuantity
from spectrod.source.open_source import Source
from spectrod.wire.headers import (
    FeaturesHeader,
    IntervalHeader,
    LevelsHeader,
    TonesHeader,
    TransferHeader,
)

if TYPE_CHECKING:
    from spectrod.recording.describe import MeasuredSignals

_log = logging.getLogger(__name__)

_Channels = tuple[Sequence[str], Sequence[ChannelCalibration | None]]
"""Names and calibrations of the channels that messages are of."""


@dataclass(frozen=True, slots=True)
class MeteredSource:
    """A source, its products of named values, and who takes their rows.

    Attributes
    ----------
    source : Source
    table : SourceTable
        Its settings.
    demand : Demand
        Products that are wanted.
    submit : callable
        Takes the rows.
    """

    source: Source
    table: SourceTable
    demand: Demand
    submit: Submit

    def meters(self) -> tuple[LiveMeter, ...]:
        """Make the meters of all products; raises ConfigError if one does not fit the source."""
        return (
            *self._levels(),
            *map(self._features, self.table.features),
            *map(self._tones, self.table.tones),
            *map(self._transfer, self.table.transfer),
        )

    def _levels(self) -> Iterator[LiveMeter]:
        if self.source.is_iq:
            if self.table.levels:
                _log.warning("%s: I/Q samples have no sound levels", self.source.name)
            return
        self._report_responses()
        for settings in self.table.levels:
            speakers = self.source.speakers
            open_meter = partial(
                _open_levels, settings, self.source.fs, self._calibrations, speakers
            )
            yield self._live(settings, open_meter, LevelsHeader)

    def _report_responses(self) -> None:
        """Log which frequency responses are not corrected within the bound."""
        responses = [one.response if one else None for one in self._calibrations]
        if self.table.levels and any(responses):
            from spectrod.measure.levels.equalizer import response_notes  # noqa: PLC0415

            for note in response_notes(responses, self.source.fs):
                _log.warning("%s: sound levels: %s", self.source.name, note)

    def _features(self, settings: FeaturesConfig) -> LiveMeter:
        try:
            spec = self._spec(settings)
            open_meter = partial(_open_features, settings, spec)
            constants = _constants(settings, spec) | _constants_of_bins(settings, spec)
            return self._live(settings, open_meter, FeaturesHeader, constants)
        except ConfigError as error:
            raise ConfigError(f"features.{settings.name}: {error}") from error

    def _tones(self, settings: TonesConfig) -> LiveMeter:
        from spectrod.measure.tones.tone_quantities import TRACK_QUANTITIES  # noqa: PLC0415

        try:
            spec = self._spec(settings)
            # Tracks have new identities whenever somebody wants the product again.
            open_meter = partial(_open_tones, settings, spec, [0] * spec.n_signals)
            constants = _constants(settings, spec)
            return self._live(settings, open_meter, TonesHeader, constants, TRACK_QUANTITIES)
        except ConfigError as error:
            raise ConfigError(f"tones.{settings.name}: {error}") from error

    def _transfer(self, settings: TransferConfig) -> LiveMeter:
        from spectrod.daemon.configured_transfer import ConfiguredTransfer  # noqa: PLC0415

        try:
            names = self._names
            found = ConfiguredTransfer(
                settings, self.source.fs, names, self._calibrations, iq=self.source.is_iq
            )
        except ConfigError as error:
            raise ConfigError(f"transfer.{settings.name}: {error}") from error
        constants = _constants(settings, found.spec) | found.constants
        of_responses = found.names, found.calibrations
        return self._live(settings, found.open, TransferHeader, constants, of_channels=of_responses)

    def _live(
        self,
        settings: LevelsConfig | FramesConfig,
        open_meter: OpenMeter,
        header: type[IntervalHeader],
        constants: dict[str, Any] | None = None,
        columns: Sequence[NamedQuantity] = (),
        of_channels: _Channels | None = None,
    ) -> LiveMeter:
        names, calibrations = of_channels or (self._names, self._calibrations)
        meter = open_meter(0)  # raises errors now, not with the first sample
        encoder = IntervalEncoder(
            self.source.name,
            names,
            settings.name,
            meter.message_quantities,
            fs=self.source.fs,
            interval_s=settings.interval_s,
            calibrations=calibrations,
            header=header,
            columns=columns,
            constants=constants,
        )
        from spectrod.recording.describe import MeasuredSignals  # noqa: PLC0415 - as meters

        signals = MeasuredSignals(
            self.source.description, tuple(names), tuple(calibrations), has_utc=True
        )
        about = _describe(signals, settings, meter)
        return LiveMeter(settings, encoder, open_meter, self.demand, self.submit, about)

    @property
    def _names(self) -> tuple[str, ...]:
        return name_channels(self.table.channel_names, len(self._calibrations))

    def _spec(self, settings: FramesConfig) -> SpectrumSpec:
        source = self.source
        return settings.spec(
            source.fs,
            source.channels,
            iq=source.is_iq,
            center_frequency_hz=source.center_frequency_hz,
            calibration=self._calibrations,
        )

    @property
    def _calibrations(self) -> tuple[ChannelCalibration | None, ...]:
        source = self.source
        n_signals = source.channels // 2 if source.is_iq else source.channels
        return self.table.calibrations(n_signals) or (None,) * n_signals


_TITLES: dict[type[FramesConfig], str] = {
    FeaturesConfig: "Spectral features",
    TonesConfig: "Tones",
    TransferConfig: "Transfer functions",
}


def _describe(
    signals: "MeasuredSignals", settings: LevelsConfig | FramesConfig, meter: IntervalMeter
) -> LevelDescription:
    """Describe the rows that a recording has: those of the meter, without values of bins."""
    from spectrod.measure.frame_meter import FrameMeter  # noqa: PLC0415
    from spectrod.measure.levels import LevelMeter  # noqa: PLC0415 - as the meters
    from spectrod.measure.transfer.transfer_meter import TransferIntervalMeter  # noqa: PLC0415

    if isinstance(settings, LevelsConfig):
        assert isinstance(meter, LevelMeter)
        return signals.levels(meter, settings.time_zone)
    assert isinstance(meter, FrameMeter | TransferIntervalMeter)
    about = signals.frames(_TITLES[type(settings)], meter, settings)
    if not isinstance(settings, FeaturesConfig | TransferConfig) or not settings.spectra:
        return about
    note = f"values of bins ({', '.join(settings.spectra)}) are not recorded"
    return replace(about, spectra=(), frequencies=np.empty(0), notes=(*about.notes, note))


def _constants(settings: FramesConfig, spec: SpectrumSpec) -> dict[str, Any]:
    """Return the fields of headers that define frames."""
    return {
        "window": spec.window,
        "win_length": spec.win_length,
        "nfft": spec.nfft,
        "hop": spec.hop,
        "band_hz": settings.limits_hz(spec),
    }


def _constants_of_bins(settings: FeaturesConfig, spec: SpectrumSpec) -> dict[str, Any]:
    """Return the fields of headers that define values of bins; empty without any."""
    if not settings.spectra:
        return {}
    from spectrod.measure.features.feature_quantities import SPECTRA  # noqa: PLC0415 - as the meters
    from spectrod.measure.features.feature_tally import FeatureTally  # noqa: PLC0415

    tally = FeatureTally((), spec, settings.band_hz(spec), settings.spectra)
    return {
        "spectra": settings.spectra,
        "spectra_units": tuple(SPECTRA[name] for name in settings.spectra),
        "first_bin": tally.first_bin,
        "n_bins": tally.n_bins,
        "center_frequency_hz": spec.center_frequency_hz,
    }


# Most configurations have no such products: the meters are imported where there are.


def _open_levels(
    settings: LevelsConfig,
    fs: float,
    calibrations: Sequence[ChannelCalibration | None],
    speakers: Sequence[str],
    first_sample: int,
) -> IntervalMeter:
    from spectrod.measure.levels import LevelMeter  # noqa: PLC0415
    from spectrod.measure.levels.level_values import UNCALIBRATED_DB  # noqa: PLC0415

    return LevelMeter(
        fs,
        len(calibrations),
        quantities=settings.quantities,
        interval_s=settings.interval_s,
        align=settings.align,
        time_zone=settings.time_zone,
        first_sample=first_sample,
        full_scale_db=[
            UNCALIBRATED_DB if one is None else one.full_scale_db for one in calibrations
        ],
        channel_weights=settings.channel_weights or None,
        speakers=speakers,
        lower_limit_db=settings.lower_limit_db,
        bands=settings.bands,
        band_quantities=settings.band_quantities,
        band_range_hz=settings.band_range_hz,
        responses=[one.response if one else None for one in calibrations],
    )


def _open_features(
    settings: FeaturesConfig, spec: SpectrumSpec, first_sample: int
) -> IntervalMeter:
    from spectrod.measure.features.feature_meter import feature_meter  # noqa: PLC0415

    return feature_meter(
        spec,
        settings.quantities,
        interval_s=settings.interval_s,
        align=settings.align,
        band_hz=settings.band_hz(spec),
        spectra=settings.spectra,
        first_sample=first_sample,
    )


def _open_tones(
    settings: TonesConfig, spec: SpectrumSpec, next_identity: list[int], first_sample: int
) -> IntervalMeter:
    from spectrod.measure.tones.tone_meter import tone_meter  # noqa: PLC0415

    return tone_meter(
        spec,
        settings.quantities,
        interval_s=settings.interval_s,
        align=settings.align,
        settings=settings.tone_settings(spec),
        first_sample=first_sample,
        next_identity=next_identity,
    )
