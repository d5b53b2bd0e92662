"""What this process takes of the machine."""

import resource
import time
from pathlib import Path

_PAGE_BYTES = resource.getpagesize()
_MAXRSS_UNIT = 1024  # Linux counts KiB


def resident_bytes() -> int:
    """Memory that is resident now [bytes]."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * _PAGE_BYTES


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
