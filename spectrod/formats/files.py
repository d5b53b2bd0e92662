"""Files that appear under their name only when they are whole."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from spectrod.errors import StorageError, storage_error
from spectrod.formats.directory import Directory


def _target(path: Path) -> Path:
    """Where the content goes: a link stays a link, and what it names is written."""
    return Path(os.path.realpath(path))


def _temporary(target: Path) -> Path:
    return target.with_name(f".spectrod-{os.urandom(6).hex()}.part")


def check_replaceable(path: Path) -> None:
    """Refuse to replace what a program that opens and writes would not overwrite.

    Raises
    ------
    StorageError
        If the path is that of a directory, a device or a file that must not be written.
    OSError
        If it cannot be looked at.
    """
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
        check_replaceable(path)
        try:
            probe.touch(exist_ok=False)
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


@contextlib.contextmanager
def whole_file(path: Path, *, replaces: bool | None = None) -> Iterator[Path]:
    """Let a file be written under another name in the same folder, then give it its own.

    So its name never stands for a part of it, even after a power failure. A file that has the name
    before is replaced; if the block raises, it stays as it was and nothing else is left. A file
    that gets the name in the block is not replaced: the new one takes the next free name, which is
    logged. A link stays, and the file that it names is replaced.

    Parameters
    ----------
    path : Path
        The final name.
    replaces : bool, optional
        Whether a file was there before, where the caller has looked earlier: see ``is_there``.

    Yields
    ------
    part : Path
        Where to write; not there yet, with the suffix ``.part``.

    Raises
    ------
    StorageError
        With the final name and the system's reason, of whatever OSError is raised.
    """
    target = _target(path)
    part = _temporary(target)
    if replaces is None:
        replaces = is_there(path)
    try:
        yield part
        sync(part)
        with Directory.open(target.parent) as directory:
            if replaces:
                directory.rename(part.name, target.name)
                directory.synchronise()
            else:
                directory.publish(part.name, target.name)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def is_there(path: Path) -> bool:
    """Whether something has this name, or the name that a link of this name leads to."""
    return os.path.lexists(_target(path))


def write_whole(path: Path, content: bytes, *, replaces: bool | None = None) -> None:
    """Write a file as ``whole_file`` does, with its errors."""
    with whole_file(path, replaces=replaces) as part, part.open("xb") as file:
        file.write(content)


def sync(path: Path) -> None:
    """Make a file, or the new names in a folder, survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
