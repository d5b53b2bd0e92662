"""Cuts off connections that send more than they may, also while the thread that reads is stuck.

libzmq's ``zmq_poll`` and ``zmq_msg_recv`` take in all subscriptions that have come, and do not
return as long as enough connections send more of them. And the parts of a message are collected
without a bound, and shown to nobody, until its last part has come. So what the operating system
has received is looked at, by a thread of its own.

``Inbound`` decides for a publisher, to which peers send next to nothing; ``Unfinished`` for a
socket that takes requests.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from spectrod.wire.limits import TokenBucket
from spectrod.wire.links import Link, Links, Traffic, Transport, cut, traffic
from spectrod.worker import Worker

LINK_BYTES_PER_S = 2048.0
"""That a connection may send in the long run [bytes/s]: heartbeats of ZeroMQ take 25."""
LINK_BURST_BYTES = 64 * 1024
"""That it may send at once: more than all that it may subscribe to, encrypted [bytes]."""
TOTAL_BYTES_PER_S = 128.0 * 1024
TOTAL_BURST_BYTES = 32 * 1024
"""That all connections together may send; above that, those are cut off that have just sent
``BUSY_BYTES`` or more. A subscriber that connects sends about 250 bytes."""
BUSY_BYTES = 1024
"""Since the last look [bytes]; over IPC, where that is not known, waiting to be read."""
BUSY_LOOKS = 8
"""Looks in a row at which so much waits and data flows, after which a connection over IPC is cut
off."""
STALL_S = 0.1
"""Time of the processor in one step of the publisher's thread, after which it counts as held up:
whoever has sent ``BUSY_BYTES``, and over IPC those of which something waits, is cut off."""
LONG_STALL_S = 0.3
"""The same, after which all connections over IPC are cut off."""

UNFINISHED_BYTES = 256 * 1024
"""That a connection may send without a message that is complete: four times the longest request."""
UNFINISHED_TOTAL_BYTES = 1024 * 1024
"""The same of all connections together, of each what is above ``HANDSHAKE_BYTES``; above that, the
one with most is cut off."""
HANDSHAKE_BYTES = 4096
"""That every connection may send before its first message."""
UNFINISHED_LOOKS = 8.0
"""Over IPC, where bytes are not counted: looks at which data flowed, and no message was complete
since the look before; those at which ``FULL_BYTES`` wait count twice, and each other look takes
back a quarter. While something waits to be read, a look is taken every ``_WAITING_PERIOD_S``."""
FULL_BYTES = 128 * 1024
"""That wait over IPC only while more comes: twice the longest request. Less of it flows if its
amount has changed since the look before; on a busy machine a request may wait for long."""

_PER_THREAD = 0b110  # a thread's time of the processor, linux/posix-timers.h
_PERIOD_S = 0.025
_SHARE = 0.02  # of the time of one processor that all this may take
_WAITING_PERIOD_S = 0.005
_WAITING_SHARE = 0.1
_JOIN_S = 5.0
_log = logging.getLogger(__name__)


class Stall:
    """Tells how long a thread has been busy with one step.

    Parameters
    ----------
    thread : threading.Thread
        Has been started.
    steps : callable
        How many steps it has made.
    """

    def __init__(self, thread: threading.Thread, steps: Callable[[], int]) -> None:
        assert thread.native_id is not None
        # As the kernel makes it of a thread's number. What pthread_getcpuclockid would return of a
        # thread that has ended is undefined.
        self._clock = ~thread.native_id << 3 | _PER_THREAD
        self._steps = steps
        self._seen, self._since_s = -1, 0.0

    def look(self) -> float:
        """Return the processor's time since the first look that has seen this step [s]."""
        try:
            now_s = time.clock_gettime(self._clock)
        except OSError:  # the thread has ended
            return 0.0
        steps = self._steps()
        if steps != self._seen:
            self._seen, self._since_s = steps, now_s
        return now_s - self._since_s


class _Watched:
    """What is known of one connection."""

    def __init__(self, now_s: float) -> None:
        self.bucket = TokenBucket(LINK_BYTES_PER_S, LINK_BURST_BYTES, now_s)
        self.received_bytes = 0
        self.busy_looks = 0
        self.waiting_bytes = 0


class Inbound:
    """Decides by what connections have sent which of them to cut off. Pure."""

    def __init__(self, now_s: float) -> None:
        self._watched: dict[Link, _Watched] = {}
        self._total = TokenBucket(TOTAL_BYTES_PER_S, TOTAL_BURST_BYTES, now_s)

    def look(self, found: dict[Link, Traffic], now_s: float, stall_s: float = 0.0) -> list[Link]:
        """Take what every connection that is there has sent so far; return those to be cut off.

        Parameters
        ----------
        found : dict of Link to Traffic
        now_s : float
            The clock [s].
        stall_s : float
            For how long the publisher's thread has been busy with one step [s].
        """
        self._watched = {link: self._watched.get(link) or _Watched(now_s) for link in found}
        floods, n_bytes = [], 0
        busy = []
        for link, look in found.items():
            received, waiting = look
            one = self._watched[link]
            sent, one.received_bytes = received - one.received_bytes, received
            n_bytes += sent
            is_ipc = not received
            flows = waiting >= BUSY_BYTES and _flows(look, one.waiting_bytes)
            one.busy_looks, one.waiting_bytes = one.busy_looks + 1 if flows else 0, waiting
            if not one.bucket.take(now_s, sent) or one.busy_looks >= BUSY_LOOKS:
                floods.append(link)
            elif sent >= BUSY_BYTES or (is_ipc and (waiting or stall_s >= LONG_STALL_S)):
                busy.append((link, is_ipc))
        is_too_much = not self._total.take(now_s, n_bytes)
        is_stalled = stall_s >= STALL_S
        return floods + [
            link for link, is_ipc in busy if is_stalled or (is_too_much and not is_ipc)
        ]


class _Sender:
    """What is known of one connection that sends requests."""

    def __init__(self) -> None:
        self.n_messages = 0
        self.base_bytes = 0
        self.unfinished_bytes = 0
        self.waiting_bytes = 0
        self.waiting_looks = 0.0


class Unfinished:
    """Decides which connections to cut off because their messages have no end. Pure.

    Parameters
    ----------
    n_messages : mapping of Link to int
        How many messages have come over each connection; another thread counts them.
    """

    def __init__(self, n_messages: Mapping[Link, int]) -> None:
        self._n_messages = n_messages
        self._senders: dict[Link, _Sender] = {}

    def look(self, found: dict[Link, Traffic], now_s: float, stall_s: float = 0.0) -> list[Link]:
        """See ``Inbound.look``; neither the clock nor a stall matters."""
        del now_s, stall_s
        self._senders = {link: self._senders.get(link) or _Sender() for link in found}
        for link, one in found.items():
            self._take(self._senders[link], self._n_messages.get(link, 0), one)
        floods = [link for link, sender in self._senders.items() if _is_too_long(sender)]
        counted = {
            link: sender.unfinished_bytes - HANDSHAKE_BYTES
            for link, sender in self._senders.items()
            if sender.unfinished_bytes > HANDSHAKE_BYTES and not _is_too_long(sender)
        }
        total = sum(counted.values())
        for link in sorted(counted, key=lambda link: counted[link], reverse=True):
            if total <= UNFINISHED_TOTAL_BYTES:
                break
            floods.append(link)
            total -= counted[link]
        return floods

    def _take(self, sender: _Sender, n_messages: int, one: Traffic) -> None:
        flows = _flows(one, sender.waiting_bytes)
        sender.waiting_bytes = one.waiting_bytes
        if n_messages != sender.n_messages:
            sender.n_messages, sender.base_bytes = n_messages, one.received_bytes
            sender.waiting_looks = 0.0
        elif flows:
            sender.waiting_looks += 2.0 if one.waiting_bytes > FULL_BYTES else 1.0
        else:
            sender.waiting_looks = max(0.0, sender.waiting_looks - 0.25)
        sender.unfinished_bytes = one.received_bytes - sender.base_bytes


def _flows(one: Traffic, before_bytes: int) -> bool:
    """Say whether data flows over IPC, by what waits now and what waited at the look before."""
    waiting = one.waiting_bytes
    return (
        not one.received_bytes and waiting > 0 and (waiting != before_bytes or waiting > FULL_BYTES)
    )


def _is_too_long(sender: _Sender) -> bool:
    return sender.unfinished_bytes > UNFINISHED_BYTES or sender.waiting_looks >= UNFINISHED_LOOKS


class Judge(Protocol):
    """Decides which connections to cut off, see ``Inbound.look``."""

    def look(self, found: dict[Link, Traffic], now_s: float, stall_s: float = 0.0) -> list[Link]:
        """Return the connections to cut off."""


class FloodWatch:
    """A thread that looks at all connections to endpoints, forty times a second.

    Less often where there are so many that this would take more than 2 % of a processor.

    Parameters
    ----------
    endpoints : collection of str
        As they were bound.
    judge : Judge
        Decides which to cut off.
    on_cut : callable
        Called by the thread when a connection was cut off.
    stall : Stall or None
        Of the thread that reads what comes.
    on_stall : callable
        Called by the thread, again and again, while that thread is held up.
    """

    def __init__(
        self,
        endpoints: Collection[str],
        judge: Judge,
        on_cut: Callable[[Transport], None],
        *,
        stall: Stall | None = None,
        on_stall: Callable[[], None] = lambda: None,
    ) -> None:
        self._links, self._judge = Links(endpoints), judge
        self._stall = stall
        self._on_cut, self._on_stall = on_cut, on_stall
        self._stopping = threading.Event()
        self._worker = Worker("flood watch", self._run)

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def stop(self) -> None:
        """End the thread; idempotent."""
        self._stopping.set()
        self._worker.wait(_JOIN_S)

    def _run(self) -> None:
        wait_s = _PERIOD_S
        while not self._stopping.wait(wait_s):
            begin_s = time.thread_time()
            try:
                found = self._links.find()
            except OSError as error:
                _log.warning("connections are not watched for floods: %s", error)
                return
            seen = ((link, traffic(link, is_tcp=is_tcp)) for link, is_tcp in found.items())
            there = {link: one for link, one in seen if one is not None}
            stall_s = 0.0 if self._stall is None else self._stall.look()
            floods = self._judge.look(there, time.monotonic(), stall_s)
            # All of them first: each look at the others takes time in which they send.
            for transport in [cut(link) for link in floods]:
                if transport is not None:
                    self._on_cut(transport)
            if stall_s >= STALL_S:
                self._on_stall()
            # Over IPC a gigabyte may come in a second.
            is_waiting = any(one.waiting_bytes and not one.received_bytes for one in there.values())
            period_s, share = (
                (_WAITING_PERIOD_S, _WAITING_SHARE) if is_waiting else (_PERIOD_S, _SHARE)
            )
            wait_s = max(period_s, (time.thread_time() - begin_s) / share)
