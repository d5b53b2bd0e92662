"""Files of a configured recording that continue the ones before: segments and pyramids."""

from collections.abc import Callable

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import Description
from spectrod.formats.directory import Directory
from spectrod.formats.output import Output
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import ConfigError, storage_errors
from spectrod.recording.recording_folder import RecordingFolder

_PYRAMIDS_MAX = 100
_MINUTE_NS = 60 * NS_PER_S


class SegmentOutputs:
    """Makes the segments of one recording; each continues the one before.

    Parameters
    ----------
    describe : callable
        Makes the description of a batch's rows.
    fsync_s : float
        See ``SegmentWriter``.
    """

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
        return self._last


class _RecordedPyramid(PyramidWriter):
    """A pyramid whose size does not count towards any limit."""

    @property
    def size_bytes(self) -> int:
        return 0


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
                self._writer = _RecordedPyramid(place, description, self._options)
                break
            except ConfigError:  # holds other rows, or belongs to another recording
                if k == _PYRAMIDS_MAX:
                    raise
        assert self._writer is not None
        return self._writer

    def expire(self, before_utc_ns: int) -> None:
        """Delete cells shorter than a minute that end before a time; keep coarser ones."""
        if self._writer is None:
            return
        for level, cell_ns in enumerate(self._writer.about.cells_ns):
            if cell_ns < _MINUTE_NS:
                self._writer.expire(before_utc_ns, level)


def _made(folder: Directory, name: str) -> Directory:
    with storage_errors(folder.path / name):
        return folder.make_child(name)
