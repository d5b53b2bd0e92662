"""Signals that would end or stop the view with the terminal taken over."""

import os
import signal
import threading
from types import FrameType
from typing import Self


class TerminalSignals:
    """Turns signals into flags inside a ``with`` statement, so that the terminal is restored first.

    Only signals that still have their default action: a program that handles them itself, or runs
    the view outside its main thread, continues to do so. Signals that ended the view act at the
    end of the ``with`` statement.
    """

    def __init__(self) -> None:
        self._caught: list[int] = []
        self._mine: list[int] = []
        self._wants_stop = self._was_continued = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT)
            self._mine = [n for n in numbers if signal.getsignal(n) is signal.SIG_DFL]
        for number in self._mine:
            signal.signal(number, self._note)
        return self

    def __exit__(self, *_exc: object) -> None:
        for number in self._mine:
            signal.signal(number, signal.SIG_DFL)
        if self._caught:
            signal.raise_signal(self._caught[0])

    @property
    def can_suspend(self) -> bool:
        """Whether Ctrl-Z reaches ``wants_stop``."""
        return signal.SIGTSTP in self._mine

    @property
    def ended(self) -> bool:
        """Whether SIGTERM or SIGHUP came."""
        return bool(self._caught)

    @property
    def wants_stop(self) -> bool:
        """Whether SIGTSTP came, as by Ctrl-Z; call ``stop`` then."""
        return self._wants_stop

    def stop(self) -> None:
        """Stop the process, as SIGTSTP does by default; return when it continues."""
        self._wants_stop = False
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note)
        self._was_continued = False

    def take_continued(self) -> bool:
        """Return once whether SIGCONT came after a stop that nobody announced."""
        was_continued, self._was_continued = self._was_continued, False
        return was_continued

    def _note(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._wants_stop = True
        elif number == signal.SIGCONT:
            self._was_continued = True
        else:
            self._caught.append(number)
