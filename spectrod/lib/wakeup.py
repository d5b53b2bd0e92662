"""Lock-free wake-up between threads or processes: the only blocking wait in the data path."""

import os
import select
import sys

_READ_BYTES = 1 << 16
"""All that a pipe can hold by default [bytes]."""


class Wakeup:
    """A flag with a file descriptor, set by one side and awaited by the other.

    ``set`` never blocks, takes no lock and allocates nothing, so a real-time callback may call it.
    ``fileno`` lets a poller (ZeroMQ's, select) wait for it together with other descriptors. Child
    processes may inherit ``write_fd``: an integer of eight bytes written to it sets the flag.
    """

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            self._read_fd = self.write_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self._read_fd, self.write_fd = os.pipe()
            os.set_blocking(self._read_fd, False)
            os.set_blocking(self.write_fd, False)
        self._poll = select.poll()
        self._poll.register(self._read_fd, select.POLLIN)

    # An eventfd adds a write of exactly eight bytes to its counter; a pipe stores them.
    _ONE = (1).to_bytes(8, sys.byteorder)

    def fileno(self) -> int:
        """Descriptor that is readable while the flag is set."""
        return self._read_fd

    def set(self) -> None:
        """Set the flag; a waiter wakes at once, or its next wait returns at once."""
        try:  # noqa: SIM105 - suppress() would allocate
            os.write(self.write_fd, self._ONE)
        except BlockingIOError:
            pass  # a full pipe is a set flag

    def clear(self) -> int:
        """Clear the flag; return the sum of the integers that were written."""
        try:
            return sum(memoryview(os.read(self._read_fd, _READ_BYTES)).cast("Q"))
        except BlockingIOError:
            return 0

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the flag is set and clear it; return False after the timeout."""
        is_set = bool(self._poll.poll(None if timeout_s is None else timeout_s * 1e3))
        if is_set:
            self.clear()
        return is_set

    def close(self) -> None:
        """Close the descriptors; call once, when neither side uses them any more."""
        os.close(self._read_fd)
        if self.write_fd != self._read_fd:
            os.close(self.write_fd)
