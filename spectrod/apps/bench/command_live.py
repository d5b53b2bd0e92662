"""``spectrod bench live``: latency, load, channels, memory or a soak of the running pipeline."""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

from spectrod.apps.bench import channels, live, memory, soak, tables
from spectrod.apps.bench.histogram import histogram
from spectrod.apps.bench.live import LiveRun
from spectrod.apps.bench.transforms import Row
from spectrod.cli.numbers import count, seconds
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.opencl.devices import DeviceInfo

SUMMARY = "the running pipeline: latency, load, channels, memory, a soak"

_SECONDS = {"latency": 20.0, "channels": 10.0}
_SIZE = {"channels": 2048}
_SIZE_ELSE = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this benchmark's arguments."""
    parser.add_argument(
        "--size", type=count, metavar="N", help=f"{_SIZE_ELSE}; {_SIZE['channels']} for channels"
    )
    parser.add_argument("--hop", type=count, default=1024, metavar="SAMPLES")
    parser.add_argument("--channels", type=count, default=2, metavar="C")
    parser.add_argument("--samplerate", "--rate", type=count, default=48_000, metavar="HZ")
    parser.add_argument("--seconds", type=seconds, metavar="S", help="of each run")
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--max-channels",
        dest="mode",
        action="store_const",
        const="channels",
        help="find how many channels keep up",
    )
    group.add_argument(
        "--frames", type=count, metavar="N", help="memory at full speed over this number of frames"
    )
    group.add_argument(
        "--soak",
        type=seconds,
        metavar="SECONDS",
        help="record a known signal from a private PulseAudio, and account for every sample",
    )


def mode(args: argparse.Namespace) -> str:
    """Return the name of the measurement, for the report."""
    if args.soak:
        return "soak"
    return "memory" if args.frames else args.mode or "latency"


def measure(args: argparse.Namespace, device: DeviceInfo) -> Iterator[Row]:
    """Measure one device; print each row when it is complete."""
    n = args.size or _SIZE.get(mode(args), _SIZE_ELSE)
    spec = SpectrumSpec(args.samplerate, args.channels, win_length=n, hop=args.hop, nfft=n)
    return _MODES[mode(args)](args, device, spec)


def _latency(args: argparse.Namespace, device: DeviceInfo, spec: SpectrumSpec) -> Iterator[Row]:
    length_s = args.seconds or _SECONDS["latency"]
    runs: list[Callable[[], LiveRun]] = [
        partial(live.measure_engine, device, spec),
        partial(live.run_pipeline, device, spec, length_s),
    ]
    done: list[LiveRun] = []
    yield from tables.print_each(tables.LATENCY, (_kept(done, run()) for run in runs))
    for measured in done:
        _print_histogram(measured)


def _kept(done: list[LiveRun], run: LiveRun) -> Row:
    done.append(run)
    counted = histogram(run.latencies)
    bins = {"edges_s": counted.edges.tolist(), "counts": counted.counts.tolist()}
    return run.row | {"histogram": bins}


def _print_histogram(run: LiveRun) -> None:
    print(f"\n{run.row['what']}:")
    for text in histogram(run.latencies).lines():
        print(text)


def _channels(args: argparse.Namespace, device: DeviceInfo, spec: SpectrumSpec) -> Iterator[Row]:
    length_s = args.seconds or _SECONDS["channels"]
    rows: list[Row] = []
    for row in tables.print_each(tables.CHANNELS, channels.measure(device, spec, length_s)):
        rows.append(row)
        yield row
    print(f"{channels.largest(rows)} channels keep up")


def _memory(args: argparse.Namespace, device: DeviceInfo, spec: SpectrumSpec) -> Iterator[Row]:
    rows = memory.measure(device, spec, args.frames)
    yield from tables.print_each(tables.MEMORY, rows)
    verdict = "flat" if memory.is_flat(rows) else "not flat"
    print(f"{verdict}: {memory.growth_bytes(rows) / 2**20:.2f} MiB more after the first tenth")


def _soak(args: argparse.Namespace, device: DeviceInfo, spec: SpectrumSpec) -> Iterator[Row]:
    row: Row = {}
    for row in tables.print_each(tables.SOAK, soak.measure(device, spec, args.soak)):
        yield row
    if row["faults"]:
        raise soak.SoakFailedError(f"soak: {'; '.join(row['faults'])}")
    print(f"every one of {row['samples']} samples is accounted for")


_MODES: dict[str, Callable[[argparse.Namespace, DeviceInfo, SpectrumSpec], Iterator[Row]]] = {
    "latency": _latency,
    "channels": _channels,
    "memory": _memory,
    "soak": _soak,
}
