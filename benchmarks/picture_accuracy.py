"""How far pictures that an OpenCL device draws differ from those that NumPy draws.

    python benchmarks/picture_accuracy.py [--device NAME] [--json FILE]

Ten minutes of noise and a tone, with half a minute of digital silence, to pictures of several axes,
poolings and scalings: as PNG, whose pixels are one of 240 colours, and as PGM, with 16 bits.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile as sf
from _report import Report, describe_device, new_report, write_report

from spectrod.formats.picture.pixelmap import read_levels
from spectrod.opencl.devices import choose

_FS = 48000
_SECONDS = 600
_LEVELS_DB = (-120, 0)
_CASES = {
    "linear": [],
    "log": ["--f-scale", "log"],
    "mel": ["--f-scale", "mel"],
    "octave": ["--f-scale", "octave"],
    "max": ["--pool", "max"],
    "min": ["--pool", "min"],
    "density": ["--scaling", "density"],
    "hop 1000": ["--win-length", "4096", "--hop", "1000"],
}


def main() -> None:
    """Draw each picture by both, print how they differ and optionally store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="", help="part of PLATFORM/DEVICE")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("picture_accuracy")
    report["device"] = describe_device(choose(args.device))
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "x.wav"
        sf.write(wav, _samples(), _FS, subtype="PCM_16")
        for case, flags in _CASES.items():
            for suffix, n_levels in (("png", 240), ("pgm", 65535)):
                result: Report = {"case": case, "suffix": suffix}
                result |= _difference(wav, suffix, flags, args.device, n_levels)
                print(", ".join(f"{key}: {value}" for key, value in result.items()), flush=True)
                report["results"].append(result)
    if args.json:
        write_report(report, args.json)


def _samples() -> np.ndarray:
    rng = np.random.default_rng(5)
    samples = rng.normal(scale=0.05, size=_FS * _SECONDS)
    samples += 0.1 * np.sin(2.0 * np.pi * 1000.0 * np.arange(len(samples)) / _FS)
    samples[_FS * 100 : _FS * 130] = 0.0
    return samples.astype(np.float32)


def _difference(wav: Path, suffix: str, flags: list[str], device: str, n_levels: int) -> Report:
    by_device = _draw(wav, f"device.{suffix}", [*flags, "--engine=opencl", f"--device={device}"])
    by_numpy = _draw(wav, f"numpy.{suffix}", [*flags, "--engine=numpy"])
    assert np.array_equal(np.isnan(by_device), np.isnan(by_numpy)), "gaps differ"
    step_db = (_LEVELS_DB[1] - _LEVELS_DB[0]) / (n_levels - 1)
    steps = np.rint(np.abs(by_device - by_numpy)[~np.isnan(by_numpy)] / step_db)
    return {
        "step_db": step_db,
        "most_steps": float(steps.max()),
        "pixels_that_differ": float(np.mean(steps > 0.0)),
    }


def _draw(wav: Path, name: str, flags: list[str]) -> np.ndarray:
    path = wav.with_name(name)
    levels = "--levels={},{}".format(*_LEVELS_DB)
    code = "from spectrod.cli import command; raise SystemExit(command())"
    subprocess.run(
        [sys.executable, "-c", code, "record", wav, "-o", path, levels, *flags], check=True
    )
    return read_levels(path).level


if __name__ == "__main__":
    main()
