"""Lists the sound files of a folder and its subfolders."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from spectrod.lib.errors import InputError
from spectrod.lib.text import printable

_log = logging.getLogger(__name__)

SUFFIXES = frozenset({
    ".wav", ".wave", ".bwf", ".rf64", ".w64", ".aif", ".aiff", ".aifc", ".au", ".snd", ".caf",
    ".flac", ".ogg", ".oga", ".opus", ".mp3",
})  # fmt: skip
"""Suffixes of sound files, in upper or lower case; other files are ignored."""

FILES_MAX = 600_000
"""Maximum of sound files of one source: one a minute for more than a year."""
FOLDERS_MAX = 100_000
"""Maximum of folders that are searched."""
DEPTH_MAX = 16
"""Maximum depth of folders below the given folder."""


@dataclass(slots=True)
class Listing:
    """Files found in a folder.

    Attributes
    ----------
    files : list of Path
        Sound files by suffix, sorted by path; none was opened.
    unread : list of (Path, str)
        Folders that could not be searched, with a line that gives the reason.
    n_folders : int
        Subfolders of the folder itself, if ``recursive`` is false.
    """

    files: list[Path] = field(default_factory=list)
    unread: list[tuple[Path, str]] = field(default_factory=list)
    n_folders: int = 0


def list_sound_files(folder: str, *, recursive: bool = False) -> Listing:
    """List the sound files of a folder.

    Parameters
    ----------
    folder : str
        Path of the folder.
    recursive : bool
        Search the subfolders, too. Links to folders are not followed.

    Returns
    -------
    found : Listing
        Hidden files and folders are excluded.

    Raises
    ------
    InputError
        If the folder itself cannot be read, or has too many files or folders.
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
    """Add the files of one folder; return the subfolders to search."""
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
            elif recursive and _is_link_to_folder(entry):
                _log.warning("%s: a link to a folder: it is not followed", printable(path))
            elif not is_sound and entry.is_dir(follow_symlinks=False):
                found.n_folders += 1
    return inner


def _is_link_to_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a link to a folder; one that leads to itself is none."""
    try:
        return entry.is_symlink() and entry.is_dir()
    except OSError:
        return False
