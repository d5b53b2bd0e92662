"""NumPy's 1D transforms, and plans, on an OpenCL device; ``docs/fft.md`` is the guide.

Whatever breaks a rule raises ConfigError, a ValueError; a device that is not there, is too small
or fails raises DeviceError. Nothing falls back to another device or to NumPy.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spectrod.errors import ConfigError
from spectrod.fft import checks
from spectrod.fft.fitting import conjugate, fitted
from spectrod.fft.plans import Plan
from spectrod.fft.runtime import DEVICES, TRANSFORMS
from spectrod.fft.stage import Kind, Precision, TransformSpec
from spectrod.opencl import arrays
from spectrod.opencl.context import Context

_SWAPPED = {None: "forward", "backward": "forward", "forward": "backward"}


def plan(  # noqa: PLR0913 - all of them belong to a plan
    shape: Sequence[int],
    dtype: Any = "complex64",
    *,
    axis: int = -1,
    kind: Kind | None = None,
    inverse: bool = False,
    norm: str | None = None,
    inplace: bool = False,
    queue: Any = None,
) -> Plan:
    """Prepare a transform along one axis; its kernels are compiled, or found in the cache.

    Parameters
    ----------
    shape : sequence of int
        Of the arrays; of a real transform, of its real side. Only the length along the axis is
        part of the plan: ``execute`` takes any other counts.
    dtype : dtype
        Of the arrays that are given to ``execute``: complex64, complex128, float32 or float64.
    axis : int
        Along which axis.
    kind : {"c2c", "r2c", "c2r"}, optional
        By default r2c for a real dtype and c2c for a complex one.
    inverse : bool
        Of c2c; r2c is forward and c2r inverse.
    norm : {"backward", "ortho", "forward"}, optional
        As in ``numpy.fft``; by default "backward".
    inplace : bool
        Whether ``execute`` overwrites its array, as it says.
    queue : pyopencl.CommandQueue, optional
        To work in, for pyopencl arrays on it; by default one of the default device's.

    Returns
    -------
    plan : Plan
        Good for any number of threads.

    Raises
    ------
    ConfigError
        If a rule is broken.
    DeviceError
        If the device is not there or cannot do it.
    KernelBuildError
        If a kernel does not compile.
    """
    along = checks.axis_of(tuple(shape), axis)
    n = checks.length(tuple(shape)[along])
    numbers = np.dtype(dtype)
    kind = kind or ("c2c" if numbers.kind == "c" else "r2c")
    wanted = "f" if kind == "r2c" else "c"
    if numbers.kind != wanted or numbers.itemsize < 4:
        real, complex_ = ("float32", "float64"), ("complex64", "complex128")
        rule = " or ".join(real if wanted == "f" else complex_)
        raise ConfigError(f"dtype={numbers}: must be {rule} for {kind}")
    precision = checks.precision_of(numbers)
    spec = TransformSpec(n, kind, inverse or kind == "c2r", precision)
    scale = checks.norm_scale(norm, n, inverse=spec.inverse)
    context = DEVICES.of_queue(queue) if queue is not None else DEVICES.default()
    return Plan(TRANSFORMS.get(context, spec), axis, scale, inplace=inplace)


def fft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Discrete Fourier transform along an axis, as ``numpy.fft.fft``.

    Parameters
    ----------
    a : array_like or pyopencl array
        Real or complex. float16, float32 and complex64 are transformed in single precision, all
        else in double.
    n : int, optional
        Length of the transform: a is cropped, or padded with zeros. By default that of a.
    axis : int
        Along which axis.
    norm : {"backward", "ortho", "forward"}, optional
        Factor: none, 1 / sqrt(n) or 1 / n; of inverse transforms 1 / n, 1 / sqrt(n) or none.
    out : array, optional
        For the result: of its shape and type, C-contiguous, writable, and either a itself or apart
        from it.

    Returns
    -------
    result : array
        Of n values along the axis, complex64 or complex128; ``out`` if that is given. A pyopencl
        array if a is one, still being computed.

    Raises
    ------
    ConfigError
        If a rule is broken.
    DeviceError
        If there is no device, or it cannot do it.
    """
    return _complex(a, n, axis, norm, out, inverse=False)


def ifft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Inverse of ``fft``, as ``numpy.fft.ifft``; arguments, result and errors as ``fft``."""
    return _complex(a, n, axis, norm, out, inverse=True)


def rfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Transform real values to bins 0 to n // 2, as ``numpy.fft.rfft``; else as ``fft``."""
    if np.dtype(_dtype_of(a)).kind == "c":
        raise ConfigError(f"dtype={_dtype_of(a)}: rfft takes real values")
    context, a, precision = _opened(a)
    length = a.shape[checks.axis_of(a.shape, axis)] if n is None else n
    spec = TransformSpec(checks.length(length), "r2c", precision=precision)
    return _executed(context, spec, a, axis, norm, out)


def irfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Inverse of ``rfft``, as ``numpy.fft.irfft``; else as ``fft``.

    ``n`` is the length of the result, by default 2 (m - 1) of m bins; imaginary parts of bin 0 and
    of an even n's last bin count as zero.
    """
    context, a, precision = _opened(a)
    length = 2 * (a.shape[checks.axis_of(a.shape, axis)] - 1) if n is None else n
    spec = TransformSpec(checks.length(length), "c2r", inverse=True, precision=precision)
    return _executed(context, spec, a, axis, norm, out)


def hfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Transform a Hermitian-symmetric signal to a real spectrum, as ``numpy.fft.hfft``."""
    return irfft(_conjugated(a), n, axis, _swapped(norm), out)


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Inverse of ``hfft``, as ``numpy.fft.ihfft``."""
    result = rfft(a, n, axis, _swapped(norm), out)
    if arrays.is_device_array(result):
        return conjugate(DEVICES.of_queue(result.queue), result, result)
    return np.conjugate(result, out=result)


def _conjugated(a: Any) -> Any:
    if not arrays.is_device_array(a):
        return np.conj(a)
    if a.dtype.kind != "c":
        return a
    out = arrays.new_array(a, a.shape, a.dtype)
    return conjugate(DEVICES.of_queue(out.queue), out, a)


def _complex(a: Any, n: Any, axis: int, norm: str | None, out: Any, *, inverse: bool) -> Any:
    context, a, precision = _opened(a)
    length = a.shape[checks.axis_of(a.shape, axis)] if n is None else n
    spec = TransformSpec(checks.length(length), "c2c", inverse, precision)
    return _executed(context, spec, a, axis, norm, out)


def _opened(a: Any) -> tuple[Context, Any, Precision]:
    """Where an array is transformed, the array, and in which precision."""
    if arrays.is_device_array(a):
        return DEVICES.of_queue(arrays.queue_of(a)), a, checks.precision_of(a.dtype)
    a = np.asarray(a)
    return DEVICES.default(), a, checks.precision_of(a.dtype)


def _executed(
    context: Context, spec: TransformSpec, a: Any, axis: int, norm: str | None, out: Any
) -> Any:
    scale = checks.norm_scale(norm, spec.n, inverse=spec.inverse)
    dtype = (checks.real_type if spec.kind == "r2c" else checks.complex_type)(spec.precision)
    transform = TRANSFORMS.get(context, spec)
    a = fitted(context, a, checks.axis_of(a.shape, axis), spec.n_in, dtype)
    return Plan(transform, axis, scale).execute(a, out)


def _dtype_of(a: Any) -> Any:
    return a.dtype if arrays.is_device_array(a) else np.asarray(a).dtype


def _swapped(norm: str | None) -> str | None:
    """Norm of the opposite direction; what is not one is left for the error."""
    return _SWAPPED.get(norm, norm)
