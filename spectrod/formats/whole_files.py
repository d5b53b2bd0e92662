"""Files that appear under their name only when they are complete."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from spectrod.formats.directory import Directory
from spectrod.formats.path_links import written_path
from spectrod.lib.errors import StorageError, storage_error, storage_errors


class WrittenFile(NamedTuple):
    """A complete file under its temporary name.

    Attributes
    ----------
    path : Path
        The final name, for messages.
    part : Path
        The temporary name, in the folder of the target.
    target : Path
        The path that the file gets.
    replaces : bool
        Whether it replaces a file of this name; else it takes the next free name.
    """

    path: Path
    part: Path
    target: Path
    replaces: bool

    def publish(self) -> None:
        """Synchronise the file, and give it its final name; if that fails, remove it.

        Raises
        ------
        StorageError
            For any OSError, with the final name and the system's reason.
        """
        try:
            sync(self.part)
            with Directory.open(self.target.parent) as directory:
                if self.replaces:
                    directory.rename(self.part.name, self.target.name)
                    directory.synchronise()
                else:
                    directory.publish(self.part.name, self.target.name)
        except OSError as error:
            raise storage_error(self.path, error) from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the file if it has its temporary name."""
        with contextlib.suppress(OSError):
            self.part.unlink()


class _Unpublished(NamedTuple):
    """See ``unpublished``."""

    files: list[WrittenFile]
    folders: set[Path]


_UNPUBLISHED: ContextVar[_Unpublished | None] = ContextVar("_UNPUBLISHED", default=None)


@contextlib.contextmanager
def unpublished(folders: set[Path] | None = None) -> Iterator[list[WrittenFile]]:
    """Leave it to the caller to publish the files that this thread completes in the block.

    So another process can wait for the disk. If the block raises, the files are removed.

    Parameters
    ----------
    folders : set of Path, optional
        Folders in which ``check_writable`` has made files in earlier blocks. It makes none there
        again, and adds others.

    Yields
    ------
    files : list of WrittenFile
        The files completed by ``whole_file`` so far.
    """
    files: list[WrittenFile] = []
    token = _UNPUBLISHED.set(_Unpublished(files, set() if folders is None else folders))
    try:
        yield files
    except BaseException:
        for file in files:
            file.discard()
        raise
    finally:
        _UNPUBLISHED.reset(token)


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
        If it cannot: missing folder, no permission, no space, a folder or device of that name, or a
        link of another user.
    """
    probe, within = _temporary(written_path(path)), _UNPUBLISHED.get()
    folders = set() if within is None else within.folders
    with storage_errors(path):
        check_replaceable(path)
        if probe.parent not in folders:
            _make_and_remove(probe)
            folders.add(probe.parent)


def _make_and_remove(probe: Path) -> None:
    try:
        probe.touch(exist_ok=False)
    finally:
        probe.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_file(
    path: Path, *, replaces: bool | None = None, follows_link: bool = True
) -> Iterator[Path]:
    """Write a file under a temporary name in the same folder, then rename it.

    So the final name never belongs to an incomplete file, even after a power failure. A file that
    has the name before is replaced; if the block raises, it stays unchanged and nothing else is
    left. A file that gets the name during the block is not replaced: the new one takes the next
    free name, which is logged. A link stays, and its target is replaced, see ``written_path``. In a
    block of ``unpublished`` the file keeps its temporary name.

    Parameters
    ----------
    path : Path
        The final name.
    replaces : bool, optional
        Whether a file existed before, if the caller has checked earlier: see ``is_there``.
    follows_link : bool
        Whether a link of the final name stays and its target is written; else it is replaced.

    Yields
    ------
    part : Path
        Path to write to; not existing yet, with the suffix ``.part``.

    Raises
    ------
    StorageError
        For any OSError, with the final name and the system's reason; for a link of another user.
    """
    target = written_path(path) if follows_link else written_path(path.parent) / path.name
    part = _temporary(target)
    if replaces is None:
        replaces = os.path.lexists(target)
    file, within = WrittenFile(path, part, target, replaces), _UNPUBLISHED.get()
    try:
        yield part
    except OSError as error:
        file.discard()
        raise storage_error(path, error) from error
    except BaseException:
        file.discard()
        raise
    if within is None:
        file.publish()
    else:
        within.files.append(file)


class _NotPublishedError(Exception):
    """Leaves the block of a new file without publishing the file."""


class WholeFileWriter:
    """Base class of writers of a file that gets its name when it is complete.

    Attributes
    ----------
    path : Path
        Path of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stack = ExitStack()

    def abort(self) -> None:
        """Leave no file. Idempotent; no effect after ``finish``."""
        with contextlib.suppress(_NotPublishedError, StorageError), self._stack.pop_all():
            raise _NotPublishedError

    @contextlib.contextmanager
    def _aborted_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.abort()
            raise storage_error(self.path, error) from error
        except BaseException:
            self.abort()
            raise


def is_there(path: Path) -> bool:
    """Return whether this name, or the target of a link of this name, exists.

    Raises
    ------
    StorageError
        As ``written_path``.
    """
    return os.path.lexists(written_path(path))


def write_whole(
    path: Path, content: bytes, *, replaces: bool | None = None, follows_link: bool = True
) -> None:
    """Write a file by ``whole_file``, with its errors."""
    with (
        whole_file(path, replaces=replaces, follows_link=follows_link) as part,
        part.open("xb") as file,
    ):
        file.write(content)


def sync(path: Path) -> None:
    """Synchronise a file, or the names in a folder, so that it survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
