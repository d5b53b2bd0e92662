"""The general family: its slices and its choice."""

from dataclasses import replace

import numpy as np
import pytest

from spectrod.analysis.stft.stft_general import GENERAL, GeneralParams, _band_parts
from spectrod.analysis.stft.stft_stage import (
    Average,
    BandRows,
    Samples,
    StftLaunch,
    StftSpec,
    StftTables,
)
from spectrod.fft.choice import untuned
from spectrod.opencl.context import Context

FRAMES, CHANNELS, HOP = 21, 3, 37

pytestmark = [pytest.mark.opencl, pytest.mark.slow]


@pytest.fixture(scope="module")
def context(opencl_device):
    opened = Context(opencl_device)
    yield opened
    opened.close()


def tables_of(spec, rng):
    count = np.array([7, 1, 30])
    bands = BandRows(np.array([0, 3, 12]), count, rng.uniform(size=count.sum()))
    return StftTables(np.hanning(spec.win_length) / 8, bands=bands, smoothing=0.2)


def rows_of(context, spec, params, rng):
    stage = GENERAL.build(context, spec, tables_of(spec, rng), params)
    x = rng.standard_normal((CHANNELS * spec.parts, FRAMES * HOP + spec.nfft)).astype(np.float32)
    is_averaged = spec.averaging != "none"
    average = (
        Average(context.allocate(4 * CHANNELS * spec.state_values), 4) if is_averaged else None
    )
    n_rows = FRAMES // 4 if is_averaged else FRAMES
    dtype = np.complex64 if spec.output == "complex" else np.float32
    out = np.empty((n_rows, CHANNELS, spec.n_values), dtype)
    buffer = context.allocate(out.nbytes)
    scratch = context.allocate(stage.scratch_bytes(FRAMES, CHANNELS))
    samples = Samples(context.table(x), x.shape[1], 2)
    events = stage.launch(buffer, StftLaunch(samples, HOP, FRAMES, CHANNELS, average), scratch)
    context.download(out, buffer)
    return out, len(events)


@pytest.mark.parametrize(
    "spec",
    [
        StftSpec(100, 90),
        StftSpec(101, 90),
        StftSpec(128, 128, iq=True, output="complex"),
        StftSpec(128, 128, n_bands=3, decibels=True),
        StftSpec(128, 128, averaging="mean"),
        StftSpec(128, 128, n_bands=3, averaging="exponential"),
    ],
    ids=["even", "odd", "iq-complex", "bands-dB", "mean", "bands-exponential"],
)
def test_results_do_not_depend_on_the_slices(context, spec):
    """Slices of one frame, some frames or all of them give the same bits."""
    line_bytes = 1024 if spec.nfft % 2 == 0 else 1 << 14
    results = [
        rows_of(context, spec, GeneralParams(size), np.random.default_rng(3))
        for size in (1, 2 * line_bytes, 16 * line_bytes, 1 << 24)
    ]
    for rows, _ in results[1:]:
        np.testing.assert_array_equal(rows, results[0][0])
    launches = [n for _, n in results]
    assert launches == sorted(launches, reverse=True)
    assert launches[0] == CHANNELS * FRAMES * launches[-1]


@pytest.mark.parametrize("iq", [False, True])
@pytest.mark.parametrize("nfft", [100, 101, 1 << 15])
def test_scratch_is_bounded_and_never_shrinks(context, nfft, iq):
    """Scratch memory is bounded and grows with the number of frames up to that bound."""
    spec = StftSpec(nfft, nfft, iq=iq)
    stage = GENERAL.build(context, spec, StftTables(np.ones(nfft)), GeneralParams(1 << 22))
    for channels in (1, 3, 500):
        sizes = [stage.scratch_bytes(n, channels) for n in range(1, 300)]
        assert sizes == sorted(sizes)
        assert sizes[0] > 0
        assert stage.scratch_bytes(10**6, channels) <= 1 << 22


def test_gpus_take_larger_slices(context):
    """GPUs get larger slices than CPUs, for which launches are cheap and caches small."""
    spec, cpu = StftSpec(64, 64), replace(context.device, kind="cpu")
    first = [
        next(iter(GENERAL.candidates(spec, replace(cpu, kind=kind)))) for kind in ("cpu", "gpu")
    ]
    assert first[0].slice_bytes < first[1].slice_bytes
    assert untuned(GENERAL, spec, context.device) in first


@pytest.mark.parametrize("nfft", [256, 4096])
def test_bands_are_the_same_however_many_add_them_up(context, monkeypatch, nfft):
    """Bands are the same with one work-item per band or with many, also for empty bands."""
    rng = np.random.default_rng(8)
    count = np.array([1, 3, nfft // 2 + 1, 5, 64])
    spec = StftSpec(nfft, nfft, n_bands=5)
    bands = BandRows(np.array([nfft // 2, 7, 0, 1, 20]), count, rng.uniform(size=count.sum()))
    x = rng.standard_normal((2, nfft + 9 * 17)).astype(np.float32)
    buffer, rows = context.table(x), []
    several = [[(0, 5, items)] for items in (1, 8, 64, 256)]
    for parts in (*several, [(0, 4, 8), (4, 5, 256)], [(0, 1, 1), (1, 3, 8), (3, 5, 1)]):
        monkeypatch.setattr(
            "spectrod.analysis.stft.stft_general._band_parts", lambda *_, parts=parts: parts
        )
        tables = StftTables(np.ones(nfft) / nfft, bands=bands)
        stage = GENERAL.build(context, spec, tables, untuned(GENERAL, spec, context.device))
        out = context.allocate(10 * 2 * 5 * 4)
        scratch = context.allocate(stage.scratch_bytes(10, 2))
        stage.launch(out, StftLaunch(Samples(buffer, x.shape[1]), 17, 10, 2), scratch)
        rows.append(np.empty((10, 2, 5), np.float32))
        context.download(rows[-1], out)
    for found in rows[1:]:
        np.testing.assert_allclose(found, rows[0], rtol=5e-7)


def test_a_row_of_all_bins_has_a_launch_of_its_own_on_gpus(context):
    """On GPUs the sum over all bins has its own launch, as its few work-items are slow."""
    gpu = replace(context.device, kind="gpu", max_work_group_size=1024)
    thin = np.full(1800, 5)
    assert _band_parts(gpu, np.append(thin, 24001)) == [(0, 1800, 8), (1800, 1801, 256)]
    assert _band_parts(gpu, thin) == [(0, 1800, 8)]
    assert _band_parts(gpu, np.array([3, 24001])) == [(0, 1, 8), (1, 2, 256)]
    wide = np.array([300, 600, 900])
    assert _band_parts(gpu, np.append(wide, 2049)) == [(0, 4, 256)]
    assert _band_parts(gpu, np.array([9])) == [(0, 1, 8)]
    cpu = replace(gpu, kind="cpu")
    assert _band_parts(cpu, np.append(thin, 24001)) == [(0, 1801, 1)]
