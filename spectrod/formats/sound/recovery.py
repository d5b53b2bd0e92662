"""Whole sound files from what a killed program or a power failure has left."""

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
    """What became of an unfinished file.

    Attributes
    ----------
    path : Path
        The file, under its final name.
    n_samples : int
        Samples a channel that it holds.
    cut_bytes : int
        What was cut at its end: less than a sample or a block, or after a power failure what
        nobody can vouch for.
    """

    path: Path
    n_samples: int
    cut_bytes: int


def is_unfinished(path: Path) -> bool:
    """Say whether a name is that of an unfinished sound file."""
    return path.suffix == _PART and path.with_suffix("").suffix.lower() in SOUND_SUFFIXES


def recover(part: str | os.PathLike[str], directory: Directory | None = None) -> Recovered:
    """Make a whole file of an unfinished one, and give it its final name.

    Samples behind those that a WAV header names are kept if the machine has not been started anew
    since: then all that was written is in the file. Otherwise the header is believed, which names
    only what the disk had confirmed. Of a FLAC file all is kept up to the last block whose
    checksums are right; one before it that the disk has lost is where players stop.

    Parameters
    ----------
    part : path-like
        ``NAME.wav.part`` or ``NAME.flac.part``, which nobody is writing, and which is no link.
    directory : Directory, optional
        Where the last part of the path is looked up; by default the path's own.

    Returns
    -------
    recovered : Recovered
        What it holds.

    Raises
    ------
    InputError
        If it holds no samples or is not ours; it is left as it is.
    StorageError
        If it cannot be read or changed, or a file of its final name is there.
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
    # Everything is checked: from here on the file is changed.
    end = HEADER_BYTES + n_samples * form.frame_bytes
    os.ftruncate(fd, end)
    os.ftruncate(fd, end + end % 2)
    os.fdatasync(fd)
    write_at(fd, new_page, 0)
    os.fdatasync(fd)
    return n_samples


def _is_of_this_boot(page: bytes) -> bool:
    """Whether the machine has been running ever since the file was begun."""
    boot = _BOOT.search(page)
    return boot is not None and boot[1].decode("ascii", "replace") == boot_id()
