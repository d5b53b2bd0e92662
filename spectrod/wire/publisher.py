"""The publisher: the last stage, spectra to ZeroMQ. Takes batches, knows no other stage."""

import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import zmq

from spectrod.errors import ConfigError, InternalError
from spectrod.stats import State
from spectrod.types import SpectrumBatch, SpectrumSpec
from spectrod.wakeup import Wakeup
from spectrod.wire.bind import bind
from spectrod.wire.endpoint import Endpoint, check_bindable, parse_endpoint
from spectrod.wire.queue import FrameQueue, QueuedFrame
from spectrod.wire.schema import (
    HEARTBEAT_PERIOD_S,
    META_PERIOD_S,
    HeartbeatHeader,
    Meta,
    MetaHeader,
    SpectrumHeader,
    check_source_name,
    encode_header,
    heartbeat_topic,
    topic,
)
from spectrod.wire.schema import encode as encode_message

EPOCH_BITS = 53  # a double, JavaScript's only number, holds it exactly

_LINGER_MS = 200
_JOIN_S = 5.0
_MAX_INBOUND_BYTES = 64 * 1024  # peers send subscriptions, nothing larger
_SUBSCRIPTIONS_A_TURN = 256  # a flood of them must not hold the spectra up


class Publisher:
    """Sends every frame of every channel as one message, from a thread that owns the socket.

    Two places can lose frames, and neither makes the analysis wait. Our queue, bounded by
    queue_frames, drops its oldest, counted in ``dropped``. ZeroMQ keeps up to high_water_mark
    messages a subscriber and drops new ones for that subscriber alone, which it sees as a hole in
    ``seq``. A subscriber thus costs at most high_water_mark times the message's size.

    Parameters
    ----------
    endpoints : sequence of str
        One or more of ``tcp://HOST:PORT`` and ``ipc://PATH``; port 0 or ``*`` takes a free one.
    source_name : str
        The SOURCE of the topics.
    device : str
        The source, for a person; goes into meta messages.
    insecure : bool
        Allow endpoints that other machines can reach.
    queue_frames : int
        Frames that may wait for the thread, >= 1.
    high_water_mark : int
        Messages that may wait for one subscriber, >= 1.
    overflows : callable
        Tells how often the sound system has flagged an overflow.
    progress : Wakeup or None
        Set when the first message is out, and when the thread has ended.

    Attributes
    ----------
    state : str
        What heartbeats say; becomes "running" with the first batch, then the owner's to set.
    endpoints : tuple of str
        What ``start`` has bound to, with the ports that were chosen.
    first_message : threading.Event
        Set once a spectrum has been handed to ZeroMQ.
    failure : Exception or None
        What ended the thread, if it was not ``stop``.
    messages : int
        Spectra handed to ZeroMQ.
    subscribers : int
        Subscriptions to spectra that live now.

    Raises
    ------
    ConfigError
        If an endpoint is malformed, reachable by strangers or named twice, or a number is below 1.
    """

    def __init__(  # noqa: PLR0913 - keyword-only settings
        self,
        endpoints: Sequence[str],
        source_name: str,
        *,
        device: str = "",
        insecure: bool = False,
        queue_frames: int = 256,
        high_water_mark: int = 256,
        overflows: Callable[[], int] = lambda: 0,
        progress: Wakeup | None = None,
    ) -> None:
        self._wanted = tuple(parse_endpoint(text) for text in endpoints)
        for endpoint in self._wanted:
            check_bindable(endpoint, insecure=insecure)
        _check_positive("endpoints", len(self._wanted))
        _check_distinct(self._wanted)
        self._queue = FrameQueue(_check_positive("queue_frames", queue_frames))
        self._high_water_mark = _check_positive("high_water_mark", high_water_mark)
        self._source_name = check_source_name(source_name)
        self._device = device
        self._overflows = overflows
        self._progress = progress
        self._epoch = secrets.randbits(EPOCH_BITS)
        self._stream: _Stream | None = None
        self._seq: Counter[str] = Counter()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._cleanup = ExitStack()
        self.state: State = "starting"
        self.endpoints: tuple[str, ...] = ()
        self.first_message = threading.Event()
        self.failure: Exception | None = None
        self.messages = 0
        self.subscribers = 0

    @property
    def frames(self) -> int:
        """Frames submitted."""
        return self._queue.frames

    @property
    def dropped(self) -> int:
        """Frames dropped because the queue was full."""
        return self._queue.dropped

    def start(self) -> None:
        """Bind in the caller's thread, so that it gets the error, then start the thread.

        Raises
        ------
        BusyError, ConfigError, StorageError, UnavailableError
            If an endpoint cannot be bound; nothing is left behind then.
        """
        with ExitStack() as cleanup:
            self._wakeup = Wakeup()
            cleanup.callback(self._wakeup.close)
            locks = cleanup.enter_context(ExitStack())
            context = zmq.Context()
            cleanup.callback(context.term)
            socket = self._open_socket(context)
            cleanup.callback(socket.close)
            self.endpoints = tuple(bind(socket, wanted, locks) for wanted in self._wanted)
            self._cleanup = cleanup.pop_all()
        self._thread = threading.Thread(
            target=self._run, args=(socket,), name="publisher", daemon=True
        )
        self._thread.start()

    def submit(self, batch: SpectrumBatch) -> None:
        """Queue a batch's frames; never blocks. Called by one thread, between start and stop."""
        self._queue.put(batch)
        self._wakeup.set()

    def stop(self) -> None:
        """Send what is queued, say goodbye, release the endpoints; idempotent.

        Takes at most the time to send queue_frames frames plus 0.2 s, whoever reads or not.
        """
        if self._thread is None:
            return
        self._stopping.set()
        self._wakeup.set()
        self._thread.join(_JOIN_S)
        if self._thread.is_alive():
            raise InternalError(f"the publisher's thread did not end within {_JOIN_S:.0f} s")
        self._thread = None
        self._cleanup.close()

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

    def _run(self, socket: zmq.SyncSocket) -> None:
        try:
            self._serve(socket)
        except Exception as error:  # noqa: BLE001 - the thread's last frame: kept for the owner
            self.failure = error
        finally:
            socket.close()
            self._report_progress()

    def _serve(self, socket: zmq.SyncSocket) -> None:
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(self._wakeup.fileno(), zmq.POLLIN)
        next_beat_s = next_meta_s = time.monotonic()
        while not self._stopping.is_set():
            wait_s = min(next_beat_s, next_meta_s) - time.monotonic()
            poller.poll(max(0, math.ceil(wait_s * 1e3)))
            self._wakeup.clear()  # before the queue is read, or a frame put in between would wait
            has_newcomer = self._read_subscriptions(socket)
            self._send_queued(socket)
            now_s = time.monotonic()
            if has_newcomer or now_s >= next_beat_s:
                self._send_heartbeat(socket, self.state)
                next_beat_s = now_s + HEARTBEAT_PERIOD_S
            if has_newcomer or now_s >= next_meta_s:
                self._send_meta(socket)
                next_meta_s = now_s + META_PERIOD_S
        self._send_queued(socket)
        ended = self.state in ("finished", "failed")
        self._send_heartbeat(socket, self.state if ended else "stopped")

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
        # One queue's worth a turn: heartbeats and subscriptions get theirs if frames never end.
        for _ in range(self._queue.limit_frames):
            queued = self._queue.take()
            if queued is None:
                return
            self._send_frame(socket, queued)
        self._wakeup.set()

    def _send_frame(self, socket: zmq.SyncSocket, queued: QueuedFrame) -> None:
        stream = self._follow(socket, queued.batch)
        header = encode_header(stream.header(queued, self._epoch, self._overflows()))
        values = np.ascontiguousarray(queued.batch.values[queued.row], dtype="<f4")
        for name, channel in zip(stream.topics, values, strict=True):
            # Copying is faster than zero-copy at these sizes, and the array may be reused.
            socket.send_multipart((name, header, channel), copy=True)
            self.messages += 1
        if not self.first_message.is_set():
            self.first_message.set()
            self._report_progress()

    def _follow(self, socket: zmq.SyncSocket, batch: SpectrumBatch) -> "_Stream":
        """Return what the batch's frames have in common; announce it if it is new."""
        stream = self._stream
        if stream is None or not stream.describes(batch):
            if self.state == "starting":
                self.state = "running"
            stream = self._stream = _Stream(self._source_name, batch.spec, batch.engine)
            self._send_meta(socket)
        return stream

    def _send_meta(self, socket: zmq.SyncSocket) -> None:
        if self._stream is None:
            return
        for name in self._stream.meta_topics:
            header = self._stream.meta_header(self._next_seq(name), self._epoch, self._device)
            socket.send_multipart(encode_message(Meta(name, header, self._stream.frequencies)))

    def _send_heartbeat(self, socket: zmq.SyncSocket, state: State) -> None:
        name = heartbeat_topic(self._source_name)
        header = HeartbeatHeader(
            seq=self._next_seq(name),
            epoch=self._epoch,
            t_utc_ns=time.time_ns(),
            t_mono_ns=time.monotonic_ns(),
            state=state,
            frames=self.frames,
            overflows=self._overflows(),
            dropped=self.dropped,
        )
        socket.send_multipart((name.encode(), encode_header(header)))

    def _next_seq(self, name: str) -> int:
        seq = self._seq[name]
        self._seq[name] += 1
        return seq

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress.set()


class _Stream:
    """What the frames of one analysis have in common, worked out once."""

    def __init__(self, source_name: str, spec: SpectrumSpec, engine: str) -> None:
        self.spec = spec
        self.engine = engine
        self.frequencies = spec.frequencies
        names = [topic(source_name, k, spec.scaling) for k in range(spec.channels)]
        self.topics = [name.encode() for name in names]
        self.meta_topics = [
            topic(source_name, k, spec.scaling, kind="meta") for k in range(spec.channels)
        ]
        self._fields: dict[str, Any] = {
            "fs": spec.fs,
            "win_length": spec.win_length,
            "nfft": spec.nfft,
            "hop": spec.hop,
            "window": spec.window,
            "enbw_hz": spec.enbw_hz,
            "shape": (spec.n_bins,),
            "unit": spec.unit,
            "ref": spec.reference,
            "engine": engine,
        }

    def describes(self, batch: SpectrumBatch) -> bool:
        same_spec = batch.spec is self.spec or batch.spec == self.spec
        return same_spec and batch.engine == self.engine

    def header(self, queued: QueuedFrame, epoch: int, overflows: int) -> SpectrumHeader:
        batch, row, seq, gap_samples, dropped = queued
        return SpectrumHeader(
            seq=seq,
            epoch=epoch,
            t_utc_ns=int(batch.t_utc_ns[row]),
            t_mono_ns=int(batch.t_mono_ns[row]),
            sample_index=int(batch.sample_index[row]),
            gap_samples=gap_samples,
            overflows=overflows,
            dropped=dropped,
            **self._fields,
        )

    def meta_header(self, seq: int, epoch: int, device: str) -> MetaHeader:
        return MetaHeader(
            seq=seq,
            epoch=epoch,
            t_utc_ns=time.time_ns(),
            device=device,
            channels=self.spec.channels,
            **self._fields,
        )


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
