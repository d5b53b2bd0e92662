"""Faults that tests inject into processes, and the resources that a capture must release."""

import contextlib
import ctypes
import gc
import os
import queue
import select
import signal
import threading
from pathlib import Path

_PTRACE_SEIZE, _PTRACE_INTERRUPT = 0x4206, 0x4207
_WALL = 0x40000000

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is looked at
# Prefixes of what servers and other tests, which run at the same time, keep there.
_OF_OTHERS = ("jack", "faketime", "sem.", "spectrod-fuzz-")


def children(pid="self"):
    """Return the processes that a process has started and not waited for."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended meanwhile
            found |= {int(child) for child in (task / "children").read_text().split()}
    return found


def wait_for_end(pid, timeout_s):
    """Wait until a process has ended, reaped or not."""
    fd = os.pidfd_open(pid)
    try:
        assert select.select([fd], [], [], timeout_s)[0], f"process {pid} goes on"
    finally:
        os.close(fd)


def threads_of(pid):
    """Return the threads of a process, by their ids, with their names."""
    return {
        int(t.name): (t / "comm").read_text().strip() for t in Path(f"/proc/{pid}/task").iterdir()
    }


class StoppedThread:
    """One thread of another process stands still until that process is killed; the rest goes on.

    Raises
    ------
    OSError
        If the system does not allow it.
    """

    def __init__(self, thread_id):
        self._stands = queue.SimpleQueue()
        # The tracer of a thread must also reap it, or its process would never end.
        self._tracer = threading.Thread(target=self._trace, args=(thread_id,), daemon=True)
        self._tracer.start()
        if (error := self._stands.get(timeout=5.0)) is not None:
            raise error

    def _trace(self, thread_id):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        for request in (_PTRACE_SEIZE, _PTRACE_INTERRUPT):
            if libc.ptrace(request, thread_id, None, None):
                self._stands.put(OSError(ctypes.get_errno(), f"ptrace of thread {thread_id}"))
                return
        _, status = os.waitpid(thread_id, _WALL)
        self._stands.put(None)
        while os.WIFSTOPPED(status):
            _, status = os.waitpid(thread_id, _WALL)

    def wait_for_end(self, timeout_s):
        """Wait until the process was killed."""
        self._tracer.join(timeout_s)
        assert not self._tracer.is_alive(), "the process was not killed"


@contextlib.contextmanager
def stopped(pid):
    """Stop a process within the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def belongings():
    """Return the resources of this process that a capture could leave behind."""
    # Otherwise the sockets of an event loop of an earlier test may be closed in between.
    gc.collect()
    maps = Path("/proc/self/maps").read_text().splitlines()
    return {
        "children": children(),
        "threads": set(threading.enumerate()),
        "descriptors": {
            fd.name: _target(fd) for fd in Path("/proc/self/fd").iterdir() if _target(fd)
        },
        "shared memory": {
            file.name for file in SHARED_MEMORY.iterdir() if not file.name.startswith(_OF_OTHERS)
        },
        "mappings": sorted(line.split()[-1] for line in maps if "memfd" in line),
    }


def _target(fd):
    """Return the target of a descriptor, or none for the closed one that listed them."""
    with contextlib.suppress(FileNotFoundError):
        return fd.readlink()
    return None
