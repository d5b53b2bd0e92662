"""Sources without a sample: what recordings say of their topics, and which are listed when."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.apps.web import silent_sources
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.page_topics import TopicTable
from spectrod.apps.web.recorded_topics import RecordedTopics
from spectrod.apps.web.silent_sources import SilentSources, nothing_recorded
from spectrod.dsp.calibration import ChannelCalibration, parse_reference
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.wire.headers import MetaHeader
from spectrod.wire.schema import Meta

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_rows import COMMON, ENDPOINT, TOPIC, frame

pytestmark = pytest.mark.usefixtures("whole_scans")

S = 10**9
BEGIN_NS = 1_777_680_000 * S
SPEC = SpectrumSpec(fs=1000.0, win_length=100, hop=100, nfft=100, scaling="dbfs", channels=2)
FAR = "tcp://192.0.2.1:5556"


def write(folder, recording, spec=SPEC, signals=("left", "right"), *, at_s=0, zone=None, **where):
    """Write a second of rows as the recorder does."""
    place = folder / recording / where.get("source", "mic")
    place.mkdir(parents=True, exist_ok=True)
    index = np.arange(10, dtype=np.int64) * 100
    t_ns = BEGIN_NS + at_s * S + index * S // 1000
    values = np.full((10, len(signals), spec.n_values), -50.0)
    values = values.astype(np.complex64 if spec.output == "complex" else np.float32)
    batch = SpectrumBatch(values, index, t_ns, t_ns, spec, "numpy")
    attributes = {} if zone is None else {"time_zone": zone}
    about = Description(spec, "mic", signals, "spectrod test", attributes=attributes)
    if where.get("is_pyramid"):
        writer = PyramidWriter(place / "pyramid", about, PyramidOptions(1.0))
    else:
        writer = SegmentWriter(place / f"{at_s}.spd", about)
    writer.write(batch)
    writer.finish()
    return place


def found(folder, endpoint=ENDPOINT, n_daemons=1):
    return RecordedTopics(RecordingIndex([folder]), n_daemons).of(endpoint, "mic")


def names(topics):
    return [one.topic for one in topics]


def test_topics_are_those_of_the_newest_recordings(tmp_path):
    """Of each folder as it was recorded last, and of its pyramid; others' are not this source's."""
    assert found(tmp_path) == []
    write(tmp_path, "all", signals=("0", "1"))
    write(tmp_path, "all", at_s=60)
    pascal = ChannelCalibration(parse_reference("20 uPa"), 120.0, None, "m1")
    bands = replace(SPEC, bands="third-octave", nfft=1000, win_length=1000, product="thirds")
    write(tmp_path, "bands", replace(bands, calibration=(pascal,) * 2), at_s=90)
    write(tmp_path, "days", replace(SPEC, product="slow"), is_pyramid=True)
    write(tmp_path, "all", source="roof", at_s=99)
    topics = found(tmp_path)
    assert names(topics) == [
        *("bands/mic/left/thirds/", "bands/mic/right/thirds/"),
        *("spec/mic/left/dbfs/", "spec/mic/right/dbfs/"),
        *("spec/mic/left/slow/", "spec/mic/right/slow/"),
    ]
    assert {(one.endpoint, one.source, one.fs) for one in topics} == {(ENDPOINT, "mic", 1000.0)}
    assert [one.unit for one in topics[:3]] == ["dB SPL", "dB SPL", "dBFS"]


def test_what_no_topic_can_be_is_left_out(tmp_path):
    """Names with other signs, complex spectra, and files that are torn."""
    write(tmp_path, "all", signals=("left", "a/../b"))
    write(tmp_path, "iq", replace(SPEC, scaling="spectrum", output="complex"))
    (tmp_path / "iq" / "mic" / "torn.spd").write_bytes(b"x" * 5000)
    assert names(found(tmp_path)) == ["spec/mic/left/dbfs/"]


def test_of_several_daemons_those_of_this_machine_have_recordings(tmp_path):
    """A recording does not say which daemon wrote it."""
    write(tmp_path, "all")
    local, far = found(tmp_path, n_daemons=2), found(tmp_path, FAR, n_daemons=2)
    assert (len(local), far, len(found(tmp_path, FAR))) == (2, [], 2)


def test_topics_have_the_time_zone_that_was_recorded(tmp_path, caplog):
    """The newest that is stated; one that is not known here is logged once, and none."""
    write(tmp_path, "all", zone="Asia/Kolkata")
    write(tmp_path, "all", at_s=60)
    assert {one.time_zone for one in found(tmp_path)} == {"Asia/Kolkata"}
    write(tmp_path, "all", zone="Mars\x1b", at_s=90)
    finder = RecordedTopics(RecordingIndex([tmp_path]), 1)
    assert {one.time_zone for _ in range(2) for one in finder.of(ENDPOINT, "mic")} == {""}
    rule = "there is no such time zone on this machine; it is ignored"
    assert caplog.messages == [rf"mic: time_zone='Mars\\x1b': {rule}"]


# ---- which are listed


def described():
    left_out = ("t_mono_ns", "sample_index")
    common = {name: value for name, value in COMMON.items() if name not in left_out}
    about = {"seq": 0, "t_utc_ns": 0, "hop": 960, "device": "card", "channels": 1}
    header = MetaHeader(**(common | about))
    return Meta("meta/mic/0/dbfs/", header, np.zeros(header.shape[0]), None)


def test_a_recorded_topic_is_silent_until_it_is_described():
    """It keeps its number, and goes as others do when it is no longer found."""
    table = TopicTable()
    table.note_recorded(replace(TOPIC, id=99, time_zone="Asia/Kolkata"), 0.0)
    version = table.version
    table.note_recorded(replace(TOPIC, time_zone="Asia/Kolkata"), 1.0)
    assert table.version == version
    (listed,) = table.listed()
    assert (listed["id"], listed["is_silent"], listed["time_zone"]) == (0, True, "Asia/Kolkata")
    assert table.described_sources() == set()
    table.forget_unseen(ENDPOINT, 2.0, 2.0)
    assert table.topics == {}
    table.note_recorded(TOPIC, 3.0)
    table.note_meta(ENDPOINT, described(), 4.0)
    (listed,) = table.listed()
    assert (listed["id"], listed["is_silent"]) == (0, False)
    assert table.described_sources() == {(ENDPOINT, "mic")}
    table = TopicTable()
    table.note_recorded(TOPIC, 0.0)
    assert not table.note_frame(ENDPOINT, frame(np.zeros(33)), 1.0).is_silent


class Looking:
    """Pages, daemons with sources in some states, and what was recorded of these."""

    def __init__(self, monkeypatch, **states):
        monkeypatch.setattr(silent_sources, "_TICK_S", 0.001)
        monkeypatch.setattr(silent_sources, "LOOK_S", 0.0)
        beats = {name: SimpleNamespace(state=state) for name, state in states.items()}
        self.feed = SimpleNamespace(endpoint=ENDPOINT, heartbeats=beats)
        self.table, self.sessions, self.asked = TopicTable(), {}, []
        self.n_topics, self.on_find = 1, lambda: None
        self._loop, self._looked = None, asyncio.Event()

    def find(self, endpoint, source):
        self.asked.append((endpoint, source))
        self.on_find()
        self._loop.call_soon_threadsafe(self._looked.set)
        return [
            replace(TOPIC, topic=f"spec/{source}/{n}/dbfs/", source=source, channel=str(n))
            for n in range(self.n_topics)
        ]

    async def look(self):
        """Run until a second look starts, so that the first has ended."""
        self._loop = asyncio.get_running_loop()
        silent = SilentSources([self.feed], self.table, self.sessions, self.find)
        async with asyncio.timeout(20.0):
            running = asyncio.create_task(silent.run())
            for _ in range(2 * len(self.feed.heartbeats)):
                self._looked.clear()
                await self._looked.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_sources_in_states_without_samples_are_looked_for(monkeypatch):
    """Those of others are about to be described, or gone."""
    states = {"a": "waiting", "b": "paused", "c": "finished", "d": "failed"}
    looking = Looking(monkeypatch, **states)
    looking.sessions["page"] = None
    asyncio.run(looking.look())
    assert {source for _, source in looking.asked} == set(states)
    others = ("running", "starting", "stopped", "calibrating")
    looking.feed.heartbeats |= {name: SimpleNamespace(state=name) for name in others}
    silent = SilentSources([looking.feed], TopicTable(), {}, nothing_recorded)._silent()
    assert silent == [(ENDPOINT, name) for name in states]
    assert [one.source for one in looking.table.topics.values()] == list(states)
    assert all(one.is_silent for one in looking.table.topics.values())


def test_a_source_that_is_described_meanwhile_has_its_own_topics(monkeypatch):
    """What was recorded under other names is not listed beside them."""
    looking = Looking(monkeypatch, mic="waiting", roof="waiting")
    looking.sessions["page"] = None
    looking.n_topics = 3
    looking.on_find = lambda: looking.table.note_meta(ENDPOINT, described(), 0.0)
    asyncio.run(looking.look())
    topics = looking.table.topics.values()
    assert names(one for one in topics if one.source == "mic") == [TOPIC.topic]
    assert len(topics) == 4
    assert looking.asked.count((ENDPOINT, "mic")) == 1


def test_recordings_of_many_channels_leave_room_for_what_is_described(monkeypatch):
    """The first sources have theirs; the rest is left out."""
    monkeypatch.setattr(silent_sources, "SILENT_TOPICS_MAX", 5)
    looking = Looking(monkeypatch, a="waiting", b="waiting")
    looking.sessions["page"] = None
    looking.n_topics = 4
    asyncio.run(looking.look())
    assert [one.source for one in looking.table.topics.values()] == [*"aaaa", "b"]


def test_without_a_page_nothing_is_looked_for(monkeypatch):
    """The disk is left alone until somebody comes."""
    looking = Looking(monkeypatch, mic="waiting")
    ticks = []

    class Counted(dict):
        def __bool__(self):
            ticks.append(len(looking.asked))
            if len(ticks) == 5:
                self["page"] = None
            return len(self) > 0

    looking.sessions = Counted()
    asyncio.run(looking.look())
    assert ticks[:5] == [0] * 5
    assert names(looking.table.topics.values()) == ["spec/mic/0/dbfs/"]
