"""Rows of a recording by their number: their times in memory, their values in its segments."""

from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Int64Array
from spectrod.formats.export.export_rows import COLUMNS, rows_of
from spectrod.formats.export.layout import CONDITIONS
from spectrod.formats.segment.continuity import Continuity
from spectrod.formats.segment.segment_series import find_segments
from spectrod.lib.errors import StorageError


class SegmentTable:
    """Random access to the rows of an ``.spd``, an ``.spd.part`` or a folder of them.

    Rows, gaps and indices are those of ``SegmentReader``. Files are open only during reads. A row
    takes 43 bytes of memory, and one for each signal. Threads may read at the same time.

    Parameters
    ----------
    path : Path
        Path of the file or folder.
    check : bool
        Whether all values are read once, and damaged records left out, as ``SegmentReader`` does.
        Otherwise only heads and times are read, and a read of damaged values raises StorageError.

    Attributes
    ----------
    description : Description
        Metadata of the whole recording.
    columns : dict of (rows,) arrays
        See ``Rows.columns``.
    conditions : (rows, signals) uint8
        See ``Rows.conditions``.
    engines : list of str
        Names of the engines, by ``engine_index``.
    left_out_samples : int or None
        See ``SegmentReader``.

    Raises
    ------
    InputError
        If there is no segment, or there are several that do not belong together.
    StorageError
        If a segment cannot be read.
    """

    def __init__(self, path: Path, *, check: bool = False) -> None:
        self._segments = find_segments(path)
        self.description = self._segments[0].header.description
        self.engines: list[str] = []
        self.left_out_samples = self._segments[-1].left_out_samples()
        self._columns = {name: bytearray() for name in (*COLUMNS, CONDITIONS)}
        self._places: list[tuple[int, int]] = []  # segment and offset of each record
        first_rows = [0]
        continuity = Continuity(self.description.spec, is_part=False)
        for number, segment in enumerate(self._segments):
            for offset, stored in segment.places(check=check):
                try:
                    batch = continuity.join(stored)
                except StorageError as error:
                    raise StorageError(f"{segment.path}: {error}") from error
                self._add(batch)
                self._places.append((number, offset))
                first_rows.append(first_rows[-1] + batch.n_frames)
        self._first_rows = np.array(first_rows, np.int64)
        self.columns = {
            name: np.frombuffer(self._columns.pop(name), dtype) for name, dtype in COLUMNS.items()
        }
        conditions = np.frombuffer(self._columns.pop(CONDITIONS), np.uint8)
        self.conditions = conditions.reshape(-1, self.description.spec.n_signals)

    def _add(self, batch: SpectrumBatch) -> None:
        if batch.engine not in self.engines:
            self.engines.append(batch.engine)
        rows = rows_of(batch, self.engines.index(batch.engine))
        for name, column in {**rows.columns, CONDITIONS: rows.conditions}.items():
            self._columns[name] += column.tobytes()

    def __len__(self) -> int:
        return int(self._first_rows[-1])

    def read(self, numbers: Int64Array) -> Iterator[tuple[slice, SpectrumBatch, Int64Array]]:
        """Yield the records that hold these rows.

        Parameters
        ----------
        numbers : (n,) int64
            Numbers of rows, from 0, in any order; in ascending order no record is read twice.

        Yields
        ------
        places : slice
            Which of ``numbers`` follow.
        batch : SpectrumBatch
            A record that holds them.
        rows : (n,) int64
            Their places in it.

        Raises
        ------
        StorageError
            If a file cannot be read, or is damaged there.
        """
        records = np.searchsorted(self._first_rows, numbers, side="right") - 1
        changes = np.flatnonzero(np.diff(records)) + 1
        limits = [0, *changes.tolist(), len(numbers)] if len(numbers) else []
        runs = [(int(records[start]), start, stop) for start, stop in pairwise(limits)]
        for number, of_segment in groupby(runs, lambda run: self._places[run[0]][0]):
            with self._segments[number].reading() as at:
                for record, start, stop in of_segment:
                    batch = at(self._places[record][1])
                    yield slice(start, stop), batch, numbers[start:stop] - self._first_rows[record]
