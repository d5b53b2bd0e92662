"""``spectrod bench``: measure the engine and its peers on this machine's devices."""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from spectrod.apps.bench import command_fft, command_live, command_stft
from spectrod.apps.bench.report import describe_device, new_report
from spectrod.apps.bench.transforms import Row
from spectrod.apps.bench.waiting_threads import ask_threads_to_sleep
from spectrod.cli.machine import working_devices
from spectrod.formats.whole_files import check_writable, write_whole
from spectrod.opencl.devices import DeviceInfo


class _Benchmark(Protocol):
    SUMMARY: str

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the benchmark's arguments."""

    def mode(self, args: argparse.Namespace) -> str:
        """Return the name of the measurement, for the report."""
        ...

    def measure(self, args: argparse.Namespace, device: DeviceInfo) -> Iterator[Row]:
        """Measure one device; print each row when it is complete."""
        ...


_BENCHMARKS: Mapping[str, _Benchmark] = {
    "fft": command_fft,
    "stft": command_stft,
    "live": command_live,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    subparsers = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, benchmark in _BENCHMARKS.items():
        subparser = subparsers.add_parser(
            name, help=benchmark.SUMMARY, description=f"{benchmark.SUMMARY.capitalize()}."
        )
        subparser.add_argument(
            "--device", default="", metavar="NAME", help="by default all that work"
        )
        benchmark.add_arguments(subparser)
        subparser.add_argument("--json", type=Path, metavar="FILE", help="also write a report")


def run(args: argparse.Namespace) -> int:
    """Print tables for each device; an interrupted report holds the results so far.

    Without any result, an existing report of that name is kept.
    """
    benchmark = _BENCHMARKS[args.what]
    report = {**new_report(args.what), "openmp": ask_threads_to_sleep()}
    if args.json:
        check_writable(args.json)
    devices, reasons = working_devices(args.device)
    for reason in reasons:
        print(f"left out: {reason}")
    try:
        for device in devices:
            rows: list[Row] = []
            report["devices"].append(
                {"device": describe_device(device), "mode": benchmark.mode(args), "rows": rows}
            )
            print(f"\n{device.label} (driver {device.driver})")
            for row in benchmark.measure(args, device):
                rows.append(row)  # noqa: PERF402 - keep these rows if the next one fails
    finally:
        if args.json and any(device["rows"] for device in report["devices"]):
            write_whole(args.json, json.dumps(report, indent=1).encode() + b"\n")
    return 0
