"""Arrays made fit for a transform: of its length and type, cropped or padded with zeros."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import ConfigError
from spectrod.fft.checks import precision_of
from spectrod.fft.linekernels import LineKernel
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
    rows, row_in, row_out = prod(a.shape[:axis]), a.shape[axis] * inner, result.shape[axis] * inner
    if rows * row_out == 0:
        return result
    defines = (
        ("IN_COMPLEX", int(a.dtype.kind == "c")),
        ("OUT_COMPLEX", int(result.dtype.kind == "c")),
        ("HERMITIAN", 0),
    )
    precision = precision_of(a.dtype)
    source, first = arrays.placement(a)
    target, _ = arrays.placement(result)
    with context.lock:
        move = LineKernel(context, "fft_move.cl", "move_lines", precision, defines)
        arrays.join(context.queue, a)
        event = move.launch(
            rows, row_out, target, 0, row_out, source, first, row_in, rows, row_in, row_out
        )
    result.add_event(event)
    return result
