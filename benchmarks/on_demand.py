"""Load of a daemon without subscribers beside capture alone; remains of former subscribers.

    python benchmarks/on_demand.py [--seconds 20] [--rounds 5] [--cycles 1000] [--json FILE]

For a test tone at a sound card's pace and, where a PulseAudio is installed, for a sound card (a
private server's null sink), processor time of three processes in turns, their children's included:

  capture      the daemon's source and a ring that a thread empties as blocks come, nothing else
  idle         ``spectrod run`` without a subscriber
  one          ``spectrod run`` with one that reads all spectra

Before a figure counts, heartbeats must show that no row (idle), or each row (one), was computed.

Then one client after the other subscribes to a daemon, reads a spectrum and goes. After the first
tenth nothing may grow: objects, memory, files, threads. Each time the first row must be complete
within two hops of the samples that the ring held once the analysis knew of the change.
"""

import argparse
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from _report import Report, new_report, write_report

from spectrod import client
from spectrod.apps.bench.pulseaudio import PulseServer
from spectrod.apps.bench.usage import descriptors, process_tree, processor_seconds, resident_bytes
from spectrod.config.config import Config, EngineConfig, PublishConfig, SourceConfig, SourceTable
from spectrod.daemon.daemon import Daemon, build_daemon
from spectrod.source.open_source import open_source

TONE = "signal:sine,1000,-20"
CARD = "soundcard:pulse"
FS, HOP, CHANNELS = 48_000, 1024, 2
ROLES = ("capture", "idle", "one")

_SETTLE_S = 4.0
_TIMEOUT_S = 20.0
_READ_SAMPLES = 1 << 16


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="each measurement (20)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each (5)")
    parser.add_argument("--cycles", type=int, default=1000, help="subscribers in turn (1000)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--capture", metavar="SRC", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.capture:
        capture_alone(args.capture)
        return
    report = new_report("on_demand")
    report["results"] = [
        *(compare(uri, args.seconds, args.rounds) for uri in _sources()),
        *([change_subscribers(args.cycles)] if args.cycles else []),
    ]
    if args.json:
        write_report(report, args.json)


def _sources() -> list[str]:
    if shutil.which("pulseaudio") is None:
        print(f"{CARD}: no pulseaudio here: left out")
        return [TONE]
    return [TONE, CARD]


# ---- processor time


def compare(uri: str, seconds: float, rounds: int) -> Report:
    """Measure the three in turns; print and return shares of a core, and their ratios."""
    shares: dict[str, list[float]] = {role: [] for role in ROLES}
    with ExitStack() as stack:
        if uri == CARD:
            server = stack.enter_context(PulseServer())
            stack.enter_context(server.environment())
            stack.callback(server.play_numbered().stop)
        for _ in range(rounds):
            for role in ROLES:
                shares[role].append(measure(role, uri, seconds))
    median = {role: statistics.median(shares[role]) for role in ROLES}
    # Of each turn by itself: the machine is never the same for long.
    ratio = statistics.median(
        idle / alone for idle, alone in zip(shares["idle"], shares["capture"], strict=True)
    )
    parts = [f"{role} {share:.2%}" for role, share in median.items()]
    print(f"{uri}: of a core: {', '.join(parts)}; idle / capture {ratio:.2f}", flush=True)
    return {"what": "processor time", "source": uri, "seconds": seconds} | {
        "shares": shares,
        "median": median,
        "idle_over_capture": ratio,
        "one_over_capture": median["one"] / median["capture"],
    }


def measure(role: str, uri: str, seconds: float) -> float:
    """Run one of the three and return the part of a core that it took."""
    if role == "capture":
        command = [sys.executable, __file__, "--capture", uri]
        with _process(command) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(_SETTLE_S)
            return _share(process.pid, seconds)
    with tempfile.TemporaryDirectory() as folder:
        endpoint = f"ipc://{folder}/s"
        options = ("--source", uri, "--rate", str(FS), "--channels", str(CHANNELS))
        command = [sys.executable, "-m", "spectrod", "run", "--show", "none", *options]
        with _process([*command, "--publish", endpoint]) as process, ExitStack() as stack:
            beats = stack.enter_context(client.subscribe(endpoint, "hb/", timeout_s=_TIMEOUT_S))
            if role == "one":
                stack.enter_context(reading(endpoint))
            _await_running(beats)
            time.sleep(_SETTLE_S)
            before = _newest_beat(beats)
            share = _share(process.pid, seconds)
            _check_rows(role, before, _newest_beat(beats))
            return share


def _check_rows(role: str, before: tuple[int, int], after: tuple[int, int]) -> None:
    (t0_ns, rows0), (t1_ns, rows1) = before, after
    expected = 0.0 if role == "idle" else (t1_ns - t0_ns) * 1e-9 * FS / HOP
    # A heartbeat is up to one batch ahead of or behind the frames that it counts.
    if abs(rows1 - rows0 - expected) > 0.02 * expected:
        raise SystemExit(f"{role}: {rows1 - rows0} rows, not {expected:.0f}: the figure is void")


def _await_running(beats: client.Subscription) -> None:
    deadline_s = time.monotonic() + _TIMEOUT_S
    while beats.heartbeat is None or beats.heartbeat.state != "running":
        beats.receive(0.5)
        if time.monotonic() > deadline_s:
            raise SystemExit("the daemon did not come up")


def _newest_beat(beats: client.Subscription) -> tuple[int, int]:
    """Read received messages, then wait for one more; return its time [ns] and count of rows."""
    begin_ns = time.monotonic_ns()
    while beats.heartbeat is None or beats.heartbeat.t_mono_ns < begin_ns:
        beats.receive(0.5)
    return beats.heartbeat.t_mono_ns, beats.heartbeat.frames


@contextmanager
def reading(endpoint: str) -> Iterator[None]:
    """Read all spectra meanwhile, in a thread of this process, whose time is not counted."""
    stop = threading.Event()

    def read() -> None:
        with client.subscribe(endpoint, "spec/", timeout_s=_TIMEOUT_S) as frames:
            while not stop.is_set():
                frames.receive(0.2)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _share(pid: int, seconds: float) -> float:
    begin_s, before = time.monotonic(), _tree_seconds(pid)
    time.sleep(seconds)
    return (_tree_seconds(pid) - before) / (time.monotonic() - begin_s)


def _tree_seconds(pid: int) -> float:
    """Processor time of a process and of all its children that live [s]."""
    return sum(map(processor_seconds, process_tree(pid)))


def capture_alone(uri: str) -> None:
    """Fill a ring and empty it as the analysis would, until this process is ended."""
    source = open_source(SourceTable(uri=uri, samplerate=FS, channels=CHANNELS))
    ring = source.open_reader()
    source.start(ring)
    print("captures", flush=True)
    while not ring.exhausted:
        if ring.read(_READ_SAMPLES) is None:
            ring.wait()


# ---- subscribers that come and go


def change_subscribers(n_cycles: int) -> Report:
    """Subscribe, read and go; print and return what grew, and how soon the first rows came."""
    settings = Config(
        source=SourceConfig(uri=TONE),
        # The messages that are kept for latecomers are all there after the first few.
        publish=PublishConfig(endpoints=("tcp://127.0.0.1:*",), replay_mb=0.1),
        engine=EngineConfig("numpy"),
    )
    daemon = build_daemon(settings)
    daemon.start()
    try:
        while any(stats.computed for stats in daemon.stats()) or not daemon.stats()[0].messages:
            daemon.progress.wait(0.1)
        tracemalloc.start()
        waits = _cycles(daemon, max(20, n_cycles // 10))
        before = _holdings()
        waits += _cycles(daemon, n_cycles)
        after = _holdings()
    finally:
        daemon.stop()
    grown = {name: after[name] - before[name] for name in before}
    late = max(waits)
    print(
        f"{n_cycles} subscribers in turn: {json.dumps(grown)} more than after the first "
        f"{max(20, n_cycles // 10)}; first rows complete {late} samples, "
        f"{late / HOP:.2f} hops, after the demand at most, median {statistics.median(waits):.0f}"
    )
    if grown["descriptors"] or grown["threads"] or grown["traced_bytes"] > 200 * n_cycles:
        raise SystemExit(f"what {n_cycles} subscribers left behind grew: {json.dumps(grown)}")
    if late > 2 * HOP:
        raise SystemExit(f"a first row came {late} samples after the demand, not within {2 * HOP}")
    return {"what": "come and go", "cycles": n_cycles, "grown": grown, "late_samples_max": late}


def _cycles(daemon: Daemon, n_cycles: int) -> list[int]:
    """Return, of each subscriber, how many samples after the demand its first row was complete."""
    pipeline, feed = daemon.runners[0].pipeline, daemon.publisher.sources[0]
    assert pipeline is not None
    changed_at: list[int] = []

    def watched(products: frozenset[str]) -> None:
        pipeline.demand.want(products)
        if products:
            changed_at.append(pipeline.ring.written)

    feed._on_demand = watched  # noqa: SLF001 - the moment at which the publisher tells it
    waits = []
    for _ in range(n_cycles):
        with client.subscribe(
            daemon.publisher.endpoints[0], "spec/", timeout_s=_TIMEOUT_S
        ) as frames:
            header = next(frames).header
            waits.append(header.sample_index + header.win_length - changed_at[-1])
        while daemon.stats()[0].computed:
            daemon.progress.wait(0.001)
    feed._on_demand = pipeline.demand.want  # noqa: SLF001
    return waits


def _holdings() -> dict[str, int]:
    gc.collect()
    traced, _ = tracemalloc.get_traced_memory()
    return {
        "traced_bytes": traced,
        "resident_bytes": resident_bytes(),
        "descriptors": descriptors(os.getpid()),
        "threads": threading.active_count(),
    }


if __name__ == "__main__":
    main()
