"""One device, its context and its in-order queue: memory, launches and times for the plans."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any, Self

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from spectrod.errors import ConfigError, DeviceError
from spectrod.opencl.cache import BinaryCache
from spectrod.opencl.devices import DeviceInfo, identify
from spectrod.opencl.program import Programs
from spectrod.opencl.source import Defines
from spectrod.opencl.workspace import Workspace

Size = tuple[int, ...]

REGION_ALIGN = 4096
"""Bytes that parts of buffers start at multiples of: no device asks for more than a page."""

_PROFILING = cl.command_queue_properties.PROFILING_ENABLE
_OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


class Context:
    """A device made ready.

    Commands run in the order in which they are given, whichever thread gives them. Threads may make
    kernels and buffers at any time; a kernel's arguments and launches are one thread's at a time:
    ``lock`` is for those who share a plan.

    Parameters
    ----------
    device : DeviceInfo
        From ``spectrod.opencl.devices``.
    profiling : bool
        Whether ``event_seconds`` can be asked; costs a little on every launch.
    cache : BinaryCache, optional
        Of compiled programs; by default that of the user.
    queue : pyopencl.CommandQueue, optional
        Somebody else's, of this device, to work in; see ``adopt``.

    Attributes
    ----------
    device : DeviceInfo
        As given.
    queue : pyopencl.CommandQueue
        Where the commands go.
    lock : RLock
        Held from a kernel's first argument to its launch by those who share kernels or scratch.
    workspace : Workspace
        For the holder of the lock.
    table_bytes : int
        Size of all tables ever made here [bytes].

    Raises
    ------
    DeviceError
        If the device cannot be opened or compiles nothing.
    """

    def __init__(
        self,
        device: DeviceInfo,
        *,
        profiling: bool = False,
        cache: BinaryCache | None = None,
        queue: Any = None,
    ) -> None:
        with self._translated(device, "cannot be opened"):
            # Intel's queues (2026.2) do not keep their context alive.
            self._context = queue.context if queue else cl.Context([device.handle])
            self.queue = queue or _open_queue(self._context, profiling=profiling)
        self._programs = Programs(self._context, device, cache or BinaryCache())
        self._programs.check_compiler()
        self.device = device
        self.lock = RLock()
        self._pid = os.getpid()
        self.table_bytes = 0
        self.workspace = Workspace(self.allocate)

    @classmethod
    def adopt(cls, queue: Any) -> Self:
        """Work in a queue of somebody else's, among their commands and in their memory.

        Raises
        ------
        ConfigError
            If it is none, or its commands may overtake each other.
        DeviceError
            If its device compiles nothing.
        """
        if not isinstance(queue, cl.CommandQueue):
            raise ConfigError(f"queue={queue!r}: must be a pyopencl.CommandQueue")
        if queue.properties & _OUT_OF_ORDER:
            raise ConfigError("queue is out of order: must be one that keeps its commands' order")
        return cls(identify(queue.device), queue=queue)

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in another process; drivers' threads are not, and all hangs."""
        return os.getpid() != self._pid

    def check_process(self) -> None:
        """Raise DeviceError if this is a copy in another process."""
        if self.is_forked:
            raise DeviceError(
                f"{self.device.label} was opened before this process was forked, which its driver "
                "does not survive: start processes by spawn"
            )

    def kernel(self, file: str, name: str, defines: Defines) -> Any:
        """Kernel object of its own, from a program that is compiled once.

        Raises
        ------
        KernelBuildError
            If the program does not compile.
        """
        return cl.Kernel(self._programs.get(file, defines), name)

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
            cl.enqueue_fill_buffer(self.queue, buffer, np.zeros(1, np.uint8), 0, n_bytes).wait()
        return buffer

    def table(self, values: NDArray[Any]) -> Any:
        """Buffer on the device with a copy of the values."""
        buffer = self.allocate(values.nbytes)
        self.table_bytes += values.nbytes
        with self._translated(self.device, "cannot take a table"):
            cl.enqueue_copy(self.queue, buffer, np.ascontiguousarray(values))
        return buffer

    def region(self, buffer: Any, first_byte: int, n_bytes: int) -> Any:
        """Part of a buffer as one of its own; first_byte is a multiple of ``REGION_ALIGN``."""
        whole = buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
        if whole is not None:  # a part has no parts
            first_byte += buffer.get_info(cl.mem_info.OFFSET)
        with self._translated(self.device, "cannot split a buffer"):
            return (whole or buffer).get_sub_region(first_byte, n_bytes)

    def wrap(self, values: NDArray[Any], *, writable: bool) -> Any:
        """Buffer that is a C-contiguous array's own memory, where ``shares_host_memory``.

        The host leaves the array alone until the commands that use the buffer are done; what they
        write to it is there after ``settle``.
        """
        access = cl.mem_flags.READ_WRITE if writable else cl.mem_flags.READ_ONLY
        with self._translated(self.device, "cannot use the host's memory"):
            return cl.Buffer(self._context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=values)

    def settle(self, buffer: Any) -> None:
        """Wait for all that was queued; a wrapped array then holds what was written to it."""
        with self._translated(self.device, "failed"), self._programs.first_use():
            view, _ = cl.enqueue_map_buffer(
                self.queue, buffer, cl.map_flags.READ, 0, buffer.size, np.dtype(np.uint8)
            )
            view.base.release(self.queue)

    def upload(self, buffer: Any, values: NDArray[Any]) -> None:
        """Write a C-contiguous array to a buffer's start; done when this returns."""
        with self._translated(self.device, "cannot be written to"):
            cl.enqueue_copy(self.queue, buffer, values)

    def launch(
        self, kernel: Any, global_size: Size, local_size: Size, offset: Size | None = None
    ) -> Any:
        """Queue a kernel whose arguments are set; return its event, for ``event_seconds``."""
        what = f"cannot run {kernel.function_name}"
        with self._translated(self.device, what), self._programs.first_use(is_last=False):
            return cl.enqueue_nd_range_kernel(self.queue, kernel, global_size, local_size, offset)

    def download(self, out: NDArray[Any], buffer: Any) -> None:
        """Fill a C-contiguous array from a buffer's start; all that was queued before is done."""
        with self._translated(self.device, "failed"), self._programs.first_use():
            cl.enqueue_copy(self.queue, out, buffer)

    def copy(self, destination: Any, source: Any) -> Any:
        """Queue a copy of a whole buffer on the device; return its event."""
        with self._translated(self.device, "cannot copy"):
            return cl.enqueue_copy(self.queue, destination, source)

    def join(self, events: list[Any]) -> None:
        """Let what is queued next wait for what other queues do."""
        with self._translated(self.device, "cannot wait"):
            cl.enqueue_barrier(self.queue, wait_for=events)

    def begin(self) -> None:
        """Have the device begin with what was queued, while the host does something else."""
        with self._translated(self.device, "cannot begin"):
            self.queue.flush()

    def wait(self, event: Any) -> None:
        """Wait until a command is done."""
        with self._translated(self.device, "failed"), self._programs.first_use():
            event.wait()

    def finish(self) -> None:
        """Wait until all that was queued is done."""
        with self._translated(self.device, "failed"), self._programs.first_use():
            self.queue.finish()

    def keep_programs(self) -> None:
        """Store what was compiled in the cache now; drivers may take seconds to hand it out."""
        self._programs.store()

    def close(self) -> None:
        """Wait for the device and forget the programs; buffers go with the plans that hold them."""
        self.finish()
        self._programs.clear()
        self.workspace.clear()

    def translated(self, what: str) -> AbstractContextManager[None]:
        """Turn the driver's errors into a DeviceError that says what the device cannot do."""
        return self._translated(self.device, what)

    @staticmethod
    @contextmanager
    def _translated(device: DeviceInfo, what: str) -> Iterator[None]:
        """Turn the driver's errors into one line that names the device."""
        try:
            yield
        except cl.Error as error:
            raise DeviceError(f"{device.label} {what}: {error}") from error


def _open_queue(context: Any, *, profiling: bool) -> Any:
    properties: dict[str, Any] = {"properties": _PROFILING} if profiling else {}
    return cl.CommandQueue(context, **properties)


def event_seconds(event: Any) -> float:
    """Time [s] that the device took for a launch or copy; waits for it. Needs profiling."""
    event.wait()
    return float(event.profile.end - event.profile.start) * 1e-9
