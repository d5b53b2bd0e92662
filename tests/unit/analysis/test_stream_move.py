"""A stream that moves from NumPy to another engine: nothing is lost, doubled or restarted."""

from itertools import count

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import DeviceError

FS = 8000.0
N_SAMPLES = 4000
# Sums of float32 terms against float64, see tests/contract/test_engine_contract.py.
RELATIVE_L2_MAX = 5e-7


class Second(NumpyEngine):
    """NumPy under another name and with another size of batches."""

    name = "second"
    batch_bytes = 1 << 12


def mover(engine, at):
    """Return the engine at one of the calls, and None at all others."""
    numbers = count()
    return lambda: engine if next(numbers) == at else None


def noise(channels, n=N_SAMPLES):
    rng = np.random.default_rng(20_261_122)
    return rng.normal(0.0, 0.1, (channels, n)).astype(np.float32)


def run(specs, samples, sizes, *, next_engine=lambda: None, gap_at=None, engine=None):
    """Push samples in blocks of these sizes, in turns; a gap may precede a block."""
    stream = FrameStream(
        specs, engine or NumpyEngine(), max_latency_s=np.inf, next_engine=next_engine
    )
    batches, first, lost = [], 0, 0
    for number in count():
        if first >= samples.shape[1]:
            break
        part = samples[:, first : first + sizes[number % len(sizes)]]
        lost += 17 * (number == gap_at)
        index = first + lost
        t_ns = round(index / FS * 1e9)
        batches += stream.push(Block(part, index, t_ns, t_ns, fs=FS))
        first += part.shape[1]
    return stream, batches + stream.finish()


def rows_of(batches, product):
    some = [batch for batch in batches if batch.spec.product == product]
    values = np.concatenate([batch.values for batch in some])
    indices = np.concatenate([np.atleast_1d(batch.sample_index) for batch in some])
    times = np.concatenate([np.atleast_1d(batch.t_utc_ns) for batch in some])
    marks = [
        (int(np.atleast_1d(batch.sample_index)[0]), batch.gap_samples, batch.cut_frames)
        for batch in some
        if batch.discontinuity or batch.cut_frames
    ]
    return values, indices, times, marks


AVERAGES = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {
            "averaging": st.sampled_from(["mean", "max", "min", "exponential"]),
            "averaging_frames": st.integers(1, 9),
        }
    ),
    st.just({"averaging": "mean", "rate_hz": 17.3}),
    st.just({"averaging": "mean", "rate_hz": 10.0, "align": "utc"}),
)


@given(
    win_length=st.integers(2, 300),
    hop=st.integers(1, 400),
    averages=AVERAGES,
    sizes=st.lists(st.integers(1, 700), min_size=1, max_size=4),
    at=st.integers(0, 30),
    gap_at=st.none() | st.integers(1, 20),
)
def test_a_move_at_any_border_changes_no_row(win_length, hop, averages, sizes, at, gap_at):
    """With a move before any block, rows, times, gaps and averages are those without a move."""
    if sum(sizes) / len(sizes) < 40:  # thousands of blocks show nothing else
        sizes = [size + 40 for size in sizes]
    if averages.get("averaging") == "exponential":
        averages = averages | {"averaging_s": 0.3}
    specs = [
        SpectrumSpec(FS, 2, win_length=win_length, hop=hop, product="a", **averages),
        SpectrumSpec(FS, 2, win_length=100, hop=25, product="b"),
    ]
    samples = noise(2)
    still, expected = run(specs, samples, sizes, gap_at=gap_at)
    stream, batches = run(specs, samples, sizes, gap_at=gap_at, next_engine=mover(Second(), at))
    for product in ("a", "b"):
        if not any(batch.spec.product == product for batch in expected):
            assert not any(batch.spec.product == product for batch in batches)
            continue
        *exact, marks = rows_of(expected, product)
        *moved, moved_marks = rows_of(batches, product)
        for one, other in zip(exact, moved, strict=True):
            np.testing.assert_array_equal(other, one)
        assert moved_marks == marks
    assert stream.engine_failures == 0
    assert stream.left_out_samples() == still.left_out_samples()


def test_the_engine_of_each_row_is_the_one_that_computed_it():
    """Batches before the move name NumPy, later ones the new engine, without a gap between."""
    spec = SpectrumSpec(FS, 1, win_length=100, hop=50)
    stream, batches = run(spec, noise(1), [500], next_engine=mover(Second(), 4))
    engines = [batch.engine for batch in batches]
    assert engines == sorted(engines)
    assert {*engines} == {"numpy", "second"}
    first = next(batch for batch in batches if batch.engine == "second")
    # The last frame within the 2000 samples before the move begins at 1900.
    assert np.atleast_1d(first.sample_index)[0] == 1950
    assert not first.discontinuity
    assert stream.engine.name == "second"


def test_a_device_that_cannot_be_used_leaves_the_stream_with_numpy(caplog):
    """If the new engine has too little memory, NumPy continues and the log says so."""

    class Full(Second):
        def sample_buffer(self, layout, capacity):
            raise DeviceError(f"no memory for {layout.channels} x {capacity}")

    spec = SpectrumSpec(FS, 1, win_length=100, hop=50, averaging="mean", averaging_frames=7)
    _, expected = run(spec, noise(1), [333])
    stream, batches = run(spec, noise(1), [333], next_engine=mover(Full(), 3))
    np.testing.assert_array_equal(
        rows_of(batches, spec.product)[0], rows_of(expected, spec.product)[0]
    )
    assert stream.engine.name == "numpy"
    assert "second cannot be used, continuing with NumPy: no memory for 1 x " in caplog.text


@pytest.mark.forms(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"averaging": "mean", "averaging_frames": 7, "bands": "third-octave", "broadband": True},
        {"averaging": "exponential", "averaging_frames": 3, "averaging_s": 0.5},
        {"averaging": "max", "averaging_frames": 41},
    ],
    ids=str,
)
def test_averages_continue_on_a_device(opencl_device, settings):
    """A move to a device keeps averages to the rounding of float32."""
    spec = SpectrumSpec(FS, 2, **({"win_length": 512, "hop": 61} | settings))
    samples = noise(2, 8000)
    _, expected = run(spec, samples, [357])
    engine = OpenCLEngine(opencl_device, fallback=NumpyEngine())
    _, batches = run(spec, samples, [357], next_engine=mover(engine, 9))
    assert {batch.engine for batch in batches} == {"numpy", engine.name}
    values, indices, times, marks = rows_of(expected, spec.product)
    moved, moved_indices, moved_times, moved_marks = rows_of(batches, spec.product)
    np.testing.assert_array_equal(moved_indices, indices)
    np.testing.assert_array_equal(moved_times, times)
    assert moved_marks == marks
    assert np.linalg.norm(moved - values) <= RELATIVE_L2_MAX * np.linalg.norm(values)
    engine.close()
