"""Methods of the control socket, on a running daemon."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

import spectrod
from spectrod.daemon.access.peer import Peer
from spectrod.daemon.change_journal import Journal
from spectrod.daemon.control.changed_settings import LiveSettings
from spectrod.daemon.control.dispatch import Answer, Later
from spectrod.daemon.control.masks import Masks
from spectrod.daemon.control.replay_requests import latest, replay
from spectrod.daemon.daemon import Daemon
from spectrod.daemon.source_runner import SourceRunner
from spectrod.lib.errors import ConfigError, NotFoundError
from spectrod.lib.names import find_product
from spectrod.wire.requests import (
    AbortLearningParams,
    AddSourceParams,
    EventsParams,
    GetParams,
    LatestParams,
    MethodParams,
    MetricsFormat,
    MetricsParams,
    NoParams,
    ProductParams,
    RemoveSourceParams,
    ReplayParams,
    SetParams,
    SourceParams,
    StartLearningParams,
    StartRecordingParams,
    StopRecordingParams,
    TriggerParams,
)

_SOURCES_NAMED_MAX = 20


class AboutControl(NamedTuple):
    """State of the control socket."""

    endpoints: tuple[str, ...]
    counts: Mapping[str, int]
    """See ``ControlServer.counts``."""


class Methods:
    """Answers requests: one thread reads, another one makes changes.

    Parameters
    ----------
    daemon : Daemon
    settings : LiveSettings
    masks : Masks
    journal : Journal
    about_control : callable
        Returns the state of the control socket.
    metrics_in : callable
        Returns all metrics in a format.
    """

    def __init__(
        self,
        daemon: Daemon,
        settings: LiveSettings,
        masks: Masks,
        journal: Journal,
        about_control: Callable[[], AboutControl],
        metrics_in: Callable[[MetricsFormat], Any],
    ) -> None:
        self._daemon, self._settings, self._masks = daemon, settings, masks
        self._journal, self._about_control = journal, about_control
        self._metrics_in = metrics_in
        self._start_s = time.monotonic()
        # The parameters have the types that ``requests.METHODS`` declares.
        self._methods: Mapping[str, Callable[[Any, str], Any]] = {
            "status": self._status,
            "metrics": self._metrics,
            "get": self._get,
            "events": self._events,
            "replay": self._replay,
            "latest": self._latest,
            "learn.list": self._list_learning,
            "set": self._set,
            "reload": self._reload,
            "pause": self._pause,
            "resume": self._resume,
            "reset": self._reset,
            "source.add": self._add_source,
            "source.remove": self._remove_source,
            "record.start": self._start_recording,
            "record.stop": self._stop_recording,
            "record.trigger": self._trigger_recording,
            "learn.start": self._start_learning,
            "learn.abort": self._abort_learning,
        }

    def call(self, method: str, params: MethodParams, peer: Peer) -> Answer | Later:
        """Execute a method; raises SpectrodError."""
        result = self._methods[method](params, peer.name)
        return result if isinstance(result, Answer | Later) else Answer(result)

    # ---- methods that read

    def _status(self, _params: NoParams, _who: str) -> dict[str, Any]:
        stats = self._daemon.stats()
        publisher, control = self._daemon.publisher, self._about_control()
        about = {
            "version": spectrod.__version__,
            "pid": os.getpid(),
            "uptime_s": time.monotonic() - self._start_s,
            "epoch": publisher.epoch,
            "t_utc_ns": time.time_ns(),
            "publish": publisher.endpoints,
            "raw32": publisher.raw32_endpoints,
            "control": control.endpoints,
            "engines": list(dict.fromkeys(one.engine for one in stats if one.engine)),
            "subscribers": publisher.subscribers,
            "unsendable": publisher.unsendable,
            "security": dict(self._daemon.access.refusals.counts),
            "connections": self._daemon.access.connections.status(),
            "requests": control.counts,
            "set": self._settings.set_keys,
            "reload": self._settings.last_load._asdict(),
        }
        # ``frames`` is the name that ``rows`` had; it stays for one release.
        sources = [{**msgspec.to_builtins(one), "frames": one.rows} for one in stats]
        return {
            "daemon": about,
            "sources": sources,
            **self._daemon.recordings.status(),
            "triggers": self._daemon.trigger_status(),
        }

    def _metrics(self, params: MetricsParams, _who: str) -> Any:
        return self._metrics_in(params.format)

    def _get(self, params: GetParams, _who: str) -> Any:
        return self._settings.get(params.key)

    def _events(self, params: EventsParams, _who: str) -> list[Any]:
        events = self._daemon.events.since(params.since, params.limit)
        return [msgspec.to_builtins(event) for event in events]

    def _replay(self, params: ReplayParams, _who: str) -> Answer:
        return replay(self._daemon.publisher.history, params)

    def _latest(self, params: LatestParams, _who: str) -> Answer | Later:
        return latest(self._daemon.publisher.history, self._runner, params)

    # ---- methods that change something

    def _set(self, params: SetParams, who: str) -> list[str]:
        return self._settings.set(params.changes, who)

    def _reload(self, _params: NoParams, who: str) -> list[str]:
        return self._settings.reload(who)

    def _pause(self, params: SourceParams, who: str) -> list[str]:
        return self._each(params.source, SourceRunner.pause, "control.pause", who)

    def _resume(self, params: SourceParams, who: str) -> list[str]:
        return self._each(params.source, SourceRunner.resume, "control.resume", who)

    def _each(
        self, source: str, act: Callable[[SourceRunner], None], kind: str, who: str
    ) -> list[str]:
        """Apply an action to a source or to all, and return their names."""
        runners = self._runners(source)
        for runner in runners:
            before = runner.stats().state
            act(runner)
            self._journal.note(kind, f"was {before}", source=runner.name, who=who)
        return [runner.name for runner in runners]

    def _reset(self, params: ProductParams, who: str) -> list[str]:
        runners = self._resettable(params)
        for runner in runners:
            runner.reset(params.product)
            what = params.product or "all products"
            self._journal.note("control.reset", what, source=runner.name, who=who)
        return [runner.name for runner in runners]

    def _resettable(self, params: ProductParams) -> Sequence[SourceRunner]:
        """Return the named source; without a name, all present sources that have the product."""
        runners = self._runners(params.source)
        if not params.source:
            runners = [runner for runner in runners if runner.pipeline is not None]
        if not params.product:
            return runners
        having: dict[str, list[SourceRunner]] = {}
        for runner in runners:
            for product in runner.stats().products:
                having.setdefault(product, []).append(runner)
        return find_product(params.product, having, params.source or None)

    def _add_source(self, params: AddSourceParams, who: str) -> list[str]:
        return self._settings.add_source(params.name, params.settings, who)

    def _remove_source(self, params: RemoveSourceParams, who: str) -> list[str]:
        return self._settings.remove_source(params.name, who)

    def _start_recording(self, params: StartRecordingParams, who: str) -> dict[str, Any]:
        runner = self._only_runner(params.source)
        return self._daemon.recordings.start(runner, params, who)

    def _stop_recording(self, params: StopRecordingParams, who: str) -> list[dict[str, Any]]:
        return self._daemon.recordings.stop(params.name, who)

    def _trigger_recording(self, params: TriggerParams, who: str) -> list[str]:
        triggered = self._daemon.recordings.trigger(params.name, params.source)
        self._journal.note("control.trigger", ", ".join(triggered), who=who)
        return triggered

    def _list_learning(self, _params: NoParams, _who: str) -> list[dict[str, Any]]:
        return self._masks.status()

    def _start_learning(self, params: StartLearningParams, who: str) -> dict[str, Any]:
        return self._masks.start(self._only_runner(params.source), params, who)

    def _abort_learning(self, params: AbortLearningParams, who: str) -> dict[str, Any]:
        return self._masks.abort(params.name, who)

    # ---- sources by name

    def _only_runner(self, source: str) -> SourceRunner:
        """Return the named source; without a name the only one, else ConfigError."""
        if not source and len(self._daemon.runners) > 1:
            raise ConfigError(f"source='': must name one of {self._names()}")
        (runner,) = self._runners(source)
        return runner

    def _runners(self, source: str) -> Sequence[SourceRunner]:
        return (self._runner(source),) if source else self._daemon.runners

    def _runner(self, name: str) -> SourceRunner:
        for runner in self._daemon.runners:
            if runner.name == name:
                return runner
        raise NotFoundError(f"source={name!r}: does not exist; there are: {self._names()}")

    def _names(self) -> str:
        names = [runner.name for runner in self._daemon.runners]
        more = ", ..." if len(names) > _SOURCES_NAMED_MAX else ""
        return ", ".join(names[:_SOURCES_NAMED_MAX]) + more
