"""How long an archive in an object store takes with many workers, and what holds them up.

    python benchmarks/model_archives.py RESULTS [--hours H] [--workers N ...] [--json FILE]

RESULTS is the folder of the results of a job that was computed and merged, as a day of the archive:
its ``plan.jsonl`` and ``summary.json`` hold what was measured: processor time, bytes, files and
results of an hour of sound. The options are the store, the network and the scheduler; their
defaults are stated in ``_PLACE`` with where they come from. The stages of a run overlap, so the
longest one is its time.
"""

import argparse
import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
from _report import new_report, write_report

from spectrod.source.store.remote_file import AHEAD_MAX, BLOCK_BYTES, SMALL_BYTES

_CHECK_REQUESTS = 4
"""Requests for a piece beside its samples: both ends for the check, the header, opening."""
_PLAN_REQUESTS, _PLAN_THREADS = 2, 8
_SYNCED_FILES = 2
"""Synchronised files of a unit beside its products: record and folder."""


@dataclass(frozen=True)
class Costs:
    """What was measured: of an hour of sound, unless it is of a unit or a piece.

    Attributes
    ----------
    processor_s : float
        Processor time [s].
    read_bytes : float
        Bytes of input files.
    pieces, units : float
        Pieces of files, and units.
    result_bytes, result_files : float
        Bytes and number of the files of results.
    """

    processor_s: float
    read_bytes: float
    pieces: float
    units: float
    result_bytes: float
    result_files: float


@dataclass(frozen=True)
class Place:
    """Where it runs. Assumed, to be replaced by what the place measures; ``--KEY VALUE``."""

    latency_s: float = 0.03
    """Until the first byte of a request; object stores in the same region take 20 to 50 ms."""
    connection_bytes_s: float = 50e6
    """Of one request: 400 Mbit/s."""
    worker_bytes_s: float = 150e6
    """Of one worker: a core's share of a machine's network, 1.2 Gbit/s."""
    store_bytes_s: float = 12.5e9
    """Of the store to all workers: 100 Gbit/s."""
    store_requests_s: float = 5500.0
    """Of the store: what S3 states for one prefix."""
    dispatch_s: float = 0.009
    """Of Dask's scheduler and the submitting process, a unit of 24 pieces; measured."""
    results_bytes_s: float = 1e9
    """Of the file system of the results."""
    results_files_s: float = 500.0
    """Files that it makes and synchronises in a second."""
    start_s: float = 10.0
    """Until a worker computes its first unit: process, imports, kernels."""


def costs_of(folder: Path) -> Costs:
    """Return the costs of an hour of sound of the units that were computed."""
    summary = json.loads((folder / "summary.json").read_text())
    records = {
        f"{one['deployment']}/{one['unit']}": one["record"]
        for one in summary["units"]
        if one["record"] and one["record"]["outputs"]
    }
    n_pieces, sound_s, key = 0, 0.0, ""
    sizes: dict[str, int] = {}
    for line in (folder / "plan.jsonl").read_bytes().splitlines():
        one = msgspec.json.decode(line)
        if one["record"] == "unit":
            key = f"{one['deployment']}/{one['name']}"
            sound_s += one["n_samples"] / one["fs"] if key in records else 0.0
        elif one["record"] == "piece" and key in records:
            n_pieces += 1
            sizes[one["path"]] = one["size"]
    if not sound_s:
        raise SystemExit(f"{folder}: no unit was computed; run and merge the job first")
    hours = sound_s / 3600.0
    outputs = [output for record in records.values() for output in record["outputs"]]
    return Costs(
        processor_s=sum(one["costs"]["processor_s"] for one in records.values()) / hours,
        read_bytes=sum(sizes.values()) / hours,
        pieces=n_pieces / hours,
        units=len(records) / hours,
        result_bytes=sum(one["size"] for one in outputs) / hours,
        result_files=len(outputs) / hours,
    )


def model(costs: Costs, place: Place, hours: float, workers: int) -> dict[str, Any]:
    """Return the time of each stage of a run [s], its bottleneck, and its efficiency."""
    units, pieces = costs.units * hours, costs.pieces * hours
    part_bytes = min(BLOCK_BYTES, costs.read_bytes / costs.pieces)
    requests = costs.read_bytes * hours / part_bytes + pieces * _CHECK_REQUESTS
    # The parts that are asked for ahead share the worker's network.
    part_s = place.latency_s + part_bytes / place.connection_bytes_s
    worker_bytes_s = min(place.worker_bytes_s, AHEAD_MAX * part_bytes / part_s)
    # The fullest worker has a unit more than the others.
    share = math.ceil(units / workers) / units
    n_files = costs.result_files * hours + units * _SYNCED_FILES
    processor_s = costs.processor_s * hours
    stages = {
        "processors": place.start_s + processor_s * share,
        "network of a worker": place.start_s
        + share * costs.read_bytes * hours / worker_bytes_s
        + share * pieces * _CHECK_REQUESTS * place.latency_s,
        "bandwidth of the store": costs.read_bytes * hours / place.store_bytes_s,
        "requests of the store": requests / place.store_requests_s,
        "scheduler": units * place.dispatch_s,
        "bytes of results": costs.result_bytes * hours / place.results_bytes_s,
        "files of results": n_files / place.results_files_s,
    }
    bottleneck = max(stages, key=lambda name: stages[name])
    plan_s = pieces * _PLAN_REQUESTS * (place.latency_s + SMALL_BYTES / place.connection_bytes_s)
    return {
        "workers": workers,
        "hours": hours,
        "bottleneck": bottleneck,
        "run_s": round(stages[bottleneck], 1),
        "plan_s": round(plan_s / _PLAN_THREADS, 1),
        "x_real_time": round(3600.0 * hours / stages[bottleneck]),
        "busy_processors": round(processor_s / (workers * stages[bottleneck]), 3),
        **{f"{name}_s": round(seconds, 1) for name, seconds in stages.items()},
    }


def main() -> None:
    """Read what was measured, print the model, and optionally store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", metavar="RESULTS", type=Path)
    parser.add_argument("--hours", type=float, default=876_000.0, help="of sound (100 years)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--json", metavar="FILE")
    for one in fields(Place):
        flag = f"--{one.name.replace('_', '-')}"
        parser.add_argument(flag, type=float, default=one.default, help="(%(default)g)")
    args = parser.parse_args()
    if args.hours <= 0 or min(args.workers) < 1:
        parser.error("--hours and --workers: must be above 0")
    place = Place(**{one.name: getattr(args, one.name) for one in fields(Place)})
    costs = costs_of(args.results)
    report = new_report("model_archives") | {"costs": vars(costs), "place": vars(place)}
    report["results"] = [model(costs, place, args.hours, workers) for workers in args.workers]
    print(*(f"{name}: {value:.4g}" for name, value in vars(costs).items()), sep=", ")
    for result in report["results"]:
        print(*(f"{name}: {value}" for name, value in result.items()), sep=", ")
    if args.json:
        write_report(report, args.json)


if __name__ == "__main__":
    main()
