"""Follows a subscription and keeps the scene up to date."""

import time
from collections.abc import Sequence
from itertools import islice

import numpy as np

from spectrod.apps.view.axes import frequency_axis
from spectrod.apps.view.colour import line_colour
from spectrod.apps.view.frame_levels import levels_db
from spectrod.apps.view.history import RowHistory
from spectrod.apps.view.holds import HoldKind, Holds, MeanPower
from spectrod.apps.view.meters import Meters
from spectrod.apps.view.peak_list import find_peaks
from spectrod.apps.view.scene import Scene
from spectrod.apps.view.selection import ChannelSelection, ProductSelection, channel_of
from spectrod.apps.view.traces import Trace
from spectrod.client import Subscription
from spectrod.client.tracker import AnyFrame
from spectrod.dsp.units import NS_PER_S, Float64Array
from spectrod.lib.errors import WireError
from spectrod.wire.schema import Frame, HeartbeatHeader, IntervalFrame

OVERLAID_MAX = 8
"""Channels that are shown over each other."""

_MESSAGES_MAX = 1000  # of one picture
_LIST_PERIOD_S = 0.5
_FIT_PERIOD_S = 1.0
_FIT_ROWS = 128
_HOLDS: dict[HoldKind, tuple[int, str]] = {
    "max": (line_colour(0), "+"),
    "min": (line_colour(1), "-"),
    "mean": (line_colour(2), "="),
}
"""Colour and character of each hold."""


class Player:
    """Follows a subscription and keeps the scene up to date."""

    def __init__(self, subscription: Subscription, scene: Scene, channel: str = "") -> None:
        self._subscription = subscription
        self._history = RowHistory()
        self._channels = ChannelSelection()
        self._wanted = channel
        self._products = ProductSelection()
        self._meters = Meters()
        self._holds = Holds(scene.look.ballistics)
        self._mean = MeanPower()
        self._others: dict[str, Frame] = {}
        self._list_due_s = self._fit_due_s = 0.0
        self.scene = scene

    def update(self, wait_s: float) -> None:
        """Process received messages; wait up to wait_s for one."""
        arrived = self._arrived(wait_s)
        scene, subscription = self.scene, self._subscription
        scene.now_s = time.monotonic()
        if not scene.look.is_paused:
            self._show([frame for frame in arrived if isinstance(frame, Frame)])
            for frame in arrived:
                if isinstance(frame, IntervalFrame):
                    self._meters.hear(frame, scene.now_s)
            scene.meters = self._meters.lines(self._channels.shown, scene.now_s)
        scene.alive = subscription.alive
        scene.hint = "" if scene.alive else subscription.silence_hint()
        scene.silence_s = subscription.silence_s
        scene.missed = subscription.missed
        beat = self._heartbeat()
        scene.daemon_state = beat.state if beat else None
        scene.waiting_for = beat.waiting_for if beat else ""
        scene.history, scene.n_rows = self._history.rows, self._history.n_rows
        scene.generation = self._history.generation

    def _arrived(self, wait_s: float) -> list[AnyFrame]:
        """Return received frames; count messages that do not follow the protocol."""
        arrived: list[AnyFrame] = []
        for _ in range(_MESSAGES_MAX):
            try:
                frame = self._subscription.receive(wait_s)
            except WireError as error:
                self.scene.n_invalid += 1
                self.scene.invalid = str(error)
            else:
                if frame is None:
                    break
                arrived.append(frame)
            wait_s = 0.0
        return arrived

    def _heartbeat(self) -> HeartbeatHeader | None:
        """Return the heartbeat of the visible source, or the last of any source."""
        subscription = self._subscription
        source = self._channels.shown.split("/")[0]
        return subscription.heartbeats.get(source, subscription.heartbeat)

    def choose(self, key: str) -> None:
        """Handle a key: one that selects what is shown, or one of ``Look``."""
        scene = self.scene
        if key.isdecimal() and 1 <= int(key) <= len(scene.channels):
            self._channels.choose(scene.channels[int(key) - 1])
            self._start_again()
        elif key == "\t":
            self._channels.next()
            self._start_again()
        elif key == "p":
            self._products.next()
        else:
            self._press(key)

    def _press(self, key: str) -> None:
        look = self.scene.look
        if key in ("r", "c"):
            self._holds.reset()
        if key == "r":
            self._meters.reset()
        unit = self.scene.frame.header.unit if self.scene.frame else ""
        look.press(key, unit, self._visible() if key == "a" else [])
        self._holds.switch(look.holds)
        if key == ">":
            self._history.hurry()
        if not look.is_listing:
            self.scene.peaks = None
        if not look.is_overlaid:
            self._others.clear()
        self._list_due_s = self._fit_due_s = 0.0

    def _start_again(self) -> None:
        """Begin with another channel."""
        self._products = ProductSelection()
        self._forget()

    def _forget(self) -> None:
        """Forget rows that cannot be drawn on the axes of new ones."""
        self._history.clear()
        self._holds.reset()
        self._mean = MeanPower()
        self.scene.peaks = None

    def _visible(self) -> list[Float64Array]:
        """Return the levels of the visible frequencies now and in the newest rows [dB]."""
        if self.scene.levels is None:
            return []
        first, last = self._visible_bins()
        rows = [row.levels for row in islice(self._history.rows, _FIT_ROWS)]
        return [np.asarray(row[first:last], np.float64) for row in (self.scene.levels, *rows)]

    def _visible_bins(self) -> tuple[int, int]:
        """Return the first and last-plus-one visible bin."""
        if self.scene.frame is None:
            return 0, 0
        h, look = self.scene.frame.header, self.scene.look
        bounds = frequency_axis(
            h.fs, h.nfft, 1, h.first_bin, look.span, h.center_frequency_hz, look.axis
        ).bounds
        return int(bounds[0]), int(bounds[-1])

    def _show(self, frames: Sequence[Frame]) -> None:
        scene = self.scene
        if not frames:
            return  # sound levels may come first, and alone
        before = self._channels.shown
        self._channels.hear(frames)
        if self._wanted in self._channels.known:
            self._channels.choose(self._wanted)
            self._wanted = ""
        if self._channels.shown != before:
            self._start_again()
        scene.channels = self._channels.known
        of_channel = [frame for frame in frames if channel_of(frame) == self._channels.shown]
        product = self._products.hear([frame.product for frame in of_channel])
        scene.products = self._products.known
        if scene.look.is_overlaid:
            self._note_others(frames, product)
        mine = [frame for frame in of_channel if frame.product == product]
        if mine:
            self._show_rows(mine)
        scene.traces = self._traces()

    def _show_rows(self, mine: Sequence[Frame]) -> None:
        """Show rows of the visible channel and product."""
        scene, newest = self.scene, mine[-1]
        alike = [frame for frame in mine if _is_like(frame, newest)]
        levels = [levels_db(frame) for frame in alike]
        if scene.frame is not None and not _is_like(scene.frame, newest):
            self._forget()  # the analysis has changed
            if scene.frame.header.unit != newest.header.unit:
                scene.look.levels = None
        self._history.push(np.max(levels, axis=0), scene.now_s, scene.look.period_s)
        scene.frame, scene.levels = newest, levels[-1]
        self._holds.switch(scene.look.holds)
        for frame, row in zip(alike, levels, strict=True):
            self._holds.push(row, frame.header.t_utc_ns / NS_PER_S)
            if scene.look.is_listing:
                self._mean.push(row)
        self._list()
        if scene.look.is_fitting and scene.now_s >= self._fit_due_s:
            self._fit_due_s = scene.now_s + _FIT_PERIOD_S
            scene.look.follow(self._visible())

    def _list(self) -> None:
        """List the peaks of the mean since the last list: steadier than those of a row."""
        scene = self.scene
        mean = self._mean.levels
        if not scene.look.is_listing or scene.frame is None or mean is None:
            return
        if scene.now_s >= self._list_due_s:
            self._list_due_s = scene.now_s + _LIST_PERIOD_S
            scene.peaks = find_peaks(mean, scene.frame.header, *self._visible_bins())
            self._mean = MeanPower()

    def _note_others(self, frames: Sequence[Frame], product: str) -> None:
        for frame in frames:
            if frame.product == product:
                self._others[channel_of(frame)] = frame
        known = self._channels.known[:OVERLAID_MAX]
        self._others = {name: self._others[name] for name in known if name in self._others}

    def _traces(self) -> list[Trace]:
        """Return the holds, and the newest spectra of the other channels."""
        traces = [
            Trace(kind, levels, *_HOLDS[kind]) for kind, levels in self._holds.levels().items()
        ]
        for n, name in enumerate(self._channels.known[:OVERLAID_MAX]):
            frame = self._others.get(name)
            if frame is None or self.scene.frame is None or name == self._channels.shown:
                continue
            if _is_like(frame, self.scene.frame):
                pen = line_colour(len(_HOLDS) + n)
                traces.append(Trace(name, levels_db(frame), pen, str(n + 1)))
        return traces


def _is_like(a: Frame, b: Frame) -> bool:
    """Return whether the values of two frames can be drawn on the same axes."""
    one, other = a.header, b.header
    axes = [(h.fs, h.nfft, h.first_bin, h.center_frequency_hz, h.unit) for h in (one, other)]
    return axes[0] == axes[1]
