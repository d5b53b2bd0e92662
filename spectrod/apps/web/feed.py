"""Messages of one daemon: only of topics that somebody wants, so that it computes no others."""

import logging
import time
from collections.abc import Callable, Iterable

from spectrod.client import aio
from spectrod.client.connection import KeyFile
from spectrod.client.tracker import SILENCE_S, AnyFrame
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import ConfigError, DeniedError, WireError
from spectrod.lib.text import printable
from spectrod.wire.schema import EventMessage, HeartbeatHeader, Meta

_POLL_S = 0.05
_EVENTS_PREFIX = "event/"

_log = logging.getLogger(__name__)


class Feed:
    """A subscription to a daemon that may start later and restart. Used by one event loop.

    Parameters
    ----------
    endpoint : str
        The daemon's endpoint.
    server_key, key_file : str, path or None
        As for ``spectrod.client.subscribe``.
    on_frame : callable
        Called with each message with values; WireError and ConfigError say that it is broken.
    on_event : callable
        Called with each event.

    Attributes
    ----------
    endpoint : str
    missed : int
        Messages lost between the daemon and here.
    broken : int
        Messages that broke the protocol, which were left out.
    why : str
        Why there is no connection, for a person; empty if it is not known, or there is one.
    clock_offset_s : dict of str to float
        The daemon's clock less this machine's at the last heartbeat of each source [s].
    """

    def __init__(
        self,
        endpoint: str,
        server_key: KeyFile | None,
        key_file: KeyFile | None,
        on_frame: Callable[["Feed", AnyFrame], None],
        on_event: Callable[["Feed", EventMessage], None],
    ) -> None:
        self.endpoint = endpoint
        self.broken = 0
        self.why = ""
        self.clock_offset_s: dict[str, float] = {}
        self._on_frame, self._on_event = on_frame, on_event
        self._described: dict[str, Meta] = {}
        self._wanted: set[str] = set()
        self._beats: dict[str, HeartbeatHeader] = {}
        # Its descriptions and heartbeats come with every subscription.
        self._subscription = aio.subscribe(
            endpoint, _EVENTS_PREFIX, server_key=server_key, key_file=key_file
        )

    @property
    def missed(self) -> int:
        """Messages lost between the daemon and here."""
        return self._subscription.missed

    @property
    def meta(self) -> dict[str, Meta]:
        """The last description of each topic, by the topic of its spectra."""
        return self._subscription.meta

    @property
    def heartbeats(self) -> dict[str, HeartbeatHeader]:
        """The last heartbeat of each source."""
        return self._subscription.heartbeats

    @property
    def silence_s(self) -> float:
        """Time since the last message [s]; infinite before the first."""
        return self._subscription.silence_s

    @property
    def connected(self) -> bool:
        """Whether the daemon has sent something within three of its heartbeats."""
        return self.silence_s < SILENCE_S

    def new_meta(self) -> list[Meta]:
        """Return the descriptions that came since the last call."""
        meta, described = self.meta, self._described
        self._described = dict(meta)
        return [one for name, one in meta.items() if described.get(name) is not one]

    def want(self, prefixes: Iterable[str]) -> None:
        """Set the prefixes of topics that are wanted."""
        wanted = set(prefixes)
        for prefix in wanted - self._wanted:
            self._subscription.add_prefix(prefix)
        for prefix in self._wanted - wanted:
            self._subscription.remove_prefix(prefix)
        self._wanted = wanted

    async def run(self) -> None:
        """Pass on messages until cancelled, then close the subscription."""
        async with self._subscription:
            while True:
                await self._step()

    async def _step(self) -> None:
        """Pass on one message, or none if none comes soon."""
        try:
            frame = await self._subscription.receive(_POLL_S)
            if frame is not None:
                self._on_frame(self, frame)
        except DeniedError as error:
            self._note_refusal(printable(str(error)))
        except (WireError, ConfigError) as error:
            self.broken += 1
            if self.broken == 1:
                _log.warning("%s: a message is left out: %s", self.endpoint, error)
        self._note_others()

    def _note_refusal(self, why: str) -> None:
        if why != self.why:
            _log.warning("%s", why)
        self.why = why

    def _note_others(self) -> None:
        """Process heartbeats and events, which the subscription keeps beside the frames."""
        beats = self.heartbeats
        changed = [name for name, beat in beats.items() if self._beats.get(name) is not beat]
        if changed:
            now_s = time.time()
            for name in changed:
                self.clock_offset_s[name] = beats[name].t_utc_ns / NS_PER_S - now_s
            self._beats = dict(beats)  # without those that the subscription has dropped
            self.clock_offset_s = {name: self.clock_offset_s[name] for name in beats}
            self.why = ""
        events = self._subscription.events
        while events:
            self._on_event(self, events.popleft())
