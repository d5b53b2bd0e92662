"""Samples and results in memory that a device can access: the host's, or the device's.

Devices that share the host's memory read samples and write results in place. For other devices the
host uses page-locked memory: only new samples are uploaded, results are downloaded, and both
overlap with kernels.
"""

from collections import deque
from dataclasses import replace
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.buffer_pool import BufferPool, Lease, PooledBuffer
from spectrod.analysis.parallel import copy
from spectrod.analysis.result_pool import ResultPool, host_results
from spectrod.analysis.sample_buffer import SampleBuffer, aligned_memory, touched_memory
from spectrod.analysis.stft.stft_stage import Samples
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.transfers import Transfers

_ALIGN = 16
"""Alignment at which a caller's arrays are used in place [bytes]."""

_UPLOADS_KEPT = 8

_LOCKED_RESULT_BYTES_MAX = 1 << 29
"""Maximum size of a whole result in page-locked memory [bytes]; two of them are kept."""
_LOCKED_BYTES_MAX = 1 << 32
"""Maximum size of such results that arrays refer to: the system cannot page them out [bytes]."""


class DeviceSamples(Protocol):
    """The device's view of a sample buffer."""

    def samples(self, place: int) -> Samples:
        """Return the samples from an index on; all samples up to the buffer's end are valid."""
        ...


class Target(Protocol):
    """Destination of a batch's rows."""

    def buffer(self) -> Any:
        """Return the buffer that the kernel writes to; None without rows."""
        ...

    def begin(self, events: list[Any]) -> None:
        """Start to download the rows after the kernels' events."""
        ...

    def collect(self) -> NDArray[Any]:
        """Wait for the rows."""
        ...


class Results(Protocol):
    """Memory for the rows of a plan's batches."""

    def target(self, shape: tuple[int, ...], out: NDArray[Any] | None) -> Target:
        """Allocate a target for rows, in the caller's array if there is one."""
        ...


class DeviceMemory(Protocol):
    """Memory strategy of a device."""

    def sample_buffer(self, layout: SampleLayout, capacity: int) -> SampleBuffer:
        """Make an empty buffer."""
        ...

    def sample_buffer_over(
        self, layout: SampleLayout, memory: NDArray[np.uint8]
    ) -> SampleBuffer | None:
        """Make a buffer over existing samples, if the device can read them in place."""
        ...

    def result_memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return memory for rows that a target may have as ``out``."""
        ...

    def results(self, dtype: np.dtype[Any], max_bytes: int) -> Results:
        """Allocate memory for batches of up to max_bytes."""
        ...


def device_memory(context: Context) -> DeviceMemory:
    """Choose the memory strategy for a device."""
    return InPlaceMemory(context) if context.device.shares_host_memory else MirroredMemory(context)


# ---- devices that work in the host's memory


class InPlaceMemory:
    """Kernels read samples and write results in the host's memory."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pool = BufferPool(self._make_buffer)

    def sample_buffer(self, layout: SampleLayout, capacity: int) -> SampleBuffer:
        """Allocate an empty buffer."""
        memory = aligned_memory(layout.step_bytes * capacity)
        _check_size(self._context, len(memory))
        return SharedSampleBuffer(self._context, layout, capacity, memory, filled=False)

    def sample_buffer_over(
        self, layout: SampleLayout, memory: NDArray[np.uint8]
    ) -> SampleBuffer | None:
        """Wrap memory full of samples, if a kernel can read it."""
        if len(memory) > self._context.device.max_alloc_bytes or not _is_aligned(memory):
            return None
        capacity = len(memory) // layout.step_bytes
        return SharedSampleBuffer(self._context, layout, capacity, memory, filled=True)

    def result_memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return ordinary memory."""
        return host_results(shape, dtype)

    def results(self, dtype: np.dtype[Any], max_bytes: int) -> "SharedResults":
        """Lend memory that the kernels write to."""
        _check_size(self._context, max_bytes)
        return SharedResults(self._context, self._pool, dtype)

    def _make_buffer(self, n_bytes: int) -> PooledBuffer:
        memory = aligned_memory(n_bytes)
        return PooledBuffer(memory, self._context.wrap(memory, writable=True))


class SharedSampleBuffer(SampleBuffer):
    """A buffer that kernels read in place.

    The host writes only where no kernel reads at that time.
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
        """Return the samples from an index on."""
        return Samples(self._buffer, self.layout.pitch(self.capacity), place)


class SharedResults:
    """Lent memory that kernels write in place."""

    def __init__(self, context: Context, pool: BufferPool, dtype: np.dtype[Any]) -> None:
        self._context = context
        self._pool = pool
        self._dtype = dtype

    def target(self, shape: tuple[int, ...], out: NDArray[Any] | None) -> Target:
        """Lend memory, or wrap the caller's array."""
        if out is not None and _is_aligned(out):
            return OwnTarget(self._context, out)
        return LentTarget(self._context, self._pool, shape, self._dtype, out)


class OwnTarget:
    """A caller's array that the kernel writes to."""

    def __init__(self, context: Context, out: NDArray[Any]) -> None:
        self._context = context
        self._out = out
        self._buffer = context.wrap(out, writable=True)

    def buffer(self) -> Any:
        """Return the buffer of the array's memory."""
        return self._buffer

    def begin(self, events: list[Any]) -> None:
        """Do nothing: there is no download."""

    def collect(self) -> NDArray[Any]:
        """Wait for the rows."""
        self._context.settle(self._buffer)
        return self._out


class LentTarget:
    """BufferPool memory that the kernel writes to."""

    def __init__(
        self,
        context: Context,
        pool: BufferPool,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        out: NDArray[Any] | None,
    ) -> None:
        self._context = context
        self._lease = pool.lend(shape, dtype)
        self._out = out
        self._event: Any = None

    def buffer(self) -> Any:
        """Return the buffer of the lent memory."""
        return self._lease.pooled.buffer

    def begin(self, events: list[Any]) -> None:
        """Store the event to wait for."""
        self._event = events[-1]

    def collect(self) -> NDArray[Any]:
        """Wait for the rows."""
        self._context.wait(self._event)
        return _delivered(self._lease.array(), self._out)


# ---- devices with memory of their own


class MirroredMemory:
    """Page-locked host memory with a copy on the device."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._transfers = Transfers(context)
        self._pool = BufferPool(self._make_buffer)
        # To lock pages takes longer than the spectrogram of the samples that they hold.
        self._sample_pool = BufferPool(self._make_sample_buffer, spare_max=1)
        self._result_pool = ResultPool(self._make_buffer)

    def sample_buffer(self, layout: SampleLayout, capacity: int) -> SampleBuffer:
        """Make a buffer and its copy on the device."""
        lease = self._sample_pool.lend((layout.step_bytes * capacity,), np.dtype(np.uint8))
        return MirroredSampleBuffer(self._context, self._transfers, layout, capacity, lease)

    def sample_buffer_over(self, layout: SampleLayout, memory: NDArray[np.uint8]) -> None:  # noqa: ARG002
        """Return None: the device cannot read the host's memory."""
        return

    def result_memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return page-locked memory, or ordinary one where that would be too much."""
        n_bytes = dtype.itemsize * prod(shape)
        left = _LOCKED_BYTES_MAX - self._result_pool.lent_bytes
        if n_bytes > min(left, _LOCKED_RESULT_BYTES_MAX):
            return np.empty(shape, dtype)
        return self._result_pool.lend(shape, dtype)

    def results(self, dtype: np.dtype[Any], max_bytes: int) -> "MirroredResults":
        """Allocate device memory for two batches."""
        buffers = [self._context.allocate(max_bytes) for _ in range(2)]
        return MirroredResults(self._context, self._transfers, self._pool, dtype, buffers)

    def _make_buffer(self, n_bytes: int) -> PooledBuffer:
        memory = touched_memory(n_bytes)
        return PooledBuffer(memory, self._transfers.lock_pages(memory))

    def _make_sample_buffer(self, n_bytes: int) -> PooledBuffer:
        return replace(self._make_buffer(n_bytes), twin=self._context.allocate(n_bytes))


class MirroredSampleBuffer(SampleBuffer):
    """A buffer in page-locked memory; new samples are uploaded before kernels read them."""

    def __init__(
        self,
        context: Context,
        transfers: Transfers,
        layout: SampleLayout,
        capacity: int,
        lease: Lease,
    ) -> None:
        memory = lease.array()
        super().__init__(layout, capacity, memory)
        self._memory = memory
        self._context = context
        self._transfers = transfers
        self._twin = lease.pooled.twin
        self._sent = 0
        # Keep events until they are complete: pyopencl waits for an event that is dropped.
        self._uploads: deque[Any] = deque(maxlen=_UPLOADS_KEPT)

    def samples(self, place: int) -> Samples:
        """Return the samples from an index on; upload new ones, which kernels wait for."""
        if self._sent < self.end:
            self._send(self.place(self._sent), self.end - self._sent)
            self._sent = self.end
        return Samples(self._twin, self.layout.pitch(self.capacity), place)

    def move(self, first: int) -> None:
        """Move the host's samples; upload them again at their new place."""
        super().move(first)
        self._sent = first

    def restart(self, position: int) -> None:
        """Drop all samples; none of them is uploaded."""
        super().restart(position)
        self._sent = position

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
    """Two alternating buffers on the device, and lent page-locked memory."""

    def __init__(
        self,
        context: Context,
        transfers: Transfers,
        pool: BufferPool,
        dtype: np.dtype[Any],
        buffers: list[Any],
    ) -> None:
        self._context = context
        self._transfers = transfers
        self._pool = pool
        self._dtype = dtype
        self._buffers = buffers

    def target(self, shape: tuple[int, ...], out: NDArray[Any] | None) -> "FetchedTarget":
        """Use the buffer that was not used last."""
        self._buffers.reverse()
        rows = out
        if rows is None or not _is_page_locked(rows):
            rows = self._pool.lend(shape, self._dtype).array()
        return FetchedTarget(self._context, self._transfers, self._buffers[0], rows, out)


class FetchedTarget:
    """A buffer on the device that is downloaded after the kernel."""

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
        """Return the buffer on the device."""
        return self._buffer

    def begin(self, events: list[Any]) -> None:
        """Start the download."""
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
    if out is None or out is rows:
        return rows
    copy(out, rows, axis=0)
    return out


def _is_page_locked(rows: NDArray[Any]) -> bool:
    """Return whether rows are of ``MirroredMemory``."""
    lease = Lease.of(rows)
    return lease is not None and lease.pooled.buffer is not None and rows.flags.c_contiguous


def _is_aligned(values: NDArray[Any]) -> bool:
    return values.size > 0 and values.__array_interface__["data"][0] % _ALIGN == 0


def _check_size(context: Context, n_bytes: int) -> None:
    """Refuse sizes above the device's limit, which applies to host memory too."""
    limit = context.device.max_alloc_bytes
    if n_bytes > limit:
        raise DeviceError(
            f"{context.device.label} cannot hold a buffer of {n_bytes / 2**20:.1f} MiB: "
            f"its limit is {limit / 2**20:.1f} MiB"
        )
