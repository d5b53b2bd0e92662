"""The products of a unit that are tables: levels, features and events."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from spectrod.apps.batch.job import ProductName
from spectrod.apps.batch.unit_settings import SOFTWARE, UnitSettings
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.event_files import event_file
from spectrod.formats.values.measurement_description import MeasurementDescription, describe
from spectrod.formats.values.value_writer import open_writer
from spectrod.formats.whole_files import WholeFileWriter
from spectrod.lib.time_zones import find_zone, zone_name
from spectrod.measure.levels import LevelMeter
from spectrod.measure.levels.equalizer import response_notes
from spectrod.measure.levels.level_values import UNCALIBRATED_DB
from spectrod.measure.measurement_config import IntervalMeter
from spectrod.measure.triggers.detection import Detection, FilePlaces, PlacedEvents
from spectrod.measure.triggers.look_ahead import LookAhead
from spectrod.measure.triggers.trigger import Trigger
from spectrod.source.base import StreamFile
from spectrod.source.store.urls import file_name

EVENTS_BYTES_MAX = 1 << 26
"""Largest file of events that is read [bytes]."""
_NO_LOWER_LIMIT_DB = -1000.0
_Measuring = tuple[IntervalMeter, MeasurementDescription]
_EVENTS_HEADS = b"begin_utc,", b"begin,"


def _of_levels(settings: UnitSettings) -> _Measuring:
    """Return what measures the levels of a unit, and what their file says."""
    table, n_channels = settings.job.levels, len(settings.signals)
    calibrations = settings.calibrations or (None,) * n_channels
    responses = [one.response if one else None for one in calibrations]
    limit_db = None if table.lower_limit_db <= _NO_LOWER_LIMIT_DB else table.lower_limit_db
    meter = LevelMeter(
        settings.fs,
        n_channels,
        quantities=table.quantities,
        interval_s=table.interval_s,
        align=table.align,
        time_zone=table.time_zone,
        utc_ns=settings.unit.start_utc_ns,
        full_scale_db=[
            UNCALIBRATED_DB if one is None else one.full_scale_db for one in calibrations
        ],
        channel_weights=table.channel_weights or None,
        speakers=settings.speakers,
        lower_limit_db=limit_db,
        bands=table.bands,
        band_quantities=table.band_quantities,
        band_range_hz=table.band_range_hz,
        responses=responses,
    )
    return meter, MeasurementDescription(
        source=settings.deployment.name,
        channels=settings.signals,
        quantities=meter.quantities,
        calibrations=calibrations,
        fs=settings.fs,
        interval_s=meter.interval_s,
        align=meter.align,
        time_zone=zone_name(table.time_zone),
        has_utc=True,
        software=SOFTWARE,
        notes=tuple(response_notes(responses, settings.fs)),
        bands=meter.bands,
        extra=dict(settings.attributes),
    )


def _of_features(settings: UnitSettings) -> _Measuring:
    """Return what measures the features of a unit, and what their file says."""
    bound = settings.job.features.bind(settings.measured)
    meter = bound.open(0)
    about = describe(bound.signals, bound.facts, meter)
    return meter, replace(about, extra={**about.extra, **settings.attributes})


METERS: Mapping[ProductName, Callable[[UnitSettings], _Measuring]] = {
    "levels": _of_levels,
    "features": _of_features,
}
"""What makes the meter of each product that is a table, and the description of its file."""


class EventsWriter(WholeFileWriter):
    """Writes the events of rows, each with the file that it begins in; without one the head alone.

    Parameters
    ----------
    path : Path
        The file; its suffix is the format.
    settings : UnitSettings
        Names the trigger.
    spec : SpectrumSpec
        Definition of the rows.

    Attributes
    ----------
    n_events : int
        Events so far.

    Raises
    ------
    ConfigError
        If the trigger does not fit the rows.
    StorageError
        If the file cannot be made.
    """

    def __init__(self, path: Path, settings: UnitSettings, spec: SpectrumSpec) -> None:
        super().__init__(path)
        self._finder = LookAhead(Trigger(settings.job.detect, spec, settings.signals))
        self._row_s = spec.row_s
        files = [
            StreamFile(file_name(one.path), one.index - one.first, one.n_samples)
            for one in settings.unit.pieces
        ]
        places = FilePlaces(files, settings.fs, 0.0)
        self._events = PlacedEvents(self._finder, places, settings.signals, has_utc=True)
        self._add = self._stack.enter_context(
            event_file(path, find_zone(zone) if (zone := settings.job.detect_zone) else None)
        )
        self.n_events = 0

    @property
    def problems(self) -> list[str]:
        """What was not examined, and what the hold-off left out."""
        found = []
        if n_rows := self._finder.unexamined_rows:
            length = f"{n_rows * self._row_s:.3g} s"
            found.append(f"not examined: {length} are too short for a noise floor")
        if n_events := self._finder.n_left_out:
            found.append(f"left out: {n_events} within the hold-off (hold_off_s) of another event")
        return found

    def write(self, batch: SpectrumBatch) -> None:
        """Examine rows."""
        self._put(self._events.push(batch))

    def finish(self) -> None:
        """Complete the file."""
        self._put(self._events.finish())
        self._stack.close()

    def _put(self, events: Iterable[Detection]) -> None:
        for one in events:
            self.n_events += 1
            self._add(one)


def count_events(content: bytes) -> int:
    """Return how many events a CSV file of ``EventsWriter`` has; ValueError if it is none."""
    if not content.startswith(_EVENTS_HEADS) or not content.endswith(b"\n"):
        raise ValueError(f"must begin with {_EVENTS_HEADS[0].decode()} and end with a whole line")
    return content.count(b"\n") - 1


class MeasuredTable:
    """Measures intervals, and writes them.

    Parameters
    ----------
    meter : IntervalMeter
    about : MeasurementDescription
        What the file says.
    path : Path
        The file; its suffix is the format.

    Raises
    ------
    StorageError, UnavailableError
        If the file cannot be made.
    """

    def __init__(self, meter: IntervalMeter, about: MeasurementDescription, path: Path) -> None:
        self._meter, self._writer = meter, open_writer(path, about)

    def write(self, block: Block) -> None:
        """Measure a block of float32 samples."""
        for row in self._meter.push(block.samples, block.lost_samples, block.t_utc_ns):
            self._writer.write(row)

    def finish(self) -> None:
        """Complete the file."""
        for row in self._meter.finish():
            self._writer.write(row)
        self._writer.finish()

    def abort(self) -> None:
        """Leave no file."""
        self._writer.abort()
