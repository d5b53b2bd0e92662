"""A file that takes everything, and says at the end that it could not."""

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path


class Disk(io.RawIOBase):
    """A new file for HDF5 to write to, which crashes the process where the system's refuse.

    HDF5 keeps parts of a file in memory and writes them when it closes it. If the disk is full
    then, it cannot close, and tries again, with memory that it has freed, when the process ends.
    So its writes must succeed. The first failure is kept for ``checked``; what is written after it
    is lost, and the file worth nothing.

    Parameters
    ----------
    path : Path
        Must not be there yet.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("x+b", buffering=0)
        self._failure: OSError | None = None

    @contextlib.contextmanager
    def checked(self) -> Iterator[None]:
        """Raise the first failure to write at the end of the block, if there was any.

        Whatever else is raised after one is HDF5's surprise at not finding what it has written.
        """
        try:
            yield
        except (LookupError, OSError, RuntimeError, ValueError) as error:
            if self._failure is not None:
                raise self._failure from error
            raise
        if self._failure is not None:
            raise self._failure

    def readable(self) -> bool:
        """Tell that reads work."""
        return True

    def writable(self) -> bool:
        """Tell that writes do."""
        return True

    def seekable(self) -> bool:
        """Tell that it is a file."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read to this buffer; zeros where nothing is because a write failed."""
        n = 0 if self._file.closed else self._file.readinto(buffer) or 0
        if self._failure is not None and n < len(buffer):
            buffer[n:] = bytes(len(buffer) - n)
            n = len(buffer)
        return n

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        """Write all, or keep the failure."""
        view = memoryview(data).cast("B")
        n = len(view)
        try:
            while view and self._failure is None:
                view = view[self._file.write(view) :]
        except OSError as error:
            self._failure = error
        return n

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a place."""
        return offset if self._file.closed else self._file.seek(offset, whence)

    def tell(self) -> int:
        """Tell the place."""
        return 0 if self._file.closed else self._file.tell()

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or keep the failure."""
        size = self.tell() if size is None else size
        try:
            if self._failure is None:
                self._file.truncate(size)
        except OSError as error:
            self._failure = error
        return size

    def close(self) -> None:
        """Close the file; what HDF5 still writes is lost, and no error. Idempotent."""
        self._failure = self._failure or OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._file.close()
