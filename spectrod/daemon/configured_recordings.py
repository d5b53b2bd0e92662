"""The recordings of the configuration: what they record of which source."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from spectrod.config.settings import RecordingConfig, check_folder_names
from spectrod.daemon.pipeline import Pipeline
from spectrod.daemon.recorder import Recorder, RecordingFeed
from spectrod.daemon.source_runner import SourceRunner, pipeline_of
from spectrod.lib.errors import NoProductError, SpectrodError, UnavailableError
from spectrod.lib.events import EventLog
from spectrod.lib.names import find_product
from spectrod.recording.configured import ConfiguredRecording, recorded_of
from spectrod.recording.triggers import EventFinder

LIVE_BACKLOG_S: Final = 5.0
"""Longest time by which rows are behind the samples that a recorder has, of a source that is not
played as fast as it can be read [s]."""

Wanted = tuple[RecordingConfig, RecordingFeed]
"""A recording that can run, and what it records."""


def find_all(
    configs: Sequence[RecordingConfig], runners: Sequence[SourceRunner]
) -> tuple[list[Wanted], list[dict[str, Any]]]:
    """Return the recordings that can run on these sources, and the status of those that cannot."""
    wanted, waiting = [], []
    for config in configs:
        for runner in runners:
            if config.sources and runner.name not in config.sources:
                continue
            try:
                wanted.append((config, _find(config, runner)))
            except (NoProductError, UnavailableError) as error:
                waiting.append(waiting_status(config, runner.name, error))
    return wanted, waiting


def _find(config: RecordingConfig, runner: SourceRunner) -> RecordingFeed:
    """Find what to record; NoProductError or UnavailableError if there is nothing yet."""
    pipeline = pipeline_of(runner)
    specs = {spec.product: spec for spec in pipeline.coming_specs}
    meters = {one.name: one for one in runner.meters}
    products = specs | dict.fromkeys(meters, pipeline.spec)
    spec = find_product(config.product, products, runner.name)
    values = meters.get(config.product)
    return RecordingFeed(
        runner,
        pipeline,
        values.name if values else spec.product,
        spec,
        values,
        rows=config.spectra or config.pyramid,
        samples=bool(config.samples),
        latency_s=_latency_s(config, runner, pipeline),
    )


def _latency_s(config: RecordingConfig, runner: SourceRunner, pipeline: Pipeline) -> float:
    """Return the longest time from an event's first sample until its trigger reports it [s]."""
    named = [one for one in runner.table.triggers if one.name in config.named_triggers]
    if not named:
        return 0.0
    rows_s = max(spec.row_s + spec.row_span / spec.fs for spec in pipeline.coming_specs)
    # Rows of a block may be computed when the next one has been passed on.
    backlog_s = 2.0 * pipeline.longest_block_s
    if pipeline.source.is_live or runner.table.pace == "realtime":
        backlog_s = min(backlog_s, LIVE_BACKLOG_S)
    return backlog_s + rows_s + max(one.known_after_s for one in named)


def make(
    config: RecordingConfig, feed: RecordingFeed, default_folder: Path, events: EventLog
) -> Recorder[ConfiguredRecording]:
    """Make a recorder, not started yet; raises ConfigError if no folder can have its name."""
    runner, values = feed.runner, feed.values
    base = Path(config.folder) if config.folder else default_folder
    # The configuration has checked all names except that of a single unnamed source.
    check_folder_names("sources", [runner.name])
    about = values.about if values else None
    make_recording = partial(
        ConfiguredRecording,
        config,
        recorded_of(runner.name, lambda: runner.table, feed.spec, about),
        base / config.name / runner.name,
        events,
        base=base,
        latency_s=feed.latency_s,
    )

    def on_event(first_ns: int, last_ns: int, text: str) -> None:
        recorder.recording.trigger(first_ns, last_ns, text)

    finder = EventFinder(config, feed.spec.fs, runner.checked, on_event)
    recorder = Recorder(config.name, make_recording(), feed, finder=finder, restart=make_recording)
    return recorder


def waiting_status(config: RecordingConfig, source: str, error: SpectrodError) -> dict[str, Any]:
    """Return the status of a recording that cannot run."""
    return {
        "name": config.name,
        "source": source,
        "product": config.product,
        "state": "waiting",
        "error": str(error),
    }
