import numpy as np
import pytest

from spectrod.fft.twiddles import column_twiddles, pass_twiddles, real_twiddles


@pytest.mark.parametrize("radices", [(8, 4), (8, 4, 4), (8, 8, 4, 4), (16, 3, 5)])
def test_each_pass_finds_its_factors_where_it_looks(radices):
    """Twiddle r, k of a pass lies at span - 1 + (r - 1) span + k."""
    table = pass_twiddles(radices)
    assert table.shape == (np.prod(radices) - 1,)
    span = 1
    for radix in radices:
        for r in range(1, radix):
            first = span - 1 + (r - 1) * span
            angles = -2.0 * np.pi * r * np.arange(span) / (span * radix)
            exact = np.cos(angles) + 1j * np.sin(angles)
            error = np.abs(table[first : first + span] - exact)
            assert error.max() <= 16 * np.finfo(np.float64).eps
        span *= radix


def test_the_split_of_the_real_transform_ends_at_a_quarter_period():
    """Twiddles that split even and odd parts of a real transform cover a quarter of a period."""
    table = real_twiddles(32)
    np.testing.assert_allclose(table, np.exp(-2j * np.pi * np.arange(17) / 64), atol=1e-15)
    assert table[0] == 1.0
    assert table[-1].imag == -1.0


def test_factors_of_columns_are_roots_of_the_whole_length():
    """Result j + r N / R of column c gets one table entry of each part, or a product of such."""
    length, n_columns, radix = 12, 5, 6
    table = column_twiddles(length, n_columns, radix).reshape(-1, n_columns)
    powers, firsts = table[:3], table[3:]
    columns = np.arange(n_columns)
    for row, r in zip(powers, (1, 2, 4), strict=True):
        expected = np.exp(-2j * np.pi * r * 2 * columns / 60)
        np.testing.assert_allclose(row, expected, atol=1e-15)
    for j, row in enumerate(firsts):
        np.testing.assert_allclose(row, np.exp(-2j * np.pi * j * columns / 60), atol=1e-15)
