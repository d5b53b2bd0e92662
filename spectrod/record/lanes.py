"""One output of a recording: a file, or one for each period of the wall clock."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np

from spectrod.errors import InputError, SpectrodError
from spectrod.record.recording import RowWriter, SampleWriter, note_left_out, rows_between
from spectrod.types import Block, SpectrumBatch

_log = logging.getLogger(__name__)

_NS = 1_000_000_000

WriterT = TypeVar("WriterT", bound="_Writer")
PieceT = TypeVar("PieceT")


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
    def _cut(self, piece: PieceT) -> Iterator[tuple[int, PieceT]]:
        """Yield parts of a piece with the number of the period that each belongs to."""

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
        for number, part in self._cut(piece):
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

    def _cut(self, piece: SpectrumBatch) -> Iterator[tuple[int, SpectrumBatch]]:
        numbers = piece.t_utc_ns // self._period_ns
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1))
        for first, stop in zip(starts, [*starts[1:], piece.n_frames], strict=True):
            yield int(numbers[first]), rows_between(piece, int(first), int(stop))

    def _put(self, writer: RowWriter, piece: SpectrumBatch) -> None:
        writer.submit(piece)


class SampleLane(_Lane[SampleWriter, Block]):
    """Takes blocks of samples, which are cut at the sample where a period begins.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    """

    def __init__(
        self,
        name_at: Callable[[int], Path],
        make: Callable[[Path], SampleWriter],
        period_ns: int = 0,
        *,
        fs: float,
    ) -> None:
        super().__init__(name_at, make, period_ns)
        self._fs = fs

    def take(self, block: Block) -> None:
        """Take a block; see ``write``."""
        self.write(block)

    def _cut(self, piece: Block) -> Iterator[tuple[int, Block]]:
        first = 0
        while first < piece.n_samples:
            t_ns = piece.t_utc_ns + round(first * _NS / self._fs)
            number = t_ns // self._period_ns
            left_ns = (number + 1) * self._period_ns - t_ns
            stop = min(piece.n_samples, first + max(1, round(left_ns * self._fs / _NS)))
            yield number, _samples(piece, first, stop, self._fs)
            first = stop

    def _put(self, writer: SampleWriter, piece: Block) -> None:
        writer.take(piece)


def _samples(block: Block, first: int, stop: int, fs: float) -> Block:
    if first == 0:
        return replace(block, samples=block.samples[:, :stop])
    since_ns = round(first * _NS / fs)
    return Block(
        block.samples[:, first:stop],
        block.sample_index + first,
        block.t_mono_ns + since_ns,
        block.t_utc_ns + since_ns,
    )


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
