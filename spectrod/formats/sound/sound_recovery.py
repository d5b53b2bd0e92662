"""Recovery of sound files after a kill or a power failure."""

import os
from dataclasses import dataclass
from pathlib import Path

from spectrod.formats.directory import Directory
from spectrod.formats.sound.sound_options import is_sound_file
from spectrod.lib.errors import (
    EmptyRecordingError,
    InputError,
    StorageError,
    storage_errors,
)
from spectrod.lib.output_formats import PART_SUFFIX, format_of, load


@dataclass(frozen=True, slots=True)
class RecoveredSound:
    """Result of a recovery.

    Attributes
    ----------
    path : Path or None
        The file, under its final name; None if it never had samples and was removed.
    n_samples : int
        Samples per channel in the file.
    cut_bytes : int
        Bytes cut off its end: an incomplete sample or block, or after a power failure data that may
        be wrong.
    """

    path: Path | None
    n_samples: int
    cut_bytes: int

    @property
    def summary(self) -> str:
        """Summary of the kept and cut parts, for messages."""
        if self.path is None:
            return f"without a sample in its {self.cut_bytes} bytes, it was removed"
        return f"{self.n_samples} samples kept, {self.cut_bytes} bytes cut"


def is_unfinished(path: Path) -> bool:
    """Return whether a name is that of an unfinished sound file."""
    return path.suffix == PART_SUFFIX and is_sound_file(path.with_suffix(""))


def recover(part: str | os.PathLike[str], directory: Directory | None = None) -> RecoveredSound:
    """Complete an unfinished file, and give it its final name.

    In a WAV file, samples beyond the length in the header are kept if the machine has not rebooted
    since: then all written data are in the file. Otherwise the length in the header applies, which
    covers only synchronised data. A FLAC file is kept up to the last block with correct checksums;
    players stop at an earlier block that the disk has lost.

    Parameters
    ----------
    part : path-like
        ``NAME.wav.part`` or ``NAME.flac.part``, which must not be a link or being written.
    directory : Directory, optional
        Directory in which the last part of the path is looked up; by default opened from the path.

    Returns
    -------
    recovered : RecoveredSound
        Path and content of the recovered file.

    Raises
    ------
    EmptyRecordingError
        If it ended before its first sample, of FLAC its first block; it stays unchanged.
    InputError
        If no sample is intact, or it was not made by spectrod; it stays unchanged.
    StorageError
        If it cannot be read or changed, or a file of its final name exists.
    """
    return _recover(part, directory, removes_empty=False)


def recover_or_remove(
    part: str | os.PathLike[str], directory: Directory | None = None
) -> RecoveredSound:
    """Recover an unfinished file, or remove it if it ended before its first sample.

    Parameters and errors are those of ``recover``, without EmptyRecordingError.
    """
    return _recover(part, directory, removes_empty=True)


def _recover(
    part: str | os.PathLike[str], directory: Directory | None, *, removes_empty: bool
) -> RecoveredSound:
    part = Path(part)
    if not is_unfinished(part):
        raise InputError(f"{part}: must be a sound file's {PART_SUFFIX}")
    with (
        storage_errors(part),
        directory.duplicate() if directory else Directory.open(part.parent) as folder,
    ):
        return _recover_in(folder, part, removes_empty=removes_empty)


def _recover_in(folder: Directory, part: Path, *, removes_empty: bool) -> RecoveredSound:
    path = part.with_suffix("")
    fd = folder.open_file(part.name, os.O_RDWR)
    try:
        if folder.find(path.name) is not None:
            raise StorageError(f"{path}: already exists; {part.name} is left unchanged")
        size = os.fstat(fd).st_size
        n_samples = load(format_of(path).sound_file).complete(fd, part)
        kept = os.fstat(fd).st_size
    except EmptyRecordingError:
        if not removes_empty:
            raise
        folder.remove(part.name)
        return RecoveredSound(None, 0, size)
    finally:
        os.close(fd)
    folder.rename_noreplace(part.name, path.name)
    folder.synchronise()
    return RecoveredSound(path, n_samples, max(0, size - kept))
