"""The plain radix-2 Stockham transform: a baseline for measurements only.

One launch per pass, log2(n) of them, each of which reads and writes all data. Its twiddle
modes and vectors are the alternatives of E. Bainville, "OpenCL fast Fourier transform", 2010.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from spectrod.fft.stage import (
    LENGTH_MAX,
    Lines,
    Params,
    Stage,
    TransformFamily,
    TransformSpec,
)
from spectrod.fft.twiddles import unit_roots
from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

TwiddleMode = Literal["table", "sincos", "sin_cos", "native"]
TWIDDLE_MODES: tuple[TwiddleMode, ...] = get_args(TwiddleMode)

_VECTORS = (1, 2, 4)
_GROUP_ITEMS = 128


@dataclass(frozen=True, slots=True)
class Radix2Params:
    """Shape of ``fft_radix2.cl``.

    Attributes
    ----------
    twiddles : {"table", "sincos", "sin_cos", "native"}
        Source of the factors: the host's table, the device's sincos, its sin and cos, or its
        native functions, which are single precision with an error that the driver chooses.
    vector : {1, 2, 4}
        Butterflies per work-item, in the lanes of a vector.
    group_items : int
        Work-items per work-group.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if a rule is violated.
    """

    twiddles: TwiddleMode = "table"
    vector: int = 1
    group_items: int = _GROUP_ITEMS

    def __post_init__(self) -> None:
        if self.twiddles not in TWIDDLE_MODES:
            raise ConfigError(f"twiddles={self.twiddles!r}: must be one of {TWIDDLE_MODES}")
        if self.vector not in _VECTORS:
            raise ConfigError(f"vector={self.vector}: must be 1, 2 or 4")
        if self.group_items < 1:
            raise ConfigError(f"group_items={self.group_items}: must be at least 1")

    def check(self, spec: TransformSpec, device: DeviceInfo) -> None:
        """Check that a transform and a device fit; raises ConfigError or DeviceError."""
        if self.vector > spec.n // 2:
            raise ConfigError(f"vector={self.vector}: must be at most n / 2 = {spec.n // 2}")
        if self.twiddles == "native" and spec.precision == "double":
            raise ConfigError("twiddles='native': must be another in double precision")
        if self.group_items > device.max_work_group_size:
            limit = device.max_work_group_size
            raise DeviceError(f"group_items={self.group_items}: {device.label} has at most {limit}")


class _Radix2Stage:
    """All passes of one spec, alternating between the output and scratch memory."""

    strided = False

    def __init__(self, context: Context, spec: TransformSpec, params: Radix2Params) -> None:
        self.spec = spec
        self._params = params
        self._context = context
        self._passes = spec.n.bit_length() - 1
        self._real = np.dtype(f"f{spec.real_bytes}").type
        self._kernel = context.kernel("baselines/fft_radix2.cl", "fft_radix2_pass", self._defines())
        self._roots = context.table(self._table())
        self._kernel.set_arg(6, self._roots)

    def scratch_bytes(self, outer: int, inner: int) -> int:
        """See ``Stage``: the data once, twice if an odd number of passes may be in place."""
        copies = 0 if self._passes == 1 else 1 + self._passes % 2
        return copies * outer * inner * self.spec.n * self.spec.out_value_bytes

    def launch(
        self,
        out: Lines,
        source: Lines,
        outer: int,
        inner: int,
        scale: float,
        scratch: Any = None,
    ) -> list[Any]:
        """See ``Stage``."""
        assert inner == 1
        events = []
        for number, target in enumerate(self._targets(out, outer, scratch)):
            is_last = number == self._passes - 1
            factor = scale if is_last else 1.0
            events.append(self._launch_pass(target, source, 1 << number, outer, factor))
            source = target
        return events

    def _targets(self, out: Lines, lines: int, scratch: Any) -> Iterator[Lines]:
        """Yield the target of each pass: never its source, and finally out."""
        n = self.spec.n
        for left in reversed(range(self._passes)):
            if left % 2 == 1:
                yield Lines(scratch, n)
            elif left == self._passes - 1 and left > 0:
                yield Lines(scratch, n, lines * n)  # out may be the source
            else:
                yield out

    def _launch_pass(self, out: Lines, source: Lines, span: int, lines: int, scale: float) -> Any:
        places = {0: out, 3: source}
        for index, place in places.items():
            self._kernel.set_arg(index, place.buffer)
            self._kernel.set_arg(index + 1, np.uint64(place.first))
            self._kernel.set_arg(index + 2, np.uint64(place.pitch))
        self._kernel.set_arg(7, np.uint32(span))
        self._kernel.set_arg(8, np.uint64(lines))
        self._kernel.set_arg(9, self._real(scale))
        group = self._params.group_items
        groups = -(-lines * self.spec.n // 2 // self._params.vector // group)
        return self._context.launch(self._kernel, (groups * group,), (group,))

    def _defines(self) -> tuple[tuple[str, int], ...]:
        optional = {
            "LANES": self._params.vector if self._params.vector > 1 else 0,
            "INVERSE": int(self.spec.inverse),
            "DOUBLE": int(self.spec.precision == "double"),
        }
        return (
            ("LENGTH", self.spec.n),
            ("TWIDDLES", TWIDDLE_MODES.index(self._params.twiddles)),
            *((name, value) for name, value in optional.items() if value),
        )

    def _table(self) -> Any:
        n_roots = self.spec.n // 2 if self._params.twiddles == "table" else 1
        roots = unit_roots(np.arange(n_roots), self.spec.n)
        return roots.astype(f"c{self.spec.out_value_bytes}")


class _Radix2Family:
    """Complex transforms of powers of two, out of place internally."""

    name = "radix2"
    params_type = Radix2Params

    def supports(self, spec: TransformSpec, device: DeviceInfo) -> bool:
        """See ``Family``: complex, a power of two from 2 on."""
        is_power = 2 <= spec.n <= LENGTH_MAX and spec.n & (spec.n - 1) == 0
        return is_power and spec.kind == "c2c" and (spec.precision == "single" or device.has_fp64)

    def candidates(self, spec: TransformSpec, device: DeviceInfo) -> Iterator[Radix2Params]:
        """See ``Family``: vectors and work-groups, all with the host's table."""
        self._require(spec, device)
        first = Radix2Params(group_items=min(_GROUP_ITEMS, device.max_work_group_size))
        yield first
        for vector in _VECTORS:
            for group_items in (32, 64, 128, 256):
                params = Radix2Params("table", vector, group_items)
                fits = vector <= spec.n // 2 and group_items <= device.max_work_group_size
                if fits and params != first:
                    yield params

    def build(self, context: Context, spec: TransformSpec, params: Params) -> Stage:
        """See ``Family``."""
        assert isinstance(params, Radix2Params)
        self._require(spec, context.device)
        params.check(spec, context.device)
        return _Radix2Stage(context, spec, params)

    def _require(self, spec: TransformSpec, device: DeviceInfo) -> None:
        if not self.supports(spec, device):
            raise ConfigError(
                f"n={spec.n}, kind={spec.kind}, {spec.precision}: the radix-2 baseline computes "
                f"c2c of powers of two from 2 on, double only where the device does"
            )


RADIX2: TransformFamily = _Radix2Family()
