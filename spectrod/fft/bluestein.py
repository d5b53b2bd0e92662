"""Transforms of any length as a convolution with a chirp, through a longer, smooth length."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft.lengths import fast_lengths, is_smooth, next_fast_len
from spectrod.fft.linekernels import LineKernel, aligned, complex_table, rest_of
from spectrod.fft.radices import PRIME_MAX
from spectrod.fft.stage import LENGTH_MAX, Lines, Params, Stage, TransformSpec
from spectrod.fft.twiddles import unit_roots
from spectrod.lib.errors import ConfigError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

MakeStage = Callable[[Context, TransformSpec], Stage]
"""``spectrod.fft.select.make_stage``, which itself chooses among families such as this one."""

BLUESTEIN_LENGTH_MAX = (LENGTH_MAX + 1) // 2
"""Greatest length of all, whatever its factors, that has a longer one to go through."""

_CANDIDATES = 4
_FILE = "fft_chirp.cl"


@dataclass(frozen=True, slots=True)
class BluesteinParams:
    """Length of the transforms that do the convolution, at least 2 n - 1."""

    length: int


class BluesteinStage:
    """Stage of the family: three small kernels around two forward transforms; lines are dense."""

    strided = False

    def __init__(
        self, context: Context, spec: TransformSpec, m: int, make_stage: MakeStage
    ) -> None:
        if not 2 * spec.n - 1 <= m <= LENGTH_MAX:
            raise ConfigError(f"length={m}: must be 2 n - 1={2 * spec.n - 1} to {LENGTH_MAX}")
        self.spec = spec
        self._context = context
        self._m = m
        self._stage = make_stage(context, TransformSpec(m, precision=spec.precision))
        self._real = np.float32 if spec.precision == "single" else np.float64
        names = "multiply_pad", "multiply_spectrum", "multiply_crop"
        kernels = [LineKernel(context, _FILE, name, spec.precision) for name in names]
        self._pad, self._multiply, self._crop = kernels
        chirp = chirp_table(spec.n, inverse=spec.inverse)
        self._chirp = complex_table(context, spec, chirp)
        self._spectrum = complex_table(context, spec, chirp_spectrum(chirp, m))

    def scratch_bytes(self, outer: int, inner: int) -> int:
        """Space for the padded lines, and what the longer transform itself needs."""
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
        """Queue the convolution, as ``Stage.launch`` says."""
        n, m = self.spec.n, self._m
        work = self._context.region(scratch, 0, self._work_bytes(outer))
        rest = rest_of(self._context, scratch, aligned(self._work_bytes(outer)))
        lines = Lines(work, m)
        origin = source.buffer, source.first, source.pitch
        target = out.buffer, out.first, out.pitch
        result = work, self._chirp, outer, n, m, self._real(scale)
        return [
            self._pad.launch(outer, m, work, *origin, self._chirp, outer, n, m),
            *self._stage.launch(lines, lines, outer, 1, 1.0, rest),
            self._multiply.launch(outer, m, work, self._spectrum, outer, m),
            *self._stage.launch(lines, lines, outer, 1, 1.0, rest),
            self._crop.launch(outer, n, *target, *result),
        ]

    def _work_bytes(self, outer: int) -> int:
        return outer * self._m * self.spec.in_value_bytes


class BluesteinFamily:
    """Any length to half of ``LENGTH_MAX``, complex."""

    name = "bluestein"
    params_type = BluesteinParams

    def __init__(self, make_stage: MakeStage) -> None:
        self._make_stage = make_stage

    def supports(self, spec: TransformSpec, device: DeviceInfo) -> bool:  # noqa: ARG002
        """Whether the longer length is one that there is."""
        return spec.kind == "c2c" and spec.n <= BLUESTEIN_LENGTH_MAX

    def candidates(
        self,
        spec: TransformSpec,
        device: DeviceInfo,  # noqa: ARG002 - of the interface
    ) -> Iterable[BluesteinParams]:
        """List the least lengths that will do, and the least power of two.

        Only the first for smooth n: two transforms of twice the length are no match for other
        families, and round more.
        """
        least = next_fast_len(2 * spec.n - 1)
        if is_smooth(spec.n, PRIME_MAX):
            return [BluesteinParams(least)] if least <= LENGTH_MAX else []
        lengths = (length for length in fast_lengths() if length >= least)
        power = 1 << (least - 1).bit_length()
        choice = dict.fromkeys([*islice(lengths, _CANDIDATES), power])
        return [BluesteinParams(length) for length in choice if length <= LENGTH_MAX]

    def build(self, context: Context, spec: TransformSpec, params: Params) -> BluesteinStage:
        """Compile the stage."""
        assert isinstance(params, BluesteinParams)
        return BluesteinStage(context, spec, params.length, self._make_stage)


def chirp_table(n: int, *, inverse: bool) -> NDArray[np.complex128]:
    """``exp(-pi i j^2 / n)``, j = 0 to n - 1, plus if inverse; the phases are exact integers."""
    j = np.arange(n, dtype=np.int64)
    chirp = unit_roots(j * j % (2 * n), 2 * n)
    return chirp.conj() if inverse else chirp


def chirp_spectrum(chirp: NDArray[np.complex128], m: int) -> NDArray[np.complex128]:
    """Spectrum over m of the conjugate chirp around zero, divided by m, (m,) complex128."""
    around = np.zeros(m, np.complex128)
    around[: len(chirp)] = chirp.conj()
    around[m - len(chirp) + 1 :] = chirp[:0:-1].conj()
    spectrum: NDArray[np.complex128] = np.fft.fft(around) / m
    return spectrum
