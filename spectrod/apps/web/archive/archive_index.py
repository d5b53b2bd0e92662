"""Index of an archive: segments and pyramids below a folder of any shape, or one segment."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.source_folder import ENTRIES_MAX, PYRAMID, Place, SourceFolder
from spectrod.formats.directory import Directory
from spectrod.formats.pyramid.metadata import NAME as PYRAMID_JSON
from spectrod.formats.segment.segment_series import SUFFIX
from spectrod.lib.output_formats import PART_SUFFIX
from spectrod.lib.text import printable
from spectrod.wire.headers import NAME_MAX_CHARS

DEPTH_MAX: Final = 6
"""Folders below that of the archive on the way to a source's."""
FOLDERS_MAX: Final = 4096
"""Folders that are looked at for those of sources."""
PLAN: Final = "plan.jsonl"
"""File of the results of ``spectrod batch``."""
HISTORY: Final = "history"
"""Folder of their pyramids."""
_SEGMENTS = (SUFFIX, SUFFIX + PART_SUFFIX)


class ArchiveIndex(RecordingIndex):
    """Finds what is stored below a folder: each folder with segments or a pyramid is a source.

    Links below the folder are not followed. Thread-safe.

    Parameters
    ----------
    path : Path
        A folder, or a segment; without links.
    """

    is_of_daemons = False

    def __init__(self, path: Path) -> None:
        is_file = path.is_file()
        self._only = path.name.removesuffix(PART_SUFFIX) if is_file else ""
        # A pyramid is opened as a part of its source's folder.
        is_pyramid = path.name == PYRAMID and (path / PYRAMID_JSON).is_file()
        self.root = path.parent if is_file or is_pyramid else path
        super().__init__((self.root,))

    @property
    def is_there(self) -> bool:
        """Whether the folder, or the segment, can be found."""
        here = [self.root / name for name in (self._only, self._only + PART_SUFFIX)]
        return any(path.exists() for path in here) if self._only else self.root.is_dir()

    def sources(self) -> list[SourceFolder]:
        """Return what is known of each source, by folder."""
        with self._lock:
            return [one for _, one in sorted(self._sources.items())]

    def _places(self, root: Path, top: Directory) -> Iterator[tuple[Place, Directory]]:
        if self._only:
            yield _place_of(root), top.duplicate()
            return
        for n_folders, (path, folder) in enumerate(_walk(root, top)):
            if n_folders == FOLDERS_MAX:
                rule = f"more than {FOLDERS_MAX} folders: the rest is left out"
                self._troubles.append(f"{printable(root)}: {rule}")
                return
            if _has_rows(folder):
                yield _place_of(path), folder.duplicate()

    def _source_folder(self, place: Place) -> SourceFolder:
        name = self._only.removesuffix(SUFFIX) or place[2]
        return SourceFolder(place, self._indexed_bytes, only=self._only, name=topic_name(name))


def topic_name(text: str) -> str:
    """Return the name of a file or folder as it can stand in a topic."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:NAME_MAX_CHARS]


def _place_of(path: Path) -> Place:
    """Return a folder as that of a source: any has two folders above, those of the root itself."""
    return path.parent.parent, path.parent.name, path.name


def _walk(path: Path, folder: Directory, depth: int = 0) -> Iterator[tuple[Path, Directory]]:
    """Yield a folder and those below it; links, hidden ones and pyramids are skipped."""
    yield path, folder
    for name in _folders_in(folder) if depth < DEPTH_MAX else ():
        try:
            child = folder.child(name)
        except OSError:  # it has vanished, or is not for this user
            continue
        with child:
            yield from _walk(path / name, child, depth + 1)


def _entries(folder: Directory) -> list[tuple[str, bool]]:
    """Return the names in a folder, and whether each is a folder."""
    with folder.scan() as entries:
        some = (entry for entry, _ in zip(entries, range(ENTRIES_MAX), strict=False))
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in some]


def _folders_in(folder: Directory) -> list[str]:
    found = _entries(folder)
    if (PLAN, False) in found:  # what a merge is making beside it is not complete
        return [name for name, is_folder in found if is_folder and name == HISTORY]
    return sorted(
        name
        for name, is_folder in found
        if is_folder and name != PYRAMID and not name.startswith(".")
    )


def _has_rows(folder: Directory) -> bool:
    """Return whether a folder has rows of a source."""
    return any(
        name == PYRAMID if is_folder else name.endswith(_SEGMENTS)
        for name, is_folder in _entries(folder)
    )
