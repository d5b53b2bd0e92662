"""Transposes on an OpenCL device, of matrices of any size: in its memory, and from the host's."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spectrod.dsp.units import Float32Array
from spectrod.fft.stage import Lines
from spectrod.lib.errors import ConfigError
from spectrod.opencl.context import Context, Size
from spectrod.opencl.devices import DeviceInfo

_TILE_MAX, _GROUP_ITEMS_MAX = 32, 256
# Fastest on two x86-64 cores with AVX-512 for values of 4, 8 and 16 bytes, of 4, 8, 16.
_BLOCK = 8
# 16 MiB each way: far above a transfer's fixed cost, below any device's limit.
_BLOCK_VALUES = 1 << 22


class DeviceTranspose:
    """Transpose matrices from one buffer to another, bit for bit; one thread at a time.

    Parameters
    ----------
    context : Context
        The device.
    value_bytes : {4, 8, 16}
        A real or complex value in single or double precision.
    in_registers : bool, optional
        Whether tiles are blocks in a work-item's registers, as by default on CPUs, or go through
        padded local memory.

    Raises
    ------
    ConfigError
        If value_bytes is another number.
    KernelBuildError
        If the kernel does not compile.
    """

    def __init__(
        self,
        context: Context,
        value_bytes: int,
        *,
        in_registers: bool | None = None,
    ) -> None:
        if value_bytes not in (4, 8, 16):
            raise ConfigError(f"value_bytes={value_bytes}: must be 4, 8 or 16")
        if in_registers is None:
            in_registers = context.device.kind == "cpu"
        self._context = context
        self._tile, self._tile_rows = tile_shape(context.device, value_bytes)
        defines = (
            ("VALUE_BYTES", value_bytes),
            ("TILE", self._tile),
            ("TILE_ROWS", self._tile_rows),
            ("BLOCK", _BLOCK),
        )
        if in_registers:
            name, self._sizes = "transpose_blocks", self._block_sizes
        else:
            name, self._sizes = "transpose", self._tile_sizes
        self._kernel = context.kernel("transpose.cl", name, defines)

    def launch(self, out: Lines, source: Lines, batch: int, rows: int, columns: int) -> Any:
        """Queue the transposes of a batch of matrices and return the event.

        Parameters
        ----------
        out : Lines
            (batch, columns, rows) values.
        source : Lines
            (batch, rows, columns) values; not in the same memory. Within a matrix rows are dense;
            ``pitch`` is from one matrix to the next.
        batch, rows, columns : int
            Counts, >= 1.

        Raises
        ------
        DeviceError
            If the device fails.
        """
        arguments = [
            *(out.buffer, np.uint64(out.first), np.uint64(out.pitch)),
            *(source.buffer, np.uint64(source.first), np.uint64(source.pitch)),
            *(np.uint64(rows), np.uint64(columns)),
        ]
        self._kernel.set_args(*arguments)
        return self._context.launch(self._kernel, *self._sizes(batch, rows, columns))

    def _tile_sizes(self, batch: int, rows: int, columns: int) -> tuple[Size, Size]:
        n_tiles = batch * _ceil(rows, self._tile) * _ceil(columns, self._tile)
        return (self._tile * n_tiles, self._tile_rows), (self._tile, self._tile_rows)

    def _block_sizes(self, batch: int, rows: int, columns: int) -> tuple[Size, Size]:
        return (batch * _ceil(rows, _BLOCK) * _ceil(columns, _BLOCK),), (1,)


def tile_shape(device: DeviceInfo, value_bytes: int) -> tuple[int, int]:
    """Choose the edge of a tile and the rows that a group moves at once, within the limits."""
    tile = _TILE_MAX
    while tile > 1 and not _fits(tile, value_bytes, device):
        tile //= 2
    items = min(device.max_work_group_size, _GROUP_ITEMS_MAX)
    tile_rows = tile
    while tile * tile_rows > items:
        tile_rows //= 2
    return tile, tile_rows


def _fits(tile: int, value_bytes: int, device: DeviceInfo) -> bool:
    tile_bytes = tile * (tile + 1) * value_bytes
    return tile <= device.max_work_group_size and tile_bytes <= device.local_mem_bytes


def _ceil(count: int, step: int) -> int:
    return -(-count // step)


class Transposer:
    """Transpose matrices of the host block by block through two buffers, allocated once.

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
        self._in = Lines(context.allocate(4 * block_values), pitch=0)
        self._out = Lines(context.allocate(4 * block_values), pitch=0)
        self._transpose = DeviceTranspose(context, value_bytes=4)

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
        self._context.upload(self._in.buffer, np.ascontiguousarray(block))
        self._transpose.launch(self._out, self._in, 1, rows, columns)
        self._context.download(transposed, self._out.buffer)
        return transposed
