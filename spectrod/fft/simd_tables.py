"""Tables of the vector kernels, in the order in which they read them."""

from collections.abc import Sequence
from math import prod

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.fft.twiddles import Complex128Array, Int64Array, unit_roots


def row_twiddles(radices: Sequence[int]) -> Complex128Array:
    """Factors between the passes of a decimation in frequency.

    Parameters
    ----------
    radices : sequence of int
        Of the passes, in their order.

    Returns
    -------
    table : (...) complex128
        For each pass but the last, of radix R on spans of s values: at ``j (R - 1) + q - 1`` the
        factor ``exp(-2 pi i j q / s)``, j = 0 to s / R - 1, q = 1 to R - 1.

    References
    ----------
    .. [1] W. Gentleman and G. Sande, "Fast Fourier transforms: for fun and profit", 1966.
    """
    factors = [np.empty(0, np.complex128)]
    span = prod(radices)
    for radix in radices[:-1]:
        step = span // radix
        j, q = np.arange(step)[:, None], np.arange(1, radix)
        factors.append(unit_roots(j * q, span).ravel())
        span = step
    return np.concatenate(factors)


def column_twiddles(length: int, lanes: int) -> Float64Array:
    """Factors between transforms across columns and transforms down the rows.

    Parameters
    ----------
    length : int
        Length of the line; lanes * lanes or more.
    lanes : int
        Columns; a divisor of length.

    Returns
    -------
    table : (blocks, lanes - 1, 2, lanes) float64
        Real and imaginary parts of ``exp(-2 pi i k m / length)`` for k = 1 to lanes - 1 and the
        rows m of a block, see ``_blocks``.

    References
    ----------
    .. [1] D. H. Bailey, "FFTs in external or hierarchical memory", 1990.
    """
    k = np.arange(1, lanes)[:, None]
    return planes(unit_roots(k * _blocks(length // lanes, lanes)[:, None, :], length))


def mirror_twiddles(length: int, lanes: int) -> Float64Array:
    """Factors that join the halves of a real line of 2 length values, bins in the lanes.

    Returns
    -------
    table : (blocks, 2, lanes) float64
        Real and imaginary parts of ``exp(-2 pi i k / (2 length))`` for the bins k of a block of
        those below length / 2, see ``_blocks``.
    """
    return planes(unit_roots(_blocks(length // 2, lanes), 2 * length))


def _blocks(count: int, lanes: int) -> Int64Array:
    """Numbers below count in blocks of lanes, see ``block_starts``."""
    return block_starts(count, lanes)[:, None] + np.arange(lanes)


def block_starts(count: int, lanes: int) -> Int64Array:
    """First numbers of blocks of lanes; a last one that would not be full begins earlier."""
    return np.minimum(np.arange(0, count, lanes), count - lanes)


def planes(values: Complex128Array) -> Float64Array:
    """Real and imaginary parts, along a new axis before the last one."""
    return np.stack([values.real, values.imag], axis=-2)
