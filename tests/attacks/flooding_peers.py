"""Flood a socket with messages of an improper peer over many connections, until killed.

python flooding_peers.py ENDPOINT WHAT CONNECTIONS

A WHAT that starts with "requests" is for a socket that takes requests, any other for a publisher.

Connections that are cut are opened again.
"""

import errno
import itertools
import select
import socket
import sys

GREETING = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL" + bytes(48)
DEALER = b"\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06DEALER"
READY = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB"
_TURN_S = 0.05
_BLOCK_BYTES = 64 * 1024


def _subscriptions(number, length):
    """Generate distinct subscriptions of one length across all connections."""
    for k in itertools.count():
        prefix = b"%d:%d/" % (number, k)
        yield frame(b"\x01" + prefix + b"z" * (length - len(prefix)))


def frame(part):
    """Encode a part as a ZMTP frame."""
    if len(part) < 256:
        return b"\x00" + bytes([len(part)]) + part
    return b"\x02" + len(part).to_bytes(8, "big") + part


WHAT = {
    "1-byte messages": lambda _: itertools.repeat(b"\x00\x01x" * 1000),
    "64-kB messages": lambda _: itertools.repeat(frame(b"y" * 64_000)),
    "parts of a message without end": lambda _: itertools.repeat(b"\x01\x01x" * 1000),
    "subscriptions of 12 bytes": lambda number: _subscriptions(number, 12),
    "subscriptions of 200 bytes": lambda number: _subscriptions(number, 200),
    "subscriptions of 65 kB": lambda number: _subscriptions(number, 65_000),
    "one subscription again and again": lambda _: itertools.repeat(frame(b"\x01nobody/1") * 100),
}
REQUESTS = {
    "requests of empty parts": lambda _: itertools.repeat(b"\x01\0" * 1000),
    "requests of 1-byte parts": lambda _: itertools.repeat(b"\x01\x01x" * 1000),
    "requests of 60-kB parts": lambda _: itertools.repeat(
        b"\x03" + (60_000).to_bytes(8, "big") + b"y" * 60_000
    ),
}


class _Peer:
    """One connection: a handshake, then the flood."""

    def __init__(self, address, frames, ready):
        self.socket = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        self.socket.setblocking(False)  # noqa: FBT003
        code = self.socket.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            self.socket.close()
            raise ConnectionError(code)
        self._frames, self._left, self._received, self._is_ready = frames, GREETING, b"", False
        self._ready = ready

    @property
    def events(self):
        return select.EPOLLIN | (select.EPOLLOUT if self._left or self._is_ready else 0)

    def resume(self, events):
        if events & (select.EPOLLIN | select.EPOLLERR | select.EPOLLHUP):
            some = self.socket.recv(1 << 16)
            if not some:
                raise ConnectionError
            self._received = (
                (self._received + some)[-100:] if self._is_ready else self._received + some
            )
            if not self._is_ready and b"READY" in self._received:
                self._left, self._is_ready = self._ready, True
        if events & select.EPOLLOUT:
            while self._is_ready and len(self._left) < _BLOCK_BYTES:
                self._left += next(self._frames)
            self._left = self._left[self.socket.send(self._left) :]


def _flood(address, what, count):
    poll, peers = select.epoll(), {}
    numbers, ready = itertools.count(), DEALER if what in REQUESTS else READY
    frames = (WHAT | REQUESTS)[what]
    while True:
        while len(peers) < count:
            try:
                peer = _Peer(address, frames(next(numbers)), ready)
            except ConnectionError:
                break
            peers[peer.socket.fileno()] = peer
            poll.register(peer.socket.fileno(), peer.events)
        for fd, events in poll.poll(_TURN_S):
            peer = peers[fd]
            try:
                peer.resume(events)
                poll.modify(fd, peer.events)
            except BlockingIOError:
                pass
            except OSError:
                poll.unregister(fd)
                peers.pop(fd).socket.close()


if __name__ == "__main__":
    where = sys.argv[1].removeprefix("ipc://")
    if where.startswith("tcp://"):
        host, _, port = where.removeprefix("tcp://").rpartition(":")
        where = (host, int(port))
    _flood(where, sys.argv[2], int(sys.argv[3]))
