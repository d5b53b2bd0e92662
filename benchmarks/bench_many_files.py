"""A picture of each of many short files: spectrod in one command beside SoX in a loop.

    python benchmarks/bench_many_files.py [--files N] [--seconds S] [--jobs N ...] [--json FILE]

All read the same 16-bit WAV files of 48 kHz mono, pink noise with a tone, and make palette PNGs
with axes around a plot of SoX's default size, 800 x 513. SoX transforms 1024 points; so does
spectrod, and once more its own default of 2048. SoX runs once for each file, as in a shell's loop.
``cpu_ms`` is processor time a file of all processes, which other work on the machine changes less
than time. ``page`` is the size of a whole picture [px], ``kb`` its mean file size. The memory of
spectrod's processes is read while they run: the largest one of the first tenth of the time, and of
all of it.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from _report import new_report, write_report
from PIL import Image

_FS = 48_000
_SIZE = (800, 513)
_WIN_LENGTHS = (1024, 2048)
_LOOK_S = 0.05


def main() -> None:
    """Generate, time, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("many files")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_files(folder, args.files, args.seconds)
        runs = [(jobs, win_length) for win_length in _WIN_LENGTHS for jobs in args.jobs]
        report["results"] = [_spectrod(folder, args.files, *run) for run in runs]
        if shutil.which("sox"):
            sox = _sox(folder, args.files)
            for result in report["results"]:
                result["sox_over_this"] = round(float(sox["wall_s"]) / float(result["wall_s"]), 2)
            report["results"].append(sox)
        else:
            print("sox: not installed, left out")
    report["compressor"] = "ISA-L" if find_spec("isal") else "zlib"
    print(f"PNG of spectrod compressed by {report['compressor']}")
    for result in report["results"]:
        print(*(f"{key}: {value}" for key, value in result.items()), sep=", ")
    if args.json:
        write_report(report, args.json)


def _write_files(folder: Path, n_files: int, seconds: float) -> None:
    import soundfile  # noqa: PLC0415 - so that --help is quick

    rng = np.random.default_rng(1)
    n = round(seconds * _FS)
    tone = 0.1 * np.sin(2.0 * np.pi * 3000.0 / _FS * np.arange(n))
    shape = 1.0 / np.sqrt(np.maximum(np.arange(n // 2 + 1), 1.0))
    for k in range(n_files):
        noise = np.fft.irfft(shape * np.fft.rfft(rng.standard_normal(n)), n)
        soundfile.write(folder / f"{k:05}.wav", tone + 0.01 * noise / noise.std(), _FS, "PCM_16")


def _spectrod(folder: Path, n_files: int, jobs: int, win_length: int) -> dict[str, Any]:
    out = folder / f"jobs{jobs}-{win_length}"
    out.mkdir()
    size = ["--width", str(_SIZE[0]), "--height", str(_SIZE[1]), "--win-length", str(win_length)]
    command = [sys.executable, "-m", "spectrod", "record", str(folder), "--each"]
    command += ["-o", f"{out}/", "--name", "{stem}.png", "--jobs", str(jobs), *size]
    samples: list[tuple[float, float]] = []
    before_s, start_s = _children_cpu_s(), time.perf_counter()
    # A program as it is installed: with its compiled modules.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    with subprocess.Popen(command, env=environment) as process:
        while process.poll() is None:
            samples.append((time.perf_counter(), _largest_mb(process.pid)))
            time.sleep(_LOOK_S)
    wall_s = time.perf_counter() - start_s
    n_made = len(list(out.iterdir()))
    if process.returncode or n_made != n_files:
        raise SystemExit(f"spectrod: exit code {process.returncode}, {n_made} of {n_files} files")
    early = [mb for t, mb in samples if t < start_s + wall_s / 10.0]
    return {
        "program": f"spectrod --jobs {jobs} --win-length {win_length}",
        "wall_s": round(wall_s, 2),
        **_pictures(out, n_files, before_s),
        "files_per_s": round(n_files / wall_s, 1),
        "first_tenth_mb": round(max(early, default=0.0), 1),
        "peak_mb": round(max(mb for _, mb in samples), 1),
    }


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pictures(out: Path, n_files: int, cpu_before_s: float) -> dict[str, object]:
    """Return processor time and files of the program that has just ended."""
    paths = sorted(out.iterdir())
    with Image.open(paths[0]) as image:
        page = f"{image.width}x{image.height} {image.mode}"
    return {
        "cpu_ms": round(1e3 * (_children_cpu_s() - cpu_before_s) / n_files, 1),
        "page": page,
        "kb": round(sum(path.stat().st_size for path in paths) / n_files / 1e3, 1),
    }


def _largest_mb(pid: int) -> float:
    """Return the resident memory of the largest child of a process."""
    largest = 0.0
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            for line in Path(f"/proc/{child}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    largest = max(largest, int(line.split()[1]) / 1e3)
    except OSError:  # it has ended meanwhile
        pass
    return largest


def _sox(folder: Path, n_files: int) -> dict[str, Any]:
    out = folder / "sox"
    out.mkdir()
    before_s, start_s = _children_cpu_s(), time.perf_counter()
    for path in sorted(folder.glob("*.wav")):
        command = ["sox", str(path), "-n", "spectrogram", "-o", str(out / f"{path.stem}.png")]
        subprocess.run(command, check=True)
    wall_s = time.perf_counter() - start_s
    return {
        "program": "sox in a loop",
        "wall_s": round(wall_s, 2),
        **_pictures(out, n_files, before_s),
        "files_per_s": round(n_files / wall_s, 1),
    }


if __name__ == "__main__":
    main()
