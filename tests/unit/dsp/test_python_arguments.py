"""Arguments of the Python functions that follow SciPy: integers, axes, whole floats."""

import re

import numpy as np
import pytest

import spectrod
from spectrod.dsp.blocks import Block
from spectrod.lib.errors import ConfigError, InputError

FS = 8000.0
SETTINGS = {"win_length": 256, "hop": 128, "engine": "numpy"}


def noise(channels=2, n=1001):
    """Make reproducible samples in [-1, 1), multiples of 2^-15."""
    integers = np.random.default_rng(15).integers(-(2**15), 2**15, (channels, n))
    return integers / 2.0**15


def pushed(blocks, **settings):
    """Push blocks and return the spectra (rows, channels, bins)."""
    with spectrod.Stft(FS, channels=2, **SETTINGS, **settings) as stft:
        return np.concatenate([b.values for block in blocks for b in stft.push(block)])


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", ">i2", "int32", "uint32", "int64", "uint64", "f8"]
)
def test_integers_of_any_kind_have_a_full_scale(dtype):
    """Integers are divided exactly by their full scale, and unsigned ones are not shifted."""
    x = (noise() * 100.0).astype(np.int8)
    given = (x & 127 if np.dtype(dtype).kind == "u" else x).astype(dtype)
    expected = spectrod.spectrogram(np.float64(given) / 128.0, FS, **SETTINGS)
    found = spectrod.spectrogram(given, FS, full_scale=128, **SETTINGS)
    np.testing.assert_array_equal(found.values, expected.values)
    blocks = [given[:, :500], given[:, 500:]]
    np.testing.assert_array_equal(
        pushed(blocks, full_scale=128.0), expected.values.transpose(2, 0, 1)
    )


def test_lists_of_int_and_large_integers():
    """Lists become int64, and values beyond float32's precision are divided in float64."""
    x = noise(1)[0]
    expected = spectrod.spectrogram(x, FS, **SETTINGS).values
    listed = [int(value) for value in x * 2.0**15]
    found = spectrod.spectrogram(listed, FS, full_scale=2**15, **SETTINGS)
    np.testing.assert_array_equal(found.values, expected)
    wide = (x * 2.0**62).astype(np.int64)
    found = spectrod.spectrogram(wide, FS, full_scale=2**62, **SETTINGS)
    np.testing.assert_array_equal(found.values, expected)


def test_complex_numbers_have_a_full_scale():
    """A receiver's integers as complex numbers are divided by their full scale."""
    x = noise()
    pairs = (x[0] + 1j * x[1]) * 2.0**15
    expected = spectrod.spectrogram(x, FS, iq=True, **SETTINGS)
    found = spectrod.spectrogram(pairs, FS, full_scale=2**15, **SETTINGS)
    np.testing.assert_allclose(found.values, expected.values[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i4"])
@pytest.mark.parametrize("axis", [0, -2])
def test_time_may_be_the_first_axis(axis, dtype):
    """With axis 0, samples are (n, channels), as in soundfile, and give the same result."""
    x = noise()
    x = np.int64(x * 2**15).astype(dtype) if dtype.startswith("i") else x.astype(dtype)
    expected = spectrod.spectrogram(x, FS, **SETTINGS).values
    columns = np.ascontiguousarray(x.T)
    found = spectrod.spectrogram(columns, FS, axis=axis, **SETTINGS)
    np.testing.assert_array_equal(found.values, expected)
    np.testing.assert_array_equal(
        pushed([columns[:333], columns[333:]], axis=axis), expected.transpose(2, 0, 1)
    )
    for last in (1, -1):
        np.testing.assert_array_equal(
            spectrod.spectrogram(x, FS, axis=last, **SETTINGS).values, expected
        )
    alone = spectrod.spectrogram(columns[:, 0], FS, axis=axis, **SETTINGS)
    np.testing.assert_array_equal(alone.values, expected[0])


def test_the_axis_is_of_arrays_alone():
    """The argument axis applies to whole arrays, not to bytes or blocks."""
    x = np.float32(noise())
    expected = pushed([x])
    block = Block(x, 0, 0, 0)
    np.testing.assert_array_equal(pushed([block], axis=0), expected)
    np.testing.assert_array_equal(pushed([np.ascontiguousarray(x.T).tobytes()], axis=0), expected)
    np.testing.assert_array_equal(pushed([memoryview(np.ascontiguousarray(x.T))], axis=0), expected)


@pytest.mark.parametrize("channels", [1, 2])
def test_packed_samples_have_their_bytes_last(channels):
    """For packed int24, the axis of time is counted without the axis of bytes."""
    packed = np.random.default_rng(24).integers(0, 256, (channels, 600, 3), np.uint8)
    settings = SETTINGS | {"channels": channels, "sample_format": "int24"}
    given = packed.swapaxes(0, 1) if channels == 2 else packed[0]
    with spectrod.Stft(FS, **settings) as stft, spectrod.Stft(FS, axis=0, **settings) as columns:
        (expected,), (found,) = stft.push(packed), columns.push(given)
    np.testing.assert_array_equal(found.values, expected.values)


def test_lengths_may_be_whole_floats():
    """Lengths may be whole floats, such as ``fs * 0.032``, and are ints in the result."""
    x = noise(1)[0]
    expected = spectrod.spectrogram(x, FS, win_length=256, hop=64, nfft=512, engine="numpy")
    found = spectrod.spectrogram(
        x, FS, win_length=256.0, hop=np.float32(64.0), nfft=np.float64(512.0), engine="numpy"
    )
    np.testing.assert_array_equal(found.values, expected.values)
    assert [type(n) for n in (found.spec.win_length, found.spec.hop, found.spec.nfft)] == [int] * 3
    default = spectrod.spectrogram(x, FS, win_length=256.0, engine="numpy")
    assert default.spec.hop == 64
    with spectrod.Stft(FS, win_length=(256.0, 512), hop=128.0, engine="numpy") as stft:
        assert [(spec.win_length, spec.hop) for spec in stft.specs] == [(256, 128), (512, 128)]


@pytest.mark.parametrize(
    ("x", "settings", "message"),
    [
        (np.zeros(300, np.int64), {}, "samples of dtype int64: must be real floats or one of "),
        ([0] * 300, {}, "; for other integers give full_scale, the number that stands for 1.0"),
        (np.zeros(300, bool), {"full_scale": 1}, "samples of dtype bool: must be integers, floats"),
        (np.zeros(300), {"full_scale": 0}, "full_scale=0: must be a positive number"),
        (np.zeros(300), {"full_scale": -1.0}, "full_scale=-1.0: must be a positive number"),
        (np.zeros(300), {"full_scale": float("nan")}, "full_scale=nan: must be a positive number"),
        (np.zeros(300), {"full_scale": float("inf")}, "full_scale=inf: must be a positive number"),
        (np.zeros(300), {"full_scale": "1"}, "full_scale='1': must be a positive number"),
        (np.zeros(300), {"full_scale": True}, "full_scale=True: must be a positive number"),
        (np.zeros((300, 2)), {"axis": 2}, "axis=2: must be 0 or -2 of (n, channels), 1 or -1 of"),
        (np.zeros((300, 2)), {"axis": "0"}, "axis='0': must be 0 or -2 of (n, channels), 1 or"),
        (np.zeros((300, 2)), {}, "2 samples: fewer than one window, win_length=256; for (n, chan"),
        (np.zeros((5000, 2)), {}, "transpose (n, channels), or give axis=0"),
        (np.zeros((2, 2, 300)), {"axis": 0}, "samples of shape (2, 2, 300): must be (n,) or "),
        (np.zeros(300), {"hop": 512.5}, "hop=512.5: must be a whole number"),
        (np.zeros(300), {"win_length": 255.5}, "win_length=255.5: must be a whole number"),
        (np.zeros(300), {"win_length": np.inf}, "win_length=inf: must be a whole number"),
        (np.zeros(300), {"nfft": np.nan}, "nfft=nan: must be a whole number"),
        (np.zeros(300), {"nfft": 1e300}, "nfft=1e+300: must be a whole number"),
    ],
)
def test_arguments_that_break_a_rule(x, settings, message):
    """An argument that breaks a rule is one line with the value and the rule."""
    with pytest.raises((ConfigError, InputError), match=re.escape(message)) as refused:
        spectrod.spectrogram(x, FS, **(SETTINGS | settings))
    assert "\n" not in str(refused.value)


def test_a_stream_checks_its_arguments_when_it_is_made():
    """A stream checks its arguments before a device is opened."""
    with pytest.raises(ConfigError, match=r"^axis=3: must be 0 or -2 of \(n, channels\), 1 or -1"):
        spectrod.Stft(FS, axis=3)
    with pytest.raises(ConfigError, match=r"^full_scale=0: must be a positive number$"):
        spectrod.Stft(FS, full_scale=0)
    with pytest.raises(ConfigError, match=r"^full_scale=2: needs sample_format='float32'$"):
        spectrod.Stft(FS, full_scale=2, sample_format="int16")
