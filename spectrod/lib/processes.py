"""Processes that work for one process, which alone handles the signals of the terminal."""

import ctypes
import os
import signal
from collections.abc import Callable, Collection
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from spectrod.lib.errors import UnavailableError

_PR_SET_PDEATHSIG = 1


def start_process(
    context: SpawnContext,
    target: Callable[..., None],
    args: tuple[Any, ...],
    blocked: Collection[signal.Signals],
) -> SpawnProcess:
    """Start a daemonic process in which signals are blocked.

    Parameters
    ----------
    context : SpawnContext
        Starts it afresh: drivers do not survive a fork.
    target, args : callable, tuple
        What it runs.
    blocked : collection of Signals
        Signals that terminals and schedulers send to all processes, and only this one handles.

    Raises
    ------
    UnavailableError
        If the system starts no process.
    """
    process = context.Process(target=target, args=args, daemon=True)
    resource_tracker.ensure_running()  # it would unblock SIGINT when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        process.start()
    except OSError as error:
        raise UnavailableError(f"process: cannot be started: {error.strerror}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def end_with(parent: int) -> bool:
    """Let the system kill this process when its parent ends, however it does.

    Parameters
    ----------
    parent : int
        Process that has started this one.

    Returns
    -------
    is_alive : bool
        Whether the parent is still there.
    """
    with suppress(OSError, AttributeError):  # elsewhere than on Linux a closed link must do
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent
