"""The live view: a spectrum above a waterfall in a terminal, from any daemon's endpoint."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TextIO

from spectrod.apps.view.colour import Style, style_for
from spectrod.apps.view.controls import Look
from spectrod.apps.view.display import Display
from spectrod.apps.view.glyphs import ASCII, glyphs_for
from spectrod.apps.view.graphics import Graphics, Probe, window_cell_px
from spectrod.apps.view.keyboard import GONE, REDRAW
from spectrod.apps.view.player import Player
from spectrod.apps.view.render import draw
from spectrod.apps.view.scene import Scene, first_text, invalid_text, waiting_text
from spectrod.apps.view.signals import TerminalSignals
from spectrod.apps.view.status import status_line
from spectrod.apps.view.terminal import Terminal, bounded_size
from spectrod.client import Subscription
from spectrod.client.connection import read_credentials
from spectrod.client.subscription import open_subscription
from spectrod.lib.errors import UnavailableError
from spectrod.lib.output_line import write_line
from spectrod.wire.endpoint import parse_remote
from spectrod.wire.headers import MEASUREMENTS

FRAME_PERIOD_S = 0.05
STATUS_PERIOD_S = 1.0
FIRST_TIMEOUT_S = 10.0
"""How long a single picture waits for its first spectrum [s]."""


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How a view begins.

    Attributes
    ----------
    look : Look
        First settings of the picture.
    channel : str
        SOURCE/CHANNEL that is shown as soon as it comes; empty for the first one.
    is_ascii, has_colour : bool
        Whether pictures are of ASCII characters only, whatever the locale, and whether they may
        have colours.
    once_s : float or None
        Write a single picture of the first spectrum and what follows within this time; None to
        show pictures until the end [s].
    """

    look: Look = field(default_factory=Look)
    channel: str = ""
    is_ascii: bool = False
    has_colour: bool = True
    once_s: float | None = None

    def style(self, out: TextIO) -> Style:
        """Return the colours and characters for an output."""
        glyphs = ASCII if self.is_ascii else glyphs_for(os.environ, out.encoding)
        is_coloured = self.has_colour and out.isatty()
        return style_for(os.environ, glyphs) if is_coloured else Style("none", glyphs)


def view(  # noqa: PLR0913 - all keywords, all optional
    endpoint: str,
    *,
    prefix: str = "spec/",
    server_key: str | None = None,
    key_file: str | None = None,
    out: TextIO | None = None,
    keys: TextIO | None = None,
    stop: Callable[[], bool] = lambda: False,
    options: ViewOptions | None = None,
) -> None:
    """Show a daemon's spectra and measurements until q is pressed or ``stop`` returns True.

    On a terminal: at most 20 pictures a second in the alternate screen; the terminal is restored at
    every end, also by SIGTERM, SIGHUP or an exception, and while the process is stopped. Otherwise:
    one line a second. Messages that do not follow the protocol are counted and shown.

    Parameters
    ----------
    endpoint : str
        Endpoint where the daemon publishes; the daemon may start later.
    prefix : str
        Prefix of the topics of spectra; measurements are those of the same sources and channels.
    server_key, key_file : str or None
        For an endpoint with keys, as for ``spectrod.client.subscribe``.
    out, keys : text file or None
        Output for pictures and input for keys, each with a descriptor; None for standard output and
        input.
    stop : callable
        Called before every picture.
    options : ViewOptions or None
        How the view begins; None for the defaults.

    Raises
    ------
    ConfigError
        If the endpoint is invalid, or a key cannot be read.
    DeniedError
        If the daemon refuses the connection.
    UnavailableError
        If a single picture has no spectrum within ``FIRST_TIMEOUT_S``.
    StorageError, BrokenPipeError
        If a line cannot be written, or its reader has gone.
    KeyboardInterrupt
        At Ctrl-C, after the terminal was restored.
    """
    out = sys.stdout if out is None else out
    keys = sys.stdin if keys is None else keys
    options = options or ViewOptions()
    connection = open_subscription(
        parse_remote(endpoint), prefix, read_credentials(server_key, key_file), None
    )
    for word in MEASUREMENTS:
        connection.subscribe(values_prefix(word, prefix))
    subscription = Subscription(connection, timeout_s=None)
    with subscription, TerminalSignals() as signals:
        player = Player(subscription, Scene(endpoint, look=options.look), options.channel)
        style = options.style(out)

        def is_over() -> bool:
            return signals.ended or stop()

        if options.once_s is not None:
            _show_once(player, out, style, options.once_s, is_over)
        elif out.isatty() and os.environ.get("TERM") != "dumb":
            with Terminal(out, keys, can_suspend=signals.can_suspend) as terminal:
                _play(player, terminal, style, signals, is_over)
        else:
            _report(player, out, is_over)


def _play(
    player: Player,
    terminal: Terminal,
    style: Style,
    signals: TerminalSignals,
    is_over: Callable[[], bool],
) -> None:
    display, probe = Display(style), _Prober(terminal, style, is_wanted=player.scene.look.is_pixels)
    while not is_over():
        next_s = time.monotonic() + FRAME_PERIOD_S
        player.update(FRAME_PERIOD_S)
        if graphics := probe.result():
            style = replace(style, graphics=graphics)
            display = Display(style)
            terminal.farewell = display.farewell
        if signals.wants_stop:
            terminal.restore()
            signals.stop()
            terminal.take_over()
            display.forget()
        elif signals.take_continued():
            terminal.take_over()
            display.forget()
        columns, rows = terminal.size()
        if terminal.is_ready():
            # One column stays free: a character in the last one may make a terminal scroll.
            terminal.send(display.paint(draw(player.scene, max(1, columns - 1), rows, style)))
        key = terminal.key(max(0.0, next_s - time.monotonic()))
        if key in ("q", GONE):
            return
        if key == REDRAW:
            display.forget()
        else:
            player.choose(key)


class _Prober:
    """Asks a terminal with colours for its graphics, if it is also where keys come from."""

    def __init__(self, terminal: Terminal, style: Style, *, is_wanted: bool) -> None:
        self._terminal = terminal
        self._probe: Probe | None = None
        if is_wanted and style.has_colour and terminal.has_keys:
            self._probe = Probe(os.environ, time.monotonic())
            terminal.send(self._probe.question())

    def result(self) -> Graphics | None:
        """Process the answers that have come; return the graphics once, when they are known."""
        replies = self._terminal.parser.replies
        while replies:
            reply = replies.popleft()
            if self._probe is not None:
                self._terminal.send(self._probe.hear(reply, time.monotonic()))
        if self._probe is None or not self._probe.is_over:
            return None
        graphics = self._probe.graphics(window_cell_px(self._terminal.fd))
        self._probe = None
        return graphics


def _report(player: Player, out: TextIO, is_over: Callable[[], bool]) -> None:
    next_s = time.monotonic()
    while not is_over():
        player.update(FRAME_PERIOD_S)
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + STATUS_PERIOD_S
            write_line(_status_text(player.scene), out)


def _show_once(
    player: Player, out: TextIO, style: Style, duration_s: float, is_over: Callable[[], bool]
) -> None:
    """Write a picture of the first spectrum and what follows within a time."""
    columns, lines = bounded_size(*shutil.get_terminal_size())
    scene = player.scene
    scene.has_keys = False
    scene.look.period_s = max(FRAME_PERIOD_S, duration_s / lines)
    end_s = time.monotonic() + FIRST_TIMEOUT_S
    while not is_over() and time.monotonic() < end_s:
        had_none = scene.frame is None
        player.update(min(FRAME_PERIOD_S, duration_s))
        if had_none and scene.frame is not None:
            end_s = time.monotonic() + duration_s
    if scene.frame is None:
        is_told = scene.alive or scene.n_invalid or scene.hint
        reason = f" ({first_text(scene)})" if is_told else ""
        raise UnavailableError(
            f"{scene.endpoint}: no spectrum within {FIRST_TIMEOUT_S:g} s{reason}; is the daemon "
            "running there?"
        )
    picture = "\n".join(draw(scene, columns, lines - 1, style).lines(style))
    encoding = out.encoding or "ascii"
    out.write(picture.encode(encoding, "replace").decode(encoding) + "\n")
    out.flush()


def _status_text(scene: Scene) -> str:
    if scene.frame is None:
        return first_text(scene)
    if not scene.alive:
        return f"no signal since {scene.silence_s:.1f} s"
    if scene.waiting_for:
        return f"{scene.frame.source}: {waiting_text(scene)}"
    invalid = [invalid_text(scene)] if scene.n_invalid else []
    return "  ".join((status_line(scene.frame, scene.missed), *scene.meters, *invalid))


def values_prefix(word: str, prefix: str) -> str:
    """Return the prefix of a kind of measurement of channels by that of their spectra."""
    source, *rest = prefix.removeprefix("spec/").split("/")
    channel = [] if not rest else rest if len(rest) == 1 else [rest[0], ""]
    return "/".join((word, source, *channel))
