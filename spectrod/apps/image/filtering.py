"""Filters and pictures of spectra on a device: upload planes, transform, filter, download."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.image.image_picture import Planes
from spectrod.apps.image.radial import EDGE_KINDS, RadialFilter
from spectrod.fft.plan2d import PlaneTransform
from spectrod.fft.runtime import TRANSFORMS
from spectrod.fft.stage import Lines, Precision, TransformSpec
from spectrod.opencl.context import Context

_GROUP_ITEMS = 64


class PlaneSpectra:
    """Real planes of one size and their half spectra on a device; one thread at a time.

    Parameters
    ----------
    context : Context
        The device.
    shape : (int, int)
        Rows and columns of a plane, each >= 1.
    precision : {"single", "double"}
        Precision of all arithmetic.

    Raises
    ------
    DeviceError
        If the device has no memory for a plane and its spectrum, or lacks the precision.
    KernelBuildError
        If a kernel does not compile.
    """

    def __init__(self, context: Context, shape: tuple[int, int], precision: Precision) -> None:
        rows, columns = shape
        self._context = context
        self._shape = shape
        self._bins = columns // 2 + 1
        self._real = np.dtype(np.float32 if precision == "single" else np.float64).type
        self._forward = _plane_transform(context, shape, precision, inverse=False)
        self._backward = _plane_transform(context, shape, precision, inverse=True)
        real_bytes = np.dtype(self._real).itemsize
        self._plane = context.allocate(rows * columns * real_bytes)
        self._spectrum = context.allocate(2 * rows * self._bins * real_bytes)
        self._defines = (("DOUBLE", 1),) if precision == "double" else ()

    def filtered(self, planes: NDArray[Any], radial: RadialFilter, side: int) -> Planes:
        """Filter planes as if they were periodic.

        Parameters
        ----------
        planes : (channels, rows, columns) real
            Any levels.
        radial : RadialFilter
            The filter.
        side : int
            Length to which the radii's cycles refer [pixels].

        Returns
        -------
        result : (channels, rows, columns) float32 or float64
            In the same levels.

        Raises
        ------
        ConfigError
            If the filter's radii or width break a rule for this side.
        DeviceError
            If the device fails.
        """
        kernel = self._filter_kernel(radial, side)
        scale = 1.0 / (self._shape[0] * self._shape[1])
        result = np.empty(planes.shape, self._real)
        for plane, out in zip(planes, result, strict=True):
            self._transform(plane)
            self._run(kernel, self._shape[0] * self._bins)
            self._backward.run_on_device(Lines(self._plane, 0), Lines(self._spectrum, 0), 1, scale)
            self._context.download(out, self._plane)
        return result

    def drawn(self, planes: NDArray[Any]) -> Planes:
        """Draw the logarithm of 1 + the magnitude, with frequency zero in the middle.

        Parameters
        ----------
        planes : (channels, rows, columns) real
            Any levels.

        Returns
        -------
        pictures : (channels, rows, columns) float32 or float64
            Natural logarithms.

        Raises
        ------
        DeviceError
            If the device fails.
        """
        rows, columns = self._shape
        kernel = self._context.kernel("image_spectrum.cl", "draw_spectra", self._defines)
        counts = map(np.uint64, (rows * columns, rows, columns))
        kernel.set_args(self._plane, self._spectrum, *counts)
        result = np.empty(planes.shape, self._real)
        for plane, out in zip(planes, result, strict=True):
            self._transform(plane)
            self._run(kernel, rows * columns)
            self._context.download(out, self._plane)
        return result

    def _transform(self, plane: NDArray[Any]) -> None:
        self._context.upload(self._plane, np.ascontiguousarray(plane, self._real))
        self._forward.run_on_device(Lines(self._spectrum, 0), Lines(self._plane, 0), 1, 1.0)

    def _filter_kernel(self, radial: RadialFilter, side: int) -> Any:
        rows, columns = self._shape
        defines = (*self._defines, ("EDGE", EDGE_KINDS.index(radial.edge.kind)))
        counts = map(np.uint64, (rows * self._bins, rows, self._bins))
        numbers = side / rows, side / columns, *radial.cycles(side), radial.shape(side)
        kernel = self._context.kernel("image_filter.cl", "filter_spectra", defines)
        kernel.set_args(self._spectrum, *counts, *map(self._real, numbers))
        return kernel

    def _run(self, kernel: Any, n_values: int) -> None:
        items = min(_GROUP_ITEMS, self._context.device.max_work_group_size)
        self._context.launch(kernel, (-(-n_values // items) * items,), (items,))


def _plane_transform(
    context: Context, shape: tuple[int, int], precision: Precision, *, inverse: bool
) -> PlaneTransform:
    rows, columns = shape
    lines = TransformSpec(columns, "c2r" if inverse else "r2c", inverse, precision)
    across = TransformSpec(rows, "c2c", inverse, precision)
    return PlaneTransform(TRANSFORMS.get(context, lines), TRANSFORMS.get(context, across))


def mirrored(planes: NDArray[Any]) -> NDArray[Any]:
    """Return planes of twice the rows and columns, continued by their mirror images.

    These are periodic, as the transform assumes: no edge meets the opposite one.
    """
    rows, columns = planes.shape[1:]
    return np.pad(planes, ((0, 0), (0, rows), (0, columns)), "symmetric")
