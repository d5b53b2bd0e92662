"""``spectrod run --web``: the page of a daemon that starts, and ends with it."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections import deque

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from spectrod.cli import main

TIMEOUT_S = 60.0
SOURCE = ["--source", "signal:pink,-20", "--engine", "numpy", "--show", "none"]
pytestmark = pytest.mark.slow


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextlib.contextmanager
def running(*arguments):
    """Run a daemon; yield its process, the page's line and the port in it."""
    publish = f"tcp://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "spectrod", "run", *SOURCE, "--publish", publish, *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("the page is at http://127.0.0.1:"), line
        yield process, line, int(re.search(r":(\d+)/", line)[1])
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


def wait_for_end(port):
    """Wait until nothing listens: until then connections are accepted, and end in time."""
    deadline_s = time.monotonic() + TIMEOUT_S
    with contextlib.suppress(ConnectionRefusedError):
        while time.monotonic() < deadline_s:
            sock = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
            with sock, contextlib.suppress(ConnectionResetError):
                sock.recv(1)
    assert time.monotonic() < deadline_s


def test_the_page_shows_the_daemon_and_ends_with_it():
    """The address is the first line; the stream has the daemon's source."""
    with running("--web", f"127.0.0.1:{free_port()}") as (process, _, port):
        url, origin = f"ws://127.0.0.1:{port}/api/stream", f"http://127.0.0.1:{port}"
        with connect(url, origin=origin, compression=None) as stream:
            for text in map(json.loads, stream):
                if text["op"] == "topics" and text["topics"]:
                    break
            assert {topic["source"] for topic in text["topics"]} == {"signal"}
            process.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed):
                deque(stream, maxlen=0)
        assert process.wait(TIMEOUT_S) == 0
        wait_for_end(port)


def test_the_page_ends_with_a_daemon_that_is_killed():
    """Nothing is left behind that holds the port."""
    with running("--web", f"127.0.0.1:{free_port()}") as (process, _, port):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        with contextlib.closing(client):
            client.request("GET", "/api/hello")
            assert client.getresponse().status == 200
        process.kill()
        wait_for_end(port)


def test_a_default_port_in_use_is_replaced_and_told():
    """Two daemons of one machine both have a page."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # in use already: all the better
            stack.enter_context(socket.create_server(("127.0.0.1", 8765)))
        _, line, port = stack.enter_context(running("--web"))
        assert line == f"the page is at http://127.0.0.1:{port}/ (127.0.0.1:8765 is in use)\n"
        assert port != 8765


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--web", "0.0.0.0:8765"], 2, "web='0.0.0.0:8765': must be of this machine, such as"),
        (["--web", "8765"], 2, "listen='8765': must be HOST:PORT"),
        (["--publish", "tcp://127.0.0.1:*", "--web"], 2, "web: all endpoints of [publish] ask for"),
    ],
)
def test_a_page_that_cannot_be_is_one_line(arguments, code, message, capsys):
    """Before the daemon starts."""
    assert main(["run", *SOURCE, *arguments]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_address_that_was_given_is_not_replaced(capsys):
    """Whoever names a port wants that one."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert main(["run", *SOURCE, "--web", address]) == 75
    assert f"listen='{address}': another program has this port" in capsys.readouterr().err
