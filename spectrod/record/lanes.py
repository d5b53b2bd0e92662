"""One output of a recording: a file, or one for each period of the wall clock."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from spectrod.chunks import Chunk
from spectrod.errors import InputError, SpectrodError
from spectrod.record.recording import RowWriter, SampleWriter, note_left_out
from spectrod.types import Block, SpectrumBatch

_log = logging.getLogger(__name__)

WriterT = TypeVar("WriterT", bound="_Writer")
PieceT = TypeVar("PieceT", bound=Chunk)


class _Writer(Protocol):
    def finish(self) -> None: ...
    def abort(self) -> None: ...


class _Lane(ABC, Generic[WriterT, PieceT]):
    """Writes pieces of a recording, each into the file of its time.

    Periods begin at whole multiples of their length since 1970 UTC. Nothing is left out between
    them: a file is finished when the first piece of the next one comes, by the thread that brings
    it. Where a file fails, the lane does without the rest of its period, and tries the next one.

    Parameters
    ----------
    name_at : callable
        Path of the file whose period begins at a UTC [ns].
    make : callable
        Begins a file.
    period_ns : int
        Length of a period [ns]; 0 for one file of everything, which is made at once.

    Attributes
    ----------
    failure : SpectrodError or None
        The first that there was.
    n_pieces : int
        Pieces that a file has taken.
    """

    def __init__(
        self, name_at: Callable[[int], Path], make: Callable[[Path], WriterT], period_ns: int = 0
    ) -> None:
        self.failure: SpectrodError | None = None
        self.n_pieces = 0
        self._name_at, self._make = name_at, make
        self._period_ns = period_ns
        self._number: int | None = None
        self._writer: WriterT | None = None if period_ns else make(name_at(0))

    @abstractmethod
    def _put(self, writer: WriterT, piece: PieceT) -> None:
        """Hand a piece to a writer."""

    def write(self, piece: PieceT) -> None:
        """Take a piece.

        Raises
        ------
        SpectrodError
            Of the only file; of periods' files they are logged, and kept as ``failure``.
        """
        if not self._period_ns:
            self._write(piece)
            return
        for number, part in piece.by_period(self._period_ns):
            if number != self._number:
                self._begin(number)
            if self._writer is not None:
                self._guarded(self._write, part)

    def _write(self, piece: PieceT) -> None:
        if self._writer is not None:
            self._put(self._writer, piece)
            self.n_pieces += 1

    def _begin(self, number: int) -> None:
        self._guarded(self._finish)
        self._number = number
        self._guarded(self._open)

    def _open(self) -> None:
        assert self._number is not None
        self._writer = self._make(self._name_at(self._number * self._period_ns))

    def _guarded(self, action: Callable[..., None], *args: object) -> None:
        try:
            action(*args)
        except SpectrodError as error:
            _log.error("%s", error)
            self.failure = self.failure or error
            self.abort()

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be written: the only file has failed."""
        return self.failure is not None and not self._period_ns

    def give_up(self, error: SpectrodError) -> None:
        """Note why the only file has failed; nothing is left of it."""
        self.failure = self.failure or error
        self.abort()

    def finish(self) -> None:
        """Finish the file that is being written; raises the SpectrodError of what is wrong."""
        self._finish()

    def _finish(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.finish()
            except BaseException:
                writer.abort()
                raise

    def abort(self) -> None:
        """Give up the file that is being written; those of earlier periods stay."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort()


class RowLane(_Lane[RowWriter, SpectrumBatch]):
    """Takes batches of spectra; a row belongs to the period in which it begins."""

    def submit(self, batch: SpectrumBatch) -> None:
        """Take a batch; see ``write``."""
        self.write(batch)

    @property
    def wants_samples(self) -> bool:
        """Whether its picture shall be given samples too, by ``take``; never one of a period."""
        return bool(getattr(self._writer, "wants_samples", False))

    def take(self, block: Block) -> None:
        """Give samples to a picture that wants them."""
        take = getattr(self._writer, "take", None)
        if take is not None:
            take(block)

    def note_left_out(self, n_samples: int) -> None:
        """Tell the file how many samples of the signal are in no row, if it can store that."""
        if self._writer is not None:
            note_left_out(self._writer, n_samples)

    def _put(self, writer: RowWriter, piece: SpectrumBatch) -> None:
        writer.submit(piece)


class SampleLane(_Lane[SampleWriter, Block]):
    """Takes blocks of samples; a sample belongs to the period in which it is taken."""

    def take(self, block: Block) -> None:
        """Take a block; see ``write``."""
        self.write(block)

    def _put(self, writer: SampleWriter, piece: Block) -> None:
        writer.take(piece)


def finish_all(
    lanes: list[RowLane | SampleLane],
    within: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> SpectrodError | None:
    """Finish every lane, whatever becomes of the others; return the first failure there was.

    Parameters
    ----------
    lanes : list of RowLane and SampleLane
        In this order.
    within : callable
        Makes the context in which each of them is finished.
    """
    failures: list[SpectrodError] = []
    for lane in lanes:
        try:
            with within():
                lane.finish()
        except SpectrodError as error:
            lane.failure = lane.failure or error
        if lane.failure is not None:
            failures.append(lane.failure)
    # An output that got nothing says less than why another one failed.
    failures.sort(key=lambda error: isinstance(error, InputError))
    return failures[0] if failures else None
