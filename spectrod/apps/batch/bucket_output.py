"""Results in a bucket: computed on this machine, then uploaded under their names."""

import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from spectrod.lib.errors import SpectrodError, StorageError, storage_errors
from spectrod.source.store.bucket_errors import answers, bucket_errors
from spectrod.source.store.remote_file import RemoteFile
from spectrod.source.store.store_listing import list_sizes, size_of
from spectrod.source.store.stores import store_of
from spectrod.source.store.uploads import abort_unfinished, remove, upload

READERS = 16
"""Files that a snapshot reads at a time."""
AHEAD_FILES = 128
"""Files that a snapshot reads before they are asked for."""
_COPY_BYTES = 1 << 22
_DIGEST_CHARS = 16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class BucketOutput:
    """Results in a bucket of S3's or Google's protocol, see ``JobOutput``.

    Locks are of this machine alone: of two machines that compute one unit, the last one's files
    stay, which have the same bytes.

    Parameters
    ----------
    address : str
        Bucket and folder, without ``/`` at the end.

    Raises
    ------
    UnavailableError
        If the libraries of the extra ``cloud`` are not installed.
    """

    def __init__(self, address: str) -> None:
        store_of(address)
        self._address = address

    @property
    def scratch(self) -> Path:
        """Folder of this user and this output in that of temporary files; made if missing."""
        digest = hashlib.sha256(self._address.encode()).hexdigest()[:_DIGEST_CHARS]
        return _own_folder(f"spectrod-batch-{os.geteuid()}") / digest

    def place(self, name: str) -> str:
        """Return an address."""
        return f"{self._address}/{name}"

    def prepare(self, names: Collection[str]) -> None:
        """Remove what killed uploads of files have left, where the bucket lets it be listed."""
        with bucket_errors(self._address), suppress(PermissionError):
            abort_unfinished([self.place(name) for name in names])

    def size(self, name: str) -> int | None:
        """Return the size of a file; see ``JobOutput``."""
        with bucket_errors(self.place(name)):
            return size_of(self.place(name))

    def read(self, name: str, bytes_max: int) -> bytes:
        """Return the content of a file; see ``JobOutput``."""
        with answers(), RemoteFile(self.place(name)) as file:
            if file.size > bytes_max:
                raise OSError(errno.EFBIG, f"must have at most {bytes_max} bytes")
            return file.readall()

    @contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        """Yield the path of a copy of a file, which ends with the block; see ``JobOutput``."""
        with self._copy(name) as path:
            with bucket_errors(self.place(name)), suppress(FileNotFoundError):
                _download(self.place(name), path)
            yield path

    @contextmanager
    def written(self, name: str) -> Iterator[Path]:
        """Yield the path of a file that is uploaded after the block; see ``JobOutput``."""
        with self._copy(name) as path:
            yield path
            self.publish({name: path})

    def publish(self, files: Mapping[str, Path]) -> None:
        """Upload files; see ``JobOutput``."""
        for name, path in files.items():
            with bucket_errors(self.place(name)):
                upload(self.place(name), path)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with bucket_errors(self.place(name)):
            remove(self.place(name))

    def snapshot(self, names: Collection[str]) -> "BucketOutput":
        """Return the output as it is now; see ``JobOutput``."""
        with answers():
            return _Snapshot(self._address, list_sizes(self._address), names)

    @contextmanager
    def _copy(self, name: str) -> Iterator[Path]:
        """Yield a free path of a file's name; errors of the block name the file of the bucket."""
        with storage_errors(tempfile.gettempdir()):
            folder = Path(tempfile.mkdtemp(prefix="spectrod-batch-"))
        path, place = folder / name.rpartition("/")[2], self.place(name)
        try:
            yield path
        except SpectrodError as error:
            raise error.reworded(lambda text: text.replace(str(path), place)) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class _Snapshot(BucketOutput):
    """A bucket as it was listed; files of ``names`` are read ahead."""

    def __init__(self, address: str, sizes: Mapping[str, int], names: Collection[str]) -> None:
        super().__init__(address)
        self._sizes = sizes
        self._names = [name for name in names if name in sizes]
        self._index = {name: k for k, name in enumerate(self._names)}
        self._content: dict[str, bytes] = {}

    def size(self, name: str) -> int | None:
        """Return the size of a file, by the list."""
        return self._sizes.get(name)

    def read(self, name: str, bytes_max: int) -> bytes:
        """Return the content of a file."""
        if name not in self._sizes:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if name in self._index and name not in self._content:
            first = self._index[name]
            self._read_many(self._names[first : first + AHEAD_FILES], bytes_max)
        return self._content.pop(name, b"") or super().read(name, bytes_max)

    def _read_many(self, names: Sequence[str], bytes_max: int) -> None:
        def read(name: str) -> None:
            with suppress(OSError):  # raised when it is asked for
                self._content[name] = BucketOutput.read(self, name, bytes_max)

        with ThreadPoolExecutor(READERS) as threads:
            list(threads.map(read, names))


def _download(url: str, path: Path) -> None:
    with RemoteFile(url) as file, path.open("xb") as copy:
        while content := file.read(_COPY_BYTES):
            with storage_errors(path.parent):
                copy.write(content)


def _own_folder(name: str) -> Path:
    """Return a folder among the temporary ones that nobody else can write into."""
    path = Path(tempfile.gettempdir()) / name
    with storage_errors(path):
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
        raise StorageError(f"{path}: must be a folder of this user alone; set TMPDIR to another")
    return path
