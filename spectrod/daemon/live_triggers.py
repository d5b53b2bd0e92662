"""Triggers of a running source: sinks of its products, whose events it passes on."""

import logging
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from spectrod.config.settings import SourceTable
from spectrod.daemon.pipeline import Pipeline
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError, SpectrodError
from spectrod.lib.events import EventLog
from spectrod.lib.names import find_product, name_channels
from spectrod.lib.time_zones import span_text
from spectrod.measure.triggers.trigger_config import TriggerConfig
from spectrod.recording.triggers import EventFinder

if TYPE_CHECKING:
    from spectrod.measure.triggers.mask import Mask
    from spectrod.measure.triggers.trigger import Trigger, TriggerEvent

_log = logging.getLogger(__name__)

LOG_PERIOD_S: Final = 10.0
"""Shortest time between two begins of events of a trigger in the log [s]."""


class LiveTrigger:
    """One trigger of a source; see ``Pipeline.attach``.

    Parameters
    ----------
    trigger : Trigger
        The trigger, of the present spec.
    channels : sequence of str
        Name of each signal.
    mask : Mask or None
        The learned mask that it names.
    owner : LiveTriggers
        Passes events on.
    """

    def __init__(
        self,
        trigger: "Trigger",
        channels: Sequence[str],
        mask: "Mask | None",
        owner: "LiveTriggers",
    ) -> None:
        self._trigger, self._channels, self._mask = trigger, channels, mask
        self._owner = owner
        self.product = trigger.spec.product
        self.n_events = self._n_left_out = 0
        self._log_due_s, self._n_unlogged = -LOG_PERIOD_S, 0
        self._is_begin_logged = False

    @property
    def config(self) -> TriggerConfig:
        """The trigger's configuration."""
        return self._trigger.config

    @property
    def is_active(self) -> bool:
        """Whether an event lasts; any thread."""
        return self._trigger.is_active

    @property
    def definition(self) -> "tuple[TriggerConfig, SpectrumSpec, Mask | None]":
        """What it detects, in which rows."""
        return self.config, self._trigger.spec, self._mask

    def write(self, batch: SpectrumBatch) -> None:
        """Read rows, and report the events that begin and end in them."""
        if batch.spec is not self._trigger.spec and batch.spec != self._trigger.spec:
            self._report(self._trigger.end("gap"))
            self._n_left_out += self._trigger.n_left_out
            new = type(self._trigger)
            self._trigger = new(self.config, batch.spec, self._channels, self._mask)
        self._report(self._trigger.push(batch))
        if self._trigger.is_active:
            self._owner.pass_on(self.config.name, *self._trigger.span_utc_ns, "goes on")

    def finish(self) -> None:
        """End the event; call it when no more rows come."""
        self._report(self._trigger.end("stopped"))

    def status(self) -> dict[str, Any]:
        """Return the state in built-in types; any thread."""
        trigger = self._trigger
        is_active = trigger.is_active
        return {
            "name": self.config.name,
            "source": self._owner.source_name,
            "kind": self.config.kind,
            "product": self.product,
            "is_active": is_active,
            "begin_utc_ns": trigger.span_utc_ns[0] if is_active else None,
            "events": self.n_events,
            "left_out": self._n_left_out + trigger.n_left_out,
        }

    def _report(self, events: "Sequence[TriggerEvent]") -> None:
        for event in events:
            self.n_events += event.state == "begun"
            self._log(event)
            self._owner.note(event)
            self._owner.pass_on(event.name, event.begin_utc_ns, event.end_utc_ns, event.text)

    def _log(self, event: "TriggerEvent") -> None:
        """Log a begin at most once in a period, and the end of each begin that was logged."""
        more = ""
        if event.state == "begun":
            now_s = time.monotonic()
            self._is_begin_logged = now_s >= self._log_due_s
            if not self._is_begin_logged:
                self._n_unlogged += 1
                return
            if self._n_unlogged:
                more = f"; {self._n_unlogged} more since the last such line"
            self._log_due_s, self._n_unlogged = now_s + LOG_PERIOD_S, 0
        elif not self._is_begin_logged:
            return
        source = self._owner.source_name
        about = {"about": {"source": source, "event": f"trigger.{event.state}"}}
        _log.info(
            "%s: trigger %s: %s: %s, %s%s",
            source,
            event.name,
            event.state,
            event.text,
            span_text(event.begin_utc_ns, event.end_utc_ns if event.state == "ended" else None),
            more,
            extra=about,
        )


class LiveTriggers:
    """All triggers of a source. Their events go to the event log and to recorders.

    Parameters
    ----------
    events : EventLog
        The daemon's events.
    masks : Path
        Folder of learned masks.

    Attributes
    ----------
    source_name : str
        Name of the source.
    """

    def __init__(self, events: EventLog, masks: Path) -> None:
        self.source_name = ""
        self._events, self._masks = events, masks
        self._running: tuple[LiveTrigger, ...] = ()
        self._takers: tuple[EventFinder, ...] = ()
        self._lock = threading.Lock()

    def open(self, table: SourceTable, specs: Sequence[SpectrumSpec]) -> tuple[LiveTrigger, ...]:
        """Create the triggers of a table, for ``run``.

        Raises
        ------
        ConfigError
            If a trigger does not fit the spectra, or a learned mask is missing or not valid.
        """
        try:
            return tuple(self._open(config, table, specs) for config in table.triggers)
        except MemoryError as error:
            raise ConfigError(f"triggers: no memory for them: {error}") from error

    def check_masks(self, table: SourceTable) -> None:
        """Check that the learned masks of a table can be read; raises ConfigError."""
        if not any(config.mask for config in table.triggers):
            return
        from spectrod.measure.triggers.mask import read_mask  # noqa: PLC0415 - most daemons have none

        for config in table.triggers:
            if config.mask:
                try:
                    read_mask(self._masks, config.mask)
                except ConfigError as error:
                    raise ConfigError(f"triggers.{config.name}: {error}") from error

    def _open(
        self, config: TriggerConfig, table: SourceTable, specs: Sequence[SpectrumSpec]
    ) -> LiveTrigger:
        # Most daemons have no triggers: their start does not wait for this.
        from spectrod.measure.triggers.mask import read_mask  # noqa: PLC0415
        from spectrod.measure.triggers.trigger import Trigger  # noqa: PLC0415

        try:
            spec = find_product(config.product, {one.product: one for one in specs})
            channels = name_channels(table.channel_names, spec.n_signals)
            mask = read_mask(self._masks, config.mask) if config.mask else None
            return LiveTrigger(Trigger(config, spec, channels, mask), channels, mask, self)
        except ConfigError as error:
            raise ConfigError(f"triggers.{config.name}: {error}") from error

    def run(self, pipeline: Pipeline, triggers: Sequence[LiveTrigger]) -> None:
        """Run these triggers on a pipeline; present ones that are the same go on, others end."""
        with self._lock:
            after = tuple(self._present(one) or one for one in triggers)
            gone = [one for one in self._running if one not in after]
            new = [one for one in after if one not in self._running]
            self._running = after
        for one in gone:
            pipeline.detach(one)
            one.finish()
        for one in new:
            pipeline.attach(one, one.product, partial(self._failed, one))

    def _present(self, wanted: LiveTrigger) -> LiveTrigger | None:
        definition = wanted.definition
        return next((one for one in self._running if one.definition == definition), None)

    def stop(self, pipeline: Pipeline) -> None:
        """Detach the triggers, and end their events; idempotent."""
        self.run(pipeline, ())

    def end_events(self) -> None:
        """End the present events; called where no more rows come."""
        for one in self._running:
            one.finish()

    def _failed(self, one: LiveTrigger, error: SpectrodError) -> None:
        text = f"{one.config.name}: {error}"
        about = {"about": {"source": self.source_name, "event": "trigger.failed"}}
        _log.error("%s: triggers.%s", self.source_name, text, extra=about)
        self._events.add("trigger.failed", text, source=self.source_name)

    def attach(self, taker: EventFinder) -> None:
        """Pass on events, from the next row on, until ``detach``; any thread."""
        with self._lock:
            self._takers = (*self._takers, taker)

    def detach(self, taker: EventFinder) -> None:
        """Pass on no more events; any thread."""
        with self._lock:
            self._takers = tuple(one for one in self._takers if one is not taker)

    def pass_on(self, name: str, first_ns: int, last_ns: int, text: str) -> None:
        """Pass the times of an event so far on to recorders."""
        for taker in self._takers:
            taker.take_event(name, first_ns, last_ns, text)

    def note(self, event: "TriggerEvent") -> None:
        """Add an event to the event log."""
        text, facts = f"{event.name}: {event.text}", msgspec.to_builtins(event)
        self._events.add(f"trigger.{event.state}", text, source=self.source_name, trigger=facts)

    def names(self, n_max: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the first n_max triggers, and of those whose event lasts."""
        listed = self._running[:n_max]
        active = tuple(one.config.name for one in listed if one.is_active)
        return tuple(one.config.name for one in listed), active

    def products(self, n_max: int) -> tuple[str, ...]:
        """Return the first n_max products that triggers examine, each once."""
        return tuple(dict.fromkeys(one.product for one in self._running))[:n_max]

    def status(self) -> list[dict[str, Any]]:
        """Return the state of each trigger in built-in types; any thread."""
        return [one.status() for one in self._running]
