"""A file that is appended to in whole pieces, and can be cut back to where it was."""

import errno
import fcntl
import os

from spectrod.errors import BusyError, StorageError, storage_error
from spectrod.formats.fileio import write_at
from spectrod.formats.part import PART_SUFFIX, PartFile

__all__ = ["PART_SUFFIX", "AppendFile", "lock"]


class AppendFile:
    """A new file, locked against other programs for as long as it is open.

    All errors but those of making it are OSErrors. Not thread-safe.

    Parameters
    ----------
    part : PartFile
        Of which there must be no file yet; not closed.

    Attributes
    ----------
    size : int
        Length of what was appended whole [bytes].

    Raises
    ------
    BusyError
        If another program is writing it.
    StorageError
        If there is one that nobody is writing, or it cannot be made.
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
        lock(self._descriptor)

    @property
    def is_open(self) -> bool:
        """False once it was closed."""
        return self._descriptor >= 0

    @property
    def is_gone(self) -> bool:
        """Whether somebody has removed it: nothing that is written would be found again."""
        return os.fstat(self._descriptor).st_nlink == 0

    def append(self, piece: bytes) -> None:
        """Write a piece, as the system mostly does at once; what failed does not count."""
        if self._is_torn:
            self.cut(self.size)
        try:
            write_at(self._descriptor, piece, self.size)
        except OSError:
            self._is_torn = True
            raise
        self.size += len(piece)

    def cut(self, size: int) -> None:
        """Forget what lies beyond; where that fails, the next ``append`` does it first."""
        self.size = size
        self._is_torn = True
        os.ftruncate(self._descriptor, size)
        self._is_torn = False

    def synchronise(self) -> None:
        """Make what was appended survive a power failure; does nothing where nothing is new."""
        if self.is_gone:
            raise FileNotFoundError(errno.ENOENT, "was removed while it was being written")
        if self._is_torn:
            self.cut(self.size)
        if self._synced_size != self.size:
            os.fdatasync(self._descriptor)
            self._synced_size = self.size

    def close(self) -> None:
        """Let go of it. Idempotent."""
        if self.is_open:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Delete it, and let go of it."""
        self._part.remove()
        self.close()


def lock(descriptor: int) -> bool:
    """Take a file for this program until it is closed; False if another one has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # Network file systems that know no locks: programs are told apart by names alone.
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
    return True


def _taken(part: PartFile) -> BusyError | StorageError:
    """Say why there is such a file already."""
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
