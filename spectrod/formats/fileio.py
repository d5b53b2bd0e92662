"""Creation of files and positioned writes, with errors that give the system's reason."""

import os

from spectrod.formats.part import PartFile
from spectrod.lib.errors import StorageError, storage_error, storage_errors

_REMEDY = "spectrod convert makes it whole, or remove it"


def check_new(part: PartFile, remedy: str = _REMEDY) -> None:
    """Raise StorageError, with the final name and a remedy, if an unfinished file exists.

    Also if that cannot be found out.
    """
    with storage_errors(part.path):
        is_taken = part.is_taken()
    if is_taken:
        raise _is_left(part, remedy)


def create(part: PartFile, remedy: str = _REMEDY) -> int:
    """Make a new file for reading and writing.

    Raises
    ------
    StorageError
        For any OSError, with the final name. Also if the file exists: it may be the only copy of a
        recording, or another process may be writing it.
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
    """Remove and close an empty file that ``create`` has made."""
    part.remove()
    os.close(fd)


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Write all data at an offset; raises OSError."""
    view = memoryview(data)
    while view:
        n = os.pwrite(fd, view, offset)
        view, offset = view[n:], offset + n
