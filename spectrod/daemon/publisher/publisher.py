"""The publisher: sends spectra over ZeroMQ. Receives batches, knows no other stage."""

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final

import zmq

from spectrod.daemon.access.access import Access
from spectrod.daemon.access.flood import FloodWatch, Inbound, Stall
from spectrod.daemon.access.holders import KeyHolders
from spectrod.daemon.access.listeners import Listeners
from spectrod.daemon.publisher.raw32 import Raw32
from spectrod.daemon.publisher.sender import Roster, Sender
from spectrod.daemon.publisher.sent_messages import History
from spectrod.daemon.publisher.source_publisher import (
    Numbers,
    OnDemand,
    SourcePublisher,
    ignore_demand,
)
from spectrod.daemon.publisher.topic_encoder import NOTHING_STATED, StatedFacts
from spectrod.daemon.publisher.upstream import Upstream
from spectrod.daemon.publisher.xpub import open_xpub
from spectrod.lib.errors import ConfigError, SpectrodError
from spectrod.lib.events import EventLog
from spectrod.lib.stats import Stats
from spectrod.lib.wakeup import Wakeup
from spectrod.lib.worker import Worker
from spectrod.wire.endpoint import Endpoint, check_bindable, parse_endpoint, parse_raw32

EPOCH_BITS: Final = 53  # a double, JavaScript's only number, holds it exactly

_JOIN_S = 5.0
_NAMES_KEPT = 1024


class Publisher:
    """Sends every row of every channel as one message, from a thread that owns the sockets.

    Each source has a ``SourcePublisher`` with its own queue and counters. Frames can be lost in two
    places, and neither makes an analysis wait. Its queue, bounded by queue_frames, drops its oldest
    frames, counted in ``SourcePublisher.dropped``. ZeroMQ keeps up to high_water_mark messages per
    subscriber and drops new ones for that subscriber only, which sees a hole in ``seq``. A
    subscriber costs at most high_water_mark times the size of a message; a message that waits for
    several subscribers is stored once.

    Parameters
    ----------
    endpoints : sequence of str
        One or more of ``tcp://HOST:PORT`` and ``ipc://PATH``; port 0 or ``*`` selects a free port.
    insecure : bool
        Allow endpoints that other machines can reach.
    queue_frames : int
        Queue length of each source [frames], >= 1.
    high_water_mark : int
        Queue length of each subscriber [messages], >= 1.
    replay_mb : float
        Memory of ``history`` [MB].
    raw32 : sequence of str
        ``ENDPOINT TOPIC`` each: endpoint that sends the values of a topic as plain float32 vectors.
    access : Access or None
        Access control and the context of the sockets; None for no access control and an own
        context.
    events : EventLog or None
        Events to publish; call ``send_events`` after adding to it.
    progress : Wakeup or None
        Set when the first message of a source was sent, and when the thread has ended.

    Attributes
    ----------
    epoch : int
        Random number of this start of the daemon.
    endpoints, raw32_endpoints : tuple of str
        Endpoints as ``start`` has bound them, with their actual ports.
    failure : SpectrodError or None
        Error that ended the thread; None if ``stop`` did.
    history : History
        The last messages.

    Raises
    ------
    ConfigError
        If an endpoint is malformed, reachable by other machines or named twice, or a number is
        below 1.
    """

    def __init__(  # noqa: PLR0913 - all of [publish] and what the daemon shares
        self,
        endpoints: Sequence[str],
        *,
        insecure: bool = False,
        queue_frames: int = 256,
        high_water_mark: int = 256,
        replay_mb: float = 16.0,
        raw32: Sequence[str] = (),
        access: Access | None = None,
        events: EventLog | None = None,
        progress: Wakeup | None = None,
    ) -> None:
        self._requested = tuple(parse_endpoint(text) for text in endpoints)
        self._raw32 = tuple(parse_raw32(text) for text in raw32)
        every = (*self._requested, *(endpoint for endpoint, _ in self._raw32))
        for endpoint in every:
            check_bindable(
                endpoint, insecure=insecure, has_keys=access is not None and access.has_keys
            )
        _check_positive("endpoints", len(self._requested))
        _check_distinct(every)
        self._queue_frames = _check_positive("queue_frames", queue_frames)
        self._high_water_mark = _check_positive("high_water_mark", high_water_mark)
        self._access, self._events, self._progress = access, events, progress
        self._roster = Roster()
        self._numbers: dict[str, Numbers] = {}
        self._wakeup: Wakeup | None = None
        self._waking = threading.Lock()
        self._stopping = threading.Event()
        self._sender: Sender | None = None
        self._worker: Worker | None = None
        self._watch: FloodWatch | None = None
        self._cleanup = ExitStack()
        self.epoch = secrets.randbits(EPOCH_BITS)
        self.endpoints: tuple[str, ...] = ()
        self.raw32_endpoints: tuple[str, ...] = ()
        self.failure: SpectrodError | None = None
        self.history = History(round(replay_mb * 1e6), self.epoch)

    @property
    def sources(self) -> tuple[SourcePublisher, ...]:
        """The publishers of the sources, in the order of their creation."""
        return self._roster.sources

    @property
    def subscribers(self) -> int:
        """Current subscriptions to values, see ``SubscribedPrefixes.subscribers``."""
        return self._sender.subscribers if self._sender else 0

    @property
    def unsendable(self) -> int:
        """Messages dropped because they cannot be encoded, see ``Sender``."""
        return self._sender.unsendable if self._sender else 0

    def add_source(
        self,
        name: str,
        stats: Callable[[], Stats],
        channel_names: Sequence[str] = (),
        on_demand: OnDemand = ignore_demand,
        stated: StatedFacts = NOTHING_STATED,
    ) -> SourcePublisher:
        """Add a source, before ``start`` or while the publisher runs.

        Call this method and ``remove_source`` from one thread at a time. If there was a source of
        the same name, its numbers continue.

        Parameters
        ----------
        name : str
            The SOURCE of its topics.
        stats : callable
            Returns its state, description and counters; called by any thread.
        channel_names : sequence of str
            Names of the channels in topics; empty for their numbers.
        on_demand : callable
            See ``SourcePublisher``.
        stated : StatedFacts, optional
            See ``SourcePublisher``.

        Raises
        ------
        ConfigError
            If a name cannot stand in a topic, or another source has it.
        """
        if name in {source.name for source in self.sources}:
            raise ConfigError(f"source name={name!r}: another source has it; give each its own")
        source = SourcePublisher(
            name,
            stats,
            epoch=self.epoch,
            wake=self._wake,
            queue_frames=self._queue_frames,
            channel_names=channel_names,
            stated=stated,
            numbers=self._numbers.get(name),
            on_demand=on_demand,
        )
        self._keep_numbers(source)
        self._roster.add(source)
        self._wake()
        return source

    def remove_source(self, source: SourcePublisher) -> None:
        """Remove a source: its queue and its last heartbeat are still sent. Returns at once.

        Call after the last ``write``.
        """
        if self._worker is not None:
            self._roster.remove(source)
            self._wake()
        else:
            self._roster.sources = tuple(other for other in self.sources if other is not source)

    def start(self) -> None:
        """Bind in the calling thread, which raises the errors, then start the thread.

        Raises
        ------
        BusyError, ConfigError, StorageError, UnavailableError
            If an endpoint cannot be bound; then nothing is left open.
        """
        with ExitStack() as cleanup:
            wakeup = Wakeup()
            cleanup.callback(wakeup.close)
            access = self._access
            if access is None:
                access = Access()
                cleanup.callback(access.close)
                access.start()
            socket, listeners = self._open(access, cleanup)
            self.endpoints = tuple(
                listeners.bind(endpoint, access.at_end) for endpoint in self._requested
            )
            every, raw32 = [listeners], []
            for endpoint, topic in self._raw32:
                raw32_socket, listeners = self._open(access, cleanup)
                bound = listeners.bind(endpoint, access.at_end)
                self.raw32_endpoints = (*self.raw32_endpoints, bound)
                raw32.append(Raw32(raw32_socket, topic))
                every.append(listeners)
            self._cleanup = cleanup.pop_all()
        self._wakeup = wakeup
        shared = self._roster, self.history, self._events
        with_keys = [endpoint for listeners in every for endpoint in listeners.with_keys]
        upstream = Upstream(access, KeyHolders(access, with_keys), access.note_flood)
        self._sender = Sender(socket, raw32, every, *shared, upstream=upstream)
        if self._events is not None:
            self._sender.events_waiting.set()
        self._worker = Worker("publisher", partial(self._run, self._sender, wakeup), self._ended)
        self._worker.start()
        sender, every_endpoint = self._sender, (*self.endpoints, *self.raw32_endpoints)
        stall = Stall(self._worker, lambda: sender.steps)
        self._watch = FloodWatch(
            every_endpoint,
            Inbound(time.monotonic()),
            access.note_flood,
            stall=stall,
            on_stall=access.hold_new_connections,
        )
        access.connections.tell(self._watch.wake)
        self._watch.start()

    def stop(self) -> None:
        """Send the queued frames and the last heartbeats, and release the endpoints; idempotent.

        Takes at most the time to send queue_frames frames of each source, and ``xpub.GOODBYE_S``
        for subscribers that are behind, even if none reads. Call after the last ``write``;
        ``SourcePublisher.changed`` may still be called.
        """
        if self._worker is None:
            return
        if self._watch is not None:
            self._watch.stop()
        self._stopping.set()
        self._wake()
        self._worker.require_end(_JOIN_S)
        self._worker = None
        with self._waking:
            self._wakeup = None
        self._cleanup.close()

    def _open(self, access: Access, cleanup: ExitStack) -> tuple[zmq.SyncSocket, Listeners]:
        socket = open_xpub(access.context, self._high_water_mark)
        cleanup.callback(socket.close)
        return socket, Listeners(socket, access, self._wake)

    def _keep_numbers(self, source: SourcePublisher) -> None:
        """Keep the numbers of the most recent names; those of older names restart at 0."""
        self._numbers.pop(source.name, None)
        self._numbers[source.name] = source.numbers
        while len(self._numbers) > _NAMES_KEPT:
            self._numbers.pop(next(iter(self._numbers)))

    def _wake(self) -> None:
        with self._waking:
            if self._wakeup is not None:
                self._wakeup.set()

    def send_events(self) -> None:
        """Send soon the events that were added; any thread may call it."""
        if self._sender is not None:
            self._sender.events_waiting.set()
        self._wake()

    def _run(self, sender: Sender, wakeup: Wakeup) -> None:
        try:
            sender.serve(wakeup, self._stopping.is_set, self._report_progress)
        finally:
            sender.close()

    def _ended(self, failure: SpectrodError | None) -> None:
        self.failure = failure
        self._report_progress()

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress.set()


def _check_distinct(endpoints: Sequence[Endpoint]) -> None:
    # Otherwise the second bind would blame another process, and systemd would restart the service
    # endlessly.
    fixed = Counter(
        endpoint.text for endpoint in endpoints if endpoint.transport == "ipc" or endpoint.port
    )
    text, count = max(fixed.items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise ConfigError(f"endpoint={text!r}: named {count} times, must be once")


def _check_positive(name: str, value: int) -> int:
    if value < 1:
        raise ConfigError(f"{name}={value}: must be at least 1")
    return value
