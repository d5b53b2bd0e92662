"""Attack a daemon in eight ways at once, and check that everybody else is served.

    python benchmarks/hostile_run.py [--seconds 300] [--only ATTACK ...] [--json FILE]

``spectrod run`` with keys, two test signals in real time and two recordings, within the limits of
``systemd/spectrod.service``. A fifth of the time (60 s at most) is quiet; then attackers in
processes of their own do what ``_hostile_attacks.py`` says, all at once:

    silent         hold 3000 connections that say nothing, and renew those that are cut
    upstream       flood the publisher with messages that are no subscriptions (a key that may read)
    subscriptions  subscribe to new prefixes without end (the same key)
    unread         ask for large replies, subscribe to everything, and read nothing (the same key)
    malformed      send what is no ZMTP to both ports, and requests that are none
    strangers      come with keys that nobody knows
    files          drop torn, forged and odd files into the folders of the recordings
    revocations    a key comes and is revoked; each time a recording's setting changes

After that it is quiet again. Meanwhile a subscriber with a key checks each row, one recording with
sound is checked against the sample index at the end, an operator asks for the status over IPC, and
memory, descriptors, threads and processor time of the daemon are read each second.

All criteria are printed, with what was measured and the bound; the exit code is 1 if one fails.
``--bound NAME=VALUE`` sets another bound. A daemon above ``MemoryMax`` is killed. What the kernel
keeps for sockets is not in the memory that is measured.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from _hostile_attacks import ATTACKS, Target, run
from _hostile_checks import check_recording, listen, wait_for_row
from _hostile_daemon import (
    HOP,
    PATIENCE_S,
    WIN_LENGTH,
    Daemon,
    Operator,
    Peers,
    Second,
    Unit,
    Watch,
)
from _report import ROOT, Report, new_report, write_report

from spectrod.lib.errors import SpectrodError
from spectrod.wire.keys import make_keys

_UNIT = ROOT / "systemd" / "spectrod.service"
_QUIET_SHARE, _QUIET_MAX_S = 0.2, 60.0
_START_S = 120.0
_SETTLE_S = 3.0  # after which it counts as quiet
_REPLAYED_S = 2.0  # time for a hole to be filled before the last phase ends
_CHECK_PERIOD_S = 0.25
_DESCRIPTORS_MORE = 16
_CONNECTIONS_MORE = 4
_CPU_MORE = 0.25  # of a core, beside half as much again as before

BOUNDS: Final = {
    "exit_code": 0.0,
    "tracebacks": 0.0,
    "log_lines_per_s": 10.0,
    "subscriber_uncounted_rows": 0.0,
    "recording_uncounted_samples": 0.0,
    "recording_unfinished_files": 0.0,
    "sound_uncounted_samples": 0.0,
    "latency_p99_ms": 1000.0,
    "memory_growth_mb": 64.0,
    "descriptors_growth": 500.0,
    "cpu_cores": 1.5,
    "operator_failed": 0.0,
    "operator_longest_s": 5.0,
    "files_touched": 0.0,
    "frames_after_revocation": 0.0,
    "normal_after_s": 5.0,
}
"""The most that may be measured; those of memory, descriptors and threads are the unit's."""


@dataclass
class Run:
    """One run, and what was found."""

    seconds: float
    only: tuple[str, ...]
    connections: int
    unit: Unit
    listened: dict[str, dict[str, Any]] = field(default_factory=dict)
    attacks: dict[str, dict[str, int]] = field(default_factory=dict)
    phases_s: dict[str, tuple[float, float]] = field(default_factory=dict)
    normal_s: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    timeline: list[Second] = field(default_factory=list)

    @property
    def quiet_s(self) -> float:
        """How long it is quiet before and after [s]."""
        return min(_QUIET_MAX_S, self.seconds * _QUIET_SHARE)

    def measure(self, folder: Path) -> None:
        """Do it all in a folder, which is empty."""
        _make_keys(folder)
        daemon = Daemon(folder, self.unit)
        with ExitStack() as cleanup:
            cleanup.callback(daemon.stop)
            watch, operator, peers = Watch(daemon, self.unit), Operator(daemon), Peers()
            for end in (watch.stop, operator.stop, peers.close):
                cleanup.callback(end)
            watch.start()
            operator.start()
            self._attack(daemon, peers)
            operator.stop()
            with suppress(SpectrodError):
                self.facts["status"] = daemon.status(PATIENCE_S)
        self.timeline = watch.seconds
        self.facts |= operator.facts()
        self._read_leftovers(daemon)

    def _attack(self, daemon: Daemon, peers: Peers) -> None:
        options = daemon.client | {"replay_from": daemon.requests}
        listener = peers.start(listen, daemon.publish, options)
        target = Target(
            publish=daemon.publish,
            control=daemon.requests,
            pid=daemon.pid,
            server_key=daemon.folder / "server" / "server.pub",
            key=daemon.folder / "mallory" / "mallory.key",
            clients=daemon.folder / "clients",
            config=daemon.config,
            folders=daemon.folders,
            connections=self.connections,
            seconds=self.seconds + PATIENCE_S,
        )
        attackers = {name: peers.start(run, name, target) for name in self.only}
        for pipe in (listener, *attackers.values()):
            _receive(pipe, _START_S)
        time.sleep(_SETTLE_S)
        with self._phase("before", listener):
            first = daemon.look()
            time.sleep(self.quiet_s)
            quiet = daemon.look()
        status = daemon.status(PATIENCE_S)
        with self._phase("during", listener):
            for pipe in attackers.values():
                pipe.send("begin")
            _sleep_while_alive(daemon, self.seconds)
            for pipe in attackers.values():
                pipe.send("end")
            self.attacks = {name: _receive(pipe) for name, pipe in attackers.items()}
            end_s = time.monotonic()
        if first is not None and quiet is not None:
            self._wait_until_normal(daemon, end_s, (first, quiet), status)
        with self._phase("after", listener, "end"):
            _sleep_while_alive(daemon, self.quiet_s + _REPLAYED_S)

    @contextmanager
    def _phase(self, name: str, listener: Connection, word: str = "next") -> Iterator[None]:
        begin_s = time.monotonic()
        yield
        listener.send(word)
        self.listened[name] = _receive(listener)
        self.phases_s[name] = (begin_s, time.monotonic())

    def _wait_until_normal(
        self, daemon: Daemon, end_s: float, quiet: tuple[Second, Second], status: dict[str, Any]
    ) -> None:
        """Note after which time each thing is as it was before."""
        waited_s = wait_for_row(daemon.publish, daemon.client, PATIENCE_S)
        self.normal_s["a new subscriber has its first row"] = waited_s
        left, now = {"descriptors", "connections", "recordings", "processor time"}, daemon.look()
        while left and now is not None and time.monotonic() < end_s + PATIENCE_S:
            time.sleep(_CHECK_PERIOD_S)
            before, now = now, daemon.look()
            if now is None:
                break
            found = _normal(quiet, (before, now)) | _normal_status(daemon, status)
            for name in found & left:
                self.normal_s[name] = time.monotonic() - end_s
                left.remove(name)
        self.normal_s |= dict.fromkeys(left, PATIENCE_S)

    def _read_leftovers(self, daemon: Daemon) -> None:
        log, listed = daemon.log(), daemon.folder / "dropped.json"
        dropped = json.loads(listed.read_text()) if listed.exists() else []
        paths = [Path(os.fsdecode(bytes.fromhex(text))) for text in dropped]
        self.facts |= {
            "exit_code": daemon.process.returncode,
            "log_lines": log.count("\n"),
            "tracebacks": log.count("Traceback"),
            "log_end": log.splitlines()[-10:],
            "descriptors_limit": daemon.descriptors_max,
            "recording": check_recording(daemon.folders[0], paths),
        }

    def measured(self) -> dict[str, float]:
        """Return what there is a bound for, by its name."""
        begin_s, end_s = self.phases_s["during"]
        seconds = [one for one in self.timeline if begin_s <= one.t_s <= end_s]
        recording = self.facts["recording"]
        return {
            "exit_code": abs(self.facts["exit_code"]),
            "tracebacks": self.facts["tracebacks"],
            "log_lines_per_s": self.facts["log_lines"] / (self.timeline[-1].t_s - begin_s),
            "subscriber_uncounted_rows": sum(one["uncounted"] for one in self.listened.values()),
            "recording_uncounted_samples": self._rows_uncounted(),
            "recording_unfinished_files": recording["unfinished"],
            "sound_uncounted_samples": self._sound_uncounted(),
            "latency_p99_ms": self.listened["during"]["latency_p99_ms"],
            "memory_peak_mb": max(one.rss_bytes for one in self.timeline) / 1e6,
            "memory_growth_mb": _growth([one.rss_bytes / 1e6 for one in seconds]),
            "descriptors_peak": max(one.descriptors for one in self.timeline),
            "descriptors_growth": _growth([one.descriptors for one in seconds]),
            "threads_peak": max(one.threads for one in self.timeline),
            "cpu_cores": _cores(seconds[0], seconds[-1]),
            "operator_failed": self.facts["operator_failed"],
            "operator_longest_s": self.facts["operator_longest_s"],
            "files_touched": self.attacks.get("files", {}).get("touched", 0),
            "frames_after_revocation": self.attacks.get("revocations", {}).get(
                "frames after the revocation", 0
            ),
            "normal_after_s": max(self.normal_s.values()),
        }

    def bounds(self) -> dict[str, float]:
        """Return the bounds of all that is measured."""
        return BOUNDS | {
            "memory_peak_mb": self.unit.memory_bytes / 1e6,
            "descriptors_peak": self.facts["descriptors_limit"] / 2 + 256,
            "threads_peak": self.unit.tasks,
        }

    def _rows_uncounted(self) -> int:
        """Count the samples that no row has, and of which the daemon does not say so."""
        status, recording = self.facts.get("status"), self.facts["recording"]
        found: int = recording["uncounted_samples"]
        if status is None:
            return found
        source = _named(status["sources"], "tone")
        lost = _named(status["recorders"], "watched")["lost_rows"] * HOP
        # The last row, and what came before the daemon was asked and is behind it.
        last = max(0, source["samples"] - WIN_LENGTH - recording["end_index"] - lost)
        return found + last + max(0, recording["gap_samples"] - source["gap_samples"] - lost)

    def _sound_uncounted(self) -> int:
        """Count the samples that rows cover, and that are not in the sound."""
        status, recording = self.facts.get("status"), self.facts["recording"]
        lost = 0 if status is None else _named(status["recorders"], "watched")["lost_samples"]
        covered = recording["end_index"] - HOP + WIN_LENGTH - recording["first_index"]
        return max(0, covered - recording["sound_samples"] - lost)


def _named(found: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(one for one in found if one["name"] == name)


def _make_keys(folder: Path) -> None:
    (folder / "clients").mkdir(mode=0o700)
    make_keys(folder / "server", "server", "read")
    for name in ("reader", "mallory"):
        public, _ = make_keys(folder / name, name, "read")
        (folder / "clients" / public.name).write_bytes(public.read_bytes())


def _sleep_while_alive(daemon: Daemon, seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        daemon.process.wait(seconds)


def _receive(pipe: Connection, timeout_s: float = PATIENCE_S) -> Any:
    if not pipe.poll(timeout_s):
        raise SystemExit(f"a process did not answer within {timeout_s:.0f} s")
    return pipe.recv()


def _cores(first: Second, last: Second) -> float:
    """Processor time over time [1]."""
    return (last.cpu_s - first.cpu_s) / (last.t_s - first.t_s)


def _growth(values: Sequence[float]) -> float:
    """Median of the last fifth over that of the second one: the first is for filling up."""
    n = max(1, len(values) // 5)
    return statistics.median(values[-n:]) - statistics.median(values[n : 2 * n] or values[:1])


def _normal(quiet: tuple[Second, Second], now: tuple[Second, Second]) -> set[str]:
    """Name what is as it was, of what the process takes."""
    found = set()
    if now[1].descriptors <= quiet[1].descriptors + _DESCRIPTORS_MORE:
        found.add("descriptors")
    if _cores(*now) <= 1.5 * _cores(*quiet) + _CPU_MORE:
        found.add("processor time")
    return found


def _normal_status(daemon: Daemon, quiet: dict[str, Any]) -> set[str]:
    """Name what is as it was, of what the daemon says."""
    try:
        status = daemon.status(PATIENCE_S)
    except SpectrodError:
        return set()
    found = set()
    tcp, before = (one["daemon"]["connections"]["tcp"] for one in (status, quiet))
    if not tcp["is_closed"] and tcp["count"] <= before["count"] + _CONNECTIONS_MORE:
        found.add("connections")
    if all(one["state"] == "recording" and not one["error"] for one in status["recorders"]):
        found.add("recordings")
    return found


def verdict(measured: dict[str, float], bounds: dict[str, float]) -> list[dict[str, Any]]:
    """Hold what was measured against its bounds."""
    return [
        {
            "criterion": name,
            "measured": round(value, 3),
            "bound": bounds[name],
            "ok": value <= bounds[name],
        }
        for name, value in measured.items()
    ]


def _result(found: Run, rows: list[dict[str, Any]]) -> Report:
    before = found.phases_s["before"]
    begin_s = before[0]
    quiet = [one for one in found.timeline if before[0] <= one.t_s <= before[1]]
    return {
        "seconds": found.seconds,
        "quiet_s": found.quiet_s,
        "attacks": found.attacks,
        "connections": found.connections,
        "load_average": os.getloadavg(),
        "nice": os.nice(0),
        "verdict": rows,
        "subscriber": found.listened,
        "normal_after_s": {name: round(s, 2) for name, s in found.normal_s.items()},
        "quiet_cpu_cores": round(_cores(quiet[0], quiet[-1]), 3) if len(quiet) > 1 else None,
        **{name: value for name, value in found.facts.items() if name != "status"},
        "recorders": found.facts.get("status", {}).get("recorders"),
        "daemon": found.facts.get("status", {}).get("daemon"),
        "timeline": {
            "t_s": [round(one.t_s - begin_s, 1) for one in found.timeline],
            "rss_mb": [round(one.rss_bytes / 1e6, 1) for one in found.timeline],
            "descriptors": [one.descriptors for one in found.timeline],
            "threads": [one.threads for one in found.timeline],
            "cpu_s": [round(one.cpu_s, 2) for one in found.timeline],
        },
    }


def _line(row: dict[str, Any]) -> str:
    is_ok = "ok" if row["ok"] else "FAILED"
    return f"{is_ok:<7}{row['criterion']:<28}{row['measured']:>12g}  at most {row['bound']:g}"


def main() -> int:
    """Run, print, optionally store; return 1 if a criterion is not met."""
    args = _arguments()
    os.nice(args.nice)
    found = Run(args.seconds, tuple(args.only or ATTACKS), args.connections, Unit.read(_UNIT))
    with tempfile.TemporaryDirectory(prefix="spectrod-hostile-") as name:
        found.measure(Path(name))
    rows = verdict(found.measured(), found.bounds() | dict(args.bound))
    for phase, facts in found.listened.items():
        print(f"{phase}: " + ", ".join(f"{key} {value}" for key, value in facts.items()))
    for name, counts in found.attacks.items():
        print(f"{name}: " + ", ".join(f"{key} {n}" for key, n in counts.items()))
    print("\n".join(map(_line, rows)))
    if args.json:
        report = new_report("hostile_run")
        report["results"] = [_result(found, rows)]
        write_report(report, args.json)
    return 0 if all(row["ok"] for row in rows) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="of the attack (%(default)s)")
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), metavar="ATTACK")
    parser.add_argument("--connections", type=int, default=3000, help="silent (%(default)s)")
    parser.add_argument("--bound", type=_bound, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument(
        "--nice",
        type=int,
        default=0,
        help="of all but the attackers; below 0 where other work keeps the machine busy",
    )
    parser.add_argument("--json", metavar="FILE", help="write a report")
    return parser.parse_args()


def _bound(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    return name, float(value)


if __name__ == "__main__":
    sys.exit(main())
