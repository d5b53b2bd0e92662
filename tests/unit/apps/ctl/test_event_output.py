"""``spectrod ctl events -o``: events of triggers in files, by UTC and in recordings."""

import argparse
import csv
import datetime as dt
import json

import numpy as np
import pytest
import soundfile

from spectrod.apps.ctl import event_output
from spectrod.apps.ctl.event_output import write_events
from spectrod.formats.event_reading import read_events
from spectrod.lib.errors import ConfigError, InputError, UnavailableError, WireError

S = 10**9
FS = 48000
BEGIN = dt.datetime(2026, 5, 1, 4, 30, 0, 123456, tzinfo=dt.UTC)
BEGIN_NS = 1_777_609_800 * S + 123_456_000


class Daemon:
    """The replies of a daemon with these sources, each with its names of channels."""

    def __init__(self, **names):
        self.names = names

    def call(self, method, **_):
        if method == "status":
            return {"sources": [{"name": one, "fs": FS} for one in self.names]}
        assert method == "get"
        tables = {name: {"channel_names": list(some)} for name, some in self.names.items()}
        return {"source": next(iter(tables.values()), {}), "sources": tables}


def event(after_s, duration_s=0.5, number=0, source="mic", state="ended", **facts):
    begin_ns = BEGIN_NS + round(after_s * S)
    trigger = {
        "name": "call", "kind": "bin", "state": state, "reason": "released", "product": "dbfs",
        "channel": "left", "f_min_hz": 2000.0, "f_max_hz": 6000.0, "frequency_hz": 3406.25,
        "level": -40.25, "threshold": -50.0, "floor": -60.0, "unit": "dBFS",
        "begin_utc_ns": begin_ns, "end_utc_ns": begin_ns, "peak_utc_ns": begin_ns,
        "duration_s": duration_s, "pulses": None,
    }  # fmt: skip
    about = {"number": number, "kind": f"trigger.{state}", "source": source}
    return about | {"trigger": trigger | facts}


def written(folder, events, *names, recordings=None, source=None, daemon=None):
    """Write events; return what is read of the files."""
    outputs = [str(folder / name) for name in names]
    where = {"recordings": recordings, "source": source, "follow": False}
    args = argparse.Namespace(output=outputs, **where)
    groups = ([one] for one in events)
    assert write_events(daemon or Daemon(mic=("right", "left")), args, groups) == 0
    return [read_events(folder / name) for name in names]


def recording(folder, after_s, seconds):
    when = BEGIN + dt.timedelta(seconds=after_s)
    path = folder / f"{when:%Y%m%dT%H%M%S}.{when.microsecond:06d}Z.wav"
    soundfile.write(path, np.zeros(round(seconds * FS)), FS)
    return path


def test_ended_events_are_written_by_utc(tmp_path, capsys):
    """In order of their begins; others are not, and seconds count from the first begin."""
    others = [event(0, state="begun"), {"number": 1, "kind": "control.set", "source": ""}]
    given = [*others, event(8, 0.25, name="far", channel="right"), event(5, 4.0)]
    of_csv, of_json, of_raven, of_sigmf = written(
        tmp_path, given, "e.csv", "e.json", "e.selections.txt", "e.sigmf-meta"
    )
    for found in (of_csv, of_json, of_sigmf):
        assert [one.begin_utc_ns - BEGIN_NS for one in found] == [5 * S, 8 * S]
    for found in (of_csv, of_raven, of_sigmf):
        assert [one.begin_s for one in found] == [0.0, 3.0]
        assert [one.duration_s for one in found] == [4.0, 0.25]
    assert of_csv[1].text == "far, -40.2 dBFS, 19.8 dB over the floor, peak at 3406 Hz"
    assert [one.channel for one in of_csv] == ["left", "right"]
    assert [one.channel for one in of_raven] == [2, 1]
    assert {one.file for one in (*of_csv, *of_raven)} == {""}
    assert capsys.readouterr().out.splitlines()[0] == f"# {tmp_path}/e.csv: 2 events"


@pytest.mark.parametrize("name", ["e.csv", "e.selections.txt", "e.labels.txt", "e.sigmf-meta"])
def test_events_in_recordings_are_within_a_sample(tmp_path, name):
    """100 random events in files with pauses, of which one is shorter than names of files tell."""
    rng = np.random.default_rng(5)
    folder = tmp_path / "calls"
    folder.mkdir()
    begins_s, seconds = (0.0, 61.5, 3600.25), (60.0, 90.0, 30.0)
    files = [recording(folder, *one) for one in zip(begins_s, seconds, strict=True)]
    which = np.sort(rng.integers(0, 3, 100))
    samples = [int(rng.integers(0, (seconds[k] - 1) * FS)) for k in which]
    order = np.lexsort((samples, which))
    given = [event(begins_s[which[n]] + samples[n] / FS, 0.5) for n in range(100)]
    (found,) = written(tmp_path, given, name, recordings=str(folder))
    before_s = np.concatenate(([0.0], np.cumsum(seconds)[:-1]))
    in_all = np.array([before_s[which[n]] * FS + samples[n] for n in order])
    is_of_file = name == "e.csv"
    expected = np.array(samples)[order] if is_of_file else in_all
    np.testing.assert_allclose([one.begin_s * FS for one in found], expected, rtol=0, atol=0.5)
    if name in {"e.csv", "e.sigmf-meta"}:
        utc_s = np.array([begins_s[which[n]] + samples[n] / FS for n in order])
        since_s = np.array([one.begin_utc_ns - BEGIN_NS for one in found]) / S
        np.testing.assert_allclose(since_s * FS, utc_s * FS, rtol=0, atol=0.5)
    if name in {"e.csv", "e.selections.txt"}:
        assert [one.file for one in found] == [str(files[which[n]]) for n in order]
    if name == "e.selections.txt":
        rows = csv.DictReader((tmp_path / name).read_text().splitlines(), delimiter="\t")
        offsets = [float(row["File Offset (s)"]) * FS for row in rows]
        np.testing.assert_allclose(offsets, np.array(samples)[order], rtol=0, atol=0.5)


def test_events_of_no_recording_are_left_out(tmp_path, capsys):
    """With a line that says how many."""
    recording(tmp_path, 0, 10)
    given = [event(-5), event(3), event(11)]
    (found,) = written(tmp_path, given, "e.csv", recordings=str(tmp_path))
    assert [one.begin_s for one in found] == [3.0]
    assert f"2 events begin in no file of {tmp_path}: left out" in capsys.readouterr().err


def test_channels_without_names_are_numbers(tmp_path, capsys):
    """Those that are not there any more, and sources that are gone, are said and left out."""
    given = [event(0, channel="1"), event(1, channel="left", number=7), event(2, source="gone")]
    (found,) = written(tmp_path, given, "e.selections.txt", daemon=Daemon(mic=()))
    assert [one.channel for one in found] == [2]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "event 7: channel left of mic is not there any more: left out",
        "event 0: channel left of gone is not there any more: left out",
    ]


@pytest.mark.parametrize("end", [KeyboardInterrupt(), UnavailableError("no reply")])
def test_what_came_before_the_end_is_written(tmp_path, end):
    """Of an interrupt, and of a daemon that is gone; both are raised then."""

    def events():
        yield event(0)
        raise end

    with pytest.raises(type(end)):
        written(tmp_path, events(), "e.csv")
    assert len(read_events(tmp_path / "e.csv")) == 1

    def none():
        raise end
        yield

    with pytest.raises(type(end)):
        written(tmp_path, none(), "f.csv")
    assert not (tmp_path / "f.csv").exists()


@pytest.mark.parametrize("is_marked", [False, True])
def test_files_are_whole_while_events_come(tmp_path, monkeypatch, is_marked, capsys):
    """Once in a minute in which an event ended, and a recording is there; lines come once."""
    clock, folder = [0.0], tmp_path / "calls"
    monkeypatch.setattr(event_output.time, "monotonic", lambda: clock[0])
    (tmp_path / "e.csv").write_text("before")
    seen = []

    def after(seconds):
        clock[0] += seconds
        content = (tmp_path / "e.csv").read_text()
        seen.append(content.count("\n") - 1 if content != "before" else None)

    def groups():
        yield [event(1)]
        after(59)
        yield []
        after(2)
        yield []
        after(0)
        folder.mkdir()
        (folder / "broken.wav").write_bytes(b"RIFF")
        recording(folder, 0, 10)
        after(61)
        yield [event(2), event(-5)]
        after(0)
        yield [event(3)]
        after(1)

    where = {"recordings": str(folder) if is_marked else None, "source": "mic", "follow": True}
    args = argparse.Namespace(output=[str(tmp_path / "e.csv")], **where)
    assert write_events(Daemon(mic=("right", "left")), args, groups()) == 0
    # Marked events wait for the recording, and one is in none.
    assert seen == ([None, None, None, None, 2, 2] if is_marked else [None, None, 1, 1, 3, 3])
    assert len(read_events(tmp_path / "e.csv")) == (3 if is_marked else 4)
    assert capsys.readouterr().err.count("broken.wav") == is_marked


def test_a_channel_that_was_named_later_is_asked_for_again(tmp_path):
    """Names change while a daemon runs."""
    daemon = Daemon(mic=("old",))

    def events():
        yield event(0, channel="old")
        daemon.names["mic"] = ("a", "left")
        yield event(1)

    (found,) = written(tmp_path, events(), "e.selections.txt", daemon=daemon)
    assert [one.channel for one in found] == [1, 2]


def test_a_file_has_no_more_events_than_are_read(tmp_path, monkeypatch, capsys):
    """Following ends there."""
    monkeypatch.setattr(event_output, "FILE_EVENTS_MAX", 2)
    (found,) = written(tmp_path, map(event, range(5)), "e.csv")
    assert len(found) == 2
    assert capsys.readouterr().err == "a file has at most 2 events\n"


def test_refusals(tmp_path):
    """Names without a format, recordings without -o, that are missing, or of several sources."""
    events = [event(0)]
    with pytest.raises(ConfigError, match=r"e\.xlsx: events: the name must end with"):
        written(tmp_path, events, "e.xlsx")
    with pytest.raises(ConfigError, match="--recordings r: must be with -o FILE"):
        written(tmp_path, events, recordings="r")
    with pytest.raises(InputError, match="missing: no such file or folder"):
        written(tmp_path, events, "e.csv", recordings=str(tmp_path / "missing"))
    two = Daemon(mic=(), roof=())
    with pytest.raises(ConfigError, match="name its --source, one of mic, roof"):
        written(tmp_path, events, "e.csv", recordings=str(tmp_path), daemon=two)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({"f_max_hz": 1.0}, r"event 0: f_max_hz=1: must be at least 2000"),
        ({"level": float("nan")}, r"event 0: numbers must be finite"),
        ({"floor": float("inf")}, r"event 0: numbers must be finite"),
        ({"duration_s": 1e300}, r"event 0: begin_utc_ns=\d+: must be of 1970 to 2199"),
        ({"begin_utc_ns": -1}, r"event 0: begin_utc_ns=-1: must be of 1970"),
        ({"begin_utc_ns": "x"}, r"event 0: Expected `int`, got `str` - at `\$\.begin_utc_ns`"),
        ({"name": "../x\x1b"}, r"event 0: name='\.\./x\\x1b': must be that of a trigger"),
        ({"unit": "dB\n2,3"}, r"event 0: unit='dB\\\\n2,3': must be one line of at most 64"),
        ({"unit": "d" * 65}, r"event 0: unit='d+\.\.\.d+': must be one line of at most 64"),
        ({"channel": None}, r"event 0: Expected `str`, got `null`"),
    ],
)
def test_what_a_daemon_may_not_send_is_an_error(tmp_path, facts, rule):
    """One line with the event's number; no file is left."""
    with pytest.raises(WireError, match=rule):
        written(tmp_path, [event(0, **facts)], "e.csv")
    assert list(tmp_path.iterdir()) == []


def test_json_has_all_fields(tmp_path):
    """Those of the trigger's event, with both clocks."""
    written(tmp_path, [event(1.5)], "e.json")
    (found,) = json.loads((tmp_path / "e.json").read_text())
    assert found["begin_utc"] == "2026-05-01T04:30:01.623456000Z"
    assert (found["name"], found["level"], found["threshold"]) == ("call", -40.25, -50.0)
    assert (found["floor"], found["over_floor_db"], found["pulses"]) == (-60.0, 19.75, None)
