"""Host arrays as kernel buffers: in place if memory is shared, otherwise copied."""

from typing import Any, Protocol

from numpy.typing import NDArray

from spectrod.opencl.context import Context

_ALIGN = 16
"""Size of the largest value, complex in double precision [bytes]."""


class HostMemory(Protocol):
    """C-contiguous arrays as buffers, for the holder of the context's lock."""

    def source(self, values: NDArray[Any]) -> Any:
        """Return a buffer with the values, for reading."""

    def target(self, values: NDArray[Any]) -> Any:
        """Return a buffer whose content ``collect`` copies into the array."""

    def both(self, values: NDArray[Any]) -> Any:
        """Return a buffer with the values, whose content ``collect`` copies back."""

    def collect(self, values: NDArray[Any], buffer: Any) -> None:
        """Wait for the queued commands; the array then has the results."""


def host_memory(context: Context) -> HostMemory:
    """Choose the memory strategy for a device."""
    return SharedMemory(context) if context.device.shares_host_memory else CopiedMemory(context)


class SharedMemory:
    """Kernels use the arrays in place, or copies of misaligned arrays.

    NumPy aligns a complex value like a real one. Kernels read it as a vector, which must be aligned
    to its size: otherwise PoCL's kernels crash.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._copies = CopiedMemory(context)

    def source(self, values: NDArray[Any]) -> Any:
        """Wrap an array that is only read; it may be read-only for the host."""
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
    return bool(values.__array_interface__["data"][0] % _ALIGN == 0)


class CopiedMemory:
    """Arrays are copied to buffers on the device, and back."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def source(self, values: NDArray[Any]) -> Any:
        """Upload to the workspace."""
        buffer = self.target(values, "source")
        self._context.upload(buffer, values)
        return buffer

    def target(self, values: NDArray[Any], name: str = "target") -> Any:
        """Allocate a buffer in the workspace."""
        return self._context.workspace.get(name, values.nbytes)

    def both(self, values: NDArray[Any]) -> Any:
        """Upload to the buffer of the result."""
        buffer = self.target(values)
        self._context.upload(buffer, values)
        return buffer

    def collect(self, values: NDArray[Any], buffer: Any) -> None:
        """Download."""
        self._context.download(values, buffer)
