"""A file with the name NAME.part until it is finished."""

import contextlib
import errno
import os
from pathlib import Path

from spectrod.formats.directory import Directory
from spectrod.formats.path_links import written_path
from spectrod.formats.whole_files import check_replaceable
from spectrod.lib.errors import storage_errors
from spectrod.lib.output_formats import PART_SUFFIX


class PartFile:
    """Names of a file that is being written, in an open directory.

    A finished file never replaces one that was made meanwhile: it takes the next free name,
    ``NAME_1``, and logs it. Without ``directory``, a file that had this name at the start is
    replaced: the user named it explicitly. Methods raise OSErrors.

    Parameters
    ----------
    path : Path
        The final path, which may be a link if ``directory`` is not given.
    directory : Directory, optional
        Directory in which the last part of the path is looked up, duplicated; by default opened
        from the path.

    Attributes
    ----------
    path : Path
        The final path; after ``publish`` the one that the file actually has.

    Raises
    ------
    StorageError
        If no file can be made there, or the path is that of a directory, a device or a file without
        write permission, or has a link of another user.
    """

    def __init__(self, path: Path, directory: Directory | None = None) -> None:
        self.path = path
        target = path if directory else written_path(path)
        self._name = target.name
        self._identity: tuple[int, int] | None = None
        with storage_errors(path):
            if directory is None:
                check_replaceable(path)
            self._replaces = directory is None and os.path.lexists(target)
            self._directory = directory.duplicate() if directory else Directory.open(target.parent)
            self._check_creatable_or_close()

    @classmethod
    def of(cls, path: "str | os.PathLike[str] | PartFile") -> "PartFile":
        """Return the names of a file at a path, or an existing ``PartFile`` unchanged."""
        return path if isinstance(path, PartFile) else cls(Path(path))

    def _check_creatable_or_close(self) -> None:
        try:
            self._check_creatable()
        except BaseException:
            self.close()
            raise

    def _check_creatable(self) -> None:
        """Check early that files can be made here, and leave nothing behind."""
        probe = f".spectrod-{os.urandom(6).hex()}{PART_SUFFIX}"
        os.close(self._directory.create(probe))
        self._directory.remove(probe)

    @property
    def part(self) -> Path:
        """Path of the unfinished file, for messages."""
        return self._directory.path / self._part

    @property
    def _part(self) -> str:
        return self._name + PART_SUFFIX

    def is_taken(self) -> bool:
        """Return whether such an unfinished file exists."""
        return self._directory.find(self._part) is not None

    def open_taken(self) -> int:
        """Open the existing unfinished file for reading; return its descriptor."""
        return self._directory.open_file(self._part)

    def create(self) -> int:
        """Make the unfinished file, and return its descriptor; FileExistsError if it exists."""
        descriptor = self._directory.create(self._part)
        try:
            found = os.fstat(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._identity = found.st_dev, found.st_ino
        return descriptor

    def synchronise(self) -> None:
        """Synchronise the directory, so that the file's name survives a power failure."""
        self._directory.synchronise()

    def publish(self) -> None:
        """Give the file its final name; FileNotFoundError if it was removed."""
        if not self._is_there():
            raise FileNotFoundError(errno.ENOENT, "was removed while it was being written")
        if self._replaces:
            self._directory.rename(self._part, self._name)
            self._directory.synchronise()
            return
        name = self._directory.publish(self._part, self._name)
        if name != self._name:
            self._name, self.path = name, self.path.with_name(name)

    @property
    def directory(self) -> Directory:
        """The directory of the file."""
        return self._directory

    def replace_with(self, name: str) -> None:
        """Put another file of the directory in the place of the unfinished one."""
        found = os.stat(name, dir_fd=self._directory.fileno(), follow_symlinks=False)
        self._directory.rename(name, self._part)
        self._identity = found.st_dev, found.st_ino

    def remove(self) -> None:
        """Delete the unfinished file if possible and if it is still the one that was made."""
        with contextlib.suppress(OSError):
            if self._is_there():
                self._directory.remove(self._part)

    def close(self) -> None:
        """Close the directory. Idempotent."""
        self._directory.close()

    def _is_there(self) -> bool:
        found = self._directory.find(self._part)
        return found is not None and (found.st_dev, found.st_ino) == self._identity
