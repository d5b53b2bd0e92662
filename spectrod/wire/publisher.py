"""The publisher: the last stage, spectra to ZeroMQ. Takes batches, knows no other stage."""

import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import zmq

from spectrod.errors import ConfigError, InternalError
from spectrod.stats import Stats
from spectrod.wakeup import Wakeup
from spectrod.wire.bind import bind
from spectrod.wire.endpoint import Endpoint, check_bindable, parse_endpoint
from spectrod.wire.feed import Feed
from spectrod.wire.schema import HEARTBEAT_PERIOD_S, META_PERIOD_S

EPOCH_BITS = 53  # a double, JavaScript's only number, holds it exactly

_LINGER_MS = 200
_JOIN_S = 5.0
_MAX_INBOUND_BYTES = 64 * 1024  # peers send subscriptions, nothing larger
_SUBSCRIPTIONS_A_TURN = 256  # a flood of them must not hold the spectra up


class Publisher:
    """Sends every frame of every channel as one message, from a thread that owns the socket.

    Each source has a feed, with a queue and counts of its own. Two places can lose frames, and
    neither makes an analysis wait. A feed's queue, bounded by queue_frames, drops its oldest,
    counted in ``Feed.dropped``. ZeroMQ keeps up to high_water_mark messages a subscriber and drops
    new ones for that subscriber alone, which it sees as a hole in ``seq``. A subscriber thus costs
    at most high_water_mark times the message's size.

    Parameters
    ----------
    endpoints : sequence of str
        One or more of ``tcp://HOST:PORT`` and ``ipc://PATH``; port 0 or ``*`` takes a free one.
    insecure : bool
        Allow endpoints that other machines can reach.
    queue_frames : int
        Frames of each source that may wait for the thread, >= 1.
    high_water_mark : int
        Messages that may wait for one subscriber, >= 1.
    progress : Wakeup or None
        Set when the first message of a source is out, and when the thread has ended.

    Attributes
    ----------
    feeds : list of Feed
        In the order in which they were made.
    endpoints : tuple of str
        What ``start`` has bound to, with the ports that were chosen.
    failure : Exception or None
        What ended the thread, if it was not ``stop``.
    subscribers : int
        Subscriptions to spectra that live now.

    Raises
    ------
    ConfigError
        If an endpoint is malformed, reachable by strangers or named twice, or a number is below 1.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        insecure: bool = False,
        queue_frames: int = 256,
        high_water_mark: int = 256,
        progress: Wakeup | None = None,
    ) -> None:
        self._wanted = tuple(parse_endpoint(text) for text in endpoints)
        for endpoint in self._wanted:
            check_bindable(endpoint, insecure=insecure)
        _check_positive("endpoints", len(self._wanted))
        _check_distinct(self._wanted)
        self._queue_frames = _check_positive("queue_frames", queue_frames)
        self._high_water_mark = _check_positive("high_water_mark", high_water_mark)
        self._progress = progress
        self._epoch = secrets.randbits(EPOCH_BITS)
        self._wakeup: Wakeup | None = None
        self._waking = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._cleanup = ExitStack()
        self.feeds: list[Feed] = []
        self.endpoints: tuple[str, ...] = ()
        self.failure: Exception | None = None
        self.subscribers = 0

    def feed(
        self, name: str, stats: Callable[[], Stats], channel_names: Sequence[str] = ()
    ) -> Feed:
        """Make the way out for one more source; to be called before ``start``.

        Parameters
        ----------
        name : str
            The SOURCE of its topics.
        stats : callable
            Tells its state, description and counters, from any thread.
        channel_names : sequence of str
            What topics call its channels; none: their numbers.

        Raises
        ------
        ConfigError
            If a name cannot stand in a topic, or another source has it.
        """
        if name in {feed.name for feed in self.feeds}:
            raise ConfigError(f"source name={name!r}: is another source's; give each its own")
        feed = Feed(
            name,
            stats,
            epoch=self._epoch,
            wake=self._wake,
            queue_frames=self._queue_frames,
            channel_names=channel_names,
        )
        self.feeds.append(feed)
        return feed

    def start(self) -> None:
        """Bind in the caller's thread, so that it gets the error, then start the thread.

        Raises
        ------
        BusyError, ConfigError, StorageError, UnavailableError
            If an endpoint cannot be bound; nothing is left behind then.
        """
        with ExitStack() as cleanup:
            wakeup = Wakeup()
            cleanup.callback(wakeup.close)
            locks = cleanup.enter_context(ExitStack())
            context = zmq.Context()
            cleanup.callback(context.term)
            socket = self._open_socket(context)
            cleanup.callback(socket.close)
            self.endpoints = tuple(bind(socket, wanted, locks) for wanted in self._wanted)
            self._cleanup = cleanup.pop_all()
        self._wakeup = wakeup
        self._thread = threading.Thread(
            target=self._run, args=(socket, wakeup), name="publisher", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Send what is queued, say goodbye, release the endpoints; idempotent.

        Takes at most the time to send queue_frames frames of each source plus 0.2 s, whoever reads
        or not. To be called when nothing is submitted any more; ``Feed.changed`` may still come.
        """
        if self._thread is None:
            return
        self._stopping.set()
        self._wake()
        self._thread.join(_JOIN_S)
        if self._thread.is_alive():
            raise InternalError(f"the publisher's thread did not end within {_JOIN_S:.0f} s")
        self._thread = None
        with self._waking:
            self._wakeup = None
        self._cleanup.close()

    def _wake(self) -> None:
        with self._waking:
            if self._wakeup is not None:
                self._wakeup.set()

    def _open_socket(self, context: "zmq.Context[zmq.SyncSocket]") -> zmq.SyncSocket:
        socket = context.socket(zmq.XPUB)
        # Linger comes before bind: without it, terminating the context waits for slow subscribers.
        socket.setsockopt(zmq.LINGER, _LINGER_MS)
        socket.setsockopt(zmq.SNDHWM, self._high_water_mark)
        socket.setsockopt(zmq.MAXMSGSIZE, _MAX_INBOUND_BYTES)
        # VERBOSER reports every subscription and its end, not only a topic's first and last.
        socket.setsockopt(zmq.XPUB_VERBOSER, 1)
        socket.setsockopt(zmq.HEARTBEAT_IVL, 2000)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 6000)
        socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        return socket

    # All below runs in the publisher's thread.

    def _run(self, socket: zmq.SyncSocket, wakeup: Wakeup) -> None:
        try:
            self._serve(socket, wakeup)
        except Exception as error:  # noqa: BLE001 - the thread's last frame: kept for the owner
            self.failure = error
        finally:
            socket.close()
            self._report_progress()

    def _serve(self, socket: zmq.SyncSocket, wakeup: Wakeup) -> None:
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(wakeup.fileno(), zmq.POLLIN)
        next_beat_s = next_meta_s = time.monotonic()
        while not self._stopping.is_set():
            wait_s = min(next_beat_s, next_meta_s) - time.monotonic()
            poller.poll(max(0, math.ceil(wait_s * 1e3)))
            wakeup.clear()  # before the queues are read, or a frame put in between would wait
            has_newcomer = self._read_subscriptions(socket)
            self._send_queued(socket)
            now_s = time.monotonic()
            is_due = has_newcomer or now_s >= next_beat_s
            self._send_heartbeats(socket, to_all=is_due)
            if is_due:
                next_beat_s = now_s + HEARTBEAT_PERIOD_S
            if has_newcomer or now_s >= next_meta_s:
                self._send_meta(socket)
                next_meta_s = now_s + META_PERIOD_S
        self._send_queued(socket)
        for feed in self.feeds:
            socket.send_multipart(feed.heartbeat(is_last=True))

    def _read_subscriptions(self, socket: zmq.SyncSocket) -> bool:
        """Keep the count of subscribers, and say whether there is a new subscription."""
        has_newcomer = False
        for _ in range(_SUBSCRIPTIONS_A_TURN):
            try:
                request = socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                break
            is_new = request[:1] == b"\x01"
            has_newcomer |= is_new
            if request[:1] in (b"\x00", b"\x01") and _covers_spectra(request[1:]):
                self.subscribers += 1 if is_new else -1
        return has_newcomer

    def _send_queued(self, socket: zmq.SyncSocket) -> None:
        for feed in self.feeds:
            is_first = feed.messages == 0
            for parts in feed.queued():
                # Copying is faster than zero-copy at these sizes, and the array may be reused.
                socket.send_multipart(parts, copy=True)
            if is_first and feed.messages:
                self._report_progress()

    def _send_heartbeats(self, socket: zmq.SyncSocket, *, to_all: bool) -> None:
        for feed in self.feeds:
            if feed.take_change() or to_all:
                socket.send_multipart(feed.heartbeat())

    def _send_meta(self, socket: zmq.SyncSocket) -> None:
        for feed in self.feeds:
            for parts in feed.described():
                socket.send_multipart(parts)

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress.set()


def _covers_spectra(prefix: bytes) -> bool:
    return prefix.startswith(b"spec/") or b"spec/".startswith(prefix)


def _check_distinct(endpoints: Sequence[Endpoint]) -> None:
    # Else the second bind would blame another process, and the service would be tried for ever.
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
