"""Frames from a daemon, for programs with an event loop: ``async for frame in subscribe(...)``.

``latest`` is the same function as ``spectrod.client.latest``: its result is also an asynchronous
iterator and context manager.
"""

import time
from typing import Self

from spectrod.client.conflate import Latest, latest
from spectrod.client.connection import KeyFile, SyncContext, read_credentials
from spectrod.client.subscription import Follower, open_replay, open_subscription
from spectrod.client.tracker import AnyFrame, ReplayRequest
from spectrod.lib.errors import SpectrodError, UnavailableError
from spectrod.wire.endpoint import parse_remote

__all__ = ["AsyncSubscription", "Latest", "latest", "subscribe"]


def subscribe(  # noqa: PLR0913 - all keywords, all optional
    endpoint: str,
    prefix: str = "spec/",
    *,
    timeout_s: float | None = None,
    replay_from: str | None = None,
    server_key: KeyFile | None = None,
    key_file: KeyFile | None = None,
    context: SyncContext | None = None,
) -> "AsyncSubscription":
    """Subscribe to the spectra of a daemon; all as in ``spectrod.client.subscribe``.

    Raises
    ------
    ConfigError
        If an endpoint is invalid, or a key cannot be read.

    Examples
    --------
    >>> async def show():
    ...     async with aio.subscribe("tcp://127.0.0.1:5556") as frames:
    ...         async for frame in frames:
    ...             print(frame.topic, frame.values.max(), frame.header.unit)
    """
    control = None
    if replay_from is not None:
        control = open_replay(replay_from, server_key, key_file)
    connection = open_subscription(
        parse_remote(endpoint), prefix, read_credentials(server_key, key_file), context
    )
    return AsyncSubscription(connection, timeout_s=timeout_s, control=control)


class AsyncSubscription(Follower):
    """An asynchronous iterator of frames; ``Follower`` has its parameters. Used by one task.

    A task that is cancelled while it waits loses no frame.
    """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyFrame:
        """Wait for the next frame; raises as ``Subscription.__next__``."""
        if self._connection.closed:
            raise StopAsyncIteration
        frame = await self.receive(self._timeout_s)
        if frame is None:
            raise self._on_timeout()
        return frame

    async def receive(self, timeout_s: float | None = None) -> AnyFrame | None:
        """Return the next frame; None if timeout_s is given and it does not come in time."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            step = self._tracker.step()
            if isinstance(step, AnyFrame):
                return step
            if step is not None:
                await self._replay(step)
            elif not await self._connection.wait_async(deadline_s):
                return None
            else:
                self._read()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self.close()

    async def _replay(self, ask: ReplayRequest) -> None:
        assert self._control is not None
        for timeout_s in self._timeouts_s:
            self._control.timeout_s = timeout_s
            try:
                self._fill(*await self._control.call_parts_async("replay", **ask._asdict()))
            except UnavailableError as error:
                self.replay_failure = str(error)
            except SpectrodError as error:
                self._give_up_replay(error)
                return
            else:
                return
        self._tracker.answer([], more=False)
