"""The search for the events of a source, in this process and in others."""

import argparse
import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from spectrod.analysis.numpy_engine import Float32Engine, Float64Engine, NumpyEngine
from spectrod.analysis.stft.stft_host import MANY_POINTS
from spectrod.analysis.stream import FrameStream
from spectrod.apps.detect.event_outputs import EventOutputs, SourceOutputs
from spectrod.apps.detect.frames import analysis_of
from spectrod.apps.detect.row_parts import RowPart, cut_rows, useful_jobs
from spectrod.cli import options
from spectrod.cli.calibration_dates import warn_of_validity
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sample_range import sample_range
from spectrod.cli.times import parse_utc_ns, zone_of_times
from spectrod.config import config
from spectrod.dsp.blocks import RangeTrimmer
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.names import name_channels
from spectrod.lib.ordered_work import collect_warnings, in_processes
from spectrod.measure.triggers.detection import Detection, FilePlaces, PlacedEvents
from spectrod.measure.triggers.look_ahead import LookAhead
from spectrod.measure.triggers.mask import Mask
from spectrod.measure.triggers.trigger import MeasuredRows, Trigger
from spectrod.measure.triggers.trigger_config import TriggerConfig
from spectrod.source.base import SelectableSource, StreamFile
from spectrod.source.open_source import Source, open_source

_log = logging.getLogger(__name__)

_READ_SAMPLES = 1 << 16
_POLL_S = 0.1

Warnings = list[tuple[str, int, str]]
"""Name of the logger, level and text of each."""


class SearchReport(NamedTuple):
    """What is known of a source once it was searched."""

    files_s: float
    n_left_out: int
    warnings: Warnings


class FoundEvents(NamedTuple):
    """The events of a source that another process has searched."""

    found: list[Detection]
    about: SearchReport

    def events(self) -> Iterator[Detection]:
        """Yield the events in order."""
        return iter(self.found)

    def report(self) -> SearchReport:
        """Return what else is known."""
        return self.about


class EventSearch:
    """The search for the events of one source.

    Parameters
    ----------
    args : Namespace
        Arguments of the command, with one source.
    trigger : TriggerConfig
    mask : Mask or None
        The learned mask that it names.
    jobs : int
        Processes that analyse parts of the source, if it can be cut. Triggers, whose floors and
        times after an event go on from part to part, read all rows here, in order.
    is_hidden : bool
        Whether no progress is shown.

    Raises
    ------
    SpectrodError
        If the source cannot be read, or does not fit the arguments.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        trigger: TriggerConfig,
        mask: Mask | None,
        *,
        jobs: int = 1,
        is_hidden: bool = False,
    ) -> None:
        self._args, self._trigger, self._mask = args, trigger, mask
        self._is_hidden = is_hidden
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
        n_signals = source.channels // 2 if source.is_iq else source.channels
        self._channels = name_channels(self._settings.source.channel_names, n_signals)
        self._spec = analysis_of(args, loaded, source.fs).spec(
            source.fs,
            source.channels,
            iq=source.is_iq,
            center_frequency_hz=source.center_frequency_hz,
            calibration=self._settings.source.calibrations(n_signals),
        )
        warn_of_validity(
            args.source, source, self._span, self._spec.calibration, has_utc=self._has_utc
        )
        self._finder = LookAhead(Trigger(trigger, self._spec, self._channels, mask))
        self._jobs = n = useful_jobs(source, self._span, self._spec, jobs) if jobs > 1 else 1
        self._parts = cut_rows(source, self._span, self._spec, n) if n > 1 else []
        if jobs > 1 and len(self._parts) < 2:
            why = "it is too short, or averages go on through all of it"
            _log.warning("--jobs %d: one process searches %s: %s", jobs, args.source, why)

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

    # ---- rows

    def rows(self, part: RowPart | None = None) -> Generator[MeasuredRows]:
        """Start the source, yield the rows of a part of it, by default of all, and stop it."""
        first, max_samples = self._span.first, self._span.max_samples
        if part is not None:
            first, max_samples = part.first, part.stop - part.first
        is_after_gap = part is not None and part.is_after_gap
        for batch in self._batches(first, max_samples):
            rows = self._timed(self._finder.measure(batch))
            yield replace(rows, is_after_gap=rows.is_after_gap or is_after_gap)
            is_after_gap = False

    def _timed(self, rows: MeasuredRows) -> MeasuredRows:
        """Return rows with times that do not depend on how their samples were read."""
        source = self.source
        if source.n_samples is None:
            return rows
        since_ns = np.rint(rows.sample_index / source.fs * NS_PER_S).astype(np.int64)
        return replace(rows, t_utc_ns=(source.start_utc_ns or 0) + since_ns)

    def _engine(self) -> NumpyEngine:
        """Return an engine whose rows do not depend on those before, if the length is known."""
        n_samples, spec = self._span.n_samples, self._spec
        if n_samples is None:
            return NumpyEngine()
        n_points = n_samples // spec.hop * spec.nfft * spec.n_signals
        return Float32Engine() if n_points >= MANY_POINTS else Float64Engine()

    def _batches(self, first: int, max_samples: int | None) -> Generator[SpectrumBatch]:
        source = self.source
        if isinstance(source, SelectableSource):
            source.start_at(first)
        reader = source.open_reader()
        layout = reader.layout
        stream = FrameStream(
            self._spec,
            self._engine(),
            "gap",
            sample_format=layout.sample_format,
            interleaved=layout.interleaved,
        )
        trimmer = RangeTrimmer(first, max_samples)
        try:
            source.start(reader)
            with ProgressBar(source.fs, self._span.n_samples, is_hidden=self._is_hidden) as bar:
                while not reader.exhausted and trimmer.left != 0:
                    read = reader.read(_READ_SAMPLES)
                    if read is None:
                        reader.wait(timeout_s=_POLL_S)
                    elif (block := trimmer.trim(read)) is not None:
                        bar.update(block.sample_index - first)
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

    def _rows_elsewhere(self) -> Generator[MeasuredRows]:
        """Let other processes analyse the parts of the source; yield their rows in order."""
        work = partial(_measure_part, self._args, self._trigger, self._mask)
        source, first = self.source, self._span.first
        with (
            ProgressBar(source.fs, self._span.n_samples, is_hidden=self._is_hidden) as bar,
            closing(in_processes(work, self._parts, self._jobs)) as results,
        ):
            for part, result in zip(self._parts, results, strict=True):
                for path, line in result.left_out:
                    source.left_out.note(path, line)
                _log_all(result.warnings)
                yield from result.rows
                bar.update(part.stop - first)

    # ---- events

    def events(self) -> Iterator[Detection]:
        """Yield the events in order, each once it has ended."""
        source = self.source
        files = source.files if isinstance(source, SelectableSource) else ()
        whole = StreamFile(self._args.source, 0, source.n_samples or 0)
        places = FilePlaces(files or (whole,), source.fs, 0.0)
        rows = self._rows_elsewhere() if len(self._parts) > 1 else self.rows()
        found = PlacedEvents(self._finder, places, self._channels, has_utc=self._has_utc)
        with closing(rows):
            for one in rows:
                yield from found.push_measured(one)
        yield from found.finish()
        self._files_s = places.after_s

    def report(self) -> SearchReport:
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
        return SearchReport(self._files_s, left_out.n_files, warnings)


def log_report(report: SearchReport) -> None:
    """Log what was left out of a source, and rows that could not be examined."""
    _log_all(report.warnings)


def _log_all(warnings: Iterable[tuple[str, int, str]]) -> None:
    for name, level, text in warnings:
        logging.getLogger(name).log(level, "%s", text)


# ---- in other processes


class _PartRows(NamedTuple):
    """What a process has measured of a part."""

    rows: list[MeasuredRows]
    left_out: list[tuple[Path, str]]
    warnings: Warnings


def _measure_part(
    args: argparse.Namespace, trigger: TriggerConfig, mask: Mask | None, part: RowPart
) -> _PartRows:
    logged = collect_warnings()
    search = EventSearch(args, trigger, mask, is_hidden=True)
    logged.found.clear()  # the other process says what it finds when it opens the source
    left_out = search.source.left_out
    n_before = left_out.n_files
    rows = list(search.rows(part))
    return _PartRows(rows, left_out.since(n_before), logged.found)


def search_elsewhere(
    sources: Sequence[argparse.Namespace], trigger: TriggerConfig, mask: Mask | None, jobs: int
) -> Generator[FoundEvents]:
    """Search several sources in processes; yield the events of each, in order."""
    return in_processes(partial(_search, trigger, mask), sources, jobs)


def _search(trigger: TriggerConfig, mask: Mask | None, args: argparse.Namespace) -> FoundEvents:
    logged = collect_warnings()
    search = EventSearch(args, trigger, mask, is_hidden=True)
    logged.found.clear()  # the other process says what it finds when it opens the source
    found, about = list(search.events()), search.report()
    return FoundEvents(found, about._replace(warnings=logged.found + about.warnings))
