"""``spectrod detect``: events in recordings, as tables, selections, labels and clips."""

import argparse
import copy
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from zoneinfo import ZoneInfo

from spectrod.apps.detect.event_outputs import EventOutputs, SourceOutputs, folder_of
from spectrod.apps.detect.search import (
    EventSearch,
    SearchReport,
    log_report,
    search_elsewhere,
)
from spectrod.apps.detect.trigger_flags import add_trigger, trigger_of
from spectrod.cli import options
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.numbers import count
from spectrod.cli.tables import Column, fixed, heading, line
from spectrod.cli.times import parse_seconds
from spectrod.config import config
from spectrod.daemon.service import configure_logging
from spectrod.formats.event_fields import fields_of
from spectrod.formats.event_files import FORMATS, event_file, format_of
from spectrod.lib.allocator import keep_freed_memory
from spectrod.lib.errors import ConfigError
from spectrod.lib.ordered_work import JOBS_MAX
from spectrod.lib.text import printable
from spectrod.lib.time_zones import find_zone, shown_zone
from spectrod.measure.triggers.detection import Detection
from spectrod.recording.output_plan import check_outputs, make_folders
from spectrod.source.base import SelectableSource
from spectrod.source.kinds import forms
from spectrod.source.open_source import Source

_INCOMPLETE = 65
_UTC = Column("begin_utc", "UTC", 24, lambda text: f"{text[:23]}Z")
_LOCAL_WIDTH = 29
_COLUMNS = (
    Column("begin_s", "in file [s]", 12, fixed(3)),
    Column("duration_s", "length [s]", 10, fixed(3)),
    Column("channel", "channel", 7),
    Column("frequency_hz", "Hz", 10, fixed(1)),
    Column("level", "level", 8, fixed(1)),
    Column("over_floor_db", "over floor", 10, fixed(1)),
)
_PULSES = Column("pulses", "pulses", 6)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("source", metavar="SRC", nargs="+", help=f"{forms()}; of several, each")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        action="append",
        default=[],
        help=f"write the events of all sources to a file, *{' *'.join(FORMATS)}, instead of a "
        "table; repeatable",
    )
    parser.add_argument("--clips", metavar="DIR", help="write the sound of each event to DIR")
    parser.add_argument(
        "--pictures", metavar="DIR", help="write a spectrogram of each event to DIR, framed"
    )
    parser.add_argument(
        "--margin",
        metavar="TIME",
        default="1",
        help="sound before and after, in clips and pictures (1s)",
    )
    parser.add_argument(
        "--time-zone",
        metavar="ZONE",
        help="of times: Europe/Berlin, or local: this machine's (UTC)",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help="processes that search SRC side by side, or parts of one, with the same events (1)",
    )
    add_trigger(parser)
    options.add_range(parser)
    options.add_source(parser, pace="full")
    options.add_iq(parser)
    options.add_analysis(parser, win_length="near 64 ms", hop="a quarter of the window")
    options.add_config(parser)
    parser.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")


@signals_as_interrupts()
def run(args: argparse.Namespace) -> int:
    """Find the events of all sources; exit code 65 if files or parts of them cannot be read."""
    keep_freed_memory()
    paths = [Path(one) for one in args.output]
    for path in paths:
        format_of(path)
    for source in args.source:
        check_outputs(args.output, Path(source) if Path(source).is_file() else None)
    margin_s = parse_seconds("--margin", args.margin)
    zone = find_zone(args.time_zone, "--time-zone") if args.time_zone else None
    outputs = EventOutputs(
        folder_of(args.clips), folder_of(args.pictures), margin_s, zone.key if zone else ""
    )
    first = _of_source(args, args.source[0])
    settings = config.load(args.config, options.flags(first))
    configure_logging(settings.log.level, settings.log.style)
    trigger, mask = trigger_of(args, settings)
    totals = _SearchTotals()
    jobs = _jobs(args)
    jobs_of_one = jobs if len(args.source) == 1 else 1

    def search_of(source: str) -> tuple[EventSearch, SourceOutputs]:
        search = EventSearch(_of_source(args, source), trigger, mask, jobs=jobs_of_one)
        return search, search.outputs(outputs)

    # Nothing is made before the first source was accepted.
    searches = chain([search_of(args.source[0])], map(search_of, args.source[1:]))
    make_folders(args.output)
    with ExitStack() as files:
        elsewhere = None
        if jobs > jobs_of_one:
            sources = [_of_source(args, source) for source in args.source]
            elsewhere = search_elsewhere(sources, trigger, mask, jobs)
            files.enter_context(closing(elsewhere))
        writers = [files.enter_context(event_file(path, zone)) for path in paths]
        for search, own_outputs in searches:
            shown = _EventTable(search.source, zone) if not writers else None
            found = search if elsewhere is None else next(elsewhere)
            for one in found.events():
                joined = replace(one, joined_s=totals.files_s + one.joined_s)
                totals.n_events += 1
                for write in writers:
                    write(joined)
                if shown:
                    shown.add(joined)
                own_outputs.write(joined)
            totals.add(found.report())
        outputs.make_folders()
    for path in paths:
        print(f"# {printable(path)}: {totals.n_events} event{'' if totals.n_events == 1 else 's'}")
    return _INCOMPLETE if totals.n_left_out else 0


@dataclass(slots=True)
class _SearchTotals:
    """What all sources so far have."""

    n_events: int = 0
    n_left_out: int = 0
    files_s: float = 0.0

    def add(self, report: SearchReport) -> None:
        """Add a source, and log what was left out, and rows that could not be examined."""
        self.n_left_out += report.n_left_out
        self.files_s += report.files_s
        log_report(report)


def _jobs(args: argparse.Namespace) -> int:
    """Return the number of processes; raises ConfigError."""
    jobs: int = args.jobs or 1
    if jobs == 1:
        return 1
    if jobs > JOBS_MAX:
        raise ConfigError(f"--jobs {jobs}: must be 1 to {JOBS_MAX}")
    for source in args.source:
        if not (Path(source).is_file() or Path(source).is_dir()):
            raise ConfigError(f"--jobs {jobs}: must be of recordings, which {source} is not")
    return jobs


def _of_source(args: argparse.Namespace, source: str) -> argparse.Namespace:
    one = copy.copy(args)
    one.source = source
    return one


def _local_times(zone: ZoneInfo) -> Column:
    """Return the column of local times, to milliseconds, with their offset from UTC."""
    name = shown_zone(zone.key)
    width = max(_LOCAL_WIDTH, len(name))
    return Column("begin", name, width, lambda text: f"{text[:23]}{text[29:]}")


class _EventTable:
    """Prints events, a line each, below the name of their file where there are several."""

    def __init__(self, source: Source, zone: ZoneInfo | None) -> None:
        self._zone = zone
        self._times = (_UTC if zone is None else _local_times(zone), *_COLUMNS)
        self._has_files = isinstance(source, SelectableSource) and len(source.files) > 1
        self._file, self._has_heading = "", False
        print(f"# {source.description}")

    def add(self, one: Detection) -> None:
        """Print an event; above the first one the names of the columns."""
        columns = self._times if one.has_utc else _COLUMNS
        if one.event.pulses is not None:
            columns = (*columns, _PULSES)
        if not self._has_heading:
            print(heading(columns))
            self._has_heading = True
        if self._has_files and one.file != self._file:
            self._file = one.file
            print(f"# {printable(one.file)}")
        print(line(columns, fields_of(one, self._zone)), flush=True)
