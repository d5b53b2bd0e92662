"""Files of one kind of data (spectra or samples) of a configured recording, with retries."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from spectrod.config.schedule import NEVER_NS
from spectrod.config.settings import RecordingConfig
from spectrod.dsp.blocks import Chunk
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.output import Output
from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import SpectrodError
from spectrod.recording.preroll_buffer import PrerollBuffer
from spectrod.recording.recorder_clock import Clock
from spectrod.recording.recording_folder import RecordingFolder
from spectrod.recording.reporter import Reporter
from spectrod.recording.rotating_writer import (
    FileSpan,
    RotatingWriter,
    is_known_gone,
    require_there,
)

T = TypeVar("T", bound=Chunk)

_MB = 1_000_000
_RETRY_FIRST_S, _RETRY_LAST_S = 0.5, 30.0
_GOOD_S = 60.0
_LATE_MAX_S = 2.0


OpenOutput = Callable[[RecordingFolder, str, T], Output[T]]
"""Starts a file in a folder, with the desired stem of its name and its first chunk; raises a
SpectrodError."""


class RetryingWriter(RotatingWriter[T]):
    """Writes the files of a ``[recordings.NAME]`` table.

    A file ends at whole multiples of ``rotate_s`` of UTC, at ``rotate_mb``, where a schedule or an
    event ends, and where the analysis changes.

    A fault is reported once. The writer retries at growing intervals, up to half a minute, until it
    can write.

    Parameters
    ----------
    config : RecordingConfig
        The recording's configuration.
    open_output : callable
        Starts a file; see ``OpenOutput``.
    folder : RecordingFolder
        Folder of the files.
    reporter : Reporter
        Reports what happens.
    clock : Clock
        Clock of the times between attempts.

    Attributes
    ----------
    preroll : PrerollBuffer or None
        Passes on only data around events.
    n_bytes : int
        Total length of all files that have ended [bytes].
    has_room : bool
        False while the disk is too full to start a file.
    error : str
        The present fault; empty if there is none.
    """

    preroll: PrerollBuffer[T] | None = None

    def __init__(
        self,
        config: RecordingConfig,
        open_output: OpenOutput[T],
        folder: RecordingFolder,
        reporter: Reporter,
        clock: Clock,
    ) -> None:
        super().__init__(round(config.rotate_mb * _MB))
        self._config, self._open_output = config, open_output
        self._folder, self._reporter, self._clock = folder, reporter, clock
        self._hours = config.hours
        self._backoff = Backoff(_RETRY_FIRST_S, _RETRY_LAST_S)
        self._last_ns, self._taken_s, self._late_max_s = 0, 0.0, 0.0
        self._flushed_s = self._failed_s = self._retry_s = -1.0
        self._missed_before = 0
        self.error = self._unit = ""
        self.n_bytes = 0
        self.has_room = True

    def write(self, chunk: T) -> None:
        """Write the next chunk; disk errors never raise."""
        if self.preroll is None:
            super().write(chunk)
        else:
            self._write_decided(self.preroll.push(chunk))

    def tick(self) -> None:
        """Do the periodic work: end an overdue file, synchronise it, check that it exists."""
        if self._is_overdue():
            super().finish()
        if self._output is None:
            return
        try:
            require_there(self._output)
            if self._clock.monotonic_s() - self._flushed_s >= self._config.fsync_s:
                self._flushed_s = self._clock.monotonic_s()
                self._output.flush()
        except SpectrodError as error:
            self._fail(error)

    def finish(self) -> None:
        """Write held chunks and finish the file."""
        if self.preroll is not None:
            self._write_decided(self.preroll.drain())
        super().finish()

    def _write_decided(self, chunks: Iterator[tuple[T, bool]]) -> None:
        for chunk, is_wanted in chunks:
            if is_wanted:
                super().write(chunk)
            else:
                self.close()
                self._skip(chunk)

    def _is_overdue(self) -> bool:
        """Return whether the span of the file is over, with a margin for late chunks."""
        since_s = self._clock.monotonic_s() - self._taken_s
        now_ns = self._last_ns + round((since_s - self._late_max_s) * NS_PER_S)
        return now_ns > self._span.until_ns

    def _span_at(self, t_utc_ns: int) -> FileSpan:
        rotate_ns = self._config.rotate_s * NS_PER_S
        boundary_ns = (t_utc_ns // rotate_ns + 1) * rotate_ns if rotate_ns else NEVER_NS
        until_ns = min(boundary_ns, self._hours.next_turn_ns(t_utc_ns))
        return FileSpan(t_utc_ns, until_ns, self._hours.covers(t_utc_ns))

    # ---- files

    def _may_write(self) -> bool:
        return self.has_room and self._clock.monotonic_s() >= self._retry_s

    def _open(self, chunk: T) -> Output[T]:
        stem = self._config.file_stem(chunk.begin_utc_ns)
        output = self._open_output(self._folder, stem, chunk)
        self._flushed_s = self._clock.monotonic_s()
        return output

    def _note_written(self, chunk: T) -> None:
        self._unit = chunk.unit
        self._last_ns = chunk.last_utc_ns
        self._taken_s = self._clock.monotonic_s()
        self._late_max_s = _LATE_MAX_S + 2 * chunk.delay_s
        if self.error:
            lost = self.missed - self._missed_before
            self._reporter.warn("record.resumed", f"resumed; {lost} {chunk.unit} are missing")
            self.error = ""

    def _note_finished(self, output: Output[T]) -> None:
        n_bytes = self._folder.stamp(output.path.name)
        self.n_bytes += n_bytes
        size = f"{self._in_file} {self._unit}, {n_bytes / _MB:.3g} MB"
        self._reporter.report("record.file", f"{output.path.name}: finished, {size}")

    # ---- faults

    def _fail(self, error: SpectrodError) -> None:
        """Close the file if possible, and wait before the next; report the first fault."""
        now_s, missed_before = self._clock.monotonic_s(), self.missed
        n_bytes, output = self.open_bytes, self._take_output()
        if output is not None:
            if is_known_gone(output):
                self.missed += self._in_file
                self.written -= self._in_file
                self._finish_or_abort(output)
            else:
                self.n_bytes += n_bytes
                self._end_after_fault(output)
        self._count_cut()
        is_first = not self.error
        if is_first:
            if now_s - self._failed_s > _GOOD_S:
                self._backoff.reset()
            self._missed_before = missed_before
        self.error = str(error)
        self._failed_s = now_s
        self._retry_s = now_s + self._backoff.next_s()
        if is_first:  # reported last: the state is already that of the event
            self._reporter.warn("record.failed", f"{error}; it is tried again")
