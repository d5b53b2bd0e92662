"""``spectrod tune``: search this machine's devices for the fastest kernels, save the result."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from spectrod.analysis.stft.stft_arena import StftArena, tuned_spec
from spectrod.analysis.stft.stft_select import all_families
from spectrod.analysis.stft.stft_stage import StftSpec
from spectrod.cli.machine import working_devices
from spectrod.cli.numbers import count, seconds
from spectrod.cli.tables import Column, error, fixed, heading, line
from spectrod.dsp.spectrum_rules import NFFT_MAX, NFFT_MIN
from spectrod.fft import wisdom
from spectrod.fft.arena import Arena
from spectrod.fft.select import families
from spectrod.fft.stage import Family, Kind, Precision, Spec, TransformSpec, TunedKind
from spectrod.fft.tuner import Outcome, Progress, TuningArena, default_points, tune
from spectrod.lib.errors import DeviceError
from spectrod.opencl.context import Context
from spectrod.opencl.devices import DeviceInfo

_SIZES = (64, 128, 256, 512, 1000, 1024, 1200, 1920, 2000, 2048, 4096, 4800, 6000, 8192)


def _compact(params: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}".replace(", ", ",") for name, value in params.items())


_TUNED = (
    Column("n", "n", 9),
    Column("kind", "kind", 7),
    Column("precision", "precision", 9),
    Column("family", "family", 12),
    Column("untuned_gb_per_s", "untuned GB/s", 12, fixed(2)),
    Column("gb_per_s", "tuned GB/s", 10, fixed(2)),
    Column("gain", "gain", 5, fixed(2)),
    Column("relative_l2", "error", 8, error),
    Column("n_tried", "tried", 5),
    Column("n_refused", "refused", 7),
)
"""Columns for ``spectrod.fft.tuner.Outcome``."""

_SAVED = (*_TUNED[:8], Column("params", " parameters", 0, lambda value: f" {_compact(value)}"))
"""Columns for ``spectrod.fft.wisdom.Result``."""

_KINDS: tuple[TunedKind, ...] = get_args(TunedKind)
_OF_FRAMES: dict[TunedKind, bool] = {"stft": False, "stft-iq": True}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--size", nargs="+", type=count, default=_SIZES, metavar="N")
    parser.add_argument("--kind", nargs="+", choices=_KINDS, help="all by default")
    parser.add_argument("--precision", nargs="+", choices=get_args(Precision), default=("single",))
    parser.add_argument("--device", default="", metavar="NAME", help="see spectrod devices")
    parser.add_argument(
        "--seconds", type=seconds, default=5.0, metavar="S", help="budget of a length and kind (5)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="save there instead")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--show", action="store_true", help="list the saved results and their files")
    group.add_argument("--forget", action="store_true", help="delete the saved results")


def run(args: argparse.Namespace) -> int:
    """Tune, and save after each search: an interruption loses at most one result."""
    device = working_devices(args.device)[0][0]
    if args.show:
        _show(device)
    elif args.forget:
        _forget(device)
    else:
        _tune(args, device)
    return 0


def _show(device: DeviceInfo) -> None:
    print(f"{device.label} (driver {device.driver}): {wisdom.file_for(device)}")
    print(heading(_SAVED))
    for result in wisdom.results(device):
        print(line(_SAVED, _as_row(result)))


def _forget(device: DeviceInfo) -> None:
    path = wisdom.file_for(device)
    print(f"deleted {path}" if wisdom.forget(device) else f"{path}: does not exist")


def _tune(args: argparse.Namespace, device: DeviceInfo) -> None:
    path = args.output or wisdom.file_for(device)
    transforms, frames = _transforms(args, device), _frames(args)
    wisdom.save(device, [], path)  # reports write errors before tuning
    context = Context(device, profiling=True)
    print(f"{device.label} (driver {device.driver}), results in {path}")
    print(heading(_TUNED))
    try:
        for outcome in _outcomes(args, context, transforms, frames):
            if outcome.result is not None:
                wisdom.save(device, [outcome.result], path)
            _print(outcome)
    finally:
        context.close()


def _transforms(
    args: argparse.Namespace, device: DeviceInfo
) -> dict[Precision, list[TransformSpec]]:
    """Return the requested transforms; complex ones first, because others are built from them."""
    if "double" in args.precision and not device.has_fp64:
        raise DeviceError(f"{device.label} has no double precision")
    kinds: list[Kind] = [kind for kind in get_args(Kind) if kind in (args.kind or _KINDS)]
    return {
        precision: [TransformSpec(n, k, k == "c2r", precision) for k in kinds for n in args.size]
        for precision in args.precision
    }


def _frames(args: argparse.Namespace) -> list[StftSpec]:
    """Return the requested frames; by default for the lengths that frames can have."""
    sizes = args.size if args.kind else [n for n in args.size if NFFT_MIN <= n <= NFFT_MAX]
    kinds = [kind for kind in _OF_FRAMES if kind in (args.kind or _KINDS)]
    return [tuned_spec(n, iq=_OF_FRAMES[kind]) for kind in kinds for n in sizes]


def _outcomes(
    args: argparse.Namespace,
    context: Context,
    transforms: Mapping[Precision, Sequence[TransformSpec]],
    frames: Sequence[StftSpec],
) -> Iterator[Outcome]:
    """Search for the fastest transforms, then for the fastest frames, which may use them."""
    device = context.device
    points = default_points(device)
    for precision, specs in transforms.items():
        if specs:
            arena = Arena(context, precision, points, max(args.size))
            yield from _searches(args, arena, families(device), specs)
            del arena  # free its memory before the next allocation
    if frames:
        by_name = {family.name: family for family in all_families()}
        longest = max(spec.nfft for spec in frames)
        yield from _searches(args, StftArena(context, 2 * points, longest), by_name, frames)


def _searches(
    args: argparse.Namespace,
    arena: TuningArena,
    by_name: Mapping[str, Family[Any]],
    specs: Sequence[Spec],
) -> Iterator[Outcome]:
    status = _Status()
    for spec in specs:
        yield tune(arena, by_name, spec, args.seconds, status.update)
        status.clear()


def _print(outcome: Outcome) -> None:
    n, kind, precision = outcome.spec.key
    result = outcome.result
    counts = {"n_tried": outcome.n_tried, "n_refused": outcome.n_refused}
    found = _as_row(result) if result else {"failed": "nothing works"}
    row = {"n": n, "kind": kind, "precision": precision, **counts, **found}
    print(line(_TUNED, row), flush=True)
    for text in outcome.dropped:
        print(f"  dropped: {text}", flush=True)


def _as_row(result: wisdom.Result) -> dict[str, object]:
    row = {name: getattr(result, name) for name in result.__struct_fields__}
    untuned = result.untuned_gb_per_s
    return row | ({"gain": result.gb_per_s / untuned} if untuned else {})


class _Status:
    """A line on standard error with the progress of the search, if that is a terminal."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()

    def update(self, progress: Progress) -> None:
        """Show the number of candidates and the best time so far."""
        n, kind, precision = progress.spec.key
        self._write(
            f"n={n} {kind} {precision}: {progress.n_tried} tried, "
            f"best {progress.best_seconds * 1e6:.1f} us"
        )

    def clear(self) -> None:
        """Erase the line."""
        self._write("")

    def _write(self, text: str) -> None:
        if self._is_shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
