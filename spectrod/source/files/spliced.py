"""A part of an open file, with other bytes before it and zeros after it, as a file of its own."""

import io
import os
from typing import Any, BinaryIO


class Spliced(io.RawIOBase):
    """Bytes, then a part of a file, then zeros.

    Decoders get what they need to read a stream to its end: a corrected header, one of several
    streams, or a length. The file is shared; its position is set before each read.

    Parameters
    ----------
    file : BinaryIO
        Open for reading; ``close`` leaves it open.
    begin, end : int
        The part of it [bytes].
    head : bytes
        Before the part.
    padding : int
        Zeros after the part [bytes].
    """

    def __init__(
        self, file: BinaryIO, begin: int, end: int, head: bytes = b"", padding: int = 0
    ) -> None:
        super().__init__()
        self._file, self._head = file, head
        self._offset = begin - len(head)
        self._end = end - self._offset
        self._size = self._end + padding
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position [bytes]."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position, at least 0; nothing is read."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer up to the end of the bytes, of the part or of the zeros."""
        view = memoryview(buffer).cast("B")
        at = self._position
        if at < len(self._head):
            n = min(len(view), len(self._head) - at)
            view[:n] = self._head[at : at + n]
        elif at < self._end:
            self._file.seek(self._offset + at)
            n = self._file.readinto(view[: self._end - at])  # type: ignore[attr-defined]
        else:
            n = max(0, min(len(view), self._size - at))
            view[:n] = bytes(n)
        self._position += n
        return n
