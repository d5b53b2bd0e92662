"""All sources of a daemon, each with a ring and an analysis of its own, and the one publisher."""

import logging
import math
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import msgspec

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.stream import FrameStream
from spectrod.analysis.warm_up import warm_up
from spectrod.config import AnalysisConfig, Config, EngineConfig, SourceTable
from spectrod.errors import InternalError, SpectrodError, UnavailableError
from spectrod.pipeline import Pipeline
from spectrod.source import Source, open_source
from spectrod.source.backoff import Backoff
from spectrod.source.checks import ContentChecks
from spectrod.source.devices import parse_wanted
from spectrod.stats import CaptureStats, State, Stats
from spectrod.wakeup import Wakeup
from spectrod.wire.publisher import Publisher

_log = logging.getLogger(__name__)

_GIVE_UP_S = 2.5
"""How long a stop waits for those who look for sound cards: a driver may hold them up."""


def build_daemon(config: Config) -> "Daemon":
    """Make the daemon: publisher, sources, engines; nothing is started.

    Raises
    ------
    SpectrodError
        Of the part that cannot be made. A sound card that is not there is no error: it is sought
        from ``Daemon.start`` on.
    """
    return Daemon(config)


class Daemon:
    """The sources that a configuration names, from their samples to their messages.

    One that fails or ends leaves the others alone; the daemon has finished when all have. ``start``
    starts the publisher, then the sources in their order; ``stop`` stops them in reverse.

    Parameters
    ----------
    config : Config
        Where samples come from, what is computed of them, where it goes.

    Attributes
    ----------
    members : tuple of Member
        One a source, in the order of the configuration.
    publisher : Publisher
        Sends for all of them.
    progress : Wakeup
        Set when there may be news: a first message, a source that is waited for, an end.
    """

    def __init__(self, config: Config) -> None:
        self.progress = Wakeup()
        self.publisher = Publisher(
            config.publish.endpoints,
            insecure=config.publish.insecure,
            queue_frames=config.publish.queue_frames,
            high_water_mark=config.publish.high_water_mark,
            progress=self.progress,
        )
        self._changing = threading.Lock()
        tables = config.all_sources
        shared = Shared(
            config.engine, self.publisher, self.progress, self._changing, len(tables) == 1
        )
        members: list[Member] = []
        with ExitStack() as undo:
            for table in tables:
                member = Member(table, shared)
                undo.callback(member.stop)
                members.append(member)
            undo.pop_all()
        self.members = tuple(members)

    def start(self) -> None:
        """Start publisher and sources; raises the SpectrodError of what cannot start."""
        self.publisher.start()
        for member in self.members:
            member.start()

    def stop(self) -> None:
        """Stop sources and publisher; what is queued goes out first. Idempotent."""
        for member in self.members:
            member.give_up()
        deadline_s = time.monotonic() + _GIVE_UP_S
        for member in reversed(self.members):
            member.stop(deadline_s)
        self.publisher.stop()

    def reconfigure(self, analyses: Sequence[AnalysisConfig]) -> None:
        """Change the analyses of all sources, in their order, from the next blocks on.

        Raises
        ------
        ConfigError, UnavailableError
            If an engine cannot do it, or there is no memory for it; nothing has changed then.
        """
        with self._changing:
            pairs = list(zip(self.members, analyses, strict=True))
            streams = [member.prepare(analysis) for member, analysis in pairs]
            for (member, analysis), stream in zip(pairs, streams, strict=True):
                member.change_to(analysis, stream)

    @property
    def finished(self) -> bool:
        """True when no source has anything more to give, or the publisher has failed."""
        return self.publisher.failure is not None or all(member.ended for member in self.members)

    def raise_failure(self) -> None:
        """Raise what the publisher failed of or, when all have ended, the first failure."""
        failure = self.publisher.failure
        if isinstance(failure, SpectrodError):
            raise failure
        if failure is not None:
            raise InternalError(f"publisher: {failure!r}; please report this") from failure
        if self.finished:
            first = min(self.members, key=lambda m: m.ended_s if m.failure else math.inf)
            if first.failure:
                raise first.failure

    def stats(self) -> tuple[Stats, ...]:
        """Take a snapshot of each source's counters, in their order."""
        return tuple(member.stats() for member in self.members)


@dataclass(frozen=True, slots=True)
class Shared:
    """What the members of a daemon have in common."""

    engine: EngineConfig
    publisher: Publisher
    progress: Wakeup
    """Set when there is news."""
    changing: threading.Lock
    """Held while a source comes up and while analyses change: either sees all of the other."""
    is_alone: bool
    """True if there is one member only."""


class Member:
    """One source of the daemon, from its samples to its feed.

    A sound card that is not there is sought by a thread from ``start`` on, until it is; rate and
    channels are known only then, and the pipeline is made. That thread is the only one that sets
    ``pipeline`` once the member has started.

    Parameters
    ----------
    table : SourceTable
        The source and its analysis.
    shared : Shared
        What it has in common with the daemon's others.

    Attributes
    ----------
    name : str
        What topics call the source.
    pipeline : Pipeline or None
        None while the source was never there.
    ended_s : float
        When it ended [s, monotonic]; infinity before.

    Raises
    ------
    SpectrodError
        Of what cannot be made; a sound card that is not there is no error.
    """

    def __init__(self, table: SourceTable, shared: Shared) -> None:
        self._table, self._shared = table, shared
        self._attempts = 0
        self._waiting_for = ""
        self._failure: SpectrodError | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.ended_s = math.inf
        self.pipeline: Pipeline | None = None
        source = self._open()
        self.name = source.name if source else _topic_name(table)
        self._feed = shared.publisher.feed(self.name, self.stats, table.channel_names)
        if source:
            self.pipeline = self._make(source)
        else:
            self._open_engine().close()  # that there is none is told now, not when it comes at last

    def start(self) -> None:
        """Start the pipeline, or the search for the source; raises of what cannot start."""
        if self.pipeline:
            self.pipeline.start()
            return
        _log.warning("%s: waiting: %s", self.name, self._waiting_for)
        self._thread = threading.Thread(target=self._seek, name="spectrod-seek", daemon=True)
        self._thread.start()

    def give_up(self) -> None:
        """Have the search end soon; does not wait."""
        self._stopping.set()

    def stop(self, deadline_s: float = math.inf) -> None:
        """Stop the pipeline and the search; idempotent.

        A search that a driver holds up past the deadline [s, monotonic] is left to itself: it finds
        nothing any more.
        """
        self.give_up()
        if self._thread:
            left_s = min(_GIVE_UP_S, deadline_s - time.monotonic())
            self._thread.join(max(0.0, left_s))
            if self._thread.is_alive():
                _log.warning("%s: still looking for the source: not waited for", self.name)
        if self.pipeline:
            self.pipeline.stop()

    def prepare(self, analysis: AnalysisConfig) -> FrameStream | None:
        """Make what ``change_to`` will take; None where nothing changes, or there is no source yet.

        Raises
        ------
        ConfigError, UnavailableError
            If the engine cannot do it, or there is no memory for it.
        """
        if self.pipeline is None or analysis == self._table.analysis:
            return None
        source = self.pipeline.source
        table = msgspec.structs.replace(self._table, analysis=analysis)
        return self.pipeline.prepare(table.specs(source.fs, source.channels)[0])

    def change_to(self, analysis: AnalysisConfig, stream: FrameStream | None) -> None:
        """Go on with an analysis, as ``prepare`` has made it."""
        self._table = msgspec.structs.replace(self._table, analysis=analysis)
        if self.pipeline and stream:
            self.pipeline.change_to(stream)

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
        return replace(
            pipeline.stats() if pipeline else self._stats_without_source(),
            name=self.name,
            messages=feed.messages,
            dropped=feed.dropped,
            heartbeats=feed.heartbeats,
        )

    def _stats_without_source(self) -> Stats:
        state: State = "failed" if self._failure else "waiting"
        capture = CaptureStats(waiting_for=self._waiting_for, attempts=self._attempts)
        return Stats(
            state=state,
            source=self._table.uri,
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
        table = self._table
        with ExitStack() as undo:
            undo.callback(source.stop)
            source.on_change = self._tell
            spec = table.specs(source.fs, source.channels)[0]
            engine = self._open_engine()
            undo.callback(engine.close)
            warm_up(engine, spec)
            is_paced = source.is_live or table.pace == "realtime"
            pipeline = Pipeline(
                source,
                spec,
                engine,
                sinks=[self._feed],
                progress=self._shared.progress,
                on_nonfinite="gap",
                checks=ContentChecks(source.channels, source.fs) if is_paced else None,
                on_end=self._note_end,
            )
            undo.pop_all()
        return pipeline

    def _open_engine(self) -> Engine:
        wanted = self._shared.engine
        return open_engine(wanted.engine, wanted.device)

    def _note_end(self) -> None:
        self.ended_s = time.monotonic()
        # A daemon's only failure is its last word anyway.
        if self.failure and not self._shared.is_alone:
            _log.error("%s: failed: %s", self.name, self.failure)
        if not self.failure:
            _log.info("%s: the source has ended", self.name)
        self._tell()

    def _tell(self) -> None:
        """Say that there is news: to subscribers at once, and to the daemon's owner."""
        self._feed.changed()
        self._shared.progress.set()

    # ---- what becomes of one that is not

    def _open(self) -> Source | None:
        """Try to open the source; None if it is a sound card that is not there."""
        self._attempts += 1
        try:
            return open_source(self._table)
        except UnavailableError as error:
            if not _is_soundcard(self._table.uri):
                raise
            self._waiting_for = str(error)
            return None

    def _seek(self) -> None:
        """Try to open the source until it is there; the search's thread."""
        try:
            backoff = Backoff()
            while not (self._stopping.wait(backoff.next_s()) or self._has_begun()):
                pass
        except SpectrodError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001
            # The top of a thread: whatever it is must reach the main thread, not be lost here.
            _log.exception("opening the source failed")
            self._fail(InternalError(f"{self.name}: {error!r}; please report this"))

    def _fail(self, error: SpectrodError) -> None:
        self._failure = error
        self._note_end()

    def _has_begun(self) -> bool:
        """Try once; say whether the search is over."""
        before = self._waiting_for
        source = self._open()
        if source is not None:
            with self._shared.changing:
                if self._begin(source):
                    return True
        if self._waiting_for != before:
            _log.warning("%s: waiting: %s", self.name, self._waiting_for)
            self._tell()
        return False

    def _begin(self, source: Source) -> bool:
        """Start a source that has come, and its pipeline; say whether the search is over."""
        if self._stopping.is_set():
            source.stop()
            return True
        self.pipeline = self._make(source)
        try:
            self.pipeline.start()
        except UnavailableError as error:  # gone again
            gone, self.pipeline = self.pipeline, None
            gone.stop()
            self._waiting_for = str(error)
            return False
        _log.info("%s: there: %s, %g Hz", self.name, source.description, source.fs)
        self._tell()
        return True


def _is_soundcard(uri: str) -> bool:
    return uri.partition(":")[0] == "soundcard"


def _topic_name(table: SourceTable) -> str:
    """Name a sound card that is not there, as it will be named once it is."""
    return table.name or parse_wanted(table.uri.partition(":")[2]).topic_name()
