"""The live view in a terminal: a spectrum above a waterfall, from any daemon's endpoint."""

import os
import select
import shutil
import signal
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Self, TextIO

import numpy as np

from spectrod.client import Subscription, subscribe
from spectrod.view.colour import RESET, Style, style_for
from spectrod.view.peak import levels_db
from spectrod.view.render import HistoryRow, Scene, render
from spectrod.view.status import status_line
from spectrod.wire.schema import Frame

FRAME_PERIOD_S = 0.05
STATUS_PERIOD_S = 1.0

_HISTORY_ROWS = 400
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"  # alternate screen, no cursor, clear
_LEAVE = f"{RESET}\x1b[?25h\x1b[?1049l"


def view(
    endpoint: str,
    *,
    prefix: str = "spec/",
    out: TextIO | None = None,
    keys: TextIO | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Show a daemon's spectra until q is pressed or stop says so.

    On a terminal: a picture, 20 a second at most, in the alternate screen; the terminal is
    restored however this ends, by SIGTERM, SIGHUP or an exception too. Elsewhere: a line a second.

    Parameters
    ----------
    endpoint : str
        Where the daemon publishes; it may start later.
    prefix : str
        Beginning of the topics wanted.
    out, keys : text file or None
        Where to draw and where keys come from; None is standard output and input.
    stop : callable
        Asked before every picture.

    Raises
    ------
    ConfigError
        If the endpoint is not one that can be connected to.
    WireError
        If a message does not follow the protocol.
    KeyboardInterrupt
        At Ctrl-C, the terminal restored.
    """
    out = sys.stdout if out is None else out
    keys = sys.stdin if keys is None else keys
    with subscribe(endpoint, prefix) as subscription, _ended_by_signal() as ended:
        player = _Player(subscription, endpoint)

        def is_over() -> bool:
            return ended.is_set() or stop()

        if out.isatty() and os.environ.get("TERM") != "dumb":
            with Terminal(out, keys) as terminal:
                _play(player, terminal, style_for(os.environ), is_over)
        else:
            _report(player, out, is_over)


class Terminal:
    """A terminal that is ours while inside the ``with`` statement, and as it was afterwards."""

    def __init__(self, out: TextIO, keys: TextIO) -> None:
        self._out = out
        self._keys_fd = keys.fileno() if keys.isatty() else None
        self._saved: list[Any] | None = None

    def __enter__(self) -> Self:
        if self._keys_fd is not None:
            self._saved = termios.tcgetattr(self._keys_fd)
        try:
            self._take_over()
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def size(self) -> tuple[int, int]:
        """Columns and lines now."""
        try:
            columns, lines = os.get_terminal_size(self._out.fileno())
        except OSError:
            columns, lines = shutil.get_terminal_size()
        return columns, lines

    def draw(self, lines: list[str]) -> None:
        """Replace the picture."""
        self._out.write("\x1b[H" + "\x1b[K\r\n".join(lines) + "\x1b[K\x1b[J")
        self._out.flush()

    def key(self, timeout_s: float) -> str:
        """Wait for a key; an empty text if there was none in time, "q" if the terminal is gone."""
        fds = [] if self._keys_fd is None else [self._keys_fd]
        ready, _, _ = select.select(fds, [], [], timeout_s)
        if not ready:
            return ""
        try:
            return os.read(fds[0], 1).decode("ascii", "replace") or "q"
        except OSError:
            return "q"

    def _take_over(self) -> None:
        if self._keys_fd is not None:
            tty.setcbreak(self._keys_fd)
            mode = termios.tcgetattr(self._keys_fd)
            mode[6][termios.VSUSP] = b"\0"  # Ctrl-Z would leave the shell in the alternate screen
            termios.tcsetattr(self._keys_fd, termios.TCSANOW, mode)
        self._out.write(_ENTER)
        self._out.flush()

    def _restore(self) -> None:
        with suppress(OSError):  # the terminal may be gone
            self._out.write(_LEAVE)
            self._out.flush()
        if self._keys_fd is not None and self._saved is not None:
            with suppress(termios.error):
                termios.tcsetattr(self._keys_fd, termios.TCSANOW, self._saved)


class _Player:
    """Follows a subscription and keeps the scene up to date."""

    def __init__(self, subscription: Subscription, endpoint: str) -> None:
        self._subscription = subscription
        self._history: deque[HistoryRow] = deque(maxlen=_HISTORY_ROWS)
        self._chosen: str | None = None
        self.scene = Scene(endpoint)

    def update(self, wait_s: float) -> None:
        """Take in what has arrived; wait that long for something."""
        first = self._subscription.receive(wait_s)
        if first is not None:
            self._show([first, *self._subscription.drain()])
        scene, subscription = self.scene, self._subscription
        scene.now_s = time.monotonic()
        scene.alive = subscription.alive
        scene.silence_s = subscription.silence_s
        scene.missed = subscription.missed
        scene.daemon_state = subscription.heartbeat.state if subscription.heartbeat else None
        scene.history = list(self._history)

    def choose(self, key: str) -> None:
        """Switch to the channel of a digit key, if there is one."""
        if key.isdecimal() and 1 <= int(key) <= len(self.scene.topics):
            self._chosen = self.scene.topics[int(key) - 1]
            self._history.clear()

    def _show(self, frames: list[Frame]) -> None:
        seen = {*self.scene.topics, *(frame.topic for frame in frames)}
        self.scene.topics = sorted(seen, key=_natural_order)
        self._chosen = self._chosen or self.scene.topics[0]
        mine = [frame for frame in frames if frame.topic == self._chosen]
        if not mine:
            return
        newest = mine[-1]
        levels = [levels_db(f) for f in mine if len(f.values) == len(newest.values)]
        if self._history and len(self._history[0].levels) != len(newest.values):
            self._history.clear()  # the daemon came back with another nfft
        self._history.appendleft(HistoryRow(time.monotonic(), np.max(levels, axis=0)))
        self.scene.frame, self.scene.levels = newest, levels[-1]


def _play(player: _Player, terminal: Terminal, style: Style, is_over: Callable[[], bool]) -> None:
    while not is_over():
        next_s = time.monotonic() + FRAME_PERIOD_S
        player.update(FRAME_PERIOD_S)
        columns, rows = terminal.size()
        # One column stays free: after a full line, clearing to its end would eat the last one.
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
            next_s += STATUS_PERIOD_S
            out.write(_status_text(player.scene) + "\n")
            out.flush()


def _status_text(scene: Scene) -> str:
    if scene.frame is None:
        return render(scene, 200, 1, Style())[0]
    if not scene.alive:
        return f"no signal since {scene.silence_s:.1f} s"
    return status_line(scene.frame, scene.missed)


def _natural_order(topic: str) -> tuple[str, int, str]:
    _, source, channel, *_ = topic.split("/")
    return source, int(channel) if channel.isdecimal() else -1, topic


@contextmanager
def _ended_by_signal() -> Iterator[threading.Event]:
    """Turn SIGTERM and SIGHUP into an event, so that the terminal is restored before they act.

    Only where they would otherwise kill the process at once: a program that handles them itself,
    or runs the view beside its main thread, goes on to do so.
    """
    ended = threading.Event()
    caught: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        caught.append(number)
        ended.set()

    mine = []
    if threading.current_thread() is threading.main_thread():
        wanted = (signal.SIGTERM, signal.SIGHUP)
        mine = [number for number in wanted if signal.getsignal(number) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, note)
    try:
        yield ended
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
        if caught:
            signal.raise_signal(caught[0])
