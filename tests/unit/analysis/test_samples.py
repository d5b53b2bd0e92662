"""Conversion of arrays of any kind to samples."""

import re
from pathlib import Path

import numpy as np
import pytest

from spectrod.analysis.samples import as_samples, is_finite, memory_of, require_finite
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import InputError


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
    """Integers are divided by their full scale, and floats are unchanged."""
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
        (
            np.zeros((1000, 3)),
            "(1000, 3): must have 3 channels; transpose (n, channels), or give axis=0",
        ),
        (
            [[1.0, 2.0], [1.0]],
            "samples: must be (n,) or (channels, n) numbers, the same n for all channels",
        ),
        (np.ma.masked_greater([0.0, 0.5, 1.0], 0.4), "2 samples are masked: there must be none"),
        ("reef.wav", "samples: must be an array, not the name 'reef.wav'; soundfile.read(NAME)"),
        (Path("a" * 90), f"must be an array, not the name '{'a' * 80}'; soundfile.read(NAME)"),
        (memoryview(np.zeros(3)), "samples of dtype float64: must be float32 for sample_format"),
    ],
)
def test_invalid_samples_are_refused(x, message):
    """An invalid shape or dtype is an error with the actual and the required one."""
    with pytest.raises(InputError, match=re.escape(message)):
        as_samples(x, 3 if getattr(x, "shape", ()) in {(2, 5), (1000, 3)} else None)


@pytest.mark.parametrize(
    ("x", "sample_format", "expected"),
    [
        (np.int16([1, 2]), "int16", [[1, 2]]),
        (np.int32([[1, 2], [3, 4]]), "int32", [[1, 2], [3, 4]]),
        (np.uint8([[1, 2, 3]]), "int24", [[[1, 2, 3]]]),
        (b"\1\0\2\0\3\0\4\0", "int16", [[1, 3], [2, 4]]),
        (bytearray(range(12)), "int24", [[[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]]),
        (memoryview(np.float32([0.5, -1.0])), "float32", [[0.5], [-1.0]]),
        (memoryview(np.float32([[0.5, 1.0], [-1.0, 0.0]])), "float32", [[0.5, 1.0], [-1.0, 0.0]]),
        (memoryview(b"\1\0\2\0\3\0\4\0")[::-1], "int16", [[4 << 8, 2 << 8], [3 << 8, 1 << 8]]),
        (np.array([[1], [2]], ">i2"), "int16", [[1], [2]]),
        (np.array([[1], [2]], ">i4"), "int32", [[1], [2]]),
    ],
)
def test_formats_are_taken_as_they_are(x, sample_format, expected):
    """Integers of a format are unchanged, and bytes are interleaved samples of the channels."""
    channels = 2 if isinstance(x, (bytes, bytearray, memoryview)) else None
    samples = as_samples(x, channels, sample_format)
    assert samples.dtype == SampleLayout(sample_format).dtype
    np.testing.assert_array_equal(samples, expected)


@pytest.mark.parametrize(
    ("x", "sample_format", "message"),
    [
        (np.zeros(3), "int16", "dtype float64: must be int16 for sample_format 'int16'"),
        (np.zeros(3, np.int16), "int32", "dtype int16: must be int32 for sample_format 'int32'"),
        (np.zeros((3, 4), np.uint8), "int24", "must be (n, 3) or (channels, n, 3), n >= 1"),
        (np.zeros((3, 3), np.int8), "int24", "dtype int8: must be uint8 for sample_format 'int24'"),
        (bytes(7), "int16", "7 bytes: must be a whole number, 1 or more, of 4-byte samples (2 "),
        (b"", "int16", "0 bytes: must be a whole number, 1 or more, of 4-byte samples (2 channels"),
    ],
)
def test_samples_of_another_format_are_refused(x, sample_format, message):
    """A dtype other than the format's, and bytes that end within a sample, are refused."""
    channels = 2 if isinstance(x, bytes) else None
    with pytest.raises(InputError, match=re.escape(message)):
        as_samples(x, channels, sample_format)


def test_memory_without_gaps_is_found():
    """Contiguous memory is used in place in both orders of channels, but not otherwise."""
    x = np.arange(12, dtype=np.int16).reshape(2, 6)
    for samples, interleaved in ((x, False), (np.ascontiguousarray(x.T).T, True)):
        memory, layout = memory_of(samples)
        assert layout == SampleLayout("int16", 2, interleaved)
        np.testing.assert_array_equal(layout.arranged(memory, 6), x)
    assert memory_of(x[:, ::2]) is None
    assert memory_of(x[:, :5]) is None
    assert memory_of(x.astype(np.float64)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_first_bad_sample_is_named(value):
    """The error for a bad sample names the sample, its channel and its value."""
    samples = np.zeros((2, 100), np.float32)
    samples[1, 42] = value
    assert not is_finite(samples)
    with pytest.raises(InputError, match=f"sample 1042 of channel 1 is {value}: must be finite"):
        require_finite(samples, 1000)


@pytest.mark.parametrize("place", [0, 300_000, -1])
def test_a_bad_sample_in_any_part_is_found(place):
    """A NaN is found wherever it is among samples that several threads check."""
    samples = np.ones((2, 600_001), np.float32)
    assert is_finite(samples)
    samples[1, place] = np.nan
    assert not is_finite(samples)


def test_huge_samples_are_finite():
    """Finite samples pass even if their sum overflows; a double beyond float32 does not."""
    assert is_finite(np.full((1, 100), 3e38, np.float32))
    assert not is_finite(as_samples([1e300]))
