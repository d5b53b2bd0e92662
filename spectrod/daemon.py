"""All sources of a daemon, each with a ring and an analysis of its own, and the one publisher."""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from spectrod.analysis.stream import FrameStream
from spectrod.config import Config, SourceTable
from spectrod.errors import ConfigError, SpectrodError, UnavailableError
from spectrod.events import EventLog
from spectrod.recording.recorders import Recorders
from spectrod.recording.state_folder import state_folder
from spectrod.source_runner import GIVE_UP_S, Shared, SourceRunner
from spectrod.stats import Stats
from spectrod.wakeup import Wakeup
from spectrod.wire.access import Access
from spectrod.wire.publisher import Publisher

_log = logging.getLogger(__name__)

_RECORDINGS_FOLDER = "recordings"


def build_daemon(config: Config) -> "Daemon":
    """Make the daemon: publisher, sources, engines; nothing is started.

    Raises
    ------
    SpectrodError
        Of the part that cannot be made. A sound card that is not there is no error: it is sought
        from ``Daemon.start`` on.
    """
    return Daemon(config)


@dataclass(frozen=True, slots=True)
class _Change:
    """What a new configuration makes of the runners.

    Attributes
    ----------
    runners : tuple of SourceRunner
        All that there will be, in the order of the configuration.
    kept : list of (SourceRunner, SourceTable, FrameStream or None)
        Those that stay, and what they go on with.
    new, gone : list of SourceRunner
        Those that begin, not joined yet, and those that end.
    """

    runners: tuple[SourceRunner, ...]
    kept: list[tuple[SourceRunner, SourceTable, FrameStream | None]]
    new: list[SourceRunner]
    gone: list[SourceRunner]


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
    runners : tuple of SourceRunner
        One a source, in the order of the configuration.
    access : Access
        Who may connect; has the context of all sockets, which must be closed before ``stop``.
    publisher : Publisher
        Sends for all of them.
    recorders : Recorders
        Write to files what the configuration wants to be recorded.
    events : EventLog
        What has happened.
    progress : Wakeup
        Set when there may be news: a first message, a source that is waited for, an end.
    """

    def __init__(self, config: Config) -> None:
        self.progress = Wakeup()
        # Nobody adds an event before the publisher is made.
        self.events = EventLog(lambda: self.publisher.send_events())  # noqa: PLW0108
        self._changing = threading.Lock()
        # Held by whoever starts or stops sources of a running daemon: a change, or the stop.
        self._switching = threading.Lock()
        self._is_stopping = False
        publish, tables = config.publish, config.all_sources
        folder = state_folder(config.control.state_folder) / _RECORDINGS_FOLDER
        self.recorders = Recorders(folder, self.events)
        self._recordings = config.recordings
        with ExitStack() as undo:
            self.access = Access(config.security, events=self.events)
            undo.callback(self.access.close)
            self.publisher = Publisher(
                publish.endpoints,
                insecure=publish.insecure,
                queue_frames=publish.queue_frames,
                high_water_mark=publish.high_water_mark,
                replay_mb=publish.replay_mb,
                raw32=publish.raw32,
                access=self.access,
                events=self.events,
                progress=self.progress,
            )
            self._shared = Shared(
                config.engine,
                self.publisher,
                self.events,
                self.progress,
                self._changing,
                is_alone=lambda: len(self.runners) == 1,
                on_pipeline=self._update_recorders,
            )
            self.runners: tuple[SourceRunner, ...] = ()
            for table in tables:
                runner = SourceRunner(table, self._shared)
                undo.callback(runner.stop)
                runner.demand.compute_all(is_of_all=not publish.on_demand)
                runner.open_feed()
                self.runners = (*self.runners, runner)
            undo.pop_all()

    def start(self) -> None:
        """Start access, publisher and sources; raises the SpectrodError of what cannot start.

        What is recorded is recorded from the first sample on.
        """
        self.access.start()
        self.publisher.start()
        self._update_recorders()
        for runner in self.runners:
            runner.start()

    def stop(self) -> None:
        """Stop sources, recordings, publisher and access; what is queued goes out first.

        Idempotent.

        A change that is being prepared meanwhile is refused.
        """
        self._is_stopping = True
        with self._switching:
            self._stop_runners(self.runners)
        self.recorders.close()
        self.publisher.stop()
        self.access.close()

    def runner(self, name: str) -> SourceRunner:
        """Find a source by its name.

        Raises
        ------
        ConfigError
            If there is none of that name.
        """
        for runner in self.runners:
            if runner.name == name:
                return runner
        known = ", ".join(runner.name for runner in self.runners)
        raise ConfigError(f"source={name!r}: must be one of {known}")

    def reconfigure(self, config: Config) -> None:
        """Change sources, analyses, products, recordings and ``publish.on_demand``.

        From the next blocks on. Sources of which more than analyses and products has changed end
        and begin anew, and so do recordings; those that have not changed go on without a break. All
        other settings stay as they were at the start.

        Raises
        ------
        SpectrodError
            Of the part that cannot be made, or UnavailableError if the daemon stops meanwhile;
            nothing has changed then. What fails only once a source of the same name has ended fails
            alone, as if it had later.
        """
        with self._changing, ExitStack() as undo:
            change = self._prepare(config, undo)
            with self._switching:
                if self._is_stopping:
                    raise UnavailableError("the daemon stops: nothing has changed")
                undo.pop_all()
                self._recordings = config.recordings
                self._switch(change, on_demand=config.publish.on_demand)

    def _prepare(self, config: Config, undo: ExitStack) -> _Change:
        """Make all that is new; changes nothing that runs."""
        runners: list[SourceRunner] = []
        kept, new = [], []
        for table in config.all_sources:
            runner = next((one for one in self.runners if one.is_source_of(table)), None)
            if runner:
                kept.append((runner, table, runner.prepare(table)))
            else:
                runner = SourceRunner(table, self._shared)
                undo.callback(runner.stop)
                new.append(runner)
            runners.append(runner)
        _check_distinct(runners)
        gone = [runner for runner in self.runners if runner not in runners]
        return _Change(tuple(runners), kept, new, gone)

    def _switch(self, change: _Change, *, on_demand: bool) -> None:
        for runner, table, stream in change.kept:
            runner.change_to(table, stream)
        for runner in change.runners:
            runner.demand.compute_all(is_of_all=not on_demand)
        # NB: before the others are stopped, or the daemon would have finished with its only source.
        self.runners = change.runners
        self._stop_runners(change.gone)
        for runner in change.gone:
            runner.close_feed()
            _log.info("%s: removed", runner.name)
        for runner in change.new:
            runner.open_feed()
        self._update_recorders()
        for runner in change.new:
            try:
                runner.start()
            except SpectrodError as error:
                runner.fail(error)
        self.progress.set()

    def _update_recorders(self) -> None:
        self.recorders.update(self.runners, self._recordings)

    @staticmethod
    def _stop_runners(runners: Sequence[SourceRunner]) -> None:
        for runner in runners:
            runner.stop_search()
        deadline_s = time.monotonic() + GIVE_UP_S
        for runner in reversed(runners):
            runner.stop(deadline_s)

    @property
    def finished(self) -> bool:
        """True when no source has anything more to give, or publisher or access have failed."""
        has_failed = self._failure is not None
        return has_failed or all(runner.ended for runner in self.runners)

    @property
    def _failure(self) -> SpectrodError | None:
        return self.publisher.failure or self.access.failure

    def raise_failure(self) -> None:
        """Raise what the publisher failed of or, when all have ended, the first failure."""
        if self._failure:
            raise self._failure
        if self.finished:
            first = min(self.runners, key=lambda m: m.ended_s if m.failure else math.inf)
            if first.failure:
                raise first.failure

    def stats(self) -> tuple[Stats, ...]:
        """Take a snapshot of each source's counters, in their order."""
        return tuple(runner.stats() for runner in self.runners)


def _check_distinct(runners: Sequence[SourceRunner]) -> None:
    name, count = Counter(runner.name for runner in runners).most_common(1)[0]
    if count > 1:
        raise ConfigError(f"source name={name!r}: another source has it; give each its own")
