"""Index of one folder of recordings, that of one source: its segments and its pyramid."""

import math
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from spectrod.apps.web.history.budget import Budget, SpentError
from spectrod.apps.web.history.stored_rows import Beginning, last_row_utc_ns, opened, read_beginning
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import Description
from spectrod.formats.directory import Directory
from spectrod.formats.pyramid.metadata import CELL_VALUES_MAX, PyramidMetadata, load
from spectrod.formats.pyramid.metadata import NAME as PYRAMID_JSON
from spectrod.formats.segment.header import row_samples
from spectrod.formats.segment.segment_series import SUFFIX
from spectrod.lib.errors import SpectrodError, StorageError
from spectrod.lib.output_formats import PART_SUFFIX

FILES_MAX: Final = 20_000
"""Files of one folder that are indexed: the newest by the time of their last change."""
ENTRIES_MAX: Final = 100_000
"""Names that are looked at in one folder."""
SETTLED_S: Final = 2.0
"""Age from which the time of a change tells that there was none since: clocks of file systems tick
some hundred times a second [s]."""
FULL_SCAN_S: Final = 60.0
"""Time from one look at every file of an unchanged folder to the next [s]."""
INDEXED_BYTES: Final = 32 << 20
"""Bytes of one file that indexing reads at most."""
PYRAMID: Final = "pyramid"
"""Name of the folder of a source's pyramid."""

Place = tuple[Path, str, str]
"""Folder of recordings, name of the recording, name of the source."""
_Identity = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A segment.

    Attributes
    ----------
    place : (Path, str, str)
        Where its folder is.
    name : str
        Name of the file.
    description : Description
        Description of its rows.
    begin_utc_ns : int
        UTC of the first row's first sample [ns].
    end_utc_ns : int or None
        UTC of the end of the last row [ns]; None while the file grows, or if it is not known.
    """

    place: Place
    name: str
    description: Description
    begin_utc_ns: int
    end_utc_ns: int | None

    @property
    def is_part(self) -> bool:
        """Whether the file was unfinished when it was found."""
        return self.name.endswith(PART_SUFFIX)


@dataclass(frozen=True, slots=True)
class Pyramid:
    """A pyramid: the place and the name of its folder, its metadata and the spec of its rows."""

    place: Place
    name: str
    about: PyramidMetadata
    spec: SpectrumSpec


class SourceFolder:
    """What is known of the recordings of one source. Used under a lock.

    Parameters
    ----------
    place : Place
        Where they are.
    indexed_bytes : int
        Most bytes to read of a file for its times.
    only : str, optional
        Name of the segment that counts, finished or not; empty: all, and the pyramid.
    name : str, optional
        Name of the source; empty: that of the folder.

    Attributes
    ----------
    name : str
        Name of the source.
    files : list of StoredFile
        Segments with rows.
    pyramid : Pyramid or None
        The pyramid, if there is one that can be read.
    n_unread : int
        Files whose headers the last scan had no time to read.
    n_damaged : int
        Finished segments and pyramids that cannot be read.
    """

    def __init__(self, place: Place, indexed_bytes: int, *, only: str = "", name: str = "") -> None:
        self._place, self._indexed_bytes = place, indexed_bytes
        self.name = name or place[2]
        self._only = only and {only, only + PART_SUFFIX}
        self.files: list[StoredFile] = []
        self.pyramid: Pyramid | None = None
        self.n_unread = self.n_damaged = 0
        self._damaged: set[_Identity] = set()
        self._known: dict[_Identity, StoredFile | None] = {}
        self._pyramid_id: _Identity | None = None
        self._is_pyramid_damaged = False
        self._newest_description: Description | None = None
        self._segments: list[tuple[str, _Identity]] = []
        self._listed_s = -math.inf
        self._settled: tuple[int, int] | None = None

    @property
    def is_listed(self) -> bool:
        """Whether the names in the folder were read."""
        return self._listed_s > -math.inf

    def scan(self, folder: Directory, has_time: Callable[[], bool], now_s: float) -> None:
        """Read the headers of new files, the newest first, while there is time.

        The files themselves are looked at if the folder has changed since the last time, and each
        ``FULL_SCAN_S``; else growing ones alone.

        Parameters
        ----------
        folder : Directory
            The folder.
        has_time : callable
            Whether more files may be read.
        now_s : float
            Monotonic time [s].

        Raises
        ------
        OSError
            If the folder cannot be read.
        StorageError
            If the pyramid cannot be read; the segments are indexed all the same.
        """
        if not has_time():  # a later scan has: those of unchanged folders take little
            return
        self._list(folder, now_s)
        known: dict[_Identity, StoredFile | None] = {}
        unread = 0
        for name, identity in self._segments:
            growing = (name, identity[1], 0, 0)
            if growing in self._known:
                known[growing] = self._known[growing]
            elif identity in self._known:
                known[identity] = self._known[identity]
            elif has_time():
                file = self._read(folder, name, identity)
                # The header of a growing file is fixed; without rows it is read again.
                is_fixed = file is not None and file.is_part
                known[growing if is_fixed else identity] = file
            else:
                unread += 1
        self._known, self.n_unread = known, unread
        self._damaged &= known.keys()
        self.n_damaged = len(self._damaged)
        self.files = [file for file in known.values() if file is not None]
        try:
            self._scan_pyramid(folder)
        finally:
            self.n_damaged += self._is_pyramid_damaged

    def _list(self, folder: Directory, now_s: float) -> None:
        """Find the segments, or what has changed of those that were found."""
        status = os.fstat(folder.fileno())
        version = status.st_ino, status.st_mtime_ns
        if version == self._settled and now_s - self._listed_s < FULL_SCAN_S:
            self._segments = [_again(folder, *one) for one in self._segments]
            return
        is_settled = time.time_ns() - status.st_mtime_ns > SETTLED_S * NS_PER_S
        self._settled = version if is_settled else None
        found = _segments(folder)
        self._segments = [one for one in found if not self._only or one[0] in self._only]
        self._listed_s = now_s

    def _read(self, folder: Directory, name: str, identity: _Identity) -> StoredFile | None:
        """Read what a file's start and end say; None if it is no readable segment with rows."""
        path, budget = folder.path / name, Budget(n_bytes=self._indexed_bytes)
        try:
            with opened(folder.open_file(name), budget) as file:
                start = read_beginning(path, file)
                if start.first is None:
                    return None
                about = self._shared(start.header.description)
                end = None if name.endswith(PART_SUFFIX) else end_utc_ns(path, file, start)
                return StoredFile(self._place, name, about, start.first.t_utc_ns, end)
        except OSError:  # it has vanished, or is not for this user
            return None
        except (SpectrodError, SpentError):
            if not name.endswith(PART_SUFFIX):  # whose start may not be written yet
                self._damaged.add(identity)
            return None

    def _shared(self, about: Description) -> Description:
        """Return the same object for equal descriptions: thousands of files have few."""
        if self._newest_description != about:
            self._newest_description = about
        return self._newest_description or about

    def _scan_pyramid(self, folder: Directory) -> None:
        if self._only:
            return
        try:
            child = folder.child(PYRAMID)
        except OSError:
            self.pyramid, self._pyramid_id, self._is_pyramid_damaged = None, None, False
            return
        with child:
            found = child.find(PYRAMID_JSON)
            identity = _identity(PYRAMID_JSON, found) if found else None
            if identity != self._pyramid_id:
                self.pyramid = None
                self._pyramid_id, self._is_pyramid_damaged = identity, True
                self.pyramid = self._read_pyramid(child)
                self._is_pyramid_damaged = False

    def _read_pyramid(self, folder: Directory) -> Pyramid | None:
        about = load(folder)
        if about is None:
            return None
        n_values = len(about.signals) * about.n_values
        if n_values > CELL_VALUES_MAX:
            rule = f"must be at most {CELL_VALUES_MAX}"
            raise StorageError(f"{folder.path}: cells of {n_values} values: {rule}")
        return Pyramid(self._place, PYRAMID, about, about.spectrum_spec())


def end_utc_ns(path: Path, file: BinaryIO, start: Beginning) -> int | None:
    """Return the end of a segment's last row [ns]; None if finding it takes too much reading.

    Raises
    ------
    StorageError
        If a record is not one of rows.
    """
    spec = start.header.description.spec
    try:
        last = last_row_utc_ns(path, file, start)
    except SpentError:
        return None
    return last + round(row_samples(spec) / spec.fs * NS_PER_S)


def _segments(folder: Directory) -> list[tuple[str, _Identity]]:
    """Return the segments in a folder, the last changed first, without following links."""
    found = []
    with folder.scan() as entries:
        for entry, _ in zip(entries, range(ENTRIES_MAX), strict=False):
            if entry.name.endswith((SUFFIX, SUFFIX + PART_SUFFIX)):
                status = _status(entry)
                if status is not None and stat.S_ISREG(status.st_mode):
                    found.append((status.st_mtime_ns, _identity(entry.name, status)))
    found.sort(reverse=True)
    return [(identity[0], identity) for _, identity in found[:FILES_MAX]]


def _again(folder: Directory, name: str, identity: _Identity) -> tuple[str, _Identity]:
    """Return a segment as it is now, if it grows."""
    if not name.endswith(PART_SUFFIX):
        return name, identity
    status = folder.find(name)
    return name, identity if status is None else _identity(name, status)


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return the status of a name; None if it has vanished."""
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _identity(name: str, status: os.stat_result) -> _Identity:
    """Identify a version of a file."""
    return name, status.st_ino, status.st_mtime_ns, status.st_size
