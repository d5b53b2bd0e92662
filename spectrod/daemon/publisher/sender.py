"""The publisher's thread: reads subscriptions and sends messages. Owns the sockets."""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

import msgspec
import zmq

from spectrod.daemon.access.listeners import Listeners
from spectrod.daemon.publisher.new_subscriptions import NewSubscriptions
from spectrod.daemon.publisher.raw32 import Raw32
from spectrod.daemon.publisher.sent_messages import History, Stored
from spectrod.daemon.publisher.source_publisher import Outgoing, Parts, SourcePublisher
from spectrod.daemon.publisher.subscriptions import SubscribedPrefixes
from spectrod.daemon.publisher.upstream import Upstream
from spectrod.daemon.publisher.xpub import send_parts
from spectrod.lib.errors import WireError
from spectrod.lib.events import Event, EventLog
from spectrod.lib.wakeup import Wakeup
from spectrod.wire.headers import TriggerFacts
from spectrod.wire.schema import (
    HEARTBEAT_PERIOD_S,
    META_PERIOD_S,
    EventHeader,
    EventMessage,
    encode,
    event_topic,
    last_topic,
)

_HOLD_S = 2.0
"""Time after a cut of all connections with keys in which their products are still computed [s]:
clients with valid keys reconnect, and request the messages that they have missed."""
_UNSENDABLE_LOG_PERIOD_S = 60.0

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass
class Roster:
    """The sources, and those that are being removed; any thread may change it."""

    sources: tuple[SourcePublisher, ...] = ()
    leaving: tuple[SourcePublisher, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, source: SourcePublisher) -> None:
        """Add a source."""
        with self.lock:
            self.sources = (*self.sources, source)

    def remove(self, source: SourcePublisher) -> None:
        """Move a source to those that are being removed."""
        with self.lock:
            if source in self.sources:
                self.sources = tuple(other for other in self.sources if other is not source)
                self.leaving = (*self.leaving, source)

    def take(self) -> tuple[tuple[SourcePublisher, ...], tuple[SourcePublisher, ...]]:
        """Return the sources that stay, and, only once, those that were removed."""
        with self.lock:
            leaving, self.leaving = self.leaving, ()
            return self.sources, leaving


def _trigger_facts(event: Event) -> TriggerFacts | msgspec.UnsetType:
    """Return the numbers of an event of a trigger."""
    return msgspec.UNSET if event.trigger is None else msgspec.convert(event.trigger, TriggerFacts)


class Sender:
    """The work of the publisher's thread.

    Parameters
    ----------
    socket : zmq.Socket
        From ``open_xpub``, bound.
    raw32 : sequence of Raw32
        Endpoints without topics.
    listeners : sequence of Listeners
        Endpoints of all these sockets.
    roster : Roster
        Sources whose messages are sent.
    history : History
        Receives all messages with values.
    events : EventLog or None
        Events to send.
    upstream : Upstream
        Reads the messages of peers.

    Attributes
    ----------
    steps : int
        Counter of turns and of messages that were read or sent.
    unsendable : int
        Messages dropped because they cannot be encoded. All texts are ``printable`` already, so
        this counts defects of spectrod; none of them ends the thread.
    """

    def __init__(  # noqa: PLR0913 - what the publisher's thread owns and shares
        self,
        socket: zmq.SyncSocket,
        raw32: Sequence[Raw32],
        listeners: Sequence[Listeners],
        roster: Roster,
        history: History,
        events: EventLog | None,
        *,
        upstream: Upstream,
    ) -> None:
        self._socket, self._upstream = socket, upstream
        self._raw32 = tuple(raw32)
        self._listeners = tuple(listeners)
        self._roster = roster
        self._history = history
        self._events = events
        self._next_event = 0
        self._sources: tuple[SourcePublisher, ...] = ()
        self._book = SubscribedPrefixes()
        self._new_subscriptions = NewSubscriptions()
        self._event_seq = Counter[str]()
        self._held_until_s = math.inf
        self._next_beat_s = self._next_meta_s = 0.0
        self._may_log_unsendable_s = 0.0
        self.unsendable = 0
        self.steps = 0
        self.events_waiting = threading.Event()
        """Set when there are events."""

    @property
    def subscribers(self) -> int:
        """See ``SubscribedPrefixes``."""
        return self._book.subscribers

    def serve(
        self, wakeup: Wakeup, is_stopping: Callable[[], bool], on_first: Callable[[], None]
    ) -> None:
        """Send until stopped, then send the queued messages and the last heartbeats.

        Parameters
        ----------
        wakeup : Wakeup
            Set when there is something to do.
        is_stopping : callable
            Returns whether to stop.
        on_first : callable
            Called when the first message of a source was sent.
        """
        poller = zmq.Poller()
        poller.register(wakeup.fileno(), zmq.POLLIN)
        for socket in self._sockets:
            poller.register(socket, zmq.POLLIN)
        while not is_stopping():
            ready = poller.poll(max(0, math.ceil((self._due_s() - time.monotonic()) * 1e3)))
            wakeup.clear()  # before the queues are read, to miss no wake-up
            self.steps += 1
            self._take_turn([socket for socket, _ in ready], on_first)
        self._take_turn([], on_first)
        for source in self._sources:
            self._send_heartbeat(source, is_last=True)

    def close(self) -> None:
        """Close the sockets."""
        for socket in self._sockets:
            socket.close()

    @property
    def _sockets(self) -> tuple[zmq.SyncSocket, ...]:
        return (self._socket, *(raw32.socket for raw32 in self._raw32))

    def _due_s(self) -> float:
        """When there is something to do even without a wake-up."""
        listen_s = min(listeners.due_s for listeners in self._listeners)
        return min(
            self._next_beat_s,
            self._next_meta_s,
            self._held_until_s,
            listen_s,
            self._new_subscriptions.due_s,
            self._upstream.due_s,
        )

    def _take_turn(self, ready: Collection[object], on_first: Callable[[], None]) -> None:
        self._cut_off()
        self._sources, leaving = self._roster.take()
        for source in leaving:
            self._finish(source, on_first)
        self._read_requests(ready)
        for source in self._sources:
            self._send_queued(source, on_first)
        self._send_events()
        now_s = time.monotonic()
        self._send_heartbeats(now_s)
        self._send_meta(now_s)
        self._answer_new_subscriptions(now_s)

    def _cut_off(self) -> None:
        now_s = time.monotonic()
        self._upstream.cut_revoked()
        were_cut = [listeners.refresh() for listeners in self._listeners]
        if any(were_cut):
            self._book.hold()
            self._held_until_s = now_s + _HOLD_S
        if now_s >= self._held_until_s:
            self._book.release()
            self._held_until_s = math.inf

    def _read_requests(self, ready: Collection[object]) -> None:
        has_changed = False
        for source in self._sources:
            if source.take_offer():
                has_changed = True
                self._forget(source.name, source.offers)
        # Reading a socket without messages costs an exception.
        for raw32 in self._raw32:
            if raw32.socket in ready:
                has_changed |= raw32.read_requests(self._upstream)
        for request in self._upstream.take(self._socket) if self._socket in ready else ():
            self.steps += 1
            prefix = self._book.note(request)
            if prefix is not None:
                self._new_subscriptions.note(prefix)
        if has_changed or self._book.has_changed:
            self._book.has_changed = False
            for source in self._sources:
                source.update_demand(self._covers)

    def _covers(self, topics: Sequence[bytes]) -> bool:
        return self._book.covers(topics) or any(raw32.covers(topics) for raw32 in self._raw32)

    def _send_queued(self, source: SourcePublisher, on_first: Callable[[], None]) -> None:
        is_first = source.messages == 0
        for message in self._encoded(chain(source.queued_intervals(), source.queued())):
            if isinstance(message, Outgoing):
                self._send_values(source, message)
            else:
                self._send_noted(message)
        if is_first and source.messages:
            on_first()

    def _send_values(self, source: SourcePublisher, message: Outgoing) -> None:
        # Stored before it is sent: a client that has received it may ask for its replay.
        # The last rows of a removed product may come after the new offer.
        if source.offers(message.topic):
            self._history.add(message.topic, Stored(message.seq, message.parts))
        # NB: a subscriber whose subscription is not noted yet would count the rows after it, which
        # nobody wanted, as missed.
        if not message.is_wanted:
            return
        self._send(message.parts)
        for raw32 in self._raw32:
            raw32.send(message)

    def _send(self, parts: Parts) -> None:
        self.steps += 1
        send_parts(self._socket, parts)

    def _send_noted(self, parts: Parts) -> None:
        """Send a message of a kind that is resent for new subscribers."""
        self._send(parts)
        self._new_subscriptions.note_sent(parts[0], time.monotonic())

    def _finish(self, source: SourcePublisher, on_first: Callable[[], None]) -> None:
        self._send_queued(source, on_first)
        self._send_heartbeat(source, is_last=True)
        self._forget(source.name, lambda _topic: False)

    def _forget(self, source: str, is_kept: Callable[[str], bool]) -> None:
        """Drop the messages of a source's topics that have ended."""
        for name in self._history.topics():
            if name.split("/")[1] == source and not is_kept(name):
                self._history.forget(name)

    def _send_heartbeats(self, now_s: float) -> None:
        is_due = now_s >= self._next_beat_s
        if is_due:
            self._next_beat_s = now_s + HEARTBEAT_PERIOD_S
        for source in self._sources:
            if source.take_change() or is_due:
                self._send_heartbeat(source)

    def _send_heartbeat(self, source: SourcePublisher, *, is_last: bool = False) -> None:
        try:
            self._send_noted(source.heartbeat(is_last=is_last))
        except WireError as error:
            self._drop(error)

    def _send_meta(self, now_s: float) -> None:
        if now_s < self._next_meta_s:
            return
        self._next_meta_s = now_s + META_PERIOD_S
        for source in self._sources:
            for parts in self._encoded(source.described()):
                self._send_noted(parts)

    def _send_events(self) -> None:
        if self._events is None or not self.events_waiting.is_set():
            return
        self.events_waiting.clear()  # before they are read, to miss none
        for event in self._events.since(self._next_event):
            self._next_event = event.number + 1
            name = event_topic(event.source)
            header = EventHeader(
                seq=self._event_seq[name],
                epoch=self._history.epoch,
                t_utc_ns=event.t_utc_ns,
                number=event.number,
                kind=event.kind,
                text=event.text,
                source=event.source,
                who=event.who,
                trigger=_trigger_facts(event),
            )
            self._event_seq[name] += 1
            try:
                self._send(encode(EventMessage(name, header)))
            except WireError as error:
                self._drop(error)

    def _encoded(self, messages: Iterator[_T]) -> Iterator[_T]:
        """Yield messages; drop one that cannot be encoded, and stop until the next turn."""
        try:
            yield from messages
        except WireError as error:
            self._drop(error)

    def _drop(self, error: WireError) -> None:
        """Count a message that cannot be encoded; log at most one a minute."""
        self.unsendable += 1
        now_s = time.monotonic()
        if now_s >= self._may_log_unsendable_s:
            self._may_log_unsendable_s = now_s + _UNSENDABLE_LOG_PERIOD_S
            _log.error("message dropped, %d so far: %s", self.unsendable, error)

    def _answer_new_subscriptions(self, now_s: float) -> None:
        """Resend the messages of newly subscribed topics that are due."""
        due = self._new_subscriptions.take(self._repeatable, now_s)
        if not due:
            return
        for source in self._sources:
            if source.heartbeat_topic in due:
                self._send_heartbeat(source)
            for parts in self._encoded(source.described(due)):
                self._send_noted(parts)
        for name in self._history.topics():
            again = last_topic(name).encode()
            newest = self._history.newest(name) if again in due else None
            if newest is not None:
                self._send_noted((again, *newest.parts[1:]))

    def _repeatable(self) -> Iterator[bytes]:
        for source in self._sources:
            yield source.heartbeat_topic
            yield from source.meta_topics()
        for name in self._history.topics():
            yield last_topic(name).encode()
