"""Faults that tests inject into processes, and what a capture must not leave behind."""

import contextlib
import ctypes
import os
import signal
from pathlib import Path

_PTRACE_DETACH, _PTRACE_SEIZE, _PTRACE_INTERRUPT = 17, 0x4206, 0x4207
_WALL = 0x40000000

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is looked at


def children(pid="self"):
    """Processes that a process has started and not waited for."""
    return {
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    }


def threads_of(pid):
    """Threads of a process, by their ids, with their names."""
    return {
        int(t.name): (t / "comm").read_text().strip() for t in Path(f"/proc/{pid}/task").iterdir()
    }


@contextlib.contextmanager
def stopped_thread(thread_id):
    """One thread of another process stands still meanwhile; the rest of the process goes on."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    for request in (_PTRACE_SEIZE, _PTRACE_INTERRUPT):
        if libc.ptrace(request, thread_id, None, None):
            raise OSError(ctypes.get_errno(), f"ptrace of thread {thread_id}")
    os.waitpid(thread_id, _WALL)  # it stands when this returns
    try:
        yield
    finally:
        # The process may have been killed meanwhile, which is what is tested.
        libc.ptrace(_PTRACE_DETACH, thread_id, None, None)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(thread_id, _WALL | os.WNOHANG)


@contextlib.contextmanager
def stopped(pid):
    """A process stands still meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def belongings():
    """What this process has now that a capture could leave behind."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return {
        "children": children(),
        "threads": set(threads_of(os.getpid())),
        "descriptors": {
            fd.name: _target(fd) for fd in Path("/proc/self/fd").iterdir() if _target(fd)
        },
        "shared memory": {file.name for file in SHARED_MEMORY.iterdir() if "jack" not in file.name},
        "mappings": sorted(line.split()[-1] for line in maps if "memfd" in line),
    }


def _target(fd):
    """What a descriptor refers to; none for the one that lists them, which is gone by now."""
    with contextlib.suppress(FileNotFoundError):
        return fd.readlink()
    return None
