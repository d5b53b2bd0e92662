"""Sound files from blocks of samples: silence replaces gaps, so that times stay correct."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array
from spectrod.formats.fileio import check_new
from spectrod.formats.part import PartFile
from spectrod.formats.sound.notes import Gaps, Notes, boot_id
from spectrod.formats.sound.sound_options import SoundOptions, Subtype, checked_subtype
from spectrod.lib.errors import ConfigError, InputError, SpectrodError, storage_errors
from spectrod.lib.output_formats import format_of, load
from spectrod.lib.text import printable

_GAP_MAX_S = 86400.0
_DEFAULTS = SoundOptions()


class _File(Protocol):
    """The methods of a format's file."""

    gaps: Gaps

    def __init__(self, part: PartFile, subtype: Subtype, notes: Notes) -> None: ...
    @property
    def cut_samples(self) -> int | None: ...
    @staticmethod
    def check_form(fs: int, channels: int, subtype: Subtype) -> None: ...
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


def make_sound(
    path: Path, spec: SpectrumSpec, subtype: str, options: SoundOptions
) -> "SoundWriter":
    """Start a sound file of the samples that a spec describes; see ``SoundWriter`` for errors."""
    return SoundWriter(path, spec.fs, spec.channels, subtype, options)


class SoundWriter:
    """Writes samples to a WAV (RF64 from 4 GB on) or FLAC file as they arrive.

    Until ``finish`` the file is ``PATH.part``. It can be read at every moment, with at most
    ``fsync_s`` of samples missing, and ``recover`` completes a file after a kill or a power
    failure.

    Sample i of the file is the source's i-th after the first block's first: silence replaces
    missing samples, and the file lists them (in a WAV file's ``guan`` chunk, in a FLAC file's
    comment). Nothing is queued: ``write`` writes, and waits for the disk every ``fsync_s``. One
    thread at a time.

    An unfinished file of the same name is never overwritten; see ``PartFile`` for a finished one.

    Parameters
    ----------
    path : path-like or PartFile
        Path of the file, whose suffix gives the format. A ``PartFile`` is closed with the writer,
        also if the constructor fails.
    fs : float
        Sample rate, a whole number of Hz.
    channels : int
        Number of channels of each block.
    subtype : {"", "s16", "s24", "s32", "f32"}
        Sample format: by default f32 in WAV and s24 in FLAC, which supports s16 and s24. Samples
        that come from integers are restored bit for bit from a file of the same width (up to 24
        bits, the precision of float32). Others are rounded, without dither, and clipped.
    options : SoundOptions
        Interval of synchronisation, and metadata of the file.
    clock : callable
        Monotonic seconds.

    Raises
    ------
    ConfigError
        If the format does not support such samples.
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
            self._fs, self._channels = _whole_rate(fs), _positive(channels)
            self._subtype = checked_subtype(self.path.suffix.lower(), subtype)
            self._options, self._clock = options, clock
            # Imported when needed: soundfile takes 20 ms.
            self._format: type[_File] = load(format_of(self.path).sound_file)
            self._format.check_form(self._fs, channels, self._subtype)
            check_new(self._part)
        except BaseException:
            self._part.close()
            raise
        self._file: _File | None = None
        self._is_done = False
        self._first_index = 0
        self._n_samples = 0
        self._n_clipped = 0
        self._n_refused = 0
        self._synced_s = 0.0

    @property
    def path(self) -> Path:
        """The final path; after ``finish`` the one that the file actually has."""
        return self._part.path

    @property
    def part(self) -> Path:
        """Path of the unfinished file."""
        return self._part.part

    @property
    def is_gone(self) -> bool:
        """Whether the file was removed, so that a new one is needed."""
        return self._file is not None and self._file.is_gone

    @property
    def n_samples(self) -> int:
        """Samples per channel in the file, including silence for missing ones."""
        return self._n_samples

    @property
    def clipped_samples(self) -> int:
        """Samples that were clipped to the file's integers, or NaN, in all channels."""
        return self._n_clipped

    @property
    def gaps(self) -> int:
        """Number of gaps."""
        return self._file.gaps.count if self._file else 0

    @property
    def gap_samples(self) -> int:
        """Samples per channel that silence replaces."""
        return self._file.gaps.samples if self._file else 0

    @property
    def cut_length(self) -> int:
        """Samples per channel that were taken, and that the file lost when a fault ended it.

        Negative if it has a part of the block that ``write`` failed for.
        """
        lost = self._file.cut_samples if self._file else None
        return 0 if lost is None else lost - self._n_refused

    @property
    def size_bytes(self) -> int:
        """Length of the file so far; 0 before the first block."""
        return self._file.size_bytes if self._file else 0

    def fits(self, block: Block) -> bool:
        """Return whether a block belongs to this file, and not to a new one.

        It does not after a gap of more than ``gap_max_s``, if the list of gaps is full, and if it
        does not continue this file: its index goes back, or its number of channels differs.
        """
        if self._file is None:
            return True
        is_alike = block.samples.shape[0] == self._channels and not self._file.gaps.is_full
        return is_alike and 0 <= self._missing_before(block) <= self._options.gap_max_s * self._fs

    def write(self, block: Block) -> None:
        """Append a block.

        Raises
        ------
        StorageError
            If it cannot be written. Earlier samples stay, and the next block can be tried: this one
            becomes a gap. In a FLAC file only ``finish`` and ``abort`` work then.
        InputError
            If the number of channels differs, its index goes back, or more than a day is missing.
        """
        if self._file is None:
            self._begin(block)
        assert self._file is not None
        missing = self._checked_missing(block)
        if self._n_samples and (missing or block.discontinuity):
            self._file.write_silence(missing)
            self._file.gaps.add(self._n_samples, missing)
            self._n_samples += missing
            # Immediately: a killed program must not leave unlisted silence.
            self._file.list_gaps()
        self._n_clipped += self._file.write(block.samples.T)
        self._n_samples += block.n_samples
        if self._clock() - self._synced_s >= self._options.fsync_s:
            try:
                self.flush()
            except SpectrodError:
                self._n_refused = block.n_samples
                raise

    def flush(self) -> None:
        """Synchronise written samples to the disk, and update the header; raises StorageError."""
        if self._file:
            self._file.sync()
        self._synced_s = self._clock()

    def finish(self) -> None:
        """Complete the file and give it its final name.

        Raises
        ------
        InputError
            If there were no samples; no file is made then.
        StorageError
            If it cannot be completed; ``PATH.part`` stays for ``recover``, except for a copy and a
            file that has lost all of its samples.
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
            if self._options.is_copy or self._file.cut_samples == self._n_samples:
                self._remove()
            raise
        finally:
            self._file.discard()
            self._part.close()

    def _publish(self) -> None:
        with storage_errors(self.path):
            self._part.publish()

    def abort(self) -> None:
        """Give up. Idempotent; does nothing after ``finish``.

        Written samples stay in ``PATH.part`` for ``recover``; it is removed if it is empty or a
        copy.
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
        self._file = self._format(self._part, self._subtype, notes)
        self._synced_s = self._clock()

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


def _positive(channels: int) -> int:
    if channels < 1:
        raise ConfigError(f"channels={channels}: must be at least 1")
    return channels
