"""Frames from a daemon, for programs that wait for them."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Self

import zmq

from spectrod.client.calls import messages_of
from spectrod.client.connection import (
    Connection,
    Credentials,
    KeyFile,
    SyncContext,
    read_credentials,
)
from spectrod.client.control import Control
from spectrod.client.tracker import AnyFrame, Ask, Tracker
from spectrod.endpoint import Endpoint, parse_remote
from spectrod.errors import BusyError, NotFoundError, SpectrodError, UnavailableError
from spectrod.wire.schema import EventMessage, HeartbeatHeader, Meta

_HIGH_WATER_MARK = 1000  # messages that wait here, beside those that wait in the daemon
# Frames wait meanwhile for those before them. A request that was under way when a connection was
# cut is lost with its reply, so it is made again.
_REPLAY_TIMEOUTS_S = (0.5, 1.0, 2.0)
_WITH_META = ("spec/", "bands/")


def subscribe(  # noqa: PLR0913 - each named, and none needed
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
        Where the daemon publishes, for example ``tcp://127.0.0.1:5556``. It may start later, end
        and come back: the subscription goes on.
    prefix : str
        Beginning of the topics wanted, ``spec/SOURCE/CHANNEL/PRODUCT/``.
    timeout_s : float or None
        How long iterating waits for a frame; None waits for ever.
    replay_from : str or None
        The daemon's control endpoint, or for a daemon of this machine also where it publishes.
        Frames that were missed are requested there, as long as the daemon keeps them.
    server_key : str, path or None
        For endpoints with keys: the daemon's public key, its 40 characters or its file.
    key_file : str, path or None
        For endpoints with keys: the file of our own secret key.
    context : zmq.Context or None
        To share one; None makes one that lives as long as the subscription.

    Returns
    -------
    subscription : Subscription
        Iterate over it; close it, or use it in a ``with`` statement.

    Raises
    ------
    ConfigError
        If an endpoint is not one that can be connected to, or a key cannot be read.

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
    """Make ready to ask for what was missed; connects when there is something."""
    return Control(endpoint, server_key=server_key, key_file=key_file)


def open_subscription(
    endpoint: Endpoint, prefix: str, credentials: Credentials | None, context: SyncContext | None
) -> Connection:
    """Connect, and subscribe to a prefix, its descriptions and its sources' signs of life."""
    options = {zmq.RCVHWM: _HIGH_WATER_MARK}
    connection = Connection(endpoint, zmq.SUB, credentials, context, options)
    kind = next((kind for kind in _WITH_META if prefix.startswith(kind)), "")
    narrower = prefix.removeprefix(kind) if kind else ""
    source, slash, _ = narrower.partition("/")
    for wanted in ("meta/" + narrower, f"hb/{source}{slash}", prefix):
        connection.subscribe(wanted)
    return connection


class Follower:
    """What both kinds of subscription have in common: all but the waiting.

    Bounded: 1000 messages wait here and as many as its high-water mark in the daemon; after that
    the daemon discards new ones for this subscriber, which ``Frame.missed`` tells.

    Parameters
    ----------
    connection : Connection
        Subscribed; closed with the subscription.
    timeout_s : float or None
        How long iterating waits for a frame; None waits for ever.
    control : Control or None
        To have frames from that were missed; closed with the subscription.

    Attributes
    ----------
    replay_failure : str
        Why missed frames could not be asked for, the last time that it was tried; empty if they
        could.
    """

    def __init__(
        self, connection: Connection, *, timeout_s: float | None, control: Control | None = None
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._control = control
        self._tracker = Tracker(connection.endpoint.text, replays=control is not None)
        self.replay_failure = ""

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
        """The last sign of life of each source, by the source's name."""
        return self._tracker.heartbeats

    @property
    def heartbeat(self) -> HeartbeatHeader | None:
        """The last of them all."""
        return self._tracker.heartbeat

    @property
    def events(self) -> deque[EventMessage]:
        """The last 1000 events, if the prefix covers them; take out what you have seen."""
        return self._tracker.events

    @property
    def alive(self) -> bool:
        """Whether the daemon has said something lately, and not goodbye of every source."""
        if not self._connection.closed and self._connection.is_readable:
            return True
        return self._tracker.alive

    @property
    def silence_s(self) -> float:
        """Time since the last message was read [s]; infinite before the first."""
        return self._tracker.silence_s

    def close(self) -> None:
        """End the subscription; idempotent."""
        self._connection.close()
        if self._control is not None:
            self._control.close()

    @property
    def _replay_timeouts_s(self) -> tuple[float, ...]:
        # Where nobody answers, waiting for each hole would make the next one.
        return _REPLAY_TIMEOUTS_S[:1] if self.replay_failure else _REPLAY_TIMEOUTS_S

    def _read(self) -> None:
        """Take in a message that has arrived."""
        parts = self._connection.receive()
        if parts is not None:
            self._tracker.feed(parts)

    def _fill(self, result: Any, parts: Sequence[bytes]) -> None:
        found, more = messages_of(result, parts)
        self._tracker.answer(found, more=more)
        self.replay_failure = ""

    def _go_without(self, error: SpectrodError) -> None:
        """Leave missed what cannot be had, and raise what will not be right the next time."""
        self._tracker.answer([], more=False)
        self.replay_failure = str(error)
        if not isinstance(error, (BusyError, NotFoundError)):
            raise error

    def _nothing_came(self) -> UnavailableError:
        return UnavailableError(self._tracker.why_nothing(self._timeout_s or 0.0))


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
            If the daemon does not let us in; the next call tries again, a second later.
        WireError
            If a message does not follow the protocol: it is told, not skipped, and the next call
            goes on with the message after it.
        """
        if self._connection.closed:
            raise StopIteration
        frame = self.receive(self._timeout_s)
        if frame is None:
            raise self._nothing_came()
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
        """Yield the frames that have arrived, without waiting: at most 1000, so that it ends."""
        for _ in range(_HIGH_WATER_MARK):
            frame = self.receive(0.0)
            if frame is None:
                return
            yield frame

    def latest(self, timeout_s: float | None = None) -> dict[str, AnyFrame]:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _replay(self, ask: Ask) -> None:
        """Ask the daemon for what is missing; what it has not, or not in time, stays missed."""
        assert self._control is not None
        for timeout_s in self._replay_timeouts_s:
            self._control.timeout_s = timeout_s
            try:
                self._fill(*self._control.call_parts("replay", **ask._asdict()))
            except UnavailableError as error:
                self.replay_failure = str(error)
            except SpectrodError as error:
                self._go_without(error)
                return
            else:
                return
        self._tracker.answer([], more=False)
