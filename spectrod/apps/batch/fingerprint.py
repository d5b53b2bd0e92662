"""Identity of input files: size, time of change, and a digest of the first and the last block."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from spectrod.apps.batch.job import DIGEST_CHARS
from spectrod.lib.regular_files import open_regular
from spectrod.source.store.remote_file import RemoteFile
from spectrod.source.store.urls import is_url

BLOCK_BYTES = 1 << 14


class Fingerprint(NamedTuple):
    """Identity of a file's content, as far as it can be had without reading it all.

    Attributes
    ----------
    size : int
        [bytes]
    mtime_ns : int
        When it was modified [ns since 1970].
    digest : str
        SHA-256 of its first and its last 16 KiB, 32 hexadecimal digits. Of a file of a store that
        states no time, its ETag is part of it.
    """

    size: int
    mtime_ns: int
    digest: str


def fingerprint(path: str | Path) -> Fingerprint:
    """Return the identity of a file.

    Raises
    ------
    OSError
        If it cannot be read.
    UnavailableError
        If its store does not answer.
    """
    if is_url(str(path)):
        return _of_store(str(path))
    with open_regular(path) as file:
        found = os.fstat(file.fileno())
        content = hashlib.sha256(file.read(BLOCK_BYTES))
        if found.st_size > BLOCK_BYTES:
            file.seek(max(BLOCK_BYTES, found.st_size - BLOCK_BYTES))
            content.update(file.read(BLOCK_BYTES))
    return Fingerprint(found.st_size, found.st_mtime_ns, content.hexdigest()[:DIGEST_CHARS])


def _of_store(url: str) -> Fingerprint:
    with RemoteFile(url) as file:
        content = hashlib.sha256(file.read(BLOCK_BYTES))
        if file.size > BLOCK_BYTES:
            file.seek(max(BLOCK_BYTES, file.size - BLOCK_BYTES))
            content.update(file.read(BLOCK_BYTES))
        if not file.mtime_ns:
            content.update(file.etag.encode())
        return Fingerprint(file.size, file.mtime_ns, content.hexdigest()[:DIGEST_CHARS])
