"""Sound servers for machines without a sound card, publishers, subscribers and daemons."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import pytest
import zmq

from spectrod.daemon.publisher.publisher import Publisher
from spectrod.lib.wakeup import Wakeup
from spectrod.source.store import stores
from spectrod.wire import endpoint_discovery

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))
sys.path.insert(0, str(Path(__file__).parents[1] / "audio"))
sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))
from audio_servers import JackServer, SoundServer
from publishing import ANY_PORT, TIMEOUT_S, make_stats


@pytest.fixture
def silent_server(tmp_path_factory, monkeypatch):
    """Prepare a private PulseAudio that is not started; this process has its environment."""
    server = SoundServer(tmp_path_factory.mktemp("pulse"))
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()


@pytest.fixture
def sound_server(silent_server):
    """Run a private PulseAudio with a null sink."""
    silent_server.start()
    return silent_server


@pytest.fixture
def jack_server(tmp_path_factory, monkeypatch):
    """Prepare a private JACK with a dummy driver; this process has its environment."""
    server = JackServer(tmp_path_factory.mktemp("jack"))
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()


@pytest.fixture
def progress():
    wakeup = Wakeup()
    yield wakeup
    wakeup.close()


@pytest.fixture
def publish(progress):
    """Start publishers of one source, or of the named ones, and stop them after the test."""
    started = []

    def start(*endpoints, names=("mic",), stats=make_stats, feed=None, **options):
        publisher = Publisher(endpoints or [ANY_PORT], **options)
        for name in names:
            publisher.add_source(name, stats, **(feed or {}))
        publisher.start()
        started.append(publisher)
        return publisher

    yield start
    for publisher in started:
        publisher.stop()
        assert publisher.failure is None


@pytest.fixture
def raw_subscriber():
    """Connect plain SUB sockets, and close them after the test."""
    with zmq.Context() as context:
        sockets = []

        def connect(endpoint, *prefixes, high_water_mark=1000):
            sub = context.socket(zmq.SUB)
            sockets.append(sub)
            sub.setsockopt(zmq.LINGER, 0)
            sub.setsockopt(zmq.IPV6, "[" in endpoint)
            sub.setsockopt(zmq.RCVHWM, high_water_mark)
            sub.setsockopt(zmq.RCVTIMEO, int(TIMEOUT_S * 1e3))
            for prefix in prefixes:
                sub.subscribe(prefix)
            sub.connect(endpoint)
            return sub

        yield connect
        for sub in sockets:
            sub.close()


@pytest.fixture
def wait_for_subscribers():
    """Wait for a number of subscribers."""

    def wait(publisher, count=1):
        deadline_s = time.monotonic() + TIMEOUT_S
        while publisher.subscribers < count:
            assert time.monotonic() < deadline_s, f"{publisher.subscribers} of {count} subscribers"
            time.sleep(0.002)

    return wait


@pytest.fixture
def wait_for_refusals():
    """Wait until a refusal of one of the kinds is counted: the peer is cut off before that."""

    def wait(access, *kinds):
        deadline_s = time.monotonic() + TIMEOUT_S
        while not any(access.refusals.counts[kind] for kind in kinds):
            assert time.monotonic() < deadline_s, access.refusals.counts
            time.sleep(0.002)

    return wait


@pytest.fixture
def ipc_path():
    """Make a path for a socket; pytest's own folders may be too deep for its 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="spectrod-"))
    yield folder / "s.ipc"
    shutil.rmtree(folder)


class DaemonProcess:
    """``spectrod run`` in a separate process, once it has logged its endpoint."""

    def __init__(self, config):
        command = [sys.executable, "-m", "spectrod", "run", "--config", str(config)]
        self.process = subprocess.Popen(
            [*command, "--show", "none"], stderr=subprocess.PIPE, text=True
        )
        self.log = []
        self.endpoint = self.wait_for("publishing at ")
        self.control = self.wait_for("control at ")

    def wait_for(self, text):
        """Read the log until a line has a text; return the text after it."""
        for line in self.process.stderr:
            self.log.append(line)
            if text in line:
                return line.partition(text)[2].strip()
        raise AssertionError("".join(self.log))

    def kill(self):
        """Kill the daemon with SIGKILL, as a power failure would."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """Stop the daemon if it is still running."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


@pytest.fixture
def run_daemon():
    """Run daemons, each with a configuration file, and stop them after the test."""
    started = []

    def run(config):
        started.append(DaemonProcess(config))
        return started[-1]

    yield run
    for daemon in started:
        daemon.close()


@pytest.fixture
def fds():
    """Count this process's open descriptors."""
    return lambda: len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def resident_bytes():
    """Return the resident memory of this process."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return lambda: int(Path("/proc/self/statm").read_text().split()[1]) * page_bytes


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Simulate a machine without a running daemon; its folder is the current one."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")
    monkeypatch.setenv("STATE_DIRECTORY", "state")
    monkeypatch.setattr(endpoint_discovery, "SYSTEM_FOLDER", tmp_path / "system")
    monkeypatch.setattr(endpoint_discovery.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.chdir(tmp_path)  # its path may be too long for a socket's address
    return tmp_path


@pytest.fixture(scope="module")
def s3_server():
    """Run a server of S3's protocol in this process."""
    pytest.importorskip("moto.server")
    from s3_server import S3Server  # noqa: PLC0415 - of an extra

    server = S3Server()
    yield server
    server.stop()


_BUCKETS = count()


@pytest.fixture
def bucket(s3_server, monkeypatch, tmp_path):
    """Return the client of S3 and a new bucket; the libraries find both by their variables."""
    monkeypatch.setattr(stores, "BACKOFF_FIRST_S", 0.01)
    for variable, value in s3_server.variables(tmp_path).items():
        monkeypatch.setenv(variable, value)
    client, name = s3_server.client(), f"bucket-{next(_BUCKETS)}"
    client.create_bucket(Bucket=name)
    yield client, name
    client.close()
    stores._store.cache_clear()
