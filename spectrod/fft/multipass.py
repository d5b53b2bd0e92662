"""Transforms longer than local memory: two or three passes over global memory.

The length is cut into two or three factors. A pass transforms columns, as many neighbours at a time
as memory hands out at once, and multiplies the results by the roots of the whole length. The last
pass also puts the bins where they belong, so that nothing is left to transpose (Bailey 1990).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice, product
from math import prod
from typing import Any, NamedTuple

from spectrod.fft.linekernels import move_kernel
from spectrod.fft.local import LocalKernel, LocalShape, Steps, best_pad, factorizations, work
from spectrod.fft.radices import radix_lists, values_per_item
from spectrod.fft.stage import Lines, TransformSpec, as_pairs
from spectrod.lib.errors import ConfigError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

_PART_MAX = 4096
_SLICE_BYTES = 1 << 28
_SEGMENT_BYTES = 64
# Complex values of a line that an item holds which has two: as many registers as 32 of one line.
_PAIRED_VALUES_MAX = 16


class _Form(NamedTuple):
    """How the passes exchange values, and how the last one loads them.

    Attributes
    ----------
    split : bool
        Whether parts are exchanged one after the other.
    sections : int
        In how many sections.
    along : bool
        Whether the last pass loads along its lines: whole segments, however many lines a group has
        that it stores side by side.
    """

    split: bool = True
    sections: int = 1
    along: bool = True


_SECTIONS = _Form(sections=2, along=False)
_FORMS = (
    _Form(),
    _Form(split=False),
    _SECTIONS,
    _Form(along=False),
    _Form(split=False, along=False),
)


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
    """Stage of the family.

    Real lines are taken for half as many complex values. The last pass of R2C stores bins instead,
    the first pass of C2R loads them: each work-item has both values that a pair of bins is made of.
    Real lines that do not start where a complex value may are copied.
    """

    strided = False

    def __init__(self, context: Context, spec: TransformSpec, params: MultipassParams) -> None:
        if params.length != spec.complex_length or (spec.kind != "c2c" and spec.n % 2):
            lengths = [one.length for one in params.passes]
            raise ConfigError(f"passes of {lengths}: must multiply to {spec.complex_length}")
        self.spec = spec
        self.params = params
        self._context = context
        self._length = params.length
        self._copy = None if spec.kind == "c2c" else move_kernel(context, spec.precision, "rr")
        complex_spec = TransformSpec(self._length, "c2c", spec.inverse, spec.precision)
        *before, last = params.passes
        self._before: list[LocalKernel] = []
        rest = self._length
        for shape in before:
            is_paired = spec.kind == "c2r" and not self._before
            self._before.append(
                LocalKernel(
                    context,
                    spec if is_paired else complex_spec,
                    _mirrored(shape) if is_paired else shape,
                    ranks=2,
                    in_unit=is_paired,
                    out_unit=False,
                    in_slice=rest != self._length,
                    out_slice=True,
                    n_columns=rest // shape.length,
                    line_pairs=rest // shape.length if is_paired else 0,
                )
            )
            rest //= shape.length
        is_paired = spec.kind == "r2c"
        self._last = LocalKernel(
            context,
            spec if is_paired else complex_spec,
            _mirrored(last) if is_paired else last,
            ranks=len(params.passes),
            out_unit=is_paired,
            in_slice=True,
            line_pairs=self._length // last.length if is_paired else 0,
        )

    def scratch_bytes(self, outer: int, inner: int) -> int:  # noqa: ARG002 - always 1 here
        """Bytes of the lines that go through the passes at a time."""
        return self._slice(outer) * self._line_bytes

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
        if self.spec.kind == "r2c":
            pairs = as_pairs(source)
            if pairs is None:
                reals = Lines(out.buffer, 2 * out.pitch, 2 * out.first)
                copied = self._copied(reals, source, outer)
                return [copied, *self._launch(out, out, outer, scale, scratch)]
            return self._launch(out, pairs, outer, scale, scratch)
        if self.spec.kind == "c2r":
            pairs = as_pairs(out)
            if pairs is None:
                buffer = self._context.allocate(outer * self.spec.n * self.spec.real_bytes)
                even = Lines(buffer, self._length)
                events = self._launch(even, source, outer, scale, scratch)
                return [*events, self._copied(out, Lines(buffer, self.spec.n), outer)]
            return self._launch(pairs, source, outer, scale, scratch)
        return self._launch(out, source, outer, scale, scratch)

    def _launch(
        self, out: Lines, source: Lines, outer: int, scale: float, scratch: Any
    ) -> list[Any]:
        step = self._slice(outer)
        multiples = self._bind(out, source, outer, scale, scratch)
        kernels = (*self._before, self._last)
        return [
            kernel.launch(line * multiple)
            for line in range(0, outer, step)
            for kernel, multiple in zip(kernels, multiples, strict=True)
        ]

    @property
    def _line_bytes(self) -> int:
        return 2 * self.spec.real_bytes * self._length

    def _slice(self, outer: int) -> int:
        return min(outer, max(1, self.params.slice_bytes // self._line_bytes))

    def _copied(self, out: Lines, source: Lines, outer: int) -> Any:
        assert self._copy is not None
        places = out.buffer, out.first, out.pitch, source.buffer, source.first, source.pitch
        n = self.spec.n
        return self._copy.launch(outer, n, *places, outer, n, n)

    def _bind(self, out: Lines, source: Lines, lines: int, scale: float, scratch: Any) -> list[int]:
        """Set the arguments of all passes; return the outer indices that each has for a line."""
        n, step = self._length, self._slice(lines)
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
        n, first, last = self._length, self.params.passes[0].length, self.params.passes[-1].length
        middle = n // first // last
        to = out.buffer, Steps(out.first, out.pitch, first, 1, first * middle)
        from_ = scratch, Steps(0, n, last, n // first, 1)
        self._last.bind(to, from_, (lines, middle, first), scale, self._slice(lines))


class MultipassFamily:
    """Passes over global memory: dense lines of lengths with no prime factor above 13.

    Real lines on GPUs only: on a CPU the transform of half the length with vectors is faster.
    """

    name = "multipass"
    params_type = MultipassParams

    def supports(self, spec: TransformSpec, device: DeviceInfo) -> bool:
        """Return True if the length has two or three factors that fit."""
        if spec.kind != "c2c" and (spec.n % 2 or device.kind == "cpu"):
            return False
        return next(self._shapes(spec, device), None) is not None

    def candidates(self, spec: TransformSpec, device: DeviceInfo) -> Iterable[MultipassParams]:
        """Vary the factors, the columns a group, the exchange and its sections."""
        seen = set()
        for params in islice(self._shapes(spec, device), 4):
            lengths = [one.length for one in params.passes]
            varied = (
                _columns_shapes(lengths, columns, device, spec, form)
                for form, *columns in product(_FORMS, (16, 8, 4), (32, 16, 8, 4))
            )
            for passes in filter(None, chain([params.passes], varied)):
                if passes not in seen:
                    seen.add(passes)
                    yield MultipassParams(passes)

    def build(self, context: Context, spec: TransformSpec, params: Any) -> MultipassStage:
        """Compile the stage."""
        return MultipassStage(context, spec, params)

    @staticmethod
    def _shapes(spec: TransformSpec, device: DeviceInfo) -> Iterator[MultipassParams]:
        # Narrow columns waste more of each memory access than a third pass costs.
        wide = max(1, _SEGMENT_BYTES // (2 * spec.real_bytes))
        # Rows of real transforms are out of step with the segments: the wider, the fewer parts.
        lasts = (2, 1) if spec.kind == "r2c" else (1,)
        for fewest, factors in product((wide, 1), _factors(spec.complex_length)):
            widths = [c for c in (2 * wide, wide, wide // 2, wide // 4, 1) if c >= fewest]
            choices = chain(
                (
                    _columns_shapes(factors, (width, last * width), device, spec, _Form())
                    for width, last in product(widths, lasts)
                ),
                (
                    _columns_shapes(factors, (width, max(1, width // 2)), device, spec, _SECTIONS)
                    for width in widths
                    if spec.kind == "c2c"
                ),
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
    columns: Sequence[int],
    device: DeviceInfo,
    spec: TransformSpec,
    form: _Form,
) -> tuple[LocalShape, ...] | None:
    """Shapes of the passes with a number of columns a group, before and in the last one.

    None if one does not fit the device. A pass that has the bins of real lines holds twice as many
    columns: pairs.
    """
    paired = {"c2c": None, "c2r": 0, "r2c": len(lengths) - 1}[spec.kind]
    shapes = []
    for number, length in enumerate(lengths):
        count = columns[number == len(lengths) - 1]
        if number != paired:
            shape = _columns_shape(length, count, device, spec.real_bytes, form)
        elif spec.complex_length // length % 2 == 0:
            shapes_of_pairs = (
                _paired_shape(length, count // part, device, spec, split=form.split)
                for part in (1, 2)
                if count >= part
            )
            shape = next(filter(None, shapes_of_pairs), None)
        else:
            shape = None
        if shape is None:
            return None
        is_along = form.along and number == len(lengths) - 1 and len(shape.radices) > 1
        shapes.append(replace(shape, lines_first=not is_along, lines_last=is_along))
    fits = all(
        shape.fits(device, spec.real_bytes, 2 if number == paired else 1)
        for number, shape in enumerate(shapes)
    )
    return tuple(shapes) if fits else None


def _columns_shape(
    length: int, columns: int, device: DeviceInfo, real_bytes: int, form: _Form
) -> LocalShape | None:
    for radices, items in factorizations(length, device.max_work_group_size // columns):
        if form.sections == 1 or all(radix % 2 == 0 for radix in radices):
            params = LocalShape(
                radices,
                items,
                columns,
                form.split,
                best_pad(radices),
                lines_first=True,
                sections=form.sections,
                paired_twiddles=True,
            )
            return params if params.fits(device, real_bytes) else None
    return None


def _paired_shape(
    length: int, columns: int, device: DeviceInfo, spec: TransformSpec, *, split: bool
) -> LocalShape | None:
    """Shape of the pass next to a real transform's bins, which holds pairs of lines."""
    items_max = device.max_work_group_size // columns
    for radices, items in _paired_factorizations(length, items_max, spec.kind == "c2r"):
        params = LocalShape(
            radices,
            items,
            columns,
            split,
            best_pad(radices),
            lines_first=True,
            paired_twiddles=True,
        )
        return params if params.fits(device, spec.real_bytes, held_lines=2) else None
    return None


@cache
def _paired_factorizations(
    length: int,
    items_max: int,
    mirrors_first: bool,  # noqa: FBT001 - a key
) -> list[tuple[tuple[int, ...], int]]:
    """Radices and an even number of items, each with one butterfly of the pass that is mirrored."""
    found = set()
    for radices in radix_lists(length):
        for mirrored in {radix for radix in radices if radix % 2 == 0}:
            others = list(radices)
            others.remove(mirrored)
            others.sort(key=lambda radix: (radix % 2 == 0, -radix))
            ordered = (mirrored, *others) if mirrors_first else (*others, mirrored)
            items = length // mirrored
            values = values_per_item(length, ordered, items)
            if others and items % 2 == 0 and items <= items_max and values <= _PAIRED_VALUES_MAX:
                found.add((ordered, items))
    return sorted(found, key=lambda shape: (work(length, *shape), sum(shape[0]), shape))


def _mirrored(shape: LocalShape) -> LocalShape:
    return replace(shape, mirrored=True)
