"""Arrays of any kind as samples."""

import re

import numpy as np
import pytest

from spectrod.analysis.samples import as_samples, is_finite, require_finite
from spectrod.errors import InputError


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (np.array([0, 128, 192], np.uint8), [-1.0, 0.0, 0.5]),
        (np.array([-128, 64], np.int8), [-1.0, 0.5]),
        (np.array([-32768, 16384], np.int16), [-1.0, 0.5]),
        (np.array([-(2**31), 2**30], np.int32), [-1.0, 0.5]),
        (np.array([0.25, -3.0], np.float64), [0.25, -3.0]),
        ([0.5, 1.0], [0.5, 1.0]),
    ],
)
def test_integer_pcm_is_a_fraction_of_full_scale(x, expected):
    """Integers are divided by their full scale, floats are taken as they are."""
    samples = as_samples(x)
    assert (samples.dtype, samples.shape) == (np.float32, (1, len(expected)))
    np.testing.assert_array_equal(samples[0], np.float32(expected))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([], "samples of shape (0,): must be (n,) or (channels, n), n >= 1"),
        (np.zeros((2, 2, 2)), "samples of shape (2, 2, 2): must be (n,) or (channels, n)"),
        (np.zeros((5000, 2)), "(channels, n) has at most 4096 channels; transpose (n, channels)"),
        (np.zeros(3, complex), "samples of dtype complex128: must be real floats or one of uint8"),
        (np.zeros(3, np.int64), "samples of dtype int64: must be real floats or one of uint8"),
        (np.zeros(3, bool), "samples of dtype bool: must be real floats or one of uint8"),
        (np.zeros((2, 5)), "samples of shape (2, 5): must have 3 channels"),
    ],
)
def test_what_is_no_sample(x, message):
    """Wrong shapes and dtypes say what they are and what they must be."""
    with pytest.raises(InputError, match=re.escape(message)):
        as_samples(x, 3 if np.shape(x) == (2, 5) else None)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_first_bad_sample_is_named(value):
    """The error names the sample, its channel and its value."""
    samples = np.zeros((2, 100), np.float32)
    samples[1, 42] = value
    assert not is_finite(samples)
    with pytest.raises(InputError, match=f"sample 1042 of channel 1 is {value}: must be finite"):
        require_finite(samples, 1000)


def test_huge_samples_are_finite():
    """Samples whose sum overflows are still finite; a double beyond float32 is not."""
    assert is_finite(np.full((1, 100), 3e38, np.float32))
    assert not is_finite(as_samples([1e300]))
