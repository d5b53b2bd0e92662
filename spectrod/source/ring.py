"""The sample ring: one producer, one consumer, absolute sample indices, gaps recorded."""

import math
import select
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.blocks import Block, duration_ns
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import InternalError
from spectrod.lib.job_pool import Wait
from spectrod.lib.wakeup import Wakeup
from spectrod.source.shared_samples import SharedSamples, no_memory

_RING_SECONDS = 4.0
_RING_MIN_SAMPLES = 1 << 17
_RING_MAX_SAMPLES = 1 << 24
"""64 MiB per channel: 4 s up to 4.2 MHz, less above."""
_READ_MAX_SAMPLES = 1 << 16
_MAX_UNREAD_RUNS = 64


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive samples without a gap: position in the ring, and index, of the first."""

    position: int
    index: int
    is_gap: bool = False
    """Whether something is missing before it."""
    stop: int = sys.maxsize
    """Position after the last sample; the newest run is open."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Unread samples of one run."""

    position: int
    index: int
    n: int
    overrun: bool
    discontinuity: bool


class SampleRing:
    """Samples between a source and the analysis thread.

    One producer writes; one consumer calls ``read``. The producer is a thread that calls ``write``,
    or, with ``shared``, another process that fills the memory, and a thread that calls ``publish``
    for it. ``close`` ends either.

    When the ring is full, the oldest samples are overwritten: a live source cannot wait. The
    consumer detects that on reading, counts an *overrun*, skips to the middle of the ring to have
    room to catch up, and reports the skipped samples as lost. A source that can wait calls
    ``wait_for_room`` first and so never causes an overrun.

    Parameters
    ----------
    fs : float
        Sample rate [Hz]; converts indices to times.
    layout : SampleLayout or int
        Layout of samples in blocks: the source's own format, which the analysis decodes. An int is
        a number of planar float32 channels.
    capacity : int, optional
        Samples held per channel; their memory is allocated once. By default 4 s, at least 131072
        and at most 2^24 samples.
    shared : SharedSamples, optional
        Memory of samples that another process writes; by default a thread of this one does.

    Raises
    ------
    ConfigError
        If memory is short.

    Notes
    -----
    A sample has a *position*, the number of samples stored before it, and an *index*, which also
    counts the lost ones. A run maps one to the other.

    Threads need no lock: the producer raises ``_claimed`` before it touches a sample and
    ``_stored`` after the last one. The consumer reads ``_stored``, copies samples below it, and
    then checks ``_claimed``: if the copy's first sample is still within ``capacity`` of it, no
    byte of the copy was overwritten meanwhile. Runs and anchors are stored before ``_stored`` makes
    their samples visible; runs are an immutable tuple, which the producer replaces as a whole. Each
    variable has one writer, and the interpreter gives both threads one order of stores. For another
    process, see ``SharedSamples.claimed``.
    """

    def __init__(
        self,
        fs: float,
        layout: SampleLayout | int,
        capacity: int | None = None,
        *,
        shared: SharedSamples | None = None,
    ) -> None:
        self.layout = SampleLayout(channels=layout) if isinstance(layout, int) else layout
        self.fs, self.channels = fs, self.layout.channels
        self.shared = shared
        self.capacity = shared.capacity if shared else capacity or default_capacity(fs)
        self._samples = shared.samples if shared else _memory(self.layout, self.capacity)
        self.data, self.room = Wakeup(), Wakeup()
        # Written by the producer:
        self._anchor = 0, 0, 0
        self._runs: tuple[_Run, ...] = (_Run(0, 0),)
        self._claimed = self._stored = self._dropped = self._written = 0
        self._closed = False
        self.overflows = self.suspected = 0
        # Written by the consumer:
        self._position = self._read = 0
        self.overruns = 0
        self.peak_fill = 0.0
        self.relaxed_s = 0.0

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
        """Copy samples to the ring and publish them; never blocks.

        Parameters
        ----------
        samples : (channels, n) or (channels, n, 3) array
            Array of the layout's dtype, 1 <= n <= capacity; copied, so the caller may reuse its
            memory.
        sample_index, t_mono_ns, t_utc_ns, overflow
            See ``publish``.

        Raises
        ------
        InternalError
            If the block is larger than the ring, or the index decreases.
        """
        n, position = samples.shape[1], self._stored
        if n > self.capacity or sample_index < self._written:
            raise self._misfit(n, sample_index)
        self._claimed = position + n
        first = position % self.capacity
        n_before_wrap = min(n, self.capacity - first)
        self._samples[:, first : first + n_before_wrap] = samples[:, :n_before_wrap]
        self._samples[:, : n - n_before_wrap] = samples[:, n_before_wrap:]
        self.publish(position, n, sample_index, t_mono_ns, t_utc_ns, overflow=overflow)

    def publish(
        self,
        position: int,
        n: int,
        sample_index: int,
        t_mono_ns: int,
        t_utc_ns: int,
        *,
        overflow: bool = False,
    ) -> None:
        """Make samples visible to the consumer that are in memory already.

        Parameters
        ----------
        position : int
            Position of the first sample, at or after the end of those published before.
        n : int
            Samples per channel, at least 1.
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
            If the position or the index decreases.
        """
        if sample_index < self._written or position < self._stored:
            raise self._misfit(n, sample_index)
        if overflow:
            self.overflows += 1
        is_gap = overflow or sample_index != self._written
        if is_gap or position != self._stored:
            self._start_run(_Run(position, sample_index, is_gap))
        self._anchor = sample_index, t_mono_ns, t_utc_ns
        self._written = sample_index + n
        self._stored = position + n
        self.data.set()

    def _start_run(self, run: _Run) -> None:
        unread = [old for old in self._ended_runs() if old.stop > self._position]
        if len(unread) >= _MAX_UNREAD_RUNS:
            unread = unread[-_MAX_UNREAD_RUNS // 2 :]  # the middle, as of the ring
            self._dropped = unread[0].position
        self._runs = (*unread, run)

    def _ended_runs(self) -> tuple[_Run, ...]:
        *older, newest = self._runs
        return (*older, replace(newest, stop=self._stored))

    def _misfit(self, n: int, sample_index: int) -> InternalError:
        return InternalError(
            f"ring: block of {n} samples at {sample_index} does not fit: "
            f"capacity {self.capacity}, written {self._written}"
        )

    def wait_for_room(self, n: int, timeout_s: float) -> bool:
        """Wait until n samples, and a gap before them, overwrite no unread samples.

        For sources that can wait.
        """
        return self._has_room(n) or (self.room.wait(timeout_s) and self._has_room(n))

    def _has_room(self, n: int) -> bool:
        # A gap before these n samples needs a run of its own.
        n_unread = sum(run.stop > self._position for run in self._ended_runs())
        return n_unread < _MAX_UNREAD_RUNS and self._stored + n - self._position <= self.capacity

    def awaited_room(self, until_s: float) -> Wait:
        """Return the wait for room, until a time at the latest [s, monotonic]."""
        return Wait(until_s, self.room.fileno(), select.POLLIN)

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
        return self._closed and self._next_span(1) is None

    def read(self, max_samples: int, into: NDArray[Any] | None = None) -> Block | None:
        """Read the oldest unread samples, as many as are contiguous, up to max_samples.

        Parameters
        ----------
        max_samples : int
            Samples per channel; 65536 at most, so that a backlog is read in several blocks.
        into : (channels, n) or (channels, n, 3) array, optional
            Destination of the layout's dtype; at most n samples are read then.

        Returns
        -------
        block : Block or None
            A copy that spans no gap; None if there are no unread samples.
        """
        max_samples = min(max_samples, _READ_MAX_SAMPLES)
        if into is not None:
            max_samples = min(max_samples, into.shape[1])
        while (span := self._next_span(max_samples)) is not None:
            samples = self._new(span.n) if into is None else into[:, : span.n]
            self._copy(span.position, samples)
            if span.position >= self._oldest_intact():
                return self._take(span, samples)
            # Overwritten during the copy: try again.
        return None

    @property
    def span_s(self) -> float:
        """Time that the ring holds [s]."""
        return self.capacity / self.fs

    def relax(self, least_s: float) -> None:
        """Allow the producer to write only so often [s]; 0: as samples come, from now on."""
        is_sooner = least_s < self.relaxed_s
        self.relaxed_s = least_s
        if is_sooner:
            self.room.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for new samples or the end; return False after the timeout [s]."""
        return self.data.wait(timeout_s)

    def awaited(self) -> Wait:
        """Return the wait for new samples or the end."""
        return Wait(math.inf, self.data.fileno(), select.POLLIN)

    def _oldest_intact(self) -> int:
        """Return the position before which samples may be overwritten."""
        claimed = self.shared.claimed() if self.shared else self._claimed
        return claimed - self.capacity

    def _next_span(self, max_samples: int) -> _Span | None:
        """Find the next samples to read; changes nothing."""
        stored = self._stored  # NB: before _runs, which may be ahead of it
        runs = self._runs  # NB: before _dropped, which is stored first
        run, position = _run_at(runs, max(self._position, self._dropped))
        overrun = self._dropped > self._position
        oldest = self._oldest_intact()
        if position < oldest:
            run, position = _run_at(runs, oldest + self.capacity - self.capacity // 2)
            overrun = True
        n = min(stored, run.stop, position + max_samples) - position
        if n <= 0:
            return None
        index = run.index + position - run.position
        return _Span(
            position, index, n, overrun, overrun or (run.is_gap and position == run.position)
        )

    def _take(self, span: _Span, samples: NDArray[Any]) -> Block:
        """Mark the span's samples as read, and free their room."""
        lost_samples = span.index - self._read
        self.overruns += span.overrun
        fill = (self._stored - span.position) / self.capacity
        self.peak_fill = max(self.peak_fill, min(fill, 1.0))
        self._position, self._read = span.position + span.n, span.index + span.n
        self.room.set()
        anchor_index, t_mono_ns, t_utc_ns = self._anchor
        since_ns = duration_ns(span.index - anchor_index, self.fs)
        times = t_mono_ns + since_ns, t_utc_ns + since_ns
        return Block(samples, span.index, *times, span.discontinuity, lost_samples, self.fs)

    def _new(self, n: int) -> NDArray[Any]:
        return self.layout.arranged(np.empty(self.layout.step_bytes * n, np.uint8), n)

    def _copy(self, position: int, samples: NDArray[Any]) -> None:
        n, first = samples.shape[1], position % self.capacity
        n_before_wrap = min(n, self.capacity - first)
        rows = self.shared.selected if self.shared else slice(None)
        samples[:, :n_before_wrap] = self._samples[rows, first : first + n_before_wrap]
        samples[:, n_before_wrap:] = self._samples[rows, : n - n_before_wrap]

    def release(self) -> None:
        """Free the memory and close all descriptors; call when neither side runs any more."""
        self.data.close()
        self.room.close()
        self._samples = self._samples[:, :0].copy()
        if self.shared:
            self.shared.close()


def _run_at(runs: tuple[_Run, ...], position: int) -> tuple[_Run, int]:
    """Return the run that has a position, or is the next after it, and the position there."""
    run = next(run for run in runs if run.stop > position)
    return run, max(position, run.position)


def default_capacity(fs: float) -> int:
    """Return the samples of 4 s, at least 131072 and at most 2^24."""
    return min(max(_RING_MIN_SAMPLES, round(_RING_SECONDS * fs)), _RING_MAX_SAMPLES)


def _memory(layout: SampleLayout, capacity: int) -> NDArray[Any]:
    """Allocate memory and touch its pages: a live source must not wait for page faults."""
    n_bytes = layout.step_bytes * capacity
    try:
        return layout.arranged(np.full(n_bytes, 0, np.uint8), capacity)
    except MemoryError:
        raise no_memory(layout, capacity) from None
