"""Folder of a recording: names of new files, retention, free space on the disk."""

import errno
import heapq
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spectrod.config.settings import RecordingConfig
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.directory import Directory
from spectrod.formats.part import PartFile
from spectrod.formats.segment.appending import lock
from spectrod.lib.confinement import read_only_hint
from spectrod.lib.errors import BusyError, StorageError, storage_errors
from spectrod.lib.output_formats import PART_SUFFIX, continuous
from spectrod.recording.ownership import Owner
from spectrod.recording.recorder_clock import Clock

CHECKED_AT_ONCE: Final = 200
"""Number of files whose origin one ``tidy`` reads, which bounds its time."""

_FOLDER_MODE = 0o750
_MB = 1_000_000
_DAY_NS = 86400 * NS_PER_S
_BATCH = 1000
_RETURN = 1.1
"""Factor by which free space must exceed the limit again. Without it a recording would stop and
restart with each file that another program makes and deletes."""


@dataclass(frozen=True, order=True, slots=True)
class _FinishedFile:
    """A finished file, in the order in which files are deleted."""

    finished_ns: int
    name: str
    n_bytes: int
    inode: int


class RecordingFolder:
    """Files of one recording of one source, in a folder that it locks.

    The folders between the base folder and this one are opened without following links, and all
    operations in the folder use its descriptor, so that links and renames cannot redirect them.
    Only files that the recording has written are counted and deleted, see ``Owner``. One thread.

    Parameters
    ----------
    folder : Path
        Path of the folder, which is made with the first file.
    config : RecordingConfig
        The recording's configuration.
    owner : Owner
        Identifies the recording's files.
    clock : Clock
        Clock of the files' times.
    base : Path, optional
        The operator's folder, which contains ``folder``; its path may contain links. The parent of
        ``folder`` by default.

    Attributes
    ----------
    n_files, n_bytes : int
        Number and total length [bytes] of the recording's finished files at the last ``tidy``.
    claimed : Directory or None
        The folder, while this recording has locked it.
    foreign : list of str
        Names of finished files with these suffixes that the recording did not write.
    n_untried : int
        Number of finished files that ``tidy`` has not tried to read yet.
    """

    def __init__(
        self,
        folder: Path,
        config: RecordingConfig,
        owner: Owner,
        clock: Clock,
        base: Path | None = None,
    ) -> None:
        self.path = folder
        self._base = folder.parent if base is None else base
        self._names = folder.relative_to(self._base).parts
        self._config, self._owner, self._clock = config, owner, clock
        self.claimed: Directory | None = None
        # The last result for each file; a changed file is checked again.
        self._known: dict[str, tuple[_FinishedFile, bool]] = {}
        self._failed_reads = Counter[str]()
        self.n_files = self.n_bytes = 0
        self.foreign: list[str] = []
        self.n_untried = 0

    # ---- the folder

    def new_file(self, stem: str, suffix: str) -> PartFile:
        """Choose the name of a new file, and make the folder if it is missing.

        Raises
        ------
        BusyError, StorageError
            If the folder cannot be made or locked.
        """
        directory = self.made()
        try:
            name = directory.free_name(f"{stem}{suffix}", PART_SUFFIX)
        except OSError as error:
            raise self._error(error) from error
        return PartFile(self.path / name, directory)

    def made(self) -> Directory:
        """Return the locked folder; make it if it is missing. Raises the errors of ``new_file``."""
        try:
            self._require_mounted()
            self._base.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
            found = self._open(make=True)
        except OSError as error:
            raise self._error(error) from error
        return self._take(found)

    def claim(self) -> None:
        """Lock the folder, if it exists, for this recording until ``release``.

        Raises
        ------
        BusyError
            If another program records into it: each would recover the other's unfinished files.
        StorageError
            If it cannot be opened, or a folder of its path is a link.
        """
        try:
            self._require_mounted()
            found = self._open()
        except FileNotFoundError:  # reported when a file cannot be made
            return
        except OSError as error:
            raise self._error(error) from error
        self._take(found)

    def release(self) -> None:
        """Unlock the folder. Idempotent."""
        if self.claimed is not None:
            self.claimed.close()
            self.claimed = None
            self._known.clear()
            self._failed_reads.clear()

    def is_in_place(self) -> bool:
        """Return whether the path still leads to the locked folder; True if none is locked."""
        if self.claimed is None:
            return True
        try:
            with self._open() as found:
                return _is_same(found, self.claimed)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # unknown: the next write will show it
            return True

    def _open(self, *, make: bool = False) -> Directory:
        """Open the folder through all folders below the base, none of which may be a link."""
        directory = Directory.open(self._base)
        for name in self._names:
            try:
                below = directory.make_child(name, _FOLDER_MODE) if make else directory.child(name)
            finally:
                directory.close()
            directory = below
        return directory

    def _require_mounted(self) -> None:
        """Raise StorageError if the disk that must be mounted is not."""
        if not self._is_mounted():
            mount_point = self._config.must_be_mounted
            raise StorageError(f"{mount_point}: no disk is mounted there (must_be_mounted)")

    def _is_mounted(self) -> bool:
        """Return whether ``must_be_mounted`` is a mount point of another file system, or empty.

        A bind mount does not count: under ``ReadWritePaths=``, systemd makes one of an empty mount
        point.
        """
        if not self._config.must_be_mounted:
            return True
        mount_point = Path(self._config.must_be_mounted)
        try:
            return mount_point.stat().st_dev != mount_point.parent.stat().st_dev
        except FileNotFoundError:
            return False

    def _take(self, found: Directory) -> Directory:
        try:
            if self.claimed is not None and _is_same(found, self.claimed):
                found.close()
                return self.claimed
            is_free = lock(found.fileno())
        except OSError as error:
            found.close()
            raise self._error(error) from error
        if not is_free:
            found.close()
            raise BusyError(f"{self.path}: another program records into it")
        self.release()
        self.claimed = found
        return found

    def _error(self, error: OSError) -> StorageError:
        hint = read_only_hint(self.path) if error.errno == errno.EROFS else ""
        reason = f"{error.strerror or error}{f'; {hint}' if hint else ''}"
        return StorageError(f"{self.path}: {self._link() or reason}")

    def _link(self) -> str:
        """Return a text if a folder of the path is a link, else an empty one."""
        path = self._base
        for name in self._names:
            path /= name
            try:
                if path.is_symlink():
                    return f"{path.name} is a link: links below {self._base} are not followed"
            except OSError:
                break
        return ""

    # ---- files

    def stamp(self, name: str) -> int:
        """Set the time of a finished file from the recorder's clock, for retention.

        Returns its length [bytes].
        """
        assert self.claimed is not None
        with storage_errors(self.path / name):
            self.claimed.set_times(name, self._clock.utc_ns())
            found = self.claimed.find(name)
        if found is None:
            raise StorageError(f"{self.path / name}: was removed when it was finished")
        file = _file(name, found)
        self._known[name] = file, True
        return file.n_bytes

    def unfinished(self) -> tuple[list[Path], list[str]]:
        """Find files that a daemon left unfinished, in the locked folder.

        Returns
        -------
        own : list of Path
            Files that this recording was writing.
        others : list of str
            Names of files of other writers.

        Raises
        ------
        StorageError
            If the folder cannot be read.
        """
        own: list[Path] = []
        others: list[str] = []
        if self.claimed is None:
            return own, others
        endings = tuple(suffix + PART_SUFFIX for suffix in continuous())
        try:
            for file in sorted(self._scan(endings), key=lambda one: one.name):
                if self._owner.wrote(self.claimed, file.name):
                    own.append(self.path / file.name)
                else:
                    others.append(file.name)
        except OSError as error:
            raise self._error(error) from error
        return own, others

    # ---- room on the disk

    def free_bytes(self) -> int | None:
        """Return the free space of the disk [bytes]; None if it cannot be determined."""
        try:
            if self.claimed is not None:
                return _free_bytes(self.claimed.statvfs())
            if not self._is_mounted():  # the folders above are of another disk
                return None
            for folder in (self.path, *self.path.parents):
                with suppress(FileNotFoundError):
                    return _free_bytes(os.statvfs(folder))
        except OSError:
            pass
        return None

    def has_room(self, *, had_room: bool) -> bool:
        """Return whether enough space is free; after a full disk, a tenth more is required."""
        free_bytes = self.free_bytes()
        needed_bytes = self._config.min_free_mb * _MB * (1.0 if had_room else _RETURN)
        return free_bytes is None or free_bytes >= needed_bytes

    # ---- retention

    def tidy(self, open_bytes: int) -> list[str]:
        """Delete expired files in the locked folder; return their names.

        Parameters
        ----------
        open_bytes : int
            Length of the files that are being written, which count too.

        Raises
        ------
        StorageError
            If a file cannot be deleted.
        """
        deleted: list[str] = []
        if self.claimed is None:
            return deleted
        while True:
            files = self._survey(self.claimed)
            n_bytes, n_before = self.n_bytes + open_bytes, len(deleted)
            for file in files:
                if not self._must_delete(file, n_bytes):
                    return deleted
                self._delete(self.claimed, file)
                deleted.append(file.name)
                n_bytes -= file.n_bytes
                self.n_bytes -= file.n_bytes
                self.n_files -= 1
            if len(deleted) == n_before:
                return deleted

    def _survey(self, directory: Directory) -> list[_FinishedFile]:
        """Count the recording's finished files; return the oldest of them in order."""
        try:
            found = {file.name: file for file in self._scan(tuple(continuous()))}
            self._known = {
                name: known for name, known in self._known.items() if found.get(name) == known[0]
            }
            new = [file for name, file in found.items() if name not in self._known]
            self._failed_reads = Counter({one.name: self._failed_reads[one.name] for one in new})
            for file in heapq.nsmallest(CHECKED_AT_ONCE, new, self._turn):
                is_own = self._owner.wrote(directory, file.name)
                if is_own is not None:
                    self._known[file.name] = file, is_own
                else:
                    self._failed_reads[file.name] += 1
        except OSError as error:
            raise self._error(error) from error
        own = [file for file, is_own in self._known.values() if is_own]
        self.foreign = [file.name for file, is_own in self._known.values() if not is_own]
        self.n_untried = len(found) - len(self._known) - len(+self._failed_reads)
        self.n_files, self.n_bytes = len(own), sum(file.n_bytes for file in own)
        return heapq.nsmallest(_BATCH, own)

    def _turn(self, file: _FinishedFile) -> tuple[int, _FinishedFile]:
        """Return the sort key for reading: the oldest file first, since it may be deleted next.

        An unreadable file waits until all others were tried as often. Otherwise many old unreadable
        files would prevent the recording from ever finding its own.
        """
        return self._failed_reads[file.name], file

    def _scan(self, endings: tuple[str, ...]) -> Iterator[_FinishedFile]:
        """Yield the regular files with these endings, no links or pipes."""
        assert self.claimed is not None
        with self.claimed.scan() as entries:
            for entry in entries:
                if entry.name.endswith(endings) and entry.is_file(follow_symlinks=False):
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # deleted meanwhile
                        continue
                    yield _file(entry.name, found)

    def _must_delete(self, file: _FinishedFile, n_bytes: int) -> bool:
        config = self._config
        age_ns = self._clock.utc_ns() - file.finished_ns
        is_old = config.keep_days > 0 and age_ns > config.keep_days * _DAY_NS
        is_much = config.keep_mb > 0 and n_bytes > config.keep_mb * _MB
        is_full = config.when_full == "delete" and not self.has_room(had_room=True)
        return is_old or is_much or is_full

    def _delete(self, directory: Directory, file: _FinishedFile) -> None:
        with storage_errors(self.path / file.name):
            found = directory.find(file.name)
            # A file that has replaced it since the survey stays.
            if found is not None and _file(file.name, found) == file:
                directory.remove(file.name)


def _file(name: str, found: os.stat_result) -> _FinishedFile:
    # The inode alone is not enough: file systems reuse the numbers.
    return _FinishedFile(found.st_mtime_ns, name, found.st_size, found.st_ino)


def _is_same(one: Directory, other: Directory) -> bool:
    return os.path.samestat(os.fstat(one.fileno()), os.fstat(other.fileno()))


def _free_bytes(found: os.statvfs_result) -> int:
    return found.f_bavail * found.f_frsize
