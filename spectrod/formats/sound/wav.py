"""Writes a WAV or RF64 file."""

import os
import re
from pathlib import Path

from spectrod.dsp.units import Float32Array
from spectrod.formats.fileio import create, discard_new, write_at
from spectrod.formats.part import PartFile
from spectrod.formats.sound.notes import Notes, boot_id
from spectrod.formats.sound.pcm_samples import to_bytes
from spectrod.formats.sound.sound_options import Subtype
from spectrod.formats.sound.wav_header import (
    HEADER_BYTES,
    WavForm,
    gaps_of,
    header,
    named_samples,
    read_form,
    with_length,
)
from spectrod.lib.errors import (
    ConfigError,
    EmptyRecordingError,
    InputError,
    StorageError,
    storage_error,
    storage_errors,
)

_FS_MAX, _CHANNELS_MAX = 0xFFFFFFFF, 0xFFFF
_FRAME_BYTES_MAX = 0xFFFF
_BOOT = re.compile(rb"^spectrod\|Boot: (\S+)$", re.MULTILINE)


class WavFile:
    """Writes samples to a WAV file whose header is valid at every moment.

    The length in the header covers only samples that are synchronised to the disk, so that it is
    correct after a power failure too; later samples follow them.

    Parameters
    ----------
    part : PartFile
        Names of the file to write; not closed.
    subtype : {"s16", "s24", "s32", "f32"}
        Sample format.
    notes : Notes
        Metadata of the file, with sample rate and channels.

    Attributes
    ----------
    gaps : Gaps
        Gaps that the header lists at the next ``sync``.
    cut_samples : int or None
        Samples per channel of successful writes that the file lacks since ``close`` after a failed
        ``sync``; None without one.

    Raises
    ------
    StorageError
        If the file cannot be created.
    """

    def __init__(self, part: PartFile, subtype: Subtype, notes: Notes) -> None:
        self._path, self._notes = part.path, notes
        self._form = WavForm(notes.fs, notes.channels, subtype)
        self.gaps = gaps_of(self._form, notes)
        self._n_samples = 0
        self._n_confirmed = 0
        self._has_failed = False
        self.cut_samples: int | None = None
        self._fd = create(part)
        try:
            self._write_header(0)
            self._synchronise()
        except BaseException:
            discard_new(self._fd, part)
            raise

    @staticmethod
    def check_form(fs: int, channels: int, subtype: Subtype) -> None:
        """Raise ConfigError if a WAV file does not support these numbers."""
        form = WavForm(fs, channels, subtype)
        if form.frame_bytes > _FRAME_BYTES_MAX or channels > _CHANNELS_MAX:
            raise ConfigError(f"channels={channels}: too many for a .wav file")
        if fs * form.frame_bytes > _FS_MAX:
            raise ConfigError(
                f"fs={fs}, channels={channels}: more bytes a second than a .wav file can state"
            )

    @staticmethod
    def complete(fd: int, part: Path) -> int:
        """Complete an unfinished file; return its samples per channel, see ``recover``."""
        return _complete(fd, part)

    def write(self, samples: Float32Array) -> int:
        """Append (n, channels) samples [FS]; return the number of clipped ones.

        Raises
        ------
        StorageError
            If not all were written; then none counts, and the write can be repeated. After a failed
            ``sync`` nothing more can be written.
        """
        self._refuse_if_failed()
        data, n_clipped = to_bytes(samples, self._form.subtype)
        with storage_errors(self._path):
            write_at(self._fd, data, self._end)
        self._n_samples += len(samples)
        return n_clipped

    def write_silence(self, n: int) -> None:
        """Append n samples of silence; they take no space on file systems with holes."""
        self._refuse_if_failed()
        # Data after the end may be the rest of a failed write.
        with storage_errors(self._path):
            os.ftruncate(self._fd, self._end)
            os.ftruncate(self._fd, self._end + n * self._form.frame_bytes)
        self._n_samples += n

    def sync(self) -> None:
        """Synchronise written samples to the disk, and update the header.

        Raises
        ------
        StorageError
            If that fails; the header stays unchanged. Linux then marks unwritten data as clean, so
            that data after the length in the header are no longer reliable.
        """
        self._refuse_if_failed()
        # Without an even length, the file would lack its pad byte until the next sample.
        n_whole = self._n_samples
        if self._form.frame_bytes % 2:
            n_whole -= n_whole % 2
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            self._has_failed = True
            raise storage_error(self._path, error) from error
        self._write_header(n_whole)
        self._synchronise()
        self._n_confirmed = n_whole

    def list_gaps(self) -> None:
        """List all gaps in the header, also those after the samples that it covers."""
        self._write_header(self._n_confirmed)

    def close(self) -> None:
        """Complete the file; afterwards only ``discard`` may be called.

        After a failed ``sync``, the file keeps the length in the header.
        """
        n_cut = None
        if self._has_failed:
            self.cut_samples = 0  # where this fails, ``recover`` keeps what is there
            if not self._n_confirmed:
                self._refuse_if_failed()
            n_cut = self._n_samples - self._n_confirmed
            self._n_samples = self._n_confirmed
        with storage_errors(self._path):
            # Data after the end are the rest of a failed write.
            os.ftruncate(self._fd, self._end + self._end % 2)
            os.fdatasync(self._fd)
        self._write_header(self._n_samples)
        self._synchronise()
        self.cut_samples = n_cut
        self.discard()

    def discard(self) -> None:
        """Close the file as it is. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted while it is open."""
        return self._fd >= 0 and os.fstat(self._fd).st_nlink == 0

    @property
    def size_bytes(self) -> int:
        """Length of the file."""
        return self._end

    @property
    def _end(self) -> int:
        return HEADER_BYTES + self._n_samples * self._form.frame_bytes

    def _refuse_if_failed(self) -> None:
        if self._has_failed:
            raise StorageError(f"{self._path}: the disk has lost written data")

    def _write_header(self, n_samples: int) -> None:
        with storage_errors(self._path):
            write_at(self._fd, header(self._form, self._notes, self.gaps, n_samples), 0)

    def _synchronise(self) -> None:
        with storage_errors(self._path):
            os.fdatasync(self._fd)


def _complete(fd: int, part: Path) -> int:
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
        # Beyond the length in the header there may be sound, which a power failure left in doubt.
        is_empty = os.fstat(fd).st_size < HEADER_BYTES + form.frame_bytes
        kind = EmptyRecordingError if is_empty else InputError
        raise kind(f"{part}: holds no samples")
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
