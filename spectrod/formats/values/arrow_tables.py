"""Measurements and events as tables that polars, DuckDB and pandas read from memory.

They need ``pip install 'spectrod[parquet]'``: the library that writes Parquet holds the memory.
"""

from collections.abc import Sequence
from typing import Any

from spectrod.dsp.calibration import CalibrationLike, calibration_of
from spectrod.formats.event_fields import EVENT_COLUMNS, EVENT_TEXTS, EVENT_TIMES, fields_of
from spectrod.formats.figure.figure_look import FigureLook
from spectrod.formats.figure.plots import plot_intervals
from spectrod.formats.values.arrow_rows import RowGroup, batch, check_names, metadata
from spectrod.formats.values.measurement_description import describe
from spectrod.lib.arrow_table import ArrowTable
from spectrod.lib.errors import InputError
from spectrod.lib.optional_packages import need
from spectrod.measure.levels import LevelRow
from spectrod.measure.levels.octave_levels import BandLevels
from spectrod.measure.measurement import Measurement
from spectrod.measure.measurement_config import IntervalMeter, MeasuredSignals, MeasurementFacts
from spectrod.measure.triggers.detection import Detection

_COUNTS = ("pulses",)
_UNITS = {"s": "s", "hz": "Hz", "db": "dB"}
"""Units by the ends of names."""


class MeasurementTable(ArrowTable):
    """The rows of a meter: a row for each interval, columns as in Parquet files.

    ``polars.DataFrame(levels)`` and ``duckdb.sql("FROM levels")`` read it, and with pyarrow
    ``pandas.DataFrame.from_arrow(levels)``.

    Parameters
    ----------
    rows : sequence of Measurement
        What the meter has returned; they have all a date, or none.
    meter : IntervalMeter
        A ``LevelMeter``, or one of features, tones or transfer functions. Values of bins are not in
        the table.
    channels : sequence of str
        Name of each channel; by default its number, from 0 on.
    calibration : str, Path or Calibration, optional
        Calibration that the meter has, which the units are of.
    source : str
        What has been measured, for the metadata.
    time_zone : str
        Time zone of the column ``time``; empty: UTC.

    Raises
    ------
    ConfigError
        If the calibration is not of the channels, or two channels have one name.
    InputError
        If a row is of another meter, or some rows have a date and others have none.
    UnavailableError
        If arro3 is not installed: ``pip install 'spectrod[parquet]'``.
    """

    def __init__(
        self,
        rows: Sequence[Measurement],
        meter: IntervalMeter,
        *,
        channels: Sequence[str] = (),
        calibration: CalibrationLike = None,
        source: str = "signals",
        time_zone: str = "",
    ) -> None:
        need("arro3.core", "parquet")
        fs, n_channels = _signals_of(meter)
        if channels and len(channels) != n_channels:
            raise InputError(f"channels={list(channels)}: must be {n_channels} names")
        names = tuple(channels) or tuple(str(n) for n in range(n_channels))
        bands = getattr(meter, "bands", None)
        signals = MeasuredSignals(
            source,
            fs,
            names,
            calibration_of(calibration, n_channels) or (None,) * n_channels,
            has_utc=_have_dates(rows),
        )
        facts = MeasurementFacts("Measurements", bands=bands, time_zone=time_zone)
        self._about = describe(signals, facts, meter)
        check_names(self._about, "channels")
        self._meter, self._rows, self._fs, self._zone = meter, rows, fs, time_zone
        _check_shapes(rows, len(self._about.quantities), n_channels, bands)
        self._made: Any = None

    def __len__(self) -> int:
        return len(self._rows)

    def to_arrow(self) -> Any:
        """Return the table as an ``arro3.core.Table``.

        Fields have ``unit`` and ``channel`` as metadata, and the schema has those of a CSV file.
        """
        if self._made is None:
            group = RowGroup(self._about)
            for row in self._rows:
                group.append(row)
            made = batch(self._about, group.arrays())
            self._made = _table(made, made.schema.with_metadata(metadata(self._about)))
        return self._made

    def to_xarray(self) -> Any:
        """Return the rows as an ``xarray.Dataset``, as it opens a NetCDF file of them.

        Variables, units and attributes are those of ``spectrod levels -o x.nc``: a variable for
        each quantity over time and channel, levels in bands over bands, and flags by CF 1.11.

        Raises
        ------
        InputError
            If there are no rows, or local days beside shorter intervals.
        UnavailableError
            If xarray is not installed: ``pip install 'spectrod[xarray]'``.
        """
        need("xarray", "xarray")
        from spectrod.formats.dataset.measurement_dataset import (  # noqa: PLC0415 - optional
            measurement_dataset,
        )

        return measurement_dataset(self._about, self._rows)

    def plot(self, look: FigureLook | None = None) -> Any:
        """Draw each value over time, and levels in bands; see ``plot_intervals``.

        Parameters
        ----------
        look : FigureLook, optional
            Title, size and resolution.

        Returns
        -------
        figure : matplotlib.figure.Figure
            A notebook shows it where a cell ends with it; pyplot does not.

        Raises
        ------
        InputError
            If there are no rows.
        UnavailableError
            If matplotlib is not installed: ``pip install 'spectrod[plot]'``.
        """
        about = self._about
        return plot_intervals(
            self._meter,
            self._rows,
            self._fs,
            channels=about.channels,
            calibrations=about.calibrations,
            time_zone=self._zone,
            look=look,
        )


class EventTable(ArrowTable):
    """Events of recordings: a row for each, columns as in CSV files of ``spectrod detect``.

    Times are UTC in nanoseconds, null where no date is known; other unknown values are null too.

    Parameters
    ----------
    events : sequence of Detection
        As ``spectrod.measure.triggers.detection.detections`` yields them.

    Raises
    ------
    InputError
        If one is something else, such as the begin of an event that ``LookAhead`` returns.
    UnavailableError
        If arro3 is not installed: ``pip install 'spectrod[parquet]'``.
    """

    def __init__(self, events: Sequence[Detection]) -> None:
        need("arro3.core", "parquet")
        _check_events(events)
        self._events, self._made = events, None

    def __len__(self) -> int:
        return len(self._events)

    def to_arrow(self) -> Any:
        """Return the table as an ``arro3.core.Table``; fields have ``unit`` as metadata."""
        if self._made is None:
            self._made = self._columns()
        return self._made

    def _columns(self) -> Any:
        core = need("arro3.core", "parquet")
        cells: dict[str, list[Any]] = {name: [] for name in (*EVENT_TIMES, *EVENT_COLUMNS)}
        for one in self._events:
            ends = (one.event.begin_utc_ns, one.end_utc_ns) if one.has_utc else (None, None)
            for name, cell in (fields_of(one) | dict(zip(EVENT_TIMES, ends, strict=True))).items():
                cells[name].append(cell)
        arrays = [_event_column(core, name, column) for name, column in cells.items()]
        fields = [
            core.Field(name, one.type, metadata=_unit_of(name))
            for name, one in zip(cells, arrays, strict=True)
        ]
        schema = core.Schema(fields)
        return _table(core.RecordBatch.from_arrays(arrays, schema=schema), schema)


def _check_events(events: Sequence[object]) -> None:
    """Raise InputError for what is not an event of a recording."""
    for number, one in enumerate(events):
        if not isinstance(one, Detection):
            rule = "must be a Detection, as triggers.detection.detections yields them"
            raise InputError(f"event {number} is a {type(one).__name__}: {rule}")


def _event_column(core: Any, name: str, cells: list[Any]) -> Any:
    if name in EVENT_TIMES:
        moment = core.DataType.timestamp("ns", tz="UTC")
        return core.Array(cells, type=core.DataType.int64()).cast(moment)
    if name in EVENT_TEXTS:
        return core.Array(cells, type=core.DataType.string())
    kind = core.DataType.int64() if name in _COUNTS else core.DataType.float64()
    return core.Array(cells, type=kind)


def _unit_of(name: str) -> dict[str, str]:
    end = name.rpartition("_")[2]
    return {"unit": _UNITS[end]} if "_" in name and end in _UNITS else {}


def _table(made: Any, schema: Any) -> Any:
    return need("arro3.core", "parquet").Table.from_batches([made.with_schema(schema)])


def _signals_of(meter: Any) -> tuple[float, int]:
    """Return the sample rate and the number of channels; meters of frames have them in a spec."""
    spec = getattr(meter, "spec", None)
    return (meter.fs, meter.channels) if spec is None else (spec.fs, spec.n_signals)


def _have_dates(rows: Sequence[Measurement]) -> bool:
    have = [row.begin_utc_ns is not None for row in rows]
    if any(have) and not all(have):
        rule = "rows of a table have all a date, or none"
        raise InputError(
            f"row {have.index(False)}: has no date, and row {have.index(True)} has one: {rule}"
        )
    return any(have)


def _check_shapes(
    rows: Sequence[Measurement], n_quantities: int, n_channels: int, bands: BandLevels | None
) -> None:
    """Raise InputError for a row that has not the values of the meter."""
    due = n_quantities, n_channels
    of_bands = (len(bands.quantities), len(bands.filters)) if bands and bands.filters else (0, 0)
    for number, row in enumerate(rows):
        found = row.band_values.shape[:2] if isinstance(row, LevelRow) else (0, 0)
        if row.values.shape != due or found != of_bands:
            raise InputError(
                f"row {number}: {row.values.shape} values, and {found} in bands: must be {due} and "
                f"{of_bands}, (quantities, channels) and (quantities, bands) of the meter"
            )
