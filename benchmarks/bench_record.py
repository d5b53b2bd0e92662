"""An hour of 48 kHz mono to a picture: spectrod beside SoX and FFmpeg, whole processes.

    python benchmarks/bench_record.py [--seconds S] [--repeats N] [--where] [--json FILE]

All read the same 16-bit WAV of pink noise and a tone that spectrod itself generates, use every
sample, and make a picture 1800 wide and 513 high (FFmpeg 512: at 513 it takes many minutes).
Before any time counts, the tone's level is read back from spectrod's picture. Programs take turns,
so that what else the machine does befalls all of them; a first turn of each does not count. Then
spectrod and SoX draw ten times as many seconds. Peers that are not installed are left out.
``--where`` says what one run of spectrod spends its time on.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from _report import new_report, write_report

from spectrod.formats.picture.pixelmap import read_levels

_FS = 48_000
_TONE_HZ, _TONE_DBFS = 3000.0, -20.0
_LONGER = 10
_WHERE = """
import sys, time
began = time.perf_counter()
marks = [("interpreter", began)]
from spectrod.analysis import engine
from spectrod.cli import main, record_samples as command
marks.append(("imports", time.perf_counter()))
def timed(name, what, command=command):
    function = getattr(command, name)
    def wrapped(*args, **keywords):
        marks.append(("setting up", time.perf_counter()))
        result = function(*args, **keywords)
        marks.append((what, time.perf_counter()))
        return result
    setattr(command, name, wrapped)
timed("preload_drivers", "opening the device", engine)
timed("open_engine", "opening the device")
timed("_run_to_the_end", "reading and analysing")
timed("finish_all", "drawing and writing")
assert main(sys.argv[1:]) == 0
marks.append(("closing", time.perf_counter()))
spent = {}
for (_, start), (what, end) in zip(marks, marks[1:]):
    spent[what] = spent.get(what, 0.0) + end - start
print(*(f"{what}={seconds:.4f}" for what, seconds in spent.items()), sep=";")
"""


@dataclass
class _Runs:
    """Times of the runs of one program."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_mb: float = 0.0


def main() -> None:
    """Generate, check, time, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--where", action="store_true", help="say where the time goes")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("record")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wav = folder / "hour.wav"
        _write_recording(wav, args.seconds)
        _check(wav, folder)
        results = _compare(_commands(wav, folder), args.repeats, args.seconds)
        if args.where:
            results.append(_where(wav, folder, args.repeats))
        results += _longer(wav, folder, args.repeats, args.seconds)
        report["results"] = results
    if args.json:
        write_report(report, args.json)


def _write_recording(path: Path, seconds: int, times: int = 1) -> None:
    import soundfile  # noqa: PLC0415 - so that --help is quick

    from spectrod.source.signal import SignalSource  # noqa: PLC0415

    blocks = [
        SignalSource(text, float(_FS), 1, "full").blocks(_FS)
        for text in (f"sine,{_TONE_HZ},{_TONE_DBFS}", "pink,-40")
    ]
    with soundfile.SoundFile(path, "w", _FS, 1, "PCM_16") as file:
        for _ in range(seconds * times):
            file.write(np.sum([next(block)[0] for block in blocks], axis=0))


def _record(wav: Path, picture: Path, *more: str) -> list[str]:
    size = ["--width", "1800", "--height", "513", "--win-length", "1024"]
    command = [sys.executable, "-m", "spectrod", "record", str(wav), "-o", str(picture)]
    return [*command, *size, *more]


def _commands(wav: Path, folder: Path) -> dict[str, list[str]]:
    commands = {
        "spectrod": _record(wav, folder / "spectrod.png"),
        "sox": f"sox {wav} -n spectrogram -x 1800 -y 513 -o {folder}/sox.png".split(),
        "ffmpeg": (
            f"ffmpeg -y -loglevel error -i {wav} "
            f"-lavfi showspectrumpic=s=1800x512 {folder}/ffmpeg.png"
        ).split(),
    }
    for name in [name for name, command in commands.items() if shutil.which(command[0]) is None]:
        print(f"{name}: not installed, left out")
        del commands[name]
    return commands


def _check(wav: Path, folder: Path) -> None:
    picture = folder / "check.png"
    command = [sys.executable, "-m", "spectrod", "record", str(wav), "-o", str(picture)]
    more = ["--window", "flattop", "--levels=-25,-15", "--win-length", "4096"]
    subprocess.run([*command, *more], check=True)
    levels = read_levels(picture)
    level = levels.level[int(np.argmin(np.abs(levels.f - _TONE_HZ)))].mean()
    if abs(level - _TONE_DBFS) > 0.05:
        raise SystemExit(f"the tone reads {level:.3f} dBFS in the picture, not {_TONE_DBFS}")


def _run(command: list[str], runs: _Runs) -> None:
    # Programs as they are installed: with their compiled modules.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    start_s = time.perf_counter()
    process = subprocess.Popen(command, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    runs.wall_s.append(time.perf_counter() - start_s)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with {process.returncode}")
    runs.cpu_s.append(usage.ru_utime + usage.ru_stime)
    runs.peak_mb = max(runs.peak_mb, usage.ru_maxrss * 1024 / 1e6)


def _compare(commands: dict[str, list[str]], repeats: int, seconds: int) -> list[dict[str, object]]:
    for command in commands.values():
        _run(command, _Runs())
    runs = {name: _Runs() for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            _run(command, runs[name])
    own_s = statistics.median(runs["spectrod"].wall_s)
    results = []
    for name, one in runs.items():
        results.append(_row(name, one, seconds) | {
            "times_spectrod": round(statistics.median(one.wall_s) / own_s, 2)
        })  # fmt: skip
        print(results[-1])
    return results


def _row(what: str, runs: _Runs, seconds: int) -> dict[str, object]:
    median_s = statistics.median(runs.wall_s)
    return {
        "what": what,
        "median_s": round(median_s, 3),
        "fastest_s": round(min(runs.wall_s), 3),
        "cpu_s": round(statistics.median(runs.cpu_s), 3),
        "peak_mb": round(runs.peak_mb, 1),
        "x_real_time": round(seconds / median_s),
    }


def _where(wav: Path, folder: Path, repeats: int) -> dict[str, object]:
    """Return the parts of the run of median length."""
    command = _record(wav, folder / "where.png")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    found = []
    for _ in range(repeats):
        start_s = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _WHERE, *command[3:]],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        parts = dict(part.split("=") for part in done.stdout.strip().split(";"))
        spent = {what: float(text) for what, text in parts.items()}
        spent["starting and ending Python"] = time.perf_counter() - start_s - sum(spent.values())
        found.append(spent)
    median = sorted(found, key=lambda one: sum(one.values()))[len(found) // 2]
    row: dict[str, object] = {"what": "where"}
    row |= {what: round(seconds, 3) for what, seconds in median.items()}
    print(row)
    return row


def _longer(wav: Path, folder: Path, repeats: int, seconds: int) -> list[dict[str, object]]:
    """Draw ten times as much, and say how the time grows beyond what a picture costs anyway."""
    long_wav = folder / "longer.wav"
    _write_recording(long_wav, seconds, _LONGER)
    peers = {name: one for name, one in _commands(long_wav, folder).items() if name == "sox"}
    short, whole, nothing = _Runs(), _Runs(), _Runs()
    peer_runs = {name: _Runs() for name in peers}
    for _ in range(repeats):
        _run(_record(wav, folder / "short.png", "--duration", str(seconds / 100)), nothing)
        _run(_record(wav, folder / "short.png"), short)
        _run(_record(long_wav, folder / "long.png"), whole)
        for name, command in peers.items():
            _run(command, peer_runs[name])
    base_s, own_s = statistics.median(nothing.wall_s), statistics.median(whole.wall_s)
    growth = (own_s - base_s) / (statistics.median(short.wall_s) - base_s)
    row = _row(f"spectrod, {_LONGER} times as long", whole, seconds * _LONGER)
    rows = [row | {"times_beyond_the_start": round(growth, 2)}]
    for name, one in peer_runs.items():
        row = _row(f"{name}, {_LONGER} times as long", one, seconds * _LONGER)
        ratio = statistics.median(one.wall_s) / own_s
        rows.append(row | {"times_spectrod": round(ratio, 2)})
    print(*rows, sep="\n")
    return rows


if __name__ == "__main__":
    main()
