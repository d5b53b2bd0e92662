"""Folders and locks below the results of a job: none is reached through a link."""

import os
from pathlib import Path

from spectrod.formats.directory import Directory
from spectrod.formats.path_links import written_path
from spectrod.lib.errors import StorageError, storage_error, storage_errors

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_folder(results: Path, *names: str) -> Directory:
    """Open a folder below that of the results; make those that are missing.

    Raises
    ------
    StorageError
        If one of those below is a link or a file, or cannot be made.
    """
    path = results
    try:
        written_path(results).mkdir(parents=True, exist_ok=True)
        folder = Directory.open(results)
        for name in names:
            path /= name
            with folder:
                folder = folder.make_child(name)
    except OSError as error:
        if path.is_symlink():
            text = f"{path}: is a link: links in folders of results are not followed"
            raise StorageError(text) from error
        raise storage_error(path, error) from error
    return folder


def make_folder(results: Path, *names: str) -> Path:
    """Make a folder below that of the results, and return its path; see ``open_folder``."""
    with open_folder(results, *names) as folder:
        return folder.path


def open_lock(folder: Path, name: str) -> int:
    """Open the file of a lock, made if it is missing; return its descriptor.

    Raises
    ------
    StorageError
        If it is a link, or cannot be opened.
    """
    with storage_errors(folder / name):
        return os.open(folder / name, _LOCK_FLAGS, 0o666)
