"""The sample ring: one producer, one consumer, absolute sample indices, gaps recorded."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.chunks import duration_ns
from spectrod.errors import ConfigError, InternalError
from spectrod.sample_layout import SampleLayout
from spectrod.types import Block
from spectrod.wakeup import Wakeup

_MAX_UNREAD_GAPS = 64


@dataclass(slots=True)
class _Anchor:
    """Capture time of a sample, as its source measured it."""

    sample_index: int
    t_mono_ns: int
    t_utc_ns: int


@dataclass(frozen=True, slots=True)
class _Span:
    """Consecutive unread samples, and the gaps before them."""

    start: int
    n: int
    first_gap: int
    gaps_read: int
    overrun: bool
    discontinuity: bool


class SampleRing:
    """Samples between a source's thread and the analysis thread.

    One producer calls ``write`` and ``close``; one consumer calls ``read``. Neither takes a lock.

    When the ring is full, ``write`` overwrites the oldest samples: a live source cannot wait. The
    consumer detects that on reading, counts an *overrun*, skips to the middle of the ring to have
    room to catch up, and reports the skipped samples as lost. A source that can wait calls
    ``wait_for_room`` first and so never causes an overrun.

    Parameters
    ----------
    fs : float
        Sample rate [Hz]; converts indices to times.
    layout : SampleLayout or int
        Layout of samples in the ring and in blocks: the source's own format, which the analysis
        decodes. An int is a number of planar float32 channels.
    capacity : int
        Samples held per channel; their memory is allocated once.

    Raises
    ------
    ConfigError
        If memory is short.

    Notes
    -----
    No lock is needed: the producer raises ``_claimed`` before it touches a sample and
    ``_written`` after the last one. The consumer reads ``_written``, copies samples below it, and
    then checks ``_claimed``: if the copy's first sample is still within ``capacity`` of it, no
    byte of the copy was overwritten meanwhile. Gap records and anchors are stored before
    ``_written`` makes their samples visible. The consumer checks a gap record with ``_n_gaps`` like
    a sample with ``_claimed``: its slot is reused only after 64 more are counted. Each variable has
    one writer, and the interpreter gives both threads one order of stores.
    """

    def __init__(self, fs: float, layout: SampleLayout | int, capacity: int) -> None:
        self.layout = SampleLayout(channels=layout) if isinstance(layout, int) else layout
        self.fs, self.channels, self.capacity = fs, self.layout.channels, capacity
        self.data, self._room = Wakeup(), Wakeup()
        self._samples = _memory(self.layout, capacity)
        self._gaps = np.zeros((_MAX_UNREAD_GAPS, 2), np.int64)
        self._anchor = _Anchor(0, 0, 0)
        # Written by the producer:
        self._claimed = self._written = self._n_gaps = 0
        self._closed = False
        self.overflows = self.suspected = 0
        # Written by the consumer:
        self._read = self._gaps_read = 0
        self.overruns = 0
        self.peak_fill = 0.0

    # ---- the producer's side

    @property
    def written(self) -> int:
        """Index after the newest sample; lost samples count."""
        return self._written

    def write(
        self,
        samples: NDArray[Any],
        sample_index: int,
        t_mono_ns: int,
        t_utc_ns: int,
        *,
        overflow: bool = False,
    ) -> None:
        """Write samples to the ring; never blocks.

        Parameters
        ----------
        samples : (channels, n) or (channels, n, 3) array
            Array of the layout's dtype, 1 <= n <= capacity; copied, so the caller may reuse its
            memory.
        sample_index : int
            Absolute index of the first sample; above ``written`` if samples were lost.
        t_mono_ns, t_utc_ns : int
            Monotonic clock and UTC at the first sample [ns], smoothed by the source; all times are
            computed from the newest ones.
        overflow : bool
            The sound system flagged a loss of unknown size before this block: the block is marked
            as a discontinuity even if its index is contiguous.

        Raises
        ------
        InternalError
            If the block is larger than the ring, or the index decreases.
        """
        n = samples.shape[1]
        if n > self.capacity or sample_index < self._written:
            raise InternalError(
                f"ring: block of {n} samples at {sample_index} does not fit: "
                f"capacity {self.capacity}, written {self._written}"
            )
        if overflow:
            self.overflows += 1
        if sample_index != self._written or overflow:
            self._gaps[self._n_gaps % _MAX_UNREAD_GAPS] = self._written, sample_index
            self._n_gaps += 1
        self._claimed = sample_index + n
        first = sample_index % self.capacity
        n_before_wrap = min(n, self.capacity - first)
        self._samples[:, first : first + n_before_wrap] = samples[:, :n_before_wrap]
        self._samples[:, : n - n_before_wrap] = samples[:, n_before_wrap:]
        self._anchor = _Anchor(sample_index, t_mono_ns, t_utc_ns)
        self._written = sample_index + n
        self.data.set()

    def wait_for_room(self, n: int, timeout_s: float) -> bool:
        """Wait until n samples, and a gap before them, overwrite no unread samples.

        For sources that can wait.
        """
        return self._has_room(n) or (self._room.wait(timeout_s) and self._has_room(n))

    def _has_room(self, n: int) -> bool:
        # A gap before these n samples needs a record of its own.
        has_record = self._n_gaps - self._gaps_read < _MAX_UNREAD_GAPS - 1
        return has_record and self._written + n - self._read <= self.capacity

    def close(self) -> None:
        """Signal that no more samples will come."""
        self._closed = True
        self.data.set()

    # ---- the consumer's side

    @property
    def taken(self) -> int:
        """Index after the newest sample read; lost samples count. Any thread may call it."""
        return self._read

    @property
    def exhausted(self) -> bool:
        """True if the source has ended and all samples were read."""
        # NB: read _closed first, or a last write between the two reads would be missed.
        return self._closed and self._read == self._written

    def read(self, max_samples: int, into: NDArray[Any] | None = None) -> Block | None:
        """Read the oldest unread samples, as many as are contiguous, up to max_samples.

        Parameters
        ----------
        max_samples : int
            Samples per channel.
        into : (channels, n) or (channels, n, 3) array, optional
            Destination of the layout's dtype; at most n samples are read then.

        Returns
        -------
        block : Block or None
            A copy that spans no gap; None if there are no unread samples.
        """
        if into is not None:
            max_samples = min(max_samples, into.shape[1])
        while (span := self._next_span(max_samples)) is not None:
            samples = self._new(span.n) if into is None else into[:, : span.n]
            self._copy(span.start, samples)
            if self._is_intact(span):
                return self._take(span, samples)
            # Overwritten during the copy: try again.
        return None

    def _is_intact(self, span: _Span) -> bool:
        """Return True if neither the span's samples nor its gap records were overwritten."""
        return (
            self._claimed - self.capacity <= span.start
            and self._n_gaps - span.first_gap < _MAX_UNREAD_GAPS
        )

    def _next_span(self, max_samples: int) -> _Span | None:
        """Find the next samples to read; changes nothing."""
        written = self._written  # NB: before _n_gaps, which may already be ahead of it
        n_gaps = self._n_gaps
        start, gaps_read, overrun = self._read, self._gaps_read, False
        if n_gaps - gaps_read >= _MAX_UNREAD_GAPS:
            # Records were lost; samples are contiguous after the newest gap.
            start, gaps_read, overrun = self._gap(n_gaps - 1)[1], n_gaps, True
        first_gap, gaps_before = min(gaps_read, n_gaps - 1), self._gaps_read
        # NB: gaps first; the samples of a gap were never in the ring, whatever its length.
        start, gaps_read = self._skip_gaps(start, gaps_read, n_gaps)
        if self._claimed - self.capacity > start:
            start, overrun = max(start, written - self.capacity // 2), True
            start, gaps_read = self._skip_gaps(start, gaps_read, n_gaps)
        stop = min(written, self._gap(gaps_read)[0]) if gaps_read < n_gaps else written
        n = min(stop - start, max_samples)
        discontinuity = overrun or gaps_read > gaps_before
        return _Span(start, n, first_gap, gaps_read, overrun, discontinuity) if n > 0 else None

    def _skip_gaps(self, start: int, gaps_read: int, n_gaps: int) -> tuple[int, int]:
        """Skip the gaps that start at start or before it."""
        while gaps_read < n_gaps and self._gap(gaps_read)[0] <= start:
            start, gaps_read = max(start, self._gap(gaps_read)[1]), gaps_read + 1
        return start, gaps_read

    def _gap(self, number: int) -> tuple[int, int]:
        start, end = self._gaps[number % _MAX_UNREAD_GAPS]
        return int(start), int(end)

    def _take(self, span: _Span, samples: NDArray[Any]) -> Block:
        """Mark the span's samples as read, and free their room."""
        lost_samples = span.start - self._read
        self.overruns += span.overrun
        self.peak_fill = max(self.peak_fill, (self._written - span.start) / self.capacity)
        self._read, self._gaps_read = span.start + span.n, span.gaps_read
        self._room.set()
        anchor = self._anchor
        since_ns = duration_ns(span.start - anchor.sample_index, self.fs)
        t_mono_ns, t_utc_ns = anchor.t_mono_ns + since_ns, anchor.t_utc_ns + since_ns
        return Block(
            samples, span.start, t_mono_ns, t_utc_ns, span.discontinuity, lost_samples, self.fs
        )

    def _new(self, n: int) -> NDArray[Any]:
        return self.layout.arranged(np.empty(self.layout.step_bytes * n, np.uint8), n)

    def _copy(self, start: int, samples: NDArray[Any]) -> None:
        n, first = samples.shape[1], start % self.capacity
        n_before_wrap = min(n, self.capacity - first)
        samples[:, :n_before_wrap] = self._samples[:, first : first + n_before_wrap]
        samples[:, n_before_wrap:] = self._samples[:, : n - n_before_wrap]

    def release(self) -> None:
        """Close the wake-ups' descriptors; call when neither side runs any more."""
        self.data.close()
        self._room.close()


def _memory(layout: SampleLayout, capacity: int) -> NDArray[Any]:
    """Allocate memory and touch its pages: a live source must not wait for page faults."""
    n_bytes = layout.step_bytes * capacity
    try:
        return layout.arranged(np.full(n_bytes, 0, np.uint8), capacity)
    except MemoryError:
        raise ConfigError(
            f"channels={layout.channels}: no memory for a ring of {capacity} samples each "
            f"({n_bytes / 2**30:.1f} GiB)"
        ) from None
