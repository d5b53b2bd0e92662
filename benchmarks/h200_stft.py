"""The fused short-time transform on a large GPU, beside torch in the same process.

Self-contained: run it from a checkout with pyopencl, pyzmq and torch installed, ``python
benchmarks/h200_stft.py OUT.json``. It writes the report after each part, so that an interrupted run
leaves what it has. ``--samples 262144`` shows on any machine that the script works.
"""

import argparse
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from _report import Report, describe_device, new_report, run_tests, write_report

from spectrod.analysis.frame_launch import FrameLaunch
from spectrod.analysis.opencl_engine import OpenCLEngine
from spectrod.analysis.sample_buffer import touched_memory
from spectrod.apps.bench import stft
from spectrod.apps.bench.spectra import Spectra, make_spec
from spectrod.apps.bench.stft_peers import choose_peers
from spectrod.apps.bench.tables import SPECTRA
from spectrod.apps.bench.transforms import Row
from spectrod.cli.tables import heading, line
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.opencl.devices import DeviceInfo, choose
from spectrod.opencl.transfers import Transfers

RESIDENT = (
    *((1 << k, (1 << k) // part, "power") for k in (*range(8, 15), 16, 20) for part in (2, 4)),
    (1024, 512, "db"),
    (1024, 512, "third-octave"),
)
HOST = ((1024, 512, "power"), (4096, 2048, "power"), (1024, 512, "third-octave"))
ROUNDS = 9


def spectra_of(place: tuple[int, int, str], sample_format: str, n_samples: int) -> Spectra:
    """Make noise, and say what is to become of it."""
    n, hop, product = place
    return Spectra.of_noise(make_spec(n, hop, 1, product), product, sample_format, n_samples)


def resident(device: DeviceInfo, arguments: argparse.Namespace) -> Iterator[Row]:
    """Measure launches alone, float32, all data on the device."""
    names, _ = choose_peers(None, device.kind, is_resident=True)
    for place in RESIDENT:
        spectra = spectra_of(place, "float32", arguments.samples)
        yield from stft.resident(spectra, device, names, arguments.seconds)


def host(device: DeviceInfo, arguments: argparse.Namespace) -> Iterator[Row]:
    """Measure the public interface, int16, from ordinary memory."""
    names, _ = choose_peers(None, device.kind, is_resident=False)
    for place in HOST:
        spectra = spectra_of(place, "int16", arguments.samples)
        yield from stft.compare(spectra, device, names, arguments.seconds)


def pinned(device: DeviceInfo, arguments: argparse.Namespace) -> Iterator[Row]:
    """Measure the engine, int16 in page-locked memory to rows there, beside its transfers."""
    engine = OpenCLEngine(device)
    for place in HOST:
        spectra = spectra_of(place, "int16", arguments.samples)
        seconds = median_seconds(streaming(engine, spectra))
        up, down = (
            median_seconds(transfer(engine, n, up=up))
            for n, up in ((spectra.samples.nbytes, True), (spectra.out_bytes, False))
        )
        yield {
            "what": "engine, page-locked",
            "n": place[0],
            "hop": place[1],
            "product": place[2],
            "format": "int16",
            "seconds": seconds,
            "gs_per_s": spectra.samples.size / seconds / 1e9,
            "up_gb_per_s": spectra.samples.nbytes / up / 1e9,
            "down_gb_per_s": spectra.out_bytes / down / 1e9,
            "copy_share": max(up, down) / seconds,
        }
    engine.close()


def streaming(engine: OpenCLEngine, spectra: Spectra) -> Callable[[], None]:
    """Send samples as they become visible in a buffer, two batches in flight, and fetch rows."""
    spec, n = spectra.spec, spectra.samples.shape[1]
    buffer = engine.sample_buffer(SampleLayout("int16"), n)
    buffer.data[...] = spectra.samples
    row_bytes = 4 * spec.n_values
    count = max(1, engine.batch_bytes // max(2 * spec.hop, row_bytes))
    plan = engine.plan(spec, buffer, count)

    def call() -> None:
        buffer.move(buffer.end)
        in_flight = deque()
        for first in range(0, spec.n_frames(n), count):
            n_frames = min(count, spec.n_frames(n) - first)
            buffer.end = buffer.start + (first + n_frames - 1) * spec.hop + spec.win_length
            in_flight.append(plan.submit(FrameLaunch(first * spec.hop, n_frames)))
            if len(in_flight) == 2:
                in_flight.popleft().collect()
        while in_flight:
            in_flight.popleft().collect()

    return call


def transfer(engine: OpenCLEngine, n_bytes: int, *, up: bool) -> Callable[[], None]:
    """Copy a number of bytes between page-locked memory and the device."""
    context = engine.context
    transfers = Transfers(context)
    memory, buffer = touched_memory(n_bytes), context.allocate(n_bytes)
    lock = transfers.lock_pages(memory)

    def call() -> None:
        assert lock  # the memory stays locked
        if up:
            context.wait(transfers.start_upload(buffer, memory, 0, n_bytes))
        else:
            context.wait(transfers.start_download(memory, buffer, []))

    return call


def median_seconds(call: Callable[[], None]) -> float:
    """Median wall time of a call [s], after two that warm up."""
    times = []
    for _ in range(ROUNDS + 2):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times[2:]))


def describe(row: Row) -> str:
    """One line of a row that may lack columns."""
    return line(SPECTRA, row) if "x_real_time" in row or "failed" in row else str(row)


def main() -> None:
    """Run all parts in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="report to write, JSON")
    parser.add_argument("--device", default="", help="part of PLATFORM/DEVICE, or an index")
    parser.add_argument("--samples", type=int, default=1 << 26)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each comparison")
    parser.add_argument("--tests", nargs="+", default=[], help="paths to run pytest on")
    arguments = parser.parse_args()
    device = choose(arguments.device)
    report: Report = new_report("h200_stft") | {"device": describe_device(device)}
    for part in (resident, pinned, host):
        print(f"{part.__name__}\n{heading(SPECTRA)}", flush=True)
        for row in part(device, arguments):
            report["results"].append({"part": part.__name__, **row})
            print(describe(row), flush=True)
        write_report(report, arguments.out)
    if arguments.tests:
        report["tests"] = run_tests(arguments.tests, 300.0)
        print(report["tests"], flush=True)
        write_report(report, arguments.out)


if __name__ == "__main__":
    main()
