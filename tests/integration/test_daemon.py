"""``spectrod run`` under signals, failures and blocked outputs."""

import fcntl
import logging
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest

from spectrod.analysis.numpy_engine import NumpyPlan
from spectrod.cli import main, run_daemon
from spectrod.client import subscribe
from spectrod.config import config_files
from spectrod.daemon.daemon import Daemon
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.daemon.publisher.sender import Sender
from spectrod.lib.errors import ConfigError, DeviceError, InputError, KernelBuildError
from spectrod.source.signal import SignalSource
from spectrod.wire.keys import make_keys

TIMEOUT_S = 60.0
TONE = ("--source", "signal:sine,1000,-20", "--publish", "tcp://127.0.0.1:*", "--engine", "numpy")
COMMAND = [sys.executable, "-m", "spectrod", "run", *TONE]


@pytest.fixture(autouse=True)
def _own_configuration(monkeypatch, tmp_path):
    monkeypatch.setattr(config_files, "SYSTEM_FILE", tmp_path / "absent.toml")
    monkeypatch.setenv("SPECTROD_CONFIG", str(tmp_path / "c.toml"))
    (tmp_path / "c.toml").write_text("")
    yield
    logging.captureWarnings(capture=False)


# ---- signals during the start


def before_it_is_built(monkeypatch, act):
    real = run_daemon.build_daemon
    monkeypatch.setattr(run_daemon, "build_daemon", lambda settings: (act(), real(settings))[1])


def before_the_daemon_starts(monkeypatch, act):
    real = Daemon.start
    monkeypatch.setattr(Daemon, "start", lambda self: (act(), real(self))[1])


def once_the_endpoint_is_bound(monkeypatch, act):
    real = Publisher.start
    monkeypatch.setattr(Publisher, "start", lambda self: (real(self), act())[0])


def after_the_daemon_has_started(monkeypatch, act):
    real = Daemon.start
    monkeypatch.setattr(Daemon, "start", lambda self: (real(self), act())[0])


MOMENTS = [
    before_it_is_built,
    before_the_daemon_starts,
    once_the_endpoint_is_bound,
    after_the_daemon_has_started,
]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_at_any_moment_of_the_start_ends_it_cleanly(
    moment, number, code, monkeypatch, tmp_path, capsys
):
    """A signal at any moment of the start gives a running daemon's code and leaves no socket."""
    moment(monkeypatch, lambda: os.kill(os.getpid(), number))
    monkeypatch.chdir(tmp_path)  # its path may be too long for a socket's address
    assert main(["run", *TONE, "--publish", "ipc://s.ipc", "--show", "none"]) == code
    assert f"{number.name}: stopping" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_sighup_at_any_moment_of_the_start_is_a_reload(moment, monkeypatch, capsys):
    """SIGHUP at any moment of the start neither kills the daemon nor is lost."""

    def reload_and_end():
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)

    moment(monkeypatch, reload_and_end)
    assert main(["run", *TONE, "--show", "none"]) == 0
    assert "reload: nothing has changed" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_that_breaks_a_compiler_off_is_no_failure(number, code, monkeypatch, capsys):
    """A signal that interrupts a compiler is no build failure, although LLVM reports one."""

    def broken_off(_settings):
        os.kill(os.getpid(), number)
        raise KernelBuildError("stft_simd.cl does not compile")

    monkeypatch.setattr(run_daemon, "build_daemon", broken_off)
    assert main(["run", *TONE, "--show", "none"]) == code
    assert capsys.readouterr().err == ""


# ---- failures of each thread


def fail_beside_the_main_thread(function, error):
    def raising(*args, **kwargs):
        if threading.current_thread() is threading.main_thread():
            return function(*args, **kwargs)
        raise error

    return raising


FAILURES = {
    "analysis": (
        (NumpyPlan, "submit", DeviceError("GPU: lost")),
        (69, "spectrod: GPU: lost\n"),
    ),
    "analysis, a bug": (
        (NumpyPlan, "submit", ZeroDivisionError("oops")),
        (70, "spectrod: analysis failed: ZeroDivisionError('oops'); please report this\n"),
    ),
    "source": (
        (SignalSource, "blocks", InputError("x.wav: damaged")),
        (2, "spectrod: x.wav: damaged\n"),
    ),
    "publisher": (
        (Sender, "_send_queued", ArithmeticError("oops")),
        (70, "spectrod: publisher failed: ArithmeticError('oops'); please report this\n"),
    ),
}


@pytest.mark.parametrize("thread", FAILURES)
def test_a_failure_of_any_thread_ends_it_with_its_code(thread, monkeypatch, capsys):
    """A failure of any thread is the last log line and determines the exit code."""
    (owner, name, error), (code, line) = FAILURES[thread]
    failing = fail_beside_the_main_thread(getattr(owner, name), error)
    monkeypatch.setattr(owner, name, failing)
    assert main(["run", *TONE, "--show", "none"]) == code
    assert capsys.readouterr().err.endswith(line)


# ---- reload


class DaemonProcess:
    """The daemon as a process whose log can be awaited."""

    def __init__(self, *arguments, **options):
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stderr=subprocess.PIPE, text=True, **options
        )

    def wait_for(self, text):
        """Read the log up to the line with the text; return the text after it."""
        for line in self.process.stderr:
            if text in line:
                return line.partition(text)[2].strip()
        raise AssertionError(f"ended without {text!r}")

    def end(self, number=signal.SIGTERM):
        """Send a signal; return exit code and time until the end."""
        begin_s = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S), time.monotonic() - begin_s


@pytest.fixture
def daemon():
    daemons = []

    def start(*arguments, **options):
        daemons.append(DaemonProcess(*arguments, **options))
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.process.kill()
        daemon.process.communicate()


@pytest.mark.slow
def test_sighup_applies_a_changed_file_to_the_running_daemon(daemon, tmp_path):
    """SIGHUP applies a changed file without a loss, and a mistake in it changes nothing."""
    file = tmp_path / "c.toml"
    running = daemon("--show", "none")
    endpoint = running.wait_for("publishing at ")
    with subscribe(endpoint, timeout_s=TIMEOUT_S) as frames:
        epoch = next(frames).header.epoch
        file.write_text('[analysis]\nnfft = 512\nwin_length = 512\nhop = 256\nwindow = "flattop"\n')
        running.process.send_signal(signal.SIGHUP)
        header = next(frame.header for frame in frames if frame.header.nfft == 512)
        assert (header.window, header.hop, header.epoch) == ("flattop", 256, epoch)
        for key in ("window", "win_length", "hop", "nfft"):
            running.wait_for(f"reload: applied analysis.{key}")
        file.write_text("[analysis]\nnfft = 10\n")
        running.process.send_signal(signal.SIGHUP)
        running.wait_for(f"reload refused: {file}:2:1: nfft=10: must be 16 to 1048576")
        assert next(frames).header.nfft == 512
        file.write_text("")
        running.process.send_signal(signal.SIGHUP)
        header = next(frame.header for frame in frames if frame.header.nfft == 4096)
        assert (header.window, header.epoch, frames.missed) == ("hann", epoch, 0)
    assert running.end()[0] == 0


# ---- blocked outputs


@pytest.mark.slow
def test_a_status_that_nobody_reads_does_not_keep_it_from_stopping(daemon):
    """With a full pipe on standard output, SIGTERM still ends the daemon in time."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * 4096)
    running = daemon("--show", "status", "--log-level", "debug", stdout=writer)
    with subscribe(running.wait_for("publishing at "), timeout_s=TIMEOUT_S) as frames:
        # These frames take more than a second, so the first status was due.
        while next(frames).header.seq < 60:
            pass
    code, seconds = running.end()
    os.close(writer)
    os.close(reader)
    assert code == 0
    assert seconds < 2.0


@pytest.fixture
def terminal():
    """Open a pseudo-terminal; return both ends."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    yield master, slave
    os.close(slave)
    os.close(master)


def read_until(master, text):
    output = b""
    while text not in output:
        assert select.select([master], [], [], TIMEOUT_S)[0], output[-500:]
        output += os.read(master, 65536)
    return output


LEAVE = b"\x1b[?1049l"


@pytest.mark.slow
def test_q_in_the_live_view_ends_it(daemon, terminal):
    """In the live view, q restores the terminal, prints the held log and exits with code 0."""
    master, slave = terminal
    running = daemon(stdin=slave, stdout=slave)
    read_until(master, b"peak 1000.0 Hz -20.0 dBFS")
    os.write(master, b"q")
    read_until(master, LEAVE)
    assert running.process.wait(TIMEOUT_S) == 0
    running.wait_for("ready: the first message is out")
    running.wait_for("SIGTERM: stopping")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_picture_that_nobody_reads_does_not_keep_it_from_stopping(daemon, terminal, number, code):
    """A terminal that nobody reads does not delay a stop."""
    _, slave = terminal
    running = daemon(stdin=slave, stdout=slave)
    with subscribe(running.wait_for("publishing at "), timeout_s=TIMEOUT_S) as frames:
        # Two seconds of pictures are more than a pseudo-terminal holds.
        while next(frames).header.seq < 100:
            pass
    assert running.end(number)[0] == code


@pytest.mark.slow
def test_a_failing_view_ends_the_daemon_with_its_error(monkeypatch, capsys, terminal):
    """An error in the view's thread ends the daemon with that error."""
    failing = fail_beside_the_main_thread(None, ConfigError("view: broken"))
    monkeypatch.setattr("spectrod.apps.view.live.view", failing)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["run", *TONE]) == 2
    assert capsys.readouterr().err.endswith("SIGTERM: stopping\nspectrod: view: broken\n")


@pytest.mark.slow
def test_where_keys_are_needed_a_terminal_shows_the_status(daemon, terminal, tmp_path):
    """If endpoints need keys, the picture is refused, except for one without keys."""
    for name in ("server", "clients"):
        make_keys(tmp_path / name, name, "read")
    security = f"""
        [security]
        server_key = "{tmp_path}/server/server.key"
        client_keys = "{tmp_path}/clients"
        require = "always"
    """
    (tmp_path / "c.toml").write_text(security)
    master, slave = terminal
    running = daemon(stdin=slave, stdout=slave)
    running.wait_for("watch it: spectrod view tcp://127.0.0.1:")
    read_until(master, b"running: ")
    assert running.end()[0] == 0
    refused = daemon("--show", "live", stdin=slave, stdout=slave)
    refused.wait_for("spectrod: show='live': all endpoints of [publish] ask for keys; ")
    assert refused.process.wait(TIMEOUT_S) == 2
    beside = daemon("--publish", f"ipc://{tmp_path}/s.ipc", stdin=slave, stdout=slave)
    read_until(master, b"peak 1000.0 Hz -20.0 dBFS")
    assert beside.end()[0] == 0


@pytest.mark.slow
def test_a_reload_with_a_wrong_key_changes_nothing(daemon, tmp_path):
    """A reload of a right file and a wrong key is refused as a whole."""
    for name in ("server", "clients"):
        make_keys(tmp_path / name, name, "read")
    (tmp_path / "clients" / "clients.key").unlink()
    text = f"""
        [security]
        server_key = "{tmp_path}/server/server.key"
        client_keys = "{tmp_path}/clients"
    """
    (tmp_path / "c.toml").write_text(text)
    running = daemon("--show", "none")
    running.wait_for("watch it: ")
    (tmp_path / "c.toml").write_text(text + "[analysis]\nhop = 500\n")
    (tmp_path / "clients" / "clients.pub").write_text("nonsense")
    running.process.send_signal(signal.SIGHUP)
    assert "clients.pub" in running.wait_for("reload refused: ")
    # The file still differs from what runs: the next reload applies it.
    (tmp_path / "clients" / "clients.pub").unlink()
    running.process.send_signal(signal.SIGHUP)
    running.wait_for("reload: applied analysis.hop")
    assert running.end()[0] == 0
