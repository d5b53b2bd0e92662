"""Transforms longer than local memory: two or three passes over global memory.

The length is cut into two or three factors. A pass transforms columns, as many neighbours at a time
as memory hands out at once, and multiplies the results by the roots of the whole length. The last
pass also puts the bins where they belong, so that nothing is left to transpose (Bailey 1990).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from math import prod
from typing import Any

from spectrod.errors import ConfigError
from spectrod.fft.local import LocalKernel, LocalShape, Steps, best_pad, factorizations
from spectrod.fft.stage import Lines, TransformSpec, load_params
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

_PART_MAX = 4096
_SLICE_BYTES = 1 << 28
_SEGMENT_BYTES = 64


@dataclass(frozen=True, slots=True)
class MultipassParams:
    """Shapes of the passes.

    Attributes
    ----------
    passes : tuple of LocalShape
        Two or three; their lengths multiply to n.
    slice_bytes : int
        As many lines go through all passes at a time as fit into so much scratch memory, at least
        one. Slices that a GPU's cache holds did not pay, see ``kernels/README.md``.

    Raises
    ------
    ConfigError
        If there are not two or three passes.
    """

    passes: tuple[LocalShape, ...]
    slice_bytes: int = _SLICE_BYTES

    def __post_init__(self) -> None:
        if len(self.passes) not in (2, 3):
            raise ConfigError(f"{len(self.passes)} passes: must be 2 or 3")

    @property
    def length(self) -> int:
        """Length of the transform."""
        return prod(params.length for params in self.passes)


class MultipassStage:
    """Stage of the family."""

    strided = False

    def __init__(self, context: Context, spec: TransformSpec, params: MultipassParams) -> None:
        if params.length != spec.n:
            lengths = [one.length for one in params.passes]
            raise ConfigError(f"passes of {lengths}: must multiply to n={spec.n}")
        self.spec = spec
        self.params = params
        *before, last = params.passes
        self._before = []
        rest = spec.n
        for shape in before:
            self._before.append(
                LocalKernel(
                    context,
                    spec,
                    shape,
                    ranks=2,
                    in_unit=False,
                    out_unit=False,
                    in_slice=rest != spec.n,
                    out_slice=True,
                    twiddle_length=rest,
                )
            )
            rest //= shape.length
        self._last = LocalKernel(
            context, spec, last, ranks=len(params.passes), out_unit=False, in_slice=True
        )

    def scratch_bytes(self, outer: int, inner: int) -> int:  # noqa: ARG002 - always 1 here
        """Bytes of the lines that go through the passes at a time."""
        return self._slice(outer) * self.spec.n * self.spec.in_value_bytes

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
        assert inner == 1
        step = self._slice(outer)
        multiples = self._bind(out, source, outer, scale, scratch)
        kernels = (*self._before, self._last)
        return [
            kernel.launch(line * multiple)
            for line in range(0, outer, step)
            for kernel, multiple in zip(kernels, multiples, strict=True)
        ]

    def _slice(self, outer: int) -> int:
        line_bytes = self.spec.n * self.spec.in_value_bytes
        return min(outer, max(1, self.params.slice_bytes // line_bytes))

    def _bind(self, out: Lines, source: Lines, lines: int, scale: float, scratch: Any) -> list[int]:
        """Set the arguments of all passes; return the outer indices that each has for a line."""
        n, step = self.spec.n, self._slice(lines)
        multiples, rest = [], n
        for kernel in self._before:
            # Columns of a matrix of `rest` values, one matrix for each result of the passes before.
            columns, matrices = rest // kernel.params.length, n // rest
            to = scratch, Steps(0, rest, 0, 1, columns)
            from_ = (
                (source.buffer, Steps(source.first, source.pitch, 0, 1, columns))
                if rest == n
                else to
            )
            kernel.bind(to, from_, (lines * matrices, 1, columns), 1.0, step * matrices)
            multiples.append(matrices)
            rest = columns
        self._bind_last(out, lines, scale, scratch)
        return [*multiples, 1]

    def _bind_last(self, out: Lines, lines: int, scale: float, scratch: Any) -> None:
        """Set the last pass: its rows come in the order of the bins of the passes before."""
        n, first, last = self.spec.n, self.params.passes[0].length, self.params.passes[-1].length
        middle = n // first // last
        to = out.buffer, Steps(out.first, out.pitch, first, 1, first * middle)
        from_ = scratch, Steps(0, n, last, n // first, 1)
        self._last.bind(to, from_, (lines, middle, first), scale, self._slice(lines))


class MultipassFamily:
    """Passes over global memory: complex, dense lines of lengths with no prime factor above 13."""

    name = "multipass"

    def supports(self, spec: TransformSpec, device: DeviceInfo) -> bool:
        """Whether the length can be cut into two or three that fit."""
        return spec.kind == "c2c" and next(self._shapes(spec, device), None) is not None

    def candidates(self, spec: TransformSpec, device: DeviceInfo) -> Iterable[MultipassParams]:
        """Vary the factors, the columns a group, the exchange and the slice."""
        for params in islice(self._shapes(spec, device), 3):
            yield params
            for columns, last_columns, split in product((16, 8, 4), (8, 16, 4), (True, False)):
                lengths = [one.length for one in params.passes]
                passes = _columns_shapes(lengths, columns, last_columns, device, spec, split=split)
                if passes is not None and passes != params.passes:
                    yield MultipassParams(passes)

    def load(self, values: Mapping[str, Any]) -> MultipassParams:
        """Parameters from a file, as ``load_params``."""
        return load_params(MultipassParams, values)

    def build(self, context: Context, spec: TransformSpec, params: Any) -> MultipassStage:
        """Compile the stage."""
        return MultipassStage(context, spec, params)

    @staticmethod
    def _shapes(spec: TransformSpec, device: DeviceInfo) -> Iterator[MultipassParams]:
        # Narrow columns waste more of each memory access than a third pass costs.
        wide = max(1, _SEGMENT_BYTES // spec.in_value_bytes)
        for fewest, factors in product((wide, 1), _factors(spec.n)):
            choices = (
                _columns_shapes(factors, columns, min(wide, columns), device, spec, split=True)
                for columns in (2 * wide, wide, wide // 2, wide // 4, 1)
                if columns >= fewest
            )
            passes = next(filter(None, choices), None)
            if passes is not None:
                yield MultipassParams(passes)


MULTIPASS = MultipassFamily()


@cache
def _factors(n: int) -> list[tuple[int, ...]]:
    """Ways to cut a length in two or three: two first, then the shortest longest part first."""
    parts = [part for part in range(2, min(n, _PART_MAX) + 1) if n % part == 0]
    two = [(a, n // a) for a in parts if a >= n // a > 1]
    three = [
        (a, b, n // a // b)
        for a, b in product(parts, parts)
        if n % (a * b) == 0 and a >= b >= n // a // b > 1
    ]
    return [*sorted(two), *sorted(three)]


def _columns_shapes(
    lengths: Sequence[int],
    columns: int,
    last_columns: int,
    device: DeviceInfo,
    spec: TransformSpec,
    *,
    split: bool,
) -> tuple[LocalShape, ...] | None:
    """Shapes of the passes with so many columns a group; None if one does not fit the device."""
    shapes = [
        _columns_shape(length, count, device, spec.real_bytes, split=split)
        for length, count in zip(
            lengths, [columns] * (len(lengths) - 1) + [last_columns], strict=True
        )
    ]
    found = tuple(shape for shape in shapes if shape is not None)
    return found if len(found) == len(shapes) else None


def _columns_shape(
    length: int, columns: int, device: DeviceInfo, real_bytes: int, *, split: bool
) -> LocalShape | None:
    for radices, items in factorizations(length, device.max_work_group_size // columns):
        params = LocalShape(
            radices,
            items,
            columns,
            split,
            best_pad(radices),
            lines_first=True,
            paired_twiddles=True,
        )
        return params if params.fits(device, real_bytes) else None
    return None
