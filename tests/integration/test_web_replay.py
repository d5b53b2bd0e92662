"""The past of a page whose server is younger than the daemon, from live rows to the pyramid."""

import contextlib
import http.client
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest
from websockets.sync.client import connect

from spectrod.apps.web.history.answer import answer
from spectrod.apps.web.history.budget import Budget
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.request import HistoryRequest
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.client.control import Control
from spectrod.lib.errors import UnavailableError

TIMEOUT_S = 60.0
NAME = "spec/mic/0/dbfs/"
CONFIG = """
[sources.mic]
uri = "signal:pink,-20"
[analysis]
win_length = 1000
nfft = 1000
hop = 2400
[publish]
endpoints = ["{endpoint}"]
[engine]
engine = "numpy"
[recordings.all]
product = "dbfs"
pyramid = true
"""
pytestmark = [pytest.mark.extended, pytest.mark.timeout(180)]


def started(*arguments, **settings):
    return subprocess.Popen([sys.executable, "-m", "spectrod", *arguments], **settings)


@pytest.fixture
def daemon(tmp_path):
    """Run a daemon that records; yield where it publishes, once it has recorded some seconds."""
    endpoint = f"ipc://{tmp_path}/{secrets.token_hex(6)}.ipc"
    (tmp_path / "c.toml").write_text(CONFIG.format(endpoint=endpoint))
    environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path), "STATE_DIRECTORY": str(tmp_path)}
    run = ("run", "--config", tmp_path / "c.toml", "--show", "none", "--log-level", "error")
    process = started(*run, env=environment)
    try:
        wait_for(lambda: recorded_rows(endpoint) >= 80)
        yield endpoint
    finally:
        process.kill()
        process.communicate()


def wait_for(is_true):
    """Wait until a condition holds; the daemon tells no client when it has recorded."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not is_true():
        assert time.monotonic() < deadline_s, is_true
        time.sleep(0.1)


def recorded_rows(endpoint):
    try:
        with Control(endpoint, timeout_s=1.0) as control:
            (recorder,) = control.call("status")["recorders"]
    except UnavailableError:
        return 0
    return recorder.get("rows", 0)


def live_rows(socket, count):
    """Return the topic's number, and levels of live rows by their middles [ms]: whole bins."""
    message = json.loads(socket.recv(TIMEOUT_S))
    while message["op"] != "topics" or not message["topics"]:
        message = json.loads(socket.recv(TIMEOUT_S))
    (number,) = (one["id"] for one in message["topics"] if one["topic"] == NAME)
    wish = {"id": 0, "topic_id": number, "f0": 0, "f1": 24000, "px": 4096, "axis": "linear"}
    view = {"op": "view", "generation": 1, "visible": True, "streams": [wish | {"bits": 16}]}
    socket.send(json.dumps(view))
    rows = {}
    while len(rows) < count:
        message = socket.recv(TIMEOUT_S)
        if isinstance(message, bytes):
            (acknowledged,) = np.frombuffer(message, "<u4", 1, 4)
            socket.send(json.dumps({"op": "ack", "message": int(acknowledged)}))
            rows |= rows_of(message)
    return number, rows


def rows_of(message):
    """Decode the one block of a binary message, see docs/web-protocol.md."""
    n_rows, bits = np.frombuffer(message, "<u2", 2, 12)
    (n_values,) = np.frombuffer(message, "<u4", 1, 16)
    assert (bits, n_values) == (16, 501)
    times = [np.frombuffer(message, "<f8", 1, 24 + 32 * n + 16)[0] for n in range(n_rows)]
    values = np.frombuffer(message, "<u2", n_rows * n_values, 24 + 32 * n_rows)
    return dict(zip(times, values.reshape(n_rows, n_values), strict=True))


def asked_of(link, number, t0_ms, t1_ms, width):
    """Ask the server for a piece of the past: its header and its codes."""
    span = {"t0": t0_ms, "t1": t1_ms, "f0": 0, "f1": 24000, "w": width, "h": 2048}
    client = http.client.HTTPConnection(urlsplit(link).netloc, timeout=TIMEOUT_S)
    with contextlib.closing(client):
        client.request("GET", f"/api/history?{urlencode({'topic': number} | span)}")
        body = client.getresponse().read()
    (length,) = np.frombuffer(body, "<u4", 1)
    header = json.loads(body[4 : 4 + length])
    begin = (4 + length + 3) // 4 * 4 + 4 * header["w"]
    return header, np.frombuffer(body, "<u2", -1, begin).reshape(header["w"], header["h"])


def read_from(folder, t0_ms, t1_ms, width):
    """Return the same of recordings alone."""
    topic = TopicInfo(7, NAME, "spec", "ipc://x", "mic", "0", "dbfs", "dBFS", 48000.0)
    request = HistoryRequest(7, t0_ms, t1_ms, 0.0, 24000.0, width, 2048, ("max",), "")
    index = RecordingIndex([folder])
    found = answer(request, {7: topic}, index, Ring(), Budget(), now_ns=time.time_ns())
    return found.header, found.layers[0]


def test_the_value_at_a_time_is_the_same_live_replayed_recorded_and_in_a_pyramid(daemon, tmp_path):
    """A server that starts later has the rows before it; each source has the same levels."""
    began_ms = 1e3 * time.time()
    web = ("web", daemon, "--listen", "127.0.0.1:0", "--recordings", tmp_path / "none")
    server = started(*web, stdout=subprocess.PIPE, text=True)
    try:
        link = server.stdout.readline().split()[-1]
        with connect(link.replace("http", "ws") + "api/stream", origin=link[:-1]) as socket:
            number, live = live_rows(socket, 60)
        first_ms, last_ms = min(live), max(live)
        spans = [
            (began_ms - 2000, began_ms - 1000, 100),
            (first_ms + 500, last_ms - 500, 200),
            (first_ms // 1e3 * 1e3 - 1000, first_ms // 1e3 * 1e3 + 1000, 2),
        ]
        answers = [asked_of(link, number, *span) for span in spans]
    finally:
        server.kill()
        server.communicate()
    sources = [header["sources"] for header, _ in answers]
    assert sources == [["replay"], ["ring"], ["replay", "ring"]]
    header, codes = answers[1]
    middles = header["t0"] + header["cell_ms"] * (0.5 + np.arange(header["w"]))
    for t_ms, row in live.items():
        (near,) = np.nonzero(np.abs(middles - t_ms) < header["cell_ms"] / 2)
        assert not near.size or np.array_equal(codes[near[0]], row), "live and the ring"

    recorded = tmp_path / "recordings"
    cells = tmp_path / "cells"
    wait_for(lambda: recorded_rows(daemon) > 200)
    shutil.copytree(recorded, cells, ignore=shutil.ignore_patterns("*.spd", "*.part"))
    rows = tmp_path / "rows"
    shutil.copytree(recorded, rows, ignore=shutil.ignore_patterns("pyramid"))
    for span, (_, codes) in zip(spans, answers, strict=True):
        for folder, source in ((rows, "segment"), (cells, "pyramid")):
            if source == "pyramid" and span is not spans[2]:
                continue  # its cells are of a second
            other, found = read_from(folder, *span)
            assert other["sources"] == [source]
            assert found.shape == codes.shape
            assert np.abs(found.astype(int) - codes).max() <= 1, source
