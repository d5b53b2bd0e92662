"""Throw requests of all sorts at a running daemon, and see whether it minds.

    python benchmarks/control_fuzz.py [--requests N] [--seed N] [--json FILE]

Starts ``spectrod run`` with a test signal, and sends N requests (a million) from several clients
over its control socket: valid ones, valid ones with odd values, mutations of them, random bytes,
messages of many parts. Beside them, raw garbage goes to TCP ports of control and publisher. Every
message with an answer must be answered by one that follows the protocol; the daemon must then still
be running with its source in time, and have as many threads and descriptors as before, and hardly
more memory. Prints requests a second, replies by code, RSS, descriptors and threads before, halfway
and after.
"""

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import _report  # noqa: F401 - makes the checkout importable
import zmq

from spectrod.client import Control
from spectrod.wire.requests import METHODS

CLIENTS = 4
IN_FLIGHT = 32
REPLY_TIMEOUT_MS = 60_000
_HUGE = 10**30
_GROWTH_MAX_KB = 32_000  # messages that are kept for replay are 16 MB of it, once they are there

VALID: Sequence[tuple[str, dict[str, Any]]] = (
    ("status", {}),
    ("metrics", {}),
    ("get", {}),
    ("get", {"key": "analysis.hop"}),
    ("events", {"since": 0, "limit": 10}),
    ("replay", {"topic": "spec/tone/0/dbfs/", "first_seq": 0, "limit": 2}),
    ("latest", {"topic": "spec/tone/0/dbfs/"}),
    ("set", {"changes": {"analysis.hop": 512}}),
    ("set", {"changes": {"analysis.hop": 1024}}),
    ("set", {"changes": {"log.level": "error"}}),
    ("pause", {"source": "tone"}),
    ("resume", {}),
    ("reset", {"source": "tone", "product": "dbfs"}),
    ("record.stop", {}),
    ("source.remove", {"name": "nobody"}),
)
ODD: Sequence[Any] = (
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, _HUGE, 0.5, 1e308, "", "x", "\0", "\U0001f600",
    "../../etc/passwd", "/", "a" * 5000, [], [[]], {}, {"a": {"b": []}}, ["x"] * 100,
)  # fmt: skip
KEYS = (
    "analysis.hop", "analysis.nfft", "analysis.window", "log.level", "publish.endpoints",
    "sources.tone.uri", "products.x.hop", "x", "", ".", '"', "source.name.x",
)  # fmt: skip


class Requests:
    """An endless mix of messages, the same for the same seed.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - no secrets
        self._makers = (self._valid, self._odd, self._mutated, self._random, self._parts)

    def __iter__(self) -> Iterator[list[bytes]]:
        while True:
            (make,) = self._rng.choices(self._makers, (35, 25, 30, 8, 2))
            yield make()

    def _valid(self) -> list[bytes]:
        method, params = self._rng.choice(VALID)
        return [self._encoded(method, params)]

    def _odd(self) -> list[bytes]:
        """Make a request whose method is known and whose parameters are of all sorts."""
        rng = self._rng
        method = rng.choice(list(METHODS))
        names = [*METHODS[method].params.__struct_fields__, "x"]
        params = {rng.choice(names): rng.choice(ODD) for _ in range(rng.randrange(4))}
        if method == "set":
            # None would take the source's address back to "auto", another source.
            key = rng.choice((*KEYS, "source.uri"))
            value = rng.choice(ODD[1:] if key == "source.uri" else ODD)
            params = {"changes": {key: value}}
        # What would make the daemon do real work a million times is not what is tried here.
        if method in ("reload", "source.add", "record.start"):
            params["x"] = 1
        return [self._encoded(method, params)]

    def _mutated(self) -> list[bytes]:
        rng = self._rng
        part = bytearray(self._valid()[0])
        for _ in range(rng.randint(1, 6)):
            match rng.randrange(4):
                case 0:
                    part[rng.randrange(len(part))] = rng.randrange(256)
                case 1:
                    del part[rng.randrange(len(part)) :]
                case 2:
                    at = rng.randrange(len(part))
                    part[at:at] = rng.choice((b"[" * 2000, b'{"a":' * 500, b"9" * 400, b"\xff\xfe"))
                case _:
                    part += part[: rng.randrange(len(part))]
            if not part:
                break
        return [bytes(part[:60_000])]

    def _random(self) -> list[bytes]:
        return [self._rng.randbytes(self._rng.choice((0, 1, 7, 100, 5000)))]

    def _parts(self) -> list[bytes]:
        return [self._rng.randbytes(3) for _ in range(self._rng.choice((2, 3, 17, 200)))]

    def _encoded(self, method: str, params: dict[str, Any]) -> bytes:
        request = {"v": 1, "id": self._rng.randrange(1000), "method": method, "params": params}
        return json.dumps(request).encode()


def code_of(reply: Sequence[bytes]) -> str:
    """Return what became of a request, and hold the reply against the protocol.

    Raises
    ------
    AssertionError
        If it breaks a rule.
    """
    decoded = json.loads(reply[0])
    assert decoded["v"] == 1, decoded
    if decoded["ok"]:
        assert "error" not in decoded, decoded
        return "ok"
    assert len(reply) == 1
    assert decoded["error"]["message"], decoded
    assert "\n" not in decoded["error"]["message"], decoded
    return str(decoded["error"]["code"])


def bombard(endpoint: str, requests: Requests, n: int) -> Counter[str]:
    """Send a number of messages from several clients, and count the replies by code.

    Raises
    ------
    AssertionError
        If a reply breaks a rule.
    zmq.Again
        If one is missing.
    """
    codes: Counter[str] = Counter()
    with zmq.Context() as context:
        clients = [context.socket(zmq.DEALER) for _ in range(CLIENTS)]
        for client in clients:
            client.setsockopt(zmq.LINGER, 0)
            client.setsockopt(zmq.RCVTIMEO, REPLY_TIMEOUT_MS)
            client.connect(endpoint)
        stream = iter(requests)
        for sent in range(0, n, CLIENTS * IN_FLIGHT):
            for client in clients:
                n_each = min(IN_FLIGHT, n - sent)
                for _ in range(n_each):
                    client.send_multipart(next(stream))
            for client in clients:
                for _ in range(n_each):
                    codes[code_of(client.recv_multipart())] += 1
        for client in clients:
            client.close()
    return codes


def throw_garbage(port: int, rng: random.Random) -> None:
    """Connect to a TCP port and send what no ZeroMQ peer would, then go."""
    pieces = (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        rng.randbytes(rng.choice((1, 10, 64, 5000))),
        b"\xff" + bytes(8) + b"\x7f\x03",
        b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + bytes(47) + rng.randbytes(200),
        b"",
    )
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            connection.sendall(rng.choice(pieces))
        except OSError:
            return  # it has hung up on us, as it should


class DaemonProcess:
    """A daemon of its own, with control over IPC and TCP; ends with the ``with`` statement."""

    def __init__(self, folder: Path) -> None:
        self.control_port, self.publish_port = _free_ports(2)
        self.endpoint = f"ipc://{folder}/control.ipc"
        (folder / "c.toml").write_text(
            f"""
            [source]
            uri = "signal:sine,1000,-20"
            name = "tone"
            [engine]
            engine = "numpy"
            [publish]
            endpoints = ["tcp://127.0.0.1:{self.publish_port}"]
            [control]
            endpoints = ["{self.endpoint}", "tcp://127.0.0.1:{self.control_port}"]
            requests_per_s = 100000
            state_folder = "{folder}"
            [log]
            level = "error"
            """
        )
        command = [sys.executable, "-m", "spectrod", "run", "--config", str(folder / "c.toml")]
        self.process = subprocess.Popen([*command, "--show", "none"], stderr=subprocess.PIPE)

    def __enter__(self) -> Self:
        with Control(self.endpoint, timeout_s=60) as control:
            control.call("latest", topic="spec/tone/0/dbfs/", timeout_s=30)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.log = self.process.communicate(timeout=20)[1].decode()

    def vitals(self) -> dict[str, int]:
        """Measure what must not grow."""
        proc = Path(f"/proc/{self.process.pid}")
        words = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        n_fds = len(list((proc / "fd").iterdir()))
        return {
            "rss_kb": int(words["VmRSS"].split()[0]),
            "fds": n_fds,
            "threads": int(words["Threads"]),
        }

    def check_alive(self) -> None:
        """Raise AssertionError if it no longer does what it should."""
        assert self.process.poll() is None, "the daemon has ended"
        with Control(self.endpoint, timeout_s=60) as control:
            control.call("resume")
            seq = -1
            for _ in range(3):
                result, parts = control.call_parts(
                    "latest", topic="spec/tone/0/dbfs/", after_seq=seq, timeout_s=30
                )
                assert result["parts"], "no message came"
                seq = json.loads(parts[1])["seq"]


def _free_ports(n: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run(n: int, seed: int) -> dict[str, Any]:
    """Throw n requests at a daemon of its own, and report."""
    rng = random.Random(seed)  # noqa: S311 - no secrets
    rounds = 20
    codes: Counter[str] = Counter()
    requests = Requests(seed)
    with tempfile.TemporaryDirectory() as name, DaemonProcess(Path(name)) as daemon:
        codes += bombard(daemon.endpoint, requests, n // 100)  # what is made once is made now
        vitals = [daemon.vitals()]
        start_s = time.monotonic()
        for k in range(rounds):
            codes += bombard(daemon.endpoint, requests, n // rounds)
            for port in (daemon.control_port, daemon.publish_port):
                for _ in range(100):
                    throw_garbage(port, rng)
            daemon.check_alive()
            if k in (rounds // 2 - 1, rounds - 1):
                vitals.append(daemon.vitals())
        with Control(daemon.endpoint) as control:
            counted = control.call("status")["daemon"]["requests"]
        took_s = time.monotonic() - start_s
    assert "Traceback" not in daemon.log, daemon.log
    # Between before and halfway pyzmq starts a thread and a context of its own, which it keeps, for
    # the first large reply.
    assert vitals[-1]["threads"] <= vitals[1]["threads"] <= vitals[0]["threads"] + 3, vitals
    assert vitals[-1]["fds"] <= vitals[1]["fds"], vitals
    assert vitals[-1]["rss_kb"] <= vitals[1]["rss_kb"] + _GROWTH_MAX_KB, vitals
    assert daemon.process.returncode == 0, daemon.log
    assert codes["internal"] == 0, codes
    return {
        "requests": sum(codes.values()),
        "garbage_connections": 2 * 100 * rounds,
        "requests_per_s": round(n / took_s),
        "codes": dict(codes.most_common()),
        "told_by_daemon": counted,
        "vitals": vitals,
        "exit_code": daemon.process.returncode,
        "log": daemon.log.splitlines()[:10],
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--json", metavar="FILE", type=Path)
    args = parser.parse_args()
    report = run(args.requests, args.seed)
    for name, value in report.items():
        print(f"{name}: {value}")
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
