"""Writes files of buckets: each appears whole under its name, or not at all."""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from spectrod.lib.errors import SpectrodError
from spectrod.lib.regular_files import open_regular
from spectrod.source.store.file_part import SentPart, refused
from spectrod.source.store.stores import WritableStore, request, store_of

PART_BYTES = 1 << 23
"""Largest file of one request, and least size of a part [bytes]."""
PARTS_MAX = 10_000
"""Most parts of a file that S3 takes."""
PART_S = 120.0
"""Longest time of a request that sends bytes [s]: parts arrive at 70 kB/s and more."""


def upload(url: str, path: Path) -> None:
    """Write a local file to a bucket, in place of a file of its name.

    One larger than ``PART_BYTES`` is sent in parts, one in memory at a time; what is sent of it is
    removed if it cannot be completed.

    Parameters
    ----------
    url : str
        Its address.
    path : Path
        The local file.

    Raises
    ------
    OSError
        If the local file cannot be read, or the store refuses it.
    UnavailableError
        If the store does not answer, or its libraries are not installed.
    """
    store: WritableStore = store_of(url)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > PART_BYTES:
            _upload_parts(store, url, file, size)
            return
        content = file.read(PART_BYTES + 1)
    if len(content) != size:
        raise refused("has changed while it was sent")
    request(url, lambda: store.put(url, content), PART_S).result()


def _upload_parts(store: WritableStore, url: str, file: BinaryIO, size: int) -> None:
    name: str = request(url, lambda: store.begin(url)).result()
    try:
        tags = [
            request(url, lambda: store.put_part(url, name, part), PART_S).result()  # noqa: B023
            for part in _parts(file, size)
        ]
        request(url, lambda: store.complete(url, name, tags)).result()
    except BaseException:
        with suppress(OSError, SpectrodError):
            request(url, lambda: store.abort(url, name)).result()
        raise


def _parts(file: BinaryIO, size: int) -> Iterator[SentPart]:
    # A multiple of 256 KiB, as Google has it.
    step = PART_BYTES * -(-size // (PART_BYTES * PARTS_MAX))
    for number, first in enumerate(range(0, size, step), 1):
        content = file.read(step)
        if len(content) != min(step, size - first):
            raise refused("has changed while it was sent")
        yield SentPart(number, first, content, size)


def remove(url: str) -> None:
    """Remove a file of a bucket, if there is one; errors are those of ``upload``."""
    store: WritableStore = store_of(url)
    request(url, lambda: store.delete(url)).result()


def abort_unfinished(urls: Collection[str]) -> None:
    """Remove what killed uploads of files have left; errors are those of ``upload``."""
    begin = os.path.commonprefix(list(urls))  # noqa: RUF071 - of keys, not of paths
    store: WritableStore = store_of(begin)
    for url, name in request(begin, lambda: store.unfinished(begin)).result():
        if url in urls:
            with suppress(FileNotFoundError):
                request(url, lambda: store.abort(url, name)).result()  # noqa: B023
