"""Resources of this process, from /proc."""

import os
import resource
import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """Resources of this process; None where the system does not tell."""

    cpu_s: float
    """Processor time of all threads, user and system [s]."""
    resident_bytes: int | None
    open_fds: int | None
    max_fds: int | None
    threads: int


def process_use() -> ProcessUse:
    """Measure this process."""
    times = os.times()
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ProcessUse(
        times.user + times.system,
        _resident_bytes(),
        _open_fds(),
        None if soft_limit == resource.RLIM_INFINITY else soft_limit,
        threading.active_count(),
    )


def _resident_bytes() -> int | None:
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        return None
    return int(pages) * resource.getpagesize()


def _open_fds() -> int | None:
    try:
        # Less the descriptor of the listing.
        return len(list(Path("/proc/self/fd").iterdir())) - 1
    except OSError:
        return None
