import re
import subprocess
import sys

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import array

import spectrod.fft
from spectrod.fft import api, argument_checks
from spectrod.lib.errors import ConfigError

X = np.arange(16.0)


@pytest.fixture(scope="module", autouse=True)
def _device(opencl_device):
    spectrod.fft.use_device(opencl_device.number)


def refused(message):
    return pytest.raises(ConfigError, match=re.escape(message))


def test_importing_the_names_is_cheap():
    """Importing the package and listing its names loads neither NumPy nor OpenCL."""
    code = (
        "import sys, spectrod; dir(spectrod.fft); print({'numpy', 'pyopencl'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "set()\n"


def test_every_name_is_there():
    """The package has exactly the names that it lists."""
    for name in dir(spectrod.fft):
        assert getattr(spectrod.fft, name) is not None
    with pytest.raises(AttributeError, match=r"module 'spectrod.fft' has no attribute 'dct'"):
        spectrod.fft.dct  # noqa: B018 - asking is the test


@pytest.mark.parametrize("n", [0, -1])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_lengths_below_one_are_refused(name, n):
    """A length below one is refused with the value, as in NumPy."""
    with refused(f"n={n}: must be at least 1"):
        getattr(spectrod.fft, name)(X, n)


@pytest.mark.parametrize("n", [2.5, "8", (8,)])
def test_lengths_that_are_no_integers_are_refused(n):
    """A length that is not an integer is refused with the value as given."""
    with refused(f"n={n!r}: must be an integer"):
        spectrod.fft.fft(X, n)


def test_a_length_beyond_the_longest_is_refused():
    """A length above 2^26 is refused."""
    with refused("n=67108865: must be 1 to 67108864"):
        spectrod.fft.fft(X, (1 << 26) + 1)


def test_an_empty_axis_is_refused():
    """An empty axis is refused, as is a single bin without a length."""
    with refused("n=0: must be at least 1"):
        spectrod.fft.fft(np.zeros((3, 0)))
    with refused("n=0: must be at least 1"):
        spectrod.fft.irfft(np.zeros(1))


@pytest.mark.parametrize("axis", [-3, 2])
def test_an_axis_out_of_range_is_refused(axis):
    """An axis out of range is refused with the range."""
    with refused(f"axis={axis}: must be -2 to 1 for an array of 2 axes"):
        spectrod.fft.fft(np.zeros((3, 4)), axis=axis)


def test_an_axis_that_is_no_integer_is_refused():
    """An axis that is not an integer is refused with the value as given."""
    with refused("axis=1.0: must be an integer"):
        spectrod.fft.fft(np.zeros((3, 4)), axis=1.0)


def test_a_scalar_is_refused():
    """A scalar is refused because it has no axis."""
    with refused("a 0-d array: must have at least one axis"):
        spectrod.fft.fft(3.0)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "hfft", "ihfft"])
def test_an_unknown_norm_is_refused(name):
    """An unknown norm is refused with the list of three."""
    with refused("norm='unit': must be one of backward, ortho, forward"):
        getattr(spectrod.fft, name)(X, norm="unit")


@pytest.mark.parametrize(
    "x",
    [
        np.array(["a"]),
        np.array([object()]),
        np.array(["2026-11-20"], "datetime64[D]"),
        np.zeros(4, np.longdouble),
        np.zeros(4, np.clongdouble),
    ],
)
def test_values_other_than_numbers_up_to_double_are_refused(x):
    """Text, objects, dates and long doubles are refused with the name of the type."""
    with refused(
        f"dtype={x.dtype}: must be of integers, or of real or complex numbers up to double"
    ):
        spectrod.fft.fft(x)


@pytest.mark.parametrize("name", ["fft", "hfft", "fft2"])
def test_values_other_than_arrays_are_refused(name):
    """Rows of different lengths are refused with NumPy's reason in our error."""
    with refused("not an array: setting an array element with a sequence"):
        getattr(spectrod.fft, name)([[1.0], [1.0, 2.0]])


def test_hfft_refuses_values_without_a_conjugate():
    """An argument that hfft cannot conjugate gives the same error as in the other functions."""
    with refused("dtype=object: must be of integers"):
        spectrod.fft.hfft(None)


@pytest.mark.parametrize("name", ["fft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", [["ortho"], np.array(["ortho", "ortho"]), 1])
def test_a_norm_that_is_no_text_is_refused(name, norm):
    """A norm that is not text is refused even if it cannot be compared or hashed."""
    with refused(f"norm={norm!r}: must be one of backward, ortho, forward"):
        getattr(spectrod.fft, name)(X, norm=norm)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": 0}, "axes=0: must be a sequence"),
        ({"axes": None}, "axes=None: must be a sequence"),
        ({"s": 4}, "s=4: must be a sequence"),
        ({"s": (4,)}, "s=(4,): must be two lengths"),
        ({"s": (4, 4.0)}, "n=4.0: must be an integer"),
    ],
)
def test_two_axes_and_lengths_are_asked_for(options, message):
    """Two axes and two lengths are required; a single number is refused."""
    with refused(message):
        spectrod.fft.fft2(np.ones((4, 4)), **options)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        (8, {}, "shape=8: must be a sequence"),
        ((4, 8.0), {}, "shape=8.0: must be an integer"),
        ((-4, 8), {}, "shape=(-4, 8): must not be negative"),
        ((8,), {"dtype": "foo"}, "dtype='foo': data type 'foo' not understood"),
        ((8,), {"dtype": np.dtype(np.complex64).newbyteorder()}, "must be complex64 or complex128"),
        ((8,), {"kind": "dct"}, "kind='dct': must be one of c2c, r2c, c2r"),
        ((8,), {"queue": 5}, "queue=5: must be a pyopencl.CommandQueue"),
    ],
)
def test_a_plan_is_checked(shape, options, message):
    """Arguments of a plan are checked before compilation, and the error names the argument."""
    with refused(message):
        spectrod.fft.plan(shape, **options)


@pytest.mark.parametrize("name", [0, None])
def test_a_device_is_named_by_a_text(name):
    """A device is named by text, and an index is text, too."""
    with refused(f"name={name!r}: must be a text"):
        spectrod.fft.use_device(name)


@pytest.mark.parametrize("name", ["rfft", "ihfft"])
def test_complex_values_are_not_taken_for_real(name):
    """Complex values are refused where real ones are required, so nothing is dropped silently."""
    with refused("dtype=complex128: rfft takes real values"):
        getattr(spectrod.fft, name)(X + 0j)


@pytest.mark.parametrize(
    ("given", "precision"),
    [
        (np.float16, "single"),
        (np.float32, "single"),
        (np.complex64, "single"),
        (np.float64, "double"),
        (np.complex128, "double"),
        (np.int8, "double"),
        (np.uint64, "double"),
        (np.bool_, "double"),
    ],
)
def test_single_stays_single_and_all_else_is_double(given, precision):
    """Single precision stays single and all other types become double, as in scipy.fft."""
    assert argument_checks.precision_of(np.dtype(given)) == precision


@pytest.mark.parametrize(
    ("norm", "forward", "inverse"),
    [(None, 1, 1 / 16), ("backward", 1, 1 / 16), ("ortho", 1 / 4, 1 / 4), ("forward", 1 / 16, 1)],
)
def test_norms_are_those_of_numpy(norm, forward, inverse):
    """Forward and backward factors of every norm multiply to 1/n, as in NumPy."""
    assert argument_checks.norm_scale(norm, 16, inverse=False) == forward
    assert argument_checks.norm_scale(norm, 16, inverse=True) == inverse


READ_ONLY = np.zeros((4, 16), np.complex64)
READ_ONLY.flags.writeable = False
MEMORY = np.zeros((5, 16), np.complex64)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ([0], "out is a list: must be a NumPy array, as x is"),
        (np.zeros((4, 15), np.complex64), "out of shape (4, 15): must be (4, 16)"),
        (np.zeros((4, 16), np.complex128), "out of complex128: must be complex64"),
        (np.zeros((4, 16), ">c8"), "out of >c8: must be complex64"),
        (READ_ONLY, "out is read-only: must be writable"),
        (np.zeros((16, 4), np.complex64).T, "out with strides (8, 32): must be C-contiguous"),
        (MEMORY[1:], "out overlaps x: must be x itself or apart from it"),
    ],
)
def test_out_is_checked(out, message):
    """Each rule for the argument out has its error."""
    with refused(message):
        spectrod.fft.fft(MEMORY[:4], out=out)


def test_a_plan_needs_a_type_that_fits():
    """Real transforms take real input, complex and inverse real transforms take complex input."""
    for dtype, kind, rule in (
        ("int16", None, "float32 or float64 for r2c"),
        ("float16", None, "float32 or float64 for r2c"),
        ("complex64", "r2c", "float32 or float64 for r2c"),
        ("float32", "c2r", "complex64 or complex128 for c2r"),
    ):
        with refused(f"dtype={dtype}: must be {rule}"):
            spectrod.fft.plan((4, 16), dtype, kind=kind)
    with refused("inverse=True: r2c is forward, c2r is inverse"):
        spectrod.fft.plan((4, 16), "float32", inverse=True)


def test_device_arrays_without_a_queue_are_refused(opencl_device):
    """Device arrays without a command queue are refused."""
    context = cl.Context([opencl_device.handle])
    queue = cl.CommandQueue(context)
    x = array.zeros(queue, 16, np.complex64)
    with refused("a pyopencl array without a queue: give it one by with_queue"):
        spectrod.fft.fft(x.with_queue(None))
    with refused("dtype=int32: must be float32, float64, complex64 or complex128"):
        spectrod.fft.fft(array.zeros(queue, 16, np.int32))


def test_the_names_are_the_functions():
    """The names of the package are the functions of its modules."""
    assert spectrod.fft.plan is api.plan
    assert spectrod.fft.fftfreq is np.fft.fftfreq
