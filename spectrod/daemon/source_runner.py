"""The part of the daemon that runs one source: waits for it, builds its pipeline, reports on it."""

import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spectrod.analysis.compile_queue import CompileQueue
from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.live_engine import LiveEngine
from spectrod.analysis.self_check import SelfCheck
from spectrod.analysis.stream import FrameStream
from spectrod.analysis.warm_up import warm_up, warm_up_in_process
from spectrod.config.config import AnalysisConfig, EngineConfig, SourceTable
from spectrod.daemon.demand import Demand
from spectrod.daemon.live_meters import LiveMeter
from spectrod.daemon.live_triggers import LiveTriggers
from spectrod.daemon.metered_source import MeteredSource
from spectrod.daemon.pipeline import Pipeline
from spectrod.daemon.publisher.interval_encoder import IntervalEncoder
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.daemon.publisher.topic_encoder import StatedFacts
from spectrod.daemon.validity_watch import ValidityWatch
from spectrod.dsp.notes import bands_blurred, bands_left_out, frames_leave_out, rows_leave_out
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import SpectrodError, UnavailableError
from spectrod.lib.events import EventLog
from spectrod.lib.job_pool import JobPool, PoolJob, Steps, Wait
from spectrod.lib.latency import LatencyCounts
from spectrod.lib.names import find_product
from spectrod.lib.stats import CaptureStats, Stats
from spectrod.lib.time_zones import zone_name
from spectrod.lib.wakeup import Wakeup
from spectrod.lib.worker import Worker
from spectrod.measure.kinds import KINDS
from spectrod.measure.measurement import Measurement
from spectrod.source.base import PulledSource
from spectrod.source.checks import ContentChecks
from spectrod.source.condition_track import ConditionTrack
from spectrod.source.kinds import find_kind
from spectrod.source.open_source import Source, open_source, specs_of
from spectrod.wire.headers import TRIGGERS_MAX

if TYPE_CHECKING:
    from spectrod.daemon.publisher.source_publisher import SourcePublisher

_log = logging.getLogger(__name__)

GIVE_UP_S = 2.5
"""Longest wait of a stop for searches [s]: a driver may block them."""

_MATCHED_S = 5.0
"""How long the products of a change are computed in any case [s].

Until the publisher has matched them with its subscriptions, their subscribers would miss rows.
"""

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Shared:
    """State shared by the runners of a daemon."""

    engine: EngineConfig
    publisher: Publisher
    events: EventLog
    progress: Wakeup
    """Set when the state of a source has changed."""
    changing: threading.Lock
    """Held while a source starts and while analyses change, which must not overlap."""
    is_alone: Callable[[], bool]
    """Returns True if the daemon has only one source."""
    masks: Path
    """Folder of learned masks."""
    compilations: CompileQueue = field(default_factory=CompileQueue)
    pool: JobPool | None = None
    """Serves the sources that can wait; None: each has threads of its own."""
    on_pipeline: Callable[[], None] = lambda: None
    """Called when a source's pipeline is created, before its start, and when it has ended."""


class SourceRunner:
    """Runs one source of the daemon, from its samples to its feed.

    If the source is absent and its kind allows that, ``start`` starts a thread, or a job of the
    pool, that searches for it. When it is found, rate and channels are known, and the search
    creates the pipeline. Only the search sets ``pipeline`` after the start.

    Parameters
    ----------
    table : SourceTable
        The source and its analyses.
    shared : Shared
        State shared by the daemon's runners.

    Attributes
    ----------
    name : str
        The source's name in topics.
    table : SourceTable
        The settings in force.
    pipeline : Pipeline or None
        None until the source has been opened.
    triggers : LiveTriggers
        The triggers of its spectra.
    demand : Demand
        Demand of subscribers and leases for the source, and whether it is paused.
    ended_s : float
        Monotonic time of the end [s]; infinity before.

    Raises
    ------
    SpectrodError
        If the source or its pipeline cannot be created; an absent source is no error if its kind
        allows that.
    """

    def __init__(self, table: SourceTable, shared: Shared) -> None:
        self.table, self._shared = table, shared
        self._attempts = 0
        self._waiting_for = ""
        self._reported_waiting_for = ""
        self._reporting = threading.Lock()
        self._failure: SpectrodError | None = None
        self._stopping = threading.Event()
        self._search: Worker | PoolJob | None = None
        self._feed: SourcePublisher | None = None
        self._checks: ContentChecks | None = None
        self._meters: tuple[LiveMeter, ...] = ()
        self.triggers = LiveTriggers(shared.events, shared.masks)
        self.ended_s = math.inf
        self.demand = Demand(frozenset())
        self.pipeline: Pipeline | None = None
        table.check_calibration()  # raise errors now, not when the source is found
        self.triggers.check_masks(table)
        source = self._open()
        self.name = source.name if source else _topic_name(table)
        if source:
            self.pipeline = self._make(source)
        else:
            self._open_engine(self.name).close()  # raise errors now, not when the source is found

    def open_feed(self) -> None:
        """Create the feed to subscribers; call it before ``start``.

        Raises
        ------
        ConfigError
            If the name is not valid in a topic, or another source has it.
        """
        self._feed = self._shared.publisher.add_source(
            self.name,
            self.stats,
            self.table.channel_names,
            self.demand.want,
            StatedFacts(self.table.site.attributes, zone_name(self.table.time_zone)),
        )
        if self.pipeline:
            self.pipeline.attach(self._feed, wants=False)
            self._offer(self.pipeline)

    def close_feed(self) -> None:
        """Send the last heartbeat to subscribers; call it after ``stop``."""
        if self._feed:
            self._shared.publisher.remove_source(self._feed)

    def start(self) -> None:
        """Start the pipeline, or the search for the source; raises SpectrodError."""
        if self.pipeline:
            self.pipeline.start()
            return
        _log.warning("%s: waiting: %s", self.name, self._waiting_for, extra=self._about("waiting"))
        self._report_change()
        task, pool = f"search for {self.name}", self._shared.pool
        if pool and self.table.is_raw:  # a sound card's driver may hold its thread
            self._search = pool.job(task, self._find(), self._search_ended)
        else:
            self._search = Worker(task, self._find_alone, self._search_ended)
        self._search.start()

    def ask_to_stop(self) -> None:
        """Request the end of the search and of the analysis without waiting for it."""
        self._stopping.set()
        if self.pipeline:
            self.pipeline.ask_to_stop()
        if isinstance(self._search, PoolJob):
            self._search.wake()

    def stop(self, deadline_s: float = math.inf) -> None:
        """Stop the pipeline and the search; idempotent.

        A search that a driver blocks past the deadline [s, monotonic] is left running: it opens
        nothing any more.
        """
        self.ask_to_stop()
        left_s = min(GIVE_UP_S, deadline_s - time.monotonic())
        if self._search and not self._search.wait(max(0.0, left_s)):
            _log.warning("%s: still looking for the source: not waited for", self.name)
        if self.pipeline:
            self.pipeline.stop()
            self.triggers.stop(self.pipeline)

    def is_source_of(self, table: SourceTable) -> bool:
        """Return True if a table describes this source, whatever its analyses."""
        # A single source needs no name, and loses it again when others were removed.
        is_named_so = table.name in ("", self.name, self.table.name)
        return is_named_so and _source(table) == _source(self.table)

    def prepare(self, table: SourceTable) -> FrameStream | None:
        """Create the analysis for ``change_to``; None without a change or an opened source.

        Raises
        ------
        ConfigError, UnavailableError
            If the engine cannot compute it, or memory is short.
        """
        if self.pipeline is None:
            return None
        if _measurements(table) != _measurements(self.table):
            self._open_meters(table, self.pipeline.source)  # raises errors before the change
        specs = specs_of(table, self.pipeline.source)
        if table.triggers:
            self.triggers.open(table, specs)  # the same
        if _analyses(table) == _analyses(self.table):
            return None
        # On a device that was requested, compile before the change: compiling at the first launch
        # would stop the analysis for seconds.
        engine = self.pipeline.engine
        if not isinstance(engine, LiveEngine):
            new = [spec for spec in specs if spec not in self.pipeline.specs]
            warm_up_in_process(engine, new, self.pipeline.ring.layout)
        return self.pipeline.prepare(specs)

    def change_to(self, table: SourceTable, stream: FrameStream | None) -> None:
        """Change to the analyses of a table of this source, prepared by ``prepare``."""
        has_changed = _measurements(table) != _measurements(self.table)
        has_new_triggers = bool(stream) or table.triggers != self.table.triggers
        self.table = table
        if self.pipeline and stream:
            for spec in stream.specs:
                if spec not in self.pipeline.coming_specs:
                    self.demand.lease(spec.product, _MATCHED_S)
            self.pipeline.change_to(stream)
        if self.pipeline and has_changed:
            self._change_meters(self._open_meters(table, self.pipeline.source), self.pipeline)
        if self.pipeline and has_new_triggers:
            found = self.triggers.open(table, self.pipeline.coming_specs)
            self.triggers.run(self.pipeline, found)
        if self.pipeline and (stream or has_changed):
            self._offer(self.pipeline)

    # ---- measurements

    @property
    def meters(self) -> tuple[LiveMeter, ...]:
        """The measurements; empty until the source was opened."""
        return self._meters

    def _open_meters(self, table: SourceTable, source: Source) -> tuple[LiveMeter, ...]:
        """Create the meters of a table; raises ConfigError."""
        return MeteredSource(source, table, self.demand, self._write_interval).meters()

    def _change_meters(self, coming: tuple[LiveMeter, ...], pipeline: Pipeline) -> None:
        """Run these meters; one with unchanged settings goes on in the middle of its interval."""
        before = {meter.settings: meter for meter in self._meters}
        coming = tuple(before.get(meter.settings, meter) for meter in coming)
        for meter in set(self._meters).difference(coming):
            pipeline.untap(meter)
        new = [meter for meter in coming if meter not in self._meters]
        self._meters = coming
        self._tap(pipeline, new)

    def _tap(self, pipeline: Pipeline, meters: Iterable[LiveMeter]) -> None:
        for meter in meters:
            pipeline.tap(meter, partial(self._meter_failed, meter.name))

    def _meter_failed(self, name: str, error: SpectrodError) -> None:
        _log.error("%s: %s: %s", self.name, name, error)

    def _write_interval(self, encoder: IntervalEncoder, row: Measurement, t_mono_ns: int) -> None:
        if self._feed:
            self._feed.write_interval(encoder, row, t_mono_ns)

    def _offer(self, pipeline: Pipeline) -> None:
        """Announce all products to subscribers."""
        if self._feed:
            self._feed.offer(pipeline.coming_specs, [one.encoder for one in self._meters])

    def reload_mask(self, name: str) -> bool:
        """Restart the triggers if one names this learned mask; return whether one does.

        Raises
        ------
        ConfigError
            If the mask does not fit; the triggers go on with the old one.
        """
        if self.pipeline is None or all(one.mask != name for one in self.table.triggers):
            return False
        with self._shared.changing:
            found = self.triggers.open(self.table, self.pipeline.coming_specs)
            self.triggers.run(self.pipeline, found)
        return True

    # ---- demand

    def topics(self) -> frozenset[str]:
        """Return the topics with values that the source can send; empty if never opened."""
        return self._feed.topics if self._feed else frozenset()

    def lease(self, product: str, seconds: float) -> None:
        """Compute a product for a duration [s], even without a subscriber; any thread.

        Raises
        ------
        ConfigError
            If there is no such product.
        UnavailableError
            If the source was never opened.
        """
        pipeline = self._opened()
        if product in (one.name for one in self._meters):
            self.demand.lease(product, seconds)
        else:
            pipeline.lease(product, seconds)

    def checked(self) -> tuple[tuple[str, ...], int]:
        """Return the active content checks, and the number of clipped samples so far."""
        checks = self._checks
        return (checks.active, checks.clipped_samples) if checks else ((), 0)

    def pause(self) -> None:
        """Compute, send and record nothing until ``resume``; any thread."""
        self.demand.pause(is_paused=True)
        self._report_change()

    def resume(self) -> None:
        """End a pause; any thread."""
        self.demand.pause(is_paused=False)
        self._report_change()

    def reset(self, product: str = "") -> None:
        """Restart averages, holds and intervals, of a product or of all; any thread.

        Raises
        ------
        ConfigError
            If there is no such product.
        UnavailableError
            If the source was never opened.
        """
        pipeline = self._opened()
        chosen = [one for one in self._meters if product in ("", one.name)]
        for meter in chosen:
            meter.restart()
        if not (product and chosen):
            pipeline.reset(product)

    def _opened(self) -> Pipeline:
        if self.pipeline is None:
            raise UnavailableError(f"{self.name}: waiting: {self._waiting_for}")
        return self.pipeline

    # ---- state

    def latencies(self) -> dict[str, LatencyCounts]:
        """Return the latency of each stage; none before the source was opened. Any thread."""
        pipeline, feed = self.pipeline, self._feed
        stages = {}
        if pipeline and pipeline.source.is_live:
            stages["capture"] = pipeline.capture_latency
        if pipeline:
            stages["analysis"] = pipeline.analysis_latency
        if feed:
            stages |= {"queue": feed.queue_latency, "publish": feed.publish_latency}
        return {stage: histogram.snapshot() for stage, histogram in stages.items()}

    @property
    def ended(self) -> bool:
        """True if no more samples will be analysed."""
        return self._failure is not None or (self.pipeline is not None and self.pipeline.finished)

    @property
    def failure(self) -> SpectrodError | None:
        """Failure that ended the source early."""
        return self._failure or (self.pipeline.failure if self.pipeline else None)

    def stats(self) -> Stats:
        """Return a snapshot of the counters; any thread may call it."""
        pipeline, feed = self.pipeline, self._feed
        stats = pipeline.stats() if pipeline else self._stats_without_source()
        wanted = tuple(one.name for one in self._meters if one.is_wanted)
        triggers, active = self.triggers.names(TRIGGERS_MAX)
        examined = self.triggers.products(TRIGGERS_MAX)
        return replace(
            stats,
            products=(*stats.products, *(one.name for one in self._meters)),
            computed=(*stats.computed, *wanted),
            state="failed" if self._failure else stats.state,
            name=self.name,
            triggers=triggers,
            active_triggers=active,
            trigger_products=tuple(one for one in examined if one not in stats.products[:1]),
            messages=feed.messages if feed else 0,
            last_message_utc_ns=feed.last_message_utc_ns if feed else 0,
            dropped=feed.dropped if feed else 0,
            heartbeats=feed.heartbeats if feed else 0,
            subscribers=self._shared.publisher.subscribers,
        )

    def _stats_without_source(self) -> Stats:
        capture = CaptureStats(waiting_for=self._waiting_for, attempts=self._attempts)
        return Stats(state="waiting", source=self.table.uri, capture=capture)

    # ---- the pipeline

    def _make(self, source: Source) -> Pipeline:
        """Create the pipeline of a source; the pipeline owns the source from here on."""
        with ExitStack() as undo:
            undo.callback(source.stop)
            source.left_out.report_to(self._note_left_out)
            specs = specs_of(self.table, source)
            self.triggers.source_name = source.name
            triggers = self.triggers.open(self.table, specs)
            engine = self._open_engine(source.name)
            undo.callback(engine.close)
            if not isinstance(engine, LiveEngine):
                if self._shared.publisher.endpoints:  # the daemon runs: other sources are analysed
                    warm_up_in_process(engine, specs, source.layout)
                warm_up(engine, specs, source.layout)
            for spec in specs:
                if spec.uncovered:
                    _log.info("%s: %s", source.name, rows_leave_out(spec))
                if text := frames_leave_out(spec):
                    _log.info("%s: %s", source.name, text)
                for text in filter(None, (bands_left_out(spec), bands_blurred(spec))):
                    _log.warning("%s: %s: %s", source.name, spec.product, text)
            is_paced = source.is_live or self.table.pace == "realtime"
            self._checks = ContentChecks(source.channels, source.fs) if is_paced else None
            pipeline = Pipeline(
                source,
                specs,
                engine,
                demand=self.demand,
                progress=self._shared.progress,
                on_nonfinite="gap",
                checks=self._checks,
                conditions=(
                    ConditionTrack(source.channels, source.fs, self._checks) if is_paced else None
                ),
                self_check=SelfCheck(source.fs) if is_paced else None,
                on_change=self._report_change,
                on_end=self._note_end,
                note=self._note,
                pool=self._pool_of(source),
            )
            if any(one and one.validity.is_stated for spec in specs for one in spec.calibration):
                pipeline.attach(ValidityWatch(source.name), wants=False)
            self._meters = self._open_meters(self.table, source)
            self._tap(pipeline, self._meters)
            self.triggers.run(pipeline, triggers)
            undo.pop_all()
        return pipeline

    def _pool_of(self, source: Source) -> JobPool | None:
        """Return the pool if it can serve a source."""
        pool = self._shared.pool
        return pool if pool and isinstance(source, PulledSource) and source.join(pool) else None

    def _open_engine(self, name: str) -> Engine | LiveEngine:
        requested = self._shared.engine
        if requested.engine == "auto" and not requested.device:
            return LiveEngine(name, queue=self._shared.compilations)
        return open_engine(requested.engine, requested.device)

    def _note_end(self) -> None:
        for meter in self._meters:
            meter.finish()
        self.ended_s = time.monotonic()
        # With one source the exit error already says it.
        if self.failure and not self._shared.is_alone():
            _log.error("%s: failed: %s", self.name, self.failure, extra=self._about("failed"))
        if self.failure:
            self._note("source.failed", str(self.failure))
        else:
            _log.info("%s: the source has ended", self.name, extra=self._about("ended"))
            self._note("source.ended", "the source has ended")
        self.triggers.end_events()
        self._shared.on_pipeline()
        self._report_change()

    def _note_left_out(self, line: str) -> None:
        _log.warning("%s: %s", self.name, line, extra=self._about("left_out"))
        self._note("source.left_out", line)

    def _about(self, event: str) -> dict[str, object]:
        """Return the ``extra`` of a log record about this source."""
        return {"about": {"source": self.name, "event": f"source.{event}"}}

    def _note(self, kind: str, text: str) -> None:
        self._shared.events.add(kind, text, source=self.name)

    def _report_change(self) -> None:
        """Report a change of state, at once to subscribers, and to the daemon's owner."""
        self._note_waiting()
        if self._feed:
            self._feed.changed()
        self._shared.progress.set()

    def _note_waiting(self) -> None:
        pipeline = self.pipeline
        waiting_for = pipeline.source.capture().waiting_for if pipeline else self._waiting_for
        with self._reporting:
            before, self._reported_waiting_for = self._reported_waiting_for, waiting_for
        if waiting_for and waiting_for != before:
            self._note("source.waiting", waiting_for)
        elif before and not waiting_for:
            self._note("source.back", "samples come again")

    # ---- the search for an absent source

    def _open(self) -> Source | None:
        """Try to open the source; None if it is absent and may be."""
        self._attempts += 1
        try:
            return open_source(self.table)
        except UnavailableError as error:
            if not find_kind(self.table.uri)[0].may_be_absent:
                raise
            self._waiting_for = str(error)
            return None

    def _find_alone(self) -> None:
        for wait in self._find():
            self._stopping.wait(max(0.0, wait.until_s - time.monotonic()))

    def _find(self) -> Steps:
        """Try to start the source until that succeeds."""
        backoff = Backoff()
        is_over = False
        while not is_over:
            yield Wait(time.monotonic() + backoff.next_s())
            if self._stopping.is_set():
                return
            is_over = yield from self._try_once()

    def _search_ended(self, failure: SpectrodError | None) -> None:
        if failure:
            self.fail(failure)

    def fail(self, error: SpectrodError) -> None:
        """End early with this error; stop the pipeline."""
        self._failure = error
        if self.pipeline:
            self.pipeline.stop()
        self._note_end()

    def _try_once(self) -> Generator[Wait, None, bool]:
        """Try to start the source; return whether the search is over."""
        before = self._waiting_for
        source = self._open()
        if source is not None and (yield from self._start_in_turn(source)):
            return True
        if self._waiting_for != before:
            _log.warning(
                "%s: waiting: %s", self.name, self._waiting_for, extra=self._about("waiting")
            )
            self._report_change()
        return False

    def _start_in_turn(self, source: Source) -> Generator[Wait, None, bool]:
        # A thread that holds the lock to change the daemon may be waiting for this search to end.
        while not self._shared.changing.acquire(blocking=False):
            if self._stopping.is_set():
                source.stop()
                return True
            yield Wait(time.monotonic() + _POLL_S)
        try:
            return self._start_found(source)
        finally:
            self._shared.changing.release()

    def _start_found(self, source: Source) -> bool:
        """Start a source that was found, and its pipeline; return whether the search is over."""
        if self._stopping.is_set():
            source.stop()
            return True
        self.pipeline = self._make(source)
        if self._feed:
            self.pipeline.attach(self._feed, wants=False)
        self._shared.on_pipeline()
        try:
            self.pipeline.start()
        except UnavailableError as error:  # the source has disappeared again
            gone, self.pipeline = self.pipeline, None
            gone.stop()
            self._shared.on_pipeline()
            self._waiting_for = str(error)
            return False
        self._offer(self.pipeline)
        text = f"{self.name}: there: {source.description}, {source.fs:g} Hz"
        _log.info("%s", text, extra=self._about("back"))
        self._report_change()
        return True


def _source(table: SourceTable) -> SourceTable:
    """Return a table without its name and its products."""
    return msgspec.structs.replace(
        table,
        name="",
        analysis=AnalysisConfig(),
        products=(),
        levels=(),
        features=(),
        tones=(),
        transfer=(),
        triggers=(),
    )


def _measurements(table: SourceTable) -> tuple[object, ...]:
    return tuple(table.measurements(word) for word in KINDS)


def _analyses(table: SourceTable) -> tuple[object, ...]:
    return table.analysis, table.products


def _topic_name(table: SourceTable) -> str:
    """Return the name in topics of an absent source; it keeps that name when it is found."""
    kind, argument = find_kind(table.uri)
    assert kind.absent_name is not None
    return table.name or kind.absent_name(argument)


def pipeline_of(runner: SourceRunner) -> Pipeline:
    """Return the pipeline of a source.

    Raises
    ------
    UnavailableError
        If the source is absent or has ended.
    """
    pipeline = runner.pipeline
    if runner.ended or pipeline is None:
        why = "has ended" if runner.ended else "waits for its device"
        raise UnavailableError(f"the source {why}")
    return pipeline


def find_running(runner: SourceRunner, product: str) -> tuple[Pipeline, SpectrumSpec]:
    """Return the pipeline of a source and the spec of a product; empty is the main one.

    Raises
    ------
    NotFoundError, UnavailableError
        If there is no such product, or the source is absent or has ended.
    """
    try:
        pipeline = pipeline_of(runner)
    except UnavailableError as error:
        raise UnavailableError(f"source={runner.name!r}: no data: {error}") from error
    specs = {spec.product: spec for spec in pipeline.specs}
    return pipeline, find_product(product, specs, runner.name)
