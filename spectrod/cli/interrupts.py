"""Signals that end a command that writes files."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


@contextmanager
def signals_as_interrupts(again_s: float = 0.01) -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C; by default they would leave partial files.

    Python drops an interrupt that arrives in a finalizer, for example while modules are imported;
    it is sent again then.

    Parameters
    ----------
    again_s : float
        Time after which it is sent again [s].
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler == signal.SIG_DFL:  # nohup's SIG_IGN stays
            signal.signal(number, signal.default_int_handler)
    hook, main = sys.unraisablehook, threading.get_ident()

    def interrupt_again(unraisable: "UnraisableHookArgs") -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            again = threading.Timer(again_s, interrupt_outside)
            again.daemon = True
            again.start()
        else:
            hook(unraisable)

    def interrupt_outside() -> None:
        # Within that function it would be dropped as well; a busy machine takes long to leave it.
        while _runs(main, interrupt_again.__code__):
            time.sleep(again_s)
        signal.pthread_kill(main, signal.SIGINT)

    sys.unraisablehook = interrupt_again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _runs(thread: int, code: CodeType) -> bool:
    """Return whether a thread is in a function, or in what that calls."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001  # documented, for debuggers
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C and the other signals to the end of the block.

    For writers of files: half a batch in a file that is finished afterwards would be wrong, and
    HDF5 crashes if Python interrupts a call of it. Main thread only.
    """
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in numbers}
    # Ignored signals stay ignored.
    before = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in before:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:  # raises KeyboardInterrupt, unless another handler was set
        before[signal.Signals(came[0])](came[0], None)
