"""Adds what each kind of source knows to the columns of a picture of the past.

All levels are maxima over the same bins and the same cells, so that each source gives the same
value for the same time. Means are of power; those of a pyramid are of means of its values.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.web.history.axis import HistoryAxis, Pooling
from spectrod.apps.web.history.band_level import BandLevel, LevelPooling
from spectrod.apps.web.history.budget import Budget, SpentError
from spectrod.apps.web.history.columns import ColumnSums, SourceRows, codes_of, powers_of
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.row_ring import Remembered
from spectrod.apps.web.history.source_folder import Pyramid, StoredFile
from spectrod.apps.web.history.stored_rows import opened, read_beginning, rows_between
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S, Float32Array, Int64Array
from spectrod.formats.pyramid import Cells, PyramidReader
from spectrod.lib.errors import SpectrodError
from spectrod.lib.text import printable

SPANS_MAX: Final = 8
"""Empty spans of a picture that are looked up in segments: the longest."""
ROWS_AT_ONCE: Final = 512
VALUES_AT_ONCE: Final = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class HistoryPicture:
    """What is being drawn: columns of one channel, and what may be read for it.

    Attributes
    ----------
    columns : ColumnSums
        The columns.
    shown : HistoryAxis or BandLevel
        Their values, or what sums them up to one level.
    channel : str
        Name of the channel.
    index : RecordingIndex
        Recordings of its daemon.
    budget : Budget
        What may be read.
    """

    columns: ColumnSums
    shown: HistoryAxis | BandLevel
    channel: str
    index: RecordingIndex
    budget: Budget

    def pooling(self, source: HistoryAxis) -> Pooling:
        """Return what makes values of the columns of those of a source."""
        if isinstance(self.shown, BandLevel):
            return LevelPooling(source, self.shown)
        return Pooling(source, self.shown)


def add_pyramid(picture: HistoryPicture, pyramid: Pyramid, least_empty_ns: int = 0) -> None:
    """Add the cells of a pyramid.

    Parameters
    ----------
    picture : HistoryPicture
        The picture.
    pyramid : Pyramid
        A pyramid with the picture's channel.
    least_empty_ns : int
        Shorter spans without rows stay empty [ns].

    Raises
    ------
    OSError, SpectrodError
        If the pyramid has vanished, or is damaged.
    SpentError
        If it would take more than may be read.
    """
    columns, about = picture.columns, pyramid.about
    own = HistoryAxis.of_spec(pyramid.spec).grouped(about.group)
    pooling, signal = picture.pooling(own), about.signals.index(picture.channel)
    cell_bytes = 6 * len(about.signals) * about.n_values
    reader = picture.index.open_pyramid(pyramid)
    try:
        if reader.about != about:
            return  # replaced since the scan; the next one sees it
        columns.begin_source(least_empty_ns)
        spans, until_ns = _levels(reader, columns)
        for level, begin_ns, end_ns in spans:
            for cells in reader.cells(level, begin_ns, end_ns):
                picture.budget.spend(len(cells.effort_s) * cell_bytes)
                _add_cells(columns, pooling, cells, about.cells_ns[level], signal)
        columns.end_source(until_ns)
    finally:
        reader.close()


def _levels(reader: PyramidReader, columns: ColumnSums) -> tuple[list[tuple[int, int, int]], int]:
    """Choose levels for the spans of a picture: (level, begin, end), and the end of all cells.

    That is the coarsest level whose cells are not longer than a column. Before its oldest file,
    coarser levels follow. Its last cell may lack the finer cells that came since: there, finer
    levels follow.
    """
    grid, cells_ns = columns.grid, reader.about.cells_ns
    there = {n: span for n in range(len(cells_ns)) if (span := reader.span_utc_ns(n))}
    if not there:
        return [], grid.t0_ns
    finest = min(there)
    until_ns = there[finest][1]
    wanted = max((n for n, cell in enumerate(cells_ns) if cell <= grid.column_ns), default=0)
    spans: list[tuple[int, int, int]] = []
    at_ns = grid.t0_ns
    for level in [*range(len(cells_ns) - 1, wanted - 1, -1), *range(wanted - 1, finest - 1, -1)]:
        if level not in there:
            continue
        whole_ns = until_ns if level == finest else until_ns // cells_ns[level] * cells_ns[level]
        # A coarser level than wanted answers only before the oldest file of the next finer one.
        finer = next((n for n in range(level - 1, finest - 1, -1) if n in there), None)
        if level > wanted and finer is not None:
            whole_ns = min(whole_ns, there[finer][0])
        end_ns = min(whole_ns, grid.t1_ns)
        if end_ns > at_ns:
            # Columns that are narrower than a cell show the cell that they are in.
            spans.append((level, at_ns // cells_ns[level] * cells_ns[level], end_ns))
            at_ns = end_ns
    return spans, until_ns


def _add_cells(
    columns: ColumnSums, pooling: Pooling, cells: Cells, cell_ns: int, signal: int
) -> None:
    greatest = pooling.greatest(cells.greatest[:, signal, pooling.span])
    mean = (
        pooling.mean(powers_of(cells.mean[:, signal, pooling.span])) if columns.with_mean else None
    )
    middle_ns = cells.begin_utc_ns + cell_ns // 2
    columns.add(SourceRows(middle_ns, cell_ns, cells.effort_s, greatest, mean))


def add_segments(picture: HistoryPicture, files: Sequence[StoredFile]) -> list[str]:
    """Add rows of the segments of one recording where columns are empty, the newest first.

    Returns
    -------
    left_out : list of str
        What could not be read, and why.
    """
    columns = picture.columns
    spans = columns.open_spans(SPANS_MAX)
    columns.begin_source()
    needed = [
        (file, parts) for file in files if (parts := [p for p in spans if _overlaps(file, p)])
    ]
    until_ns, left_out = columns.grid.t0_ns, []
    for n, (file, parts) in enumerate(needed):
        try:
            last_ns = _add_file(picture, file, parts)
            until_ns = max(until_ns, last_ns or until_ns)
        except SpentError as error:
            left_out.append(f"{len(needed) - n} of {len(needed)} segments were not read: {error}")
            break
        except (OSError, SpectrodError) as error:
            left_out.append(f"{printable(file.name)}: {_why(error)}")
            place = "/".join(file.place[1:])
            picture.index.log_once(printable(f"{place}/{file.name}: {error}"))
    columns.end_source(until_ns)
    return left_out


def _why(error: Exception) -> str:
    """Return the reason of an error, without folders of this machine."""
    if isinstance(error, OSError):
        return error.strerror or "cannot be read"
    return "is damaged"


def _overlaps(file: StoredFile, span: tuple[int, int]) -> bool:
    if file.begin_utc_ns >= span[1]:
        return False
    spec = file.description.spec
    longest_ns = round((spec.row_span / spec.fs + spec.row_s) * NS_PER_S)
    return file.end_utc_ns is None or file.end_utc_ns + longest_ns > span[0]


def _add_file(
    picture: HistoryPicture, file: StoredFile, spans: Iterable[tuple[int, int]]
) -> int | None:
    """Add the rows of a segment in some spans; return the end of the last row [ns], if any."""
    about = file.description
    signal, spec = about.signals.index(picture.channel), about.spec
    pooling = picture.pooling(HistoryAxis.of_spec(spec))
    half_ns = round(spec.row_span * NS_PER_S / spec.fs / 2)
    row_ns = round(spec.row_s * NS_PER_S)
    path, last_ns = Path(file.name), None
    picture.budget.spend_file()
    with opened(picture.index.open_file(file), picture.budget) as stream:
        start = read_beginning(path, stream)
        if start.header.description.spec != spec:
            return None  # replaced since the scan; the next one sees it
        for begin_ns, end_ns in spans:
            low, high = begin_ns - half_ns - row_ns, end_ns - half_ns + row_ns
            batches = (stored.batch for stored in rows_between(path, stream, start, low, high))
            for middle_ns, values in _gathered(batches, signal, pooling.span, half_ns):
                _add_rows(picture.columns, pooling, spec, middle_ns, values)
                last_ns = max(last_ns or 0, int(middle_ns[-1]) + row_ns // 2)
    return last_ns


def _gathered(
    batches: Iterable[SpectrumBatch], signal: int, span: slice, half_ns: int
) -> Iterator[tuple[Int64Array, Float32Array]]:
    """Join some values of one signal to larger pieces: middles of rows [ns], and values."""
    times: list[Int64Array] = []
    values: list[Float32Array] = []
    n_rows = 0
    for batch in batches:
        times.append(batch.t_utc_ns + half_ns)
        values.append(batch.values[:, signal, span])
        n_rows += batch.n_frames
        if n_rows >= ROWS_AT_ONCE or n_rows * values[0].shape[1] >= VALUES_AT_ONCE:
            yield np.concatenate(times), np.concatenate(values)
            times, values, n_rows = [], [], 0
    if times:
        yield np.concatenate(times), np.concatenate(values)


def _add_rows(
    columns: ColumnSums,
    pooling: Pooling,
    spec: SpectrumSpec,
    middle_ns: Int64Array,
    values: Float32Array,
) -> None:
    """Add rows, the maximum and the mean of those that share a column first."""
    row_ns = round(spec.row_s * NS_PER_S)
    firsts = columns.begins(middle_ns, row_ns)
    counts = np.diff([*firsts, len(middle_ns)])
    lasts = firsts + counts - 1
    # Levels and powers have the same order, so the maximum is taken before any logarithm.
    greatest = np.fmax.reduceat(values, firsts, axis=0)
    mean = None
    if columns.with_mean:
        sums = np.add.reduceat(power_of(values, spec), firsts, axis=0)
        mean = pooling.mean(sums / counts[:, np.newaxis])
    codes = pooling.greatest(codes_of(power_of(greatest, spec)))
    effort_s = counts * spec.row_s
    columns.add(SourceRows(middle_ns[lasts], row_ns, effort_s, codes, mean))


def power_of(values: NDArray[np.float32], spec: SpectrumSpec) -> NDArray[np.float64]:
    """Return the powers whose level is that of stored values, as pyramids take them."""
    power = values.astype(np.float64)
    return np.power(10.0, power / 10.0) if spec.scaling == "dbfs" else power


def add_remembered(picture: HistoryPicture, found: Iterable[Remembered]) -> int:
    """Add rows or cells of the server's own memory to the present source; return their end [ns]."""
    columns = picture.columns
    until_ns = columns.grid.t0_ns
    own: HistoryAxis | None = None
    pooling: Pooling | None = None
    for part in found:
        picture.budget.check()
        if pooling is None or part.axis is not own:
            own, pooling = part.axis, picture.pooling(part.axis)
        mean = pooling.mean(powers_of(part.mean[:, pooling.span])) if columns.with_mean else None
        greatest = pooling.greatest(part.greatest[:, pooling.span])
        columns.add(SourceRows(part.middle_ns, part.length_ns, part.effort_s, greatest, mean))
        until_ns = max(until_ns, int(part.middle_ns.max()) + part.length_ns // 2)
    return until_ns
