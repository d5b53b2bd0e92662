"""A part of a file in a store, and the errors of stores."""

import errno
import os
import re
from typing import NamedTuple

SIZE_MAX = 1 << 62
"""Largest size of a file that is believed [bytes]."""

_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")
_ETAG_CHARS_MAX = 256


class UnreachableError(Exception):
    """A store does not answer, or not now: another attempt may succeed. The text says why."""


class FilePart(NamedTuple):
    """Bytes of a file, and what the store says of it with them.

    Attributes
    ----------
    content : bytes
        As many as were asked for, fewer at the end of the file.
    size : int
        Of the whole file [bytes].
    mtime_ns : int
        When it was modified [ns since 1970]; 0 if the store does not say.
    etag : str
        The store's name of this version of the file; empty if it does not say.
    """

    content: bytes
    size: int
    mtime_ns: int
    etag: str

    @property
    def version(self) -> tuple[int, int, str]:
        """What changes when the file does."""
        return self.size, self.mtime_ns, self.etag


class SentPart(NamedTuple):
    """Bytes of a file that is sent in parts.

    Attributes
    ----------
    number : int
        Counted from 1.
    first : int
        Place of its first byte in the file.
    content : bytes
        Of all but the last part as many as of the first.
    size : int
        Of the whole file [bytes].
    """

    number: int
    first: int
    content: bytes
    size: int


def promised(content_range: str, first: int, end: int) -> tuple[int, int]:
    """Return the number of bytes that an answer promises, and the size of the file.

    Parameters
    ----------
    content_range : str
        The header ``Content-Range``.
    first, end : int
        What was asked for, [first, end) [bytes].

    Raises
    ------
    OSError
        If it promises anything else.
    """
    match = _CONTENT_RANGE.fullmatch(content_range)
    begin, last, size = (int(digits) for digits in match.groups()) if match else (-1, -1, 0)
    if begin != first or last != min(end, size) - 1 or not first <= last < size <= SIZE_MAX:
        raise refused("its server answers with another part of it than was asked for")
    return last - first + 1, size


def etag_of(stated: str | None) -> str:
    """Return an ETag without quotes."""
    return (stated or "").strip('"')[:_ETAG_CHARS_MAX]


def refused(text: str) -> OSError:
    """Return an error that another attempt would not mend."""
    return OSError(errno.EIO, text)


def missing() -> OSError:
    """Return the error of a file that is not there."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def denied() -> OSError:
    """Return the error of a file that may not be read."""
    return PermissionError(errno.EACCES, f"{os.strerror(errno.EACCES)} by its store")


def no_bucket() -> OSError:
    """Return the error of a file whose bucket is not there."""
    return OSError(errno.EIO, "there is no such bucket")


def no_room(code: str) -> OSError:
    """Return the error of a file that a store has no room for.

    Parameters
    ----------
    code : str
        What the store answers.
    """
    return OSError(errno.ENOSPC, f"its store takes no more bytes ({code or 'no room'})")
