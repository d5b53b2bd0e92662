"""Bytes to a file at a place, all of them or an error with the system's reason."""

import contextlib
import os
from pathlib import Path

from spectrod.errors import StorageError


def check_new(part: Path, path: Path) -> None:
    """Raise StorageError, with the final name, if an unfinished file is in the way."""
    if part.exists():
        raise _is_left(part, path)


def create(part: Path, path: Path) -> int:
    """Make a new file for reading and writing.

    Raises
    ------
    StorageError
        With the final name; also if it is there: it may be all that is left of a recording, or
        somebody may be writing it.
    """
    try:
        return os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError as error:
        raise _is_left(part, path) from error
    except OSError as error:
        raise storage_error(path, error) from error


def _is_left(part: Path, path: Path) -> StorageError:
    return StorageError(
        f"{path}: {part.name} is left of a recording that broke off; spectrod convert makes it "
        "whole, or remove it"
    )


def discard_new(fd: int, part: Path) -> None:
    """Remove a file that ``create`` has made and that has nothing yet, and let go of it."""
    with contextlib.suppress(OSError):
        part.unlink()
    os.close(fd)


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Write all of it at an offset; raises OSError."""
    view = memoryview(data)
    while view:
        n = os.pwrite(fd, view, offset)
        view, offset = view[n:], offset + n


def storage_error(path: Path, error: OSError) -> StorageError:
    """Name the file and the system's reason."""
    return StorageError(f"{path}: {error.strerror or error}")
