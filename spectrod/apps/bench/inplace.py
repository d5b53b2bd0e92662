"""Transforms without memory besides their data: digit reversal, then stages in place.

For use when memory is short. In place, the reversal moves values along the cycles of its
permutation; out of place, the first stage reads in reversed order instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft.stage import Lines, Params, Stage, TransformFamily, TransformSpec
from spectrod.fft.twiddles import unit_roots
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import Context, Size
from spectrod.opencl.devices import DeviceInfo

RADICES = (2, 3, 4, 5, 7, 8, 16)
_LARGEST = (8, 16, 4, 2)
_GROUP_ITEMS = 64
# A table of all roots would need as much memory as a line: above this length there are two tables,
# of about the square root.
_ONE_TABLE_MAX = 1 << 12
# Groups along any dimension but the first: the limit of NVIDIA's drivers.
_GROUPS_MAX = 65535


@dataclass(frozen=True, slots=True)
class InplaceParams:
    """Shape of ``fft_inplace.cl``.

    Attributes
    ----------
    radices : tuple of int
        Radices of the stages, in order: 2, 3, 4, 5, 7, 8 or 16; their product is n. The closer
        they are to a palindrome, the shorter the cycles of the digit reversal.
    group_items : int
        Work-items per work-group.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if a rule is violated.
    """

    radices: tuple[int, ...]
    group_items: int = _GROUP_ITEMS

    def __post_init__(self) -> None:
        if not self.radices or not set(self.radices) <= set(RADICES):
            raise ConfigError(f"radices={self.radices}: must be one or more of {RADICES}")
        if self.group_items < 1:
            raise ConfigError(f"group_items={self.group_items}: must be at least 1")

    def check(self, spec: TransformSpec, device: DeviceInfo) -> None:
        """Check that a transform and a device fit; raises ConfigError or DeviceError."""
        if prod(self.radices) != spec.n:
            raise ConfigError(f"radices={self.radices}: their product must be n={spec.n}")
        if self.group_items > device.max_work_group_size:
            limit = device.max_work_group_size
            raise DeviceError(f"group_items={self.group_items}: {device.label} has at most {limit}")


def mirrored_radices(n: int, largest: int = 8) -> tuple[int, ...]:
    """Return radices of a length that form a palindrome, except for unpaired factors.

    A palindrome's digit reversal swaps pairs. Factors in the middle make its cycles longer, but at
    most to twice the product of the middle, which is 1680 in the worst case.

    Parameters
    ----------
    n : int
        Length, >= 2.
    largest : {2, 4, 8, 16}
        Largest power of two among the radices.

    Returns
    -------
    radices : tuple of int
        Radices; empty if n has a prime factor above 7.

    References
    ----------
    .. [1] R. Singleton, "An algorithm for computing the mixed radix fast Fourier transform", 1969
       (square factors around the square-free ones).
    """
    outer: list[int] = []
    middle: list[int] = []
    for prime in (7, 5, 3):
        exponent, n = _extract(n, prime)
        outer += [prime] * (exponent // 2)
        middle += [prime] * (exponent % 2)
    bits, n = _extract(n, 2)
    if n > 1:
        return ()
    halves, centre = _mirrored_twos(bits, largest.bit_length() - 1)
    outer = sorted(outer + halves, reverse=True)
    return (*outer, *centre, *middle, *reversed(outer))


def _extract(n: int, prime: int) -> tuple[int, int]:
    """Return the exponent of a prime in n, and the rest of n."""
    exponent = 0
    while n % prime == 0:
        exponent, n = exponent + 1, n // prime
    return exponent, n


def _mirrored_twos(bits: int, widest: int) -> tuple[list[int], list[int]]:
    """Return powers of two of one half and of the middle, with the fewest stages."""
    centres = range(bits % 2, min(bits, widest) + 1, 2)
    centre = min(centres, key=lambda c: (2 * -(-(bits - c) // 2 // widest) + (c > 0), c))
    half = (bits - centre) // 2
    stages = -(-half // widest)
    widths = [half // stages + (i < half % stages) for i in range(stages)]
    return [1 << width for width in widths], [1 << centre] if centre else []


def reversed_digits(radices: tuple[int, ...], low_stages: int) -> NDArray[np.uint32]:
    """Return tables of the digit reversal; two entries add up to an index.

    Parameters
    ----------
    radices : tuple of int
        Radices of the stages, in order.
    low_stages : int
        Number of stages in the first table.

    Returns
    -------
    table : (low + n / low,) uint32
        With ``low`` the product of the first radices: the stages need, at index p, the input value
        at ``table[p % low] + table[low + p // low]``.
    """
    n = prod(radices)
    weights = [n // prod(radices[: i + 1]) for i in range(len(radices))]
    low = _digit_sums(radices[:low_stages], weights[:low_stages])
    high = _digit_sums(radices[low_stages:], weights[low_stages:])
    return np.concatenate([low, high]).astype(np.uint32)


def _digit_sums(radices: tuple[int, ...], weights: list[int]) -> NDArray[np.int64]:
    """Sum the weighted digits of every number; the first digit is the least significant."""
    sums = np.zeros(1, np.int64)
    for radix, weight in zip(radices, weights, strict=True):
        sums = (np.arange(radix)[:, None] * weight + sums).ravel()
    return sums


class _InplaceStage:
    """Reversal and stages of one spec; builds kernels for inner lines on first use."""

    strided = True

    def __init__(self, context: Context, spec: TransformSpec, params: InplaceParams) -> None:
        self.spec = spec
        self._context = context
        self._params = params
        self._real = np.dtype(f"f{spec.real_bytes}").type
        low_stages = _low_stages(params.radices)
        self._low = prod(params.radices[:low_stages])
        self._fine = spec.n if spec.n <= _ONE_TABLE_MAX else 1 << (spec.n.bit_length() // 2)
        self._digits = context.table(reversed_digits(params.radices, low_stages))
        self._roots = context.table(self._root_tables())
        self._kernels: dict[tuple[str, int, bool], Any] = {}
        for radix in params.radices:
            self._kernel("stage", radix, strided=False)

    def scratch_bytes(self, outer: int, inner: int) -> int:  # noqa: ARG002 - the interface's names
        """Return 0: no scratch memory; see ``Stage``."""
        return 0

    def launch(
        self,
        out: Lines,
        source: Lines,
        outer: int,
        inner: int,
        scale: float,
        scratch: Any = None,  # noqa: ARG002 - the interface's name
    ) -> list[Any]:
        """See ``Stage``."""
        radices = self._params.radices
        shape = outer, inner
        scales = [1.0] * (len(radices) - 1) + [scale]
        if out == source:
            events = self._reverse(out, shape)
            span, left = 1, 0
        else:
            events = self._gather(out, source, shape, scales[0])
            span, left = radices[0], 1
        for radix, factor in zip(radices[left:], scales[left:], strict=True):
            events += self._stage(out, radix, span, shape, factor)
            span *= radix
        return events

    def _reverse(self, data: Lines, shape: Size) -> list[Any]:
        arguments = *_place(data), self._digits
        return self._run("reverse_digits", self._params.radices[0], shape, self.spec.n, arguments)

    def _gather(self, out: Lines, source: Lines, shape: Size, scale: float) -> list[Any]:
        radix = self._params.radices[0]
        arguments = *_place(out), *_place(source), self._digits, self._real(scale)
        return self._run("first_stage", radix, shape, self.spec.n // radix, arguments)

    def _stage(self, data: Lines, radix: int, span: int, shape: Size, scale: float) -> list[Any]:
        stride = self.spec.n // (span * radix)
        numbers = np.uint32(span), np.uint32(stride), self._real(scale)
        arguments = *_place(data), self._roots, *numbers
        return self._run("stage", radix, shape, self.spec.n // radix, arguments)

    def _run(
        self, name: str, radix: int, shape: Size, rows_a_line: int, arguments: tuple[Any, ...]
    ) -> list[Any]:
        """Launch over all rows, in several launches if they exceed the limit of a dimension."""
        outer, inner = shape
        kernel = self._kernel(name, radix, strided=inner > 1)
        n_rows = outer * rows_a_line
        across, down = self._group(inner)
        step = _GROUPS_MAX * down if inner > 1 else n_rows
        events = []
        for first in range(0, n_rows, step):
            kernel.set_args(*arguments, *map(np.uint64, (inner, first, n_rows)))
            rows = _round_up(min(step, n_rows - first), down)
            global_size: Size = (_round_up(inner, across), rows)
            local_size: Size = (across, down)
            if inner == 1:
                global_size, local_size = global_size[1:], local_size[1:]
            events.append(self._context.launch(kernel, global_size, local_size))
        return events

    def _group(self, inner: int) -> Size:
        """Return the items of a group along inner lines and along rows."""
        items = self._params.group_items
        across = min(items, 1 << (inner - 1).bit_length())
        return across, max(1, items // across)

    def _kernel(self, name: str, radix: int, *, strided: bool) -> Any:
        key = name, radix, strided
        if key not in self._kernels:
            double = (("DOUBLE", 1),) if self.spec.precision == "double" else ()
            defines = (
                *double,
                ("LENGTH", self.spec.n),
                ("RADIX", radix),
                ("LOW", self._low),
                ("FINE", self._fine),
                ("STRIDED", int(strided)),
                ("INVERSE", int(self.spec.inverse)),
            )
            self._kernels[key] = self._context.kernel("baselines/fft_inplace.cl", name, defines)
        return self._kernels[key]

    def _root_tables(self) -> Any:
        n, fine = self.spec.n, self._fine
        numbers = np.concatenate([np.arange(fine), np.arange(0, n, fine)])
        return unit_roots(numbers, n).astype(f"c{self.spec.out_value_bytes}")


def _low_stages(radices: tuple[int, ...]) -> int:
    """Return the number of stages with a product nearest to the square root: shortest tables."""
    half = log2(prod(radices)) / 2.0
    distances = [abs(log2(prod(radices[:i])) - half) for i in range(len(radices) + 1)]
    return int(np.argmin(distances))


def _place(lines: Lines) -> tuple[Any, ...]:
    return lines.buffer, np.uint64(lines.first), np.uint64(lines.pitch)


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step


class _InplaceFamily:
    """Complex transforms of 2^a 3^b 5^c 7^d, without scratch memory."""

    name = "inplace"
    params_type = InplaceParams

    def supports(self, spec: TransformSpec, device: DeviceInfo) -> bool:
        """See ``Family``: complex, no prime factor above 7, from 2 on."""
        is_supported = spec.kind == "c2c" and len(mirrored_radices(spec.n)) > 0
        return is_supported and (spec.precision == "single" or device.has_fp64)

    def candidates(self, spec: TransformSpec, device: DeviceInfo) -> Iterator[InplaceParams]:
        """See ``Family``: radices to 8, other largest radices, and groups of other sizes."""
        self._require(spec, device)
        seen = set()
        for group_items in (_GROUP_ITEMS, 128, 256, 16):
            for largest in _LARGEST:
                items = min(group_items, device.max_work_group_size)
                params = InplaceParams(mirrored_radices(spec.n, largest), items)
                if params not in seen:
                    seen.add(params)
                    yield params

    def build(self, context: Context, spec: TransformSpec, params: Params) -> Stage:
        """See ``Family``."""
        assert isinstance(params, InplaceParams)
        self._require(spec, context.device)
        params.check(spec, context.device)
        return _InplaceStage(context, spec, params)

    def _require(self, spec: TransformSpec, device: DeviceInfo) -> None:
        if not self.supports(spec, device):
            raise ConfigError(
                f"n={spec.n}, kind={spec.kind}, {spec.precision}: in-place transforms are c2c of "
                f"2^a 3^b 5^c 7^d from 2 on, double only where the device does"
            )


INPLACE: TransformFamily = _InplaceFamily()
