import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import spectrod.fft
from spectrod.fft.plans import AxisPlan
from spectrod.fft.stage import TransformSpec
from spectrod.fft.transform import LineTransform, default_piece_bytes, halved, steps
from spectrod.lib.errors import ConfigError
from spectrod.opencl.context import Context

N = 16


@pytest.fixture(scope="module")
def context(opencl_device):
    spectrod.fft.use_device(opencl_device.number)
    opened = Context(opencl_device)
    yield opened
    opened.close()


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def noise(rng, shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def assert_close(result, expected):
    assert np.linalg.norm(result - expected) <= 3e-7 * np.linalg.norm(expected)


def refused(message):
    return pytest.raises(ConfigError, match=re.escape(message))


@pytest.mark.parametrize("shape", [(1, N), (7, N), (2, 3, N), (N,), (0, N)])
def test_the_batch_is_not_part_of_a_plan(context, rng, shape):
    """One plan transforms arrays with any batch size, zero included."""
    plan = spectrod.fft.plan((5, N))
    x = noise(rng, shape)
    result = plan.execute(x)
    assert (result.shape, result.dtype) == (shape, np.complex64)
    assert_close(result, np.fft.fft(x))


@pytest.mark.parametrize("axis", [0, 1, -3, -1])
def test_any_axis_is_transformed(context, rng, axis):
    """Any axis can be transformed, counted from the front or the back."""
    x = noise(rng, (N, N, N))
    result = spectrod.fft.plan((N, N, N), axis=axis).execute(x)
    assert_close(result, np.fft.fft(x, axis=axis))


@pytest.mark.parametrize("piece_lines", [1, 2, 3, 100])
@pytest.mark.parametrize(("outer", "inner"), [(7, 1), (3, 5), (1, 7)])
def test_pieces_make_the_whole(context, rng, piece_lines, outer, inner):
    """Arrays too large for one piece are transformed in pieces of rows or columns."""
    spec = TransformSpec(N)
    transform = LineTransform(context, spec, piece_bytes=piece_lines * 2 * 8 * N)
    x = noise(rng, (outer, N, inner))
    out = np.empty_like(x)
    transform.run(out, x, 0.5)
    assert_close(out, np.fft.fft(x, axis=1) / 2)
    transform.run_in_place(x.reshape(outer, -1), inner, 0.5)
    np.testing.assert_array_equal(x, out)


def test_input_of_any_layout_is_taken(context, rng):
    """Strided, reversed, read-only and unaligned input is accepted out of place."""
    plan = spectrod.fft.plan((4, N))
    x = noise(rng, (N, 8))
    read_only = x.T.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(b"\0" + read_only.tobytes(), np.complex64, offset=1).reshape(8, N)
    floats = np.zeros(2 * 8 * N + 1, np.float32)  # an offset at which a vector of two is unaligned
    between = floats[1:].view(np.complex64).reshape(8, N)
    between[...] = read_only
    for given in (x.T, x.T[::-1], read_only, unaligned, between, read_only[::2]):
        before = given.copy()
        assert_close(plan.execute(given), np.fft.fft(given))
        np.testing.assert_array_equal(given, before)


def test_out_takes_the_result(context, rng):
    """The result is written to out and returned; out may be the input of a complex transform."""
    plan = spectrod.fft.plan((4, N))
    x = noise(rng, (4, N))
    expected, out = plan.execute(x), np.empty_like(x)
    assert plan.execute(x, out) is out
    assert plan.execute(x, x) is x
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_takes_the_result(context, rng):
    """NumPy's matrix, which always has two axes, can be out and can be transformed in place."""
    x = noise(rng, (4, N))
    expected, out = np.fft.fft(x), np.matrix(np.zeros_like(x))
    assert_close(np.asarray(spectrod.fft.fft(np.matrix(x), out=out)), expected)
    assert_close(np.asarray(out), expected)
    plan = spectrod.fft.plan((4, N), inplace=True)
    assert_close(np.asarray(plan.execute(np.matrix(x))), expected)


@pytest.mark.slow
@pytest.mark.parametrize("n", [16, 15])
def test_real_rows_are_overwritten_as_fftw_does(context, rng, n):
    """Padded real rows become half spectra in place and back, as in FFTW, odd lengths included."""
    rows = np.full((3, 2 * (n // 2 + 1)), 99, np.float32)
    rows[:, :n] = rng.standard_normal((3, n))
    x = rows[:, :n].copy()
    half = spectrod.fft.plan((3, n), "float32", inplace=True).execute(rows)
    assert np.shares_memory(half, rows)
    assert_close(half, np.fft.rfft(x))
    back = spectrod.fft.plan((3, n), "complex64", kind="c2r", inplace=True).execute(half)
    assert np.shares_memory(back, rows)
    assert_close(back, x)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([0j] * N, "x is a list: must be an array, to be overwritten"),
        (np.zeros((4, N + 1), np.complex64), f"x of shape (4, {N + 1}): must be (4, {N})"),
        (np.zeros((4, N)), "x of float64: must be complex64"),
        (np.zeros((N, 4), np.complex64).T, "x with strides (8, 32): must be C-contiguous"),
        (np.broadcast_to(np.complex64(1), (4, N)), "x is read-only: must be writable"),
    ],
)
def test_arrays_that_cannot_be_overwritten_are_refused(context, x, message):
    """A plan in place refuses arrays that it would have to copy."""
    with refused(message):
        spectrod.fft.plan((4, N), inplace=True).execute(x)


def test_a_plan_in_place_has_no_out(context):
    """A plan in place refuses the argument out."""
    x = np.zeros((4, N), np.complex64)
    with refused("out is given: a plan in place has none"):
        spectrod.fft.plan((4, N), inplace=True).execute(x, x.copy())


def test_real_columns_are_not_overwritten(context):
    """Real columns cannot be transformed in place because only rows can be padded."""
    x = np.zeros((N + 2, 4), np.float32)
    with refused("axis=0: must be the last for a real transform in place"):
        spectrod.fft.plan((N, 4), "float32", axis=0, inplace=True).execute(x)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((4, N), np.float32), "x of float32: must be complex64"),
        (np.zeros((4, 8), np.complex64), f"x of shape (4, 8): must be (4, {N})"),
        (np.complex64(3), "x of shape (): must have the plan's axis -1"),
    ],
)
def test_an_array_of_another_plan_is_refused(context, x, message):
    """An array of another type or shape is refused, since plans do not convert."""
    with refused(message):
        spectrod.fft.plan((4, N)).execute(x)


def test_a_plan_knows_where_it_runs(context):
    """A plan reports its device, by default the default device."""
    plan = spectrod.fft.plan((4, N))
    assert isinstance(plan, AxisPlan)
    assert plan.device == context.device
    assert plan.spec == TransformSpec(N)


@pytest.mark.slow
def test_threads_share_a_plan(context, rng):
    """Eight threads that share a plan with batches of different sizes get their own results."""
    plan = spectrod.fft.plan((1, N))
    inputs = [noise(rng, (1 + count % 13, N)) for count in range(200)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(plan.execute, inputs))
    for x, result in zip(inputs, results, strict=True):
        assert_close(result, np.fft.fft(x))


def test_a_nan_stays_in_its_line(context, rng):
    """A NaN makes its whole line NaN and changes no bit of the other lines."""
    x = noise(rng, (5, N))
    plan = spectrod.fft.plan((5, N))
    clean = plan.execute(x)
    x[2, 3] = np.nan
    result = plan.execute(x)
    assert np.isnan(result[2]).all()
    np.testing.assert_array_equal(np.delete(result, 2, 0), np.delete(clean, 2, 0))


def test_pieces_are_a_share_of_the_device(context):
    """No piece exceeds the size limit of a buffer."""
    small = replace(context.device, global_mem_bytes=800, max_alloc_bytes=90)
    assert default_piece_bytes(small) == 90
    assert default_piece_bytes(replace(small, max_alloc_bytes=1000)) == 100


def test_counts_are_halved_until_they_fit():
    """Counts are halved until they fit, at least to one."""
    assert halved(100, lambda count: count <= 30) == 25
    assert halved(100, lambda _: False) == 1
    assert list(steps(5, 2)) == [(0, 2), (2, 4), (4, 5)]
    assert list(steps(0, 2)) == []
