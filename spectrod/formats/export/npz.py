"""NPZ files: the arrays of ``layout``, which ``numpy.load`` reads."""

import contextlib
import io
import json
import math
import operator
import shutil
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from spectrod.formats.export.grid import Form, GridReader, GridWriter
from spectrod.formats.export.layout import Variable

_COPY_BYTES = 1 << 20
_SUFFIX = ".npy"
GLOBAL_ATTRIBUTES = "attributes"
VARIABLE_ATTRIBUTES = "variable_attributes"
_TEXT_BYTES_MAX = 1 << 23
"""Limit of attributes, 2 million characters: 4096 channel names take a quarter of that."""


class NpzWriter(GridWriter):
    """Writes a recording to an NPZ file; see ``ExportWriter`` for parameters and errors.

    An array's length is stored before its data, so arrays grow in files of their own beside the
    final one, which are joined at the end: the disk briefly holds the recording twice.
    """

    def _open_store(self, part: Path) -> "NpzStore":
        spool = part.with_suffix(".spool")
        spool.mkdir()
        self._stack.callback(shutil.rmtree, spool, ignore_errors=True)
        store = NpzStore(part, spool, self.options.compression)
        self._stack.callback(store.release)
        return store


class NpzStore:
    """An NPZ file that is being written; see ``grid.ArrayFile``.

    Parameters
    ----------
    part : Path
        Path of the file, which ``close`` makes.
    spool : Path
        An empty folder for the growing arrays.
    compression : int
        Deflate level, 0 for none.
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
        """Add an array: complete, or empty with this shape of rows."""
        del chunk
        self._of_variables[variable.name] = {"dimensions": variable.dims} | variable.json_attributes
        if variable.data is not None:
            text = variable.dtype == "str"
            self._whole[variable.name] = variable.data.astype(str) if text else variable.data
        else:
            file = (self._spool / variable.name).open("x+b")
            self._growing[variable.name] = (file, variable.dtype, row)

    def append(self, parts: dict[str, NDArray[Any]]) -> None:
        """Append rows to growing arrays."""
        for name, rows in parts.items():
            file, dtype, _ = self._growing[name]
            file.write(np.ascontiguousarray(rows, dtype).data)

    def annotate(self, attributes: dict[str, Any]) -> None:
        """Set attributes of the file."""
        self._attributes |= attributes

    def close(self) -> None:
        """Join the file; raises OSError if a write failed."""
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
        """Close the spooled files. Idempotent."""
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
    """An NPZ file that is being read, each array sequentially; see ``grid.Shelf``."""

    def __init__(self, path: Path) -> None:
        with damage_as_value_error():
            self._archive = zipfile.ZipFile(path)
        self._open: dict[str, _Member] = {}

    def text(self, name: str) -> str:
        """Return an attribute of the file."""
        if name not in self._attributes:
            raise ValueError(f"has no attribute {name}")
        return str(self._attributes[name])

    @cached_property
    def _attributes(self) -> dict[str, Any]:
        with damage_as_value_error(), self._archive.open(GLOBAL_ATTRIBUTES + _SUFFIX) as member:
            attributes = json.loads(read_text(member))
        if not isinstance(attributes, dict):
            raise TypeError(f"{GLOBAL_ATTRIBUTES}: must be an object")
        return attributes

    def form(self, name: str) -> Form:
        """Return shape and type of an array without its data."""
        return self._member(name, 0).form

    def read(self, name: str, first: int, past: int) -> NDArray[Any]:
        """Return some rows of an array, fewer at its end; KeyError if there is no such array."""
        with damage_as_value_error():
            return self._member(name, first).read(past - first)

    def close(self) -> None:
        """Close the file. Idempotent."""
        for member in self._open.values():
            member.close()
        self._open.clear()
        self._archive.close()

    def _member(self, name: str, first: int) -> "_Member":
        """Return an array positioned at a row; open it, or continue reading it."""
        member = self._open.get(name)
        with damage_as_value_error():
            if member is None or member.position != first:
                if member is not None:
                    member.close()
                member = self._open[name] = _open_member(self._archive, name + _SUFFIX)
                member.skip(first)
        return member


class _Member:
    """An array in the archive, read row by row."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        shape, self._dtype = read_header(file)
        self._row = shape[1:]
        self._n_rows = shape[0]
        self._row_bytes = self._dtype.itemsize * math.prod(self._row)
        self.form = Form(shape, self._dtype, self._row_bytes)
        self.position = 0

    def skip(self, n_rows: int) -> None:
        """Skip rows; compressed data must be read for that."""
        while self.position < n_rows:
            self.read(min(n_rows - self.position, max(1, _COPY_BYTES // self._row_bytes)))

    def read(self, n_rows: int) -> NDArray[Any]:
        """Return this many rows, fewer at the end; raises ValueError if the file ends early."""
        n = max(0, min(n_rows, self._n_rows - self.position))
        content = self._file.read(n * self._row_bytes)
        if len(content) != n * self._row_bytes:
            raise ValueError(f"ends {n * self._row_bytes - len(content)} bytes too early")
        self.position += n
        return np.frombuffer(content, self._dtype).reshape(n, *self._row)

    def close(self) -> None:
        self._file.close()


def _open_member(archive: zipfile.ZipFile, name: str) -> _Member:
    file = archive.open(name)
    try:
        return _Member(file)
    except BaseException:
        file.close()  # while it is open, so is the archive
        raise


_OF_DAMAGE = (
    *(EOFError, NotImplementedError, OverflowError, struct.error, SyntaxError),
    *(tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


@contextlib.contextmanager
def damage_as_value_error() -> Iterator[None]:
    """Convert all errors of damaged archives and arrays to ValueError, as ``Shelf`` requires."""
    try:
        yield
    except _OF_DAMAGE as error:
        raise ValueError(str(error)) from error


def write_header(file: IO[bytes], dtype: str, shape: tuple[int, ...]) -> None:
    """Write the .npy header of an array of this shape, in C order."""
    descr = npy_format.dtype_to_descr(np.dtype(dtype))
    about = {"descr": descr, "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(file, about)


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read shape and element type; raises ValueError unless it is an array in C order."""
    shape, dtype = _header(file)
    if not shape:
        raise ValueError("an array without rows")
    return shape, dtype


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy_format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f".npy version {version}: must be (1, 0)")
    shape, fortran_order, dtype = npy_format.read_array_header_1_0(file)
    if fortran_order or min(shape, default=0) < 0:
        raise ValueError("an array in Fortran order or of negative length")
    if dtype.hasobject or (dtype.itemsize == 0 and shape):
        raise ValueError(f"an array of {dtype}: must be of numbers or of a text")
    return shape, dtype


def read_text(file: IO[bytes]) -> str:
    """Read an array that is one string; raises ValueError if it is not, or is too long."""
    shape, dtype = _header(file)
    if shape or dtype.kind != "U" or not 0 < dtype.itemsize <= _TEXT_BYTES_MAX:
        rule = f"must be one text of at most {_TEXT_BYTES_MAX} bytes"
        raise ValueError(f"an array of shape {shape}, {dtype}: {rule}")
    content = file.read(dtype.itemsize)
    if len(content) != dtype.itemsize:
        raise ValueError(f"ends {dtype.itemsize - len(content)} bytes too early")
    # NumPy accepts invalid code points, and Python fails later at such a string.
    coding = "utf-32-be" if dtype.str.startswith(">") else "utf-32-le"
    return content.decode(coding).rstrip("\0")


def read_array(file: IO[bytes], lengths: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Read an array whose axes have at most these lengths; raises ValueError otherwise."""
    shape, found = _header(file)
    is_within = len(shape) == len(lengths) and all(map(operator.le, shape, lengths))
    if found != dtype or not is_within:
        raise ValueError(f"an array of shape {shape}, {found}: must be {lengths}, {dtype}")
    n_bytes = dtype.itemsize * math.prod(shape)
    content = file.read(n_bytes)
    if len(content) != n_bytes:
        raise ValueError(f"ends {n_bytes - len(content)} bytes too early")
    return np.frombuffer(content, dtype).reshape(shape)


def open_npz(path: Path) -> GridReader:
    """Open an NPZ file that ``NpzWriter`` made; see ``GridReader`` for errors."""
    return GridReader(path, NpzShelf)
