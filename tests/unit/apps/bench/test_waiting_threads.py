"""Threads that spin while something else is timed are seen, and are asked to sleep."""

import hashlib
import os
import threading

from spectrod.apps.bench.waiting_threads import ask_threads_to_sleep, cores_after


def test_a_thread_that_takes_a_core_is_seen():
    """A thread that hashes, which holds no lock of Python's, counts; one that sleeps does not."""
    ends, data = threading.Event(), bytes(1 << 20)

    def hash_until_the_end():
        while not ends.is_set():
            hashlib.sha256(data).digest()

    assert cores_after(lambda: None) < 1.05
    thread = threading.Thread(target=hash_until_the_end)
    thread.start()
    try:
        assert cores_after(lambda: None) > 1.05
    finally:
        ends.set()
        thread.join()


def test_settings_of_the_user_stay(monkeypatch):
    """What is set already is kept, and said."""
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.setenv(name, "")  # so that what is set here is removed at the end
        monkeypatch.delenv(name)
    monkeypatch.setenv("KMP_BLOCKTIME", "7")
    said = "OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0 KMP_BLOCKTIME=7"
    assert ask_threads_to_sleep() == said
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
