"""Writes FLAC files with libsndfile; the only module here that imports soundfile."""

import contextlib
import os

import numpy as np
import soundfile

from spectrod.dsp.units import Float32Array
from spectrod.formats.fileio import create, discard_new, write_at
from spectrod.formats.part import PartFile
from spectrod.formats.sound.flac_stream import TOTAL_MAX, complete, complete_samples, stated_samples
from spectrod.formats.sound.notes import Gaps, Notes
from spectrod.formats.sound.pcm_samples import SAMPLE_BYTES, to_integers
from spectrod.formats.sound.sound_options import Subtype
from spectrod.lib.errors import (
    ConfigError,
    InputError,
    StorageError,
    storage_error,
    storage_errors,
)

_COMMENT_BYTES = 1024
"""The comment is padded with spaces, which some programs display."""

_LOOK_BYTES = 1 << 16
_SILENCE_AT_ONCE = 1 << 16
_SUBTYPES: dict[Subtype, str] = {"s16": "PCM_16", "s24": "PCM_24"}


class FlacFile:
    """Writes samples to a FLAC file.

    The format has its length in the header, which is set only by ``close``. A killed program leaves
    complete blocks of 4096 samples, which players can play; ``recover`` completes the header. The
    comment is written at its full length at the start and changed in place.

    Parameters and errors are those of ``WavFile``.

    Attributes
    ----------
    cut_samples : int or None
        Samples per channel of successful writes that the file lacks since ``close`` after a fault:
        the encoder held them for a block. Negative if it has a part of the write that failed; None
        without a fault.
    """

    def __init__(self, part: PartFile, subtype: Subtype, notes: Notes) -> None:
        self._path, self._notes = part.path, notes
        self._subtype = subtype
        fixed = notes.comment(Gaps(0, count=1, samples=1 << 62)).encode()
        self.gaps = Gaps(max(0, _COMMENT_BYTES - len(fixed)))
        self._comment_at = 0
        self._n_samples = 0
        self._has_failed = False
        self.cut_samples: int | None = None
        self._fd = create(part)
        try:
            # libsndfile gets a duplicate, so that closing it keeps this descriptor open.
            self._file = soundfile.SoundFile(
                os.dup(self._fd),
                "w",
                samplerate=notes.fs,
                channels=notes.channels,
                format="FLAC",
                subtype=_SUBTYPES[subtype],
            )
        except BaseException as error:
            discard_new(self._fd, part)
            if isinstance(error, soundfile.LibsndfileError):
                raise ConfigError(f"{part.path}: {error.error_string}") from error
            raise
        self._file.software = notes.software
        self._file.comment = self._comment().decode()

    complete = staticmethod(complete)

    @staticmethod
    def check_form(fs: int, channels: int, subtype: Subtype) -> None:
        """Raise ConfigError if FLAC does not support these numbers.

        References
        ----------
        .. [1] RFC 9639: up to 8 channels, up to 2^20 - 1 Hz; libFLAC supports up to 655350 Hz.
        """
        if not 1 <= channels <= 8:
            raise ConfigError(f"channels={channels}: a .flac file has 1 to 8; .wav has more")
        if fs > 655350:
            raise ConfigError(f"fs={fs}: a .flac file has at most 655350 Hz; .wav has more")
        assert subtype in _SUBTYPES

    def write(self, samples: Float32Array) -> int:
        """Append (n, channels) samples [FS]; return the number of clipped ones.

        Raises
        ------
        StorageError
            If not all were written; later writes fail as well.
        """
        bits = 8 * SAMPLE_BYTES[self._subtype]
        integers, n_clipped = to_integers(samples, bits)
        if self._has_failed:
            raise StorageError(f"{self._path}: an earlier write has failed")
        try:
            # libsndfile uses the upper bits of 32.
            self._file.write(integers << (32 - bits))
        except soundfile.LibsndfileError as error:
            self._has_failed = True
            raise self._reason(error.error_string) from error
        self._n_samples += len(samples)
        return n_clipped

    def write_silence(self, n: int) -> None:
        """Append n samples of silence; a block of them takes about 15 bytes."""
        silence = np.zeros((min(n, _SILENCE_AT_ONCE), self._notes.channels), np.float32)
        while n:
            n_now = min(n, _SILENCE_AT_ONCE)
            self.write(silence[:n_now])
            n -= n_now

    def sync(self) -> None:
        """Synchronise all complete blocks to the disk, and list all gaps in the comment."""
        if self._has_failed:
            raise StorageError(f"{self._path}: an earlier write has failed")
        self._file.flush()
        self._write_comment()
        self._synchronise()

    def list_gaps(self) -> None:
        """List all gaps in the comment."""
        self._write_comment()

    def close(self) -> None:
        """Complete the file; cut an incomplete block.

        Raises
        ------
        StorageError
            If samples of a successful ``write`` had to be cut.
        """
        self._close_file()
        if self._has_failed:
            self._cut()
        elif not self._states_its_length():
            # libsndfile reports no error if there was no space for the last block.
            reason = self._reason("")
            self._cut()
            raise reason
        self._write_comment()
        self._synchronise()
        self.discard()

    def _cut(self) -> None:
        """Cut an incomplete block, after counting what the file lacks.

        Raises StorageError if no block is complete.
        """
        with storage_errors(self._path):
            n_complete = self._n_complete()
            self.cut_samples = self._n_samples - n_complete
            if not n_complete:
                raise self._reason("")
            complete(self._fd, self._path)

    def _n_complete(self) -> int:
        try:
            return complete_samples(self._fd, self._path)
        except InputError:  # not even the header was written
            return 0

    def _states_its_length(self) -> bool:
        with storage_errors(self._path):
            return stated_samples(self._fd) == self._n_samples or self._n_samples > TOTAL_MAX

    def _close_file(self) -> None:
        with contextlib.suppress(soundfile.LibsndfileError):
            self._file.close()

    def discard(self) -> None:
        """Close the file as it is. Idempotent."""
        if self._fd >= 0:
            self._close_file()
            os.close(self._fd)
            self._fd = -1

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted while it is open."""
        return self._fd >= 0 and os.fstat(self._fd).st_nlink == 0

    @property
    def size_bytes(self) -> int:
        """Length of the file so far."""
        return os.fstat(self._fd).st_size

    def _comment(self) -> bytes:
        text = self._notes.comment(self.gaps).encode()[:_COMMENT_BYTES]
        # Drop a character that the limit has cut.
        return text.decode(errors="ignore").encode().ljust(_COMMENT_BYTES, b" ")

    def _write_comment(self) -> None:
        with storage_errors(self._path):
            if not self._comment_at:
                start = os.pread(self._fd, _LOOK_BYTES, 0)
                self._comment_at = start.find(b"Recorded at ")
            if self._comment_at > 0:
                write_at(self._fd, self._comment(), self._comment_at)

    def _synchronise(self) -> None:
        with storage_errors(self._path):
            os.fdatasync(self._fd)

    def _reason(self, text: str) -> StorageError:
        """Return the system's error, which libsndfile does not report."""
        try:
            end = os.fstat(self._fd).st_size
            try:
                write_at(self._fd, bytes(_LOOK_BYTES), end)
            finally:
                os.ftruncate(self._fd, end)
        except OSError as error:
            return storage_error(self._path, error)
        return StorageError(f"{self._path}: {text or 'cannot be written'}")
