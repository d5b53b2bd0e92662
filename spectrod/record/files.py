"""Files that appear under their name only when they are whole."""

import contextlib
import os
import secrets
from pathlib import Path

from spectrod.errors import StorageError


def _temporary(path: Path) -> Path:
    return path.with_name(f".spectrod-{secrets.token_hex(6)}.part")


def _storage_error(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: {error.strerror or error}")


def check_writable(path: Path) -> None:
    """Find out whether a file could be made at this path, and leave nothing behind.

    Raises
    ------
    StorageError
        If not: no such folder, no permission, no space left, a folder of that name.
    """
    probe = _temporary(path)
    try:
        if path.is_dir():
            raise StorageError(f"{path}: is a folder")
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise _storage_error(path, error) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that its name never stands for a part of it, even after a power failure.

    Written under another name in the same folder, flushed to the disk, then renamed. A file of
    the same name is replaced; on an error it stays as it was.

    Raises
    ------
    StorageError
        With the path and the system's reason.
    """
    part = _temporary(path)
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise _storage_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
