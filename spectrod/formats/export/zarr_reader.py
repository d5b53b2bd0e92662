"""Zarr stores, version 3, that spectrod has written: their metadata and chunks are read as files.

Metadata are JSON, which is checked here; chunks are decoded by another process. Nothing is read but
regular files below the store's folder, none of them through a link, each within a bound.
"""

import itertools
import math
import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Raw, Struct
from numpy.typing import NDArray

from spectrod.formats.directory import Directory
from spectrod.formats.export.confined.confined_messages import RANK_MAX, Question
from spectrod.formats.export.confined.confined_process import FileProcess
from spectrod.formats.export.grid import PIECE_BYTES_MAX, Form, GridReader
from spectrod.lib.json_text import decode_json
from spectrod.lib.optional_packages import need_elsewhere

METADATA = "zarr.json"
METADATA_BYTES_MAX = 1 << 24
"""Largest metadata of a recording, and of an array [bytes]."""
_TEXTS_BYTES_MAX = 1 << 24
"""Largest chunk of texts, decoded [bytes]."""
_KEPT_BYTES_MAX = 1 << 20
"""Largest chunk that is kept for the rows that follow [bytes]."""
_PACKED_MORE_BYTES = 20
"""What Blosc adds to a chunk at most, and the checksum [bytes]."""
_BLOSC_BYTES = struct.Struct("<4xI")
"""The decoded size, in Blosc's header."""
_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("int8", "int16", "int32", "int64"),
        *("uint8", "float32", "float64", "complex64"),
    )
}
_TEXTS = "string"
_FIRST_CODECS = {"bytes", "vlen-utf8"}
_REST_OF_CODECS = (["crc32c"], ["blosc", "crc32c"])

_Length = Annotated[int, Meta(ge=0, le=1 << 53)]
_ChunkLength = Annotated[int, Meta(ge=1, le=1 << 53)]
_Shape = Annotated[tuple[_Length, ...], Meta(min_length=1, max_length=RANK_MAX)]
_ChunkShape = Annotated[tuple[_ChunkLength, ...], Meta(min_length=1, max_length=RANK_MAX)]


class _Group(Struct):
    zarr_format: Literal[3]
    node_type: Literal["group"]
    attributes: dict[str, Raw]


class _ChunkForm(Struct):
    chunk_shape: _ChunkShape


class _Grid(Struct):
    name: Literal["regular"]
    configuration: _ChunkForm


class _Separator(Struct, frozen=True):
    separator: Literal["/"] = "/"


class _ZarrKeys(Struct):
    name: Literal["default"]
    configuration: _Separator = _Separator()


class _Codec(Struct):
    name: str
    configuration: dict[str, Any] = {}


class _Array(Struct):
    zarr_format: Literal[3]
    node_type: Literal["array"]
    shape: _Shape
    data_type: str
    chunk_grid: _Grid
    chunk_key_encoding: _ZarrKeys
    codecs: Annotated[tuple[_Codec, ...], Meta(min_length=1, max_length=8)]
    storage_transformers: Annotated[list[Any], Meta(max_length=0)] = []


@dataclass(frozen=True, slots=True)
class _StoredArray:
    """An array of a store; ``dtype`` is None for texts."""

    name: str
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    dtype: np.dtype[Any] | None
    is_compressed: bool

    @property
    def chunk_bytes(self) -> int:
        """Size of a chunk, decoded."""
        return math.prod(self.chunk) * (self.dtype.itemsize if self.dtype else 1)

    @property
    def grid(self) -> tuple[int, ...]:
        """Chunks along each axis."""
        return tuple(-(-n // of) for n, of in zip(self.shape, self.chunk, strict=True))


class ZarrArrays:
    """The arrays of a Zarr store that is being read.

    All methods raise OSError for a file that cannot be opened or is no regular one, and ValueError
    for what is missing, damaged, or not of spectrod.

    Parameters
    ----------
    path : Path
        The store's folder; a link is followed.

    Raises
    ------
    OSError
        If it cannot be opened.
    UnavailableError
        If what decodes chunks is not installed.
    """

    def __init__(self, path: Path) -> None:
        need_elsewhere("numcodecs", "zarr")
        need_elsewhere("google_crc32c", "zarr")
        self._process: FileProcess | None = None
        self._arrays: dict[str, _StoredArray] = {}
        self._kept: dict[str, tuple[tuple[int, ...], NDArray[Any]]] = {}
        self._folder = Directory.open(path)

    def form(self, name: str) -> Form:
        """Return shape and type of an array without its data."""
        array = self._array(name)
        dtype = _dtype_of(array)
        row_bytes = dtype.itemsize * math.prod(array.shape[1:])
        return Form(array.shape, dtype, max(array.chunk_bytes, row_bytes))

    def read(self, name: str, first: int, past: int) -> NDArray[Any]:
        """Return some rows of an array, fewer at its end."""
        array = self._array(name)
        past = min(past, array.shape[0])
        rows = np.empty((max(0, past - first), *array.shape[1:]), _dtype_of(array))
        row_chunks = range(first // array.chunk[0], -(-past // array.chunk[0]))
        for index in itertools.product(row_chunks, *map(range, array.grid[1:])):
            chunk = self.chunk(name, index)
            begin, *others = map(int.__mul__, index, array.chunk)
            low, high = max(first, begin), min(past, begin + array.chunk[0])
            there = tuple(
                slice(at, min(at + n, length))
                for at, n, length in zip(others, array.chunk[1:], array.shape[1:], strict=True)
            )
            here = tuple(slice(0, one.stop - one.start) for one in there)
            rows[(slice(low - first, high - first), *there)] = chunk[
                (slice(low - begin, high - begin), *here)
            ]
        return rows

    def chunk(self, name: str, index: tuple[int, ...]) -> NDArray[Any]:
        """Return a whole chunk of an array of numbers, of at most ``PIECE_BYTES_MAX``."""
        kept = self._kept.get(name)
        if kept is not None and kept[0] == index:
            return kept[1]
        array = self._array(name)
        dtype = _dtype_of(array)
        if array.chunk_bytes > PIECE_BYTES_MAX:
            rule = f"must be at most {PIECE_BYTES_MAX}"
            raise ValueError(f"{name}: chunks of {array.chunk_bytes} bytes: {rule}")
        content = self._chunk_file(array, index, array.chunk_bytes)
        decoded = self._decoded(array, content, array.chunk_bytes)
        chunk = np.frombuffer(decoded, dtype).reshape(array.chunk)
        if chunk.nbytes <= _KEPT_BYTES_MAX:
            self._kept[name] = index, chunk
        return chunk

    def texts(self, name: str, n_max: int) -> list[str]:
        """Return an array of at most so many texts, of one axis, and of 16 MiB."""
        array = self._array(name)
        if array.dtype is not None or len(array.shape) != 1 or array.shape[0] > n_max:
            raise ValueError(f"{name}: must be at most {n_max} texts of one axis")
        found: list[str] = []
        n_left = _TEXTS_BYTES_MAX
        for number in range(array.grid[0]):
            content = self._chunk_file(array, (number,), _TEXTS_BYTES_MAX)
            n_bytes = _text_bytes(array, content)
            n_left -= n_bytes
            if n_left < 0:
                raise ValueError(f"{name}: must have at most {_TEXTS_BYTES_MAX} bytes")
            found += _texts(self._decoded(array, content, n_bytes))
        return found[: array.shape[0]]

    def close(self) -> None:
        """Close the store. Idempotent."""
        self._folder.close()
        if self._process is not None:
            self._process.close()

    def _array(self, name: str) -> _StoredArray:
        if name not in self._arrays:
            content = self._file((*name.split("/"), METADATA), METADATA_BYTES_MAX)
            self._arrays[name] = _stored(name, decode_json(content, _Array))
        return self._arrays[name]

    def _n_files(self, array: _StoredArray, at_most: int) -> int:
        """Count the chunks that are stored: there are fewer files than a grid may claim."""
        with ExitStack() as stack:
            try:
                folder = self._child(stack, (*array.name.split("/"), "c"))
            except FileNotFoundError:
                return 0
            return sum(1 for _ in itertools.islice(_files(folder, array.grid), at_most))

    def _chunk_file(self, array: _StoredArray, index: tuple[int, ...], n_bytes: int) -> bytes:
        names = (*array.name.split("/"), "c", *map(str, index))
        return self._file(names, n_bytes + _PACKED_MORE_BYTES)

    def _decoded(self, array: _StoredArray, content: bytes, n_bytes: int) -> bytes:
        if self._process is None:
            self._process = FileProcess("blosc")
        codec = "blosc" if array.is_compressed else ""
        try:
            self._process.ask(Question("decode", codec, len(content), n_bytes), content)
            return self._process.array(n_bytes)
        except ValueError as error:
            raise ValueError(f"{array.name}: {error}") from error

    def _file(self, names: tuple[str, ...], bytes_max: int) -> bytes:
        """Read a file below the folder."""
        with ExitStack() as stack:
            folder = self._child(stack, names[:-1])
            with os.fdopen(folder.open_file(names[-1]), "rb") as file:
                n_bytes = os.fstat(file.fileno()).st_size
                if n_bytes > bytes_max:
                    rule = f"must have at most {bytes_max}"
                    raise ValueError(f"{'/'.join(names)}: has {n_bytes} bytes: {rule}")
                return file.read(n_bytes)

    def _child(self, stack: ExitStack, names: tuple[str, ...]) -> Directory:
        folder = self._folder
        for name in names:
            folder = stack.enter_context(folder.child(name))
        return folder


class ZarrShelf(ZarrArrays):
    """A Zarr store that is a recording; see ``ZarrArrays`` and ``grid.Shelf``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            content = self._file((METADATA,), METADATA_BYTES_MAX)
            self._attributes = decode_json(content, _Group).attributes
        except BaseException:
            self.close()
            raise

    def form(self, name: str) -> Form:
        """Return shape and type of an array; ValueError if one of its chunks is missing."""
        form = super().form(name)
        array = self._array(name)
        n_chunks = math.prod(array.grid)
        n_lost = n_chunks - self._n_files(array, n_chunks)
        if n_lost:
            raise ValueError(f"{name}: {n_lost} of {n_chunks} chunks are missing")
        return form

    def text(self, name: str) -> str:
        """Return an attribute of the store."""
        if name not in self._attributes:
            raise ValueError(f"has no attribute {name}")
        return decode_json(bytes(self._attributes[name]), str)


def open_zarr(path: Path) -> GridReader:
    """Open a Zarr store that ``ZarrWriter`` made; see ``GridReader`` for errors."""
    return GridReader(path, ZarrShelf)


def _stored(name: str, about: _Array) -> _StoredArray:
    """Check the encoding of an array: nothing but what ``zarr.codecs_of`` names."""
    first, *rest = (codec.name for codec in about.codecs)
    if first not in _FIRST_CODECS or rest not in _REST_OF_CODECS:
        raise ValueError(f"{name}: codecs {[first, *rest]}: must be those of spectrod")
    is_of_texts = about.data_type == _TEXTS
    if is_of_texts != (first == "vlen-utf8") or (
        about.codecs[0].configuration.get("endian", "little") != "little"
    ):
        raise ValueError(f"{name}: {about.data_type} by {first}: must be little-endian")
    if not is_of_texts and about.data_type not in _DTYPES:
        raise ValueError(f"{name}: an array of {about.data_type}: must be of numbers")
    chunk = about.chunk_grid.configuration.chunk_shape
    if len(chunk) != len(about.shape):
        raise ValueError(f"{name}: chunks of {chunk}: must have {len(about.shape)} axes")
    dtype = None if is_of_texts else _DTYPES[about.data_type]
    return _StoredArray(name, about.shape, chunk, dtype, "blosc" in rest)


def _dtype_of(array: _StoredArray) -> np.dtype[Any]:
    if array.dtype is None:
        raise ValueError(f"{array.name}: an array of texts: must be of numbers")
    return array.dtype


def _files(folder: Directory, grid: tuple[int, ...]) -> Iterator[str]:
    """Yield the names of files of chunks."""
    with folder.scan() as entries:
        for entry in entries:
            if not entry.name.isdecimal() or not int(entry.name[:20]) < grid[0]:
                continue
            if len(grid) == 1:
                yield entry.name
            elif entry.is_dir(follow_symlinks=False):
                with folder.child(entry.name) as inside:
                    yield from _files(inside, grid[1:])


def _text_bytes(array: _StoredArray, content: bytes) -> int:
    """Return the decoded size of a chunk of texts."""
    if not array.is_compressed:
        return max(0, len(content) - 4)
    try:
        (n_bytes,) = _BLOSC_BYTES.unpack_from(content)
    except struct.error as error:
        raise ValueError(f"{array.name}: a chunk of {len(content)} bytes") from error
    return int(n_bytes)


def _texts(content: bytes) -> Iterator[str]:
    """Decode texts: their number, then each with its length before it, as numcodecs' VLenUTF8."""
    lengths = struct.Struct("<I")
    try:
        (n_texts,) = lengths.unpack_from(content)
        at = lengths.size
        for _ in range(n_texts):
            (length,) = lengths.unpack_from(content, at)
            at += lengths.size + length
            if at > len(content):
                raise ValueError("a text ends beyond its chunk")
            yield content[at - length : at].decode()
    except struct.error as error:
        raise ValueError("texts end too early") from error
