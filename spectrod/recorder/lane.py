"""One kind of data of a recording, spectra or samples: what goes into which file, and faults."""

from collections.abc import Iterator
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from spectrod.backoff import Backoff
from spectrod.chunks import Chunk
from spectrod.errors import SpectrodError, StorageError
from spectrod.recorder.clock import SET_BACK_NS, Clock
from spectrod.recorder.gate import Gate
from spectrod.recorder.outputs import Output
from spectrod.recorder.shelf import Shelf
from spectrod.recorder.telling import Teller
from spectrod.schedule import NEVER_NS
from spectrod.settings import RecordingConfig

T = TypeVar("T", bound=Chunk)
T_contra = TypeVar("T_contra", contravariant=True)

_NS = 1_000_000_000
_MB = 1_000_000
_RETRY_FIRST_S, _RETRY_LAST_S = 0.5, 30.0
_GOOD_S = 60.0
_PATIENCE_S = 2.0


class Outputs(Protocol[T_contra]):
    """What makes the files of a lane."""

    @property
    def unit(self) -> str:
        """What the lane counts: rows or samples."""

    def open(self, shelf: Shelf, stem: str, piece: T_contra) -> Output[T_contra]:
        """Begin a file whose first piece this is; raises a SpectrodError.

        Parameters
        ----------
        shelf : Shelf
            The folder.
        stem : str
            The name that the file should have, without a suffix.
        piece : T
            The first.
        """


class Lane(Generic[T]):
    """Pieces of one kind, in order, into files.

    A file ends at whole ``rotate_s`` of UTC, at ``rotate_mb``, where a schedule or an event ends,
    and where the analysis changes; the next begins with the row or sample after its last. Whatever
    is not written, for whatever reason, is told by the next piece that is, as samples missing.

    What cannot be written is told once; then it is tried again, after longer and longer times up to
    half a minute, until it can. One thread.

    Parameters
    ----------
    config : RecordingConfig
        Its rules.
    outputs : Outputs
        Makes the files.
    shelf : Shelf
        Where they go.
    teller : Teller
        Is told what happens.
    clock : Clock
        For times between attempts.

    Attributes
    ----------
    gate : Gate or None
        What lets through only what is around events.
    written, missed : int
        Rows, or samples a channel, in files; and those that faults and full disks have cost.
    n_bytes : int
        Of all files that have ended.
    open_bytes : int
        Length of the file that is being written.
    has_room : bool
        False while the disk is too full to begin.
    """

    gate: Gate[T] | None = None

    def __init__(
        self,
        config: RecordingConfig,
        outputs: Outputs[T],
        shelf: Shelf,
        teller: Teller,
        clock: Clock,
    ) -> None:
        self._config, self._outputs = config, outputs
        self._shelf, self._teller, self._clock = shelf, teller, clock
        self._hours = config.hours
        self._backoff = Backoff(_RETRY_FIRST_S, _RETRY_LAST_S)
        self._output: Output[T] | None = None
        # The times within which the file, or the pause, is the same one.
        self._begin_ns, self._until_ns = 0, 0
        self._is_on = False
        self._last_ns, self._taken_s, self._patience_s = 0, 0.0, 0.0
        self._missing_samples, self._has_begun = 0, False
        self._in_file = 0
        self._flushed_s = self._failed_s = self._retry_s = -1.0
        self._missed_before = 0
        self.error = ""
        self.written = self.missed = self.n_bytes = self.open_bytes = 0
        self.has_room = True

    @property
    def path(self) -> Path | None:
        """The file that is being written, by its final name; any thread may ask."""
        output = self._output
        return output.path if output else None

    @property
    def is_on(self) -> bool:
        """Whether the schedule wants what came last."""
        return self._is_on

    def take(self, piece: T) -> None:
        """Take the next piece; raises nothing that a disk can cause."""
        if self.gate is None:
            self._take(piece)
        else:
            self._take_decided(self.gate.take(piece))

    def tick(self) -> None:
        """Do what is due without pieces: end a file whose time is over, synchronise, look at it."""
        if self._output is None:
            return
        if self._is_overdue():
            self.close()
            return
        try:
            _check_there(self._output)
            if self._clock.monotonic_s() - self._flushed_s >= self._config.fsync_s:
                self._flushed_s = self._clock.monotonic_s()
                self._output.flush()
        except SpectrodError as error:
            self._fail(error)

    def finish(self) -> None:
        """Write what is held back and end the file."""
        if self.gate is not None:
            self._take_decided(self.gate.drain())
        self.close()

    def abort(self) -> None:
        """Let go of the file as it is, to be recovered; for good."""
        if self._output is not None:
            self._output.abort()
            self._output = None

    def close(self) -> None:
        """End the file, if there is one; the next piece begins a new one."""
        if self._output is None:
            return
        try:
            self._end_file()
        except SpectrodError as error:
            self._fail(error)

    def _is_overdue(self) -> bool:
        """Whether the file's time is over, going on from the last piece, and none can be late."""
        since_s = self._clock.monotonic_s() - self._taken_s
        return self._last_ns + round((since_s - self._patience_s) * _NS) > self._until_ns

    # ---- what is wanted

    def _take_decided(self, pieces: Iterator[tuple[T, bool]]) -> None:
        for piece, is_wanted in pieces:
            if is_wanted:
                self._take(piece)
            else:
                self.close()
                self._miss(piece)

    def _take(self, piece: T | None) -> None:
        while piece is not None:
            t_ns = piece.begin_utc_ns
            # NB: a clock that was set back begins a new file, or a file might last for a year.
            if not self._begin_ns - SET_BACK_NS <= t_ns < self._until_ns:
                self._enter(t_ns)
            head, piece = piece.split_at(self._until_ns)
            if head is not None and self._is_on:
                self._write(head)
            elif head is not None:
                self._miss(head)

    def _enter(self, t_ns: int) -> None:
        """Begin the span of time that this one lies in."""
        self.close()
        rotate_ns = self._config.rotate_s * _NS
        boundary_ns = (t_ns // rotate_ns + 1) * rotate_ns if rotate_ns else NEVER_NS
        self._begin_ns = t_ns
        self._until_ns = min(boundary_ns, self._hours.next_turn_ns(t_ns))
        self._is_on = self._hours.covers(t_ns)

    # ---- files

    def _write(self, piece: T) -> None:
        if not self.has_room or self._clock.monotonic_s() < self._retry_s:
            self._miss(piece, by_fault=True)
            return
        told = piece
        if self._missing_samples and self._has_begun:
            told = piece.after_gap(self._missing_samples)
        try:
            if self._output is not None and not self._output.fits(told):
                self._end_file()
            if self._output is None:
                self._begin_file(told)
            assert self._output is not None
            self._output.write(told)
        except SpectrodError as error:
            self._fail(error)
            self._miss(piece, by_fault=True)
            return
        self.open_bytes = self._output.size_bytes
        self._note_written(piece)

    def _begin_file(self, piece: T) -> None:
        stem = self._config.file_stem(piece.begin_utc_ns)
        self._output = self._outputs.open(self._shelf, stem, piece)
        self._in_file, self._flushed_s = 0, self._clock.monotonic_s()

    def _note_written(self, piece: T) -> None:
        self._missing_samples, self._has_begun = 0, True
        self._last_ns = piece.last_utc_ns
        self._taken_s = self._clock.monotonic_s()
        self._patience_s = _PATIENCE_S + 2 * piece.delay_s
        n = piece.length
        self.written += n
        self._in_file += n
        if self.error:
            self._note_resumed()
        limit_bytes = self._config.rotate_mb * _MB
        if limit_bytes and self.open_bytes >= limit_bytes:
            self.close()

    def _end_file(self) -> None:
        assert self._output is not None
        _check_there(self._output)  # or its rows would count as written
        output, self._output, self.open_bytes = self._output, None, 0
        n_bytes = 0
        try:
            output.finish()
            if self._in_file:
                n_bytes = self._shelf.stamp(output.path.name)
        except SpectrodError:
            output.abort()
            raise
        if self._in_file:
            self.n_bytes += n_bytes
            size = f"{self._in_file} {self._outputs.unit}, {n_bytes / _MB:.3g} MB"
            self._teller.tell("record.file", f"{output.path.name}: finished, {size}")

    def _miss(self, piece: T, *, by_fault: bool = False) -> None:
        self._missing_samples += piece.span_samples
        if by_fault:
            self.missed += piece.length

    # ---- faults

    def _fail(self, error: SpectrodError) -> None:
        """Let go of the file as it is, and wait before the next; told once until it works again."""
        now_s, missed_before = self._clock.monotonic_s(), self.missed
        if self._output is not None:
            output, n_bytes = self._output, self.open_bytes
            self._output, self.open_bytes = None, 0
            if output.is_gone:
                self.missed += self._in_file
                self.written -= self._in_file
            else:
                self.n_bytes += n_bytes
            _let_go(output)
        if not self.error:
            if now_s - self._failed_s > _GOOD_S:
                self._backoff.reset()
            self._missed_before = missed_before
            self._teller.warn("record.failed", f"{error}; it is tried again")
        self.error = str(error)
        self._failed_s = now_s
        self._retry_s = now_s + self._backoff.next_s()

    def _note_resumed(self) -> None:
        lost = self.missed - self._missed_before
        self._teller.warn("record.resumed", f"goes on; {lost} {self._outputs.unit} are missing")
        self.error = ""


def _check_there(output: Output[T]) -> None:
    """Raise StorageError if somebody has removed the file."""
    if output.is_gone:
        raise StorageError(f"{output.path}: was removed while it was being written")


def _let_go(output: Output[T]) -> None:
    """Finish a file that has failed if that is possible; else it is recovered at the next start."""
    try:
        output.finish()
    except SpectrodError:
        output.abort()
