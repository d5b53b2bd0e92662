"""Cache of compiled programs in a folder, for later processes.

Any number of processes may share a folder: a file appears whole or not at all, and contains a hash
of its content. A damaged file or an unusable folder only costs a compilation and is no error.
Nothing is loaded from a folder that others may write to.
"""

import hashlib
import logging
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from spectrod.opencl.trust import planted_by

_HASH_BYTES = hashlib.sha256().digest_size
_MAX_BYTES = 256 << 20
_STORE_S = 2.0

_log = logging.getLogger(__name__)


def default_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this user's compiled programs: ``$XDG_CACHE_HOME/spectrod/programs``."""
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    # By the XDG specification, a relative path is ignored.
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:  # a user without a home; nothing can be stored below a file
            base = Path(os.devnull)
    return base / "spectrod" / "programs"


class BinaryCache:
    """Binaries by key; the least recently used are removed when there are too many.

    Parameters
    ----------
    folder : Path, optional
        Folder of the binaries, made at the first store. By default ``default_folder()``.
    max_bytes : int
        Maximum total size of the files, exceeded briefly while a file is added [bytes]. 0 for no
        cache.
    store_s : float
        Maximum time that storing may delay the end of a context or of the process [s].
    """

    def __init__(
        self, folder: Path | None = None, max_bytes: int = _MAX_BYTES, store_s: float = _STORE_S
    ) -> None:
        self.folder = folder or default_folder()
        self.max_bytes = max_bytes
        self.store_s = store_s
        self._has_warned = False

    def load(self, key: str) -> bytes | None:
        """Return the binary of a key; None if it is missing, damaged, or could be of others."""
        if self.max_bytes == 0 or not self._is_own():
            return None
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):  # on a read-only disk nothing is removed anyway
            os.utime(path)  # sets the order of removal
        digest, binary = content[:_HASH_BYTES], content[_HASH_BYTES:]
        if hashlib.sha256(binary).digest() != digest:
            _log.debug("%s is damaged", path)
            return None
        return binary

    def store(self, key: str, binary: bytes) -> None:
        """Store a binary, if the folder is writable, and by this user alone."""
        if not self._is_own():
            return
        try:
            self._write(self._path(key), hashlib.sha256(binary).digest() + binary)
            self._shrink()
        except OSError as error:
            _log.debug("compiled programs are not stored: %s", error)

    def is_writable(self) -> bool:
        """Return whether a binary can be stored; makes the folder if it is missing."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                return True
        except OSError:
            return False

    def _is_own(self) -> bool:
        reason = planted_by(self.folder)
        if reason and not self._has_warned:
            self._has_warned = True
            _log.warning("compiled programs are neither loaded nor stored: %s", reason)
        return not reason

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.bin"

    def _write(self, path: Path, content: bytes) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def _shrink(self) -> None:
        """Remove the oldest files, including partial files of killed processes."""
        files = [(path, path.stat()) for path in self.folder.iterdir() if path.is_file()]
        surplus = sum(status.st_size for _, status in files) - self.max_bytes
        for path, status in sorted(files, key=lambda file: file[1].st_mtime):
            if surplus <= 0:
                return
            path.unlink(missing_ok=True)
            surplus -= status.st_size
