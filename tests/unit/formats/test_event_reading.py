"""Files of events are read: those that are written, those of other programs, and hostile ones."""

import datetime as dt
import json
import re
import sys
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spectrod.formats import event_reading
from spectrod.formats.event_fields import EVENT_COLUMNS, fields_of
from spectrod.formats.event_files import event_file
from spectrod.formats.event_reading import ParquetRows, parse_events, read_events
from spectrod.formats.export.confined.confined_process import FileProcess
from spectrod.lib.errors import ConfigError, InputError, UnavailableError
from spectrod.measure.triggers.detection import Detection
from spectrod.measure.triggers.trigger import TriggerEvent

S = 10**9
BEGIN_NS = 1_777_694_400 * S + 123_456_000
"""2026-05-02T04:00:00.123456Z."""


def detection(**given):
    event = TriggerEvent(
        name="call",
        kind="band",
        state="ended",
        reason="released",
        product="density",
        channel="left",
        f_min_hz=2000.0,
        f_max_hz=6000.0,
        frequency_hz=3406.25,
        level=-40.25,
        threshold=-50.0,
        unit="dBFS",
        floor=-60.0,
        begin_utc_ns=BEGIN_NS,
        end_utc_ns=BEGIN_NS + S,
        peak_utc_ns=BEGIN_NS,
        duration_s=0.5,
        pulses=None,
    )
    one = Detection(event, 0, 24000, "a b.wav", 7.25, 67.25, has_utc=True, channel=2, fs=48000.0)
    return replace(one, **given)


def written(path, *detections, zone=None):
    with event_file(path, zone) as write:
        for one in detections:
            write(one)
    return path


def check_packages(name):
    """Skip a test of Parquet where nothing reads it."""
    if name.endswith(".parquet"):
        pytest.importorskip("arro3.io")


@pytest.mark.parametrize("name", ["e.csv", "e.json", "e.parquet"])
@pytest.mark.parametrize("zone", [None, ZoneInfo("Europe/Berlin")])
def test_what_is_written_is_read(tmp_path, name, zone):
    """Time to the microsecond, also of a time zone; length, channel, band, file and text."""
    check_packages(name)
    later = detection(file="b.wav", begin_s=0.0)
    first, second = read_events(written(tmp_path / name, detection(), later, zone=zone))
    assert first.begin_utc_ns == BEGIN_NS
    assert (first.begin_s, first.duration_s, first.channel) == (7.25, 0.5, "left")
    assert (first.f_min_hz, first.f_max_hz, first.file) == (2000.0, 6000.0, "a b.wav")
    assert first.text == "call, -40.2 dBFS, 19.8 dB over the floor, peak at 3406 Hz"
    assert second.file == "b.wav"


def test_parquet_has_the_columns_of_csv(tmp_path):
    """Times are timestamps in UTC, whatever the time zone; unknown values are null."""
    arro3 = pytest.importorskip("arro3.io")
    track = replace(detection().event, threshold=None)
    events = [detection(), detection(has_utc=False, file="b.wav", joined_s=3.0, event=track)]
    path = written(tmp_path / "e.parquet", *events, zone=ZoneInfo("Europe/Berlin"))
    table = arro3.read_parquet(path).read_all()
    assert table.column_names == ["begin_utc", "end_utc", *EVENT_COLUMNS]
    columns = {name: table[name].to_pylist() for name in table.column_names}
    begin, end = (columns[name][0] for name in ("begin_utc", "end_utc"))
    assert (begin.isoformat(), (end - begin).total_seconds()) == (
        "2026-05-02T04:00:00.123456+00:00", 0.5,
    )  # fmt: skip
    assert (columns["begin_utc"][1], columns["end_utc"][1]) == (None, None)
    for name in EVENT_COLUMNS:
        assert columns[name] == [fields_of(one)[name] for one in events]


def test_parquet_of_no_events_has_the_columns(tmp_path):
    """So that a query of many files finds them in each."""
    arro3 = pytest.importorskip("arro3.io")
    table = arro3.read_parquet(written(tmp_path / "e.parquet")).read_all()
    assert (table.num_rows, table.column_names[2:]) == (0, list(EVENT_COLUMNS))


def test_a_track_has_no_threshold():
    """Neither in its text nor in a column; its frequency has more digits than a level."""
    event = replace(detection().event, kind="track", threshold=None, floor=None)
    event = replace(event, frequency_hz=440.00126)
    fields = fields_of(detection(event=event))
    assert (fields["threshold"], fields["floor"], fields["frequency_hz"]) == (None, None, 440.0013)
    assert event.text == "track at 440.001 Hz, channel left: -40.2 dBFS; released after 0.5 s"


def test_parquet_needs_its_extra_before_the_first_event(tmp_path, monkeypatch):
    """So that nobody searches for an hour in vain; no file is left."""
    monkeypatch.setitem(sys.modules, "arro3.io", None)
    with (
        pytest.raises(UnavailableError, match=r"pip install 'spectrod\[parquet\]'"),
        event_file(tmp_path / "e.parquet"),
    ):
        pytest.fail("opened")
    assert list(tmp_path.iterdir()) == []


def parquet(**columns):
    """Return a file of columns of arro3 arrays."""
    io, core = pytest.importorskip("arro3.io"), pytest.importorskip("arro3.core")
    memory = BytesIO()
    table = core.Table.from_arrays(list(columns.values()), names=list(columns))
    io.write_parquet(table, memory, compression="zstd(3)", dictionary_page_size_limit=1 << 30)
    return memory.getvalue()


def column(cells, kind, **about):
    core = pytest.importorskip("arro3.core")
    return core.Array(cells, type=getattr(core.DataType, kind)(**about))


def seconds(*cells):
    return column(cells, "float64")


def test_parquet_of_others_is_read():
    """Other widths of numbers, time zones of readers, no time, dictionaries, more columns."""
    core = pytest.importorskip("arro3.core")
    ms = column([BEGIN_NS // 10**6, None], "int64").cast(core.DataType.timestamp("ms", tz="UTC"))
    content = parquet(
        begin_s=column([1, 2], "int32"),
        duration_s=column([0.5, 0.25], "float32"),
        begin_utc=ms,
        channel=column(["left", None], "large_string"),
        pulses=column([3, None], "int64"),
        remark=column(["x", "y"], "string"),
    )
    first, second = parse_events(Path("e.parquet"), content)
    assert first.begin_utc_ns == BEGIN_NS // 10**6 * 10**6
    assert (first.begin_s, first.duration_s, first.channel) == (1.0, 0.5, "left")
    assert first.text == "3 pulses"
    assert (second.begin_utc_ns, second.begin_s, second.channel) == (None, 2.0, None)


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"begin_s": seconds}, "must have the column 'duration_s'"),
        ({"begin_s": seconds, "duration_s": lambda _: column(["x"], "string")},
         "column duration_s: must not be of type <Utf8>"),
        ({"begin_s": seconds, "duration_s": lambda _: seconds(-1.0)},
         "event 1: duration -1 s: must be 0 or more"),
        ({"begin_s": seconds, "duration_s": lambda _: seconds(float("nan"))},
         "event 1: duration_s: must be a number"),
        ({"begin_s": seconds, "duration_s": seconds,
          "begin_utc": lambda _: column(["noon"], "string")},
         "event 1: begin 'noon': must be 1970 to 2199"),
    ],
)  # fmt: skip
def test_parquet_that_is_no_table_of_events_is_refused(columns, rule):
    """With the column or the event, and the rule."""
    pytest.importorskip("arro3.io")
    content = parquet(**{name: make(1.0) for name, make in columns.items()})
    with pytest.raises(InputError, match=re.escape(f"e.parquet: {rule}")):
        parse_events(Path("e.parquet"), content)


def test_parquet_that_is_damaged_or_unpacks_to_more_than_memory_is_one_error(monkeypatch):
    """arro3 panics or aborts there: in a process of its own, which ends alone."""
    pytest.importorskip("arro3.io")
    good = parquet(begin_s=seconds(1.0, 2.0, 3.0), duration_s=seconds(1.0, 1.0, 1.0))
    for content in (b"", b"PAR1", good[:-1], good[5:]):
        with pytest.raises(
            InputError, match=r"e\.parquet: must be Parquet: begin and end with PAR1"
        ):
            parse_events(Path("e.parquet"), content)
    for content in (b"PAR1" + bytes(20) + b"PAR1", good[:-40] + b"x" * 32 + good[-8:]):
        with pytest.raises(InputError, match=r"e\.parquet: is damaged"):
            parse_events(Path("e.parquet"), content)
    n = 1000
    bomb = parquet(
        begin_s=seconds(*[1.0] * n),
        duration_s=seconds(*[1.0] * n),
        file=column(["a" * 1_000_000] * n, "string"),
    )
    assert len(bomb) < 10_000
    with pytest.raises(InputError, match=r"gave up: too much time or memory, or a crash"):
        parse_events(Path("e.parquet"), bomb)
    monkeypatch.setattr(event_reading, "FILE_EVENTS_MAX", 2)
    with pytest.raises(InputError, match=r"e\.parquet: must have at most 2 events"):
        parse_events(Path("e.parquet"), good)


def test_parquet_cannot_be_read_without_its_extra(monkeypatch):
    """The error says what to install."""
    monkeypatch.setattr("spectrod.lib.optional_packages.find_spec", lambda _: None)
    with pytest.raises(UnavailableError, match=r"pip install 'spectrod\[parquet\]'"):
        parse_events(Path("e.parquet"), b"")


def test_events_without_a_time_of_the_clock_have_none(tmp_path):
    """They keep that from the begin of their file."""
    (one,) = read_events(written(tmp_path / "e.csv", detection(has_utc=False)))
    assert (one.begin_utc_ns, one.begin_s) == (None, 7.25)


@pytest.mark.parametrize("name", ["raven.txt", "labels.txt"])
def test_selections_and_labels_count_from_the_begin_of_all(tmp_path, name):
    """Both have the band; labels have no channel and no file."""
    one, other = read_events(written(tmp_path / name, detection(), detection(joined_s=90.0)))
    assert (one.begin_utc_ns, one.begin_s, one.duration_s) == (None, 67.25, 0.5)
    assert (one.f_min_hz, one.f_max_hz, other.begin_s) == (2000.0, 6000.0, 90.0)
    assert one.channel == (2 if name == "raven.txt" else None)


def test_selections_are_named_after_their_trigger(tmp_path):
    """In a column that Raven shows; a tab in it parts no columns; no file has no path."""
    event = replace(detection().event, name="a\tb")
    path = written(tmp_path / "raven.txt", detection(event=event), detection(file=""))
    named, no_file = read_events(path)
    assert named.text == "a\\tb, peak at 3406 Hz"
    assert Path(named.file).name == "a b.wav"
    assert (no_file.text, no_file.file) == ("call, peak at 3406 Hz", "")


def test_a_table_of_raven_itself(tmp_path):
    """A selection has a line for each view, in any order of columns, with notes in quotes."""
    path = tmp_path / "Table.txt"
    path.write_text(
        "Selection\tView\tChannel\tEnd Time (s)\tBegin Time (s)\tSpecies\n"
        '1\tWaveform 1\t1\t2.5\t2.0\t"Parus\n'
        '1\tSpectrogram 1\t1\t2.5\t2.0\t"Parus\n'
        "2\tWaveform 1\t1\t4\t3\t\n"
    )
    first, second = read_events(path)
    assert (first.begin_s, first.duration_s, first.text) == (2.0, 0.5, '"Parus')
    assert (second.begin_s, second.f_min_hz, second.text) == (3.0, None, "")


def test_labels_of_audacity_itself(tmp_path):
    """Points and spans, with and without frequencies, -1 for none, and no end of the last line."""
    path = tmp_path / "l.txt"
    path.write_text("1\t1\tpoint\n2\t3.5\n\\\t-1.0\t4000\n4\t5\tx\n\\\t10\t20")
    found = [(one.begin_s, one.duration_s, one.text, one.f_max_hz) for one in read_events(path)]
    assert found == [(1.0, 0.0, "point", None), (2.0, 1.5, "", None), (4.0, 1.0, "x", 20.0)]


HEAD = "begin_utc,begin_s,duration_s,channel,f_min_hz,f_max_hz\n"


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("e.csv", "", "line 1: must have the column 'begin_s'"),
        ("e.csv", "time\n1\n", "line 1: must have the column 'begin_s'"),
        ("e.csv", HEAD + ",nan,1\n", "line 2: begin_s='nan': must be a number within 1e+10"),
        ("e.csv", HEAD + ",1e300,1\n", "line 2: begin_s='1e300': must be a number"),
        ("e.csv", HEAD + ",1,\n", "line 2: duration_s: must be a number"),
        ("e.csv", HEAD + ",1,-2\n", "line 2: duration -2 s: must be 0 or more"),
        ("e.csv", HEAD + ",1,1,1,9,8\n", "line 2: f_max_hz=8: must be at least f_min_hz=9"),
        ("e.csv", HEAD + "\n2026-05-02,1,1\n", "line 3: begin '2026-05-02': must be 1970 to 2199"),
        ("e.csv", HEAD + "0001-01-01T00:00:00+14:00,1,1\n", "line 2: begin '0001"),
        ("e.csv", HEAD + "x" * 200_000 + "\n", "line 2: field larger than field limit"),
        ("e.csv", b"\xff\xfe", "must be UTF-8"),
        ("e.json", "{}", "Expected `array`, got `object`"),
        ("e.json", '[{"a":' + "[" * 100_000, "nested too deeply"),
        ("e.json", '[{"begin_s": 1' + "0" * 400 + ', "duration_s": 1}]', "event 1: begin_s="),
        ("e.json", '[{"begin_s": [[]], "duration_s": 1}]', "event 1: begin_s=[[]]: must be"),
        ("raven.txt", "Begin Time (s)\n", "line 1: must have the column 'End Time (s)'"),
        ("raven.txt", "Begin Time (s)\tEnd Time (s)\n2\t1\n", "line 2: duration -1 s: must be 0"),
        ("l.txt", "a\tb\n", "line 1: begin='a': must be a number"),
        ("l.txt", "\x1b[2J\n", "line 1: begin='\\x1b[2J': must be a number"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, name, content, rule):
    """One line with the file, where in it, the value and the rule; terminals are safe of it."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=re.escape(rule)) as caught:
        read_events(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_bounds(tmp_path, monkeypatch):
    """Of bytes, also of content that is given, and of events; other names and folders."""
    path = written(tmp_path / "e.csv", *[detection()] * 3)
    monkeypatch.setattr(event_reading, "FILE_EVENTS_MAX", 2)
    with pytest.raises(InputError, match="must have at most 2 events"):
        read_events(path)
    monkeypatch.setattr(event_reading, "FILE_BYTES_MAX", 100)
    with pytest.raises(InputError, match="must have at most 100 bytes"):
        read_events(path)
    with pytest.raises(InputError, match="must have at most 100 bytes"):
        parse_events(path, b"x" * 101)
    with pytest.raises(ConfigError, match=r"events: the name must end with \.csv, \.json, \.txt"):
        read_events(tmp_path / "e.xlsx")
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(InputError, match=r"f\.csv: "):
        read_events(tmp_path / "f.csv")


def test_times_are_those_of_the_standard_library():
    """Fractions and offsets, on both sides of UTC."""
    for text in ("2026-05-02T06:00:00.5+02:00", "2026-05-01T23:00:00-05:30", "2026-05-02T04:00Z"):
        (one,) = parse_events(event_reading.Path("e.csv"), f"{HEAD}{text},1,1\n".encode())
        assert one.begin_utc_ns == round(dt.datetime.fromisoformat(text).timestamp() * 2) * S // 2


def test_annotations_of_sigmf_have_both_clocks(tmp_path):
    """Samples count through all files, and each capture has the UTC at the begin of its file."""
    utc_ns = BEGIN_NS + 600 * S
    later = replace(detection().event, begin_utc_ns=utc_ns, name="x" * 40)
    later = detection(event=later, file="b.wav", begin_s=2.0, joined_s=102.0)
    path = written(tmp_path / "e.sigmf-meta", later, detection())
    content = json.loads(path.read_text())
    assert content["global"]["core:sample_rate"] == 48000.0
    starts = [one["core:sample_start"] for one in content["captures"]]
    assert starts == [60 * 48000, 100 * 48000]
    labels = [one["core:label"] for one in content["annotations"]]
    assert labels[0] == "call"
    assert len(labels[1]) <= 20
    first, second = read_events(path)
    assert (first.begin_utc_ns, first.begin_s, first.duration_s) == (BEGIN_NS, 67.25, 0.5)
    assert (first.f_min_hz, first.f_max_hz, first.channel) == (2000.0, 6000.0, None)
    assert first.text == "call, -40.2 dBFS, channel 2, a b.wav"
    assert (second.begin_utc_ns, second.begin_s) == (utc_ns, 102.0)
    (one,) = read_events(written(tmp_path / "n.sigmf-meta", detection(has_utc=False)))
    assert (one.begin_utc_ns, one.begin_s) == (None, 67.25)
    assert read_events(written(tmp_path / "none.sigmf-meta")) == []


@pytest.mark.parametrize(
    "name", ["e.csv", "e.json", "e.parquet", "raven.txt", "labels.txt", "e.sigmf-meta"]
)
@pytest.mark.parametrize("fs", [8000.0, 48000.0, 256000.0])
def test_times_of_events_are_within_a_sample(tmp_path, name, fs):
    """100 random events of a file with gaps before it: time in all files or the file, and UTC."""
    check_packages(name)
    rng = np.random.default_rng(7)
    firsts = np.sort(rng.integers(0, round(3600 * fs), 100))
    counts = rng.integers(1, round(20 * fs), 100)
    events = []
    for first, count in zip(firsts.tolist(), counts.tolist(), strict=True):
        event = replace(
            detection().event,
            begin_utc_ns=BEGIN_NS + round(first * S / fs),
            duration_s=count / fs,
        )
        events.append(
            detection(event=event, n_samples=count, begin_s=first / fs, joined_s=60 + first / fs)
        )
    events = [replace(one, fs=fs) for one in events]
    found = read_events(written(tmp_path / name, *events))
    before_s = 60.0 if "txt" in name or "sigmf" in name else 0.0
    begins = np.array([one.begin_s for one in found]) - before_s
    lengths = np.array([one.duration_s for one in found])
    np.testing.assert_allclose(begins * fs, firsts, rtol=0, atol=0.5)
    np.testing.assert_allclose(lengths * fs, counts, rtol=0, atol=0.55)
    if "txt" not in name:  # tables of Raven and labels have no time of the clock
        since_ns = np.array([one.begin_utc_ns - BEGIN_NS for one in found])
        np.testing.assert_allclose(since_ns * fs / S, firsts, rtol=0, atol=0.5)


def test_events_of_different_rates_are_no_sigmf(tmp_path):
    """Its samples have one rate: the error names them, and no file is left."""
    with pytest.raises(ConfigError, match=r"x\.sigmf-meta: events: sample rates 44100, 48000: "):
        written(tmp_path / "x.sigmf-meta", detection(), detection(fs=44100.0))
    assert list(tmp_path.iterdir()) == []


def test_the_metadata_of_a_recording_is_not_replaced(tmp_path):
    """A recording's own metadata stays as it is, and the error names its samples."""
    (tmp_path / "x.sigmf-data").touch()
    (tmp_path / "x.sigmf-meta").write_text("mine")
    with pytest.raises(ConfigError, match=r"is the metadata of x\.sigmf-data; take another name"):
        written(tmp_path / "x.sigmf-meta", detection())
    assert (tmp_path / "x.sigmf-meta").read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("{", "truncated|data"),
        ("[]", "Expected `object`"),
        ('{"global": {}, "annotations": [{}]}', "core:sample_rate: must be a number above 0"),
        ('{"global": {"core:sample_rate": -1}, "annotations": [{}]}', "must be a number above 0"),
        ('{"global": {"core:sample_rate": 1}, "annotations": [{}]}', "annotation 1: core:sample_s"),
        (
            '{"global": {"core:sample_rate": 1}, "annotations": [{"core:sample_start": 0.5}]}',
            "annotation 1: core:sample_start: must be a whole number from 0",
        ),
        (
            '{"global": {"core:sample_rate": 1}, "annotations": [{"core:sample_start": 1e99}]}',
            "core:sample_start=1e.99: must be a number within",
        ),
        (
            '{"global": {}, "captures": [{"core:sample_start": 0, "core:datetime": "noon"}]}',
            "capture 1: begin 'noon': must be 1970",
        ),
        ('{"global": {}, "captures": [{"core:sample_start": -1}]}', "capture 1: core:sample_start"),
    ],
)
def test_metadata_that_is_none_is_refused(content, rule):
    """One error names the place and the rule."""
    with pytest.raises(InputError, match=rule):
        parse_events(Path("e.sigmf-meta"), content.encode())


def test_files_of_one_origin_share_a_process_until_one_is_wrong(monkeypatch):
    """Nothing of a damaged file lasts, and no process reads files without end."""
    good = parquet(begin_s=seconds(1.0), duration_s=seconds(1.0))
    opened = []

    def start(kind):
        opened.append(kind)
        return FileProcess(kind)

    monkeypatch.setattr(event_reading, "FileProcess", start)
    monkeypatch.setattr(event_reading, "_PROCESS_FILES_MAX", 3)
    with closing(ParquetRows()) as rows:

        def read(content):
            return len(parse_events(Path("e.parquet"), content, rows))

        assert ([read(good) for _ in range(3)], len(opened)) == ([1, 1, 1], 1)
        assert (read(good), len(opened)) == (1, 2)
        with pytest.raises(InputError, match=r"e\.parquet: must be Parquet"):
            read(b"PAR1")
        assert (read(good), len(opened)) == (1, 3)
