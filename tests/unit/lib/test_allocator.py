"""Freed memory that the process keeps, measured by the pages that the system gives it."""

import ctypes
import os
import subprocess
import sys

import pytest

from spectrod.lib import allocator

N_ROUNDS = 50


def printed(script, *arguments):
    """Run a script with the C library's own defaults, and return what it prints."""
    # Dask sets MALLOC_TRIM_THRESHOLD_ in the process that starts its workers.
    defaults = {key: text for key, text in os.environ.items() if not key.startswith("MALLOC_")}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60, env=defaults
    )
    return done.stdout


PAGES = """
import resource, sys
import numpy as np
from spectrod.lib.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
def fill(n_bytes):
    return np.ones(n_bytes, np.uint8)
def work():
    for n_bytes in (1 << 20, 700_000, 300_001):
        first, second = fill(n_bytes), fill(n_bytes)
        del first, second
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(int(sys.argv[2])):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def new_pages(mode):
    """Return the number of pages that arrays of up to 1 MiB get after they were made once."""
    return int(printed(PAGES, mode, str(N_ROUNDS)))


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="no GNU C library")
def test_arrays_get_the_memory_of_freed_ones():
    """Arrays that are made again get no new pages, of which they have some hundred by default."""
    assert new_pages("keep") < N_ROUNDS
    assert new_pages("default") > 100 * N_ROUNDS


HEAPS = """
import sys, threading
from spectrod.lib.allocator import share_arenas
if sys.argv[1] == "share":
    share_arenas()
N_THREADS = 6
began, over = threading.Barrier(N_THREADS + 1), threading.Barrier(N_THREADS + 1)
def work():
    import ctypes
    ctypes.CDLL(None).malloc(1000)
    began.wait()
    over.wait()
threads = [threading.Thread(target=work) for _ in range(N_THREADS)]
for one in threads:
    one.start()
began.wait()
from ctypes import CDLL, c_char_p, c_size_t, c_void_p, byref, string_at
libc = CDLL(None)
libc.open_memstream.restype = c_void_p
text, n_bytes = c_char_p(), c_size_t()
stream = c_void_p(libc.open_memstream(byref(text), byref(n_bytes)))
libc.malloc_info(0, stream)
libc.fclose(stream)
print(text.value.count(b"<heap nr"))
over.wait()
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="no GNU C library")
def test_threads_share_two_heaps():
    """Six threads have two heaps, and more by default."""
    assert int(printed(HEAPS, "share")) == 2
    assert int(printed(HEAPS, "default")) > 2


def test_another_c_library_is_left_alone(monkeypatch):
    """Without ``mallopt`` nothing happens."""
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _name: object())
    allocator.keep_freed_memory()
    allocator.share_arenas()
    allocator.map_large_arrays()


BUSY = """
import os, sys
from spectrod.lib.allocator import map_large_arrays
if sys.argv[1] == "map":
    map_large_arrays()
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def moment():
    return [b"1" * 1_000_000 for _ in range(30)]
moment()
before, kept, most = resident(), [], 0
for _ in range(20):
    large = moment()
    kept.append(b"1" * 300_000)
    del large
    most = max(most, resident())
print(most - before - 300_000 * len(kept))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="no GNU C library")
def test_large_arrays_leave_nothing_between_those_that_stay():
    """Of arrays of 30 MB that are made again and again, with one of 0.3 MB that stays each time."""
    assert int(printed(BUSY, "map")) < 1e6
    assert int(printed(BUSY, "default")) > 10e6


FREED = """
import os
from spectrod.lib.allocator import give_back_memory
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before = resident()
pieces = [bytes(1000) for _ in range(60_000)]
kept = pieces[::100]
del pieces
freed = resident()
give_back_memory()
print(freed - before, resident() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="no GNU C library")
def test_memory_between_pieces_that_stay_is_given_back():
    """Of 60 MB with a piece in each 100 kB, which the process would keep."""
    freed, given_back = map(int, printed(FREED).split())
    assert freed > 50e6
    assert given_back < 15e6
