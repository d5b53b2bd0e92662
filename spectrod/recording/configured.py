"""One recording of one source, without a thread: writes its spectra and samples."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

import spectrod
from spectrod.config.settings import RecordingConfig, SourceTable
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import Description
from spectrod.formats.sound import SoundOptions, SoundWriter
from spectrod.formats.values.measurement_chunk import MeasurementChunk
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.recorded import RecordedBy, ValueFileWriter
from spectrod.lib.errors import SpectrodError, StorageError
from spectrod.lib.events import EventLog
from spectrod.lib.names import name_channels
from spectrod.lib.output_formats import PART_SUFFIX
from spectrod.lib.site import Site
from spectrod.lib.time_zones import zone_attribute
from spectrod.recording.expected_size import space_text
from spectrod.recording.outputs import PyramidOutputs, SegmentOutputs
from spectrod.recording.ownership import Owner
from spectrod.recording.preroll_buffer import PrerollBuffer
from spectrod.recording.recorder_clock import Clock
from spectrod.recording.recording_folder import RecordingFolder
from spectrod.recording.recovery import Recovery, first_of
from spectrod.recording.reporter import Reporter
from spectrod.recording.retrying_writer import OpenOutput, RetryingWriter
from spectrod.recording.triggers import Triggers

HELD_MAX_BYTES: Final = 64 << 20
"""Largest size of a pre-roll, for spectra and for samples each."""

_TIDY_S = 10.0
_LOOK_S = 1.0
_DAY_S = 86400


@dataclass(frozen=True, slots=True)
class Recorded:
    """The recorded source.

    Attributes
    ----------
    source : str
        Name of the source.
    signals : tuple of str
        Name of each signal.
    fs : float
        Sample rate [Hz].
    software : str
        Name and version of the program that computes and records.
    settings : callable
        Returns the present settings of the source and its analyses, as built-in types.
    spec : SpectrumSpec, optional
        The recorded rows at the start, from which the needed space follows.
    values : MeasurementDescription, optional
        The recorded rows, if they are measurements.
    site : callable
        Returns where the source is; its attributes replace those of the recording.
    time_zone : callable
        Returns the time zone of that place, as configured; recorded spectra have it as an
        attribute. Measurements have that of their intervals.
    """

    source: str
    signals: tuple[str, ...]
    fs: float
    software: str
    settings: Callable[[], dict[str, Any]]
    spec: SpectrumSpec | None = None
    values: MeasurementDescription | None = None
    site: Callable[[], Site] = Site
    time_zone: Callable[[], str] = str

    def describe(
        self, spec: SpectrumSpec, attributes: dict[str, str] | None = None, recording: str = ""
    ) -> Description:
        """Describe rows of this spec for the configured recording of this name."""
        return Description(
            spec,
            self.source,
            self.signals,
            self.software,
            settings=self.settings(),
            attributes={
                **(attributes or {}),
                **self.site().attributes,
                **zone_attribute(self.time_zone()),
            },
            recording=recording,
        )


def recorded_of(
    name: str,
    table_of: Callable[[], SourceTable],
    spec: SpectrumSpec,
    values: MeasurementDescription | None = None,
) -> Recorded:
    """Return the description of a source, with the sample rate and channels of a spec."""
    return Recorded(
        name,
        name_channels(table_of().channel_names, spec.n_signals),
        spec.fs,
        f"spectrod {spectrod.__version__}",
        lambda: dict(msgspec.to_builtins(table_of())),
        spec,
        values,
        lambda: table_of().site,
        lambda: table_of().time_zone,
    )


class ConfiguredRecording:
    """Writes spectra and samples of a source to the files that a configuration asks for.

    Disk errors never raise. One thread, except ``trigger`` and ``status``.

    Parameters
    ----------
    config : RecordingConfig
        The recording's configuration.
    recorded : Recorded
        The recorded source.
    folder : Path
        Folder of the files, used only by this recording of this source.
    events : EventLog
        Receives the recording's events.
    clock : Clock, optional
        The system clock by default, or a simulated one.
    base : Path, optional
        The operator's folder, which contains ``folder``; see ``RecordingFolder``.
    latency_s : float
        See ``Triggers``.

    Attributes
    ----------
    triggers : Triggers
        The events to record around, if the configuration has triggers.
    """

    is_over: Final = False

    def __init__(  # noqa: PLR0913 - what it writes, where, and its clock
        self,
        config: RecordingConfig,
        recorded: Recorded,
        folder: Path,
        events: EventLog,
        clock: Clock | None = None,
        base: Path | None = None,
        *,
        latency_s: float = 0.0,
    ) -> None:
        self.config, self._recorded = config, recorded
        self._clock = clock or Clock()
        self._reporter = Reporter(config.name, recorded.source, events, self._clock)
        self.triggers = Triggers(config.pre_roll_s, config.post_roll_s, latency_s)
        owner = Owner(config.name, recorded.source, config.file_stem)
        self._folder = RecordingFolder(folder, config, owner, self._clock, base)
        self._recovery = Recovery(config.name, self._folder, self._reporter)
        self._rows = self._writer(self._open_rows()) if config.spectra else None
        self._samples = self._writer(self._open_sound()) if config.samples else None
        self._pyramids: PyramidOutputs | None = None
        self._pyramid = self._pyramid_writer() if config.pyramid else None
        several = self._rows, self._samples, self._pyramid
        self._writers = tuple(one for one in several if one)
        self._has_room = True
        self._free_bytes: int | None = None
        self._last_byte_utc_ns: int | None = None
        self._seen_bytes = 0
        self._has_failed = self._is_short = False
        self._tidy_error = ""
        self._tidied_s = self._looked_s = -1.0
        self._has_reported_foreign = False

    def _writer(self, open_output: OpenOutput[Any]) -> RetryingWriter[Any]:
        config, folder = self.config, self._folder
        writer = RetryingWriter(config, open_output, folder, self._reporter, self._clock)
        if self.config.triggers:
            writer.preroll = PrerollBuffer(self.triggers, HELD_MAX_BYTES)
        return writer

    def _open_rows(self) -> OpenOutput[Any]:
        config = self.config
        if not self._recorded.values:
            return SegmentOutputs(self._describe, config.fsync_s).open
        attributes = config.attributes | self._recorded.site().attributes
        by = RecordedBy(config.name, self._recorded.source, attributes)
        suffix = f".{config.values}"
        return lambda folder, stem, row: ValueFileWriter(
            folder.new_file(stem, suffix), row.about, by
        )

    def _open_sound(self) -> OpenOutput[Block]:
        config, about = self.config, self._recorded
        options = SoundOptions(
            config.fsync_s, source=about.source, software=about.software, recording=config.name
        )
        suffix = f".{config.samples}"
        return lambda folder, stem, block: SoundWriter(
            folder.new_file(stem, suffix), about.fs, block.samples.shape[0], options=options
        )

    def _describe(self, batch: SpectrumBatch) -> Description:
        return self._recorded.describe(batch.spec, self.config.attributes, self.config.name)

    def _pyramid_writer(self) -> RetryingWriter[SpectrumBatch]:
        """Make the pyramid's writer: one pyramid covers all times and all events."""
        config = msgspec.structs.replace(self.config, rotate_s=0, rotate_mb=0.0)
        self._pyramids = PyramidOutputs(self._describe, config.fsync_s)
        open_output, folder = self._pyramids.open, self._folder
        return RetryingWriter(config, open_output, folder, self._reporter, self._clock)

    def start(self) -> None:
        """Recover files that an earlier daemon left unfinished, and delete expired ones."""
        self._recover_all()
        self.tick()
        spec = self._recorded.spec
        space = f"; {space_text(self.config, spec, self._recorded.values)}" if spec else ""
        self._reporter.report("record.begun", f"into {self._folder.path}{space}")

    def _recover_all(self) -> None:
        try:
            self._folder.claim()
        except SpectrodError:  # reported by the write that fails next
            self._has_failed = True
            return
        paths = [writer.path for writer in self._writers]
        self._recovery.run([f"{path.name}{PART_SUFFIX}" for path in paths if path])

    def write(self, chunk: SpectrumBatch | MeasurementChunk | Block) -> None:
        """Write the next chunk to the files of its kind."""
        writers: tuple[RetryingWriter[Any] | None, ...] = (self._rows, self._pyramid)
        for writer in (self._samples,) if isinstance(chunk, Block) else writers:
            if writer and chunk.length:
                writer.write(chunk)

    def trigger(self, first_ns: int, last_ns: int, why: str) -> None:
        """Record around an event [ns since 1970].

        Any thread may call it, before samples of that time arrive.
        """
        if self.triggers.add(first_ns, last_ns):
            self._reporter.report("record.trigger", why)

    def tick(self) -> None:
        """Do the periodic work; call it about once a second, with or without data."""
        self._look_at_folder()
        self._look_for_room()
        for writer in self._writers:
            writer.tick()
        self._look_for_growth()
        self._look_at_prerolls()
        had_failed = self._has_failed
        self._has_failed = any(writer.error for writer in self._writers)
        if had_failed and not self._has_failed:
            self._recover_all()
        now_s = self._clock.monotonic_s()
        if now_s - self._tidied_s >= _TIDY_S or self._tidied_s < 0:
            self._tidied_s = now_s
            self._tidy()

    def _look_at_folder(self) -> None:
        """If the folder was moved away, finish its files and continue at its path."""
        now_s = self._clock.monotonic_s()
        if 0 <= now_s - self._looked_s < _LOOK_S:
            return
        self._looked_s = now_s
        if self._folder.is_in_place():
            return
        for writer in self._writers:
            writer.close()
        self._folder.release()
        rule = "was moved or replaced: files that were started in it end there"
        self._reporter.warn("record.moved", f"{self._folder.path}: {rule}")
        self._recover_all()

    def finish(self) -> None:
        """End all files."""
        for writer in self._writers:
            writer.finish()
        self._tidy()
        self._folder.release()
        self._reporter.report("record.ended", self._summary())

    def break_off(self, why: str) -> None:
        """Report a failure and abort all files; the next start recovers them."""
        self._reporter.warn("record.failed", why)
        for writer in self._writers:
            writer.abort()
        self._folder.release()

    def _summary(self) -> str:
        several = ((self._rows, "rows"), (self._samples, "samples"))
        parts = [f"{writer.written} {unit}" for writer, unit in several if writer]
        return f"{', '.join(parts) or 'nothing'} written"

    # ---- room on the disk

    def _look_for_room(self) -> None:
        folder, had_room = self._folder, self._has_room
        self._free_bytes = folder.free_bytes()
        has_room = folder.has_room(had_room=had_room)
        if not has_room and self.config.when_full == "delete":
            self._tidy()
            has_room = folder.has_room(had_room=had_room)
        if has_room == had_room:
            return
        self._has_room = has_room
        for writer in self._writers:
            writer.has_room = has_room
            if not has_room:
                writer.close()
        if has_room:
            text = "has space again; recording continues"
            self._reporter.warn("record.room", f"{folder.path}: {text}")
        else:
            free_mb = (self._free_bytes or 0) / 1e6
            rule = f"less than min_free_mb={self.config.min_free_mb:g} is free ({free_mb:.1f} MB)"
            text = f"{rule}: recording stops until there is more"
            self._reporter.warn("record.full", f"{folder.path}: {text}")

    def _look_for_growth(self) -> None:
        if self._written_bytes != self._seen_bytes:
            self._seen_bytes = self._written_bytes
            self._last_byte_utc_ns = self._clock.utc_ns()

    @property
    def _written_bytes(self) -> int:
        return sum(writer.n_bytes + writer.open_bytes for writer in self._writers)

    def _look_at_prerolls(self) -> None:
        prerolls = [writer.preroll for writer in self._writers]
        if not self._is_short and any(preroll and preroll.short_by for preroll in prerolls):
            self._is_short = True
            roll_s = self.config.pre_roll_s
            self._reporter.warn(
                "record.pre_roll",
                f"pre_roll_s={roll_s:g}: needs more than {HELD_MAX_BYTES >> 20} MB: "
                "the pre-roll is shorter",
            )

    def _tidy(self) -> None:
        try:
            deleted = self._folder.tidy(sum(writer.open_bytes for writer in self._writers))
            if self._pyramids and self.config.keep_days:
                kept_ns = round(self.config.keep_days * _DAY_S * NS_PER_S)
                self._pyramids.expire(self._clock.utc_ns() - kept_ns)
        except StorageError as error:
            if str(error) != self._tidy_error:
                self._reporter.warn("record.failed", f"cannot delete: {error}")
            self._tidy_error = str(error)
            return
        self._tidy_error = ""
        self._report_foreign()
        if deleted:
            first, n = deleted[0], len(deleted)
            which = first if n == 1 else f"{n} files, {first} to {deleted[-1]}"
            self._reporter.report("record.deleted", f"{which}: not kept any longer")

    def _report_foreign(self) -> None:
        """Report once that retention rules do not apply to some files."""
        config, folder = self.config, self._folder
        deletes = config.keep_days or config.keep_mb or config.when_full == "delete"
        if self._has_reported_foreign or not (deletes and folder.foreign) or folder.n_untried:
            return
        self._has_reported_foreign = True
        rule = "neither counted nor deleted: this recording did not write it"
        self._reporter.warn("record.foreign", f"{first_of(folder.foreign)}: {rule}")

    # ---- status

    def status(self) -> dict[str, Any]:
        """Return the status in built-in types; any thread."""
        rows, samples = self._rows, self._samples
        # One fault of the disk is the same for spectra and samples.
        errors = dict.fromkeys(writer.error for writer in self._writers)
        errors[self._tidy_error] = None
        errors.pop("", None)
        paths = [writer.path for writer in self._writers]
        return {
            "name": self.config.name,
            "source": self._recorded.source,
            "product": self.config.product,
            "state": self._state(),
            "folder": str(self._folder.path),
            "files": [path.name for path in paths if path],
            "rows": rows.written if rows else 0,
            "samples": samples.written if samples else 0,
            "lost_rows": rows.missed if rows else 0,
            "lost_samples": samples.missed if samples else 0,
            "written_bytes": self._written_bytes,
            "last_byte_utc_ns": self._last_byte_utc_ns,
            "kept_files": self._folder.n_files,
            "kept_bytes": self._folder.n_bytes,
            "free_bytes": self._free_bytes,
            "triggers": self.triggers.count,
            "error": "; ".join(errors),
        }

    def _state(self) -> str:
        if any(writer.error for writer in self._writers):
            return "failed"
        if not self._has_room:
            return "full"
        if any(writer.is_writing for writer in self._writers):
            return "recording"
        if self.config.triggers:
            return "armed"
        now_ns = self._clock.utc_ns()
        return "waiting" if self.config.hours.covers(now_ns) else "off"
