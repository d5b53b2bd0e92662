"""Copies between the host and a device, concurrent with kernels, in separate queues."""

from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from spectrod.opencl.context import Context

_IN_PLACE = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR


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

    def lock_pages(self, memory: NDArray[np.uint8]) -> Any:
        """Keep an array's memory in its place, so that the device copies from and to it itself.

        Memory that was written to before is locked in less time than the driver takes to allocate
        such memory. The host may use it at any time. Linux since 5.12 copies such pages
        for a forked process at once: earlier, a device went on with pages that the child had kept.

        Returns
        -------
        lock : pyopencl.Buffer
            Keeps the memory locked as long as it is referenced; no command may use it.

        Raises
        ------
        DeviceError
            If the driver cannot lock it.
        """
        with self._context.translated(f"cannot lock {memory.nbytes / 2**20:.1f} MiB of memory"):
            return cl.Buffer(self._context.queue.context, _IN_PLACE, hostbuf=memory)

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
