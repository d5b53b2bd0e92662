"""Columns of a pyramid against its rows, for any span, gaps and restarts."""

import shutil
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidReader, PyramidWriter

FS = 1000.0
BEGIN_NS = 1_777_593_590 * 10**9
"""Ten seconds before a midnight."""
STEP_DB, N_MEANS = 0.01, 12


def spec_of(scaling):
    return SpectrumSpec(fs=FS, channels=2, win_length=16, hop=20, nfft=16, scaling=scaling)


def rows_of(rng, spec, begin_ns, n_rows):
    levels = rng.uniform(-120.0, 10.0, (n_rows, 2, spec.n_values))
    values = levels if spec.scaling == "dbfs" else 10.0 ** (levels / 10.0)
    values = values.astype(np.float32)
    index = np.arange(n_rows, dtype=np.int64) * spec.hop
    t_ns = begin_ns + index * 10**6
    return SpectrumBatch(values, index, t_ns, t_ns, spec, "numpy")


def parts_of(batch, cuts):
    """Cut a batch into several."""
    limits = sorted({0, batch.n_frames, *(cut % batch.n_frames for cut in cuts)})
    for begin, end in pairwise(limits):
        rows = slice(begin, end)
        yield SpectrumBatch(
            batch.values[rows],
            batch.sample_index[rows],
            batch.t_mono_ns[rows],
            batch.t_utc_ns[rows],
            batch.spec,
            batch.engine,
        )


def expected(times_ns, levels, columns, column, group):
    """Compute by brute force: all rows whose cell's centre is in a column, or contains its."""
    cell_ns = columns.cell_ns[column]
    cells = times_ns // cell_ns
    lo, hi = columns.t_utc_ns[column : column + 2]
    middles = cells * cell_ns + cell_ns / 2.0
    taken = (middles >= lo) & (middles < hi)
    has_cells = -(-(lo - cell_ns / 2.0) // cell_ns) * cell_ns + cell_ns / 2.0 < hi
    if not has_cells:
        taken = cells == (lo + (hi - lo) // 2) // cell_ns
    if not taken.any():
        return None
    firsts = np.arange(0, levels.shape[2], group)
    power = 10.0 ** (levels[taken] / 10.0)
    counts = np.diff([*firsts, levels.shape[2]])
    mean = np.add.reduceat(power.mean(axis=0), firsts, axis=-1) / counts
    return (
        np.minimum.reduceat(levels[taken].min(axis=0), firsts, axis=-1),
        10.0 * np.log10(mean),
        np.maximum.reduceat(levels[taken].max(axis=0), firsts, axis=-1),
        taken.sum() * 0.02,
    )


RUNS = st.lists(
    st.tuples(
        st.integers(0, 40_000),  # milliseconds of silence before
        st.integers(1, 900),  # rows
        st.lists(st.integers(0, 10_000), max_size=4),  # batches
        st.booleans(),  # whether it ends properly, or by a crash
    ),
    min_size=1,
    max_size=4,
)
SPANS = st.lists(
    st.tuples(st.integers(-5_000, 90_000), st.integers(1, 120_000), st.integers(1, 300)),
    min_size=1,
    max_size=6,
)


@pytest.mark.slow
@settings(max_examples=15)
@given(
    runs=RUNS,
    spans=SPANS,
    finest=st.sampled_from([0.01, 0.25, 1.0]),
    values_max=st.sampled_from([0, 1, 4]),
    scaling=st.sampled_from(["density", "dbfs"]),
    seed=st.integers(0, 99),
)
def test_columns_have_the_values_of_the_rows(runs, spans, finest, values_max, scaling, seed):
    """Minimum and maximum are exact to the step, means to a step per level; effort counts.

    A crash loses only the finest incomplete cell.
    """
    folder = Path(tempfile.mkdtemp())
    try:
        _check(folder / "p", runs, spans, values_max, (finest, scaling, seed))
    finally:
        shutil.rmtree(folder)


def _check(folder, runs, spans, values_max, how):
    finest, scaling, seed = how
    rng, spec = np.random.default_rng(seed), spec_of(scaling)
    about = Description(spec, "test", ("left", "right"), "spectrod")
    times, levels, now_ns = [], [], BEGIN_NS
    for silence_ms, n_rows, cuts, is_proper in runs:
        now_ns += silence_ms * 10**6
        batch = rows_of(rng, spec, now_ns, n_rows)
        writer = PyramidWriter(folder, about, PyramidOptions(finest, values_max=0))
        for part in parts_of(batch, cuts):
            writer.write(part)
        middles = batch.t_utc_ns + 8 * 10**6
        kept = np.ones(n_rows, bool)
        if is_proper:
            writer.finish()
        else:
            writer.abort()
            cells = middles // writer.about.cells_ns[0]
            kept = cells != cells[-1]
        times.append(middles[kept])
        values = batch.values[kept].astype(np.float64)
        levels.append(values if scaling == "dbfs" else 10.0 * np.log10(values))
        now_ns = int(batch.t_utc_ns[-1]) + 20 * 10**6
    # The next writer completes coarser cells after a crash.
    PyramidWriter(folder, about, PyramidOptions(finest, values_max=0)).abort()
    times, levels = np.concatenate(times), np.concatenate(levels)
    reader = PyramidReader(folder)
    for begin_ms, length_ms, width in spans:
        t0_ns = BEGIN_NS + begin_ms * 10**6
        columns = reader.columns(t0_ns, t0_ns + length_ms * 10**6, width, values_max)
        group = -(-spec.n_values // values_max) if values_max else 1
        for column in range(0, width, 7):
            truth = expected(times, levels, columns, column, group)
            _compare(columns, column, truth)
    reader.close()


def _compare(columns, column, truth):
    if truth is None:
        assert columns.effort_s[column] == 0.0
        assert np.isnan(columns.mean[column]).all()
        return
    least, mean, greatest, effort_s = truth
    half = STEP_DB / 2.0 + 2e-5
    assert np.abs(columns.least[column] - least).max() <= half
    assert np.abs(columns.greatest[column] - greatest).max() <= half
    assert np.abs(columns.mean[column] - mean).max() <= N_MEANS * half
    assert abs(columns.effort_s[column] - effort_s) < 1e-6
