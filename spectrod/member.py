"""One source of the daemon: its pipeline, or the search for it, and what is wanted of it."""

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.stream import FrameStream
from spectrod.analysis.warm_up import warm_up, warm_up_apart
from spectrod.backoff import Backoff
from spectrod.config import AnalysisConfig, EngineConfig, SourceTable
from spectrod.demand import Demand
from spectrod.errors import SpectrodError, UnavailableError
from spectrod.events import EventLog
from spectrod.pipeline import Pipeline
from spectrod.source import Source, open_source
from spectrod.source.checks import ContentChecks
from spectrod.source.kinds import find_kind
from spectrod.stats import CaptureStats, Stats
from spectrod.types import (
    bands_blurred,
    bands_left_out,
    frames_leave_out,
    rows_leave_out,
)
from spectrod.wakeup import Wakeup
from spectrod.wire.publisher import Publisher
from spectrod.worker import Worker

if TYPE_CHECKING:
    from spectrod.wire.feed import Feed

_log = logging.getLogger(__name__)

GIVE_UP_S = 2.5
"""How long a stop waits for those who look for sound cards: a driver may hold them up."""

_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Shared:
    """What the members of a daemon have in common."""

    engine: EngineConfig
    publisher: Publisher
    events: EventLog
    progress: Wakeup
    """Set when there is news."""
    changing: threading.Lock
    """Held while a source comes up and while analyses change: either sees all of the other."""
    is_alone: Callable[[], bool]
    """Returns whether there is one member only."""
    on_pipeline: Callable[[], None] = lambda: None
    """Called when the pipeline of a source is there, not started yet, and when it has ended."""


class Member:
    """One source of the daemon, from its samples to its feed.

    A sound card that is not there is sought by a thread from ``start`` on, until it is; rate and
    channels are known only then, and the pipeline is made. That thread is the only one that sets
    ``pipeline`` once the member has started.

    Parameters
    ----------
    table : SourceTable
        The source and its analyses.
    shared : Shared
        What it has in common with the daemon's others.

    Attributes
    ----------
    name : str
        What topics call the source.
    table : SourceTable
        As it holds now.
    pipeline : Pipeline or None
        None while the source was never there.
    demand : Demand
        What subscribers and leases want of the source, and whether it is paused.
    ended_s : float
        When it ended [s, monotonic]; infinity before.

    Raises
    ------
    SpectrodError
        Of what cannot be made; a sound card that is not there is no error.
    """

    def __init__(self, table: SourceTable, shared: Shared) -> None:
        self.table, self._shared = table, shared
        self._attempts = 0
        self._waiting_for = ""
        self._told_waiting_for = ""
        self._telling = threading.Lock()
        self._failure: SpectrodError | None = None
        self._stopping = threading.Event()
        self._search: Worker | None = None
        self._feed: Feed | None = None
        self._checks: ContentChecks | None = None
        self.ended_s = math.inf
        self.demand = Demand(frozenset())
        self.pipeline: Pipeline | None = None
        source = self._open()
        self.name = source.name if source else _topic_name(table)
        if source:
            self.pipeline = self._make(source)
        else:
            self._open_engine().close()  # that there is none is told now, not when it comes at last

    def join(self) -> None:
        """Make the way out to subscribers; to be called before ``start``.

        Raises
        ------
        ConfigError
            If the name cannot stand in a topic, or another source has it.
        """
        self._feed = feed = self._shared.publisher.feed(
            self.name, self.stats, self.table.channel_names, self.demand.want
        )
        if self.pipeline:
            self.pipeline.attach(feed, wants=False)
            feed.offer(self.pipeline.specs)

    def leave(self) -> None:
        """Say goodbye to subscribers; to be called after ``stop``."""
        if self._feed:
            self._shared.publisher.remove_feed(self._feed)

    def start(self) -> None:
        """Start the pipeline, or the search for the source; raises of what cannot start."""
        if self.pipeline:
            self.pipeline.start()
            return
        _log.warning("%s: waiting: %s", self.name, self._waiting_for)
        self._tell()
        self._search = Worker(f"search for {self.name}", self._seek, self._end_search)
        self._search.start()

    def give_up(self) -> None:
        """Have the search end soon; does not wait."""
        self._stopping.set()

    def stop(self, deadline_s: float = math.inf) -> None:
        """Stop the pipeline and the search; idempotent.

        A search that a driver holds up past the deadline [s, monotonic] is left to itself: it finds
        nothing any more.
        """
        self.give_up()
        left_s = min(GIVE_UP_S, deadline_s - time.monotonic())
        if self._search and not self._search.wait(max(0.0, left_s)):
            _log.warning("%s: still looking for the source: not waited for", self.name)
        if self.pipeline:
            self.pipeline.stop()

    def is_source_of(self, table: SourceTable) -> bool:
        """Say whether a table is of this source, whatever analyses it names."""
        # A single source may go without a name, and has none again once others are gone.
        is_named_so = table.name in ("", self.name, self.table.name)
        return is_named_so and _source(table) == _source(self.table)

    def prepare(self, table: SourceTable) -> FrameStream | None:
        """Make what ``change_to`` will take; None where nothing changes, or there is no source yet.

        Raises
        ------
        ConfigError, UnavailableError
            If the engine cannot do it, or there is no memory for it.
        """
        if self.pipeline is None or _analyses(table) == _analyses(self.table):
            return None
        source = self.pipeline.source
        specs = table.specs(
            source.fs,
            source.channels,
            is_iq=source.is_iq,
            center_frequency_hz=source.center_frequency_hz,
        )
        # Else the analysis would stand still for seconds at its first launch.
        warm_up_apart(
            self.pipeline.engine, [spec for spec in specs if spec not in self.pipeline.specs]
        )
        return self.pipeline.prepare(specs)

    def change_to(self, table: SourceTable, stream: FrameStream | None) -> None:
        """Go on with the analyses of a table of this source, as ``prepare`` has made them."""
        self.table = table
        if self.pipeline and stream:
            self.pipeline.change_to(stream)
            if self._feed:
                self._feed.offer(stream.specs)

    # ---- what is wanted

    def topics(self) -> frozenset[str]:
        """Return the topics with values that the source can send; empty if it was never there."""
        return self._feed.topics if self._feed else frozenset()

    def lease(self, product: str, seconds: float) -> None:
        """Have a product computed for a while, by whoever asks now and then; any thread.

        Raises
        ------
        ConfigError
            If there is no such product.
        UnavailableError
            If the source was never there.
        """
        self._there().lease(product, seconds)

    def checked(self) -> tuple[tuple[str, ...], int]:
        """Tell what is odd about the samples now, and how many were clipped so far."""
        checks = self._checks
        return (checks.active, checks.clipped_samples) if checks else ((), 0)

    def pause(self) -> None:
        """Compute, send and record nothing until ``resume``; any thread."""
        self.demand.pause(is_paused=True)
        self._tell()

    def resume(self) -> None:
        """End a pause; any thread."""
        self.demand.pause(is_paused=False)
        self._tell()

    def reset(self, product: str = "") -> None:
        """Begin averages and holds anew, of a product or of all; any thread.

        Raises
        ------
        ConfigError
            If there is no such product.
        UnavailableError
            If the source was never there.
        """
        self._there().reset(product)

    def _there(self) -> Pipeline:
        if self.pipeline is None:
            raise UnavailableError(f"{self.name}: waiting: {self._waiting_for}")
        return self.pipeline

    # ---- how it fares

    @property
    def ended(self) -> bool:
        """True when nothing more will come of it."""
        return self._failure is not None or (self.pipeline is not None and self.pipeline.finished)

    @property
    def failure(self) -> SpectrodError | None:
        """Why it ended early."""
        return self._failure or (self.pipeline.failure if self.pipeline else None)

    def stats(self) -> Stats:
        """Take a snapshot of the counters; any thread may call it."""
        pipeline, feed = self.pipeline, self._feed
        stats = pipeline.stats() if pipeline else self._stats_without_source()
        return replace(
            stats,
            state="failed" if self._failure else stats.state,
            name=self.name,
            messages=feed.messages if feed else 0,
            dropped=feed.dropped if feed else 0,
            heartbeats=feed.heartbeats if feed else 0,
            subscribers=self._shared.publisher.subscribers,
        )

    def _stats_without_source(self) -> Stats:
        capture = CaptureStats(waiting_for=self._waiting_for, attempts=self._attempts)
        return Stats(
            state="waiting",
            source=self.table.uri,
            engine="",
            fs=0.0,
            channels=0,
            samples=0,
            frames=0,
            messages=0,
            overflows=0,
            overruns=0,
            dropped=0,
            gaps=0,
            gap_samples=0,
            ring_peak=0.0,
            capture=capture,
        )

    # ---- what becomes of a source that is there

    def _make(self, source: Source) -> Pipeline:
        """Make the pipeline of a source, which is the pipeline's from here on."""
        table = self.table
        with ExitStack() as undo:
            undo.callback(source.stop)
            source.left_out.report_to(self._note_left_out)
            specs = table.specs(
                source.fs,
                source.channels,
                is_iq=source.is_iq,
                center_frequency_hz=source.center_frequency_hz,
            )
            engine = self._open_engine()
            undo.callback(engine.close)
            if self._shared.publisher.endpoints:  # has started: others compute meanwhile
                warm_up_apart(engine, specs)
            warm_up(engine, *specs)
            for spec in specs:
                if spec.uncovered:
                    _log.info("%s: %s", source.name, rows_leave_out(spec))
                if text := frames_leave_out(spec):
                    _log.info("%s: %s", source.name, text)
                for text in filter(None, (bands_left_out(spec), bands_blurred(spec))):
                    _log.warning("%s: %s: %s", source.name, spec.product, text)
            is_paced = source.is_live or table.pace == "realtime"
            self._checks = ContentChecks(source.channels, source.fs) if is_paced else None
            pipeline = Pipeline(
                source,
                specs,
                engine,
                demand=self.demand,
                progress=self._shared.progress,
                on_nonfinite="gap",
                checks=self._checks,
                on_change=self._tell,
                on_end=self._note_end,
                note=self._note,
            )
            undo.pop_all()
        return pipeline

    def _open_engine(self) -> Engine:
        wanted = self._shared.engine
        return open_engine(wanted.engine, wanted.device)

    def _note_end(self) -> None:
        self.ended_s = time.monotonic()
        # A daemon's only failure is its last word anyway.
        if self.failure and not self._shared.is_alone():
            _log.error("%s: failed: %s", self.name, self.failure)
        if self.failure:
            self._note("source.failed", str(self.failure))
        else:
            _log.info("%s: the source has ended", self.name)
            self._note("source.ended", "the source has ended")
        self._shared.on_pipeline()
        self._tell()

    def _note_left_out(self, line: str) -> None:
        _log.warning("%s: %s", self.name, line)
        self._note("source.left_out", line)

    def _note(self, kind: str, text: str) -> None:
        self._shared.events.add(kind, text, source=self.name)

    def _tell(self) -> None:
        """Say that there is news: to subscribers at once, and to the daemon's owner."""
        self._note_waiting()
        if self._feed:
            self._feed.changed()
        self._shared.progress.set()

    def _note_waiting(self) -> None:
        pipeline = self.pipeline
        waiting_for = pipeline.source.capture().waiting_for if pipeline else self._waiting_for
        with self._telling:
            before, self._told_waiting_for = self._told_waiting_for, waiting_for
        if waiting_for and waiting_for != before:
            self._note("source.waiting", waiting_for)
        elif before and not waiting_for:
            self._note("source.back", "samples come again")

    # ---- what becomes of one that is not

    def _open(self) -> Source | None:
        """Try to open the source; None if it is a sound card that is not there."""
        self._attempts += 1
        try:
            return open_source(self.table)
        except UnavailableError as error:
            if not find_kind(self.table.uri)[0].may_be_absent:
                raise
            self._waiting_for = str(error)
            return None

    def _seek(self) -> None:
        """Try to open the source until it is there; the search's thread."""
        backoff = Backoff()
        while not (self._stopping.wait(backoff.next_s()) or self._has_begun()):
            pass

    def _end_search(self, failure: SpectrodError | None) -> None:
        if failure:
            self.fail(failure)

    def fail(self, error: SpectrodError) -> None:
        """Count as ended early, by this error; what has started of it is stopped."""
        self._failure = error
        if self.pipeline:
            self.pipeline.stop()
        self._note_end()

    def _has_begun(self) -> bool:
        """Try once; say whether the search is over."""
        before = self._waiting_for
        source = self._open()
        if source is not None and self._begin_in_turn(source):
            return True
        if self._waiting_for != before:
            _log.warning("%s: waiting: %s", self.name, self._waiting_for)
            self._tell()
        return False

    def _begin_in_turn(self, source: Source) -> bool:
        # Whoever changes the daemon meanwhile may be waiting for this search to end.
        while not self._shared.changing.acquire(timeout=_LOOK_S):
            if self._stopping.is_set():
                source.stop()
                return True
        try:
            return self._begin(source)
        finally:
            self._shared.changing.release()

    def _begin(self, source: Source) -> bool:
        """Start a source that has come, and its pipeline; say whether the search is over."""
        if self._stopping.is_set():
            source.stop()
            return True
        self.pipeline = self._make(source)
        if self._feed:
            self.pipeline.attach(self._feed, wants=False)
        self._shared.on_pipeline()
        try:
            self.pipeline.start()
        except UnavailableError as error:  # gone again
            gone, self.pipeline = self.pipeline, None
            gone.stop()
            self._shared.on_pipeline()
            self._waiting_for = str(error)
            return False
        if self._feed:
            self._feed.offer(self.pipeline.specs)
        _log.info("%s: there: %s, %g Hz", self.name, source.description, source.fs)
        self._tell()
        return True


def _source(table: SourceTable) -> SourceTable:
    """All of a table but its name and its analyses."""
    return msgspec.structs.replace(table, name="", analysis=AnalysisConfig(), products=())


def _analyses(table: SourceTable) -> tuple[object, ...]:
    return table.analysis, table.products


def _topic_name(table: SourceTable) -> str:
    """Name a source that is not there, as it will be named once it is."""
    kind, argument = find_kind(table.uri)
    assert kind.absent_name is not None
    return table.name or kind.absent_name(argument)
