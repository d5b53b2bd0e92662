"""Whole sound files from what a killed program or a power failure has left."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from spectrod.errors import InputError, StorageError
from spectrod.record.sound.fileio import storage_error, write_at
from spectrod.record.sound.flac_stream import complete
from spectrod.record.sound.notes import boot_id
from spectrod.record.sound.options import SOUND_SUFFIXES
from spectrod.record.sound.wav_header import (
    HEADER_BYTES,
    named_samples,
    read_form,
    with_length,
)
from spectrod.record.sound.writer import publish

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


def recover(part: str | os.PathLike[str]) -> Recovered:
    """Make a whole file of an unfinished one, and give it its final name.

    Samples behind those that a WAV header names are kept if the machine has not been started anew
    since: then all that was written is in the file. Otherwise the header is believed, which names
    only what the disk had confirmed. Of a FLAC file all is kept up to the last block whose
    checksums are right; one before it that the disk has lost is where players stop.

    Parameters
    ----------
    part : path-like
        ``NAME.wav.part`` or ``NAME.flac.part``, which nobody is writing.

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
    path = part.with_suffix("")
    if not is_unfinished(part):
        raise InputError(f"{part}: must be a sound file's {_PART}")
    try:
        size = part.stat().st_size
        if path.exists():
            raise StorageError(f"{path}: is there already; {part.name} is left as it is")
        n_samples = complete(part) if path.suffix.lower() == ".flac" else _complete_wav(part)
        kept = part.stat().st_size
    except OSError as error:
        raise storage_error(part, error) from error
    publish(part, path)
    return Recovered(path, n_samples, max(0, size - kept))


def _complete_wav(part: Path) -> int:
    fd = os.open(part, os.O_RDWR | os.O_CLOEXEC)
    try:
        return _complete_wav_at(fd, part)
    finally:
        os.close(fd)


def _complete_wav_at(fd: int, part: Path) -> int:
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
