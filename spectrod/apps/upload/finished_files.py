"""Finished files of a folder of recordings; nothing below it is reached through links."""

import os
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from spectrod.formats.directory import Directory
from spectrod.lib.errors import InputError
from spectrod.lib.output_formats import FOLDER_SUFFIXES, PART_SUFFIX, is_recording_name
from spectrod.lib.text import printable
from spectrod.source.source_listing import DEPTH_MAX, FILES_MAX, FOLDERS_MAX

LEFT_OUT_MAX = 1000
"""Most names of what is left out; more of them are counted."""

_OF_DISK = "lost+found"
"""Folder that only root may read, in a folder where a disk is mounted."""


class FileVersion(NamedTuple):
    """A version of a file: another one differs in any of these.

    Attributes
    ----------
    size : int
        [bytes].
    mtime_ns : int
        When it was modified [ns since 1970].
    changed_ns : int
        When it, its rights or its times were changed [ns since 1970]: programs that keep the time
        of modification cannot set this one.
    device, inode : int
        Which file it is.
    """

    size: int
    mtime_ns: int
    changed_ns: int
    device: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        """Return the version that has a status."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev, found.st_ino)


class FinishedFiles:
    """Files found in a folder and its subfolders.

    Attributes
    ----------
    files : dict of FileVersion
        Those that are finished, by their names from the folder on, with ``/``.
    n_unfinished : int
        Number of those with ``PART_SUFFIX``.
    left_out : dict of str
        Reason for each name that is left out, at most ``LEFT_OUT_MAX``.
    n_left_out : int
        Number of these names, all of them counted.
    """

    def __init__(self) -> None:
        self.files: dict[str, FileVersion] = {}
        self.n_unfinished = self.n_left_out = 0
        self.left_out: dict[str, str] = {}

    def leave_out(self, name: str, reason: str) -> None:
        """Note that a file or folder is left out."""
        self.n_left_out += 1
        if len(self.left_out) < LEFT_OUT_MAX:
            self.left_out[name] = reason


def list_finished(folder: Path) -> FinishedFiles:
    """List the finished files of spectrod's formats in a folder and its subfolders.

    Files of these formats get their names when they are finished; before, they end in
    ``PART_SUFFIX`` or are hidden. Hidden ones, and those of other names, are not listed.

    Raises
    ------
    InputError
        If the folder cannot be read, or has too many files or folders.
    """
    found = FinishedFiles()
    waiting: list[tuple[str, ...]] = [()]
    n_searched = 0
    while waiting:
        path = waiting.pop()
        n_searched += 1
        if n_searched + len(waiting) > FOLDERS_MAX:
            raise InputError(f"{printable(folder)}: has more than {FOLDERS_MAX} folders in it")
        try:
            inner = _search(folder, path, found)
        except OSError as error:
            if not path:
                raise InputError(f"{printable(folder)}: {error.strerror}") from error
            found.leave_out("/".join(path), error.strerror or str(error))
            continue
        if len(found.files) > FILES_MAX:
            raise InputError(f"{printable(folder)}: has more than {FILES_MAX} finished files")
        waiting += [(*path, name) for name in inner]
    return found


def open_finished(folder: Path, name: str) -> BinaryIO:
    """Open a listed file for reading; raises OSError, also where a link has come in its path."""
    *path, last = name.split("/")
    with _opened(folder, tuple(path)) as directory:
        return os.fdopen(directory.open_file(last), "rb")


def remove_finished(folder: Path, name: str, file: FileVersion) -> bool:
    """Delete a listed file if it is still this version of it; raises OSError.

    Returns
    -------
    is_removed : bool
        False if it is another one, or is not there.
    """
    *path, last = name.split("/")
    with _opened(folder, tuple(path)) as directory:
        found = directory.find(last)
        if found is None or FileVersion.of(found) != file:
            return False
        directory.remove(last)
    return True


def _opened(folder: Path, path: tuple[str, ...]) -> Directory:
    """Open a folder below another, through folders that are no links; raises OSError."""
    directory = Directory.open(folder)
    for name in path:
        try:
            below = directory.child(name)
        finally:
            directory.close()
        directory = below
    return directory


def _search(folder: Path, path: tuple[str, ...], found: FinishedFiles) -> list[str]:
    """Add the files of one folder; return the names of its folders."""
    inner: list[str] = []
    with _opened(folder, path) as directory, directory.scan() as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name == _OF_DISK:
                continue
            name = "/".join((*path, entry.name))
            if entry.is_dir(follow_symlinks=False):
                if reason := _rule_of_folder(entry.name, len(path)):
                    found.leave_out(name, reason)
                else:
                    inner.append(entry.name)
            elif entry.name.endswith(PART_SUFFIX):
                found.n_unfinished += is_recording_name(entry.name.removesuffix(PART_SUFFIX))
            elif is_recording_name(entry.name) or entry.is_symlink():
                _add_file(name, entry, found)
            if max(len(inner), len(found.files)) > FILES_MAX:  # the caller refuses it
                break
    return inner


def _rule_of_folder(name: str, depth: int) -> str:
    if depth >= DEPTH_MAX:
        return f"lies more than {DEPTH_MAX} folders deep"
    if name.lower().endswith(FOLDER_SUFFIXES):
        return "is a recording of many files, which cannot appear whole"
    return ""


def _add_file(name: str, entry: os.DirEntry[str], found: FinishedFiles) -> None:
    if entry.is_symlink():
        found.leave_out(name, "is a link: links are not followed")
    elif not entry.is_file(follow_symlinks=False):
        found.leave_out(name, "must be a regular file")
    else:
        try:
            found.files[name] = FileVersion.of(entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            return  # deleted meanwhile
