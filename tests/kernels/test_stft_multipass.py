"""Frames in two and three passes, as GPUs take them, agree with the float64 reference."""

import numpy as np
import pytest

from spectrod.analysis.stft.stft_multipass import MULTIPASS_STFT
from spectrod.analysis.stft.stft_reference import ReferenceStft
from spectrod.analysis.stft.stft_stage import (
    Average,
    BandRows,
    RowPlaces,
    Samples,
    StftLaunch,
    StftSpec,
    StftTables,
)
from spectrod.fft.local import LocalShape
from spectrod.fft.multipass import MultipassParams
from spectrod.opencl.context import Context

CHANNELS, HOP, FIRST, N_FRAMES = 2, 37, 5, 7
FIRST_PASS = LocalShape((4, 2), 4, 4, split_exchange=True, lines_first=True)
MIDDLE = LocalShape((3,), 1, 4, lines_first=True)
LAST = LocalShape((2, 4), 2, 4, split_exchange=True, local_pad=2, lines_last=True)
TWO = MultipassParams((FIRST_PASS, LAST))
THREE = MultipassParams((FIRST_PASS, MIDDLE, LAST), slice_bytes=3 * 8 * 192)


@pytest.fixture(scope="module")
def context(opencl_device, no_cache):
    context = Context(opencl_device, cache=no_cache)
    yield context
    context.close()


def tables_of(spec, rng):
    """Make a window without symmetry, weights, and a band of each size."""
    first, count = np.array([0, 3, 0]), np.array([1, 20, spec.n_bins])
    bands = BandRows(first, count, rng.uniform(0.5, 1.0, count.sum())) if spec.n_bands else None
    weights = rng.uniform(0.5, 2.0, spec.n_bins) if spec.weighted else None
    window = rng.uniform(0.1, 1.0, spec.win_length)
    return StftTables(window, weights, bands, smoothing=0.3, floor_db=-150.0)


def noise(spec, rng):
    """Make samples of the spec's format, (channels of samples, n)."""
    x = rng.uniform(-0.9, 0.9, (CHANNELS * spec.parts, FIRST + HOP * N_FRAMES + 2 * spec.nfft))
    if spec.sample_format == "float32":
        return x.astype(np.float32)
    return (x * 2**15).astype(np.int16)


def run(context, spec, params, x, places=None):
    """Compute the rows of two launches, the second of which goes on from the first."""
    tables = tables_of(spec, np.random.default_rng(2))
    stage = MULTIPASS_STFT.build(context, spec, tables, params)
    laid = np.ascontiguousarray(x.T if spec.interleaved else x)
    buffer, state = context.table(laid), context.allocate(8 * CHANNELS * max(1, spec.state_values))
    found, done, first = [], 0, FIRST
    for n_frames in (N_FRAMES - 3, 3):
        average = None
        if spec.averaging != "none":
            average = Average(state, 2, done % 2, primed=done % 2 > 0)
        n_rows = average.rows(n_frames) if average else n_frames
        dtype = np.complex64 if spec.output == "complex" else np.float32
        rows = np.full((n_rows, CHANNELS, spec.n_values), np.nan, dtype)
        out, samples = context.table(rows), Samples(buffer, laid.shape[1], first)
        scratch = context.allocate(stage.scratch_bytes(n_frames, CHANNELS))
        stage.launch(out, StftLaunch(samples, HOP, n_frames, CHANNELS, average, places), scratch)
        context.download(rows, out)
        found.append(rows)
        done += n_frames
        first += HOP * n_frames
        if places is not None:
            break
    return np.concatenate(found), tables


@pytest.mark.parametrize(
    ("spec", "params"),
    [
        (StftSpec(128, 128), TWO),
        (StftSpec(128, 101, "int16", interleaved=True, decibels=True), TWO),
        (StftSpec(384, 383, weighted=True), THREE),
        (StftSpec(384, 384, output="complex"), THREE),
        (StftSpec(64, 61, "int16", iq=True), TWO),
        (StftSpec(64, 64, iq=True, interleaved=True, output="complex"), TWO),
        (StftSpec(128, 128, n_bands=3, averaging="mean"), TWO),
        (StftSpec(384, 380, averaging="max", weighted=True), THREE),
    ],
    ids=lambda value: "" if isinstance(value, MultipassParams) else str(value)[:60],
)
def test_rows_agree_with_the_reference(context, spec, params):
    """Formats, layouts and products are right, with every launch cut into slices."""
    x = noise(spec, np.random.default_rng(1))
    found, tables = run(context, spec, params, x)
    reference = ReferenceStft(spec, tables)
    average = () if spec.averaging == "none" else (reference.average(2),)
    expected = reference.rows(x, FIRST, HOP, N_FRAMES, *average)
    if spec.decibels:
        np.testing.assert_allclose(found, expected, atol=2e-3)
    else:
        assert np.linalg.norm(found - expected) <= 3e-7 * np.linalg.norm(expected)


def test_frames_of_rows_at_a_rate_begin_where_their_row_does(context):
    """Placed frames begin at exact fractions of samples, rounded down."""
    spec = StftSpec(128, 128, placed=True)
    x = noise(spec, np.random.default_rng(3))
    places = RowPlaces(101, 3, 1)
    found, tables = run(context, spec, TWO, x, places)
    reference = ReferenceStft(StftSpec(128, 128), tables)
    for row, values in enumerate(found):
        expected = reference.rows(x, FIRST + places.begin(row), HOP, 1)[0]
        assert np.linalg.norm(values - expected) <= 3e-7 * np.linalg.norm(expected)
