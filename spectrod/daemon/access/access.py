"""Access control: CURVE keys, ZeroMQ's authentication protocol (ZAP), refused connections.

One thread answers the ZAP requests of libzmq and reads the events of its socket monitors.
"""

import ipaddress
import logging
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import zmq
from zmq.utils import z85

from spectrod.config.settings import SecurityConfig
from spectrod.daemon.access.connections import Connections
from spectrod.daemon.access.monitors import Monitors
from spectrod.daemon.access.peer import Peer
from spectrod.daemon.access.refusals import Kind, Refusals
from spectrod.daemon.access.tcp_links import Link, Transport, fd_of
from spectrod.lib.descriptors import current_limit
from spectrod.lib.errors import ConfigError, SpectrodError
from spectrod.lib.events import EventLog
from spectrod.lib.wakeup import Wakeup
from spectrod.lib.worker import Worker
from spectrod.wire.endpoint import Endpoint
from spectrod.wire.keys import KeyPair, PublicKey, read_folder, read_secret

_log = logging.getLogger("spectrod")

_ZAP_ENDPOINT = "inproc://zeromq.zap.01"
_ZAP_VERSION = b"1.0"
_CURVE_DOMAIN = b"spectrod.curve"
_PLAIN_DOMAIN = b"spectrod.plain"
_PLAIN_USER = "(plain)"  # others are known by their keys
_JOIN_S = 5.0
HANDSHAKE_S = 5.0
"""Time limit of a handshake, after which libzmq closes the connection [s]."""
_KEPT_REVOKED = 1000  # revoked keys that are reported as revoked, not as unknown

# "localhost:UID:GID:PID", by SO_PEERCRED.
_IPC_ADDRESS = re.compile(r"localhost:(\d+):\d+:(\d+)")


@dataclass(frozen=True, slots=True)
class _Keys:
    """All keys of one moment; replaced as a whole."""

    server: KeyPair
    clients: Mapping[bytes, PublicKey]
    """By their 40 characters of Z85."""
    revoked: tuple[bytes, ...] = ()


class Access:
    """ZeroMQ's context and the access control of its sockets.

    Without keys in the configuration every peer that reaches an endpoint may connect. With keys, a
    TCP endpoint that other machines can reach, or every TCP endpoint (``require = "always"``),
    accepts connections of known keys only; other peers learn nothing. If the thread fails, no new
    connection is accepted.

    Parameters
    ----------
    security : SecurityConfig
        Which keys.
    events : EventLog or None
        Receives refusals, added and removed keys, and endpoints that close.
    handshake_s : float
        Time limit of a handshake [s].

    Attributes
    ----------
    context : zmq.Context
        Context of every socket of the daemon.
    events : EventLog or None
        As given.
    refusals : Refusals
        Connections that were refused, by kind.
    connections : Connections
        Number of connections, and its bound.
    monitors : Monitors
        Monitor events of libzmq.
    generation : int
        Increases when all connections with keys must be cut; see ``Listeners``.
    revocations : int
        Increases when keys of clients have been revoked; see ``KeyHolders``.
    failure : SpectrodError or None
        Error that ended the thread; None if ``close`` did.
    at_end : ExitStack
        Closed by ``close`` once the context has ended: the ``cleanup`` of every bind.

    Raises
    ------
    ConfigError
        If a key cannot be read, or only one of the server's key and the clients' keys is
        configured.
    """

    def __init__(
        self,
        security: SecurityConfig | None = None,
        *,
        events: EventLog | None = None,
        handshake_s: float = HANDSHAKE_S,
    ) -> None:
        self._security = SecurityConfig() if security is None else security
        self.events = events
        self._handshake_s = handshake_s
        self._keys = _read_keys(self._security)
        self._on_change: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._reloading = threading.Lock()
        self._wakeup: Wakeup | None = None
        self._stopping = threading.Event()
        self._worker: Worker | None = None
        self.context: zmq.Context[zmq.SyncSocket] = zmq.Context(io_threads=2)
        self.at_end = ExitStack()
        self.refusals = Refusals(events)
        self.connections = Connections(self._security.max_connections, current_limit(), events)
        self.monitors = Monitors(self.refusals if self._keys else None, self.connections)
        self.generation = self.revocations = 0
        self.failure: SpectrodError | None = None

    @property
    def has_keys(self) -> bool:
        """Whether keys are configured, so other machines can be authenticated."""
        return self._keys is not None

    @property
    def n_client_keys(self) -> int:
        """Number of client keys that may connect."""
        return 0 if self._keys is None else len(self._keys.clients)

    def is_curve(self, endpoint: Endpoint) -> bool:
        """Whether an endpoint accepts connections of known keys only."""
        is_strict = self._security.require == "always" or not endpoint.is_local
        return self.has_keys and endpoint.transport == "tcp" and is_strict

    def start(self) -> None:
        """Start the thread; call once, before any socket is made."""
        if self._worker is not None:
            return
        status = self.connections.status()
        if status["tcp"]["max"] < self._security.max_connections:
            _log.warning(
                "at most %d connections over TCP and %d over IPC: half of %d descriptors",
                status["tcp"]["max"],
                status["ipc"]["max"],
                current_limit(),
            )
        self._wakeup = Wakeup()
        # The calling thread binds it: no endpoint can be bound before the ZAP socket exists.
        zap = self.context.socket(zmq.REP)
        zap.setsockopt(zmq.LINGER, 0)
        zap.bind(_ZAP_ENDPOINT)
        self._worker = Worker("access", partial(self._run, zap, self._wakeup), self._ended)
        self._worker.start()

    def close(self) -> None:
        """End the thread and the context; call after all its sockets are closed; idempotent."""
        if self._worker is not None and self._wakeup is not None:
            self._stopping.set()
            self._wakeup.set()
            self._worker.require_end(_JOIN_S)
            self._worker = None
            self._wakeup.close()
        self.context.term()
        self.at_end.close()

    def prepare(self, sock: zmq.SyncSocket, endpoint: Endpoint) -> None:
        """Set the socket options for the next bind.

        libzmq copies a socket's options when it binds, so one socket may have both kinds of
        endpoints. An empty ZAP domain cannot be set again, hence one for endpoints without keys.
        """
        sock.setsockopt(zmq.HANDSHAKE_IVL, round(1e3 * self._handshake_s))
        keys = self._keys if self.is_curve(endpoint) else None
        sock.setsockopt(zmq.CURVE_SERVER, keys is not None)
        sock.setsockopt(zmq.ZAP_DOMAIN, _PLAIN_DOMAIN if keys is None else _CURVE_DOMAIN)
        # Without it, libzmq accepts every connection while no ZAP handler answers.
        sock.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        if keys is not None:
            sock.setsockopt(zmq.CURVE_SECRETKEY, keys.server.secret)

    def user(self, frame: zmq.Frame) -> Peer:
        """Return the sender of a message from a frame received with ``copy=False``.

        A connection without a key has the right to control if it comes from this machine, where the
        mode of the socket's file or the loopback interface protects it, and the right to read if it
        comes from another machine, which ``insecure`` allows.
        """
        keys, key = self._keys, self.key_of(frame)
        if keys is None or key is None:
            return _plain_peer(_metadata(frame, "Peer-Address"))
        known = keys.clients.get(key)
        return Peer(key.decode(), None) if known is None else Peer(known.name, known.right)

    def key_of(self, frame: zmq.Frame) -> bytes | None:
        """Return the key that admitted a frame's connection; None if it needed none.

        A name would be ambiguous: a reload may give it to another key.
        """
        user, _ = _admission(frame)
        return None if user == _PLAIN_USER else user.encode()

    def admission_of(self, frame: zmq.Frame) -> int:
        """Return the moment at which a frame's connection was admitted, its own alone."""
        return _admission(frame)[1]

    def link_of(self, frame: zmq.Frame) -> Link | None:
        """Return the connection of a frame received with ``copy=False``; None if it has ended.

        libzmq reports its descriptor, which a later connection may have reused. So ``_answer`` adds
        the moment of admission to each user id, and ``Connections`` records when each descriptor
        was freed.
        """
        fd = fd_of(frame)
        return None if fd is None else self.connections.link_of(fd, _admission(frame)[1])

    def is_known(self, key: bytes) -> bool:
        """Return whether a client's key may connect."""
        return self._keys is not None and key in self._keys.clients

    def watch(self, sock: zmq.SyncSocket, on_change: Callable[[], None]) -> None:
        """Start to count a socket's connections and refusals; call before it binds, as its owner.

        Parameters
        ----------
        sock : zmq.Socket
        on_change : callable
            Wakes the owner, from any thread, when ``generation`` or ``revocations`` has increased.
        """
        if self._wakeup is None:
            return
        self.monitors.watch(sock)
        with self._lock:
            self._on_change.append(on_change)
        self._wakeup.set()

    def note_flood(self, transport: Transport) -> None:
        """Record that a connection was cut because it sent too much; any thread."""
        self.refusals.add("flood")
        self.connections.note_flood(transport)
        if self._wakeup is not None:
            self._wakeup.set()

    def hold_new_connections(self) -> None:
        """Close the endpoints to new connections until the backlog is processed; any thread."""
        self.connections.hold_new_connections()
        if self._wakeup is not None:
            self._wakeup.set()

    def reload(self) -> list[str]:
        """Read the keys again and cut the connections of revoked keys; any thread.

        If the server's key changed, all connections to the endpoints with keys are cut. Clients
        that may connect reconnect by themselves within 0.2 s and see the lost messages as a hole in
        ``seq``. Otherwise only the connections of revoked keys are cut.

        Returns
        -------
        lines : list of str
            The changes, for a person.

        Raises
        ------
        ConfigError
            If a key cannot be read or is wrong; the keys in force then remain.
        """
        with self._reloading:
            lines, waiting = self._take_keys()
        for wake in waiting:
            wake()
        if self.events is not None:
            for line in lines:
                self.events.add("security.keys", line)
        return lines

    def check_keys(self) -> None:
        """Read the keys without using them.

        Raises
        ------
        ConfigError
            If a key cannot be read or is wrong.
        """
        _read_keys(self._security)

    def _take_keys(self) -> tuple[list[str], list[Callable[[], None]]]:
        """Read the keys; return the changes and the callbacks that wake the owners."""
        old, new = self._keys, _read_keys(self._security)
        if old is None or new is None:
            return [], []
        gone = [key for key in old.clients if key not in new.clients]
        revoked = [key for key in (*old.revoked, *gone) if key not in new.clients]
        self._keys = replace(new, revoked=tuple(revoked[-_KEPT_REVOKED:]))
        lines = _differences(old, new)
        is_new_server = old.server.key != new.server.key
        if not gone and not is_new_server:
            return lines, []
        with self._lock:
            self.generation += is_new_server
            self.revocations += bool(gone)
            return lines, list(self._on_change)

    # All methods below run in the access thread.

    def _run(self, zap: zmq.SyncSocket, wakeup: Wakeup) -> None:
        with ExitStack() as cleanup:
            cleanup.callback(zap.close)
            try:
                self._serve(zap, wakeup, cleanup)
            except Exception:
                self.monitors.unwatch()
                raise

    def _ended(self, failure: SpectrodError | None) -> None:
        self.failure = failure

    def _serve(self, zap: zmq.SyncSocket, wakeup: Wakeup, cleanup: ExitStack) -> None:
        poller = zmq.Poller()
        # First in the poll: the monitors, read after it, then already report the connections that
        # ask here.
        poller.register(zap, zmq.POLLIN)
        poller.register(wakeup.fileno(), zmq.POLLIN)
        while not self._stopping.is_set():
            ready = dict(poller.poll(self._wait_ms()))
            wakeup.clear()
            is_asked = ready.pop(zap, 0)
            monitors = [ready for ready in ready if isinstance(ready, zmq.Socket)]
            monitors += self.monitors.take_new(poller, cleanup)
            are_read = [self.monitors.read(monitor, poller) for monitor in monitors]
            if is_asked and all(are_read):
                self._answer(zap)
            self.connections.regulate()
            self.refusals.report()

    def _wait_ms(self) -> int | None:
        report_s = self.refusals.due_s
        due_s = min(self.connections.due_s, math.inf if report_s is None else report_s)
        return None if due_s == math.inf else max(0, math.ceil((due_s - time.monotonic()) * 1e3))

    def _answer(self, zap: zmq.SyncSocket) -> None:
        """Answer one ZAP request of libzmq (RFC 27): may this key connect, and as which user."""
        parts = zap.recv_multipart()
        _, request, domain, address, _, mechanism, *credentials = parts
        user = self._admitted(domain, mechanism, credentials, address.decode("ascii", "replace"))
        status = b"400" if user is None else b"200"
        user_id = f"{user or ''} {self.connections.admit()}"
        zap.send_multipart([_ZAP_VERSION, request, status, b"", user_id.encode(), b""])

    def _admitted(
        self, domain: bytes, mechanism: bytes, credentials: list[bytes], address: str
    ) -> str | None:
        """Return the user id of an admitted connection; None to refuse it."""
        if (domain, mechanism) == (_PLAIN_DOMAIN, b"NULL"):
            return _PLAIN_USER
        keys = self._keys
        if keys is None or (domain, mechanism) != (_CURVE_DOMAIN, b"CURVE"):
            self.refusals.add("other", address)
            return None
        key = z85.encode(credentials[0])
        if key not in keys.clients:
            kind: Kind = "revoked_key" if key in keys.revoked else "unknown_key"
            self.refusals.add(kind, f"{key.decode()} from {address}")
            return None
        return key.decode()


def _admission(frame: zmq.Frame) -> tuple[str, int]:
    """Return the user id and the moment that ``_answer`` gave to a frame's connection."""
    user, _, admitted = _metadata(frame, "User-Id").rpartition(" ")
    return user, int(admitted or 0)


def _metadata(frame: zmq.Frame, name: str) -> str:
    try:
        return str(frame.get(name))
    except zmq.ZMQError:  # no metadata of that name
        return ""


def _plain_peer(address: str) -> Peer:
    match = _IPC_ADDRESS.fullmatch(address)
    if match:
        return Peer(f"uid {match[1]} pid {match[2]}", "control")
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return Peer(address, None)
    mapped = getattr(ip, "ipv4_mapped", None)
    return Peer(address, "control" if (mapped or ip).is_loopback else "read")


def _read_keys(security: SecurityConfig) -> _Keys | None:
    if not (security.server_key or security.client_keys):
        if security.require == "always":
            raise ConfigError(
                "security.require='always': needs security.server_key and security.client_keys"
            )
        return None
    for name in ("server_key", "client_keys"):
        if not getattr(security, name):
            raise ConfigError(f"security.{name}='': must be given with the other of the two")
    clients = read_folder(Path(security.client_keys))
    return _Keys(
        read_secret(Path(security.server_key)),
        {key.key: key for key in clients},
    )


def _differences(old: _Keys, new: _Keys) -> list[str]:
    lines = []
    if old.server.key != new.server.key:
        lines.append(f"the server's key is now {new.server.key.decode()}")
    for key, client in old.clients.items():
        if key not in new.clients:
            lines.append(f"key {client.name}: revoked")
    for key, client in new.clients.items():
        before = old.clients.get(key)
        if before is None:
            lines.append(f"key {client.name}: new, may {client.right}")
        elif (before.name, before.right) != (client.name, client.right):
            lines.append(f"key {before.name}: now {client.name}, may {client.right}")
    return lines
