"""Pages keep their rows while others flood the page's server with pings."""

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import zmq
from websockets.sync.client import connect

from spectrod.wire.schema import Meta, MetaHeader, encode

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
from web_pages import decode
from web_rows import COMMON, TOPIC, frame

N_FLOODS = 25
ROWS_S = 20.0
FLOOD_S = 8.0
SOON_S = 60.0
FLOODER = """
import contextlib, socket, sys, threading, time
port, n, end_s = int(sys.argv[1]), int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
OPEN = (
    b"GET /api/stream HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nOrigin: http://127.0.0.1\\r\\n"
    b"Upgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n"
)
def flood():
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as sock:
            sock.settimeout(1.0)
            sock.sendall(OPEN)
            sock.recv(65536)
            while time.monotonic() < end_s:
                sock.sendall(b"\\x89\\x80\\0\\0\\0\\0" * 40_000)
threads = [threading.Thread(target=flood) for _ in range(n)]
for one in threads:
    one.start()
for one in threads:
    one.join()
"""


class Rows:
    """A publisher of rows of one topic, with its descriptions."""

    def __init__(self, context):
        self._socket = context.socket(zmq.PUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self.endpoint, self._stopped = f"tcp://127.0.0.1:{port}", threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
        self._socket.close()

    def _run(self):
        lengths = {"win_length": 64, "nfft": 64, "hop": 960, "shape": (33,)}
        fields = {name: COMMON[name] for name in MetaHeader.__struct_fields__ if name in COMMON}
        seq = 0
        while not self._stopped.wait(1.0 / ROWS_S):
            now_ns = time.time_ns()
            if seq % ROWS_S == 0:
                times = {"seq": seq, "t_utc_ns": now_ns, "device": "", "channels": 1}
                header = MetaHeader(**(fields | lengths | times))
                topic = f"meta/{TOPIC.topic.removeprefix('spec/')}"
                self._socket.send_multipart(encode(Meta(topic, header, np.linspace(0, 24e3, 33))))
            self._socket.send_multipart(encode(frame(np.zeros(33), seq, t_utc_ns=now_ns)))
            seq += 1


@contextlib.contextmanager
def web(endpoint):
    """Run ``spectrod web``; yield its port."""
    command = [sys.executable, "-m", "spectrod", "web", endpoint, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(re.search(r":(\d+)/", process.stdout.readline())[1])
        finally:
            process.terminate()


def topic_number(page):
    """Read texts until one lists the topic."""
    while True:
        text = page.recv(SOON_S)
        for one in json.loads(text).get("topics", []) if isinstance(text, str) else []:
            if one["topic"] == TOPIC.topic:
                return one["id"]


def times_of_rows(page, until_s):
    """Acknowledge what comes; return when rows came [s]."""
    times_s = []
    while time.monotonic() < until_s:
        message = page.recv(SOON_S)
        if isinstance(message, bytes):
            number, rows = decode(message)
            times_s += [time.monotonic()] * bool(rows)
            page.send(json.dumps({"op": "ack", "message": number}))
    return times_s


@pytest.mark.alone
def test_a_page_gets_rows_every_second_beside_floods_of_pings():
    """25 connections send as many pings as they can, and connect again as soon as they are cut."""
    with (
        zmq.Context() as context,
        Rows(context) as rows,
        web(rows.endpoint) as port,
        connect(
            f"ws://127.0.0.1:{port}/api/stream",
            origin=f"http://127.0.0.1:{port}",
            compression=None,
            open_timeout=SOON_S,
        ) as page,
    ):
        wish = {"id": 1, "topic_id": topic_number(page), "f0": 0.0, "f1": 24e3, "px": 33}
        page.send(json.dumps({"op": "view", "generation": 1, "visible": True, "streams": [wish]}))
        times_of_rows(page, time.monotonic() + 1.0)
        flooder = [sys.executable, "-c", FLOODER, str(port), str(N_FLOODS), str(FLOOD_S)]
        with subprocess.Popen(flooder) as flood:
            start_s = time.monotonic()
            times_s = times_of_rows(page, start_s + FLOOD_S)
            assert flood.wait(SOON_S) == 0
    assert np.diff([start_s, *times_s, start_s + FLOOD_S]).max() < 1.0
