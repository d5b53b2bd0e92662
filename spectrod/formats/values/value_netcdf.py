"""Measurements as NetCDF4, by CF 1.11; .h5 files have the same content."""

from contextlib import closing
from pathlib import Path

from spectrod.formats.export.disk import Disk
from spectrod.formats.export.netcdf import NetcdfStore, need_netcdf
from spectrod.formats.values.measurement_table import begin_ns
from spectrod.formats.values.value_variables import (
    axis_lengths,
    covered,
    end_ns,
    global_attributes,
    growing_parts,
    variables,
)
from spectrod.formats.values.value_writer import ValueWriter
from spectrod.lib.errors import ConfigError
from spectrod.measure.measurement import Measurement

_COMPRESSION = 1
_CHUNK_ROWS = 256
_CHUNK_VALUES = 1 << 20
"""Largest number of rows, and of their values of bins, that are written at a time."""


class ValueNetcdfWriter(ValueWriter):
    """Writes measurements to a NetCDF4 file; see ``ValueWriter`` for parameters and errors."""

    def _open(self, part: Path) -> None:
        if self.description.has_days:
            rule = "times ascend in it, so it has no days beside their intervals"
            raise ConfigError(f"{self.path}: {rule}; write .csv, .parquet or a figure")
        need_netcdf()
        disk = self._stack.enter_context(closing(Disk(part)))
        self._store = NetcdfStore(disk, _COMPRESSION)
        self._stack.callback(self._store.release)
        about = self.description
        sizes = axis_lengths(about)
        n_values = len(about.channels) * max(1, len(about.frequencies) * len(about.spectra))
        self._chunk_rows = max(1, min(_CHUNK_ROWS, _CHUNK_VALUES // n_values))
        for variable in variables(about):
            if variable.data is not None:
                self._store.create(variable, variable.data.shape, variable.data.shape[1:])
            else:
                row = tuple(sizes[name] for name in variable.dims[1:])
                self._store.create(variable, (self._chunk_rows, *row), row)
        self._store.annotate(global_attributes(about))
        self._rows: list[Measurement] = []
        self._begin_ns: int | None = None
        self._end_ns = 0

    def _write(self, row: Measurement) -> None:
        self._rows.append(row)
        if len(self._rows) == self._chunk_rows:
            self._append()

    def _close(self) -> None:
        if self._rows:
            self._append()
        if self._begin_ns is not None:
            self._store.annotate(covered(self.description, self._begin_ns, self._end_ns))
        self._store.close()

    def _append(self) -> None:
        about, rows = self.description, self._rows
        if self._begin_ns is None:
            self._begin_ns = begin_ns(about, rows[0])
        self._end_ns = end_ns(about, rows[-1])
        self._store.append(growing_parts(about, rows))
        self._rows = []
