"""Transforms with vectors for registers: a work-item computes whole lines. The family for CPUs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import ConfigError, DeviceError
from spectrod.fft.radices import RADICES, radix_lists
from spectrod.fft.simd_tables import column_turns, mirror_turns, row_turns
from spectrod.fft.stage import Lines, TransformSpec
from spectrod.fft.twiddles import real_turns
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.source import Defines

PASSES_MAX = 6
"""Most passes over the rows that ``fft_simd.cl`` has."""

_LANES = (16, 8, 4, 2)
# A work-item keeps its lines in private memory, which is the stack of a driver's thread: 8 MiB as a
# rule, and slower where it outgrows the core's own cache.
_PRIVATE_BYTES_MAX = 1 << 20
# Work-items for each core, so that one that is held up keeps the others waiting a little only.
_ITEMS_PER_UNIT = 4


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

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    lanes: int
    radices: tuple[int, ...]
    columns: bool

    def __post_init__(self) -> None:
        if self.lanes not in _LANES:
            raise ConfigError(f"lanes={self.lanes}: must be one of {sorted(_LANES)}")
        if not 1 <= len(self.radices) <= PASSES_MAX or not set(self.radices) <= {1, *RADICES}:
            raise ConfigError(
                f"radices={self.radices}: must be 1 to {PASSES_MAX} of {sorted(RADICES)}"
            )
        if self.columns and prod(self.radices) < self.lanes:
            raise ConfigError(
                f"radices={self.radices}: must multiply to lanes={self.lanes} or more for columns"
            )

    @property
    def length(self) -> int:
        """Length of the complex transform."""
        return prod(self.radices) * (self.lanes if self.columns else 1)

    def private_bytes(self, spec: TransformSpec) -> int:
        """Memory of a work-item, about [bytes]."""
        copies = 1 if self.columns and spec.kind == "c2c" else 2
        lines = 1 if self.columns else self.lanes
        return copies * lines * self.length * 2 * spec.real_bytes

    def defines(self) -> Defines:
        """Names and values for the compiler, in a fixed order."""
        *others, last = self.radices
        others += [1] * (PASSES_MAX - 1 - len(others))
        return (
            ("N", self.length),
            ("LANES", self.lanes),
            ("COLUMNS", int(self.columns)),
            *((f"RADIX_{i}", radix) for i, radix in enumerate(others, 1)),
            ("RADIX_LAST", last),
        )

    @classmethod
    def load(cls, values: Mapping[str, Any]) -> "SimdParams":
        """Parameters from the names and values of a file.

        Raises
        ------
        ConfigError
            If a name is unknown or missing, or a value breaks a rule.
        """
        names = {field.name for field in fields(cls)}
        if set(values) != names:
            raise ConfigError(f"{sorted(values)}: must be {sorted(names)}")
        return cls(**{**values, "radices": tuple(values["radices"])})


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
        self._out_scalars = spec.out_value_bytes // spec.real_bytes
        self._source_scalars = spec.in_value_bytes // spec.real_bytes
        self._kernel = context.kernel("fft_simd.cl", "fft_simd", _defines(spec, params))
        self._tables = [context.table(t.astype(self._real)) for t in _tables(spec, params)]
        for index, table in enumerate(self._tables, 2):
            self._kernel.set_arg(index, table)

    def launch(self, out: Lines, source: Lines, outer: int, inner: int, scale: float) -> Any:
        """Queue the transform of outer x inner lines; return its event."""
        n_lines = outer * inner
        groups = n_lines if self._params.columns else -(-n_lines // self._params.lanes)
        chunk = -(-groups // (_ITEMS_PER_UNIT * self._context.device.compute_units))
        kernel = self._kernel
        kernel.set_arg(0, out.buffer)
        kernel.set_arg(1, source.buffer)
        counts = (
            n_lines,
            inner,
            out.first * self._out_scalars,
            out.pitch * self._out_scalars,
            source.first * self._source_scalars,
            source.pitch * self._source_scalars,
            chunk,
        )
        for index, count in enumerate(counts, 5):
            kernel.set_arg(index, np.uint64(count))
        kernel.set_arg(12, self._real(scale))
        return self._context.launch(kernel, (-(-groups // chunk),), (1,))


class SimdStage:
    """Stage of the family.

    Lines that lie interleaved have a kernel of their own, compiled when first needed.

    Attributes
    ----------
    strided : bool
        For complex lines that are short enough to be computed several at a time.
    """

    def __init__(self, context: Context, spec: TransformSpec, params: SimdParams) -> None:
        if params.length != complex_length(spec):
            raise ConfigError(
                f"{params}: must make the complex length {complex_length(spec)} of n={spec.n}"
            )
        self.spec = spec
        self.params = params
        self._context = context
        self._dense = SimdKernel(context, spec, params)
        self._interleaved_params = _strided_params(spec, params)
        self._interleaved: SimdKernel | None = None
        self.strided = self._interleaved_params is not None

    def scratch_bytes(self, outer: int, inner: int) -> int:  # noqa: ARG002 - of the interface
        """None."""
        return 0

    def launch(
        self,
        out: Lines,
        source: Lines,
        outer: int,
        inner: int,
        scale: float,
        scratch: Any = None,  # noqa: ARG002 - of the interface
    ) -> list[Any]:
        """Queue the transform, as ``Stage.launch`` says."""
        kernel = self._dense if inner == 1 else self._interleaved_kernel()
        return [kernel.launch(out, source, outer, inner, scale)]

    def _interleaved_kernel(self) -> SimdKernel:
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
        """Parameters from a file, as ``SimdParams.load``."""
        return SimdParams.load(values)

    def build(self, context: Context, spec: TransformSpec, params: SimdParams) -> SimdStage:
        """Compile the stage."""
        return SimdStage(context, spec, params)


SIMD = SimdFamily()


def complex_length(spec: TransformSpec) -> int:
    """Length of the complex transform that a line is computed by."""
    return spec.n if spec.kind == "c2c" else spec.n // 2


def _defines(spec: TransformSpec, params: SimdParams) -> Defines:
    return (
        *((("DOUBLE", 1),) if spec.precision == "double" else ()),
        *params.defines(),
        ("REAL_IN", int(spec.kind == "r2c")),
        ("REAL_OUT", int(spec.kind == "c2r")),
        ("INVERSE", int(spec.inverse)),
    )


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


_PASS_COST = {1: 0.0, 2: 1.0, 3: 1.2, 4: 1.1, 5: 1.5, 6: 1.6, 7: 2.0, 8: 1.4, 9: 2.0, 10: 2.2}


@cache
def _cuts(rows: int) -> list[tuple[int, ...]]:
    """Ways to cut the rows, the least work by a rough count first, the last radix the largest."""
    cuts = [tuple(reversed(radices)) for radices in radix_lists(rows, passes_max=PASSES_MAX)]
    return sorted(cuts, key=lambda cut: (sum(_PASS_COST.get(r, r / 5) for r in cut), cut))[:4]


def _shapes(spec: TransformSpec) -> Iterator[SimdParams]:
    length = complex_length(spec)
    for columns in (True, False):
        for lanes in (8, 16, 4, 2):
            if columns and (length % lanes or length < lanes * lanes):
                continue
            for radices in _cuts(length // lanes if columns else length):
                params = SimdParams(lanes, radices, columns)
                if params.private_bytes(spec) <= _PRIVATE_BYTES_MAX:
                    yield params


def _strided_params(spec: TransformSpec, params: SimdParams) -> SimdParams | None:
    if spec.kind != "c2c":
        return None
    if not params.columns:
        return params
    return next((shape for shape in _shapes(spec) if not shape.columns), None)
