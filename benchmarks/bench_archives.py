"""Days of sound files to daily files of hybrid-millidecade minutes: spectrod beside pbp and PyPAM.

    python benchmarks/bench_archives.py [--peers VENV] [--sections NAME ...] [--json FILE]

All read the same files of an hour, 16-bit, 48 kHz, mono, noise with a tone, made from a seed, and
write minutes of all bands to NetCDF. VENV is an environment with pbp and PyPAM, which
docs/benchmarks.md says how to make; without it spectrod runs alone. Each program is a process of
its own, and all it takes counts, imports too: processor time, wall time, and the memory of its
largest process; of ``spectrod batch``, plan and run. ``spectrod batch`` runs once before, on an
hour, so that its kernels are compiled. pbp reads FLAC too, PyPAM WAV alone. An hour is made once;
more hours are hard links.

``compare``: all programs on ``--hours``, factors of processor time, and differences of bands.
``workers``: ``--units`` units of an hour by one process on one processor, and by two on two.
``executors``: the same units by ``--executor local`` and ``dask``, with each number of ``--jobs``;
processor time of the units alone, and of all processes with their start.
``files``: ``--days`` days as files of a minute and as files of a day, sparse: all samples are 0;
the faster of two turns.
``day``: 24 hours by ``spectrod batch``, WAV and FLAC.
``disk``: from a disk of two recorders, ``--hours`` of each, to all results and the report of the
season by the two commands that docs/archives.md names, two processes.

A program that fails, or takes over ``--limit`` seconds, is a line of the report; the rest goes on.
"""

import argparse
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _report import new_report, write_report

_FS = 48_000
_HOURS_A_DAY = 24
_FIRST_DAY = np.datetime64("2026-05-01")
_ERROR_MAX_DB = 1e-5
_READ_BYTES = 1 << 22
_HEADER_BYTES = 80
_FILES_S = 60, 86400
_FILES_TURNS = 2
_FORMATS = ("wav", "flac")
_PEERS = {"pbp", "PyPAM"}

Result = dict[str, Any]


class ProgramError(Exception):
    """A program failed, or took too long."""


def main() -> None:
    """Generate, run, compare, print and optionally store."""
    sections = {
        "compare": _compare,
        "workers": _workers,
        "executors": _executors,
        "files": _files,
        "day": _day,
        "disk": _disk,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", metavar="VENV", type=Path)
    parser.add_argument("--sections", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--hours", type=int, default=1, help="of sound, of each recorder (1)")
    parser.add_argument("--units", type=int, default=48, help="of an hour, for workers (48)")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], help="of executors (1 2)")
    parser.add_argument("--days", type=int, default=1, help="as files; 7 are 10080 minutes (1)")
    parser.add_argument("--engine", default="auto", help="of spectrod (auto)")
    parser.add_argument("--limit", type=float, default=300.0, help="of a program [s] (300)")
    parser.add_argument("--folder", type=Path, help="for some GB of temporary files")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if not 1 <= args.hours <= _HOURS_A_DAY:
        parser.error(f"--hours {args.hours}: must be 1 to {_HOURS_A_DAY}")
    report = new_report("archives")
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        _write_hours(folder)
        report["load_before"] = os.getloadavg()
        _compile(folder, args)
        for section in args.sections:
            place = folder / section
            place.mkdir()
            try:
                found = sections[section](place, args)
            except ProgramError as error:
                found = [{"failed": str(error)}]
            for part in found:
                result = {"section": section} | part
                print(*(f"{key}: {value}" for key, value in result.items()), sep=", ", flush=True)
                report["results"].append(result)
            if args.json:
                write_report(report, args.json)


# ---- sections


def _compare(folder: Path, args: argparse.Namespace) -> list[Result]:
    results = []
    for suffix in _FORMATS:
        place = folder / suffix
        sound = _linked_hours(place / "sound", suffix, args.hours)
        found = {"batch": _batch(place, sound, args, args.hours)}
        found["batch"] |= _shares(place, sound)
        found["record"] = _record(place / "ours.nc", sound, args) | {"hours": args.hours}
        own = _minutes(place / "results" / "d" / f"d_{_date(0)}.nc", args.hours)
        recorded = _minutes(place / f"ours_{_date(0)}.nc", args.hours)
        found["record"]["equals_batch"] = bool(np.array_equal(own, recorded, equal_nan=True))
        for peer, command, path in _peers(place, sound, suffix, args) if args.peers else []:
            try:
                found[peer] = _run(peer, command, args.limit)
                found[peer] |= _differences(own, _minutes(path, args.hours))
            except (ProgramError, OSError) as error:
                results.append({"program": peer, "files": suffix, "failed": str(error)})
                found.pop(peer, None)  # what it took for a wrong result does not count
        for name, result in found.items():
            rate = 3600.0 * args.hours / result["cpu_s"]
            result["times_real_time_per_core"] = round(rate)
            for peer in () if name in _PEERS else _PEERS & found.keys():
                for key in ("cpu_s", "peak_mb"):
                    result[f"{peer}_{key}_over_this"] = round(found[peer][key] / result[key], 2)
            results.append({"program": name, "files": suffix, "hours": args.hours} | result)
    return results


def _workers(folder: Path, args: argparse.Namespace) -> list[Result]:
    sound = _linked_hours(folder / "sound", "wav", args.units)
    results = []
    processors = sorted(os.sched_getaffinity(0))
    for jobs in (1, 2):
        place = folder / str(jobs)
        place.mkdir()
        os.sched_setaffinity(0, processors[:jobs])  # of the program too, which inherits it
        result = _batch(place, sound, args, args.units, jobs=jobs)
        os.sched_setaffinity(0, processors)
        records = _records(place)
        begins = [one["finished_utc_ns"] - round(1e9 * one["costs"]["wall_s"]) for one in records]
        ends = [one["finished_utc_ns"] for one in records]
        result["units_wall_s"] = round((max(ends) - min(begins)) / 1e9, 2)
        results.append({"program": "batch", "jobs": jobs, "units": len(records)} | result)
    one, two = results
    for key in ("wall_s", "units_wall_s"):
        two[f"{key}_efficiency"] = round(one[key] / (2.0 * two[key]), 3)
    return results


def _executors(folder: Path, args: argparse.Namespace) -> list[Result]:
    sound = _linked_hours(folder / "sound", "wav", args.units)
    results = []
    for jobs in args.jobs:
        of_units_s = {}
        for executor in ("local", "dask"):
            place = folder / f"{executor}-{jobs}"
            place.mkdir()
            more = ["--executor", executor]
            result = _batch(place, sound, args, args.units, jobs=jobs, more=more)
            costs = [one["costs"] for one in _records(place)]
            of_units_s[executor] = sum(one["processor_s"] for one in costs)
            result["units_cpu_s"] = round(of_units_s[executor], 2)
            results.append({"executor": executor, "jobs": jobs, "units": len(costs)} | result)
        results[-1]["units_cpu_over_local"] = round(of_units_s["dask"] / of_units_s["local"], 3)
    return results


def _files(folder: Path, args: argparse.Namespace) -> list[Result]:
    hours = args.days * _HOURS_A_DAY
    sounds = {n_seconds: folder / f"{n_seconds}" / "sound" for n_seconds in _FILES_S}
    for n_seconds, sound in sounds.items():
        sound.mkdir(parents=True)
        for k in range(args.days * 86400 // n_seconds):
            begin = _FIRST_DAY.astype("M8[s]") + k * n_seconds
            name = str(begin).replace("-", "").replace(":", "").replace("T", "_")
            # Links to one file would stay in the page cache, and a day's file would not.
            _write_silence(sound / f"{name}.wav", n_seconds)
    # In turns: the first use of memory for the page cache is slow in a virtual machine.
    found: dict[int, list[Result]] = {n_seconds: [] for n_seconds in _FILES_S}
    for turn in range(_FILES_TURNS):
        for n_seconds, sound in sounds.items():
            place = sound.parent / str(turn)
            place.mkdir()
            found[n_seconds].append(_batch(place, sound, args, hours))
    results = []
    for n_seconds, turns in found.items():
        best = min(turns, key=lambda result: result["cpu_s"])
        best["cpu_s_per_hour"] = round(best["cpu_s"] / hours, 4)
        n_files = args.days * 86400 // n_seconds
        results.append({"program": "batch", "files": n_files, "of_s": n_seconds} | best)
    minutes, days = results
    minutes["over_files_of_a_day"] = round(minutes["cpu_s"] / days["cpu_s"], 3)
    return results


def _day(folder: Path, args: argparse.Namespace) -> list[Result]:
    results = []
    for suffix in _FORMATS:
        place = folder / suffix
        sound = _linked_hours(place / "sound", suffix, _HOURS_A_DAY)
        result = _batch(place, sound, args, _HOURS_A_DAY) | _shares(place, sound)
        results.append({"program": "batch", "files": suffix, "hours": _HOURS_A_DAY} | result)
    return results


def _disk(folder: Path, args: argparse.Namespace) -> list[Result]:
    disk = folder / "disk"
    # Of two formats: the same files in two deployments are a finding.
    for name, suffix in zip(("north", "south"), _FORMATS, strict=True):
        _linked_hours(disk / name, suffix, args.hours)
    spectrod = [sys.executable, "-m", "spectrod", "batch"]
    job = folder / "job.toml"
    init = [*spectrod, "init", str(disk), "-o", str(job)]
    run = [*spectrod, "run", str(job), "--jobs", "2"]
    results = []
    for command in (init, run):
        name = f"spectrod batch {command[4]}"
        results.append({"program": name, "hours": 2 * args.hours} | _run(name, command, args.limit))
    reports = list(folder.glob("**/report.html"))
    if len(reports) != 1:
        raise ProgramError(f"spectrod batch run: {len(reports)} reports; must be one")
    made = [path for path in reports[0].parent.rglob("*") if path.is_file()]
    results[-1] |= {
        "files": len([path for path in made if "state" not in path.parts]),
        "both_wall_s": round(sum(one["wall_s"] for one in results), 2),
    }
    return results


# ---- sound


def _write_hours(folder: Path) -> None:
    """Write an hour of sound, as WAV and as FLAC."""
    import soundfile  # noqa: PLC0415 - so that --help is quick

    rng = np.random.default_rng(1)
    n = 60 * _FS
    shape = np.minimum(1.0, (100.0 / np.maximum(np.arange(n // 2 + 1) / 60.0, 1.0)) ** 0.5)
    tone = 0.02 * np.sin(2.0 * np.pi * 1234.5 / _FS * np.arange(n))
    files = [
        soundfile.SoundFile(folder / f"hour.{suffix}", "w", _FS, 1, "PCM_16") for suffix in _FORMATS
    ]
    for _ in range(60):
        noise = np.fft.irfft(shape * np.fft.rfft(rng.standard_normal(n)), n)
        samples = tone + rng.uniform(0.02, 0.1) * noise
        for file in files:
            file.write(samples)
    for file in files:
        file.close()


def _compile(folder: Path, args: argparse.Namespace) -> None:
    """Compute an hour, with the kernels that all sections use."""
    place = folder / "compile"
    _batch(place, _linked_hours(place / "sound", "wav", 1), args, 1)


def _linked_hours(folder: Path, suffix: str, n_hours: int) -> Path:
    """Make a folder of consecutive hours."""
    folder.mkdir(parents=True)
    hour = next(place / f"hour.{suffix}" for place in folder.parents if _has_hours(place))
    for k in range(n_hours):
        name = f"{_date(k // _HOURS_A_DAY)}_{k % _HOURS_A_DAY:02}0000.{suffix}"
        (folder / name).hardlink_to(hour)
    return folder


def _has_hours(folder: Path) -> bool:
    return (folder / "hour.wav").exists()


def _write_silence(path: Path, n_seconds: int) -> Path:
    """Write an RF64 file, as a day needs, whose samples are a hole: it takes no room on disk."""
    n_samples = n_seconds * _FS
    n_bytes = 2 * n_samples
    sizes = struct.pack("<QQQI", _HEADER_BYTES - 8 + n_bytes, n_bytes, n_samples, 0)
    form = struct.pack("<HHIIHH", 1, 1, _FS, 2 * _FS, 2, 16)
    header = b"RF64\xff\xff\xff\xffWAVE"
    header += b"ds64" + struct.pack("<I", len(sizes)) + sizes
    header += b"fmt " + struct.pack("<I", len(form)) + form + b"data\xff\xff\xff\xff"
    path.write_bytes(header)
    os.truncate(path, len(header) + n_bytes)
    return path


def _date(day: int) -> str:
    return str(_FIRST_DAY + day).replace("-", "")


# ---- programs


def _record(path: Path, sound: Path, args: argparse.Namespace) -> Result:
    command = [sys.executable, "-m", "spectrod", "record", str(sound), "--engine", args.engine]
    command += ["--profile", "millidecade", "-o", str(path)]
    return _run("spectrod record", command, args.limit)


def _batch(
    folder: Path,
    sound: Path,
    args: argparse.Namespace,
    hours: float,
    *,
    jobs: int = 0,
    more: Sequence[str] = (),
) -> Result:
    """Plan and run a job of the minutes of a folder; return what both took.

    With ``jobs``, units are hours, and PoCL has one thread in each process.
    """
    job = folder / "job.toml"
    lines = ["[job]", 'name = "bench"', 'output = "results"', 'products = ["millidecade"]']
    lines += [
        f'unit = "{"hour" if jobs else "day"}"',
        f'engine = "{args.engine}"',
        "[deployments.d]",
    ]
    lines += [f"inputs = [{json.dumps(str(sound))}]", ""]
    job.write_text("\n".join(lines))
    threads = {"POCL_MAX_PTHREAD_COUNT": "1"} if jobs else {}
    command = [sys.executable, "-m", "spectrod", "batch"]
    plan = _run("spectrod batch plan", [*command, "plan", str(job)], args.limit)
    run = [*command, "run", str(job), "--jobs", str(jobs or 1), *more]
    result = _run("spectrod batch run", run, args.limit, threads)
    return {
        "cpu_s": round(plan["cpu_s"] + result["cpu_s"], 2),
        "wall_s": round(plan["wall_s"] + result["wall_s"], 2),
        "plan_cpu_s": plan["cpu_s"],
        "peak_mb": max(plan["peak_mb"], result["peak_mb"]),
        "times_real_time_per_core": round(3600.0 * hours / (plan["cpu_s"] + result["cpu_s"])),
    }


def _records(folder: Path) -> list[Result]:
    found = sorted((folder / "results" / "state" / "records").rglob("*"))
    return [json.loads(path.read_bytes()) for path in found if path.is_file()]


def _shares(folder: Path, sound: Path) -> Result:
    """Return where the wall time of the units went [s], and how long the bytes alone take."""
    costs = [one["costs"] for one in _records(folder)]
    start_s = time.perf_counter()
    for path in sound.iterdir():
        with path.open("rb", buffering=0) as file:
            while file.read(_READ_BYTES):
                pass
    parts = {
        f"units_{key}": round(sum(one[key] for one in costs), 2)
        for key in ("processor_s", "wall_s", "read_s", "analyse_s", "write_s")
    }
    return parts | {"bytes_alone_s": round(time.perf_counter() - start_s, 2)}


def _peers(
    folder: Path, sound: Path, suffix: str, args: argparse.Namespace
) -> list[tuple[str, list[str], Path]]:
    """Return the name, the command and the output of each other program."""
    entries = [
        {
            "uri": path.as_uri(),
            "duration_secs": 3600,
            "start": f"{_FIRST_DAY}T{path.stem[9:11]}:00:00Z",
        }
        for path in sorted(sound.iterdir())
    ]
    listed = folder / "json" / _date(0)[:4] / f"{_date(0)}.json"
    listed.parent.mkdir(parents=True)
    listed.write_text(json.dumps(entries))
    programs = args.peers / "bin"
    pbp = [str(programs / "pbp-hmb-gen"), "--json-base-dir", str(folder / "json")]
    pbp += ["--date", _date(0), "--output-dir", str(folder), "--output-prefix", "pbp_"]
    # Full scale is 1: the NetCDF file is not written without a sensitivity.
    pbp += ["--sensitivity-flat-value", "0"]
    found = [("pbp", pbp, folder / f"pbp_{_date(0)}.nc")]
    if suffix == "wav":
        script = Path(__file__).with_name("_pypam_minutes.py")
        out = folder / "pypam.nc"
        command = [str(programs / "python"), str(script), str(sound), str(out)]
        found.append(("PyPAM", command, out))
    return found


def _run(
    name: str, command: list[str], limit_s: float, variables: dict[str, str] | None = None
) -> Result:
    """Run a program; return what it and its children took."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    start_s = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            env=environment | (variables or {}),
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        # Its processes, too, and only these: they have a group of their own.
        timer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            text = said.read().decode(errors="replace")[-2000:]
            raise ProgramError(f"{name}: exit code {process.returncode}: {text}")
    return {
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "wall_s": round(time.perf_counter() - start_s, 2),
        "peak_mb": round(used.ru_maxrss * 1024 / 1e6),
    }


# ---- results


def _differences(own: np.ndarray, theirs: np.ndarray) -> Result:
    error_db = np.abs(own - theirs)[np.isfinite(theirs).all(axis=1)]
    return {
        "minutes": len(error_db),
        "bands": error_db.shape[1],
        "largest_difference_db": float(error_db.max(initial=0.0)),
        "share_within_1e-5_db": round(float((error_db <= _ERROR_MAX_DB).mean()), 6),
    }


def _minutes(path: Path, hours: int) -> np.ndarray:
    import h5py  # noqa: PLC0415 - so that --help is quick

    with h5py.File(path) as file:
        psd: np.ndarray = file["psd"][: 60 * hours].astype(np.float64)
    return psd


if __name__ == "__main__":
    main()
