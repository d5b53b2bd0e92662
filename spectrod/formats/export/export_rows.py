"""Rows of spectra as columns with one value per row, and their conversion to batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.conditions import UInt8Array
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Int64Array
from spectrod.formats.description import concatenated

COLUMNS: dict[str, str] = {
    "sample_index": "<i8",
    "t_utc_ns": "<i8",
    "t_mono_ns": "<i8",
    "gap_samples": "<i8",
    "skipped_rows": "<i8",
    "cut_frames": "<i4",
    "discontinuity": "|i1",
    "engine_index": "<i2",
}
"""Columns stored beside the values: name and element type."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Consecutive rows, with or without gaps between them.

    Attributes
    ----------
    values : (rows, signals, values) float32 or complex64
        Values in the spec's unit.
    columns : dict of (rows,) arrays
        The columns of ``COLUMNS``. ``gap_samples``, ``skipped_rows`` and ``discontinuity`` describe
        a gap directly before a row; ``cut_frames`` is the number of frames of a row that was cut
        off; ``engine_index`` counts the engines from 0 in order of their first row.
    conditions : (rows, signals) uint8
        What checks found in the samples of each row, see ``Condition``; 0 where nobody checked.
    broadband : (rows, signals) float32, optional
        Broadband values, if the spec has them.
    """

    values: NDArray[Any]
    columns: dict[str, NDArray[Any]]
    conditions: UInt8Array
    broadband: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.values)


def rows_of(batch: SpectrumBatch, engine_index: int) -> Rows:
    """Convert a batch of at least one row."""
    n = batch.n_frames
    columns: dict[str, NDArray[Any]] = {
        "sample_index": batch.sample_index,
        "t_utc_ns": batch.t_utc_ns,
        "t_mono_ns": batch.t_mono_ns,
        "gap_samples": _first(batch.gap_samples, n),
        "skipped_rows": _first(batch.skipped_rows, n),
        "cut_frames": _first(batch.cut_frames, n),
        "discontinuity": _first(batch.discontinuity, n),
        "engine_index": np.full(n, engine_index),
    }
    conditions = batch.conditions
    return Rows(
        batch.values,
        {name: columns[name].astype(dtype) for name, dtype in COLUMNS.items()},
        unchecked(batch.values.shape[:2]) if conditions is None else conditions,
        batch.broadband,
    )


def join(parts: list[Rows]) -> Rows:
    """Concatenate rows."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.values for part in parts]),
        {name: np.concatenate([part.columns[name] for part in parts]) for name in COLUMNS},
        np.concatenate([part.conditions for part in parts]),
        concatenated([part.broadband for part in parts]),
    )


def take(rows: Rows, first: int, past: int) -> Rows:
    """Return a slice of the rows."""
    return Rows(
        rows.values[first:past],
        {name: column[first:past] for name, column in rows.columns.items()},
        rows.conditions[first:past],
        None if rows.broadband is None else rows.broadband[first:past],
    )


def batches_of(
    rows: Rows, spec: SpectrumSpec, engines: list[str], engine_before: int
) -> Iterator[SpectrumBatch]:
    """Yield rows as batches, each without a gap, a cut row or a change of engine inside.

    Parameters
    ----------
    rows : Rows
        At least one row.
    spec : SpectrumSpec
        Spec of all rows.
    engines : list of str
        Names of the engines, by index.
    engine_before : int
        Index of the engine of the row before the first of these.
    """
    columns = rows.columns
    engine = columns["engine_index"]
    breaks = (columns["gap_samples"] != 0) | (columns["skipped_rows"] != 0)
    breaks |= (columns["discontinuity"] != 0) | (np.diff(engine, prepend=engine_before) != 0)
    cut = columns["cut_frames"] != 0
    breaks |= cut | np.concatenate([[True], cut[:-1]])
    starts = np.flatnonzero(breaks)
    for first, past in zip(starts, [*starts[1:], len(rows)], strict=True):
        yield SpectrumBatch(
            rows.values[first:past],
            columns["sample_index"][first:past],
            columns["t_mono_ns"][first:past],
            columns["t_utc_ns"][first:past],
            spec,
            engines[int(engine[first])],
            int(columns["gap_samples"][first]),
            bool(columns["discontinuity"][first]),
            int(columns["skipped_rows"][first]),
            int(columns["cut_frames"][first]),
            None if rows.broadband is None else rows.broadband[first:past],
            rows.conditions[first:past] if rows.conditions[first:past].any() else None,
        )


def unchecked(shape: tuple[int, ...]) -> UInt8Array:
    """Return the conditions of rows that nobody checked, of the shape (rows, signals)."""
    return np.zeros(shape, np.uint8)


def _first(value: int, n: int) -> Int64Array:
    """Return a column of zeros whose first element is this value."""
    column = np.zeros(n, np.int64)
    column[0] = value
    return column
