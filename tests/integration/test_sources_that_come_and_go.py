"""A daemon whose sources and recordings come and go for long: nothing of them stays."""

import gc
import os
import re
import threading
import time
import tracemalloc
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.config.config import (
    Config,
    ControlConfig,
    EngineConfig,
    PublishConfig,
    RecordingConfig,
    SourceTable,
)
from spectrod.daemon.daemon import build_daemon
from spectrod.lib import events

pytestmark = [pytest.mark.slow, pytest.mark.extended]

FS = 8000
WARM_UP, CYCLES = 6, 12
LOOKS = 20
LONGEST_S = 20.0
BYTES_A_CYCLE = 4096
"""What a change of three sources may leave: counters of names, which are bounded."""


def table(name, uri, **settings):
    return SourceTable(uri=uri, name=name, **settings)


class Site:
    """A daemon with one source that stays, and three that come and go, which are recorded."""

    def __init__(self, folder):
        os.mkfifo(folder / "mic.fifo")
        # Open on both sides: the source always has a writer.
        self.fifo = os.open(folder / "mic.fifo", os.O_RDWR | os.O_NONBLOCK)
        noise = np.random.default_rng(5).normal(0.0, 0.1, 10 * FS)
        soundfile.write(folder / "x.wav", noise, FS, subtype="PCM_16")
        self._base = table("base", "signal:sine,500,-20", samplerate=FS)
        self._guests = (
            table("tone", "signal:sine,1000,-20", samplerate=FS),
            table("file", f"{folder}/x.wav", loop=True),
            table("mic", f"pcm:{folder}/mic.fifo", samplerate=FS),
        )
        self._settings = {
            "publish": PublishConfig(endpoints=(f"ipc://{folder}/spectrum.ipc",), replay_mb=0.05),
            "engine": EngineConfig("numpy"),
            "control": ControlConfig(state_folder=str(folder / "state")),
            "recordings": (
                RecordingConfig(
                    name="all",
                    # An open file has an index of its rows, which grows with the time of the test.
                    sources=tuple(one.name for one in self._guests),
                    samples="wav",
                    pyramid=True,
                    min_free_mb=0.0,
                ),
            ),
        }
        self.daemon = build_daemon(self._config())
        self.daemon.start()
        while not self.daemon.stats()[0].rows:
            self.daemon.progress.wait(0.02)
        for n in range(events._KEPT):  # the log of events is full from the start
            self.daemon.events.add("control.set", f"{n:0200d}", source="base")

    def _config(self, *guests):
        return Config(sources=(self._base, *guests), **self._settings)

    def _await_rows(self, *names):
        """Wait until the sources have recorded rows."""
        while not all(self._rows_of(name) for name in names):
            if "mic" in names:
                self._write()
            self.daemon.progress.wait(0.02)

    def _write(self):
        with suppress(BlockingIOError):
            os.write(self.fifo, bytes(range(1, 201)) * 8)

    def _rows_of(self, name):
        recorders = self.daemon.recordings.status()["recorders"]
        return sum(one.get("rows", 0) for one in recorders if one["source"] == name)

    def cycle(self):
        """Add the guests, record them, and remove them."""
        self.daemon.reconfigure(self._config(*self._guests))
        self._await_rows(*(one.name for one in self._guests))
        self.daemon.reconfigure(self._config())
        # A recording ends in its thread, which has its source until the disk has its files.
        while any("record" in one.name for one in threading.enumerate()):
            self.daemon.progress.wait(0.02)
        while True:
            try:
                os.read(self.fifo, 1 << 16)
            except BlockingIOError:
                return

    def close(self):
        self.daemon.stop()
        os.close(self.fifo)


def holdings(site, enough=0):
    """Return traced memory between batches of the source that stays, descriptors, threads.

    Looks until the memory is ``enough``: on a busy machine what is ending takes its time.
    """
    re.purge()
    traced = []
    end_s = time.monotonic() + LONGEST_S
    while len(traced) < LOOKS or (min(traced) > enough > 0 and time.monotonic() < end_s):
        gc.collect()
        traced.append(tracemalloc.get_traced_memory()[0])
        site.daemon.progress.wait(0.02)
    # The pool has as many threads as were busy at once, up to its bound: chance says when.
    names = Counter(one.name for one in threading.enumerate() if not is_of_pool(one))
    return min(traced), len(list(Path("/proc/self/fd").iterdir())), names


def is_of_pool(thread):
    return re.fullmatch(r"spectrod-jobs-\d+", thread.name) is not None


def test_sources_and_recordings_that_come_and_go_leave_nothing(tmp_path):
    """After dozens of sources with recordings, memory, descriptors and threads are as before."""
    tracemalloc.start()  # before the events of which the log is full, which go as others come
    site = Site(tmp_path)
    try:
        for _ in range(WARM_UP):
            site.cycle()
        traced, n_open, threads = holdings(site)
        for _ in range(CYCLES):
            site.cycle()
        enough = traced + BYTES_A_CYCLE * CYCLES - 1
        traced_after, n_open_after, threads_after = holdings(site, enough)
        n_helpers = sum(map(is_of_pool, threading.enumerate()))
    finally:
        tracemalloc.stop()
        site.close()
    assert traced_after <= enough
    assert n_open_after <= n_open
    assert not threads_after - threads
    assert 0 < n_helpers <= site.daemon._pool.threads_max
