"""Signals that end a command that writes files."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does; by themselves they would leave partial files."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler == signal.SIG_DFL:  # nohup's SIG_IGN stays
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
