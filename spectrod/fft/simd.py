"""Transforms with vectors for registers: a work-item computes whole lines. The family for CPUs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import ConfigError, DeviceError
from spectrod.fft.defines import KernelDefines
from spectrod.fft.radices import PASSES_MAX, RADICES, radix_lists
from spectrod.fft.simd_tables import column_turns, mirror_turns, row_turns
from spectrod.fft.stage import Lines, TransformSpec, load_params
from spectrod.fft.twiddles import real_turns
from spectrod.opencl.arguments import Arguments
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

_LANES = (2, 4, 8, 16)
ROW_RADICES = frozenset(radix for radix in RADICES if radix <= 16) | {1}
"""What the rows of vectors can be cut into."""

# What a work-item may hold of its lines: in private memory, which is the stack of a driver's thread
# (2 or 8 MiB as a rule), and in all; and how much of it the nearest cache has room for.
_PRIVATE_BYTES_MAX = 1 << 20
_OWN_BYTES_MAX = 1 << 26
_NEAR_BYTES = 36 << 10
# Shorter lines than this go several at a time.
_COLUMNS_LENGTH_MIN = 128
_CUTS_MAX = 3
# Measured; the radices that are not here took half their number or more.
_PASS_WORK = {1: 0.0, 2: 2.0, 3: 2.2, 4: 2.5, 5: 3.2, 8: 3.6, 16: 5.4}
# Work-items for each core, so that one that is held up keeps the others waiting a little only.
_ITEMS_PER_UNIT = 4


def require_row_radices(radices: tuple[int, ...]) -> None:
    """Raise ConfigError if the kernels do not know these passes over the rows."""
    if not 1 <= len(radices) <= PASSES_MAX or not ROW_RADICES.issuperset(radices):
        raise ConfigError(f"radices={radices}: must be 1 to {PASSES_MAX} of {sorted(ROW_RADICES)}")


@dataclass(frozen=True, slots=True)
class SimdParams:
    """Shape of ``fft_simd.cl`` for lines whose values are neighbours.

    Attributes
    ----------
    lanes : int
        Of a vector: 2, 4, 8 or 16.
    radices : tuple of int
        Of the passes over the rows, 2 to 16.
    columns : bool
        True: the lanes are columns of one line, whose complex length is lanes times the product of
        the radices, and at least the square of lanes. False: they are lines, of the product alone.
    staged : bool
        Whether columns are copied to private memory first; lines always are.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    lanes: int
    radices: tuple[int, ...]
    columns: bool
    staged: bool = True

    def __post_init__(self) -> None:
        if self.lanes not in _LANES:
            raise ConfigError(f"lanes={self.lanes}: must be 2, 4, 8 or 16")
        require_row_radices(self.radices)
        if self.columns and prod(self.radices) < self.lanes:
            raise ConfigError(
                f"radices={self.radices}: must multiply to lanes={self.lanes} or more for columns"
            )

    @property
    def length(self) -> int:
        """Length of the complex transform."""
        return prod(self.radices) * (self.lanes if self.columns else 1)

    def own_bytes(self, spec: TransformSpec) -> int:
        """Memory of a work-item [bytes]."""
        is_single = self.columns and spec.kind == "c2c" and not self.staged
        rows = prod(self.radices)
        extra = int(spec.kind != "c2c" or self.columns)
        return (rows if is_single else 2 * rows + extra) * self.lanes * 2 * spec.real_bytes

    def needs_scratch(self, spec: TransformSpec) -> bool:
        """Whether that is too much for private memory."""
        return self.own_bytes(spec) > _PRIVATE_BYTES_MAX

    def defines(self, spec: TransformSpec) -> KernelDefines:
        """Return what ``fft_simd.cl`` needs."""
        return KernelDefines(
            double=spec.precision == "double",
            n=self.length,
            lanes=self.lanes,
            columns=self.columns,
            staged=self.staged or spec.kind == "c2r",
            scratch=self.needs_scratch(spec),
            radices=self.radices,
            real_in=spec.kind == "r2c",
            real_out=spec.kind == "c2r",
            inverse=spec.inverse,
        )


class SimdKernel:
    """The compiled kernel of one shape, and its tables.

    Parameters
    ----------
    context : Context
        The device.
    spec : TransformSpec
        What a line's transform is; n even if it is real.
    params : SimdParams
        Its shape.

    Raises
    ------
    DeviceError
        If the device has not got what is needed.
    KernelBuildError
        If the kernel does not compile.
    """

    def __init__(self, context: Context, spec: TransformSpec, params: SimdParams) -> None:
        self._context = context
        self._params = params
        self._real = np.float32 if spec.precision == "single" else np.float64
        self._own_bytes = params.own_bytes(spec) if params.needs_scratch(spec) else 0
        self._out_scalars = spec.out_value_bytes // spec.real_bytes
        self._source_scalars = spec.in_value_bytes // spec.real_bytes
        kernel = context.kernel("fft_simd.cl", "fft_simd", params.defines(spec).pairs())
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
        self._arguments.set(5, map(np.uint64, counts))
        self._arguments.set(12, (self._real(scale), scratch if self._own_bytes else None))
        return self._context.launch(self._arguments.kernel, (items,), (1,))

    def _divide(self, n_lines: int) -> tuple[int, int]:
        """Work-items, and the lines or groups of lines that each computes."""
        groups = n_lines if self._params.columns else -(-n_lines // self._params.lanes)
        per_unit = 1 if self._own_bytes else _ITEMS_PER_UNIT
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

    def __init__(self, context: Context, spec: TransformSpec, params: SimdParams) -> None:
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

    def supports(self, spec: TransformSpec, device: DeviceInfo) -> bool:
        """Whether the device is a CPU and the length fits; real transforms must be even."""
        if device.kind != "cpu" or (spec.kind != "c2c" and spec.n % 2):
            return False
        return next(_shapes(spec), None) is not None

    def choose(self, spec: TransformSpec, device: DeviceInfo) -> SimdParams:
        """Take the lanes that suit the length, and the least work by a rough count.

        Raises
        ------
        DeviceError
            If the family does not support it.
        """
        if not self.supports(spec, device):
            raise DeviceError(f"n={spec.n}: no vector kernel for this length on {device.label}")
        return next(_shapes(spec))

    def candidates(self, spec: TransformSpec, device: DeviceInfo) -> Iterable[SimdParams]:
        """Lanes as columns and as lines, of every width, with the best cuts of the rows each."""
        if self.supports(spec, device):
            yield from _shapes(spec)

    def load(self, values: Mapping[str, Any]) -> SimdParams:
        """Parameters from a file, as ``load_params``."""
        return load_params(SimdParams, values)

    def build(self, context: Context, spec: TransformSpec, params: SimdParams) -> SimdStage:
        """Compile the stage."""
        return SimdStage(context, spec, params)


SIMD = SimdFamily()


def _tables(spec: TransformSpec, params: SimdParams) -> Iterator[NDArray[np.float64]]:
    """Tables of turns in the order of the kernel's arguments; one number for those not read."""
    none = np.zeros(1)
    turns = row_turns(params.radices)
    yield turns.view(np.float64) if len(turns) else none
    yield column_turns(params.length, params.lanes) if params.columns else none
    yield _real_turns(params, spec) if spec.kind != "c2c" else none


def _real_turns(params: SimdParams, spec: TransformSpec) -> NDArray[np.float64]:
    if params.columns:
        turns = mirror_turns(params.length, params.lanes)
        conjugate = np.array([[-1.0], [1.0]])
    else:
        turns = real_turns(params.length).view(np.float64).reshape(-1, 2)
        conjugate = np.array([-1.0, 1.0])
    return turns * conjugate if spec.kind == "c2r" else turns


@cache
def _cuts(rows: int) -> list[tuple[int, ...]]:
    """Ways to cut the rows, the least work by a rough count first, the largest radix last."""
    cuts = [
        tuple(reversed(radices))
        for radices in radix_lists(rows, passes_max=PASSES_MAX)
        if ROW_RADICES.issuperset(radices)
    ]
    return sorted(cuts, key=lambda cut: (sum(map(pass_work, cut)), cut))


def pass_work(radix: int) -> float:
    """Rough cost of a pass, on processors with 16 or 32 vector registers, which prefer it small."""
    return _PASS_WORK.get(radix, radix / 2.0)


def _shapes(spec: TransformSpec) -> Iterator[SimdParams]:
    """Shapes worth a try, the untuned choice first: vectors of 64 and 32 bytes, else narrower."""
    if spec.complex_length * 2 * spec.real_bytes > _OWN_BYTES_MAX:
        return
    wide = [*_columns(spec, 64), *_columns(spec, 32), *_lines(spec, 32), *_lines(spec, 64)]
    if wide:
        yield from wide
        return
    for n_bytes in (16, 8):
        yield from _columns(spec, n_bytes)
        yield from _lines(spec, n_bytes)


def _columns(spec: TransformSpec, vector_bytes: int) -> Iterator[SimdParams]:
    length, lanes = spec.complex_length, vector_bytes // spec.real_bytes
    if lanes not in _LANES or length % lanes or length < max(lanes * lanes, _COLUMNS_LENGTH_MIN):
        return
    both = [SimdParams(lanes, cut, columns=True) for cut in _cuts(length // lanes)]
    for params in both[:_CUTS_MAX]:
        direct = replace(params, staged=False)
        is_near = params.own_bytes(spec) <= _NEAR_BYTES
        for choice in (params, direct) if is_near else (direct, params):
            if choice.own_bytes(spec) <= _OWN_BYTES_MAX:
                yield choice


def _lines(spec: TransformSpec, vector_bytes: int) -> Iterator[SimdParams]:
    lanes = vector_bytes // spec.real_bytes
    if lanes in _LANES:
        shapes = [SimdParams(lanes, cut, columns=False) for cut in _cuts(spec.complex_length)]
        yield from (
            params for params in shapes[:_CUTS_MAX] if params.own_bytes(spec) <= _OWN_BYTES_MAX
        )


def _strided_params(spec: TransformSpec, params: SimdParams) -> SimdParams | None:
    """Find a shape for lines that lie interleaved, if one fits."""
    if spec.kind != "c2c":
        return None
    if not params.columns:
        return params
    shapes = (shape for n_bytes in (32, 16, 8) for shape in _lines(spec, n_bytes))
    return next(shapes, None)
