"""The naive transpose: the baseline for ``spectrod.fft.transpose``."""

from typing import Any

import numpy as np

from spectrod.fft.stage import Lines
from spectrod.fft.transpose import tile_shape
from spectrod.opencl.context import Context

_GROUPS_MAX = 65535
"""Work-groups along any dimension but the first: the limit of NVIDIA's drivers."""


class NaiveTranspose:
    """Transpose matrices of complex64 values without tiles, bit for bit; not thread-safe.

    Parameters
    ----------
    context : Context
        The device.

    Raises
    ------
    KernelBuildError
        If the kernel does not compile.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._group = tile_shape(context.device, 8)
        self._kernel = context.kernel("baselines/transpose_naive.cl", "transpose_naive", ())

    def launch(self, out: Lines, source: Lines, batch: int, rows: int, columns: int) -> Any:
        """Queue the transposes of a batch; see ``DeviceTranspose.launch``."""
        self._kernel.set_args(
            *(out.buffer, np.uint64(out.first), np.uint64(out.pitch)),
            *(source.buffer, np.uint64(source.first), np.uint64(source.pitch)),
            *(np.uint64(rows), np.uint64(columns), np.uint64(batch)),
        )
        across, down = self._group
        n_rows = down * min(-(-rows // down), _GROUPS_MAX)
        global_size = (-(-columns // across) * across, n_rows, min(batch, _GROUPS_MAX))
        return self._context.launch(self._kernel, global_size, (across, down, 1))
