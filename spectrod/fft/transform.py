"""One transform on one device, of lines in the host's memory or in the device's."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.fft.select import make_stage
from spectrod.fft.stage import Lines, Stage, TransformSpec
from spectrod.fft.transposed import TransposedStage
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.hostmemory import host_memory

_PIECE_BYTES_MAX = 1 << 30
_MEMORY_SHARE = 8


class LineTransform:
    """Transforms of lines along the middle axis of (outer, n, inner) arrays, in pieces that fit.

    Any number of threads; they take turns at the device.

    Parameters
    ----------
    context : Context
        The device.
    spec : TransformSpec
        What to compute.
    piece_bytes : int, optional
        Most memory on the device, of input, output and scratch together, in which more than one
        line is transformed at once; by default a share of the device's.

    Attributes
    ----------
    table_bytes : int
        Size of its tables on the device [bytes].

    Raises
    ------
    ConfigError, DeviceError, KernelBuildError
        As ``make_stage``.
    """

    def __init__(
        self, context: Context, spec: TransformSpec, piece_bytes: int | None = None
    ) -> None:
        self.context = context
        self.spec = spec
        self._piece_bytes = piece_bytes or default_piece_bytes(context.device)
        self._memory = host_memory(context)
        before = context.table_bytes
        self._stage = make_stage(context, spec)
        self.table_bytes = context.table_bytes - before
        self._middle: Stage | None = None

    def run(self, out: NDArray[Any], source: NDArray[Any], scale: float) -> None:
        """Transform from one array of the host to another that does not overlap it.

        Parameters
        ----------
        out, source : (outer, n_out or n_in, inner)
            C-contiguous, of the precision's types.
        scale : float
            Factor of the result.

        Raises
        ------
        DeviceError
            If the device fails, or has no memory for a single line.
        """
        outer, _, inner = source.shape
        with self.context.lock:
            for rows, columns in self._pieces(outer, inner):
                self._run_piece(out[rows, :, columns], source[rows, :, columns], scale)

    def run_in_place(self, rows: NDArray[Any], inner: int, scale: float) -> None:
        """Overwrite lines of the host by their transforms.

        Parameters
        ----------
        rows : (outer, row) array
            C-contiguous; a row has room for the longer of n_in * inner and n_out * inner values.
        inner : int
            Lines a row.
        scale : float
            Factor of the result.

        Raises
        ------
        DeviceError
            If the device fails, or has no memory for a single row.
        """
        outer = rows.shape[0]
        with self.context.lock:
            for start, stop in steps(outer, self._rows_at_once(outer, inner)):
                piece = rows[start:stop]
                buffer = self._memory.both(piece)
                row_bytes = piece.strides[0]
                out = Lines(buffer, row_bytes // self.spec.out_value_bytes)
                source = Lines(buffer, row_bytes // self.spec.in_value_bytes)
                self._launch(out, source, stop - start, inner, scale)
                self._memory.collect(piece, buffer)

    def run_on_device(
        self, out: Lines, source: Lines, outer: int, inner: int, scale: float
    ) -> list[Any]:
        """Queue the transform of lines that are on the device, as ``Stage.launch``; its events."""
        with self.context.lock:
            return [
                event
                for start, stop in steps(outer, self._rows_at_once(outer, inner))
                for event in self._launch(
                    _from_row(out, start), _from_row(source, start), stop - start, inner, scale
                )
            ]

    def _run_piece(self, out: NDArray[Any], source: NDArray[Any], scale: float) -> None:
        outer, n_in, inner = source.shape
        source = np.ascontiguousarray(source)
        result = np.ascontiguousarray(out)  # out itself, unless it is some columns only
        origin = Lines(self._memory.source(source), n_in * inner)
        buffer = self._memory.target(result)
        self._launch(Lines(buffer, out.shape[1] * inner), origin, outer, inner, scale)
        self._memory.collect(result, buffer)
        if result is not out:
            out[...] = result

    def _launch(self, out: Lines, source: Lines, outer: int, inner: int, scale: float) -> list[Any]:
        stage = self._stage_for(inner)
        scratch = self.context.workspace.get("scratch", stage.scratch_bytes(outer, inner))
        return stage.launch(out, source, outer, inner, scale, scratch)

    def _stage_for(self, inner: int) -> Stage:
        if inner == 1 or self._stage.strided:
            return self._stage
        if self._middle is None:
            self._middle = TransposedStage(self.context, self._stage)
        return self._middle

    def _pieces(self, outer: int, inner: int) -> Iterator[tuple[slice, slice]]:
        """Rows first; columns of a single row only where a whole one does not fit."""
        if outer == 0 or inner == 0:
            return
        if self._fits(outer, inner):
            yield slice(0, outer), slice(0, inner)
            return
        columns = halved(inner, lambda count: self._fits(1, count))
        rows = self._rows_at_once(outer, inner) if columns == inner else 1
        for top, bottom in steps(outer, rows):
            for left, right in steps(inner, columns):
                yield slice(top, bottom), slice(left, right)

    def _rows_at_once(self, outer: int, inner: int) -> int:
        return halved(outer, lambda count: self._fits(count, inner))

    def _fits(self, outer: int, inner: int) -> bool:
        spec = self.spec
        line_bytes = spec.n_in * spec.in_value_bytes + spec.n_out * spec.out_value_bytes
        scratch_bytes = self._stage_for(inner).scratch_bytes(outer, inner)
        return outer * inner * line_bytes + scratch_bytes <= self._piece_bytes


def default_piece_bytes(device: DeviceInfo) -> int:
    """Take an eighth of the device's memory, at most what a buffer may hold and 1 GiB."""
    share = device.global_mem_bytes // _MEMORY_SHARE
    return min(share, device.max_alloc_bytes, _PIECE_BYTES_MAX)


def halved(count: int, fits: Callable[[int], bool]) -> int:
    """Count, halved until it fits or is 1."""
    while count > 1 and not fits(count):
        count = (count + 1) // 2
    return count


def steps(count: int, step: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most step, from 0 to count."""
    return ((start, min(start + step, count)) for start in range(0, count, max(1, step)))


def _from_row(lines: Lines, row: int) -> Lines:
    return replace(lines, first=lines.first + row * lines.pitch)
