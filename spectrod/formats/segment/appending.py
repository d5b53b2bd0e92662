"""A file to which complete pieces are appended, and which can be cut back."""

import errno
import fcntl
import os

from spectrod.formats.fileio import write_at
from spectrod.formats.part import PartFile
from spectrod.lib.errors import BusyError, StorageError, storage_error


class AppendFile:
    """A new file, locked against other programs while it is open.

    All errors except those of the constructor are OSErrors. Not thread-safe.

    Parameters
    ----------
    part : PartFile
        Names of the file, which must not exist yet; not closed.

    Attributes
    ----------
    size : int
        Length of all completely appended pieces [bytes].

    Raises
    ------
    BusyError
        If another program is writing to such a file.
    StorageError
        If an unfinished one exists that no program is writing, or the file cannot be created.
    """

    def __init__(self, part: PartFile) -> None:
        self._part = part
        self.size = 0
        self._synced_size = 0
        self._is_torn = False
        try:
            self._descriptor = part.create()
        except FileExistsError:
            raise _taken(part) from None
        except OSError as error:
            raise storage_error(part.part, error) from error
        try:
            lock(self._descriptor)
        except OSError as error:
            self.remove()
            raise storage_error(part.part, error) from error

    @property
    def is_open(self) -> bool:
        """False after it was closed."""
        return self._descriptor >= 0

    @property
    def is_gone(self) -> bool:
        """Whether the file was removed, so that written data cannot be found."""
        return os.fstat(self._descriptor).st_nlink == 0

    def append(self, piece: bytes) -> None:
        """Write a piece, usually in one system call; after an error it does not count."""
        if self._is_torn:
            self.cut(self.size)
        try:
            write_at(self._descriptor, piece, self.size)
        except OSError:
            self._is_torn = True
            raise
        self.size += len(piece)

    def cut(self, size: int) -> None:
        """Cut the file to this length; if that fails, the next ``append`` repeats it first."""
        self.size = size
        self._is_torn = True
        os.ftruncate(self._descriptor, size)
        self._is_torn = False

    def synchronise(self) -> None:
        """Synchronise appended data to the disk; do nothing if there are no new ones."""
        if self.is_gone:
            raise FileNotFoundError(errno.ENOENT, "was removed while it was being written")
        if self._is_torn:
            self.cut(self.size)
        if self._synced_size != self.size:
            os.fdatasync(self._descriptor)
            self._synced_size = self.size

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self.is_open:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Delete the file and close it."""
        self._part.remove()
        self.close()


def lock(descriptor: int) -> bool:
    """Lock a file for this program until it is closed; return False if another one has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # Network file systems without locks: only the names distinguish programs' files.
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
    return True


def _taken(part: PartFile) -> BusyError | StorageError:
    """Return the error for an existing file."""
    path = part.part
    try:
        descriptor = part.open_taken()
    except OSError as error:
        return storage_error(path, error)
    try:
        is_free = lock(descriptor)
    finally:
        os.close(descriptor)
    if is_free:
        return StorageError(
            f"{path}: is left of a recording that broke off, which spectrod convert reads"
        )
    return BusyError(f"{path}: another program is writing it")
