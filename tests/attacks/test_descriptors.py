"""Endless connections neither end the daemon nor exhaust its descriptors."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from spectrod.client import Control, subscribe
from spectrod.lib.errors import UnavailableError
from spectrod.wire.endpoint import parse_endpoint
from spectrod.wire.endpoint_discovery import check_answers
from spectrod.wire.keys import make_keys

TIMEOUT_S = 30.0
DESCRIPTORS = 256
_LIMITED = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh"]
PEERS = 600  # more than the daemon could have open

pytestmark = pytest.mark.slow


class Daemon:
    """``spectrod run`` with few descriptors, publishing over TCP, with requests over IPC."""

    def __init__(self, folder, *, with_keys):
        self.folder, self.clients = folder, folder / "clients"
        self.clients.mkdir()
        self.client = {}
        config = folder / "spectrod.toml"
        config.write_text(
            f"""
            source = {{ uri = "signal:sine,1000,-20", name = "tone" }}
            analysis = {{ win_length = 512, hop = 480 }}
            engine = {{ engine = "numpy" }}
            publish = {{ endpoints = ["tcp://127.0.0.1:*"] }}
            control = {{ endpoints = ["ipc://{folder}/c.ipc"], state_folder = "{folder}" }}
            recordings.r = {{ fsync_s = 0.1 }}
            """
            + (self._make_keys() if with_keys else "")
        )
        self.process = subprocess.Popen(
            [*_LIMITED, sys.executable, "-m", "spectrod", "run", "--config", config],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self._lines, self._changed = [], threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.endpoint = self.wait_for("publishing at ")
        self.control = self.wait_for("control at ")

    def _make_keys(self):
        for name in ("server", "alice", "bob"):
            public, _ = make_keys(self.folder / name, name, "read")
            if name != "server":
                (self.clients / public.name).write_text(public.read_text())
        self.client = {
            "server_key": self.folder / "server" / "server.pub",
            "key_file": self.folder / "alice" / "alice.key",
        }
        return f"""
            [security]
            server_key = "{self.folder}/server/server.key"
            client_keys = "{self.clients}"
            require = "always"
            """

    def _read(self):
        for line in self.process.stderr:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()

    def wait_for(self, text):
        """Wait until the log has a text; return the text after it."""
        with self._changed:
            found = self._changed.wait_for(lambda: [x for x in self._lines if text in x], TIMEOUT_S)
            assert found, "".join(self._lines)
            return found[0].partition(text)[2].strip()

    def call(self, method):
        """Send a request over IPC on a new connection."""
        with Control(self.control) as control:
            return control.call(method)

    def descriptors(self):
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)
        self.process.stderr.close()
        assert code == 0, "".join(self._lines)


class Listener:
    """A subscriber that records the messages it gets."""

    def __init__(self, daemon):
        self.headers = []
        self._is_over, self._changed = threading.Event(), threading.Condition()
        self._stream = subscribe(
            daemon.endpoint, "spec/tone/", timeout_s=TIMEOUT_S, **daemon.client
        )
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        self.wait(1)

    def _read(self):
        for frame in self._stream:
            with self._changed:
                self.headers.append(frame.header)
                self._changed.notify_all()
            if self._is_over.is_set():
                return

    def wait(self, n_more):
        """Wait for more frames."""
        with self._changed:
            expected = len(self.headers) + n_more
            assert self._changed.wait_for(lambda: len(self.headers) >= expected, TIMEOUT_S)

    def close(self):
        self._is_over.set()
        self._thread.join(TIMEOUT_S)
        self._stream.close()

    @property
    def missed(self):
        return self._stream.missed


@pytest.fixture
def start(tmp_path):
    with contextlib.ExitStack() as cleanup:

        def start_daemon(*, with_keys):
            daemon = Daemon(tmp_path, with_keys=with_keys)
            cleanup.callback(daemon.close)
            return daemon

        yield start_daemon


@contextlib.contextmanager
def silent_peers(endpoint, count=PEERS):
    """Hold silent connections from a process with descriptors of its own."""
    script = Path(__file__).with_name("silent_peers.py")
    peers = subprocess.Popen([sys.executable, script, endpoint, str(count)])
    try:
        yield
    finally:
        peers.kill()
        peers.wait()


def lost(headers):
    """Count the rows missing between the first and the last."""
    return headers[-1].seq - headers[0].seq + 1 - len(headers)


@pytest.mark.usefixtures("_socket_filters")
@pytest.mark.parametrize("with_keys", [False, True], ids=["without keys", "with keys"])
def test_silent_connections_end_nothing(start, with_keys):
    """Requests, rows, recordings and reloads continue, and new clients can connect afterwards."""
    daemon = start(with_keys=with_keys)
    listener = Listener(daemon)
    with silent_peers(daemon.endpoint):
        daemon.wait_for("tcp: closed to new connections")
        before = daemon.call("status")
        assert before["daemon"]["connections"]["tcp"]["closings"] >= 1
        listener.wait(300)
        assert lost(listener.headers) == 0
        for _ in range(20):
            assert daemon.descriptors() < DESCRIPTORS
            after = daemon.call("status")
        assert after["recorders"][0]["state"] == "recording"
        assert after["recorders"][0]["rows"] > before["recorders"][0]["rows"]
        (daemon.clients / "bob.pub").unlink(missing_ok=True)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("key bob: revoked" if with_keys else "reload: nothing has changed")
    listener.wait(10)
    client = Listener(daemon)
    client.wait(10)
    for one in (listener, client):
        one.close()
    # A revocation cuts the connections of the key alone.
    assert lost(listener.headers) == listener.missed == 0
    kinds = [event["kind"] for event in daemon.call("events")]
    assert "listen.closed" in kinds
    assert "listen.failed" not in kinds


def test_silent_connections_over_ipc_end_nothing(start):
    """Silent IPC connections take at most an eighth of the descriptors; ``ctl`` reports it."""
    daemon = start(with_keys=False)
    listener = Listener(daemon)
    path = Path(daemon.control.removeprefix("ipc://"))
    with silent_peers(daemon.control):
        daemon.wait_for("ipc: closed to new connections")
        listener.wait(300)
        assert lost(listener.headers) == 0
        assert daemon.descriptors() < DESCRIPTORS
        with pytest.raises(UnavailableError, match="too many connections over IPC; try again"):
            check_until_refused(daemon)
    assert wait_until_open(daemon)["daemon"]["connections"]["ipc"]["closings"] >= 1
    assert path.stat().st_mode & 0o777 == 0o660
    assert not path.with_name("c.ipc.closed").exists()
    listener.wait(10)
    listener.close()
    assert lost(listener.headers) == listener.missed == 0


def check_until_refused(daemon):
    """Connect until that fails, as the socket may stay open for a moment."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s:
        check_answers(parse_endpoint(daemon.control))


def wait_until_open(daemon):
    """Send requests until one is answered, at less than the rate that keeps the socket closed."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(UnavailableError):
            check_answers(parse_endpoint(daemon.control))
            return daemon.call("status")
        time.sleep(0.05)
    raise AssertionError("stays closed")
