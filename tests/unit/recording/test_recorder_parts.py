"""Parts of a recording: its queue, its events, its reports."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.config.settings import RecordingConfig
from spectrod.lib.events import EventLog
from spectrod.recording.chunk_queue import ChunkQueue
from spectrod.recording.preroll_buffer import PrerollBuffer
from spectrod.recording.reporter import Reporter
from spectrod.recording.triggers import EventFinder, LevelTrigger, Triggers

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))

from recorder_chunks import FS, NS, batch, block

# ---- queue


def test_objects_within_the_bound_are_unchanged():
    """Objects within the bound come out unchanged and in order."""
    queue = ChunkQueue(1 << 20)
    batches = [batch(k) for k in range(5)]
    for one in batches:
        queue.put(one)
    assert [queue.take() for _ in range(5)] == batches
    assert (queue.take(), queue.dropped, len(queue)) == (None, 0, 0)


def test_the_oldest_are_dropped_and_become_a_gap_of_the_next():
    """The oldest are dropped; the next reports their rows and earlier gaps as missing."""
    size = batch(0, 3).n_bytes
    queue = ChunkQueue(2 * size)
    for first, gap_samples in ((0, 0), (3, 50), (6, 0), (9, 0), (12, 7)):
        queue.put(batch(first, 3, gap_samples))
    kept = [queue.take(), queue.take()]
    assert [int(one.sample_index[0]) for one in kept] == [900, 1200]
    assert [one.gap_samples for one in kept] == [3 * 300 + 50, 7]
    assert kept[0].discontinuity
    assert (queue.dropped, queue.take()) == (9, None)
    assert queue.peak == 2 * size


def test_one_piece_fits_whatever_its_size():
    """One piece of any size fits and displaces those before it."""
    queue = ChunkQueue(100)
    queue.put(block(0, np.zeros(20)))
    queue.put(block(20, np.zeros(500)))
    taken = queue.take()
    assert (taken.n_samples, taken.lost_samples, queue.dropped) == (500, 20, 20)


# ---- events


def test_events_whose_times_meet_are_one():
    """Events whose times overlap are merged in any order."""
    triggers = Triggers(1.0, 2.0)
    assert [triggers.add(t * NS, t * NS) for t in (10, 12, 20, 19)] == [True, False, True, False]
    assert triggers.count == 2
    assert triggers.at(9 * NS) == (True, 14 * NS + 1)
    assert triggers.at(14 * NS) == (True, 14 * NS + 1)
    assert triggers.at(14 * NS + 1) == (False, 18 * NS)
    assert triggers.at(30 * NS)[0] is False


def test_a_pre_roll_that_memory_has_no_room_for_is_shorter():
    """A pre-roll that exceeds memory keeps the newest data and counts the rest."""
    triggers = Triggers(100.0, 0.0)
    preroll = PrerollBuffer(triggers, 4 * batch(0).n_bytes)
    given_up = [one for k in range(20) for one in preroll.push(batch(k))]
    assert [is_wanted for _, is_wanted in given_up] == [False] * 16
    assert preroll.short_by == 16
    triggers.add(2 * NS, 2 * NS)
    released = list(preroll.push(batch(20)))
    assert [(int(one.sample_index[0]), is_wanted) for one, is_wanted in released] == [
        (1600, True), (1700, True), (1800, True), (1900, True), (2000, True),
    ]  # fmt: skip


@pytest.mark.parametrize("sizes", [[125], [7, 300, 1, 64, 2000], [1000]])
def test_a_level_triggers_with_the_125_ms_that_reach_it(sizes):
    """A level triggers with the 125 ms that reach it, in any blocks, by the loudest channel."""
    times = []
    trigger = LevelTrigger(-20.0, FS, lambda *both: times.append(both))
    t = np.arange(3000) / FS
    quiet = 0.0999 * np.sin(2 * np.pi * 40 * t)  # a sine of -20.01 dBFS, whole periods in 125 ms
    loud = quiet.copy()
    loud[1000:1125] *= 1.01
    samples = np.stack([quiet, loud])
    done, k = 0, 0
    while done < 3000:
        n = sizes[k % len(sizes)]
        trigger.look(block(done, samples[:, done : done + n]))
        done, k = done + n, k + 1
    assert times == [(NS, 1124 * NS // 1000)]


def test_a_gap_restarts_the_125_ms():
    """After a gap a new 125 ms average starts."""
    times = []
    trigger = LevelTrigger(-20.0, FS, lambda *both: times.append(both))
    trigger.look(block(0, np.full(100, 0.2)))
    trigger.look(block(200, np.full(100, 0.2), lost_samples=100))
    assert times == []
    trigger.look(block(300, np.full(25, 0.2)))
    assert times == [(NS // 5, 324 * NS // 1000)]


def test_a_frequent_report_has_a_count():
    """A repeated message appears once in 10 s per kind with a count; errors always appear."""
    clock, events = SimpleNamespace(now_s=0.0), EventLog()
    clock.monotonic_s = lambda: clock.now_s
    reporter = Reporter("night", "pond", events, clock)
    for k in range(25):
        clock.now_s = float(k)
        reporter.report("record.file", f"{k}")
    reporter.report("record.begun", "x")
    reporter.warn("record.failed", "y")
    reporter.warn("record.failed", "z")
    more = "; 9 more like this since the last such line"
    assert [event.text for event in events.since()] == [
        "night: 0", f"night: 10{more}", f"night: 20{more}", "night: x", "night: y", "night: z",
    ]  # fmt: skip
    assert {event.source for event in events.since()} == {"pond"}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [(("clipping",), [1]), (("silent",), [2]), (("silent", "clipping"), [1, 2]), (("dc",), [])],
)
def test_a_fault_triggers_at_its_start(kinds, expected):
    """A fault triggers at its start and clipping with each block; a lasting state does not."""
    states = iter([
        (("stuck: 1",), 7), (("stuck: 1", "clipping: 0"), 9), (("silent: 0", "clipping: 0"), 9),
        (("silent: 0", "dc: 1 (-3.0 dBFS)"), 9),
    ])  # fmt: skip
    config, times = RecordingConfig("night", triggers=kinds), []
    note = lambda first_ns, _last_ns, _why: times.append(first_ns // NS)  # noqa: E731
    finder = EventFinder(config, FS, lambda: next(states), note)
    for k in range(4):
        finder.write(block(1000 * k, np.zeros(10)))
    assert [t for t in times if t in (1, 2)] == expected
