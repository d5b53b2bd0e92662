import re

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest

import spectrod.fft
from spectrod.lib.errors import ConfigError

N = 16
GUARD = 0xA5


@pytest.fixture(scope="module")
def queue(opencl_device):
    return cl.CommandQueue(cl.Context([opencl_device.handle]))


@pytest.fixture
def rng():
    return np.random.default_rng(6)


def guarded(queue, values, first):
    """Place an array at an offset in a buffer, between guard bytes."""
    n_bytes = values.nbytes + (first + 8) * values.itemsize
    memory = cla.to_device(queue, np.full(n_bytes, GUARD, np.uint8))
    offset = first * values.itemsize
    array = cla.Array(queue, values.shape, values.dtype, data=memory.base_data, offset=offset)
    array.set(values)
    return array, memory


def assert_guarded(array, memory):
    content = memory.get()
    assert np.all(content[: array.offset] == GUARD)
    assert np.all(content[array.offset + array.nbytes :] == GUARD)


def assert_close(result, expected):
    assert result.shape == expected.shape
    assert np.linalg.norm(result.get() - expected) <= 3e-7 * np.linalg.norm(expected)


def refused(message):
    return pytest.raises(ConfigError, match=re.escape(message))


@pytest.mark.parametrize("first", [0, 2, 4])
@pytest.mark.parametrize("n", [1, 15, 16])
def test_real_rows_are_overwritten_where_they_are(queue, rng, n, first):
    """Real rows at an offset are transformed in place and back without a change around them."""
    x = rng.standard_normal((3, n)).astype(np.float32)
    rows = np.zeros((3, 2 * (n // 2 + 1)), np.float32)
    rows[:, :n] = x
    array, memory = guarded(queue, rows, first)
    spectra = spectrod.fft.plan(x.shape, "float32", inplace=True, queue=queue).execute(array)
    assert_close(spectra, np.fft.rfft(x))
    assert_guarded(array, memory)
    back = spectrod.fft.plan(x.shape, "complex64", kind="c2r", inplace=True, queue=queue)
    result = back.execute(spectra)
    assert result.shape == x.shape
    np.testing.assert_allclose(array.get()[:, :n], x, atol=1e-6)
    assert_guarded(array, memory)


def test_real_rows_between_complex_places_are_refused(queue):
    """Real rows at an odd offset are refused, since spectra cannot start within a complex value."""
    array, _ = guarded(queue, np.zeros((2, N + 2), np.float32), 1)
    plan = spectrod.fft.plan((2, N), "float32", inplace=True, queue=queue)
    with refused("a pyopencl array at byte 4: must be a multiple of 8"):
        plan.execute(array)


def test_no_rows_are_overwritten(queue):
    """An array without rows gives a result of the right shape."""
    array = cla.empty(queue, (0, N + 2), np.float32)
    plan = spectrod.fft.plan((1, N), "float32", inplace=True, queue=queue)
    assert plan.execute(array).shape == (0, N // 2 + 1)


@pytest.mark.parametrize("first", [0, 3])
def test_columns_are_overwritten_where_they_are(queue, rng, first):
    """Complex arrays are transformed in place along any axis."""
    x = rng.standard_normal((2, N, 3)).astype(np.complex64)
    array, memory = guarded(queue, x, first)
    plan = spectrod.fft.plan(x.shape, axis=1, inplace=True, queue=queue)
    assert plan.execute(array) is array
    assert_close(array, np.fft.fft(x, axis=1))
    assert_guarded(array, memory)


def test_out_takes_the_result(queue, rng):
    """The result goes to out, which may be the input, and the guard bytes stay unchanged."""
    x = rng.standard_normal((3, N)).astype(np.complex64)
    a, _ = guarded(queue, x, 1)
    out, memory = guarded(queue, np.zeros_like(x), 5)
    assert spectrod.fft.fft(a, out=out) is out
    assert_close(out, np.fft.fft(x))
    assert_guarded(out, memory)
    assert spectrod.fft.fft(a, out=a) is a
    assert_close(a, np.fft.fft(x))


def test_an_overlap_is_refused(queue):
    """Overlapping input and output are refused, also of views and buffers."""
    whole = cla.zeros(queue, 4096, np.complex64)
    part = whole.base_data.get_sub_region(4096, 8 * N)
    of_part = cla.Array(queue, (N,), np.complex64, data=part)
    for a, out in ((whole[:N], whole[8 : 8 + N]), (of_part, whole[520 : 520 + N])):
        with refused("out overlaps x: must be x itself or apart from it"):
            spectrod.fft.fft(a, out=out)
    apart = whole[512 + N : 512 + 2 * N]
    assert spectrod.fft.fft(of_part, out=apart) is apart
