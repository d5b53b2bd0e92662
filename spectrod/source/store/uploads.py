"""Writes files of buckets: each appears whole under its name, or not at all."""

import concurrent.futures
import errno
import hashlib
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from spectrod.lib.errors import SpectrodError
from spectrod.lib.regular_files import open_regular
from spectrod.source.store.file_part import SentPart
from spectrod.source.store.stores import Ask, WritableStore, answer, request, store_of

PART_BYTES = 1 << 23
"""Largest file of one request, and least size of a part [bytes]."""
PARTS_MAX = 10_000
"""Most parts of a file that S3 takes."""
PART_S = 120.0
"""Longest time of a request of ``upload`` with bytes [s]: parts arrive at 70 kB/s and more."""
ABORT_S = 2.0
"""Longest wait for the removal of parts of an upload that failed [s]: its store may be away."""


class LocalFileError(OSError):
    """The local file has changed while it was sent, or cannot be read; nothing is at fault else."""


def upload(url: str, path: Path) -> None:
    """Write a local file to a bucket, in place of a file of its name; see ``send``.

    Parameters
    ----------
    url : str
        Its address.
    path : Path
        The local file.
    """
    with open_regular(path) as file:
        send(url, file, part_s=PART_S)


def send(url: str, file: BinaryIO, *, part_s: float, ask: Ask = answer) -> str:
    """Write an open local file to a bucket, in place of a file of its name.

    One larger than ``PART_BYTES`` is sent in parts, one in memory at a time; what is sent of it is
    removed if it cannot be completed, for which a store that is away has ``ABORT_S``.

    Parameters
    ----------
    url : str
        Its address.
    file : BinaryIO
        The local file, at its begin.
    part_s : float
        Longest time of a request that sends bytes [s].
    ask : callable
        Makes the requests; what it raises ends the upload.

    Returns
    -------
    digest : str
        The store's checksum of the file, see ``digest_of``; empty if it does not say.

    Raises
    ------
    LocalFileError
        If the local file has changed while it was sent, or cannot be read.
    OSError
        If the store refuses it.
    UnavailableError
        If the store does not answer, or its libraries are not installed.
    """
    store: WritableStore = store_of(url)
    before = os.fstat(file.fileno())
    if before.st_size > PART_BYTES:
        return _send_parts(store, url, file, before, ask, part_s)
    content = _read(file, before.st_size)
    _check_unchanged(file, before)
    digest: str = ask(url, lambda: store.put(url, content), part_s)
    return digest


def _send_parts(
    store: WritableStore,
    url: str,
    file: BinaryIO,
    before: os.stat_result,
    ask: Ask,
    part_s: float,
) -> str:
    name: str = ask(url, lambda: store.begin(url))
    try:
        tags = [
            ask(url, lambda: store.put_part(url, name, part), part_s)  # noqa: B023
            for part in _parts(file, before)
        ]
        digest: str = ask(url, lambda: store.complete(url, name, tags))
    except BaseException:
        aborted = request(url, lambda: store.abort(url, name))
        with suppress(OSError, SpectrodError, concurrent.futures.TimeoutError):
            aborted.result(ABORT_S)
        raise
    return digest


def _part_bytes(size: int) -> int:
    """Return the size of the parts of a file: a multiple of 256 KiB, as Google has it."""
    return PART_BYTES * -(-size // (PART_BYTES * PARTS_MAX))


def _parts(file: BinaryIO, before: os.stat_result) -> Iterator[SentPart]:
    size = before.st_size
    step = _part_bytes(size)
    for number, first in enumerate(range(0, size, step), 1):
        content = _read(file, min(step, size - first))
        if first + step >= size:  # Google's store makes a file of the last part
            _check_unchanged(file, before)
        yield SentPart(number, first, content, size)


def _read(file: BinaryIO, n_bytes: int) -> bytes:
    try:
        content = file.read(n_bytes)
    except OSError as error:
        raise LocalFileError(error.errno, f"cannot be read: {error.strerror}") from error
    if len(content) != n_bytes:
        raise _changed()
    return content


def _check_unchanged(file: BinaryIO, before: os.stat_result) -> None:
    now = os.fstat(file.fileno())
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise _changed()


def _changed() -> OSError:
    return LocalFileError(errno.EIO, "has changed while it was sent")


def digest_of(url: str, *, ask: Ask = answer) -> str:
    """Return the store's checksum of a file; the same one as long as its content is.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    OSError, UnavailableError
        As ``send``.
    """
    store: WritableStore = store_of(url)
    digest: str = ask(url, lambda: store.digest(url))
    return digest


def is_same(digest: str, file: BinaryIO, *, on_part: Callable[[], object] = lambda: None) -> bool:
    """Return whether a file of a bucket is known to have the content of a local one.

    It is if the store's checksum is the MD5 of the content, or of parts as ``send`` makes them, as
    those of S3 and Google are; stores that encrypt with keys of their own have others.

    Parameters
    ----------
    digest : str
        The store's checksum, of ``digest_of``.
    file : BinaryIO
        The local file, at its begin.
    on_part : callable
        Called after each part of the local file is read; what it raises ends that.

    Raises
    ------
    LocalFileError
        As ``send``.
    """
    before = os.fstat(file.fileno())
    whole, of_parts = hashlib.md5(usedforsecurity=False), hashlib.md5(usedforsecurity=False)
    n_parts = 0
    for part in _parts(file, before):
        whole.update(part.content)
        of_parts.update(hashlib.md5(part.content, usedforsecurity=False).digest())
        n_parts = part.number
        on_part()
    return digest in (whole.hexdigest(), f"{of_parts.hexdigest()}-{n_parts}")


def remove(url: str) -> None:
    """Remove a file of a bucket, if there is one; errors are those of ``upload``."""
    store: WritableStore = store_of(url)
    answer(url, lambda: store.delete(url))


def abort_unfinished(urls: Collection[str], *, ask: Ask = answer) -> None:
    """Remove what killed uploads of files have left; errors are those of ``send``."""
    begin = os.path.commonprefix(list(urls))  # noqa: RUF071 - of keys, not of paths
    store: WritableStore = store_of(begin)
    for url, name in ask(begin, lambda: store.unfinished(begin)):
        if url in urls:
            with suppress(FileNotFoundError):
                ask(url, lambda: store.abort(url, name))  # noqa: B023
