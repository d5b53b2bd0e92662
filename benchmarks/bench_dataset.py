"""Memory and time of ``xarray.open_dataset`` with spectrod's engine, and of pyramids as Zarr.

    python benchmarks/bench_dataset.py [--days 30] [--json FILE]

It writes pyramids of so many days as the recorder does, one channel of 513 values: ``minutes`` has
cells from a minute on, each with a row of a second, ``seconds`` from a second on, with a row each
ten minutes; and six hours of rows a second apart as ``.spd``. Then it opens each in a process of
its own, and computes means over all rows. Memory is that of the process above what it has after
``import xarray`` and one small dataset with Dask: what stays (VmRSS) and the most there was
(VmHWM). ``mean_in_chunks`` opens with ``chunks={}``. Seconds are of the wall and of the processor;
the file system's cache is warm.

It also writes both pyramids as Zarr stores by ``spectrod convert``: memory is the most that the
process had, with Python, NumPy and zarr.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np

import _report  # isort: skip - finds the checkout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter

S = 10**9
BEGIN_NS = 1_767_225_600 * S
SPEC = SpectrumSpec(
    fs=48000.0, win_length=1024, hop=512, averaging="mean", rate_hz=1.0, align="utc"
)
ROWS = 3600

CHILD = """
    import json, sys, time
    import numpy as np, xarray

    def memory(name):
        line = next(one for one in open("/proc/self/status") if one.startswith(name))
        return int(line.split()[1]) / 1024

    path, small, cells = sys.argv[1:]
    settings = {"cells": cells} if cells else {}
    smallest = {"cells": "1d"} if cells else {}
    xarray.open_dataset(small, engine="spectrod", chunks={}, **smallest).mean("time").load()
    before, results = memory("VmRSS"), {}

    def measured(name, call):
        open("/proc/self/clear_refs", "w").write("5")  # the peak begins again
        wall, processor = time.perf_counter(), time.process_time()
        found = call()
        results[name] = {
            "wall_s": round(time.perf_counter() - wall, 3),
            "processor_s": round(time.process_time() - processor, 3),
            "memory_mb": round(memory("VmRSS") - before, 1),
            "memory_peak_mb": round(memory("VmHWM") - before, 1),
        }
        return found

    opened = measured("open", lambda: xarray.open_dataset(path, engine="spectrod", **settings))
    results["rows"] = opened.sizes["time"]
    one = measured("one_frequency_of_3600_rows", lambda: opened.psd[:3600, 0, 40].load())
    if opened.psd.size < 2e8:
        chunked = xarray.open_dataset(path, engine="spectrod", chunks={}, **settings)
        in_chunks = measured("mean_in_chunks", lambda: chunked.psd.mean("time").load())
        mean = measured("mean_of_all", lambda: opened.psd.mean("time").load())
        # Both add float32, in other orders: at most half an ulp of the sum for each row.
        rtol = len(opened.time) * np.finfo(np.float32).eps
        np.testing.assert_allclose(in_chunks, mean, rtol=rtol)
    print(json.dumps(results))
"""


def batches(n_rows: int, apart_s: int) -> Any:
    """Yield rows of noise, 3600 at a time."""
    rng = np.random.default_rng(1)
    noise = rng.uniform(1e-9, 1e-6, (ROWS, 1, SPEC.n_values)).astype(np.float32)
    for first in range(0, n_rows, ROWS):
        rows = np.arange(first, min(first + ROWS, n_rows), dtype=np.int64) * apart_s
        t_ns = BEGIN_NS + rows * S
        yield SpectrumBatch(noise[: len(rows)], rows * int(SPEC.fs), t_ns, t_ns, SPEC, "none")


def write(folder: Path, n_days: int) -> None:
    """Write a pyramid, a segment, and a small one of each."""
    about = Description(SPEC, "bench", ("0",), "benchmark")
    pyramids = (("minutes", 60.0, 1440 * n_days, 60), ("seconds", 1.0, 144 * n_days, 600))
    for name, finest_s, n_rows, apart_s in (*pyramids, ("small", 60.0, 60, 60)):
        writer = PyramidWriter(folder / name, about, PyramidOptions(finest_s, 0, 1e9))
        for batch in batches(n_rows, apart_s):
            writer.write(batch)
        writer.finish()
    for name, n_rows in (("hours.spd", 6 * ROWS), ("small.spd", ROWS)):
        segment = SegmentWriter(folder / name, about)
        for batch in batches(n_rows, 1):
            segment.write(batch)
        segment.finish()


def opened(folder: Path, name: str, small: str, cells: str) -> dict[str, Any]:
    """Open, select and average in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD)]
    command += [str(folder / name), str(folder / small), cells]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = {"opened": name, "cells": cells} | json.loads(done.stdout)
    return found


def converted(folder: Path, name: str) -> dict[str, Any]:
    """Write a Zarr store of all levels of a pyramid by the command, in a process of its own."""
    store = folder / f"{name}.zarr"
    command = [sys.executable, "-m", "spectrod", "convert", str(folder / name), str(store)]
    begin_s = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise subprocess.CalledProcessError(status, command)
    files = [one.stat().st_size for one in store.rglob("*") if one.is_file()]
    return {
        "converted": name,
        "wall_s": round(time.perf_counter() - begin_s, 1),
        "processor_s": round(used.ru_utime + used.ru_stime, 1),
        "memory_peak_mb": round(used.ru_maxrss / 1024, 1),
        "files": len(files),
        "size_mb": round(sum(files) / 1e6, 1),
    }


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    result = _report.new_report("dataset") | {"days": asked.days}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder, asked.days)
        for name, cells in (("seconds", "1s"), ("minutes", "1min"), ("minutes", "1h")):
            result["results"].append(opened(folder, name, "small", cells))
        result["results"].append(opened(folder, "hours.spd", "small.spd", ""))
        result["results"] += [converted(folder, name) for name in ("seconds", "minutes")]
    for one in result["results"]:
        print(json.dumps(one))
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
