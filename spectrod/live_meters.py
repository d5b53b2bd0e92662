"""Named values of a running source: taps of its samples, and their rows for the publisher."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from spectrod.calibration import ChannelCalibration
from spectrod.demand import Demand
from spectrod.errors import ConfigError
from spectrod.interval_values import IntervalRow, NamedQuantity
from spectrod.meter_settings import FeaturesConfig, FramesConfig, TonesConfig
from spectrod.settings import LevelsConfig, SourceTable
from spectrod.source import Source
from spectrod.types import Block, SpectrumSpec
from spectrod.wire.headers import FeaturesHeader, IntervalHeader, LevelsHeader, TonesHeader
from spectrod.wire.interval_encoder import IntervalEncoder

_log = logging.getLogger(__name__)

Submit = Callable[[IntervalEncoder, IntervalRow, int], None]
"""Takes a row, and the monotonic clock at its first sample [ns]."""


class IntervalMeter(Protocol):
    """Measures rows of named values in samples."""

    @property
    def quantities(self) -> Sequence[NamedQuantity]:
        """The values of each row."""

    def feed(
        self, samples: ArrayLike, missing_samples: int = 0, utc_ns: int | None = None
    ) -> Sequence[IntervalRow]:
        """Measure the next samples; return the intervals that are complete."""


OpenMeter = Callable[[int], IntervalMeter]
"""Makes a meter from the index of its first sample."""


class LiveMeter:
    """Measures one product of named values while somebody wants it; see ``pipeline.Tap``.

    Intervals begin with the first sample that is wanted. With ``align = "start"`` they are counted
    from the source's sample 0.

    Parameters
    ----------
    encoder : IntervalEncoder
        Its topics.
    open_meter : callable
        Makes its meter.
    demand : Demand
        Products that are wanted.
    submit : callable
        Takes the rows.

    Attributes
    ----------
    name : str
        The PRODUCT of its topics.
    encoder : IntervalEncoder
    """

    def __init__(
        self, encoder: IntervalEncoder, open_meter: OpenMeter, demand: Demand, submit: Submit
    ) -> None:
        self.name, self.encoder = encoder.product, encoder
        self._open, self._demand, self._submit = open_meter, demand, submit
        self._meter: IntervalMeter | None = None
        self._missing_samples = 0
        self._must_restart = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody wants the product."""
        wanted = self._demand.wanted((), ())
        return wanted is None or self.name in wanted

    def restart(self) -> None:
        """Begin a new interval with the next block; any thread."""
        self._must_restart = True

    def take(self, block: Block) -> None:
        """Measure a block of samples, and submit the rows that are complete."""
        if self._must_restart or not self.is_wanted:
            self._must_restart = False
            self._meter = None
            self._missing_samples = 0
            if not self.is_wanted:
                return
        if not np.isfinite(block.samples).all():
            # The spectra of these samples are left out as well.
            self._missing_samples += block.span_samples
            return
        if self._meter is None:
            self._meter = self._open(block.sample_index)
            block = replace(block, lost_samples=0)
            self._missing_samples = 0
        missing = self._missing_samples + block.lost_samples
        self._missing_samples = 0
        behind_ns = block.t_mono_ns - block.t_utc_ns
        for row in self._meter.feed(block.samples, missing, block.t_utc_ns):
            self._submit(self.encoder, row, (row.begin_utc_ns or 0) + behind_ns)


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
        )

    def _levels(self) -> Iterator[LiveMeter]:
        if self.source.is_iq:
            if self.table.levels:
                _log.warning("%s: I/Q samples have no sound levels", self.source.name)
            return
        self._report_responses()
        for settings in self.table.levels:
            open_meter = partial(_open_levels, settings, self.source.fs, self._calibrations)
            yield self._live(settings, open_meter, LevelsHeader)

    def _report_responses(self) -> None:
        """Log which frequency responses are not corrected within the bound."""
        responses = [one.response if one else None for one in self._calibrations]
        if self.table.levels and any(responses):
            from spectrod.levels.equalizer import response_notes  # noqa: PLC0415

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
        from spectrod.tones.quantities import TRACK_QUANTITIES  # noqa: PLC0415

        try:
            spec = self._spec(settings)
            # Tracks have new identities whenever somebody wants the product again.
            open_meter = partial(_open_tones, settings, spec, [0] * spec.n_signals)
            constants = _constants(settings, spec)
            return self._live(settings, open_meter, TonesHeader, constants, TRACK_QUANTITIES)
        except ConfigError as error:
            raise ConfigError(f"tones.{settings.name}: {error}") from error

    def _live(
        self,
        settings: LevelsConfig | FramesConfig,
        open_meter: OpenMeter,
        header: type[IntervalHeader],
        constants: dict[str, Any] | None = None,
        columns: Sequence[NamedQuantity] = (),
    ) -> LiveMeter:
        encoder = IntervalEncoder(
            self.source.name,
            self.table.channel_names,
            settings.name,
            open_meter(0).quantities,  # raises errors now, not with the first sample
            fs=self.source.fs,
            interval_s=settings.interval_s,
            calibrations=self._calibrations,
            header=header,
            columns=columns,
            constants=constants,
        )
        return LiveMeter(encoder, open_meter, self.demand, self.submit)

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
    from spectrod.features.quantities import SPECTRA  # noqa: PLC0415 - as the meters
    from spectrod.features.tally import FeatureTally  # noqa: PLC0415

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
    first_sample: int,
) -> IntervalMeter:
    from spectrod.levels import LevelMeter  # noqa: PLC0415
    from spectrod.levels.flat import FlatLevelMeter  # noqa: PLC0415
    from spectrod.levels.values import UNCALIBRATED_DB  # noqa: PLC0415

    meter = LevelMeter(
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
        lower_limit_db=settings.lower_limit_db,
        bands=settings.bands,
        band_quantities=settings.band_quantities,
        band_range_hz=settings.band_range_hz,
        responses=[one.response if one else None for one in calibrations],
    )
    return FlatLevelMeter(meter)


def _open_features(
    settings: FeaturesConfig, spec: SpectrumSpec, first_sample: int
) -> IntervalMeter:
    from spectrod.meters.features import feature_meter  # noqa: PLC0415

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
    from spectrod.meters.tones import tone_meter  # noqa: PLC0415

    return tone_meter(
        spec,
        settings.quantities,
        interval_s=settings.interval_s,
        align=settings.align,
        settings=settings.tone_settings(spec),
        first_sample=first_sample,
        next_identity=next_identity,
    )
