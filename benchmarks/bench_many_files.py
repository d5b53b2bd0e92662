"""A picture of each of many short files: spectrod in one command beside SoX in a loop.

    python benchmarks/bench_many_files.py [--files N] [--seconds S] [--jobs N ...] [--json FILE]

All read the same 16-bit WAV files of 48 kHz mono, pink noise with a tone, and make pictures of the
same size with axes, SoX's default of 800 x 513. Programs take turns; SoX runs once for each file,
as in a shell's loop. The memory of spectrod's processes is read while they run: the largest one of
the first tenth of the time, and of all of it.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import new_report, write_report

_FS = 48_000
_SIZE = (800, 513)
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
        report["results"] = [_spectrod(folder, args.files, jobs) for jobs in args.jobs]
        if shutil.which("sox"):
            report["results"].append(_sox(folder, args.files))
        else:
            print("sox: not installed, left out")
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


def _spectrod(folder: Path, n_files: int, jobs: int) -> dict[str, object]:
    out = folder / f"jobs{jobs}"
    out.mkdir()
    size = ["--width", str(_SIZE[0]), "--height", str(_SIZE[1])]
    command = [sys.executable, "-m", "spectrod", "record", str(folder), "--each"]
    command += ["-o", f"{out}/", "--name", "{stem}.png", "--jobs", str(jobs), *size]
    samples: list[tuple[float, float]] = []
    start_s = time.perf_counter()
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            samples.append((time.perf_counter(), _largest_mb(process.pid)))
            time.sleep(_LOOK_S)
    wall_s = time.perf_counter() - start_s
    n_made = len(list(out.iterdir()))
    if process.returncode or n_made != n_files:
        raise SystemExit(f"spectrod: exit code {process.returncode}, {n_made} of {n_files} files")
    early = [mb for t, mb in samples if t < start_s + wall_s / 10.0]
    return {
        "program": f"spectrod --jobs {jobs}",
        "wall_s": round(wall_s, 2),
        "files_per_s": round(n_files / wall_s, 1),
        "first_tenth_mb": round(max(early, default=0.0), 1),
        "peak_mb": round(max(mb for _, mb in samples), 1),
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


def _sox(folder: Path, n_files: int) -> dict[str, object]:
    out = folder / "sox"
    out.mkdir()
    start_s = time.perf_counter()
    for path in sorted(folder.glob("*.wav")):
        command = ["sox", str(path), "-n", "spectrogram", "-o", str(out / f"{path.stem}.png")]
        subprocess.run(command, check=True)
    wall_s = time.perf_counter() - start_s
    return {
        "program": "sox in a loop",
        "wall_s": round(wall_s, 2),
        "files_per_s": round(n_files / wall_s, 1),
    }


if __name__ == "__main__":
    main()
