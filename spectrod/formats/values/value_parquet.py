"""Measurements as Parquet: a row for each interval, a typed column for each value."""

import json
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.disk import Disk
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.measurement_table import (
    DURATION,
    FLAGS_NAME,
    begin_ns,
    flag_texts,
    header,
    number_names,
    numbers,
    of_channels,
    time_name,
)
from spectrod.formats.values.value_writer import ValueWriter
from spectrod.lib.errors import ConfigError
from spectrod.lib.optional_packages import need
from spectrod.measure.measurement import Measurement

_GROUP_ROWS = 1 << 16
_GROUP_VALUES = 1 << 20
"""Largest number of rows, and of their values, that are in memory at a time."""


class ValueParquetWriter(ValueWriter):
    """Writes measurements to a Parquet file; see ``ValueWriter`` for parameters and errors.

    Columns are those of CSV files: times are to the nanosecond, and have the time zone, flags are
    text, and values float64.
    Values of bins are lists. The metadata are those of CSV files, what is no text as JSON.

    The library takes rows from an iterator only, so they wait in a file without a name until the
    end, and the disk holds them twice for a moment.
    """

    def _open(self, part: Path) -> None:
        need("arro3.core", "parquet")
        self._library = need("arro3.io", "parquet")
        about = self.description
        names = _column_names(about)
        if twice := [name for name in names if names.count(name) > 1]:
            rule = "two columns of a table must not have one name: name the channels apart"
            raise ConfigError(f"{self.path}: {twice[0]}: {rule}")
        # The library's errors do not tell a full disk; this file keeps the system's reason.
        self._disk = self._stack.enter_context(closing(Disk(part)))
        spool = tempfile.TemporaryFile(dir=part.parent)  # noqa: SIM115 - the stack closes it
        self._spool = self._stack.enter_context(spool)
        n_bins = len(about.spectra) * len(about.channels) * len(about.frequencies)
        n_values = len(number_names(about)) + n_bins
        self._group_rows = max(1, min(_GROUP_ROWS, _GROUP_VALUES // max(1, n_values)))
        self._n_groups = 0
        self._start_group()

    def _start_group(self) -> None:
        self._times_ns, self._durations_s = array("q"), array("d")
        self._flags: list[list[str]] = []
        self._numbers, self._bins = array("d"), array("d")

    def _write(self, row: Measurement) -> None:
        about = self.description
        self._times_ns.append(begin_ns(about, row))
        self._durations_s.append(row.duration_s)
        self._flags.append(flag_texts(row))
        self._numbers.extend(numbers(about, row))
        for k in range(len(about.spectra)):
            for table in row.tables:
                self._bins.frombytes(np.ascontiguousarray(table[k], np.float64).tobytes())
        if len(self._times_ns) == self._group_rows:
            self._append()

    def _append(self) -> None:
        for one in self._group():
            np.save(self._spool, one, allow_pickle=False)
        self._n_groups += 1
        self._start_group()

    def _group(self) -> list[Any]:
        """Return the rows in memory: times, durations, flags, numbers, values of bins."""
        about, n = self.description, len(self._times_ns)
        bins = len(about.spectra) * len(about.channels)
        return [
            np.array(self._times_ns, np.int64),
            np.array(self._durations_s, np.float64),
            np.array(self._flags, np.str_).reshape(n, len(about.channels)),
            np.array(self._numbers, np.float64).reshape(n, len(number_names(about))),
            np.array(self._bins, np.float64).reshape(n, bins, len(about.frequencies)),
        ]

    def _close(self) -> None:
        about = self.description
        core = need("arro3.core", "parquet")
        if self._times_ns:
            self._append()
        schema = _batch(about, self._group()).schema  # of no rows
        reader = core.RecordBatchReader.from_batches(schema, self._batches())
        metadata = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in _metadata(about).items()
        }
        with self._disk.checked():
            self._library.write_parquet(
                reader,
                self._disk,
                compression="zstd(3)",
                created_by=about.software,
                key_value_metadata=metadata,
                max_row_group_size=self._group_rows,
            )

    def _batches(self) -> Iterator[Any]:
        self._spool.seek(0)
        for _ in range(self._n_groups):
            yield _batch(self.description, [np.load(self._spool) for _ in range(5)])


def _batch(about: MeasurementDescription, group: list[Any]) -> Any:
    """Return rows as a batch of Arrow."""
    core = need("arro3.core", "parquet")
    times, durations, flags, values, bins = group
    if about.has_utc:
        moments = core.Array(times).cast(core.DataType.timestamp("ns", tz=about.time_zone or "UTC"))
    else:
        moments = core.Array(times / NS_PER_S)
    cells = [moments, core.Array(durations)]
    text = core.DataType.string()
    cells += [core.Array(column.tolist(), type=text) for column in flags.T]
    cells += [core.Array(np.ascontiguousarray(column)) for column in values.T]
    for column in range(bins.shape[1]):
        flat = core.Array(np.ascontiguousarray(bins[:, column]).ravel())
        cells.append(core.fixed_size_list_array(flat, bins.shape[2]))
    return core.RecordBatch.from_arrays(cells, names=_column_names(about))


def _column_names(about: MeasurementDescription) -> list[str]:
    of_bins = [name for one in about.spectra for name in of_channels(about, one)]
    flags = of_channels(about, FLAGS_NAME)
    return [time_name(about), DURATION, *flags, *number_names(about), *of_bins]


def _metadata(about: MeasurementDescription) -> dict[str, Any]:
    found = header(about)
    if about.spectra:
        units = dict(zip(about.spectra, about.spectra_units, strict=True))
        found |= {"units": found["units"] | units, "frequency_hz": about.frequencies.tolist()}
    return found
