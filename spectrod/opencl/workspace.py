"""Buffers for what plans need only while they run, shared by all plans of a device."""

from collections.abc import Callable
from typing import Any


class Workspace:
    """A few buffers that grow as needed; whoever holds the context's lock may use them.

    Commands run in order, so that the next holder may overwrite what is still being read.

    Parameters
    ----------
    allocate : callable
        Number of bytes to buffer, as ``Context.allocate``.
    """

    def __init__(self, allocate: Callable[[int], Any]) -> None:
        self._allocate = allocate
        self._buffers: dict[str, Any] = {}

    def get(self, name: str, n_bytes: int) -> Any:
        """Buffer of at least so many bytes, with anything in it; None for 0 bytes.

        Raises
        ------
        DeviceError
            If the device has not got that much.
        """
        if n_bytes == 0:
            return None
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < n_bytes:
            self._buffers.pop(name, None)  # before the larger one is allocated
            buffer = self._buffers[name] = self._allocate(n_bytes)
        return buffer

    def clear(self) -> None:
        """Give the memory back."""
        self._buffers.clear()
