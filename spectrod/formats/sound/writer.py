"""Sound files from blocks of samples: gaps become silence, so that time stays true."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from spectrod.errors import ConfigError, InputError, SpectrodError, storage_error
from spectrod.formats.fileio import check_new
from spectrod.formats.part import PartFile
from spectrod.formats.sound.notes import Gaps, Notes, boot_id
from spectrod.formats.sound.options import SoundOptions, checked_subtype
from spectrod.text import printable
from spectrod.types import Block
from spectrod.units import Float32Array

_GAP_MAX_S = 86400.0
_DEFAULTS = SoundOptions()


class _File(Protocol):
    """What a format does."""

    gaps: Gaps

    @property
    def size_bytes(self) -> int: ...
    @property
    def is_gone(self) -> bool: ...
    def write(self, samples: Float32Array) -> int: ...
    def write_silence(self, n: int) -> None: ...
    def list_gaps(self) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...
    def discard(self) -> None: ...


class SoundWriter:
    """Writes samples to a WAV (RF64 from 4 GB on) or FLAC file as they come.

    Until ``finish`` the file is ``PATH.part``. It can be read at every moment; what it holds then
    is at most ``fsync_s`` behind, and ``recover`` makes a whole file of what a killed program or a
    power failure has left.

    Sample i of the file is the source's i-th after the first block's first: silence stands for
    missing samples, and the file says where (in a WAV file's ``guan`` chunk, in a FLAC file's
    comment). Nothing is queued: ``take`` writes, and waits for the disk each ``fsync_s``. One
    thread at a time.

    An unfinished file of the same name is never written over; see ``PartFile`` for a finished one.

    Parameters
    ----------
    path : path-like or PartFile
        Where the file goes; the suffix decides its format. A ``PartFile`` is closed with the
        writer, also where making that fails.
    fs : float
        Sample rate, a whole number of Hz.
    channels : int
        Of each block.
    subtype : {"", "s16", "s24", "s32", "f32"}
        How samples are stored: f32 in WAV and s24 in FLAC by default; FLAC has s16 and s24. Samples
        that once were integers come back bit for bit from a file of as many bits (up to 24, which
        is what float32 holds). Others are rounded, without dither, and clipped.
    options : SoundOptions
        When to wait for the disk, and what the file says of itself.
    clock : callable
        Monotonic seconds.

    Raises
    ------
    ConfigError
        If the format has no room for such samples.
    StorageError
        If no file can be made at this path.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | PartFile,
        fs: float,
        channels: int,
        subtype: str = "",
        options: SoundOptions = _DEFAULTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._part = PartFile.of(path)
        try:
            self._fs, self._channels = _whole_rate(fs), channels
            self._subtype = checked_subtype(self.path.suffix.lower(), subtype)
            self._options, self._clock = options, clock
            self._check_form()
            check_new(self._part)
        except BaseException:
            self._part.close()
            raise
        self._file: _File | None = None
        self._is_done = False
        self._first_index = 0
        self._n_samples = 0
        self._n_clipped = 0
        self._synced_s = 0.0

    @property
    def path(self) -> Path:
        """The final name; where that was taken, the one that ``finish`` has found."""
        return self._part.path

    @property
    def part(self) -> Path:
        """Where the file is until it is finished."""
        return self._part.part

    @property
    def is_gone(self) -> bool:
        """Whether somebody has removed the file: only a new one helps."""
        return self._file is not None and self._file.is_gone

    @property
    def n_samples(self) -> int:
        """Samples a channel in the file, silence for missing ones counted."""
        return self._n_samples

    @property
    def clipped_samples(self) -> int:
        """Samples beyond what the file's integers hold, or no numbers, over all channels."""
        return self._n_clipped

    @property
    def gaps(self) -> int:
        """Places where samples are missing."""
        return self._file.gaps.count if self._file else 0

    @property
    def gap_samples(self) -> int:
        """Samples a channel for which silence stands."""
        return self._file.gaps.samples if self._file else 0

    @property
    def size_bytes(self) -> int:
        """Length of the file so far; 0 before the first block."""
        return self._file.size_bytes if self._file else 0

    def needs_new_file(self, block: Block) -> bool:
        """Say whether a block belongs into a file of its own, for whoever can begin one.

        It does after a gap of more than ``gap_max_s``, where the list of gaps is full, and where
        the block is of another rate of counting: its index goes back, or its channels differ.
        """
        if self._file is None:
            return False
        missing = self._missing_before(block)
        is_other = missing < 0 or block.samples.shape[0] != self._channels
        return is_other or self._file.gaps.is_full or missing > self._options.gap_max_s * self._fs

    def take(self, block: Block) -> None:
        """Append a block.

        Raises
        ------
        StorageError
            If it cannot be written. What was taken before stays, and the next block may be tried: a
            gap stands for this one. In a FLAC file only ``finish`` and ``abort`` work then.
        InputError
            If it has other channels, its index goes back, or more than a day is missing before it.
        """
        if self._file is None:
            self._begin(block)
        assert self._file is not None
        missing = self._checked_missing(block)
        if self._n_samples and (missing or block.discontinuity):
            self._file.write_silence(missing)
            self._file.gaps.add(self._n_samples, missing)
            self._n_samples += missing
            # At once: what a killed program leaves would else show silence where nothing is known.
            self._file.list_gaps()
        self._n_clipped += self._file.write(block.samples.T)
        self._n_samples += block.n_samples
        if self._clock() - self._synced_s >= self._options.fsync_s:
            self.flush()

    def flush(self) -> None:
        """Have the disk keep what was taken, and the header say so; StorageError if it cannot."""
        if self._file:
            self._file.sync()
        self._synced_s = self._clock()

    def finish(self) -> None:
        """Complete the file and give it its name.

        Raises
        ------
        InputError
            If there was not a single sample; no file is made then.
        StorageError
            If it cannot be completed; ``PATH.part`` is left for ``recover``, but for a copy.
        """
        if self._is_done:
            return
        self._is_done = True
        if self._file is None or not self._n_samples:
            self._remove()
            self._part.close()
            raise InputError(f"{self.path}: no samples to write")
        try:
            self._file.close()
            self._publish()
        except SpectrodError:
            if self._options.is_copy:
                self._remove()
            raise
        finally:
            self._file.discard()
            self._part.close()

    def _publish(self) -> None:
        try:
            self._part.publish()
        except OSError as error:
            raise storage_error(self.path, error) from error

    def abort(self) -> None:
        """Give up. Idempotent; does nothing after ``finish``.

        What was taken stays in ``PATH.part``, for ``recover``; but not where there is nothing or
        the samples are elsewhere too.
        """
        if self._is_done:
            return
        self._is_done = True
        if self._file and self._n_samples and not self._options.is_copy:
            self._file.discard()
        else:
            self._remove()
        self._part.close()

    def _remove(self) -> None:
        if self._file:
            self._file.discard()
            self._part.remove()

    def _begin(self, block: Block) -> None:
        notes = Notes(
            fs=self._fs,
            channels=self._channels,
            begin_utc_ns=block.t_utc_ns if self._options.has_utc else None,
            source=printable(self._options.source, 200),
            software=printable(self._options.software, 64),
            name=printable(self.path.name, 200),
            boot=boot_id(),
            recording=self._options.recording,
        )
        self._check_channels(block)
        self._first_index = block.sample_index
        self._file = self._open(notes)
        self._synced_s = self._clock()

    # The formats' modules are imported where one is written: soundfile takes 20 ms.

    def _open(self, notes: Notes) -> _File:
        if self.path.suffix.lower() == ".flac":
            from spectrod.formats.sound.flac import FlacFile  # noqa: PLC0415

            return FlacFile(self._part, self._subtype, notes)
        from spectrod.formats.sound.wav import WavFile  # noqa: PLC0415
        from spectrod.formats.sound.wav_header import WavForm  # noqa: PLC0415

        form = WavForm(self._fs, self._channels, self._subtype)
        return WavFile(self._part, form, notes)

    def _check_form(self) -> None:
        if self._channels < 1:
            raise ConfigError(f"channels={self._channels}: must be at least 1")
        if self.path.suffix.lower() == ".flac":
            from spectrod.formats.sound import flac  # noqa: PLC0415

            flac.check_form(self._fs, self._channels, self._subtype)
        else:
            from spectrod.formats.sound import wav, wav_header  # noqa: PLC0415

            wav.check_form(wav_header.WavForm(self._fs, self._channels, self._subtype))

    def _check_channels(self, block: Block) -> None:
        if block.samples.shape[0] != self._channels:
            raise InputError(
                f"{self.path}: a block of {block.samples.shape[0]} channels; "
                f"the file has {self._channels}"
            )

    def _missing_before(self, block: Block) -> int:
        return block.sample_index - self._first_index - self._n_samples

    def _checked_missing(self, block: Block) -> int:
        self._check_channels(block)
        missing = self._missing_before(block)
        if missing < 0:
            raise InputError(
                f"{self.path}: sample {block.sample_index} comes after sample "
                f"{block.sample_index - missing - 1}"
            )
        if missing > _GAP_MAX_S * self._fs:
            raise InputError(
                f"{self.path}: {missing / self._fs:.0f} s of samples missing; "
                "a sound file is not filled with more than a day of silence"
            )
        return missing


def _whole_rate(fs: float) -> int:
    if not (1.0 <= fs < 2**32 and float(fs).is_integer()):
        raise ConfigError(f"fs={fs:g}: a sound file's rate must be a whole number of Hz")
    return int(fs)
