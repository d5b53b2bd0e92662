"""The files of one ``-o`` of ``spectrod record``: one in total, or one per period of time."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from spectrod.cli.periods import Period
from spectrod.dsp.blocks import Block, Chunk
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.writer import Sink
from spectrod.formats.description import note_left_out
from spectrod.formats.output import Output
from spectrod.lib.errors import InputError, SpectrodError
from spectrod.recording.rotating_writer import ALWAYS, FileSpan, RotatingWriter

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Chunk)


class OutputFiles(RotatingWriter[T]):
    """Writes each chunk to the file of its period, in the calling thread.

    A file is finished when the first item of the next one arrives. If a file fails, the rest of its
    period is dropped, and the next period is tried.

    Parameters
    ----------
    name_at : callable
        Returns the path of the file whose period starts at a UTC [ns].
    make : callable
        Creates a file.
    period : Period, optional
        Grid of the periods; None for a single file, which is created at once.

    Attributes
    ----------
    failure : SpectrodError or None
        The first failure. A single file also raises it; for files of periods it is logged.
    """

    def __init__(
        self,
        name_at: Callable[[int], Path],
        make: Callable[[Path], Output[T]],
        period: Period | None = None,
    ) -> None:
        super().__init__()
        self.failure: SpectrodError | None = None
        self._name_at, self._make = name_at, make
        self._period = period
        self._skips_rest = False
        if period is None:
            self._output, self._span = make(name_at(0)), ALWAYS

    @property
    def is_over(self) -> bool:
        """True if nothing more can be written, because the only file has failed."""
        return self.failure is not None and self._period is None

    def give_up(self, error: SpectrodError) -> None:
        """Record why the only file has failed, and remove it."""
        self.failure = self.failure or error
        self.abort()

    def _span_at(self, t_utc_ns: int) -> FileSpan:
        self._skips_rest = False
        return ALWAYS if self._period is None else FileSpan(*self._period.around(t_utc_ns))

    def _open(self, _chunk: T) -> Output[T]:
        return self._make(self._name_at(self._span.begin_ns))

    def _fits(self, _output: Output[T], _chunk: T) -> bool:
        return True  # the analysis of a recording does not change

    def _may_write(self) -> bool:
        return not (self._skips_rest or self.is_over)

    def _skip(self, chunk: T, *, by_fault: bool = False) -> None:
        """Drop a chunk; the missing file shows the loss."""

    def _fail(self, error: SpectrodError) -> None:
        self.give_up(error)
        if self._period is None:
            raise error
        _log.error("%s", error)
        self._skips_rest = True


class RowFiles(OutputFiles[SpectrumBatch]):
    """Writes batches of spectra; a row belongs to the period in which it starts."""

    def note_left_out(self, n_samples: int) -> None:
        """Record in the current file how many samples are in no row, if its format allows it."""
        note_left_out(self._output, n_samples)

    @property
    def strips(self) -> Sink[Block] | None:
        """Consumes the samples that a picture needs as well; None for pictures of periods."""
        strips: Sink[Block] | None = getattr(self._output, "strips", None)
        return strips


def finish_all(
    several: Sequence[OutputFiles[Any]],
    within: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> SpectrodError | None:
    """Finish all outputs, even if some fail; return the first failure.

    Parameters
    ----------
    several : sequence of OutputFiles
        Outputs, in order.
    within : callable
        Returns the context in which each of them is finished.
    """
    failures: list[SpectrodError] = []
    for files in several:
        try:
            with within():
                files.finish()
        except SpectrodError as error:
            files.failure = files.failure or error
        if files.failure is not None:
            failures.append(files.failure)
    # Report an empty output only if no other one failed: it is the least informative failure.
    failures.sort(key=lambda error: isinstance(error, InputError))
    return failures[0] if failures else None
