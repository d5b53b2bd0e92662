"""Sections of a stored recording of spectra: ``--start``, ``--stop`` and ``--duration``."""

import argparse

from spectrod.cli.times import Extent, parse_seconds, zone_of_times
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import RowReader
from spectrod.lib.durations import parse_time
from spectrod.lib.errors import ConfigError
from spectrod.recording.inputs import scan_span_utc_ns, span_utc_ns


def section_utc_ns(
    args: argparse.Namespace, reader: RowReader
) -> tuple[int | None, int | None, int | None]:
    """Read the flags that select a section of a recording.

    Parameters
    ----------
    args : argparse.Namespace
        Has ``source``, ``start`` and ``duration``, and ``stop`` if the command has it.
    reader : RowReader
        Reader of the recording. It reads an exported file once to find its end, if a position is
        relative to the end.

    Returns
    -------
    start_utc_ns, stop_utc_ns : int or None
        Selects rows that start at or after the first and before the second [ns]; None: all.
    duration_ns : int or None
        Duration of the section [ns]; None if unknown.

    Raises
    ------
    ConfigError
        With the flag, its value and the rule, if a rule is violated.
    """
    _check_alone(args)
    begin_ns, end_ns = _span(reader, (args.start, args.stop))
    return section_of_span(args, begin_ns, end_ns, has_utc=reader.description.has_utc)


def section_of_span(
    args: argparse.Namespace, begin_ns: int, end_ns: int | None, *, has_utc: bool = True
) -> tuple[int | None, int | None, int | None]:
    """Read the flags that select a section of what begins and ends at these times [ns].

    See ``section_utc_ns`` for parameters, results and errors; ``end_ns`` is None if unknown.
    """
    _check_alone(args)
    stop = args.stop
    duration_ns = None if end_ns is None else end_ns - begin_ns
    begin_utc_ns = begin_ns if has_utc else None
    extent = Extent(args.source, begin_utc_ns, duration_ns, zone_of_times(args))
    first_ns = extent.offset_ns("--start", args.start) if args.start else 0
    stop_ns = None
    if stop:
        stop_ns = extent.offset_ns("--stop", stop)
        if stop_ns <= max(0, first_ns):
            start = f"--start {args.start}" if first_ns > 0 else f"the beginning of {args.source}"
            raise ConfigError(f"--stop {stop}: must be later than {start}")
    elif args.duration:
        stop_ns = first_ns + round(parse_seconds("--duration", args.duration) * NS_PER_S)
    if args.start and (first_ns > 0 or parse_time(args.start) is not None):
        extent.check_within("--start", args.start, first_ns)
    known = [ns for ns in (stop_ns, duration_ns) if ns is not None]
    return (
        begin_ns + first_ns if args.start else None,
        None if stop_ns is None else begin_ns + stop_ns,
        max(1, min(known) - max(0, first_ns)) if known else None,
    )


def _check_alone(args: argparse.Namespace) -> None:
    if args.stop and args.duration:
        raise ConfigError(f"--duration {args.duration}: must be without --stop {args.stop}")


def _span(reader: RowReader, positions: tuple[str | None, ...]) -> tuple[int, int | None]:
    """Return the time of the first row and, if that is cheap or needed, of the end [ns]."""
    span = span_utc_ns(reader)
    if span is None and any(text and text.lstrip().startswith("-") for text in positions):
        span = scan_span_utc_ns(reader)
    if span is not None:
        return span
    return next((int(one.t_utc_ns[0]) for one in reader.batches() if one.n_frames), 0), None
