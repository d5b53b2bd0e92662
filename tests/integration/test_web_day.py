"""A day of the page's server beside a daemon whose sources come and go: memory is flat."""

import gc
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.hub import KEPT_S
from spectrod.client.tracker import GONE_S
from spectrod.wire.headers import HeartbeatHeader, IntervalTopic, MetaHeader, SpectrumHeader
from spectrod.wire.schema import Heartbeat, Meta, encode

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
from web_pages import make_hub
from web_rows import COMMON

HOUR_S, DAY_S = 3600.0, 86400.0
TURN_S, BEAT_S = 58.0, 2.9
LIFE_S = 240.0
NS = 10**9
RING_BYTES = 1 << 20
N_VALUES = 513
LENGTHS = {"win_length": 1024, "nfft": 1024, "hop": 48000, "shape": (N_VALUES,)}
HERTZ = np.linspace(0.0, 24e3, N_VALUES)
N_RECENT = round((max(GONE_S, KEPT_S) + LIFE_S) / TURN_S) + 4
"""Sources that exist, or went so recently that something is kept of them."""


def sources(turn):
    """Return the names of those that exist: one that stays, and those of the last minutes."""
    return ["roof", *(f"s{k}" for k in range(max(0, turn - round(LIFE_S / TURN_S)), turn))]


def beat(source, day_s, seq):
    times = {"seq": seq, "epoch": 1, "t_utc_ns": round(day_s * NS), "t_mono_ns": 0}
    listed = (IntervalTopic(f"levels/{source}/0/slm/", 1.0),)
    header = HeartbeatHeader(**times, state="running", frames=0, interval_topics=listed)
    return encode(Heartbeat(f"hb/{source}/", header))


def description(source, seq):
    about = COMMON | LENGTHS | {"seq": seq, "t_utc_ns": 0, "device": "", "channels": 1}
    fields = {name: about[name] for name in MetaHeader.__struct_fields__ if name in about}
    return encode(Meta(f"meta/{source}/0/dbfs/", MetaHeader(**fields), HERTZ))


def row_header(day_s):
    return SpectrumHeader(**(COMMON | LENGTHS | {"seq": 0, "t_utc_ns": round(day_s * NS)}))


class Day:
    """A hub and a ring beside a daemon, and the clock, which the day sets."""

    def __init__(self, monkeypatch):
        self.now_s = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: 1e6 + self.now_s)
        self.hub, self.ring = make_hub("tcp://127.0.0.1:9"), Ring(RING_BYTES, RING_BYTES)
        self.hub.add_forgetter(self.ring.forget)
        (self.feed,) = self.hub._feeds
        self.tracker = self.feed._subscription._tracker
        self._codes = np.zeros(N_VALUES, np.uint16)

    def run_until(self, end_s):
        while self.now_s < end_s:
            self._turn(round(self.now_s / TURN_S))

    def _turn(self, turn):
        names = sources(turn)
        for name in names:
            self.tracker.feed(beat(name, self.now_s, turn * 100))
            self.tracker.feed(description(name, turn))
        for k in range(1, round(TURN_S / BEAT_S) + 1):  # one source has all its heartbeats
            self.now_s = turn * TURN_S + k * BEAT_S
            self.tracker.feed(beat("roof", self.now_s, turn * 100 + k))
        self.feed._note_others()
        self.hub._note_topics(time.monotonic())
        for topic in self.hub.topics.values():
            if topic.has_rows:
                self.ring.push(topic.id, row_header(self.now_s), self._codes)


def traced_bytes():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.extended
def test_memory_of_a_day_follows_the_sources_that_exist(monkeypatch):
    """Of 1490 sources, five at a time, nothing is left that an hour does not leave."""
    day = Day(monkeypatch)
    tracemalloc.start(1)
    try:
        day.run_until(HOUR_S)
        after_an_hour = traced_bytes()
        day.run_until(DAY_S)
        growth = traced_bytes() - after_an_hour
    finally:
        tracemalloc.stop()
        day.feed._subscription.close()
    # Spectra and measurements of each.
    assert len(day.hub.topics) <= 2 * N_RECENT
    assert len(day.tracker.meta) <= N_RECENT
    assert len(day.tracker.heartbeats) <= N_RECENT
    assert len(day.ring._topics) <= N_RECENT
    # Numbers and names of topics that have gone, at most 4096, remain.
    assert growth < 3e6
