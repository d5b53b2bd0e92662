"""NetCDF4 files that follow CF 1.11 and ACDD 1.3.

They are HDF5 files with dimension scales; .h5 files have the same content.
"""

import contextlib
import math
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.formats.export.confined.confined_messages import Question
from spectrod.formats.export.confined.confined_process import FileProcess
from spectrod.formats.export.disk import Disk
from spectrod.formats.export.grid import Form, GridReader, GridWriter
from spectrod.formats.export.layout import Variable
from spectrod.lib.optional_packages import need, need_elsewhere
from spectrod.lib.regular_files import open_regular

_PARTS = "real_imaginary"
"""Dimension of the real and imaginary part: NetCDF has no complex numbers."""


class NetcdfWriter(GridWriter):
    """Writes a recording to a NetCDF4 file; see ``ExportWriter`` for parameters and errors."""

    def _check(self) -> None:
        need_netcdf()
        super()._check()

    def _open_store(self, part: Path) -> "NetcdfStore":
        disk = self._stack.enter_context(closing(Disk(part)))
        store = NetcdfStore(disk, self.options.compression)
        self._stack.callback(store.release)
        return store


class NetcdfStore:
    """A NetCDF4 file that is being written; see ``grid.ArrayFile``.

    Parameters
    ----------
    disk : Disk
        The file to write; the caller closes it.
    compression : int
        Deflate level, 0 for none.
    """

    def __init__(self, disk: Disk, compression: int) -> None:
        self._disk = disk
        self._file = need_netcdf().File(disk, "w")
        self._text = need("h5py", "netcdf").string_dtype()
        self._filters = filters(compression)
        # HDF5 writes the last chunks of an array when its last handle is closed, and loses what is
        # written to an attribute while another handle of it is open. Another thread may hold any
        # object of ours for a while, as Dask's profiler does. So rows go through these handles of
        # all arrays, which stay open: the same rows make the same bytes.
        self._arrays: dict[str, Any] = {}

    def create(self, variable: Variable, chunk: tuple[int, ...], row: tuple[int, ...]) -> None:
        """Add an array: complete, or empty with this shape of rows; stored in chunks."""
        with self._disk.checked():
            self._create(variable, chunk, row)

    def append(self, parts: dict[str, NDArray[Any]]) -> None:
        """Append rows to growing arrays."""
        with self._disk.checked():
            self._append(parts)

    def annotate(self, attributes: dict[str, Any]) -> None:
        """Set attributes of the file."""
        with self._disk.checked():
            self._file.attrs.update(attributes)

    def close(self) -> None:
        """Write the remaining data; raises OSError if a write failed."""
        with self._disk.checked():
            for array in self._arrays.values():
                array.flush()
            self._arrays.clear()
            self._file.close()

    def release(self) -> None:
        """Close the file, complete or not. Idempotent."""
        self._arrays.clear()
        with contextlib.suppress(LookupError, OSError, RuntimeError, ValueError):
            self._file.close()

    def _create(self, variable: Variable, chunk: tuple[int, ...], row: tuple[int, ...]) -> None:
        dims, dtype = variable.dims, variable.dtype
        if dtype == "<c8":
            dims, dtype, chunk, row = (*dims, _PARTS), "<f4", (*chunk, 2), (*row, 2)
        lengths = (*chunk[:1], *row) if variable.data is not None else (None, *row)
        for dim, length in zip(dims, lengths, strict=True):
            if dim not in self._file.dimensions:
                self._file.dimensions[dim] = length
                self._arrays[dim] = self._file.dimensions[dim]._h5ds  # noqa: SLF001
        kind = self._text if dtype == "str" else dtype
        if variable.data is not None:
            array = self._file.create_variable(variable.name, dims, kind)
            array[...] = variable.data
        else:
            array = self._file.create_variable(
                variable.name, dims, kind, chunks=chunk, **self._filters
            )
        array.attrs.update(variable.attributes)
        self._arrays[variable.name] = array._h5ds  # noqa: SLF001

    def _append(self, parts: dict[str, NDArray[Any]]) -> None:
        for name, rows in parts.items():
            array, n_new = self._arrays[name], len(rows)
            first = array.shape[0]
            array.resize(first + n_new, axis=0)
            if n_new:
                plain = rows[..., np.newaxis].view("<f4") if rows.dtype.kind == "c" else rows
                array[first:] = plain


class NetcdfShelf:
    """A NetCDF4 file that another process reads for this one; see ``grid.Shelf``.

    Parameters
    ----------
    fd : int
        Descriptor of the file, which the caller closes.

    Raises
    ------
    UnavailableError
        If h5py is not installed, or no process can be started.
    ValueError
        If it is no HDF5 file.
    """

    def __init__(self, fd: int) -> None:
        need_elsewhere("h5py", "netcdf")
        self._process = FileProcess("hdf5", fd)
        self._forms: dict[str, Form] = {}

    def text(self, name: str) -> str:
        """Return an attribute of the file."""
        return self._process.ask(Question("text", name)).text

    def form(self, name: str) -> Form:
        """Return shape and type of an array without its data."""
        if name not in self._forms:
            answer = self._process.ask(Question("form", name))
            self._forms[name] = Form(answer.shape, np.dtype(answer.dtype), answer.piece_bytes)
        return self._forms[name]

    def read(self, name: str, first: int, past: int) -> NDArray[Any]:
        """Return some rows of an array, fewer at its end."""
        form = self.form(name)
        shape = max(0, min(past, form.shape[0]) - first), *form.shape[1:]
        self._process.ask(Question("read", name, first, past))
        content = self._process.array(form.dtype.itemsize * math.prod(shape))
        return np.frombuffer(content, form.dtype).reshape(shape)

    def unit_of(self, name: str) -> str:
        """Return the unit of an array's values as spectrod writes it; empty if it is not stated."""
        return self._process.ask(Question("unit", name)).text

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._process.close()


def filters(compression: int) -> dict[str, Any]:
    """Return HDF5's filters of a chunk: a checksum, and compression if requested."""
    if compression == 0:
        return {"fletcher32": True}
    return {
        "compression": "gzip",
        "compression_opts": compression,
        "shuffle": True,
        "fletcher32": True,
    }


def need_netcdf() -> Any:
    """Import h5netcdf and h5py, which it needs; UnavailableError if one is missing."""
    need("h5py", "netcdf")
    return need("h5netcdf", "netcdf")


def open_netcdf(path: Path) -> GridReader:
    """Open a file that ``NetcdfWriter`` made; see ``GridReader`` for errors."""
    return GridReader(path, _open_shelf)


def _open_shelf(path: Path) -> NetcdfShelf:
    with open_regular(path) as file:
        return NetcdfShelf(file.fileno())
