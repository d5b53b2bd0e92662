"""``spectrod record`` of every kind of source into every kind of file, in whole runs."""

import itertools
import json
import signal
import time
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import soundfile
import zarr
from publishing import SPEC, TIMEOUT_S, make_batch

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.cli import main
from spectrod.client import subscribe
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.conditions import Condition
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.picture.pixelmap import read_levels, read_pixel_map
from spectrod.formats.picture.sink import PictureSink
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import ConfigError, StorageError, UnavailableError
from spectrod.recording.inputs import open_recording
from spectrod.recording.remote import DaemonReader
from spectrod.source.condition_track import ConditionTrack
from spectrod.source.signal import SignalSource

FS = 8000
SMALL = ["--engine", "numpy", "--levels=-100,0", "--width", "300", "--height", "64"]
DATA = ["--win-length", "256", "--hop", "128"]
START = ["--start-time", "2026-05-01T04:30:00Z"]
NAME = "left_out_samples"
START_NS = 1_777_609_800 * 10**9


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(name, seconds=4.0, frequency_hz=1000, channels=1, fs=FS):
    n = np.arange(round(seconds * fs))
    tone = 0.1 * np.sin(2 * np.pi * frequency_hz * n / fs)
    soundfile.write(name, np.tile(tone, (channels, 1)).T, fs, "PCM_16")


def rows_of(path):
    reader = open_recording(path)
    batches = list(reader.batches())
    reader.close()
    return reader.description, batches


def names(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize("expected_s", [60.0, 0.0])
def test_ctrl_c_while_a_file_is_analysed_finishes_its_outputs(expected_s, tmp_path, monkeypatch):
    """An interrupt ends the recording of a file, short or long, with whole files and code 130."""
    write("x.wav", seconds=1.0)
    monkeypatch.setattr("spectrod.cli.record_samples.numpy_duration_s", lambda *_: expected_s)
    write_batch = PictureSink.write

    def interrupted(sink, batch):
        signal.raise_signal(signal.SIGINT)
        write_batch(sink, batch)

    monkeypatch.setattr(PictureSink, "write", interrupted)
    assert main(["record", "x.wav", "-o", "a.png", *SMALL, *DATA]) == 130
    assert names(tmp_path) == ["a.png", "x.wav"]
    assert read_pixel_map("a.png").plots


@pytest.mark.parametrize("how", ["flag", "configuration"])
def test_channels_have_their_names_in_pictures_and_in_data(tmp_path, how):
    """Channel names are those of --channel-names or else of the configuration."""
    write("x.wav", channels=2)
    (tmp_path / "c.toml").write_text('[source]\nchannel_names = ["left", "right"]\n')
    given = {"flag": ["--channel-names", "left,right"], "configuration": ["--config", "c.toml"]}
    outputs = ["-o", "a.png", "-o", "a.npz"]
    assert main(["record", "x.wav", *outputs, *SMALL, *DATA, *given[how]]) == 0
    assert rows_of(tmp_path / "a.npz")[0].signals == ("left", "right")
    assert read_pixel_map(tmp_path / "a.png").options["signals"] == ["left", "right"]


@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_pictures_data_and_sound_at_once(tmp_path, engine):
    """One run writes pictures, data with their own analysis, and unchanged sound."""
    write("x.wav", channels=2)
    outputs = ["-o", "a.png", "-o", "a.npz", "-o", "a.spd", "-o", "a.flac"]
    assert main(["record", "x.wav", *outputs, *SMALL, *DATA, "--engine", engine]) == 0
    assert names(tmp_path) == ["a.flac", "a.npz", "a.png", "a.spd", "x.wav"]
    levels = read_levels("a.png", 1)
    tone_row = int(np.argmin(np.abs(levels.f - 1000.0)))
    np.testing.assert_allclose(levels.level[tone_row, 5:-5], -20.0, atol=0.5)
    for name in ("a.npz", "a.spd"):
        about, batches = rows_of(tmp_path / name)
        assert (about.spec.win_length, about.spec.hop, about.spec.scaling) == (256, 128, "dbfs")
        assert sum(batch.n_frames for batch in batches) == (4 * FS - 256) // 128 + 1
    np.testing.assert_array_equal(soundfile.read("a.flac")[0], soundfile.read("x.wav")[0])


def test_data_of_bands_have_a_broadband_level_and_names(tmp_path, capsys):
    """Data of bands have a broadband level and names in each format; missing bands are named."""
    write("x.wav")
    bands = ["--bands", "octave", "--averaging", "mean", "--rate-hz", "1", "--engine", "numpy"]
    outputs = ["-o", "a.csv", "-o", "a.npz", "-o", "a.spd"]
    assert main(["record", "x.wav", *outputs, *DATA, *bands]) == 0
    warning = (
        "bands='octave': left out, as narrower than a bin of 31.25 Hz: 31.5 Hz; win_length=360"
    )
    assert warning in capsys.readouterr().err
    assert main(["convert", "a.spd", "b.csv"]) == 0
    for name in ("a.csv", "a.npz", "a.spd", "b.csv"):
        about, batches = rows_of(tmp_path / name)
        assert about.spec.broadband
        broadband = np.concatenate([batch.broadband for batch in batches])
        np.testing.assert_allclose(broadband, np.full((4, 1), -20.0), atol=0.01)
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert '# unresolved_bands: "31.5 Hz"' in lines
    header = next(line for line in lines if not line.startswith("#")).split(",")
    assert header[-6:] == [
        f"channel 0:{name}"
        for name in ("125 Hz", "250 Hz", "500 Hz", "1 kHz", "2 kHz", "broadband")
    ]


def test_sound_alone(tmp_path):
    """Sound can be the only output, and a part of it is cut at the exact sample."""
    write("x.wav")
    assert main(["record", "x.wav", "-o", "y.wav", "--duration", "1.5", *SMALL]) == 0
    expected = soundfile.read("x.wav")[0][: round(1.5 * FS)]
    np.testing.assert_array_equal(soundfile.read("y.wav")[0], expected)
    assert names(tmp_path) == ["x.wav", "y.wav"]


def test_a_stored_recording_becomes_the_same_picture():
    """A stored recording's picture has the levels of the samples' picture."""
    write("x.wav")
    whole = ["--hop", "128", "--win-length", "256", "--nfft", "256", *SMALL]
    assert (
        main(["record", "x.wav", "-o", "a.png", "-o", "a.spd", "--scaling", "spectrum", *whole])
        == 0
    )
    assert main(["record", "a.spd", "-o", "b.png", "-o", "b.npz", *SMALL[2:]]) == 0
    a, b = read_levels("a.png"), read_levels("b.png")
    np.testing.assert_allclose(a.level, b.level, atol=0.5)
    assert a.pixels.duration_s == b.pixels.duration_s


@pytest.mark.parametrize(("start", "first"), [("T04:30:01", 1), ("2026-05-01T04:30:02Z", 2)])
def test_a_start_within_a_file(start, first):
    """With --start, earlier samples are left out and times are those of the rest."""
    write("x.wav")
    arguments = [*START, "--start", start, "--duration", "1s", "--time-axis", "utc"]
    assert main(["record", "x.wav", "-o", "a.png", "-o", "a.wav", *arguments, *SMALL]) == 0
    pixels = read_levels("a.png").pixels
    assert pixels.begin_utc_ns == START_NS + first * 10**9
    assert pixels.duration_s == pytest.approx(1.0, abs=0.05)
    expected = soundfile.read("x.wav")[0][first * FS : (first + 1) * FS]
    np.testing.assert_array_equal(soundfile.read("a.wav")[0], expected)


def test_a_file_for_each_period(tmp_path):
    """Files start at whole periods of UTC, are contiguous, and are named by their start."""
    write("x.wav", seconds=5.0)
    start = ["--start-time", "2026-05-01T04:30:01Z"]
    every = ["--every", "2s", "--name", "%Y%jT%H%M%S.wav", "-o", "."]
    assert main(["record", "x.wav", *start, *every, *SMALL]) == 0
    begins = ("043000", "043002", "043004")
    assert names(tmp_path) == [*(f"2026121T{begin}.wav" for begin in begins), "x.wav"]
    parts = [soundfile.read(name)[0] for name in names(tmp_path)[:3]]
    assert [len(part) for part in parts] == [FS, 2 * FS, 2 * FS]
    np.testing.assert_array_equal(np.concatenate(parts), soundfile.read("x.wav")[0])


def test_segments_of_periods_follow_on_each_other(tmp_path):
    """Segments of periods are read back as one recording without a gap."""
    write("x.wav", seconds=5.0)
    (tmp_path / "site").mkdir()
    every = ["--every", "2s", "-o", "site/%Y%jT%H%M%S.spd"]
    assert main(["record", "x.wav", *START, *every, *DATA, *SMALL]) == 0
    assert main(["record", "x.wav", *START, "-o", "one.spd", *DATA, *SMALL]) == 0
    assert len(list((tmp_path / "site").iterdir())) == 3
    _, parts = rows_of(tmp_path / "site")
    _, whole = rows_of(tmp_path / "one.spd")
    assert not any(batch.discontinuity or batch.gap_samples for batch in parts)
    for name in ("values", "sample_index", "t_utc_ns"):
        both = [np.concatenate([getattr(one, name) for one in some]) for some in (parts, whole)]
        np.testing.assert_array_equal(*both)


def test_a_start_behind_the_end_of_a_stored_recording(capsys):
    """A start after the end of a stored recording is the same error as for samples."""
    write("x.wav", seconds=1.0)
    assert main(["record", "x.wav", *START, "-o", "x.spd", *DATA, *SMALL]) == 0
    assert main(["record", "x.spd", "--start", "T04:29", "-o", "y.png"]) == 2
    assert "--start T04:29: is not within x.spd" in capsys.readouterr().err


def test_pictures_of_periods_have_every_row(tmp_path):
    """Pictures of periods are contiguous to within a row."""
    write("x.wav", seconds=5.0)
    every = ["--every", "2s", "-o", "%Y%jT%H%M%S.png"]
    assert main(["record", "x.wav", *START, *every, *SMALL]) == 0
    begins = ("043000", "043002", "043004")
    assert names(tmp_path)[:3] == [f"2026121T{begin}.png" for begin in begins]
    pixels = [read_levels(name).pixels for name in names(tmp_path)[:3]]
    for number, one in enumerate(pixels):
        assert one.begin_utc_ns - START_NS == pytest.approx(number * 2e9, abs=0.06e9)


def test_the_picture_counts_every_sample():
    """Rows averaged on the device give the mean of all frames, the shorter last row included."""
    n = np.arange(20 * FS)
    samples = 0.1 * np.sin(2 * np.pi * 1000 * n / FS)
    samples[-FS // 20 :] *= 10.0  # so late that only the last row can have it
    soundfile.write("x.wav", samples, FS, "PCM_16")
    quiet = ["--engine", "numpy", "--levels=-60,0", "--width", "200", "--height", "64"]
    assert (
        main(["record", "x.wav", "-o", "a.png", *quiet, "--win-length", "64", "--hop", "32"]) == 0
    )
    levels = read_levels("a.png")
    row = levels.level[int(np.argmin(np.abs(levels.f - 1000.0)))]
    assert row[10:190] == pytest.approx(-20.0, abs=0.3)
    assert row[-1] > -8.0


@pytest.mark.parametrize("pool", ["mean", "max", "min"])
def test_pooling(pool):
    """A click in silence appears as its maximum, as the mean with silence, or not at all."""
    samples = np.full(20 * FS, 1e-3) * np.sin(2 * np.pi * 1000 * np.arange(20 * FS) / FS)
    samples[::64] = 0.5
    soundfile.write("x.wav", samples, FS, "PCM_16")
    arguments = ["--win-length", "64", "--hop", "32", "--pool", pool]
    assert main(["record", "x.wav", "-o", "a.png", *SMALL, *arguments]) == 0
    # A click is in the middle of every other frame, and at the end of the others; S1 = 32.
    click_dbfs = 10.0 * np.log10(2.0 * (0.5 / 32.0) ** 2 / 0.5)
    expected = {"mean": click_dbfs - 10.0 * np.log10(2.0), "max": click_dbfs, "min": -100.0}[pool]
    level = read_levels("a.png").level[50, 5:-5]
    np.testing.assert_allclose(level, expected, atol=0.6 if pool != "min" else 30.0)


def test_one_output_fails_alone(tmp_path, monkeypatch, capsys):
    """If one output fails, the others are finished, with one line and a storage exit code."""
    write("x.wav")

    def full(*_):
        raise StorageError("a.npz: No space left on device")

    monkeypatch.setattr("spectrod.formats.export.npz.NpzWriter.write", full)
    outputs = ["-o", "a.png", "-o", "a.npz", "-o", "a.wav"]
    assert main(["record", "x.wav", *outputs, *SMALL, *DATA]) == 74
    assert "a.npz: No space left on device" in capsys.readouterr().err
    assert names(tmp_path) == ["a.png", "a.wav", "x.wav"]
    assert read_levels("a.png").pixels.duration_s == pytest.approx(4.0, abs=0.1)


@pytest.fixture
def daemon(publish):
    """Run a pipeline of two channels whose spectra are published; return its endpoint."""
    publisher = publish()
    spec = SpectrumSpec(float(FS), 2, win_length=512, hop=256, scaling="dbfs")
    source = SignalSource("sine,1000,-20", float(FS), 2, "realtime")
    pipeline = Pipeline(source, spec, NumpyEngine())
    pipeline.attach(publisher.sources[0])
    pipeline.start()
    yield publisher.endpoints[0]
    pipeline.stop()


@pytest.mark.slow
def test_a_daemon_is_recorded(tmp_path, daemon):
    """A daemon's messages become rows of all its channels in its own scaling."""
    outputs = ["-o", "a.png", "-o", "a.npz", "-o", "a.spd"]
    assert main(["record", daemon, *outputs, *SMALL[2:], "--duration", "1.5"]) == 0
    assert names(tmp_path) == ["a.npz", "a.png", "a.spd"]
    about, batches = rows_of(tmp_path / "a.npz")
    assert (about.spec.channels, about.spec.scaling, about.spec.hop) == (2, "dbfs", 256)
    index = np.concatenate([batch.sample_index for batch in batches])
    assert len(index) > 10
    assert set(np.diff(index)) == {256}
    levels = read_levels("a.png", 1)
    tone_row = int(np.argmin(np.abs(levels.f - 1000.0)))
    assert np.nanmedian(levels.level[tone_row]) == pytest.approx(-20.0, abs=1.0)


@pytest.mark.slow
def test_a_recorded_daemon_says_which_rows_clip(tmp_path, publish):
    """Conditions come with the messages into segments, and from there into other files."""
    publisher = publish()
    spec = SpectrumSpec(float(FS), 1, win_length=512, hop=256, scaling="dbfs")
    source = SignalSource("sine,1000,6", float(FS), 1, "realtime")
    track = ConditionTrack(1, float(FS))
    pipeline = Pipeline(source, spec, NumpyEngine(), conditions=track)
    pipeline.attach(publisher.sources[0])
    pipeline.start()
    assert main(["record", publisher.endpoints[0], "-o", "a.spd", "--duration", "1.5"]) == 0
    pipeline.stop()
    assert main(["convert", "a.spd", "a.npz"]) == 0
    for name in ("a.spd", "a.npz"):
        _, batches = rows_of(tmp_path / name)
        found = np.concatenate([batch.conditions for batch in batches])
        assert len(found) > 10
        assert set(found.ravel()) == {Condition.CHECKED | Condition.CLIPPING}


def test_lost_messages_of_a_daemon_are_a_gap(publish, wait_for_subscribers):
    """A row without one channel's message is dropped and reported with the daemon's gaps."""
    publisher = publish()
    subscription = subscribe(publisher.endpoints[0], timeout_s=TIMEOUT_S)
    wait_for_subscribers(publisher)
    feed = publisher.sources[0]
    for first in range(8):
        # A row of one channel alone, as where the other message is lost.
        spec = replace(SPEC, channels=1) if first == 4 else SPEC
        batch = make_batch(first=first + 10 * (first > 5), gap_samples=1280 * (first == 6))
        feed.write(batch if first != 4 else replace(batch, spec=spec, values=batch.values[:, :1]))
    reader = DaemonReader(subscription, "spec/")
    assert reader.description.signals == ("0", "1")
    batches = list(itertools.islice(reader.batches(time.monotonic() + TIMEOUT_S), 4))
    index = [int(batch.sample_index[0]) // SPEC.hop for batch in batches]
    assert index == [3, 5, 16, 17]
    gaps = [batch.gap_samples // SPEC.hop for batch in batches]
    assert gaps == [0, 1, 10, 0]
    assert reader.lost_rows == 1
    reader.close()


MILLIDECADES = """
[analysis]
win_length = {fs}
hop = {hop}
bands = "millidecade"
averaging = "mean"
rate_hz = 1
"""


@pytest.mark.parametrize("fs", [32000, 16000, 8000])
def test_millidecades_of_any_sample_rate(tmp_path, fs):
    """Millidecades reach half the file's sample rate, and the picture is not checked for them."""
    write("x.wav", seconds=3.0, fs=fs)
    (tmp_path / "c.toml").write_text(MILLIDECADES.format(fs=fs, hop=fs // 2))
    assert main(["record", "x.wav", "-o", "x.spd", "--config", "c.toml", "--engine", "numpy"]) == 0
    about, batches = rows_of(tmp_path / "x.spd")
    table = about.spec.band_table
    # The next band would reach past half the sample rate.
    assert table.upper[-1] <= fs / 2 < table.upper[-1] * 10 ** (1 / 1000)
    tone = int(np.argmin(np.abs(about.spec.frequencies - 1000)))
    assert int(batches[0].values[0, 0].argmax()) in {tone - 1, tone, tone + 1}


def test_only_requested_outputs_are_checked(tmp_path, capsys):
    """Sound needs no analysis, and bands that need a long window lengthen the picture's."""
    write("x.wav")
    (tmp_path / "c.toml").write_text(MILLIDECADES.format(fs=4096, hop=2048))
    arguments = ["--config", "c.toml", *SMALL]
    assert main(["record", "x.wav", "-o", "y.wav", *arguments]) == 0
    assert main(["record", "x.wav", "-o", "y.spd", *arguments]) == 2
    assert "bins are 1.95312 Hz wide, must be 1 Hz or less" in capsys.readouterr().err
    (tmp_path / "c.toml").write_text(MILLIDECADES.format(fs=FS, hop=FS // 2))
    assert main(["record", "x.wav", "-o", "y.png", *arguments]) == 0
    assert read_pixel_map("y.png").win_length == FS


DATA_SUFFIXES = (".spd", ".nc", ".h5", ".zarr", ".npz", ".npy", ".csv")


def left_out_samples(path):
    """Return the samples that a data file reports as in no row."""
    if path.suffix == ".spd":
        return SegmentReader(path).left_out_samples
    if path.suffix == ".csv":
        return json.loads(path.read_text().splitlines()[-1].removeprefix("# end: "))[NAME]
    if path.suffix == ".npy":
        return json.loads((path.parent / f"{path.name}.json").read_text())[NAME]
    if path.suffix == ".npz":
        return json.loads(str(np.load(path)["attributes"]))[NAME]
    if path.suffix == ".zarr":
        return int(zarr.open_group(path).attrs[NAME])
    with h5py.File(path) as file:
        return int(np.ravel(file.attrs[NAME])[0])


@pytest.mark.slow
def test_the_last_part_of_a_sound_is_in_every_data_file(tmp_path, capsys):
    """A tone in the last, shorter row of a sound is in every data file."""
    n = np.arange(9 * FS + 3 * FS // 4)
    tone = np.where(n >= 9.3 * FS, 0.5 * np.sin(2 * np.pi * 1000 * n / FS), 0.0)
    soundfile.write("end.wav", tone, FS, "PCM_16")
    (tmp_path / "c.toml").write_text(
        '[analysis]\nbands="third-octave"\naveraging="mean"\nrate_hz=1\n'
        f"win_length={FS // 2}\nhop={FS // 4}\n"
    )
    outputs = [tmp_path / f"end{suffix}" for suffix in DATA_SUFFIXES]
    flags = [flag for path in outputs for flag in ("-o", str(path))]
    assert (
        main(["record", "end.wav", *flags, *START, "--engine", "numpy", "--config", "c.toml"]) == 0
    )
    assert "WARNING" not in capsys.readouterr().err
    for path in outputs:
        assert left_out_samples(path) == 0
        if path.suffix == ".npy":
            assert json.loads(Path(f"{path}.json").read_text())["runs"][-1]["cut_frames"] == 2
            assert np.load(path).max(axis=(1, 2)).argmax() == 9
            continue
        about, batches = rows_of(path)
        last = batches[-1]
        assert sum(batch.n_frames for batch in batches) == 10
        assert (last.sample_index.tolist(), last.cut_frames) == ([9 * FS], 2)
        band = int(np.argmin(np.abs(about.spec.frequencies - 1000)))
        assert -12.0 < last.values[0, 0, band] < -6.0
        assert batches[0].values.max() == -200.0


def test_samples_that_fill_no_window_are_reported(tmp_path, capsys):
    """Samples at the end that fill no window are reported in one line for data, not pictures."""
    soundfile.write("x.wav", np.zeros(4096 + 100), FS, "PCM_16")
    arguments = [*START, "--engine", "numpy", "--win-length", "256", "--hop", "128"]
    assert main(["record", "x.wav", "-o", "a.spd", *arguments]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "WARNING" in line]
    assert len(warnings) == 1
    assert warnings[0].endswith(
        "x: 100 samples (0.0125 s) at the end are in no spectrum: they do not fill a window of 256 "
        "(--win-length)"
    )
    assert main(["convert", "a.spd", "a.csv"]) == 0
    assert left_out_samples(tmp_path / "a.csv") == 100
    assert main(["record", "x.wav", "-o", "a.png", *arguments, *SMALL]) == 0
    assert "WARNING" not in capsys.readouterr().err


def test_a_shorter_row_of_a_daemon_is_one_in_the_recording(publish, wait_for_subscribers):
    """A shorter row of a daemon keeps its number of frames, and the gap its length."""
    spec = replace(SPEC, averaging="mean", averaging_frames=4)
    publisher = publish()
    subscription = subscribe(publisher.endpoints[0], timeout_s=TIMEOUT_S)
    wait_for_subscribers(publisher)
    whole = make_batch(4, spec=spec)
    whole = replace(whole, sample_index=whole.sample_index * 4)
    cut = replace(make_batch(first=16, spec=spec), cut_frames=2)
    after = make_batch(first=24, spec=spec, gap_samples=768)
    for batch in (whole, cut, after):
        publisher.sources[0].write(batch)
    reader = DaemonReader(subscription, "spec/")
    batches = list(itertools.islice(reader.batches(time.monotonic() + TIMEOUT_S), 3))
    found = [(b.sample_index.tolist(), b.cut_frames, b.gap_samples) for b in batches]
    assert found == [([12 * 128], 0, 0), ([16 * 128], 2, 0), ([24 * 128], 0, 768)]
    reader.close()


def test_several_products_must_be_named(publish, wait_for_subscribers):
    """With several products one must be named, as a recording holds one kind of spectrum."""
    publisher = publish(names=("mic", "reef"))
    subscription = subscribe(publisher.endpoints[0], timeout_s=TIMEOUT_S)
    wait_for_subscribers(publisher)
    for feed in publisher.sources:
        feed.write(make_batch())
    with pytest.raises(ConfigError, match=r"spec/: has mic/dbfs and reef/dbfs; name one with"):
        DaemonReader(subscription, "spec/")
    subscription.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "a.png", "-o", "./a.png"], "./a.png: must be named once"),
        (["-o", "a.tiff"], "a.tiff: suffix must be one of .png, .jpg"),
        (["-o", "a.png", "--every", "0.5s"], "--every 0.5s: must be at least 1 s"),
        (["-o", "a.png", "--every", "2 weeks"], "--every 2 weeks: must be a time: 90, 1.5h"),
        (
            ["-o", "a.png", "--every", "1h"],
            "a.png: names must differ for different times with --every",
        ),
        (["-o", ".", "--name", "%H.png"], "--name %H.png: needs --every"),
        (
            ["-o", ".", "--name", "%H.png", "--every", "1h"],
            "%H.png: names must differ for different times",
        ),
        (
            ["-o", ".", "--name", "%j.png", "--every", "1d"],
            "%j.png: names must differ for different times",
        ),
        (["-o", "a.png", "--tile", "500"], "--tile 500: needs --time-per-pixel"),
        (
            ["-o", "a.png", "--tile", "5", "--time-per-pixel", "1"],
            "--tile 5: must be 200 to 8000 pixels",
        ),
        (["-o", "a.png", "--time-per-pixel", "x"], "--time-per-pixel x: must be a time: 90, 1.5h"),
        (["-o", "a.png", "--start", "T04:31"], "--start T04:31: x.wav has no start time"),
        (["-o", "a.png", *START, "--start", "T04:31"], "--start T04:31: is not within x.wav"),
        (["-o", "a.png", *START, "--start", "T24:00"], "--start T24:00: must be a time of day"),
        (["-o", "a.png", *START, "--start", "soon"], "--start soon: must be a position as 12.5"),
        (["-o", "a.png", "--duration", "-1"], "--duration -1: must be above 0 and below 1e+"),
        (["-o", "a.flac", "--subtype", "f32"], "subtype='f32'"),
        (["-o", "./x.wav"], "./x.wav: must be another file than the one that is read"),
        (
            ["-o", "%Y%jT%H%M%S.png", "--every", "2s", "--strips", "waveform"],
            "strips=waveform: pictures of --every have none",
        ),
    ],
)
def test_bad_arguments(arguments, message, capsys, tmp_path):
    """Impossible arguments are one line before anything starts, and leave no file."""
    write("x.wav")
    assert main(["record", "x.wav", *arguments, "--engine", "numpy"]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
    assert names(tmp_path) == ["x.wav"]


def test_spectra_have_no_sound(capsys):
    """A sound file of stored spectra is refused."""
    write("x.wav", seconds=1.0)
    assert main(["record", "x.wav", "-o", "a.spd", *SMALL, *DATA]) == 0
    assert main(["record", "a.spd", "-o", "y.wav"]) == 2
    assert "y.wav: a.spd has spectra, and no samples" in capsys.readouterr().err


def test_nobody_publishes(ipc_path):
    """If no daemon answers, there is an error after a timeout."""
    expected = pytest.raises(UnavailableError, match=r"spec/: no spectra came in 0\.2 s")
    with subscribe(f"ipc://{ipc_path}") as subscription, expected:
        DaemonReader(subscription, "spec/", timeout_s=0.2)


@pytest.mark.parametrize("command", ["record", "convert"])
def test_an_interrupted_batch_is_whole_in_every_file(tmp_path, monkeypatch, command):
    """Ctrl-C lets a batch reach all files, so that they agree; only convert aborts.

    Files would otherwise differ, or hold half of a batch.
    """
    write("x.wav", seconds=1.0)
    assert main(["record", "x.wav", "-o", "x.spd", "--engine", "numpy"]) == 0
    write_batch = SegmentWriter.write

    def interrupted(writer, batch):
        signal.raise_signal(signal.SIGINT)
        write_batch(writer, batch)

    monkeypatch.setattr(SegmentWriter, "write", interrupted)
    outputs = ["a.spd", "b.npz"]
    flags = [flag for one in outputs for flag in (["-o", one] if command == "record" else [one])]
    assert main([command, "x.spd", *flags]) == 130
    left = names(tmp_path)
    assert left == (["a.spd", "b.npz"] if command == "record" else []) + ["x.spd", "x.wav"]
    for path in left[:-2]:
        copy, given = (rows_of(tmp_path / name)[1] for name in (path, "x.spd"))
        np.testing.assert_array_equal(copy[0].values, given[0].values)


def test_an_interrupt_while_outputs_start_leaves_no_file(tmp_path, monkeypatch):
    """Ctrl-C while outputs are created removes those already created."""
    write("x.wav", seconds=1.0)

    def make(*_args):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(PictureSink, "rename", make)
    assert main(["record", "x.wav", "-o", "a.spd", "-o", "b.png", "--engine", "numpy"]) == 130
    assert names(tmp_path) == ["x.wav"]
