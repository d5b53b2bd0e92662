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

from spectrod.formats.export.disk import Disk
from spectrod.formats.export.grid import Form, GridReader, GridWriter
from spectrod.formats.export.layout import Variable
from spectrod.formats.export.needs import need

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
        lengths = (chunk[0] if variable.data is not None else None, *row)
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
    """A NetCDF4 file that is being read; see ``grid.Shelf``."""

    def __init__(self, path: Path) -> None:
        self._file = need("h5py", "netcdf").File(path, "r")

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the file."""
        return dict(self._file.attrs)

    def form(self, name: str) -> Form:
        """Return shape and type of an array without its data."""
        array = self._array(name)
        piece = array.chunks or array.shape[1:]
        piece_bytes = array.dtype.itemsize * math.prod(piece)
        if array.ndim == 4 and array.shape[3] == 2 and array.dtype == "<f4":
            return Form(array.shape[:3], np.dtype("<c8"), piece_bytes)
        return Form(array.shape, array.dtype, piece_bytes)

    def read(self, name: str, first: int, past: int) -> NDArray[Any]:
        """Return some rows of an array, fewer at its end; KeyError if there is no such array."""
        rows: NDArray[Any] = self._array(name)[first:past]
        return rows.view("<c8")[..., 0] if rows.ndim == 4 else rows

    def unit_of(self, name: str) -> str:
        """Return the unit of an array's values as spectrod writes it; empty if it is not stated."""
        text = self._array(name).attrs.get("spectrod_unit", "")
        return text if isinstance(text, str) else ""

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()

    def _array(self, name: str) -> Any:
        array = self._file[name]
        if not isinstance(array, need("h5py", "netcdf").Dataset) or array.shape is None:
            raise ValueError(f"{name}: must be an array")
        return array


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
    return GridReader(path, NetcdfShelf)
