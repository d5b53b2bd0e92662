"""2D transforms against NumPy in float64, on every device."""

import numpy as np
import pyopencl.array as cl_array
import pytest

from spectrod.fft.plan2d import PlaneTransform, fft2, ifft2, irfft2, rfft2
from spectrod.fft.runtime import DEVICES, TRANSFORMS
from spectrod.fft.stage import TransformSpec
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import Context

# Few different lengths, since each must be compiled.
SHAPES = [(8, 10), (5, 9), (1, 9), (9, 1), (2, 3, 10, 8), (2, 37, 50)]
FUNCTIONS = [fft2, ifft2, rfft2, irfft2]


@pytest.fixture(autouse=True, scope="module")
def _device(opencl_device):
    DEVICES.choose(opencl_device.number)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def limit(dtype, n_points):
    """Return the largest relative L2 error, which is that of a line with as many points."""
    eps = np.finfo(dtype).eps
    return 1.7 * eps * np.sqrt(max(np.log2(n_points), 5.0) / 10.0) * 2.5


def values(rng, function, shape, dtype):
    """Make uniform numbers of a function's type, real where the Hermitian symmetry needs it."""
    x = rng.uniform(-1, 1, shape)
    if function is rfft2:
        return x.astype(dtype)
    if function is irfft2:
        x = np.fft.rfft2(x)
        return x.astype(np.result_type(dtype, np.complex64))
    return (x + 1j * rng.uniform(-1, 1, shape)).astype(np.result_type(dtype, np.complex64))


def of_numpy(function, x, *arguments, **keywords):
    """Return NumPy's result in double precision."""
    wide = x.astype(np.float64 if x.dtype.kind == "f" else np.complex128)
    return getattr(np.fft, function.__name__)(wide, *arguments, **keywords)


def check(found, expected, dtype):
    complex_type = np.result_type(dtype, np.complex64)
    assert found.dtype == (dtype if expected.dtype.kind == "f" else complex_type)
    assert found.shape == expected.shape
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error <= limit(dtype, expected.size)


def usable(device, dtype):
    if dtype == np.float64 and not device.has_fp64:
        pytest.skip("no double precision")
    return np.dtype(dtype)


@pytest.mark.forms(1)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.slow
def test_planes_of_any_shape(opencl_device, rng, function, dtype):
    """Rectangles with odd and even sides, in batches, agree with NumPy."""
    dtype = usable(opencl_device, dtype)
    for shape in SHAPES:
        keywords = {"s": shape[-2:]} if function is irfft2 else {}
        x = values(rng, function, shape, dtype)
        check(function(x, **keywords), of_numpy(function, x, **keywords), dtype)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("axes", [(0, 1), (2, 0), (-1, -2), (1, 2)])
@pytest.mark.slow
def test_any_two_axes(rng, function, axes):
    """The axes may be any two in either order, and the last one is halved."""
    x = values(rng, function, (9, 10, 8), np.dtype(np.float32))
    check(function(x, axes=axes), of_numpy(function, x, axes=axes), np.dtype(np.float32))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("s", [(5, 10), (10, 5), (-1, 9), (9, -1), None])
@pytest.mark.slow
def test_cropped_and_padded(rng, function, s):
    """Lengths crop an array or pad it with zeros, and -1 keeps its own."""
    x = values(rng, function, (2, 8, 10), np.dtype(np.float32))
    own = (8, 10) if function is not irfft2 else (8, 2 * (x.shape[-1] - 1))
    numpys = s and tuple(o if n == -1 else n for n, o in zip(s, own, strict=True))
    check(function(x, s=s), of_numpy(function, x, s=numpys), np.dtype(np.float32))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_norms(rng, function, norm):
    """Each normalisation is NumPy's."""
    x = values(rng, function, (8, 10), np.dtype(np.float32))
    check(function(x, norm=norm), of_numpy(function, x, norm=norm), np.dtype(np.float32))


@pytest.mark.parametrize("s", [(8, 10), (5, 9)])
def test_round_trips(rng, s):
    """Inverse transforms undo forward ones."""
    x = rng.uniform(-1, 1, (3, *s)).astype(np.float32)
    np.testing.assert_allclose(irfft2(rfft2(x), s=s), x, atol=1e-6)
    np.testing.assert_allclose(ifft2(fft2(x)), x, atol=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_planes_too_large_for_the_device(opencl_device, rng, function):
    """Planes that do not fit are transformed in batches, or by lines, with the same result."""
    context = Context(opencl_device)
    kind = {"rfft2": "r2c", "irfft2": "c2r"}.get(function.__name__, "c2c")
    inverse = function in (ifft2, irfft2)
    lines = TRANSFORMS.get(context, TransformSpec(8, kind, inverse))
    across = TRANSFORMS.get(context, TransformSpec(10, "c2c", inverse))
    x = values(rng, function, (5, 10, 8), np.dtype(np.float32))
    expected = of_numpy(function, x, norm="forward" if inverse else "backward")
    for piece_bytes in (1 << 20, 2 * 5 * 10 * 8 * 8, 1000):
        out = np.empty(expected.shape, np.float32 if kind == "c2r" else np.complex64)
        PlaneTransform(lines, across, piece_bytes).run(out, x, 1.0)
        check(out, expected, np.dtype(np.float32))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("axes", [(-2, -1), (0, 1)])
def test_arrays_of_the_device(rng, function, axes):
    """A pyopencl array, also with an offset, gives a pyopencl array on its queue."""
    queue = DEVICES.default().queue
    x = values(rng, function, (6, 10, 8), np.dtype(np.float32))
    on_device = cl_array.to_device(queue, x)[1:]
    result = function(on_device, axes=axes)
    assert isinstance(result, cl_array.Array)
    check(result.get(), of_numpy(function, x[1:], axes=axes), np.dtype(np.float32))
    np.testing.assert_array_equal(on_device.get(), x[1:])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_no_planes_at_all(function):
    """An empty batch of the host or the device gives an empty batch."""
    x = np.empty((0, 4, 6), np.float32 if function is rfft2 else np.complex64)
    expected = of_numpy(function, x).shape
    assert function(x).shape == expected
    assert function(cl_array.to_device(DEVICES.default().queue, x)).shape == expected


@pytest.mark.slow
def test_other_inputs(rng):
    """Lists, integers and arrays that are not contiguous are accepted and not changed."""
    integers = rng.integers(-9, 9, (16, 10))
    before = integers.copy()
    view = integers[::2, ::-1].T
    if DEVICES.default().device.has_fp64:
        np.testing.assert_allclose(rfft2(view), np.fft.rfft2(view), atol=1e-12)
        np.testing.assert_allclose(fft2([[1, 2], [3, 4]]), np.fft.fft2([[1, 2], [3, 4]]))
    halves = view.astype(np.float16)
    np.testing.assert_allclose(rfft2(halves), np.fft.rfft2(view), atol=1e-4)
    np.testing.assert_array_equal(integers, before)


def test_nan_stays_in_its_plane(rng):
    """A plane with a NaN is NaN; its neighbours keep every bit."""
    x = rng.uniform(-1, 1, (3, 8, 9)).astype(np.float32)
    clean = rfft2(x)
    x[1, 4, 4] = np.nan
    result = rfft2(x)
    assert np.isnan(result[1]).all()
    np.testing.assert_array_equal(result[[0, 2]], clean[[0, 2]])


BAD = [
    (fft2, np.zeros((4, 4)), {"axes": (0, 0)}, r"axes=\(0, 0\): must be two different axes"),
    (fft2, np.zeros((4, 4)), {"axes": (1,)}, r"axes=\(1,\): must be two different axes"),
    (fft2, np.zeros((4, 4)), {"axes": (0, 2)}, r"axis=2: must be -2 to 1 for an array of 2 axes"),
    (fft2, np.zeros(4), {}, r"axis=-2: must be -1 to 0 for an array of 1 axes"),
    (fft2, np.zeros((4, 4)), {"s": (4,)}, r"s=\(4,\): must be two lengths"),
    (fft2, np.zeros((4, 4)), {"s": (4, 0)}, r"n=0: must be at least 1"),
    (fft2, np.zeros((4, 4)), {"s": (-2, 4)}, r"n=-2: must be at least 1"),
    (fft2, np.zeros((4, 0)), {}, r"n=0: must be at least 1"),
    (irfft2, np.zeros((4, 1)), {}, r"n=0: must be at least 1"),
    (fft2, np.zeros((4, 4)), {"norm": "both"}, r"norm='both': must be one of backward, ortho,"),
    (rfft2, np.zeros((4, 4), complex), {}, r"dtype=complex128: rfft2 takes real values"),
    (fft2, np.full((4, 4), "x"), {}, r"dtype=<U1: must be of integers, or of real or complex"),
]


@pytest.mark.parametrize(("function", "x", "keywords", "message"), BAD)
def test_bad_input(function, x, keywords, message):
    """An argument that breaks a rule is one error with the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        function(x, **keywords)


def test_no_memory_for_a_plane_of_the_device(rng, monkeypatch):
    """A refusal of memory by the device is one DeviceError."""

    def refuse(_workspace, name, n_bytes):
        raise DeviceError(f"no {n_bytes} bytes for {name}")

    queue = DEVICES.default().queue
    x = cl_array.to_device(queue, values(rng, irfft2, (6, 8), np.dtype(np.float32)))
    irfft2(x)
    monkeypatch.setattr(type(DEVICES.of_queue(queue).workspace), "get", refuse)
    with pytest.raises(DeviceError, match="no 240 bytes for planes"):
        irfft2(x)
