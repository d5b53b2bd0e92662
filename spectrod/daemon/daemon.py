"""All sources of a daemon, each with its own ring and analysis, and the one publisher."""

import logging
import math
import select
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from spectrod.analysis.stream import FrameStream
from spectrod.config.config import Config, SourceTable
from spectrod.daemon import resource_needs
from spectrod.daemon.access.access import Access
from spectrod.daemon.publisher.publisher import Publisher
from spectrod.daemon.recordings import Recordings
from spectrod.daemon.source_runner import GIVE_UP_S, Shared, SourceRunner
from spectrod.lib.errors import ConfigError, SpectrodError, UnavailableError
from spectrod.lib.events import EventLog
from spectrod.lib.job_pool import JobPool
from spectrod.lib.stats import Stats
from spectrod.lib.wakeup import Wakeup
from spectrod.measure.triggers.trigger_config import MASKS_FOLDER
from spectrod.recording.state_folder import state_folder

_log = logging.getLogger(__name__)


def build_daemon(config: Config) -> "Daemon":
    """Create the daemon: publisher, sources, engines; starts nothing.

    Raises
    ------
    SpectrodError
        If a part cannot be created. A missing sound card is no error: ``Daemon.start`` starts the
        search for it.
    """
    return Daemon(config)


@dataclass(frozen=True, slots=True)
class _Change:
    """Effect of a new configuration on the runners.

    Attributes
    ----------
    runners : tuple of SourceRunner
        All future runners, in the order of the configuration.
    kept : list of (SourceRunner, SourceTable, FrameStream or None)
        Runners that stay, with their new table and analysis.
    new, gone : list of SourceRunner
        Runners that start, not joined yet, and runners that end.
    """

    runners: tuple[SourceRunner, ...]
    kept: list[tuple[SourceRunner, SourceTable, FrameStream | None]]
    new: list[SourceRunner]
    gone: list[SourceRunner]


class Daemon:
    """The sources of a configuration, from their samples to their messages.

    A source that fails or ends does not affect the others; the daemon finishes when all have ended.
    ``start`` starts the publisher, then the sources in order; ``stop`` stops them in reverse.

    Parameters
    ----------
    config : Config
        Sources, analyses and outputs.

    Attributes
    ----------
    runners : tuple of SourceRunner
        One per source, in the order of the configuration.
    access : Access
        Access control; owns the context of all sockets, which must be closed before ``stop``.
    publisher : Publisher
        Sends the messages of all sources.
    recordings : Recordings
        Writes files: those of the configuration, and those on request.
    events : EventLog
        Log of the daemon's events.
    progress : Wakeup
        Set on possible news: a first message, a source that is waited for, an end.
    """

    def __init__(self, config: Config) -> None:
        resource_needs.require(config)  # before libzmq, which aborts without descriptors
        self.progress = Wakeup()
        # No event can occur before the publisher exists.
        self.events = EventLog(lambda: self.publisher.send_events())  # noqa: PLW0108
        self._changing = threading.Lock()
        # Held while sources of a running daemon are started or stopped: by a change, or by the
        # stop.
        self._switching = threading.Lock()
        self._is_stopping = False
        publish, tables = config.publish, config.all_sources
        state = state_folder(config.control.state_folder)
        self.recordings = Recordings(state, self.events)
        self._configured = config.recordings
        self._pool = JobPool() if hasattr(select, "epoll") else None
        with ExitStack() as undo:
            if self._pool:
                undo.callback(self._pool.close)
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
                masks=state / MASKS_FOLDER,
                pool=self._pool,
                on_pipeline=self._update_recordings,
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
        """Start access, publisher and sources; raises the SpectrodError of a failed part.

        Recordings start with the first sample.
        """
        self.access.start()
        self.publisher.start()
        self._update_recordings()
        for runner in self.runners:
            runner.start()

    def stop(self) -> None:
        """Stop sources, recordings, publisher and access; queued messages are sent first.

        Idempotent. A change in preparation is refused.
        """
        self._is_stopping = True
        with self._switching:
            self._stop_runners(self.runners)
        if self._pool:
            self._pool.close()
        self.recordings.close()
        self.publisher.stop()
        self.access.close()

    def runner(self, name: str) -> SourceRunner:
        """Return the source of a name.

        Raises
        ------
        ConfigError
            If there is no source of that name.
        """
        for runner in self.runners:
            if runner.name == name:
                return runner
        known = ", ".join(runner.name for runner in self.runners)
        raise ConfigError(f"source={name!r}: must be one of {known}")

    def reconfigure(self, config: Config) -> None:
        """Change sources, analyses, products, recordings and ``publish.on_demand``.

        Changes take effect with the next blocks. A source of which more than analyses and products
        has changed ends and restarts, and so does a changed recording; unchanged ones continue
        without a break. All other settings keep their values from the start.

        Raises
        ------
        SpectrodError
            If a part cannot be created, or UnavailableError if the daemon stops meanwhile; nothing
            has changed then. A source that fails only after its predecessor of the same name has
            ended fails alone, like any later failure.
        """
        with self._changing, ExitStack() as undo:
            change = self._prepare(config, undo)
            with self._switching:
                if self._is_stopping:
                    raise UnavailableError("the daemon stops: nothing has changed")
                undo.pop_all()
                self._configured = config.recordings
                self._switch(change, on_demand=config.publish.on_demand)

    def _prepare(self, config: Config, undo: ExitStack) -> _Change:
        """Create all new parts, without changing running ones."""
        resource_needs.require(config)
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
        # NB: before the others stop, or a daemon with only that source would count as finished.
        self.runners = change.runners
        self._stop_runners(change.gone)
        for runner in change.gone:
            runner.close_feed()
            _log.info("%s: removed", runner.name)
        for runner in change.new:
            runner.open_feed()
        self._update_recordings()
        for runner in change.new:
            try:
                runner.start()
            except SpectrodError as error:
                runner.fail(error)
        self.progress.set()

    def _update_recordings(self) -> None:
        self.recordings.update(self.runners, self._configured)

    @staticmethod
    def _stop_runners(runners: Sequence[SourceRunner]) -> None:
        for runner in runners:
            runner.ask_to_stop()
        deadline_s = time.monotonic() + GIVE_UP_S
        for runner in reversed(runners):
            runner.stop(deadline_s)

    @property
    def finished(self) -> bool:
        """True if all sources have ended, or publisher or access have failed."""
        has_failed = self._failure is not None
        return has_failed or all(runner.ended for runner in self.runners)

    @property
    def _failure(self) -> SpectrodError | None:
        return self.publisher.failure or self.access.failure

    def raise_failure(self) -> None:
        """Raise the publisher's failure or, when all sources have ended, the first failure."""
        if self._failure:
            raise self._failure
        if self.finished:
            first = min(self.runners, key=lambda m: m.ended_s if m.failure else math.inf)
            if first.failure:
                raise first.failure

    def trigger_status(self) -> list[dict[str, Any]]:
        """Return the state of each trigger of each source in built-in types."""
        return [one for runner in self.runners for one in runner.triggers.status()]

    def stats(self) -> tuple[Stats, ...]:
        """Return a snapshot of each source's counters, in their order."""
        return tuple(runner.stats() for runner in self.runners)


def _check_distinct(runners: Sequence[SourceRunner]) -> None:
    name, count = Counter(runner.name for runner in runners).most_common(1)[0]
    if count > 1:
        raise ConfigError(f"source name={name!r}: another source has it; give each its own")
