"""The samples of a unit, read from its pieces as one time line."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from spectrod.apps.batch.decoder import SoundChunk
from spectrod.apps.batch.decoding import CHUNK_BYTES, Decoders
from spectrod.apps.batch.fingerprint import fingerprint
from spectrod.apps.batch.plan import Piece, Unit
from spectrod.dsp.blocks import Block, SampleFormat, duration_ns
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import InputError
from spectrod.source.base import block_length
from spectrod.source.files.filesamples import UNUSABLE, FileSamples
from spectrod.source.store.remote_file import small_parts_kept
from spectrod.source.store.urls import is_url

_ReadPiece = Callable[[Piece], Iterator[tuple[int, NDArray[Any]]]]


class UnitSamples:
    """Reads the pieces of a unit, one file open at a time.

    WAV files of plain samples are read as they are if all pieces have the same format; all others
    are decoded to float32. The blocks of the same pieces are always the same.

    Parameters
    ----------
    unit : Unit
        The unit; its pieces in the order of time.
    select : sequence of int
        Channels to deliver; empty: all.
    decoders : Decoders, optional
        Decode local files that are not read as they are; by default this process does. The blocks
        are the same.

    Attributes
    ----------
    layout : SampleLayout
        Layout of the blocks.
    problems : list of str
        Lines about samples that could not be read; these are gaps.
    read_samples, missing_samples, gaps : int
        Samples per channel so far, those missing between blocks, and how often some are missing.
    read_s : float
        Time that reading and decoding took [s].
    """

    def __init__(
        self, unit: Unit, select: tuple[int, ...] = (), decoders: Decoders | None = None
    ) -> None:
        self._unit, self._decoders = unit, decoders
        self._select = list(select) if select != tuple(range(unit.channels)) else []
        self._channels = len(self._select) or unit.channels
        format_: SampleFormat = unit.sample_format or "float32"
        is_interleaved = not self._select and self._channels > 1
        self.layout = SampleLayout(format_, self._channels, interleaved=is_interleaved)
        self._n_block = block_length(SampleLayout(format_, unit.channels))
        self.problems: list[str] = []
        self._with_gaps: set[str] = set()
        self.read_samples = self.missing_samples = self.gaps = 0
        self.read_s = 0.0

    def check(self) -> None:
        """Check that the files are those of the plan.

        Raises
        ------
        InputError
            If one cannot be read, or has changed.
        """
        for path, piece in {piece.path: piece for piece in self._unit.pieces}.items():
            try:
                found = fingerprint(path)
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}") from error
            if found != (piece.size, piece.mtime_ns, piece.digest):
                raise _changed(piece)

    def check_again(self) -> None:
        """Check that local files have not been written to since ``check``.

        Of files of stores each part is checked as it is read.

        Raises
        ------
        InputError
            If one has changed, or is gone.
        """
        local = {one.path: one for one in self._unit.pieces if not is_url(one.path)}
        for path, piece in local.items():
            try:
                found = Path(path).stat()
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}") from error
            if (found.st_size, found.st_mtime_ns) != (piece.size, piece.mtime_ns):
                raise _changed(piece)

    def blocks(self) -> Generator[Block, None, None]:
        """Yield the samples in order; a block is valid until the next one.

        Raises
        ------
        InputError
            If a file cannot be opened, or has another format than planned.
        """
        position = 0
        pieces = self._timed(self._pieces())
        for index, samples in pieces:
            lost_samples = index - position
            if lost_samples:
                self.missing_samples += lost_samples
                self.gaps += 1
            position = index + samples.shape[1]
            self.read_samples += samples.shape[1]
            since_ns = duration_ns(index, self._unit.fs)
            yield Block(
                samples,
                index,
                since_ns,
                self._unit.start_utc_ns + since_ns,
                discontinuity=lost_samples > 0,
                lost_samples=lost_samples,
                fs=self._unit.fs,
            )

    def _timed(
        self, pieces: Iterator[tuple[int, NDArray[Any]]]
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        while True:
            start_s = time.perf_counter()
            found = next(pieces, None)
            self.read_s += time.perf_counter() - start_s
            if found is None:
                return
            yield found

    def _pieces(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield (index, samples) of the readable parts of all pieces."""
        if self._decoders is None or self._unit.sample_format:
            yield from self._pieces_by(self._piece)
            return
        with closing(self._decoders.decoded(self._chunks())) as chunks:
            yield from self._pieces_by(partial(self._decoded_beside, chunks))

    def _pieces_by(self, read: _ReadPiece) -> Iterator[tuple[int, NDArray[Any]]]:
        for piece in self._unit.pieces:
            n_done = 0
            for first, samples in read(piece):
                yield piece.index + first - piece.first, self._selected(samples)
                n_done += samples.shape[1]
            is_explained = piece.path in self._with_gaps or self._is_known(piece.path)
            if n_done < piece.n_samples and not is_explained:
                missing_s = (piece.n_samples - n_done) / self._unit.fs
                self.problems.append(f"{piece.path}: {missing_s:.6g} s of it cannot be read")

    def _is_known(self, path: str) -> bool:
        return any(line.startswith(f"{path}: ") for line in self.problems)

    def _chunks(self) -> Iterator[SoundChunk]:
        """Yield the chunks of all local files, each of whole blocks from the first sample on."""
        unit = self._unit
        step_bytes = SampleLayout("float32", unit.channels).step_bytes
        n_chunk = CHUNK_BYTES // (self._n_block * step_bytes) * self._n_block
        for piece in unit.pieces:
            if is_url(piece.path):
                continue
            for first in range(piece.first, piece.end, n_chunk):
                end = min(first + n_chunk, piece.end)
                yield SoundChunk(piece.path, unit.fs, unit.channels, first, end, self._n_block)

    def _decoded_beside(
        self, chunks: Iterator[tuple[SoundChunk, Float32Array | None]], piece: Piece
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield what ``_piece`` yields; take the chunks of the piece.

        From the first chunk on that is not whole, the piece is decoded here, which finds again and
        reports what is wrong with it.
        """
        if is_url(piece.path):
            yield from self._piece(piece)
            return
        is_whole, end = True, piece.first
        while end < piece.end:
            chunk, samples = next(chunks)
            end = chunk.end
            if is_whole and samples is not None:
                for k in range(0, len(samples), self._n_block):
                    yield chunk.first + k, samples[k : k + self._n_block].T
            elif is_whole:
                is_whole = False
                yield from ((at, run) for at, run in self._piece(piece) if at >= chunk.first)

    def _piece(self, piece: Piece) -> Iterator[tuple[int, NDArray[Any]]]:
        with small_parts_kept():
            file = FileSamples(piece.path, self._unit.sample_format)
        try:
            if (file.fs, file.channels) != (self._unit.fs, self._unit.channels):
                raise _changed(piece)
            if not self._skipped(file, piece):
                return
            yield from file.runs(piece.end, self._n_block)
            if file.has_gaps:
                self._with_gaps.add(piece.path)
            if file.n_unusable and not self._is_known(piece.path):
                self.problems.append(f"{piece.path}: some of its samples are {UNUSABLE}")
            if file.damage and file.position < piece.end:
                self.problems.append(f"{piece.path}: {file.damage}: read up to there")
        finally:
            file.close()

    def _skipped(self, file: FileSamples, piece: Piece) -> bool:
        """Go to the first sample of a piece; return False if the file is damaged before it."""
        try:
            file.skip(piece.first)
        except InputError as error:
            self.problems.append(str(error))
            return False
        return True

    def _selected(self, samples: NDArray[Any]) -> NDArray[Any]:
        return samples[self._select] if self._select else samples


def _changed(piece: Piece) -> InputError:
    return InputError(f"{piece.path}: has changed since the plan; run spectrod batch plan")
