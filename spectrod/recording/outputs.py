"""Factories of a configured recording's files: segments, values, sound files, pyramids."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import Description
from spectrod.formats.directory import Directory
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.formats.sound import SoundOptions, SoundWriter
from spectrod.formats.values.recorded import RecordedBy, ValueFileWriter
from spectrod.formats.values.value_description import LevelDescription
from spectrod.lib.errors import ConfigError, storage_error
from spectrod.recording.recording_folder import RecordingFolder
from spectrod.recording.rotating_writer import Output
from spectrod.recording.value_rows import ValueRow

_PYRAMIDS_MAX = 100
_MINUTE_NS = 60 * NS_PER_S

T = TypeVar("T")


class _RecoverableWriter(Protocol):
    """A writer of ``spectrod.formats`` whose unfinished file can be recovered."""

    @property
    def path(self) -> Path: ...
    @property
    def is_gone(self) -> bool: ...
    @property
    def size_bytes(self) -> int: ...
    def flush(self) -> None: ...
    def finish(self) -> None: ...
    def abort(self) -> None: ...


class WriterOutput(Generic[T]):
    """A writer as an ``Output``; a file without content is removed.

    Parameters
    ----------
    writer : SegmentWriter, SoundWriter or PyramidWriter
        A new writer.
    write : callable
        The writer's method that takes a chunk.
    fits : callable
        Returns whether a chunk belongs to its file.
    cut : callable
        Returns ``cut_length`` of ``Output``.
    """

    def __init__(
        self,
        writer: _RecoverableWriter,
        write: Callable[[T], None],
        fits: Callable[[T], bool],
        cut: Callable[[], int] = lambda: 0,
    ) -> None:
        self._writer, self._write, self._cut = writer, write, cut
        self.fits, self.flush, self.abort = fits, writer.flush, writer.abort
        self._has_content = False

    @property
    def path(self) -> Path:
        """See ``Output``."""
        return self._writer.path

    @property
    def size_bytes(self) -> int:
        """See ``Output``."""
        return self._writer.size_bytes

    @property
    def cut_length(self) -> int:
        """See ``Output``."""
        return self._cut()

    @property
    def is_gone(self) -> bool:
        """See ``Output``."""
        try:
            return self._writer.is_gone
        except OSError as error:  # as of NFS, whose server no longer knows the file
            raise storage_error(self.path, error) from error

    def write(self, chunk: T) -> None:
        """See ``Output``."""
        self._write(chunk)
        self._has_content = True

    def finish(self) -> None:
        """See ``Output``."""
        (self._writer.finish if self._has_content else self._writer.abort)()


class _PyramidOutput(WriterOutput[SpectrumBatch]):
    """A pyramid as an ``Output``: its size does not count towards any limit."""

    @property
    def size_bytes(self) -> int:
        return 0


def segment_output(writer: SegmentWriter) -> WriterOutput[SpectrumBatch]:
    """Return a segment as an ``Output``; a segment holds rows of one analysis."""
    spec = writer.description.spec
    return WriterOutput(writer, writer.submit, lambda batch: batch.spec == spec)


def value_output(writer: ValueFileWriter, about: LevelDescription) -> WriterOutput[ValueRow]:
    """Return a file of named values as an ``Output``; it holds rows of one product."""
    return WriterOutput(
        writer, lambda chunk: writer.submit(chunk.row), lambda chunk: chunk.about is about
    )


def sound_output(writer: SoundWriter) -> WriterOutput[Block]:
    """Return a sound file as an ``Output``."""
    return WriterOutput(
        writer,
        writer.take,
        lambda block: not writer.needs_new_file(block),
        lambda: writer.cut_samples,
    )


class SegmentOutputs:
    """Makes the segments of one recording; each continues the one before.

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

    def open(
        self, folder: RecordingFolder, stem: str, piece: SpectrumBatch
    ) -> Output[SpectrumBatch]:
        """Start a file with this first chunk."""
        last, description = self._last, self._describe(piece)
        # Another analysis is another recording: its numbering of rows starts again.
        is_next = last is not None and last.description.spec == piece.spec
        place = last.next_place if last is not None and is_next else None
        part = folder.new_file(stem, ".spd")
        self._last = SegmentWriter(part, description, self._fsync_s, place)
        return segment_output(self._last)


class ValueOutputs:
    """Makes files of named values.

    Parameters
    ----------
    suffix : str
        Suffix of one of ``VALUE_FORMATS``.
    by : RecordedBy
        What writes them.
    """

    unit = ValueRow.unit

    def __init__(self, suffix: str, by: RecordedBy) -> None:
        self._suffix, self._by = suffix, by

    def open(self, folder: RecordingFolder, stem: str, piece: ValueRow) -> Output[ValueRow]:
        """Start a file with this first chunk."""
        part = folder.new_file(stem, self._suffix)
        return value_output(ValueFileWriter(part, piece.about, self._by), piece.about)


class SoundOutputs:
    """Makes files of sound.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    suffix : str
        ``.wav`` or ``.flac``.
    options : SoundOptions
        Options of ``SoundWriter``.
    """

    unit = Block.unit

    def __init__(self, fs: float, suffix: str, options: SoundOptions) -> None:
        self._fs, self._suffix, self._options = fs, suffix, options

    def open(self, folder: RecordingFolder, stem: str, piece: Block) -> Output[Block]:
        """Start a file with this first chunk."""
        part = folder.new_file(stem, self._suffix)
        writer = SoundWriter(part, self._fs, piece.samples.shape[0], options=self._options)
        return sound_output(writer)


class PyramidOutputs:
    """Makes the pyramid of a recording, which continues after a restart.

    Rows of another analysis go to a pyramid of their own beside it.

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

    def open(
        self, folder: RecordingFolder, _stem: str, piece: SpectrumBatch
    ) -> Output[SpectrumBatch]:
        """Start the pyramid of this chunk, or continue it."""
        description, directory = self._describe(piece), folder.made()
        for k in range(1, _PYRAMIDS_MAX + 1):
            place = _made(directory, "pyramid" if k == 1 else f"pyramid-{k}")
            try:
                self._writer = PyramidWriter(place, description, self._options)
                break
            except ConfigError:  # holds other rows, or belongs to another recording
                if k == _PYRAMIDS_MAX:
                    raise
        assert self._writer is not None
        spec = piece.spec
        return _PyramidOutput(self._writer, self._writer.submit, lambda batch: batch.spec == spec)

    def expire(self, before_utc_ns: int) -> None:
        """Delete cells shorter than a minute that end before a time; keep coarser ones."""
        if self._writer is None:
            return
        for level, cell_ns in enumerate(self._writer.about.cells_ns):
            if cell_ns < _MINUTE_NS:
                self._writer.expire(before_utc_ns, level)


def _made(folder: Directory, name: str) -> Directory:
    try:
        return folder.make_child(name)
    except OSError as error:
        raise storage_error(folder.path / name, error) from error
