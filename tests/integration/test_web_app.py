"""``spectrod web`` as operators start it: its errors, its address, its end, and strangers."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from spectrod.cli import main

TIMEOUT_S = 30.0
NOBODY = "ipc:///nonexistent/spectrum.ipc"
pytestmark = pytest.mark.slow


def start(*arguments, **popen):
    return subprocess.Popen(
        [sys.executable, "-m", "spectrod", "web", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **popen,
    )


@dataclass
class Page:
    """A running server."""

    process: subprocess.Popen
    link: str

    @property
    def port(self):
        return int(re.search(r":(\d+)/", self.link)[1])

    def get(self, path, **headers):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        with contextlib.closing(client):
            client.request("GET", path, None, headers)
            answer = client.getresponse()
            return answer.status, answer.read()

    def stream(self, origin=None):
        url = f"ws://127.0.0.1:{self.port}/api/stream"
        return connect(url, origin=origin or f"http://127.0.0.1:{self.port}", compression=None)

    def end(self, number=signal.SIGTERM):
        """End it; return the time it took [s], its exit code and its log."""
        start_s = time.monotonic()
        self.process.send_signal(number)
        _, log = self.process.communicate(timeout=TIMEOUT_S)
        return time.monotonic() - start_s, self.process.returncode, log


@contextlib.contextmanager
def page(*arguments, **popen):
    """Run a server until the end of the context."""
    process = start(*arguments, **popen)
    try:
        line = process.stdout.readline()
        assert line.startswith("the page is at "), (line, process.poll() and process.stderr.read())
        yield Page(process, line.split()[-1])
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


def close_code(stream):
    """Read a stream until its server closes it; return the code."""
    try:
        while True:
            stream.recv(TIMEOUT_S)
    except ConnectionClosed as closed:
        return closed.rcvd.code


@pytest.fixture(scope="module")
def shared():
    with page(NOBODY, "--listen", "127.0.0.1:0") as one:
        yield one


def test_a_daemon_that_is_away_is_told_and_waited_for(shared):
    """The page works without one, and each endpoint's state is in the stream."""
    with shared.stream() as stream:
        texts = [json.loads(stream.recv(TIMEOUT_S)) for _ in range(3)]
    assert [text["op"] for text in texts] == ["hello", "topics", "state"]
    (endpoint,) = texts[2]["endpoints"]
    assert (endpoint["endpoint"], endpoint["connected"]) == (NOBODY, False)
    assert shared.process.poll() is None


def test_strangers_are_refused_by_the_program_as_it_is(shared):
    """A rebound name, a foreign page, and a program without the token."""
    assert shared.get("/api/hello", Host="evil.example")[0] == 421
    with pytest.raises(InvalidStatus) as caught, shared.stream("http://evil.example"):
        pass
    assert caught.value.response.status_code == 403
    assert "Origin: a page of another site" in json.loads(shared.get("/api/hello")[1])["refused"]


def test_there_are_32_clients_and_no_more(shared):
    """The 33rd is told why by api/hello."""
    with contextlib.ExitStack() as streams:
        for _ in range(32):
            streams.enter_context(shared.stream())
        with pytest.raises(InvalidStatus) as caught, shared.stream():
            pass
        assert caught.value.response.status_code == 503
        refused = json.loads(shared.get("/api/hello")[1])["refused"]
        assert refused == "clients: 32 are connected, the most allowed"


def test_a_message_of_the_page_is_bounded(shared):
    """16384 bytes; the server goes on."""
    with shared.stream() as stream:
        stream.send("x" * 16385)
        assert close_code(stream) == 1009
    assert shared.get("/api/hello")[0] == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_a_second(number):
    """With streams that are read and that are not; nothing is logged that looks like a failure."""
    with page(NOBODY, "--listen", "127.0.0.1:0") as one, one.stream() as stream:
        with socket.create_connection(("127.0.0.1", one.port)) as silent:
            took_s, code, log = one.end(number)
            assert silent.recv(1) == b""
        assert took_s < 1.0
        assert (code, log) == (0 if number == signal.SIGTERM else 130, "")
        assert close_code(stream) == 1012


def test_its_manager_is_told_of_start_and_end(tmp_path):
    """READY when the address is there, WATCHDOG while the loop runs, STOPPING at the end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(TIMEOUT_S)
        environ = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        with start(NOBODY, "--listen", "127.0.0.1:0", env=environ) as process:
            told = {manager.recv(4096).decode() for _ in range(3)}
            assert told == {"READY=1", "WATCHDOG=1", "STATUS=running: 0 pages"}
            process.terminate()
            out, log = process.communicate(timeout=TIMEOUT_S)
        assert (out, process.returncode) == ("", 0)
        assert "the page is at http://127.0.0.1:" in log
        while manager.recv(4096) != b"STOPPING=1":
            pass


def test_beyond_this_machine_the_link_has_the_token(tmp_path):
    """The token is kept in a file, asked for, and the missing TLS is told once."""
    file = tmp_path / "token"
    with page(NOBODY, "--listen", "0.0.0.0:0") as one:
        assert re.fullmatch(r"http://[^/]+:\d+/#k=[A-Za-z0-9_-]{22}", one.link)
        assert json.loads(one.get("/api/hello")[1])["needs_token"]
        with pytest.raises(InvalidStatus), one.stream():
            pass
        _, code, log = one.end()
    assert code == 0
    assert log.count("without --tls-cert the token and all spectra cross the network") == 1
    with page(NOBODY, "--listen", "0.0.0.0:0", "--token-file", file) as one:
        # Standard output is no terminal here: it may be a log, and the token is in the file.
        assert "#" not in one.link
        token = file.read_text().strip()
        assert one.get("/api/history", Authorization=f"Bearer {token}")[0] == 400
        assert one.get("/api/history", Authorization=f"Bearer {token}x")[0] == 403


def test_control_has_a_link_with_the_token_on_this_machine_too():
    """Browsers need it for nothing else; a program with the page's Origin alone is refused."""
    with page(NOBODY, "--listen", "127.0.0.1:0", "--control") as one:
        assert re.fullmatch(r"http://127.0.0.1:\d+/#k=[A-Za-z0-9_-]{22}", one.link)
        assert not json.loads(one.get("/api/hello")[1])["needs_token"]
        client = http.client.HTTPConnection("127.0.0.1", one.port, timeout=TIMEOUT_S)
        with contextlib.closing(client):
            origin = {"Origin": f"http://127.0.0.1:{one.port}"}
            client.request("POST", "/api/control", b'{"method": "status"}', origin)
            answer = client.getresponse()
            assert answer.status == 403
            assert "token: needed to control" in json.loads(answer.read())["error"]


def test_recorded_sound_asks_for_the_token_on_this_machine_too(tmp_path):
    """The link has it; without the option there is no such address."""
    asked = "/api/sound?source=mic&t0=0&t1=1"
    with page(NOBODY, "--listen", "127.0.0.1:0", "--sound", "--recordings", tmp_path) as one:
        token = one.link.partition("#k=")[2]
        assert one.get(asked)[0] == 403
        status, body = one.get(asked, Authorization=f"Bearer {token}")
        assert (status, json.loads(body)) == (200, {"clips": []})
    with page(NOBODY, "--listen", "127.0.0.1:0") as one:
        assert one.get(asked)[0] == 404


def test_a_name_of_a_proxy_asks_for_the_token_unless_told_not_to():
    """Who names a proxy expects others; --no-token is for a proxy that asks who comes."""
    arguments = [NOBODY, "--listen", "127.0.0.1:0", "--allow-host", "a.example"]
    with page(*arguments) as one:
        assert json.loads(one.get("/api/hello", Host="a.example")[1])["needs_token"]
    with page(*arguments, "--no-token") as one:
        assert not json.loads(one.get("/api/hello", Host="a.example")[1])["needs_token"]


def test_a_certificate_is_served_and_read_again(tmp_path):
    """SIGHUP takes a renewed certificate; one that is broken leaves the old one in use."""

    def make(name):
        new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj"
        command = [*new.split(), f"/CN={name}", "-keyout", "key.pem", "-out", "cert.pem"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        return (tmp_path / "cert.pem").read_text()

    def served():
        return ssl.get_server_certificate(("127.0.0.1", one.port), timeout=TIMEOUT_S)

    first = make("first")
    tls = ["--tls-cert", tmp_path / "cert.pem", "--tls-key", tmp_path / "key.pem"]
    with page(NOBODY, "--listen", "127.0.0.1:0", *tls) as one:
        assert one.link.startswith("https://")
        assert served().split() == first.split()
        second = make("second")
        one.process.send_signal(signal.SIGHUP)
        assert "reload: the certificate was read again" in one.process.stderr.readline()
        assert served().split() == second.split()
        (tmp_path / "cert.pem").write_text("broken")
        one.process.send_signal(signal.SIGHUP)
        assert "reload refused: tls-cert=" in one.process.stderr.readline()
        assert served().split() == second.split()


def test_a_port_in_use_is_one_line(shared, capsys):
    """Exit code 75: later it may be free."""
    assert main(["web", "--listen", f"127.0.0.1:{shared.port}"]) == 75
    assert capsys.readouterr().err == (
        f"spectrod: listen='127.0.0.1:{shared.port}': another program has this port; "
        "--listen HOST:PORT takes another\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tcp://*:1"], "endpoint='tcp://*:1': to connect, name a host and a port"),
        (["http://localhost"], "endpoint='http://localhost': must be tcp://HOST:PORT or ipc://"),
        (["--listen", "8765"], "listen='8765': must be HOST:PORT, such as 127.0.0.1:8765"),
        (["--listen", "*:0", "--no-token"], "listen='*:0': --no-token is for addresses of this"),
        (["--allow-host", "a:1"], "allow-host='a:1': must be a name or an address, without a port"),
        (["--root-path", "spectra"], "root-path='spectra': must be a path such as /spectra"),
        (["--tls-key", "a.pem"], "tls-key=a.pem: --tls-cert and --tls-key belong together"),
        (["--tls-cert", "a", "--tls-key", "b"], "tls-cert=a: No such file or directory"),
        (["--max-clients", "0"], "'0': must be at least 1"),
        (["--max-clients", "5000"], "max-clients=5000: must be at most 1000"),
        (
            ["--key", "away.key"],
            "server_key: must be given too",
        ),
        (["--no-token", "--token-file", "a"], "not allowed with argument --no-token"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, capsys):
    """With the option, the value and the rule; exit code 2, and nothing is served."""
    assert main(["web", "--listen", "127.0.0.1:0", *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert message in error
    assert error.count("\n") == 1


def test_a_missing_package_is_named_with_its_extra():
    """Exit code 69, as for other things that are not there."""
    program = (
        "import sys; sys.modules['segno'] = None\n"
        "import importlib.util, spectrod.apps.web.command as web\n"
        "found = importlib.util.find_spec\n"
        "web.find_spec = lambda name: None if name == 'segno' else found(name)\n"
        "from spectrod.cli import main; sys.exit(main(['web']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == "spectrod: segno is not installed: pip install 'spectrod[web]'\n"
