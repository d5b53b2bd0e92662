"""``spectrod record`` of every kind of source: times, gaps, channels and end of the picture."""

import os
import resource
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import soundfile
from PIL import Image

from spectrod.cli import main
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.formats.sound import recover
from spectrod.lib.stats import CaptureStats
from spectrod.source.signal import SignalSource

FS = 8000
NUMPY = ["--engine", "numpy", "--levels=-100,0", "--width", "300", "--height", "64"]
START_NS = 1777609800 * 10**9


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def tone(frequency_hz, seconds, channels=1):
    n = np.arange(round(seconds * FS))
    return np.tile(0.1 * np.sin(2 * np.pi * frequency_hz * n / FS), (channels, 1)).T


def record(*arguments):
    assert main(["record", *arguments, "-o", "x.png", *NUMPY]) == 0
    return read_levels("x.png")


def strongest(levels, t_s):
    """Return the frequency of the strongest row at a time [Hz], or None in a gap."""
    column = levels.level[:, int(np.argmin(np.abs(levels.t - t_s)))]
    return None if np.isnan(column).any() else levels.f[int(np.argmax(column))]


def test_a_folder_is_drawn_with_its_gap_and_its_times(tmp_path):
    """Files of a folder are drawn at their times in UTC, with gaps between them."""
    (tmp_path / "site").mkdir()
    for name, frequency_hz in (("043000", 1000), ("043010", 2000), ("043040", 3000)):
        soundfile.write(f"site/20260501_{name}.wav", tone(frequency_hz, 10), FS)
    levels = record("site", "--time-axis", "utc")
    found = [strongest(levels, t_s) for t_s in (5, 15, 25, 35, 45)]
    assert found[2:4] == [None, None]
    assert [found[0], found[1], found[4]] == pytest.approx([1000, 2000, 3000], abs=FS / 128)
    pixels = levels.pixels
    assert (pixels.begin_utc_ns, pixels.gaps, pixels.gap_samples) == (START_NS, 1, 20 * FS)


@pytest.mark.parametrize(
    ("arguments", "begin_ns"),
    [([], START_NS), (["--start-time", "2026-05-01T05:30:00+01:00"], START_NS)],
)
def test_start_times(arguments, begin_ns):
    """A picture has the file's time, unless another one is given."""
    name = "20260501_050000.wav" if arguments else "20260501_043000.wav"
    soundfile.write(name, tone(1000, 1), FS)
    assert record(name, "--time-axis", "utc", *arguments).pixels.begin_utc_ns == begin_ns


def test_the_daemons_pace_and_loop_do_not_count(monkeypatch):
    """The daemon's settings of pace and loop do not apply to ``record``."""
    monkeypatch.setenv("SPECTROD_SOURCE_LOOP", "true")
    soundfile.write("x.wav", tone(1000, 20), FS)
    assert record("x.wav").pixels.duration_s == pytest.approx(20, abs=0.1)


def test_a_loop_needs_a_duration(capsys):
    """A file in a loop needs a duration."""
    soundfile.write("x.wav", tone(1000, 0.5), FS)
    assert main(["record", "x.wav", "--loop", "-o", "x.png"]) == 2
    assert "x.wav: has no end; give --duration" in capsys.readouterr().err
    levels = record("x.wav", "--loop", "--duration", "3")
    assert levels.pixels.duration_s == pytest.approx(3, abs=0.1)
    assert [strongest(levels, t_s) for t_s in (0.3, 2.7)] == pytest.approx([1000] * 2, abs=63)


def test_selected_channels_are_drawn():
    """The option --select leaves the other channels out."""
    soundfile.write("x.wav", np.hstack([tone(1000, 1), tone(2000, 1), tone(3000, 1)]), FS)
    levels = record("x.wav", "--select", "2")
    assert levels.pixels.channels == 1
    assert strongest(levels, 0.5) == pytest.approx(3000, abs=63)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "1"], "source.select=1: the source has channel 0 alone"),
        (["--select", "x"], "command line: source.select="),
        (["--pace", "slow"], "command line: source.pace='slow': must be one of realtime, full"),
    ],
)
def test_bad_source_options(arguments, message, capsys):
    """Impossible options are one line with the value and the rule."""
    soundfile.write("x.wav", tone(1000, 0.5), FS)
    assert main(["record", "x.wav", "-o", "x.png", *arguments]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


@pytest.mark.slow
def test_a_card_that_stays_away_does_not_outlast_the_duration(monkeypatch):
    """Missing samples count towards --duration even if the card stays away."""

    class Gone(SignalSource):
        is_live, is_stored = True, False

        def blocks(self, n_max):
            yield next(super().blocks(n_max))
            self._stopping.wait(30.0)

        def capture(self):
            return CaptureStats(waiting_for="it is gone")

    card = Gone("sine,1000,-20", float(FS), 1, "full")
    monkeypatch.setattr("spectrod.cli.record_samples.open_source", lambda *_: card)
    duration_s = record("soundcard", "--duration", "5").pixels.duration_s
    assert 4.0 < duration_s < 4.2  # a block at full speed: 2^15 samples


@pytest.mark.slow
def test_a_fifo_is_recorded_until_it_is_interrupted(tmp_path):
    """Ctrl-C ends a FIFO's recording with a picture of two writers, their gap, and code 130."""
    os.mkfifo(tmp_path / "mic")
    arguments = ["pcm:mic", "--rate", str(FS), "-o", "x.png", *NUMPY, "--log-level", "info"]
    process = subprocess.Popen(
        [sys.executable, "-m", "spectrod", "record", *arguments], stderr=subprocess.PIPE, text=True
    )
    for number in range(2):
        _read_until(process, "waiting: no program writes to mic")
        with (tmp_path / "mic").open("wb") as fifo:
            samples = np.round(tone(1000, 1) * 32768).astype("<i2")
            fifo.write(samples.tobytes())
        assert number or not threading.Event().wait(1.5)
    _read_until(process, "waiting: no program writes to mic")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    pixels = read_levels("x.png").pixels
    assert (pixels.gaps, pixels.begin_utc_ns > START_NS) == (1, True)
    assert 0.3 * FS < pixels.gap_samples < 10 * FS


@pytest.mark.slow
@pytest.mark.parametrize(("source", "left"), [("-", ["x.wav.part"]), ("pcm:x.raw", [])])
def test_sound_of_a_pipe_is_kept_for_recovery(tmp_path, source, left):
    """A failing disk leaves a pipe's sound for recovery, and removes a copy of a file's sound."""
    integers = np.random.default_rng(7).integers(-32768, 32768, 400_000, np.int16)
    (tmp_path / "x.raw").write_bytes(integers.tobytes())
    limit = 600_000

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    arguments = ["--rate", "8000", "--engine", "numpy", "-o", "x.wav", "--subtype", "s16"]
    with (tmp_path / "x.raw").open("rb") as raw:
        ended = subprocess.run(
            [sys.executable, "-m", "spectrod", "record", source, *arguments],
            stdin=raw,
            stderr=subprocess.PIPE,
            check=False,
            preexec_fn=limited,
        )
    assert (ended.returncode, b"x.wav: File too large" in ended.stderr) == (74, True)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "x.raw") == left
    for name in left:
        found, _ = soundfile.read(recover(name).path, dtype="int16")
        assert 0 < len(found) < limit // 2
        np.testing.assert_array_equal(found, integers[: len(found)])


def _read_until(process, text):
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"it has ended without {text!r}")


def test_a_picture_of_a_pipe_has_a_title(monkeypatch):
    """A pipe's picture has a title other than a hyphen and the receiver's axis."""
    x = np.exp(2j * np.pi * 0.25 * np.arange(8000))
    pairs = np.stack([x.real, x.imag], axis=1)
    np.round(pairs * 127).astype(np.int8).tofile("x.cs8")
    with open("x.cs8", "rb") as pipe:  # noqa: PTH123 - as a standard input
        monkeypatch.setattr("sys.stdin", pipe)
        levels = record(
            "-", "--rate", "8k", "--format", "cs8", "--center-frequency", "100.5M", "--start-time",
            "2026-05-01T04:30:00Z",
        )  # fmt: skip
    assert Image.open("x.png").text["Title"] == "standard input (cs8, 8 kHz, I/Q)"
    assert strongest(levels, 0.5) == pytest.approx(100.5e6 + 2000, abs=FS / 64)
    assert levels.pixels.center_frequency_hz == 100.5e6
    assert levels.level.max() == pytest.approx(-0.07, abs=0.5)
