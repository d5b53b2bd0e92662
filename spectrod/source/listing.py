"""The sound files of a folder, and of the folders in it."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from spectrod.errors import InputError
from spectrod.text import printable

_log = logging.getLogger(__name__)

SUFFIXES = frozenset({
    ".wav", ".wave", ".bwf", ".rf64", ".w64", ".aif", ".aiff", ".aifc", ".au", ".snd", ".caf",
    ".flac", ".ogg", ".oga", ".opus", ".mp3",
})  # fmt: skip
"""Of the files that count, in capitals or not; others are left alone."""

FILES_MAX = 600_000
"""Sound files of one source: one a minute for more than a year."""
FOLDERS_MAX = 100_000
"""Folders that are searched for them."""
DEPTH_MAX = 16
"""Levels of folders below the folder that is named."""


@dataclass(slots=True)
class Listing:
    """What was found in a folder.

    Attributes
    ----------
    files : list of Path
        Sound files by their suffixes, in the order of their paths; nothing was opened.
    unread : list of (Path, str)
        Folders that could not be searched, and a line that says why.
    n_folders : int
        Folders in the folder itself, if those were not asked for.
    """

    files: list[Path] = field(default_factory=list)
    unread: list[tuple[Path, str]] = field(default_factory=list)
    n_folders: int = 0


def list_sound_files(folder: str, *, recursive: bool = False) -> Listing:
    """List the sound files of a folder.

    Parameters
    ----------
    folder : str
        Where.
    recursive : bool
        Whether the folders in it are searched, too. Links to folders are not followed.

    Returns
    -------
    found : Listing
        Without hidden files and folders.

    Raises
    ------
    InputError
        If the folder itself cannot be read, or there are too many files or folders.
    """
    found = Listing()
    waiting = [(Path(folder), 0)]
    n_searched = 0
    while waiting:
        path, depth = waiting.pop()
        n_searched += 1
        if n_searched + len(waiting) > FOLDERS_MAX:
            raise InputError(f"{folder}: has more than {FOLDERS_MAX} folders in it")
        if depth > DEPTH_MAX:
            found.unread.append((path, f"{path}: lies more than {DEPTH_MAX} folders deep"))
            continue
        try:
            waiting += [(inner, depth + 1) for inner in _search(path, found, recursive=recursive)]
        except OSError as error:
            if not depth:
                raise InputError(f"{path}: {error.strerror}") from error
            found.unread.append((path, f"{path}: {error.strerror}"))
        if len(found.files) > FILES_MAX:
            raise InputError(f"{folder}: has more than {FILES_MAX} sound files")
    found.files.sort()
    return found


def _search(folder: Path, found: Listing, *, recursive: bool) -> list[Path]:
    """Add the files of one folder; return the folders in it that are to be searched."""
    inner = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = folder / entry.name
            is_sound = path.suffix.lower() in SUFFIXES
            if recursive and entry.is_dir(follow_symlinks=False):
                inner.append(path)
                if len(inner) > FOLDERS_MAX:  # the caller refuses it
                    break
            elif is_sound and len(found.files) <= FILES_MAX:
                found.files.append(path)
            elif recursive and entry.is_symlink() and entry.is_dir():
                _log.warning("%s: a link to a folder: it is not followed", printable(path))
            elif not is_sound and entry.is_dir(follow_symlinks=False):
                found.n_folders += 1
    return inner
