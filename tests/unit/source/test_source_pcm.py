"""Raw samples from pipes, FIFOs and files: exact values, gaps and times."""

import fcntl
import json
import os
import re
import select
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.analysis.spectrogram import spectrogram
from spectrod.cli import main
from spectrod.config.config import SourceConfig
from spectrod.lib.durations import parse_frequency
from spectrod.lib.errors import ConfigError, InputError, UnavailableError
from spectrod.lib.job_pool import JobPool
from spectrod.source.files.codings import CODINGS, decode
from spectrod.source.files.fifo import FifoSource
from spectrod.source.files.pcm import PcmDecoder, PcmSource, describe_raw
from spectrod.source.open_source import open_source
from spectrod.source.ring import SampleRing

FS = 48000


def n_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


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
        ("s8", b"\x80\x00\x7f", [-1.0, 0.0, 127 / 128]),
        ("cu8", b"\x00\x7f\x80\xff", [-127.5 / 128, -0.5 / 128, 0.5 / 128, 127.5 / 128]),
        ("cs8", b"\x80\x40", [-1.0, 0.5]),
        ("cs16", b"\x00\x80\x00\x40", [-1.0, 0.5]),
        ("cs32", b"\x00\x00\x00\x80\x00\x00\x00\x40", [-1.0, 0.5]),
        ("cf32", np.array([0.25, -3.0], "<f4").tobytes(), [0.25, -3.0]),
        ("cf64", np.array([0.25, -3.0], "<f8").tobytes(), [0.25, -3.0]),
    ],
)
def test_raw_formats(format_, data, expected):
    """Each raw format decodes to fractions of full scale."""
    decoded = decode(data, CODINGS[format_])
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded, np.float32(expected))


IQ_CODES = {
    "cu8": lambda x: np.round(x * 128 - 0.5).astype(int) + 128,
    "cs8": lambda x: np.round(x * 128),
    "cs16": lambda x: np.round(x * 2**15),
    "cs32": lambda x: np.round(x * 2**31),
    "cf32": lambda x: x,
    "cf64": lambda x: x,
}
IQ_DTYPES = {"cu8": "u1", "cs8": "i1", "cs16": "<i2", "cs32": "<i4", "cf32": "<f4", "cf64": "<f8"}


def iq_file(tmp_path, format_, n=1000):
    """Write a tone of -6.02 dBFS, 25 periods in 1000 samples, above the centre frequency."""
    tone = 0.5 * np.exp(2j * np.pi * np.arange(n) / 40 + 0.1j)
    pairs = np.stack([tone.real, tone.imag], axis=1)
    path = tmp_path / f"tone.{format_}"
    path.write_bytes(IQ_CODES[format_](pairs).astype(IQ_DTYPES[format_]).tobytes())
    return path


@pytest.mark.parametrize("format_", IQ_CODES)
def test_a_tone_in_iq_samples_reads_its_level_and_frequency(tmp_path, collect, format_):
    """Each I/Q format implies pairs, and a tone above the centre appears only there."""
    path = iq_file(tmp_path, format_)
    source = open_source(SourceConfig(uri=f"pcm:{path}", samplerate=FS, format=format_), "full")
    by_suffix = open_source(SourceConfig(uri=f"pcm:{path}", samplerate=FS), "full")
    assert by_suffix.description == source.description
    assert source.is_iq
    assert by_suffix.is_iq
    with pytest.raises(InputError, match=rf"has no header; raw samples are read with pcm:{path}"):
        open_source(SourceConfig(uri=str(path)), "full")
    assert source.channels == 2
    ((_, samples, *_),) = collect(source)
    spectra = spectrogram(
        samples, FS, win_length=1000, nfft=1000, window="rectangular", scaling="dbfs", iq=True,
        engine="numpy",
    )  # fmt: skip
    levels = spectra.values[0, :, 0]
    assert spectra.f[levels.argmax()] == pytest.approx(FS / 40)
    assert levels.max() == pytest.approx(-6.02, abs=0.05)
    assert levels[spectra.f == 0.0] < -100.0
    assert levels[np.isclose(spectra.f, -FS / 40)] < -50.0


def test_unsigned_iq_has_its_middle_between_two_codes(tmp_path, collect):
    """The same bytes read as audio, where silence is 128, have a DC line that I/Q does not have."""
    path = iq_file(tmp_path, "cu8")
    settings = SourceConfig(uri=f"pcm:{path}", samplerate=FS, format="u8", iq=True)
    source = open_source(settings, "full")
    assert source.channels == 2  # two channels because of I/Q
    ((_, samples, *_),) = collect(source)
    np.testing.assert_allclose(samples.mean(axis=1), -0.5 / 128, atol=1e-6)


@pytest.mark.parametrize("cuts", [(1, 2, 3), (5, 11, 12), ()])
def test_bytes_may_be_cut_anywhere(cuts):
    """Chunks may end within a sample: the remaining bytes are kept for the next chunk."""
    integers = np.arange(-6, 6, dtype="<i2").reshape(-1, 2)
    data = integers.tobytes() + b"\x01"
    decoder = PcmDecoder("s16le", 2)
    parts = [decoder.decode(data[a:b]) for a, b in zip((0, *cuts), (*cuts, len(data)), strict=True)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1) * 2**15, integers.T)
    assert decoder.rest == b"\x01"


# ---- standard input


def pipe_source(data, channels=2, format_="s16le"):
    """Make a source that reads the data from a real pipe, written by another thread."""
    read_fd, write_fd = os.pipe()

    def write():
        with os.fdopen(write_fd, "wb") as pipe:
            pipe.write(data)

    threading.Thread(target=write).start()
    return PcmSource(48000.0, channels, format_, read_fd), read_fd


def test_pipe_gives_every_sample(collect):
    """Interleaved samples pass through a pipe unchanged in any chunks."""
    integers = np.random.default_rng(3).integers(-32768, 32768, (70001, 2)).astype("<i2")
    source, fd = pipe_source(integers.tobytes())
    ((index, samples, *_),) = collect(source)
    assert index == 0
    np.testing.assert_array_equal(samples, integers.T / np.float32(32768))
    os.close(fd)


def test_times_of_a_pipe_start_with_its_first_samples(collect):
    """The first sample has the time at which it arrived, not that of the source's start."""
    read_fd, write_fd = os.pipe()
    source = PcmSource(48000.0, 1, "s16le", read_fd)
    ring = SampleRing(48000.0, 1, 1024)
    source.start(ring)
    after_start_ns = time.monotonic_ns()
    threading.Event().wait(0.05)
    os.write(write_fd, bytes(200))
    os.close(write_fd)
    assert ring.data.wait(5.0)
    assert ring.read(100).t_mono_ns > after_start_ns + 0.04e9
    source.stop()
    os.close(read_fd)
    ring.release()


def test_pipe_that_ends_inside_a_sample(collect):
    """A stream that ends within a sample is an error, as it contradicts its format."""
    source, fd = pipe_source(b"\0" * 4003)
    with pytest.raises(InputError, match=r"ends with 3 bytes, not a whole number of 4-byte"):
        collect(source)
    os.close(fd)


def test_closed_standard_input(monkeypatch):
    """A command that is started without standard input reports that it is closed."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input: closed; - reads raw samples from it"):
        open_source(SourceConfig(uri="-"), "full")


def test_input_that_cannot_be_read(tmp_path, collect):
    """A read error ends the stream with the system's reason."""
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(InputError, match="standard input: Is a directory"):
        collect(PcmSource(48000.0, 1, "s16le", fd))
    os.close(fd)


def test_pipe_can_be_stopped_while_nothing_comes():
    """A stop does not wait for a silent writer, may be repeated, and leaves no descriptor."""
    n_open = n_descriptors()
    read_fd, write_fd = os.pipe()
    source = PcmSource(48000.0, 1, "s16le", read_fd)
    ring = SampleRing(48000.0, 1, 1024)
    source.start(ring)
    source.stop()
    source.stop()
    assert ring.exhausted
    assert source.failure is None
    os.close(read_fd)
    os.close(write_fd)
    ring.release()
    assert n_descriptors() == n_open


def test_a_silent_pipe_is_waited_for(monkeypatch):
    """A source with a silent writer reports that it waits, so a watchdog sees no hang."""
    for limit in ("_SILENCE_S", "LOOK_AGAIN_S"):
        monkeypatch.setattr(f"spectrod.source.files.pcm.{limit}", 0.05)
    read_fd, write_fd = os.pipe()
    source = PcmSource(48000.0, 1, "s16le", read_fd)
    changed = threading.Semaphore(0)
    ring = SampleRing(48000.0, 1, 1024)
    source.start(ring, changed.release)
    assert changed.acquire(timeout=10)
    assert source.capture().waiting_for == "nothing is written to standard input"
    os.write(write_fd, bytes(2))
    assert changed.acquire(timeout=10)
    assert not source.capture().waiting_for or source.capture().attempts > 1
    source.stop()
    os.close(read_fd)
    os.close(write_fd)
    ring.release()


# ---- files of raw samples


@pytest.mark.parametrize(("format_", "dtype"), [("s16le", "<i2"), ("f32le", "<f4")])
def test_raw_file_gives_its_exact_samples(tmp_path, collect, format_, dtype):
    """A file of raw samples has a known length and is read to its last sample."""
    x = np.random.default_rng(5).integers(-100, 100, (10007, 3)).astype(dtype)
    path = tmp_path / "20260501_043000Z.raw"
    path.write_bytes(x.tobytes())
    uri = f"pcm:{path}"
    source = open_source(SourceConfig(uri=uri, channels=3, format=format_, samplerate=8000), "full")
    assert (source.n_samples, source.name) == (10007, "20260501_043000Z")
    ((_, samples, _, utc_ns),) = collect(source)
    np.testing.assert_array_equal(samples, decode(x.tobytes(), CODINGS[format_]).reshape(-1, 3).T)
    assert utc_ns == 1777609800 * 10**9


@pytest.mark.parametrize("flag", ["--samplerate", "--rate"])
@pytest.mark.parametrize("rate", ["44099.5", "48000.0625", "1.5", "2.0480001M", "22.05k"])
def test_rates_may_have_a_fraction(tmp_path, monkeypatch, rate, flag):
    """A rate with a fraction is that of the spectra, of the times of rows and of SigMF files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.raw").write_bytes(np.arange(2000, dtype="<i2").tobytes())
    command = ["record", "pcm:x.raw", flag, rate, "--win-length", "64", "--hop", "1000"]
    options = ["--engine", "numpy", "--start-time", "2026-05-01T00:00:00Z"]
    assert main([*command, *options, "-o", "x.npz"]) == 0
    fs = parse_frequency(rate)
    with np.load("x.npz") as found:
        np.testing.assert_allclose(found["frequency"], np.arange(33) * fs / 64, rtol=1e-12)
        (step_ns,) = np.diff(found["t_utc_ns"])
        assert abs(step_ns - 1000 / fs * 1e9) <= 1
    assert main([*command[:4], "-o", "x.sigmf-meta"]) == 0
    assert json.loads(Path("x.sigmf-meta").read_text())["global"]["core:sample_rate"] == fs


def test_sound_files_have_whole_rates(tmp_path, monkeypatch, capsys):
    """A sound file of a rate with a fraction is refused, since its header cannot have one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.raw").write_bytes(bytes(2000))
    assert main(["record", "pcm:x.raw", "--rate", "44099.5", "-o", "x.wav"]) == 2
    text = "fs=44099.5: a sound file's rate must be a whole number of Hz"
    assert text in capsys.readouterr().err
    assert not (tmp_path / "x.wav").exists()


@pytest.mark.parametrize(
    ("rate", "rule"),
    [
        ("0.0001", "samplerate=0.0001: must be 0, or 0.001 to 1e+08 Hz"),
        ("-1", "samplerate='-1': must be a number from 0 to 100000000"),
        ("1e9", "samplerate='1e9': must be a number from 0 to 100000000"),
        ("nan", "samplerate="),
        ("inf", "samplerate="),
    ],
)
def test_rates_that_are_refused(tmp_path, capsys, rate, rule):
    """A rate that is no number, negative, tiny or beyond 100 MHz is one error."""
    (tmp_path / "x.raw").write_bytes(bytes(2000))
    command = ["record", f"pcm:{tmp_path}/x.raw", "--rate", rate, "-o", str(tmp_path / "x.png")]
    assert main(command) == 2
    assert rule in capsys.readouterr().err


def test_the_own_rate_of_a_file_is_compared_with_its_fraction(tmp_path):
    """A rate that differs from a file's own by a fraction is another one."""
    soundfile.write(tmp_path / "x.wav", np.zeros(100), 44100)
    uri = str(tmp_path / "x.wav")
    assert open_source(SourceConfig(uri=uri, samplerate=44100.0), "full").fs == 44100
    with pytest.raises(ConfigError, match=r"samplerate=44100.4: .*x\.wav has 44100, and a file's"):
        open_source(SourceConfig(uri=uri, samplerate=44100.4), "full")


@pytest.mark.parametrize(
    ("name", "settings", "is_said"),
    [
        ("x.cu8", {}, True),
        ("x.raw", {"iq": True}, True),
        ("x.raw", {"format": "cs16"}, True),
        ("x.cu8", {"samplerate": 2048000}, False),
        ("x.raw", {}, False),
    ],
)
def test_an_assumed_rate_of_iq_is_said(tmp_path, caplog, name, settings, is_said):
    """I/Q without a rate is read at the default rate with one line that says so."""
    (tmp_path / name).write_bytes(bytes(8000))
    uri = f"pcm:{tmp_path / name}"
    assert open_source(SourceConfig(uri=uri, **settings), "full").is_iq == (
        settings != {} or name == "x.cu8"
    )
    line = f"{uri}: I/Q without a sample rate: 48000 Hz is assumed (--samplerate)"
    assert caplog.messages == ([line] if is_said else [])


@pytest.mark.parametrize("n", [1, 10007])
def test_raw_file_in_a_loop(tmp_path, collect, n):
    """A file of raw samples in a loop repeats to the sample."""
    x = np.arange(n, dtype="<i2") + 1
    (tmp_path / "x.raw").write_bytes(x.tobytes())
    source = open_source(SourceConfig(uri=f"pcm:{tmp_path}/x.raw", loop=True), "full")
    ((_, samples, *_),) = collect(source, n_samples=70_001)
    np.testing.assert_array_equal(samples[0] * 2**15, np.resize(x, 70_001))


def test_raw_file_that_shrinks(tmp_path, collect):
    """A file that is cut while it is played is an error and not a short recording."""
    path = tmp_path / "x.raw"
    path.write_bytes(bytes(40_000))
    source = open_source(SourceConfig(uri=f"pcm:{path}"), "full")
    path.write_bytes(bytes(20_000))
    with pytest.raises(InputError, match=r"x\.raw: truncated: 40000 bytes announced, 20000 found"):
        collect(source)


def bind_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b""), "x: empty file"),
        (lambda path: path.write_bytes(b"123"), "x: 3 bytes are not a whole number of 2-byte samp"),
        (lambda path: path.mkdir(), "x: neither a FIFO nor a file of raw samples"),
        (bind_socket, "x: neither a FIFO nor a file of raw samples"),
    ],
)
def test_unusable_raw_inputs(tmp_path, monkeypatch, make, message):
    """An input that is empty, cut or of another file type is one clear error."""
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    make(tmp_path / "x")
    with pytest.raises(InputError, match=re.escape(message)):
        open_source(SourceConfig(uri=f"pcm:{tmp_path}/x"), "full")


def test_raw_input_without_a_path():
    """The URI pcm: without a path is an error that lists the valid forms."""
    with pytest.raises(ConfigError, match=r"pcm:: must be pcm:PATH, a FIFO or a file of raw"):
        open_source(SourceConfig(uri="pcm:"), "full")


def test_a_fifo_that_may_not_be_read(tmp_path, monkeypatch):
    """A FIFO without read permission is unavailable, and its writer stays blocked."""
    os.mkfifo(tmp_path / "x")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UnavailableError, match="x: Permission denied"):
        open_source(SourceConfig(uri=f"pcm:{tmp_path}/x"), "full")


def test_a_raw_input_that_is_absent_may_come(tmp_path):
    """A path that another program may still make is unavailable; an impossible one is an error."""
    with pytest.raises(UnavailableError, match=r"x: No such file or directory$"):
        open_source(SourceConfig(uri=f"pcm:{tmp_path}/x"), "full")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"x: Not a directory$"):
        open_source(SourceConfig(uri=f"pcm:{tmp_path}/file/x"), "full")


# ---- FIFOs


class Listener:
    """A running FIFO source, with its messages and its data."""

    pool = None

    def __init__(self, path, source=None, **settings):
        self.source = source or open_source(SourceConfig(uri=f"pcm:{path}", **settings), "full")
        self.changed = threading.Condition()
        self.ring = SampleRing(self.source.fs, self.source.channels, 1 << 16)
        if self.pool:
            assert self.source.join(self.pool)
        self.source.start(self.ring, self._note)

    def _note(self):
        with self.changed:
            self.changed.notify_all()

    def wait_until(self, is_so):
        """Wait until the source's message matches."""
        with self.changed:
            assert self.changed.wait_for(lambda: is_so(self.source.capture()), timeout=10)

    def read(self, n):
        """Read some samples; return one block for each stretch."""
        blocks = []
        while n:
            block = self.ring.read(n)
            if block is None:
                assert self.ring.data.wait(10.0)
            else:
                blocks.append(block)
                n -= block.n_samples
        return blocks

    def close(self):
        self.source.stop()
        self.ring.release()


@pytest.fixture(params=["thread", "pool"])
def fifo(tmp_path, request, monkeypatch):
    """Make a FIFO, which a thread of its own or a pool reads."""
    path = tmp_path / "mic.fifo"
    os.mkfifo(path)
    pool = JobPool() if request.param == "pool" else None
    monkeypatch.setattr(Listener, "pool", pool)
    yield path
    if pool:
        pool.close()


@pytest.fixture
def listener(fifo):
    listener = Listener(fifo)
    yield listener
    listener.close()


def waits(capture):
    return bool(capture.waiting_for)


def flows(capture):
    return not capture.waiting_for


def test_a_fifo_waits_for_writers_and_counts_missed_samples(fifo, listener, caplog):
    """Between two writers the index advances by the elapsed time, and times stay right."""
    listener.wait_until(waits)
    assert listener.source.capture().waiting_for == f"no program writes to {fifo}"
    assert (listener.source.name, listener.source.n_samples) == ("mic", None)
    fifo.write_bytes(np.arange(1, 1001, dtype="<i2").tobytes())
    (first,) = listener.read(1000)
    gone_ns = time.monotonic_ns()
    listener.wait_until(waits)
    threading.Event().wait(0.1)
    back_ns = time.monotonic_ns()
    fifo.write_bytes(np.arange(1001, 1502, dtype="<i2").tobytes())
    (second,) = listener.read(501)
    now_ns = time.monotonic_ns()
    assert (first.sample_index, first.discontinuity) == (0, False)
    np.testing.assert_array_equal(second.samples[0] * 2**15, np.arange(1001, 1502))
    assert second.discontinuity
    assert second.lost_samples == second.sample_index - 1000
    # The second's first sample is 501 samples before its arrival, the first's last at its own.
    burst_ns = 501e9 / FS
    assert second.lost_samples >= (back_ns - gone_ns - burst_ns) * 1e-9 * FS - 1
    assert second.lost_samples <= (now_ns - first.t_mono_ns - burst_ns) * 1e-9 * FS - 1000 + 1
    assert back_ns - burst_ns - 1 <= second.t_mono_ns <= now_ns - burst_ns + 1
    assert listener.source.capture().restarts == 1
    assert "written again" not in caplog.text  # logged at level info
    assert "waiting: no program writes to" in caplog.text


def test_a_fifo_marks_even_the_shortest_pause(fifo, listener):
    """Writers without a pause between them still leave a discontinuity of at least one sample."""
    for number in range(3):
        fifo.write_bytes(bytes(20_000))
        lost = [block.lost_samples for block in listener.read(10_000)]
        assert (lost[0] >= 1) == (number > 0)
        assert not any(lost[1:])
        listener.wait_until(waits)


def test_a_writer_that_leaves_half_a_sample(fifo, listener, caplog):
    """Bytes of an incomplete sample are dropped, counted and logged; later samples are right."""
    fifo.write_bytes(b"\x01\x00\x02\x00\x03")
    np.testing.assert_array_equal(listener.read(2)[0].samples[0] * 2**15, [1, 2])
    listener.wait_until(waits)
    fifo.write_bytes(b"\x04\x00")
    np.testing.assert_array_equal(listener.read(1)[0].samples[0] * 2**15, [4])
    assert listener.source.dropped_bytes == 1
    assert "left 1 bytes of an unfinished sample, dropped; 1 bytes so far" in caplog.text


def test_a_writer_that_writes_nothing(fifo, listener):
    """A writer that opens and closes without data changes nothing."""
    listener.wait_until(waits)
    with fifo.open("wb"):
        pass
    fifo.write_bytes(b"\x01\x00")
    (block,) = listener.read(1)
    assert (block.sample_index, block.discontinuity) == (0, False)
    assert listener.source.capture().restarts == 0


@pytest.mark.parametrize("first", [b"\x01\x00", b"\x01"])
def test_a_silent_writer_is_waited_for(fifo, monkeypatch, first):
    """A silent writer is reported and polled, and its next samples follow."""
    for limit in ("_SILENCE_S", "LOOK_AGAIN_S"):
        monkeypatch.setattr(f"spectrod.source.files.pcm.{limit}", 0.05)
    listener = Listener(fifo)
    writer = os.open(fifo, os.O_WRONLY)
    os.write(writer, first)
    silent = f"nothing is written to {fifo}"
    listener.wait_until(lambda capture: capture.waiting_for == silent)
    attempts = listener.source.capture().attempts
    while listener.source.capture().attempts < attempts + 2:
        select.select([], [], [], 0.01)
    os.write(writer, b"\x01\x00\x01\x00"[len(first) :])
    blocks = listener.read(2)
    listener.wait_until(flows)
    os.close(writer)
    listener.close()
    assert sum(block.n_samples for block in blocks) == 2
    assert not any(block.discontinuity for block in blocks)


@pytest.mark.slow
def test_a_fifo_that_is_made_again(fifo, listener):
    """A FIFO that is removed and created again is found within a second."""
    listener.wait_until(waits)
    fifo.unlink()
    listener.wait_until(lambda capture: "No such file" in capture.waiting_for)
    os.mkfifo(fifo)
    fifo.write_bytes(b"\x01\x00")
    assert listener.read(1)[0].n_samples == 1


def patient_listener(fifo):
    """Listen to a FIFO whose next writer may take half a minute."""
    return Listener(fifo, FifoSource(str(fifo), 48000.0, 1, "s16le", hand_over_s=30.0))


def test_a_writer_that_comes_with_the_fifo_is_not_reported_as_missing(fifo, monkeypatch, caplog):
    """A FIFO that is made again is reported once: as missing, not as one without a writer."""
    monkeypatch.setattr("spectrod.source.files.fifo.LOOK_AGAIN_S", 0.01)
    listener = patient_listener(fifo)
    with fifo.open("wb", buffering=0) as writer:
        writer.write(b"\x01\x00")
        assert listener.read(1)[0].n_samples == 1
        fifo.unlink()
    listener.wait_until(waits)
    os.mkfifo(fifo)
    fifo.write_bytes(b"\x01\x00")
    assert listener.read(1)[0].discontinuity
    listener.close()
    assert caplog.messages == [f"waiting: {fifo}: No such file or directory"]


def test_a_stop_is_not_reported_as_waiting(fifo, caplog):
    """A source that is stopped before it has waited long enough for a writer reports nothing."""
    listener = patient_listener(fifo)
    while not listener.source.capture().attempts:
        select.select([], [], [], 0.001)
    listener.close()
    assert caplog.messages == []


def test_a_slow_reader_holds_the_writer_back(fifo):
    """Data beyond ring and pipe wait in the writer, and none are lost."""
    listener = Listener(fifo, channels=2, select=(1,))
    data = np.arange(400_000, dtype="<i2")
    writer = threading.Thread(target=fifo.write_bytes, args=(data.tobytes(),))
    writer.start()
    writer.join(0.2)
    assert writer.is_alive()
    blocks = listener.read(200_000)
    writer.join(10)
    np.testing.assert_array_equal(
        np.concatenate([block.samples[0] for block in blocks]) * 2**15, data[1::2]
    )
    assert not any(block.discontinuity for block in blocks)
    listener.close()


def test_what_nobody_wants_is_read_in_large_pieces(tmp_path):
    """A pool reads a FIFO rarely while its samples may come late, but before it is half full."""
    path = tmp_path / "mic.fifo"
    os.mkfifo(path)
    source = open_source(SourceConfig(uri=f"pcm:{path}", samplerate=8000), "full")
    pool = JobPool()
    source.join(pool)
    ring = source.open_reader()
    ring.relax(60.0)
    source.start(ring)
    with path.open("wb", buffering=0) as writer:
        writer.write(bytes(2))
        assert ring.wait(10.0)
        half_s = fcntl.fcntl(writer.fileno(), fcntl.F_GETPIPE_SZ) / 2 / 16000
        assert source._pause_s(2) == pytest.approx(half_s)
        assert source._pause_s(1 << 20) == 0.0  # it was fuller: read on
        ring.relax(0.0)
        assert source._pause_s(2) == 0.005
        writer.write(bytes(2000))
    # The end of the writer ends the pause: nothing is read late.
    while ring.written < 1001:
        assert ring.wait(10.0)
    source.stop()
    ring.release()
    pool.close()


@pytest.mark.parametrize("state", ["no writer", "silent writer", "full ring"])
def test_a_fifo_can_be_stopped_in_any_wait(fifo, state):
    """A stop interrupts every wait, for writer, samples or room, and leaves no descriptor."""
    n_open = n_descriptors()
    listener = Listener(fifo)
    writer = None
    if state == "no writer":
        listener.wait_until(waits)
    else:
        writer = os.open(fifo, os.O_WRONLY)
        os.write(writer, bytes(2))
        listener.wait_until(flows)
    if state == "full ring":
        while select.select([], [writer], [], 0.2)[1]:
            os.write(writer, bytes(4096))
    listener.close()
    assert listener.source._filling.wait(0.0)
    assert listener.source.failure is None
    if writer is not None:
        os.close(writer)
    assert n_descriptors() == n_open


def test_a_fifo_that_breaks_is_a_failure(fifo, monkeypatch, collect):
    """A read error of a FIFO ends the stream with the system's reason."""
    source = FifoSource(str(fifo), 48000.0, 1, "s16le")
    real_read = os.read

    def read(fd, n):
        if fd == source._fd:
            raise OSError(5, "Input/output error")
        return real_read(fd, n)

    threading.Thread(target=fifo.write_bytes, args=(b"",)).start()
    monkeypatch.setattr("spectrod.source.files.fifo.os.read", read)
    with pytest.raises(InputError, match=r"mic.fifo: Input/output error"):
        collect(source)


@pytest.mark.parametrize(
    ("format_", "fs", "channels", "text"),
    [
        ("cu8", 2.048e6, 2, "standard input (cu8, 2.048 MHz, I/Q)"),
        ("cf32", 1e9, 4, "standard input (cf32, 1 GHz, 2 I/Q signals)"),
        ("s16le", 44100.0, 1, "standard input (s16le, 44.1 kHz, 1 channel)"),
        ("s8", 12.5, 3, "standard input (s8, 12.5 Hz, 3 channels)"),
    ],
)
def test_raw_samples_are_described(format_, fs, channels, text):
    """The description of raw samples, for logs and titles, has their format."""
    assert describe_raw("standard input", format_, fs, channels) == text
