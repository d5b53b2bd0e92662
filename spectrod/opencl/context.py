"""One device, its context and its in-order queue: memory, launches and times for the plans."""

import os
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from typing import Any, Self

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from spectrod.lib.errors import ConfigError, DeviceError
from spectrod.opencl.devices import DeviceInfo, identify
from spectrod.opencl.program import Programs
from spectrod.opencl.program_cache import BinaryCache
from spectrod.opencl.source import Defines
from spectrod.opencl.workspace import Workspace

Size = tuple[int, ...]

REGION_ALIGN = 4096
"""Alignment of parts of buffers [bytes]: no device requires more than a page."""

_PROFILING = cl.command_queue_properties.PROFILING_ENABLE
_OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


class Context:
    """An open device.

    Commands run in the order of their submission by any thread. Threads may make kernels and
    buffers at any time; only one thread at a time may set a kernel's arguments and launch it:
    threads that share a plan use ``lock``.

    Parameters
    ----------
    device : DeviceInfo
        From ``spectrod.opencl.devices``.
    profiling : bool
        Whether ``event_seconds`` works; adds a small cost to every launch.
    cache : BinaryCache, optional
        Cache of compiled programs; by default that of the user.
    queue : pyopencl.CommandQueue, optional
        A caller's queue of this device to use; see ``adopt``.
    compiles : bool
        Whether the check of the driver's compiler may compile; if not, NotCompiledError is raised
        unless the check is in the cache.
    stores : bool
        Whether compiled programs are stored in the cache, see ``Programs``.

    Attributes
    ----------
    device : DeviceInfo
        As given.
    queue : pyopencl.CommandQueue
        Queue of the commands.
    lock : RLock
        Hold it from a kernel's first argument to its launch when sharing kernels or scratch memory.
    workspace : Workspace
        Shared buffers for the holder of the lock.
    table_bytes : int
        Total size of all tables made so far [bytes].

    Raises
    ------
    DeviceError
        If the device cannot be opened or cannot compile.
    """

    def __init__(
        self,
        device: DeviceInfo,
        *,
        profiling: bool = False,
        cache: BinaryCache | None = None,
        queue: Any = None,
        compiles: bool = True,
        stores: bool = True,
    ) -> None:
        with self._translated(device, "cannot be opened"):
            # Intel's queues (2026.2) do not keep their context alive.
            self._context = queue.context if queue else cl.Context([device.handle])
            self.queue = queue or _open_queue(self._context, profiling=profiling)
        self._programs = Programs(self._context, device, cache or BinaryCache(), stores=stores)
        with nullcontext() if compiles else self._programs.only_compiled():
            self._programs.check_compiler()
        self.device = device
        self.lock = RLock()
        self._pid = os.getpid()
        self.table_bytes = 0
        self.workspace = Workspace(self.allocate)

    @classmethod
    def adopt(cls, queue: Any) -> Self:
        """Use a caller's queue, among the caller's commands and in the caller's memory.

        Raises
        ------
        ConfigError
            If it is no queue, or is out of order.
        DeviceError
            If its device cannot compile.
        """
        if not isinstance(queue, cl.CommandQueue):
            raise ConfigError(f"queue={queue!r}: must be a pyopencl.CommandQueue")
        if queue.properties & _OUT_OF_ORDER:
            raise ConfigError("queue is out of order: must be one that keeps its commands' order")
        return cls(identify(queue.device), queue=queue)

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in a forked process, where drivers have no threads and hang."""
        return os.getpid() != self._pid

    def check_process(self) -> None:
        """Raise DeviceError in a forked process."""
        if self.is_forked:
            raise DeviceError(
                f"{self.device.label} was opened before this process was forked, which its driver "
                "does not survive: start processes by spawn"
            )

    def kernel(self, file: str, name: str, defines: Defines) -> Any:
        """Return a new kernel object of a program, which is compiled once.

        Raises
        ------
        KernelBuildError
            If the program does not compile.
        """
        return cl.Kernel(self._programs.get(file, defines), name)

    def only_compiled(self) -> AbstractContextManager[None]:
        """Raise NotCompiledError in this thread where a program would have to be compiled."""
        return self._programs.only_compiled()

    def allocate(self, n_bytes: int) -> Any:
        """Return a zeroed buffer on the device, which lives as long as it is referenced.

        Raises
        ------
        DeviceError
            If the device has not enough memory; the text names the requested size.
        """
        what = f"cannot hold a buffer of {n_bytes / 2**20:.1f} MiB"
        if n_bytes > self.device.max_alloc_bytes:
            limit_mib = self.device.max_alloc_bytes / 2**20
            raise DeviceError(f"{self.device.label} {what}: its limit is {limit_mib:.1f} MiB")
        with self._translated(self.device, what):
            buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, n_bytes)
            # Drivers defer allocation until the first use; a failure must occur here.
            cl.enqueue_fill_buffer(self.queue, buffer, np.zeros(1, np.uint8), 0, n_bytes).wait()
        return buffer

    def table(self, values: NDArray[Any]) -> Any:
        """Return a buffer on the device with a copy of the values."""
        buffer = self.allocate(values.nbytes)
        self.table_bytes += values.nbytes
        with self._translated(self.device, "cannot take a table"):
            cl.enqueue_copy(self.queue, buffer, np.ascontiguousarray(values))
        return buffer

    def region(self, buffer: Any, first_byte: int, n_bytes: int) -> Any:
        """Return a sub-buffer; first_byte is a multiple of ``REGION_ALIGN``."""
        whole = buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
        if whole is not None:  # a sub-buffer cannot have sub-buffers
            first_byte += buffer.get_info(cl.mem_info.OFFSET)
        with self._translated(self.device, "cannot split a buffer"):
            return (whole or buffer).get_sub_region(first_byte, n_bytes)

    def wrap(self, values: NDArray[Any], *, writable: bool) -> Any:
        """Return a buffer over a C-contiguous array's own memory, if ``shares_host_memory``.

        The host must not use the array until the commands that use the buffer are done; their
        results are visible after ``settle``.
        """
        access = cl.mem_flags.READ_WRITE if writable else cl.mem_flags.READ_ONLY
        with self._translated(self.device, "cannot use the host's memory"):
            return cl.Buffer(self._context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=values)

    def settle(self, buffer: Any) -> None:
        """Wait for all queued commands; results in a wrapped array are then visible."""
        with self._translated(self.device, "failed"), self._programs.first_use():
            view, _ = cl.enqueue_map_buffer(
                self.queue, buffer, cl.map_flags.READ, 0, buffer.size, np.dtype(np.uint8)
            )
            view.base.release(self.queue)

    def upload(self, buffer: Any, values: NDArray[Any]) -> None:
        """Write a C-contiguous array to a buffer's start; blocks until done."""
        with self._translated(self.device, "cannot be written to"):
            cl.enqueue_copy(self.queue, buffer, values)

    def launch(
        self, kernel: Any, global_size: Size, local_size: Size, offset: Size | None = None
    ) -> Any:
        """Enqueue a kernel whose arguments are set; return its event, for ``event_seconds``."""
        with self._programs.first_use(is_last=False):
            try:
                return cl.enqueue_nd_range_kernel(
                    self.queue, kernel, global_size, local_size, offset
                )
            except cl.Error as error:  # the name takes 7 us, too long for every launch
                what = f"cannot run {kernel.function_name}"
                raise DeviceError(f"{self.device.label} {what}: {error}") from error

    def download(self, out: NDArray[Any], buffer: Any) -> None:
        """Fill a C-contiguous array from a buffer's start, after all earlier commands."""
        with self._translated(self.device, "failed"), self._programs.first_use():
            cl.enqueue_copy(self.queue, out, buffer)

    def copy(self, destination: Any, source: Any) -> Any:
        """Enqueue a copy of a whole buffer on the device; return its event."""
        with self._translated(self.device, "cannot copy"):
            return cl.enqueue_copy(self.queue, destination, source)

    def join(self, events: list[Any]) -> None:
        """Make the next queued commands wait for events of other queues."""
        with self._translated(self.device, "cannot wait"):
            cl.enqueue_barrier(self.queue, wait_for=events)

    def begin(self) -> None:
        """Start the queued commands without waiting for them."""
        with self._translated(self.device, "cannot start"):
            self.queue.flush()

    def wait(self, event: Any) -> None:
        """Wait until a command is done."""
        with self._translated(self.device, "failed"), self._programs.first_use():
            event.wait()

    def finish(self) -> None:
        """Wait until all queued commands are done."""
        with self._translated(self.device, "failed"), self._programs.first_use():
            self.queue.finish()

    def keep_programs(self) -> None:
        """Store compiled programs in the cache now; drivers may take seconds to return them."""
        self._programs.store()

    def close(self) -> None:
        """Wait for the device and drop the programs; plans release their own buffers."""
        self.finish()
        self._programs.clear()
        self.workspace.clear()

    def translated(self, what: str) -> AbstractContextManager[None]:
        """Turn the driver's errors into a DeviceError that names what failed."""
        return self._translated(self.device, what)

    @staticmethod
    def _translated(device: DeviceInfo, what: str) -> "_Translated":
        """Turn the driver's errors into one line that names the device."""
        return _Translated(device, what)


class _Translated:
    """Context that turns the driver's errors into a DeviceError.

    A class, since each launch enters several: a generator takes five times as long.
    """

    __slots__ = ("_device", "_what")

    def __init__(self, device: DeviceInfo, what: str) -> None:
        self._device = device
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, cl.Error):
            raise DeviceError(f"{self._device.label} {self._what}: {error}") from error


def _open_queue(context: Any, *, profiling: bool) -> Any:
    properties: dict[str, Any] = {"properties": _PROFILING} if profiling else {}
    return cl.CommandQueue(context, **properties)


def event_seconds(event: Any) -> float:
    """Return the device time of a launch or copy [s]; waits for it. Needs profiling."""
    event.wait()
    return float(event.profile.end - event.profile.start) * 1e-9
