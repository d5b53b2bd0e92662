"""Files that appear under their name only when they are whole."""

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from spectrod.errors import StorageError


def _target(path: Path) -> Path:
    """Where the content goes: a link stays a link, and what it names is written."""
    return Path(os.path.realpath(path))


def _temporary(target: Path) -> Path:
    return target.with_name(f".spectrod-{secrets.token_hex(6)}.part")


def _storage_error(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: {error.strerror or error}")


def _check_replaceable(path: Path) -> None:
    """Refuse to replace what a program that opens and writes would not overwrite."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise StorageError(f"{path}: is a folder")
    if not stat.S_ISREG(mode):
        raise StorageError(f"{path}: is not a regular file")
    if not os.access(path, os.W_OK):
        raise StorageError(f"{path}: {os.strerror(errno.EACCES)}")


def check_writable(path: Path) -> None:
    """Find out whether a file could be made at this path, and leave nothing behind.

    Raises
    ------
    StorageError
        If not: no such folder, no permission, no space left, a folder or a device of that name.
    """
    probe = _temporary(_target(path))
    try:
        _check_replaceable(path)
        try:
            probe.touch(exist_ok=False)
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise _storage_error(path, error) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that its name never stands for a part of it, even after a power failure.

    Written under another name in the same folder, flushed to the disk, then renamed. A file of
    the same name is replaced; on an error it stays as it was. A link stays, and the file that it
    names is replaced.

    Raises
    ------
    StorageError
        With the path and the system's reason.
    """
    target = _target(path)
    part = _temporary(target)
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
        _sync_folder(target.parent)
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
