"""Bytes to a file at a place, all of them or an error with the system's reason."""

import os

from spectrod.errors import StorageError, storage_error
from spectrod.formats.part import PartFile

_REMEDY = "spectrod convert makes it whole, or remove it"


def check_new(part: PartFile, remedy: str = _REMEDY) -> None:
    """Raise StorageError, with the final name and a remedy, if an unfinished file is in the way."""
    if part.is_taken():
        raise _is_left(part, remedy)


def create(part: PartFile, remedy: str = _REMEDY) -> int:
    """Make a new file for reading and writing.

    Raises
    ------
    StorageError
        With the final name; also if it is there: it may be all that is left of a recording, or
        somebody may be writing it.
    """
    try:
        return part.create()
    except FileExistsError as error:
        raise _is_left(part, remedy) from error
    except OSError as error:
        raise storage_error(part.path, error) from error


def _is_left(part: PartFile, remedy: str) -> StorageError:
    return StorageError(
        f"{part.path}: {part.part.name} is left of a recording that broke off; {remedy}"
    )


def discard_new(fd: int, part: PartFile) -> None:
    """Remove a file that ``create`` has made and that has nothing yet, and close it."""
    part.remove()
    os.close(fd)


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Write all of it at an offset; raises OSError."""
    view = memoryview(data)
    while view:
        n = os.pwrite(fd, view, offset)
        view, offset = view[n:], offset + n
