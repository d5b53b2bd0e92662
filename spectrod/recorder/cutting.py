"""Spectra and samples cut at points in time, so that files and events begin and end there."""

from dataclasses import replace
from typing import Final, Protocol, TypeVar

import numpy as np

from spectrod.record.recording import rows_between
from spectrod.types import Block, SpectrumBatch

T = TypeVar("T")

_NS: Final = 1_000_000_000
SET_BACK_NS: Final = _NS
"""A clock that goes back by more was set; by less, times of blocks are only not exact."""


class Cutter(Protocol[T]):
    """What knows the times of pieces of one kind of data, and cuts them."""

    unit: str
    """What pieces are counted in."""

    def begin_ns(self, piece: T) -> int:
        """UTC of its first row or sample [ns since 1970]."""

    def last_ns(self, piece: T) -> int:
        """UTC of its last row or sample [ns since 1970]."""

    def count(self, piece: T) -> int:
        """Rows, or samples a channel."""

    def n_bytes(self, piece: T) -> int:
        """Memory that it takes."""

    def delay_s(self, piece: T) -> float:
        """How long after its first sample a row or a sample comes, at the soonest [s]."""

    def span_samples(self, piece: T) -> int:
        """Count the samples a channel that it stands for, those missing before it included."""

    def cut(self, piece: T, t_utc_ns: int) -> tuple[T | None, T | None]:
        """Part it into what is before a time and what is from it on; None is nothing."""

    def after_gap(self, piece: T, missing_samples: int) -> T:
        """Return it with so many more samples missing before it."""


class RowCutter:
    """Cuts batches of spectra between rows. A row's time is that of its first sample."""

    unit = "rows"

    def begin_ns(self, piece: SpectrumBatch) -> int:
        """See ``Cutter``."""
        return int(piece.t_utc_ns[0])

    def last_ns(self, piece: SpectrumBatch) -> int:
        """See ``Cutter``."""
        return int(piece.t_utc_ns[-1])

    def count(self, piece: SpectrumBatch) -> int:
        """See ``Cutter``."""
        return piece.n_frames

    def n_bytes(self, piece: SpectrumBatch) -> int:
        """See ``Cutter``."""
        return int(piece.values.nbytes) + 3 * int(piece.t_utc_ns.nbytes)

    def delay_s(self, piece: SpectrumBatch) -> float:
        """See ``Cutter``."""
        spec = piece.spec
        return spec.row_s + spec.win_length / spec.fs

    def span_samples(self, piece: SpectrumBatch) -> int:
        """See ``Cutter``."""
        step = int(piece.spec.row_step)
        n_rows = piece.n_frames + piece.skipped_rows
        if piece.cut_frames:  # of its only row
            return piece.gap_samples + step * (n_rows - 1) + piece.spec.hop * piece.cut_frames
        return piece.gap_samples + step * n_rows

    def cut(
        self, piece: SpectrumBatch, t_utc_ns: int
    ) -> tuple[SpectrumBatch | None, SpectrumBatch | None]:
        """See ``Cutter``."""
        k = int(np.searchsorted(piece.t_utc_ns, t_utc_ns))
        if k in (0, piece.n_frames):
            return (piece, None) if k else (None, piece)
        return rows_between(piece, 0, k), rows_between(piece, k, piece.n_frames)

    def after_gap(self, piece: SpectrumBatch, missing_samples: int) -> SpectrumBatch:
        """See ``Cutter``."""
        gap_samples = piece.gap_samples + missing_samples
        return replace(piece, gap_samples=gap_samples, discontinuity=True)


class SampleCutter:
    """Cuts blocks between samples.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    """

    unit = "samples"

    def __init__(self, fs: float) -> None:
        self._fs = fs

    def begin_ns(self, piece: Block) -> int:
        """See ``Cutter``."""
        return piece.t_utc_ns

    def last_ns(self, piece: Block) -> int:
        """See ``Cutter``."""
        return piece.t_utc_ns + self._ns(piece.n_samples - 1)

    def count(self, piece: Block) -> int:
        """See ``Cutter``."""
        return piece.n_samples

    def n_bytes(self, piece: Block) -> int:
        """See ``Cutter``."""
        return int(piece.samples.nbytes)

    def delay_s(self, piece: Block) -> float:
        """See ``Cutter``."""
        return piece.n_samples / self._fs

    def span_samples(self, piece: Block) -> int:
        """See ``Cutter``."""
        return piece.lost_samples + piece.n_samples

    def cut(self, piece: Block, t_utc_ns: int) -> tuple[Block | None, Block | None]:
        """See ``Cutter``."""
        # The first sample at or after the time: ceil((t - t0) * fs / 1e9).
        k = -((piece.t_utc_ns - t_utc_ns) * self._fs // _NS)
        if k <= 0:
            return None, piece
        if k >= piece.n_samples:
            return piece, None
        k = int(k)
        tail = Block(
            piece.samples[:, k:],
            piece.sample_index + k,
            piece.t_mono_ns + self._ns(k),
            piece.t_utc_ns + self._ns(k),
        )
        return replace(piece, samples=piece.samples[:, :k]), tail

    def after_gap(self, piece: Block, missing_samples: int) -> Block:
        """See ``Cutter``."""
        lost = piece.lost_samples + missing_samples
        return replace(piece, lost_samples=lost, discontinuity=True)

    def _ns(self, n_samples: int) -> int:
        return round(n_samples / self._fs * _NS)
