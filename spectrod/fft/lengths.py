"""Lengths of transforms: their prime factors, and the next one that is fast."""

from bisect import bisect_left
from functools import cache
from itertools import accumulate, repeat, takewhile
from operator import mul
from typing import SupportsIndex

from spectrod.fft.argument_checks import whole
from spectrod.fft.stage import LENGTH_MAX
from spectrod.lib.errors import ConfigError

_FAST_PRIMES = (2, 3, 5, 7)


def prime_factors(n: int) -> list[int]:
    """Prime factors of n >= 1, smallest first, each as often as it divides n."""
    factors, prime = [], 2
    while prime * prime <= n:
        while n % prime == 0:
            factors.append(prime)
            n //= prime
        prime += 1
    return factors + [n] * (n > 1)


def is_smooth(n: int, largest: int = _FAST_PRIMES[-1]) -> bool:
    """Whether n >= 1 has no prime factor above the largest."""
    return prime_factors(n)[-1:] <= [largest]


def next_fast_len(n: SupportsIndex) -> int:
    """Find the shortest fast length that is at least n.

    Parameters
    ----------
    n : int
        1 to ``LENGTH_MAX``, 2^26.

    Returns
    -------
    length : int
        The least 2^a 3^b 5^c 7^d >= n. Transforms of such lengths need no other primes and no
        Bluestein; pad with zeros to it where the length is free.

    Raises
    ------
    ConfigError
        If n is not in the range.
    """
    n_min = whole("n", n)
    if not 1 <= n_min <= LENGTH_MAX:
        raise ConfigError(f"n={n}: must be 1 to {LENGTH_MAX}")
    return fast_lengths()[bisect_left(fast_lengths(), n_min)]


@cache
def fast_lengths() -> list[int]:
    """All products of the fast primes to ``LENGTH_MAX``, in order."""
    lengths = [1]
    for prime in _FAST_PRIMES:
        powers = takewhile(lambda power: power <= LENGTH_MAX, accumulate(repeat(prime), mul))
        products = [length * power for power in powers for length in lengths]
        lengths += [product for product in products if product <= LENGTH_MAX]
    return sorted(lengths)
