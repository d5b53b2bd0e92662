"""A terminal that is taken over for pictures, and restored at every end."""

import errno
import os
import select
import shutil
import termios
import time
from contextlib import suppress
from typing import Any, Self, TextIO

from spectrod.apps.view.colour import RESET
from spectrod.apps.view.keyboard import GONE, KeyParser

COLUMNS_MAX, LINES_MAX = 1000, 500
"""Bounds on the size of a picture, whatever a terminal claims."""

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"  # alternate screen, no cursor, clear
_LEAVE = f"{RESET}\x1b[r\x1b[?25h\x1b[?1049l"
_LEAVE_LIMIT_S = 0.5
_CANCEL = b"\x18"


class Terminal:
    """A terminal in the alternate screen inside a ``with`` statement, restored afterwards.

    Nothing here waits for a terminal that accepts no output, for example because its other end is
    not read: pictures are then skipped, and keys are still read.

    Parameters
    ----------
    out, keys : text file
        Output for pictures and input for keys, each with a descriptor.
    can_suspend : bool
        Whether the caller restores the terminal at SIGTSTP, so that Ctrl-Z may send it.
    """

    def __init__(self, out: TextIO, keys: TextIO, *, can_suspend: bool = False) -> None:
        self._out = out
        self._keys_fd = keys.fileno() if keys.isatty() else None
        self._can_suspend = can_suspend
        self._saved: list[Any] | None = None
        self._unsent = b""
        self._has_gone = False
        self.parser = KeyParser()
        self.farewell = ""
        """Written before the terminal is given back."""

    def __enter__(self) -> Self:
        self._fd = _open_without_waiting(self._out)
        if self._keys_fd is not None:
            self._saved = termios.tcgetattr(self._keys_fd)
        try:
            self.take_over()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self.restore()
        os.close(self._fd)

    @property
    def fd(self) -> int:
        """Descriptor of the output."""
        return self._fd

    @property
    def has_keys(self) -> bool:
        """Whether keys and answers come from a terminal."""
        return self._keys_fd is not None

    def size(self) -> tuple[int, int]:
        """Return the current columns and lines, each at least 1 and bounded."""
        try:
            columns, lines = os.get_terminal_size(self._fd)
        except OSError:
            columns, lines = 0, 0
        if not (columns and lines):  # a serial line does not know its size
            columns, lines = shutil.get_terminal_size()
        return bounded_size(columns, lines)

    def is_ready(self) -> bool:
        """Write what waits; return whether all is written, so that the next picture may come."""
        self._send()
        return not self._unsent

    def send(self, text: str) -> None:
        """Write a text, now as much as the terminal accepts, the rest with ``is_ready``."""
        self._unsent += text.encode(self._out.encoding or "ascii", "replace")
        self._send()

    def key(self, timeout_s: float) -> str:
        """Wait for a key; return an empty text after the timeout, ``GONE`` without a terminal."""
        if key := self.parser.next():
            return key
        if self._has_gone:
            return GONE
        fds = [] if self._keys_fd is None else [self._keys_fd]
        ready, _, _ = select.select(fds, [], [], timeout_s)
        if not ready:
            self.parser.expire()
            return ""
        try:
            data = os.read(fds[0], 4096)
        except OSError:
            data = b""
        self._has_gone = not data
        self.parser.feed(data)
        return self.parser.next() or (GONE if self._has_gone else "")

    def take_over(self) -> None:
        """Enter the alternate screen; every key counts at once, without echo."""
        if self._keys_fd is not None and self._saved is not None:
            mode = list(self._saved)
            mode[6] = list(mode[6])
            mode[3] &= ~(termios.ECHO | termios.ICANON)
            mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
            mode[0] &= ~termios.IXON  # after Ctrl-S every write would wait for Ctrl-Q
            if not self._can_suspend:
                # Ctrl-Z would leave the shell in the alternate screen.
                mode[6][termios.VSUSP] = b"\0"
            _set_mode(self._keys_fd, mode)
        self.send(_ENTER)

    def restore(self) -> None:
        """Leave the alternate screen, with the terminal's mode as it was."""
        if self._unsent:
            # The rest of a picture may be long; a sequence that it cuts is cancelled.
            self._unsent = _CANCEL
        self.send(self.farewell + _LEAVE)
        self._send_in_time()
        if self._keys_fd is not None and self._saved is not None:
            with suppress(termios.error):
                _set_mode(self._keys_fd, self._saved)

    def _send(self) -> None:
        """Write as much as the terminal accepts now."""
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._fd, self._unsent) :]
        except BlockingIOError:
            pass  # the rest goes with the next picture
        except OSError:
            self._unsent, self._has_gone = b"", True

    def _send_in_time(self) -> None:
        deadline_s = time.monotonic() + _LEAVE_LIMIT_S
        while self._unsent and (left_s := deadline_s - time.monotonic()) > 0.0:
            select.select([], [self._fd], [], left_s)
            self._send()
        if self._unsent:
            # The terminal is not read: later output of the program would block on a full buffer.
            with suppress(termios.error):
                termios.tcflush(self._fd, termios.TCOFLUSH)
            self._send()
            self._unsent = b""


def bounded_size(columns: int, lines: int) -> tuple[int, int]:
    """Return a size of 1 x 1 to ``COLUMNS_MAX`` x ``LINES_MAX``."""
    return min(max(columns, 1), COLUMNS_MAX), min(max(lines, 1), LINES_MAX)


def _set_mode(fd: int, mode: list[Any]) -> None:
    """Set a terminal's mode, also if signals interrupt it.

    A process in the background stops here until it is in the foreground, and is then interrupted
    by SIGCONT.
    """
    while True:
        try:
            termios.tcsetattr(fd, termios.TCSANOW, mode)
        except termios.error as error:
            if error.args[0] != errno.EINTR:
                raise
        else:
            return


def _open_without_waiting(out: TextIO) -> int:
    """Return a non-blocking descriptor of out's terminal.

    It is a separate open file, because the mode belongs to the open file, which the shell shares.
    """
    try:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(os.ttyname(out.fileno()), flags)
    except OSError:  # a terminal of another user, or from outside a container
        return os.dup(out.fileno())
