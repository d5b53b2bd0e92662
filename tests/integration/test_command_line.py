"""Commands as a user runs them: their outputs and their errors."""

import errno
import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest
import soundfile

from spectrod.analysis.numpy_engine import Computed, NumpyEngine, NumpyPlan
from spectrod.apps.doctor.selftest import checks
from spectrod.cli import main
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.lib.errors import UnavailableError
from spectrod.source.base import PulledSource

FS = 48000


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def tone(path, frequency_hz=1000.0, level_dbfs=-20.0, seconds=1.0, subtype="FLOAT"):
    n = np.arange(round(seconds * FS))
    x = 10 ** (level_dbfs / 20) * np.sin(2 * np.pi * frequency_hz * n / FS)
    soundfile.write(path, x, FS, subtype=subtype)
    return x


# ---- bad input: one line, the right exit code, no file left


def write_poisoned(path, value):
    x = np.zeros(FS, np.float32)
    x[12345] = value
    soundfile.write(path, x, FS, subtype="FLOAT")


def write_truncated(path):
    tone(path)
    path.write_bytes(path.read_bytes()[:-5000])


BAD_FILES = {
    "missing": (lambda _: None, "x.wav: No such file or directory"),
    "empty": (lambda path: path.write_bytes(b""), "x.wav: empty file"),
    "truncated": (write_truncated, "x.wav: truncated: 192"),
    "text": (lambda path: path.write_text("hello\n" * 99), "x.wav: not a sound file: Format not"),
    "nan": (lambda path: write_poisoned(path, np.nan), "sample 12345 of channel 0 is nan: must be"),
    "inf": (lambda path: write_poisoned(path, np.inf), "sample 12345 of channel 0 is inf: must be"),
    "one sample": (
        lambda path: tone(path, seconds=1 / FS),
        "x.wav: too short: 1 of the 2 samples that a spectrum needs",
    ),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files(kind, tmp_path, capsys):
    """An unusable recording, in strict mode also a truncated one, is one line with code 2."""
    make, message = BAD_FILES[kind]
    make(tmp_path / "x.wav")
    before = sorted(tmp_path.iterdir())
    flags = ["--strict"] if kind == "truncated" else []
    assert main(["record", "x.wav", "-o", "out.png", *flags]) == 2
    assert_one_line(capsys, message)
    assert sorted(tmp_path.iterdir()) == before


BAD_SETTINGS = [
    (["--nfft", "15"], 2, "nfft=15: must be 16 to 1048576"),
    (["--nfft", "1048577"], 2, "nfft=1048577: must be 16 to 1048576"),
    (["--hop", "0"], 2, "hop=0: must be at least 1 sample"),
    (["--hop", "x"], 2, "command line: analysis.hop='x': must be a whole number"),
    (["--window", "hnan"], 2, "window='hnan': must be one of rectangular, hann,"),
    (["--engine", "fpga"], 2, "command line: engine.engine='fpga': must be one of auto,"),
    (["--device", "Voodoo"], 69, "Voodoo"),
    (["--duration", "0"], 2, "--duration 0: must be above 0 and below 1e+09 s"),
    (["--levels", "1"], 2, "--levels=1: must be two numbers of dB, as in --levels -100,-20"),
    (["--levels=-20,-40"], 2, "levels=-20,-40: must be two numbers of dB, lower first"),
    (["--f-min", "30000"], 2, "f_min=30000: must be at least 0 and 0.024 Hz below f_max"),
    (["--time-axis", "utc"], 2, "t.wav has no start time; give --start-time"),
    (["--start-time", "noon"], 2, "--start-time noon: must be ISO 8601"),
    (["--start-time", "1699-12-31"], 2, "--start-time 1699-12-31: must be 1700 to 2200"),
    (["--start-time", "2201-01-01"], 2, "--start-time 2201-01-01: must be 1700 to 2200"),
    (["--rate", "8000"], 2, "source.samplerate=8000: t.wav has 48000, and a file's own is used"),
    (["--config", "absent.toml"], 2, "absent.toml: No such file or directory"),
    (["-o", "out.bmp"], 2, "out.bmp: suffix must be one of .png"),
    (["-o", "t.wav/out.png"], 74, "t.wav: must be a folder, it is a file"),
    (["-o", "/proc/out.png"], 74, "/proc/out.png"),
]


@pytest.mark.parametrize(("arguments", "exit_code", "message"), BAD_SETTINGS)
def test_bad_settings(arguments, exit_code, message, tmp_path, capsys):
    """An impossible setting is one line with the value and the rule, and no picture."""
    tone(tmp_path / "t.wav", seconds=0.2)
    assert main(["record", "t.wav", "-o", "out.png", *arguments]) == exit_code
    assert_one_line(capsys, message)
    assert [path.name for path in tmp_path.iterdir()] == ["t.wav"]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["--source", "soundcard:colour=red"], 2, "soundcard:colour=red"),
        (["--source", "signal:sine,1000"], 2, "must be signal:sine,FREQ_HZ,LEVEL_DBFS"),
        (["--publish", "tcp://0.0.0.0:5556"], 2, "tcp://0.0.0.0:5556"),
        (["--publish", "carrier-pigeon"], 2, "carrier-pigeon"),
        (["--config", "c.toml"], 2, "c.toml:2:1: analysis.hopp: unknown key; [analysis] knows w"),
    ],
)
def test_daemon_that_cannot_start(arguments, exit_code, message, tmp_path, capsys):
    """A daemon that cannot start gives the reason in one line and ends."""
    (tmp_path / "c.toml").write_text("[analysis]\nhopp = 1\n")
    quiet = ["--log-level", "error", "--show", "none"]
    assert main(["run", "--source", "signal:sine,1000,-20", *quiet, *arguments]) == exit_code
    assert_one_line(capsys, message)


def test_occupied_port(capsys):
    """A port in use, which may be free later, gives exit code 75."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        arguments = ["--source", "signal:sine,1000,-20", "--publish", endpoint]
        assert main(["run", *arguments, "--log-level", "error", "--show", "none"]) == 75
    assert_one_line(capsys, endpoint)


def assert_one_line(capsys, message):
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("spectrod: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


# ---- outputs of commands


@pytest.mark.opencl
@pytest.mark.parametrize("frequency_hz", [85 * FS / 4096, 85.5 * FS / 4096, 1000.0])
def test_tone_reads_its_level_in_the_picture(frequency_hz, tmp_path):
    """A -20 dBFS tone is -20.00 +- 0.05 dBFS in the picture's pixels, in its own row."""
    tone(tmp_path / "t.wav", frequency_hz)
    arguments = ["--window", "flattop", "--win-length", "4096", "--levels=-25,-15"]
    assert main(["record", "t.wav", "-o", "t.png", *arguments, "--f-scale", "log"]) == 0
    levels = read_levels("t.png")
    # The row whose band holds the tone, found in the file's own axis.
    row = int(np.argmin(np.abs(levels.f - frequency_hz)))
    np.testing.assert_allclose(levels.level[row], -20.0, atol=0.05)


@pytest.mark.opencl
def test_pipe_and_file_give_the_same_picture(tmp_path):
    """The same samples give the same pixels, as a file or through a pipe."""
    x = tone(tmp_path / "t.wav", subtype="PCM_16")
    raw = np.round(x * 32768).astype("<i2").tobytes()
    common = ["--hop", "512", "--win-length", "2048", "--levels=-90,0"]
    assert main(["record", "t.wav", "-o", "file.png", *common]) == 0
    piped = command("record", "-", "--rate", str(FS), "-o", "pipe.png", *common)
    subprocess.run(piped, input=raw, check=True, timeout=60)
    np.testing.assert_array_equal(read_levels("file.png").level, read_levels("pipe.png").level)


def test_duration_cuts_exactly(tmp_path):
    """The option --duration takes exactly that many samples of an endless source."""
    arguments = ["--duration", "0.5", "--win-length", "480", "--hop", "480", "--width", "200"]
    assert main(["record", "signal:white,-20", "-o", "w.png", *arguments]) == 0
    assert read_levels("w.png").level.shape[1] == 200
    assert main(["record", "signal:white,-20", "-o", "w.png"]) == 2


def test_endless_signals_need_a_duration(monkeypatch, capsys):
    """An endless source, the test tone included, is refused without a duration."""

    def absent(*_):
        raise UnavailableError("no audio input")

    monkeypatch.setattr("spectrod.source.soundcard.soundcard.SoundCardSource", absent)
    for uri in ("signal:white,-20", "auto"):
        assert main(["record", uri, "-o", "w.png", "--log-level", "error"]) == 2
        assert_one_line(capsys, f"{uri}: has no end; give --duration")


def test_devices_as_json(capsys):
    """The JSON lists every device and the one that would be used, or the reason for none."""
    assert main(["devices", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for part in found.values():
        assert (sum(device["used"] for device in part["devices"]) == 1) == (part["error"] is None)


def test_config_commands(capsys, tmp_path):
    """The default file is the output of show without layers, and check accepts it."""
    assert main(["config", "default"]) == 0
    (tmp_path / "d.toml").write_text(capsys.readouterr().out)
    assert main(["config", "check", "d.toml"]) == 0
    assert main(["config", "show", "--config", "d.toml"]) == 0
    shown = capsys.readouterr().out
    assert '[analysis]\nwindow = "hann"\nwin_length = 4096\n' in shown


@pytest.mark.slow
def test_selftest_passes(capsys):
    """Every check of the self-test passes on the reference engine, too."""
    assert main(["selftest", "--engine", "numpy"]) == 0
    out = capsys.readouterr().out
    assert "all 17 checks passed" in out
    assert "FAILED" not in out


def test_selftest_fails_on_a_wrong_device(monkeypatch, capsys):
    """A device that computes wrong results fails the self-test, is named and refused."""

    class WrongPlan(NumpyPlan):
        def submit(self, *args, **keywords):
            return Computed(super().submit(*args, **keywords).collect() * np.float32(1.02))

    class Wrong(NumpyEngine):
        def plan(self, spec, window, _):
            return WrongPlan(spec, window)

    monkeypatch.setattr("spectrod.apps.doctor.selftest_command.open_engine", lambda *_: Wrong())
    assert main(["selftest"]) == 69
    assert "selftest: 15 of 17 failed: power spectra, N = 16" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [1.0 + 1e-12, np.nan])
def test_selftest_fails_where_products_of_matrices_are_wrong(monkeypatch, wrong):
    """A BLAS library that computes wrong on this processor is found."""
    right = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b: right(a, b) * wrong)
    check = next(one for one in checks(NumpyEngine()) if "BLAS" in one.name)
    assert not check.passed
    assert check.allowed == "<= 1e-13"


def test_interrupt_keeps_a_live_recording(monkeypatch, capsys, tmp_path):
    """Ctrl-C ends a live source and keeps its picture, also with a progress bar."""
    monkeypatch.setattr(PulledSource, "is_live", True)
    updates = []

    def update(_, n_done, _waiting_for=""):
        interrupt = n_done > FS > max(updates, default=0)
        updates.append(n_done)
        if interrupt:
            raise KeyboardInterrupt

    monkeypatch.setattr("spectrod.cli.record_samples.ProgressBar.update", update)
    assert main(["record", "signal:white,-20", "--duration", "1e8", "-o", "out.png"]) == 130
    assert capsys.readouterr().err == ""
    assert read_levels("out.png").pixels.duration_s > 1.0


def test_window_of_the_picture_fits_a_shorter_transform(monkeypatch, tmp_path):
    """Settings of the daemon's frames do not fail a recording by a window that was not chosen."""
    monkeypatch.setenv("SPECTROD_ANALYSIS_NFFT", "1024")
    monkeypatch.setenv("SPECTROD_ANALYSIS_WIN_LENGTH", "1000")
    tone(tmp_path / "t.wav")
    assert main(["record", "t.wav", "-o", "t.png"]) == 0
    assert read_levels("t.png").pixels.win_length == 1024


# ---- processes: light help, signals, nothing left running


def command(*arguments):
    return [sys.executable, "-m", "spectrod", *arguments]


def test_help_is_light():
    """The option --help imports neither NumPy nor PortAudio nor OpenCL nor ZeroMQ."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "spectrod", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.split("|")[-1].strip() for line in result.stderr.splitlines()}
    assert "argparse" in imported
    assert not imported & {"numpy", "sounddevice", "soundfile", "pyopencl", "zmq", "msgspec", "PIL"}
    assert "record" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_daemon_ends_on_signals(number, exit_code, tmp_path):
    """A signal ends the daemon cleanly with its exit code, after a status line per second."""
    process = subprocess.Popen(
        command("run", "--source", "signal:sine,1000,-20", "--publish", "tcp://127.0.0.1:*"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    process.send_signal(number)
    _, errors = process.communicate(timeout=10)
    assert line.startswith("running: test signal sine,1000,-20, 48000 Hz x 1, ")
    assert process.returncode == exit_code
    assert "publishing at tcp://127.0.0.1:" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_file_played_by_the_daemon_ends_it(tmp_path):
    """At the end of its file, the daemon publishes the last frame and ends with code 0."""
    tone(tmp_path / "t.wav", seconds=0.5)
    run = command("run", "--source", "t.wav", "--publish", "tcp://127.0.0.1:*", "--show", "none")
    result = subprocess.run(run, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 0
    assert "the source has ended" in result.stderr


@pytest.mark.forms(1)
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_finishes_the_recording(number, tmp_path):
    """A signal ends the recording of an endless source with code 130 and a complete picture."""
    recording = command("record", "signal:white,-20", "--duration", "1e8", "-o", "out.png")
    process = subprocess.Popen(
        [*recording, "--log-level", "debug"], stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if "recording" in line:
            break
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors
    assert process.returncode == 130 or "nothing to draw" in errors
    left = [path.name for path in tmp_path.iterdir()]
    assert left == (["out.png"] if process.returncode == 130 else [])


def test_a_second_interrupt_leaves_nothing(monkeypatch, capsys, tmp_path):
    """A second Ctrl-C leaves neither pictures nor data."""
    numbers = iter(range(1000))

    def update(*_):
        if next(numbers) > 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("spectrod.cli.record_samples.ProgressBar.update", update)
    monkeypatch.setattr("spectrod.daemon.pipeline.Pipeline.end", lambda _: None)
    outputs = ["-o", "out.png", "-o", "out.npz", "-o", "out.spd", "-o", "out.wav"]
    assert main(["record", "signal:white,-20", "--duration", "1e8", *outputs]) == 130
    assert capsys.readouterr().err == "spectrod: interrupted\n"
    assert list(tmp_path.iterdir()) == []


def on_terminal(process_arguments, columns):
    """Run with standard error on a terminal of some columns; return exit code and output."""
    own, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    process = subprocess.Popen(process_arguments, stderr=other)
    os.close(other)
    shown = b""
    try:
        # The terminal's end is EIO, which comes when the last process has closed it.
        while piece := os.read(own, 4096):
            shown += piece
    except OSError as error:
        assert error.errno == errno.EIO  # noqa: PT017 - what ends the loop, not what is tested
    finally:
        os.close(own)
    return process.wait(timeout=30), shown.decode()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80])
def test_progress_on_a_terminal(columns, tmp_path):
    """A terminal shows the progress in lines that are erased, and is empty at the end."""
    tone(tmp_path / "t.wav", seconds=200)
    exit_code, shown = on_terminal(command("record", "t.wav", "-o", "t.png"), columns)
    erase = "\r\x1b[K"
    first, *lines = shown.split(erase)
    assert exit_code == 0
    assert (first, lines[-1]) == ("", "")
    assert len(lines) > 1
    for line in lines[:-1]:
        assert re.fullmatch(r" *\d+% (\[#* *\] )?\d+:\d\d of 3:20, \d+ x real .*", line)
        assert len(line) < columns


def in_shell(script):
    """Run in a shell with a buffered standard output, where ``spectrod`` is the command."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    program = f'set -o pipefail; spectrod() {{ {sys.executable} -m spectrod "$@"; }}; {script}'
    shell = ["/bin/bash", "-c", program]
    return subprocess.run(shell, env=buffered, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["config default", "--help", "record --help"])
def test_output_that_nobody_reads(arguments):
    """A reader that closes the pipe, early or at once, is no error."""
    result = in_shell(f"spectrod {arguments} | true; echo ${{PIPESTATUS[0]}}")
    assert (result.stdout, result.stderr) == ("0\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["config default", "--help", "selftest --engine numpy"])
def test_output_that_does_not_fit(arguments):
    """Output to a full disk is a storage error, found at once or at the end."""
    result = in_shell(f"spectrod {arguments} >/dev/full")
    assert result.stderr == "spectrod: standard output: No space left on device\n"
    assert result.returncode == 74


def test_names_that_cannot_be_printed(tmp_path):
    """A file name that is not UTF-8 is printed with its invalid bytes escaped."""
    (tmp_path / "n\udcff.toml").touch()
    result = in_shell("spectrod config check n*.toml")
    assert (result.returncode, result.stdout) == (0, "n\\xff.toml: right\n")


def test_closed_standard_error(tmp_path):
    """With standard error closed, the command does its work and the exit code is right."""
    tone(tmp_path / "t.wav", seconds=0.2)
    result = in_shell("spectrod record t.wav -o t.png 2>&-; spectrod record no.wav -o no.png 2>&-")
    assert (result.returncode, result.stdout) == (2, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.png", "t.wav"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reccord"], "spectrod: argument COMMAND: invalid choice: 'reccord'"),
        (["record"], "required: SRC, -o/--output (see spectrod record --help)"),
        (["record", "x.wav", "-o", "x.png", "--width", "9k"], "--width: invalid int value: '9k'"),
    ],
)
def test_bad_usage(arguments, message, capsys):
    """Bad usage is one line."""
    assert main(arguments) == 2
    assert_one_line(capsys, message)


def test_interrupt_while_loading(monkeypatch, capsys):
    """Ctrl-C while a command's modules are imported is a normal interruption."""

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("spectrod.cli.import_module", interrupted)
    assert main(["record", "x.wav", "-o", "x.png"]) == 130
    assert_one_line(capsys, "interrupted")
