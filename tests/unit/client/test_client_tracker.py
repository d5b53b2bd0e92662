"""State of a subscriber from its messages: holes, restarts, and filled holes."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from spectrod.client.tracker import (
    GONE_S,
    REPLAY_LIMIT,
    SOURCES_MAX,
    TOPICS_MAX,
    ReplayRequest,
    Tracker,
)
from spectrod.lib.errors import WireError
from spectrod.wire.schema import (
    BandFrame,
    BandsHeader,
    EventHeader,
    EventMessage,
    Frame,
    Heartbeat,
    HeartbeatHeader,
    Meta,
    MetaHeader,
    SpectrumHeader,
    encode,
)

sys.path.insert(0, str(Path(__file__).parents[2] / "wire"))
from made_up import SPECTRUM

TOPIC = "spec/mic/0/dbfs/"
SECOND_NS = 10**9
BANDS = SPECTRUM | {"shape": (5,)}


def message(seq, *, epoch=1, topic=TOPIC):
    header = SpectrumHeader(
        seq=seq, epoch=epoch, t_utc_ns=seq * SECOND_NS, t_mono_ns=0, sample_index=0, **SPECTRUM
    )
    return encode(Frame(topic, header, np.full(33, seq, np.float32)))


def taken(tracker, *messages):
    """Feed messages; return the results of each."""
    steps = []
    for parts in messages:
        tracker.feed(parts)
        while (step := tracker.step()) is not None:
            steps.append(step)
            if isinstance(step, ReplayRequest):
                return steps
    return steps


def counts(frames):
    return [(frame.header.seq, frame.missed, frame.replayed) for frame in frames]


@pytest.fixture
def tracker():
    return Tracker("tcp://x:1", replays=True)


def test_without_replay_nothing_is_asked_for():
    """The frame after a hole reports it."""
    tracker = Tracker("tcp://x:1")
    assert counts(taken(tracker, message(4), message(9))) == [(4, 0, False), (9, 4, False)]
    assert tracker.missed == 4


def test_a_hole_is_asked_for_before_the_frame_after_it(tracker):
    """From the first that is missing, in its epoch, and no more than are missing."""
    first, ask = taken(tracker, message(4, epoch=7), message(9, epoch=7))
    assert first.header.seq == 4
    assert ask == ReplayRequest(TOPIC, 5, 7, 4)


def test_missed_messages_come_in_their_place(tracker):
    """All four, then the frame that showed the hole; nothing counts as missed."""
    taken(tracker, message(4), message(9))
    tracker.answer([message(k) for k in (5, 6, 7, 8)], more=False)
    frames = [tracker.step() for _ in range(5)]
    expected = [(5, 0, True), (6, 0, True), (7, 0, True), (8, 0, True), (9, 0, False)]
    assert counts(frames) == expected
    assert tracker.step() is None
    assert tracker.missed == 0
    assert counts(taken(tracker, message(10))) == [(10, 0, False)]


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ([], [(9, 4, False)]),
        ([7, 8], [(7, 2, True), (8, 0, True), (9, 0, False)]),
        ([5, 8], [(5, 0, True), (8, 2, True), (9, 0, False)]),
        ([5, 6], [(5, 0, True), (6, 0, True), (9, 2, False)]),
        ([8, 9, 10], [(8, 3, True), (9, 0, False)]),
        ([3, 5, 5], [(5, 0, True), (9, 3, False)]),
    ],
)
def test_messages_that_the_daemon_has_dropped_count_as_missed(tracker, there, expected):
    """Before the frame that follows it; frames outside the hole are ignored."""
    taken(tracker, message(4), message(9))
    tracker.answer([message(k) for k in there], more=False)
    frames = []
    while (step := tracker.step()) is not None:
        frames.append(step)
    assert counts(frames) == expected
    assert tracker.missed == sum(missed for _, missed, _ in expected)


def test_long_holes_are_asked_for_in_parts(tracker):
    """As many as fit one answer, and again while there are more."""
    n = 2 * REPLAY_LIMIT + 10
    *_, ask = taken(tracker, message(0), message(n + 1))
    numbers = []
    while ask is not None:
        assert ask.limit == min(REPLAY_LIMIT, n + 1 - ask.first_seq)
        last = ask.first_seq + ask.limit
        tracker.answer([message(k) for k in range(ask.first_seq, last)], more=last <= n)
        while isinstance(ask := tracker.step(), Frame):
            numbers.append(ask.header.seq)
    assert numbers == list(range(1, n + 2))


def test_an_answer_that_leads_no_further_is_the_last(tracker):
    """A daemon that announces more but sends nothing new gets no endless requests."""
    taken(tracker, message(4), message(9))
    tracker.answer([message(4)], more=True)
    assert counts([tracker.step()]) == [(9, 4, False)]
    assert tracker.step() is None


def test_a_malformed_answer_is_reported_and_the_stream_continues(tracker):
    """The frame that waited comes all the same."""
    taken(tracker, message(4), message(9))
    with pytest.raises(WireError, match="message of 1 parts"):
        tracker.answer([[b"x"]], more=True)
    assert counts([tracker.step()]) == [(9, 4, False)]


def test_messages_of_another_epoch_fill_nothing(tracker):
    """A daemon that was restarted meanwhile has other frames of the same numbers."""
    taken(tracker, message(4), message(9))
    tracker.answer([message(5, epoch=2)], more=False)
    assert counts([tracker.step()]) == [(9, 4, False)]


def test_a_restart_has_the_duration_of_the_silence():
    """From the last frame before it to the first after it; lost are those of the new start."""
    tracker = Tracker("tcp://x:1")
    _, after, then = taken(tracker, message(4), message(9, epoch=2), message(10, epoch=2))
    assert (after.restarted, after.missed, after.away_s) == (True, 9, 5.0)
    assert (then.restarted, then.missed, then.away_s) == (False, 0, 0.0)


def test_the_first_frame_after_a_restart_reports_it(tracker):
    """With replay that is one that was sent before we were back."""
    *_, ask = taken(tracker, message(4), message(9, epoch=2))
    assert ask == ReplayRequest(TOPIC, 0, 2, 9)
    tracker.answer([message(7, epoch=2), message(8, epoch=2)], more=False)
    first, second, third = (tracker.step() for _ in range(3))
    assert counts([first, second, third]) == [(7, 7, True), (8, 0, True), (9, 0, False)]
    assert [frame.restarted for frame in (first, second, third)] == [True, False, False]
    assert [frame.away_s for frame in (first, second, third)] == [3.0, 0.0, 0.0]


def test_topics_have_numbers_of_their_own(tracker):
    """Two channels interleaved are no holes."""
    other = TOPIC.replace("/0/", "/1/")
    steps = taken(tracker, message(4), message(7, topic=other), message(5), message(8, topic=other))
    assert counts(steps) == [(4, 0, False), (7, 0, False), (5, 0, False), (8, 0, False)]


def test_the_last_frame_sent_again_is_no_step_back(tracker):
    """Topics of ``last/`` repeat a number."""
    last = TOPIC.replace("spec/", "last/")
    steps = taken(tracker, message(4), message(4, topic=last), message(4, topic=last), message(5))
    assert counts(steps) == [(4, 0, False)] * 3 + [(5, 0, False)]


def test_bands_have_their_own_frames_and_descriptions(tracker):
    """By the topic that describes them."""
    header = MetaHeader(
        seq=0, epoch=1, t_utc_ns=0, device="x", channels=1, bands="third-octave", **BANDS
    )
    tracker.feed(encode(Meta("meta/mic/0/noise/", header, np.arange(5.0), np.ones((2, 5)))))
    frame = BandFrame(
        "bands/mic/0/noise/",
        BandsHeader(
            seq=3,
            epoch=1,
            t_utc_ns=0,
            t_mono_ns=0,
            sample_index=0,
            bands="third-octave",
            n_bands=5,
            **BANDS,
        ),
        np.zeros(5, np.float32),
    )
    (step,) = taken(tracker, encode(frame))
    assert isinstance(step, BandFrame)
    np.testing.assert_array_equal(tracker.meta[step.topic].f, np.arange(5.0))


def test_events_wait_until_they_are_removed(tracker):
    """In order, at most 1000."""
    for seq in range(1003):
        header = EventHeader(seq=seq, epoch=1, t_utc_ns=0, number=seq, kind="x.y", text="z")
        tracker.feed(encode(EventMessage("event/mic/", header)))
    assert tracker.step() is None
    assert [event.header.seq for event in tracker.events] == list(range(3, 1003))


@pytest.mark.slow
def test_topics_and_sources_without_end_are_forgotten(tracker):
    """A subscriber keeps a bounded number of names that a daemon invents."""
    for k in range(SOURCES_MAX + 100):
        header = HeartbeatHeader(seq=0, epoch=1, t_utc_ns=0, t_mono_ns=0, state="running", frames=0)
        tracker.feed(encode(Heartbeat(f"hb/s{k}/", header)))
    assert len(tracker.heartbeats) == SOURCES_MAX
    assert "s0" not in tracker.heartbeats
    last = f"s{SOURCES_MAX + 99}"
    assert tracker.heartbeats[last] is tracker.heartbeat
    parts = message(5)
    for k in range(TOPICS_MAX + 100):
        assert len(taken(tracker, [b"spec/mic/%d/dbfs/" % k, *parts[1:]])) == 1
    assert len(tracker._last_seen) == TOPICS_MAX


def beat(source, seq):
    times = {"seq": seq, "epoch": 1, "t_utc_ns": 0, "t_mono_ns": 0}
    header = HeartbeatHeader(**times, state="running", frames=0)
    return encode(Heartbeat(f"hb/{source}/", header))


def described(source):
    header = MetaHeader(seq=0, epoch=1, t_utc_ns=0, device="hw:0", channels=1, **SPECTRUM)
    return encode(Meta(f"meta/{source}/0/dbfs/", header, np.linspace(0.0, 24e3, 33)))


@pytest.fixture
def now_s(monkeypatch):
    """The monotonic time [s], which the test sets."""
    times = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: times[0])
    return times


def test_a_source_without_heartbeats_is_forgotten_while_another_has_some(now_s):
    """With its description and numbers: its next message is a first one. The others stay."""
    tracker = Tracker("test")
    for source in ("mic", "roof"):
        tracker.feed(described(source))
        taken(tracker, message(7, topic=f"spec/{source}/0/dbfs/"))
    tracker.feed(beat("mic", 0))
    for k in range(round(GONE_S) + 12):
        tracker.feed(beat("roof", k))
        now_s[0] += 1.0
        if k == GONE_S - 2.0:
            assert set(tracker.heartbeats) == {"mic", "roof"}
    assert (set(tracker.heartbeats), set(tracker.meta)) == ({"roof"}, {"spec/roof/0/dbfs/"})
    frames = [message(9, topic=f"spec/{source}/0/dbfs/") for source in ("mic", "roof")]
    assert [frame.missed for frame in taken(tracker, *frames)] == [0, 1]


def test_sources_are_remembered_over_any_time_without_a_daemon(now_s):
    """What was lost meanwhile is counted, whichever source is heard first."""
    tracker = Tracker("test")
    for source in ("mic", "roof"):
        tracker.feed(beat(source, 0))
        taken(tracker, message(7, topic=f"spec/{source}/0/dbfs/"))
    now_s[0] += 10 * GONE_S
    tracker.feed(beat("roof", 1))
    now_s[0] += 11.0
    tracker.feed(beat("roof", 2))
    frames = [message(9, topic=f"spec/{source}/0/dbfs/") for source in ("mic", "roof")]
    assert [frame.missed for frame in taken(tracker, *frames)] == [1, 1]


def test_descriptions_are_bounded_by_their_size():
    """The largest that the protocol allows would be 8 MiB each."""
    tracker = Tracker("tcp://x:1", meta_max_bytes=5000)
    header = MetaHeader(seq=0, epoch=1, t_utc_ns=0, device="", channels=1, **SPECTRUM)
    for k in range(20):
        tracker.feed(encode(Meta(f"meta/mic/{k}/dbfs/", header, np.arange(33.0))))
    assert 1 < len(tracker.meta) < 10
    assert list(tracker.meta)[-1] == "spec/mic/19/dbfs/"
