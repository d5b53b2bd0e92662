"""Transposes on an OpenCL device, of matrices of any size."""

from collections.abc import Iterator

import numpy as np

from spectrod.opencl.context import Context
from spectrod.units import Float32Array

_TILE, _TILE_ROWS = 32, 8
# 16 MiB each way: far above a transfer's fixed cost, below any device's limit.
_BLOCK_VALUES = 1 << 22


class Transposer:
    """Transpose matrices block by block through two buffers, allocated once.

    Parameters
    ----------
    context : Context
        The device.
    block_values : int
        Values that a buffer holds, >= 1.

    Raises
    ------
    DeviceError
        If the device has no memory for the buffers.
    """

    def __init__(self, context: Context, block_values: int = _BLOCK_VALUES) -> None:
        self._context = context
        self._block_values = block_values
        self._in = context.allocate(4 * block_values)
        self._out = context.allocate(4 * block_values)
        defines = (("TILE", _TILE), ("TILE_ROWS", _TILE_ROWS))
        self._kernel = context.kernel("transpose.cl", "transpose", defines)
        self._kernel.set_arg(0, self._out)
        self._kernel.set_arg(1, self._in)

    def transpose(self, matrix: Float32Array) -> Float32Array:
        """Transpose a (rows, columns) float32 matrix into a new one, bit for bit."""
        rows, columns = matrix.shape
        result = np.empty((columns, rows), np.float32)
        for row_range, column_range in self._blocks(rows, columns):
            result[column_range, row_range] = self._block(matrix[row_range, column_range])
        return result

    def _blocks(self, rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
        if rows == 0 or columns == 0:
            return
        width = min(columns, self._block_values)
        height = self._block_values // width
        for top in range(0, rows, height):
            for left in range(0, columns, width):
                yield slice(top, min(top + height, rows)), slice(left, min(left + width, columns))

    def _block(self, block: Float32Array) -> Float32Array:
        rows, columns = block.shape
        transposed = np.empty((columns, rows), np.float32)
        self._context.upload(self._in, np.ascontiguousarray(block))
        self._kernel.set_arg(2, np.uint64(rows))
        self._kernel.set_arg(3, np.uint64(columns))
        n_tiles = -(-rows // _TILE) * -(-columns // _TILE)
        self._context.launch(self._kernel, (_TILE * n_tiles, _TILE_ROWS), (_TILE, _TILE_ROWS))
        self._context.download(transposed, self._out)
        return transposed
