"""Sound files on standard input, and in place of raw samples."""

import io
import logging
import os
import select
import sys
import threading
import types
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import soundfile

sys.path.insert(0, str(Path(__file__).parents[2] / "sounds"))
from sound_headers import DEFECTS, FORMS, FS, WITHOUT_CHUNKS, reference

from spectrod.cli import main
from spectrod.config.config import SourceConfig
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.job_pool import Wait
from spectrod.source.base import Discontinuity
from spectrod.source.files.container.recognised import recognised
from spectrod.source.files.fifo import FifoSource
from spectrod.source.files.pcm import PcmSource, standard_input
from spectrod.source.files.soundstream import SoundStreamSource, open_stream
from spectrod.source.open_source import open_source


class Stdin:
    """Standard input of this process, in place of pytest's: a pipe or a file."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch
        self._fds: list[int] = []
        self._writers: list[threading.Thread] = []

    def pipe(self, *pieces):
        """Let another thread write pieces into a pipe, each when the one before has been taken."""
        read_fd, write_fd = os.pipe()

        def write():
            with suppress(BrokenPipeError), os.fdopen(write_fd, "wb", buffering=0) as pipe:
                for piece in pieces:
                    pipe.write(piece)

        self._writers.append(threading.Thread(target=write))
        self._writers[-1].start()
        self._use(read_fd)

    def file(self, path):
        """Open a file."""
        self._use(os.open(path, os.O_RDONLY))

    def silent(self):
        """Make a pipe that nothing is written to; return the descriptor of its other end."""
        read_fd, write_fd = os.pipe()
        self._use(read_fd)
        self._fds.append(write_fd)
        return write_fd

    def _use(self, fd):
        self._fds.append(fd)
        self._monkeypatch.setattr("sys.stdin", types.SimpleNamespace(fileno=lambda: fd))

    def close(self):
        """Close all."""
        for fd in self._fds:
            os.close(fd)
        for writer in self._writers:
            writer.join()


@pytest.fixture
def stdin(monkeypatch):
    """Return a standard input to be set."""
    made = Stdin(monkeypatch)
    yield made
    made.close()


def opened(pace="full", **settings):
    return open_source(SourceConfig(uri="-", **settings), pace)


def read(source):
    """Read all samples of a source, (channels, n)."""
    blocks = [np.zeros((source.channels, 0), np.float32)]
    for item in source.blocks(300):
        if isinstance(item, Wait):
            poll = select.poll()
            poll.register(item.fd, item.events)
            poll.poll(10_000)
        elif not isinstance(item, Discontinuity):
            blocks.append(item)
    return np.concatenate(blocks, axis=1)


WITHOUT_A_LINE = ("size of 0", "open size")
"""Defects of a file that are none of a stream: its writer cannot go back to its header."""


@pytest.mark.parametrize(
    ("name", "defect"),
    [
        (name, defect)
        for name in FORMS
        for defect in DEFECTS
        if name != "AU" or defect not in WITHOUT_CHUNKS
    ],
)
def test_a_sound_file_from_a_pipe_and_from_a_file(tmp_path, stdin, name, defect):
    """Standard input gives the samples of the file itself, or those that are there and a line."""
    form = FORMS[name]
    for subtype in ("PCM_24", "DOUBLE", "ULAW"):
        path = tmp_path / f"20260501_043000{form.suffix}"
        data = form.make(tmp_path, subtype, 3)
        expected = reference(path)
        data = DEFECTS[defect].change(form, data)
        path.write_bytes(data)
        alone = open_source(SourceConfig(uri=str(path)), "full")
        n_lines = alone.left_out.n_files
        stdin.file(path)
        source = opened()
        assert isinstance(source, SoundStreamSource)
        assert (source.fs, source.channels, source.name) == (FS, 3, "stdin")
        samples = read(source)
        assert samples.shape[1] == alone.n_samples
        np.testing.assert_array_equal(samples[:, :1001], expected)
        assert source.left_out.n_files == n_lines, source.left_out.lines
        # A stream of any pieces; only its end tells that all of it has come.
        stdin.pipe(data[:1], data[1:47], data[47:600], data[600:])
        source = opened()
        samples = read(source)
        np.testing.assert_array_equal(samples[:, :1001], expected)
        if defect in WITHOUT_A_LINE:
            n_lines = 0
        if name not in ("RF64", "BW64") or defect != "open size":
            assert source.left_out.n_files == n_lines, (subtype, source.left_out.lines)


@pytest.mark.parametrize("n_cut", [1, 7, 2000])
def test_a_pipe_that_ends_early(stdin, tmp_path, n_cut):
    """Whole samples that came are used, and a line says what is missing; strict, it is an error."""
    data = FORMS["WAV"].make(tmp_path, "PCM_24", 1)
    stdin.pipe(data[: 44 + 3003 - n_cut])
    source = opened()
    assert read(source).shape == (1, (3003 - n_cut) // 3)
    message = f"standard input: truncated: 3003 bytes announced, {3003 - n_cut} found"
    assert source.left_out.lines == (f"{message}: read up to there",)
    stdin.pipe(data[: 44 + 3003 - n_cut])
    with pytest.raises(InputError, match=message):
        read(opened(strict=True))


@pytest.mark.parametrize("n", [13, 30, 43])
def test_a_header_that_ends_early(stdin, tmp_path, n):
    """A stream that ends within its header is one error."""
    stdin.pipe(FORMS["WAV"].make(tmp_path, "PCM_16", 1)[:n])
    with pytest.raises(InputError, match=r"standard input: has no samples"):
        opened()


def test_a_header_that_stops_to_come(stdin, tmp_path):
    """A writer that stops within its header is one error after a time."""
    os.write(stdin.silent(), FORMS["WAV"].make(tmp_path, "PCM_16", 1)[:30])
    with pytest.raises(InputError, match=r"its header ends, and nothing came for 0\.05 s"):
        open_stream(SourceConfig(uri="-"), standard_input(), "full", header_s=0.05)


def test_what_the_command_line_says_must_fit(stdin, tmp_path):
    """A rate or a number of channels that the header does not state is refused."""
    data = FORMS["WAV"].make(tmp_path, "PCM_16", 1)
    stdin.pipe(data)
    with pytest.raises(ConfigError, match=r"source\.samplerate=44100: standard input has 8000"):
        opened(samplerate=44100)
    stdin.pipe(data)
    assert opened(samplerate=8000, channels=1).fs == FS


def test_raw_samples_are_what_is_no_sound_file(stdin):
    """Raw samples come whole, whatever bytes they begin with."""
    for begin in (
        b"",
        b"R",
        b"RIFF",
        b"RIFF\0\0\0\0WAVf",
        b"FORM",
        b"\xff\xfb",
        b"ID3\xff\xff\xff",
    ):
        data = begin + bytes(range(200, 256)) * 40
        data = data[: len(data) // 2 * 2]
        stdin.pipe(data[:3], data[3:])
        source = opened()
        assert not isinstance(source, SoundStreamSource)
        np.testing.assert_array_equal(read(source)[0] * 2**15, np.frombuffer(data, "<i2"))


def test_a_daemon_does_not_wait_for_a_silent_pipe(stdin, monkeypatch, tmp_path):
    """A header that comes later than the daemon waits for it is one error, not samples."""
    monkeypatch.setattr("spectrod.source.files.soundstream._LIVE_WAIT_S", 0.01)
    write_fd = stdin.silent()
    source = opened("realtime")
    os.write(write_fd, FORMS["WAV"].make(tmp_path, "PCM_16", 1))
    with pytest.raises(InputError, match=r"begins with the header of a sound file, WAV \(RIFF, "):
        read(source)


class Said(logging.Handler):
    """Says when a line is logged."""

    def __init__(self):
        super().__init__()
        self.event = threading.Event()

    def emit(self, _record):
        self.event.set()


def test_a_command_waits_for_a_silent_pipe(stdin, tmp_path):
    """A command waits until something comes, and says so."""
    write_fd = stdin.silent()
    data = FORMS["WAV"].make(tmp_path, "PCM_16", 1)

    said, log = Said(), logging.getLogger("spectrod.source.files.soundstream")

    def write():
        assert said.event.wait(30)
        os.write(write_fd, data)

    log.addHandler(said)
    writer = threading.Thread(target=write)
    writer.start()
    source = open_stream(SourceConfig(uri="-"), standard_input(), "full", report_s=0.01)
    writer.join()
    log.removeHandler(said)
    assert source.fs == FS


def test_a_source_that_is_opened_again_goes_on(stdin, tmp_path):
    """A stream that a daemon opens again after a change of settings goes on at the next sample."""
    data = FORMS["WAV"].make(tmp_path, "PCM_24", 2)
    expected = reference(tmp_path / "20260501_043000.wav")
    stdin.pipe(data)
    source = opened()
    blocks = source.blocks(101)
    first = next(item for item in blocks if isinstance(item, np.ndarray)).copy()
    blocks.close()
    again = opened()
    rest = read(again)
    np.testing.assert_array_equal(np.concatenate([first, rest], axis=1), expected)
    assert not again.left_out.n_files


def coded(format_, subtype=None, n=5000):
    out = io.BytesIO()
    soundfile.write(
        out, np.random.default_rng(1).uniform(-0.5, 0.5, n), 44100, subtype, format=format_
    )
    return out.getvalue()


OTHERS = {
    "FLAC (fLaC)": lambda: coded("FLAC"),
    "Ogg (OggS)": lambda: coded("OGG"),
    "MP3": lambda: coded("MP3"),
    "MP3 (ID3)": lambda: b"ID3\4\0\0\0\0\2\1" + bytes(257) + coded("MP3"),
    "WAV with a codec": lambda: coded("WAV", "IMA_ADPCM"),
    "AIFF with a codec": lambda: coded("AIFF", "IMA_ADPCM"),
    "MP4 or M4A (ftyp)": lambda: b"\0\0\0\x20ftypM4A " + bytes(500),
    "WMA or ASF": lambda: bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c") + bytes(500),
}


@pytest.mark.parametrize("name", OTHERS)
def test_compressed_sound_is_refused(stdin, tmp_path, name):
    """What cannot be decoded from a stream is refused by its name, by any way to give it."""
    data = OTHERS[name]()
    stdin.pipe(data)
    with pytest.raises(InputError) as caught:
        opened()
    line = str(caught.value)
    assert line.startswith(f"standard input: is {name}, which is decoded from files only: give")
    (tmp_path / "x.raw").write_bytes(data)
    with pytest.raises(InputError, match=r"x\.raw: begins with the header of a sound file, "):
        open_source(SourceConfig(uri=f"pcm:{tmp_path / 'x.raw'}", format="u8"), "full")


@pytest.mark.parametrize("name", FORMS)
def test_raw_files_and_fifos_are_no_sound_files(tmp_path, name):
    """``pcm:`` refuses a sound file, also one that is written to a FIFO."""
    form = FORMS[name]
    data = form.make(tmp_path, "PCM_16", 1)
    (tmp_path / "x.wav").write_bytes(data)
    message = r": begins with the header of a sound file, \w+"
    with pytest.raises(InputError, match=rf"x\.wav{message}.*: give its path without pcm:"):
        open_source(SourceConfig(uri=f"pcm:{tmp_path / 'x.wav'}"), "full")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    source = FifoSource(str(fifo), 48000.0, 1, "s16le")
    fd = os.open(fifo, os.O_RDWR)
    os.write(fd, data)
    with pytest.raises(InputError, match=rf"fifo{message}.*: pcm: takes raw samples"):
        read(source)
    os.close(fd)


def test_chance_makes_no_sound_file():
    """Random and silent samples are not recognised as a sound file."""
    rng = np.random.default_rng(1)
    for begin in (b"", b"\xff\xfb", b"\xff\xf1", b"ID3", b"RIFF", b"\0\0\0\x20", b".snd"):
        for _ in range(200):
            assert not recognised(begin + rng.bytes(4000))
    assert not recognised(bytes(4096))
    assert not recognised(b"\xff" * 4096)
    assert not recognised(b"")


def test_levels_of_standard_input(stdin, tmp_path, capsys):
    """``spectrod levels - < x.wav`` measures the file; cut off, its exit code is 65."""
    x = 0.1 * np.sin(2 * np.pi * 1000 * np.arange(44100) / 44100)
    soundfile.write(tmp_path / "x.wav", x, 44100, "PCM_24")
    command = ["levels", "-", "--interval", "1h", "--quantity", "LZeq"]
    for n_bytes, code in ((None, 0), (90_000, 65)):
        stdin.pipe((tmp_path / "x.wav").read_bytes()[:n_bytes])
        assert main(command) == code
        out, err = capsys.readouterr()
        assert "standard input (WAV, PCM_24)" in out
        assert "-20.00" in out.splitlines()[-1]
        assert ("truncated: 132300 bytes announced, 89956 found" in err) == (code == 65)


def test_a_source_of_raw_samples_takes_bytes_that_were_read():
    """Bytes that were read before the source was made come first."""
    read_fd, write_fd = os.pipe()
    os.write(write_fd, np.arange(3, 6, dtype="<i2").tobytes())
    os.close(write_fd)
    source = PcmSource(48000.0, 1, "s16le", read_fd, np.arange(3, dtype="<i2").tobytes())
    np.testing.assert_array_equal(read(source)[0] * 2**15, np.arange(6))
    os.close(read_fd)
