"""A file that accepts all writes and reports failures at the end."""

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path


class Disk(io.RawIOBase):
    """A new file for HDF5, which crashes the process if a write fails on close.

    HDF5 keeps parts of a file in memory and writes them when it closes the file. If the disk is
    full then, the close fails, and HDF5 tries again with freed memory when the process ends. So its
    writes must succeed. ``checked`` raises the first failure; data written after it are lost, and
    the file is unusable.

    Parameters
    ----------
    path : Path
        Path of the file; must not exist yet.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("x+b", buffering=0)
        self._failure: OSError | None = None

    @contextlib.contextmanager
    def checked(self) -> Iterator[None]:
        """Raise the first failed write at the end of the block, if there was one.

        After a failed write HDF5 may raise other errors, because it does not find its data.
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
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read into a buffer; after a failed write, fill with zeros what the file does not hold."""
        n = 0 if self._file.closed else self._file.readinto(buffer) or 0
        if self._failure is not None and n < len(buffer):
            buffer[n:] = bytes(len(buffer) - n)
            n = len(buffer)
        return n

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        """Write all data, or store the failure."""
        view = memoryview(data).cast("B")
        n = len(view)
        try:
            while view and self._failure is None:
                view = view[self._file.write(view) :]
        except OSError as error:
            self._failure = error
        return n

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position."""
        return offset if self._file.closed else self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return 0 if self._file.closed else self._file.tell()

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or store the failure."""
        size = self.tell() if size is None else size
        try:
            if self._failure is None:
                self._file.truncate(size)
        except OSError as error:
            self._failure = error
        return size

    def close(self) -> None:
        """Close the file; later writes of HDF5 are dropped without an error. Idempotent."""
        self._failure = self._failure or OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._file.close()
