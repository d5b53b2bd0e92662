"""The range of a source's samples that a command reads."""

import argparse
from dataclasses import dataclass

import numpy as np

from spectrod.cli.times import Extent, parse_seconds, stop_of_live, zone_of_times
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import ConfigError
from spectrod.source.base import SelectableSource
from spectrod.source.open_source import Source


@dataclass(frozen=True, slots=True)
class SampleRange:
    """Range of the source's samples.

    Attributes
    ----------
    first : int
        Index of the first sample.
    n_samples : int or None
        Number of samples; None if unknown.
    max_samples : int or None
        Number of samples after which to stop; None without a limit.
    """

    first: int
    n_samples: int | None
    max_samples: int | None


def sample_range(args: argparse.Namespace, source: Source) -> SampleRange:
    """Return the range of the flags --start, --stop and --duration.

    Raises
    ------
    ConfigError
        If a value is wrong, nothing was recorded then, or the source has no end and there is
        neither --stop nor --duration.
    """
    first = _first_sample(args, source)
    max_samples = None
    if args.stop is not None:
        max_samples = _stop_sample(args, source, first) - first
    elif args.duration is not None:
        max_samples = max(1, round(parse_seconds("--duration", args.duration) * source.fs))
    is_signal = args.source.startswith("signal:") or (args.source == "auto" and not source.is_live)
    if max_samples is None and (is_signal or args.loop) and source.n_samples is None:
        raise ConfigError(f"{args.source}: has no end; give --duration")
    left = None if source.n_samples is None else source.n_samples - first
    known = [n for n in (left, max_samples) if n is not None]
    _check_recorded(args, source, first, max_samples)
    return SampleRange(first, min(known, default=None), max_samples)


def _first_sample(args: argparse.Namespace, source: Source) -> int:
    """Return the sample that --start selects, for sources that are not live."""
    if args.start is None or source.is_live:
        return 0
    extent = _extent(args, source)
    offset_ns = extent.offset_ns("--start", args.start)
    extent.check_within("--start", args.start, offset_ns)
    first = round(offset_ns * source.fs / NS_PER_S)
    return first if source.n_samples is None else min(first, source.n_samples - 1)


def _stop_sample(args: argparse.Namespace, source: Source, first: int) -> int:
    """Return the sample before which --stop ends."""
    if args.duration is not None:
        raise ConfigError(f"--duration {args.duration}: must be without --stop {args.stop}")
    if source.is_live:
        raise stop_of_live(args.stop, args.source)
    stop = round(_extent(args, source).offset_ns("--stop", args.stop) * source.fs / NS_PER_S)
    if stop <= first:
        start = f"--start {args.start}" if first else f"the beginning of {args.source}"
        raise ConfigError(f"--stop {args.stop}: must be later than {start}")
    return stop


def _check_recorded(
    args: argparse.Namespace, source: Source, first: int, n_samples: int | None
) -> None:
    """Refuse a part of a folder in which nothing was recorded; raises ConfigError."""
    files = source.files if isinstance(source, SelectableSource) else ()
    if not files or args.start is None or n_samples is None:
        return
    spans = [(one.first, one.first + one.n_samples) for one in files]
    if any(begin < first + n_samples and end > first for begin, end in spans):
        return
    before = _time(source, max(end for _, end in spans if end <= first))
    after = _time(source, min(begin for begin, _ in spans if begin > first))
    raise ConfigError(
        f"--start {args.start}: nothing was recorded in the {n_samples / source.fs:.10g} s from "
        f"then; {args.source} has sound up to {before}, and again from {after}"
    )


def _time(source: Source, sample: int) -> str:
    """Return the UTC of a sample, or its position [s], as --start takes it."""
    since_ns = round(sample * NS_PER_S / source.fs)
    if source.start_utc_ns is None:
        return f"{since_ns / NS_PER_S:.3f}"
    milliseconds = np.datetime64((source.start_utc_ns + since_ns) // 10**6, "ms")
    return f"{str(milliseconds).removesuffix('.000')}Z"


def _extent(args: argparse.Namespace, source: Source) -> Extent:
    n_samples = source.n_samples
    duration_ns = None if n_samples is None else round(n_samples * NS_PER_S / source.fs)
    return Extent(args.source, source.start_utc_ns, duration_ns, zone_of_times(args))
