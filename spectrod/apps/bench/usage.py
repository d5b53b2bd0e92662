"""Resource use of this process and of others."""

import os
import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PAGE_BYTES = resource.getpagesize()
_MAXRSS_UNIT = 1024  # Linux counts KiB


def resident_bytes(pid: int | str = "self") -> int:
    """Return the resident memory of a process [bytes]."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * _PAGE_BYTES


def descriptors(pid: int | str = "self") -> int:
    """Return the number of descriptors that a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def processor_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process [s]."""
    # proc(5): the name, in parentheses, may hold spaces; utime and stime are fields 14 and 15.
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def process_tree(pid: int) -> Iterator[int]:
    """Yield a process and all its descendants that live."""
    yield pid
    with suppress(FileNotFoundError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text(encoding="ascii").split():
                yield from process_tree(int(child))


def proportional_bytes(pid: int) -> int:
    """Return a process's memory, pages that it shares divided by their users (PSS) [bytes]."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def wake_ups(pid: int) -> int:
    """Return how often the living threads of a process have slept, and were woken."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # the thread has ended
            status = (task / "status").read_text(encoding="utf-8", errors="replace")
            total += int(status.rpartition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return total


def peak_resident_bytes() -> int:
    """Return the peak resident memory of this process [bytes]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT


class CpuMeter:
    """CPU time of all threads of this process, drivers' included, from creation on."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def share(self) -> float:
        """Return the CPU time as a share of one core; above 1 for more than a core [1]."""
        return (time.process_time() - self._cpu) / (time.monotonic() - self._wall)
