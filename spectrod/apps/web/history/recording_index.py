"""Index of recordings on the disk, read-only: segments and pyramids below some folders.

The daemon's recorder writes ``FOLDER/NAME/SOURCE/*.spd``, ``*.spd.part`` and ``pyramid/``
(docs/recorder.md). Everything below FOLDER is hostile until bounded: links are not followed, other
kinds of files are ignored, numbers of names are limited, and a file that cannot be read, or that
vanishes, is left out.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from spectrod.apps.web.history.budget import SpentError
from spectrod.apps.web.history.source_folder import (
    INDEXED_BYTES,
    Place,
    Pyramid,
    SourceFolder,
    StoredFile,
)
from spectrod.formats.directory import Directory
from spectrod.formats.pyramid import PyramidReader
from spectrod.lib.errors import SpectrodError
from spectrod.lib.output_formats import PART_SUFFIX
from spectrod.lib.text import printable

_log = logging.getLogger(__name__)

RESCAN_S: Final = 3.0
"""Shortest time from one scan of the folders to the next [s]."""
SCAN_S: Final = 0.5
"""Time that one scan may take; the rest follows in the next one [s]."""
SOURCES_MAX: Final = 1024
"""Folders of a source that are looked at, over all recordings."""
TOLD_MAX: Final = 256
"""Texts of requests that are remembered so that they are logged once."""
NAMES_MAX: Final = 4096
"""Names that are looked at in one folder above those of sources."""


class StoredRecordings(Protocol):
    """Finds the recordings of endpoints."""

    def of(self, endpoint: str) -> "RecordingIndex":
        """Return the index of the recordings of an endpoint's topics."""


class RecordingIndex:
    """Finds the recordings of a topic. Thread-safe.

    Parameters
    ----------
    folders : sequence of Path
        Folders with recordings, each as the daemon's ``recordings`` in its state folder; they may
        be missing, and appear later. Links that lead to these folders are followed.
    clock : callable
        Monotonic seconds.
    indexed_bytes : int
        Most bytes to read of a file for its times.

    Attributes
    ----------
    folders : tuple of Path
    is_of_daemons : bool
        Whether only a daemon's topics, whose recordings they are, say which are shown.
    """

    is_of_daemons = True

    def __init__(
        self,
        folders: Sequence[Path],
        clock: Callable[[], float] = time.monotonic,
        *,
        indexed_bytes: int = INDEXED_BYTES,
    ) -> None:
        self._indexed_bytes = indexed_bytes
        self.folders = tuple(folders)
        self._clock = clock
        self._lock = threading.Lock()
        self._sources: dict[Place, SourceFolder] = {}
        self._scanned_s = -float("inf")
        self._troubles: list[str] = []
        self._n_denied = 0
        self._logged: set[str] = set()
        self._told: set[str] = set()

    def of(self, _endpoint: str) -> "RecordingIndex":
        """Return the index of the recordings of an endpoint's topics: this one for all daemons."""
        return self

    def refresh(self) -> None:
        """Scan the folders, unless that was done in the last seconds.

        What cannot be read, or is too much, is logged once for as long as that lasts.
        """
        with self._lock:
            if self._clock() - self._scanned_s < RESCAN_S:
                return
            self._scan()
            self._scanned_s = self._clock()
            for trouble in self._troubles:
                if trouble not in self._logged:
                    _log.warning("%s", trouble)
            self._logged = set(self._troubles)

    def log_once(self, text: str) -> None:
        """Log what a request could not read; the same again only after many others."""
        with self._lock:
            if text in self._told:
                return
            if len(self._told) >= TOLD_MAX:
                self._told.clear()
            self._told.add(text)
        _log.warning("%s", text)

    def left_out(self, source: str) -> list[str]:
        """Return what is not known of a source's recordings yet, for a person."""
        with self._lock:
            left = sum(one.n_unread for one in self._of(source))
            n_folders = sum(not one.is_listed for one in self._of(source))
            n_denied = self._n_denied
        texts = [f"{left} files of recordings are not indexed yet"] if left else []
        if n_folders:
            texts.append(f"{n_folders} folders of recordings are not indexed yet")
        if n_denied:  # without their names, which only the log has
            texts.append(
                f"recordings: {n_denied} of {len(self.folders)} folders cannot be read by this "
                "server's user; its log names them"
            )
        return texts

    def damaged(self, source: str) -> list[str]:
        """Return what of a source's recordings cannot be read at all, for a person."""
        with self._lock:
            n_damaged = sum(one.n_damaged for one in self._of(source))
        return [_damaged_text(n_damaged)] if n_damaged else []

    def files(self, source: str) -> list[StoredFile]:
        """Return the known segments of a source, the newest first."""
        with self._lock:
            found = [file for one in self._of(source) for file in one.files]
        return sorted(found, key=lambda file: file.begin_utc_ns, reverse=True)

    def pyramids(self, source: str) -> list[Pyramid]:
        """Return the known pyramids of a source."""
        with self._lock:
            return [one.pyramid for one in self._of(source) if one.pyramid is not None]

    def open_file(self, file: StoredFile) -> int:
        """Open a segment and return its descriptor, also one that was finished meanwhile.

        Raises
        ------
        OSError
            If it has vanished, or a link took its place.
        """
        root, name, source = file.place
        with Directory.open(root) as top, top.child(name) as middle, middle.child(source) as folder:
            try:
                return folder.open_file(file.name)
            except FileNotFoundError:
                if not file.is_part:
                    raise
                return folder.open_file(file.name.removesuffix(PART_SUFFIX))

    def open_pyramid(self, pyramid: Pyramid) -> PyramidReader:
        """Open a pyramid; raises OSError or a SpectrodError if it is there no more."""
        root, name, source = pyramid.place
        with Directory.open(root) as top, top.child(name) as middle, middle.child(source) as folder:
            return PyramidReader(folder.child(pyramid.name))

    def _of(self, source: str) -> Iterator[SourceFolder]:
        return (one for one in self._sources.values() if one.name == source)

    def _scan(self) -> None:
        """Look for folders of sources, and read what is new in them, until the time is over."""
        end_s = self._clock() + SCAN_S
        self._troubles, self._n_denied = [], 0
        found: dict[Place, SourceFolder] = {}
        for root in self.folders:
            try:
                with Directory.open(root) as top:
                    self._scan_root(root, top, found, end_s)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._n_denied += isinstance(error, PermissionError)
                self._troubles.append(f"{printable(root)}: {error.strerror or error}")
        self._sources = found

    def _scan_root(
        self, root: Path, top: Directory, found: dict[Place, SourceFolder], end_s: float
    ) -> None:
        for place, folder in self._places(root, top):
            with folder:
                if len(found) >= SOURCES_MAX:
                    rule = f"more than {SOURCES_MAX} folders of sources: the rest is left"
                    self._troubles.append(f"{printable(root)}: {rule}")
                    return
                one = self._sources.get(place) or self._source_folder(place)
                found[place] = one
                self._scan_source(one, folder, end_s)

    def _places(self, root: Path, top: Directory) -> Iterator[tuple[Place, Directory]]:
        """Yield the folders of sources below a folder; whoever takes one closes it."""
        for name, recording in self._children(top):
            with recording:
                for source, folder in self._children(recording):
                    yield (root, name, source), folder

    def _source_folder(self, place: Place) -> SourceFolder:
        return SourceFolder(place, self._indexed_bytes)

    def _scan_source(self, one: SourceFolder, folder: Directory, end_s: float) -> None:
        try:
            now_s = self._clock()
            one.scan(folder, lambda: self._clock() < end_s, now_s)
        except (OSError, SpectrodError, SpentError) as error:
            self._troubles.append(printable(str(error)))
        else:
            if one.n_damaged:
                self._troubles.append(f"{printable(folder.path)}: {_damaged_text(one.n_damaged)}")

    def _children(self, parent: Directory) -> Iterator[tuple[str, Directory]]:
        """Yield the folders in a folder by name; links and other files are skipped."""
        with parent.scan() as entries:
            names = [entry.name for entry, _ in zip(entries, range(NAMES_MAX + 1), strict=False)]
        if len(names) > NAMES_MAX:
            rule = f"more than {NAMES_MAX} names: the rest is left out"
            self._troubles.append(f"{printable(parent.path)}: {rule}")
        for name in sorted(names[:NAMES_MAX]):
            try:
                child = parent.child(name)
            except OSError:
                continue
            yield name, child


def _damaged_text(count: int) -> str:
    files = "1 file" if count == 1 else f"{count} files"
    return f"{files} of recordings cannot be read: damaged, or of another kind"
