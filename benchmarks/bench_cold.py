"""How long users wait with empty kernel caches, beside the NumPy engine and warm caches.

    python benchmarks/bench_cold.py [--repeats N] [--files N] [--only PART ...] [--json FILE]

``record``: 1.4 s of 16-bit noise to a picture, the whole process, with empty caches, with the
caches of the run before, and with ``--engine numpy``, in turns. ``many``: the same of many files of
3 s in one command; the process that it leaves to compile has ended before the next run. ``run``:
from the start of the process to a subscriber's first message, of which a frame of 4096 samples
alone lasts 85 ms. ``set``: from the request for a new window length to the first message with it,
what is missing between the last message before and the first one after, and how long it takes until
the device computes. The caches are empty folders for each process that is timed cold.
"""

import argparse
import fcntl
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile
from _report import new_report, write_report

from spectrod import client

_FS, _SECONDS, _SECONDS_OF_MANY = 48_000, 1.4, 3.0
_PARTS = ("record", "many", "run", "set")
_WIN_LENGTHS = (2048, 8192, 1024)
_MOVE_S = 120.0


@dataclass
class _Times:
    """Durations of the runs of one kind [s]."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, object]:
        """Return medians and all values."""
        return {
            "wall_s": round(statistics.median(self.wall_s), 3),
            "cpu_s": round(statistics.median(self.cpu_s), 3) if self.cpu_s else None,
            "all_wall_s": [round(one, 3) for one in self.wall_s],
        }


def main() -> None:
    """Measure everything, print it, and store it on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--files", type=int, default=150, metavar="N", help="of many")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=_PARTS)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("cold")
    with tempfile.TemporaryDirectory() as folder:
        if "record" in args.only:
            report["results"] += _record(Path(folder), args.repeats, 1, _SECONDS)
        if "many" in args.only:
            report["results"] += _record(Path(folder), args.repeats, args.files, _SECONDS_OF_MANY)
        if "run" in args.only:
            report["results"] += _run(Path(folder), args.repeats)
        if "set" in args.only:
            report["results"] += _set(Path(folder))
    for result in report["results"]:
        print(", ".join(f"{key}: {value}" for key, value in result.items()))
    if args.json:
        write_report(report, args.json)


def _environment(caches: Path) -> dict[str, str]:
    others = {name: text for name, text in os.environ.items() if name != "POCL_CACHE_DIR"}
    return others | {"XDG_CACHE_HOME": str(caches)}


def _new_caches(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder, prefix="caches"))


# ---- record


def _record(folder: Path, repeats: int, n_files: int, seconds: float) -> list[dict[str, object]]:
    paths = [folder / f"{seconds:g}s-{k:05}.wav" for k in range(n_files)]
    rng = np.random.default_rng(1)
    for path in paths:
        samples = rng.normal(0.0, 0.1, round(_FS * seconds))
        soundfile.write(path, samples, _FS, subtype="PCM_16")
    times = {name: _Times() for name in ("empty caches", "caches of that run", "NumPy engine")}
    for _ in range(repeats + 1):
        caches = _new_caches(folder)
        for name, flags in zip(times, ([], [], ["--engine", "numpy"]), strict=True):
            _time_record(paths, caches, flags, times[name])
    base = times["NumPy engine"]
    base_s, base_cpu_s = statistics.median(base.wall_s[1:]), statistics.median(base.cpu_s[1:])
    results = []
    for name, taken in times.items():
        del taken.wall_s[0], taken.cpu_s[0]  # files of the first turn came from the disk
        ratio = round(statistics.median(taken.wall_s) / base_s, 2)
        cpu_ratio = round(statistics.median(taken.cpu_s) / base_cpu_s, 2)
        ratios = {"ratio": ratio, "cpu_ratio": cpu_ratio}
        what = f"record of {n_files} files of {seconds:g} s, {name}"
        results.append({"what": what, **ratios, **taken.summary()})
    return results


def _time_record(paths: list[Path], caches: Path, flags: list[str], times: _Times) -> None:
    command = [sys.executable, "-m", "spectrod", "record", *map(str, paths)]
    output = "{stem}.png" if len(paths) > 1 else f"{paths[0].stem}.png"
    command += ["-o", str(paths[0].with_name(output)), "--log-level", "error", *flags]
    before_s, start_s = _children_cpu_s(), time.perf_counter()
    subprocess.run(command, check=True, env=_environment(caches))
    times.wall_s.append(time.perf_counter() - start_s)
    times.cpu_s.append(_children_cpu_s() - before_s)
    _await_compiler(caches / "spectrod" / "programs")


def _await_compiler(programs: Path) -> None:
    """Wait until the process that compiles for the next time has released the cache."""
    if programs.is_dir():
        handle = os.open(programs, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.close(handle)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---- run


@contextmanager
def _daemon(folder: Path, caches: Path, flags: list[str]) -> Iterator[str]:
    endpoint = f"ipc://{folder}/spectrum{time.monotonic_ns()}"
    config = folder / "spectrod.toml"
    config.write_text(
        f'[control]\nendpoints = ["{_control(endpoint)}"]\nstate_folder = "{folder}/state"\n'
    )
    command = [sys.executable, "-m", "spectrod", "run", "--show", "none", "--publish", endpoint]
    command += ["--config", str(config), "--source", "signal:sine,1000,-20"]
    daemon = subprocess.Popen([*command, "--log-level", "error", *flags], env=_environment(caches))
    try:
        yield endpoint
    finally:
        daemon.terminate()
        daemon.wait()


def _control(endpoint: str) -> str:
    return f"{endpoint}.control"


def _run(folder: Path, repeats: int) -> list[dict[str, object]]:
    times = {name: _Times() for name in ("empty caches", "warm caches", "NumPy engine")}
    warm = _new_caches(folder)
    for _ in range(repeats + 1):
        for name, taken in times.items():
            caches = warm if name == "warm caches" else _new_caches(folder)
            flags = ["--engine", "opencl"] if name == "warm caches" else []
            flags = ["--engine", "numpy"] if name == "NumPy engine" else flags
            taken.wall_s.append(_seconds_to_message(folder, caches, flags))
    results = []
    for name, taken in times.items():
        del taken.wall_s[0]
        results.append({"what": f"run to the first message, {name}", **taken.summary()})
    return results


def _seconds_to_message(folder: Path, caches: Path, flags: list[str]) -> float:
    start_s = time.perf_counter()
    with (
        _daemon(folder, caches, flags) as endpoint,
        client.subscribe(endpoint, timeout_s=120.0) as frames,
    ):
        next(frames)
        return time.perf_counter() - start_s


# ---- ctl set


def _set(folder: Path) -> list[dict[str, object]]:
    results: list[dict[str, object]] = []
    with (
        _daemon(folder, _new_caches(folder), []) as endpoint,
        client.subscribe(endpoint, timeout_s=120.0) as frames,
        client.Control(_control(endpoint), timeout_s=120.0) as control,
    ):
        last = next(frames)
        for win_length in _WIN_LENGTHS:
            start_s = time.perf_counter()
            control.call("set", changes={"analysis.win_length": win_length})
            results.append(_after_change(frames, last, win_length, start_s))
            last = next(frames)
    return results


def _after_change(
    frames: client.Subscription, last: client.Frame, win_length: int, start_s: float
) -> dict[str, object]:
    missing, moved_s = 0, None
    frame = next(frames)
    while frame.header.nfft != win_length:
        _check_time(start_s)
        missing += frame.header.gap_samples
        last, frame = frame, next(frames)
    first_s, first = time.perf_counter() - start_s, frame.header
    while moved_s is None:
        _check_time(start_s)
        missing += frame.header.gap_samples
        if frame.header.engine != "numpy":
            moved_s = round(time.perf_counter() - start_s, 2)
        frame = next(frames)
    # Fewer than a hop: the rest after the last whole frame.
    between = first.sample_index - last.header.sample_index - last.header.nfft
    return {
        "what": f"set win_length={win_length} to its first message",
        "wall_s": round(first_s, 3),
        "engine": first.engine,
        "hops_in_no_frame": round(between / last.header.hop, 2),
        "missing_samples": missing,
        "missed_messages": frames.missed,
        "on_the_device_after_s": moved_s,
    }


def _check_time(start_s: float) -> None:
    if time.perf_counter() - start_s > _MOVE_S:
        raise SystemExit(f"no message of the device within {_MOVE_S:g} s")


if __name__ == "__main__":
    main()
