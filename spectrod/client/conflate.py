"""The newest frame of a topic on each request: ``latest``."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from spectrod.client.connection import KeyFile, SyncContext
from spectrod.client.control import Control
from spectrod.client.rpc_codec import messages_of
from spectrod.client.tracker import AnyFrame
from spectrod.lib.errors import UnavailableError, WireError
from spectrod.wire.schema import decode

# Time that a request waits in the daemon, and then for its reply. A request that was lost, because
# the daemon or the connection has ended, is repeated.
_WAIT_S = 1.0
_REPLY_S = 0.5

NO_REPLY_S = 10.0
"""Time without any reply after which reading raises an error [s]."""


def latest(
    endpoint: str,
    topic: str,
    *,
    timeout_s: float | None = None,
    server_key: KeyFile | None = None,
    key_file: KeyFile | None = None,
    context: SyncContext | None = None,
) -> "Latest":
    """Request the newest frame of a topic, one at a time.

    For programs that are slower than the frames, or far away: the daemon sends only requested
    frames, and nothing waits in a queue; a frame is old only if its source has no newer one.

    Parameters
    ----------
    endpoint : str
        The daemon's control endpoint. For a daemon of this machine also the endpoint where it
        publishes, as for ``subscribe``.
    topic : str
        One whole topic, ``spec/SOURCE/CHANNEL/PRODUCT/`` or ``bands/SOURCE/CHANNEL/PRODUCT/``, with
        its trailing slash; not a prefix. The daemon refuses any other with a list of its topics.
    timeout_s : float or None
        How long iterating waits for a frame; None waits as long as the daemon replies. Without a
        reply for ``NO_REPLY_S``, 10 s, iterating raises in any case; the next frame that is
        requested tries again.
    server_key, key_file, context
        As for ``subscribe``.

    Returns
    -------
    latest : Latest
        Iterate over it; close it, or use it in a ``with`` statement.

    Raises
    ------
    ConfigError
        If the endpoint is invalid, or a key cannot be read.
    """
    control = Control(
        endpoint, timeout_s=_REPLY_S, server_key=server_key, key_file=key_file, context=context
    )
    return Latest(control, topic, timeout_s=timeout_s)


class Latest:
    """An iterator, also asynchronous, of the newest frames of a topic. Used by one thread.

    Parameters
    ----------
    control : Control
        Asks the daemon; closed with this.
    topic, timeout_s
        As for ``latest``.
    wait_s : float
        How long one request waits in the daemon [s].
    no_reply_s : float
        How long requests may go without a reply before reading raises an error [s].
    clock : callable
        Time that never goes back [s].

    Attributes
    ----------
    missed : int
        Frames skipped so far; ``Frame.missed`` has the number before each frame.
    """

    def __init__(
        self,
        control: Control,
        topic: str,
        *,
        timeout_s: float | None,
        wait_s: float = _WAIT_S,
        no_reply_s: float = NO_REPLY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._control = control
        self._wait_s, self._no_reply_s, self._clock = wait_s, no_reply_s, clock
        self._silent_since_s: float | None = None
        self._topic = topic
        self._timeout_s = timeout_s
        self._last: AnyFrame | None = None
        self.missed = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AnyFrame:
        """Wait for a frame that is newer than the last.

        Raises
        ------
        UnavailableError
            If timeout_s was given and no frame came in that time, or the daemon sent no reply for
            ``NO_REPLY_S``.
        ConfigError
            If the topic is not one whole topic.
        SpectrodError
            As ``Control.call``.
        """
        frame = self.receive(self._timeout_s)
        if frame is None:
            raise UnavailableError(self._nothing_reason())
        return frame

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyFrame:
        """Do as ``__next__`` in the running event loop."""
        frame = await self.receive_async(self._timeout_s)
        if frame is None:
            raise UnavailableError(self._nothing_reason())
        return frame

    def receive(self, timeout_s: float | None = None) -> AnyFrame | None:
        """Return the newest frame; None if timeout_s is given and none is newer in that time.

        Raises
        ------
        SpectrodError
            As ``__next__``, except for a frame that does not come in time.
        """
        self._silent_since_s = None
        deadline_s = None if timeout_s is None else self._clock() + timeout_s
        while True:
            with self._retried(deadline_s):
                params = self._params(deadline_s)
                frame = self._take(*self._control.call_parts("latest", **params))
                if frame is not None or self._is_over(deadline_s):
                    return frame

    async def receive_async(self, timeout_s: float | None = None) -> AnyFrame | None:
        """Do as ``receive`` in the running event loop."""
        self._silent_since_s = None
        deadline_s = None if timeout_s is None else self._clock() + timeout_s
        while True:
            with self._retried(deadline_s):
                params = self._params(deadline_s)
                frame = self._take(*await self._control.call_parts_async("latest", **params))
                if frame is not None or self._is_over(deadline_s):
                    return frame

    def close(self) -> None:
        """End the connection; idempotent."""
        self._control.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self.close()

    @contextmanager
    def _retried(self, deadline_s: float | None) -> Iterator[None]:
        """Repeat a request without a reply, within the timeouts for a frame and for replies."""
        start_s = self._clock()
        try:
            yield
        except UnavailableError as error:
            if self._silent_since_s is None:
                self._silent_since_s = start_s
            if self._is_over(self._silent_since_s + self._no_reply_s):
                raise UnavailableError(self._no_reply_reason()) from error
            if self._is_over(deadline_s):
                raise
        else:
            self._silent_since_s = None

    def _params(self, deadline_s: float | None) -> dict[str, Any]:
        left_s = self._wait_s if deadline_s is None else deadline_s - self._clock()
        params = {"topic": self._topic, "timeout_s": min(self._wait_s, max(0.0, left_s))}
        if self._last is not None:
            header = self._last.header
            params |= {"after_seq": header.seq, "epoch": header.epoch}
        return params

    def _take(self, result: Any, parts: Sequence[bytes]) -> AnyFrame | None:
        messages, _ = messages_of(result, parts)
        if not messages:
            return None
        frame = decode(messages[-1])
        if not isinstance(frame, AnyFrame):
            raise WireError(f"topic={frame.topic!r}: must be one of spectra")
        frame = _compared(frame, self._last)
        self._last = frame
        self.missed += frame.missed
        return frame

    def _is_over(self, deadline_s: float | None) -> bool:
        return deadline_s is not None and self._clock() >= deadline_s

    def _no_reply_reason(self) -> str:
        return (
            f"{self._control.endpoint}: no reply to latest for {self._no_reply_s:g} s; is the "
            "daemon running there, and is this its control endpoint? (On the daemon's own machine "
            "the endpoint where it publishes works too.)"
        )

    def _nothing_reason(self) -> str:
        return f"{self._topic}: nothing newer came within {self._timeout_s:g} s"


def _compared(frame: AnyFrame, last: AnyFrame | None) -> AnyFrame:
    """Set ``missed`` and ``restarted`` of a frame by the one before."""
    if last is None:
        return frame
    new, old = frame.header, last.header
    if new.epoch != old.epoch:
        away_s = (new.t_utc_ns - old.t_utc_ns) / 1e9
        return replace(frame, missed=new.seq, restarted=True, away_s=away_s)
    if new.seq <= old.seq:
        raise WireError(f"{frame.topic}: seq={new.seq}: must be above {old.seq}, the one before")
    return replace(frame, missed=new.seq - old.seq - 1)
