"""A folder as one stream: every sample in its place, every gap as long as the files' times say."""

import datetime as dt
import re
import threading
import time

import numpy as np
import pytest
import soundfile

from spectrod.config import SourceConfig
from spectrod.errors import ConfigError, InputError
from spectrod.ring import SampleRing
from spectrod.source import open_source
from spectrod.source.folder import DRIFT_MAX, TOLERANCE_S

FS = 100
START = dt.datetime(2026, 5, 1, 4, 30, tzinfo=dt.UTC)
START_NS = 1777609800 * 10**9


@pytest.fixture
def folder(tmp_path):
    """A folder, and a function that puts noise into it that began so many seconds after START."""
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


def test_gaps_are_as_long_as_the_times_say(folder, collect):
    """Each file's samples are at the index that its time says, and UTC is true throughout."""
    wanted = [folder(after_s, n) for after_s, n in ((0, 1001), (60, 500), (64.5, 1), (3600, 777))]
    source = open_folder(folder)
    assert (source.fs, source.channels, source.n_samples) == (FS, 1, 360_777)
    assert (source.name, source.start_utc_ns) == ("site-1", START_NS)
    stretches = collect(source)
    assert [index for index, *_ in stretches] == [0, 6000, 360_000]
    np.testing.assert_array_equal(stretches[0][1], wanted[0])
    # The third file begins half a second before the second's end: its name, or its clock.
    np.testing.assert_array_equal(stretches[1][1], np.concatenate(wanted[1:3], axis=1))
    np.testing.assert_array_equal(stretches[2][1], wanted[3])
    for index, _, _, utc_ns in stretches:
        assert utc_ns == START_NS + index * 10**9 // FS


def test_what_stands_before_a_gap_waits_for_a_slow_reader(folder):
    """A gap longer than the ring pushes nothing out of it, though indices jump."""
    folder(0, 3000)
    folder(3600, 3000)
    source = open_folder(folder)
    ring = SampleRing(source.fs, 1, 4096)
    source.start(ring)
    assert not threading.Event().wait(0.2)  # for all that it could write meanwhile
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
    """Names give whole seconds: differences below the tolerance join, from it on they are gaps."""
    folder(0, 1000)
    folder(10 + late_s, 100)
    assert TOLERANCE_S == 2.0
    assert open_folder(folder).n_samples == begin + 100


@pytest.mark.parametrize("late_s", [-2.0, -9.0, -10.0])
def test_overlaps_are_refused(folder, late_s):
    """Two recorders in one folder are not one stream; the file is named."""
    folder(0, 1000)
    folder(10 + late_s, 100, name="b_{}")
    message = rf"site 1/b_2026.*\.wav: begins {-late_s:.1f} s before 2026.* ends: .* not overlap"
    with pytest.raises(InputError, match=message):
        open_folder(folder)


@pytest.mark.parametrize("sign", [1, -1])
def test_drift_is_no_gap(folder, sign):
    """A recorder whose rate is a little off leaves no gaps in days; its files just follow."""
    fs, n = 8, 8000
    for k in range(60):
        folder(k * 1000 * (1 + sign * DRIFT_MAX / 2), n, fs=fs)
    assert open_folder(folder).n_samples == 60 * n


def test_small_pauses_add_up(folder, collect):
    """Pauses below the tolerance, one after each file, are not lost: together they are gaps."""
    for k in range(12):
        folder(10.5 * k, 1000)
    begins = [index for index, *_ in collect(open_folder(folder))]
    # Five pauses are the first to exceed the tolerance and what drift may be; then anew.
    assert begins == [0, 5250, 10500]


def test_small_overlaps_add_up(folder):
    """Overlaps below the tolerance, one after each file, are found out too."""
    for k in range(12):
        folder(9.5 * k, 1000)
    with pytest.raises(InputError, match=r"043047\.500000\.wav: begins 2\.5 s before .* ends"):
        open_folder(folder)


def test_after_drift_a_gap_is_still_a_gap(folder, collect):
    """Where samples have run ahead of the times by more than a gap, it is marked all the same."""
    fs, n = 8, 8000
    late = 1 - DRIFT_MAX * 0.9
    for k in range(20):
        folder(k * 1000 * late, n, fs=fs)
    folder(20_000 * late + 2.5, n, fs=fs)
    assert [index for index, *_ in collect(open_folder(folder))] == [0, 20 * n + 1]


def test_files_are_in_the_order_of_their_times(folder, collect):
    """What the names begin with does not matter where they say times."""
    second, first = folder(5, 500, name="a_{}"), folder(0, 500, name="b_{}")
    ((_, samples, *_),) = collect(open_folder(folder))
    np.testing.assert_array_equal(samples, np.concatenate([first, second], axis=1))


def test_files_without_times_are_joined_by_name(folder, collect, caplog):
    """Where no file says its time, names give the order, there are no gaps, and a log line."""
    parts = [folder(0, n, name=name) for name, n in (("a", 33), ("b", 1), ("c", 1000))]
    source = open_folder(folder)
    assert source.start_utc_ns is None
    ((index, samples, *_),) = collect(source)
    assert index == 0
    np.testing.assert_array_equal(samples, np.concatenate(parts, axis=1))
    assert "site 1: no file says when it begins: joined by name, without gaps" in caplog.text


def test_other_files_are_left_alone(folder):
    """Notes, hidden files and folders are no part of the stream."""
    folder(0, 100)
    (folder.path / "CONFIG.TXT").write_text("x")
    (folder.path / "._20260501_043100.wav").write_text("x")
    (folder.path / "sub.wav.d").mkdir()
    assert open_folder(folder).n_samples == 100


def make_empty(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (make_empty, "empty file"),
        (cut, "truncated: 2000 bytes announced, 1900 found"),
        (lambda path: path.write_text("noise"), "not a sound file"),
        (lambda path: (path.unlink(), path.mkdir()), "not a regular file"),
        (lambda path: soundfile.write(path, np.zeros(9), 44100), "44100 Hz x 1, but 20260501_0430"),
        (
            lambda path: soundfile.write(path, np.zeros((9, 2)), FS),
            "100 Hz x 2, but 20260501_043000.000000.wav has 100 Hz x 1: the files of a folder must",
        ),
        (lambda path: path.rename(path.with_name("x.wav")), "does not say when it begins, but oth"),
    ],
)
def test_a_bad_file_in_the_middle(folder, spoil, message):
    """Whatever is wrong with one file of many, it is named at the start and nothing is skipped."""
    for after_s in (0, 10, 20):
        folder(after_s, 1000)
    path = folder.path / "20260501_043010.000000.wav"
    spoil(path)
    name = path.name if path.exists() else "x.wav"
    with pytest.raises(InputError, match=rf"site 1/{re.escape(name)}: {re.escape(message)}"):
        open_folder(folder)


def test_damage_that_only_decoding_finds(folder, collect):
    """A file whose samples turn out to be damaged ends the stream with its name."""
    folder(0, 1000)
    path = folder.path / "20260501_043010.flac"
    soundfile.write(path, np.random.default_rng(1).uniform(-1, 1, 20_000), FS)
    data = bytearray(path.read_bytes())
    data[-20_000:] = bytes(20_000)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"043010\.flac: (damaged|truncated)"):
        collect(open_folder(folder))


def test_a_file_that_changes_meanwhile(folder, collect):
    """A file that is not what it was when the folder was read is an error that names it."""
    folder(0, 1000)
    folder(10, 1000)
    source = open_folder(folder)
    folder(10, 999)
    with pytest.raises(InputError, match=r"043010\.000000\.wav: has changed since the folder"):
        collect(source)


@pytest.mark.parametrize("name", ["", "CONFIG.TXT"])
def test_a_folder_without_sound(folder, name):
    """A folder that holds no sound file is no source."""
    if name:
        (folder.path / name).touch()
    with pytest.raises(InputError, match="site 1: a folder without sound files"):
        open_folder(folder)


def test_a_folder_keeps_its_own_format(folder):
    """As of a file, another rate than its own is refused."""
    folder(0, 100)
    with pytest.raises(ConfigError, match=r"source\.samplerate=5: .*site 1 has 100, and a file's"):
        open_folder(folder, samplerate=5)


def test_a_folder_in_a_loop(folder, collect):
    """Looped, the folder begins again right after its end, gaps and all."""
    first, second = folder(0, 500), folder(10, 301)
    source = open_folder(folder, loop=True)
    assert (source.n_samples, source.start_utc_ns) == (None, None)
    stretches = collect(source, n_samples=2 * 801)
    assert [index for index, *_ in stretches] == [0, 1000, 1301 + 1000]
    np.testing.assert_array_equal(stretches[0][1], first)
    np.testing.assert_array_equal(stretches[1][1], np.concatenate([second, first], axis=1))


@pytest.mark.slow
def test_at_real_time_pace_gaps_are_not_waited_for(folder, collect):
    """Samples come at their pace; an hour between two files takes no time."""
    folder(0, 30)
    folder(3600, 30)
    source = open_source(SourceConfig(uri=str(folder.path)), "realtime")
    start_s = time.monotonic()
    assert [index for index, *_ in collect(source)] == [0, 360_000]
    assert 0.6 <= time.monotonic() - start_s < 10.0


def test_channels_of_a_folder_can_be_selected(folder, collect):
    """A selection holds for every file."""
    parts = [folder(after_s, 100, channels=3) for after_s in (0, 1)]
    ((_, samples, *_),) = collect(open_folder(folder, select=(2, 0)))
    np.testing.assert_array_equal(samples, np.concatenate(parts, axis=1)[[2, 0]])
