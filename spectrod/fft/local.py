"""Transforms that a work-group holds in registers and exchanges through local memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, product
from math import prod
from typing import Any

import numpy as np

from spectrod.fft.defines import KernelDefines
from spectrod.fft.radices import PASSES_MAX, RADICES, radix_lists, values_per_item
from spectrod.fft.stage import Lines, TransformSpec, as_pairs
from spectrod.fft.twiddles import (
    column_twiddles,
    pass_twiddles,
    real_twiddles,
    twiddle_tables,
)
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.arguments import Arguments
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

_GROUP_ITEMS = 32
_VALUES_MAX = 32
_REGISTERS_COST = 0.4  # passes, of 32 values an item instead of 16
_CROWD_ITEMS = 200
_CROWD_COST = 0.5  # passes, of barriers at which all items of a large group wait
_LISTS_MAX = 5
# A CPU keeps what a work-group's items hold on the stack, several times over: PoCL 3.1 crashed with
# 4 MiB and its 8 MiB of stack.
_CPU_GROUP_BYTES = 1 << 19
_LINES_MAX = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class LocalShape:
    """Shape of ``fft_local.cl`` for a complex length.

    Attributes
    ----------
    radices : tuple of int
        Of the passes, 2 to 16; their product is the complex length: n, or n / 2 of a real
        transform.
    items : int
        Work-items a line.
    lines : int
        Lines a work-group.
    split_exchange : bool
        Real and imaginary parts one after the other through the same local memory.
    local_pad : int
        Values in local memory between gaps of one value, against bank conflicts; 0 for no gaps.
    lines_first : bool
        Whether neighbouring items work on neighbouring lines, for lines that are columns.
    lines_last : bool
        Whether neighbouring items work on neighbouring lines in the last of several passes only,
        for lines that are loaded along their values and stored across them.
    sections : {1, 2}
        Two halve the memory of a split exchange again; complex transforms of even radices only.
    paired_twiddles : bool
        Whether most twiddle factors are products of two others: fewer loads, more arithmetic.
    fused : bool
        Whether radices that are powers of two are computed by fused multiply-adds: a sixth fewer
        operations, in longer chains, and up to 8 % more error.
    mirrored : bool
        Of a real transform: whether the pass next to the bins has two butterflies an item, which
        hold pairs of bins, so that one exchange less is needed. See ``can_mirror``.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    radices: tuple[int, ...]
    items: int
    lines: int = 1
    split_exchange: bool = False
    local_pad: int = 0
    lines_first: bool = False
    lines_last: bool = False
    sections: int = 1
    paired_twiddles: bool = False
    fused: bool = False
    mirrored: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.radices) <= PASSES_MAX or not set(self.radices) <= {1, *RADICES}:
            raise ConfigError(
                f"radices={self.radices}: must be 1 to {PASSES_MAX} of {sorted(RADICES)}"
            )
        if not 1 <= self.items <= self.length:
            raise ConfigError(f"items={self.items}: must be 1 to the length {self.length}")
        if self.lines < 1:
            raise ConfigError(f"lines={self.lines}: must be at least 1")
        if self.local_pad < 0:
            raise ConfigError(f"local_pad={self.local_pad}: must not be negative")
        if self.lines_last and (self.lines_first or len(self.radices) == 1):
            raise ConfigError(f"lines_last={self.lines_last}: must be false with one pass")
        if self.sections != 1 and (self.sections != 2 or any(r % 2 for r in self.radices)):
            raise ConfigError(f"sections={self.sections}: must be 1, or 2 with even radices")

    @property
    def length(self) -> int:
        """Length of the complex transform."""
        return prod(self.radices)

    @property
    def values(self) -> int:
        """Complex values that a work-item holds."""
        return values_per_item(self.length, self.radices, self.items)

    @property
    def group_items(self) -> int:
        """Work-items of a work-group."""
        return self.items * self.lines

    def local_bytes(self, real_bytes: int) -> int:
        """Local memory of a work-group [bytes]."""
        places = self.length // self.sections
        gaps = places // self.local_pad if self.local_pad else 0
        gaps += self.lines_last and (places + gaps) % 2 == 0
        planes = 1 if self.split_exchange or self.sections > 1 else 2
        return planes * self.lines * (places + gaps) * real_bytes

    def fits(self, device: DeviceInfo, real_bytes: int, held_lines: int = 1) -> bool:
        """Return True if the device can run this shape with a number of lines per work-item."""
        group_bytes = 2 * real_bytes * held_lines * self.values * self.group_items
        is_too_deep = device.kind == "cpu" and group_bytes > _CPU_GROUP_BYTES
        return (
            self.group_items <= device.max_work_group_size
            and held_lines * self.local_bytes(real_bytes) <= device.local_mem_bytes
            and not is_too_deep
        )

    def defines(self) -> KernelDefines:
        """Return what ``fft_local_passes.clh`` needs of a shape."""
        return KernelDefines(
            n=self.length,
            radices=self.radices,
            items=self.items,
            lines=self.lines,
            values=self.values,
            split_exchange=self.split_exchange,
            local_pad=self.local_pad,
            lines_first=self.lines_first,
            lines_last=self.lines_last,
            sections=self.sections,
            paired_twiddles=self.paired_twiddles,
            fused=self.fused,
            mirrored=self.mirrored,
        )


@dataclass(frozen=True, slots=True)
class Steps:
    """Distances in an array of lines, which are numbered by outer, middle and inner.

    Attributes
    ----------
    first : int
        Where the first line starts [values].
    outer, middle, inner : int
        From one line to the next along each [values].
    value : int
        From one value of a line to the next [values].
    """

    first: int
    outer: int
    middle: int
    inner: int
    value: int

    def vector(self) -> Any:
        """Put the four distances as the kernel takes them, (4,) uint64."""
        return np.array([self.outer, self.middle, self.inner, self.value], np.uint64)


class LocalKernel:
    """One launch over lines: the compiled kernel, its tables and its geometry.

    Parameters
    ----------
    context : Context
        The device.
    spec : TransformSpec
        What a line's transform is; n even if it is real.
    params : LocalShape
        Its shape.
    ranks : {1, 2, 3}
        Whether lines are counted by outer alone, also by inner, also by middle.
    in_unit, out_unit : bool
        Whether the values of a line are neighbours.
    aligned : bool
        Whether real lines are bound as lines of half as many complex values, see ``as_pairs``.
    in_slice, out_slice : bool
        Whether that side holds only the lines of one launch, and not those before them.
    n_columns : int
        Number of columns of a longer transform that these lines are: result k of a line is
        multiplied by ``exp(-2 pi i k inner / n)``, n being the number of all values; 0 for none.
    line_pairs : int
        Number of lines that make half of a real line, with the spectrum on this pass's other side;
        a work-item then holds two lines. 0 for lines that are transforms of their own.

    Raises
    ------
    DeviceError
        If the device has not got what is needed.
    KernelBuildError
        If the kernel does not compile.
    """

    def __init__(  # noqa: PLR0913 - the variants of one kernel
        self,
        context: Context,
        spec: TransformSpec,
        params: LocalShape,
        *,
        ranks: int = 1,
        in_unit: bool = True,
        out_unit: bool = True,
        aligned: bool = False,
        in_slice: bool = False,
        out_slice: bool = False,
        n_columns: int = 0,
        line_pairs: int = 0,
    ) -> None:
        self.params = params
        self._context = context
        self._real = np.float32 if spec.precision == "single" else np.float64
        self._halves_scale = spec.kind == "r2c"
        self._line_pairs = line_pairs
        defines = replace(
            params.defines(),
            double=spec.precision == "double",
            real_in=spec.kind == "r2c",
            real_out=spec.kind == "c2r",
            inverse=spec.inverse,
            ranks=ranks,
            in_unit=in_unit,
            out_unit=out_unit,
            aligned=aligned,
            in_slice=in_slice,
            out_slice=out_slice,
            n_columns=n_columns,
            line_pairs=line_pairs,
            values=params.values * (2 if line_pairs else 1),
        )
        self._arguments = Arguments(context.kernel("fft_local.cl", "fft_local", defines.pairs()))
        self._tables = [context.table(t) for t in self._make_tables(spec, n_columns)]
        self._arguments.set(2, self._tables)

    def bind(
        self,
        out: tuple[Any, Steps],
        source: tuple[Any, Steps],
        counts: tuple[int, int, int],
        scale: float,
        slice_outer: int,
    ) -> None:
        """Set the arguments for outer x middle x inner lines, slice_outer of outer a launch."""
        outer, middle, inner = counts
        slice_lines = slice_outer * (self._line_pairs // 2 or middle * inner)
        assert max(slice_lines, outer) <= _LINES_MAX
        self._arguments.set(0, (out[0], source[0]))
        self._arguments.set(5, (np.uint64(out[1].first), out[1].vector()))
        self._arguments.set(7, (np.uint64(source[1].first), source[1].vector()))
        self._arguments.set(9, map(np.uint32, (slice_lines, outer, middle, inner)))
        self._arguments.set(13, (self._real(scale / 2 if self._halves_scale else scale),))
        self._groups = -(-slice_lines // self.params.lines)

    def launch(self, first_outer: int = 0) -> Any:
        """Queue the transform of a slice from first_outer on; return its event."""
        size = self.params.group_items
        groups = (self._groups * size,)
        return self._context.launch(self._arguments.kernel, groups, (size,), (first_outer,))

    def _make_tables(self, spec: TransformSpec, n_columns: int) -> Iterator[Any]:
        complex_type = np.complex64 if spec.precision == "single" else np.complex128
        none = np.ones(1, complex_type)
        params = self.params
        twiddles = pass_twiddles(params.radices)
        yield twiddles.astype(complex_type) if len(twiddles) else none
        if self._line_pairs:
            n = 2 * self._line_pairs * params.length
            yield twiddle_tables(n, self._line_pairs).astype(complex_type)
        elif spec.kind == "c2c":
            yield none
        else:
            yield real_twiddles(params.length).astype(complex_type)
        if n_columns:
            table = column_twiddles(params.length, n_columns, params.radices[-1])
            yield table.astype(complex_type)
        else:
            yield none


class LocalStage:
    """Stage of the family: the transform of a line by one work-group, in one launch.

    Lines whose values are not neighbours have a kernel of their own, and so have real lines that do
    not start at even places; each is compiled when first needed.
    """

    strided = True

    def __init__(self, context: Context, spec: TransformSpec, params: LocalShape) -> None:
        if params.length != spec.complex_length:
            raise ConfigError(f"radices={params.radices}: must multiply to {spec.complex_length}")
        if not params.fits(context.device, spec.real_bytes):
            raise DeviceError(
                f"{params.group_items} items with {params.local_bytes(spec.real_bytes)} bytes of "
                f"local memory: more than {context.device.label} takes"
            )
        if params.mirrored and not can_mirror(spec, params):
            raise ConfigError(f"mirrored={params.mirrored}: {params.items} items cannot hold pairs")
        self.spec = spec
        self.params = params
        self._context = context
        self._kernels: dict[tuple[bool, bool], LocalKernel] = {}
        self._kernel_for(is_dense=True, aligned=spec.kind != "c2c")  # reports what does not compile

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
        kind, pairs = self.spec.kind, None
        if kind == "r2c" and inner == 1 and (pairs := as_pairs(source)):
            source = pairs
        elif kind == "c2r" and inner == 1 and (pairs := as_pairs(out)):
            out = pairs
        kernel = self._kernel_for(is_dense=inner == 1, aligned=pairs is not None)
        to = out.buffer, Steps(out.first, out.pitch, 0, 1, inner)
        origin = source.buffer, Steps(source.first, source.pitch, 0, 1, inner)
        kernel.bind(to, origin, (outer, 1, inner), scale, outer)
        return [kernel.launch()]

    def _kernel_for(self, *, is_dense: bool, aligned: bool) -> LocalKernel:
        key = is_dense, aligned
        if key not in self._kernels:
            params, spec = self.params, self.spec
            if not is_dense:
                params = columns_params(params, self._context.device, spec.real_bytes)
            self._kernels[key] = LocalKernel(
                self._context,
                spec,
                params,
                ranks=1 if is_dense else 2,
                in_unit=is_dense,
                out_unit=is_dense,
                aligned=aligned,
            )
        return self._kernels[key]


class LocalFamily:
    """Local-memory kernels, one pass: lengths with no prime factor above 13 that fit."""

    name = "local"
    params_type = LocalShape

    def supports(self, spec: TransformSpec, device: DeviceInfo) -> bool:
        """Whether a work-group can hold a line; real transforms must be of even length."""
        if spec.kind != "c2c" and spec.n % 2:
            return False
        return next(self._shapes(spec, device), None) is not None

    def candidates(self, spec: TransformSpec, device: DeviceInfo) -> Iterable[LocalShape]:
        """Vary the order, items a group, exchange, twiddles and gaps of the best radices."""
        seen = set()
        shapes = _diverse(factorizations(spec.complex_length, device.max_work_group_size))
        for params in chain(self._shapes(spec, device), _variations(shapes)):
            for choice in _legal(spec, params):
                if choice not in seen and choice.fits(device, spec.real_bytes):
                    seen.add(choice)
                    yield choice

    def build(self, context: Context, spec: TransformSpec, params: LocalShape) -> LocalStage:
        """Compile the stage."""
        return LocalStage(context, spec, params)

    @staticmethod
    def _shapes(spec: TransformSpec, device: DeviceInfo) -> Iterator[LocalShape]:
        """Yield the untuned choice, if there is one, alone."""
        length = spec.complex_length
        for radices, items in factorizations(length, device.max_work_group_size):
            params = _grouped(radices, items, device, spec)
            if params is not None:
                yield next(_legal(spec, params))
                return


LOCAL = LocalFamily()


@cache
def factorizations(length: int, items_max: int) -> list[tuple[tuple[int, ...], int]]:
    """Radices and work-items a line, the least work first; empty if there are none."""
    found = [
        (radices, items)
        for radices in map(_odd_first, radix_lists(length))
        for items in {length // radix // part for radix in radices for part in (1, 2, 4)}
        if 1 <= items <= items_max and values_per_item(length, radices, items) <= _VALUES_MAX
    ]
    return sorted(found, key=lambda cut: (work(length, *cut), sum(cut[0]), -cut[1], cut))


def _odd_first(radices: tuple[int, ...]) -> tuple[int, ...]:
    """Order the passes: an odd first radix needs no gaps in local memory (see ``best_pad``)."""
    return tuple(sorted(radices, key=lambda radix: (radix % 2 == 0, -radix)))


def work(length: int, radices: tuple[int, ...], items: int) -> float:
    """Rough cost: a pass, what idle items waste of it, and registers beyond what is cheap."""
    computed = sum(radix * -(-(length // radix) // items) * items for radix in radices) / length
    registers = _REGISTERS_COST * max(0, values_per_item(length, radices, items) - 16) / 16
    # Fewer than four items would each read a stretch of their own, past what a cache line holds.
    scattered = items < 4 and length > 8
    crowded = _CROWD_COST * (items > _CROWD_ITEMS)
    return computed + registers + scattered + crowded


def _grouped(
    radices: tuple[int, ...], items: int, device: DeviceInfo, spec: TransformSpec
) -> LocalShape | None:
    """Work-groups of at least 32 items, with the fewest barriers that the device has memory for."""
    lines = max(1, min(_GROUP_ITEMS, device.max_work_group_size) // items)
    whole = LocalShape(
        radices,
        items,
        lines,
        local_pad=best_pad(radices),
        paired_twiddles=True,
        fused=spec.kind != "c2c",
    )
    real_bytes = spec.real_bytes
    split = replace(whole, split_exchange=True)
    smallest = replace(whole, lines=1, split_exchange=True)
    choices = [whole, split, smallest]
    if spec.kind == "c2c" and not any(radix % 2 for radix in radices):
        choices.append(replace(smallest, sections=2))
    return next((params for params in choices if params.fits(device, real_bytes)), None)


def can_mirror(spec: TransformSpec, params: LocalShape) -> bool:
    """Whether the pass next to a real transform's bins has two whole butterflies an item."""
    radix = params.radices[-1 if spec.kind == "r2c" else 0]
    is_real = spec.kind != "c2c" and len(params.radices) > 1
    return is_real and radix % 2 == 0 and 2 * radix * params.items == params.length


def _legal(spec: TransformSpec, params: LocalShape) -> Iterator[LocalShape]:
    """Forms of a shape that the kind of transform allows."""
    if can_mirror(spec, params):
        yield replace(params, mirrored=True)
    if params.sections == 1 or spec.kind == "c2c":
        yield params


def _diverse(shapes: list[tuple[tuple[int, ...], int]]) -> list[tuple[tuple[int, ...], int]]:
    """Two of the best of each list of radices."""
    lists = list(dict.fromkeys(radices for radices, _ in shapes))[:_LISTS_MAX]
    return [
        shape
        for radices in lists
        for shape in [shape for shape in shapes if shape[0] == radices][:2]
    ]


def _variations(shapes: list[tuple[tuple[int, ...], int]]) -> Iterator[LocalShape]:
    """Shapes of the factorizations in every sensible form, the likelier forms first."""
    for group, (split, sections), (paired, fused) in product(
        (32, 128, 64, 256),
        ((False, 1), (True, 1), (True, 2)),
        ((True, True), (True, False), (False, False)),
    ):
        for radices, items in shapes:
            lines = max(1, group // items)
            is_even = all(radix % 2 == 0 for radix in radices)
            if (sections == 1 or is_even) and (items <= group or group == _GROUP_ITEMS):
                for order in dict.fromkeys((radices, radices[::-1])):
                    yield LocalShape(
                        order,
                        items,
                        lines,
                        split_exchange=split,
                        local_pad=best_pad(order),
                        sections=sections,
                        paired_twiddles=paired,
                        fused=fused,
                    )


def columns_params(params: LocalShape, device: DeviceInfo, real_bytes: int) -> LocalShape:
    """Reshape for lines that are columns: up to 16 neighbours a work-group."""
    choices = (
        replace(params, lines=lines, lines_first=True, split_exchange=True)
        for lines in (16, 8, 4, 2)
    )
    one = replace(params, lines=1, lines_first=True, split_exchange=True)
    return next((choice for choice in choices if choice.fits(device, real_bytes)), one)


def best_pad(radices: tuple[int, ...]) -> int:
    """Gap in local memory that keeps the first exchange free of bank conflicts.

    Values that neighbouring items put lie a first radix apart, which an odd one spreads over all
    banks by itself. The other radices then meet whole stretches only.
    """
    return 0 if radices[0] % 2 else radices[0]
