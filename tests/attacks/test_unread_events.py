"""A flood of connections stops no thread if nobody reads libzmq's monitor events."""

import subprocess
import sys

PROGRAM = """
import socket

import zmq

from spectrod.daemon.access.connections import Connections
from spectrod.daemon.access.monitors import Monitors

N_CONNECTIONS = 1000  # of two events or more; a queue of libzmq holds 2000 of them

with zmq.Context() as context, context.socket(zmq.XPUB) as sock:
    monitors = Monitors(None, Connections(4096, 20_000))
    monitors.watch(sock)
    port = sock.bind_to_random_port("tcp://127.0.0.1")
    for _ in range(N_CONNECTIONS):
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.settimeout(20)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(1000):  # until libzmq has hung up
                pass
    # pyzmq binds without releasing Python's lock.
    sock.bind("tcp://127.0.0.1:*")
    monitors.unwatch()
    print("bound")
"""


def test_unread_events_of_connections_stop_nobody():
    """Two thousand unread monitor events, which once stopped libzmq and Python, block neither."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("bound\n", "", 0)
