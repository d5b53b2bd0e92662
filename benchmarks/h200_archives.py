"""Archives on a large GPU: decoders beside it, where the time goes, and the processors alone.

Run it from a checkout with pyopencl, pyzmq, soundfile and h5netcdf installed:
``python benchmarks/h200_archives.py OUT.json``. It writes the report after each run of ``spectrod
batch run``, so that an interrupted one leaves what it has. Sound is noise with a tone, 16 bit,
48 kHz, mono, in files of an hour that are links to the same two: the file cache holds it all. The
files of all runs must be the same for the same engine. ``--gpus 2`` instead measures one GPU beside
half of the processors, and two beside all. ``--quick`` shows on any machine that the script works.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from _report import describe_device, new_report, write_report

from spectrod.opencl.devices import DeviceInfo, choose

FS = 48_000
HOURS = 24
"""Most hours of sound in a day, which is a unit."""
FIRST_DAY = np.datetime64("2026-05-01", "D")


@dataclass(frozen=True)
class Run:
    """A run: format of the files, units and hours of each, processes, decoders, what computes.

    With ``gpus``, all GPUs of the best one's name may compute, and ``processors`` do.
    """

    suffix: str
    days: int
    hours: int = HOURS
    jobs: int = 1
    decoders: int = 0
    engine: str = "opencl"
    device: str = ""
    gpus: int = 0
    processors: int = 0


RUNS = (
    Run("wav", 1, 1),  # compiles
    Run("wav", 4),
    Run("wav", 8, jobs=4),
    Run("wav", 16, jobs=8),
    Run("flac", 1, 6),
    Run("flac", 1, decoders=4),
    Run("flac", 4, decoders=15),
    Run("flac", 4, jobs=2, decoders=7),
    Run("flac", 8, jobs=4, decoders=3),
    Run("wav", 16, 4, jobs=16, engine="numpy"),
    Run("flac", 16, 4, jobs=16, engine="numpy"),
    Run("wav", 1, 1, device="portable"),  # compiles
    Run("wav", 16, 4, jobs=16, device="portable"),
    Run("flac", 16, 4, jobs=16, device="portable"),
)
_ONE = {"gpus": 1, "processors": (os.cpu_count() or 2) // 2}
_TWO = {"gpus": 2, "processors": os.cpu_count() or 2}
TWO_GPUS = (
    Run("wav", 4, 1, jobs=4, **_TWO),  # compiles
    *(Run("wav", 16, jobs=8, **_ONE), Run("wav", 32, jobs=16, **_TWO)) * 3,
    *(Run("flac", 8, jobs=4, decoders=3, **_ONE), Run("flac", 16, jobs=8, decoders=3, **_TWO)) * 2,
)
QUICK = (Run("wav", 2, 4), Run("flac", 1, 4), Run("flac", 1, 4, decoders=2))


def main() -> None:
    """Generate, run, compare and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="", help="of the runs that name none")
    parser.add_argument("--gpus", type=int, choices=(1, 2), default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="pattern of the runs' names")
    args = parser.parse_args()
    best = choose(args.device)
    report = new_report("h200_archives") | {"device": describe_device(best)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        minutes = 2 if args.quick else 60
        for suffix in ("wav", "flac"):
            _write_sound(folder / suffix, suffix, minutes)
        seen: dict[str, Any] = {}
        for run in QUICK if args.quick else TWO_GPUS if args.gpus == 2 else RUNS:
            if args.only and not re.search(args.only, str(run)):
                continue
            result = _measure(folder, run, best, minutes / 60 * run.hours * run.days, seen)
            report["results"].append(result)
            print(json.dumps(result), flush=True)
            write_report(report, args.out)


def _measure(
    folder: Path, run: Run, best: DeviceInfo, hours: float, seen: dict[str, Any]
) -> dict[str, Any]:
    output = folder / "results"
    job = _write_job(folder, run, output, best)
    command = [sys.executable, "-m", "spectrod", "batch"]
    _check([*command, "plan", str(job)])
    environment = dict(os.environ)
    if run.device == "portable":
        environment["POCL_MAX_PTHREAD_COUNT"] = "1"
    if run.gpus:
        command = ["taskset", "--cpu-list", f"0-{run.processors - 1}", *command]
    start_s = time.perf_counter()
    with _Usage() as usage:
        flags = ["--jobs", str(run.jobs), "--decoders", str(run.decoders)]
        _check([*command, "run", str(job), *flags], environment)
    wall_s = time.perf_counter() - start_s
    records = [json.loads(path.read_text()) for path in sorted(output.rglob("state/records/*/*"))]
    assert len(records) == run.days
    for one in records:
        assert one["state"] == "done", one["reason"]
        for file in one["outputs"]:
            key = f"{one['engine']} {file['path']} {run.suffix} {run.hours}"
            assert seen.setdefault(key, file["sha256"]) == file["sha256"], key
    costs = [one["costs"] for one in records]
    spent_s = sum(one["wall_s"] for one in costs)
    # The first unit of a process loads the driver.
    later = [3600 * hours / run.days / one["wall_s"] for one in costs[run.jobs :]]
    _check(["rm", "-r", str(output)])
    return {
        **{key: getattr(run, key) for key in ("suffix", "days", "jobs", "decoders")},
        **({"gpus": run.gpus, "processors": run.processors} if run.gpus else {}),
        "engine": records[0]["engine"],
        "hours": hours,
        "wall_s": round(wall_s, 2),
        "times_real_time": round(3600 * hours / wall_s),
        "times_real_time_of_later_units": (
            round(run.jobs * float(np.median(later))) if later else None
        ),
        "processor_s": round(sum(one["processor_s"] for one in costs), 2),
        "share_read_or_waited": round(sum(one["read_s"] for one in costs) / spent_s, 3),
        "share_analyse": round(sum(one["analyse_s"] for one in costs) / spent_s, 3),
        "share_write": round(sum(one["write_s"] for one in costs) / spent_s, 3),
        "peak_mb_of_a_process": round(max(one["memory_bytes"] for one in costs) / 1e6),
        "gpu_busy": usage.busy,
    }


class _Usage:
    """Share of time in which a kernel or a copy runs on the GPU, as its driver samples it."""

    busy: float | None = None
    _process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        query = "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "100"
        with suppress(OSError):  # no such program: no such GPU
            self._process = subprocess.Popen(
                ["nvidia-smi", *query],  # noqa: S607 - of the driver
                stdout=subprocess.PIPE,
                text=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        self._process.terminate()
        lines = self._process.communicate()[0].split()
        values = [int(line) for line in lines if line.isdecimal()]
        self.busy = round(float(np.mean(values)) / 100, 3) if values else None


def _check(command: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}: exit code {done.returncode}: {done.stderr[-2000:]}")


def _write_job(folder: Path, run: Run, output: Path, best: DeviceInfo) -> Path:
    files = "*" if run.hours == HOURS else f"*_0[0-{run.hours - 1}]*"
    days = [str(folder / run.suffix / _date(day) / files) for day in range(run.days)]
    best_name = best.label if run.gpus > 1 else best.number
    device = (run.device or best_name) if run.engine == "opencl" else ""
    path = folder / "job.toml"
    path.write_text(
        f'[job]\nname = "archive"\noutput = "{output}"\nproducts = ["millidecade"]\n'
        f'engine = "{run.engine}"\ndevice = "{device}"\n'
        f"[deployments.north]\ninputs = {json.dumps(days)}\n"
    )
    return path


def _write_sound(folder: Path, suffix: str, minutes: int) -> None:
    import soundfile  # noqa: PLC0415 - so that --help is quick

    folder.mkdir()
    rng = np.random.default_rng(1)
    n = 60 * FS
    shape = np.minimum(1.0, (100.0 / np.maximum(np.arange(n // 2 + 1) / 60.0, 1.0)) ** 0.5)
    tone = 0.02 * np.sin(2.0 * np.pi * 1234.5 / FS * np.arange(n))
    for k in range(2):
        path = folder / f"{k}.{suffix}"
        with soundfile.SoundFile(path, "w", FS, 1, "PCM_16") as file:
            for _ in range(minutes):
                noise = np.fft.irfft(shape * np.fft.rfft(rng.standard_normal(n)), n)
                file.write(tone + rng.uniform(0.02, 0.1) * noise)
    for day in range(max(run.days for run in (*RUNS, *TWO_GPUS))):
        (folder / _date(day)).mkdir()
        for hour in range(HOURS):
            source = folder / f"{(day + hour) % 2}.{suffix}"
            os.link(source, folder / _date(day) / f"{_date(day)}_{hour:02}0000.{suffix}")


def _date(day: int) -> str:
    return str(FIRST_DAY + np.timedelta64(day, "D")).replace("-", "")


if __name__ == "__main__":
    main()
