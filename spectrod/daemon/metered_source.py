"""The measurements of a running source, as its settings define them."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from spectrod.config.settings import SourceTable
from spectrod.daemon.demand import Demand
from spectrod.daemon.live_meters import LiveMeter, WriteRow
from spectrod.daemon.publisher.interval_encoder import IntervalEncoder
from spectrod.lib.errors import ConfigError
from spectrod.lib.names import name_channels
from spectrod.measure.kinds import KINDS
from spectrod.measure.measurement_config import BoundMeter, MeasuredSignals, MeasurementConfig
from spectrod.source.open_source import Source

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MeteredSource:
    """A source, its measurements, and who takes their rows.

    Attributes
    ----------
    source : Source
    table : SourceTable
        Its settings.
    demand : Demand
        Products that are wanted.
    write_row : callable
        Takes the rows.
    """

    source: Source
    table: SourceTable
    demand: Demand
    write_row: WriteRow

    def meters(self) -> tuple[LiveMeter, ...]:
        """Make the meters of all products; raises ConfigError if one does not fit the source."""
        signals = self._signals
        return tuple(meter for word in KINDS for meter in self._meters(word, signals))

    def _meters(self, word: str, signals: MeasuredSignals) -> Iterator[LiveMeter]:
        """Make the meters of a kind, and log once what rows of it cannot hold."""
        kind, tables = KINDS[word], self.table.measurements(word)
        what, notes = kind.title.lower(), dict[str, None]()
        if signals.is_iq and not kind.takes_iq:
            if tables:
                _log.warning("%s: I/Q samples have no %s", self.source.name, what)
            return
        for settings in tables:
            try:
                bound = settings.bind(signals)
                yield self._live(word, settings, bound)
            except ConfigError as error:
                raise ConfigError(f"{word}.{settings.name}: {error}") from error
            notes |= dict.fromkeys(bound.facts.notes)
        for note in notes:
            _log.warning("%s: %s: %s", self.source.name, what, note)

    def _live(self, word: str, settings: MeasurementConfig, bound: BoundMeter) -> LiveMeter:
        # Most configurations have no measurements, whose files load much.
        from spectrod.formats.values.measurement_description import describe  # noqa: PLC0415

        meter = bound.open(0)  # raises errors now, not with the first sample
        encoder = IntervalEncoder(
            self.source.name,
            bound.signals.channels,
            settings.name,
            meter.message_quantities,
            fs=bound.signals.fs,
            interval_s=meter.interval_s,
            calibrations=bound.signals.calibrations,
            kind=word,
            columns=bound.columns,
            constants=bound.header_fields,
        )
        about = describe(bound.signals, bound.facts, meter).without_spectra()
        return LiveMeter(settings, encoder, bound.open, self.demand, self.write_row, about)

    @property
    def _signals(self) -> MeasuredSignals:
        source = self.source
        n_signals = source.channels // 2 if source.is_iq else source.channels
        return MeasuredSignals(
            source.description,
            source.fs,
            name_channels(self.table.channel_names, n_signals),
            self.table.calibrations(n_signals) or (None,) * n_signals,
            source.is_iq,
            source.center_frequency_hz,
            tuple(source.speakers),
        )
