"""How fast recordings are exported and read back, and how large they become.

    python benchmarks/bench_export.py [--rows N] [--json FILE]

Rows are spectra of a voice-like noise: 1025 bins of a 2048-point transform at 48 kHz. The peer is
the same bytes written to a plain file by NumPy, and flushed to the disk as ours are. What is read
back is compared with what was written before a figure is printed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _report import new_report, write_report

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.export.export_options import ExportOptions
from spectrod.lib.output_formats import suffixes
from spectrod.recording.inputs import open_recording
from spectrod.recording.output_plan import make_data

EXPORT_SUFFIXES = suffixes(lambda one: one.content == "rows" and not one.recovery)
READABLE_SUFFIXES = suffixes(lambda one: one.reader and not one.recovery)

_BATCH_ROWS = 100
_PACKAGES = ("h5py", "h5netcdf", "zarr")


def main() -> None:
    """Measure every format with and without compression, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("export")
    batches = _batches(args.rows)
    n_bytes = sum(batch.values.nbytes for batch in batches)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        report["results"].append(_plain(Path(folder) / "plain", batches, n_bytes))
        for suffix in EXPORT_SUFFIXES:
            for compression in (0, 1) if suffix not in (".npy", ".csv") else (0,):
                path = Path(folder) / f"x{suffix}"
                report["results"].append(_format(path, compression, batches, n_bytes))
    report["results"] += [_import(package) for package in _PACKAGES]
    for result in report["results"]:
        print(", ".join(f"{key}: {value}" for key, value in result.items()))
    if args.json:
        write_report(report, args.json)


def _batches(n_rows: int) -> list[SpectrumBatch]:
    spec = SpectrumSpec(fs=48000.0, win_length=2048, hop=1024)
    rng = np.random.default_rng(1)
    slope = 1e-8 / (1.0 + np.arange(spec.n_values) / 20.0) ** 2
    batches = []
    for first in range(0, n_rows, _BATCH_ROWS):
        index = spec.hop * np.arange(first, min(n_rows, first + _BATCH_ROWS), dtype=np.int64)
        t_ns = 1_795_211_223_000_000_000 + index * 10**9 // 48000
        power = rng.exponential(size=(len(index), 1, spec.n_values)) * slope
        batches.append(SpectrumBatch(power.astype(np.float32), index, t_ns, t_ns, spec, "numpy"))
    return batches


def _seconds(call: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    call()
    return time.perf_counter() - start_s


def _plain(path: Path, batches: list[SpectrumBatch], n_bytes: int) -> dict[str, object]:
    def write() -> None:
        with path.open("wb") as file:
            for batch in batches:
                file.write(batch.values.data)
            file.flush()
            os.fsync(file.fileno())

    seconds = _seconds(write)
    n_rows = sum(batch.n_frames for batch in batches)
    path.unlink()
    return {"what": "plain file", "rows": n_rows, "write_mb_per_s": round(n_bytes / seconds / 1e6)}


def _format(
    path: Path, compression: int, batches: list[SpectrumBatch], n_bytes: int
) -> dict[str, object]:
    about = Description(batches[0].spec, "bench", ("1",), "spectrod")

    def write() -> None:
        writer = make_data(path, about, ExportOptions(compression=compression))
        for batch in batches:
            writer.write(batch)
        writer.finish()

    write()  # imports
    write_s = _seconds(write)
    n_rows = sum(batch.n_frames for batch in batches)
    size = sum(one.stat().st_size for one in [path, *path.rglob("*")] if one.is_file())
    result = {
        "what": f"{path.suffix} compression {compression}",
        "write_rows_per_s": round(n_rows / write_s),
        "write_mb_per_s": round(n_bytes / write_s / 1e6),
        "size_of_the_values": round(size / n_bytes, 3),
    }
    if path.suffix in READABLE_SUFFIXES:
        got: list[SpectrumBatch] = []
        result["read_rows_per_s"] = round(n_rows / _seconds(lambda: got.extend(_read(path))))
        same = b"".join(b.values.tobytes() for b in got) == b"".join(
            b.values.tobytes() for b in batches
        )
        if not same:
            raise SystemExit(f"{path.name}: what is read back is not what was written")
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    return result


def _read(path: Path) -> list[SpectrumBatch]:
    reader = open_recording(path)
    batches = list(reader.batches())
    reader.close()
    return batches


def _import(package: str) -> dict[str, object]:
    """Time the import of a package where NumPy is there already, in a process of its own."""
    program = (
        "import time, numpy; t = time.perf_counter(); "
        f"import {package}; print(time.perf_counter() - t)"
    )
    seconds = [
        float(
            subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
        )
        for _ in range(5)
    ]
    return {"what": f"import {package}", "median_ms": round(sorted(seconds)[2] * 1e3)}


if __name__ == "__main__":
    main()
