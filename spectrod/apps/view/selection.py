"""Which channel and product are shown, of those that come."""

import time
from collections.abc import Sequence

from spectrod.client.bounded_dict import BoundedDict
from spectrod.wire.schema import Frame

CHANNELS_MAX = 1024
"""Channels to choose from; more drop those that came least recently."""

_ABSENT_ROUNDS = 16
_PRODUCT_KEPT_S = 60.0


def channel_of(frame: Frame) -> str:
    """Return source and channel, which stay the same when the product changes."""
    return f"{frame.source}/{frame.channel}"


class ChannelSelection:
    """The visible channel: the first in order, until it disappears or another is chosen.

    A subscription may start between the frames of two channels of the same time: until the visible
    channel comes a second time, one that is before it takes its place.
    """

    def __init__(self) -> None:
        # Channel to number of its last frame, over all channels.
        self._heard: BoundedDict[int] = BoundedDict(CHANNELS_MAX, CHANNELS_MAX)
        self._n_frames = 0
        self._has_settled = False
        self.known: list[str] = []
        """Channels to choose from, each SOURCE/CHANNEL, in order."""
        self.shown = ""
        """The visible channel; empty before the first."""

    def hear(self, frames: Sequence[Frame]) -> None:
        """Record the channels of received frames."""
        for frame in frames:
            self._n_frames += 1
            name = channel_of(frame)
            self._has_settled |= name == self.shown
            self._heard.put(name, self._n_frames, 1)
        # A channel without frames for many rounds of the others: the daemon has renamed its source.
        oldest = self._n_frames - _ABSENT_ROUNDS * len(self._heard)
        for name in [name for name, n in self._heard.items() if n < oldest]:
            self._heard.discard(name)
        self.known = sorted(self._heard, key=_natural_order)
        if self.shown not in self._heard or not self._has_settled:
            self.shown = self.known[0]

    def choose(self, name: str) -> None:
        """Show a channel from its first frame on."""
        self.shown, self._has_settled = name, True

    def next(self) -> None:
        """Show the next channel."""
        if self.known:
            self.choose(self.known[(self.known.index(self.shown) + 1) % len(self.known)])


class ProductSelection:
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


def _natural_order(name: str) -> tuple[str, int, str]:
    source, channel = name.split("/")
    return source, int(channel) if channel.isdecimal() else -1, channel
