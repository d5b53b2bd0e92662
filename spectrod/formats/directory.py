"""An open directory, whose files are found by descriptor instead of path."""

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

from spectrod.lib.text import printable

_log = logging.getLogger(__name__)

_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_RENAME_NOREPLACE: Final = 1
# NFS and older file systems support no flags of renameat2 (EINVAL); older kernels and sandboxes
# lack the call (ENOSYS, EPERM).
_NO_RENAMEAT2: Final = (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP)
# FAT, exFAT and some network file systems have no hard links.
_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EMLINK)
_NUMBERS_MAX: Final = 10_000
"""Number of names to try if the first is taken."""


class Directory:
    """An open directory.

    Names are looked up in this very directory, even after it was moved. Symbolic links in place of
    files and directories in it are not followed. All errors are OSErrors.

    Parameters
    ----------
    descriptor : int
        Descriptor of the directory; ``close`` closes it.
    path : Path
        Path by which it was opened, for messages.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a directory by its path; links in the path are followed."""
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
        """Open the same directory again; ``flock`` locks are shared."""
        return Directory(os.dup(self._descriptor), self.path)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Close the directory. Idempotent."""
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

    # ---- content

    def find(self, name: str) -> os.stat_result | None:
        """Return the status of a name, without following links; None if the name is free."""
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
        """Return the status of the file system."""
        return os.statvfs(self._descriptor)

    # ---- files

    def create(self, name: str) -> int:
        """Make a file for reading and writing, and return its descriptor."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o666, dir_fd=self._descriptor)

    def open_file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a regular file, and return its descriptor; OSError if the name is anything else."""
        # Without O_NONBLOCK, opening a FIFO waits for a process at its other end.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=self._descriptor)
        try:
            is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        except OSError:
            os.close(descriptor)
            raise
        if not is_regular:
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
        """Rename a file; replace an existing file of the new name."""
        os.rename(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def rename_noreplace(self, old: str, new: str) -> None:
        """Rename a file; FileExistsError if the new name exists.

        Uses ``renameat2``; where the file system or the kernel does not support it, makes a hard
        link and removes the old name. Both are atomic. Without hard links, it looks the name up
        before ``rename``: a file that is made in between would be replaced.
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
        """Give a finished file its final name; use and log the next free one if that is taken.

        Returns
        -------
        name : str
            The name of the file, which survives a power failure.
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
        """Return the name, or the first numbered one, that is free with and without each suffix."""
        for number in range(_NUMBERS_MAX):
            free = numbered(name, number)
            if not any(self.find(free + suffix) for suffix in ("", *suffixes)):
                return free
        raise FileExistsError(errno.EEXIST, f"{_NUMBERS_MAX} files of this name exist")

    def set_aside(self, name: str) -> str:
        """Rename a damaged file to the first free NAME.damaged; return that name."""
        free = self.free_name(f"{name}.damaged")
        self.rename_noreplace(name, free)
        return free

    def synchronise(self) -> None:
        """Synchronise the directory, so that new names survive a power failure."""
        os.fsync(self._descriptor)

    def write_new(self, name: str, content: bytes) -> str:
        """Write a file that appears complete and replaces none; return its name."""
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
    """Append a number to a name, before its suffix, so that it sorts after the plain name."""
    stem, dot, suffix = name.rpartition(".")
    if not number:
        return name
    return f"{stem}_{number}{dot}{suffix}" if stem else f"{name}_{number}"


def _renameat2_noreplace(descriptor: int, old: str, new: str) -> None:
    call = getattr(_libc, "renameat2", None)  # in musl since 1.2.6
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = os.fsencode(old), os.fsencode(new)
    if call(descriptor, names[0], descriptor, names[1], _RENAME_NOREPLACE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), old, None, new)


_libc = ctypes.CDLL(None, use_errno=True)
