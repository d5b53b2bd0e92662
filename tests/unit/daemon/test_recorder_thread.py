"""Recordings of a daemon: the thread of each, and the start and end of all."""

import contextlib
import re
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from spectrod.config.settings import RecordingConfig, SourceTable
from spectrod.daemon import recorder as recorder_module
from spectrod.daemon import recordings as recordings_module
from spectrod.daemon.recorder import Recorder, RecordingFeed
from spectrod.daemon.recordings import Recordings
from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import ConfigError, NotFoundError
from spectrod.lib.events import EventLog
from spectrod.recording.configured import ConfiguredRecording, Recorded
from spectrod.recording.triggers import EventFinder

sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))

from recorder_chunks import FS, SPEC, batch, block, n_rows_of

# ---- the thread


@pytest.fixture
def begin(tmp_path):
    """Start recorders, which are stopped after the test."""
    started = []
    feed = SimpleNamespace(
        attach=lambda *_: contextlib.ExitStack(), runner=SimpleNamespace(name="pond")
    )

    def start(**settings):
        config = RecordingConfig("night", **({"min_free_mb": 0.0} | settings))
        about = Recorded("pond", ("0",), FS, "spectrod test", dict)
        events = EventLog()
        make = partial(ConfiguredRecording, config, about, tmp_path / "night", events)
        recorder = Recorder("night", make(), feed, restart=make)
        recorder.finder = EventFinder(config, FS, lambda: ((), 0), recorder.recording.trigger)
        recorder.events = events
        recorder.attach()
        recorder.start()
        started.append(recorder)
        return recorder

    yield start
    for recorder in started:
        recorder.end()
        recorder.wait(10.0)


def test_queued_data_are_written_before_the_end(begin, tmp_path):
    """At the end all data from the queue are written and the file is finished."""
    recorder = begin()
    for k in range(50):
        recorder.write(batch(3 * k, 3))
    recorder.end()
    assert recorder.wait(10.0)
    facts = recorder.status()
    assert (facts["rows"], facts["lost_rows"], facts["state"]) == (150, 0, "waiting")
    (file,) = (tmp_path / "night").iterdir()
    assert file.suffix == ".spd"


def test_a_disk_that_does_not_answer_does_not_block_producers(begin, monkeypatch):
    """A disk that does not answer blocks no producer: the oldest data are dropped and counted."""
    monkeypatch.setattr(recorder_module, "QUEUE_MAX_BYTES", 10_000)
    answer, is_asked = threading.Event(), threading.Event()

    def hang(_self, _piece):
        is_asked.set()
        answer.wait(30.0)

    with monkeypatch.context() as patched:
        patched.setattr("spectrod.recording.configured.ConfiguredRecording.write", hang)
        recorder = begin()
        recorder.write(batch(0))
        assert is_asked.wait(30.0)
        for k in range(1, 500):
            recorder.write(batch(k))
        facts = recorder.status()
        assert facts["queued_peak_bytes"] <= 10_000
        assert facts["lost_rows"] > 400
        recorder.end()
        assert not recorder.wait(0.01)
    answer.set()
    assert recorder.wait(10.0)
    facts = recorder.status()
    assert facts["rows"] == 499 - facts["lost_rows"]


def test_a_fault_of_our_own_is_seen_and_leaves_the_stream_alone(begin, monkeypatch, caplog):
    """An internal error appears in state, event and log, and a stop does not wait for it."""
    is_reported = threading.Event()

    def fail(_self, _piece):
        raise ZeroDivisionError("x")

    def break_off(self, why, original=ConfiguredRecording.break_off):
        original(self, why)
        is_reported.set()

    monkeypatch.setattr(ConfiguredRecording, "write", fail)
    monkeypatch.setattr(ConfiguredRecording, "break_off", break_off)
    recorder = begin()
    recorder.write(batch(0))
    assert is_reported.wait(30.0)
    recorder.write(batch(1))
    facts = recorder.status()
    text = "ZeroDivisionError('x'); please report this"
    assert (facts["state"], facts["error"]) == ("failed", text)
    assert "Traceback" in caplog.text
    (event,) = [e for e in recorder.events.since() if e.kind == "record.failed"]
    assert re.fullmatch(rf"night: {re.escape(text)}; restarts in (2[2-9]|3[0-8]) s", event.text)
    recorder.end()
    assert recorder.wait(10.0)


def test_a_recording_continues_after_an_internal_error(begin, monkeypatch, tmp_path):
    """After an internal error the file is recovered and the queued data are written."""
    calls, all_taken = iter(range(4)), threading.Event()

    def write(self, piece, original=ConfiguredRecording.write):
        call = next(calls)
        if call == 1:
            raise ZeroDivisionError("x")
        original(self, piece)
        if call == 3:
            all_taken.set()

    monkeypatch.setattr(ConfiguredRecording, "write", write)
    monkeypatch.setattr(recorder_module, "FIRST_RESTART_S", 0.01)
    recorder = begin()
    for k in range(4):
        recorder.write(batch(k))
    assert all_taken.wait(30.0)
    recorder.end()
    assert recorder.wait(10.0)
    assert sorted(n_rows_of(file) for file in (tmp_path / "night").iterdir()) == [1, 2]
    kinds = [event.kind for event in recorder.events.since()]
    assert kinds.index("record.failed") < kinds.index("record.recovered")


def test_a_fault_at_the_end_promises_nothing(begin, monkeypatch):
    """An error during a stop is reported without the announcement of a restart."""

    def fail(_self):
        raise ZeroDivisionError("x")

    recorder = begin()
    monkeypatch.setattr(ConfiguredRecording, "finish", fail)
    recorder.end()
    assert recorder.wait(10.0)
    (event,) = [e for e in recorder.events.since() if e.kind == "record.failed"]
    assert event.text == "night: ZeroDivisionError('x'); please report this"


def test_after_an_hour_without_a_fault_the_next_wait_is_short_again(begin, monkeypatch):
    """After an hour without an error, the pause before a restart is short again."""
    now_s, waits, n_runs = [0.0], [], iter(range(5))
    lengths_s = [1.0, 1.0, 3601.0, 1.0]

    def record(recorder):
        run = next(n_runs)
        if run < len(lengths_s):
            now_s[0] += lengths_s[run]
            raise ZeroDivisionError("x")

    def next_s(backoff):
        waits.append(backoff._s)
        backoff._s *= 2
        return 0.0

    clock = SimpleNamespace(monotonic=lambda: now_s[0])
    monkeypatch.setattr(recorder_module, "time", clock)
    monkeypatch.setattr(Backoff, "next_s", next_s)
    monkeypatch.setattr(Recorder, "_record", record)
    recorder = begin()
    assert recorder.wait(10.0)
    assert waits == [30.0, 60.0, 30.0, 60.0]


def test_the_pre_roll_counts_from_the_start_of_a_level(begin, tmp_path):
    """Pre-roll and post-roll count to the sample from the start and the end of the level."""
    recorder = begin(triggers=("level",), pre_roll_s=0.5, post_roll_s=0.25, samples="wav")
    loud = np.zeros(4000, np.float32)
    loud[2000:2250] = 0.5
    for first in range(0, 4000, 10):
        for sink in (recorder.finder, recorder):
            sink.write(block(first, loud[first : first + 10]))
    recorder.end()
    assert recorder.wait(10.0)
    (file,) = (tmp_path / "night").glob("*.wav")
    np.testing.assert_array_equal(soundfile.read(file)[0], loud[1500:2500])


class Calls:
    """A pipeline, a measurement or the triggers of a source: notes who is attached, in order."""

    finished, fails = False, ""

    def __init__(self, notes):
        self._notes = notes

    def __getattr__(self, name):
        def call(sink, *_):
            if name == self.fails:
                raise ConfigError("product='x': is gone")
            self._notes.append((name, type(sink).__name__))

        return call


def feed_of(notes, **wants):
    pipeline, values = Calls(notes), Calls(notes)
    runner = SimpleNamespace(name="pond", triggers=Calls(notes), meters=(values,))
    values = values if wants.pop("of_values", False) else None
    return RecordingFeed(runner, pipeline, "x", SPEC, values, **wants)


LEVEL = {"triggers": ("level", "storm"), "samples": "wav"}


@pytest.mark.parametrize("of_values", [False, True])
def test_a_recorder_is_attached_to_what_it_needs_and_detached_once(of_values):
    """Events are found before their samples are recorded; the end detaches all, once."""
    notes = []
    feed = feed_of(notes, of_values=of_values, rows=True, samples=True)
    finder = EventFinder(RecordingConfig("night", **LEVEL), FS, lambda: ((), 0), notes.append)
    recorder = Recorder("night", None, feed, finder=finder)
    recorder.attach()
    sinks = ["Recorder", "EventFinder", "Recorder", "EventFinder"]
    assert notes == [*zip(["attach", "tap", "tap", "attach"], sinks, strict=True)]
    notes.clear()
    recorder.end()
    recorder.end()
    assert notes == [*zip(["detach", "untap", "untap", "detach"], sinks[::-1], strict=True)]


def test_measurements_that_have_ended_give_their_last_row():
    """A measurement whose source has ended passes on the row of its unfinished interval."""
    notes = []
    feed = feed_of(notes, of_values=True, rows=True)
    feed.pipeline.finished = True
    recorder = Recorder("night", None, feed)
    recorder.attach()
    recorder.end()
    assert notes == [("attach", "Recorder"), ("end", "Recorder")]


def test_a_recorder_that_cannot_be_attached_is_attached_to_nothing():
    """If the second of two cannot be attached, the first is detached, and no data came."""
    notes = []
    feed = feed_of(notes, rows=True, samples=True)
    feed.pipeline.fails = "tap"
    recorder = Recorder("night", None, feed)
    with pytest.raises(ConfigError, match="product='x': is gone"):
        recorder.attach()
    assert notes == [("attach", "Recorder"), ("detach", "Recorder")]
    assert not recorder.was_attached


# ---- all recordings of a daemon


def source(name, pipeline):
    return SimpleNamespace(
        name=name,
        table=SourceTable(),
        pipeline=pipeline,
        ended=False,
        meters=(),
        triggers=None,
        checked=lambda: ((), 0),
    )


class Pipeline:
    """A pipeline that gives its rows to one sink."""

    finished = False
    coming_specs = (SPEC,)
    spec = SPEC
    attached = ()

    def attach(self, sink, _product, _on_failure):
        if self.attached:
            raise ConfigError("product='spectrum': must be one of x")
        self.attached = (sink,)

    def detach(self, _sink):
        self.attached = ()


def test_a_source_whose_name_is_no_folder_is_not_recorded(tmp_path):
    """A source whose name cannot be a folder's is not recorded."""
    pond = source("..", SimpleNamespace(finished=False, coming_specs=(SPEC,), spec=SPEC))
    recordings = Recordings(tmp_path / "state", EventLog())
    recordings.update([pond], [RecordingConfig("a")])
    (facts,) = recordings.status()["recorders"]
    recordings.close()
    assert facts["state"] == "waiting"
    assert facts["error"].startswith("sources: name='..': must not be dots alone")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_trigger_lists_the_recordings(tmp_path):
    """An error about an unknown trigger lists the recordings and sources."""
    recordings = Recordings(tmp_path, EventLog())
    message = "recording='x', source='': no such recording has triggers; there are: none"
    with pytest.raises(NotFoundError, match=message):
        recordings.trigger("x", "")


def test_a_recording_that_cannot_start_waits_and_the_others_run(tmp_path):
    """A recording that cannot start waits for a retry while the others run."""
    pond = source("pond", Pipeline())
    recordings = Recordings(tmp_path, EventLog())
    n_threads = threading.active_count()
    try:
        recordings.update([pond], [RecordingConfig("a"), RecordingConfig("b")])
        assert threading.active_count() == n_threads + 1
        first, second = recordings.status()["recorders"]
        assert (first["name"], first["state"]) == ("a", "waiting")
        assert (second["name"], second["state"]) == ("b", "waiting")
        assert second["error"] == "product='spectrum': must be one of x"
    finally:
        recordings.close()
    assert pond.pipeline.attached == ()


def test_the_end_of_the_daemon_does_not_wait_for_a_disk(tmp_path, monkeypatch, caplog):
    """A disk that does not answer delays the end by a bounded time; the log names the recording."""
    answer, is_asked = threading.Event(), threading.Event()

    def hang(_self):
        is_asked.set()
        assert answer.wait(30.0)

    monkeypatch.setattr(ConfiguredRecording, "start", hang)
    monkeypatch.setattr(recordings_module, "CLOSE_MAX_S", 0.01)
    pond = source("pond", Pipeline())
    recordings = Recordings(tmp_path, EventLog())
    recordings.update([pond], [RecordingConfig("night")])
    assert is_asked.wait(30.0)
    recordings.close()
    answer.set()
    assert "recording night: the disk does not respond; stopping without it" in caplog.text
    assert recordings.status() == {"recordings": [], "recorders": []}
    assert pond.pipeline.attached == ()
