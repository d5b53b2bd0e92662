"""Sources: exact samples, exact levels, one clear error for each kind of bad input."""

import os
import re
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from spectrod.config import SourceConfig
from spectrod.errors import ConfigError, InputError, InternalError, UnavailableError
from spectrod.ring import SampleRing
from spectrod.source import open_source
from spectrod.source.naming import topic_name
from spectrod.source.pcm import PcmSource, decode_pcm
from spectrod.source.signal import SignalSource
from spectrod.source.soundcard import InputDevice, SoundCardSource, choose_input


def collect(source, capacity=1 << 17):
    """Run a source to its end through a ring; (channels, n)."""
    ring = SampleRing(source.fs, source.channels, capacity)
    source.start(ring)
    blocks = []
    while not ring.exhausted:
        block = ring.read(capacity)
        if block is None:
            ring.data.wait(5.0)
        else:
            blocks.append(block)
    source.stop()
    ring.release()
    if source.failure:
        raise source.failure
    assert not any(block.discontinuity for block in blocks)
    return np.concatenate([block.samples for block in blocks], axis=1)


def head(text, n, fs=48000.0):
    """First n samples of a test signal."""
    return next(iter(SignalSource(text, fs, 1, "full").blocks(n)))[0]


@pytest.fixture
def noise(rng_seed=3):
    return np.random.default_rng(rng_seed).uniform(-1, 1, (70001, 3)).astype(np.float32)


# ---- sound files


@pytest.mark.parametrize(
    ("suffix", "subtype", "tolerance"),
    [("wav", "FLOAT", 0.0), ("wav", "PCM_24", 2**-23), ("flac", "PCM_16", 2**-15)],
)
def test_file_gives_its_exact_samples(tmp_path, noise, suffix, subtype, tolerance):
    """Every sample of every channel arrives once and in order, at full speed, past the ring."""
    path = tmp_path / f"noise.{suffix}"
    soundfile.write(path, noise, 44100, subtype=subtype)
    source = open_source(SourceConfig(uri=str(path)), "full")
    assert (source.fs, source.channels, source.n_samples) == (44100.0, 3, 70001)
    np.testing.assert_allclose(collect(source, 1 << 14), noise.T, rtol=0, atol=tolerance)


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
        (lambda path: path.mkdir(), "Is a directory"),
        (os.mkfifo, "not a regular file; raw samples from a pipe are read with -"),
        (lambda _: None, "No such file or directory"),
    ],
)
def test_unusable_files(tmp_path, make, message):
    """A file that is missing, empty, truncated or no sound is one clear error."""
    path = tmp_path / "x.wav"
    make(path)
    with pytest.raises(InputError, match=re.escape(f"{path}: {message}")):
        open_source(SourceConfig(uri=str(path)), "full")


@pytest.mark.parametrize("format_", ["AIFF", "AU", "RF64", "W64", "WAVEX"])
def test_truncated_files_of_other_formats(tmp_path, format_):
    """Each format's own words for a file that is too short are understood."""
    path = tmp_path / "x"
    soundfile.write(path, np.linspace(-0.5, 0.5, 20000), 8000, "PCM_16", format=format_)
    path.write_bytes(path.read_bytes()[:20000])
    with pytest.raises(InputError, match=r"x: truncated: 4\d{4} bytes announced, (19|20)\d{3} f"):
        open_source(SourceConfig(uri=str(path)), "full")


@pytest.mark.parametrize(
    ("offset", "value"), [(28, 999_999), (4, 40_044)], ids=["bytes a second", "size of the file"]
)
def test_a_header_may_be_wrong_where_no_sample_is_missing(tmp_path, offset, value):
    """Sizes and rates that many programs write wrongly do not make a whole file a truncated one."""
    path = tmp_path / "x.wav"
    data = bytearray(write_wav(path))
    data[offset : offset + 4] = value.to_bytes(4, "little")
    path.write_bytes(data)
    assert collect(open_source(SourceConfig(uri=str(path)), "full")).shape == (1, 20000)


def test_a_file_name_need_not_be_utf8(tmp_path):
    """A name of any bytes is opened; its topic and description keep what messages can carry."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/x\xffy.wav")
    write_wav(tmp_path / "z.wav")
    (tmp_path / "z.wav").rename(path)
    source = open_source(SourceConfig(uri=path), "full")
    assert (source.name, source.n_samples) == ("x-y", 20000)
    assert source.description.encode().endswith(
        "/x\N{REPLACEMENT CHARACTER}y.wav (WAV, PCM_16)".encode()
    )


def test_truncated_flac_is_found_at_its_end(tmp_path, noise):
    """Where only decoding shows it, a truncated file is still an error, not a short recording."""
    path = tmp_path / "x.flac"
    soundfile.write(path, noise, 8000)
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(InputError, match=r"damaged|truncated"):
        collect(open_source(SourceConfig(uri=str(path)), "full"))


def test_wav_of_unknown_length_is_no_truncated_one(tmp_path):
    """Programs that write WAV to a pipe cannot know its length: such a file is read."""
    path = tmp_path / "x.wav"
    data = bytearray(write_wav(path))
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    assert collect(open_source(SourceConfig(uri=str(path)), "full")).shape == (1, 20000)


@pytest.mark.parametrize("key", ["samplerate", "channels"])
def test_a_file_keeps_its_own_format(tmp_path, key):
    """Asking for another rate or channel count than the file's is refused, not ignored."""
    path = tmp_path / "x.wav"
    write_wav(path)
    with pytest.raises(ConfigError, match=rf"source\.{key}=5: .* and a file's own is used"):
        open_source(SourceConfig(uri=str(path), **{key: 5}), "full")


# ---- raw samples


@pytest.mark.parametrize(
    ("format_", "data", "expected"),
    [
        ("u8", b"\x00\x80\xc0", [-1.0, 0.0, 0.5]),
        ("s16le", b"\x00\x80\x00\x40", [-1.0, 0.5]),
        ("s24le", b"\x00\x00\x80\x00\x00\x40\xff\xff\xff", [-1.0, 0.5, -(2.0**-23)]),
        ("s32le", b"\x00\x00\x00\x80\x00\x00\x00\x40", [-1.0, 0.5]),
        ("f32le", np.array([0.25, -3.0], "<f4").tobytes(), [0.25, -3.0]),
        ("f64le", np.array([0.25, -3.0], "<f8").tobytes(), [0.25, -3.0]),
        ("f64le", np.array([1e300], "<f8").tobytes(), [np.inf]),
    ],
)
def test_raw_formats(format_, data, expected):
    """Each raw format decodes to fractions of full scale."""
    decoded = decode_pcm(data, format_)
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded, np.float32(expected))


def pipe_source(data, channels=2, format_="s16le"):
    """Make a source that reads the data from a real pipe, written by another thread."""
    read_fd, write_fd = os.pipe()

    def write():
        with os.fdopen(write_fd, "wb") as pipe:
            pipe.write(data)

    threading.Thread(target=write).start()
    return PcmSource(48000.0, channels, format_, read_fd), read_fd


def test_pipe_gives_every_sample(noise):
    """Interleaved samples come through a pipe unchanged, whatever its chunks."""
    integers = np.round(noise[:, :2] * 32767).astype("<i2")
    source, fd = pipe_source(integers.tobytes())
    np.testing.assert_array_equal(collect(source), integers.T / np.float32(32768))
    os.close(fd)


def test_pipe_that_ends_inside_a_sample():
    """A stream that is not a whole number of samples was not what its format says."""
    source, fd = pipe_source(b"\0" * 4003)
    with pytest.raises(InputError, match=r"ends with 3 bytes, not a whole number of 4-byte"):
        collect(source)
    os.close(fd)


def test_closed_standard_input(monkeypatch):
    """A command that is started without standard input says that it is closed."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input: closed; - reads raw samples from it"):
        open_source(SourceConfig(uri="-"), "full")


def test_input_that_cannot_be_read(tmp_path):
    """What the system refuses while reading ends the stream with its reason, not as if complete."""
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(InputError, match="standard input: Is a directory"):
        collect(PcmSource(48000.0, 1, "s16le", fd))
    os.close(fd)


def test_a_source_that_breaks_is_a_failure(caplog):
    """An error that nobody foresaw does not make a broken stream a finished one."""

    class Broken(SignalSource):
        def blocks(self, n_max):
            yield next(super().blocks(n_max))
            raise ZeroDivisionError("oops")

    with pytest.raises(InternalError, match=r"source failed: ZeroDivisionError\('oops'\)"):
        collect(Broken("sine,1000,-20", 48000.0, 1, "full"))
    assert "source failed" in caplog.text


def test_pipe_can_be_stopped_while_nothing_comes():
    """Stopping does not wait for a silent writer."""
    read_fd, write_fd = os.pipe()
    source = PcmSource(48000.0, 1, "s16le", read_fd)
    ring = SampleRing(48000.0, 1, 1024)
    source.start(ring)
    source.stop()
    assert ring.exhausted
    assert source.failure is None
    os.close(read_fd)
    os.close(write_fd)
    ring.release()


# ---- test signals


def test_sine_is_phase_exact_for_hours():
    """A block far into the stream continues the same sine."""
    source = SignalSource("sine,997,-6", 48000.0, 2, "full")
    far = source._generate(10**9, 1000)
    n = np.arange(10**9, 10**9 + 1000)
    expected = 10 ** (-6 / 20) * np.sin(2 * np.pi * ((n * 997) % 48000) / 48000)
    np.testing.assert_allclose(far, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("text", "level_dbfs"),
    [
        ("sine,1000,-20", -20.0),
        ("white,-30", -30.0),
        ("pink,-25", -25.0),
        ("sweep,20,20000,1,-3", -3.0),
    ],
)
def test_levels_are_exact(text, level_dbfs):
    """RMS over a long stretch is the level asked for; 0 dBFS is a full-scale sine."""
    x = head(text, 1 << 20).astype(np.float64)
    measured = 10 * np.log10(2 * np.mean(np.square(x)))
    assert measured == pytest.approx(level_dbfs, abs=0.02)


def test_pink_falls_three_decibels_an_octave():
    """The density of pink noise halves with each doubling of frequency."""
    x = head("pink,-20", 1 << 20).astype(np.float64)
    power = np.square(np.abs(np.fft.rfft(x)))
    octaves = [power[2**k : 2 ** (k + 1)].mean() for k in range(6, 19)]
    np.testing.assert_allclose(
        10 * np.log10(octaves[1:]) - 10 * np.log10(octaves[:-1]), -3.01, atol=0.1
    )


def test_signals_do_not_depend_on_block_sizes():
    """Any signal is the same however it is cut."""
    for text in (
        "sine,1000,-20",
        "white,-30",
        "pink,-25",
        "sweep,20,2000,0.01,-3",
        "multitone,-40,5,7",
    ):
        blocks = SignalSource(text, 48000.0, 1, "full").blocks(250)
        cut = np.concatenate([next(blocks)[0] for _ in range(4)])
        np.testing.assert_allclose(cut, head(text, 1000), atol=1e-7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("square,1,2", "signal:square,1,2: must be one of signal:sine,FREQ_HZ,LEVEL_DBFS, "),
        ("sine,1000", "signal:sine,1000: must be signal:sine,FREQ_HZ,LEVEL_DBFS"),
        ("sine,a,b", "signal:sine,a,b: must be signal:sine,FREQ_HZ,LEVEL_DBFS"),
        ("sine,24000,-20", "signal: 24000 Hz: must lie between 0 and fs/2 = 24000"),
        ("sine,1000,21", "signal: 21 dBFS: must be -200 to 20"),
        ("multitone,-20", "signal:multitone,-20: must be signal:multitone,LEVEL_DBFS,FREQ_HZ,..."),
        ("sweep,20,20,1,-3", "signal:sweep,20,20,1,-3: must be signal:sweep,FROM_HZ,TO_HZ,SECONDS"),
    ],
)
def test_bad_signals(text, message):
    """A signal that makes no sense says what would."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        open_source(SourceConfig(uri=f"signal:{text}"), "full")


# ---- names, sound cards, URIs

INPUTS = [
    InputDevice(0, "HDA Intel: ALC254 (hw:0,0)", "ALSA", 2, 48000.0, is_default=False),
    InputDevice(4, "UMIK-1: USB Audio", "ALSA", 1, 48000.0, is_default=True),
]


@pytest.mark.parametrize(
    ("wanted", "index"), [("", 4), ("hda", 0), ("0", 0), ("4", 4), ("umik", 4), ("5", 0)]
)
def test_inputs_are_chosen_by_name_or_index(wanted, index):
    """An input is found by its index, else by part of its name, or as the default."""
    assert choose_input(wanted, INPUTS).index == index


def test_unknown_inputs_list_what_there_is():
    """A name that fits nothing is answered with what would fit."""
    with pytest.raises(UnavailableError, match=r"soundcard:x: no such .* are 0 'HDA .*', 4 'UMIK"):
        choose_input("x", INPUTS)
    with pytest.raises(UnavailableError, match="soundcard: no audio input on this machine"):
        choose_input("", [])


def test_a_card_that_is_stopped_twice_is_closed_once(monkeypatch):
    """PortAudio frees a stream that it closes, so a second close must not reach it."""
    closed = []
    stream = SimpleNamespace(start=lambda: None, close=lambda: closed.append(1))
    portaudio = SimpleNamespace(
        check_input_settings=lambda **_: None,
        InputStream=lambda **_: stream,
        PortAudioError=OSError,
    )
    monkeypatch.setattr("spectrod.source.soundcard.load_portaudio", lambda: portaudio)
    monkeypatch.setattr("spectrod.source.soundcard.list_inputs", lambda: INPUTS)
    source = SoundCardSource()
    source.start(SampleRing(48000.0, 1, 1024))
    source.stop()
    source.stop()
    assert closed == [1]


def test_names_are_safe_in_topics():
    """Any text becomes a topic part."""
    assert topic_name("UMIK-1: USB Audio (hw:1,0)") == "UMIK-1-USB-Audio-hw-1-0"
    assert topic_name("///") == "source"


def test_source_names_are_checked():
    """A name that would break the topics is refused, a good one is used."""
    settings = SourceConfig(uri="signal:sine,1000,-20", name="roof.mic_2")
    assert open_source(settings, "full").name == "roof.mic_2"
    with pytest.raises(
        ConfigError, match=r"source.name='a/b': only letters, digits, \. _ - may be"
    ):
        open_source(SourceConfig(uri="signal:sine,1000,-20", name="a/b"), "full")


def test_unknown_uri_schemes():
    """A URI that is no source says what is."""
    with pytest.raises(ConfigError, match="http://x: must be a sound file, -, signal:KIND"):
        open_source(SourceConfig(uri="http://x"), "full")
