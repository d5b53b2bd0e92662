"""Hold silent connections to an endpoint, and renew those that are cut, until killed.

python silent_peers.py ENDPOINT COUNT
"""

import errno
import select
import socket
import sys

_A_TURN = 100


def _connect(address, poll):
    peer = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    peer.setblocking(False)  # noqa: FBT003
    if peer.connect_ex(address) not in (0, errno.EINPROGRESS):
        peer.close()
        return None
    poll.register(peer.fileno(), select.EPOLLRDHUP)
    return peer


def _hold(address, count):
    poll, peers = select.epoll(), {}
    while True:
        for _ in range(min(_A_TURN, count - len(peers))):
            peer = _connect(address, poll)
            if peer is None:
                break
            peers[peer.fileno()] = peer
        for fd, _ in poll.poll(0.01):
            poll.unregister(fd)
            peers.pop(fd).close()


if __name__ == "__main__":
    where = sys.argv[1].removeprefix("ipc://")
    if where.startswith("tcp://"):
        host, _, port = where.removeprefix("tcp://").rpartition(":")
        where = (host, int(port))
    _hold(where, int(sys.argv[2]))
