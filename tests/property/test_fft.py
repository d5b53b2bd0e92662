"""Properties of every transform with any values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import spectrod.fft

pytestmark = pytest.mark.slow

# A length of one pass, and one that Bluestein does.
LENGTHS = st.sampled_from([16, 19])
EPS = np.finfo(np.float64).eps
SETTINGS = settings(max_examples=30)


@pytest.fixture(scope="module", autouse=True)
def _device(opencl_device):
    spectrod.fft.use_device(opencl_device.number)


@st.composite
def signals(draw, count):
    """Generate (count, n) complex values of a scale that limits the error."""
    n = draw(LENGTHS)
    parts = arrays.arrays(np.float64, (count, n), elements=st.floats(-1e3, 1e3, width=32))
    return draw(parts) + 1j * draw(parts)


def assert_close(result, expected, size):
    """Check equality within the rounding of a few operations on values of that scale."""
    assert np.linalg.norm(result - expected) <= 40 * EPS * size + np.finfo(np.float64).tiny


@SETTINGS
@given(signals(2), st.floats(-10, 10), st.floats(-10, 10))
def test_transforms_are_linear(x, a, b):
    """The transform of a sum is the sum of the transforms."""
    first, second = spectrod.fft.fft(x)
    size = 10 * np.linalg.norm(x) * np.sqrt(x.shape[1])
    assert_close(spectrod.fft.fft(a * x[0] + b * x[1]), a * first + b * second, size)


@SETTINGS
@given(signals(1), st.integers(-40, 40))
def test_a_shift_turns_the_phases(x, shift):
    """A circular shift by d multiplies bin k by exp(-2 pi i k d / n)."""
    n = x.shape[1]
    turns = np.exp(-2j * np.pi * (np.arange(n) * shift % n) / n)
    shifted = spectrod.fft.fft(np.roll(x, shift, axis=1))
    assert_close(shifted, turns * spectrod.fft.fft(x), np.linalg.norm(x) * np.sqrt(n))


@SETTINGS
@given(signals(3))
def test_energy_is_kept(x):
    """With norm "ortho" the sum of squares is unchanged (Parseval)."""
    before, after = np.linalg.norm(x), np.linalg.norm(spectrod.fft.fft(x, norm="ortho"))
    assert abs(after - before) <= 40 * EPS * before


@SETTINGS
@given(signals(2))
def test_there_and_back(x):
    """The inverse of the transform is the signal."""
    assert_close(spectrod.fft.ifft(spectrod.fft.fft(x)), x, np.linalg.norm(x))


@SETTINGS
@given(signals(1))
def test_real_signals_have_mirrored_spectra(x):
    """The half spectrum is the first half of the full one, whose other half mirrors it."""
    n = x.shape[1]
    whole, half = spectrod.fft.fft(x.real), spectrod.fft.rfft(x.real)
    size = np.linalg.norm(x) * np.sqrt(n)
    assert_close(half, whole[:, : n // 2 + 1], size)
    assert_close(whole[:, 1:], whole[:, :0:-1].conj(), size)
    assert_close(spectrod.fft.irfft(half, n), x.real, np.linalg.norm(x))
