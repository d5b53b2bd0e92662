"""What a recorder's lanes write: segments, files of sound, pyramids, as one kind of thing."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from spectrod.errors import ConfigError, StorageError
from spectrod.record.directory import Directory
from spectrod.record.pyramid import PyramidOptions, PyramidWriter
from spectrod.record.recording import Description
from spectrod.record.segment.writer import SegmentWriter
from spectrod.record.sound import SoundOptions, SoundWriter
from spectrod.recorder.shelf import Shelf
from spectrod.types import Block, SpectrumBatch, SpectrumSpec

_PYRAMIDS_MAX = 100
_MINUTE_NS = 60 * 1_000_000_000

T_contra = TypeVar("T_contra", contravariant=True)


class Output(Protocol[T_contra]):
    """A file that is being written. Errors are SpectrodErrors."""

    @property
    def path(self) -> Path:
        """Its final name, which ``finish`` may change if it is taken."""

    @property
    def size_bytes(self) -> int:
        """Its length by now."""

    @property
    def is_gone(self) -> bool:
        """Whether somebody has removed it while it is being written."""

    def fits(self, piece: T_contra) -> bool:
        """Whether a piece belongs into this file, not into a new one."""

    def write(self, piece: T_contra) -> None:
        """Take a piece."""

    def flush(self) -> None:
        """Make what was taken survive a power failure."""

    def finish(self) -> None:
        """Give it its name; a file without content is none."""

    def abort(self) -> None:
        """Let go of it as it is, to be recovered; nothing is left to do after ``finish``."""


class SegmentOutputs:
    """Makes segments of one recording, each of which follows on the one before.

    Parameters
    ----------
    describe : callable
        Makes the description of a batch's rows.
    fsync_s : float
        See ``SegmentWriter``.
    """

    unit = SpectrumBatch.unit

    def __init__(self, describe: Callable[[SpectrumBatch], Description], fsync_s: float) -> None:
        self._describe, self._fsync_s = describe, fsync_s
        self._last: SegmentWriter | None = None

    def open(self, shelf: Shelf, stem: str, piece: SpectrumBatch) -> "Output[SpectrumBatch]":
        """Begin a file whose first piece this is."""
        last, description = self._last, self._describe(piece)
        # Another analysis is another recording: its rows are not counted on.
        is_next = last is not None and last.description.spec == piece.spec
        place = last.next_place if last is not None and is_next else None
        part = shelf.new_file(stem, ".spd")
        self._last = SegmentWriter(part, description, self._fsync_s, place)
        return _Segment(self._last)


class _Segment:
    """A segment as an output."""

    def __init__(self, writer: SegmentWriter) -> None:
        self._writer = writer

    @property
    def path(self) -> Path:
        return self._writer.path

    @property
    def size_bytes(self) -> int:
        return self._writer.size_bytes

    @property
    def is_gone(self) -> bool:
        return self._writer.is_gone

    def fits(self, piece: SpectrumBatch) -> bool:
        return piece.spec == self._writer.description.spec

    def write(self, piece: SpectrumBatch) -> None:
        self._writer.submit(piece)

    def flush(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        if self._writer.n_frames:
            self._writer.finish()
        else:
            self._writer.abort()

    def abort(self) -> None:
        self._writer.abort()


class SoundOutputs:
    """Makes files of sound.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    suffix : str
        ``.wav`` or ``.flac``.
    options : SoundOptions
        See there.
    """

    unit = Block.unit

    def __init__(self, fs: float, suffix: str, options: SoundOptions) -> None:
        self._fs, self._suffix, self._options = fs, suffix, options

    def open(self, shelf: Shelf, stem: str, piece: Block) -> "Output[Block]":
        """Begin a file whose first piece this is."""
        part = shelf.new_file(stem, self._suffix)
        writer = SoundWriter(part, self._fs, piece.samples.shape[0], options=self._options)
        return _Sound(writer)


class _Sound:
    """A file of sound as an output."""

    def __init__(self, writer: SoundWriter) -> None:
        self._writer = writer

    @property
    def path(self) -> Path:
        return self._writer.path

    @property
    def size_bytes(self) -> int:
        return self._writer.size_bytes

    @property
    def is_gone(self) -> bool:
        return self._writer.is_gone

    def fits(self, piece: Block) -> bool:
        return not self._writer.needs_new_file(piece)

    def write(self, piece: Block) -> None:
        self._writer.take(piece)

    def flush(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        if self._writer.n_samples:
            self._writer.finish()
        else:
            self._writer.abort()

    def abort(self) -> None:
        self._writer.abort()


class PyramidOutputs:
    """Makes the pyramid of a recording, which goes on from start to start.

    Rows of another analysis have a pyramid of their own beside it.

    Parameters
    ----------
    describe : callable
        Makes the description of a batch's rows.
    fsync_s : float
        See ``PyramidOptions``.
    """

    unit = SpectrumBatch.unit

    def __init__(self, describe: Callable[[SpectrumBatch], Description], fsync_s: float) -> None:
        self._describe, self._options = describe, PyramidOptions(fsync_s=fsync_s)
        self._writer: PyramidWriter | None = None

    def open(self, shelf: Shelf, _stem: str, piece: SpectrumBatch) -> "Output[SpectrumBatch]":
        """Begin, or go on with, what this piece belongs to."""
        description, folder = self._describe(piece), shelf.made()
        for k in range(1, _PYRAMIDS_MAX + 1):
            directory = _made(folder, "pyramid" if k == 1 else f"pyramid-{k}")
            try:
                self._writer = PyramidWriter(directory, description, self._options)
                break
            except ConfigError:  # of other rows, or of another recording
                if k == _PYRAMIDS_MAX:
                    raise
        assert self._writer is not None
        return _Pyramid(self._writer, piece.spec)

    def expire(self, before_utc_ns: int) -> None:
        """Delete cells below a minute that end before a time; coarser ones stay for good."""
        if self._writer is None:
            return
        for level, cell_ns in enumerate(self._writer.about.cells_ns):
            if cell_ns < _MINUTE_NS:
                self._writer.expire(before_utc_ns, level)


def _made(folder: Directory, name: str) -> Directory:
    try:
        return folder.make_child(name)
    except OSError as error:
        raise StorageError(f"{folder.path / name}: {error.strerror or error}") from error


class _Pyramid:
    """A pyramid as an output."""

    size_bytes = 0
    """Its size is no file's, and counts for no limit."""

    def __init__(self, writer: PyramidWriter, spec: SpectrumSpec) -> None:
        self._writer, self._spec = writer, spec
        self.path = writer.folder

    @property
    def is_gone(self) -> bool:
        return self._writer.is_gone

    def fits(self, piece: SpectrumBatch) -> bool:
        return piece.spec == self._spec

    def write(self, piece: SpectrumBatch) -> None:
        self._writer.submit(piece)

    def flush(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        self._writer.finish()

    def abort(self) -> None:
        self._writer.abort()
