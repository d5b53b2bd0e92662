"""Real transforms of any length through complex ones: of half the length where that is whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectrod.fft.bluestein import MakeStage
from spectrod.fft.linekernels import LineKernel, aligned, complex_table, move_kernel, rest_of
from spectrod.fft.stage import Lines, Params, Stage, TransformSpec, as_pairs
from spectrod.fft.twiddles import unit_roots
from spectrod.lib.errors import ConfigError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo


@dataclass(frozen=True, slots=True)
class RealParams:
    """Length of the complex transform: n, or n / 2 of an even n."""

    length: int


class RealHalfStage:
    """n real values as n / 2 complex ones, with a kernel that takes their spectra apart.

    On CPUs the complex transform runs where the result goes and the kernel works there in place. On
    GPUs it runs in scratch: lines of n / 2 + 1 bins are out of step with the segments that memory
    takes at once. Real lines that do not start where a complex value may are copied.
    """

    strided = False

    def __init__(self, context: Context, spec: TransformSpec, make_stage: MakeStage) -> None:
        self.spec = spec
        self._half = spec.n // 2
        complex_spec = TransformSpec(self._half, "c2c", spec.inverse, spec.precision)
        self._stage = make_stage(context, complex_spec)
        name = "split_spectrum" if spec.kind == "r2c" else "join_spectrum"
        self._fix = LineKernel(context, "fft_real.cl", name, spec.precision)
        twiddles = unit_roots(np.arange(self._half // 2 + 1), spec.n)
        self._twiddles = complex_table(context, spec, twiddles)
        self._context = context
        self._move = move_kernel(context, spec.precision, "rr")
        self._is_apart = spec.kind == "r2c" and context.device.kind != "cpu"

    def scratch_bytes(self, outer: int, inner: int) -> int:
        """Space for the complex transform, and on GPUs for its result."""
        return aligned(self._apart_bytes(outer)) + self._stage.scratch_bytes(outer, inner)

    def launch(
        self,
        out: Lines,
        source: Lines,
        outer: int,
        inner: int,  # noqa: ARG002 - of the interface, here 1
        scale: float,
        scratch: Any = None,
    ) -> list[Any]:
        """Queue the transform and the kernel, as ``Stage.launch`` says."""
        launch = self._forward if self.spec.kind == "r2c" else self._backward
        return launch(out, source, outer, scale, scratch)

    def _forward(
        self, out: Lines, source: Lines, outer: int, scale: float, scratch: Any
    ) -> list[Any]:
        pairs, copied = as_pairs(source), []
        if pairs is None:
            reals = Lines(out.buffer, 2 * out.pitch, 2 * out.first)
            pairs, copied = out, [self._copy(reals, source, outer)]
        work, rest = out, scratch
        if self._is_apart:
            n_bytes = self._apart_bytes(outer)
            work = Lines(self._context.region(scratch, 0, n_bytes), self._half)
            rest = rest_of(self._context, scratch, aligned(n_bytes))
        transformed = self._stage.launch(work, pairs, outer, 1, scale, rest)
        return [*copied, *transformed, self._fixed(out, work, outer)]

    def _backward(
        self, out: Lines, source: Lines, outer: int, scale: float, scratch: Any
    ) -> list[Any]:
        pairs = as_pairs(out)
        if pairs is None:
            buffer = self._context.allocate(outer * self.spec.n * self.spec.real_bytes)
            even = Lines(buffer, self.spec.n)
            events = self._backward(even, source, outer, scale, scratch)
            return [*events, self._copy(out, even, outer)]
        fixed = self._fixed(pairs, source, outer)
        return [fixed, *self._stage.launch(pairs, pairs, outer, 1, scale, scratch)]

    def _apart_bytes(self, outer: int) -> int:
        return outer * self.spec.n * self.spec.real_bytes if self._is_apart else 0

    def _fixed(self, out: Lines, source: Lines, outer: int) -> Any:
        places = out.buffer, out.first, out.pitch, source.buffer, source.first, source.pitch
        pairs = self._half // 2 + 1
        return self._fix.launch(outer, pairs, *places, self._twiddles, outer, self._half)

    def _copy(self, out: Lines, source: Lines, outer: int) -> Any:
        places = out.buffer, out.first, out.pitch, source.buffer, source.first, source.pitch
        n = self.spec.n
        return self._move.launch(outer, n, *places, outer, n, n)


class RealWholeStage:
    """n real values as n complex ones, of which half are dropped or made up; lines are dense."""

    strided = False

    def __init__(self, context: Context, spec: TransformSpec, make_stage: MakeStage) -> None:
        self.spec = spec
        self._context = context
        complex_spec = TransformSpec(spec.n, "c2c", spec.inverse, spec.precision)
        self._stage: Stage = make_stage(context, complex_spec)
        if spec.kind == "r2c":
            self._expand = move_kernel(context, spec.precision, "rc")
            self._crop = move_kernel(context, spec.precision, "cc")
        else:
            self._expand = move_kernel(context, spec.precision, "cc", flag="HERMITIAN")
            self._crop = move_kernel(context, spec.precision, "cr")

    def scratch_bytes(self, outer: int, inner: int) -> int:
        """Space for the complex lines, and the transform's own."""
        return aligned(self._work_bytes(outer)) + self._stage.scratch_bytes(outer, inner)

    def launch(
        self,
        out: Lines,
        source: Lines,
        outer: int,
        inner: int,  # noqa: ARG002 - of the interface, here 1
        scale: float,
        scratch: Any = None,
    ) -> list[Any]:
        """Queue the transform and what is before and behind it, as ``Stage.launch`` says."""
        spec, n = self.spec, self.spec.n
        work = Lines(self._context.region(scratch, 0, self._work_bytes(outer)), n)
        rest = rest_of(self._context, scratch, aligned(self._work_bytes(outer)))
        complex_lines = work.buffer, 0, n
        origin = source.buffer, source.first, source.pitch, outer, spec.n_in, n
        return [
            self._expand.launch(outer, n, *complex_lines, *origin),
            *self._stage.launch(work, work, outer, 1, scale, rest),
            self._crop.launch(
                outer, spec.n_out, out.buffer, out.first, out.pitch, *complex_lines, outer, n,
                spec.n_out,
            ),
        ]  # fmt: skip

    def _work_bytes(self, outer: int) -> int:
        return outer * self.spec.n * 2 * self.spec.real_bytes


class RealFamily:
    """Real transforms of every length, for which there is a complex one."""

    name = "real"
    params_type = RealParams

    def __init__(self, make_stage: MakeStage) -> None:
        self._make_stage = make_stage

    def supports(self, spec: TransformSpec, device: DeviceInfo) -> bool:  # noqa: ARG002
        """Whether it is real."""
        return spec.kind != "c2c"

    def candidates(
        self,
        spec: TransformSpec,
        device: DeviceInfo,  # noqa: ARG002 - of the interface
    ) -> Iterable[RealParams]:
        """Take half the length of an even n, all of an odd one: twice the work is never better."""
        return (RealParams(spec.n if spec.n % 2 else spec.n // 2),)

    def build(
        self, context: Context, spec: TransformSpec, params: Params
    ) -> RealHalfStage | RealWholeStage:
        """Compile the stage."""
        assert isinstance(params, RealParams)
        if params.length == spec.n:
            return RealWholeStage(context, spec, self._make_stage)
        if 2 * params.length == spec.n:
            return RealHalfStage(context, spec, self._make_stage)
        raise ConfigError(f"length={params.length}: must be n={spec.n}, or half of an even n")
