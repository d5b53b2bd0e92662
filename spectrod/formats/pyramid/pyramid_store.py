"""A pyramid's folder: a file for each period of each level, a cell always at the same offset.

``pyramid.json`` has the metadata. A level's folder has files named by the day on which they begin,
``1s/20260501.cells``: a header of 64 bytes, then space for every cell of the period, in order.
Missing cells are holes, which take no space on file systems that support them.
"""

import contextlib
import datetime as dt
import errno
import logging
import os
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.formats.directory import Directory
from spectrod.formats.pyramid.cell import Cell, encode, is_whole, slot_dtype, to_power
from spectrod.formats.pyramid.ladder import file_cells, name_of
from spectrod.formats.pyramid.metadata import PyramidMetadata
from spectrod.lib.errors import StorageError, storage_error, storage_errors

_log = logging.getLogger(__name__)

SUFFIX = ".cells"
_HEAD = struct.Struct("<8sqqIHI")
_HEAD_BYTES = 64
_FILE = re.compile(r"[0-9]{8}" + re.escape(SUFFIX))
_MAGIC = b"SPDCELL\x01"
_CELLS_AT_ONCE = 512
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class CellStore:
    """Cells in files. System errors are raised as StorageErrors with the file; not thread-safe.

    Parameters
    ----------
    folder : Directory
        Folder of the pyramid; closed with the store.
    about : PyramidMetadata
        Metadata of the cells.
    is_writer : bool
        Whether missing files are created.
    """

    def __init__(self, folder: Directory, about: PyramidMetadata, *, is_writer: bool) -> None:
        self.folder, self.about = folder, about
        self.dtype = slot_dtype(len(about.signals), about.n_values)
        self._is_writer = is_writer
        # One file per level is open at a time: its number and its descriptor.
        self._open: dict[int, tuple[int, int]] = {}

    def put(self, level: int, index: int, cell: Cell) -> None:
        """Write a cell; replace an existing one."""
        self.put_encoded(level, index, encode(cell, self.dtype))

    def put_encoded(self, level: int, index: int, cells: bytes | memoryview) -> None:
        """Write encoded cells that follow each other, all in one file; replace existing ones."""
        number, place = divmod(index, file_cells(self.about.cells_ns[level]))
        with storage_errors(self._path(level, number)):
            fd = self._file(level, number)
            assert fd is not None
            data, offset = memoryview(cells), self._offset(place)
            while data:
                n = os.pwrite(fd, data, offset)
                data, offset = data[n:], offset + n

    def get(self, level: int, index: int) -> Cell | None:
        """Read a cell; None if it is missing or incomplete."""
        for _, slots in self.read(level, index, index + 1):
            if slots[0]["mark"]:
                slot = slots[0]
                return Cell(int(slot["effort_ns"]), to_power(slot["codes"]))
        return None

    def read(self, level: int, start: int, stop: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Read cells from one index until before another.

        Yields
        ------
        first : int
            Index of the first of these cells.
        slots : (n,) structured
            At most 512 consecutive cells; "mark" is 0 for missing ones. Cells without a file, or
            after its end, are left out.
        """
        n_file = file_cells(self.about.cells_ns[level])
        while start < stop:
            number, place = divmod(start, n_file)
            n = min(stop - start, n_file - place, _CELLS_AT_ONCE)
            with storage_errors(self._path(level, number)):
                fd = self._file(level, number)
                data = b"" if fd is None else self._read(fd, place, n)
            if data:
                yield start, self._slots(data)
                start += n
            else:  # no more cells in this file
                start += n_file - place

    def last(self, level: int) -> int | None:
        """Return the index of the last written cell; None if there is none."""
        n_file = file_cells(self.about.cells_ns[level])
        for name in reversed(self._files(level)):
            number = self._number(level, name)
            with storage_errors(self._path(level, number)):
                n_there = (self._stat(level, name).st_size - _HEAD_BYTES) // self.dtype.itemsize
            for end in range(min(n_there, n_file), 0, -_CELLS_AT_ONCE):
                first = number * n_file + max(0, end - _CELLS_AT_ONCE)
                for start, slots in self.read(level, first, number * n_file + end):
                    found = np.flatnonzero(slots["mark"])
                    if found.size:
                        return start + int(found[-1])
        return None

    def first(self, level: int) -> int | None:
        """Return the index of the first written cell; None if there is none."""
        n_file = file_cells(self.about.cells_ns[level])
        for name in self._files(level):
            number, place = self._number(level, name), 0
            while place < n_file:
                first = number * n_file + place
                end = min(first + _CELLS_AT_ONCE, (number + 1) * n_file)
                for start, slots in self.read(level, first, end):
                    found = np.flatnonzero(slots["mark"])
                    if found.size:
                        return start + int(found[0])
                place = max(end - number * n_file, self._after_hole(level, number, end))
        return None

    def _after_hole(self, level: int, number: int, index: int) -> int:
        """Return the place of the first cell, from an index on, of which a file has data.

        It is the end of the file's period if there is none.
        """
        n_file = file_cells(self.about.cells_ns[level])
        with storage_errors(self._path(level, number)):
            fd = self._file(level, number)
            if fd is None:
                return n_file
            try:
                offset = os.lseek(fd, self._offset(index - number * n_file), os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                return n_file
        return (offset - _HEAD_BYTES) // self.dtype.itemsize

    def _files(self, level: int) -> list[str]:
        """Return the names of a level's files, oldest first."""
        try:
            with self._level(level) as folder, folder.scan() as entries:
                return sorted(one.name for one in entries if _FILE.fullmatch(one.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            name = name_of(self.about.cells_ns[level])
            raise storage_error(self.folder.path / name, error) from error

    def _level(self, level: int) -> Directory:
        return self.folder.child(name_of(self.about.cells_ns[level]))

    def _stat(self, level: int, name: str) -> os.stat_result:
        with self._level(level) as folder:
            found = folder.find(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return found

    def oldest_utc_ns(self, level: int) -> int | None:
        """Return the begin of a level's oldest file; None if there is no file."""
        for name in self._files(level):
            return self._number(level, name) * self._span_ns(level)
        return None

    def end_utc_ns(self, level: int) -> int | None:
        """Return the end of the last space for a cell in a level's files; None without files.

        No cell is later; holes may stand before it. Only the length of a file is read.
        """
        n_file = file_cells(self.about.cells_ns[level])
        for name in reversed(self._files(level)):
            number = self._number(level, name)
            with storage_errors(self._path(level, number)):
                n_there = (self._stat(level, name).st_size - _HEAD_BYTES) // self.dtype.itemsize
            if n_there > 0:
                return (number * n_file + min(n_there, n_file)) * self.about.cells_ns[level]
        return None

    def size_bytes(self) -> int:
        """Return the space that all files take on the disk, without holes."""
        levels = range(len(self.about.cells_ns))
        with contextlib.suppress(FileNotFoundError):
            blocks = (self._stat(n, name).st_blocks for n in levels for name in self._files(n))
            return sum(blocks) * 512
        return 0  # the files are being removed

    def expire(self, level: int, before_utc_ns: int) -> int:
        """Remove files of a level whose cells all end before a time; return the bytes freed.

        Only files with the header of this pyramid are removed.
        """
        freed, span_ns = 0, self._span_ns(level)
        for name in self._files(level):
            number = self._number(level, name)
            if (number + 1) * span_ns > before_utc_ns:
                break
            if level in self._open and self._open[level][0] == number:
                self._close(level)
            with storage_errors(self._path(level, number)), self._level(level) as folder:
                freed += self._remove(folder, name, self._head(level, number))
        return freed

    def _remove(self, folder: Directory, name: str, head: bytes) -> int:
        fd = folder.open_file(name)
        try:
            is_own, n_bytes = os.pread(fd, _HEAD_BYTES, 0) == head, os.fstat(fd).st_blocks * 512
        finally:
            os.close(fd)
        if not is_own:
            return 0
        folder.remove(name)
        return n_bytes

    def sync(self) -> None:
        """Synchronise written cells to the disk."""
        for level, (number, fd) in self._open.items():
            with storage_errors(self._path(level, number)):
                os.fdatasync(fd)

    def close(self) -> None:
        """Close all files and the folder. Idempotent."""
        for level in list(self._open):
            self._close(level)
        self.folder.close()

    # ---- files

    def _slots(self, data: bytes) -> NDArray[Any]:
        size = self.dtype.itemsize
        slots = np.frombuffer(data, self.dtype).copy()
        view = memoryview(data)
        for n in np.flatnonzero(slots["mark"]):
            if not is_whole(view[n * size : (n + 1) * size]):
                slots[n]["mark"] = 0
        return slots

    def _read(self, fd: int, place: int, n: int) -> bytes:
        size = self.dtype.itemsize
        data = os.pread(fd, n * size, self._offset(place))
        # A cell that is being appended now is not complete yet.
        whole = data[: len(data) // size * size]
        return whole + bytes(n * size - len(whole)) if whole else b""

    def _offset(self, place: int) -> int:
        return _HEAD_BYTES + place * self.dtype.itemsize

    def _span_ns(self, level: int) -> int:
        cell_ns = self.about.cells_ns[level]
        return cell_ns * file_cells(cell_ns)

    def _path(self, level: int, number: int) -> Path:
        name = name_of(self.about.cells_ns[level])
        return self.folder.path / name / self._name(level, number)

    def _name(self, level: int, number: int) -> str:
        day = _EPOCH + dt.timedelta(seconds=number * self._span_ns(level) // 10**9)
        return f"{day:%Y%m%d}{SUFFIX}"

    def _number(self, level: int, name: str) -> int:
        try:
            day = dt.datetime.strptime(name, f"%Y%m%d{SUFFIX}").replace(tzinfo=dt.UTC)
        except ValueError:
            path = self.folder.path / name_of(self.about.cells_ns[level]) / name
            raise StorageError(f"{path}: not a file of a pyramid") from None
        return (day - _EPOCH) // dt.timedelta(seconds=1) * 10**9 // self._span_ns(level)

    def _file(self, level: int, number: int) -> int | None:
        """Open the file of a period; None if a reader finds none."""
        if level in self._open:
            if self._open[level][0] == number:
                return self._open[level][1]
            self._close(level)
        name, head = self._name(level, number), self._head(level, number)
        try:
            with self._level(level) as folder:
                fd = folder.open_file(name, os.O_RDWR if self._is_writer else os.O_RDONLY)
        except FileNotFoundError:
            if not self._is_writer:
                return None
            fd = self._make(level, name, head)
        if os.pread(fd, _HEAD_BYTES, 0) != head:
            os.close(fd)
            path = self._path(level, number)
            error = f"{path}: damaged, or not of this pyramid"
            if not self._is_writer:
                raise StorageError(error)
            with self._level(level) as folder:
                set_aside = folder.set_aside(name)
            _log.warning("%s; renamed to %s, its cells are missing", error, set_aside)
            fd = self._make(level, name, head)
        self._open[level] = number, fd
        return fd

    def _make(self, level: int, name: str, head: bytes) -> int:
        """Create a file; it appears with its header or not at all."""
        part = name.removesuffix(SUFFIX) + ".new"
        with self.folder.make_child(name_of(self.about.cells_ns[level])) as folder:
            with contextlib.suppress(FileNotFoundError):  # left by a killed program
                folder.remove(part)
            fd = folder.create(part)
            try:
                os.pwrite(fd, head, 0)
                os.fsync(fd)
                folder.rename_noreplace(part, name)
                folder.synchronise()
            except BaseException:
                os.close(fd)
                raise
        return fd

    def _head(self, level: int, number: int) -> bytes:
        cell_ns = self.about.cells_ns[level]
        fields = _HEAD.pack(
            _MAGIC,
            cell_ns,
            number * file_cells(cell_ns),
            self.dtype.itemsize,
            len(self.about.signals),
            self.about.n_values,
        )
        fields = fields.ljust(_HEAD_BYTES - 4, b"\0")
        return fields + zlib.crc32(fields).to_bytes(4, "little")

    def _close(self, level: int) -> None:
        _, fd = self._open.pop(level)
        if self._is_writer:
            with contextlib.suppress(OSError):
                os.fdatasync(fd)
        os.close(fd)
