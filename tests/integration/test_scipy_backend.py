import multiprocessing

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import spectrod.fft
from spectrod.fft import runtime
from spectrod.fft.backend import __ua_function__ as dispatch
from spectrod.lib.errors import DeviceError

pytestmark = pytest.mark.slow

SHAPE = (6, 16)


@pytest.fixture(scope="module", autouse=True)
def _device(opencl_device):
    spectrod.fft.use_device(opencl_device.number)


@pytest.fixture
def calls(monkeypatch):
    """Set the backend, and record the calls that it answers."""
    answered = []

    def noting(method, args, kwargs):
        result = dispatch(method, args, kwargs)
        answered.append((method.__name__, result is not NotImplemented))
        return result

    backend = spectrod.fft.scipy_backend
    monkeypatch.setattr(backend, "__ua_function__", noting)
    with scipy.fft.set_backend(backend):
        yield answered


def expected(name, *args, **kwargs):
    with scipy.fft.skip_backend(spectrod.fft.scipy_backend):
        return getattr(scipy.fft, name)(*args, **kwargs)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
        *((name, {}) for name in ("fft2", "ifft2", "rfft2", "irfft2")),
        *((name, {}) for name in ("fftn", "ifftn", "rfftn", "irfftn")),
        ("fft", {"n": 8, "axis": 0, "norm": "ortho", "overwrite_x": True, "workers": 2}),
        ("irfft", {"n": 15}),
        ("fft2", {"s": (8, -1), "axes": (1, 0)}),
        ("fftn", {"s": (8,)}),
        ("rfftn", {"axes": (0,), "norm": "forward"}),
        ("fftn", {"s": 8, "axes": 0}),
        ("ifftn", {"s": 8}),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_supported_calls_are_computed_by_spectrod(calls, name, options, dtype):
    """Supported calls are computed by spectrod with SciPy's values, shapes and types."""
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(dtype)
    result = getattr(scipy.fft, name)(x, **options)
    assert calls == [(name, True)]
    right = expected(name, x, **options)
    assert (result.dtype, result.shape) == (right.dtype, right.shape)
    limit = {"float32": 4e-7, "float64": 1e-15}[dtype]
    assert np.linalg.norm(result - right) <= limit * np.linalg.norm(right)


@pytest.mark.parametrize(
    ("name", "x", "options"),
    [
        ("fft", np.ones(8, np.longdouble), {}),
        ("fftn", np.ones((4, 4, 4)), {}),
        ("fftn", np.ones((4, 4)), {"axes": ()}),
        ("hfft2", np.ones((4, 4)), {}),
        ("dct", np.ones(8), {}),
    ],
)
def test_the_rest_is_left_to_scipy(calls, name, x, options):
    """Long double, more axes and other functions are left to the next backend."""
    result = getattr(scipy.fft, name)(x, **options)
    assert calls == [(name, False)]
    np.testing.assert_array_equal(result, expected(name, x, **options))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n": 0}, ValueError),
        ({"axis": 5}, IndexError),
        ({"norm": "unit"}, ValueError),
        ({"workers": 0}, ValueError),
        ({"plan": object()}, NotImplementedError),
    ],
)
def test_errors_are_those_of_scipy(calls, options, error):
    """Invalid arguments are left to SciPy and give its errors."""
    with pytest.raises(error):
        scipy.fft.fft(np.ones(8), **options)
    assert calls == [("fft", False)]


@pytest.mark.parametrize("options", [{"s": (4, 5), "axes": (0,)}, {"s": (), "axes": (0,)}])
def test_lengths_without_axes_are_an_error_of_scipy(calls, options):
    """Lengths without axes must be as many as the axes, as in SciPy."""
    with pytest.raises(ValueError, match="axes and shape arguments"):
        scipy.fft.fftn(np.ones((4, 4)), **options)
    assert calls == [("fftn", False)]


def test_complex_values_are_not_taken_for_real(calls):
    """Complex values for a real transform give SciPy's TypeError."""
    with pytest.raises(TypeError, match="real sequence"):
        scipy.fft.rfft(np.ones(8) + 0j)


def test_other_parts_of_scipy_use_it(calls):
    """A convolution in SciPy uses the backend and is right."""
    x, kernel = np.random.default_rng(2).standard_normal((2, 60))
    result = scipy.signal.fftconvolve(x, kernel)
    np.testing.assert_allclose(result, np.convolve(x, kernel), atol=1e-12)
    assert ("rfft2", True) in calls or ("rfftn", True) in calls


def in_child(queue, function):
    try:
        queue.put(function(np.ones(16, np.float32)))
    except DeviceError as error:
        queue.put(str(error))


def choose_first_device(_):
    return spectrod.fft.use_device("")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_does_not_hang():
    """After a fork SciPy computes, and our own functions refuse with a remedy."""
    assert spectrod.fft.fft(np.ones(16))[0] == 16
    assert not runtime.DEVICES.is_forked
    context = multiprocessing.get_context("fork")
    with scipy.fft.set_backend(spectrod.fft.scipy_backend):
        own = spectrod.fft.fft, spectrod.fft.plan((1, 16)).execute, choose_first_device
        for function in (scipy.fft.fft, *own):
            queue = context.SimpleQueue()
            child = context.Process(target=in_child, args=(queue, function))
            child.start()
            child.join(20)
            assert child.exitcode == 0
            answer = queue.get()
            if function is scipy.fft.fft:
                assert answer[0] == 16
            else:
                assert "opened before this process was forked" in answer
