"""Plans: one transform along one axis, for arrays of the host and of the device."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft.argument_checks import (
    Shape,
    array_of,
    check_fits,
    check_writable,
    complex_type,
    real_type,
)
from spectrod.fft.host import HostTransform
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.fft.transform import LineTransform
from spectrod.lib.errors import ConfigError
from spectrod.opencl import arrays
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo


class AxisPlan:
    """One transform along one axis, of arrays with any other counts; any number of threads.

    Made by ``spectrod.fft.plan``.

    Parameters
    ----------
    transform : LineTransform or HostTransform
        What runs; the latter for arrays of the host only, and not in place for real transforms.
    axis : int
        Along which axis, from the front or the back; checked.
    scale : float
        Factor of the result.
    inplace : bool
        Whether ``execute`` overwrites what it is given.

    Attributes
    ----------
    spec : TransformSpec
        Length, kind, direction and precision.
    """

    def __init__(
        self,
        transform: LineTransform | HostTransform,
        axis: int = -1,
        scale: float = 1.0,
        *,
        inplace: bool = False,
    ) -> None:
        self.spec: TransformSpec = transform.spec
        self._transform = transform
        self._axis = axis
        self._scale = scale
        self._inplace = inplace
        precision = self.spec.precision
        self._in_type = (real_type if self.spec.kind == "r2c" else complex_type)(precision)
        self._out_type = (real_type if self.spec.kind == "c2r" else complex_type)(precision)

    @property
    def context(self) -> Context:
        """Where it runs."""
        return self._transform.context

    @property
    def device(self) -> DeviceInfo:
        """What it runs on."""
        return self.context.device

    def execute(self, x: Any, out: Any = None) -> Any:
        """Transform an array.

        Parameters
        ----------
        x : (..., n_in, ...) array
            Of NumPy or pyopencl, of the plan's type. Out of place any NumPy array will do; one that
            is not contiguous is copied first. In place it must be C-contiguous and writable; a
            real transform in place is along the last axis, of rows padded to 2 (n // 2 + 1) reals.
        out : (..., n_out, ...) array, optional
            For the result: of x's kind, C-contiguous and writable, apart from x or, of a complex
            transform, x itself. Not in place.

        Returns
        -------
        result : (..., n_out, ...) array
            ``out``, or a new array; in place x, or a view of it. With pyopencl's arrays the
            transform is queued when this returns, not done.

        Raises
        ------
        ConfigError
            If x or out breaks a rule.
        DeviceError
            If the device fails, or has not got the memory.
        """
        self.context.check_process()
        if self._inplace:
            if out is not None:
                raise ConfigError("out is given: a plan in place has none")
            return self._overwrite(x)
        if arrays.is_device_array(x):
            return self._on_device(x, out)
        return self._on_host(array_of(x), out)

    # --- arrays of the host

    def _on_host(self, x: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
        check_fits("x", x, self._with_length(x.shape, self.spec.n_in), self._in_type)
        x = np.require(x, requirements=["C", "ALIGNED"])
        shape = self._with_length(x.shape, self.spec.n_out)
        if out is None:
            out = np.empty(shape, self._out_type)
        else:
            self._check_out(out, shape, x)
        if _is_same(out, x):
            self._overwrite_host(x)
        else:
            self._transform.run(self._in_three(out), self._in_three(x), self._scale)
        return out

    def _check_out(self, out: Any, shape: Shape, x: NDArray[Any]) -> None:
        if not isinstance(out, np.ndarray):
            raise ConfigError(f"out is a {type(out).__name__}: must be a NumPy array, as x is")
        check_fits("out", out, shape, self._out_type)
        check_writable("out", out)
        if np.may_share_memory(out, x) and not _is_same(out, x):
            raise ConfigError("out overlaps x: must be x itself or apart from it")

    def _in_three(self, array: NDArray[Any]) -> NDArray[Any]:
        shape, axis = array.shape, self._axis % array.ndim
        return np.asarray(array).reshape((prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])))

    # --- arrays of a device

    def _on_device(self, x: Any, out: Any) -> Any:
        self._check_queue("x", x)
        check_fits("x", x, self._with_length(x.shape, self.spec.n_in), self._in_type)
        shape = self._with_length(x.shape, self.spec.n_out)
        if out is None:
            out = arrays.new_array(x, shape, self._out_type)
        else:
            self._check_out_on_device(out, shape, x)
        self._queue(out, x, self.spec.n_out, self.spec.n_in)
        return out

    def _check_out_on_device(self, out: Any, shape: Shape, x: Any) -> None:
        if not arrays.is_device_array(out):
            raise ConfigError(f"out is a {type(out).__name__}: must be a pyopencl array, as x is")
        self._check_queue("out", out)
        check_fits("out", out, shape, self._out_type)
        if out.size and arrays.overlap(out, x) and not arrays.is_same(out, x):
            raise ConfigError("out overlaps x: must be x itself or apart from it")

    def _check_queue(self, name: str, array: Any) -> None:
        if arrays.queue_of(array) != self.context.queue:
            raise ConfigError(f"{name} is on another queue than the plan: must be on the plan's")

    def _queue(self, out: Any, x: Any, out_row: int, in_row: int) -> None:
        """Queue the transform of rows, whose middle axis has room for a number of values."""
        axis = self._axis % x.ndim
        outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
        if outer * inner == 0:
            return
        buffer, first = arrays.placement(x)
        source = Lines(buffer, in_row * inner, first)
        buffer, first = arrays.placement(out)
        target = Lines(buffer, out_row * inner, first)
        arrays.join(self.context.queue, x, out)
        assert isinstance(self._transform, LineTransform)
        events = self._transform.run_on_device(target, source, outer, inner, self._scale)
        out.add_event(events[-1])

    # --- in place

    def _overwrite(self, x: Any) -> Any:
        on_device = arrays.is_device_array(x)
        if not on_device and not isinstance(x, np.ndarray):
            raise ConfigError(f"x is a {type(x).__name__}: must be an array, to be overwritten")
        width = self.spec.n if self.spec.kind == "c2c" else self.spec.n // 2 + 1
        if self.spec.kind == "r2c":
            width *= 2
        if self.spec.kind != "c2c" and self._axis not in (-1, len(x.shape) - 1):
            raise ConfigError(f"axis={self._axis}: must be the last for a real transform in place")
        check_fits("x", x, self._with_length(x.shape, width), self._in_type)
        return self._overwrite_on_device(x) if on_device else self._overwrite_host(x)

    def _overwrite_host(self, x: NDArray[Any]) -> Any:
        check_writable("x", x)
        axis = self._axis % x.ndim
        inner = prod(x.shape[axis + 1 :])
        if x.size:
            rows = np.asarray(x).reshape(prod(x.shape[:axis]), -1)
            self._transform.run_in_place(rows, inner, self._scale)
        return self._unpadded(x if self.spec.kind == "c2c" else x.view(self._out_type))

    def _overwrite_on_device(self, x: Any) -> Any:
        self._check_queue("x", x)
        result = x if self.spec.kind == "c2c" else arrays.view(x, self._out_type)
        self._queue(result, x, result.shape[self._axis], x.shape[self._axis])
        return self._unpadded(result)

    def _unpadded(self, result: Any) -> Any:
        return result[..., : self.spec.n] if self.spec.kind == "c2r" else result

    # --- shapes

    def _with_length(self, shape: Shape, n: int) -> Shape:
        """Shape with another length along the axis."""
        if not -len(shape) <= self._axis < len(shape):
            raise ConfigError(f"x of shape {tuple(shape)}: must have the plan's axis {self._axis}")
        axis = self._axis % len(shape)
        return (*shape[:axis], n, *shape[axis + 1 :])


def _is_same(out: NDArray[Any], x: NDArray[Any]) -> bool:
    """Whether both are the same values in memory."""
    return (
        out.__array_interface__["data"][0] == x.__array_interface__["data"][0]
        and out.dtype == x.dtype
        and out.size > 0
    )
