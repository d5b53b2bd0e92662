"""The limits of threads of this process."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")


class Limit(NamedTuple):
    """A limit of threads.

    Attributes
    ----------
    n : int
        Threads and processes that may run at once.
    name : str
        Who sets it.
    """

    n: int
    name: str


def current_limit(*, cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> Limit | None:
    """Return the lowest limit of threads and processes; None without a limit.

    Parameters
    ----------
    cgroups : Path
        Folder of the control groups.
    own : Path
        File with the control groups of this process.
    """
    return min(_limits(cgroups, own), default=None)


def _limits(cgroups: Path, own: Path) -> Iterator[Limit]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:  # root is exempt
        yield Limit(soft, "LimitNPROC= of the unit, or ulimit -u: of all processes of the user")
    for folder in _folders(cgroups, own):
        try:
            text = (folder / "pids.max").read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            yield Limit(int(text), "TasksMax= of the unit, or pids.max of its control group")


def _folders(cgroups: Path, own: Path) -> Iterator[Path]:
    """Yield the control groups of this process that may limit it, and those above."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "pids"):
            folder = cgroups / controllers / path.lstrip("/")
            yield from (one for one in (folder, *folder.parents) if cgroups in one.parents)
