"""Threads of libraries that wait for work by spinning: asked to sleep, and measured."""

import os
import statistics
import time
from collections.abc import Callable

import numpy as np

_SETTINGS = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
"""What GNU's and Intel's OpenMP read when they are loaded. Otherwise threads spin after a call, and
take a core from whatever is timed next."""
_COPY_S = 0.005
_REPEATS = 3


def ask_threads_to_sleep() -> str:
    """Set what OpenMP reads, unless it is set; returns the settings. Call before it is loaded."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    return " ".join(f"{name}={os.environ[name]}" for name in _SETTINGS)


def cores_after(call: Callable[[], object]) -> float:
    """Return how many cores this process keeps busy while one thread copies after a call.

    Parameters
    ----------
    call : callable
        What is timed.

    Returns
    -------
    cores : float
        1 where all threads but the one that copies sleep; the median of three calls. Processor
        time of other threads over that of the copying one, so other programs do not count.
    """
    return statistics.median(_busy_cores(call) for _ in range(_REPEATS))


def _busy_cores(call: Callable[[], object]) -> float:
    source = np.ones(1 << 12)
    target = np.empty_like(source)
    call()
    process_s, own_s = time.process_time(), time.thread_time()
    end_s = own_s + _COPY_S
    while time.thread_time() < end_s:
        np.copyto(target, source)
    own = time.thread_time() - own_s
    return (time.process_time() - process_s) / own
