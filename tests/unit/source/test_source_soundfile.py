"""Sound files: exact samples, once or in a loop, and one clear error for each defect."""

import io
import os
import re
import time

import numpy as np
import pytest
import soundfile

from spectrod.config.config import SourceConfig
from spectrod.lib.errors import ConfigError, InputError
from spectrod.source.files.soundfile import SoundFile
from spectrod.source.open_source import open_source


@pytest.fixture
def noise():
    return np.random.default_rng(3).uniform(-1, 1, (70001, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("suffix", "subtype", "tolerance"),
    [("wav", "FLOAT", 0.0), ("wav", "PCM_24", 2**-23), ("flac", "PCM_16", 2**-15)],
)
def test_file_gives_its_exact_samples(tmp_path, noise, collect, suffix, subtype, tolerance):
    """Every sample of every channel arrives once and in order, at full speed past the ring."""
    path = tmp_path / f"noise.{suffix}"
    soundfile.write(path, noise, 44100, subtype=subtype)
    source = open_source(SourceConfig(uri=str(path)), "full")
    assert (source.fs, source.channels, source.n_samples) == (44100.0, 3, 70001)
    ((index, samples, *_),) = collect(source, capacity=1 << 14)
    assert index == 0
    np.testing.assert_allclose(samples, noise.T, rtol=0, atol=tolerance)


def write_wav(path, n=20000):
    soundfile.write(path, np.linspace(-0.5, 0.5, n), 8000, subtype="PCM_16")
    return path.read_bytes()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b""), "empty file"),
        (lambda path: path.write_text("not a sound"), "not a sound file: Format not recognised."),
        (
            lambda path: path.write_bytes(write_wav(path)[:20000]),
            "truncated: 40000 bytes announced, 19956 found",
        ),
        (lambda path: path.write_bytes(write_wav(path, 0)), "holds no samples"),
        (os.mkfifo, "not a regular file; raw samples from a pipe are read with pcm:"),
        (lambda _: None, "No such file or directory"),
    ],
)
def test_unusable_files(tmp_path, make, message):
    """A missing, empty, foreign or (in strict mode) truncated file is one clear error."""
    path = tmp_path / "x.wav"
    make(path)
    with pytest.raises(InputError, match=re.escape(f"{path}: {message}")):
        open_source(SourceConfig(uri=str(path), strict=True), "full")
    if "truncated" not in message:
        with pytest.raises(InputError, match=re.escape(f"{path}: {message}")):
            open_source(SourceConfig(uri=str(path)), "full")


def test_a_raw_file_is_named_as_one(tmp_path):
    """A raw file given as a sound file is refused, since its name states no rate."""
    path = tmp_path / "x.RAW"
    path.write_bytes(bytes(4000))
    message = f"{path}: has no header; raw samples are read with pcm:{path}"
    with pytest.raises(InputError, match=re.escape(message)):
        open_source(SourceConfig(uri=str(path)), "full")


@pytest.mark.parametrize("format_", ["AIFF", "AU", "RF64", "W64", "WAVEX"])
def test_truncated_files_of_other_formats(tmp_path, format_):
    """The message of each format for a file that is too short is recognised."""
    path = tmp_path / "x"
    soundfile.write(path, np.linspace(-0.5, 0.5, 20000), 8000, "PCM_16", format=format_)
    path.write_bytes(path.read_bytes()[:20000])
    message = r"x: truncated: 4\d{4} bytes announced, (19|20)\d{3} found"
    with pytest.raises(
        InputError, match=rf"{message} \(without --strict, what can be read is read"
    ):
        open_source(SourceConfig(uri=str(path), strict=True), "full")
    source = open_source(SourceConfig(uri=str(path)), "full")
    assert re.search(f"{message}: read up to there$", source.left_out.lines[0])
    file = SoundFile(str(path))
    assert file.n_announced == 20_000
    file.close()


@pytest.mark.parametrize("pace", ["full", "realtime"])
@pytest.mark.parametrize("n_cut", [1, 2, 3, 20_001])
def test_a_truncated_file_is_read_up_to_its_end(tmp_path, collect, pace, n_cut):
    """A truncated file is read to its last complete sample, with one line about the rest."""
    path = tmp_path / "x.wav"
    path.write_bytes(write_wav(path, 20_000)[:-n_cut])
    n_found = 20_000 - -(-n_cut // 2)
    source = open_source(SourceConfig(uri=str(path)), pace)
    source.pace = "full"
    assert (source.n_samples, source.left_out.n_files) == (n_found, 1)
    ((_, samples, *_),) = collect(source)
    expected = soundfile.read(path, dtype="float32", always_2d=True)[0].T
    assert expected.shape == (1, n_found)
    np.testing.assert_array_equal(samples, expected)
    assert source.left_out.n_files == source.capture().left_out_files == 1


@pytest.mark.parametrize(
    ("offset", "value"), [(28, 999_999), (4, 40_044)], ids=["bytes a second", "size of the file"]
)
def test_a_header_may_be_wrong_where_no_sample_is_missing(tmp_path, collect, offset, value):
    """Wrong sizes and rates in headers, which many programs write, are no truncation."""
    path = tmp_path / "x.wav"
    data = bytearray(write_wav(path))
    data[offset : offset + 4] = value.to_bytes(4, "little")
    path.write_bytes(data)
    ((_, samples, *_),) = collect(open_source(SourceConfig(uri=str(path)), "full"))
    assert samples.shape == (1, 20000)


def test_a_file_name_need_not_be_utf8(tmp_path):
    """A file name of any bytes is opened; its topic and description are valid text."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/x\xffy.wav")
    write_wav(tmp_path / "z.wav")
    (tmp_path / "z.wav").rename(path)
    source = open_source(SourceConfig(uri=path), "full")
    assert (source.name, source.n_samples) == ("x-y", 20000)
    assert source.description.endswith(r"/x\xffy.wav (WAV, PCM_16)")


@pytest.mark.parametrize("loop", [False, True])
def test_truncated_flac_is_found_at_its_end(tmp_path, noise, collect, loop):
    """If only decoding shows the truncation, it is an error or ends the file."""
    path = tmp_path / "x.flac"
    soundfile.write(path, noise, 8000)
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(InputError, match=r"damaged|truncated"):
        collect(open_source(SourceConfig(uri=str(path), loop=loop, strict=True), "full"))
    source = open_source(SourceConfig(uri=str(path), loop=loop), "full")
    ((_, samples, *_),) = collect(source, n_samples=50_000 if loop else None)
    assert re.search(r"x\.flac: (damaged|truncated).*: read up to there", source.left_out.lines[0])
    n_found = 50_000 if loop else samples.shape[1]
    assert samples.shape == (3, n_found)
    assert 4096 <= n_found < len(noise)
    n_same = min(n_found, 4096)
    np.testing.assert_allclose(samples[:, :n_same], noise[:n_same].T, atol=2**-15)


def test_a_loop_over_an_unreadable_file_ends(tmp_path, collect):
    """A loop over a FLAC file without an intact frame ends with an error."""
    path = tmp_path / "x.flac"
    soundfile.write(path, np.random.default_rng(1).uniform(-1, 1, 9000), 8000)
    data = path.read_bytes()
    path.write_bytes(data[:200] + bytes(len(data) - 200))
    with pytest.raises(InputError, match=r"x\.flac: (damaged|truncated)"):
        collect(open_source(SourceConfig(uri=str(path), loop=True), "full"))


def mp3_without_length(*loudness):
    """Encode a second of noise of each loudness at a variable bit rate, without the length."""
    rng = np.random.default_rng(7)
    samples = np.concatenate([level * rng.standard_normal(44100) for level in loudness])
    file = io.BytesIO()
    soundfile.write(file, samples, 44100, format="MP3")
    data = file.getvalue()
    return data[data.index(data[:2], 4) :]  # drop the first frame, which has the length


def test_an_mp3_without_a_length_is_read_to_its_end(tmp_path, collect):
    """An MP3 is read to its real end, be libsndfile's estimate of it too high or too low."""
    for loudness in ((0.0, 0.1), (0.1, 0.0)):
        (tmp_path / "x.mp3").write_bytes(mp3_without_length(*loudness))
        source = open_source(SourceConfig(uri=str(tmp_path / "x.mp3"), strict=True), "full")
        ((_, samples, *_),) = collect(source)
        n = samples.shape[1]
        assert n == source.n_samples
        assert n % 1152 == 0
        assert 2 * 44100 <= n < 2 * 44100 + 4 * 1152


def test_an_estimated_length_moves_nothing(tmp_path, collect):
    """In a folder, the file after one of estimated length is placed by its time."""
    for time_ in ("043000", "053000"):
        (tmp_path / f"20260501_{time_}.mp3").write_bytes(mp3_without_length(0.0, 0.1))
    source = open_source(SourceConfig(uri=str(tmp_path)), "full")
    assert [index for index, *_ in collect(source)] == [0, 3600 * 44100]


def test_data_after_the_end_of_a_coded_stream_are_reported(tmp_path, collect):
    """If libsndfile stops before the file's end, a warning or, in strict mode, an error follows."""
    x = 0.1 * np.random.default_rng(7).standard_normal(44100)
    path = tmp_path / "x.mp3"
    soundfile.write(path, x, 44100)
    path.write_bytes(2 * path.read_bytes())
    with pytest.raises(InputError, match=r"x\.mp3: 44100 samples announced, but \d+ bytes follow"):
        collect(open_source(SourceConfig(uri=str(path), strict=True), "full"))
    source = open_source(SourceConfig(uri=str(path)), "full")
    collect(source)
    assert source.left_out.n_files == 1


def test_tags_after_the_end_are_no_samples(tmp_path, collect):
    """Tags and pictures after the samples of an MP3 file are ignored."""
    soundfile.write(tmp_path / "x.mp3", np.zeros(5000), 44100)
    tags = b"APETAGEX" + bytes(24) + 5000 * b"\xff\xe3" + b"TAG" + bytes(125)
    (tmp_path / "x.mp3").write_bytes((tmp_path / "x.mp3").read_bytes() + tags)
    ((_, samples, *_),) = collect(open_source(SourceConfig(uri=str(tmp_path / "x.mp3")), "full"))
    assert samples.shape == (1, 5000)


def test_wav_of_unknown_length_is_no_truncated_one(tmp_path, collect):
    """A WAV of unknown length, as from a pipe, is read and not truncated."""
    path = tmp_path / "x.wav"
    data = bytearray(write_wav(path))
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    ((_, samples, *_),) = collect(open_source(SourceConfig(uri=str(path)), "full"))
    assert samples.shape == (1, 20000)


@pytest.mark.parametrize("key", ["samplerate", "channels"])
def test_a_file_keeps_its_own_format(tmp_path, key):
    """A sample rate or channel count other than the file's is refused and not ignored."""
    path = tmp_path / "x.wav"
    write_wav(path)
    with pytest.raises(ConfigError, match=rf"source\.{key}=5: .* and a file's own is used"):
        open_source(SourceConfig(uri=str(path), **{key: 5}), "full")


# ---- loops, pace, times


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "mp3"])
@pytest.mark.parametrize("n", [1152, 10007])
def test_a_loop_has_no_seam(tmp_path, collect, suffix, n):
    """A file of any length and coding repeats in a loop to the sample without a gap."""
    path = tmp_path / f"x.{suffix}"
    soundfile.write(path, np.random.default_rng(1).uniform(-0.5, 0.5, (n, 2)), 48000)
    once = soundfile.read(path, dtype="float32")[0].T
    source = open_source(SourceConfig(uri=str(path), loop=True), "full")
    assert source.n_samples is None
    ((index, samples, *_),) = collect(source, n_samples=100_003, capacity=1 << 15)
    assert index == 0
    np.testing.assert_array_equal(samples, np.tile(once, 100_003 // n + 1)[:, :100_003])


@pytest.mark.slow
def test_a_loop_of_one_sample(tmp_path, collect):
    """A file of one sample in a loop makes full blocks."""
    path = tmp_path / "x.wav"
    soundfile.write(path, [0.5], 48000)
    source = open_source(SourceConfig(uri=str(path), loop=True), "full")
    ((_, samples, *_),) = collect(source, n_samples=70_000)
    np.testing.assert_array_equal(samples, np.full((1, 70_000), 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("uri", ["x.wav", "pcm:x.raw", "signal:sine,1000,-20"])
def test_the_settings_pace_files_and_signals(tmp_path, monkeypatch, collect, uri):
    """At real-time pace no sample comes before its time, and at full speed samples do."""
    monkeypatch.chdir(tmp_path)
    soundfile.write("x.wav", np.zeros(4000), 8000, subtype="PCM_16")
    (tmp_path / "x.raw").write_bytes(bytes(8000))
    for pace, is_paced in (("realtime", True), ("full", False)):
        source = open_source(SourceConfig(uri=uri, samplerate=8000, pace=pace))
        start_s = time.monotonic()
        collect(source, n_samples=4000)
        assert (time.monotonic() - start_s >= 0.5) == is_paced


@pytest.mark.parametrize(("loop", "start_ns"), [(False, 1777609800 * 10**9), (True, None)])
def test_times_are_the_recordings(tmp_path, collect, caplog, loop, start_ns):
    """UTC is that of the name, with a log line; a loop has the time of its playing."""
    caplog.set_level("INFO")
    path = tmp_path / "20260501_043000.wav"
    write_wav(path)
    source = open_source(SourceConfig(uri=str(path), loop=loop), "full")
    before_ns = time.time_ns()
    ((_, _, _, utc_ns),) = collect(source, n_samples=20000)
    if start_ns is None:
        assert before_ns <= utc_ns <= time.time_ns()
    else:
        assert utc_ns == start_ns
        assert f"{path} starts at 2026-05-01T04:30:00+00:00, from its name, which" in caplog.text


# ---- channels


@pytest.mark.parametrize("select", [(2,), (2, 0), (0, 1, 2), ()])
def test_channels_are_selected_in_the_order_asked_for(tmp_path, noise, collect, select):
    """A selection delivers only those channels in its order; without one all are delivered."""
    path = tmp_path / "x.wav"
    soundfile.write(path, noise, 8000, subtype="FLOAT")
    source = open_source(SourceConfig(uri=str(path), select=select), "full")
    ((_, samples, *_),) = collect(source)
    assert source.channels == len(samples)
    np.testing.assert_array_equal(samples, noise.T[list(select or (0, 1, 2))])


@pytest.mark.parametrize(
    ("channels", "select", "message"),
    [
        (3, (0, 3), "source.select=3: the source has channels 0 to 2"),
        (1, (1,), "source.select=1: the source has channel 0 alone"),
        (2, (1, 0, 1), "source.select=1: must not come twice"),
    ],
)
def test_selections_that_cannot_be(channels, select, message):
    """A channel that does not exist, or that is selected twice, is refused by number."""
    settings = SourceConfig(uri="signal:sine,1000,-20", channels=channels, select=select)
    with pytest.raises(ConfigError, match=re.escape(message)):
        open_source(settings, "full")
