"""Writes consecutive chunks to files, which rotate by time, analysis and size."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from spectrod.config.schedule import NEVER_NS
from spectrod.dsp.blocks import Chunk
from spectrod.formats.output import Output
from spectrod.lib.errors import SpectrodError, StorageError, storage_error
from spectrod.recording.recorder_clock import SET_BACK_NS

T = TypeVar("T", bound=Chunk)


@dataclass(frozen=True, slots=True)
class FileSpan:
    """A span of time that goes into one file, or in which nothing is recorded.

    Attributes
    ----------
    begin_ns, until_ns : int
        UTC of begin and end [ns since 1970]; the end is not included.
    is_on : bool
        Whether to record in this span.
    """

    begin_ns: int
    until_ns: int
    is_on: bool = True


ALWAYS = FileSpan(-NEVER_NS, NEVER_NS)


class RotatingWriter(ABC, Generic[T]):
    """Writes chunks of one kind to files; starts a new file where a span of time or a rule ends.

    A chunk is split where a span ends: the next file begins with the next item. A subclass defines
    the spans, opens files and handles faults. Data that are not written are a gap before the next
    chunk that is. One thread.

    Parameters
    ----------
    limit_bytes : int
        Length at which a file ends; 0 for no limit.

    Attributes
    ----------
    written, missed : int
        Rows, or samples per channel: in files, and lost by faults.
    open_bytes : int
        Length of the file that is being written.
    is_writing : bool
        Whether the last chunk was written and the next is expected to be; also between two files.
    """

    def __init__(self, limit_bytes: int = 0) -> None:
        self._limit_bytes = limit_bytes
        self._span = FileSpan(0, 0)
        self._output: Output[T] | None = None
        self._in_file = self._cut_length = 0
        self._missing_samples, self._has_written = 0, False
        self.written = self.missed = self.open_bytes = 0
        self.is_writing = False

    @property
    def path(self) -> Path | None:
        """Final path of the file that is being written; any thread may read it."""
        output = self._output
        return output.path if output else None

    def write(self, chunk: T) -> None:
        """Write the next chunk."""
        rest: T | None = chunk if chunk.length else None
        while rest is not None:
            t_ns = rest.begin_utc_ns
            # Start a new file after the clock was set back, or this one might last for a year.
            if not self._span.begin_ns - SET_BACK_NS <= t_ns < self._span.until_ns:
                self.close()
                self._span = self._span_at(t_ns)
            part, rest = rest.split_at(self._span.until_ns)
            if part is not None and self._span.is_on:
                self._write_part(part)
            elif part is not None:
                self._skip(part)

    def close(self) -> None:
        """Finish the file, if there is one; the next chunk starts a new one."""
        if self._output is None:
            return
        try:
            self._end_file()
        except SpectrodError as error:
            self._fail(error)

    def finish(self) -> None:
        """Finish the last file."""
        self.is_writing = False
        self.close()

    def abort(self) -> None:
        """Close the file unfinished, without its final name."""
        output, self._output = self._output, None
        if output is not None:
            output.abort()

    # ---- for subclasses

    @abstractmethod
    def _span_at(self, t_utc_ns: int) -> FileSpan:
        """Return the span of a time; called for the first time and after a span has ended."""

    @abstractmethod
    def _open(self, chunk: T) -> Output[T]:
        """Make the file that starts with a chunk; raises a SpectrodError."""

    @abstractmethod
    def _fail(self, error: SpectrodError) -> None:
        """Handle a fault, and close the file if ``_take_output`` still returns one."""

    def _fits(self, output: Output[T], chunk: T) -> bool:
        """Return whether a chunk belongs to the open file, and not to a new one."""
        return output.fits(chunk)

    def _may_write(self) -> bool:
        """Return whether to try writing; if not, chunks count as lost by a fault."""
        return True

    def _note_written(self, chunk: T) -> None:
        """Handle a chunk that was written."""

    def _note_finished(self, output: Output[T]) -> None:
        """Handle a finished file; raises a SpectrodError if it cannot stay."""

    # ---- files

    def _write_part(self, chunk: T) -> None:
        if not self._may_write():
            self._skip(chunk, by_fault=True)
            return
        marked = chunk
        if self._missing_samples and self._has_written:
            marked = chunk.after_gap(self._missing_samples)
        try:
            if self._output is not None and not self._fits(self._output, marked):
                self._end_file()
            if self._output is None:
                self._in_file = 0
                self._output = self._open(marked)
            self._output.write(marked)
        except SpectrodError as error:
            self._fail(error)
            self._skip(chunk, by_fault=True)
            return
        self._missing_samples, self._has_written = 0, True
        self.is_writing = True
        self.open_bytes = self._output.size_bytes
        self.written += chunk.length
        self._in_file += chunk.length
        self._note_written(chunk)
        if self._limit_bytes and self.open_bytes >= self._limit_bytes:
            self.close()

    def _skip(self, chunk: T, *, by_fault: bool = False) -> None:
        self.is_writing = False
        self._missing_samples += chunk.span_samples
        if by_fault:
            self.missed += chunk.length

    def _end_file(self) -> None:
        assert self._output is not None
        require_there(self._output)  # rows of a removed file must not count as written
        output = self._take_output()
        assert output is not None
        try:
            output.finish()
            self._note_finished(output)
        except BaseException:  # Ctrl-C too
            output.abort()
            self._cut_length += output.cut_length
            raise

    def _finish_or_abort(self, output: Output[T]) -> None:
        """Finish a file after a fault if possible; otherwise leave it for recovery."""
        try:
            # Only what was written before makes it a file; the writer may have a part of the rest.
            (output.finish if self._in_file else output.abort)()
        except SpectrodError:
            output.abort()

    def _end_after_fault(self, output: Output[T]) -> None:
        self._finish_or_abort(output)
        self._cut_length += output.cut_length

    def _count_cut(self) -> None:
        """Count what files have lost when they were ended as lost, no longer as written."""
        cut_length, self._cut_length = self._cut_length, 0
        self.written -= cut_length
        self.missed += cut_length

    def _take_output(self) -> Output[T] | None:
        """Return the open file, if any; this writer no longer writes to it."""
        output, self._output, self.open_bytes = self._output, None, 0
        return output


def require_there(output: Output[T]) -> None:
    """Raise StorageError if the file was removed, or the disk does not answer."""
    try:
        is_gone = output.is_gone
    except OSError as error:  # as of NFS, whose server no longer knows the file
        raise storage_error(output.path, error) from error
    if is_gone:
        raise StorageError(f"{output.path}: was removed while it was being written")


def is_known_gone(output: Output[T]) -> bool:
    """Return whether the file was removed; False if the disk does not answer."""
    try:
        return output.is_gone
    except OSError:
        return False
