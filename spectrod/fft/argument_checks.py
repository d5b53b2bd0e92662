"""Checks of what the functions and plans are given; each error names the value and the rule."""

from collections.abc import Iterable
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft.stage import Precision
from spectrod.lib.errors import ConfigError

Shape = tuple[int, ...]

_NORMS = ("backward", "ortho", "forward")


def array_of(a: Any) -> NDArray[Any]:
    """Take something for an array of the host; of subclasses, their plain part."""
    try:
        return np.asarray(a)
    except ValueError as error:
        raise ConfigError(f"not an array: {error}") from None


def type_of(dtype: Any) -> np.dtype[Any]:
    """Take something for a type."""
    try:
        numbers: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise ConfigError(f"dtype={dtype!r}: {error}") from None
    return numbers


def several(name: str, values: Any) -> tuple[Any, ...]:
    """Take something for several values."""
    if not isinstance(values, Iterable):
        raise ConfigError(f"{name}={values!r}: must be a sequence")
    return tuple(values)


def shape_of(shape: Any) -> Shape:
    """Take something for the shape of an array."""
    counts = tuple(whole("shape", count) for count in several("shape", shape))
    if min(counts, default=0) < 0:
        raise ConfigError(f"shape={counts}: must not be negative")
    return counts


def whole(name: str, value: Any) -> int:
    """Take a value for an integer."""
    try:
        return index(value)
    except TypeError:
        raise ConfigError(f"{name}={value!r}: must be an integer") from None


def length(n: Any) -> int:
    """Take a value for a transform's length; ``TransformSpec`` knows the longest."""
    if whole("n", n) < 1:
        raise ConfigError(f"n={n}: must be at least 1")
    return index(n)


def axis_of(shape: Shape, axis: Any) -> int:
    """Take a value for an axis; counted from the front."""
    ndim = len(shape)
    if ndim == 0:
        raise ConfigError("a 0-d array: must have at least one axis")
    if not -ndim <= whole("axis", axis) < ndim:
        raise ConfigError(f"axis={axis}: must be {-ndim} to {ndim - 1} for an array of {ndim} axes")
    return index(axis) % ndim


def norm_of(norm: Any) -> str:
    """Take a value for a normalisation; None is "backward"."""
    if norm is None:
        return "backward"
    if not isinstance(norm, str) or norm not in _NORMS:
        raise ConfigError(f"norm={norm!r}: must be one of {', '.join(_NORMS)}")
    return norm


def norm_scale(norm: Any, n: int, *, inverse: bool) -> float:
    """Factor that a normalisation gives the result of a transform."""
    norm = norm_of(norm)
    if norm == "ortho":
        return float(n**-0.5)
    return 1.0 / n if inverse != (norm == "forward") else 1.0


def precision_of(dtype: np.dtype[Any]) -> Precision:
    """Precision that numbers of a type are transformed in, as in ``scipy.fft``.

    float16, float32 and complex64 are single; float64, complex128, integers and booleans double.
    """
    if dtype.kind in "biu":
        return "double"
    part_bytes = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    if dtype.kind not in "fc" or part_bytes > 8:
        raise ConfigError(
            f"dtype={dtype}: must be of integers, or of real or complex numbers up to double"
        )
    return "single" if part_bytes <= 4 else "double"


def real_type(precision: Precision) -> np.dtype[Any]:
    """Type of real numbers."""
    return np.dtype(np.float32 if precision == "single" else np.float64)


def complex_type(precision: Precision) -> np.dtype[Any]:
    """Type of complex numbers."""
    return np.dtype(np.complex64 if precision == "single" else np.complex128)


def check_fits(name: str, array: Any, shape: Shape, dtype: np.dtype[Any]) -> None:
    """Check the shape and type of an array of the host or of a device."""
    if tuple(array.shape) != shape:
        raise ConfigError(f"{name} of shape {tuple(array.shape)}: must be {shape}")
    if array.dtype != dtype or not array.dtype.isnative:
        raise ConfigError(f"{name} of {array.dtype}: must be {dtype}")


def check_writable(name: str, array: NDArray[Any]) -> None:
    """Check that a result can be written to an array of the host."""
    if not array.flags.writeable:
        raise ConfigError(f"{name} is read-only: must be writable")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise ConfigError(f"{name} with strides {array.strides}: must be C-contiguous and aligned")
