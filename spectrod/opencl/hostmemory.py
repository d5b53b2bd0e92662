"""Arrays of the host as kernels see them: in place where memory is shared, copied elsewhere."""

from typing import Any, Protocol

from numpy.typing import NDArray

from spectrod.opencl.context import Context

_ALIGN = 16
"""Bytes of the largest value, a complex one in double precision."""


class HostMemory(Protocol):
    """C-contiguous arrays as buffers; the holder of the context's lock uses it."""

    def source(self, values: NDArray[Any]) -> Any:
        """Buffer that holds the values, to be read."""

    def target(self, values: NDArray[Any]) -> Any:
        """Buffer whose content ``collect`` puts into the array."""

    def both(self, values: NDArray[Any]) -> Any:
        """Buffer that holds the values and whose content ``collect`` puts back."""

    def collect(self, values: NDArray[Any], buffer: Any) -> None:
        """Wait for what was queued; the array then holds what was written."""


def host_memory(context: Context) -> HostMemory:
    """Choose the way that suits the device."""
    return SharedMemory(context) if context.device.shares_host_memory else CopiedMemory(context)


class SharedMemory:
    """Kernels work in the arrays themselves, or in copies of those that start at an odd place.

    NumPy aligns a complex value as a real one. Kernels take it for a vector, which must lie at a
    multiple of its size: PoCL's crash where it does not.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._copies = CopiedMemory(context)

    def source(self, values: NDArray[Any]) -> Any:
        """Wrap an array that is only read, which it may be for the host as well."""
        if not _is_aligned(values):
            return self._copies.source(values)
        return self._context.wrap(values, writable=False)

    def target(self, values: NDArray[Any]) -> Any:
        """Wrap an array that is written."""
        if not _is_aligned(values):
            return self._copies.target(values)
        return self._context.wrap(values, writable=True)

    def both(self, values: NDArray[Any]) -> Any:
        """Wrap an array that is read and written."""
        if not _is_aligned(values):
            return self._copies.both(values)
        return self._context.wrap(values, writable=True)

    def collect(self, values: NDArray[Any], buffer: Any) -> None:
        """Wait until the array is written."""
        if _is_aligned(values):
            self._context.settle(buffer)
        else:
            self._copies.collect(values, buffer)


def _is_aligned(values: NDArray[Any]) -> bool:
    return values.ctypes.data % _ALIGN == 0


class CopiedMemory:
    """Arrays are copied to buffers of the device, and back."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def source(self, values: NDArray[Any]) -> Any:
        """Upload to the workspace."""
        buffer = self.target(values, "source")
        self._context.upload(buffer, values)
        return buffer

    def target(self, values: NDArray[Any], name: str = "target") -> Any:
        """Make room in the workspace."""
        return self._context.workspace.get(name, values.nbytes)

    def both(self, values: NDArray[Any]) -> Any:
        """Upload to where the result is going to be."""
        buffer = self.target(values)
        self._context.upload(buffer, values)
        return buffer

    def collect(self, values: NDArray[Any], buffer: Any) -> None:
        """Download."""
        self._context.download(values, buffer)
