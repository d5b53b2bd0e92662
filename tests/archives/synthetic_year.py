"""A merged year of minutes in 2300 bands: ``python synthetic_year.py FOLDER DAYS`` prints its cost.

Days are links to one daily file with a minute of each half hour, so that the year costs little to
make; a merge reads and writes each of them in full.
"""

import datetime as dt
import os
import sys
import time
from pathlib import Path

import msgspec
import numpy as np

from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.apps.batch.job import Deployment, Job
from spectrod.apps.batch.merged import write_merged
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.products import minute_spec
from spectrod.apps.batch.results import OutputFile, UnitRecord, write_record
from spectrod.apps.batch.run import status_of
from spectrod.apps.batch.unit import file_digest, unit_digest
from spectrod.apps.batch.unit_settings import settings_of
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.millidecade import MillidecadeWriter

FS = 48_000.0
DAY_NS = 86_400 * 10**9
BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
MINUTES = range(0, 1440, 30)


def units_of(n_days):
    """Return the units of a year that begins on 1 January 2026, without pieces."""
    begin_ns = int(BEGIN.timestamp()) * 10**9
    return [
        Unit(
            deployment="north",
            name=f"{BEGIN + dt.timedelta(days=k):%Y%m%d}",
            begin_utc_ns=begin_ns + k * DAY_NS,
            start_utc_ns=begin_ns + k * DAY_NS,
            fs=FS, channels=1, n_samples=len(MINUTES) * 60 * int(FS), cost_s=1.0,
        )
        for k in range(n_days)
    ]  # fmt: skip


def compute(job, units):
    """Write the results of all units: one daily file, under all their names."""
    folder = Path(job.output) / "north"
    folder.mkdir(parents=True)
    settings = settings_of(job, units[0])
    spec = minute_spec(settings)
    writer = MillidecadeWriter(folder / "north.nc", settings.describe(spec), ExportOptions())
    rng = np.random.default_rng(1)
    at = units[0].begin_utc_ns + np.array(MINUTES, np.int64) * 60 * 10**9
    for t_ns in at:
        values = rng.gamma(2.0, 1e-6, (1, 1, spec.n_values)).astype(np.float32)
        t = np.array([t_ns])
        writer.write(SpectrumBatch(values, t * 0, t, t, spec, "numpy"))
    writer.finish()
    (first,) = writer.files
    size, sha256 = file_digest(first)
    for unit in units:
        path = folder / f"north_{unit.name}.nc"
        if path != first:
            os.link(first, path)
        output = OutputFile(
            product="millidecade", path=f"north/{path.name}", size=size, sha256=sha256
        )
        record = UnitRecord(
            deployment="north", unit=unit.name, digest=unit_digest(job, unit), state="done",
            begin_utc_ns=unit.begin_utc_ns, fs=FS, outputs=(output,),
        )  # fmt: skip
        write_record(FolderOutput(Path(job.output)), unit, record)


def peak_bytes():
    """Return the peak memory of this process, as resident [bytes]."""
    # ru_maxrss includes that of the program before exec.
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) << 10


def main(folder, n_days):
    deployment = Deployment(name="north", inputs=("/nowhere",))
    merged = ("zarr", "pyramid")
    job = Job(name="year", output=folder, deployments=(deployment,), merged=merged)
    units = units_of(n_days)
    compute(job, units)
    found = {"days": n_days, "peak_before": peak_bytes()}
    for name in ("first", "again", "one more"):
        if name == "one more":  # another day has changed
            record = Path(folder) / "state" / "records" / "north" / f"{units[-1].name}.json"
            record.unlink()
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        merged = list(write_merged(job, [status_of(job, unit) for unit in units]))
        found[name] = {
            "wall_s": round(time.perf_counter() - start_s, 2),
            "processor_s": round(time.process_time() - start_cpu_s, 2),
            "units": [(one.n_written, one.n_kept, one.n_missing) for one in merged],
        }
    found["peak"] = peak_bytes()
    for name in ("archive.zarr", "history"):
        files = [one.stat() for one in (Path(folder) / name).rglob("*") if one.is_file()]
        found[name] = sum(one.st_blocks for one in files) * 512
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
