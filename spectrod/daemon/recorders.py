"""All recordings of a daemon: runs them on their sources and passes on requests."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from spectrod.config.settings import RecordingConfig, check_folder_names
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.writer import Sink
from spectrod.formats.values.measurement_chunk import MeasurementChunk
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.lib.errors import NoProductError, NotFoundError, SpectrodError, UnavailableError
from spectrod.lib.events import EventLog
from spectrod.lib.names import find_product
from spectrod.recording.configured import ConfiguredRecording, Described, recorded_of
from spectrod.recording.recorder import Recorder

_log = logging.getLogger(__name__)

STOP_S: Final = 1.0
"""Longest time that a stop waits for the disk, for all recordings together."""

_CHANGE_S = 2.0
LIVE_BACKLOG_S: Final = 5.0
"""Longest time by which rows are behind the samples that a recorder has, of a source that is not
played as fast as it can be read [s]."""

_Key = tuple[str, str]


class Recordable(Described, Protocol):
    """A source of the daemon."""

    @property
    def pipeline(self) -> Pipeline | None:
        """The source's pipeline; None until the source was opened for the first time."""

    @property
    def meters(self) -> Sequence["ValueProduct"]:
        """The source's products of measurements; empty until the source was opened."""

    @property
    def triggers(self) -> "TriggerSource":
        """The source's triggers of spectra."""

    def checked(self) -> tuple[tuple[str, ...], int]:
        """Return the present faults of the samples, and the number of clipped samples so far."""


class ValueProduct(Protocol):
    """A product of measurements; see ``live_meters.LiveMeter``."""

    @property
    def name(self) -> str:
        """Name of the product."""

    @property
    def about(self) -> MeasurementDescription:
        """Description of its rows."""

    def attach(self, sink: Sink[MeasurementChunk]) -> None:
        """Pass on rows, from the next block on, until ``detach``; any thread."""

    def detach(self, sink: Sink[MeasurementChunk]) -> None:
        """Pass on no more rows; one may still be on its way. Any thread."""

    def end(self, sink: Sink[MeasurementChunk]) -> None:
        """Detach, and pass on the row of the unfinished interval; no samples may follow."""


class EventTaker(Protocol):
    """Records around events of triggers."""

    def take_event(self, name: str, first_ns: int, last_ns: int, text: str) -> None:
        """Take the times of an event so far [ns since 1970]; called by the analysis thread."""


class TriggerSource(Protocol):
    """The triggers of a source."""

    def attach(self, taker: EventTaker) -> None:
        """Pass on events, from the next row on, until ``detach``; any thread."""

    def detach(self, taker: EventTaker) -> None:
        """Pass on no more events; any thread."""


@dataclass(frozen=True, slots=True)
class _Desired:
    """A recording that can run."""

    config: RecordingConfig
    runner: Recordable
    pipeline: Pipeline
    spec: SpectrumSpec
    latency_s: float
    values: ValueProduct | None = None

    @property
    def product(self) -> str:
        """Name of the recorded product."""
        return self.values.name if self.values else self.spec.product


@dataclass(frozen=True, slots=True)
class _Running:
    """A recorder on a pipeline."""

    config: RecordingConfig
    runner: Recordable
    pipeline: Pipeline
    product: str
    latency_s: float
    values: ValueProduct | None
    recorder: Recorder

    def attach(self, on_failure: Callable[[SpectrodError], None]) -> None:
        if self.recorder.needs_rows and self.values:
            self.values.attach(self.recorder)
        elif self.recorder.needs_rows:
            self.pipeline.attach(self.recorder, self.product, on_failure)
        if self.recorder.needs_samples:
            self.pipeline.tap(self.recorder, on_failure)
        if self.config.named_triggers:
            self.runner.triggers.attach(self.recorder)

    def detach(self) -> None:
        if self.config.named_triggers:
            self.runner.triggers.detach(self.recorder)
        if self.values:
            has_ended = self.pipeline.finished or self.values not in self.runner.meters
            (self.values.end if has_ended else self.values.detach)(self.recorder)
        self.pipeline.detach(self.recorder)
        self.pipeline.untap(self.recorder)


class Recorders:
    """Runs the configured recordings, each on each of its sources that is present.

    Call ``update`` whenever the configuration or the sources have changed: unchanged recordings
    continue without a break, changed ones end and restart in new files.

    Parameters
    ----------
    folder : Path
        Folder of recordings that name none; each goes to NAME/SOURCE in it.
    events : EventLog
        The daemon's events.
    """

    def __init__(self, folder: Path, events: EventLog) -> None:
        self._folder, self._events = folder, events
        # Replaced, never changed, so that readers need not wait for an update.
        self._running: dict[_Key, _Running] = {}
        self._waiting: list[dict[str, Any]] = []
        self._changing = threading.Lock()
        self._is_closed = False

    def update(self, runners: Iterable[Recordable], configs: Sequence[RecordingConfig]) -> None:
        """Run the wanted recordings and end all others; any thread.

        Parameters
        ----------
        runners : iterable of Recordable
            The sources.
        configs : sequence of RecordingConfig
            The configured recordings.
        """
        with self._changing:
            if self._is_closed:
                return
            desired, self._waiting = _sort(configs, tuple(runners))
            kept = {
                k: one for k, one in self._running.items() if _is_unchanged(one, desired.get(k))
            }
            gone = [one for key, one in self._running.items() if key not in kept]
            # NB: end old recordings before new ones start, which may use the same folder.
            self._end(gone, _CHANGE_S)
            self._running = kept
            for key, one in desired.items():
                if key not in kept:
                    self._start(key, one)

    def _start(self, key: _Key, desired: _Desired) -> None:
        try:
            self._running = self._running | {key: self._make(desired)}
        except SpectrodError as error:  # the analysis has changed again meanwhile
            waiting = _waiting(desired.config, desired.runner.name, str(error))
            self._waiting = [*self._waiting, waiting]

    def _make(self, desired: _Desired) -> _Running:
        config, runner, spec = desired.config, desired.runner, desired.spec
        values = desired.values
        recorded = recorded_of(runner, spec, values.about if values else None)
        base = Path(config.folder) if config.folder else self._folder
        # The configuration has checked all names except that of a single unnamed source.
        check_folder_names("sources", [runner.name])
        folder = base / config.name / runner.name
        make = partial(
            ConfiguredRecording,
            config,
            recorded,
            folder,
            self._events,
            base=base,
            latency_s=desired.latency_s,
        )
        recorder = Recorder(make, spec.fs, runner.checked)
        running = _Running(
            config,
            runner,
            desired.pipeline,
            desired.product,
            desired.latency_s,
            values,
            recorder,
        )
        running.attach(_failure_reporter(config.name, runner.name))
        recorder.start()
        return running

    @staticmethod
    def _end(several: Sequence[_Running], timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        for one in several:
            one.detach()
            one.recorder.end()
        for one in several:
            one.recorder.join(max(0.0, deadline_s - time.monotonic()))

    def trigger(self, name: str, source: str) -> list[str]:
        """Record around the present time; return RECORDING/SOURCE of each recording that does.

        Parameters
        ----------
        name : str
            Name of a recording with triggers; empty for all of them.
        source : str
            Name of a source; empty for all.

        Raises
        ------
        NotFoundError
            If no such recording has triggers.
        """
        now_ns = time.time_ns()
        can = {key: one for key, one in self._running.items() if one.config.triggers}
        found = {
            key: one for key, one in can.items() if name in ("", key[0]) and source in ("", key[1])
        }
        if not found:
            known = ", ".join(f"{key[0]} of {key[1]}" for key in can) or "none"
            raise NotFoundError(
                f"recording={name!r}, source={source!r}: no such recording has triggers; "
                f"there are: {known}"
            )
        for one in found.values():
            one.recorder.trigger(now_ns, "asked for")
        return [f"{key[0]}/{key[1]}" for key in found]

    def status(self) -> list[dict[str, Any]]:
        """Return the status of each recording in built-in types."""
        return [*(one.recorder.status() for one in self._running.values()), *self._waiting]

    def close(self) -> None:
        """Finish all files; call it while the pipelines still exist. Idempotent."""
        with self._changing:
            self._is_closed = True
            running, self._running = list(self._running.values()), {}
            self._end(running, STOP_S)


def _sort(
    configs: Sequence[RecordingConfig], runners: Sequence[Recordable]
) -> tuple[dict[_Key, _Desired], list[dict[str, Any]]]:
    """Split the recordings into those that can run and the status of those that cannot."""
    desired, waiting = {}, []
    for config in configs:
        for runner in runners:
            if config.sources and runner.name not in config.sources:
                continue
            try:
                desired[config.name, runner.name] = _find(config, runner)
            except (NoProductError, UnavailableError) as error:
                waiting.append(_waiting(config, runner.name, str(error)))
    return desired, waiting


def _find(config: RecordingConfig, runner: Recordable) -> _Desired:
    """Find what to record; NoProductError or UnavailableError if there is nothing yet."""
    pipeline = runner.pipeline
    if pipeline is None:
        raise UnavailableError("the source waits for its device")
    if pipeline.finished:
        raise UnavailableError("the source has ended")
    latency_s = _latency_s(config, runner, pipeline)
    specs = {spec.product: spec for spec in pipeline.coming_specs}
    meters = {one.name: one for one in runner.meters}
    products = specs | dict.fromkeys(meters, pipeline.spec)
    spec = find_product(config.product, products, runner.name)
    return _Desired(config, runner, pipeline, spec, latency_s, meters.get(config.product))


def _latency_s(config: RecordingConfig, runner: Recordable, pipeline: Pipeline) -> float:
    """Return the longest time from an event's first sample until its trigger reports it [s]."""
    named = [one for one in runner.table.triggers if one.name in config.named_triggers]
    if not named:
        return 0.0
    rows_s = max(spec.row_s + spec.row_span / spec.fs for spec in pipeline.coming_specs)
    # Rows of a block may be computed when the next one has been passed on.
    backlog_s = 2.0 * pipeline.longest_block_s
    if pipeline.source.is_live or runner.table.pace == "realtime":
        backlog_s = min(backlog_s, LIVE_BACKLOG_S)
    return backlog_s + rows_s + max(one.for_s for one in named)


def _is_unchanged(running: _Running, desired: _Desired | None) -> bool:
    if desired is None or running.pipeline is not desired.pipeline:
        return False
    if running.values is not desired.values:
        return False
    before = running.config, running.product, running.latency_s
    return before == (desired.config, desired.product, desired.latency_s)


def _waiting(config: RecordingConfig, source: str, error: str) -> dict[str, Any]:
    return {
        "name": config.name,
        "source": source,
        "product": config.product,
        "state": "waiting",
        "error": error,
    }


def _failure_reporter(recording: str, source: str) -> Callable[[SpectrodError], None]:
    def report(error: SpectrodError) -> None:
        _log.error("%s: recording %s: %s", source, recording, error)

    return report
