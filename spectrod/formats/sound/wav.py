"""A WAV or RF64 file that is being written."""

import os

from spectrod.errors import ConfigError, StorageError, storage_error
from spectrod.formats.fileio import create, discard_new, write_at
from spectrod.formats.part import PartFile
from spectrod.formats.sound.notes import Notes
from spectrod.formats.sound.pcm import to_bytes
from spectrod.formats.sound.wav_header import HEADER_BYTES, WavForm, gaps_of, header
from spectrod.units import Float32Array

_FS_MAX, _CHANNELS_MAX = 0xFFFFFFFF, 0xFFFF
_FRAME_BYTES_MAX = 0xFFFF


def check_form(form: WavForm) -> None:
    """Raise ConfigError where a WAV file has no room for such numbers."""
    if form.frame_bytes > _FRAME_BYTES_MAX or form.channels > _CHANNELS_MAX:
        raise ConfigError(f"channels={form.channels}: too many for a .wav file")
    if form.fs * form.frame_bytes > _FS_MAX:
        raise ConfigError(
            f"fs={form.fs}, channels={form.channels}: more bytes a second than a .wav file can say"
        )


class WavFile:
    """Samples to a WAV file whose header is valid at every moment.

    The header names only samples that are on the disk already, so that it is true after a power
    failure as well; what was written since then stands behind them.

    Parameters
    ----------
    part : PartFile
        Where to write; not closed.
    form : WavForm
        How.
    notes : Notes
        What to say of it.

    Attributes
    ----------
    gaps : Gaps
        What the header lists at the next ``sync``.

    Raises
    ------
    StorageError
        If it cannot be made.
    """

    def __init__(self, part: PartFile, form: WavForm, notes: Notes) -> None:
        self._path, self._form, self._notes = part.path, form, notes
        self.gaps = gaps_of(form, notes)
        self._n_samples = 0
        self._n_confirmed = 0
        self._has_failed = False
        self._fd = create(part)
        try:
            self._write_header(0)
            self._synchronise()
        except BaseException:
            discard_new(self._fd, part)
            raise

    def write(self, samples: Float32Array) -> int:
        """Append (n, channels) samples [FS]; return how many were clipped.

        Raises
        ------
        StorageError
            If not all were written; then none counts, and it may be tried again. After ``sync`` has
            failed nothing more can be written.
        """
        self._refuse_if_failed()
        data, n_clipped = to_bytes(samples, self._form.subtype)
        try:
            write_at(self._fd, data, self._end)
        except OSError as error:
            raise storage_error(self._path, error) from error
        self._n_samples += len(samples)
        return n_clipped

    def write_silence(self, n: int) -> None:
        """Append n samples of silence; they take no room on file systems that know holes."""
        self._refuse_if_failed()
        # What is behind the end may be the rest of a write that failed.
        try:
            os.ftruncate(self._fd, self._end)
            os.ftruncate(self._fd, self._end + n * self._form.frame_bytes)
        except OSError as error:
            raise storage_error(self._path, error) from error
        self._n_samples += n

    def sync(self) -> None:
        """Have the disk keep what was written, and the header say so.

        Raises
        ------
        StorageError
            If it cannot; the header is as it was. Linux counts what was not written as written
            then, so that nothing behind what the header names is sure any more.
        """
        self._refuse_if_failed()
        # A lone pad byte at the end would be missing until the next sample.
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
        """Have the header list all gaps, also those behind the samples that it names."""
        self._write_header(self._n_confirmed)

    def close(self) -> None:
        """Complete the file; nothing may be called afterwards but ``discard``.

        After ``sync`` has failed, it keeps what the header names.
        """
        if self._has_failed:
            if not self._n_confirmed:
                self._refuse_if_failed()
            self._n_samples = self._n_confirmed
        try:
            # What is behind the end is the rest of a write that failed.
            os.ftruncate(self._fd, self._end + self._end % 2)
            os.fdatasync(self._fd)
        except OSError as error:
            raise storage_error(self._path, error) from error
        self._write_header(self._n_samples)
        self._synchronise()
        self.discard()

    def discard(self) -> None:
        """Let go of the file as it is. Idempotent."""
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
            raise StorageError(f"{self._path}: the disk has failed to keep what was written")

    def _write_header(self, n_samples: int) -> None:
        try:
            write_at(self._fd, header(self._form, self._notes, self.gaps, n_samples), 0)
        except OSError as error:
            raise storage_error(self._path, error) from error

    def _synchronise(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise storage_error(self._path, error) from error
