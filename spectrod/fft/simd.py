"""Transforms with vectors for registers: a work-item computes whole lines. The family for CPUs."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft.defines import KernelDefines
from spectrod.fft.simd_shape import (
    FACTORIZATIONS_MAX,
    ITEMS_PER_UNIT,
    LANES,
    SimdShape,
    needs_scratch,
    row_factorizations,
)
from spectrod.fft.simd_tables import column_twiddles, mirror_twiddles, row_twiddles
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.fft.twiddles import real_twiddles
from spectrod.lib.errors import ConfigError
from spectrod.opencl.arguments import Arguments
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

# What a work-item may hold of its lines, and how much of it the nearest cache has room for.
_OWN_BYTES_MAX = 1 << 26
_NEAR_BYTES = 36 << 10
# Shorter lines than this go several at a time.
_COLUMNS_LENGTH_MIN = 128


def own_bytes(shape: SimdShape, spec: TransformSpec) -> int:
    """Memory of a work-item [bytes]."""
    is_single = shape.columns and spec.kind == "c2c" and not shape.staged
    extra = int(spec.kind != "c2c" or shape.columns)
    values = shape.rows if is_single else 2 * shape.rows + extra
    return values * shape.lanes * 2 * spec.real_bytes


class SimdKernel:
    """The compiled kernel of one shape, and its tables.

    Parameters
    ----------
    context : Context
        The device.
    spec : TransformSpec
        What a line's transform is; n even if it is real.
    params : SimdShape
        Its shape.

    Raises
    ------
    DeviceError
        If the device has not got what is needed.
    KernelBuildError
        If the kernel does not compile.
    """

    def __init__(self, context: Context, spec: TransformSpec, params: SimdShape) -> None:
        self._context = context
        self._params = params
        self._real = np.float32 if spec.precision == "single" else np.float64
        n_bytes = own_bytes(params, spec)
        self._own_bytes = n_bytes if needs_scratch(n_bytes) else 0
        self._out_scalars = spec.out_value_bytes // spec.real_bytes
        self._source_scalars = spec.in_value_bytes // spec.real_bytes
        kernel = context.kernel("fft_simd.cl", "fft_simd", _defines(spec, params).pairs())
        self._arguments = Arguments(kernel)
        self._tables = [context.table(t.astype(self._real)) for t in _tables(spec, params)]
        self._arguments.set(2, self._tables)

    def scratch_bytes(self, n_lines: int) -> int:
        """Device memory that a launch needs besides [bytes]."""
        items, _ = self._divide(n_lines)
        return items * self._own_bytes

    def launch(
        self,
        out: Lines,
        source: Lines,
        outer: int,
        inner: int,
        scale: float,
        scratch: Any,
    ) -> Any:
        """Queue the transform of outer x inner lines; return its event."""
        n_lines = outer * inner
        items, chunk = self._divide(n_lines)
        counts = (
            n_lines,
            inner,
            out.first * self._out_scalars,
            out.pitch * self._out_scalars,
            source.first * self._source_scalars,
            source.pitch * self._source_scalars,
            chunk,
        )
        self._arguments.set(0, (out.buffer, source.buffer))
        self._arguments.set_counts(5, counts)
        self._arguments.set(12, (self._real(scale), scratch if self._own_bytes else None))
        return self._context.launch(self._arguments.kernel, (items,), (1,))

    def _divide(self, n_lines: int) -> tuple[int, int]:
        """Work-items, and the lines or groups of lines that each computes."""
        groups = n_lines if self._params.columns else -(-n_lines // self._params.lanes)
        per_unit = 1 if self._own_bytes else ITEMS_PER_UNIT
        chunk = -(-groups // (per_unit * self._context.device.compute_units))
        return -(-groups // chunk), chunk


class SimdStage:
    """Stage of the family.

    Lines that lie interleaved have a kernel of their own, compiled when first needed.

    Attributes
    ----------
    strided : bool
        For complex lines that are short enough to be computed several at a time.
    """

    def __init__(self, context: Context, spec: TransformSpec, params: SimdShape) -> None:
        if params.length != spec.complex_length:
            raise ConfigError(
                f"{params}: must make the complex length {spec.complex_length} of n={spec.n}"
            )
        self.spec = spec
        self.params = params
        self._context = context
        self._dense = SimdKernel(context, spec, params)
        self._interleaved_params = _strided_params(spec, params)
        self._interleaved: SimdKernel | None = None
        self.strided = self._interleaved_params is not None

    def scratch_bytes(self, outer: int, inner: int) -> int:
        """Where lines are too long for private memory: a place for one for each core."""
        return self._kernel_for(inner).scratch_bytes(outer * inner)

    def launch(
        self,
        out: Lines,
        source: Lines,
        outer: int,
        inner: int,
        scale: float,
        scratch: Any = None,
    ) -> list[Any]:
        """Queue the transform, as ``Stage.launch`` says."""
        return [self._kernel_for(inner).launch(out, source, outer, inner, scale, scratch)]

    def _kernel_for(self, inner: int) -> SimdKernel:
        if inner == 1:
            return self._dense
        if self._interleaved is None:
            assert self._interleaved_params is not None
            self._interleaved = SimdKernel(self._context, self.spec, self._interleaved_params)
        return self._interleaved


class SimdFamily:
    """Vector kernels: lengths with no prime factor above 13 that a core's own cache can hold."""

    name = "simd"
    params_type = SimdShape

    def supports(self, spec: TransformSpec, device: DeviceInfo) -> bool:
        """Whether the device is a CPU and the length fits; real transforms must be even."""
        if device.kind != "cpu" or (spec.kind != "c2c" and spec.n % 2):
            return False
        return next(_shapes(spec, device.vector_bytes), None) is not None

    def candidates(self, spec: TransformSpec, device: DeviceInfo) -> Iterable[SimdShape]:
        """Lanes as columns and as lines, with the best radices of the rows."""
        if self.supports(spec, device):
            yield from _shapes(spec, device.vector_bytes)

    def build(self, context: Context, spec: TransformSpec, params: SimdShape) -> SimdStage:
        """Compile the stage."""
        return SimdStage(context, spec, params)


SIMD = SimdFamily()


def _defines(spec: TransformSpec, params: SimdShape) -> KernelDefines:
    return params.defines(own_bytes(params, spec)) | KernelDefines(
        double=spec.precision == "double",
        staged=params.staged or spec.kind == "c2r",
        real_in=spec.kind == "r2c",
        real_out=spec.kind == "c2r",
        inverse=spec.inverse,
    )


def _tables(spec: TransformSpec, params: SimdShape) -> Iterator[NDArray[np.float64]]:
    """Twiddle tables in the order of the kernel's arguments; one number for those not read."""
    none = np.zeros(1)
    twiddles = row_twiddles(params.radices)
    yield twiddles.view(np.float64) if len(twiddles) else none
    yield column_twiddles(params.length, params.lanes) if params.columns else none
    yield _real_twiddles(params, spec) if spec.kind != "c2c" else none


def _real_twiddles(params: SimdShape, spec: TransformSpec) -> NDArray[np.float64]:
    if params.columns:
        twiddles = mirror_twiddles(params.length, params.lanes)
        conjugate = np.array([[-1.0], [1.0]])
    else:
        twiddles = real_twiddles(params.length).view(np.float64).reshape(-1, 2)
        conjugate = np.array([-1.0, 1.0])
    return twiddles * conjugate if spec.kind == "c2r" else twiddles


def _shapes(spec: TransformSpec, vector_bytes: int) -> Iterator[SimdShape]:
    """Shapes worth a try, the untuned choice first: vectors as wide as registers, else narrower.

    Columns of the widest vectors come first. Wider ones are left out: with AVX2, those of 64 bytes
    take 1.2 to 1.5 times the time of those of 32, and some compilers fail on them.
    """
    if spec.complex_length * 2 * spec.real_bytes > _OWN_BYTES_MAX:
        return
    widths = [n_bytes for n_bytes in (32, 64) if n_bytes <= vector_bytes]
    wide = [shape for n_bytes in reversed(widths) for shape in _columns(spec, n_bytes)]
    wide += [shape for n_bytes in widths for shape in _lines(spec, n_bytes)]
    if wide:
        yield from wide
        return
    for n_bytes in (16, 8):
        yield from _columns(spec, n_bytes)
        yield from _lines(spec, n_bytes)


def _columns(spec: TransformSpec, vector_bytes: int) -> Iterator[SimdShape]:
    length, lanes = spec.complex_length, vector_bytes // spec.real_bytes
    if lanes not in LANES or length % lanes or length < max(lanes * lanes, _COLUMNS_LENGTH_MIN):
        return
    for radices in row_factorizations(length // lanes, largest_last=True)[:FACTORIZATIONS_MAX]:
        params = SimdShape(lanes, radices, columns=True)
        direct = replace(params, staged=False)
        is_near = own_bytes(params, spec) <= _NEAR_BYTES
        for choice in (params, direct) if is_near else (direct, params):
            if own_bytes(choice, spec) <= _OWN_BYTES_MAX:
                yield choice


def _lines(spec: TransformSpec, vector_bytes: int) -> Iterator[SimdShape]:
    lanes = vector_bytes // spec.real_bytes
    if lanes in LANES:
        for radices in row_factorizations(spec.complex_length, largest_last=True)[
            :FACTORIZATIONS_MAX
        ]:
            params = SimdShape(lanes, radices, columns=False)
            if own_bytes(params, spec) <= _OWN_BYTES_MAX:
                yield params


def _strided_params(spec: TransformSpec, params: SimdShape) -> SimdShape | None:
    """Find a shape for lines that lie interleaved, if one fits."""
    if spec.kind != "c2c":
        return None
    if not params.columns:
        return params
    shapes = (shape for n_bytes in (32, 16, 8) for shape in _lines(spec, n_bytes))
    return next(shapes, None)
