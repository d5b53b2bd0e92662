"""NumPy's 1D transforms, and plans, on an OpenCL device; ``docs/fft.md`` is the guide.

Whatever breaks a rule raises ConfigError, a ValueError; a device that is not there, is too small
or fails raises DeviceError. NumPy computes calls on arrays of the host that are too small or too
few to pay (``spectrod.fft.host``); nothing falls back to it or to another device.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, get_args

import numpy as np

from spectrod.fft import argument_checks
from spectrod.fft.fitting import conjugate, fitted
from spectrod.fft.host import HostTransform
from spectrod.fft.plans import AxisPlan
from spectrod.fft.runtime import DEVICES, TRANSFORMS, host_transforms
from spectrod.fft.signatures import to_complex, to_real
from spectrod.fft.stage import Kind, TransformSpec
from spectrod.fft.transform import LineTransform
from spectrod.lib.errors import ConfigError
from spectrod.opencl import arrays

_KINDS = get_args(Kind)
_SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


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
) -> AxisPlan:
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
    plan : AxisPlan
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
    counts = argument_checks.shape_of(shape)
    n = argument_checks.length(counts[argument_checks.axis_of(counts, axis)])
    numbers = argument_checks.type_of(dtype)
    kind = kind or ("c2c" if numbers.kind == "c" else "r2c")
    if kind not in _KINDS:
        raise ConfigError(f"kind={kind!r}: must be one of {', '.join(_KINDS)}")
    types = ("float32", "float64") if kind == "r2c" else ("complex64", "complex128")
    if str(numbers) not in types:  # which names the order of the bytes, if it is not the machine's
        raise ConfigError(f"dtype={numbers}: must be {' or '.join(types)} for {kind}")
    spec = TransformSpec(n, kind, inverse or kind == "c2r", argument_checks.precision_of(numbers))
    scale = argument_checks.norm_scale(norm, n, inverse=spec.inverse)
    context = DEVICES.of_queue(queue) if queue is not None else DEVICES.default()
    return AxisPlan(TRANSFORMS.get(context, spec), axis, scale, inplace=inplace)


@to_complex
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
    return _transformed("c2c", a, n, axis, norm, out)


@to_complex
def ifft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Inverse of ``fft``, as ``numpy.fft.ifft``; arguments, result and errors as ``fft``."""
    return _transformed("c2c", a, n, axis, norm, out, inverse=True)


@to_complex
def rfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Transform real values to bins 0 to n // 2, as ``numpy.fft.rfft``; else as ``fft``."""
    a = _array_of(a)
    if a.dtype.kind == "c":
        raise ConfigError(f"dtype={a.dtype}: rfft takes real values")
    return _transformed("r2c", a, n, axis, norm, out)


@to_real
def irfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Inverse of ``rfft``, as ``numpy.fft.irfft``; else as ``fft``.

    ``n`` is the length of the result, by default 2 (m - 1) of m bins; imaginary parts of bin 0 and
    of an even n's last bin count as zero.
    """
    return _transformed("c2r", a, n, axis, norm, out, inverse=True)


@to_real
def hfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Transform a Hermitian-symmetric signal to a real spectrum, as ``numpy.fft.hfft``."""
    return irfft(_conjugated(a), n, axis, _SWAPPED[argument_checks.norm_of(norm)], out)


@to_complex
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Inverse of ``hfft``, as ``numpy.fft.ihfft``."""
    result = rfft(a, n, axis, _SWAPPED[argument_checks.norm_of(norm)], out)
    if arrays.is_device_array(result):
        return conjugate(DEVICES.of_queue(result.queue), result, result)
    return np.conjugate(result, out=result)


def _conjugated(a: Any) -> Any:
    a = _array_of(a)
    if a.dtype.kind != "c":
        return a
    if not arrays.is_device_array(a):
        return np.conjugate(a)
    out = arrays.new_array(a, a.shape, a.dtype)
    return conjugate(DEVICES.of_queue(out.queue), out, a)


def _transformed(  # noqa: PLR0913 - what the functions are given
    kind: Kind, a: Any, n: Any, axis: Any, norm: Any, out: Any, *, inverse: bool = False
) -> Any:
    a = _array_of(a)
    precision = argument_checks.precision_of(a.dtype)
    along = argument_checks.axis_of(a.shape, axis)
    if n is None:
        n = 2 * (a.shape[along] - 1) if kind == "c2r" else a.shape[along]
    spec = TransformSpec(argument_checks.length(n), kind, inverse, precision)
    scale = argument_checks.norm_scale(norm, spec.n, inverse=inverse)
    transform = _transform_of(a, along, spec)
    dtype = (argument_checks.real_type if kind == "r2c" else argument_checks.complex_type)(
        precision
    )
    a = fitted(transform.context, a, along, spec.n_in, dtype)
    return AxisPlan(transform, along, scale).execute(a, out)


def _array_of(a: Any) -> Any:
    return a if arrays.is_device_array(a) else argument_checks.array_of(a)


def _transform_of(a: Any, axis: int, spec: TransformSpec) -> LineTransform | HostTransform:
    """Return the transform that computes lines along an axis, on the host where that pays."""
    if arrays.is_device_array(a):
        return TRANSFORMS.get(DEVICES.of_queue(arrays.queue_of(a)), spec)
    n_lines = prod(a.shape[:axis]) * prod(a.shape[axis + 1 :])
    on_host = host_transforms(n_lines, spec)
    return on_host[0] if on_host else TRANSFORMS.get(DEVICES.default(), spec)
