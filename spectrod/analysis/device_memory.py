"""Samples and results where a device works on them: in the host's memory, or in copies of its own.

Devices that share the host's memory read samples and write results in place. For others the host
has page-locked memory; of the samples only the new ones go over, results come back, and both while
kernels run.
"""

from collections import deque
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.copying import copy
from spectrod.analysis.leases import Piece, Pool
from spectrod.analysis.window import SampleWindow, aligned_memory
from spectrod.errors import DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.transfers import Transfers
from spectrod.sample_layout import SampleLayout
from spectrod.stft.stage import Samples

_ALIGN = 16
"""Arrays of the caller's are used in place if they begin at a multiple of so many bytes."""

_UPLOADS_KEPT = 8


class DeviceWindow(Protocol):
    """What a plan needs of a window: the part of it that the device sees."""

    def samples(self, place: int) -> Samples:
        """Where frames from a place on are; all samples up to the window's end are there."""
        ...


class Target(Protocol):
    """Where a batch's rows go."""

    def buffer(self) -> Any:
        """Buffer that the kernel writes to; None where there are no rows."""
        ...

    def begin(self, events: list[Any]) -> None:
        """Begin to fetch the rows once the kernels' events have come."""
        ...

    def collect(self) -> NDArray[Any]:
        """Wait for the rows."""
        ...


class Results(Protocol):
    """Memory for the rows of a plan's batches."""

    def target(self, shape: tuple[int, ...], out: NDArray[Any] | None) -> Target:
        """Make room for rows, in an array of the caller's if there is one."""
        ...


class DeviceMemory(Protocol):
    """The way that suits a device."""

    def window(self, layout: SampleLayout, capacity: int) -> SampleWindow:
        """Make an empty window."""
        ...

    def window_over(self, layout: SampleLayout, memory: NDArray[np.uint8]) -> SampleWindow | None:
        """Make a window of samples where they are, if the device can read them there."""
        ...

    def results(self, dtype: np.dtype[Any], max_bytes: int) -> Results:
        """Make room for batches of so many bytes."""
        ...


def device_memory(context: Context) -> DeviceMemory:
    """Choose the way that suits the device."""
    return SharedMemory(context) if context.device.shares_host_memory else MirroredMemory(context)


# ---- devices that work in the host's memory


class SharedMemory:
    """Samples are read where the host writes them, and results written where it reads them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pool = Pool(self._piece)

    def window(self, layout: SampleLayout, capacity: int) -> SampleWindow:
        """Wrap memory for an empty window."""
        memory = aligned_memory(layout.step_bytes * capacity)
        _check_size(self._context, len(memory))
        return SharedWindow(self._context, layout, capacity, memory, filled=False)

    def window_over(self, layout: SampleLayout, memory: NDArray[np.uint8]) -> SampleWindow | None:
        """Wrap memory that is full of samples, where a kernel can read it."""
        if len(memory) > self._context.device.max_alloc_bytes or not _is_aligned(memory):
            return None
        capacity = len(memory) // layout.step_bytes
        return SharedWindow(self._context, layout, capacity, memory, filled=True)

    def results(self, dtype: np.dtype[Any], max_bytes: int) -> "SharedResults":
        """Lend memory that the kernels write to."""
        _check_size(self._context, max_bytes)
        return SharedResults(self._context, self._pool, dtype)

    def _piece(self, n_bytes: int) -> Piece:
        memory = aligned_memory(n_bytes)
        return Piece(memory, self._context.wrap(memory, writable=True))


class SharedWindow(SampleWindow):
    """A window that kernels read in place.

    What the host writes, it writes where no kernel reads meanwhile.
    """

    def __init__(
        self,
        context: Context,
        layout: SampleLayout,
        capacity: int,
        memory: NDArray[np.uint8],
        *,
        filled: bool,
    ) -> None:
        super().__init__(layout, capacity, memory, filled=filled)
        self._buffer = context.wrap(memory, writable=False)

    def samples(self, place: int) -> Samples:
        """Where frames from a place on are."""
        return Samples(self._buffer, self.layout.pitch(self.capacity), place)


class SharedResults:
    """Memory that is lent and written in place."""

    def __init__(self, context: Context, pool: Pool, dtype: np.dtype[Any]) -> None:
        self._context = context
        self._pool = pool
        self._dtype = dtype

    def target(self, shape: tuple[int, ...], out: NDArray[Any] | None) -> Target:
        """Lend memory, or wrap the caller's."""
        if out is not None and _is_aligned(out):
            return OwnTarget(self._context, out)
        return LentTarget(self._context, self._pool, shape, self._dtype, out)


class OwnTarget:
    """An array of the caller's that the kernel writes to."""

    def __init__(self, context: Context, out: NDArray[Any]) -> None:
        self._context = context
        self._out = out
        self._buffer = context.wrap(out, writable=True)

    def buffer(self) -> Any:
        """Buffer of the array's memory."""
        return self._buffer

    def begin(self, events: list[Any]) -> None:
        """Do nothing: nothing is to be fetched."""

    def collect(self) -> NDArray[Any]:
        """Wait for the rows."""
        self._context.settle(self._buffer)
        return self._out


class LentTarget:
    """Memory of the pool that the kernel writes to."""

    def __init__(
        self,
        context: Context,
        pool: Pool,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        out: NDArray[Any] | None,
    ) -> None:
        self._context = context
        self._lease = pool.lend(shape, dtype)
        self._out = out
        self._event: Any = None

    def buffer(self) -> Any:
        """Buffer of the piece."""
        return self._lease.piece.buffer

    def begin(self, events: list[Any]) -> None:
        """Keep the event to wait for."""
        self._event = events[-1]

    def collect(self) -> NDArray[Any]:
        """Wait for the rows."""
        self._context.wait(self._event)
        return _delivered(self._lease.array(), self._out)


# ---- devices with memory of their own


class MirroredMemory:
    """The host's memory is page-locked, and has a twin on the device."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._transfers = Transfers(context)
        self._pool = Pool(self._piece)

    def window(self, layout: SampleLayout, capacity: int) -> SampleWindow:
        """Make a window and its twin."""
        return MirroredWindow(self._context, self._transfers, layout, capacity)

    def window_over(self, layout: SampleLayout, memory: NDArray[np.uint8]) -> None:  # noqa: ARG002
        """Refuse: the device cannot read the host's memory."""
        return

    def results(self, dtype: np.dtype[Any], max_bytes: int) -> "MirroredResults":
        """Make room on the device for two batches."""
        buffers = [self._context.allocate(max_bytes) for _ in range(2)]
        return MirroredResults(self._context, self._transfers, self._pool, dtype, buffers)

    def _piece(self, n_bytes: int) -> Piece:
        buffer, memory = self._transfers.pinned(n_bytes)
        return Piece(memory, buffer)


class MirroredWindow(SampleWindow):
    """A window whose new samples are copied to its twin before frames are computed from them."""

    def __init__(
        self, context: Context, transfers: Transfers, layout: SampleLayout, capacity: int
    ) -> None:
        n_bytes = layout.step_bytes * capacity
        self._pinned, self._memory = transfers.pinned(n_bytes)
        super().__init__(layout, capacity, self._memory)
        self._context = context
        self._transfers = transfers
        self._twin = context.allocate(n_bytes)
        self._sent = 0
        # Kept until they are done, or nearly always: pyopencl waits for one that is dropped.
        self._uploads: deque[Any] = deque(maxlen=_UPLOADS_KEPT)

    @staticmethod
    def _copy(target: NDArray[Any], samples: NDArray[Any]) -> None:
        copy(target, samples, axis=1)

    def samples(self, place: int) -> Samples:
        """Where frames from a place on are; what is new is sent, and waited for by kernels."""
        if self._sent < self.end:
            self._send(self.place(self._sent), self.end - self._sent)
            self._sent = self.end
        return Samples(self._twin, self.layout.pitch(self.capacity), place)

    def move(self, first: int) -> None:
        """Move the host's samples; the twin gets them anew, at their new place."""
        super().move(first)
        self._sent = first

    def _send(self, place: int, n: int) -> None:
        layout, start = self.layout, self._transfers
        if layout.interleaved or layout.channels == 1:
            step = layout.step_bytes
            event = start.start_upload(self._twin, self._memory, place * step, n * step)
        else:
            size = layout.step_bytes // layout.channels
            event = start.start_upload_columns(
                self._twin, self._memory, size * self.capacity, place * size, n * size
            )
        self._uploads.append(event)
        self._context.join([event])


class MirroredResults:
    """Two buffers on the device, used in turn, and page-locked memory that is lent."""

    def __init__(
        self,
        context: Context,
        transfers: Transfers,
        pool: Pool,
        dtype: np.dtype[Any],
        buffers: list[Any],
    ) -> None:
        self._context = context
        self._transfers = transfers
        self._pool = pool
        self._dtype = dtype
        self._buffers = buffers

    def target(self, shape: tuple[int, ...], out: NDArray[Any] | None) -> "FetchedTarget":
        """Take the buffer that was not used last."""
        self._buffers.reverse()
        lease = self._pool.lend(shape, self._dtype)
        return FetchedTarget(self._context, self._transfers, self._buffers[0], lease.array(), out)


class FetchedTarget:
    """A buffer on the device that is copied to the host when the kernel is done."""

    def __init__(
        self,
        context: Context,
        transfers: Transfers,
        buffer: Any,
        rows: NDArray[Any],
        out: NDArray[Any] | None,
    ) -> None:
        self._context = context
        self._transfers = transfers
        self._buffer = buffer
        self._rows = rows
        self._out = out
        self._event: Any = None

    def buffer(self) -> Any:
        """Buffer on the device."""
        return self._buffer

    def begin(self, events: list[Any]) -> None:
        """Begin to copy."""
        self._context.begin()
        if self._rows.size:
            self._event = self._transfers.start_download(self._rows, self._buffer, events)
        else:
            self._event = events[-1]

    def collect(self) -> NDArray[Any]:
        """Wait for the rows."""
        self._context.wait(self._event)
        return _delivered(self._rows, self._out)


def _delivered(rows: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
    if out is None:
        return rows
    out[...] = rows
    return out


def _is_aligned(values: NDArray[Any]) -> bool:
    return values.size > 0 and values.ctypes.data % _ALIGN == 0


def _check_size(context: Context, n_bytes: int) -> None:
    """Refuse what exceeds the device's limit, which holds for the host's memory too."""
    limit = context.device.max_alloc_bytes
    if n_bytes > limit:
        raise DeviceError(
            f"{context.device.label} cannot hold a buffer of {n_bytes / 2**20:.1f} MiB: "
            f"its limit is {limit / 2**20:.1f} MiB"
        )
