"""Writes rows of spectra to a pyramid as they arrive."""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Float64Array, Int64Array, level_to_power
from spectrod.formats.description import Description
from spectrod.formats.directory import Directory
from spectrod.formats.pyramid.cell import Cell, merge
from spectrod.formats.pyramid.metadata import (
    NAME,
    DamagedError,
    PyramidMetadata,
    is_same,
    load,
    metadata_of,
    row_ns,
    save,
)
from spectrod.formats.pyramid.pyramid_store import CellStore
from spectrod.formats.segment.appending import lock
from spectrod.lib.earlier_name import earlier_name
from spectrod.lib.errors import BusyError, ConfigError, StorageError, storage_errors

_log = logging.getLogger(__name__)

_RESTART_CELLS = 64
"""Smallest number of finest cells at the end whose coarser cells are rebuilt at a start."""


@dataclass(frozen=True, slots=True)
class PyramidOptions:
    """Resolution of a pyramid.

    Attributes
    ----------
    finest_s : float
        Length of the finest cells [s]: the next longer of 10, 50, 250 ms, 1, 5, 15 s, 1, 5, 15 min,
        1, 4 h and a day, but at least the time between rows.
    values_max : int
        Largest number of values of a cell, combined from neighbouring bins or bands; 0 for all.
    fsync_s : float
        Interval of synchronisation to the disk [s].

    Raises
    ------
    ConfigError
        See ``PyramidWriter``.
    """

    finest_s: float = 1.0
    values_max: int = 512
    fsync_s: float = 5.0


_DEFAULTS = PyramidOptions()


class PyramidWriter:
    """A ``RowWriter`` of minimum, mean and maximum per cell.

    Memory is that of one cell for any length. A finest cell is written when rows of the next one
    arrive, and coarser cells are made from finer ones as those are completed: so a coarse cell is
    at most one finer cell behind, and the next start rebuilds those that a crash left out. A crash
    loses the incomplete finest cell, and a power failure the data since the last ``fsync_s``. An
    existing pyramid is continued.

    A row belongs to the cell at the centre of its frames. Rows of a time that already has a cell,
    after a restart or after the clock was set back, are merged into it. The writer accepts every
    batch immediately. Not thread-safe.

    A damaged file of the pyramid does not stop it: the file is renamed to NAME.damaged, which is
    logged, and made again. Without metadata, cells of the size of these rows' remain.

    Parameters
    ----------
    folder : path-like or Directory
        Created if it is missing; its parent must exist. A ``Directory`` is closed with the writer,
        also if the constructor fails.
    description : Description
        Description of the rows.
    options : PyramidOptions
        Resolution of the pyramid.
    clock : callable
        Monotonic seconds.

    Raises
    ------
    BusyError
        If another program is writing to it.
    ConfigError
        If the folder contains a pyramid of other rows, or rows and options do not match.
    StorageError
        If it cannot be created or read.
    """

    cut_length = 0

    def __init__(
        self,
        folder: str | os.PathLike[str] | Directory,
        description: Description,
        options: PyramidOptions = _DEFAULTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        directory = folder if isinstance(folder, Directory) else _made(Path(folder))
        self.folder = directory.path
        self._spec = description.spec
        self._options, self._clock = options, clock
        self._directory = directory
        try:
            about = metadata_of(description, options.finest_s, options.values_max)
            _lock(directory)
            _claim(directory, about)
        except BaseException:
            directory.close()
            raise
        self._store = CellStore(directory, about, is_writer=True)
        try:
            self._make_up()
        except BaseException:
            self._store.close()
            raise
        self.about = about
        self._row_ns = row_ns(self._spec)
        self._n_frames = 0
        self._index: int | None = None
        self._cells: list[Cell] = []
        self._unmade: list[int] = []
        self._synced_s = clock()
        self._is_open = True

    @property
    def path(self) -> Path:
        """The folder, as ``path`` of other writers is their file."""
        return self.folder

    @property
    def n_frames(self) -> int:
        """Rows written so far."""
        return self._n_frames

    @property
    def size_bytes(self) -> int:
        """Space of the pyramid on the disk; computed from all its files at each call."""
        return self._store.size_bytes()

    @property
    def is_gone(self) -> bool:
        """Whether the folder was removed."""
        return self._is_open and os.fstat(self._directory.fileno()).st_nlink == 0

    def fits(self, batch: SpectrumBatch) -> bool:
        """Return whether a batch is of the pyramid's analysis."""
        return batch.spec == self._spec

    def write(self, batch: SpectrumBatch) -> None:
        """Add a batch.

        Raises
        ------
        ConfigError
            If the batch has another spec than the description.
        StorageError
            If a cell cannot be written; it is missing then, but later ones can be tried.
        """
        if not self.fits(batch):
            raise ConfigError(f"{self.folder}: the analysis has changed; a pyramid holds one kind")
        if batch.n_frames == 0:
            return
        indices = self._indices(batch)
        pooled = self._pooled(batch)
        begins = [0, *(np.flatnonzero(np.diff(indices)) + 1).tolist(), len(indices)]
        for begin, end in pairwise(begins):
            rows = slice(begin, end)
            index = int(indices[begin])
            if index != self._index:
                self._leave(index)
            self._add(batch, rows, [part[rows] for part in pooled])
            self._n_frames += end - begin
        if self._clock() - self._synced_s >= self._options.fsync_s:
            self.flush()

    submit = earlier_name("submit", "write")

    def flush(self) -> None:
        """Synchronise all complete cells to the disk; raises StorageError."""
        self._store.sync()
        self._synced_s = self._clock()

    def finish(self) -> None:
        """Write the remaining cell and its coarser ones; raises StorageError."""
        if self._is_open:
            try:
                self._leave(None)
                self.flush()
            finally:
                self._close()

    def abort(self) -> None:
        """Close the pyramid as it is on the disk. Idempotent."""
        if self._is_open:
            self._close()

    def expire(self, before_utc_ns: int, level: int) -> int:
        """Remove expired files of a level; return the bytes freed.

        Does nothing after the end.

        Parameters
        ----------
        before_utc_ns : int
            Files that end before this time are removed [ns since 1970].
        level : int
            0 is the finest; ``about.cells_ns`` has the lengths. Coarser levels stay.
        """
        return self._store.expire(level, before_utc_ns) if self._is_open else 0

    # ---- rows to cells

    def _indices(self, batch: SpectrumBatch) -> Int64Array:
        spec = self._spec
        span = spec.row_span
        middle_ns = round(span * 0.5e9 / spec.fs)
        return np.asarray((batch.t_utc_ns + middle_ns) // self.about.cells_ns[0], np.int64)

    def _pooled(self, batch: SpectrumBatch) -> list[Float64Array]:
        """Return least, mean and greatest power of each value's bins, (rows, signals, values)."""
        power = batch.values.astype(np.float64)
        if self._spec.scaling == "dbfs":
            power = level_to_power(power)
        if self.about.group == 1:
            return [power, power, power]
        starts = self.about.group_starts()
        counts = np.diff([*starts, power.shape[2]])
        return [
            np.minimum.reduceat(power, starts, axis=2),
            np.add.reduceat(power, starts, axis=2) / counts,
            np.maximum.reduceat(power, starts, axis=2),
        ]

    def _add(self, batch: SpectrumBatch, rows: slice, parts: list[Float64Array]) -> None:
        least, mean, greatest = parts
        n_rows = rows.stop - rows.start
        effort_ns = n_rows * self._row_ns
        if batch.cut_frames:
            effort_ns = effort_ns * batch.cut_frames // self._spec.averaging_frames
        power = np.stack([least.min(axis=0), mean.mean(axis=0), greatest.max(axis=0)])
        self._cells.append(Cell(max(1, effort_ns), power))
        if len(self._cells) > 1:
            self._cells = [merge(self._cells)]

    # ---- cells to the disk

    def _leave(self, next_index: int | None) -> None:
        """Write the finest cell, and the coarser cells in which a finer one is now complete."""
        index, cells = self._index, self._cells
        self._index, self._cells = next_index, []
        if index is None or not cells:
            return
        try:
            there = self._store.get(0, index)
            cell = merge([there, *cells] if there else cells)
            self._store.put(0, index, self._capped(cell))
            self._make_coarser(index, None if self._unmade else next_index)
            # Coarser cells still miss the cells from before a failure.
            for unmade in self._unmade:
                self._make_coarser(unmade, None)
        except StorageError:
            self._unmade = [*self._unmade[:1], index]
            raise
        self._unmade = []

    def _capped(self, cell: Cell) -> Cell:
        """Limit the effort to the possible maximum: a span recorded twice is not twice as long."""
        rows_max = self.about.cells_ns[0] // self._row_ns + 1
        return Cell(min(cell.effort_ns, rows_max * self._row_ns), cell.power)

    def _make_coarser(self, index: int, next_index: int | None) -> None:
        """Write the coarser cells that a finest cell completes when another one follows."""
        for level in range(1, len(self.about.cells_ns)):
            ratio = self._ratio(level)
            index //= ratio
            self._make(level, index)
            if next_index is not None:
                next_index //= ratio
                if index == next_index:
                    break

    def _make(self, level: int, index: int) -> None:
        """Make a coarser cell from the existing finer ones."""
        ratio = self._ratio(level)
        indices = range(index * ratio, (index + 1) * ratio)
        finer = [cell for n in indices if (cell := self._store.get(level - 1, n))]
        if not finer:
            return
        made, there = merge(finer), self._store.get(level, index)
        # Some of the finer cells may have been removed because of their age.
        if there is None or there.effort_ns <= made.effort_ns:
            self._store.put(level, index, made)

    def _ratio(self, level: int) -> int:
        cells_ns = self._store.about.cells_ns
        return cells_ns[level] // cells_ns[level - 1]

    def _make_up(self) -> None:
        """Rebuild coarser cells that a crash may have left out."""
        last = self._store.last(0)
        if last is None:
            return
        cells_ns = self._store.about.cells_ns
        since_s = round(3e9 * self._options.fsync_s) // cells_ns[0]
        first = last - max(_RESTART_CELLS, since_s)
        for level in range(1, len(cells_ns)):
            first, last = first // self._ratio(level), last // self._ratio(level)
            for index in range(first, last + 1):
                self._make(level, index)

    def _close(self) -> None:
        self._is_open = False
        self._store.close()


def _made(path: Path) -> Directory:
    """Create the folder if it is missing, and open it."""
    with storage_errors(path):
        path.mkdir(exist_ok=True)
        return Directory.open(path)


def _lock(folder: Directory) -> None:
    """Lock the folder for this program until it is closed."""
    with storage_errors(folder.path):
        is_free = lock(folder.fileno())
    if not is_free:
        raise BusyError(f"{folder.path}: another program is writing it")


def _claim(folder: Directory, about: PyramidMetadata) -> None:
    """Check that the folder's pyramid is of these rows; start a new one if there is none."""
    try:
        there = load(folder)
    except DamagedError as error:
        _set_aside_metadata(folder, error)
        there = None
    if there is None:
        save(folder, about)
    elif not is_same(there, about):
        raise ConfigError(f"{folder.path}: holds a pyramid of other rows; take another folder")


def _set_aside_metadata(folder: Directory, error: DamagedError) -> None:
    with storage_errors(folder.path / NAME):
        name = folder.set_aside(NAME)
    _log.warning("%s; renamed to %s, made again from the rows that come", error, name)
