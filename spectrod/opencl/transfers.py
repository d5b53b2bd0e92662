"""Copies between the host and a device, concurrent with kernels, in separate queues."""

from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from spectrod.opencl.context import Context

_PAGE_LOCKED = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR


class Transfers:
    """Copies that overlap with kernels and with copies in the other direction, ordered by events.

    One thread at a time. The caller keeps the event of a copy until it is done: pyopencl waits for
    an event that is dropped earlier.

    Parameters
    ----------
    context : Context
        The device.

    Raises
    ------
    DeviceError
        If the driver cannot open more queues.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        with context.translated("cannot open a queue"):
            self._up, self._down = (cl.CommandQueue(context.queue.context) for _ in range(2))

    def pinned(self, n_bytes: int) -> tuple[Any, NDArray[np.uint8]]:
        """Return page-locked host memory for copies by the device, as a buffer and an array.

        The array keeps the buffer alive; the host may use it at any time.
        """
        with self._context.translated(f"has no {n_bytes / 2**20:.1f} MiB of the host's memory"):
            buffer = cl.Buffer(self._context.queue.context, _PAGE_LOCKED, n_bytes)
            memory, _ = cl.enqueue_map_buffer(
                self._up, buffer, cl.map_flags.WRITE, 0, (n_bytes,), np.dtype(np.uint8)
            )
        return buffer, memory

    def start_upload(self, buffer: Any, memory: NDArray[np.uint8], first: int, n: int) -> Any:
        """Start to copy n bytes to the same offset of a buffer; return the event."""
        with self._context.translated("cannot be written to"):
            event = cl.enqueue_copy(
                self._up, buffer, memory[first : first + n], dst_offset=first, is_blocking=False
            )
            self._up.flush()
        return event

    def start_upload_columns(
        self, buffer: Any, memory: NDArray[np.uint8], row_bytes: int, first: int, n: int
    ) -> Any:
        """Start to copy n bytes of each row to the same offset; return the event."""
        with self._context.translated("cannot be written to"):
            event = cl.enqueue_copy(  # type: ignore[call-overload]
                self._up,
                buffer,
                memory,
                buffer_origin=(first, 0),
                host_origin=(first, 0),
                region=(n, len(memory) // row_bytes),
                buffer_pitches=(row_bytes,),
                host_pitches=(row_bytes,),
                is_blocking=False,
            )
            self._up.flush()
        return event

    def start_download(self, out: NDArray[Any], buffer: Any, after: list[Any]) -> Any:
        """Start to fill a C-contiguous array from a buffer's start, after given events."""
        with self._context.translated("failed"):
            event = cl.enqueue_copy(self._down, out, buffer, wait_for=after, is_blocking=False)
            self._down.flush()
        return event
