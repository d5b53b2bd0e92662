"""Reads a recording back: one segment, or all segments of a folder in order."""

import os
from collections.abc import Iterator
from pathlib import Path

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import Description
from spectrod.formats.segment.continuity import Continuity, Range, joined
from spectrod.formats.segment.header import row_samples
from spectrod.formats.segment.segment_series import find_segments
from spectrod.lib.errors import InputError, StorageError


class SegmentReader:
    """A ``RowReader`` of an ``.spd``, an ``.spd.part`` or a folder of them.

    Rows are returned bit for bit as they were written. Lost samples, rows that could not be
    written, damage, and missing segments become gaps between them.

    A folder may hold several recordings of the same analysis. They are read in order of UTC, and
    sample indices, which begin at 0 in each, continue over the time between them.

    Parameters
    ----------
    path : path-like
        Path of the file or folder. A ``.part`` may be growing: it is read up to its last complete
        record.

    Raises
    ------
    InputError
        If there is no segment, or there are several that do not belong together.
    StorageError
        If a segment cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._segments = find_segments(self.path)

    @property
    def description(self) -> Description:
        """Metadata of the whole recording: that of the first segment."""
        return self._segments[0].header.description

    @property
    def paths(self) -> list[Path]:
        """The segments, in order."""
        return [segment.path for segment in self._segments]

    @property
    def damaged_bytes(self) -> int:
        """Damaged bytes that reads have skipped so far, except a tail that is being written."""
        return sum(
            one.n_bytes
            for segment in self._segments
            for one in segment.damage
            if not (one.is_tail and segment.is_part)
        )

    @property
    def left_out_samples(self) -> int | None:
        """Samples that are in no row, from the last segment; None if it does not say."""
        return self._segments[-1].left_out_samples()

    def span_utc_ns(self) -> tuple[int, int]:
        """Return the UTC of the first row and of the end of the last [ns]; equal without rows."""
        begin = self._segments[0].begin_utc_ns
        for segment in reversed(self._segments):
            last = segment.last_utc_ns()
            if last is not None:
                spec = self.description.spec
                return begin, last + round(row_samples(spec) * NS_PER_S / spec.fs)
        return begin, begin

    def batches(
        self,
        start_utc_ns: int | None = None,
        stop_utc_ns: int | None = None,
        start_row: int | None = None,
        stop_row: int | None = None,
    ) -> Iterator[SpectrumBatch]:
        """Yield rows in order; consecutive ones are joined to batches of about 1 MiB.

        The first batch of a part reports no gap before it.

        Parameters
        ----------
        start_utc_ns, stop_utc_ns : int, optional
            Only rows at or after the start, and before the stop [ns].
        start_row, stop_row : int, optional
            Only rows from this number in the recording on, and before the stop.

        Raises
        ------
        InputError
            If rows are selected by number, and there are several recordings.
        StorageError
            If a file cannot be read.
        """
        recordings = {segment.header.place.recording for segment in self._segments}
        if len(recordings) > 1 and (start_row is not None or stop_row is not None):
            raise InputError(f"{self.path}: rows have numbers in one recording: it has several")
        want = Range(start_utc_ns, stop_utc_ns, start_row or 0, stop_row)
        return joined(self._chosen(want))

    def _chosen(self, want: Range) -> Iterator[SpectrumBatch]:
        continuity = Continuity(self.description.spec, is_part=want.has_start)
        for segment, after in zip(self._segments, [*self._segments[1:], None], strict=True):
            if after and want.starts_before(after.first):
                continue
            for stored in segment.batches(want.start_utc_ns, want.start_row):
                cut = want.cut(stored)
                if want.is_over:
                    return
                if cut is not None:
                    try:
                        batch = continuity.join(cut)
                    except StorageError as error:
                        raise StorageError(f"{segment.path}: {error}") from error
                    yield batch

    def close(self) -> None:
        """Do nothing: files are open only during reads."""
