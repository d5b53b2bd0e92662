"""What this process and others take of the machine."""

import os
import resource
import time
from pathlib import Path

_PAGE_BYTES = resource.getpagesize()
_MAXRSS_UNIT = 1024  # Linux counts KiB


def resident_bytes(pid: int | str = "self") -> int:
    """Memory of a process that is resident now [bytes]."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * _PAGE_BYTES


def descriptors(pid: int | str = "self") -> int:
    """Files, sockets and the like that a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def processor_seconds(pid: int) -> float:
    """Time of processors that all threads of a process have taken [s]."""
    # proc(5): the name, in parentheses, may hold spaces; utime and stime are fields 14 and 15.
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_resident_bytes() -> int:
    """Most memory that ever was resident [bytes]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT


class CpuMeter:
    """Time of processors from its making on, of all threads of this process, drivers' included."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def share(self) -> float:
        """Part of one core's time that was taken; above 1 for more than a core [1]."""
        return (time.process_time() - self._cpu) / (time.monotonic() - self._wall)
