"""A directory that is held open, so that files in it are found by descriptor and not by path."""

import contextlib
import ctypes
import errno
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from spectrod.text import printable

_log = logging.getLogger(__name__)

_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_RENAME_NOREPLACE: Final = 1
# NFS and older file systems have no flags of renameat2 (EINVAL), older kernels and sandboxes do not
# have the call (ENOSYS, EPERM).
_NO_RENAMEAT2: Final = (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP)
# FAT, exFAT and some network file systems know no hard links.
_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EMLINK)
_NUMBERS_MAX: Final = 10_000
"""Of names that are tried where one is taken."""


class Directory:
    """An open directory.

    Names are looked up in this very directory, wherever its path leads by now. Symbolic links in
    place of files and directories below are not followed. All errors are OSErrors.

    Parameters
    ----------
    descriptor : int
        Of the directory; closed by ``close``.
    path : Path
        By which it was opened, for messages.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a directory by its path, whose links are followed."""
        return cls(os.open(path, _FLAGS), Path(path))

    def child(self, name: str) -> "Directory":
        """Open a directory in this one; NotADirectoryError if the name is a link or a file."""
        descriptor = os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=self._descriptor)
        return Directory(descriptor, self.path / name)

    def make_child(self, name: str, mode: int = 0o777) -> "Directory":
        """Open a directory in this one, and make it if it is missing."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=self._descriptor)
        return self.child(name)

    def duplicate(self) -> "Directory":
        """Open the same directory once more; locks by ``flock`` are shared."""
        return Directory(os.dup(self._descriptor), self.path)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Close it. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---- what it holds

    def find(self, name: str) -> os.stat_result | None:
        """Return what is known of a name, of a link itself; None if the name is free."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def scan(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Iterate over all entries; one scan at a time."""
        with os.scandir(self._descriptor) as entries:
            yield entries

    def statvfs(self) -> os.statvfs_result:
        """Return what is known of the file system."""
        return os.statvfs(self._descriptor)

    # ---- files

    def create(self, name: str) -> int:
        """Make a file for reading and writing, and return its descriptor."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o666, dir_fd=self._descriptor)

    def open_file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a regular file, and return its descriptor; OSError if the name is anything else."""
        # A FIFO would not be opened before somebody opens its other end.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=self._descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "is not a regular file")
        return descriptor

    def set_times(self, name: str, t_utc_ns: int) -> None:
        """Set the times of a file [ns since 1970]."""
        times = (t_utc_ns, t_utc_ns)
        os.utime(name, ns=times, dir_fd=self._descriptor, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Delete a file."""
        os.unlink(name, dir_fd=self._descriptor)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, and replace one of the new name."""
        os.rename(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def rename_noreplace(self, old: str, new: str) -> None:
        """Rename a file; FileExistsError if anything has the new name.

        By ``renameat2``; where the file system or the kernel has no such call, by a hard link, of
        which the old name is removed. Both are atomic. Where there are no hard links either, the
        name is looked up before ``rename``: a file that is made in between would be replaced.
        """
        try:
            _renameat2_noreplace(self._descriptor, old, new)
        except OSError as error:
            if error.errno not in _NO_RENAMEAT2:
                raise
            self._link_and_remove(old, new)

    def _link_and_remove(self, old: str, new: str) -> None:
        here = self._descriptor
        try:
            os.link(old, new, src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        else:
            self.remove(old)
            return
        if self.find(new) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        self.rename(old, new)

    def publish(self, part: str, name: str) -> str:
        """Give a finished file its name, or the next free one if it is taken, and log that.

        Returns
        -------
        name : str
            That it has now, which survives a power failure.
        """
        for number in range(_NUMBERS_MAX):
            free = numbered(name, number)
            try:
                self.rename_noreplace(part, free)
            except FileExistsError:
                continue
            self.synchronise()
            if free != name:
                path = printable(self.path / name)
                _log.warning("%s: another file has this name; the new one is %s", path, free)
            return free
        raise FileExistsError(errno.EEXIST, f"{_NUMBERS_MAX} files of this name exist")

    def free_name(self, name: str, *suffixes: str) -> str:
        """Find a name that is free, also with each suffix behind it: the first of its numbers."""
        for number in range(_NUMBERS_MAX):
            free = numbered(name, number)
            if not any(self.find(free + suffix) for suffix in ("", *suffixes)):
                return free
        raise FileExistsError(errno.EEXIST, f"{_NUMBERS_MAX} files of this name exist")

    def synchronise(self) -> None:
        """Make new names survive a power failure."""
        os.fsync(self._descriptor)

    def write_new(self, name: str, content: bytes) -> str:
        """Write a file that appears when it is whole, and replaces none; return its name."""
        part = f".spectrod-{os.urandom(6).hex()}.part"
        descriptor = self.create(part)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return self.publish(part, name)
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(part)
            raise


def numbered(name: str, number: int) -> str:
    """Put a number behind a name, before its suffix: it sorts behind the name without one."""
    stem, dot, suffix = name.rpartition(".")
    if not number:
        return name
    return f"{stem}_{number}{dot}{suffix}" if stem else f"{name}_{number}"


def _renameat2_noreplace(descriptor: int, old: str, new: str) -> None:
    call = getattr(_libc, "renameat2", None)  # musl has it from 1.2.6 on
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = os.fsencode(old), os.fsencode(new)
    if call(descriptor, names[0], descriptor, names[1], _RENAME_NOREPLACE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), old, None, new)


_libc = ctypes.CDLL(None, use_errno=True)
