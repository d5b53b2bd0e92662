"""Arrays made fit for a transform: of its length and type, cropped or padded with zeros."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft.argument_checks import precision_of
from spectrod.fft.linekernels import move_kernel
from spectrod.lib.errors import ConfigError
from spectrod.opencl import arrays
from spectrod.opencl.context import Context


def fitted(context: Context, a: Any, axis: int, n: int, dtype: np.dtype[Any]) -> Any:
    """Crop or pad an array along an axis and convert it; the array itself where it fits.

    Parameters
    ----------
    context : Context
        Of a pyopencl array.
    a : array
        Of NumPy or pyopencl. Of the latter's types only the four of transforms can be converted.
    axis : int
        From the front.
    n : int
        Length along it.
    dtype : dtype
        One of the four types of transforms.

    Raises
    ------
    ConfigError
        If a pyopencl array is of another type, or cannot be used.
    """
    if a.shape[axis] == n and a.dtype == dtype:
        return a
    shape = (*a.shape[:axis], n, *a.shape[axis + 1 :])
    if arrays.is_device_array(a):
        return _on_device(context, a, axis, arrays.new_array(a, shape, dtype))
    return _on_host(a, axis, shape, dtype)


def _on_host(
    a: NDArray[Any], axis: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    common = min(a.shape[axis], shape[axis])
    part = (slice(None),) * axis + (slice(common),)
    result = np.empty(shape, dtype) if common == shape[axis] else np.zeros(shape, dtype)
    result[part] = a[part]
    return result


def _on_device(context: Context, a: Any, axis: int, result: Any) -> Any:
    """Copy rows: what is to be cropped or padded of them is at their end, whatever the axis."""
    if a.dtype.kind not in "fc" or a.dtype.itemsize < 4:
        raise ConfigError(f"dtype={a.dtype}: must be float32, float64, complex64 or complex128")
    inner = prod(a.shape[axis + 1 :])
    widths = a.shape[axis] * inner, result.shape[axis] * inner
    _move(context, result, a, prod(a.shape[:axis]), widths)
    return result


def conjugate(context: Context, out: Any, a: Any) -> Any:
    """Set a complex pyopencl array to another's conjugate, or its own; return it."""
    _move(context, out, a, 1, (a.size, a.size), flag="CONJUGATE")
    return out


def _move(
    context: Context, out: Any, a: Any, rows: int, widths: tuple[int, int], flag: str | None = None
) -> None:
    if rows * widths[1] == 0:
        return
    (source, first_in), (target, first_out) = arrays.placement(a), arrays.placement(out)
    places = target, first_out, widths[1], source, first_in, widths[0]
    kinds = "".join("c" if array.dtype.kind == "c" else "r" for array in (a, out))
    with context.lock:
        kernel = move_kernel(context, precision_of(a.dtype), kinds, flag=flag)
        arrays.join(context.queue, a, out)
        out.add_event(kernel.launch(rows, widths[1], *places, rows, *widths))
