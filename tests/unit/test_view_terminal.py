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
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from spectrod.levels import LevelRow, parse_quantity
from spectrod.stats import CaptureStats, Stats
from spectrod.types import SpectrumBatch, SpectrumSpec
from spectrod.view.axes import frequency_axis
from spectrod.view.terminal import Terminal, view
from spectrod.wire.interval_encoder import IntervalEncoder
from spectrod.wire.publisher import Publisher

TIMEOUT_S = 20.0
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
    return Stats(
        *(state, "test", "numpy", 48000.0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0.0),
        capture=CaptureStats(waiting_for=waiting_for),
    )


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

    def __init__(self, endpoint, rows=30, columns=100, code=""):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.mode_before = termios.tcgetattr(slave)
        self._slave = slave
        program = f"{code}\nfrom spectrod.view.terminal import view\nview({endpoint!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
            env=os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )
        self.output = b""

    def resize(self, rows, columns):
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def wait_for(self, text, feed=None):
        """Read until new output contains the text; feed keeps spectra coming."""
        begin = len(self.output)
        while text not in self.output[begin:]:
            if feed is not None:
                feed()
            ready, _, _ = select.select([self.master], [], [], 0.02 if feed else TIMEOUT_S)
            assert ready or feed, self.output[-2000:]
            if ready:
                self.output += os.read(self.master, 65536)

    def key(self, key):
        os.write(self.master, key)

    def end(self):
        """Return the exit status, and check that the terminal was restored."""
        self.wait_for(LEAVE)
        status = self.process.wait(TIMEOUT_S)
        assert self.output.count(ENTER) == self.output.count(LEAVE) == 1
        assert termios.tcgetattr(self._slave) == self.mode_before
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self._slave)


@pytest.fixture
def open_screen():
    screens = []

    def start(*args, **options):
        screens.append(Screen(*args, **options))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


@pytest.fixture
def feed(publisher):
    """Submit one more frame at each call."""
    numbers = iter(range(10**9))
    return lambda: publisher.sources[0].submit(make_batch(next(numbers)))


def test_a_spectrum_is_shown_and_q_ends(publisher, open_screen, feed):
    """The peak is shown, keys select the channel, the size follows the window, and q ends."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_for(b"peak 1500.0 Hz -20.0 dBFS", feed)
    screen.wait_for(b"q quit  1-2 channel", feed)
    screen.key(b"2")
    screen.wait_for(b"peak 3000.0 Hz -10.0 dBFS", feed)
    screen.resize(9, 25)
    screen.wait_for(b"\x1b[H3000.0 Hz -10.0 dBFS\x1b[K\r\r\ntoo small for a picture:\x1b[K", feed)
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
    publisher.sources[0].submit_interval(METER, row, 0)


def test_levels_have_a_line_below_the_head(publisher, open_screen, feed):
    """The channel's sound levels have a line with held peaks, which r resets."""
    screen = open_screen(publisher.endpoints[0])

    def feed_both(k=0):
        feed()
        submit_levels(publisher, k)

    screen.wait_for(b"meter  LAeq -20.0 dBFS  true_peak -3.0 (max -3.0) dBTP  overload", feed_both)
    screen.wait_for(b"true_peak -4.0 (max -3.0)", lambda: feed_both(1))
    screen.key(b"r")
    screen.wait_for(b"true_peak -4.0 (max -4.0)", lambda: feed_both(1))
    screen.key(b"2")
    screen.wait_for(b"meter  LAeq -30.0 dBFS  true_peak -9.0 (max -9.0) dBTP\x1b", feed_both)
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
    return "".join(line).rstrip().encode()


def test_keys_change_the_picture(publisher, open_screen, feed):
    """Arrow keys, help, pause, levels and zoom change the picture, and q still ends."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_for(b"? help", feed)
    screen.key(b"?")
    screen.wait_for(b"reset levels, frequencies and peaks", feed)
    screen.key(b"?")
    screen.wait_for(b"? help", feed)
    screen.key(3 * b"\x1b[A")
    screen.wait_for(b"    30\xe2\x94\x82", feed)  # the top is 30 dBFS
    screen.key(9 * b"\x1bOB")
    screen.wait_for(b"  -150\xe2\x94\x82", feed)  # the top is -60 dBFS, the foot 120 dB below
    screen.key(b"+")
    screen.wait_for(middle_frequencies(), feed)
    screen.key(b" ")
    screen.wait_for(b"paused; space resumes", feed)
    screen.key(b"\x1b[99;99;99~")  # of another key, which is ignored as a whole
    screen.key(b" ")
    screen.wait_for(b"? help", feed)
    screen.key(b"q")
    assert screen.end() == 0


def test_waiting_is_shown_and_ctrl_c_ends(open_screen):
    """While it waits, the view shows the endpoint, and Ctrl-C ends it with Python's status."""
    screen = open_screen("tcp://127.0.0.1:1")
    screen.wait_for(b"waiting for tcp://127.0.0.1:1")
    screen.key(b"\x03")
    assert screen.end() == -signal.SIGINT


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_the_terminal_restored(open_screen, number):
    """A signal ends the process with that signal and a restored terminal."""
    screen = open_screen("tcp://127.0.0.1:1")
    screen.wait_for(b"waiting for")
    screen.process.send_signal(number)
    assert screen.end() == -number


def test_an_exception_restores_the_terminal(open_screen):
    """An error while drawing is printed on a restored terminal."""
    code = (
        "import spectrod.view.terminal as t\n"
        "def render(*_): raise ArithmeticError('broken')\n"
        "t.render = render"
    )
    screen = open_screen("tcp://127.0.0.1:1", code=code)
    screen.wait_for(b"ArithmeticError: broken")
    assert b"ArithmeticError" not in screen.output.partition(LEAVE)[0]
    assert screen.process.wait(TIMEOUT_S) == 1
    assert termios.tcgetattr(screen._slave) == screen.mode_before


def test_the_end_of_the_daemon_is_shown(publisher, open_screen, feed):
    """The daemon's goodbye is shown at once."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_for(b"peak 1500.0 Hz", feed)
    publisher.stop()
    screen.wait_for(b"the daemon has stopped")
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
        screen.wait_for(b"the daemon is waiting: no audio input")
        now[0] = make_stats()
        screen.wait_for(b"q quit  1-2 channel", lambda: feed.submit(make_batch(next(numbers))))
        now[0] = make_stats("waiting", "no samples for 1.0 s")
        feed.changed()
        screen.wait_for(b"the daemon is waiting: no samples for 1.0 s")
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
            own.draw(["x"])
        assert own.key(0.0) == "q"


def test_a_terminal_that_nobody_reads_is_not_waited_for(terminal):
    """While nobody reads the terminal, pictures are dropped and keys are still read."""
    master, own = terminal
    with own:
        for _ in range(100):
            own.draw(["x" * 1000] * 10)
        assert own._unsent
        os.write(master, b"2")
        assert own.key(TIMEOUT_S) == "2"
    output = b""
    while not output.endswith(LEAVE):
        assert select.select([master], [], [], TIMEOUT_S)[0]
        output += os.read(master, 65536)


def test_ctrl_s_stops_nothing(publisher, open_screen, feed):
    """Ctrl-S is a key like any other and does not freeze the terminal."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_for(b"peak 1500.0 Hz", feed)
    screen.key(b"\x13")
    screen.wait_for(b"peak 1500.0 Hz", feed)
    screen.key(b"q")
    assert screen.end() == 0


def test_an_encoding_without_block_characters_is_no_error(publisher, open_screen, feed):
    """A terminal in Latin-1 shows question marks for bars, and the read-out."""
    latin = "import sys; sys.stdout.reconfigure(encoding='latin-1')"
    screen = open_screen(publisher.endpoints[0], code=latin)
    screen.wait_for(b"peak 1500.0 Hz -20.0 dBFS", feed)
    screen.key(b"q")
    assert screen.end() == 0
    assert b"???" in screen.output


def test_a_change_of_scaling_is_followed(publisher, open_screen, feed):
    """If the scaling changes, another product of the selected channel replaces the old one."""
    other = SpectrumSpec(fs=48000.0, channels=2, win_length=256, hop=128, scaling="spectrum")
    screen = open_screen(publisher.endpoints[0])
    screen.wait_for(b"1-2 channel", feed)
    screen.key(b"2")
    screen.wait_for(b"mic/1", feed)
    # The values are levels; as mean squares they lie below the scale.
    screen.wait_for(b"peak silence", lambda: publisher.sources[0].submit(make_batch(0, other)))
    screen.wait_for(b"mic/1", lambda: publisher.sources[0].submit(make_batch(0, other)))
    assert b"1-4 channel" not in screen.output
    screen.key(b"q")
    assert screen.end() == 0


def test_a_daemon_that_returns_under_another_name_is_followed(publisher, open_screen, feed):
    """If a daemon returns under another name, its channels replace the old ones after a while."""
    screen = open_screen(publisher.endpoints[0])
    screen.wait_for(b"mic/0", feed)
    endpoint = publisher.endpoints[0]
    publisher.stop()
    renamed = make_publisher(endpoint, "roof")
    renamed.start()
    numbers = iter(range(10**9))
    screen.wait_for(b"roof/0", lambda: renamed.sources[0].submit(make_batch(next(numbers))))
    screen.wait_for(
        b"q quit  1-2 channel", lambda: renamed.sources[0].submit(make_batch(next(numbers)))
    )
    renamed.stop()
    screen.key(b"q")
    assert screen.end() == 0


def test_a_change_of_length_is_followed(publisher, open_screen, feed):
    """A new number of bins starts a new waterfall."""
    other = SpectrumSpec(fs=48000.0, channels=2, win_length=512, hop=128, scaling="dbfs")
    screen = open_screen(publisher.endpoints[0])
    screen.wait_for(b"N 256", feed)
    screen.wait_for(b"N 512", lambda: publisher.sources[0].submit(make_batch(0, other)))
    screen.key(b"q")
    assert screen.end() == 0
