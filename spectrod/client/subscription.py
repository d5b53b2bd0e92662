"""Subscriptions to a daemon's frames, with blocking iteration."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Self

import zmq

from spectrod.client.connection import (
    Connection,
    Credentials,
    KeyFile,
    SyncContext,
    read_credentials,
)
from spectrod.client.control import Control
from spectrod.client.rpc_codec import messages_of
from spectrod.client.tracker import AnyFrame, ReplayRequest, Tracker
from spectrod.lib.errors import BusyError, NotFoundError, SpectrodError, UnavailableError
from spectrod.wire.endpoint import Endpoint, parse_remote
from spectrod.wire.schema import EventMessage, HeartbeatHeader, Meta

_HIGH_WATER_MARK = 1000  # queue length in the client, beside the daemon's queue [messages]
_REPLAY_TIMEOUTS_S = (0.5, 1.0, 2.0)
_WITH_META = ("spec/", "bands/")


def subscribe(  # noqa: PLR0913 - all keywords, all optional
    endpoint: str,
    prefix: str = "spec/",
    *,
    timeout_s: float | None = None,
    replay_from: str | None = None,
    server_key: KeyFile | None = None,
    key_file: KeyFile | None = None,
    context: SyncContext | None = None,
) -> "Subscription":
    """Subscribe to the spectra of a daemon.

    Parameters
    ----------
    endpoint : str
        The endpoint where the daemon publishes, for example ``tcp://127.0.0.1:5556``. The daemon
        may start later and restart: the subscription continues.
    prefix : str
        Prefix of the topics, ``spec/SOURCE/CHANNEL/PRODUCT/``.
    timeout_s : float or None
        How long iterating waits for a frame; None waits without limit.
    replay_from : str or None
        The daemon's control endpoint, or for a daemon of this machine the endpoint where it
        publishes. Missed frames are requested there while the daemon keeps them.
    server_key : str, path or None
        For endpoints with keys: the daemon's public key, its 40 characters or its file.
    key_file : str, path or None
        For endpoints with keys: the file of the client's secret key.
    context : zmq.Context or None
        A shared context; None makes one for the lifetime of the subscription.

    Returns
    -------
    subscription : Subscription
        Iterate over it; close it, or use it in a ``with`` statement.

    Raises
    ------
    ConfigError
        If an endpoint is invalid, or a key cannot be read.

    Examples
    --------
    >>> for frame in subscribe("tcp://127.0.0.1:5556"):  # doctest: +SKIP
    ...     print(frame.f[frame.values.argmax()], frame.values.max(), frame.header.unit)
    """
    control = None
    if replay_from is not None:
        control = open_replay(replay_from, server_key, key_file)
    connection = open_subscription(
        parse_remote(endpoint), prefix, read_credentials(server_key, key_file), context
    )
    return Subscription(connection, timeout_s=timeout_s, control=control)


def open_replay(endpoint: str, server_key: KeyFile | None, key_file: KeyFile | None) -> Control:
    """Return a control client for replay; it connects at the first missed frame."""
    return Control(endpoint, server_key=server_key, key_file=key_file)


def open_subscription(
    endpoint: Endpoint, prefix: str, credentials: Credentials | None, context: SyncContext | None
) -> Connection:
    """Connect, and subscribe to a prefix, its descriptions and its sources' heartbeats."""
    options = {zmq.RCVHWM: _HIGH_WATER_MARK}
    connection = Connection(endpoint, zmq.SUB, credentials, context, options)
    kind = next((kind for kind in _WITH_META if prefix.startswith(kind)), "")
    narrower = prefix.removeprefix(kind) if kind else ""
    source, slash, _ = narrower.partition("/")
    for subscribed in ("meta/" + narrower, f"hb/{source}{slash}", prefix):
        connection.subscribe(subscribed)
    return connection


class Follower:
    """Base of both kinds of subscription: everything except the waiting.

    Bounded: up to 1000 messages wait in the client, and as many as its high-water mark in the
    daemon; then the daemon drops new ones for this subscriber, counted in ``Frame.missed``.

    Parameters
    ----------
    connection : Connection
        Subscribed; closed with the subscription.
    timeout_s : float or None
        How long iterating waits for a frame; None waits without limit.
    control : Control or None
        Client for replay; closed with the subscription.

    Attributes
    ----------
    replay_failure : str
        Why the last replay failed; empty if it succeeded.
    replay_timeouts_s : tuple of float
        How long each try of a replay waits for its reply [s].
    """

    def __init__(
        self, connection: Connection, *, timeout_s: float | None, control: Control | None = None
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._control = control
        self._tracker = Tracker(connection.endpoint.text, replays=control is not None)
        self.replay_failure = ""
        # Later frames wait during a replay. A request that was in flight when its connection was
        # cut is lost with its reply, so it is repeated.
        self.replay_timeouts_s: tuple[float, ...] = _REPLAY_TIMEOUTS_S

    @property
    def missed(self) -> int:
        """Messages lost so far, over all topics."""
        return self._tracker.missed

    @property
    def meta(self) -> dict[str, Meta]:
        """The last description of each topic, by the topic of its spectra."""
        return self._tracker.meta

    @property
    def heartbeats(self) -> dict[str, HeartbeatHeader]:
        """The last heartbeat of each source, by the source's name."""
        return self._tracker.heartbeats

    @property
    def heartbeat(self) -> HeartbeatHeader | None:
        """The last heartbeat of any source."""
        return self._tracker.heartbeat

    @property
    def events(self) -> deque[EventMessage]:
        """The last 1000 events, if the prefix covers them; remove those that you have processed."""
        return self._tracker.events

    @property
    def alive(self) -> bool:
        """Whether a message came recently and at least one source has not ended."""
        if not self._connection.closed and self._connection.is_readable:
            return True
        return self._tracker.alive

    @property
    def silence_s(self) -> float:
        """Time since the last message was read [s]; infinite before the first."""
        return self._tracker.silence_s

    def add_prefix(self, prefix: str) -> None:
        """Subscribe to topics with one more prefix; messages before it do not count as missed."""
        self._tracker.forget(prefix)
        self._connection.subscribe(prefix)

    def remove_prefix(self, prefix: str) -> None:
        """Unsubscribe from a prefix that was added; later messages of its topics do not come."""
        self._connection.unsubscribe(prefix)

    def close(self) -> None:
        """End the subscription; idempotent."""
        self._connection.close()
        if self._control is not None:
            self._control.close()

    @property
    def _timeouts_s(self) -> tuple[float, ...]:
        # If no daemon answers, waiting for each hole would cause the next one.
        return self.replay_timeouts_s[:1] if self.replay_failure else self.replay_timeouts_s

    def _read(self) -> None:
        """Process a received message."""
        parts = self._connection.receive()
        if parts is not None:
            self._tracker.feed(parts)

    def _fill(self, result: Any, parts: Sequence[bytes]) -> None:
        found, more = messages_of(result, parts)
        self._tracker.answer(found, more=more)
        self.replay_failure = ""

    def _give_up_replay(self, error: SpectrodError) -> None:
        """Count the frames as missed; raise an error that would recur at every replay."""
        self._tracker.answer([], more=False)
        self.replay_failure = str(error)
        if not isinstance(error, (BusyError, NotFoundError)):
            raise error

    def _on_timeout(self) -> UnavailableError:
        why = self._tracker.why_nothing(self._timeout_s or 0.0)
        if hint := self._connection.hint:
            why = f"{self._connection.endpoint.text}: {hint}"
        return UnavailableError(why)


class Subscription(Follower):
    """An iterator of frames; ``Follower`` has its parameters. To be used by one thread."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AnyFrame:
        """Wait for the next frame.

        Raises
        ------
        UnavailableError
            If timeout_s was given and no frame came in that time.
        DeniedError
            If the daemon refuses the connection; the next call tries again, a second later.
        WireError
            If a message does not follow the protocol; the next call continues with the message
            after it.
        """
        if self._connection.closed:
            raise StopIteration
        frame = self.receive(self._timeout_s)
        if frame is None:
            raise self._on_timeout()
        return frame

    def receive(self, timeout_s: float | None = None) -> AnyFrame | None:
        """Return the next frame; None if timeout_s is given and it does not come in time."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            step = self._tracker.step()
            if isinstance(step, AnyFrame):
                return step
            if step is not None:
                self._replay(step)
            elif not self._connection.wait(deadline_s):
                return None
            else:
                self._read()

    def drain(self) -> Iterator[AnyFrame]:
        """Yield the frames that have arrived, without waiting, at most 1000."""
        for _ in range(_HIGH_WATER_MARK):
            frame = self.receive(0.0)
            if frame is None:
                return
            yield frame

    def silence_hint(self) -> str:
        """Return why nothing has ever come, as far as the endpoint tells; empty if unknown.

        For programs that call ``receive`` with short times. Once a minute it may take half a
        second.
        """
        self._connection.look()
        return self._connection.hint

    def latest(self, timeout_s: float | None = None) -> dict[str, AnyFrame]:
        """Return the newest frame of each topic, for displays that need not show every frame.

        Returns
        -------
        frames : dict of str to Frame
            By topic; empty if timeout_s is given and nothing came in time.
        """
        first = self.receive(timeout_s)
        if first is None:
            return {}
        return {first.topic: first} | {frame.topic: frame for frame in self.drain()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _replay(self, ask: ReplayRequest) -> None:
        """Request missing frames; those that the daemon does not send in time stay missed."""
        assert self._control is not None
        for timeout_s in self._timeouts_s:
            self._control.timeout_s = timeout_s
            try:
                self._fill(*self._control.call_parts("replay", **ask._asdict()))
            except UnavailableError as error:
                self.replay_failure = str(error)
            except SpectrodError as error:
                self._give_up_replay(error)
                return
            else:
                return
        self._tracker.answer([], more=False)
