"""The control socket: receives requests and sends replies, robust against any peer.

Knows no daemon: a handler answers. ``spectrod.wire.requests`` defines the requests.
"""

import ctypes
import errno
import logging
import math
import queue
import secrets
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import zmq

from spectrod.daemon.access.access import Access
from spectrod.daemon.access.flood import FloodWatch, Unfinished
from spectrod.daemon.access.holders import KeyHolders
from spectrod.daemon.access.listeners import Listeners
from spectrod.daemon.access.peer import Peer
from spectrod.daemon.access.tcp_links import Link, cut
from spectrod.daemon.control.dispatch import (
    Answer,
    Handler,
    Later,
    encode_reply,
    guarded,
    succeeded,
)
from spectrod.daemon.control.inbox import Inbox
from spectrod.daemon.control.unread import LARGE_BYTES, PART_BYTES, REPLIES_A_PEER, UnreadReplies
from spectrod.lib.errors import ConfigError, SpectrodError
from spectrod.lib.rate_limit import PeerLimits, TokenBucket
from spectrod.lib.wakeup import Wakeup
from spectrod.lib.worker import Worker
from spectrod.wire.endpoint import Endpoint, parse_endpoint
from spectrod.wire.liveness import notice_gone_peers
from spectrod.wire.requests import (
    METHODS,
    REQUEST_MAX_BYTES,
    MethodParams,
    Reply,
    Request,
    failed,
    read_request,
)

_log = logging.getLogger(__name__)

_LINGER_S = 0.2
_JOIN_S = 1.0  # the daemon's whole stop has 4 s
# Below the operating system's minimum, which then applies. All peers together can then send about 5
# MB a second, whatever their number: a flooding peer is found before it has sent much.
_RECEIVE_BUFFER_BYTES = 1024
_SEND_BUFFER_BYTES = 256 * 1024
_REQUESTS_A_TURN = 64  # before deferred requests get a turn
_READS_A_TURN = 1024
_PEERS_AT_FULL_RATE = 10
_PEERS_MAX = 1024
_ID_MAX_BYTES = 255
_CUT_MAX = 1024  # peers that were cut, whose messages may still arrive
_OWN_ID_BYTES = 5  # length of the routing ids that libzmq makes, which start with a zero
_CHANGES_MAX = 32
_WAITING_A_PEER = 8
_WAITING_MAX = 256


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    """A request that has passed all checks."""

    envelope: tuple[bytes, ...]
    request: Request
    params: MethodParams
    peer: Peer


@dataclass(frozen=True, slots=True)
class _Message:
    """A message of a peer, not validated yet."""

    envelope: tuple[bytes, ...]
    n_parts: int
    """Parts after the envelope."""
    part: bytes
    """The part if it is one, else empty."""
    peer: Peer


class _DeferredAnswer:
    """A request with a deferred answer."""

    def __init__(self, pending: _PendingRequest, later: Later, wake: Callable[[], None]) -> None:
        self.pending, self.later, self._wake = pending, later, wake
        self.deadline_s = time.monotonic() + later.timeout_s
        # Checked once after the watch has started: an answer that came in between is found.
        self.may_be_there = True
        self.end_watch = later.watch(self._notice)

    def _notice(self) -> None:
        self.may_be_there = True
        self._wake()


class ControlServer:
    """Receives requests at endpoints, in a thread that owns the socket.

    That thread answers read methods at once. Methods that change something, and may compile
    kernels, run one after the other in a second thread.

    Everything that waits is bounded. A peer may send requests_per_s requests a second, a second's
    worth at once; a further request fails with ``too_many``. All peers together get ten times as
    many answers a second; other requests wait, 1 MiB of one peer and 32 MiB in total, where each
    request counts 300 bytes beside its own size. A peer that exceeds its bound is cut; when the
    total is exceeded, the peer with most: a flood cannot take the processor from the analysis. 32
    changes may wait; another one fails with ``busy``. ``latest`` may wait 8 times for one peer and
    256 times in total; another one fails with ``too_many``. ``UnreadReplies`` bounds the replies
    that peers do not read: 256 replies and 10 MiB of one peer, 64 MiB in total, and 64 KiB for each
    of 256 peers whatever the others use. A read method whose reply is larger than 64 KiB waits 1 s
    for room, among those 8, and then fails with ``too_many``; any other reply without room is
    dropped and counted in ``counts``.

    ZeroMQ collects all parts of a message before it delivers them: a connection that has sent 256
    KiB without a complete message is cut, see ``Unfinished``.

    Parameters
    ----------
    endpoints : sequence of str
        ``ipc://PATH`` and ``tcp://HOST:PORT``, one or more.
    handler : Handler
        Answers requests; one thread calls methods that read, another those that change something.
    access : Access
        Started; identifies peers and controls access. Close it after the server has stopped.
    requests_per_s : float
        Limit of one peer, > 0.
    progress : Wakeup or None
        Set when the thread has ended.

    Attributes
    ----------
    endpoints : tuple of str
        Endpoints as ``start`` has bound them.
    failure : SpectrodError or None
        Error that ended the thread; None if ``stop`` did.
    counts : Counter of str
        Since the start: ``requests`` (received messages of any kind), ``dropped`` (replies to peers
        that have gone or do not read), and the replies with each error code.

    Raises
    ------
    ConfigError
        If an endpoint is malformed, or other machines can reach it and it requires no keys.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        handler: Handler,
        access: Access,
        *,
        requests_per_s: float = 100.0,
        progress: Wakeup | None = None,
    ) -> None:
        self._requested = tuple(parse_endpoint(text) for text in endpoints)
        for endpoint in self._requested:
            _check_bindable(endpoint, access)
        self._handler, self._access, self._progress = handler, access, progress
        of_all = _PEERS_AT_FULL_RATE * requests_per_s
        self._of_all = TokenBucket(of_all, max(1.0, of_all), time.monotonic())
        self._of_each = PeerLimits(requests_per_s, _PEERS_MAX)
        self._changes: queue.Queue[_PendingRequest | None] = queue.Queue(_CHANGES_MAX)
        # At most as long as the queue of changes, plus the change in progress.
        self._done: deque[tuple[_PendingRequest, Answer | Later | Reply]] = deque()
        self._n_changing = 0
        self._doing: _PendingRequest | None = None
        self._waiting: list[_DeferredAnswer] = []
        self._inbox: Inbox[_Message] = Inbox()
        self._links: dict[bytes, Link] = {}
        self._n_messages: Counter[Link] = Counter()
        self._n_links = _PEERS_MAX
        self._watch: FloodWatch | None = None
        self._cut: OrderedDict[bytes, None] = OrderedDict()
        self._unread = UnreadReplies()
        self._wakeup: Wakeup | None = None
        self._waking = threading.Lock()
        self._is_closing = threading.Event()
        self._stopping = threading.Event()
        self._workers: list[Worker] = []
        self.endpoints: tuple[str, ...] = ()
        self.failure: SpectrodError | None = None
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        """Bind in the calling thread, which raises the errors, then start the threads.

        Raises
        ------
        BusyError, ConfigError, StorageError, UnavailableError
            If an endpoint cannot be bound; the caller may then close ``access``.
        """
        socket = self._open_socket()
        try:
            self._listeners = Listeners(socket, self._access, self._wake, linger_s=_LINGER_S)
            # ZeroMQ deletes a socket's file in its own thread, at any time before the context ends.
            locks = self._access.at_end
            self.endpoints = tuple(self._listeners.bind(end, locks) for end in self._requested)
        except BaseException:
            socket.close()
            raise
        with_keys = self._listeners.with_keys
        self._holders = KeyHolders(self._access, with_keys, linger_s=_LINGER_S)
        self._wakeup = wakeup = Wakeup()
        self._workers = [
            Worker("control changes", self._change, self._ended),
            Worker("control", partial(self._run, socket, wakeup), self._ended),
        ]
        for worker in self._workers:
            worker.start()
        judge = Unfinished(self._n_messages)
        self._watch = FloodWatch(self.endpoints, judge, self._access.note_flood)
        self._access.connections.tell(self._watch.wake)
        self._watch.start()

    def stop(self) -> None:
        """Finish the current change, refuse queued ones, and release the endpoints; idempotent.

        A change that takes more than 1 s is abandoned, and its peer receives an error.
        """
        if not self._workers:
            return
        changes, server = self._workers
        self._workers = []
        if self._watch is not None:
            self._watch.stop()
        self._is_closing.set()
        with suppress(queue.Full):  # then the thread sees the flag before the next change
            self._changes.put_nowait(None)
        if not changes.wait(_JOIN_S):
            _log.warning("control: a change takes too long; stopping without waiting for it")
        self._stopping.set()
        self._wake()
        server.require_end(_JOIN_S)
        with self._waking:
            if self._wakeup is not None:
                self._wakeup.close()
            self._wakeup = None

    def _wake(self) -> None:
        # A late caller must not write to the descriptor after it was closed, and maybe reused.
        with self._waking:
            if self._wakeup is not None:
                self._wakeup.set()

    def _open_socket(self) -> zmq.SyncSocket:
        _scatter_routing_ids()
        socket = self._access.context.socket(zmq.ROUTER)
        # Set linger before bind: without it, the end of the context waits for peers that do not
        # read.
        socket.setsockopt(zmq.LINGER, round(_LINGER_S * 1e3))
        socket.setsockopt(zmq.SNDHWM, REPLIES_A_PEER)
        socket.setsockopt(zmq.RCVHWM, 0)  # see liveness.py; the inbox bounds the queue
        socket.setsockopt(zmq.RCVBUF, _RECEIVE_BUFFER_BYTES)
        socket.setsockopt(zmq.SNDBUF, _SEND_BUFFER_BYTES)
        socket.setsockopt(zmq.MAXMSGSIZE, REQUEST_MAX_BYTES)
        # A routing id stays with its connection: a peer that claims it receives none of its
        # replies.
        socket.setsockopt(zmq.ROUTER_HANDOVER, 0)
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)  # an unsendable reply is an error
        notice_gone_peers(socket)
        socket.copy_threshold = 0  # zero-copy parts are not copied, however short
        return socket

    # ---- the thread of changes

    def _change(self) -> None:
        while (pending := self._changes.get()) is not None and not self._is_closing.is_set():
            self._doing = pending
            act = partial(self._handler.call, pending.request.method, pending.params, pending.peer)
            self._done.append((pending, guarded(pending.request, act)))
            self._doing = None
            self._wake()

    # ---- the thread that owns the socket

    def _run(self, socket: zmq.SyncSocket, wakeup: Wakeup) -> None:
        try:
            self._serve(socket, wakeup)
            self._refuse_the_rest(socket)
        finally:
            for waiting in self._waiting:
                waiting.end_watch()
            socket.close()

    def _ended(self, failure: SpectrodError | None) -> None:
        """Note that one of the two threads has ended; the first failure counts."""
        self.failure = self.failure or failure
        if self._progress is not None:
            self._progress.set()

    def _serve(self, socket: zmq.SyncSocket, wakeup: Wakeup) -> None:
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(wakeup.fileno(), zmq.POLLIN)
        while not self._stopping.is_set():
            rest_s = self._of_all.wait_s(time.monotonic()) if self._inbox else math.inf
            poller.poll(self._poll_ms(rest_s))
            wakeup.clear()  # before the queues are read
            self._receive(socket)
            self._reply_done(socket)
            self._check_again(socket)
            if not self._n_changing:
                # The reply to a revocation goes out before connections are cut, maybe its own.
                self._holders.refresh()
                self._listeners.refresh()

    def _poll_ms(self, rest_s: float) -> int | None:
        if any(waiting.may_be_there for waiting in self._waiting):
            return 0
        now_s = time.monotonic()
        # Nothing is refreshed during a change; the end of the change wakes this thread.
        cut_s = min(self._listeners.due_s, self._holders.due_s)
        listen_s = math.inf if self._n_changing else cut_s - now_s
        wait_s = min([rest_s, listen_s, *(waiting.deadline_s - now_s for waiting in self._waiting)])
        return None if wait_s == math.inf else max(0, math.ceil(wait_s * 1e3))

    def _receive(self, socket: zmq.SyncSocket) -> None:
        """Read the messages that have arrived, and answer as many requests as the limits allow."""
        # Read more than is answered, to find and cut flooding peers.
        for _ in range(_READS_A_TURN):
            try:
                frames = socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                break
            self._keep(frames)
        for _ in range(_REQUESTS_A_TURN):
            if not self._answer_next(socket):
                return

    def _keep(self, frames: Sequence[zmq.Frame]) -> None:
        """Queue a message; cut the peer that then exceeds its bound."""
        # A REQ socket sends an empty part before its message, and requires it in the reply.
        n_envelope = 2 if len(frames) == 3 and len(frames[1]) == 0 else 1
        envelope = tuple(frame.bytes for frame in frames[:n_envelope])
        if envelope[0] in self._cut:
            return
        self.counts["requests"] += 1
        body = frames[n_envelope:]
        part = body[0].bytes if len(body) == 1 else b""
        message = _Message(envelope, len(body), part, self._access.user(frames[-1]))
        self._note_link(envelope[0], frames[-1])
        greedy = self._inbox.add(envelope[0], message, len(part))
        if greedy is not None:
            self._cut_off(greedy)

    def _note_link(self, routing_id: bytes, frame: zmq.Frame) -> None:
        link = self._access.link_of(frame)
        self._holders.note(link, frame)
        if link is None:
            return
        self._links[routing_id] = link
        self._n_messages[link] += 1
        if len(self._n_messages) > 2 * self._n_links:
            self._links = {peer: link for peer, link in self._links.items() if link.is_there}
            for gone in [link for link in self._n_messages if not link.is_there]:
                del self._n_messages[gone]
            self._n_links = max(_PEERS_MAX, len(self._n_messages))

    def _cut_off(self, routing_id: bytes) -> None:
        self._inbox.forget(routing_id)
        self._cut[routing_id] = None
        if len(self._cut) > _CUT_MAX:
            self._cut.popitem(last=False)
        link = self._links.pop(routing_id, None)
        transport = None if link is None else cut(link)
        if transport is not None:
            self._access.note_flood(transport)

    def _answer_next(self, socket: zmq.SyncSocket) -> bool:
        """Answer the request whose turn it is; return False if none may be answered now."""
        now_s = time.monotonic()
        if self._of_all.wait_s(now_s):
            return False
        message = self._inbox.take()
        if message is None:
            return False
        self._of_all.take(now_s)
        self._take(socket, message, now_s)
        return True

    def _take(self, socket: zmq.SyncSocket, message: _Message, now_s: float) -> None:
        envelope = message.envelope
        if not _is_proper(envelope[0]):
            text = f"routing id of {len(envelope[0])} bytes: must have at most {_ID_MAX_BYTES}, the"
            text += " first of them not zero"
            self._send(socket, envelope, failed(None, "bad_request", text))
            return
        if message.n_parts != 1:
            text = f"message of {message.n_parts} parts: must be one part, of JSON"
            self._send(socket, envelope, failed(None, "bad_request", text))
            return
        read = read_request(message.part)
        request_id = read.id if isinstance(read, Reply) else read[0].id
        if not self._of_each.take(envelope[0], now_s):
            text = "more requests than requests_per_s allows one peer"
            read = failed(request_id, "too_many", text)
        if isinstance(read, Reply):
            self._send(socket, envelope, read)
        else:
            self._admit(socket, _PendingRequest(envelope, *read, message.peer))

    def _admit(self, socket: zmq.SyncSocket, pending: _PendingRequest) -> None:
        """Check the peer's right, then answer the request or queue the change."""
        method, peer = pending.request.method, pending.peer
        right = METHODS[method].right
        if peer.right is None or (right == "control" and peer.right != "control"):
            text = f"{method}: needs the right {right!r}, which {peer.name} does not have"
            self._reply(socket, pending, failed(pending.request.id, "denied", text))
        elif right == "read":
            act = partial(self._handler.call, method, pending.params, peer)
            self._reply(socket, pending, guarded(pending.request, act))
        else:
            try:
                self._changes.put_nowait(pending)
                self._n_changing += 1
            except queue.Full:
                text = f"{method}: {_CHANGES_MAX} changes wait already; try again later"
                self._reply(socket, pending, failed(pending.request.id, "busy", text))

    def _reply_done(self, socket: zmq.SyncSocket) -> None:
        while self._done:
            self._reply(socket, *self._done.popleft())
            self._n_changing -= 1

    def _reply(
        self, socket: zmq.SyncSocket, pending: _PendingRequest, outcome: Answer | Later | Reply
    ) -> None:
        if isinstance(outcome, Later):
            self._defer(socket, pending, outcome)
        elif isinstance(outcome, Reply):
            self._send(socket, pending.envelope, outcome)
        else:
            self._answer(socket, pending, outcome)

    def _answer(self, socket: zmq.SyncSocket, pending: _PendingRequest, answer: Answer) -> None:
        """Send an answer; a large one waits while its peer has too many unread replies."""
        peer, request = pending.envelope[0], pending.request
        parts = (encode_reply(succeeded(request, answer)), *answer.parts)
        n_bytes = _size_bytes(parts)
        if n_bytes <= LARGE_BYTES or self._unread.has_room(peer, n_bytes):
            self._send_or_count(socket, pending.envelope, parts)
        else:
            text = f"{request.method}: too many large replies are unread; read them first"
            late = failed(request.id, "too_many", text)
            if METHODS[request.method].right == "read":
                # Call the method again later instead of keeping its answer: waiting takes no
                # memory.
                act = partial(self._handler.call, request.method, pending.params, pending.peer)
                self._defer(socket, pending, self._unread.once_read(peer, n_bytes, act, late))
            else:
                self._send(socket, pending.envelope, late)

    def _defer(self, socket: zmq.SyncSocket, pending: _PendingRequest, later: Later) -> None:
        of_peer = sum(w.pending.envelope[0] == pending.envelope[0] for w in self._waiting)
        if of_peer >= _WAITING_A_PEER or len(self._waiting) >= _WAITING_MAX:
            text = f"{pending.request.method}: more than may wait at once, {_WAITING_A_PEER} a peer"
            self._reply(socket, pending, failed(pending.request.id, "too_many", text))
        else:
            # The watched topic may have gone since the handler was called.
            waiting = guarded(pending.request, partial(_DeferredAnswer, pending, later, self._wake))
            if isinstance(waiting, Reply):
                self._send(socket, pending.envelope, waiting)
            else:
                self._waiting.append(waiting)

    def _check_again(self, socket: zmq.SyncSocket) -> None:
        """Answer the deferred requests whose answer is available or whose time is over."""
        now_s = time.monotonic()
        for waiting in [w for w in self._waiting if w.may_be_there or w.deadline_s <= now_s]:
            waiting.may_be_there = False
            outcome = guarded(waiting.pending.request, waiting.later.look)
            if outcome is None and waiting.deadline_s <= now_s:
                outcome = waiting.later.otherwise
            if outcome is not None:
                self._waiting.remove(waiting)
                waiting.end_watch()
                self._reply(socket, waiting.pending, outcome)

    def _refuse_the_rest(self, socket: zmq.SyncSocket) -> None:
        """Answer all pending requests when the server stops."""
        late = self._doing
        self._reply_done(socket)
        # Still the same: it is not among the finished changes.
        if late is not None and late is self._doing:
            text = f"{late.request.method}: the daemon stops before the change is done"
            self._reply(socket, late, failed(late.request.id, "unavailable", text))
        rest = [waiting.pending for waiting in self._waiting]
        with suppress(queue.Empty):
            while True:
                pending = self._changes.get_nowait()
                rest += [] if pending is None else [pending]
        for pending in rest:
            text = f"{pending.request.method}: the daemon stops"
            self._reply(socket, pending, failed(pending.request.id, "unavailable", text))

    def _send(self, socket: zmq.SyncSocket, envelope: Sequence[bytes], reply: Reply) -> None:
        """Send a reply; count it by its error code."""
        if reply.error is not None:
            self.counts[reply.error.code] += 1
        self._send_or_count(socket, envelope, (encode_reply(reply),))

    def _send_or_count(
        self, socket: zmq.SyncSocket, envelope: Sequence[bytes], parts: Sequence[bytes]
    ) -> None:
        """Send a reply if its peer has room for it; else count it as dropped."""
        peer, n_bytes = envelope[0], _size_bytes(parts)
        is_sent = False
        if self._unread.has_room(peer, n_bytes):
            last = self._unread.hold(peer, parts[-1], n_bytes)
            is_sent = _send_or_drop(socket, [*envelope, *parts[:-1]], last)
        if not is_sent:
            self.counts["dropped"] += 1


def _scatter_routing_ids() -> None:
    """Make the first routing id of the next ROUTER socket unpredictable.

    libzmq takes it from ``rand``, seeded with the start time and the process id, and an assertion
    aborts the process if a peer has already claimed the next id.
    """
    ctypes.CDLL(None).srand(secrets.randbits(32))


def _is_proper(routing_id: bytes) -> bool:
    """Return whether a routing id is libzmq's own, or one that a peer may choose.

    An id that a peer has forged to look like libzmq's cannot be distinguished.
    """
    if routing_id[:1] == b"\0":
        return len(routing_id) == _OWN_ID_BYTES
    return len(routing_id) <= _ID_MAX_BYTES


def _size_bytes(parts: Sequence[bytes]) -> int:
    return sum(map(len, parts)) + PART_BYTES * len(parts)


def _send_or_drop(socket: zmq.SyncSocket, first: Sequence[bytes], last: memoryview) -> bool:
    """Send to a peer, the last part without a copy; return whether it was sent."""
    for _ in range(2):
        try:
            socket.send_multipart(first, zmq.NOBLOCK | zmq.SNDMORE)
        except zmq.ZMQError as error:
            if error.errno == errno.EHOSTUNREACH:  # gone
                return False
            if error.errno != errno.EAGAIN:
                raise
            # The queue is full; a poll makes ZeroMQ process what the peer has read meanwhile.
            socket.poll(0)
        else:
            socket.send(last, 0, copy=False, track=False)
            return True
    return False


def _check_bindable(endpoint: Endpoint, access: Access) -> None:
    if not (endpoint.is_local or access.is_curve(endpoint)):
        raise ConfigError(
            f"endpoint={endpoint.text!r}: anyone on the network could control the daemon; "
            "bind to 127.0.0.1, or set keys in [security]"
        )
