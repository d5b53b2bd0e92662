"""Results in a folder of this machine, or of a file system that it sees."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from spectrod.apps.batch.folders import make_folder, open_folder
from spectrod.formats.whole_files import sync
from spectrod.lib.errors import storage_errors
from spectrod.lib.regular_files import read_regular


class FolderOutput:
    """Results in a folder, see ``JobOutput``.

    Parameters
    ----------
    folder : Path
        The folder, which is made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self.scratch = folder

    def place(self, name: str) -> str:
        """Return a path."""
        return str(self._path(name))

    def prepare(self, names: Collection[str]) -> None:
        """Make the folders of files."""
        for parents in {_parents(name) for name in names}:
            make_folder(self.scratch, *parents)

    def size(self, name: str) -> int | None:
        """Return the size of a file; see ``JobOutput``."""
        try:
            return self._path(name).stat().st_size
        except OSError:
            return None

    def read(self, name: str, bytes_max: int) -> bytes:
        """Return the content of a file; see ``JobOutput``."""
        return read_regular(self._path(name), bytes_max)

    @contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        """Yield the path of a file."""
        yield self._path(name)

    @contextmanager
    def written(self, name: str) -> Iterator[Path]:
        """Yield the path of a file, whose writer lets it appear whole."""
        make_folder(self.scratch, *_parents(name))
        yield self._path(name)

    def publish(self, files: Mapping[str, Path]) -> None:
        """Rename files; see ``JobOutput``."""
        for parents in dict.fromkeys(_parents(name) for name in files):
            target = self.scratch.joinpath(*parents)
            with storage_errors(target):
                with open_folder(self.scratch, *parents) as directory:
                    for name, path in files.items():
                        if _parents(name) == parents:
                            final = name.rpartition("/")[2]
                            os.rename(path, final, dst_dir_fd=directory.fileno())
                sync(target)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        path = self._path(name)
        with storage_errors(path):
            path.unlink(missing_ok=True)

    def snapshot(self, _: Collection[str]) -> "FolderOutput":
        """Return itself: files of a folder are quick to ask for."""
        return self

    def _path(self, name: str) -> Path:
        return self.scratch / name


def _parents(name: str) -> tuple[str, ...]:
    return tuple(name.split("/")[:-1])
