"""Files that appear under their name only when they are complete."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from spectrod.errors import StorageError, storage_error
from spectrod.formats.directory import Directory


def _target(path: Path) -> Path:
    """Return the path to write to: of a link, its target, so that the link stays."""
    return Path(os.path.realpath(path))


def _temporary(target: Path) -> Path:
    return target.with_name(f".spectrod-{os.urandom(6).hex()}.part")


def check_replaceable(path: Path) -> None:
    """Check that a path is free, or is a regular file that may be overwritten.

    Raises
    ------
    StorageError
        If the path is that of a directory, a device or a file without write permission.
    OSError
        If its status cannot be read.
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
    """Check that a file can be made at this path, and leave nothing behind.

    Raises
    ------
    StorageError
        If it cannot: missing folder, no permission, no space, or a folder or device of that name.
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
    """Write a file under a temporary name in the same folder, then rename it.

    So the final name never belongs to an incomplete file, even after a power failure. A file that
    has the name before is replaced; if the block raises, it stays unchanged and nothing else is
    left. A file that gets the name during the block is not replaced: the new one takes the next
    free name, which is logged. A link stays, and its target is replaced.

    Parameters
    ----------
    path : Path
        The final name.
    replaces : bool, optional
        Whether a file existed before, if the caller has checked earlier: see ``is_there``.

    Yields
    ------
    part : Path
        Path to write to; not existing yet, with the suffix ``.part``.

    Raises
    ------
    StorageError
        For any OSError, with the final name and the system's reason.
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
    """Return whether this name, or the target of a link of this name, exists."""
    return os.path.lexists(_target(path))


def write_whole(path: Path, content: bytes, *, replaces: bool | None = None) -> None:
    """Write a file by ``whole_file``, with its errors."""
    with whole_file(path, replaces=replaces) as part, part.open("xb") as file:
        file.write(content)


def sync(path: Path) -> None:
    """Synchronise a file, or the names in a folder, so that it survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
