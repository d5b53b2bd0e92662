"""``spectrod detect``: events in recordings, as tables, selections, labels and clips."""

import argparse
import copy
import logging
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.apps.detect.event_outputs import EventOutputs, SourceOutputs, folder_of
from spectrod.apps.detect.frames import analysis_of
from spectrod.apps.detect.trigger_flags import add_trigger, trigger_of
from spectrod.cli import options
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.numbers import count
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sample_range import SampleRange, sample_range
from spectrod.cli.tables import Column, fixed, heading, line
from spectrod.cli.times import parse_seconds, parse_utc_ns, zone_of_times
from spectrod.config import config
from spectrod.daemon.service import configure_logging
from spectrod.dsp.blocks import RangeTrimmer
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.event_files import FORMATS, event_file, fields_of, format_of
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.names import name_channels
from spectrod.lib.ordered_work import JOBS_MAX, collect_warnings, in_processes
from spectrod.lib.text import printable
from spectrod.lib.time_zones import find_zone, shown_zone
from spectrod.measure.triggers.detection import Detection, FilePlaces, detections
from spectrod.measure.triggers.look_ahead import LookAhead
from spectrod.measure.triggers.mask import Mask
from spectrod.measure.triggers.trigger import Trigger
from spectrod.measure.triggers.trigger_config import TriggerConfig
from spectrod.recording.output_plan import check_outputs, make_folders
from spectrod.source.base import SelectableSource, StreamFile
from spectrod.source.kinds import forms
from spectrod.source.open_source import Source, open_source

_log = logging.getLogger(__name__)

_INCOMPLETE = 65
_READ_SAMPLES = 1 << 16
_POLL_S = 0.1
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
        help="processes that search several SRC side by side, with the same events (1)",
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

    def search_of(source: str) -> tuple[_EventSearch, SourceOutputs]:
        search = _EventSearch(_of_source(args, source), trigger, mask)
        return search, search.outputs(outputs)

    # Nothing is made before the first source was accepted.
    searches = chain([search_of(args.source[0])], map(search_of, args.source[1:]))
    make_folders(args.output)
    with ExitStack() as files:
        elsewhere = _found_elsewhere(args, trigger, mask, jobs) if jobs > 1 else None
        if elsewhere is not None:
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


class _SearchReport(NamedTuple):
    """What is known of a source once it was searched."""

    files_s: float
    n_left_out: int
    warnings: list[tuple[str, int, str]]


@dataclass(slots=True)
class _SearchTotals:
    """What all sources so far have."""

    n_events: int = 0
    n_left_out: int = 0
    files_s: float = 0.0

    def add(self, report: _SearchReport) -> None:
        """Add a source, and log what was left out, and rows that could not be examined."""
        self.n_left_out += report.n_left_out
        self.files_s += report.files_s
        for name, level, text in report.warnings:
            logging.getLogger(name).log(level, "%s", text)


class _FoundEvents(NamedTuple):
    """The events of a source that another process has searched."""

    found: list[Detection]
    about: _SearchReport

    def events(self) -> Iterator[Detection]:
        """Yield the events in order."""
        return iter(self.found)

    def report(self) -> _SearchReport:
        """Return what else is known."""
        return self.about


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
    if len(args.source) == 1:
        why = "the noise floor goes on through all of a source"
        _log.warning("--jobs %d: one process searches %s: %s", jobs, args.source[0], why)
    return min(jobs, len(args.source))


def _found_elsewhere(
    args: argparse.Namespace, trigger: TriggerConfig, mask: Mask | None, jobs: int
) -> Generator[_FoundEvents]:
    return in_processes(partial(_search, args, trigger, mask), args.source, jobs)


def _search(
    args: argparse.Namespace, trigger: TriggerConfig, mask: Mask | None, source: str
) -> _FoundEvents:
    """Search a source, in a process of its own."""
    logged = collect_warnings()
    search = _EventSearch(_of_source(args, source), trigger, mask, is_hidden=True)
    logged.found.clear()  # the other process says what it finds when it opens the source
    found, about = list(search.events()), search.report()
    return _FoundEvents(found, about._replace(warnings=logged.found + about.warnings))


def _of_source(args: argparse.Namespace, source: str) -> argparse.Namespace:
    one = copy.copy(args)
    one.source = source
    return one


class _EventSearch:
    """The search for the events of one source."""

    def __init__(
        self,
        args: argparse.Namespace,
        trigger: TriggerConfig,
        mask: Mask | None,
        *,
        is_hidden: bool = False,
    ) -> None:
        self._args, self._is_hidden = args, is_hidden
        self._files_s = 0.0
        loaded = config.load_layers(args.config, options.flags(args))
        self._settings = loaded.config
        self.source = source = self._open()
        if source.is_live:
            raise ConfigError(
                f"{args.source}: must be stored or piped sound: [triggers.NAME] of a daemon "
                "watches live sound"
            )
        for flag, folder in (("--clips", args.clips), ("--pictures", args.pictures)):
            if folder and not self._can_reopen:
                raise ConfigError(f"{flag} {folder}: {args.source} cannot be read twice")
        self._has_utc = source.n_samples is None or source.start_utc_ns is not None
        if args.time_zone and not self._has_utc:
            raise ConfigError(
                f"--time-zone {args.time_zone}: {args.source} has no start time; give --start-time"
            )
        self._span = sample_range(args, source)
        if isinstance(source, SelectableSource):
            source.start_at(self._span.first)
        n_signals = source.channels // 2 if source.is_iq else source.channels
        self._channels = name_channels(self._settings.source.channel_names, n_signals)
        self._spec = analysis_of(args, loaded, source.fs).spec(
            source.fs,
            source.channels,
            iq=source.is_iq,
            center_frequency_hz=source.center_frequency_hz,
            calibration=self._settings.source.calibrations(n_signals),
        )
        self._finder = LookAhead(Trigger(trigger, self._spec, self._channels, mask))

    def outputs(self, outputs: EventOutputs) -> SourceOutputs:
        """Return what is written of each event; raises ConfigError."""
        return SourceOutputs(outputs, self.reopen, self._spec, self._channels)

    @property
    def _can_reopen(self) -> bool:
        return Path(self._args.source).exists() and self.source.n_samples is not None

    def _open(self) -> Source:
        args = self._args
        wanted = msgspec.structs.replace(self._settings.source, loop=bool(args.loop))
        source = open_source(wanted, "full")
        if args.start_time is not None and not source.is_live:
            source.start_utc_ns = parse_utc_ns("--start-time", args.start_time, zone_of_times(args))
        return source

    def reopen(self) -> Source:
        """Return the source for another reading, which the search does not disturb."""
        source = self.source
        again = source.again() if isinstance(source, SelectableSource) else None
        return again or self._open()

    def events(self) -> Iterator[Detection]:
        """Yield the events in order, each once it has ended."""
        source = self.source
        files = source.files if isinstance(source, SelectableSource) else ()
        whole = StreamFile(self._args.source, 0, source.n_samples or 0)
        places = FilePlaces(files or (whole,), source.fs, 0.0)
        with closing(
            _batches(source, self._spec, self._span, is_hidden=self._is_hidden)
        ) as batches:
            yield from detections(
                batches, self._finder, places, self._channels, has_utc=self._has_utc
            )
        self._files_s = places.after_s

    def report(self) -> _SearchReport:
        """Return what was left out, and rows that could not be examined."""
        left_out, name = self.source.left_out, self.source.description
        texts = list(left_out.lines)
        if n_events := self._finder.n_left_out:
            texts.append(
                f"{name}: {n_events} event{'' if n_events == 1 else 's'} within the hold-off of "
                "another one left out: --hold-off 0 keeps them"
            )
        if n_rows := self._finder.unexamined_rows:
            length = f"{n_rows * self._spec.row_s:.3g} s"
            texts.append(f"{name}: {length} are too short for a noise floor and not examined")
        warnings = [(_log.name, logging.WARNING, text) for text in texts]
        return _SearchReport(self._files_s, left_out.n_files, warnings)


def _batches(
    source: Source, spec: SpectrumSpec, span: SampleRange, *, is_hidden: bool
) -> Generator[SpectrumBatch]:
    """Start a source, yield the rows of a range of its samples, and stop the source."""
    reader = source.open_reader()
    layout = reader.layout
    stream = FrameStream(
        spec,
        NumpyEngine(),
        "gap",
        sample_format=layout.sample_format,
        interleaved=layout.interleaved,
    )
    trimmer = RangeTrimmer(span.first, span.max_samples)
    try:
        source.start(reader)
        with ProgressBar(source.fs, span.n_samples, is_hidden=is_hidden) as bar:
            while not reader.exhausted and trimmer.left != 0:
                read = reader.read(_READ_SAMPLES)
                if read is None:
                    reader.wait(timeout_s=_POLL_S)
                elif (block := trimmer.trim(read)) is not None:
                    bar.update(block.sample_index - span.first)
                    yield from stream.push(block)
        yield from stream.finish()
    except InputError as error:
        raise InputError(f"{source.description}: {error}") from error
    finally:
        source.stop()
        reader.close()
        reader.release()
    if source.failure is not None:
        raise source.failure


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
