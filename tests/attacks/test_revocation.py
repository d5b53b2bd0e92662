"""A revocation does not end the daemon if subscribers do not read their messages."""

import subprocess
import sys

import pytest

PROGRAM = """
import fcntl
import socket
import struct
import termios
import time

import zmq

from spectrod.daemon.access.access import Access
from spectrod.wire.endpoint import parse_endpoint
from spectrod.daemon.access.tcp_links import Links
from spectrod.daemon.access.listeners import Listeners
from spectrod.daemon.publisher.xpub import open_xpub

GREETING = b"\\xff\\0\\0\\0\\0\\0\\0\\0\\x01\\x7f\\x03\\x01NULL" + bytes(48)
READY = b"\\x04\\x19\\x05READY\\x0bSocket-Type\\0\\0\\0\\x03SUB"
ALL = b"\\x00\\x01\\x01"
RESET = struct.pack("ii", 1, 0)  # of SO_LINGER
N_PEERS = 40


def waiting(peers):
    sizes = []
    for peer in peers:
        size = bytearray(4)
        fcntl.ioctl(peer, termios.FIONREAD, size)
        sizes.append(int.from_bytes(size, "little"))
    return sizes


access = Access()
access.start()
sock = open_xpub(access.context, 256)
listeners = Listeners(sock, access, lambda: None)
text = listeners.bind(parse_endpoint("tcp://127.0.0.1:*"), access.at_end)
port = int(text.rpartition(":")[2])
access.is_curve = lambda _: True  # as an endpoint with keys, without their handshakes

peers = []
for k in range(N_PEERS):
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096 + 512 * k)
    peer.settimeout(20)
    peer.connect(("127.0.0.1", port))
    peer.sendall(GREETING)
    heard = b""
    while b"READY" not in heard:
        heard += (some := peer.recv(4096))
        assert some
    peer.sendall(READY + ALL)
    peers.append(peer)
for _ in peers:
    assert sock.poll(20_000)
    sock.recv()
for _ in range(2000):
    sock.send_multipart([b"spec/tone/", b"h" * 3000, b"v" * 9000])

# Each connection is stuck in the middle of a message once nothing more arrives.
deadline_s = time.monotonic() + 20.0
arrived, before = waiting(peers), None
while min(arrived) < 2048 or arrived != before:
    assert time.monotonic() < deadline_s
    sock.poll(50)  # nothing comes: this is how long nothing arrives
    arrived, before = waiting(peers), arrived

accept_again, listeners._accept_again = listeners._accept_again, lambda: None
access.generation += 1
assert listeners.refresh()
for peer in peers:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    peer.close()
# The socket's thread is held up meanwhile.
deadline_s = time.monotonic() + 20.0
while Links((text,)).find():
    assert time.monotonic() < deadline_s
accept_again()

# It continues to accept new connections.
with zmq.Context() as context, context.socket(zmq.SUB) as late:
    late.subscribe(b"late/")
    late.connect(text)
    while sock.poll(20_000) and sock.recv() != b"\\x01late/":
        pass
    sock.send_multipart([b"late/", b"h", b"v"])
    assert late.recv_multipart() == [b"late/", b"h", b"v"]
sock.close()
access.close()
print("went on")
"""


@pytest.mark.slow
def test_subscribers_that_do_not_read_cannot_end_the_daemon_at_a_revocation():
    """Subscribers that do not read are cut before the endpoint unbinds; ZeroMQ would abort."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
