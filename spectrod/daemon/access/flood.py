"""Cuts connections that send too much, even while the thread that reads them is stuck.

libzmq's ``zmq_poll`` and ``zmq_msg_recv`` process all received subscriptions, and do not return
while enough connections send more. libzmq also collects the parts of a message without a bound, and
delivers nothing before the last part. So a thread of its own monitors the bytes that the operating
system has received.

``Inbound`` decides for a publisher, to which peers send little; ``Unfinished`` for a socket that
receives requests.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from spectrod.daemon.access.tcp_links import Link, Links, Traffic, Transport, cut, traffic
from spectrod.lib.rate_limit import TokenBucket
from spectrod.lib.worker import Worker

LINK_BYTES_PER_S = 2048.0
"""Sustained rate that a connection may send [bytes/s]; heartbeats of ZeroMQ take 25."""
LINK_BURST_BYTES = 64 * 1024
"""Burst that a connection may send: more than its maximum of subscriptions, encrypted [bytes]."""
TOTAL_BYTES_PER_S = 128.0 * 1024
TOTAL_BURST_BYTES = 32 * 1024
"""Rate and burst that all connections together may send; above them, the connections that have just
sent ``BUSY_BYTES`` or more are cut. A subscriber that connects sends about 250 bytes."""
BUSY_BYTES = 1024
"""Bytes of a busy connection in about the last 25 ms, however often it is sampled; over IPC, where
they are not counted, bytes that wait to be read."""
BUSY_LOOKS = 8
"""Successive samples with that much waiting and data flowing, after which a connection over IPC is
cut."""
STALL_S = 0.1
"""Processor time in one step of the publisher's thread, after which it counts as stalled: every
connection that has sent ``BUSY_BYTES`` is cut, and over IPC every one with unread bytes."""
LONG_STALL_S = 0.3
"""Processor time in one step, after which all connections over IPC are cut."""

UNFINISHED_BYTES = 256 * 1024
"""Bytes that a connection may send without a complete message: four times the longest request."""
UNFINISHED_TOTAL_BYTES = 1024 * 1024
"""The same for all connections together, counted above ``HANDSHAKE_BYTES`` each; when it is
exceeded, the connection with most is cut."""
HANDSHAKE_BYTES = 4096
"""Bytes that every connection may send before its first message."""
UNFINISHED_LOOKS = 8.0
"""Over IPC, where bytes are not counted: samples with data flowing and no message completed since
the sample before; samples with ``FULL_BYTES`` waiting count twice, and every other sample subtracts
a quarter. While bytes wait to be read, the period is ``_WAITING_PERIOD_S``."""
FULL_BYTES = 128 * 1024
"""Bytes that wait over IPC only while more arrives: twice the longest request. Fewer bytes count as
flowing if their number has changed since the sample before; on a busy machine a request may wait
for long."""

_PER_THREAD = 0b110  # a thread's time of the processor, linux/posix-timers.h
_PERIOD_S = 0.025
_SHARE = 0.02  # of one processor that the thread may use
_QUIET_LOOKS = 40
"""Successive samples without a connection and a stall, after which it sleeps: the backlog of
connections that have ended may still stall the reading thread."""
_WAITING_PERIOD_S = 0.005
_WAITING_SHARE = 0.1
_AFTER_CUT_S = 1.0
"""Time in which it samples as often after a cut: whoever was cut connects again at once, and in
25 ms sends 350 kB over loopback, which subscriptions make 16 MB of libzmq's tree."""
_BUSY_S = 0.99 * _PERIOD_S
_JOIN_S = 5.0
_log = logging.getLogger(__name__)


class Stall:
    """Measures how long a thread has been busy with one step.

    Parameters
    ----------
    thread : threading.Thread
        A started thread.
    steps : callable
        Returns the number of its steps so far.
    """

    def __init__(self, thread: threading.Thread, steps: Callable[[], int]) -> None:
        assert thread.native_id is not None
        # The kernel's encoding of a thread's clock: pthread_getcpuclockid is undefined for a thread
        # that has ended.
        self._clock = ~thread.native_id << 3 | _PER_THREAD
        self._steps = steps
        self._seen, self._busy_s = -1, 0.0
        self._cpu_s = self._elapsed_s = 0.0

    def look(self) -> float:
        """Return the processor time since the first call that saw the current step [s].

        Between two calls it rises by the elapsed time at most: a sandbox that shifts the clocks of
        a process may shift this one.
        """
        try:
            cpu_s, elapsed_s = time.clock_gettime(self._clock), time.monotonic()
        except OSError:  # the thread has ended
            return 0.0
        busy_s = max(0.0, min(cpu_s - self._cpu_s, elapsed_s - self._elapsed_s))
        self._cpu_s, self._elapsed_s = cpu_s, elapsed_s
        steps = self._steps()
        self._busy_s = self._busy_s + busy_s if steps == self._seen else 0.0
        self._seen = steps
        return self._busy_s


class _Watched:
    """State of one connection."""

    def __init__(self, now_s: float) -> None:
        self.bucket = TokenBucket(LINK_BYTES_PER_S, LINK_BURST_BYTES, now_s)
        self.received_bytes = 0
        self.marked_bytes = 0
        self.busy_looks = 0
        self.waiting_bytes = 0


class Inbound:
    """Decides by the sent bytes which connections to cut. Pure."""

    def __init__(self, now_s: float) -> None:
        self._watched: dict[Link, _Watched] = {}
        self._total = TokenBucket(TOTAL_BYTES_PER_S, TOTAL_BURST_BYTES, now_s)
        self._mark_s = now_s

    def look(self, found: dict[Link, Traffic], now_s: float, stall_s: float = 0.0) -> list[Link]:
        """Sample the traffic of all connections; return those to cut.

        Parameters
        ----------
        found : dict of Link to Traffic
        now_s : float
            The clock [s].
        stall_s : float
            How long the publisher's thread has been busy with one step [s].
        """
        self._watched = {link: self._watched.get(link) or _Watched(now_s) for link in found}
        floods, n_bytes = [], 0
        busy = []
        is_mark = now_s - self._mark_s >= _BUSY_S
        if is_mark:
            self._mark_s = now_s
        for link, look in found.items():
            received, waiting = look
            one = self._watched[link]
            sent, one.received_bytes = received - one.received_bytes, received
            n_bytes += sent
            recent = received - one.marked_bytes
            if is_mark:
                one.marked_bytes = received
            is_ipc = not received
            flows = waiting >= BUSY_BYTES and _flows(look, one.waiting_bytes)
            one.busy_looks, one.waiting_bytes = one.busy_looks + 1 if flows else 0, waiting
            if not one.bucket.take(now_s, sent) or one.busy_looks >= BUSY_LOOKS:
                floods.append(link)
            elif recent >= BUSY_BYTES or (is_ipc and (waiting or stall_s >= LONG_STALL_S)):
                busy.append((link, is_ipc))
        is_too_much = not self._total.take(now_s, n_bytes)
        is_stalled = stall_s >= STALL_S
        return floods + [
            link for link, is_ipc in busy if is_stalled or (is_too_much and not is_ipc)
        ]


class _Sender:
    """State of one connection that sends requests."""

    def __init__(self) -> None:
        self.n_messages = 0
        self.base_bytes = 0
        self.unfinished_bytes = 0
        self.waiting_bytes = 0
        self.waiting_looks = 0.0


class Unfinished:
    """Decides which connections to cut because their messages do not end. Pure.

    Parameters
    ----------
    n_messages : mapping of Link to int
        Number of messages of each connection; another thread counts them.
    """

    def __init__(self, n_messages: Mapping[Link, int]) -> None:
        self._n_messages = n_messages
        self._senders: dict[Link, _Sender] = {}

    def look(self, found: dict[Link, Traffic], now_s: float, stall_s: float = 0.0) -> list[Link]:
        """See ``Inbound.look``; ignores the clock and stalls."""
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
    """Return whether data flows over IPC, by the waiting bytes now and at the sample before."""
    waiting = one.waiting_bytes
    return (
        not one.received_bytes and waiting > 0 and (waiting != before_bytes or waiting > FULL_BYTES)
    )


def _is_too_long(sender: _Sender) -> bool:
    return sender.unfinished_bytes > UNFINISHED_BYTES or sender.waiting_looks >= UNFINISHED_LOOKS


class Judge(Protocol):
    """Decides which connections to cut, see ``Inbound.look``."""

    def look(self, found: dict[Link, Traffic], now_s: float, stall_s: float = 0.0) -> list[Link]:
        """Return the connections to cut."""


class FloodWatch:
    """A thread that samples the traffic of all connections to endpoints 40 times a second.

    It samples less often where that would take more than 2 % of a processor. After a second without
    a connection it sleeps until ``wake``.

    Parameters
    ----------
    endpoints : collection of str
        As they were bound.
    judge : Judge
        Decides which connections to cut.
    on_cut : callable
        Called by the thread after each cut.
    stall : Stall or None
        Measures the thread that reads the messages.
    on_stall : callable
        Called by the thread repeatedly while the reading thread is stalled.
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
        self._awake = threading.Event()
        self._worker = Worker("flood watch", self._run)

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def stop(self) -> None:
        """End the thread; idempotent."""
        self._stopping.set()
        self._awake.set()
        self._worker.wait(_JOIN_S)

    def wake(self) -> None:
        """Sample again, because there is a new connection; any thread."""
        self._awake.set()

    def _run(self) -> None:
        wait_s = _PERIOD_S
        n_quiet = 0
        cut_s = -math.inf
        while not self._stopping.wait(wait_s):
            start_s = time.thread_time()
            self._awake.clear()  # before the search, or a connection made after it would be missed
            try:
                found = self._links.find()
            except OSError as error:
                _log.warning("cannot watch connections for floods: %s", error)
                return
            seen = ((link, traffic(link, is_tcp=is_tcp)) for link, is_tcp in found.items())
            there = {link: one for link, one in seen if one is not None}
            stall_s = 0.0 if self._stall is None else self._stall.look()
            now_s = time.monotonic()
            floods = self._judge.look(there, now_s, stall_s)
            if floods:
                cut_s = now_s
            # Cut all of them first: a callback takes time in which the others send.
            for transport in [cut(link) for link in floods]:
                if transport is not None:
                    self._on_cut(transport)
            if stall_s >= STALL_S:
                self._on_stall()
            # Over IPC a gigabyte may arrive in a second.
            is_waiting = any(one.waiting_bytes and not one.received_bytes for one in there.values())
            is_soon = is_waiting or now_s - cut_s < _AFTER_CUT_S
            period_s, share = (
                (_WAITING_PERIOD_S, _WAITING_SHARE) if is_soon else (_PERIOD_S, _SHARE)
            )
            wait_s = max(period_s, (time.thread_time() - start_s) / share)
            n_quiet = 0 if there or stall_s >= STALL_S else n_quiet + 1
            if n_quiet == _QUIET_LOOKS:
                n_quiet = 0
                self._awake.wait()
