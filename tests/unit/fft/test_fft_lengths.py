import numpy as np
import pytest
from scipy.fft import next_fast_len as scipy_next

from spectrod.fft.lengths import fast_lengths, is_smooth, next_fast_len, prime_factors
from spectrod.fft.stage import LENGTH_MAX
from spectrod.lib.errors import ConfigError


def test_factors_multiply_to_the_number_and_are_prime():
    """Factors are prime and multiply to the number, to 2000 and for some larger numbers."""
    for n in [*range(1, 2000), 2**26, 3 * 5 * 7 * 11 * 13, 65537, 46337**2]:
        factors = prime_factors(n)
        assert np.prod(factors, dtype=np.int64) == n
        assert all(prime_factors(factor) == [factor] for factor in set(factors))
        assert factors == sorted(factors)


def test_smooth_is_without_large_factors():
    """A smooth number has no factor above the bound, and 1 has no factor."""
    assert is_smooth(1)
    assert is_smooth(7 * 64)
    assert not is_smooth(11)
    assert is_smooth(11 * 13, 13)


def test_the_next_fast_length_is_the_least_smooth_one():
    """The next fast length equals that of a search by counting, from every number to 3000."""
    for n in range(1, 3000):
        expected = next(m for m in range(n, 2 * n + 1) if is_smooth(m))
        assert next_fast_len(n) == expected
        assert next_fast_len(np.int32(n)) >= scipy_next(n)


def test_the_longest_is_fast():
    """The longest transform is a fast length, so a next fast length always exists."""
    assert next_fast_len(LENGTH_MAX) == fast_lengths()[-1] == LENGTH_MAX
    assert len(set(fast_lengths())) == len(fast_lengths())


@pytest.mark.parametrize("n", [0, -3, LENGTH_MAX + 1])
def test_a_length_outside_the_range_is_refused(n):
    """A length outside the range is refused with the value and the range."""
    with pytest.raises(ConfigError, match=rf"n={n}: must be 1 to {LENGTH_MAX}"):
        next_fast_len(n)
