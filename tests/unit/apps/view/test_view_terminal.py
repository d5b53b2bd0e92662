"""The view in real pseudo-terminals, with a real publisher."""

import contextlib
import fcntl
import io
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from spectrod.apps.view.axes import frequency_axis
from spectrod.apps.view.keyboard import GONE
from spectrod.apps.view.live import view
from spectrod.apps.view.terminal import Terminal
from spectrod.daemon.publisher.interval_encoder import IntervalEncoder
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.stats import CaptureStats, Stats
from spectrod.measure.levels import LevelRow, parse_quantity

TIMEOUT_S = 20.0
FEED_S = 100.0  # below pytest's own limit, which does not say what was shown
SPEC = SpectrumSpec(fs=48000.0, channels=2, win_length=256, hop=128, scaling="dbfs")
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?25h\x1b[?1049l"

pytestmark = pytest.mark.slow


def make_batch(k, spec=SPEC):
    index = np.array([k * spec.hop])
    values = np.full((1, 2, spec.n_bins), -100.0, np.float32)
    values[0, 0, 7:10] = -26.02, -20.0, -26.02
    values[0, 1, 15:18] = -16.02, -10.0, -16.02
    return SpectrumBatch(values, index, index, index, spec, "numpy")


def make_stats(state="running", waiting_for=""):
    capture = CaptureStats(waiting_for=waiting_for)
    return Stats(state, "test", "numpy", 48000.0, 2, capture=capture)


def make_publisher(endpoint, name, stats=make_stats):
    publisher = Publisher([endpoint])
    publisher.add_source(name, stats)
    return publisher


@pytest.fixture
def publisher():
    publisher = make_publisher("tcp://127.0.0.1:*", "mic")
    publisher.start()
    yield publisher
    publisher.stop()


class Screen:
    """The view as a child process in a pseudo-terminal."""

    def __init__(self, model, endpoint, *, code="", locale="C.UTF-8", argv=()):
        self._model = model
        self.master, slave = pty.openpty()
        self.resize(30, 100)
        self.mode_before = termios.tcgetattr(slave)
        self._slave = slave
        program = f"{code}\nfrom spectrod.apps.view.live import view\nview({endpoint!r})"
        self.process = subprocess.Popen(
            argv or [sys.executable, "-c", program],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
            env=os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": locale},
        )
        self.output = b""

    def resize(self, rows, columns):
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        self.shown = self._model(columns, rows)

    def wait_for(self, text, feed=None):
        """Read until new output contains the text; feed keeps spectra coming."""
        begin = len(self.output)
        self._wait_until(lambda: text in self.output[begin:], feed)

    def wait_until_shown(self, text, feed=None):
        """Read until a line contains the text; feed keeps spectra coming."""
        self._wait_until(lambda: any(text in line for line in self.shown.lines()), feed)

    def _wait_until(self, is_over, feed):
        deadline_s = time.monotonic() + FEED_S
        while not is_over():
            if feed is not None:
                feed()
            ready, _, _ = select.select([self.master], [], [], 0.02 if feed else TIMEOUT_S)
            lives = feed and self.process.poll() is None and time.monotonic() < deadline_s
            assert ready or lives, (self.process.poll(), self.shown.lines(), self.output[-2000:])
            if ready:
                data = os.read(self.master, 65536)
                self.output += data
                self.shown.feed(data)

    def key(self, key):
        os.write(self.master, key)

    def end(self, n_times=1):
        """Return the exit status, and check that the terminal was restored."""
        self._wait_until(lambda: self.output.count(LEAVE) == n_times, None)
        status = self.process.wait(TIMEOUT_S)
        assert self.output.count(ENTER) == n_times
        assert termios.tcgetattr(self._slave) == self.mode_before
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self._slave)


@pytest.fixture
def open_screen(screen_model):
    screens = []

    def start(*args, **options):
        screens.append(Screen(screen_model, *args, **options))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


@pytest.fixture
def feed(publisher):
    """Submit one more frame at each call."""
    numbers = iter(range(10**9))
    return lambda: publisher.sources[0].write(make_batch(next(numbers)))


def test_a_spectrum_is_shown_and_q_ends(publisher, open_screen, feed):
    """The peak is shown, keys select the channel, the size follows the window, and q ends."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("peak 1500.0 Hz -20.0 dBFS", feed)
    screen.wait_until_shown("q quit  1-2 channel", feed)
    screen.key(b"2")
    screen.wait_until_shown("peak 3000.0 Hz -10.0 dBFS", feed)
    screen.resize(9, 25)
    screen.wait_until_shown("too small for a picture:", feed)
    assert screen.shown.lines()[0] == "3000.0 Hz -10.0 dBFS"
    screen.key(b"q")
    assert screen.end() == 0


METER = IntervalEncoder(
    *("mic", (), "meter", [parse_quantity("LAeq"), parse_quantity("true_peak")]),
    fs=48000.0,
    interval_s=1.0,
    calibrations=(None, None),
)


def submit_levels(publisher, k=0):
    values = np.array([[-20.0 - k, -30.0], [-3.0 - k, -9.0]])
    row = LevelRow(0, 48000, 48000, 0, 1.0, values, np.array([1, 0], np.uint8))
    publisher.sources[0].write_interval(METER, row, 0)


def test_levels_have_a_line_below_the_head(publisher, open_screen, feed):
    """The channel's sound levels have a line with held peaks, which r resets."""
    screen = open_screen(publisher.endpoints[0])

    def feed_both(k=0):
        feed()
        submit_levels(publisher, k)

    screen.wait_until_shown(
        "meter  LAeq -20.0 dBFS  true_peak -3.0 (max -3.0) dBTP  overload", feed_both
    )
    screen.wait_until_shown("true_peak -4.0 (max -3.0)", lambda: feed_both(1))
    screen.key(b"r")
    screen.wait_until_shown("true_peak -4.0 (max -4.0)", lambda: feed_both(1))
    screen.key(b"2")
    screen.wait_until_shown("meter  LAeq -30.0 dBFS  true_peak -9.0 (max -9.0) dBTP", feed_both)
    screen.key(b"q")
    assert screen.end() == 0


def test_levels_are_part_of_a_line_without_a_terminal(publisher, feed, tmp_path):
    """In a file the sound levels follow the spectrum in its line."""
    lines = tmp_path / "lines"

    def stop():
        feed()
        submit_levels(publisher)
        return "meter" in lines.read_text()

    with lines.open("w") as out:
        view(publisher.endpoints[0], out=out, keys=io.StringIO(), stop=stop)
    last = lines.read_text().splitlines()[-1]
    assert last.startswith("mic/0  peak 1500.0 Hz")
    assert last.endswith("  meter  LAeq -20.0 dBFS  true_peak -3.0 (max -3.0) dBTP  overload")


def middle_frequencies():
    """Return the labels under the middle of the axis, in a window of 100 columns."""
    axis = frequency_axis(SPEC.fs, SPEC.nfft, 92, 0, (0.25, 0.75))
    line = [" "] * 92
    for column, label in axis.ticks():
        line[column - len(label) // 2 : column - len(label) // 2 + len(label)] = label
    return "".join(line).rstrip()


def test_keys_change_the_picture(publisher, open_screen, feed):
    """Arrow keys, help, pause, levels and zoom change the picture, and q still ends."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("? help", feed)
    screen.key(b"?")
    screen.wait_until_shown("reset levels, frequencies and peaks", feed)
    screen.key(b"?")
    screen.wait_until_shown("? help", feed)
    screen.key(3 * b"\x1b[A")
    screen.wait_until_shown("    30│", feed)  # the top is 30 dBFS
    screen.key(9 * b"\x1bOB")
    screen.wait_until_shown("  -150│", feed)  # the top is -60 dBFS, the foot 120 dB below
    screen.key(b"+")
    screen.wait_until_shown(middle_frequencies(), feed)
    screen.key(b" ")
    screen.wait_until_shown("paused; space resumes", feed)
    screen.key(b"\x1b[99;99;99~")  # of another key, which is ignored as a whole
    screen.key(b" ")
    screen.wait_until_shown("? help", feed)
    screen.key(b"q")
    assert screen.end() == 0


def test_waiting_is_shown_and_ctrl_c_ends(open_screen):
    """While it waits, the view shows the endpoint, and Ctrl-C ends it with Python's status."""
    screen = open_screen("tcp://127.0.0.1:1")
    screen.wait_until_shown("waiting for tcp://127.0.0.1:1")
    screen.key(b"\x03")
    assert screen.end() == -signal.SIGINT


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_the_terminal_restored(open_screen, number):
    """A signal ends the process with that signal and a restored terminal."""
    screen = open_screen("tcp://127.0.0.1:1")
    screen.wait_until_shown("waiting for")
    screen.process.send_signal(number)
    assert screen.end() == -number


def test_a_stopped_view_restores_the_terminal_and_returns(publisher, open_screen, feed, tmp_path):
    """In a shell, Ctrl-Z gives the terminal back, and fg brings a whole picture."""
    program = tmp_path / "program.py"
    program.write_text(
        f"from spectrod.apps.view.live import view\nview({publisher.endpoints[0]!r})\n", "utf-8"
    )
    shell = ["bash", "--norc", "--noediting", "-i"]
    screen = open_screen("", argv=shell)
    screen.key(f"{sys.executable} {program}\n".encode())
    screen.wait_until_shown("peak 1500.0 Hz", feed)
    screen.key(b"\x1a")
    screen.wait_for(b"Stopped", feed)
    assert LEAVE in screen.output
    mode = termios.tcgetattr(screen._slave)
    assert mode[3] & termios.ECHO
    assert mode[3] & termios.ICANON
    screen.key(b"fg\n")
    screen.wait_for(ENTER, feed)
    screen.wait_until_shown("peak 1500.0 Hz", feed)
    screen.key(b"q")
    screen.wait_for(LEAVE, feed)
    screen.key(b"exit 7\n")
    assert screen.process.wait(TIMEOUT_S) == 7
    assert screen.output.count(ENTER) == 2


def test_a_view_that_was_stopped_by_force_takes_the_terminal_again(publisher, open_screen, feed):
    """After SIGSTOP and SIGCONT, when a shell may have used the terminal, all is drawn again."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("peak 1500.0 Hz", feed)
    screen.process.send_signal(signal.SIGSTOP)
    os.waitpid(screen.process.pid, os.WUNTRACED)
    termios.tcsetattr(screen._slave, termios.TCSANOW, screen.mode_before)
    screen.process.send_signal(signal.SIGCONT)
    screen.wait_for(ENTER, feed)
    screen.wait_until_shown("peak 1500.0 Hz", feed)
    screen.key(b"q")
    screen.wait_for(LEAVE, feed)
    assert screen.process.wait(TIMEOUT_S) == 0
    assert termios.tcgetattr(screen._slave) == screen.mode_before


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (200, 500), (0, 0), (2, 65535)])
def test_any_size_is_followed(publisher, open_screen, feed, rows, columns):
    """From one character to more than a picture may have, a change of size ends nothing."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("peak 1500.0 Hz", feed)
    screen.resize(rows, columns)
    screen.shown = screen._model(max(columns, 1), max(rows, 1))
    screen.wait_for(b"\x1b[H\x1b[2J", feed)
    screen.resize(30, 100)
    screen.wait_until_shown("peak 1500.0 Hz", feed)
    screen.key(b"q")
    assert screen.end() == 0


def test_lines_beside_the_spectrum(publisher, open_screen, feed):
    """Holds and other channels are named above the spectrum; the list of peaks has the note."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("1-2 channel", feed)
    screen.key(b"mnvo")
    screen.wait_until_shown("mic/0  max  min  mean  mic/1", feed)
    screen.key(b"l")
    screen.wait_until_shown("1500.0      -20.0  F#6 +23", feed)
    screen.key(b"\t")
    screen.wait_until_shown("mic/1  max  min  mean  mic/0", feed)
    screen.wait_until_shown("3000.0      -10.0  F#7 +23", feed)
    screen.key(b"q")
    assert screen.end() == 0


def test_an_exception_restores_the_terminal(open_screen):
    """An error while drawing is printed on a restored terminal."""
    code = (
        "import spectrod.apps.view.live as live\n"
        "def draw(*_): raise ArithmeticError('broken')\n"
        "live.draw = draw"
    )
    screen = open_screen("tcp://127.0.0.1:1", code=code)
    screen.wait_until_shown("ArithmeticError: broken")
    assert b"ArithmeticError" not in screen.output.partition(LEAVE)[0]
    assert screen.process.wait(TIMEOUT_S) == 1
    assert termios.tcgetattr(screen._slave) == screen.mode_before


def test_the_end_of_the_daemon_is_shown(publisher, open_screen, feed):
    """The daemon's goodbye is shown at once."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("peak 1500.0 Hz", feed)
    publisher.stop()
    screen.wait_until_shown("the daemon has stopped")
    screen.key(b"q")
    assert screen.end() == 0


def test_the_reason_of_an_absent_source_is_shown(open_screen):
    """The reason of a waiting source is shown before and after the first spectrum."""
    now = [make_stats("waiting", "no audio input")]
    publisher = make_publisher("tcp://127.0.0.1:*", "mic", lambda: now[0])
    publisher.start()
    feed, numbers = publisher.sources[0], iter(range(10**9))
    try:
        screen = open_screen(publisher.endpoints[0])
        screen.wait_until_shown("the daemon is waiting: no audio input")
        now[0] = make_stats()
        screen.wait_until_shown(
            "q quit  1-2 channel", lambda: feed.write(make_batch(next(numbers)))
        )
        now[0] = make_stats("waiting", "no samples for 1.0 s")
        feed.changed()
        screen.wait_until_shown("the daemon is waiting: no samples for 1.0 s")
        screen.key(b"q")
        assert screen.end() == 0
    finally:
        publisher.stop()


def test_without_a_terminal_lines_are_written(publisher, feed, tmp_path):
    """A file or pipe gets a line per second without escape sequences."""
    lines = tmp_path / "lines"

    def stop():
        feed()
        return "peak 1500.0 Hz -20.0 dBFS" in lines.read_text()

    with lines.open("w") as out:
        view(publisher.endpoints[0], out=out, keys=io.StringIO(), stop=stop)
    assert "\x1b" not in lines.read_text()
    assert lines.read_text().startswith(("waiting for tcp://", "mic/0"))


def test_beside_the_main_thread_signals_are_left_alone(publisher, tmp_path):
    """In another thread than the main one, the view leaves signal handlers alone."""
    before = signal.getsignal(signal.SIGTERM)
    during = []

    def stop():
        during.append(signal.getsignal(signal.SIGTERM))
        return True

    with (tmp_path / "lines").open("w") as out, ThreadPoolExecutor(1) as executor:
        shown = executor.submit(
            view, publisher.endpoints[0], out=out, keys=io.StringIO(), stop=stop
        )
        shown.result(TIMEOUT_S)
    assert during == [before]


@pytest.fixture
def terminal():
    """Make a pseudo-terminal in this process; return its other end and a Terminal."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as keys, os.fdopen(os.dup(slave), "w", encoding="utf-8") as out:
        yield master, Terminal(out, keys)
    with contextlib.suppress(OSError):
        os.close(master)


@pytest.mark.parametrize("first", ["key", "draw"])
def test_a_terminal_that_vanishes_ends_the_view(terminal, first):
    """If the terminal disappears, reading or drawing ends the view like the quit key."""
    master, own = terminal
    with own:
        assert own.key(0.0) == ""
        os.close(master)
        if first == "draw":
            own.send("x")
        assert own.key(0.0) == GONE


def test_a_terminal_that_nobody_reads_is_not_waited_for(terminal):
    """While nobody reads the terminal, pictures are dropped and keys are still read."""
    master, own = terminal
    with own:
        own.send("x" * 1_000_000)
        assert not own.is_ready()
        os.write(master, b"2")
        assert own.key(TIMEOUT_S) == "2"
    output = b""
    while not output.endswith(LEAVE):
        assert select.select([master], [], [], TIMEOUT_S)[0]
        output += os.read(master, 65536)


def test_ctrl_s_stops_nothing(publisher, open_screen, feed):
    """Ctrl-S is a key like any other and does not freeze the terminal."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("peak 1500.0 Hz", feed)
    screen.key(b"\x132")
    screen.wait_until_shown("peak 3000.0 Hz", feed)
    screen.key(b"q")
    assert screen.end() == 0


@pytest.mark.parametrize("locale", ["C.UTF-8", "POSIX", "C"])
def test_an_encoding_without_block_characters_has_others(publisher, open_screen, feed, locale):
    """An output in Latin-1, or a locale that is not UTF-8, gets a picture of ASCII characters."""
    latin = "import sys; sys.stdout.reconfigure(encoding='latin-1')" if locale == "C.UTF-8" else ""
    screen = open_screen(publisher.endpoints[0], code=latin, locale=locale)
    screen.wait_until_shown("peak 1500.0 Hz -20.0 dBFS", feed)
    screen.key(b"q")
    assert screen.end() == 0
    assert screen.output.isascii()
    assert b"##" in screen.output
    assert b"??" not in screen.output


def test_a_change_of_scaling_is_followed(publisher, open_screen, feed):
    """If the scaling changes, another product of the selected channel replaces the old one."""
    other = SpectrumSpec(fs=48000.0, channels=2, win_length=256, hop=128, scaling="spectrum")
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("1-2 channel", feed)
    screen.key(b"2")
    screen.wait_until_shown("mic/1", feed)
    # The values are levels; as mean squares they lie below the scale.
    screen.wait_until_shown(
        "peak silence", lambda: publisher.sources[0].write(make_batch(0, other))
    )
    screen.wait_until_shown("mic/1", lambda: publisher.sources[0].write(make_batch(0, other)))
    assert b"1-4 channel" not in screen.output
    screen.key(b"q")
    assert screen.end() == 0


def test_a_daemon_that_returns_under_another_name_is_followed(publisher, open_screen, feed):
    """If a daemon returns under another name, its channels replace the old ones after a while."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("mic/0", feed)
    endpoint = publisher.endpoints[0]
    publisher.stop()
    renamed = make_publisher(endpoint, "roof")
    renamed.start()
    numbers = iter(range(10**9))
    feed_renamed = lambda: renamed.sources[0].write(make_batch(next(numbers)))  # noqa: E731
    screen.wait_until_shown("roof/0", feed_renamed)
    screen.wait_until_shown("q quit  1-2 channel", feed_renamed)
    renamed.stop()
    screen.key(b"q")
    assert screen.end() == 0


def test_a_change_of_length_is_followed(publisher, open_screen, feed):
    """A new number of bins starts a new waterfall."""
    other = SpectrumSpec(fs=48000.0, channels=2, win_length=512, hop=128, scaling="dbfs")
    screen = open_screen(publisher.endpoints[0])
    screen.wait_until_shown("N 256", feed)
    screen.wait_until_shown("N 512", lambda: publisher.sources[0].write(make_batch(0, other)))
    screen.key(b"q")
    assert screen.end() == 0
