"""Temporary buffers of running plans, shared by all plans of a device."""

from collections.abc import Callable
from typing import Any


class Workspace:
    """A few buffers that grow as needed, for the holder of the context's lock.

    Commands run in order, so the next holder may overwrite data that is still being read.

    Parameters
    ----------
    allocate : callable
        Makes a buffer of a number of bytes, as ``Context.allocate``.
    """

    def __init__(self, allocate: Callable[[int], Any]) -> None:
        self._allocate = allocate
        self._buffers: dict[str, Any] = {}

    def get(self, name: str, n_bytes: int) -> Any:
        """Return an uninitialised buffer of at least n_bytes; None for 0 bytes.

        Raises
        ------
        DeviceError
            If the device has not enough memory.
        """
        if n_bytes == 0:
            return None
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < n_bytes:
            self._buffers.pop(name, None)  # before the larger one is allocated
            buffer = self._buffers[name] = self._allocate(n_bytes)
        return buffer

    def clear(self) -> None:
        """Release the buffers."""
        self._buffers.clear()
