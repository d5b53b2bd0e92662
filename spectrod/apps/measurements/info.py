"""``spectrod info``: what a file is, what times it has, and what is odd about it."""

import argparse
import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from spectrod.apps.measurements.measured_source import add_source, open_measured
from spectrod.apps.measurements.sample_blocks import read_blocks
from spectrod.apps.measurements.sample_facts import SampleFacts
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.dsp.duty_cycle import DutyCycle
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.attributes import iso_time
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import json_text, printable
from spectrod.recording.inputs import (
    is_recording,
    left_out_samples,
    open_recording,
    scan_span_utc_ns,
    span_utc_ns,
)
from spectrod.source.base import SelectableSource, Source, StreamFile
from spectrod.source.files.pauses import Gap, find_gaps

_INCOMPLETE = 65
_GAPS_MAX = 20
"""Most gaps of a folder that are named."""
_OF_SPEC = ("win_length", "window", "hop", "nfft", "scaling", "n_values")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "source",
        metavar="FILE",
        help="sound file, folder of them, SigMF recording, or recording of spectra",
    )
    parser.add_argument(
        "--samples",
        action="store_true",
        help="read all samples too, for peaks, clipping, silence, offsets and equal channels",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable")
    add_source(parser)
    parser.set_defaults(start=None, stop=None, start_time=None, duration=None)


@signals_as_interrupts()
def run(args: argparse.Namespace) -> int:
    """Print the facts; exit code 65 if files or parts of them cannot be read."""
    of_file = _of_spectra if is_recording(Path(args.source)) else _of_sound
    facts, is_whole = of_file(args)
    if args.json:
        print(json_text({name: fact.value for name, fact in facts.items()}, indent=2))
    else:
        _print_text(facts)
    return 0 if is_whole else _INCOMPLETE


class _Fact(NamedTuple):
    value: Any
    """For programs."""
    text: str | list[str]
    """For persons: lines."""


_Facts = dict[str, _Fact]


def _print_text(facts: _Facts) -> None:
    shown = {name: fact.text for name, fact in facts.items()}
    width = max(map(len, shown))
    for name, text in shown.items():
        lines = [text] if isinstance(text, str) else text or ["nothing"]
        for k, line in enumerate(lines):
            print(f"{'' if k else name:{width}}  {printable(line)}")


# ---- sound


def _of_sound(args: argparse.Namespace) -> tuple[_Facts, bool]:
    with _messages() as (notes, odd):
        measured = open_measured(args, is_mean=True)
        source, n_samples = measured.source, measured.source.n_samples
        if source.is_live or n_samples is None:
            raise ConfigError(f"{args.source}: must be stored sound or spectra: this has no end")
        speakers = f" ({' '.join(source.speakers)})" if source.speakers else ""
        iq = ", pairs of I and Q" if source.is_iq else ""
        facts = {
            "sound": _Fact(source.description, source.description),
            "channels": _Fact(source.channels, f"{source.channels}{speakers}"),
            "fs": _Fact(source.fs, f"{source.fs:.15g} Hz{iq}"),
            "samples": _Fact(n_samples, f"{n_samples} of each channel"),
            **_span(source.start_utc_ns, round(n_samples / source.fs * NS_PER_S)),
        }
        files = source.files if isinstance(source, SelectableSource) else ()
        cycle, gaps = find_gaps(files, source.fs)
        facts |= _schedule(cycle)
        odd.extend(_gap_lines(gaps, source))
        if args.samples:
            found = SampleFacts(source.fs, tuple(map(str, range(source.channels))))
            for block in read_blocks(source, measured.span):
                found.add(block)
            facts["levels"] = _Fact(found.levels(), found.lines())
            odd.extend(found.odd(_between(files)))
    odd.extend(line for line in source.left_out.lines if line not in odd)
    facts |= {"notes": _Fact(notes, notes), "odd": _Fact(odd, odd)}
    return facts, not source.left_out.n_files


def _span(begin_utc_ns: int | None, duration_ns: int) -> _Facts:
    duration_s = duration_ns / NS_PER_S
    length = {"duration_s": _Fact(duration_s, f"{duration_s:.6f}")}
    if begin_utc_ns is None:
        return length | {"start": _Fact(None, "unknown: times count from the beginning")}
    begin, end = iso_time(begin_utc_ns), iso_time(begin_utc_ns + duration_ns)
    return length | {"start": _Fact(begin, begin), "end": _Fact(end, end)}


def _between(files: Sequence[StreamFile]) -> int:
    """Return the samples that are missing between files."""
    pairs = pairwise(files)
    return sum(max(0, after.first - before.first - before.n_samples) for before, after in pairs)


def _schedule(cycle: DutyCycle | None) -> _Facts:
    if cycle is None:
        return {}
    n_pauses = len(cycle.pauses_s)
    value = {"period_s": cycle.period_s, "on_s": cycle.on_s, "pauses": n_pauses}
    text = f"{cycle.on_s:.6g} s each {cycle.period_s:.6g} s, {n_pauses} pauses"
    return {"schedule": _Fact(value, text)}


def _gap_lines(gaps: Sequence[Gap], source: Source) -> Iterator[str]:
    begin_ns, is_dated = source.start_utc_ns or 0, source.start_utc_ns is not None
    for gap in gaps[:_GAPS_MAX]:
        begin_s = gap.begin / source.fs
        when = iso_time(begin_ns + round(begin_s * NS_PER_S)) if is_dated else f"{begin_s:.6g} s"
        yield f"{when}: {gap.duration_s:.6g} s without sound after {gap.after}"
    if more := gaps[_GAPS_MAX:]:
        yield f"and {len(more)} more gaps, {sum(gap.duration_s for gap in more):.6g} s together"


@contextmanager
def _messages() -> Iterator[tuple[list[str], list[str]]]:
    """Collect what the program logs, instead of writing it: notes, and warnings."""
    notes: list[str] = []
    warnings: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines = warnings if record.levelno >= logging.WARNING else notes
            if record.getMessage() not in lines:
                lines.append(record.getMessage())

    logger, collector = logging.getLogger("spectrod"), Collector(logging.INFO)
    before = logger.level, logger.propagate
    logger.addHandler(collector)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield notes, warnings
    finally:
        logger.removeHandler(collector)
        logger.level, logger.propagate = before


# ---- spectra


def _of_spectra(args: argparse.Namespace) -> tuple[_Facts, bool]:
    if args.samples:
        raise ConfigError(f"--samples: {args.source} has spectra, no samples")
    odd = []
    with closing(open_recording(Path(args.source))) as reader:
        about, spec = reader.description, reader.description.spec
        begin_ns, end_ns = span_utc_ns(reader) or scan_span_utc_ns(reader)
        attributes = [f"{name}: {value}" for name, value in about.attributes.items()]
        origin = f"of {about.source}, computed by {about.software}"
        facts = {
            "spectra": _Fact({"source": about.source, "software": about.software}, origin),
            "signals": _Fact(about.signals, ", ".join(about.signals)),
            "fs": _Fact(spec.fs, f"{spec.fs:.15g} Hz"),
            **{name: _Fact(getattr(spec, name), str(getattr(spec, name))) for name in _OF_SPEC},
            "units": _Fact(spec.scale.units, ", ".join(dict.fromkeys(spec.scale.units))),
            **_span(begin_ns if about.has_utc else None, end_ns - begin_ns),
            "attributes": _Fact(about.attributes, attributes),
        }
        damaged = reader.damaged_bytes if isinstance(reader, SegmentReader) else 0
        if damaged:
            odd.append(f"{damaged} damaged bytes are left out")
        if missing := left_out_samples(reader):
            odd.append(f"{missing} samples at the end are in no row")
    return facts | {"odd": _Fact(odd, odd)}, not damaged
