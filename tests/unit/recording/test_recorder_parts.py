"""Parts of the recorder: queue, events, threads, configuration."""

import contextlib
import re
import threading
import tomllib
from contextlib import closing
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from spectrod.config import config
from spectrod.config.settings import RecordingConfig, SourceTable
from spectrod.daemon import recorder as recorder_module
from spectrod.daemon import recordings as recordings_module
from spectrod.daemon.recorder import Recorder
from spectrod.daemon.recordings import Recordings
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import ConfigError, NotFoundError
from spectrod.lib.events import EventLog
from spectrod.recording.chunk_queue import ChunkQueue
from spectrod.recording.configured import ConfiguredRecording, Recorded
from spectrod.recording.preroll_buffer import PrerollBuffer
from spectrod.recording.reporter import Reporter
from spectrod.recording.triggers import EventFinder, LevelTrigger, Triggers

NS = 1_000_000_000
FS = 1000.0
SPEC = SpectrumSpec(FS, win_length=64, hop=100, nfft=64, scaling="spectrum")


def batch(first, n_rows=1, gap_samples=0):
    rows = first + np.arange(n_rows)
    values = np.ones((n_rows, 1, SPEC.n_values), np.float32)
    t_ns = rows * (NS // 10)
    return SpectrumBatch(values, rows * 100, t_ns, t_ns, SPEC, "numpy", gap_samples)


def n_rows_of(file):
    with closing(SegmentReader(file)) as reader:
        return sum(batch.n_frames for batch in reader.batches())


def block(first, samples, lost_samples=0):
    samples = np.atleast_2d(np.asarray(samples, np.float32))
    t_ns = first * NS // 1000
    return Block(samples, first, t_ns, t_ns, bool(lost_samples), lost_samples, FS)


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


# ---- the configuration

TOML = """
[sources.pond]
uri = "signal:sine,1000,-20"

[sources.roof]
uri = "signal:sine,1000,-20"

[products.levels]
sources = ["roof"]
bands = "octave"
averaging = "mean"
rate_hz = 1.0

[recordings.night]
sources = ["roof"]
product = "levels"
schedule = ["Mon-Fri 22:00-04:00"]
triggers = ["level", "control"]
pre_roll_s = 5
attributes = { title = "Roof", "a b" = "\\u007f \\"x\\"" }
"""


def load(tmp_path, text, **flags):
    file = tmp_path / "c.toml"
    file.write_text(text)
    return config.load(str(file), flags)


def test_recordings_survive_toml_and_name_their_changes(tmp_path):
    """Recordings survive TOML, and each changed key is listed as live."""
    loaded = load(tmp_path, TOML)
    (night,) = loaded.recordings
    assert (night.name, night.pre_roll_s, night.attributes["title"]) == ("night", 5.0, "Roof")
    assert night.attributes["a b"] == '\x7f "x"'
    assert load(tmp_path, config.to_toml(loaded)) == loaded
    changes = {"recordings.night.keep_days": "30", "recordings.all": {"samples": "flac"}}
    new = config.with_changes(loaded, changes, "set")
    assert [one.name for one in new.recordings] == ["night", "all"]
    assert config.changed_keys(loaded, new) == ["recordings.night.keep_days", "recordings.all"]
    assert all(config.is_live(key) for key in config.changed_keys(loaded, new))
    assert config.with_changes(new, {"recordings.night": None}, "set").recordings[0].name == "all"


def test_every_key_is_described_where_the_defaults_are():
    """Every key is documented beside the defaults with its default value."""
    text = config.default_toml().partition("# [recordings.night]")[2].partition("[engine]")[0]
    night = RecordingConfig("night")
    for key in RecordingConfig.__struct_fields__[1:]:
        (line,) = [one for one in text.splitlines() if one.startswith(f"# {key} = ")]
        if key not in ("sources", "attributes"):
            value = load_value(line.removeprefix("# "))
            assert value == getattr(night, key) or list(value) == list(getattr(night, key))


def load_value(line):
    (value,) = tomllib.loads(line).values()
    return value


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "sources = ['x']",
            "recordings.a: sources='x': is no source's name; there are: pond, roof",
        ),
        (
            "product = 'levels'",
            "recordings.a: product='levels': pond has no such product; there are: dbfs",
        ),
        ("fsync_s = 0", "recordings.a.fsync_s=0: must be a number from 0.1 to 3600"),
        ("when_full = 'x'", "recordings.a.when_full='x': must be one of stop, delete"),
        ("must_be_mounted = 'srv'", "must_be_mounted='srv': must be an absolute path without .."),
        (
            "folder = '/srv/../x'\nmust_be_mounted = '/srv/..'",
            "must_be_mounted='/srv/..': must be an absolute path without ..",
        ),
        (
            "folder = '/srv/recordings'\nmust_be_mounted = '/mnt'",
            "must_be_mounted='/mnt': must be folder='/srv/recordings', or a folder above it",
        ),
        (
            "must_be_mounted = '/var/lib'",
            "must_be_mounted='/var/lib': must be folder='', or a folder above it",
        ),
        ("sample = 'wav'", "recordings.a.sample: unknown key; [recordings.a] knows sources, "),
        ("file_name = 'a/b'", "recordings.a: file_name='a/b': makes 'a/b'; must make 1 to 100 of "),
        ("file_name = '.x'", "file_name='.x'"),
        ("file_name = ''", "file_name=''"),
        ('file_name = "a\\u0000b"', "file_name='a\\x00b': makes 'a\\x00b'; must make 1 to 100 of"),
        ("file_name = '%_I%y'", "file_name='%_I%y': makes '%_I00'; must make 1 to 100 of A-Z a-z "),
        ("file_name = '%e'", "the first a letter or digit, with no codes but %A %B %C %F %G %H "),
        ("spectra = false", "recordings.a: spectra=false: must be true where neither samples nor"),
        ("pre_roll_s = 1", "recordings.a: pre_roll_s=1: must be 0 without triggers"),
        ("post_roll_s = 1.5", "recordings.a: post_roll_s=1.5: must be 0 without triggers"),
        ("on_s = 1", "recordings.a: on_s=1, off_s=0: must both be 0, or neither"),
        ("schedule = ['x']", "recordings.a: schedule='x': must be HH:MM-HH:MM in UTC"),
    ],
)
def test_bad_recordings_are_one_clear_error(tmp_path, keys, message):
    """An error names the table, the key, the value and the rule."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, TOML + f"\n[recordings.a]\n{keys}\n")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


_STRFTIME = "".join(chr(code) for code in range(33, 127))
_FLAGS = ("", "_", "-", "0", "^", "#", "E", "O", "5", "_9")


@pytest.mark.slow
@pytest.mark.parametrize("flag", _FLAGS)
def test_a_pattern_that_is_taken_makes_a_safe_name_at_any_time(flag):
    """An accepted pattern never gives a space, slash, colon or leading dot at any time."""
    safe = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
    accepted = []
    for code in _STRFTIME:
        recording = RecordingConfig("a", file_name=f"x%{flag}{code}")
        with contextlib.suppress(ConfigError):
            recording.check()
            accepted.append(code)
    # All hours and days of a year, and all years in the range of 64 bits of nanoseconds.
    times_s = [*range(0, 366 * 86400, 3599), *range(-9 * 10**9, 9 * 10**9, 10**7 + 7)]
    for code in accepted:
        recording = RecordingConfig("a", file_name=f"x%{flag}{code}")
        assert all(safe.fullmatch(recording.file_stem(time_s * 10**9)) for time_s in times_s), code
    assert len(accepted) == (0 if flag else 26)


@pytest.mark.parametrize(
    ("file_name", "is_taken"),
    [("%A" * 11, True), ("%A" * 11 + "x", True), ("%A" * 11 + "xx", False), ("%z", False)],
)
def test_the_longest_name_counts(file_name, is_taken):
    """The limit applies to the longest name of a pattern, whose length depends on the day."""
    recording = RecordingConfig("a", file_name=file_name)
    if is_taken:
        recording.check()
    else:
        with pytest.raises(ConfigError, match="must make 1 to 100 of A-Z a-z 0-9"):
            recording.check()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ('[recordings.".."]', "recordings: name='..': must not be dots alone, since recordings"),
        ('[recordings."."]', "recordings: name='.': must not be dots alone"),
        ("[recordings.Night]", "recordings: names 'night' and 'Night': must differ in more than"),
        ('[recordings."night."]', "recordings: names 'night' and 'night.': must differ in more"),
        ('[sources."..."]\nuri = "signal:sine,1000,-20"', "sources: name='...': must not be dots"),
        ('[sources.POND]\nuri = "signal:sine,1000,-20"', "sources: names 'pond' and 'POND': must"),
    ],
)
def test_two_recordings_or_sources_never_have_one_folder(tmp_path, tables, message):
    """Folders of recordings and sources differ, also on FAT, and ``..`` is refused."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"{TOML}\n{tables}\n")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_of_sources_without_recordings_are_only_for_topics(tmp_path):
    """Names of sources without recordings may differ in case alone."""
    text = "\n".join(f'[sources."{name}"]\nuri = "signal:white,-20"' for name in ("a", "A", ".."))
    assert [one.name for one in load(tmp_path, text).all_sources] == ["a", "A", ".."]


def test_recordings_of_sources_that_are_replaced_go_with_them(tmp_path):
    """A source on the command line gets only recordings that apply to all sources."""
    notes = []
    file = tmp_path / "c.toml"
    file.write_text(TOML + "\n[recordings.all]\n")
    loaded = config.load(str(file), {"source": {"uri": "signal:white,-20"}}, notes.append)
    assert [one.name for one in loaded.recordings] == ["all"]
    assert "command line: [recordings.night] of the file goes with them" in notes
