"""An hour of 48 kHz mono to a picture: spectrod beside SoX and FFmpeg, whole processes.

    python benchmarks/bench_record.py [--seconds S] [--repeats N] [--json FILE]

All read the same 16-bit WAV of pink noise and a tone that spectrod itself generates, use every
sample, and make a picture 1800 wide and 513 high (FFmpeg 512: at 513 it takes many minutes).
Before any time counts, the tone's level is read back from spectrod's picture. Peers that are not
installed are left out, and named.
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import new_report, write_report

from spectrod.record.picture.pixelmap import read_levels

_FS = 48_000
_TONE_HZ, _TONE_DBFS = 3000.0, -20.0


def main() -> None:
    """Generate, check, time, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("record")
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "hour.wav"
        _write_recording(wav, args.seconds)
        _check(wav, Path(folder))
        report["results"] = _time_all(_commands(wav, Path(folder)), args.repeats, args.seconds)
    if args.json:
        write_report(report, args.json)


def _write_recording(path: Path, seconds: int) -> None:
    import soundfile  # noqa: PLC0415 - so that --help is quick

    from spectrod.source.signal import SignalSource  # noqa: PLC0415

    blocks = [
        SignalSource(text, float(_FS), 1, "full").blocks(_FS)
        for text in (f"sine,{_TONE_HZ},{_TONE_DBFS}", "pink,-40")
    ]
    with soundfile.SoundFile(path, "w", _FS, 1, "PCM_16") as file:
        for _ in range(seconds):
            file.write(np.sum([next(block)[0] for block in blocks], axis=0))


def _commands(wav: Path, folder: Path) -> dict[str, list[str]]:
    picture = ["-o", f"{folder}/spectrod.png", "--width", "1800", "--height", "513"]
    record = [sys.executable, "-m", "spectrod", "record", str(wav), *picture]
    peers = {
        "spectrod": [*record, "--win-length", "1024"],
        "sox": f"sox {wav} -n spectrogram -x 1800 -y 513 -o {folder}/sox.png".split(),
        "ffmpeg": (
            f"ffmpeg -y -loglevel error -i {wav} "
            f"-lavfi showspectrumpic=s=1800x512 {folder}/ffmpeg.png"
        ).split(),
    }
    for name in [name for name, command in peers.items() if shutil.which(command[0]) is None]:
        print(f"{name}: not installed, left out")
        del peers[name]
    return peers


def _check(wav: Path, folder: Path) -> None:
    arguments = ["--window", "flattop", "--levels=-25,-15", "-o", f"{folder}/check.png"]
    command = [sys.executable, "-m", "spectrod", "record", str(wav), *arguments]
    subprocess.run([*command, "--win-length", "4096"], check=True)
    levels = read_levels(f"{folder}/check.png")
    level = levels.level[int(np.argmin(np.abs(levels.f - _TONE_HZ)))].mean()
    if abs(level - _TONE_DBFS) > 0.05:
        raise SystemExit(f"the tone reads {level:.3f} dBFS in the picture, not {_TONE_DBFS}")


def _time_all(
    commands: dict[str, list[str]], repeats: int, seconds: int
) -> list[dict[str, object]]:
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            start_s = time.perf_counter()
            subprocess.run(command, check=True)
            times[name].append(time.perf_counter() - start_s)
    own_s = statistics.median(times["spectrod"])
    results = []
    for name, all_s in times.items():
        median_s = statistics.median(all_s)
        results.append(
            {
                "what": name,
                "median_s": round(median_s, 2),
                "x_real_time": round(seconds / median_s),
                "times_spectrod": round(median_s / own_s, 2),
            }
        )
        print(results[-1])
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest resident memory of any of these processes: {peak_mb:.0f} MB")
    return results


if __name__ == "__main__":
    main()
