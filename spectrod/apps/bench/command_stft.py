"""``spectrod bench stft``: spectra of a long signal, by spectrod and by peers."""

import argparse
from collections.abc import Iterator
from functools import partial

from spectrod.apps.bench import spectra, stft, stft_peers, tables
from spectrod.apps.bench.spectra import Spectra
from spectrod.apps.bench.transforms import Row
from spectrod.cli.numbers import count, seconds
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.opencl.devices import DeviceInfo

SUMMARY = "spectra of a long signal: speed, error, peers"

_SIZES = (256, 1024, 4096, 8192)
_HOP_RATIOS = (2,)
# More than the caches hold; on a GPU, enough to fill it for a while.
_SAMPLES = {"gpu": 1 << 26}
_SAMPLES_ELSEWHERE = 1 << 23
_SAMPLES_RESIDENT = {"gpu": 1 << 27}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this benchmark's arguments."""
    parser.add_argument("--size", nargs="+", type=count, default=_SIZES, metavar="N")
    hop = parser.add_mutually_exclusive_group()
    hop.add_argument(
        "--hop-ratio", nargs="+", type=count, default=_HOP_RATIOS, metavar="R", help="hop = N / R"
    )
    hop.add_argument("--hop", type=count, metavar="SAMPLES")
    parser.add_argument("--channels", type=count, default=1, metavar="C")
    parser.add_argument("--format", choices=tuple(spectra.FORMATS), default="float32")
    parser.add_argument(
        "--product",
        nargs="+",
        default=("power",),
        metavar="NAME",
        help="power, db, or bands: third-octave, mel:64, ...",
    )
    parser.add_argument(
        "--samples", type=count, metavar="N", help="of all channels (2^26 on GPUs, else 2^23)"
    )
    parser.add_argument(
        "--resident",
        action="store_true",
        help="the launch alone, with all data in the device's memory",
    )
    parser.add_argument(
        "--seconds", type=seconds, default=2.0, metavar="S", help="time of each comparison"
    )
    parser.add_argument(
        "--peer",
        nargs="*",
        metavar="NAME",
        help=f"libraries to compare with: {', '.join(stft_peers.PEERS)}; by default those that "
        "are installed",
    )


def mode(args: argparse.Namespace) -> str:
    """Return the name of the measurement, for the report."""
    return "resident" if args.resident else "host"


def measure(args: argparse.Namespace, device: DeviceInfo) -> Iterator[Row]:
    """Measure one device; print each row when it is complete, after the missing peers."""
    names, missing = stft_peers.choose_peers(args.peer, device.kind, is_resident=args.resident)
    specs = list(_specs(args))
    for hint in missing:
        print(f"left out: {hint}")
    yield from tables.print_each(tables.SPECTRA, _rows(args, device, specs, names))


def _specs(args: argparse.Namespace) -> Iterator[tuple[SpectrumSpec, str]]:
    """Yield every requested combination, with the name of the product."""
    for product in args.product:
        for n in args.size:
            hops = [args.hop] if args.hop else [max(1, n // ratio) for ratio in args.hop_ratio]
            for hop in hops:
                yield spectra.make_spec(n, hop, args.channels, product), product


def _rows(
    args: argparse.Namespace,
    device: DeviceInfo,
    specs: list[tuple[SpectrumSpec, str]],
    names: list[str],
) -> Iterator[Row]:
    measured = stft.resident if args.resident else stft.compare
    run = partial(measured, device=device, names=names, seconds=args.seconds)
    for spec, product in specs:
        yield from run(Spectra.of_noise(spec, product, args.format, _n_samples(args, device)))


def _n_samples(args: argparse.Namespace, device: DeviceInfo) -> int:
    usual = _SAMPLES_RESIDENT if args.resident else _SAMPLES
    return args.samples or usual.get(device.kind, _SAMPLES_ELSEWHERE)
