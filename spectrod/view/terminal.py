"""The live view in a terminal: a spectrum above a waterfall, from any daemon's endpoint."""

import os
import re
import select
import shutil
import signal
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self, TextIO

import numpy as np

from spectrod.client import Subscription
from spectrod.client.connection import read_credentials
from spectrod.client.subscription import open_subscription
from spectrod.endpoint import parse_remote
from spectrod.units import Float64Array
from spectrod.view.axes import frequency_axis
from spectrod.view.colour import RESET, Style, style_for
from spectrod.view.controls import ARROWS
from spectrod.view.meters import Meters
from spectrod.view.peak import levels_db
from spectrod.view.render import HistoryRow, Scene, render, waiting_text
from spectrod.view.status import status_line, write_line
from spectrod.wire.schema import Frame, HeartbeatHeader, LevelsFrame

FRAME_PERIOD_S = 0.05
STATUS_PERIOD_S = 1.0

_HISTORY_ROWS = 400
_ABSENT_ROUNDS = 16
_PRODUCT_KEPT_S = 60.0
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"  # alternate screen, no cursor, clear
_LEAVE = f"{RESET}\x1b[?25h\x1b[?1049l"
_LEAVE_LIMIT_S = 0.5
_ARROWS = {f"{kind}{end}": name for kind in "[O" for end, name in zip("ABCD", ARROWS, strict=True)}
"""Sequences that terminals send for arrows, after an escape."""
_ESCAPE = re.compile(r"\[[0-?]*[ -/]*[@-~]|O.|[^\[O]")
_ESCAPE_MAX = 32


def view(  # noqa: PLR0913 - all keywords, all optional
    endpoint: str,
    *,
    prefix: str = "spec/",
    server_key: str | None = None,
    key_file: str | None = None,
    out: TextIO | None = None,
    keys: TextIO | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Show a daemon's spectra and sound levels until q is pressed or ``stop`` returns True.

    On a terminal: at most 20 pictures a second in the alternate screen; the terminal is restored at
    every end, also by SIGTERM, SIGHUP or an exception. Otherwise: one line a second.

    Parameters
    ----------
    endpoint : str
        Endpoint where the daemon publishes; the daemon may start later.
    prefix : str
        Prefix of the topics of spectra; sound levels are those of the same sources and channels.
    server_key, key_file : str or None
        For an endpoint with keys, as for ``spectrod.client.subscribe``.
    out, keys : text file or None
        Output for pictures and input for keys, each with a descriptor; None for standard output and
        input.
    stop : callable
        Called before every picture.

    Raises
    ------
    ConfigError
        If the endpoint is invalid, or a key cannot be read.
    DeniedError
        If the daemon refuses the connection.
    WireError
        If a message does not follow the protocol.
    StorageError, BrokenPipeError
        If a line cannot be written, or its reader has gone.
    KeyboardInterrupt
        At Ctrl-C, after the terminal was restored.
    """
    out = sys.stdout if out is None else out
    keys = sys.stdin if keys is None else keys
    connection = open_subscription(
        parse_remote(endpoint), prefix, read_credentials(server_key, key_file), None
    )
    connection.subscribe(_levels_prefix(prefix))
    subscription = Subscription(connection, timeout_s=None)
    with subscription, _ended_by_signal() as ended:
        player = _Player(subscription, endpoint)

        def is_over() -> bool:
            return ended.is_set() or stop()

        if out.isatty() and os.environ.get("TERM") != "dumb":
            with Terminal(out, keys) as terminal:
                _play(player, terminal, style_for(os.environ), is_over)
        else:
            _report(player, out, is_over)


class Terminal:
    """A terminal in the alternate screen inside a ``with`` statement, restored afterwards.

    Nothing here waits for a terminal that accepts no output, for example because its other end is
    not read: pictures are then skipped, and keys are still read.
    """

    def __init__(self, out: TextIO, keys: TextIO) -> None:
        self._out = out
        self._keys_fd = keys.fileno() if keys.isatty() else None
        self._saved: list[Any] | None = None
        self._unsent = b""
        self._has_gone = False

    def __enter__(self) -> Self:
        self._fd = _open_without_waiting(self._out)
        if self._keys_fd is not None:
            self._saved = termios.tcgetattr(self._keys_fd)
        try:
            self._take_over()
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self._restore()

    def size(self) -> tuple[int, int]:
        """Return the current columns and lines."""
        try:
            columns, lines = os.get_terminal_size(self._fd)
        except OSError:
            columns, lines = shutil.get_terminal_size()
        return columns, lines

    def draw(self, lines: list[str]) -> None:
        """Replace the picture; skip it if the previous one is not written yet."""
        if not self._unsent:
            self._queue("\x1b[H" + "\x1b[K\r\n".join(lines) + "\x1b[K\x1b[J")
        self._send()

    def key(self, timeout_s: float) -> str:
        """Wait for a key; return an empty text after the timeout, "q" if the terminal has gone."""
        if self._has_gone:
            return "q"
        fds = [] if self._keys_fd is None else [self._keys_fd]
        ready, _, _ = select.select(fds, [], [], timeout_s)
        if not ready:
            return ""
        try:
            key = os.read(fds[0], 1).decode("ascii", "replace") or "q"
            return self._arrow(fds[0]) if key == "\x1b" else key
        except OSError:
            return "q"

    @staticmethod
    def _arrow(fd: int) -> str:
        """Read the rest of an escape sequence; return the name of an arrow, or an empty text."""
        text = ""
        while len(text) < _ESCAPE_MAX and select.select([fd], [], [], 0.0)[0]:
            text += os.read(fd, 1).decode("ascii", "replace")
            if _ESCAPE.fullmatch(text):
                break
        return _ARROWS.get(text, "")

    def _queue(self, text: str) -> None:
        self._unsent += text.encode(self._out.encoding or "ascii", "replace")

    def _send(self) -> None:
        """Write as much queued text as the terminal accepts now."""
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._fd, self._unsent) :]
        except BlockingIOError:
            pass  # the rest goes with the next picture
        except OSError:
            self._unsent, self._has_gone = b"", True

    def _take_over(self) -> None:
        if self._keys_fd is not None:
            tty.setcbreak(self._keys_fd)
            mode = termios.tcgetattr(self._keys_fd)
            mode[0] &= ~termios.IXON  # after Ctrl-S every write would wait for Ctrl-Q
            mode[6][termios.VSUSP] = b"\0"  # Ctrl-Z would leave the shell in the alternate screen
            termios.tcsetattr(self._keys_fd, termios.TCSANOW, mode)
        self._queue(_ENTER)
        self._send()

    def _restore(self) -> None:
        self._queue(_LEAVE)
        self._send_in_time()
        os.close(self._fd)
        if self._keys_fd is not None and self._saved is not None:
            with suppress(termios.error):
                termios.tcsetattr(self._keys_fd, termios.TCSANOW, self._saved)

    def _send_in_time(self) -> None:
        self._send()
        deadline_s = time.monotonic() + _LEAVE_LIMIT_S
        while self._unsent and (left_s := deadline_s - time.monotonic()) > 0.0:
            select.select([], [self._fd], [], left_s)
            self._send()
        if self._unsent:
            # The terminal is not read: later output of the program would block on a full buffer.
            with suppress(termios.error):
                termios.tcflush(self._fd, termios.TCOFLUSH)
            self._send()


def _open_without_waiting(out: TextIO) -> int:
    """Return a non-blocking descriptor of out's terminal.

    It is a separate open file, because the mode belongs to the open file, which the shell shares.
    """
    try:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(os.ttyname(out.fileno()), flags)
    except OSError:  # a terminal of another user, or from outside a container
        return os.dup(out.fileno())


class _Player:
    """Follows a subscription and keeps the scene up to date."""

    def __init__(self, subscription: Subscription, endpoint: str) -> None:
        self._subscription = subscription
        self._history: deque[HistoryRow] = deque(maxlen=_HISTORY_ROWS)
        self._chosen: str | None = None
        self._heard: dict[str, int] = {}  # channel to number of its last frame, over all channels
        self._n_frames = 0
        self._products = _ProductSelection()
        self._meters = Meters()
        self.scene = Scene(endpoint)

    def update(self, wait_s: float) -> None:
        """Process received frames; wait up to wait_s for one."""
        first = self._subscription.receive(wait_s)
        if first is not None:
            arrived = [first, *self._subscription.drain()]
            if not self.scene.look.is_paused:
                self._show([frame for frame in arrived if isinstance(frame, Frame)])
                for frame in arrived:
                    if isinstance(frame, LevelsFrame):
                        self._meters.hear(frame, time.monotonic())
        scene, subscription = self.scene, self._subscription
        scene.now_s = time.monotonic()
        scene.alive = subscription.alive
        scene.silence_s = subscription.silence_s
        scene.missed = subscription.missed
        beat = self._heartbeat()
        scene.daemon_state = beat.state if beat else None
        scene.waiting_for = beat.waiting_for if beat else ""
        scene.history = list(self._history)
        if not scene.look.is_paused:
            scene.meters = self._meters.lines(self._chosen or "", scene.now_s)

    def _heartbeat(self) -> HeartbeatHeader | None:
        """Return the heartbeat of the visible source, or the last of any source."""
        subscription = self._subscription
        source = self._chosen.split("/")[0] if self._chosen else ""
        return subscription.heartbeats.get(source, subscription.heartbeat)

    def choose(self, key: str) -> None:
        """Handle a key; a digit selects a channel, p the next product."""
        scene = self.scene
        if key.isdecimal() and 1 <= int(key) <= len(scene.channels):
            self._chosen = scene.channels[int(key) - 1]
            self._products = _ProductSelection()
            self._history.clear()
        elif key == "p":
            self._products.next()
        else:
            if key == "r":
                self._meters.reset()
            unit = scene.frame.header.unit if scene.frame else ""
            scene.look.press(key, unit, self._visible())

    def _visible(self) -> list[Float64Array]:
        """Return the levels of the visible frequencies in the whole waterfall [dB]."""
        if self.scene.frame is None:
            return []
        h = self.scene.frame.header
        bounds = frequency_axis(h.fs, h.nfft, 1, h.first_bin, self.scene.look.span).bounds
        return [row.levels[bounds[0] : bounds[-1]] for row in self._history]

    def _show(self, frames: list[Frame]) -> None:
        if not frames:
            return  # sound levels may come first, and alone
        self._note_channels(frames)
        of_channel = [frame for frame in frames if _channel(frame) == self._chosen]
        product = self._products.hear([frame.product for frame in of_channel])
        self.scene.products = self._products.known
        mine = [frame for frame in of_channel if frame.product == product]
        if not mine:
            return
        newest = mine[-1]
        levels = [levels_db(frame) for frame in mine if _is_like(frame, newest)]
        if self.scene.frame is not None and not _is_like(self.scene.frame, newest):
            self._history.clear()  # the analysis has changed
            if self.scene.frame.header.unit != newest.header.unit:
                self.scene.look.levels = None
        self._history.appendleft(HistoryRow(time.monotonic(), np.max(levels, axis=0)))
        self.scene.frame, self.scene.levels = newest, levels[-1]

    def _note_channels(self, frames: list[Frame]) -> None:
        for frame in frames:
            self._n_frames += 1
            self._heard[_channel(frame)] = self._n_frames
        # A channel without frames for many rounds of the others: the daemon has renamed its source.
        oldest = self._n_frames - _ABSENT_ROUNDS * len(self._heard)
        self._heard = {name: n for name, n in self._heard.items() if n >= oldest}
        self.scene.channels = sorted(self._heard, key=_natural_order)
        if self._chosen not in self._heard:
            self._chosen = self.scene.channels[0]


class _ProductSelection:
    """The visible product of a channel: the first, until it disappears or another is chosen."""

    def __init__(self) -> None:
        self._heard_s: dict[str, float] = {}
        self._shown = ""
        self._is_chosen = False
        self._n_absent = 0

    @property
    def known(self) -> list[str]:
        """Products received within the last minute, by name."""
        return sorted(self._heard_s)

    def next(self) -> None:
        """Select the next product."""
        known = self.known
        if known:
            place = known.index(self._shown) + 1 if self._shown in known else 0
            self._shown, self._is_chosen = known[place % len(known)], True

    def hear(self, products: Sequence[str]) -> str:
        """Record the products of received frames; return the visible product."""
        now_s = time.monotonic()
        self._heard_s |= dict.fromkeys(products, now_s)
        oldest_s = now_s - _PRODUCT_KEPT_S
        self._heard_s = {name: t_s for name, t_s in self._heard_s.items() if t_s >= oldest_s}
        if self._shown in products or not products:
            self._n_absent = 0
        elif self._shown not in self._heard_s:
            self._shown, self._is_chosen, self._n_absent = products[-1], False, 0
        elif not self._is_chosen:
            self._n_absent += 1
            if self._n_absent >= _ABSENT_ROUNDS:
                self._shown, self._n_absent = products[-1], 0
        return self._shown


def _channel(frame: Frame) -> str:
    """Return source and channel, which stay the same when the product changes."""
    return f"{frame.source}/{frame.channel}"


def _is_like(a: Frame, b: Frame) -> bool:
    """Return whether the values of two frames can be drawn on the same axes."""
    one, other = a.header, b.header
    axes = [(h.fs, h.nfft, h.first_bin, h.center_frequency_hz, h.unit) for h in (one, other)]
    return axes[0] == axes[1]


def _play(player: _Player, terminal: Terminal, style: Style, is_over: Callable[[], bool]) -> None:
    while not is_over():
        next_s = time.monotonic() + FRAME_PERIOD_S
        player.update(FRAME_PERIOD_S)
        columns, rows = terminal.size()
        # One column stays free: after a full line, clearing to its end would delete the last
        # character.
        terminal.draw(render(player.scene, columns - 1, rows, style))
        key = terminal.key(max(0.0, next_s - time.monotonic()))
        if key == "q":
            return
        player.choose(key)


def _report(player: _Player, out: TextIO, is_over: Callable[[], bool]) -> None:
    next_s = time.monotonic()
    while not is_over():
        player.update(FRAME_PERIOD_S)
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + STATUS_PERIOD_S
            write_line(_status_text(player.scene), out)


def _status_text(scene: Scene) -> str:
    if scene.frame is None:
        return render(scene, 200, 1, Style())[0]
    if not scene.alive:
        return f"no signal since {scene.silence_s:.1f} s"
    if scene.waiting_for:
        return f"{scene.frame.source}: {waiting_text(scene)}"
    return "  ".join((status_line(scene.frame, scene.missed), *scene.meters))


def _levels_prefix(prefix: str) -> str:
    """Return the prefix of the sound levels of the channels whose spectra have a prefix."""
    source, *rest = prefix.removeprefix("spec/").split("/")
    channel = [] if not rest else rest if len(rest) == 1 else [rest[0], ""]
    return "/".join(("levels", source, *channel))


def _natural_order(name: str) -> tuple[str, int, str]:
    source, channel = name.split("/")
    return source, int(channel) if channel.isdecimal() else -1, channel


@contextmanager
def _ended_by_signal() -> Iterator[threading.Event]:
    """Turn SIGTERM and SIGHUP into an event, to restore the terminal before they act.

    Only if they would otherwise kill the process at once: a program that handles them itself, or
    runs the view outside its main thread, continues to do so.
    """
    ended = threading.Event()
    caught: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        caught.append(number)
        ended.set()

    mine = []
    if threading.current_thread() is threading.main_thread():
        signals = (signal.SIGTERM, signal.SIGHUP)
        mine = [number for number in signals if signal.getsignal(number) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, note)
    try:
        yield ended
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
        if caught:
            signal.raise_signal(caught[0])
