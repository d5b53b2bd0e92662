"""How long subscribers are without frames: a daemon that is killed, and a key that is revoked.

    python benchmarks/recovery.py [--rounds 10] [--json FILE]

``spectrod run`` sends 100 frames a second of a test signal over TCP with keys. It is killed
(SIGKILL) and started again; measured is from the moment that it says where it publishes, and from
the kill, to the receipt of a frame by a subscription that lives on. Then a key is revoked by
SIGHUP, which cuts its connections; measured is the longest time between two frames of a subscriber
with another key. Asserted: the first frame after a restart says so, and none is missing after a
revocation.
"""

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _report import new_report, write_report

from spectrod.client import Subscription, subscribe
from spectrod.wire.keys import make_keys

_TIMEOUT_S = 20.0
_AFTER_S = 1.0
_CONFIG = """
source = {{ uri = "signal:sine,1000,-20", name = "tone" }}
analysis = {{ win_length = 512, hop = 480 }}
engine = {{ engine = "numpy" }}
publish = {{ endpoints = ["{publish}"] }}
control = {{ endpoints = ["{control}"] }}
security = {{ server_key = "{folder}/server/server.key", client_keys = "{folder}/clients", \
require = "always" }}
"""


class _Daemon:
    """A daemon in a process, at given endpoints or at any."""

    def __init__(self, folder: Path, like: "_Daemon | None" = None) -> None:
        publish, control = (like.publish, like.control) if like else ("tcp://127.0.0.1:*",) * 2
        config = folder / "spectrod.toml"
        config.write_text(_CONFIG.format(publish=publish, control=control, folder=folder))
        command = [sys.executable, "-m", "spectrod", "run", "--config", str(config)]
        self.process = subprocess.Popen(
            [*command, "--show", "none"], stderr=subprocess.PIPE, text=True
        )
        self.publish = self._wait_for("publishing at ")
        self.up_s = time.perf_counter()
        self.control = self._wait_for("control at ")

    def _wait_for(self, text: str) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return line.partition(text)[2].strip()
        raise AssertionError("the daemon did not start")

    def kill(self) -> float:
        """End it at once; return when that was."""
        self.process.kill()
        self.process.wait()
        return time.perf_counter()


def main() -> None:
    """Run both, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("recovery")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_keys(folder / "server", "server", "read")
        make_keys(folder / "clients", "reader", "read")
        daemon = _Daemon(folder)
        keys = {
            "server_key": folder / "server" / "server.pub",
            "key_file": folder / "clients" / "reader.key",
        }
        with subscribe(daemon.publish, timeout_s=_TIMEOUT_S, **keys) as frames:
            next(frames)
            daemon, restarts = _restart(folder, daemon, frames, args.rounds)
        replay = subscribe(daemon.publish, replay_from=daemon.control, timeout_s=_TIMEOUT_S, **keys)
        with replay as frames:
            next(frames)
            revocations = _revoke(folder, daemon, frames, args.rounds)
        daemon.kill()
    report["results"] = [*restarts, revocations]
    for result in report["results"]:
        print(", ".join(f"{key}: {value}" for key, value in result.items()))
    if args.json:
        write_report(report, args.json)


def _restart(
    folder: Path, daemon: _Daemon, frames: Subscription, rounds: int
) -> tuple[_Daemon, list[dict[str, Any]]]:
    since_up, since_kill = [], []
    for _ in range(rounds):
        killed_s = daemon.kill()
        while frames.receive(0.1) is not None:
            pass
        daemon = _Daemon(folder, daemon)
        frame = next(frames)
        now_s = time.perf_counter()
        assert frame.restarted
        since_up.append(now_s - daemon.up_s)
        since_kill.append(now_s - killed_s)
    return daemon, [
        _result("daemon killed: from publishing again to a frame", since_up),
        _result("daemon killed: from the kill to a frame, its start included", since_kill),
    ]


def _revoke(folder: Path, daemon: _Daemon, frames: Subscription, rounds: int) -> dict[str, Any]:
    pauses = []
    for k in range(rounds):
        public, _ = make_keys(folder / "clients", f"other{k}", "read")
        daemon.process.send_signal(signal.SIGHUP)
        _longest_pause(frames)
        public.unlink()
        daemon.process.send_signal(signal.SIGHUP)
        pauses.append(_longest_pause(frames))
    assert frames.missed == 0, frames.replay_failure
    return _result("key revoked: another subscriber is without frames", pauses)


def _longest_pause(frames: Subscription) -> float:
    start_s = last_s = time.perf_counter()
    longest_s = 0.0
    while last_s - start_s < _AFTER_S:
        assert not next(frames).missed
        now_s = time.perf_counter()
        longest_s, last_s = max(longest_s, now_s - last_s), now_s
    return longest_s


def _result(what: str, seconds: list[float]) -> dict[str, Any]:
    return {
        "what": what,
        "rounds": len(seconds),
        "median_s": round(statistics.median(seconds), 3),
        "longest_s": round(max(seconds), 3),
    }


if __name__ == "__main__":
    main()
