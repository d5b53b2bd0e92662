"""NPZ files: the arrays of ``layout`` as NumPy loads them."""

import contextlib
import io
import json
import shutil
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from spectrod.record.export.grid import GridReader, GridWriter
from spectrod.record.export.layout import Variable

_COPY_BYTES = 1 << 20
_SUFFIX = ".npy"
GLOBAL_ATTRIBUTES = "attributes"
VARIABLE_ATTRIBUTES = "variable_attributes"


class NpzWriter(GridWriter):
    """Writes a recording to an NPZ file; see ``ExportWriter`` for parameters and errors.

    An array's length stands before it, so arrays grow in files of their own beside the final one,
    and are put together at the end: the disk holds the recording twice for a moment.
    """

    def _open_store(self, part: Path) -> "NpzStore":
        spool = part.with_suffix(".spool")
        spool.mkdir()
        self._stack.callback(shutil.rmtree, spool, ignore_errors=True)
        store = NpzStore(part, spool, self.options.compression)
        self._stack.callback(store.release)
        return store


class NpzStore:
    """An NPZ file that is being written; see ``grid.Store``.

    Parameters
    ----------
    part : Path
        The file, made by ``close``.
    spool : Path
        An empty folder for the arrays that grow.
    compression : int
        Of deflate, 0 for none.
    """

    def __init__(self, part: Path, spool: Path, compression: int) -> None:
        self._part = part
        self._spool = spool
        self._compression = compression
        self._whole: dict[str, NDArray[Any]] = {}
        self._growing: dict[str, tuple[IO[bytes], str, tuple[int, ...]]] = {}
        self._attributes: dict[str, Any] = {}
        self._of_variables: dict[str, dict[str, Any]] = {}

    def create(self, variable: Variable, chunk: tuple[int, ...], row: tuple[int, ...]) -> None:
        """Add an array: all of it, or one without rows, each of this shape."""
        del chunk
        self._of_variables[variable.name] = {"dimensions": variable.dims} | variable.attributes
        if variable.data is not None:
            text = variable.dtype == "str"
            self._whole[variable.name] = variable.data.astype(str) if text else variable.data
        else:
            file = (self._spool / variable.name).open("x+b")
            self._growing[variable.name] = (file, variable.dtype, row)

    def append(self, parts: dict[str, NDArray[Any]]) -> None:
        """Add rows to the arrays that grow."""
        for name, rows in parts.items():
            file, dtype, _ = self._growing[name]
            file.write(np.ascontiguousarray(rows, dtype).data)

    def annotate(self, attributes: dict[str, Any]) -> None:
        """Set attributes of the file."""
        self._attributes |= attributes

    def close(self) -> None:
        """Put the file together; raises OSError if anything was not written."""
        about = {
            GLOBAL_ATTRIBUTES: np.array(json.dumps(self._attributes)),
            VARIABLE_ATTRIBUTES: np.array(json.dumps(self._of_variables)),
        }
        with zipfile.ZipFile(self._part, "x", self._method, compresslevel=self._level) as archive:
            for name, array in (self._whole | about).items():
                with archive.open(name + _SUFFIX, "w", force_zip64=True) as member:
                    npy_format.write_array(member, array, allow_pickle=False)
            for name in self._growing:
                with archive.open(name + _SUFFIX, "w", force_zip64=True) as member:
                    self._copy(name, member)

    def release(self) -> None:
        """Close the files beside it. Idempotent."""
        for file, _, _ in self._growing.values():
            with contextlib.suppress(OSError):
                file.close()

    @property
    def _method(self) -> int:
        return zipfile.ZIP_DEFLATED if self._compression else zipfile.ZIP_STORED

    @property
    def _level(self) -> int | None:
        return self._compression or None

    def _copy(self, name: str, member: IO[bytes]) -> None:
        file, dtype, row = self._growing[name]
        n_bytes = file.seek(0, io.SEEK_END)
        n_rows = n_bytes // (np.dtype(dtype).itemsize * int(np.prod(row)))
        write_header(member, dtype, (n_rows, *row))
        file.seek(0)
        shutil.copyfileobj(file, member, _COPY_BYTES)


class NpzShelf:
    """An NPZ file that is being read, each array from its begin to its end; see ``grid.Shelf``."""

    def __init__(self, path: Path) -> None:
        with _damage():
            self._archive = zipfile.ZipFile(path)
        self._open: dict[str, _Member] = {}

    @property
    def attributes(self) -> dict[str, Any]:
        """Of the file."""
        with _damage(), self._archive.open(GLOBAL_ATTRIBUTES + _SUFFIX) as member:
            text = npy_format.read_array(member, allow_pickle=False)
        attributes: dict[str, Any] = json.loads(str(text))
        return attributes

    def read(self, name: str, first: int, past: int) -> NDArray[Any]:
        """Give some rows of an array, fewer where it ends; KeyError if there is no such array."""
        member = self._open.get(name)
        with _damage():
            if member is None or member.position != first:
                if member is not None:
                    member.close()
                member = self._open[name] = _Member(self._archive.open(name + _SUFFIX))
                member.skip(first)
            return member.read(past - first)

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        for member in self._open.values():
            member.close()
        self._open.clear()
        self._archive.close()


class _Member:
    """An array in the archive, read row by row."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        shape, self._dtype = read_header(file)
        self._row = shape[1:]
        self._n_rows = shape[0]
        self._row_bytes = self._dtype.itemsize * int(np.prod(self._row))
        self.position = 0

    def skip(self, n_rows: int) -> None:
        """Go past rows; what is compressed must be read for it."""
        while self.position < n_rows:
            self.read(min(n_rows - self.position, max(1, _COPY_BYTES // self._row_bytes)))

    def read(self, n_rows: int) -> NDArray[Any]:
        """Give so many rows, fewer at the end; raises ValueError if the file ends before."""
        n = max(0, min(n_rows, self._n_rows - self.position))
        content = self._file.read(n * self._row_bytes)
        if len(content) != n * self._row_bytes:
            raise ValueError(f"ends {n * self._row_bytes - len(content)} bytes too early")
        self.position += n
        return np.frombuffer(content, self._dtype).reshape(n, *self._row)

    def close(self) -> None:
        self._file.close()


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    """Turn what archives and arrays say of damage into what a shelf may raise."""
    try:
        yield
    except (EOFError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(str(error)) from error


def write_header(file: IO[bytes], dtype: str, shape: tuple[int, ...]) -> None:
    """Write what stands before an array of this shape, C order, in the .npy format."""
    descr = npy_format.dtype_to_descr(np.dtype(dtype))
    about = {"descr": descr, "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(file, about)


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read shape and element type; raises ValueError of what is no array in C order."""
    version = npy_format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f".npy version {version}: must be (1, 0)")
    shape, fortran_order, dtype = npy_format.read_array_header_1_0(file)
    if fortran_order or not shape:
        raise ValueError("an array in Fortran order or without rows")
    return shape, dtype


def open_npz(path: Path) -> GridReader:
    """Open an NPZ file that ``NpzWriter`` made; see ``GridReader`` for errors."""
    return GridReader(path, NpzShelf)
