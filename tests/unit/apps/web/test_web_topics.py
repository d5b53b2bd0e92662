"""Topics that pages can choose, what daemons are asked for, and texts about daemons."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from spectrod.apps.web import page_topics as topics_module
from spectrod.apps.web.client import PageClient
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.page_topics import TopicTable
from spectrod.apps.web.page_values import NewestValues, values_fields
from spectrod.apps.web.page_view import StreamWish, View
from spectrod.apps.web.state import event_fields, state_fields
from spectrod.apps.web.wanted import LINGER_S, VALUES_PREFIXES, WantedTopics
from spectrod.wire.headers import (
    EventHeader,
    HeartbeatHeader,
    IntervalTopic,
    LevelsHeader,
    TonesHeader,
    TransferHeader,
)
from spectrod.wire.schema import (
    EventMessage,
    LevelsFrame,
    Meta,
    MetaHeader,
    TonesFrame,
    TransferFrame,
)

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_rows import COMMON, ENDPOINT, TOPIC, frame

INTERVAL = {
    "seq": 3,
    "epoch": 1,
    "t_utc_ns": 2_500_000_000,
    "t_mono_ns": 0,
    "sample_index": 0,
    "fs": 48000.0,
    "interval_s": 1.0,
    "n_samples": 48000,
    "due_samples": 48000,
    "ref": "0 dBFS = full-scale sine",
}


def levels_frame(topic="levels/mic/0/slm/", *values):
    names = tuple(f"L{k}" for k in range(len(values)))
    units = ("dBFS",) * len(values)
    header = LevelsHeader(
        **INTERVAL, quantities=names, units=units, shape=(len(values),), flags=("gap\x1b",)
    )
    return LevelsFrame(topic, header, np.array(values))


def meta(name, *, bands="", unit="dBFS", **more):
    left_out = ("t_mono_ns", "sample_index", "unit")
    common = {key: value for key, value in COMMON.items() if key not in left_out}
    times = {"seq": 0, "t_utc_ns": 0}
    more = {"channels": 1, "bands": bands, "unit": unit, "averaging": "none"} | more
    header = MetaHeader(**common, **times, device="card", **more)
    return Meta(f"meta/{name}", header, np.zeros(33))


def test_described_topics_are_listed_by_name():
    """Bins and bands have their words, a power its unit as levels, each topic one number."""
    table = TopicTable()
    table.note_meta(ENDPOINT, meta("mic/0/dbfs/"), 0.0)
    table.note_meta(ENDPOINT, meta("mic/0/thirds/", bands="third-octave", unit="FS^2"), 0.0)
    table.note_meta("tcp://other:1", meta("mic/0/dbfs/"), 0.0)
    table.note_meta(ENDPOINT, meta("mic/0/dbfs/"), 1.0)
    listed = [(one["endpoint"], one["topic"], one["unit"], one["id"]) for one in table.listed()]
    assert listed == [
        (ENDPOINT, "bands/mic/0/thirds/", "dB re FS^2", 1),
        (ENDPOINT, "spec/mic/0/dbfs/", "dBFS", 0),
        ("tcp://other:1", "spec/mic/0/dbfs/", "dBFS", 2),
    ]


def test_topics_have_the_time_zone_of_their_descriptions():
    """Rows say none and leave it as it was; control characters do not reach a page."""
    table = TopicTable()

    def zone():
        (listed,) = table.listed()
        return listed["time_zone"]

    table.note_frame(ENDPOINT, frame(np.zeros(33)), 0.0)
    assert zone() == ""
    version = table.version
    table.note_meta(ENDPOINT, meta("mic/0/dbfs/", time_zone="Europe/Berlin"), 1.0)
    assert (zone(), table.version) == ("Europe/Berlin", version + 1)
    table.note_frame(ENDPOINT, frame(np.zeros(33)), 2.0)
    assert (zone(), table.version) == ("Europe/Berlin", version + 1)
    table.note_meta(ENDPOINT, meta("mic/0/dbfs/", time_zone="a\x1bb"), 3.0)
    assert zone() == r"a\x1bb"
    table.note_meta(ENDPOINT, meta("mic/0/dbfs/"), 4.0)
    assert zone() == ""


def test_a_topic_that_comes_again_has_its_number():
    """A view that a page keeps still means the same after the source was away."""
    table = TopicTable()
    table.note_meta(ENDPOINT, meta("mic/0/dbfs/"), 0.0)
    table.note_meta(ENDPOINT, meta("roof/0/dbfs/"), 0.0)
    version = table.version
    table.forget(ENDPOINT, "mic", 1.0)
    assert list(table.topics) == [1]
    assert table.version > version
    table.note_meta(ENDPOINT, meta("mic/0/dbfs/"), 9.0)
    assert table.topics[0].source == "mic"


def test_a_topic_remembers_its_epoch_while_it_is_away():
    """The first message of another epoch is known as such, also if the topic was removed."""
    table = TopicTable()
    topic = table.note_frame(ENDPOINT, frame(np.zeros(33)), 0.0)
    assert [table.is_new_epoch(topic, epoch) for epoch in (5, 5, 6, 6)] == [
        False,
        False,
        True,
        False,
    ]
    table.forget(ENDPOINT, "mic", 1.0)
    topic = table.note_frame(ENDPOINT, frame(np.zeros(33)), 9.0)
    assert table.is_new_epoch(topic, 7)


def test_spectra_that_are_not_described_any_more_are_removed():
    """A product that was removed goes; sound levels, which nothing describes, stay."""
    table = TopicTable()
    table.note_meta(ENDPOINT, meta("mic/0/old/"), 0.0)
    table.note_meta(ENDPOINT, meta("mic/0/dbfs/"), 20.0)
    table.note_frame(ENDPOINT, levels_frame("levels/mic/0/slm/", 1.0), 0.0)
    table.forget_unseen(ENDPOINT, 10.0, 45.0)
    assert [one["topic"] for one in table.listed()] == ["levels/mic/0/slm/", "spec/mic/0/dbfs/"]


def test_topics_are_bounded(monkeypatch, caplog):
    """A daemon that makes up names fills the table and no more; the log says so once."""
    monkeypatch.setattr(topics_module, "TOPICS_MAX", 3)
    table = TopicTable()
    for k in range(10):
        table.note_frame(ENDPOINT, replace(frame(np.zeros(33)), topic=f"spec/s{k}/0/dbfs/"), 0.0)
    assert (len(table.topics), table.refused) == (3, 7)
    (record,) = caplog.records
    assert "spec/s3/0/dbfs/ and all further topics are left out: 3" in record.getMessage()


def test_topics_that_have_gone_leave_room_for_others(monkeypatch):
    """As many as may exist are remembered with their numbers, which no other topic ever gets."""
    monkeypatch.setattr(topics_module, "TOPICS_MAX", 3)
    table = TopicTable()
    for k in range(10):
        table.note_meta(ENDPOINT, meta(f"s{k}/0/dbfs/"), float(k))
        table.forget(ENDPOINT, f"s{k}", float(k))
    assert table.take_forgotten(5.0) == [0, 1, 2, 3, 4, 5, 6]
    assert table.take_forgotten(9.5) == [7, 8, 9]
    assert table.take_forgotten(9.5) == []
    numbers = [
        table.note_frame(ENDPOINT, replace(frame(np.zeros(33)), topic=f"spec/s{k}/0/dbfs/"), 9.9).id
        for k in (6, 7, 9)
    ]
    assert (numbers, table.refused) == ([10, 7, 9], 0)


def test_topics_of_intervals_of_a_vanished_source_are_removed():
    """A source whose heartbeats do not come any more has said no end."""
    table = TopicTable()
    for source in ("mic", "roof"):
        table.note_heartbeat(ENDPOINT, source, beat_of(f"levels/{source}/0/slm/"), 0.0)
    table.forget_others(ENDPOINT, {"roof"}, 1.0)
    assert [topic.source for topic in table.topics.values()] == ["roof"]


def showing(*wishes, values=()):
    client = PageClient(Limits())
    topics = {TOPIC.id: TOPIC, 4: replace(TOPIC, id=4, kind="levels", topic="levels/mic/0/slm/")}
    client.set_view(View(generation=1, streams=wishes, values=values), topics)
    return client, topics


def test_a_daemon_is_asked_for_what_pages_show():
    """Spectra of a view, and all measurements unless a page limits them; nothing elsewhere."""
    wish = StreamWish(id=1, topic_id=3, f0=0.0, f1=1e3, px=10)
    one, topics = showing(wish, values=(4,))
    wanted = WantedTopics(ENDPOINT)
    assert wanted.update([one], topics, 0.0) == {"spec/mic/0/dbfs/", "levels/mic/0/slm/"}
    assert WantedTopics("tcp://other:1").update([one], topics, 0.0) == set()
    everything, _ = showing(values=None)
    assert wanted.update([everything], topics, 0.0) >= set(VALUES_PREFIXES)


def test_a_topic_is_wanted_a_while_longer():
    """A page that is loaded again does not stop the computation."""
    one, topics = showing(StreamWish(id=1, topic_id=3, f0=0.0, f1=1e3, px=10))
    wanted = WantedTopics(ENDPOINT)
    wanted.update([one], topics, 0.0)
    assert wanted.update([], topics, LINGER_S) == {"spec/mic/0/dbfs/"}
    assert wanted.update([], topics, LINGER_S + 0.1) == set()


def beat_of(*names, interval_s=60.0):
    listed = tuple(IntervalTopic(name, interval_s) for name in names)
    times = {"seq": 0, "epoch": 1, "t_utc_ns": 0, "t_mono_ns": 0}
    return HeartbeatHeader(**times, state="running", frames=0, interval_topics=listed)


def test_topics_of_intervals_are_listed_before_their_first_message():
    """A heartbeat adds them with their interval; their first message completes what is known."""
    table = TopicTable()
    minute = "levels/mic/0/minute/"
    table.note_heartbeat(ENDPOINT, "mic", beat_of(minute), 0.0)
    (topic,) = table.topics.values()
    assert (topic.topic, topic.product, topic.fs, topic.interval_s) == (minute, "minute", 0.0, 60.0)
    heard = table.note_frame(ENDPOINT, levels_frame(minute, -20.0), 0.0)
    assert (heard.id, heard.fs, heard.interval_s) == (topic.id, 48000.0, 1.0)
    version = table.version
    table.note_heartbeat(ENDPOINT, "mic", beat_of(minute, interval_s=1.0), 0.0)
    assert table.version == version
    table.note_heartbeat(ENDPOINT, "mic", beat_of("tones/mic/0/hum/"), 0.0)
    assert [one.topic for one in table.topics.values()] == ["tones/mic/0/hum/"]


def test_a_heartbeat_lists_named_values_of_its_own_source_alone():
    """Topics of another source, of spectra and of unknown kinds are left out."""
    table = TopicTable()
    foreign = ("levels/far/0/slm/", "spec/mic/0/dbfs/", "smells/mic/0/rose/")
    table.note_heartbeat(ENDPOINT, "mic", beat_of(*foreign), 0.0)
    assert not table.topics


def test_named_values_are_printable_and_complete():
    """Names and flags of a daemon are texts without control characters; NaN goes as it is."""
    fields = values_fields(7, levels_frame("levels/mic/0/slm/", -20.5, np.nan))
    assert fields["names"] == ["L0", "L1"]
    assert fields["values"][0] == -20.5
    assert np.isnan(fields["values"][1])
    assert (fields["t_ms"], fields["interval_s"], fields["topic_id"]) == (2500.0, 1.0, 7)
    assert fields["flags"] == ["gap\\x1b"]


def test_tones_have_their_tracks():
    """Each track is a row under its columns."""
    frames = {"window": "hann", "win_length": 64, "nfft": 64, "hop": 32, "n_frames": 9}
    columns = {"columns": ("frequency", "level"), "column_units": ("Hz", "dBFS")}
    header = TonesHeader(
        **INTERVAL,
        **frames,
        **columns,
        band_hz=(0.0, 24e3),
        n_tracks=1,
        quantities=("THD",),
        units=("dB",),
        shape=(1,),
    )
    tones = TonesFrame("tones/mic/0/t/", header, np.array([-60.0]), tracks=np.array([[1e3, -20.0]]))
    fields = values_fields(7, tones)
    assert (fields["columns"], fields["tracks"]) == (["frequency", "level"], [[1000.0, -20.0]])


def test_transfer_functions_are_named_values_and_no_spectra():
    """A page gets their values with units; coherence and phase are no levels, and are left out."""
    frames = {"window": "hann", "win_length": 64, "nfft": 64, "hop": 32, "n_frames": 9}
    bins = {"spectra": ("coherence",), "spectra_units": ("1",), "first_bin": 1, "n_bins": 2}
    header = TransferHeader(
        **INTERVAL,
        **frames,
        **bins,
        band_hz=(0.0, 24e3),
        reference="0",
        quantities=("delay", "mean_coherence"),
        units=("s", "1"),
        shape=(2,),
    )
    frame = TransferFrame(
        "transfer/mic/1/room/", header, np.array([0.01, 0.9]), spectra=np.array([[0.8, 0.7]])
    )
    table = TopicTable()
    topic = table.note_frame(ENDPOINT, frame, 0.0)
    assert (topic.kind, topic.unit, topic.has_rows) == ("transfer", "", False)
    fields = values_fields(topic.id, frame)
    assert (fields["names"], fields["units"]) == (["delay", "mean_coherence"], ["s", "1"])
    assert fields["values"] == [0.01, 0.9]
    assert fields["reference"] == "0"
    assert not {"spectra", "tracks"} & set(fields)


def test_the_newest_values_of_a_topic_are_sent():
    """Of several messages since the last look only the newest goes to pages."""
    newest = NewestValues()
    for k in range(3):
        newest.put(1, levels_frame("levels/mic/0/slm/", float(k)))
    newest.put(2, levels_frame("levels/mic/0/slm/", 9.0))
    assert {n: one.values[0] for n, one in newest.take().items()} == {1: 2.0, 2: 9.0}
    assert newest.take() == {}


def test_the_state_says_what_is_known_of_daemons():
    """An endpoint that never answered has no silence yet; texts of a daemon are bounded."""
    beat = HeartbeatHeader(
        seq=0,
        epoch=1,
        t_utc_ns=0,
        t_mono_ns=0,
        state="waiting",
        frames=3,
        waiting_for="the device\n" + "x" * 5000,
        checks=tuple(f"silent: {k}" for k in range(100)),
    )
    about = {"missed": 2, "broken": 1, "why": "", "clock_offset_s": {"mic": 0.5}}
    known = SimpleNamespace(endpoint="a", connected=True, silence_s=0.1, heartbeats={"mic": beat})
    known.__dict__.update(about)
    lost = SimpleNamespace(endpoint="b", connected=False, silence_s=float("inf"), heartbeats={})
    lost.__dict__.update(about)
    fields = state_fields([known, lost], 3)
    assert fields["clients"] == 3
    assert [one["silence_s"] for one in fields["endpoints"]] == [0.1, None]
    (source,) = fields["sources"]
    assert (source["endpoint"], source["state"], source["clock_offset_s"]) == ("a", "waiting", 0.5)
    assert len(source["waiting_for"]) <= 300
    assert "\n" not in source["waiting_for"]
    assert len(source["checks"]) == 32


def test_events_are_texts_for_people():
    """An event has its time, its source and a printable text."""
    header = EventHeader(
        seq=0,
        epoch=1,
        t_utc_ns=1_500_000_000,
        number=8,
        kind="source.waiting",
        text="no \x1b[2J samples",
        source="mic",
    )
    fields = event_fields(ENDPOINT, EventMessage("event/mic/", header))
    assert fields["t_ms"] == 1500.0
    assert fields["text"] == "no \\x1b[2J samples"
    assert "trigger" not in fields
