"""The end of a process whose drivers may still be at work."""

import contextlib
import logging
import os
import sys
import threading
from typing import NoReturn

_COMPILING = "spectrod-compile"
"""Name of the threads of ``LiveEngine``."""


def is_compiling() -> bool:
    """Return whether a thread that was left behind is still compiling kernels."""
    return any(one.name == _COMPILING for one in threading.enumerate())


def end_process(code: int) -> NoReturn:
    """End this process now, after flushing the standard streams and the log.

    The interpreter's and the libraries' own clean-up is left out: a compiler (LLVM in PoCL) that is
    at work in a thread would crash when its static objects are destroyed, and the exit code would
    tell of a crash instead of an orderly end.

    Parameters
    ----------
    code : int
        Exit code.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # Closed (None or ValueError), full or a broken pipe: the exit code stays.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
