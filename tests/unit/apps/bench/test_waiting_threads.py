"""Threads that spin while something else is timed are seen, and are asked to sleep."""

import os
import subprocess
import sys

from spectrod.apps.bench.waiting_threads import ask_threads_to_sleep

MEASURE = """
import hashlib, threading
from spectrod.apps.bench.waiting_threads import cores_after

ends, data = threading.Event(), bytes(1 << 20)

def hash_until_the_end():
    while not ends.is_set():
        hashlib.sha256(data).digest()

print(cores_after(lambda: None))
thread = threading.Thread(target=hash_until_the_end)
thread.start()
try:
    print(cores_after(lambda: None))
finally:
    ends.set()
    thread.join()
"""


def test_a_thread_that_takes_a_core_is_seen():
    """A thread that hashes, which holds no lock of Python's, counts."""
    # In a process of its own: threads that other tests left would count, too.
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, check=True)
    without, beside = map(float, run.stdout.split())
    assert without < 1.05 < beside


def test_settings_of_the_user_stay(monkeypatch):
    """What is set already is kept, and said."""
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.setenv(name, "")  # so that what is set here is removed at the end
        monkeypatch.delenv(name)
    monkeypatch.setenv("KMP_BLOCKTIME", "7")
    said = "OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0 KMP_BLOCKTIME=7"
    assert ask_threads_to_sleep() == said
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
