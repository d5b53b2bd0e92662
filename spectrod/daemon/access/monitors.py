"""Monitor events of libzmq: connections made, ended and refused, endpoints closed."""

import logging
import struct
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack

import zmq

from spectrod.daemon.access.connections import Connections
from spectrod.daemon.access.refusals import Kind, Refusals

_log = logging.getLogger("spectrod")

_CLOSE_LIMIT_S = 1.0
_EVENTS_A_TURN = 256  # then endpoints can be closed in a flood of connections
_EVENTS = (
    zmq.Event.ACCEPTED
    | zmq.Event.DISCONNECTED
    | zmq.Event.CLOSED
    | zmq.Event.HANDSHAKE_FAILED_NO_DETAIL
    | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
    | zmq.Event.MONITOR_STOPPED
)
_EVENT = struct.Struct("=HI")  # event and value; zmq_socket_monitor(3)
# Codes of zmq.h that pyzmq has no names for: ..._CRYPTOGRAPHIC and ..._MECHANISM_MISMATCH.
_FAULTS: Mapping[int, Kind] = {0x11000001: "wrong_server_key", 0x11000002: "no_key"}


class Monitors:
    """Reads socket monitors; any thread may call ``watch`` and the waits, one thread the rest.

    Events wait in an unbounded queue. A full bounded queue would block libzmq's threads, and with
    them every thread that binds or unbinds: pyzmq does both without releasing the GIL, which the
    reader of the events needs.

    Parameters
    ----------
    refusals : Refusals or None
        Counts failed handshakes over TCP; over IPC they come from spectrod's own probes. None if no
        connection is ever refused.
    connections : Connections
        Counts connections.
    """

    def __init__(self, refusals: Refusals | None, connections: Connections) -> None:
        self._refusals, self._connections = refusals, connections
        self._watched: list[zmq.SyncSocket] = []
        self._unread: list[zmq.SyncSocket] = []
        self._closed: Counter[str] = Counter()
        self._lock = threading.Condition()

    def watch(self, sock: zmq.SyncSocket) -> None:
        """Monitor a socket; call before it binds, as its owner."""
        address = f"inproc://monitor-{sock.fileno()}"
        sock.monitor(address, _EVENTS)
        monitor = sock.context.socket(zmq.PAIR)
        monitor.setsockopt(zmq.RCVHWM, 0)
        monitor.connect(address)
        with self._lock:
            self._watched.append(sock)
            self._unread.append(monitor)

    def unwatch(self) -> None:
        """Disable all monitors: their reader has ended."""
        with self._lock:
            watched, self._watched = self._watched, []
        for sock in watched:
            if not sock.closed:
                sock.disable_monitor()

    def times_closed(self, endpoint: str) -> int:
        """Return how often an endpoint of a watched socket, as bound, was closed."""
        with self._lock:
            return self._closed[endpoint]

    def wait_closed(self, endpoint: str, times: int) -> None:
        """Wait until an endpoint was closed a number of times, which libzmq does asynchronously.

        After a second it logs a warning and returns.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: self._closed[endpoint] >= times, _CLOSE_LIMIT_S):
                _log.warning("%s: not closed within %g s", endpoint, _CLOSE_LIMIT_S)

    def wait_ended(self, endpoint: str) -> None:
        """Wait until an endpoint has no connections, at most for a second."""
        with self._lock:
            self._lock.wait_for(lambda: not self._connections.count_of(endpoint), _CLOSE_LIMIT_S)

    def take_new(self, poller: zmq.Poller, cleanup: ExitStack) -> list[zmq.SyncSocket]:
        """Start to poll the monitors that ``watch`` has added, and return them."""
        with self._lock:
            monitors, self._unread = self._unread, []
        for monitor in monitors:
            cleanup.callback(monitor.close)
            poller.register(monitor, zmq.POLLIN)
        return monitors

    def read(self, monitor: zmq.SyncSocket, poller: zmq.Poller) -> bool:
        """Read a monitor's events up to a bound; return whether all were read."""
        for _ in range(_EVENTS_A_TURN):
            try:
                message, address = monitor.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return True
            event, value = _EVENT.unpack(message)
            if event == zmq.Event.MONITOR_STOPPED:
                poller.unregister(monitor)
                return True
            self._take(monitor, event, value, address.decode("utf-8", "surrogateescape"))
        return False

    def _take(self, monitor: zmq.SyncSocket, event: int, value: int, endpoint: str) -> None:
        if event == zmq.Event.ACCEPTED:
            self._connections.accepted(monitor, endpoint, value)
        elif event == zmq.Event.DISCONNECTED:
            with self._lock:
                self._connections.ended(monitor, value)
                self._lock.notify_all()
        elif event == zmq.Event.CLOSED:
            self._connections.unbound(monitor, endpoint)
            with self._lock:
                self._closed[endpoint] += 1
                self._lock.notify_all()
        elif self._refusals is not None and not endpoint.startswith("ipc:"):
            is_known = event == zmq.Event.HANDSHAKE_FAILED_PROTOCOL
            self._refusals.add(_FAULTS.get(value, "other") if is_known else "other")
