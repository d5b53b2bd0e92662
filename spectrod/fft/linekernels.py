"""What the small kernels around a transform have in common: their launch over lines."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft.defines import KernelDefines
from spectrod.fft.stage import Precision, TransformSpec
from spectrod.opencl.arguments import Arguments
from spectrod.opencl.context import REGION_ALIGN, Context

_GROUP_ITEMS = 64
# A CPU saves the cost of starting items; a GPU hides memory's latency by many, but what a line
# needs once, a division of 64 bits for one, should serve several values.
_CPU_ITEM_VALUES = 16
_GPU_ITEM_VALUES = 4
# Groups along any dimension but the first: what NVIDIA's drivers take.
_GROUPS_MAX = 65535
_NONE = KernelDefines()


class LineKernel:
    """A kernel of ``fft_move.cl``, ``fft_real.cl`` or ``fft_chirp.cl``; one thread at a time.

    Parameters
    ----------
    context : Context
        The device.
    file, name : str
        Of the kernel.
    precision : {"single", "double"}
        Of its real numbers.
    defines : KernelDefines
        What else shapes it.

    Raises
    ------
    KernelBuildError
        If it does not compile.
    """

    def __init__(
        self,
        context: Context,
        file: str,
        name: str,
        precision: Precision,
        defines: KernelDefines = _NONE,
    ) -> None:
        pairs = replace(defines, double=precision == "double").pairs()
        self._context = context
        item_values = _CPU_ITEM_VALUES if context.device.kind == "cpu" else _GPU_ITEM_VALUES
        self._group_values = _GROUP_ITEMS * item_values
        self._arguments = Arguments(context.kernel(file, name, pairs))

    def launch(self, lines: int, values: int, *arguments: Any) -> Any:
        """Queue it over lines of a number of values, with integers as ulong; return the event."""
        self._arguments.set(0, (np.uint64(a) if isinstance(a, int) else a for a in arguments))
        across = -(-values // self._group_values) * _GROUP_ITEMS
        size = across, min(lines, _GROUPS_MAX)
        return self._context.launch(self._arguments.kernel, size, (_GROUP_ITEMS, 1))


def move_kernel(
    context: Context, precision: Precision, kinds: str, *, flag: str | None = None
) -> LineKernel:
    """Kernel that moves lines, from "r" or "c" to "r" or "c"; HERMITIAN or CONJUGATE if flagged."""
    defines = KernelDefines(
        real_in=kinds[0] == "r",
        real_out=kinds[1] == "r",
        hermitian=flag == "HERMITIAN",
        conjugate=flag == "CONJUGATE",
    )
    return LineKernel(context, "fft_move.cl", "move_lines", precision, defines)


def complex_table(context: Context, spec: TransformSpec, values: NDArray[np.complex128]) -> Any:
    """Table on the device, rounded to the precision of a transform."""
    return context.table(
        values.astype(np.complex64 if spec.precision == "single" else np.complex128)
    )


def aligned(n_bytes: int) -> int:
    """Bytes up to where the next part of a buffer may start."""
    return -(-n_bytes // REGION_ALIGN) * REGION_ALIGN


def rest_of(context: Context, scratch: Any, first_byte: int) -> Any:
    """Scratch behind what its owner uses itself; None if that is all."""
    n_bytes = scratch.size - first_byte
    return context.region(scratch, first_byte, n_bytes) if n_bytes > 0 else None
