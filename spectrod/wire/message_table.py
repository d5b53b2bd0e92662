"""Measurements of messages as a table that polars, DuckDB and pandas read from memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectrod.dsp.interval_flags import FLAG_ATTRIBUTES, flags_of
from spectrod.dsp.level_reference import stated_reference
from spectrod.dsp.level_terms import level_terms
from spectrod.dsp.measurement_columns import (
    DURATION,
    EFFORT_ATTRIBUTES,
    FLAGS_BETWEEN,
    FLAGS_NAME,
    TIME,
    of_channels,
    value_attributes,
    variable_name,
)
from spectrod.lib.arrow_table import ArrowTable, as_texts, field_metadata
from spectrod.lib.errors import InputError
from spectrod.lib.optional_packages import need
from spectrod.lib.text import printable
from spectrod.wire.headers import IntervalHeader

if TYPE_CHECKING:
    from spectrod.wire.schema import IntervalFrame

_TIME_ATTRIBUTES = {
    "standard_name": "time",
    "long_name": "time of an interval's first sample",
    "axis": "T",
    "units_metadata": "leap_seconds: none",
}
_CELLS_MAX = 1 << 25
"""Most values of a table: a peer may invent a channel for each interval."""
_Interval = tuple[int, int]
"""Epoch of the daemon, and index of the first sample."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its cells, None where a channel has no message of the interval."""

    name: str
    kind: Literal["time", "text", "number"]
    cells: list[Any]
    unit: str = ""
    channel: str = ""


class MessageTable(ArrowTable):
    """Messages of measurements: a row for each interval, columns as those of Parquet files.

    ``polars.DataFrame(levels)`` and ``duckdb.sql("FROM levels")`` read it, and with pyarrow
    ``pandas.DataFrame.from_arrow(levels)``. Rows ascend in time. Of several channels, names of
    columns end with ``@CHANNEL``, and a cell is null where the message of a channel is missing.
    Values of bins, and tracks of tones, are not in the table.

    Parameters
    ----------
    messages : sequence of IntervalFrame
        Of one analysis of one source, at least one; in any order. Of one that is there twice, the
        later one counts.

    Raises
    ------
    InputError
        If there is none, one is of another kind, analysis, source, rate or interval, or has other
        quantities or units than those before it, two columns would have one name, or there would
        be more than 2^25 values.
    """

    def __init__(self, messages: Sequence["IntervalFrame"]) -> None:
        _check_messages(messages)
        self._first = messages[0]
        self._by_channel: dict[str, dict[_Interval, IntervalFrame]] = {}
        for one in messages:
            found = self._by_channel.setdefault(one.channel, {})
            found[one.header.epoch, one.header.sample_index] = one
        headers = {(one.header.epoch, one.header.sample_index): one.header for one in messages}
        self._rows = dict(sorted(headers.items(), key=lambda item: item[1].t_utc_ns))
        self._made: Any = None
        _check_units(messages)
        self._check_size()
        self._check_names()

    def _check_size(self) -> None:
        n_quantities, n_channels = len(self._first.header.quantities), len(self._by_channel)
        n_cells = len(self) * n_channels * n_quantities
        if n_cells > _CELLS_MAX:
            raise InputError(
                f"{len(self)} intervals, {n_channels} channels, {n_quantities} quantities: must be "
                f"at most {_CELLS_MAX} values in one table"
            )

    def _check_names(self) -> None:
        values = FLAGS_NAME, *self._first.header.quantities
        of_values = (of_channels(list(self._by_channel), one) for one in values)
        _refuse_twice([TIME, DURATION, *chain(*of_values)])

    def __len__(self) -> int:
        return len(self._rows)

    def to_arrow(self) -> Any:
        """Return the table as an ``arro3.core.Table``.

        Fields have ``unit`` and ``channel`` as metadata, the schema source, analysis, sample rate,
        interval, reference, calibration and units.

        Raises
        ------
        UnavailableError
            If arro3 is not installed: ``pip install 'spectrod[parquet]'``.
        """
        if self._made is None:
            core = need("arro3.core", "parquet")
            columns = self._columns()
            arrays = [_array(core, one) for one in columns]
            fields = [
                core.Field(one.name, made.type, metadata=field_metadata(one.unit, one.channel))
                for one, made in zip(columns, arrays, strict=True)
            ]
            h = self._first.header
            units = dict(zip(h.quantities, h.units, strict=True))
            schema = core.Schema(fields, metadata=as_texts(self._about() | {"units": units}))
            self._made = core.Table.from_arrays(arrays, schema=schema)
        return self._made

    def to_xarray(self) -> Any:
        """Return the messages as an ``xarray.Dataset``, over time and channel.

        Names, units, flags and other attributes of variables are those of NetCDF files of
        measurements. Values are NaN, and have no flag, where a message is missing.

        Raises
        ------
        InputError
            If two quantities have one name as variables.
        UnavailableError
            If xarray is not installed: ``pip install 'spectrod[xarray]'``.
        """
        xarray = need("xarray", "xarray")
        quantities, channels = self._first.header.quantities, list(self._by_channel)
        names = [variable_name(one) for one in quantities]
        _refuse_twice(["time", "channel", "channel_name", "effort", "flags", *names])
        shape = len(self), len(channels)
        values, flags = np.full((len(names), *shape), np.nan), np.zeros(shape, np.uint8)
        for k, channel in enumerate(channels):
            for row, one in enumerate(self._of(channel)):
                if one is not None:
                    values[:, row, k], flags[row, k] = one.values, flags_of(one.header.flags)
        headers = self._rows.values()
        times = np.array([h.t_utc_ns for h in headers], "datetime64[ns]")
        efforts = np.array([h.n_samples / h.fs for h in headers])
        references = [stated_reference(one) for one in self._references()]
        dims = "time", "channel"
        found = {
            "effort": ("time", efforts, EFFORT_ATTRIBUTES),
            "flags": (dims, flags, _without_coordinates(FLAG_ATTRIBUTES)),
        }
        for k, (name, quantity) in enumerate(zip(names, quantities, strict=True)):
            attributes = value_attributes(quantity, self._units(k))
            attributes |= level_terms(quantity, references)
            found[name] = (dims, values[k], attributes)
        coordinates = {
            "time": ("time", times, _TIME_ATTRIBUTES),
            "channel_name": ("channel", channels, {"long_name": "name of the channel"}),
        }
        return xarray.Dataset(found, coordinates, self._about())

    def _units(self, k: int) -> str:
        """Return the unit of a quantity; that of every channel where they have several."""
        units = [next(iter(found.values())).header.units[k] for found in self._by_channel.values()]
        return ", ".join(units if len(set(units)) > 1 else units[:1])

    def _columns(self) -> list[_Column]:
        channels, rows = list(self._by_channel), self._rows.values()
        times = [h.t_utc_ns for h in rows]
        durations = [h.n_samples / h.fs for h in rows]
        found = [_Column(TIME, "time", times), _Column(DURATION, "number", durations, "s")]
        for name, channel in zip(of_channels(channels, FLAGS_NAME), channels, strict=True):
            flags = [
                None if one is None else FLAGS_BETWEEN.join(map(printable, one.header.flags))
                for one in self._of(channel)
            ]
            found.append(_Column(name, "text", flags, channel=channel))
        for k, quantity in enumerate(self._first.header.quantities):
            for name, channel in zip(of_channels(channels, quantity), channels, strict=True):
                of_channel = self._of(channel)
                unit = next(one.header.units[k] for one in of_channel if one is not None)
                cells = [None if one is None else float(one.values[k]) for one in of_channel]
                found.append(_Column(name, "number", cells, unit, channel))
        return found

    def _of(self, channel: str) -> "list[IntervalFrame | None]":
        """Return the message of each row."""
        by_interval = self._by_channel[channel]
        return [by_interval.get(interval) for interval in self._rows]

    def _references(self) -> list[str]:
        """Return what units of levels refer to, each once."""
        headers = [one.header for found in self._by_channel.values() for one in found.values()]
        return list(dict.fromkeys(one.ref for one in headers))

    def _about(self) -> dict[str, Any]:
        first = self._first
        h = first.header
        headers = [one.header for found in self._by_channel.values() for one in found.values()]
        cal_ids = dict.fromkeys(one.cal_id for one in headers if one.cal_id)
        return {
            "source": first.source,
            "product": first.product,
            "sample_rate_hz": h.fs,
            "interval_s": h.interval_s,
            "reference": ", ".join(self._references()),
            "calibration": ", ".join(cal_ids) or "none: of digital full scale",
        }


def _refuse_twice(names: Sequence[str]) -> None:
    name, n = Counter(names).most_common(1)[0]
    if n > 1:
        rule = "two columns of a table must not have one name"
        raise InputError(f"quantities: {printable(name)}: {rule}")


def _without_coordinates(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes without the names of coordinates, which xarray keeps itself."""
    return {name: value for name, value in attributes.items() if name != "coordinates"}


def _check_messages(messages: Sequence["IntervalFrame"]) -> None:
    """Raise InputError for what does not belong to the first message."""
    if not messages:
        raise InputError("no messages: a table of them has at least one")
    for number, one in enumerate(messages):
        if not isinstance(getattr(one, "header", None), IntervalHeader):
            rule = "must be one with measurements, such as LevelsFrame"
            raise InputError(f"message {number} is a {type(one).__name__}: {rule}")
    due = _meaning(messages[0])
    for number, one in enumerate(messages):
        for name, value in _meaning(one).items():
            if value != due[name]:
                text = f"message {number}: {name} {value}: must be {due[name]}, as of the first one"
                raise InputError(printable(text))


def _meaning(message: "IntervalFrame") -> dict[str, Any]:
    """Return what all messages of a table have in common."""
    h = message.header
    return {
        "kind": h.schema,
        "source": message.source,
        "product": message.product,
        "fs": h.fs,
        "interval_s": h.interval_s,
        "quantities": ", ".join(h.quantities),
    }


def _check_units(messages: Sequence["IntervalFrame"]) -> None:
    """Raise InputError if the units of a channel change, as by a new calibration."""
    first: dict[str, Any] = {}
    for number, one in enumerate(messages):
        due = first.setdefault(one.channel, one.header)
        for name, unit, before in zip(due.quantities, one.header.units, due.units, strict=True):
            if unit != before:
                rule = f"must be {before} in one table, as of messages before it"
                raise InputError(printable(f"message {number}: {name} in {unit}: {rule}"))


def _array(core: Any, column: _Column) -> Any:
    if column.kind == "time":
        moment = core.DataType.timestamp("ns", tz="UTC")
        return core.Array(column.cells, type=core.DataType.int64()).cast(moment)
    kind = core.DataType.string() if column.kind == "text" else core.DataType.float64()
    return core.Array(column.cells, type=kind)
