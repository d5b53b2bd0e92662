import numpy as np
import pytest

from spectrod.fft.stft_radices import choose_radices
from spectrod.fft.twiddles import padded_window, stft_twiddles
from spectrod.windows import get_window


@pytest.mark.parametrize("half", [32, 128, 1024, 4096])
def test_each_pass_finds_its_factors_where_it_looks(half):
    """Factor r, k of a pass lies at span - 1 + (r - 1) span + k, rounded once from float64."""
    radices = choose_radices(half)
    table = stft_twiddles(radices)
    assert table.shape == (half - 1 + half // 2 + 1,)
    assert table.dtype == np.complex64
    span = 1
    for radix in radices:
        for r in range(1, radix):
            first = span - 1 + (r - 1) * span
            turns = -2.0 * np.pi * r * np.arange(span) / (span * radix)
            exact = np.cos(turns) + 1j * np.sin(turns)
            error = np.abs(table[first : first + span] - exact)
            assert error.max() <= np.finfo(np.float32).eps
        span *= radix


def test_the_split_of_the_real_transform_follows_the_passes():
    """From half - 1 on lie the factors of the even and odd split, to a quarter turn."""
    table = stft_twiddles((8, 4))
    k = np.arange(17)
    np.testing.assert_allclose(table[31:], np.exp(-2j * np.pi * k / 64), atol=1e-7)
    assert table[31] == 1.0
    assert table[-1].imag == -1.0


@pytest.mark.parametrize("win_length", [2, 33, 64])
def test_a_window_is_rounded_once_and_padded(win_length):
    """The table is the float64 window rounded to float32, then zeros."""
    samples = get_window("hann", win_length).samples
    table = padded_window(samples, 64)
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table[:win_length], samples.astype(np.float32))
    assert not table[win_length:].any()
