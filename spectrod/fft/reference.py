"""What is right: transforms in higher precision on the host, and how far from them a result may be.

Tuning and benchmarks check with it whatever they time.
"""

from math import log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spectrod.fft.lengths import is_smooth
from spectrod.fft.radices import PRIME_MAX
from spectrod.fft.stage import TransformSpec

_SINGLE_LIMIT_AT_1024 = 1.95e-7
# Of float64's unit to float32's, and room for what a long double that is a double adds.
_DOUBLE_RATIO = 1.25 * 2.0**-29
# Three transforms of at least twice the length, one after the other.
_OTHER_LENGTHS_FACTOR = 2.5
# Above it the long double reference would take tens of seconds.
_LONG_DOUBLE_N_MAX = 1 << 20


def in_dtype(spec: TransformSpec) -> np.dtype[Any]:
    """Type of a value that a transform reads."""
    return _dtype(spec, is_real=spec.kind == "r2c")


def out_dtype(spec: TransformSpec) -> np.dtype[Any]:
    """Type of a value that a transform writes."""
    return _dtype(spec, is_real=spec.kind == "c2r")


def transform(spec: TransformSpec, lines: NDArray[Any]) -> NDArray[Any]:
    """Transform lines without scaling, in float64, or for float64 in long double.

    Parameters
    ----------
    spec : TransformSpec
        What to compute.
    lines : (count, n_in) array
        Of ``in_dtype(spec)``.

    Returns
    -------
    expected : (count, n_out) complex128 or float64, or their long double kin
        For float64 beyond 2^20 values, and with NumPy 1, float64 as well.
    """
    x = lines.astype(_wide(spec, is_real=spec.kind == "r2c"))
    if spec.kind == "r2c":
        return np.fft.rfft(x)
    if spec.kind == "c2r":
        return np.fft.irfft(x, spec.n, norm="forward")
    return np.fft.ifft(x, norm="forward") if spec.inverse else np.fft.fft(x)


def relative_l2(values: NDArray[Any], expected: NDArray[Any]) -> float:
    """Norm of the difference over the norm of what is expected [1]; NaN stays NaN."""
    return float(np.linalg.norm(values - expected) / np.linalg.norm(expected))


def error_limit(spec: TransformSpec) -> float:
    """Largest relative L2 error that a right transform of random values may have [1].

    It grows as the square root of the number of passes does: 1.95e-7 at n = 1024 in single
    precision; 2.5 times that where n has a prime factor above 13.
    """
    limit = _SINGLE_LIMIT_AT_1024 * sqrt(max(log2(spec.n), 5.0) / 10.0)
    if spec.precision == "double":
        limit *= _DOUBLE_RATIO
    return limit if is_smooth(spec.n, PRIME_MAX) else limit * _OTHER_LENGTHS_FACTOR


def _dtype(spec: TransformSpec, *, is_real: bool) -> np.dtype[Any]:
    size = spec.real_bytes * (1 if is_real else 2)
    return np.dtype(f"{'f' if is_real else 'c'}{size}")


def _wide(spec: TransformSpec, *, is_real: bool) -> DTypeLike:
    if spec.precision == "double" and spec.n <= _LONG_DOUBLE_N_MAX:
        return np.longdouble if is_real else np.clongdouble
    return np.float64 if is_real else np.complex128
