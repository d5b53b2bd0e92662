"""Tables for the kernels, computed in float64 and rounded once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Complex128Array = NDArray[np.complex128]
Int64Array = NDArray[np.int64]


def unit_roots(exponents: Int64Array | int, n: int) -> Complex128Array:
    """Roots of unity, right to about half a unit in the last place of float64.

    Angles are reduced to an eighth of a period in integers first: rounding the whole angle would
    cost up to three units, which double-precision transforms would show.

    Parameters
    ----------
    exponents : (...) int
        Exponents k, >= 0.
    n : int
        Order of the roots, 1 to 2^59.

    Returns
    -------
    roots : (...) complex128
        ``exp(-2 pi i k / n)``.
    """
    eighths, rest = np.divmod(np.asarray(exponents, np.int64) % n * 8, n)
    odd = eighths % 2 == 1
    # Odd eighths are counted backwards from their end, so that every angle is at most pi / 4.
    angle = np.where(odd, n - rest, rest) * (np.pi / 4.0 / n)
    cosine, sine = np.cos(angle), np.sin(angle)
    # Quarter periods, taken from the nearest of their multiples.
    quarter = (eighths + 1) // 2 % 4
    sine = np.where(odd, -sine, sine)
    real = np.choose(quarter, [cosine, -sine, -cosine, sine])
    imag = np.choose(quarter, [sine, cosine, -sine, -cosine])
    return real - 1j * imag


def pass_twiddles(radices: Sequence[int]) -> Complex128Array:
    """Twiddle factors of Stockham passes.

    Parameters
    ----------
    radices : sequence of int
        Of the passes, in their order; their product is n.

    Returns
    -------
    table : (n - 1,) complex128
        For each pass of radix R after transforms of length s: at ``s - 1 + (r - 1) s + k`` the
        factor ``exp(-2 pi i r k / (s R))``, r = 1 to R - 1, k = 0 to s - 1. The passes before one
        fill exactly the s - 1 places in front of it.

    References
    ----------
    .. [1] N. Govindaraju et al., "High performance discrete Fourier transforms on graphics
       processors", 2008 (Stockham passes).
    """
    factors: list[Complex128Array] = [np.empty(0, np.complex128)]
    span = 1
    for radix in radices:
        r = np.arange(1, radix)[:, None]
        factors.append(unit_roots(r * np.arange(span), span * radix).ravel())
        span *= radix
    return np.concatenate(factors)


def real_twiddles(half: int) -> Complex128Array:
    """Factors that join the even and odd samples of a real transform of length 2 half.

    Parameters
    ----------
    half : int
        Length of the complex transform.

    Returns
    -------
    table : (half // 2 + 1,) complex128
        ``exp(-2 pi i k / (2 half))``.

    References
    ----------
    .. [1] H. Sorensen et al., "Real-valued fast Fourier transform algorithms", 1987.
    """
    return unit_roots(np.arange(half // 2 + 1), 2 * half)


def twiddle_tables(n: int, low: int) -> Complex128Array:
    """Two short tables whose products are all n-th roots of unity.

    Parameters
    ----------
    n : int
        Order of the roots.
    low : int
        Length of the first table, 1 to n.

    Returns
    -------
    table : (low + ceil(n / low),) complex128
        ``exp(-2 pi i k / n)`` for k = 0, 1, 2, ... low - 1, then for k = 0, low, 2 low, ...
        Root k is entry ``k % low`` times entry ``low + k // low``.
    """
    return unit_roots(np.concatenate([np.arange(low), np.arange(0, n, low)]), n)


def column_twiddles(length: int, n_columns: int, radix: int) -> Complex128Array:
    """Return factors of the results of columns, as the last pass of a column multiplies by them.

    Parameters
    ----------
    length, n_columns : int
        Length of a column, and number of columns: n is their product.
    radix : int
        Radix of the last pass, a divisor of the length.

    Returns
    -------
    table : (rows * n_columns,) complex128
        For r = 1, 2, 4, ... below the radix ``exp(-2 pi i r c length / radix / n)`` of all columns
        c, then for j = 0 to length / radix - 1 ``exp(-2 pi i j c / n)``. Result
        ``j + r length / radix`` of column c is multiplied by the product of both.
    """
    columns = np.arange(n_columns)
    powers = 2 ** np.arange((radix - 1).bit_length())
    steps = unit_roots(powers[:, None] * columns, radix * n_columns)
    firsts = unit_roots(np.arange(length // radix)[:, None] * columns, length * n_columns)
    return np.concatenate([steps.ravel(), firsts.ravel()])
