"""Measurements of messages as a table that polars, DuckDB and pandas read from memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from spectrod.dsp.measurement_columns import (
    DURATION,
    FLAGS_BETWEEN,
    FLAGS_NAME,
    TIME,
    of_channels,
)
from spectrod.lib.arrow_table import ArrowTable, as_texts, field_metadata
from spectrod.lib.errors import InputError
from spectrod.lib.optional_packages import need
from spectrod.lib.text import printable
from spectrod.wire.headers import IntervalHeader

if TYPE_CHECKING:
    from spectrod.wire.schema import IntervalFrame

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
        quantities or units than those before it, or two columns would have one name.
    UnavailableError
        If arro3 is not installed: ``pip install 'spectrod[parquet]'``.
    """

    def __init__(self, messages: Sequence["IntervalFrame"]) -> None:
        need("arro3.core", "parquet")
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
        self._check_names()

    def _check_names(self) -> None:
        values = FLAGS_NAME, *self._first.header.quantities
        of_values = (of_channels(list(self._by_channel), one) for one in values)
        name, n = Counter([TIME, DURATION, *chain(*of_values)]).most_common(1)[0]
        if n > 1:
            rule = "two columns of a table must not have one name"
            raise InputError(f"quantities: {printable(name)}: {rule}")

    def __len__(self) -> int:
        return len(self._rows)

    def to_arrow(self) -> Any:
        """Return the table as an ``arro3.core.Table``.

        Fields have ``unit`` and ``channel`` as metadata, the schema source, analysis, sample rate,
        interval, reference, calibration and units.
        """
        if self._made is None:
            core = need("arro3.core", "parquet")
            columns = self._columns()
            arrays = [_array(core, one) for one in columns]
            fields = [
                core.Field(one.name, made.type, metadata=field_metadata(one.unit, one.channel))
                for one, made in zip(columns, arrays, strict=True)
            ]
            schema = core.Schema(fields, metadata=self._about())
            self._made = core.Table.from_arrays(arrays, schema=schema)
        return self._made

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

    def _about(self) -> dict[str, str]:
        first = self._first
        h = first.header
        headers = [one.header for found in self._by_channel.values() for one in found.values()]
        cal_ids = dict.fromkeys(one.cal_id for one in headers if one.cal_id)
        units = dict(zip(h.quantities, h.units, strict=True))
        found = {
            "source": first.source,
            "product": first.product,
            "sample_rate_hz": h.fs,
            "interval_s": h.interval_s,
            "reference": ", ".join(dict.fromkeys(one.ref for one in headers)),
            "calibration": ", ".join(cal_ids) or "none: of digital full scale",
            "units": units,
        }
        return as_texts(found)


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
