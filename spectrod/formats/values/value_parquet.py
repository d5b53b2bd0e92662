"""Measurements as Parquet: a row for each interval, a typed column for each value."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from spectrod.formats.export.disk import Disk
from spectrod.formats.values.arrow_rows import RowGroup, batch, check_names, metadata
from spectrod.formats.values.measurement_table import number_names
from spectrod.formats.values.parquet_bytes import COMPRESSION
from spectrod.formats.values.parquet_footer import sort_metadata
from spectrod.formats.values.value_writer import ValueWriter
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
        check_names(about, self.path)
        # The library's errors do not tell a full disk; this file keeps the system's reason.
        self._disk = self._stack.enter_context(closing(Disk(part)))
        spool = tempfile.TemporaryFile(dir=part.parent)  # noqa: SIM115 - the stack closes it
        self._spool = self._stack.enter_context(spool)
        n_bins = len(about.spectra) * len(about.channels) * len(about.frequencies)
        n_values = len(number_names(about)) + n_bins
        self._group_rows = max(1, min(_GROUP_ROWS, _GROUP_VALUES // max(1, n_values)))
        self._n_groups, self._group = 0, RowGroup(about)

    def _write(self, row: Measurement) -> None:
        self._group.append(row)
        if len(self._group) == self._group_rows:
            self._append()

    def _append(self) -> None:
        for one in self._group.arrays():
            np.save(self._spool, one, allow_pickle=False)
        self._n_groups, self._group = self._n_groups + 1, RowGroup(self.description)

    def _close(self) -> None:
        about = self.description
        core = need("arro3.core", "parquet")
        if self._group:
            self._append()
        schema = batch(about, self._group.arrays()).schema  # of no rows
        texts = metadata(about)
        reader = core.RecordBatchReader.from_batches(schema, self._batches())
        with self._disk.checked():
            self._library.write_parquet(
                reader,
                self._disk,
                compression=COMPRESSION,
                created_by=about.software,
                key_value_metadata=texts,
                max_row_group_size=self._group_rows,
            )
            sort_metadata(cast("IO[bytes]", self._disk), texts)

    def _batches(self) -> Iterator[Any]:
        self._spool.seek(0)
        for _ in range(self._n_groups):
            yield batch(self.description, [np.load(self._spool) for _ in range(5)])
