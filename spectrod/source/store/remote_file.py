"""A file of a store, read by parts: a few blocks of it are in memory."""

import errno
import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from spectrod.lib.errors import SpectrodError
from spectrod.source.store.file_part import FilePart, refused
from spectrod.source.store.stores import request, store_of
from spectrod.source.store.urls import check_url

SMALL_BYTES = 1 << 14
"""First part of a file, and the first one at another place [bytes]."""
BLOCK_BYTES = 1 << 22
"""Longest part [bytes]: parts that follow each other grow up to this."""
AHEAD_MAX = 3
"""Most parts that are asked for before they are needed."""
_GROWTH = 4

_SMALL_PARTS: ContextVar[dict[tuple[str, int], FilePart] | None] = ContextVar("parts", default=None)


@contextmanager
def small_parts_kept() -> Iterator[None]:
    """Ask but once for the first and last part of a file that is opened several times within."""
    token = _SMALL_PARTS.set({})
    try:
        yield
    finally:
        _SMALL_PARTS.reset(token)


class _Asked(NamedTuple):
    """A part that was asked for."""

    first: int
    end: int
    answer: Future[FilePart]


class RemoteFile(io.RawIOBase):
    """A file of a store, open for reading.

    Reading in order asks for the next parts ahead, of up to 4 MiB, so at most 16 MiB are in memory.
    All parts are of the version of the file that was opened.

    Parameters
    ----------
    url : str
        Its address.

    Attributes
    ----------
    size : int
        [bytes]
    mtime_ns : int
        When it was modified [ns since 1970]; 0 if the store does not say.
    etag : str
        The store's name of its version; empty if it does not say.

    Raises
    ------
    ConfigError
        If the address breaks a rule, see ``check_url``.
    OSError
        If it is missing, may not be read, or its store cannot read by parts.
    UnavailableError
        If the store does not answer, or its libraries are not installed.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._ahead: deque[_Asked] = deque()  # close() needs it, also if the address is refused
        check_url(url)
        self._url, self._store = url, store_of(url)
        self._position = self._begin = 0
        self._n_next = SMALL_BYTES
        self._version: tuple[int, int, str] | None = None
        part = self._small(0)
        self._content, self._version = part.content, part.version
        self.size, self.mtime_ns, self.etag = part.version

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position [bytes]."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position; nothing is asked for."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, "negative position")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, but for the end of the file; errors are those of opening."""
        view = memoryview(buffer).cast("B")
        n_done = 0
        while n_done < len(view) and self._position < self.size:
            at = self._position - self._begin
            if not 0 <= at < len(self._content):
                self._take_part()
                continue
            some = self._content[at : at + len(view) - n_done]
            view[n_done : n_done + len(some)] = some
            n_done += len(some)
            self._position += len(some)
        return n_done

    def close(self) -> None:
        """Close the file, and take back what was asked for."""
        self._forget()
        self._content = b""
        super().close()

    # ---- parts

    def _take_part(self) -> None:
        """Take the part at the position: one that was asked for, or a new one."""
        is_next = self._position == self._begin + len(self._content)
        if not is_next:
            self._forget()
            self._begin = self._position
            if self._position >= self.size - SMALL_BYTES:
                self._begin = max(0, self.size - SMALL_BYTES)
                self._content = self._small(self._begin).content
            else:
                self._content = self._result(self._ask(self._begin, SMALL_BYTES)).content
            return
        if not self._ahead:
            self._ask_ahead(self._position)
        asked = self._ahead.popleft()
        self._begin, self._content = asked.first, self._result(asked).content
        self._ask_ahead(self._ahead[-1].end if self._ahead else asked.end)

    def _ask_ahead(self, first: int) -> None:
        while len(self._ahead) < AHEAD_MAX and first < self.size:
            self._n_next = min(_GROWTH * self._n_next, BLOCK_BYTES)
            asked = self._ask(first, self._n_next)
            self._ahead.append(asked)
            first = asked.end

    def _ask(self, first: int, n_bytes: int) -> _Asked:
        end = first + n_bytes if self._version is None else min(first + n_bytes, self.size)
        answer = request(self._url, lambda: self._store.read(self._url, first, end))
        return _Asked(first, end, answer)

    def _small(self, first: int) -> FilePart:
        """Return the first or the last part, which may be kept."""
        kept = _SMALL_PARTS.get()
        part = kept.get((self._url, first)) if kept is not None else None
        if part is None:
            part = self._result(self._ask(first, SMALL_BYTES))
            if kept is not None:
                kept[self._url, first] = part
        return part

    def _result(self, asked: _Asked) -> FilePart:
        part = asked.answer.result()
        if self._version not in (None, part.version):
            raise refused("has changed while it was read")
        if self._version is not None and len(part.content) != asked.end - asked.first:
            raise refused("is shorter than its store said")
        return part

    def _forget(self) -> None:
        self._n_next = SMALL_BYTES
        while self._ahead:
            self._ahead.pop().answer.cancel()


class CallbackStream:
    """A remote file for a library that calls back, and would swallow its errors.

    Parameters
    ----------
    file : RemoteFile
        The file.
    """

    def __init__(self, file: RemoteFile) -> None:
        self._file = file
        self._error: OSError | SpectrodError | None = None
        self.seek, self.tell = file.seek, file.tell
        self.read, self.close = file.read, file.close

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; after an error there is no more."""
        if self._error is not None:
            return 0
        try:
            return self._file.readinto(buffer)
        except (OSError, SpectrodError) as error:
            self._error = error
            return 0

    def raise_error(self) -> None:
        """Raise the error that ended reading, if one did."""
        if self._error is not None:
            raise self._error
