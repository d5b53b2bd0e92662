"""Events of archives: whose they are, when they are, and what hostile results cannot do."""

import argparse
import asyncio
import gzip
import json
import re

import numpy as np
import pytest
from starlette.requests import Request

from spectrod.apps.web import command
from spectrod.apps.web.archive import stored_events
from spectrod.apps.web.archive.archive_pages import ArchivePages
from spectrod.apps.web.archive.archives import open_archives
from spectrod.apps.web.archive.events_route import events_route
from spectrod.apps.web.archive.stored_events import StoredEvents
from spectrod.apps.web.limits import Limits
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import ConfigError, InputError

pytestmark = pytest.mark.usefixtures("whole_scans")

SPEC = SpectrumSpec(fs=1000.0, win_length=64, hop=50, nfft=64, channels=2)
S = 10**9
BEGIN_NS = 1_777_680_000 * S
"""2026-05-02, 00:00 UTC."""
BEGIN_MS = BEGIN_NS / 1e6
HEAD = "begin_utc,begin_s,duration_s,channel,f_min_hz,f_max_hz,file\n"


def segment(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = SegmentWriter(path, Description(SPEC, "pond", ("left", "right"), "spectrod test"))
    index = np.arange(100, dtype=np.int64) * SPEC.hop
    t_ns = BEGIN_NS + index * S // 1000
    values = np.ones((100, 2, SPEC.n_values), np.float32)
    writer.write(SpectrumBatch(values, index, t_ns, t_ns, SPEC, "numpy"))
    writer.finish()
    return path


def row(second, channel="left", begin="2026-05-02T00:00:{:02d}Z"):
    return f"{begin.format(second)},{second},0.5,{channel},20,80,a.wav\n"


def results(folder, *rows, name="north_20260502_events.csv", deployment="north"):
    """Write results of a job whose only deployment has these events."""
    segment(folder / "history" / "archive" / deployment / "one.spd")
    (folder / "plan.jsonl").write_text("{}\n")
    (folder / deployment).mkdir(exist_ok=True)
    (folder / deployment / name).write_text(HEAD + "".join(rows))
    return folder


def parquet(path, second, channel="left"):
    """Write a Parquet file with an event, as ``spectrod detect`` does."""
    io, core = pytest.importorskip("arro3.io"), pytest.importorskip("arro3.core")
    of = core.DataType
    begin = core.Array([BEGIN_NS + second * S], type=of.int64()).cast(of.timestamp("ns", tz="UTC"))
    numbers = [core.Array([one], type=of.float64()) for one in (float(second), 0.5)]
    columns = [begin, *numbers, core.Array([channel], type=of.string())]
    names = ["begin_utc", "begin_s", "duration_s", "channel"]
    path.parent.mkdir(parents=True, exist_ok=True)
    io.write_parquet(core.Table.from_arrays(columns, names=names), path)
    return path


def partition(folder, deployment, date):
    """Return the path of a table of events as ``layout = "partitioned"`` has it."""
    name = f"{deployment}_{date.replace('-', '')}_events.parquet"
    return folder / "events" / f"deployment={deployment}" / f"date={date}" / name


def found(path, *named):
    return StoredEvents(open_archives([str(path)]), [str(one) for one in named])


def begins_s(events):
    return [(mark.t0 - BEGIN_MS) / 1000 for mark in events.listed.marks]


def test_results_bring_their_events(tmp_path):
    """The newest first, of their deployment and channel, at their time and band."""
    events = found(results(tmp_path / "results", row(1), row(3, "right"), row(2, "gone")))
    assert begins_s(events) == [3, 2, 1]
    newest, unknown, oldest = events.listed.marks
    assert (newest.source, newest.channel, newest.kind) == ("north", "right", "event")
    assert (newest.t1 - newest.t0, newest.f0, newest.f1) == (500.0, 20.0, 80.0)
    assert (unknown.channel, oldest.channel) == ("", "left")


def test_what_a_batch_adds_comes_and_what_goes_leaves(tmp_path):
    """A version for each change, and none without one."""
    folder = results(tmp_path / "results", row(1))
    events = found(folder)
    assert (events.refresh(), events.listed.version) == (False, 1)
    later = folder / "north" / "north_20260503_events.csv"
    later.write_text(HEAD + row(7))
    assert (events.refresh(), events.listed.version, begins_s(events)) == (True, 2, [7, 1])
    later.unlink()
    assert (events.refresh(), begins_s(events)) == (True, [1])


def test_the_newest_of_too_many_stay(tmp_path, monkeypatch):
    """Older files are not read, and pages are told that there are more."""
    folder = results(tmp_path / "results", *map(row, range(3)))
    (folder / "north" / "north_20260501_events.csv").write_text("never read")
    monkeypatch.setattr(stored_events, "EVENTS_MAX", 2)
    events = found(folder)
    assert (begins_s(events), events.listed.has_more) == ([2, 1], True)


def test_hostile_results_add_nothing(tmp_path, caplog):
    """Links of files and folders, other names, folders of no source; what is damaged, once."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "south_1_events.csv").write_text(HEAD + row(5))
    folder = results(tmp_path / "results", row(1))
    segment(folder / "history" / "archive" / "south" / "one.spd")
    (folder / "south").symlink_to(outside)
    (folder / "north" / "north_2_events.csv").symlink_to(outside / "south_1_events.csv")
    (folder / "north" / "north_3_events.csv").mkdir()
    (folder / "north" / "north_4_events.csv").write_text(HEAD + "x\n")
    (folder / "north" / "other.csv").write_text(HEAD + row(9))
    (folder / "east").mkdir()
    (folder / "east" / "east_1_events.csv").write_text(HEAD + row(8))
    events = found(folder)
    assert begins_s(events) == [1]
    (folder / "north" / "north_5_events.csv").write_text(HEAD + row(2))
    events.refresh()
    assert begins_s(events) == [2, 1]
    (said,) = [one for one in caplog.messages if "north_4" in one]
    assert said.startswith(f"{folder}/north/north_4_events.csv: line 2: begin 'x': must be 1970")


def test_results_in_parquet_bring_their_events(tmp_path):
    """Those of a deployment's folder and of partitions, the newest first, like those of CSV."""
    folder = results(tmp_path / "results", row(1))
    parquet(folder / "north" / "north_20260503_events.parquet", 5, "right")
    for date, second in (("2026-05-04", 7), ("2026-05-05", 9)):
        parquet(partition(folder, "north", date), second)
    events = found(folder)
    assert begins_s(events) == [9, 7, 5, 1]
    assert {mark.source for mark in events.listed.marks} == {"north"}
    partition(folder, "north", "2026-05-05").unlink()
    assert (events.refresh(), begins_s(events)) == (True, [7, 5, 1])


def test_the_newest_of_both_forms_and_layouts_are_read(tmp_path, monkeypatch, caplog):
    """By the time in their names, wherever they lie."""
    folder = results(tmp_path / "results", row(1), name="north_20260504_events.csv")
    parquet(partition(folder, "north", "2026-05-05"), 2)
    for path in (partition(folder, "north", "2026-05-03"), folder / "north/north_1_events.parquet"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"never read")
    monkeypatch.setattr(stored_events, "EVENTS_MAX", 2)
    events = found(folder)
    assert (begins_s(events), events.listed.has_more) == ([2, 1], True)
    assert caplog.messages == []


def test_hostile_partitions_add_nothing(tmp_path, caplog):
    """Links at each level, names of no date, no deployment and no unit; what is damaged, once."""
    folder = results(tmp_path / "results", row(1))
    outside = parquet(partition(tmp_path / "outside", "north", "2026-05-06"), 6)
    of_north = folder / "events" / "deployment=north"
    of_north.mkdir(parents=True)
    (of_north / "date=2026-05-06").symlink_to(outside.parent)
    (folder / "events" / "deployment=link").symlink_to(outside.parent.parent)
    link = partition(folder, "north", "2026-05-07")
    link.parent.mkdir()
    link.symlink_to(outside)
    for path in (
        of_north / "date=2026-05-x" / "north_1_events.parquet",
        of_north / "date=2026-05-08" / "south_1_events.parquet",
        of_north / "date=2026-05-08" / "north.parquet",
        of_north / "north_1_events.parquet",
        folder / "events" / "north" / "date=2026-05-08" / "north_1_events.parquet",
        partition(folder, "east", "2026-05-08"),
    ):
        parquet(path, 8)
    damaged = partition(folder, "north", "2026-05-09")
    damaged.parent.mkdir()
    damaged.write_bytes(b"PAR1")
    events = found(folder)
    events.refresh()
    assert begins_s(events) == [1]
    assert caplog.messages == [f"{damaged}: must be Parquet: begin and end with PAR1"]


def test_entries_of_all_dates_are_bounded_together(tmp_path, monkeypatch):
    """The newest dates come first."""
    folder = results(tmp_path / "results")
    for date, second in (("2026-05-04", 4), ("2026-05-06", 6), ("2026-05-05", 5)):
        parquet(partition(folder, "north", date), second)
    monkeypatch.setattr(stored_events, "FILES_MAX", 3)
    (partition(folder, "north", "2026-05-06").parent / "other").touch()
    assert begins_s(found(folder)) == [6, 5]


def test_parquet_of_results_without_its_library_is_reported_once(tmp_path, monkeypatch, caplog):
    """With what installs it; the events of CSV are shown."""
    folder = results(tmp_path / "results", row(1))
    for date in ("2026-05-04", "2026-05-05"):
        path = partition(folder, "north", date)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"PAR1")
    monkeypatch.setattr("spectrod.lib.optional_packages.find_spec", lambda _: None)
    assert begins_s(found(folder)) == [1]
    (said,) = caplog.messages
    assert "arro3 is not installed: needs: pip install 'spectrod[parquet]'" in said


def test_a_file_that_is_named_is_that_of_the_only_source(tmp_path):
    """Labels count from the begin of what is stored, and have no channel of their own."""
    labels = tmp_path / "labels.txt"
    labels.write_text("2\t3.5\tfrog\n")
    events = found(segment(tmp_path / "x.spd"), labels)
    (mark,) = events.listed.marks
    assert (mark.source, mark.channel, mark.text) == ("x", "", "frog")
    assert (mark.t0, mark.t1, mark.f0) == (BEGIN_MS + 2000, BEGIN_MS + 3500, None)
    labels.unlink()
    assert events.refresh()
    assert events.listed.marks == ()


def test_events_of_parquet_are_read_and_read_again(tmp_path, caplog):
    """At their time and channel; a file that has become damaged says so once."""
    path = tmp_path / "e.parquet"
    parquet(path, 3, "right")
    events = found(segment(tmp_path / "x.spd"), path)
    (mark,) = events.listed.marks
    assert (begins_s(events), mark.channel, mark.t1 - mark.t0) == ([3.0], "right", 500.0)
    path.write_bytes(b"PAR1")
    assert events.refresh()
    assert events.listed.marks == ()
    assert caplog.messages == [f"{path}: must be Parquet: begin and end with PAR1"]


def test_selections_have_channels_by_number(tmp_path):
    """As Raven counts them, from 1 on."""
    table = tmp_path / "raven.txt"
    table.write_text("Begin Time (s)\tEnd Time (s)\tChannel\n1\t2\t2\n1\t2\t9\n")
    events = found(segment(tmp_path / "x.spd"), table)
    assert [mark.channel for mark in events.listed.marks] == ["right", ""]


def test_of_several_sources_one_is_named(tmp_path):
    """SOURCE=FILE; else the error has the names to choose from."""
    for name in ("pond", "roof"):
        segment(tmp_path / "all" / name / "one.spd")
    table = tmp_path / "e.csv"
    table.write_text(HEAD + row(1))
    (mark,) = found(tmp_path / "all", f"roof={table}").listed.marks
    assert mark.source == "roof"
    for given in (table, f"lake={table}"):
        rule = f"--events {given}: must be SOURCE=FILE with one of pond, roof"
        with pytest.raises(ConfigError, match=re.escape(rule)):
            found(tmp_path / "all", given)


def test_a_named_file_that_cannot_be_shown_is_an_error(tmp_path):
    """Missing, damaged, of several files without times of the clock, and too many of them."""
    stored = segment(tmp_path / "x.spd")
    with pytest.raises(InputError, match=r"no\.csv: No such file"):
        found(stored, tmp_path / "no.csv")
    table = tmp_path / "e.csv"
    table.write_text(HEAD + row(1, begin="") + row(2, begin="").replace("a.wav", "b.wav"))
    with pytest.raises(InputError, match="must have times of the clock"):
        found(stored, table)
    with pytest.raises(ConfigError, match="--events: 9 files: must be at most 8"):
        found(stored, *[table] * 9)


def test_the_route_answers_in_gzip_and_without(tmp_path):
    """The same text either way, which no cache keeps."""
    events = found(results(tmp_path / "results", row(1)))
    answer = events_route(events).endpoint

    def got(coding):
        headers = [(b"accept-encoding", coding)]
        return asyncio.run(answer(Request({"type": "http", "headers": headers})))

    packed, plain = got(b"gzip"), got(b"identity")
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert plain.headers["cache-control"] == "no-store"
    assert gzip.decompress(packed.body) == plain.body
    told = json.loads(plain.body)
    assert (told["version"], told["has_more"]) == (1, False)
    assert [one["t0"] for one in told["events"]] == [BEGIN_MS + 1000]


def test_pages_are_told_the_version(tmp_path):
    """In the state, which is sent again with the topics when the events are others."""
    folder = results(tmp_path / "results", row(1))
    archives = open_archives([str(folder)])
    events = StoredEvents(archives)
    pages = ArchivePages(archives, Limits(), events)
    assert pages._state()["events_version"] == 1
    assert not pages._refresh()
    (folder / "north" / "north_20260503_events.csv").write_text(HEAD + row(7))
    assert pages._refresh()
    assert pages._state()["events_version"] == 2
    assert ArchivePages(archives, Limits())._state()["events_version"] == 0


def test_events_are_of_what_is_stored():
    """Not of daemons, which send their own."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["--events", "e.csv"])
    with pytest.raises(ConfigError, match=r"--events e\.csv: is for what is stored"):
        command.run(args)
