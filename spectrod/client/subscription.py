"""Frames from a daemon, and what was missed on the way."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Self

import zmq

from spectrod.client.connection import connect
from spectrod.errors import UnavailableError, WireError
from spectrod.stats import State
from spectrod.wire.endpoint import Endpoint, parse_remote
from spectrod.wire.schema import (
    HEARTBEAT_PERIOD_S,
    Frame,
    Heartbeat,
    HeartbeatHeader,
    Message,
    Meta,
    decode,
)

SILENCE_S = 3.0 * HEARTBEAT_PERIOD_S
"""After this long without any message a daemon counts as gone [s]."""

_HIGH_WATER_MARK = 1000  # messages that wait here, beside those that wait in the daemon
_ENDED: tuple[State, ...] = ("finished", "failed", "stopped")
_KINDS = (b"spec/", b"meta/", b"hb/")


def subscribe(
    endpoint: str,
    prefix: str = "spec/",
    *,
    timeout_s: float | None = None,
    context: "zmq.Context[zmq.SyncSocket] | None" = None,
) -> "Subscription":
    """Subscribe to the spectra of a daemon.

    Parameters
    ----------
    endpoint : str
        Where the daemon publishes, for example ``tcp://127.0.0.1:5556``. It may start later, end
        and come back: the subscription goes on.
    prefix : str
        Beginning of the topics wanted, ``spec/SOURCE/CHANNEL/PRODUCT/``.
    timeout_s : float or None
        How long iterating waits for a frame; None waits for ever.
    context : zmq.Context or None
        To share one; None makes one that lives as long as the subscription.

    Returns
    -------
    subscription : Subscription
        Iterate over it; close it, or use it in a ``with`` statement.

    Raises
    ------
    ConfigError
        If the endpoint is not one that can be connected to.

    Examples
    --------
    >>> for frame in subscribe("tcp://127.0.0.1:5556"):  # doctest: +SKIP
    ...     print(frame.f[frame.values.argmax()], frame.values.max(), frame.header.unit)
    """
    return Subscription(parse_remote(endpoint), prefix, timeout_s=timeout_s, context=context)


class Subscription:
    """An iterator of frames. To be used by one thread.

    Bounded: 1000 messages wait here and as many as its high-water mark in the daemon; after that
    the daemon discards new ones for this subscriber, which ``Frame.missed`` tells.

    Attributes
    ----------
    missed : int
        Messages lost so far, over all topics.
    meta : dict of str to Meta
        The last description of each topic, by the topic of its spectra.
    heartbeats : dict of str to HeartbeatHeader
        The last sign of life of each source, by the source's name.
    heartbeat : HeartbeatHeader or None
        The last of them all.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        prefix: str,
        *,
        timeout_s: float | None,
        context: "zmq.Context[zmq.SyncSocket] | None",
    ) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._owns_context = context is None
        self._context = zmq.Context() if context is None else context
        self._socket = self._context.socket(zmq.SUB)
        self._connect(prefix)
        self._last_seen: dict[str, tuple[int, int]] = {}
        self._last_message_s = -math.inf
        self.missed = 0
        self.meta: dict[str, Meta] = {}
        self.heartbeats: dict[str, HeartbeatHeader] = {}
        self.heartbeat: HeartbeatHeader | None = None

    def _connect(self, prefix: str) -> None:
        self._socket.setsockopt(zmq.RCVHWM, _HIGH_WATER_MARK)
        narrower = prefix.removeprefix("spec/") if prefix.startswith("spec/") else ""
        source, slash, _ = narrower.partition("/")
        for wanted in ("meta/" + narrower, f"hb/{source}{slash}", prefix):
            self._socket.subscribe(wanted)
        connect(self._socket, self._endpoint, None)

    @property
    def alive(self) -> bool:
        """Whether the daemon has said something lately, and not goodbye of every source."""
        if not self._socket.closed and self._socket.poll(0):
            return True
        states = {beat.state for beat in self.heartbeats.values()}
        said_goodbye = bool(states) and states.issubset(_ENDED)
        return self.silence_s < SILENCE_S and not said_goodbye

    @property
    def silence_s(self) -> float:
        """Time since the last message was read [s]; infinite before the first."""
        return time.monotonic() - self._last_message_s

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Frame:
        """Wait for the next frame.

        Raises
        ------
        UnavailableError
            If timeout_s was given and no frame came in that time.
        WireError
            If a message does not follow the protocol: it is told, not skipped, and the next call
            goes on with the message after it.
        """
        if self._socket.closed:
            raise StopIteration
        frame = self.receive(self._timeout_s)
        if frame is None:
            raise UnavailableError(self._why_nothing())
        return frame

    def receive(self, timeout_s: float | None = None) -> Frame | None:
        """Return the next frame; None if timeout_s is given and it does not come in time."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while self._wait_until(deadline_s):
            frame = self._take(self._socket.recv_multipart(zmq.NOBLOCK))
            if frame is not None:
                return frame
        return None

    def drain(self) -> Iterator[Frame]:
        """Yield the frames that have arrived, without waiting: at most 1000, so that it ends."""
        for _ in range(_HIGH_WATER_MARK):
            frame = self.receive(0.0)
            if frame is None:
                return
            yield frame

    def latest(self, timeout_s: float | None = None) -> dict[str, Frame]:
        """Skip to the newest frame of each topic, for displays that need not show every one.

        Returns
        -------
        frames : dict of str to Frame
            By topic; empty if timeout_s is given and nothing came in time.
        """
        first = self.receive(timeout_s)
        if first is None:
            return {}
        return {first.topic: first} | {frame.topic: frame for frame in self.drain()}

    def close(self) -> None:
        """End the subscription; idempotent."""
        self._socket.close()
        if self._owns_context:
            self._context.term()

    def __del__(self) -> None:
        # `for frame in subscribe(...): break` leaves nobody else to close it.
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _wait_until(self, deadline_s: float | None) -> bool:
        if deadline_s is None:
            return bool(self._socket.poll())
        return bool(self._socket.poll(max(0, round((deadline_s - time.monotonic()) * 1e3))))

    def _take(self, parts: list[bytes]) -> Frame | None:
        """Note what a message says; return it if it is a frame."""
        self._last_message_s = time.monotonic()
        if not parts[0].startswith(_KINDS):
            return None  # a kind of topic that a later version has added
        message = decode(parts)
        missed, restarted = self._compare(message)
        match message:
            case Meta():
                self.meta["spec/" + message.topic.removeprefix("meta/")] = message
            case Heartbeat():
                self.heartbeat = self.heartbeats[message.source] = message.header
            case Frame():
                self.missed += missed
                if missed or restarted:
                    return replace(message, missed=missed, restarted=restarted)
                return message
        return None

    def _compare(self, message: Message) -> tuple[int, bool]:
        """How many messages of the topic are missing before this one, and whether it began anew."""
        epoch, seq = message.header.epoch, message.header.seq
        last_epoch, last_seq = self._last_seen.get(message.topic, (epoch, seq - 1))
        self._last_seen[message.topic] = (epoch, seq)
        if epoch != last_epoch:
            return 0, True
        if seq <= last_seq:
            raise WireError(f"{message.topic}: seq={seq}: must be above {last_seq}, the one before")
        return seq - last_seq - 1, False

    def _why_nothing(self) -> str:
        name, wait = self._endpoint.text, f"within {self._timeout_s:g} s"
        if self.alive and self.heartbeat is not None:
            why = self.heartbeat.waiting_for
            state = f"{self.heartbeat.state} ({why})" if why else self.heartbeat.state
            return f"{name}: the daemon is {state} but sent no spectrum {wait}"
        return f"{name}: nothing came {wait}; is the daemon running there?"
