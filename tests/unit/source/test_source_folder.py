"""A folder as one stream, with gaps as long as the times of the files imply."""

import datetime as dt
import errno
import os
import re
import threading
import time

import numpy as np
import pytest
import soundfile

from spectrod.config.config import SourceConfig
from spectrod.lib.errors import ConfigError, InputError
from spectrod.source import source_listing
from spectrod.source.direct import PacedReader
from spectrod.source.files.placing import DRIFT_MAX, TOLERANCE_S
from spectrod.source.left_out import NAMED_MAX
from spectrod.source.open_source import open_source
from spectrod.source.ring import SampleRing

FS = 100
START = dt.datetime(2026, 5, 1, 4, 30, tzinfo=dt.UTC)
START_NS = 1777609800 * 10**9


@pytest.fixture
def folder(tmp_path):
    """Make a folder and a function that adds noise to it, starting some seconds after START."""
    path = tmp_path / "site 1"
    path.mkdir()
    rng = np.random.default_rng(7)

    def put(after_s, n, name="{}", fs=FS, channels=1):
        when = START + dt.timedelta(seconds=after_s)
        stem = f"{when:%Y%m%d_%H%M%S}.{when.microsecond:06d}"
        x = rng.integers(-32768, 32768, (n, channels)).astype(np.int16)
        soundfile.write(path / f"{name.format(stem)}.wav", x, fs, subtype="PCM_16")
        return x.T / np.float32(32768)

    put.path = path
    return put


def open_folder(folder, **settings):
    return open_source(SourceConfig(uri=str(folder.path), **settings), "full")


def test_gaps_have_the_length_given_by_the_times(folder, collect):
    """Each file's samples are at the index of its time, and UTC is right throughout."""
    expected = [folder(after_s, n) for after_s, n in ((0, 1001), (60, 500), (64.5, 1), (3600, 777))]
    source = open_folder(folder)
    assert (source.fs, source.channels, source.n_samples) == (FS, 1, 360_777)
    assert (source.name, source.start_utc_ns) == ("site-1", START_NS)
    stretches = collect(source)
    assert [index for index, *_ in stretches] == [0, 6000, 360_000]
    np.testing.assert_array_equal(stretches[0][1], expected[0])
    # The third file starts half a second before the second's end, by its name or its clock.
    np.testing.assert_array_equal(stretches[1][1], np.concatenate(expected[1:3], axis=1))
    np.testing.assert_array_equal(stretches[2][1], expected[3])
    for index, _, _, utc_ns in stretches:
        assert utc_ns == START_NS + index * 10**9 // FS


def test_samples_before_a_gap_wait_for_a_slow_reader(folder):
    """A gap longer than the ring overwrites no sample before it, though indices jump."""
    folder(0, 3000)
    folder(3600, 3000)
    source = open_folder(folder)
    ring = SampleRing(source.fs, source.layout, 4096)
    source.start(ring)
    assert not threading.Event().wait(0.2)  # time for the writer to overwrite
    blocks = []
    while not ring.exhausted:
        if block := ring.read(1000):
            blocks.append((block.sample_index, block.n_samples, block.lost_samples))
        else:
            assert ring.data.wait(10.0)
    assert sum(n for _, n, _ in blocks) == 6000
    assert [lost for _, _, lost in blocks if lost] == [360_000 - 3000]
    assert ring.overruns == 0
    source.stop()
    ring.release()


@pytest.mark.parametrize(
    ("late_s", "begin"),
    [(-1.99, 1000), (0.0, 1000), (1.99, 1000), (2.0, 1200), (2.01, 1201), (86400.0, 8_641_000)],
)
def test_small_differences_are_no_gaps(folder, late_s, begin):
    """Differences below the tolerance of whole seconds are joined, larger ones are gaps."""
    folder(0, 1000)
    folder(10 + late_s, 100)
    assert TOLERANCE_S == 2.0
    assert open_folder(folder).n_samples == begin + 100


@pytest.mark.parametrize("late_s", [-2.0, -9.0, -10.0])
def test_strictly_an_overlap_is_an_error(folder, late_s):
    """In strict mode an overlap is an error that names the file and the way out."""
    folder(0, 1000)
    folder(10 + late_s, 100, name="b_{}")
    message = (
        rf"site 1/b_2026.*\.wav: begins {-late_s:.1f} s before 2026.* ends \(without --strict, "
        r"what can be read is read\)$"
    )
    with pytest.raises(InputError, match=message):
        open_folder(folder, strict=True)


@pytest.mark.parametrize("late_s", [-2.0, -2.57, -9.99])
def test_an_overlap_loses_the_beginning_of_the_later_file(folder, collect, late_s):
    """The later file's part of an overlap is dropped, and the rest is at its time."""
    first, second = folder(0, 1000), folder(10 + late_s, 1100, name="b_{}")
    source = open_folder(folder)
    ((index, samples, *_),) = collect(source)
    n_cut = round(-late_s * FS)
    assert (index, source.n_samples) == (0, 1000 + 1100 - n_cut)
    np.testing.assert_array_equal(samples, np.concatenate([first, second[:, n_cut:]], axis=1))
    assert source.left_out.n_files == 1
    (line,) = source.left_out.lines
    assert f"ends: its first {-late_s:.1f} s are left out" in line


def test_a_file_within_another_is_left_out(folder, collect):
    """A file within another one is skipped, and later files follow the longer one's end."""
    first, inner, last = folder(0, 1000), folder(5, 500, name="b_{}"), folder(20, 100)
    source = open_folder(folder)
    stretches = collect(source)
    assert inner.shape == (1, 500)
    assert [index for index, *_ in stretches] == [0, 2000]
    for (_, samples, *_), expected in zip(stretches, (first, last), strict=True):
        np.testing.assert_array_equal(samples, expected)
    (line,) = source.left_out.lines
    assert line.endswith("wav: begins 5.0 s before 20260501_043000.000000.wav ends: left out")


def test_names_that_count_by_seconds_are_numbers(folder, collect, caplog):
    """As FFmpeg's segments may have: all samples of all files, in order, and no start time."""
    expected = [folder(after_s, n) for after_s, n in ((0, 1003), (1, 1003), (2, 494))]
    source = open_folder(folder)
    assert (source.n_samples, source.start_utc_ns) == (2500, None)
    ((index, samples, *_),) = collect(source)
    assert index == 0
    np.testing.assert_array_equal(samples, np.concatenate(expected, axis=1))
    assert not source.left_out.lines
    (line,) = [r.getMessage() for r in caplog.records if "taken as numbers" in r.getMessage()]
    assert "one second apart, but the files last longer" in line


@pytest.mark.parametrize("after_s", [(0, 1, 3), (0, 2, 4), (0, 1)])
def test_names_that_count_otherwise_are_times(folder, after_s):
    """Steps that differ, steps of two seconds, and a file that ends before the next one begins."""
    for k, s in enumerate(after_s):
        folder(s, 300 if len(after_s) == 2 else 1000 + k)
    assert open_folder(folder).start_utc_ns == START_NS


def test_an_overlap_of_a_coded_file_is_cut_at_the_sample(folder, collect):
    """In an Ogg file, where seeking is inexact, the overlap is decoded and dropped."""
    first = folder(0, 24_000, fs=8000)
    x = np.random.default_rng(2).uniform(-0.5, 0.5, 40_000)
    path = folder.path / "20260501_043001.ogg"
    soundfile.write(path, x, 8000)
    ((_, samples, *_),) = collect(open_folder(folder))
    decoded = soundfile.read(path, dtype="float32", always_2d=True)[0].T
    np.testing.assert_array_equal(samples, np.concatenate([first, decoded[:, 16_000:]], axis=1))


@pytest.mark.parametrize(("days", "is_reported"), [(300, False), (400, True)])
def test_a_clock_that_was_not_set_is_reported(folder, caplog, days, is_reported):
    """A gap of years is kept, with a warning that names its files."""
    for after_s in (0, 20, days * 86_400):
        folder(after_s, 1000, name="{}\n")
    source = open_folder(folder)
    assert source.n_samples == days * 86_400 * FS + 1000
    reported = "site 1: 1.1 years without samples between 20260501_043020.000000\\n.wav and 2027"
    assert (reported in caplog.text) == is_reported
    assert source.left_out.n_files == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_drift_is_no_gap(folder, sign):
    """A recorder with a slightly wrong rate leaves no gaps over days."""
    fs, n = 8, 8000
    for k in range(60):
        folder(k * 1000 * (1 + sign * DRIFT_MAX / 2), n, fs=fs)
    assert open_folder(folder).n_samples == 60 * n


def test_small_pauses_add_up(folder, collect):
    """Pauses below the tolerance after each file add up to gaps."""
    for k in range(12):
        folder(10.5 * k, 1000)
    begins = [index for index, *_ in collect(open_folder(folder))]
    # The tolerance and possible drift are first exceeded after five pauses, and counting restarts.
    assert begins == [0, 5250, 10500]


def test_small_overlaps_add_up(folder, collect):
    """Overlaps below the tolerance after each file add up and are cut."""
    for k in range(12):
        folder(9.5 * k, 1000)
    with pytest.raises(InputError, match=r"043047\.500000\.wav: begins 2\.5 s before .* ends"):
        open_folder(folder, strict=True)
    source = open_folder(folder)
    assert source.left_out.n_files == 2
    ((_, samples, *_),) = collect(source)
    # Since the fifth file, the tenth has no overlap above the tolerance.
    assert samples.shape == (1, 12_000 - 2 * 250)


def test_after_drift_a_gap_is_still_a_gap(folder, collect):
    """A gap is marked even if samples have drifted ahead of the times by more than its length."""
    fs, n = 8, 8000
    late = 1 - DRIFT_MAX * 0.9
    for k in range(20):
        folder(k * 1000 * late, n, fs=fs)
    folder(20_000 * late + 2.5, n, fs=fs)
    assert [index for index, *_ in collect(open_folder(folder))] == [0, 20 * n + 1]


def test_files_are_in_the_order_of_their_times(folder, collect):
    """Files are ordered by their times and not by the start of their names."""
    second, first = folder(5, 500, name="a_{}"), folder(0, 500, name="b_{}")
    ((_, samples, *_),) = collect(open_folder(folder))
    np.testing.assert_array_equal(samples, np.concatenate([first, second], axis=1))


def test_files_without_times_are_joined_by_name(folder, collect, caplog):
    """Files without times are joined in the order of names without gaps, with a log line."""
    parts = [folder(0, n, name=name) for name, n in (("a", 33), ("b", 1), ("c", 1000))]
    source = open_folder(folder)
    assert source.start_utc_ns is None
    ((index, samples, *_),) = collect(source)
    assert index == 0
    np.testing.assert_array_equal(samples, np.concatenate(parts, axis=1))
    assert "site 1: no file says when it begins: joined by name, without gaps" in caplog.text


def test_other_files_are_left_alone(folder):
    """Notes, hidden files and folders are ignored."""
    folder(0, 100)
    (folder.path / "CONFIG.TXT").write_text("x")
    (folder.path / "._20260501_043100.wav").write_text("x")
    (folder.path / "sub.wav.d").mkdir()
    assert open_folder(folder).n_samples == 100


def make_empty(path):
    path.write_bytes(b"")


def make_fifo(path):
    path.unlink()
    os.mkfifo(path)


def link_to(target):
    def link(path):
        path.unlink()
        path.symlink_to(target)

    return link


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (make_empty, "empty file"),
        (cut, "truncated: 2000 bytes announced, 1900 found"),
        (lambda path: path.write_text("noise"), "not a sound file"),
        (lambda path: (path.unlink(), path.mkdir()), "not a regular file"),
        (make_fifo, "not a regular file"),
        (link_to("/dev/zero"), "not a regular file"),
        (link_to("20260501_043010.000000.wav"), "Too many levels of symbolic links"),
        (link_to("absent.wav"), "No such file or directory"),
        (
            lambda path: soundfile.write(path, np.zeros(9), 44100),
            "44100 Hz x 1, but 2 of 3 files have 100 Hz x 1",
        ),
        (
            lambda path: soundfile.write(path, np.zeros((9, 2)), FS),
            "100 Hz x 2, but 2 of 3 files have 100 Hz x 1",
        ),
        (lambda path: path.rename(path.with_name("x.wav")), "has no start time, but oth"),
    ],
)
def test_a_bad_file_in_the_middle(folder, collect, spoil, message):
    """A bad file is named and becomes a gap or, if configured, an error."""
    expected = [folder(after_s, 1000) for after_s in (0, 10, 20)]
    path = folder.path / "20260501_043010.000000.wav"
    spoil(path)
    name = path.name if os.path.lexists(path) else "x.wav"
    line = rf"site 1/{re.escape(name)}: {re.escape(message)}"
    with pytest.raises(InputError, match=f"{line}.*{re.escape(' (without --strict, what can ')}"):
        open_folder(folder, strict=True)
    source = open_folder(folder)
    assert re.search(line.removesuffix(re.escape(".")), source.left_out.lines[0])
    assert ".:" not in source.left_out.lines[0]
    stretches = collect(source)
    n_found = 950 if spoil is cut else 0
    first, middle, last = expected
    middle = middle[:, :n_found]
    assert [index for index, *_ in stretches] == [0, 2000]
    np.testing.assert_array_equal(stretches[0][1], np.concatenate([first, middle], axis=1))
    np.testing.assert_array_equal(stretches[1][1], last)
    assert (source.n_samples, source.left_out.n_files) == (3000, 1)
    assert source.capture().left_out_files == 1


@pytest.mark.parametrize("late_s", [-1.9, 0.0, 1.9])
def test_a_truncated_file_leaves_a_gap_below_the_tolerance(folder, collect, late_s):
    """After a truncated file, one at the announced end, to the tolerance, is placed there."""
    folder(0, 1000)
    folder(10 + late_s, 1000)
    cut(folder.path / "20260501_043000.000000.wav")
    assert [index for index, *_ in collect(open_folder(folder))] == [0, 1000]


def test_a_header_that_announces_too_much_moves_nothing(folder, collect):
    """If the next file starts before the announced end, the real length of the first counts."""
    expected = [folder(0, 1000), folder(10, 1000)]
    path = folder.path / "20260501_043000.000000.wav"
    data = bytearray(path.read_bytes())
    data[40:44] = (2**30).to_bytes(4, "little")
    path.write_bytes(data)
    source = open_folder(folder)
    ((_, samples, *_),) = collect(source)
    np.testing.assert_array_equal(samples, np.concatenate(expected, axis=1))
    assert "1073741824 bytes announced, 2000 found: read up to there" in source.left_out.lines[0]


def test_files_that_are_all_bad_are_an_error(folder):
    """If no file can be read, the error names the first one."""
    for after_s in (0, 10):
        folder(after_s, 10)
    for path in folder.path.iterdir():
        make_empty(path)
    message = r"site 1: none of its 2 sound files can be read: .*043000\.000000\.wav: empty file"
    with pytest.raises(InputError, match=message):
        open_folder(folder)


@pytest.mark.parametrize("n_odd", [1, 2, 3])
def test_the_rate_that_most_files_have_wins(folder, n_odd):
    """The majority's sample rate wins, or the first file's in a tie."""
    for k in range(n_odd):
        folder(100 * k, 100, fs=50)
    for k in range(2):
        folder(1000 + 100 * k, 100)
    source = open_folder(folder)
    assert (source.fs, source.left_out.n_files) == ((FS, n_odd) if n_odd == 1 else (50, 2))


def test_names_are_bounded(folder, caplog):
    """An error names the first of many bad files, each in one printable line, and counts all.

    The log lists the others at level info.
    """
    caplog.set_level("INFO")
    folder(0, 1000)
    n_bad = NAMED_MAX + 5
    for k in range(n_bad):
        make_empty(folder.path / f"20260501_05{k:04d}\x1b[2J\n.wav")
    reported = []
    source = open_folder(folder)
    assert (source.left_out.n_files, source.left_out.n_unnamed) == (n_bad, 5)
    assert len(source.left_out.lines) == NAMED_MAX
    assert all(line.isprintable() for line in source.left_out.lines)
    logged = [line for line in caplog.messages if line.endswith("wav: empty file: left out")]
    assert len({*logged, *source.left_out.lines}) == len(logged) + NAMED_MAX == n_bad
    source.left_out.report_to(reported.append)
    source.left_out.add(folder.path / "x", "x: y")
    assert (source.left_out.n_files, reported) == (n_bad + 1, [*source.left_out.lines])


# ---- nested folders


def test_folders_within_are_searched_if_asked_for(folder, collect, caplog):
    """With the option, nested folders are searched without links, and files are ordered by time.

    Without the option, a warning mentions the nested folders.
    """
    (folder.path / "night").mkdir()
    (folder.path / ".hidden").mkdir()
    names = ("{}", "night/{}", "{}", ".hidden/{}")
    expected = [folder(10 * k, 1000, name=name) for k, name in enumerate(names)]
    (folder.path / "night" / "up").symlink_to("..")
    source = open_folder(folder, recursive=True)
    ((_, samples, *_),) = collect(source)
    np.testing.assert_array_equal(samples, np.concatenate(expected[:3], axis=1))
    assert "night/up: a link to a folder: it is not followed" in caplog.text
    assert source.left_out.n_files == 0
    assert [index for index, *_ in collect(open_folder(folder))] == [0, 2000]
    assert "folders in it that are not searched: 1 (--recursive searches them)" in caplog.text


def test_only_folders_within(folder):
    """The error for a folder that has only folders names the option to read them."""
    (folder.path / "night").mkdir()
    folder(0, 10, name="night/{}")
    message = "site 1: a folder without sound files; --recursive searches the folders in it"
    with pytest.raises(InputError, match=message):
        open_folder(folder)
    assert open_folder(folder, recursive=True).n_samples == 10


def test_folders_beyond_the_depth_limit_are_reported(folder):
    """Folders beyond the depth limit are skipped and named, or are an error."""
    folder(0, 10)
    for depth in (source_listing.DEPTH_MAX, source_listing.DEPTH_MAX + 1):
        deep = folder.path.joinpath(*"x" * depth)
        deep.mkdir(parents=True, exist_ok=True)
        folder(100 * depth, 10, name="/".join("x" * depth) + "/{}")
    source = open_folder(folder, recursive=True)
    assert source.n_samples == 100 * source_listing.DEPTH_MAX * FS + 10
    assert source.left_out.lines[0].endswith(": lies more than 16 folders deep: left out")
    with pytest.raises(InputError, match=r"x: lies more than 16 folders deep \(without --strict"):
        open_folder(folder, recursive=True, strict=True)


def test_a_folder_that_cannot_be_searched(folder, monkeypatch):
    """An unreadable nested folder is skipped and named, or is an error; the top one is an error."""
    folder(0, 10)
    (folder.path / "night").mkdir()
    scandir = os.scandir

    def refused(path):
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    name = "night"
    source = open_folder(folder, recursive=True)
    assert (source.n_samples, source.left_out.n_files) == (10, 1)
    assert source.left_out.lines[0].endswith("site 1/night: Permission denied: left out")
    with pytest.raises(InputError, match=r"night: Permission denied \(without --strict"):
        open_folder(folder, recursive=True, strict=True)
    name = "site 1"
    with pytest.raises(InputError, match=r"site 1: Permission denied$"):
        open_folder(folder, recursive=True)


@pytest.mark.parametrize(("bound", "what"), [("FILES_MAX", "sound files"), ("FOLDERS_MAX", "fold")])
def test_a_folder_of_too_much_is_one_error(folder, monkeypatch, bound, what):
    """Files and folders are counted against the limit before any is opened."""
    monkeypatch.setattr(source_listing, bound, 3)
    for k in range(4):
        (folder.path / f"d{k}").mkdir()
        make_empty(folder.path / f"{k}.wav")
    with pytest.raises(InputError, match=f"site 1: has more than 3 {what}"):
        open_folder(folder, recursive=True)


# ---- defects found while reading


def test_damage_that_only_decoding_finds(folder, collect):
    """A file whose samples are damaged is read up to the damage, and the rest is a gap."""
    x = np.random.default_rng(1).uniform(-1, 1, 20_000)
    first, last = folder(0, 1000), folder(300, 10)
    path = folder.path / "20260501_043010.flac"
    soundfile.write(path, x, FS)
    data = bytearray(path.read_bytes())
    data[-20_000:] = bytes(20_000)
    path.write_bytes(data)
    source = open_folder(folder)
    (begin, samples, *_), (index, after, *_) = collect(source)
    n_found = samples.shape[1] - 1000
    assert (begin, index) == (0, 30_000)
    assert 4096 <= n_found < 20_000
    np.testing.assert_array_equal(samples[:, :1000], first)
    np.testing.assert_allclose(samples[0, 1000:], x[:n_found], atol=2**-14)
    np.testing.assert_array_equal(after, last)
    assert source.left_out.n_files == 1
    assert source.left_out.lines[0].endswith("read up to there")


@pytest.mark.parametrize("damaged", [[0], [50, 51], [999], [0, 2, 4, 999], range(1000)])
def test_samples_that_are_not_finite_are_gaps(folder, collect, damaged):
    """Samples that no recorder makes are gaps or, in strict mode, an error that names the file."""
    first, _, last = (folder(after_s, 1000, channels=2) for after_s in (0, 10, 20))
    expected = np.concatenate([first, np.full((2, 1000), 0.25, np.float32), last], axis=1)
    for number, at in enumerate(damaged):
        expected[number % 2, 1000 + at] = (np.nan, np.inf, 1e25, -2e12)[number % 4]
    path = folder.path / "20260501_043010.000000.wav"
    soundfile.write(path, expected[:, 1000:2000].T, FS, "FLOAT")
    source = open_folder(folder)
    found = np.full_like(expected, np.nan)
    for index, samples, *_ in collect(source):
        found[:, index : index + samples.shape[1]] = samples
    np.testing.assert_array_equal(
        found, np.where((np.abs(expected) < 1e12).all(axis=0), expected, np.nan)
    )
    message = f"043010.000000.wav: {len(damaged)} of its samples are beyond 1e+12, or not finite"
    assert source.left_out.lines[0].endswith(f"{message}: these are left out")
    whole = re.escape(f"{message} (without --strict, what can be read is read)")
    with pytest.raises(InputError, match=f"{whole}$"):
        collect(open_folder(folder, strict=True))


def test_strictly_damage_ends_the_stream(folder, collect):
    """In strict mode, damaged samples end the stream with an error that names the file."""
    folder(0, 1000)
    path = folder.path / "20260501_043010.flac"
    soundfile.write(path, np.random.default_rng(1).uniform(-1, 1, 20_000), FS)
    data = bytearray(path.read_bytes())
    data[-20_000:] = bytes(20_000)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"043010\.flac: (damaged|truncated)"):
        collect(open_folder(folder, strict=True))


@pytest.mark.parametrize("strict", [False, True])
def test_a_file_that_changes_meanwhile(folder, collect, strict):
    """A file that changes after the scan of the folder is a gap or an error."""
    for after_s in (0, 10, 20):
        folder(after_s, 1000)
    source = open_folder(folder, strict=strict)
    folder(10, 999)
    message = r"043010\.000000\.wav: has changed since the folder was read"
    if strict:
        with pytest.raises(InputError, match=message):
            collect(source)
        return
    assert [index for index, *_ in collect(source)] == [0, 2000]
    assert re.search(message, source.left_out.lines[0])


@pytest.mark.parametrize("loop", [False, True])
def test_files_that_are_gone_do_not_hang_it(folder, collect, loop):
    """If no file can be read any more, the source ends with an error, also in a loop."""
    folder(0, 1000)
    source = open_folder(folder, loop=loop)
    next(folder.path.iterdir()).unlink()
    message = r"site 1: none of its files can be read any more: .*wav: No such file or directory"
    with pytest.raises(InputError, match=message):
        collect(source)


def test_a_loop_continues_without_a_missing_file(folder, collect):
    """In a loop a missing file is reported once, and the rest is played."""
    first, _, last = (folder(after_s, 1000) for after_s in (0, 10, 20))
    source = open_folder(folder, loop=True)
    reported = []
    source.left_out.report_to(reported.append)
    (folder.path / "20260501_043010.000000.wav").unlink()
    stretches = collect(source, n_samples=5000)
    assert [index for index, *_ in stretches] == [0, 2000, 5000]
    np.testing.assert_array_equal(stretches[1][1], np.concatenate([last, first], axis=1))
    assert len(reported) == source.left_out.n_files == 1
    assert reported[0].endswith("043010.000000.wav: No such file or directory: left out")


@pytest.mark.parametrize("begin", [0, 500, 970, 1500, 2000, 2777])
def test_parts_of_a_folder_with_a_truncated_file(folder, collect, begin):
    """The start of a part counts by time, even if samples before it are missing."""
    first, last = folder(0, 1000), folder(20, 1000)
    cut(folder.path / "20260501_043000.000000.wav")
    source = open_folder(folder)
    source.start_at(begin)
    stretches = collect(source)
    if begin < 950:
        np.testing.assert_array_equal(stretches.pop(0)[1], first[:, begin:950])
    ((index, samples, *_),) = stretches
    assert index == max(begin, 2000)
    np.testing.assert_array_equal(samples, last[:, index - 2000 :])


@pytest.mark.parametrize("name", ["", "CONFIG.TXT"])
def test_a_folder_without_sound(folder, name):
    """A folder without sound files is an error."""
    if name:
        (folder.path / name).touch()
    with pytest.raises(InputError, match="site 1: a folder without sound files"):
        open_folder(folder)


def test_a_folder_keeps_its_own_format(folder):
    """A folder, like a file, refuses a sample rate other than its own."""
    folder(0, 100)
    with pytest.raises(ConfigError, match=r"source\.samplerate=5: .*site 1 has 100, and a file's"):
        open_folder(folder, samplerate=5)


def test_a_folder_in_a_loop(folder, collect):
    """A folder in a loop restarts right after its end, with its gaps."""
    first, second = folder(0, 500), folder(10, 301)
    source = open_folder(folder, loop=True)
    assert (source.n_samples, source.start_utc_ns) == (None, None)
    stretches = collect(source, n_samples=2 * 801)
    assert [index for index, *_ in stretches] == [0, 1000, 1301 + 1000]
    np.testing.assert_array_equal(stretches[0][1], first)
    np.testing.assert_array_equal(stretches[1][1], np.concatenate([second, first], axis=1))


@pytest.mark.slow
def test_at_real_time_pace_gaps_are_not_waited_for(folder, collect):
    """At real-time pace, samples keep their pace and a gap of an hour takes no time."""
    folder(0, 30)
    folder(3600, 30)
    source = open_source(SourceConfig(uri=str(folder.path)), "realtime")
    start_s = time.monotonic()
    assert [index for index, *_ in collect(source)] == [0, 360_000]
    assert 0.6 <= time.monotonic() - start_s < 10.0


def test_channels_of_a_folder_can_be_selected(folder, collect):
    """A channel selection applies to every file."""
    parts = [folder(after_s, 100, channels=3) for after_s in (0, 1)]
    ((_, samples, *_),) = collect(open_folder(folder, select=(2, 0)))
    np.testing.assert_array_equal(samples, np.concatenate(parts, axis=1)[[2, 0]])


# ---- samples as they are in the files


def put_noise(folder, second, subtype="PCM_16", channels=1, n=1001, suffix="wav"):
    """Write a file, and return its samples as libsndfile reads them."""
    path = folder.path / f"20260501_0430{second:02}.{suffix}"
    x = np.random.default_rng(second).uniform(-1.0, 1.0, (n, channels))
    soundfile.write(path, x, FS, subtype=subtype)
    return soundfile.read(path, dtype="float32", always_2d=True)[0].T


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize(
    ("subtype", "sample_format"),
    [("PCM_16", "int16"), ("PCM_24", "int24"), ("PCM_32", "int32"), ("FLOAT", "float32")],
)
def test_plain_files_are_not_converted(folder, collect, subtype, sample_format, channels):
    """Plain WAV files of one format come as they are; their values are those of libsndfile."""
    expected = [put_noise(folder, second, subtype, channels) for second in (0, 10)]
    source = open_folder(folder)
    assert (source.layout.sample_format, source.layout.interleaved) == (sample_format, channels > 1)
    ((index, samples, *_),) = collect(source)
    assert index == 0
    np.testing.assert_array_equal(samples, np.concatenate(expected, axis=1))


@pytest.mark.parametrize(
    ("subtype", "suffix"), [("PCM_24", "wav"), ("PCM_16", "flac"), ("PCM_16", "aiff")]
)
def test_files_of_several_formats_are_decoded(folder, collect, subtype, suffix):
    """One file of another format, and all are float32."""
    expected = [put_noise(folder, 0), put_noise(folder, 10, subtype, suffix=suffix)]
    source = open_folder(folder)
    assert source.layout.sample_format == "float32"
    ((_, samples, *_),) = collect(source)
    np.testing.assert_array_equal(samples, np.concatenate(expected, axis=1))


@pytest.mark.parametrize("settings", [{"loop": True}, {}])
def test_files_that_are_played_are_decoded(folder, settings):
    """In real time or in a loop the samples are decoded; in a loop a thread fills a ring."""
    put_noise(folder, 0, channels=2)
    uri = str(folder.path)
    source = open_source(SourceConfig(uri=uri, **settings), "full" if settings else "realtime")
    assert (source.layout.sample_format, source.layout.interleaved) == ("float32", False)
    reader = source.open_reader()
    assert isinstance(reader, SampleRing if settings else PacedReader)
    reader.release()


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_selected_channels_and_pieces_are_those_of_the_files(folder, suffix):
    """Blocks of any length, after skipped samples, with selected channels, at exact times."""
    expected = np.concatenate(
        [put_noise(folder, second, channels=3, suffix=suffix) for second in (0, 20)], axis=1
    )
    source = open_folder(folder, select=(2, 0))
    source.start_at(500)
    assert not source.layout.interleaved
    reader = source.open_reader()
    source.start(reader)
    found = []
    while block := reader.read(301):
        assert (block.t_utc_ns - START_NS) * FS == block.sample_index * 10**9
        found.append((block.sample_index, block.n_samples, block.lost_samples))
        place = block.sample_index - (999 if block.sample_index >= 2000 else 0)
        scale = np.float32(2.0**-15 if block.samples.dtype == np.int16 else 1.0)
        there = expected[[2, 0], place : place + block.n_samples]
        np.testing.assert_array_equal(block.samples * scale, there)
    assert found == [
        (500, 301, 0),
        (801, 200, 0),
        (2000, 301, 999),
        (2301, 301, 0),
        (2602, 301, 0),
        (2903, 98, 0),
    ]
    assert reader.exhausted
    source.stop()
    reader.release()


def test_a_closed_reader_ends(folder):
    """After ``close`` nothing more is read, and the file is closed."""
    put_noise(folder, 0)
    source = open_folder(folder)
    reader = source.open_reader()
    source.start(reader)
    assert reader.read(10).n_samples == 10
    reader.close()
    assert reader.exhausted
    assert reader.read(10) is None
    assert reader.taken == 10
    source.stop()
    reader.release()
    assert source.failure is None


def test_a_file_that_became_shorter_is_a_gap(folder, collect):
    """A plain file that is cut after its header was read is left out; the others are read."""
    put_noise(folder, 0)
    expected = put_noise(folder, 20)
    source = open_folder(folder)
    os.truncate(folder.path / "20260501_043000.wav", 1000)
    ((index, samples, *_),) = collect(source)
    assert index == 2000
    np.testing.assert_array_equal(samples, expected)
    assert re.search(
        r"043000\.wav: has changed since its header was read: left out", source.left_out.lines[0]
    )
