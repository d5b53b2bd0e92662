"""Messages of one source: its queue, topics, sequence numbers and counters. Knows no socket."""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np

from spectrod.daemon.publisher.interval_encoder import IntervalEncoder, IntervalQueue
from spectrod.daemon.publisher.queue import FrameQueue, QueuedFrame
from spectrod.daemon.publisher.topic_encoder import (
    NOTHING_STATED,
    StatedFacts,
    TopicEncoder,
    topic_of,
)
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError
from spectrod.lib.latency import LatencyHistogram
from spectrod.lib.names import check_channel_names, check_name, name_channels
from spectrod.lib.stats import CaptureStats, State, Stats
from spectrod.measure.measurement import Measurement
from spectrod.wire.headers import INTERVAL_TOPICS_MAX, IntervalTopic
from spectrod.wire.schema import Heartbeat, HeartbeatHeader, encode, heartbeat_topic

_ENDED: tuple[State, ...] = ("finished", "failed")

Parts = Sequence[bytes]
"""A message as ZeroMQ takes it."""


Topics = Mapping[str, tuple[bytes, ...]]
"""The topics of each product, sorted."""

OnDemand = Callable[[frozenset[str]], None]
"""Takes the products of a source that subscribers want."""


def ignore_demand(_products: frozenset[str]) -> None:
    """Do nothing: what nobody wants is computed as well."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Next numbers of a source, for its return under the same name in the same epoch."""

    rows: Counter[str] = field(default_factory=Counter)
    """Number of the next row of each product's spectra, bands or measurements."""
    messages: Counter[str] = field(default_factory=Counter)
    """Number of the next message of each topic without values."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An outgoing message with values."""

    topic: str
    seq: int
    parts: tuple[bytes, ...]
    is_wanted: bool = True
    """False if no subscriber wanted it when it was computed: those after it may be missing."""


class SourcePublisher:
    """The outgoing messages of one source; made by ``Publisher.add_source``.

    The analysis calls ``write``; any thread may call ``changed`` and ``offer``; all other methods
    belong to the publisher's thread. The queue is bounded by queue_frames: it drops its oldest
    frames, counted in ``dropped``.

    Parameters
    ----------
    name : str
        The SOURCE of the topics.
    stats : callable
        Returns state, description and counters of the source; called by any thread.
    epoch : int
        Random number of this start of the daemon.
    wake : callable
        Wakes the publisher's thread.
    queue_frames : int
        Frames that may wait for the publisher's thread, >= 1.
    channel_names : sequence of str
        Names of the channels in topics; empty for their numbers.
    stated : StatedFacts, optional
        Facts of the source for its descriptions.
    numbers : Numbers or None
        Numbers of an earlier source of the same name.
    on_demand : callable
        Called by the publisher's thread with the products that subscribers want, when they change
        and after each ``offer``; must not block.

    Attributes
    ----------
    messages : int
        Messages with values, sent or only kept for replay.
    heartbeats : int
        Heartbeats handed to ZeroMQ.
    last_message_utc_ns : int
        System time when the last of them was made [ns since 1970]; 0 before the first.
    queue_latency, publish_latency : LatencyHistogram
        Time that a row waited in the queue, and from there until the messages of all its channels
        were handed to ZeroMQ.

    Raises
    ------
    ConfigError
        If a name cannot stand in a topic, or queue_frames is below 1.
    """

    def __init__(  # noqa: PLR0913 - the last two are a source's own affair
        self,
        name: str,
        stats: Callable[[], Stats],
        *,
        epoch: int,
        wake: Callable[[], None],
        queue_frames: int,
        channel_names: Sequence[str] = (),
        stated: StatedFacts = NOTHING_STATED,
        numbers: Numbers | None = None,
        on_demand: OnDemand = ignore_demand,
    ) -> None:
        if queue_frames < 1:
            raise ConfigError(f"queue_frames={queue_frames}: must be at least 1")
        check_channel_names(channel_names)
        self.name = check_name("source name", name)
        self._stats = stats
        self._epoch = epoch
        self._wake = wake
        self.numbers = numbers or Numbers()
        self._queue = FrameQueue(queue_frames, self.numbers.rows)
        self._intervals = IntervalQueue(queue_frames, self.numbers.rows)
        self._channel_names, self._stated = tuple(channel_names), stated
        self._has_changed = False
        self._offered: Topics | None = None
        self._topics: frozenset[str] = frozenset()
        self._interval_topics: tuple[IntervalTopic, ...] = ()
        self._encoders: dict[str, TopicEncoder] = {}
        self._has_offer = False
        self._reported: tuple[Topics, frozenset[str]] | None = None
        self._wanted_since_s: Mapping[str, float] = {}
        self._on_demand = on_demand
        self.messages = 0
        self.heartbeats = 0
        self.last_message_utc_ns = 0
        self.queue_latency, self.publish_latency = LatencyHistogram(), LatencyHistogram()

    @property
    def rows(self) -> int:
        """Rows written."""
        return self._queue.rows

    @property
    def dropped(self) -> int:
        """Rows and measurements that were dropped because their queue was full."""
        return self._queue.dropped + self._intervals.dropped

    def write(self, batch: SpectrumBatch) -> None:
        """Queue a batch's frames; never blocks. Called by one thread, between start and stop."""
        self._queue.put_batch(batch)
        self._wake()

    def write_interval(self, encoder: IntervalEncoder, row: Measurement, t_mono_ns: int) -> None:
        """Queue a measurement; never blocks. Called by the thread that calls ``write``.

        Parameters
        ----------
        encoder : IntervalEncoder
            The product, which was offered.
        row : Measurement
            Must not be changed afterwards.
        t_mono_ns : int
            Monotonic clock at the row's first sample [ns].
        """
        self._intervals.put_row(encoder, row, t_mono_ns)
        self._wake()

    def changed(self) -> None:
        """Send a heartbeat at once, because state or counters have changed; any thread.

        One heartbeat answers all calls that precede it.
        """
        self._has_changed = True
        self._wake()

    def offer(
        self, specs: Sequence[SpectrumSpec], intervals: Sequence[IntervalEncoder] = ()
    ) -> None:
        """Announce the products that the source can send from now on; any thread.

        ``on_demand`` is called soon with the products that subscribers want. Products that are no
        longer offered are no longer described.

        Raises
        ------
        ConfigError
            If two specs have the same product, or a name cannot stand in a topic.
        """
        products = (*(spec.product for spec in specs), *(one.product for one in intervals))
        for product, count in Counter(products).items():
            if count > 1:
                raise ConfigError(f"product={product!r}: named {count} times, must be once")
        topics = {
            spec.product: sorted(
                topic_of(self.name, channel, spec)
                for channel in name_channels(self._channel_names, spec.n_signals)
            )
            for spec in specs
        }
        topics |= {one.product: sorted(one.topics) for one in intervals}
        listed = (IntervalTopic(name, one.interval_s) for one in intervals for name in one.topics)
        self._interval_topics = tuple(islice(listed, INTERVAL_TOPICS_MAX))
        self._topics = frozenset(chain.from_iterable(topics.values()))
        self._offered = {
            product: tuple(topic.encode() for topic in several)
            for product, several in topics.items()
        }
        self._has_offer = True
        self._wake()

    def offers(self, topic: str) -> bool:
        """Return whether a topic with values was offered; True before the first offer."""
        return self._offered is None or topic in self._topics

    @property
    def topics(self) -> frozenset[str]:
        """Topics with values of the last offer; empty before the first."""
        return self._topics

    # All methods below belong to the publisher's thread; send at once what they yield.

    def take_offer(self) -> bool:
        """Return whether there was an offer since the last call."""
        # Reset only if it was set: another thread may set it between the test and the reset.
        if not self._has_offer:
            return False
        self._has_offer = False
        return True

    def update_demand(self, covers: Callable[[Sequence[bytes]], bool]) -> None:
        """Find the products that are wanted, and call ``on_demand`` if they have changed.

        Parameters
        ----------
        covers : callable
            Returns whether a subscription matches one of these topics, which are sorted.
        """
        offered = self._offered
        if offered is None:
            return
        wanted = frozenset(product for product, topics in offered.items() if covers(topics))
        if (
            self._reported is None
            or self._reported[0] is not offered
            or self._reported[1] != wanted
        ):
            self._note_wanted(offered, wanted)
            self._reported = (offered, wanted)
            self._on_demand(wanted)

    def _note_wanted(self, offered: Topics, wanted: Collection[str]) -> None:
        before: Topics = self._reported[0] if self._reported else {}
        now_s = time.monotonic()
        self._wanted_since_s = {
            # New topics of a product have been computed since they were offered.
            product: self._wanted_since_s.get(
                product, now_s if before.get(product) == offered[product] else -math.inf
            )
            for product in wanted
        }

    def _is_wanted(self, frame: QueuedFrame, topic: bytes) -> bool:
        product = frame.batch.spec.product
        if self._reported is None or topic not in self._reported[0].get(product, ()):
            return True
        return self._wanted_since_s.get(product, math.inf) <= frame.put_s

    def take_change(self) -> bool:
        """Return whether ``changed`` was called since the last call."""
        if not self._has_changed:
            return False
        self._has_changed = False
        return True

    def queued(self) -> Iterator[Outgoing | Parts]:
        """Yield the messages of queued frames, each new topic's description before them.

        At most one queue's worth: heartbeats and subscriptions get their turn even if frames never
        end.
        """
        for _ in range(self._queue.limit):
            frame = self._queue.take()
            if frame is None:
                return
            taken_s = time.monotonic()
            self.queue_latency.add(taken_s - frame.put_s)
            encoder = self._encoders.get(frame.batch.spec.product)
            if encoder is None or not encoder.describes(frame.batch):
                encoder = self._begin(frame.batch)
                yield from self._describe(encoder)
            yield from self._spectra(encoder, frame)
            self.publish_latency.add(time.monotonic() - taken_s)
            self.last_message_utc_ns = time.time_ns()
        self._wake()

    def queued_intervals(self) -> Iterator[Outgoing]:
        """Yield the messages of queued measurements, at most one queue's worth."""
        for _ in range(self._intervals.limit):
            queued = self._intervals.take()
            if queued is None:
                return
            for name, parts in queued.encoder.messages(queued, self._epoch):
                yield Outgoing(name, queued.seq, parts)
                self.messages += 1
            self.last_message_utc_ns = time.time_ns()
        self._wake()

    def described(self, wanted: Container[bytes] | None = None) -> Iterator[Parts]:
        """Yield the description of each topic; empty before the first spectrum.

        Parameters
        ----------
        wanted : container of bytes or None
            Topics of descriptions, ``meta/...``; None: all.
        """
        for encoder in self._current():
            yield from self._describe(encoder, wanted)

    def meta_topics(self) -> Iterator[bytes]:
        """Yield the topics of all current descriptions."""
        for encoder in self._current():
            for name in encoder.meta_topics:
                yield name.encode()

    @property
    def heartbeat_topic(self) -> bytes:
        """Topic of its heartbeats."""
        return heartbeat_topic(self.name).encode()

    def heartbeat(self, *, is_last: bool = False) -> Parts:
        """Return a heartbeat; the last one gives the final state."""
        stats = self._stats()
        state = "stopped" if is_last and stats.state not in _ENDED else stats.state
        name = heartbeat_topic(self.name)
        own = {"state": state, "frames": self.rows, "dropped": self.dropped}
        self.heartbeats += 1
        header = HeartbeatHeader(
            seq=self._next_seq(name),
            epoch=self._epoch,
            t_utc_ns=time.time_ns(),
            t_mono_ns=time.monotonic_ns(),
            interval_topics=self._interval_topics,
            **(_shared(stats.capture) | _shared(stats) | own),
        )
        return encode(Heartbeat(name, header))

    def _begin(self, batch: SpectrumBatch) -> TopicEncoder:
        if not self._encoders:
            self.changed()  # from "starting" to "running"
        offered = self._offered
        if offered is not None:
            self._encoders = {p: s for p, s in self._encoders.items() if p in offered}
        encoder = TopicEncoder(self.name, self._channel_names, batch.spec, batch.engine)
        self._encoders[batch.spec.product] = encoder
        return encoder

    def _current(self) -> list[TopicEncoder]:
        offered = self._offered
        encoders = list(self._encoders.items())
        return [encoder for product, encoder in encoders if offered is None or product in offered]

    def _describe(
        self, encoder: TopicEncoder, wanted: Container[bytes] | None = None
    ) -> Iterator[Parts]:
        device = self._stats().source
        for name in encoder.meta_topics:
            if wanted is None or name.encode() in wanted:
                seq = self._next_seq(name)
                yield encoder.description(name, seq, self._epoch, device, self._stated)

    def _spectra(self, encoder: TopicEncoder, frame: QueuedFrame) -> Iterator[Outgoing]:
        headers = encoder.headers(frame, self._epoch)
        values = np.ascontiguousarray(frame.batch.values[frame.row], dtype="<f4")
        is_wanted = self._is_wanted(frame, encoder.encoded[0])
        for name, encoded, header, channel in zip(
            encoder.topics, encoder.encoded, headers, values, strict=True
        ):
            # A copy: a message in the history must not keep a whole batch alive.
            parts = (encoded, header, channel.tobytes())
            yield Outgoing(name, frame.seq, parts, is_wanted)
            self.messages += 1

    def _next_seq(self, name: str) -> int:
        seq = self.numbers.messages[name]
        self.numbers.messages[name] += 1
        return seq


def _shared(counters: Stats | CaptureStats) -> dict[str, Any]:
    """Return the values for which a heartbeat has fields of the same names."""
    names = HeartbeatHeader.__struct_fields__
    return {name: getattr(counters, name) for name in names if hasattr(counters, name)}
