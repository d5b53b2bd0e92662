"""The folder of a recording: names of new files, what is kept, room on the disk."""

import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spectrod.errors import BusyError, StorageError
from spectrod.record.segment.appending import lock
from spectrod.recorder.clock import Clock
from spectrod.settings import RecordingConfig

SUFFIXES: Final = (".spd", ".wav", ".flac")
PART: Final = ".part"

_FOLDER_MODE = 0o750
_MB = 1_000_000
_DAY_NS = 86400 * 1_000_000_000
_BATCH = 1000
_RETURN = 1.1
"""Space must come back by so much more than it was short of, or a recording would begin and end
with each file that another program makes and deletes."""


@dataclass(frozen=True, order=True, slots=True)
class _File:
    """A finished file, in the order in which files are deleted."""

    finished_ns: int
    name: str
    n_bytes: int


class Shelf:
    """Files of one recording of one source, and nothing else, in a folder of their own.

    Whatever is finished there under a suffix of ours is the recording's, and may be deleted by its
    rules; others and unfinished files are left alone. One thread.

    Parameters
    ----------
    folder : Path
        Made when the first file is.
    config : RecordingConfig
        Its rules.
    clock : Clock
        Whose time files have.

    Attributes
    ----------
    n_files, n_bytes : int
        Finished files at the last ``tidy``, and their length [bytes].
    """

    def __init__(self, folder: Path, config: RecordingConfig, clock: Clock) -> None:
        self.folder = folder
        self._config, self._clock = config, clock
        self._lock = -1
        self.n_files = self.n_bytes = 0

    def new_path(self, stem: str, suffix: str) -> Path:
        """Make a name that no file has, and the folder if it is missing.

        Raises
        ------
        StorageError
            If the folder cannot be made.
        """
        folder = self.made()
        k, path = 0, folder / f"{stem}{suffix}"
        while _is_taken(path):
            k += 1
            path = folder / f"{stem}_{k}{suffix}"  # sorts behind the one without
        return path

    def made(self) -> Path:
        """Make the folder if it is missing, and return it; raises StorageError."""
        try:
            self.folder.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self.folder}: {error.strerror}") from error
        self.claim()
        return self.folder

    def claim(self) -> None:
        """Take the folder, if it is there, for this recording alone until ``release``.

        Raises
        ------
        BusyError
            If another program records into it: each would take the other's files for left over.
        StorageError
            If it cannot be looked at.
        """
        try:
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):  # told by what cannot be written
            return
        except OSError as error:
            raise StorageError(f"{self.folder}: {error.strerror}") from error
        if self._lock >= 0 and os.path.samestat(os.fstat(self._lock), os.fstat(descriptor)):
            os.close(descriptor)
            return
        if not lock(descriptor):
            os.close(descriptor)
            raise BusyError(f"{self.folder}: another program records into it")
        self.release()
        self._lock = descriptor

    def release(self) -> None:
        """Let others take the folder. Idempotent."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def stamp(self, path: Path) -> int:
        """Give a finished file the time of the recorder's clock, by which it is kept.

        Returns its length [bytes].
        """
        now_ns = self._clock.utc_ns()
        try:
            os.utime(path, ns=(now_ns, now_ns))
            return path.stat().st_size
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from error

    def unfinished(self) -> list[Path]:
        """Find the files that were being written when a daemon ended."""
        endings = tuple(suffix + PART for suffix in SUFFIXES)
        try:
            return sorted(self.folder / one.name for one in self._scan(endings))
        except (FileNotFoundError, NotADirectoryError):  # told by what cannot be written
            return []
        except OSError as error:
            raise StorageError(f"{self.folder}: {error.strerror}") from error

    def free_bytes(self) -> int | None:
        """Say how much is free on the disk; None if nobody can tell, as of a folder to be made."""
        for folder in (self.folder, *self.folder.parents):
            try:
                found = os.statvfs(folder)
            except FileNotFoundError:
                continue
            except OSError:
                return None
            return found.f_bavail * found.f_frsize
        return None

    def has_room(self, *, had_room: bool) -> bool:
        """Whether enough is free; where there was not, it must be a tenth more."""
        free_bytes = self.free_bytes()
        wanted = self._config.min_free_mb * _MB * (1.0 if had_room else _RETURN)
        return free_bytes is None or free_bytes >= wanted

    def tidy(self, open_bytes: int) -> list[str]:
        """Delete what is not to be kept, of a folder that was claimed; return the names.

        Parameters
        ----------
        open_bytes : int
            Length of the files that are being written, which count as well.

        Raises
        ------
        StorageError
            If a file cannot be deleted.
        """
        deleted: list[str] = []
        if self._lock < 0:
            return deleted
        while True:
            files = self._survey()
            n_bytes, n_before = self.n_bytes + open_bytes, len(deleted)
            for file in files:
                if not self._is_to_go(file, n_bytes):
                    return deleted
                self._delete(file)
                deleted.append(file.name)
                n_bytes -= file.n_bytes
                self.n_bytes -= file.n_bytes
                self.n_files -= 1
            if len(deleted) == n_before:
                return deleted

    def _survey(self) -> list[_File]:
        """Count the finished files; return the oldest of them, in their order."""
        self.n_files = self.n_bytes = 0
        try:
            return heapq.nsmallest(_BATCH, self._files())
        except (FileNotFoundError, NotADirectoryError):  # told by what cannot be written
            return []
        except OSError as error:
            raise StorageError(f"{self.folder}: {error.strerror}") from error

    def _files(self) -> Iterator[_File]:
        for entry in self._scan(SUFFIXES):
            found = entry.stat(follow_symlinks=False)
            self.n_files += 1
            self.n_bytes += found.st_size
            yield _File(found.st_mtime_ns, entry.name, found.st_size)

    def _scan(self, endings: tuple[str, ...]) -> Iterator[os.DirEntry[str]]:
        """Yield the regular files of such names: links lead elsewhere, and pipes never answer."""
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(endings) and entry.is_file(follow_symlinks=False):
                    yield entry

    def _is_to_go(self, file: _File, n_bytes: int) -> bool:
        config = self._config
        age_ns = self._clock.utc_ns() - file.finished_ns
        is_old = config.keep_days > 0 and age_ns > config.keep_days * _DAY_NS
        is_much = config.keep_mb > 0 and n_bytes > config.keep_mb * _MB
        is_full = config.when_full == "delete" and not self.has_room(had_room=True)
        return is_old or is_much or is_full

    def _delete(self, file: _File) -> None:
        path = self.folder / file.name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from error


def _is_taken(path: Path) -> bool:
    return os.path.lexists(path) or os.path.lexists(f"{path}{PART}")
