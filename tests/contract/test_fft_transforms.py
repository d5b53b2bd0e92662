"""Accuracy, bounds and memory of every kind of transform, on every OpenCL device."""

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import spectrod.fft
from spectrod.fft import reference
from spectrod.fft.choice import untuned
from spectrod.fft.select import FAMILIES
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.fft.transform import LineTransform
from spectrod.fft.transposed import TransposedStage
from spectrod.lib.errors import ConfigError
from spectrod.opencl.context import Context

pytestmark = pytest.mark.slow

KINDS = [("c2c", False), ("c2c", True), ("r2c", False), ("c2r", True)]
GUARD = 77

# Lengths of every sort: one, primes small and large, powers, products with 11 and 13, twice and
# three times a large prime, many passes.
LENGTHS = [1, 2, 3, 5, 17, 34, 60, 100, 143, 243, 256, 509, 1000, 1021, 1024, 1536, 2048]
DRAWN = np.random.default_rng(20261120).integers(1, 2049, 6).tolist()
LONG = [3 * 1021, 6000, 20011, 1 << 16, 3 << 17, 1 << 20]


def sample():
    """List every length once, with alternating kinds and precisions; powers of two have all."""
    specs = [
        TransformSpec(n, *KINDS[i % 4], ("single", "double")[i // 4 % 2])
        for i, n in enumerate([*LENGTHS, *DRAWN, *LONG])
    ]
    full = [TransformSpec(1024, *kind, p) for kind in KINDS for p in ("single", "double")]
    return list(dict.fromkeys([*specs, *full, TransformSpec(1 << 20)]))


def name(spec):
    return f"{spec.n}-{spec.kind}-{'inverse' if spec.inverse else 'forward'}-{spec.precision}"


@pytest.fixture(scope="module")
def context(opencl_device, no_cache):
    spectrod.fft.use_device(opencl_device.number)
    opened = Context(opencl_device, cache=no_cache)
    yield opened
    opened.close()


@pytest.fixture
def rng():
    return np.random.default_rng(6)


def uniform(rng, shape, dtype):
    """Make values in [-1, 1)."""
    x = rng.uniform(-1, 1, shape)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(-1, 1, shape)
    return x.astype(dtype)


def lines_of(array):
    """Move lines along the middle axis to the last."""
    return np.moveaxis(array, 1, -1).reshape(-1, array.shape[1])


@pytest.mark.forms(5)
@pytest.mark.parametrize(("index", "spec"), list(enumerate(sample())), ids=map(name, sample()))
def test_transforms_are_as_exact_as_promised(context, rng, index, spec):
    """Three lines, alternately side by side and one after the other, have the promised accuracy."""
    outer, inner = (1, 3) if index % 3 == 0 and spec.n < 1 << 16 else (3, 1)
    x = uniform(rng, (outer, spec.n_in, inner), reference.in_dtype(spec))
    out = np.empty((outer, spec.n_out, inner), reference.out_dtype(spec))
    LineTransform(context, spec).run(out, x, 1.0)
    expected = reference.transform(spec, lines_of(x))
    assert reference.relative_l2(lines_of(out), expected) <= reference.error_limit(spec)


@pytest.mark.parametrize("n", [60, 1021])
@pytest.mark.parametrize("kind", ["c2c", "r2c"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_there_and_back_is_where_it_was(context, rng, n, kind, dtype):
    """A round trip with each norm has the error of two transforms."""
    x = uniform(rng, (5, n), np.dtype(dtype))
    there, back = (spectrod.fft.fft, spectrod.fft.ifft)
    if kind == "r2c":
        there, back = (spectrod.fft.rfft, spectrod.fft.irfft)
    spec = TransformSpec(n, precision="single" if dtype == "float32" else "double")
    for norm in ("backward", "ortho", "forward"):
        again = back(there(x, norm=norm), n, norm=norm)
        assert reference.relative_l2(again, x) <= 2 * reference.error_limit(spec)


FAMILY_SPECS = [
    ("simd", TransformSpec(240)),
    ("simd", TransformSpec(256, "r2c")),
    ("local", TransformSpec(240)),
    ("local", TransformSpec(256, "c2r", inverse=True)),
    ("multipass", TransformSpec(1 << 14)),
    ("bluestein", TransformSpec(101)),
    ("real", TransformSpec(90, "r2c")),
    ("real", TransformSpec(90, "c2r", inverse=True)),
    ("real", TransformSpec(45, "r2c")),
    ("real", TransformSpec(45, "c2r", inverse=True)),
]


@pytest.mark.parametrize(
    ("family", "spec"), FAMILY_SPECS, ids=[f"{f}-{name(s)}" for f, s in FAMILY_SPECS]
)
@pytest.mark.parametrize("inner", [1, 3])
def test_nothing_outside_the_lines_is_touched(context, rng, family, spec, inner):
    """No family writes outside its lines in a buffer with gaps, also at odd offsets for reals."""
    if not FAMILIES[family].supports(spec, context.device):
        pytest.skip("the family does not serve this device")
    params = untuned(FAMILIES[family], spec, context.device)
    stage = FAMILIES[family].build(context, spec, params)
    if inner > 1 and not stage.strided:
        stage = TransposedStage(context, stage)
    outer, gap, first = 5, 7, 3
    in_row, out_row = spec.n_in * inner + gap, spec.n_out * inner + gap
    x = uniform(rng, first + outer * in_row, reference.in_dtype(spec))
    out = np.full(first + outer * out_row, GUARD, reference.out_dtype(spec))
    scratch_bytes = stage.scratch_bytes(outer, inner)
    scratch = context.allocate(scratch_bytes) if scratch_bytes else None
    source, target = context.table(x), context.table(out)
    places = Lines(target, out_row, first), Lines(source, in_row, first)
    stage.launch(*places, outer, inner, 0.5, scratch)
    context.download(out, target)
    unchanged = np.empty_like(x)
    context.download(unchanged, source)
    np.testing.assert_array_equal(unchanged, x)
    rows_in = x[first:].reshape(outer, in_row)[:, :-gap].reshape(outer, -1, inner)
    rows_out = out[first:].reshape(outer, out_row)
    expected = reference.transform(spec, lines_of(rows_in)) / 2
    result = lines_of(rows_out[:, :-gap].reshape(outer, -1, inner))
    assert reference.relative_l2(result, expected) <= reference.error_limit(spec)
    assert (out[:first] == GUARD).all()
    assert (rows_out[:, -gap:] == GUARD).all()


@pytest.mark.parametrize("n", [16, 1021])
@pytest.mark.parametrize("axis", [0, 1])
def test_arrays_of_pyopencl_stay_on_the_device(opencl_device, rng, n, axis):
    """Results for pyopencl arrays are new arrays on the same queue, or go into the given one."""
    context = cl.Context([opencl_device.handle])
    queue = cl.CommandQueue(context)
    x = uniform(rng, (7, n) if axis else (n, 7), np.dtype(np.complex64))
    spec, expected = TransformSpec(n), np.fft.fft(x, axis=axis)
    on_device = cl_array.to_device(queue, x)
    result = spectrod.fft.fft(on_device, axis=axis)
    assert isinstance(result, cl_array.Array)
    assert result.queue is queue
    assert reference.relative_l2(result.get(), expected) <= reference.error_limit(spec)
    plan = spectrod.fft.plan(x.shape, axis=axis, inplace=True, queue=queue)
    assert plan.execute(on_device) is on_device
    np.testing.assert_array_equal(on_device.get(), result.get())


def test_slices_crops_and_types_of_pyopencl_arrays(opencl_device, rng):
    """Slices of pyopencl arrays are accepted, with lengths and types changed on the device."""
    context = cl.Context([opencl_device.handle])
    queue = cl.CommandQueue(context)
    x = uniform(rng, (5, 15), np.dtype(np.float32))
    on_device = cl_array.to_device(queue, x)
    for n in (15, 16, 12):
        for result, expected in (
            (spectrod.fft.rfft(on_device[1:4], n), np.fft.rfft(x[1:4], n)),
            (spectrod.fft.fft(on_device, n, axis=0), np.fft.fft(x, n, axis=0)),
            (spectrod.fft.irfft(on_device, n), np.fft.irfft(x, n)),
            (spectrod.fft.ihfft(on_device, n), np.fft.ihfft(x, n)),
            (spectrod.fft.hfft(on_device, n), np.fft.hfft(x, n)),
        ):
            assert result.shape == expected.shape
            assert reference.relative_l2(result.get(), expected) <= 3e-7


def test_places_of_pyopencl_arrays_are_checked(opencl_device):
    """Layout, queue and overlap of pyopencl arrays are checked, and the error names the rule."""
    context = cl.Context([opencl_device.handle])
    queues = [cl.CommandQueue(context) for _ in range(2)]
    x = cl_array.zeros(queues[0], (5, 16), np.complex64)
    plan = spectrod.fft.plan((4, 16), queue=queues[0])
    elsewhere = cl_array.zeros(queues[1], (5, 16), np.complex64)
    for given, out, message in (
        (x[:, ::2], None, "x of shape"),
        (cl_array.zeros(queues[0], (16, 5), np.complex64).T, None, "must be C-contiguous"),
        (elsewhere, None, "x is on another queue than the plan"),
        (x, elsewhere, "out is on another queue than the plan"),
        (x, np.zeros((5, 16), np.complex64), "out is a ndarray: must be a pyopencl array, as x is"),
        (x[:4], x[1:], "out overlaps x: must be x itself or apart from it"),
    ):
        with pytest.raises(ConfigError, match=message):
            plan.execute(given, out)


def test_a_nan_stays_in_its_line_through_every_stage(context, rng):
    """A NaN stays in its line, also where lines share scratch memory or lie side by side."""
    for spec in (TransformSpec(101), TransformSpec(90, "r2c"), TransformSpec(1 << 14)):
        transform = LineTransform(context, spec)
        x = uniform(rng, (2, spec.n_in, 3), reference.in_dtype(spec))
        clean = np.empty((2, spec.n_out, 3), np.complex64)
        transform.run(clean, x, 1.0)
        x[1, 7, 1] = np.nan
        out = np.empty_like(clean)
        transform.run(out, x, 1.0)
        assert np.isnan(out[1, :, 1]).all()
        out[1, :, 1] = clean[1, :, 1]
        np.testing.assert_array_equal(out, clean)
