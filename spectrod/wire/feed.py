"""One source's way into the messages: its queue, topics, numbers and counts. Knows no socket."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from spectrod.errors import ConfigError
from spectrod.stats import State, Stats
from spectrod.types import SpectrumBatch, SpectrumSpec
from spectrod.wire.names import check_channel_names, check_name, name_channels
from spectrod.wire.queue import FrameQueue, QueuedFrame
from spectrod.wire.schema import (
    Heartbeat,
    HeartbeatHeader,
    Meta,
    MetaHeader,
    SpectrumHeader,
    encode,
    encode_header,
    heartbeat_topic,
    topic,
)

_ENDED: tuple[State, ...] = ("finished", "failed")

Parts = Sequence[Any]
"""A message as ZeroMQ takes it: bytes, and arrays as payload."""


class Feed:
    """The spectra of one source on their way out; made by ``Publisher.feed``.

    The analysis calls ``submit``, whoever learns that something has changed calls ``changed``; all
    else is the publisher's thread's. The queue is bounded by queue_frames: it drops its oldest,
    counted in ``dropped``.

    Parameters
    ----------
    name : str
        The SOURCE of the topics.
    stats : callable
        Tells state, description and counters of the source, from any thread.
    epoch : int
        Random number of this start of the daemon.
    wake : callable
        Called when there is something to send.
    queue_frames : int
        Frames that may wait for the publisher's thread, >= 1.
    channel_names : sequence of str
        What topics call the channels of the spectra; none: their numbers.

    Attributes
    ----------
    messages : int
        Spectra handed to ZeroMQ.
    heartbeats : int
        Signs of life handed to ZeroMQ.

    Raises
    ------
    ConfigError
        If a name cannot stand in a topic, or queue_frames is below 1.
    """

    def __init__(
        self,
        name: str,
        stats: Callable[[], Stats],
        *,
        epoch: int,
        wake: Callable[[], None],
        queue_frames: int,
        channel_names: Sequence[str] = (),
    ) -> None:
        if queue_frames < 1:
            raise ConfigError(f"queue_frames={queue_frames}: must be at least 1")
        check_channel_names(channel_names)
        self.name = check_name("source name", name)
        self._stats = stats
        self._epoch = epoch
        self._wake = wake
        self._queue = FrameQueue(queue_frames)
        self._channel_names = tuple(channel_names)
        self._has_changed = False
        self._stream: _Stream | None = None
        self._seq: Counter[str] = Counter()
        self.messages = 0
        self.heartbeats = 0

    @property
    def frames(self) -> int:
        """Frames submitted."""
        return self._queue.frames

    @property
    def dropped(self) -> int:
        """Frames dropped because the queue was full."""
        return self._queue.dropped

    def submit(self, batch: SpectrumBatch) -> None:
        """Queue a batch's frames; never blocks. Called by one thread, between start and stop."""
        stats = self._stats()
        self._queue.put(batch, stats.overflows, stats.capture.suspected)
        self._wake()

    def changed(self) -> None:
        """Have a heartbeat sent at once: state or counts have changed. Any thread may call it.

        Calls that come before the heartbeat is sent are answered by that one.
        """
        self._has_changed = True
        self._wake()

    # All below is the publisher's thread's; what it yields is to be sent at once.

    def take_change(self) -> bool:
        """Say whether something has changed since the last call."""
        changed, self._has_changed = self._has_changed, False
        return changed

    def queued(self) -> Iterator[Parts]:
        """Yield the messages of frames that wait, and before them what describes them.

        At most one queue's worth, so that heartbeats and subscriptions get their turn if frames
        never end.
        """
        for _ in range(self._queue.limit_frames):
            frame = self._queue.take()
            if frame is None:
                return
            if self._stream is None or not self._stream.describes(frame.batch):
                yield from self._describe(frame.batch)
            yield from self._spectra(frame)
        self._wake()

    def described(self) -> Iterator[Parts]:
        """Yield the description of each topic; nothing before the first spectrum."""
        stream = self._stream
        if stream is not None:
            device = self._stats().source
            for name in stream.meta_topics:
                header = stream.meta_header(self._next_seq(name), self._epoch, device)
                yield encode(Meta(name, header, stream.frequencies))

    def heartbeat(self, *, is_last: bool = False) -> Parts:
        """Make a sign of life; the last one says how it ended."""
        stats = self._stats()
        state = "stopped" if is_last and stats.state not in _ENDED else stats.state
        name, capture = heartbeat_topic(self.name), stats.capture
        self.heartbeats += 1
        header = HeartbeatHeader(
            seq=self._next_seq(name),
            epoch=self._epoch,
            t_utc_ns=time.time_ns(),
            t_mono_ns=time.monotonic_ns(),
            state=state,
            frames=self.frames,
            overflows=stats.overflows,
            dropped=self.dropped,
            waiting_for=capture.waiting_for,
            suspected=capture.suspected,
            restarts=capture.restarts,
            rate_error_ppm=capture.rate_error_ppm,
            rate_uncertainty_ppm=capture.rate_uncertainty_ppm,
            checks=stats.checks,
            clipped_samples=stats.clipped_samples,
        )
        return encode(Heartbeat(name, header))

    def _describe(self, batch: SpectrumBatch) -> Iterator[Parts]:
        if self._stream is None:
            self.changed()  # from "starting" to "running"
        self._stream = _Stream(self.name, self._channel_names, batch.spec, batch.engine)
        return self.described()

    def _spectra(self, frame: QueuedFrame) -> Iterator[Parts]:
        stream = self._stream
        assert stream is not None
        header = encode_header(stream.header(frame, self._epoch))
        values = np.ascontiguousarray(frame.batch.values[frame.row], dtype="<f4")
        for name, channel in zip(stream.topics, values, strict=True):
            yield name, header, channel
            self.messages += 1

    def _next_seq(self, name: str) -> int:
        seq = self._seq[name]
        self._seq[name] += 1
        return seq


class _Stream:
    """What the frames of one analysis have in common, worked out once."""

    def __init__(
        self, source_name: str, channel_names: Sequence[str], spec: SpectrumSpec, engine: str
    ) -> None:
        self.spec = spec
        self.engine = engine
        self.frequencies = spec.frequencies
        self._names = name_channels(channel_names, spec.n_signals)
        self.topics = [topic(source_name, name, spec.scaling).encode() for name in self._names]
        self.meta_topics = [
            topic(source_name, name, spec.scaling, kind="meta") for name in self._names
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
            "first_bin": -(spec.nfft // 2) if spec.iq else 0,
        }

    def describes(self, batch: SpectrumBatch) -> bool:
        same_spec = batch.spec is self.spec or batch.spec == self.spec
        return same_spec and batch.engine == self.engine

    def header(self, frame: QueuedFrame, epoch: int) -> SpectrumHeader:
        batch, row = frame.batch, frame.row
        return SpectrumHeader(
            seq=frame.seq,
            epoch=epoch,
            t_utc_ns=int(batch.t_utc_ns[row]),
            t_mono_ns=int(batch.t_mono_ns[row]),
            sample_index=int(batch.sample_index[row]),
            gap_samples=frame.gap_samples,
            overflows=frame.overflows,
            dropped=frame.dropped,
            suspected=frame.suspected,
            **self._fields,
        )

    def meta_header(self, seq: int, epoch: int, device: str) -> MetaHeader:
        return MetaHeader(
            seq=seq,
            epoch=epoch,
            t_utc_ns=time.time_ns(),
            device=device,
            channels=self.spec.channels,
            channel_names=self._names,
            **self._fields,
        )
