"""Processes of ``hostile_run.py``: the daemon and its limits, its watchers, other processes."""

import multiprocessing
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from spectrod.apps.bench import usage
from spectrod.client import Control
from spectrod.lib.errors import SpectrodError

PATIENCE_S: Final = 30.0
"""How long anything is waited for that should take less [s]."""
_START_S = 120.0
_STOP_S = 20.0
_FS = 48_000
WIN_LENGTH, HOP = 512, 480
_CONFIG = """
analysis = {{ win_length = {win_length}, hop = {hop} }}
engine = {{ engine = "numpy" }}
publish = {{ endpoints = ["tcp://127.0.0.1:*"] }}
control = {{ endpoints = ["ipc://{folder}/control.ipc", "tcp://127.0.0.1:*"], \
state_folder = "{folder}" }}
security = {{ server_key = "{folder}/server/server.key", client_keys = "{folder}/clients", \
require = "always" }}

[sources.tone]
uri = "signal:sine,1000,-20"
samplerate = {fs}

[sources.noise]
uri = "signal:white,-30"
samplerate = {fs}

[recordings.watched]
sources = ["tone"]
samples = "wav"
rotate_s = 10
min_free_mb = 0

[recordings.restarted]
sources = ["noise"]
samples = "wav"
rotate_s = 5
keep_mb = 20
min_free_mb = 0
keep_days = 1
"""


@dataclass(frozen=True)
class Unit:
    """The limits of the systemd unit."""

    descriptors: int
    memory_bytes: int
    tasks: int

    @classmethod
    def read(cls, path: Path) -> "Unit":
        """Read a unit's file; raises SystemExit if a limit is not there."""
        text = path.read_text(encoding="utf-8")
        found = {
            name: re.search(rf"^{name}=(\d+)(G?)$", text, re.MULTILINE)
            for name in ("LimitNOFILE", "MemoryMax", "TasksMax")
        }
        values = []
        for name, match in found.items():
            if match is None:
                raise SystemExit(f"{path}: {name}= is missing, or is no plain number")
            values.append(int(match[1]) << (30 if match[2] else 0))
        return cls(*values)


@dataclass(frozen=True)
class Second:
    """The daemon in one second."""

    t_s: float
    rss_bytes: int
    descriptors: int
    threads: int
    cpu_s: float


class Daemon:
    """``spectrod run`` within the unit's limit of descriptors, as far as this machine allows."""

    def __init__(self, folder: Path, unit: Unit) -> None:
        self.folder, self.config = folder, folder / "spectrod.toml"
        self.config.write_text(
            _CONFIG.format(folder=folder, fs=_FS, win_length=WIN_LENGTH, hop=HOP)
        )
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.descriptors_max = min(unit.descriptors, most)
        limit = f'ulimit -n {self.descriptors_max} && exec "$@"'
        command = [sys.executable, "-m", "spectrod", "run", "--config", str(self.config)]
        self._log = (folder / "daemon.log").open("w+b")
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", limit, "sh", *command, "--show", "none"], stderr=self._log
        )
        self.pid = self.process.pid
        self.client = {
            "server_key": folder / "server" / "server.pub",
            "key_file": folder / "reader" / "reader.key",
        }
        recordings = folder / "recordings"
        self.folders = (recordings / "watched" / "tone", recordings / "restarted" / "noise")
        self.control = f"ipc://{folder}/control.ipc"
        self.publish = self._wait_for("publishing at ")[0]
        self.requests = next(one for one in self._wait_for("control at ") if "tcp://" in one)

    def log(self) -> str:
        """Return what it has logged so far."""
        return (self.folder / "daemon.log").read_text(errors="replace")

    def status(self, timeout_s: float) -> dict[str, Any]:
        """Ask for the status, by a connection of its own."""
        with Control(self.control, timeout_s=timeout_s) as control:
            status: dict[str, Any] = control.call("status")
        return status

    def stop(self) -> int:
        """End it, if it has not ended; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        code = self.process.wait()
        self._log.close()
        return code

    def look(self) -> Second | None:
        """Measure it now; None if it has ended."""
        try:
            return Second(
                time.monotonic(),
                usage.resident_bytes(self.pid),
                usage.descriptors(self.pid),
                sum(1 for _ in Path(f"/proc/{self.pid}/task").iterdir()),
                usage.processor_seconds(self.pid),
            )
        except OSError:
            return None

    def _wait_for(self, text: str) -> list[str]:
        deadline_s = time.monotonic() + _START_S
        while time.monotonic() < deadline_s and self.process.poll() is None:
            for line in self.log().splitlines():
                if text in line:
                    return line.partition(text)[2].replace(",", " ").split()
            time.sleep(0.05)
        self.stop()
        raise SystemExit(f"the daemon did not start:\n{self.log()}")


class Watch(threading.Thread):
    """Measures a daemon each second; kills one that takes more than MemoryMax, as systemd would."""

    def __init__(self, daemon: Daemon, unit: Unit) -> None:
        super().__init__(name="watch", daemon=True)
        self._daemon, self._unit = daemon, unit
        self._over = threading.Event()
        self.seconds: list[Second] = []

    def run(self) -> None:
        """See the class."""
        while not self._over.wait(1.0):
            now = self._daemon.look()
            if now is None:
                return
            self.seconds.append(now)
            if now.rss_bytes > self._unit.memory_bytes:
                self._daemon.process.kill()

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self.join()

    def between(self, begin_s: float, end_s: float) -> list[Second]:
        """Return what was measured in a time."""
        return [one for one in self.seconds if begin_s <= one.t_s <= end_s]


class Operator(threading.Thread):
    """Asks for the status each second over IPC; notes how long that takes."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(name="operator", daemon=True)
        self._daemon = daemon
        self._over = threading.Event()
        self.waited_s: list[float] = []
        self.failures: list[str] = []

    def run(self) -> None:
        """See the class."""
        while not self._over.wait(1.0):
            begin_s = time.monotonic()
            try:
                self._daemon.status(PATIENCE_S)
            except SpectrodError as error:
                self.failures.append(str(error))
            self.waited_s.append(time.monotonic() - begin_s)

    def stop(self) -> None:
        """End it; idempotent."""
        self._over.set()
        self.join()

    def facts(self) -> dict[str, Any]:
        """Summarise."""
        return {
            "operator_requests": len(self.waited_s),
            "operator_longest_s": max(self.waited_s, default=0.0),
            "operator_failed": len(self.failures),
            "operator_failures": self.failures[:5],
        }


class Peers:
    """Processes, each with a pipe."""

    def __init__(self) -> None:
        # A server that has imported what all of them need, once; it has no threads.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["_hostile_attacks", "_hostile_checks"])
        self._started: list[multiprocessing.process.BaseProcess] = []

    def start(self, target: Callable[..., None], *args: object) -> Connection:
        """Start one; its function gets its end of the pipe first."""
        parent, child = self._context.Pipe()
        process = self._context.Process(target=target, args=(child, *args), daemon=True)
        process.start()
        child.close()
        self._started.append(process)
        return parent

    def close(self) -> None:
        """End those that have not ended."""
        for process in self._started:
            process.join(1.0)
            if process.is_alive():
                process.kill()
                process.join()
