"""A single picture, with and without a terminal, and the options of the view."""

import argparse
import io
import os
import subprocess
import sys

import numpy as np
import pytest

from spectrod.apps.view.axes import LevelRange
from spectrod.apps.view.command import _ballistics_s, _decay, _levels, add_arguments, run
from spectrod.apps.view.live import ViewOptions, view
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError, UnavailableError
from spectrod.lib.stats import Stats

SPEC = SpectrumSpec(fs=48000.0, channels=1, win_length=256, hop=128, scaling="dbfs")


@pytest.fixture
def publisher():
    publisher = Publisher(["tcp://127.0.0.1:*"])
    publisher.add_source("mic", lambda: Stats("running", "test", "numpy", 48000.0, 1))
    publisher.start()
    yield publisher
    publisher.stop()


@pytest.fixture
def feed(publisher):
    """Submit one more frame at each call, with a tone of -20 dBFS at 1500 Hz."""
    numbers = iter(range(10**9))

    def submit():
        index = np.array([next(numbers) * SPEC.hop])
        values = np.full((1, 1, SPEC.n_bins), -100.0, np.float32)
        values[0, 0, 7:10] = -26.02, -20.0, -26.02
        publisher.sources[0].write(SpectrumBatch(values, index, index, index, SPEC, "numpy"))

    return submit


def one_picture(endpoint, feed, path, **options):
    """Return the lines of a single picture in a file."""

    def stop():
        feed()
        return False

    with path.open("w", encoding="utf-8") as out:
        settings = ViewOptions(once_s=0.2, **options)
        view(endpoint, out=out, keys=io.StringIO(), stop=stop, options=settings)
    return path.read_text("utf-8").splitlines()


def test_one_picture_is_text(publisher, feed, tmp_path, monkeypatch):
    """A single picture in a file has the size of COLUMNS and LINES, and no escape sequence."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "20")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    lines = one_picture(publisher.endpoints[0], feed, tmp_path / "picture")
    assert len(lines) == 19
    assert max(map(len, lines)) <= 60
    assert lines[1].startswith("peak 1500.0 Hz -20.0 dBFS")
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == publisher.endpoints[0]
    assert any("█" in line for line in lines)


def test_one_picture_in_ascii(publisher, feed, tmp_path, monkeypatch):
    """With --ascii a picture has ASCII characters only, in a UTF-8 locale too."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    lines = one_picture(publisher.endpoints[0], feed, tmp_path / "picture", is_ascii=True)
    assert "".join(lines).isascii()
    assert any("##" in line for line in lines)


def test_without_a_daemon_one_picture_is_an_error(tmp_path, monkeypatch):
    """Without a daemon, a single picture ends with an error that names the endpoint."""
    monkeypatch.setattr("spectrod.apps.view.live.FIRST_TIMEOUT_S", 0.2)
    path = tmp_path / "picture"
    expected = r"tcp://127\.0\.0\.1:1: no spectrum within 0\.2 s; is the daemon running there\?"
    with path.open("w") as out, pytest.raises(UnavailableError, match=expected):
        view("tcp://127.0.0.1:1", out=out, keys=io.StringIO(), options=ViewOptions(once_s=1.0))
    assert path.read_text() == ""


@pytest.mark.slow
def test_a_reader_that_has_gone_ends_quietly(publisher, feed):
    """If the reader of the output has ended, so does the program, without a word."""
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-m", "spectrod", "view", publisher.endpoints[0], "--once"]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        while process.poll() is None:
            feed()
            try:
                process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
        assert process.stderr.read() == b""
        assert process.returncode == 0


@pytest.mark.parametrize("text", ["-10,5", "-400,-300", "-100,200", "nan,0", "inf,inf"])
def test_levels_out_of_bounds_are_refused(text):
    """Levels of the command line obey the bounds of the keys."""
    with pytest.raises(argparse.ArgumentTypeError, match="20 to 240 dB apart"):
        _levels(text)


@pytest.mark.parametrize("text", ["", "x", "1", "1,2,3", "1;2"])
def test_levels_are_two_numbers(text):
    """Anything but two numbers or auto is refused with the rule."""
    with pytest.raises(argparse.ArgumentTypeError, match=r"must be BOTTOM,TOP in dB, or auto"):
        _levels(text)


def test_levels_of_the_command_line():
    """Two numbers are the range, auto is kept."""
    assert _levels("-100,-20") == LevelRange(-100.0, -20.0)
    assert _levels("auto") == "auto"


def test_a_duration_needs_a_single_picture():
    """--duration without --once is refused before anything is opened."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(ConfigError, match="--duration: is the time of a single picture"):
        run(parser.parse_args(["--duration", "3"]))


@pytest.mark.parametrize(
    ("parse", "text", "rule"),
    [
        (_decay, "-1", "'-1': must be 0 to 1000 dB/s"),
        (_decay, "nan", "'nan': must be 0 to 1000 dB/s"),
        (_decay, "fast", "'fast': must be 0 to 1000 dB/s"),
        (_ballistics_s, "3601", "'3601': must be 0 to 3600 s"),
        (_ballistics_s, "soon", "'soon': must be a time"),
    ],
)
def test_ballistics_out_of_bounds_are_refused(parse, text, rule):
    """A decay or a time beyond its bounds is refused with the value and the rule."""
    with pytest.raises(argparse.ArgumentTypeError, match=rule):
        parse(text)
    assert (_decay("6.5"), _ballistics_s("125ms")) == (6.5, 0.125)
