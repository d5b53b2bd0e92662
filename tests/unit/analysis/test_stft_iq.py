"""I/Q samples from Python: complex arrays of any layout, and pairs of integers."""

import numpy as np
import pytest

import spectrod
from spectrod.analysis.iq import as_channels
from spectrod.analysis.samples import memory_of
from spectrod.dsp.blocks import Block
from spectrod.lib.errors import InputError

FS = 2_048_000.0
SETTINGS = {"win_length": 512, "hop": 512, "nfft": 512, "scaling": "dbfs", "engine": "numpy"}


def tone(n=2048, f_hz=FS / 8, dtype=np.complex64):
    """Make a complex tone of -6.02 dBFS."""
    return (0.5 * np.exp(2j * np.pi * f_hz / FS * np.arange(n))).astype(dtype)


def peak(spectra):
    """Return frequency and level of the largest value of the first row."""
    levels = spectra.values[..., 0].reshape(-1, len(spectra.f))[0]
    return spectra.f[levels.argmax()], levels.max()


LAYOUTS = {
    "plain": lambda x: x,
    "strided": lambda x: np.repeat(x, 3)[::3],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "list": lambda x: x.tolist(),
    "row": lambda x: x[np.newaxis],
    "column": lambda x: np.stack([x, 0 * x], axis=1).T,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_arrays_are_iq(layout, dtype):
    """A complex array needs no flag and gives the same result as its two parts."""
    x = tone(dtype=dtype)
    given = LAYOUTS[layout](x)
    spectra = spectrod.spectrogram(given, FS, **SETTINGS)
    assert spectra.spec.iq
    assert spectra.values.shape == (*np.shape(given)[:-1], 512, 4)
    f_hz, level = peak(spectra)
    assert f_hz == FS / 8
    assert level == pytest.approx(-6.02, abs=0.005)
    parts = np.stack([x.real, x.imag])
    stacked = spectrod.spectrogram(parts, FS, iq=True, **SETTINGS)
    np.testing.assert_array_equal(spectra.values.reshape(-1, 512, 4)[0], stacked.values[0])


def test_complex64_is_not_copied():
    """A complex64 signal reaches the device without a copy."""
    x = tone()
    channels = as_channels(x, iq=True)
    assert np.shares_memory(channels, x)
    assert memory_of(channels) is not None


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n_signals", [1, 2, 3])
def test_complex_blocks_are_pushed_as_they_are(dtype, n_signals):
    """A stream of I/Q takes complex blocks of one or more signals, in any division."""
    x = np.stack([tone(1999, f_hz, dtype) for f_hz in (FS / 8, -FS / 4, 0.0)[:n_signals]])
    with spectrod.Stft(FS, channels=2 * n_signals, iq=True, **SETTINGS) as stft:
        batches = [*stft.push(x[:, :700]), *stft.push(Block(x[:, 700:], 700, 0, 0))]
    values = np.concatenate([batch.values for batch in batches])
    whole = spectrod.spectrogram(x, FS, **SETTINGS)
    np.testing.assert_array_equal(values, np.moveaxis(whole.values, 2, 0))
    if n_signals == 1:
        with spectrod.Stft(FS, iq=True, **SETTINGS) as stft:  # two channels because of I/Q
            np.testing.assert_array_equal(stft.push(x[0])[0].values, values)


@pytest.mark.parametrize(
    ("dtype", "full_scale", "offset"),
    [("i1", 2.0**7, 0.0), ("<i2", 2.0**15, 0.0), ("<i4", 2.0**31, 0.0), ("u1", 2.0**7, 128.0)],
)
def test_pairs_of_integers_are_shares_of_full_scale(dtype, full_scale, offset):
    """Integer I/Q reads its true level, with the middle of unsigned bytes at 127.5."""
    x = tone() * np.exp(0.1j)  # its parts lie on no edge between two codes
    pairs = np.stack([x.real, x.imag]) * full_scale
    if offset:
        pairs = np.round(pairs - 0.5) + offset
    spectra = spectrod.spectrogram(np.round(pairs).astype(dtype), FS, iq=True, **SETTINGS)
    f_hz, level = peak(spectra)
    assert f_hz == FS / 8
    assert level == pytest.approx(-6.02, abs=0.1)  # eight values, rounded to 8 bits
    assert spectra.values[0, 256, 0] < -100.0  # no line at the centre frequency
    with spectrod.Stft(FS, iq=True, **SETTINGS) as stft:
        pushed = stft.push(np.round(pairs).astype(dtype))[0].values[0, 0]
    # A stream of float32 rounds 32 bits to 24, which spectrogram does not.
    audible = [np.maximum(levels, -120.0) for levels in (pushed, spectra.values[0, :, 0])]
    np.testing.assert_allclose(*audible, atol=1e-3)


@pytest.mark.parametrize(
    ("x", "kwargs", "message"),
    [
        (tone(100), {}, r"samples of dtype complex64: complex samples need iq=True"),
        (
            np.zeros((3, 100), np.complex64),
            {"iq": True},
            r"samples of shape \(3, 100\): must have 1 complex signals, channels=2",
        ),
        (
            np.zeros((1, 2, 3), complex),
            {"iq": True},
            r"samples of shape \(1, 2, 3\): must be \(n,\) or \(signals, n\) complex numbers",
        ),
        (np.ma.masked_equal(tone(100), 0.5), {"iq": True}, "samples are masked"),
        ([[1j, 2j], [1j]], {"iq": True}, "samples: must be "),
        (np.full(600, np.nan * 1j), {"iq": True}, "sample 0 of channel 0 is nan"),
        (np.full(600, 1e300 + 0j), {"iq": True}, "sample 0 of channel 0 is inf"),
    ],
)
def test_arrays_that_are_not_iq_are_refused(x, kwargs, message):
    """Each array that cannot be I/Q is one clear error."""
    with (
        spectrod.Stft(FS, **kwargs, **SETTINGS) as stft,
        pytest.raises(InputError, match=message),
    ):
        stft.push(x)
