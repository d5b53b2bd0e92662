"""Recovery of sound files after a kill or a power failure."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from spectrod.errors import InputError, StorageError, storage_error
from spectrod.formats.directory import Directory
from spectrod.formats.fileio import write_at
from spectrod.formats.sound.flac_stream import complete
from spectrod.formats.sound.notes import boot_id
from spectrod.formats.sound.options import SOUND_SUFFIXES
from spectrod.formats.sound.wav_header import (
    HEADER_BYTES,
    named_samples,
    read_form,
    with_length,
)

_PART = ".part"
_BOOT = re.compile(rb"^spectrod\|Boot: (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Recovered:
    """Result of a recovery.

    Attributes
    ----------
    path : Path
        The file, under its final name.
    n_samples : int
        Samples per channel in the file.
    cut_bytes : int
        Bytes cut off its end: an incomplete sample or block, or after a power failure data that may
        be wrong.
    """

    path: Path
    n_samples: int
    cut_bytes: int


def is_unfinished(path: Path) -> bool:
    """Return whether a name is that of an unfinished sound file."""
    return path.suffix == _PART and path.with_suffix("").suffix.lower() in SOUND_SUFFIXES


def recover(part: str | os.PathLike[str], directory: Directory | None = None) -> Recovered:
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
    recovered : Recovered
        Path and content of the recovered file.

    Raises
    ------
    InputError
        If it has no samples or was not made by spectrod; it stays unchanged.
    StorageError
        If it cannot be read or changed, or a file of its final name exists.
    """
    part = Path(part)
    if not is_unfinished(part):
        raise InputError(f"{part}: must be a sound file's {_PART}")
    try:
        with directory.duplicate() if directory else Directory.open(part.parent) as folder:
            return _recover_in(folder, part)
    except OSError as error:
        raise storage_error(part, error) from error


def _recover_in(folder: Directory, part: Path) -> Recovered:
    path = part.with_suffix("")
    fd = folder.open_file(part.name, os.O_RDWR)
    try:
        if folder.find(path.name) is not None:
            raise StorageError(f"{path}: is there already; {part.name} is left as it is")
        size = os.fstat(fd).st_size
        is_flac = path.suffix.lower() == ".flac"
        n_samples = complete(fd, part) if is_flac else _complete_wav(fd, part)
        kept = os.fstat(fd).st_size
    finally:
        os.close(fd)
    folder.rename_noreplace(part.name, path.name)
    folder.synchronise()
    return Recovered(path, n_samples, max(0, size - kept))


def _complete_wav(fd: int, part: Path) -> int:
    page = os.pread(fd, HEADER_BYTES, 0)
    try:
        form, _ = read_form(page)
        n_samples = (os.fstat(fd).st_size - HEADER_BYTES) // form.frame_bytes
        if not _is_of_this_boot(page):
            n_samples = min(n_samples, named_samples(page, form))
        new_page = with_length(page, n_samples)
    except InputError as error:
        raise InputError(f"{part}: not an unfinished WAV file of spectrod: {error}") from error
    if n_samples < 1:
        raise InputError(f"{part}: holds no samples")
    # All checks are done; the file is changed from here on.
    end = HEADER_BYTES + n_samples * form.frame_bytes
    os.ftruncate(fd, end)
    os.ftruncate(fd, end + end % 2)
    os.fdatasync(fd)
    write_at(fd, new_page, 0)
    os.fdatasync(fd)
    return n_samples


def _is_of_this_boot(page: bytes) -> bool:
    """Return whether the machine has not rebooted since the file was started."""
    boot = _BOOT.search(page)
    return boot is not None and boot[1].decode("ascii", "replace") == boot_id()
