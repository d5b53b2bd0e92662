"""Archives behind the page: what is found, and what hostile folders cannot make the server do."""

import argparse
import asyncio
import json
import logging
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import websockets

from spectrod.apps.web import command
from spectrod.apps.web.archive import archive_index, archives, stored_topics
from spectrod.apps.web.archive.archive_pages import ArchivePages
from spectrod.apps.web.archive.archives import open_archives
from spectrod.apps.web.history import recording_index
from spectrod.apps.web.history.answer import answer
from spectrod.apps.web.history.budget import Budget
from spectrod.apps.web.history.columns import from_wire
from spectrod.apps.web.history.request import HistoryRequest
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.limits import Limits
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import ConfigError, InputError

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_pages import served

pytestmark = pytest.mark.usefixtures("whole_scans")

SPEC = SpectrumSpec(fs=1000.0, win_length=64, hop=50, nfft=64)
BANDS = SpectrumSpec(
    fs=1000.0, win_length=1000, hop=500, nfft=1000, bands="third-octave", scaling="dbfs"
)
S = 10**9
BEGIN_NS = 1_777_680_000 * S
"""2026-05-02, 00:00 UTC."""
ROW_NS = S // 20


def batch_of(spec, n, begin_ns=BEGIN_NS, seed=1):
    values = np.random.default_rng(seed).gamma(2.0, 1e-6, (n, 1, spec.n_values))
    index = np.arange(n, dtype=np.int64) * spec.hop
    t_ns = begin_ns + index * S // int(spec.fs)
    return SpectrumBatch(values.astype(np.float32), index, t_ns, t_ns, spec, "numpy")


def about(spec, source, zone):
    attributes = {} if zone is None else {"time_zone": zone}
    return Description(spec, source, ("a",), "spectrod test", attributes=attributes)


def segment(path, spec=SPEC, n=100, source="pond", zone=None, **where):
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = SegmentWriter(path, about(spec, source, zone))
    batch = batch_of(spec, n, **where)
    writer.write(batch)
    writer.finish()
    return batch


def pyramid(folder, spec=SPEC, n=1200, source="pond", zone=None, **where):
    folder.mkdir(parents=True, exist_ok=True)
    writer = PyramidWriter(folder / "pyramid", about(spec, source, zone), PyramidOptions())
    writer.write(batch_of(spec, n, **where))
    writer.finish()


def opened(*paths):
    return open_archives([str(path) for path in paths])


def listed(*paths):
    return [(one["endpoint"], one["topic"], one["stored"]) for one in opened(*paths).listed()]


def seconds(begin_s, end_s):
    return [BEGIN_NS / 1e6 + 1e3 * begin_s, BEGIN_NS / 1e6 + 1e3 * end_s]


def again(found):
    """Look again, whatever the time since the last look."""
    for one in found.archives:
        one.index._scanned_s = -float("inf")
    return found.refresh()


def test_a_folder_of_recordings_has_a_topic_of_each_source_and_product(tmp_path):
    """A source is a folder with rows; its span is that of its rows."""
    segment(tmp_path / "all" / "pond" / "one.spd")
    segment(tmp_path / "all" / "pond" / "two.spd", n=20, begin_ns=BEGIN_NS + 60 * S)
    segment(tmp_path / "all" / "roof" / "one.spd", BANDS, n=6)
    assert listed(tmp_path) == [
        (tmp_path.name, "spec/pond/a/density/", seconds(0, 61)),
        (tmp_path.name, "bands/roof/a/dbfs/", seconds(0, 3)),
    ]


def test_a_segment_is_a_source_of_its_own(tmp_path):
    """Of its folder nothing else is shown, and its name becomes one that topics can have."""
    segment(tmp_path / "at night.spd")
    segment(tmp_path / "other.spd")
    ((endpoint, topic, _),) = listed(tmp_path / "at night.spd")
    assert (endpoint, topic) == ("at night.spd", "spec/at_night/a/density/")


@pytest.mark.parametrize("inside", ["", "pond", "pond/pyramid"])
def test_a_pyramid_is_found_from_any_folder_above_it(tmp_path, inside):
    """Its span is that of its cells; the folder itself may be given as well."""
    pyramid(tmp_path / "pond")
    ((_, topic, stored),) = listed(tmp_path / inside)
    assert (topic, stored) == ("spec/pond/a/density/", seconds(0, 60))


def test_results_of_a_job_are_found_by_its_file(tmp_path):
    """The folder is relative to the file; what a merge is making beside them is not shown."""
    pyramid(tmp_path / "results" / "history" / "archive" / "north", source="north")
    pyramid(tmp_path / "results" / "state" / "merge" / "archive" / "half", source="half")
    (tmp_path / "results" / "plan.jsonl").write_text("{}\n")
    job = tmp_path / "JOB.toml"
    job.write_text('[job]\noutput = "results"\n')
    assert [topic for _, topic, _ in listed(job)] == ["spec/north/a/density/"]
    assert listed(job) == listed(tmp_path / "results")


def test_zones_of_sources_are_those_of_the_job(tmp_path):
    """Of a recorder its own, else that of the job's tables; a folder of results says none."""
    for name in ("north", "south"):
        pyramid(tmp_path / "results" / "history" / "archive" / name, source=name)
    (tmp_path / "results" / "plan.jsonl").write_text("{}\n")
    job = tmp_path / "JOB.toml"

    def zones(path, text="", known=""):
        job.write_text(f'{known}\n[job]\noutput = "results"\n{text}')
        return [one["time_zone"] for one in opened(path).listed()]

    assert zones(job) == ["", ""]
    tables = '[levels]\ntime_zone = "Asia/Kolkata"\n[picture]\ntime_zone = "Europe/Berlin"\n'
    own = '[deployments.south]\ntime_zone = "Pacific/Apia"\n'
    assert zones(job, tables) == ["Europe/Berlin"] * 2
    assert zones(job, tables + own) == ["Europe/Berlin", "Pacific/Apia"]
    assert zones(job, own) == ["", "Pacific/Apia"]
    assert zones(job, "[levels]\ntime_zone = 3\n", "deployments = [1]\npicture = 2") == ["", ""]
    assert zones(tmp_path / "results") == ["", ""]
    wrong = {
        "levels": tables.replace("Asia/", "Mars/"),
        "deployments.south": own.replace("Apia", "../x"),
    }
    for name, text in wrong.items():
        with pytest.raises(ConfigError, match=rf"JOB.toml: .*{name}.time_zone.*no such time zone"):
            zones(job, text)


def zones_of(found):
    return [(one["source"], one["time_zone"]) for one in found.listed()]


def test_zones_of_sources_are_those_that_recordings_state(tmp_path):
    """The newest segment's before that of a pyramid, which keeps its first; a job's before both."""
    place = tmp_path / "results" / "history" / "archive"
    pyramid(place / "north", zone="Europe/Lisbon")
    for n, zone in enumerate(("Asia/Tokyo", "Asia/Kolkata", None)):
        segment(place / "south" / f"{n}.spd", begin_ns=BEGIN_NS + n * 600 * S, zone=zone)
    pyramid(place / "south", n=60_000, zone="Europe/Lisbon")
    segment(place / "west" / "one.spd")
    found = opened(tmp_path / "results")
    stated = [("north", "Europe/Lisbon"), ("south", "Asia/Kolkata"), ("west", "")]
    assert zones_of(found) == stated
    segment(place / "south" / "3.spd", begin_ns=BEGIN_NS + 5400 * S, zone="Pacific/Apia")
    assert again(found)
    assert zones_of(found)[1] == ("south", "Pacific/Apia")
    job = tmp_path / "JOB.toml"
    job.write_text('[job]\noutput="results"\n[deployments.south]\ntime_zone = "Asia/Tokyo"\n')
    assert zones_of(opened(job)) == [stated[0], ("south", "Asia/Tokyo"), stated[2]]
    assert zones_of(opened(place / "south" / "1.spd")) == [("1", "Asia/Kolkata")]


def test_hostile_zones_of_recordings_are_ignored_and_logged_once(tmp_path, caplog):
    """A name of no zone here leaves its source without one; the log has the first few."""
    zones = ("Mars/\x1b[1m", "local", "../../etc/passwd", "x" * 5000, "Europe", "\ud800", "a\0b")
    for n, zone in enumerate(zones * 2):
        segment(tmp_path / f"s{n:02}" / "one.spd", zone=zone)
    pyramid(tmp_path / "s99", zone="<b>Mars</b>")
    found = opened(tmp_path)
    again(found)
    assert {zone for _, zone in zones_of(found)} == {""}
    assert len(found.topics) == 15
    rule = "there is no such time zone on this machine; it is ignored"
    assert len(caplog.messages) == stored_topics.UNKNOWN_ZONES_MAX
    assert caplog.messages[0] == rf"s00: time_zone='Mars/\\x1b[1m': {rule}"
    assert all(text.endswith(rule) and len(text) < 160 for text in caplog.messages)


def test_archives_of_one_name_are_told_apart(tmp_path):
    """The same source of two cards is two channels, each with its own rows."""
    for n, card in enumerate(("a", "b")):
        segment(tmp_path / card / "rows" / "pond" / "one.spd", begin_ns=BEGIN_NS + n * 600 * S)
    found = opened(tmp_path / "a" / "rows", tmp_path / "b" / "rows", tmp_path / "a" / "rows")
    assert [one["endpoint"] for one in found.listed()] == ["rows", "rows (2)"]
    for number, begin_ns in ((0, BEGIN_NS), (1, BEGIN_NS + 600 * S)):
        assert found.of(found.topics[number].endpoint).files("pond")[0].begin_utc_ns == begin_ns


def test_the_past_of_an_archive_is_that_of_its_rows(tmp_path):
    """Levels are those of the stored rows, the greatest of those that share a column."""
    batch = segment(tmp_path / "pond" / "one.spd", n=40)
    found = opened(tmp_path)
    # A column has the rows whose middles it contains, here 32 ms after their begin.
    asked = HistoryRequest(0, BEGIN_NS / 1e6, BEGIN_NS / 1e6 + 2000, 0, 500, 2, 64, ("max",))
    got = answer(asked, found.topics, found, Ring(), Budget(), now_ns=BEGIN_NS + 10**15)
    power = batch.values[:, 0].reshape(2, 20, -1).max(axis=1)
    levels = from_wire(got.layers[0]) / 100.0
    np.testing.assert_allclose(levels, 10.0 * np.log10(power), atol=0.0051)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda _: None, "No such file or directory"),
        (lambda folder: folder.mkdir(), r"holds no recordings of spectra \(.spd\) and no pyramid"),
        (lambda folder: folder.write_text("x"), r"holds no recordings of spectra \(.spd\)"),
        (lambda folder: folder.symlink_to(folder), "Too many levels of symbolic links"),
    ],
)
def test_a_path_with_nothing_to_show_is_one_clear_error(tmp_path, make, text):
    """It names the path."""
    make(tmp_path / "there")
    with pytest.raises(InputError, match=f"{tmp_path}/there: .*({text})"):
        opened(tmp_path / "there")


def test_a_folder_of_sound_says_what_makes_a_job_of_it(tmp_path):
    """Also where the files are in folders below; other files are no sound."""
    (tmp_path / "site" / "may").mkdir(parents=True)
    (tmp_path / "site" / "notes.txt").write_text("x")
    with pytest.raises(InputError, match=r"no pyramid$"):
        opened(tmp_path / "site")
    (tmp_path / "site" / "may" / "20260501_000000.WAV").write_bytes(b"")
    hint = r"no pyramid, but sound files: spectrod batch init .*/site makes a job of them$"
    with pytest.raises(InputError, match=hint):
        opened(tmp_path / "site")


def test_results_without_pyramids_say_how_to_make_them(tmp_path):
    """Daily files alone are not shown."""
    (tmp_path / "plan.jsonl").write_text("{}\n")
    with pytest.raises(
        InputError, match=r'add merged = \["pyramid"\] to \[job\], and run spectrod'
    ):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[job", r"JOB.toml:1:5: "),
        ("[job]\n", "JOB.toml: job.output: must be the folder of the results"),
        ("job = 3\n", "JOB.toml: job.output: must be"),
        (
            '[job]\noutput = "s3://abc/d"\n',
            "job.output=s3://abc/d: must be a folder",
        ),
        ('[job]\noutput = "gone"\n', "gone: has no results yet: spectrod batch run JOB.toml"),
    ],
)
def test_a_job_without_results_is_one_clear_error(tmp_path, content, text):
    """It names the file and what is wrong with it."""
    (tmp_path / "JOB.toml").write_text(content)
    with pytest.raises((ConfigError, InputError), match=text):
        opened(tmp_path / "JOB.toml")


def arguments(*given):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args([str(one) for one in given])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("tcp://127.0.0.1:1", "x"), "tcp://127.0.0.1:1 and x: a server shows daemons or archives"),
        (("--control", "x"), "--control: is for daemons, not for x"),
        (("--sound", "x"), "--sound: is for daemons, not for x"),
        (("x", "--recordings", "y"), "--recordings: is for daemons"),
        (("x", "--key", "y"), "--key: is for daemons"),
        (["x"] * 20, "x: No such file or directory"),
        ([f"x{n}" for n in range(17)], "17 archives: must be at most 16"),
    ],
)
def test_what_does_not_go_with_archives_is_refused(given, text, monkeypatch):
    """By options, and by number; the same path counts once."""
    monkeypatch.setattr(command, "configure_logging", lambda _level: None)
    with pytest.raises((ConfigError, InputError), match=text):
        command.run(arguments(*given))


def everything_in(folder):
    return {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")}


def test_nothing_is_written_into_an_archive(tmp_path):
    """A folder without the right to write is shown, and no file or time of one changes."""
    segment(tmp_path / "all" / "pond" / "one.spd")
    pyramid(tmp_path / "all" / "roof")
    before = everything_in(tmp_path)
    found = opened(tmp_path)
    for number in found.topics:
        asked = HistoryRequest(
            number, BEGIN_NS / 1e6, BEGIN_NS / 1e6 + 9000, 0, 500, 9, 9, ("max",)
        )
        answer(asked, found.topics, found, Ring(), Budget(), now_ns=BEGIN_NS)
    assert everything_in(tmp_path) == before


def test_links_in_an_archive_are_not_followed(tmp_path):
    """Neither to folders nor to files of others."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    segment(outside / "secret" / "one.spd")
    segment(inside / "pond" / "one.spd")
    (inside / "roof").symlink_to(outside / "secret")
    (inside / "hall").mkdir()
    (inside / "hall" / "one.spd").symlink_to(outside / "secret" / "one.spd")
    assert [topic for _, topic, _ in listed(inside)] == ["spec/pond/a/density/"]


def test_deep_and_wide_folders_are_bounded(tmp_path, monkeypatch, caplog):
    """What is beyond is left out, with one line in the log; descriptors are closed."""
    monkeypatch.setattr(archive_index, "FOLDERS_MAX", 12)
    segment(tmp_path / "a" / "one.spd")
    segment(tmp_path / "b1/2/3/4/5/6/7" / "one.spd")
    for n in range(20):
        (tmp_path / f"z{n:02}").mkdir()
    segment(tmp_path / "z19" / "one.spd")
    n_before = len(list(Path("/proc/self/fd").iterdir()))
    found = opened(tmp_path)
    again(found)
    assert [one["source"] for one in found.listed()] == ["a"]
    lines = [record.message for record in caplog.records]
    assert lines == [f"{tmp_path}: more than 12 folders: the rest is left out"]
    assert len(list(Path("/proc/self/fd").iterdir())) == n_before


def test_a_torn_segment_is_counted_and_logged_once(tmp_path, caplog):
    """Whoever looks at its source is told; the others are shown."""
    segment(tmp_path / "pond" / "one.spd")
    segment(tmp_path / "pond" / "two.spd", begin_ns=BEGIN_NS + 600 * S)
    torn = tmp_path / "pond" / "two.spd"
    torn.write_bytes(torn.read_bytes()[:100])
    found = opened(tmp_path)
    again(found)
    assert found.archives[0].index.damaged("pond") == [
        "1 file of recordings cannot be read: damaged, or of another kind"
    ]
    assert [one["stored"] for one in found.listed()] == [seconds(0, 5)]
    assert [record.message for record in caplog.records] == [
        f"{tmp_path}/pond: 1 file of recordings cannot be read: damaged, or of another kind"
    ]


def test_an_archive_of_torn_files_alone_is_an_error(tmp_path):
    """It says so, and not that there is nothing."""
    (tmp_path / "one.spd").write_bytes(b"x" * 5000)
    with pytest.raises(InputError, match="1 file cannot be read: damaged, or of another kind"):
        opened(tmp_path)


def test_an_archive_that_goes_and_comes_again_keeps_its_numbers(tmp_path, caplog):
    """While it is away pages are told why, and the log has one line."""
    shown, away = tmp_path / "shown", tmp_path / "away"
    segment(shown / "pond" / "one.spd")
    found = opened(shown)
    before = found.listed()
    shown.rename(away)
    assert again(found)
    assert not again(found)
    assert (found.listed(), found.archives[0].why) == ([], "is no longer there")
    away.rename(shown)
    assert again(found)
    assert (found.listed(), found.archives[0].why) == (before, "")
    assert [record.message for record in caplog.records] == [f"{shown}: is no longer there"]


def test_what_comes_later_is_listed(tmp_path):
    """A new source gets another number, and a source that grows another end."""
    segment(tmp_path / "pond" / "one.spd")
    found = opened(tmp_path)
    segment(tmp_path / "pond" / "two.spd", begin_ns=BEGIN_NS + 60 * S)
    segment(tmp_path / "hall" / "one.spd")
    assert again(found)
    assert {one["id"]: (one["source"], one["stored"]) for one in found.listed()} == {
        0: ("pond", seconds(0, 65)),
        1: ("hall", seconds(0, 5)),
    }
    shutil.rmtree(tmp_path / "pond")
    assert again(found)
    assert [one["id"] for one in found.listed()] == [1]


def test_numbers_of_topics_are_bounded(tmp_path, monkeypatch):
    """Of a folder whose names always change no more are remembered than the bound."""
    monkeypatch.setattr(archives, "_IDS_MAX", 3)
    segment(tmp_path / "s0" / "one.spd")
    found = opened(tmp_path)
    for n in range(10):
        (tmp_path / f"s{n}").rename(tmp_path / f"s{n + 1}")
        again(found)
    assert len(found._ids) <= 4
    assert len(found.listed()) == 1


def test_a_page_is_told_topics_and_their_axes(tmp_path):
    """The stream's description is that of the rows' analysis; no row follows."""
    segment(tmp_path / "all" / "pond" / "one.spd")
    segment(tmp_path / "all" / "roof" / "one.spd", BANDS, n=6)
    found = opened(tmp_path)
    wish = {"f0": 0.0, "f1": 500.0, "px": 100, "bits": 16}
    streams = [{"id": 8 * n, "topic_id": n, **wish} for n in range(3)]

    async def told():
        pages = ArchivePages(found, Limits())
        async with served(pages) as address, websockets.connect(address) as page:
            await page.send(json.dumps({"op": "view", "generation": 4, "streams": streams}))
            texts = [json.loads(await page.recv()) for _ in range(6)]
            return {(one["op"], one.get("id")): one for one in texts}

    texts = asyncio.run(told())
    assert texts["hello", None]["is_archive"]
    (endpoint,) = texts["state", None]["endpoints"]
    assert (endpoint["connected"], endpoint["is_archive"]) == (True, True)
    assert [one["source"] for one in texts["topics", None]["topics"]] == ["pond", "roof"]
    pond, roof = texts["stream", 0], texts["stream", 8]
    assert {name: pond[name] for name in ("n_bins", "bin_hz", "first_hz", "unit", "enbw_hz")} == {
        "n_bins": 33, "bin_hz": 15.625, "first_hz": 0.0, "unit": "dB re FS^2/Hz",
        "enbw_hz": pytest.approx(SPEC.enbw_hz),
    }  # fmt: skip
    table = BANDS.band_table
    np.testing.assert_allclose(roof["edges_hz"], [table.lower, table.upper])
    assert texts["refused", None]["why"].startswith("topic_id=2: must be the id of a topic")


def test_the_log_of_the_index_is_not_of_archives_alone(tmp_path, caplog):
    """Recordings of daemons log damaged files the same way."""
    (tmp_path / "all" / "pond").mkdir(parents=True)
    (tmp_path / "all" / "pond" / "one.spd").write_bytes(b"x" * 5000)
    with caplog.at_level(logging.WARNING):
        recording_index.RecordingIndex([tmp_path]).refresh()
    assert [record.message for record in caplog.records] == [
        f"{tmp_path}/all/pond: 1 file of recordings cannot be read: damaged, or of another kind"
    ]


def test_names_that_no_topic_can_have_are_left_out_and_logged_once(tmp_path, caplog):
    """A stranger's channel cannot make other parts of a topic; alone it is a clear error."""
    place = tmp_path / "pond"
    place.mkdir()
    writer = SegmentWriter(place / "one.spd", Description(SPEC, "pond", ("a/b\n",), "test"))
    writer.write(batch_of(SPEC, 10))
    writer.finish()
    text = r"pond: a/b\n/density: no topic can have this name"
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}: {text}")):
        opened(tmp_path)
    caplog.clear()
    segment(tmp_path / "roof" / "one.spd")
    found = opened(tmp_path)
    again(found)
    assert [one["source"] for one in found.listed()] == ["roof"]
    assert [record.message for record in caplog.records] == [text]


def test_channels_without_names_are_numbered_as_in_topics_of_a_daemon(tmp_path):
    """What `spectrod record` calls "channel 0" in its files is channel 0 on the page."""
    place = tmp_path / "pond"
    place.mkdir()
    writer = SegmentWriter(
        place / "one.spd", Description(SPEC, "pond", PictureOptions().names(SPEC.channels), "test")
    )
    writer.write(batch_of(SPEC, 10))
    writer.finish()
    assert [one["channel"] for one in opened(tmp_path).listed()] == [
        str(k) for k in range(SPEC.channels)
    ]


def test_what_is_torn_while_it_is_shown_is_said_and_logged_once(tmp_path, caplog):
    """The answer names it; the next request says it again, and the log does not."""
    pyramid(tmp_path / "pond")
    found = opened(tmp_path)
    for path in (tmp_path / "pond" / "pyramid").glob("*/*.cells"):
        path.write_bytes(b"x" * path.stat().st_size)
    asked = HistoryRequest(0, *seconds(0, 60), 0, 500, 6, 64, ("max",))
    for _ in range(2):
        got = answer(asked, found.topics, found, Ring(), Budget(), now_ns=BEGIN_NS)
        name = f"{tmp_path.name}/pond/pyramid"
        assert got.header["left_out"] == [f"{name}: cannot be read, or is damaged"]
    (line,) = [record.message for record in caplog.records]
    assert line.startswith(f"{name}: ")


def test_what_is_logged_once_is_bounded(tmp_path, monkeypatch, caplog):
    """After many other texts one may be logged again, so that they take no memory."""
    monkeypatch.setattr(recording_index, "TOLD_MAX", 3)
    index = recording_index.RecordingIndex([tmp_path])
    for text in ("a", "b", "a", "c", "d", "a"):
        index.log_once(text)
    assert [record.message for record in caplog.records] == ["a", "b", "c", "d", "a"]
