"""How the length of a transform is cut into the radices of its passes."""

from collections.abc import Iterator
from functools import cache
from math import prod

RADICES = (32, 16, 15, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)
"""What ``kernels/dft.clh`` computes in registers."""
PRIME_MAX = max(n for n in RADICES if all(n % one for one in RADICES if one < n))
"""The largest prime of them; lengths with a larger one take Bluestein's algorithm."""

PASSES_MAX = 6
"""Most passes that ``fft_local.cl`` has."""


def radix_lists(n: int, *, passes_max: int = PASSES_MAX) -> list[tuple[int, ...]]:
    """Ways to write a length as a product of radices, the fewest passes first.

    Parameters
    ----------
    n : int
        Length, >= 1.
    passes_max : int
        Most radices in a list.

    Returns
    -------
    lists : list of tuple of int
        Each in falling order; among those of equal length the one with the least spread first.
        Empty if n has a prime factor above ``PRIME_MAX`` or needs more passes; ``[(1,)]`` for
        n = 1.
    """
    if n == 1:
        return [(1,)]
    found = [radices for radices in _factorings(n, RADICES[0]) if len(radices) <= passes_max]
    return sorted(found, key=lambda radices: (len(radices), sum(radices), radices))


@cache
def _factorings(n: int, largest: int) -> tuple[tuple[int, ...], ...]:
    return tuple(_generate(n, largest))


def _generate(n: int, largest: int) -> Iterator[tuple[int, ...]]:
    if n == 1:
        yield ()
        return
    for radix in RADICES:
        if radix <= largest and n % radix == 0:
            for rest in _factorings(n // radix, radix):
                yield (radix, *rest)


def values_per_item(n: int, radices: tuple[int, ...], items: int) -> int:
    """Most complex values that one of ``items`` work-items holds in any pass."""
    assert prod(radices) == n
    return max(radix * -(-(n // radix) // items) for radix in radices)
