"""Transforms of planes: NumPy's 2D functions, and what runs them on a device.

Rows first and then columns, inverse real transforms the other way round. Columns are transformed
where they lie by stages that can, and between two transposes by those that cannot: ``transform.py``
says which. Between rows and columns a plane stays on the device as long as one fits there.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft import argument_checks
from spectrod.fft.argument_checks import Shape
from spectrod.fft.fitting import fitted
from spectrod.fft.host import HostTransform
from spectrod.fft.plans import AxisPlan
from spectrod.fft.runtime import DEVICES, TRANSFORMS, host_transforms
from spectrod.fft.signatures import plane_to_complex, plane_to_real
from spectrod.fft.stage import Kind, Lines, TransformSpec
from spectrod.fft.transform import LineTransform, default_piece_bytes, steps
from spectrod.lib.errors import ConfigError
from spectrod.opencl import arrays
from spectrod.opencl.hostmemory import host_memory

Axes = Sequence[int]
_Axis = tuple[LineTransform | HostTransform, int]
"""A transform, and the axis along which it goes."""

# Input, output, what is between them and a transpose's scratch: at most this number of planes.
_PLANES_AT_WORK = 5


class PlaneTransform:
    """Transforms of the last two axes of (batch, rows, columns) arrays; any number of threads.

    Parameters
    ----------
    rows : LineTransform
        Of lines along the columns' axis: n columns. Says kind, direction and precision.
    columns : LineTransform
        Complex, of the same direction and precision, on the same device: n rows.
    piece_bytes : int, optional
        Most memory on the device in which more than a line is transformed at once; by default a
        share of the device's.
    """

    def __init__(
        self, rows: LineTransform, columns: LineTransform, piece_bytes: int | None = None
    ) -> None:
        self.context = rows.context
        self._rows = rows
        self._columns = columns
        self._piece_bytes = piece_bytes or default_piece_bytes(self.context.device)
        self._memory = host_memory(self.context)

    @property
    def in_shape(self) -> tuple[int, int]:
        """Rows and columns that are read."""
        return self._columns.spec.n, self._rows.spec.n_in

    @property
    def out_shape(self) -> tuple[int, int]:
        """Rows and columns that are written."""
        return self._columns.spec.n, self._rows.spec.n_out

    @property
    def out_type(self) -> np.dtype[Any]:
        """Type of the values that are written."""
        return _out_type(self._rows.spec)

    def run(self, out: NDArray[Any], source: NDArray[Any], scale: float) -> None:
        """Transform from one array of the host to another that does not overlap it.

        Parameters
        ----------
        out, source : (batch, rows, columns) arrays
            C-contiguous, of the precision's types.
        scale : float
            Factor of the result.

        Raises
        ------
        DeviceError
            If the device fails, or has no memory for a single line.
        """
        at_once = self._planes_at_once()
        run_piece = self._run_piece if at_once else self._run_by_lines
        with self.context.lock:
            for start, stop in steps(len(source), max(1, at_once)):
                run_piece(out[start:stop], source[start:stop], scale)

    def run_on_device(self, out: Lines, source: Lines, batch: int, scale: float) -> list[Any]:
        """Queue the transforms of dense planes that are on the device; their events.

        Parameters
        ----------
        out, source : Lines
            ``pitch`` is not read: plane follows plane.
        batch : int
            Planes, >= 1.
        scale : float
            Factor of the result.

        Raises
        ------
        DeviceError
            If the device fails, or has not got the memory.
        """
        run_some = self._columns_first if self._rows.spec.kind == "c2r" else self._rows_first
        events = []
        with self.context.lock:
            for start, stop in steps(batch, max(1, self._planes_at_once())):
                place = Lines(out.buffer, 0, out.first + start * prod(self.out_shape))
                origin = Lines(source.buffer, 0, source.first + start * prod(self.in_shape))
                events += run_some(place, origin, stop - start, scale)
        return events

    def _rows_first(self, out: Lines, source: Lines, batch: int, scale: float) -> list[Any]:
        n_rows, width = self.out_shape
        in_rows = Lines(source.buffer, self.in_shape[1], source.first)
        out_rows = Lines(out.buffer, width, out.first)
        planes = Lines(out.buffer, n_rows * width, out.first)
        return [
            *self._rows.run_on_device(out_rows, in_rows, batch * n_rows, 1, 1.0),
            *self._columns.run_on_device(planes, planes, batch, width, scale),
        ]

    def _columns_first(self, out: Lines, source: Lines, batch: int, scale: float) -> list[Any]:
        n_rows, width = self.in_shape
        n_bytes = batch * n_rows * width * self._columns.spec.out_value_bytes
        between = self.context.workspace.get("planes", n_bytes)
        in_planes = Lines(source.buffer, n_rows * width, source.first)
        out_rows = Lines(out.buffer, self.out_shape[1], out.first)
        return [
            *self._columns.run_on_device(
                Lines(between, n_rows * width), in_planes, batch, width, 1.0
            ),
            *self._rows.run_on_device(out_rows, Lines(between, width), batch * n_rows, 1, scale),
        ]

    def _run_piece(self, out: NDArray[Any], source: NDArray[Any], scale: float) -> None:
        origin = Lines(self._memory.source(source), 0)
        buffer = self._memory.target(out)
        self.run_on_device(Lines(buffer, 0), origin, len(source), scale)
        self._memory.collect(out, buffer)

    def _run_by_lines(self, out: NDArray[Any], source: NDArray[Any], scale: float) -> None:
        """Let a plane that is too large for the device go there in parts, twice."""
        if self._rows.spec.kind == "c2r":
            between = np.empty_like(source)
            self._columns.run(between, source, 1.0)
            self._rows.run(_as_lines(out), _as_lines(between), scale)
        else:
            between = np.empty_like(out)
            self._rows.run(_as_lines(between), _as_lines(source), 1.0)
            self._columns.run(out, between, scale)

    def _planes_at_once(self) -> int:
        """Planes for which the device has the memory; 0 if it has not even for one."""
        n_rows, width = max(self.in_shape, self.out_shape)
        plane_bytes = n_rows * width * self._columns.spec.out_value_bytes
        return self._piece_bytes // (_PLANES_AT_WORK * plane_bytes)


def _as_lines(planes: NDArray[Any]) -> NDArray[Any]:
    """View of planes as (lines, n, 1)."""
    return planes.reshape(-1, planes.shape[-1], 1)


@plane_to_complex
def fft2(
    a: Any, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Any:
    """Discrete Fourier transform along two axes, as ``numpy.fft.fft2``.

    Parameters
    ----------
    a : array_like or pyopencl array
        Real or complex. float16, float32 and complex64 are transformed in single precision, all
        else in double.
    s : two ints, optional
        Lengths along the axes: a is cropped, or padded with zeros; -1 for that of a, which is the
        default for both.
    axes : two ints
        Along which axes, not twice the same.
    norm : {"backward", "ortho", "forward"}, optional
        Factor, with n the product of both lengths: none, 1 / sqrt(n) or 1 / n; of inverse
        transforms 1 / n, 1 / sqrt(n) or none.

    Returns
    -------
    result : array
        complex64 or complex128. A pyopencl array if a is one, still being computed.

    Raises
    ------
    ConfigError
        If a rule is broken.
    DeviceError
        If there is no device, or it cannot do it.
    """
    return _transformed(a, s, axes, norm, "c2c", inverse=False)


@plane_to_complex
def ifft2(
    a: Any, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Any:
    """Inverse of ``fft2``, as ``numpy.fft.ifft2``; arguments, result and errors as ``fft2``."""
    return _transformed(a, s, axes, norm, "c2c", inverse=True)


@plane_to_complex
def rfft2(
    a: Any, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Any:
    """Transform real values, as ``numpy.fft.rfft2``; else as ``fft2``.

    The result has bins 0 to n // 2 along the last of the axes.
    """
    return _transformed(a, s, axes, norm, "r2c", inverse=False)


@plane_to_real
def irfft2(
    a: Any, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str | None = None
) -> Any:
    """Inverse of ``rfft2``, as ``numpy.fft.irfft2``; else as ``fft2``.

    ``s`` are the lengths of the result, along the last of the axes by default 2 (m - 1) of m bins.
    """
    return _transformed(a, s, axes, norm, "c2r", inverse=True)


def _transformed(a: Any, s: Any, axes: Any, norm: str | None, kind: Kind, *, inverse: bool) -> Any:
    on_device = arrays.is_device_array(a)
    a = a if on_device else argument_checks.array_of(a)
    precision = argument_checks.precision_of(a.dtype)
    if kind == "r2c" and a.dtype.kind == "c":
        raise ConfigError(f"dtype={a.dtype}: rfft2 takes real values")
    first, second = _two_axes(a.shape, axes)
    n_rows, n_columns = _two_lengths(a.shape, s, (first, second), kind)
    scale = argument_checks.norm_scale(norm, n_rows * n_columns, inverse=inverse)
    row_spec = TransformSpec(n_columns, kind, inverse, precision)
    column_spec = TransformSpec(n_rows, "c2c", inverse, precision)
    n_others = prod(length for axis, length in enumerate(a.shape) if axis not in (first, second))
    on_host = () if on_device else host_transforms(n_others * n_rows, row_spec, column_spec)
    context = DEVICES.of_queue(arrays.queue_of(a)) if on_device else DEVICES.default()
    a = fitted(context, a, first, n_rows, _in_type(row_spec))
    a = fitted(context, a, second, row_spec.n_in, _in_type(row_spec))
    if on_host:
        return _axis_by_axis(a, (on_host[0], second), (on_host[1], first), scale)
    rows, columns = TRANSFORMS.get(context, row_spec), TRANSFORMS.get(context, column_spec)
    if (first, second) != (a.ndim - 2, a.ndim - 1):
        return _axis_by_axis(a, (rows, second), (columns, first), scale)
    run = _on_device if on_device else _on_host
    return run(PlaneTransform(rows, columns), a, scale)


def _axis_by_axis(a: Any, rows: _Axis, columns: _Axis, scale: float) -> Any:
    """Transform along any two axes, one after the other."""
    lines = (columns, rows) if rows[0].spec.kind == "c2r" else (rows, columns)
    for (transform, axis), factor in zip(lines, (scale, 1.0), strict=True):
        a = AxisPlan(transform, axis, factor).execute(a)
    return a


def _on_host(plane: PlaneTransform, a: NDArray[Any], scale: float) -> NDArray[Any]:
    a = np.require(a, requirements=["C", "ALIGNED"])
    out = np.empty((*a.shape[:-2], *plane.out_shape), plane.out_type)
    plane.run(out.reshape(-1, *plane.out_shape), a.reshape(-1, *plane.in_shape), scale)
    return out


def _on_device(plane: PlaneTransform, a: Any, scale: float) -> Any:
    out = arrays.new_array(a, (*a.shape[:-2], *plane.out_shape), plane.out_type)
    if batch := prod(a.shape[:-2]):
        origin, place = arrays.placement(a), arrays.placement(out)
        arrays.join(plane.context.queue, a)
        events = plane.run_on_device(_dense(place), _dense(origin), batch, scale)
        out.add_event(events[-1])
    return out


def _dense(placement: tuple[Any, int]) -> Lines:
    buffer, first = placement
    return Lines(buffer, 0, first)


def _two_axes(shape: Shape, axes: Any) -> tuple[int, int]:
    given = argument_checks.several("axes", axes)
    found = [argument_checks.axis_of(shape, axis) for axis in given]
    if len(set(found)) != 2 or len(found) != 2:
        raise ConfigError(f"axes={given}: must be two different axes")
    return found[0], found[1]


def _two_lengths(shape: Shape, s: Any, axes: tuple[int, int], kind: Kind) -> tuple[int, int]:
    """Lengths of the transforms: those asked for, or the array's."""
    own = [shape[axis] for axis in axes]
    if kind == "c2r":
        own[1] = 2 * (own[1] - 1)
    lengths = own if s is None else argument_checks.several("s", s)
    if len(lengths) != 2:
        raise ConfigError(f"s={lengths}: must be two lengths")
    rows, columns = (
        argument_checks.length(o if w == -1 else w) for o, w in zip(own, lengths, strict=True)
    )
    return rows, columns


def _in_type(spec: TransformSpec) -> np.dtype[Any]:
    return (argument_checks.real_type if spec.kind == "r2c" else argument_checks.complex_type)(
        spec.precision
    )


def _out_type(spec: TransformSpec) -> np.dtype[Any]:
    return (argument_checks.real_type if spec.kind == "c2r" else argument_checks.complex_type)(
        spec.precision
    )
