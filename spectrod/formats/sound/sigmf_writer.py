"""SigMF recordings from blocks of samples; each gap begins a new capture and is not filled.

References
----------
.. [1] The Signal Metadata Format Specification, version 1.2.6, sigmf.org.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.fileio import check_new, create, write_at
from spectrod.formats.output import WholeFile
from spectrod.formats.part import PartFile
from spectrod.formats.path_links import written_path
from spectrod.formats.sound.pcm_samples import SAMPLE_BYTES, to_bytes
from spectrod.formats.sound.sound_options import SoundOptions, Subtype, checked_subtype
from spectrod.lib.durations import format_frequency
from spectrod.lib.errors import (
    ConfigError,
    InputError,
    StorageError,
    storage_error,
    storage_errors,
)
from spectrod.lib.text import printable

VERSION: Final = "1.2.0"
"""Version of the specification; the written fields mean the same in all later 1.2 versions."""

META_SUFFIX: Final = ".sigmf-meta"
DATA_SUFFIX: Final = ".sigmf-data"
CAPTURES_MAX: Final = 1 << 16

_NUMBERS: dict[Subtype, str] = {"f32": "f32_le", "s16": "i16_le", "s32": "i32_le"}
_TAIL = b'\n ],\n "annotations": []\n}\n'
_FS_MIN_HZ = 1.0
_REMEDY = "take .part off the names of both files, or remove them"


class SigmfWriter(WholeFile):
    """Writes samples to ``NAME.sigmf-data`` as they arrive, and metadata to ``NAME.sigmf-meta``.

    Until ``finish`` both names end in ``.part``. The metadata is valid JSON at every moment and
    each gap adds a capture, so the parts that a killed program leaves are a recording once they are
    renamed. Gaps are not filled: ``core:global_index`` of a capture is the index of its first
    sample in the source. One thread at a time.

    Parameters
    ----------
    path : Path
        Path of either file.
    spec : SpectrumSpec
        Gives sample rate, channels, whether they are I/Q, and the centre frequency.
    subtype : {"", "f32", "s16", "s32"}
        Type of the stored numbers; f32 by default, which is exact.
    options : SoundOptions
        Interval of ``fsync``, and source, software and kind of times for the metadata.
    clock : callable
        Monotonic seconds.

    Raises
    ------
    ConfigError
        If the format does not support such samples.
    StorageError
        If no files can be made at these paths.
    """

    def __init__(
        self,
        path: Path,
        spec: SpectrumSpec,
        subtype: str,
        options: SoundOptions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._subtype = checked_subtype(META_SUFFIX, subtype)
        if spec.fs < _FS_MIN_HZ:
            raise ConfigError(f"fs={spec.fs:g}: SigMF has sample rates from {_FS_MIN_HZ:g} Hz on")
        self._spec, self._options, self._clock = spec, options, clock
        self._data = PartFile(path.with_suffix(DATA_SUFFIX))
        try:
            self._meta = PartFile(path.with_suffix(META_SUFFIX))
        except BaseException:
            self._data.close()
            raise
        self._data_fd = self._meta_fd = -1
        self._had_meta = os.path.lexists(self._meta.path)
        self._n_stored = self._n_captures = self._n_clipped = 0
        self._next_index: int | None = None
        self._first_index = 0
        self._meta_bytes = 0
        self._synced_s = 0.0
        self._is_done = False
        try:
            check_new(self._data, _REMEDY)
            check_new(self._meta, _REMEDY)
        except BaseException:
            self._close_parts()
            raise

    @property
    def path(self) -> Path:
        """Final path of the metadata; after ``finish`` the one that the file actually has."""
        return self._meta.path

    @property
    def n_samples(self) -> int:
        """Samples per channel so far, including missing ones."""
        return 0 if self._next_index is None else self._next_index - self._first_index

    @property
    def clipped_samples(self) -> int:
        """Samples that were clipped to the file's integers, or NaN, in all channels."""
        return self._n_clipped

    def write(self, block: Block) -> None:
        """Append a block.

        Raises
        ------
        StorageError
            If it cannot be written, or there are too many gaps. Earlier samples stay, and the next
            block can be tried: this one becomes a gap.
        InputError
            If it has another number of channels, or its index goes back.
        """
        if block.samples.shape[0] != self._spec.channels:
            raise InputError(
                f"{self.path}: a block of {block.samples.shape[0]} channels; "
                f"the recording has {self._spec.channels}"
            )
        meta_bytes, n_captures = self._meta_bytes, self._n_captures
        if self._next_index is None:
            self._begin(block)
        elif block.sample_index < self._next_index:
            raise InputError(
                f"{self.path}: sample {block.sample_index} comes after sample "
                f"{self._next_index - 1}"
            )
        elif block.sample_index > self._next_index or block.discontinuity:
            self._add_capture(block)
        data, n_clipped = to_bytes(block.samples.T, self._subtype)
        try:
            write_at(self._data_fd, data, self._n_stored * self._frame_bytes)
        except OSError as error:
            if n_captures:  # a capture has samples
                self._drop_capture(meta_bytes, n_captures)
            raise storage_error(self._data.path, error) from error
        self._n_clipped += n_clipped
        self._n_stored += block.n_samples
        self._next_index = block.sample_index + block.n_samples
        if self._clock() - self._synced_s >= self._options.fsync_s:
            self._sync()

    def finish(self) -> None:
        """Complete both files and give them their final names, the metadata last.

        Raises
        ------
        InputError
            If there were no samples; no file is made then.
        StorageError
            If they cannot be completed; the parts stay, except those of a copy.
        """
        if self._is_done:
            return
        self._is_done = True
        try:
            if not self._n_stored:
                self._remove()
                raise InputError(f"{self.path}: no samples to write")
            with storage_errors(self.path):
                os.ftruncate(self._data_fd, self._n_stored * self._frame_bytes)
                self._sync()
                self._publish()
        except StorageError:
            if self._options.is_copy:
                self._remove()
            raise
        finally:
            self._close()

    def abort(self) -> None:
        """Give up. Idempotent; does nothing after ``finish``.

        Written samples stay in both parts, which are removed if they are empty or a copy.
        """
        if self._is_done:
            return
        self._is_done = True
        if self._options.is_copy or not self._n_stored:
            self._remove()
        self._close()

    @property
    def _frame_bytes(self) -> int:
        return SAMPLE_BYTES[self._subtype] * self._spec.channels

    def _begin(self, block: Block) -> None:
        self._data_fd = create(self._data, _REMEDY)
        try:
            self._meta_fd = create(self._meta, _REMEDY)
            about = {"core:" + name: value for name, value in self._about().items()}
            text = json.dumps(about, indent=1).replace("\n", "\n ")
            self._write_meta(f'{{\n "global": {text},\n "captures": ['.encode())
            self._add_capture(block)
        except BaseException:
            self._remove()
            self._close()
            self._is_done = True
            raise
        self._first_index = block.sample_index
        self._synced_s = self._clock()

    def _about(self) -> dict[str, Any]:
        spec, source = self._spec, printable(self._options.source, 200)
        text = f"{source}, {format_frequency(spec.fs)}" if source else format_frequency(spec.fs)
        return {
            "datatype": ("c" if spec.iq else "r") + _NUMBERS[self._subtype],
            "version": VERSION,
            "sample_rate": int(spec.fs) if spec.fs.is_integer() else spec.fs,
            "num_channels": spec.n_signals,
            "recorder": printable(self._options.software, 64),
            "description": text,
        }

    def _add_capture(self, block: Block) -> None:
        """Add a capture that begins with this block."""
        if self._n_captures == CAPTURES_MAX:
            raise StorageError(f"{self.path}: has {CAPTURES_MAX} captures, and room for no more")
        capture: dict[str, Any] = {
            "core:sample_start": self._n_stored,
            "core:global_index": block.sample_index,
        }
        if self._options.has_utc:
            capture["core:datetime"] = f"{np.datetime64(block.t_utc_ns, 'ns')}Z"
        if self._spec.iq and self._spec.center_frequency_hz:
            capture["core:frequency"] = self._spec.center_frequency_hz
        comma = "," if self._n_captures else ""
        self._write_meta(f"{comma}\n  {json.dumps(capture)}".encode())
        self._n_captures += 1

    def _write_meta(self, text: bytes) -> None:
        """Append to the metadata, in one write with the end of the document."""
        with storage_errors(self._meta.path):
            write_at(self._meta_fd, text + _TAIL, self._meta_bytes)
        self._meta_bytes += len(text)

    def _drop_capture(self, meta_bytes: int, n_captures: int) -> None:
        """Cut the metadata back to an earlier length; this needs no more space on the disk."""
        self._meta_bytes, self._n_captures = meta_bytes, n_captures
        with storage_errors(self._meta.path):
            write_at(self._meta_fd, _TAIL, meta_bytes)
            os.ftruncate(self._meta_fd, meta_bytes + len(_TAIL))

    def _sync(self) -> None:
        with storage_errors(self._data.path):
            for fd in (self._data_fd, self._meta_fd):
                os.fsync(fd)
        self._synced_s = self._clock()

    def _publish(self) -> None:
        if self._had_meta:  # old metadata must never stand beside new samples
            written_path(self._meta.path).unlink(missing_ok=True)
        self._data.publish()
        self._meta.publish()
        if self._data.path.stem != self._meta.path.stem:
            raise StorageError(
                f"{self._data.path}: described by {self._meta.path.name}, since other files have "
                "their names; rename one of both"
            )

    def _remove(self) -> None:
        self._data.remove()
        self._meta.remove()

    def _close(self) -> None:
        for fd in (self._data_fd, self._meta_fd):
            if fd >= 0:
                os.close(fd)
        self._data_fd = self._meta_fd = -1
        self._close_parts()

    def _close_parts(self) -> None:
        self._data.close()
        self._meta.close()
