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
    """When a sample was captured, as its source saw it."""

    sample_index: int
    t_mono_ns: int
    t_utc_ns: int


@dataclass(frozen=True, slots=True)
class _Span:
    """Consecutive unread samples, and what stood before them."""

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
    consumer finds that out when it reads, counts an *overrun*, skips to the middle of the ring so
    that it has room to catch up, and reports the skipped samples as lost. A source that can wait
    asks ``wait_for_room`` first and so never causes one.

    Parameters
    ----------
    fs : float
        Sample rate [Hz]; turns indices into times.
    layout : SampleLayout or int
        How the samples lie in the ring and in what is read: the source's own format, which is
        decoded where it is analysed. An int is a number of channels of float32, one after another.
    capacity : int
        Samples held in each channel; their memory is taken once.

    Raises
    ------
    ConfigError
        If there is not so much memory.

    Notes
    -----
    Why no lock is needed. The producer raises ``_claimed`` before it touches a sample and
    ``_written`` after the last one. The consumer reads ``_written``, copies samples below it, and
    then checks ``_claimed``: if the copy's first sample is still within ``capacity`` of it, no
    byte of the copy can have been overwritten meanwhile. Gap records and anchors are stored before
    ``_written`` makes their samples visible; a record that is read is checked with ``_n_gaps`` as
    a sample is with ``_claimed``: its place is taken again only after 64 more are counted. Each
    variable has one writer, and the interpreter gives both threads one order of stores.
    """

    def __init__(self, fs: float, layout: SampleLayout | int, capacity: int) -> None:
        self.layout = SampleLayout(channels=layout) if isinstance(layout, int) else layout
        self.fs, self.channels, self.capacity = fs, self.layout.channels, capacity
        self.data, self._room = Wakeup(), Wakeup()
        self._samples = _memory(self.layout, capacity)
        self._gaps = np.zeros((_MAX_UNREAD_GAPS, 2), np.int64)
        self._anchor = _Anchor(0, 0, 0)
        # The producer's:
        self._claimed = self._written = self._n_gaps = 0
        self._closed = False
        self.overflows = self.suspected = 0
        # The consumer's:
        self._read = self._gaps_read = 0
        self.overruns = 0
        self.peak_fill = 0.0

    # ---- the producer's side

    @property
    def written(self) -> int:
        """Index after the newest sample, lost ones included."""
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
        """Put samples into the ring; never blocks.

        Parameters
        ----------
        samples : (channels, n) or (channels, n, 3) array
            Of the layout's dtype, 1 <= n <= capacity; copied, so the caller may reuse its memory.
        sample_index : int
            Absolute index of the first; more than ``written`` says that samples were lost.
        t_mono_ns, t_utc_ns : int
            Monotonic clock and UTC at the first sample [ns], smoothed by the source: the newest are
            what all times are reckoned from.
        overflow : bool
            The sound system flagged a loss of unknown size before this block: the block is marked
            as a discontinuity even where its index follows on.

        Raises
        ------
        InternalError
            If the block is larger than the ring or the index goes back.
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
        """Wait until n samples, and a gap before them, overwrite nothing unread.

        For sources that can wait.
        """
        return self._has_room(n) or (self._room.wait(timeout_s) and self._has_room(n))

    def _has_room(self, n: int) -> bool:
        # A gap before these n samples needs a record of its own.
        has_record = self._n_gaps - self._gaps_read < _MAX_UNREAD_GAPS - 1
        return has_record and self._written + n - self._read <= self.capacity

    def close(self) -> None:
        """Say that no more samples will come."""
        self._closed = True
        self.data.set()

    # ---- the consumer's side

    @property
    def taken(self) -> int:
        """Index after the newest sample that was read, lost ones included; any thread may ask."""
        return self._read

    @property
    def exhausted(self) -> bool:
        """True when the source has ended and everything was read."""
        # NB: _closed first; a last write between the two reads must not be missed.
        return self._closed and self._read == self._written

    def read(self, max_samples: int, into: NDArray[Any] | None = None) -> Block | None:
        """Take the oldest unread samples, as many as follow on each other, up to max_samples.

        Parameters
        ----------
        max_samples : int
            Of a channel.
        into : (channels, n) or (channels, n, 3) array, optional
            Memory of the layout's dtype to copy to; n samples at most then.

        Returns
        -------
        block : Block or None
            A copy that spans no gap; None if nothing is unread.
        """
        if into is not None:
            max_samples = min(max_samples, into.shape[1])
        while (span := self._next_span(max_samples)) is not None:
            samples = self._new(span.n) if into is None else into[:, : span.n]
            self._copy(span.start, samples)
            if self._is_intact(span):
                return self._take(span, samples)
            # Overwritten while it was copied: look again.
        return None

    def _is_intact(self, span: _Span) -> bool:
        """Say whether neither the span's samples nor its gap records were overwritten."""
        return (
            self._claimed - self.capacity <= span.start
            and self._n_gaps - span.first_gap < _MAX_UNREAD_GAPS
        )

    def _next_span(self, max_samples: int) -> _Span | None:
        """Find what to read next; changes nothing."""
        written = self._written  # NB: before _n_gaps, which may already be ahead of it
        n_gaps = self._n_gaps
        start, gaps_read, overrun = self._read, self._gaps_read, False
        if n_gaps - gaps_read >= _MAX_UNREAD_GAPS:
            # Records were lost; after the newest gap at least, samples follow on each other.
            start, gaps_read, overrun = self._gap(n_gaps - 1)[1], n_gaps, True
        first_gap, gaps_before = min(gaps_read, n_gaps - 1), self._gaps_read
        # NB: gaps first; what a gap leaves out was not overwritten, however long it is.
        start, gaps_read = self._skip_gaps(start, gaps_read, n_gaps)
        if self._claimed - self.capacity > start:
            start, overrun = max(start, written - self.capacity // 2), True
            start, gaps_read = self._skip_gaps(start, gaps_read, n_gaps)
        stop = min(written, self._gap(gaps_read)[0]) if gaps_read < n_gaps else written
        n = min(stop - start, max_samples)
        discontinuity = overrun or gaps_read > gaps_before
        return _Span(start, n, first_gap, gaps_read, overrun, discontinuity) if n > 0 else None

    def _skip_gaps(self, start: int, gaps_read: int, n_gaps: int) -> tuple[int, int]:
        """Go past the gaps that begin at start or before it."""
        while gaps_read < n_gaps and self._gap(gaps_read)[0] <= start:
            start, gaps_read = max(start, self._gap(gaps_read)[1]), gaps_read + 1
        return start, gaps_read

    def _gap(self, number: int) -> tuple[int, int]:
        start, end = self._gaps[number % _MAX_UNREAD_GAPS]
        return int(start), int(end)

    def _take(self, span: _Span, samples: NDArray[Any]) -> Block:
        """Make the span's samples the consumer's and free their room."""
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
        """Give the wake-ups' descriptors back; call when neither side runs any more."""
        self.data.close()
        self._room.close()


def _memory(layout: SampleLayout, capacity: int) -> NDArray[Any]:
    """Take memory, and have its pages: a live source must not wait for the system to find them."""
    n_bytes = layout.step_bytes * capacity
    try:
        return layout.arranged(np.full(n_bytes, 0, np.uint8), capacity)
    except MemoryError:
        raise ConfigError(
            f"channels={layout.channels}: no memory for a ring of {capacity} samples each "
            f"({n_bytes / 2**30:.1f} GiB)"
        ) from None
