"""HDF5 files of strangers: their structure is checked before libhdf5 reads an array.

A file that spectrod has written has arrays of numbers in the file itself, whole: no other file is
opened for them (external storage, virtual datasets, links), every chunk is stored, once, and has
passed no filters but ours.
"""

import math
import os
from array import array as numbers
from typing import Any

import h5py
import numpy as np

from spectrod.formats.export.confined.confined_messages import (
    RANK_MAX,
    TEXT_BYTES_MAX,
    ConfinedAnswer,
    Content,
    Question,
)

_FILTERS = {
    h5py.h5z.FILTER_DEFLATE: "deflate",
    h5py.h5z.FILTER_SHUFFLE: "shuffle",
    h5py.h5z.FILTER_FLETCHER32: "fletcher32",
}
"""What ``netcdf.filters`` names."""
_CHECKSUM_BYTES = 4
_COPIES = 2
"""Copies of a chunk that libhdf5 holds while it passes filters."""
UNIT = "spectrod_unit"
"""Attribute of an array with the unit of its values."""
_KINDS = "iufc"


class Hdf5File:
    """A file that is being read.

    Parameters
    ----------
    fd : int
        Its descriptor.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._size = os.fstat(fd).st_size
        self._file: Any = None
        self._arrays: dict[str, Any] = {}
        self._pieces: dict[str, int] = {}

    def needs_bytes(self, question: Question) -> int:
        """Return the memory of a question's chunks and rows [bytes]."""
        if question.what != "read" or question.name not in self._arrays:
            return 0
        array = self._arrays[question.name]
        row_bytes = array.dtype.itemsize * math.prod(array.shape[1:])
        n_rows = max(0, min(question.past, array.shape[0]) - question.first)
        return int(_COPIES * self._pieces[question.name] + n_rows * row_bytes)

    def answer(self, question: Question, content: bytes) -> tuple[ConfinedAnswer, Content]:
        """Answer a question; raises LookupError, MemoryError, OSError and others for damage."""
        del content
        match question.what:
            case "open":
                self._file = h5py.File(os.fdopen(self._fd, "rb", buffering=0), "r")
                return ConfinedAnswer(), None
            case "text":
                return ConfinedAnswer(text=_text(self._file.attrs, question.name)), None
            case "unit":
                attributes = self._array(question.name).attrs
                unit = _text(attributes, UNIT) if UNIT in attributes else ""
                return ConfinedAnswer(text=unit), None
            case "form":
                return self._form(question.name), None
            case "read":
                rows = np.ascontiguousarray(
                    self._array(question.name)[question.first : question.past]
                )
                return ConfinedAnswer(n_bytes=rows.nbytes), rows.reshape(-1).view(np.uint8).data
        raise ValueError(f"{question.what}: is not asked of HDF5")

    def _form(self, name: str) -> ConfinedAnswer:
        array = self._array(name)
        shape, dtype = array.shape, array.dtype
        if array.ndim == 4 and shape[3] == 2 and dtype == "<f4":
            shape, dtype = shape[:3], np.dtype("<c8")
        return ConfinedAnswer(shape=shape, dtype=dtype.str, piece_bytes=self._pieces[name])

    def _array(self, name: str) -> Any:
        if name not in self._arrays:
            array = _opened(self._file, name)
            row, chunk = math.prod(array.shape[1:]), math.prod(array.chunks or ())
            self._pieces[name] = array.dtype.itemsize * max(row, chunk)
            _check_storage(name, array, self._size)
            self._arrays[name] = array
        return self._arrays[name]


open_file = Hdf5File


def _text(attributes: Any, name: str) -> str:
    """Return an attribute that is a text; raises LookupError and ValueError."""
    if name not in attributes:
        raise LookupError(f"has no attribute {name}")
    text = attributes[name]
    if isinstance(text, bytes):
        text = text.decode()
    if not isinstance(text, str):
        raise TypeError(f"attribute {name}: must be a text")
    if len(text.encode("utf-8", "surrogatepass")) > TEXT_BYTES_MAX:
        raise ValueError(f"attribute {name}: must have at most {TEXT_BYTES_MAX} bytes")
    return text


def _opened(file: Any, name: str) -> Any:
    """Open an array of numbers that is in the file itself."""
    if not file.id.links.exists(name.encode()):
        raise LookupError(f"has no array {name}")
    if file.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
        raise ValueError(f"{name}: is a link: must be an array")
    array = file[name]
    if not isinstance(array, h5py.Dataset) or array.shape is None:
        raise ValueError(f"{name}: must be an array")
    if array.dtype.kind not in _KINDS or array.dtype.subdtype or not 1 <= array.ndim <= RANK_MAX:
        raise ValueError(f"{name}: an array of {array.dtype}: must be of numbers")
    if array.external or array.is_virtual:
        raise ValueError(f"{name}: is stored in other files: must be in this one")
    return array


def _check_storage(name: str, array: Any, file_bytes: int) -> None:
    """Raise ValueError unless all of an array is stored, once, and no more than it declares."""
    if array.chunks is None:
        n_bytes = array.dtype.itemsize * math.prod(array.shape)
        if array.id.get_storage_size() != n_bytes or n_bytes > file_bytes:
            raise ValueError(f"{name}: is not stored whole")
        return
    filters = array.id.get_create_plist()
    used = [filters.get_filter(number)[0] for number in range(filters.get_nfilters())]
    if not set(used) <= _FILTERS.keys() or len(set(used)) < len(used):
        known = ", ".join(_FILTERS.values())
        raise ValueError(f"{name}: has filters {used}: must be {known}, each once")
    n_chunks = math.prod(
        -(-length // chunk) for length, chunk in zip(array.shape, array.chunks, strict=True)
    )
    n_stored = array.id.get_num_chunks()
    if n_stored != n_chunks:
        raise ValueError(f"{name}: {n_stored} of {n_chunks} chunks are stored: must be all")
    if n_chunks:
        _check_chunks(name, array, file_bytes)


def _check_chunks(name: str, array: Any, file_bytes: int) -> None:
    """Raise ValueError if chunks overlap, or one is larger than its values can be."""
    n_bytes = array.dtype.itemsize * math.prod(array.chunks)
    stored_max = n_bytes + n_bytes // 1000 + 64 + _CHECKSUM_BYTES  # zlib's bound, and the checksum
    places, sizes = numbers("Q"), numbers("Q")

    def note(chunk: Any) -> None:
        places.append(chunk.byte_offset)
        sizes.append(chunk.size)

    array.id.chunk_iter(note)
    begins, lengths = np.frombuffer(places, np.uint64), np.frombuffer(sizes, np.uint64)
    if lengths.max() > stored_max:
        raise ValueError(f"{name}: a chunk of {lengths.max()} bytes: must be at most {stored_max}")
    if begins.max() > file_bytes:
        raise ValueError(f"{name}: its chunks begin beyond the file")
    order = np.argsort(begins)
    ends = (begins + lengths)[order]
    if (ends[:-1] > begins[order][1:]).any():
        raise ValueError(f"{name}: its chunks overlap")
