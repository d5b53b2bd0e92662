"""Events in hours of sound: ``spectrod detect`` by one process and by several, in turn.

    python benchmarks/bench_detect.py [--hours N] [--jobs N ...] [--rounds N] [--json FILE]

Files of an hour, 48 kHz, 16 bit, mono: noise with a tone of 4 kHz for half a second each 30 s.
``cpu_s`` is user and system time of all processes; other work on the machine changes it less than
``wall_s``. ``busiest_s`` is that of the process with most of it, read while it runs: what is left
to wait for where each process has a processor of its own. All runs find the same events.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from _report import new_report, write_report

_FS = 48_000
_PERIOD_S, _CALL_S = 30, 0.5
_LOOK_S = 0.1
"""Time between two looks at the processor times of processes that are still there [s]."""


def main() -> None:
    """Generate, time, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=2)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("events in recordings")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "hours"
        folder.mkdir()
        for hour in range(args.hours):
            _write_hour(folder / f"20260501_{hour:02}0000.wav", hour)
        runs = [_run(folder, jobs) for _ in range(args.rounds) for jobs in args.jobs]
    events = {run.pop("events") for run in runs}
    if len(events) != 1:
        raise SystemExit("the events of the runs differ")
    report["results"] = runs
    for run in runs:
        print(*(f"{key}: {value}" for key, value in run.items()), sep=", ")
    if args.json:
        write_report(report, args.json)


def _write_hour(path: Path, seed: int) -> None:
    import soundfile  # noqa: PLC0415 - so that --help is quick

    rng = np.random.default_rng(seed)
    t = np.arange(_PERIOD_S * _FS) / _FS
    call = np.where(t < _CALL_S, 0.1 * np.sin(2.0 * np.pi * 4000.0 * t), 0.0)
    with soundfile.SoundFile(path, "w", _FS, 1, "PCM_16") as file:
        for _ in range(3600 // _PERIOD_S):
            file.write(call + 0.01 * rng.standard_normal(len(t)))


def _run(folder: Path, jobs: int) -> dict[str, Any]:
    out = folder.parent / "events.csv"
    command = [sys.executable, "-m", "spectrod", "detect", str(folder), "--band", "3.5k..4.5k"]
    command += ["-o", str(out), "--jobs", str(jobs)]
    # A program as it is installed: with its compiled modules.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    used_s: dict[int, float] = {}
    before, start_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            used_s.update(_processor_times(process.pid))
            time.sleep(_LOOK_S)
    if process.returncode:
        raise SystemExit(f"spectrod detect: exit code {process.returncode}")
    wall_s = time.perf_counter() - start_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "jobs": jobs,
        "wall_s": round(wall_s, 1),
        "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "system_s": round(after.ru_stime - before.ru_stime, 1),
        "busiest_s": round(max(used_s.values()), 1),
        "events": out.read_bytes(),
    }


def _processor_times(pid: int) -> Iterator[tuple[int, float]]:
    """Yield a process and its children, with the processor time of each so far [s]."""
    with suppress(OSError, ValueError):  # it may have ended
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        yield pid, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _processor_times(int(child))


if __name__ == "__main__":
    main()
