"""One device, its context and its in-order queue: memory, launches and times for the plans."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from spectrod.errors import DeviceError
from spectrod.opencl.devices import DeviceInfo
from spectrod.opencl.program import build_program, check_compiler
from spectrod.opencl.source import Defines

Size = tuple[int, ...]

_PROFILING = cl.command_queue_properties.PROFILING_ENABLE


class Context:
    """A device made ready.

    Commands run in the order in which they are given, whichever thread gives them. Threads may make
    kernels and buffers at any time; a kernel's arguments and launches are one thread's at a time.

    Parameters
    ----------
    device : DeviceInfo
        From ``spectrod.opencl.devices``.
    profiling : bool
        Whether ``event_seconds`` can be asked; costs a little on every launch.

    Raises
    ------
    DeviceError
        If the device cannot be opened or compiles nothing.
    """

    def __init__(self, device: DeviceInfo, *, profiling: bool = False) -> None:
        properties: dict[str, Any] = {"properties": _PROFILING} if profiling else {}
        with self._translated(device, "cannot be opened"):
            self._context = cl.Context([device.handle])
            self._queue = cl.CommandQueue(self._context, **properties)
        check_compiler(self._context, device)
        self.device = device
        self._programs: dict[tuple[str, Defines], Any] = {}

    def kernel(self, file: str, name: str, defines: Defines) -> Any:
        """Kernel object of its own, from a program that is compiled once.

        Raises
        ------
        KernelBuildError
            If the program does not compile.
        """
        key = (file, defines)
        if key not in self._programs:
            self._programs[key] = build_program(self._context, self.device, file, defines)
        return cl.Kernel(self._programs[key], name)

    def allocate(self, n_bytes: int) -> Any:
        """Buffer of zeros on the device; it lives as long as it is referred to.

        Raises
        ------
        DeviceError
            If the device has not got that much, saying how much was asked for.
        """
        what = f"cannot hold a buffer of {n_bytes / 2**20:.1f} MiB"
        if n_bytes > self.device.max_alloc_bytes:
            limit_mib = self.device.max_alloc_bytes / 2**20
            raise DeviceError(f"{self.device.label} {what}: its limit is {limit_mib:.1f} MiB")
        with self._translated(self.device, what):
            buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, n_bytes)
            # Drivers put allocation off until the first use; a lack must show here.
            cl.enqueue_fill_buffer(self._queue, buffer, np.zeros(1, np.uint8), 0, n_bytes).wait()
        return buffer

    def table(self, values: NDArray[Any]) -> Any:
        """Buffer on the device with a copy of the values."""
        buffer = self.allocate(values.nbytes)
        with self._translated(self.device, "cannot take a table"):
            cl.enqueue_copy(self._queue, buffer, np.ascontiguousarray(values))
        return buffer

    def upload(self, buffer: Any, values: NDArray[Any]) -> None:
        """Write a C-contiguous array to a buffer's start; done when this returns."""
        with self._translated(self.device, "cannot be written to"):
            cl.enqueue_copy(self._queue, buffer, values)

    def upload_columns(
        self, buffer: Any, rows: NDArray[Any], n_columns: int, row_length: int
    ) -> None:
        """Write the first columns of each row to a buffer whose rows are row_length values long.

        Done when this returns.
        """
        size = rows.itemsize
        with self._translated(self.device, "cannot be written to"):
            # pyopencl 2026.1: the stub calls it "origin", the function "buffer_origin".
            cl.enqueue_copy(  # type: ignore[call-overload]
                self._queue,
                buffer,
                rows,
                buffer_origin=(0, 0),
                host_origin=(0, 0),
                region=(n_columns * size, rows.shape[0]),
                buffer_pitches=(row_length * size,),
                host_pitches=(rows.shape[1] * size,),
                # pyopencl waits in any case, as the event goes: then with the interpreter's lock.
                is_blocking=True,
            )

    def launch(self, kernel: Any, global_size: Size, local_size: Size) -> Any:
        """Queue a kernel whose arguments are set; return its event, for ``event_seconds``."""
        with self._translated(self.device, f"cannot run {kernel.function_name}"):
            return cl.enqueue_nd_range_kernel(self._queue, kernel, global_size, local_size)

    def download(self, out: NDArray[Any], buffer: Any) -> None:
        """Fill a C-contiguous array from a buffer's start; all that was queued before is done."""
        with self._translated(self.device, "failed"):
            cl.enqueue_copy(self._queue, out, buffer)

    def copy(self, destination: Any, source: Any) -> Any:
        """Queue a copy of a whole buffer on the device; return its event."""
        with self._translated(self.device, "cannot copy"):
            return cl.enqueue_copy(self._queue, destination, source)

    def finish(self) -> None:
        """Wait until all that was queued is done."""
        with self._translated(self.device, "failed"):
            self._queue.finish()

    def close(self) -> None:
        """Wait for the device and forget the programs; buffers go with the plans that hold them."""
        self.finish()
        self._programs.clear()

    @staticmethod
    @contextmanager
    def _translated(device: DeviceInfo, what: str) -> Iterator[None]:
        """Turn the driver's errors into one line that names the device."""
        try:
            yield
        except cl.Error as error:
            raise DeviceError(f"{device.label} {what}: {error}") from error


def event_seconds(event: Any) -> float:
    """Time [s] that the device took for a launch or copy; waits for it. Needs profiling."""
    event.wait()
    return float(event.profile.end - event.profile.start) * 1e-9
