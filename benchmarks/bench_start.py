"""How long users wait: for --help, and for a daemon's first message.

    python benchmarks/bench_start.py [--json FILE]

``--help`` is measured against ``python -c pass`` of the same interpreter, in turns. The first
message is measured from the start of the process ``spectrod run`` to a subscriber's receipt; the
daemon takes a test signal, whose first frame of 4096 samples alone lasts 85 ms.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from _report import new_report, write_report

from spectrod import client

_REPEATS = 15
_FIRST_MESSAGES = 5


def main() -> None:
    """Run both, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("start")
    report["results"] = [_help(), _first_message("warm caches")]
    with tempfile.TemporaryDirectory() as empty:
        # The kernel caches of pyopencl and PoCL start empty: what the very first start pays.
        report["results"].append(_first_message("cold caches", {"XDG_CACHE_HOME": empty}, 1))
    for result in report["results"]:
        print(", ".join(f"{key}: {value}" for key, value in result.items()))
    if args.json:
        write_report(report, args.json)


def _help() -> dict[str, object]:
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "spectrod --help": [sys.executable, "-m", "spectrod", "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(_REPEATS):
        for name, command in commands.items():
            start_s = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - start_s)
    bare_ms, help_ms = (statistics.median(times[name]) * 1e3 for name in commands)
    return {
        "what": "spectrod --help",
        "median_ms": round(help_ms, 1),
        "python_c_pass_ms": round(bare_ms, 1),
        "ratio": round(help_ms / bare_ms, 2),
    }


def _first_message(
    what: str, environment: dict[str, str] | None = None, repeats: int = _FIRST_MESSAGES
) -> dict[str, object]:
    times = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            times.append(_seconds_to_message(f"ipc://{folder}/spectrum", environment or {}))
    return {
        "what": f"process start to first message received, {what}",
        "median_ms": round(statistics.median(times) * 1e3),
        "all_ms": [round(seconds * 1e3) for seconds in times],
    }


def _seconds_to_message(endpoint: str, environment: dict[str, str]) -> float:
    command = [sys.executable, "-m", "spectrod", "run", "--show", "none", "--publish", endpoint]
    with client.subscribe(endpoint, timeout_s=60.0) as frames:
        start_s = time.perf_counter()
        daemon = subprocess.Popen(
            [*command, "--source", "signal:sine,1000,-20", "--log-level", "error"],
            env=os.environ | environment,
        )
        try:
            next(frames)
            return time.perf_counter() - start_s
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
