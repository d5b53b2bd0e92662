"""The folder of a recording: names of new files, what is kept, room on the disk."""

import heapq
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spectrod.errors import BusyError, StorageError, storage_error
from spectrod.formats.directory import Directory
from spectrod.formats.part import PART_SUFFIX, PartFile
from spectrod.formats.segment.appending import lock
from spectrod.recording.clock import Clock
from spectrod.recording.ownership import Owner
from spectrod.settings import RecordingConfig
from spectrod.units import NS_PER_S

SUFFIXES: Final = (".spd", ".wav", ".flac")

CHECKED_AT_ONCE: Final = 200
"""Files of which one ``tidy`` reads the origin, so that the recorder's thread is not kept long."""

_FOLDER_MODE = 0o750
_MB = 1_000_000
_DAY_NS = 86400 * NS_PER_S
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
    inode: int


class RecordingFolder:
    """Files of one recording of one source, in a folder that it claims for itself.

    The folders between the base folder and this one are opened without following links, and all
    that is done in the folder is done by its descriptor, so that links and renames lead nothing
    elsewhere. Only files that the recording has written are counted and deleted, see ``Owner``.
    One thread.

    Parameters
    ----------
    folder : Path
        Made when the first file is.
    config : RecordingConfig
        Its rules.
    owner : Owner
        Knows the recording's files.
    clock : Clock
        Whose time files have.
    base : Path, optional
        The operator's folder, which ``folder`` is in: it may be a link, or lie behind one. By
        default the parent.

    Attributes
    ----------
    n_files, n_bytes : int
        Finished files of the recording at the last ``tidy``, and their length [bytes].
    claimed : Directory or None
        The folder, while this recording has it.
    foreign : list of str
        Names of finished files of such suffixes that the recording did not write.
    n_untried : int
        Finished files that were not read yet; one that cannot be read was tried.
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
        # What was found of each file that is there: a changed one is looked at again.
        self._known: dict[str, tuple[_File, bool]] = {}
        self._failed_reads = Counter[str]()
        self.n_files = self.n_bytes = 0
        self.foreign: list[str] = []
        self.n_untried = 0

    # ---- the folder

    def new_file(self, stem: str, suffix: str) -> PartFile:
        """Name a file that is to be written, and make the folder if it is missing.

        Raises
        ------
        BusyError, StorageError
            If the folder cannot be made or claimed.
        """
        directory = self.made()
        try:
            name = directory.free_name(f"{stem}{suffix}", PART_SUFFIX)
        except OSError as error:
            raise self._error(error) from error
        return PartFile(self.path / name, directory)

    def made(self) -> Directory:
        """Return the folder, claimed, and made if it is missing; raises as ``new_file``."""
        try:
            self._base.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
            found = self._open(make=True)
        except OSError as error:
            raise self._error(error) from error
        return self._take(found)

    def claim(self) -> None:
        """Take the folder, if it is there, for this recording alone until ``release``.

        Raises
        ------
        BusyError
            If another program records into it: each would take the other's files for left over.
        StorageError
            If it cannot be opened, or is behind a link.
        """
        try:
            found = self._open()
        except FileNotFoundError:  # reported when a file cannot be made
            return
        except OSError as error:
            raise self._error(error) from error
        self._take(found)

    def release(self) -> None:
        """Let others take the folder. Idempotent."""
        if self.claimed is not None:
            self.claimed.close()
            self.claimed = None
            self._known.clear()
            self._failed_reads.clear()

    def is_in_place(self) -> bool:
        """Whether the path still leads to the folder that was claimed; True if none was."""
        if self.claimed is None:
            return True
        try:
            with self._open() as found:
                return _is_same(found, self.claimed)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # nobody can say: what is written next will
            return True

    def _open(self, *, make: bool = False) -> Directory:
        """Open the folder by way of all folders below the base, none of which may be a link."""
        directory = Directory.open(self._base)
        for name in self._names:
            try:
                below = directory.make_child(name, _FOLDER_MODE) if make else directory.child(name)
            finally:
                directory.close()
            directory = below
        return directory

    def _take(self, found: Directory) -> Directory:
        if self.claimed is not None and _is_same(found, self.claimed):
            found.close()
            return self.claimed
        try:
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
        return StorageError(f"{self.path}: {self._link() or error.strerror or error}")

    def _link(self) -> str:
        """Say that a folder on the way is a link, if one is."""
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
        """Give a finished file the time of the recorder's clock, by which it is kept.

        Returns its length [bytes].
        """
        assert self.claimed is not None
        try:
            self.claimed.set_times(name, self._clock.utc_ns())
            found = self.claimed.find(name)
        except OSError as error:
            raise storage_error(self.path / name, error) from error
        if found is None:
            raise StorageError(f"{self.path / name}: was removed when it was finished")
        file = _file(name, found)
        self._known[name] = file, True
        return file.n_bytes

    def unfinished(self) -> tuple[list[Path], list[str]]:
        """Find the files that were being written when a daemon ended, in a claimed folder.

        Returns
        -------
        own : list of Path
            Those that this recording was writing.
        others : list of str
            Names of those that it was not.

        Raises
        ------
        StorageError
            If the folder cannot be read.
        """
        own: list[Path] = []
        others: list[str] = []
        if self.claimed is None:
            return own, others
        endings = tuple(suffix + PART_SUFFIX for suffix in SUFFIXES)
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
        """Say how much is free on the disk; None if nobody can tell, as of a folder to be made."""
        if self.claimed is not None:
            try:
                return _free_bytes(self.claimed.statvfs())
            except OSError:
                return None
        for folder in (self.path, *self.path.parents):
            try:
                return _free_bytes(os.statvfs(folder))
            except FileNotFoundError:
                continue
            except OSError:
                return None
        return None

    def has_room(self, *, had_room: bool) -> bool:
        """Whether enough is free; where there was not, it must be a tenth more."""
        free_bytes = self.free_bytes()
        wanted = self._config.min_free_mb * _MB * (1.0 if had_room else _RETURN)
        return free_bytes is None or free_bytes >= wanted

    # ---- what is kept

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
        if self.claimed is None:
            return deleted
        while True:
            files = self._survey(self.claimed)
            n_bytes, n_before = self.n_bytes + open_bytes, len(deleted)
            for file in files:
                if not self._is_to_go(file, n_bytes):
                    return deleted
                self._delete(self.claimed, file)
                deleted.append(file.name)
                n_bytes -= file.n_bytes
                self.n_bytes -= file.n_bytes
                self.n_files -= 1
            if len(deleted) == n_before:
                return deleted

    def _survey(self, directory: Directory) -> list[_File]:
        """Count the recording's finished files; return the oldest of them, in their order."""
        try:
            found = {file.name: file for file in self._scan(SUFFIXES)}
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

    def _turn(self, file: _File) -> tuple[int, _File]:
        """Say when a file is read: the oldest first, since it may be deleted next.

        A file that cannot be read waits until all others were tried as often, or a number of such
        files that are old would keep the recording from ever knowing its own.
        """
        return self._failed_reads[file.name], file

    def _scan(self, endings: tuple[str, ...]) -> Iterator[_File]:
        """Yield the regular files of such names: links lead elsewhere, and pipes never answer."""
        assert self.claimed is not None
        with self.claimed.scan() as entries:
            for entry in entries:
                if entry.name.endswith(endings) and entry.is_file(follow_symlinks=False):
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # somebody else has deleted it
                        continue
                    yield _file(entry.name, found)

    def _is_to_go(self, file: _File, n_bytes: int) -> bool:
        config = self._config
        age_ns = self._clock.utc_ns() - file.finished_ns
        is_old = config.keep_days > 0 and age_ns > config.keep_days * _DAY_NS
        is_much = config.keep_mb > 0 and n_bytes > config.keep_mb * _MB
        is_full = config.when_full == "delete" and not self.has_room(had_room=True)
        return is_old or is_much or is_full

    def _delete(self, directory: Directory, file: _File) -> None:
        try:
            found = directory.find(file.name)
            # Not what somebody has put in its place since it was looked at.
            if found is not None and _file(file.name, found) == file:
                directory.remove(file.name)
        except OSError as error:
            raise storage_error(self.path / file.name, error) from error


def _file(name: str, found: os.stat_result) -> _File:
    # The inode alone may be that of a later file: file systems use numbers again.
    return _File(found.st_mtime_ns, name, found.st_size, found.st_ino)


def _is_same(one: Directory, other: Directory) -> bool:
    return os.path.samestat(os.fstat(one.fileno()), os.fstat(other.fileno()))


def _free_bytes(found: os.statvfs_result) -> int:
    return found.f_bavail * found.f_frsize
