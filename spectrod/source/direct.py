"""Read a source that can wait without a thread and a ring: the analysis asks for the samples."""

import math
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.blocks import Block
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import SpectrodError
from spectrod.lib.job_pool import Wait

Samples = tuple[int, NDArray[Any]]
"""Index of the first sample, and (channels, n) or (channels, n, 3) samples."""
TimesAt = Callable[[int], tuple[int, int]]
"""Returns the monotonic time and the UTC of a sample by its index [ns]."""

_LEAST_S = 0.01
"""Least piece of a source that is read in real time [s]."""


class ReadyReader:
    """The part of a ``SampleReader`` about waiting, where all samples are there already."""

    overflows = suspected = overruns = 0
    peak_fill = 0.0
    span_s = math.inf

    def relax(self, least_s: float) -> None:
        """Do nothing."""

    def wait(self, timeout_s: float | None = None) -> bool:  # noqa: ARG002
        """Return at once."""
        return True

    def awaited(self) -> Wait:
        """Return a wait that ends at once."""
        return Wait(0.0)


class DirectReader(ReadyReader):
    """A ``SampleReader`` of samples that are made when they are read, so that none is lost.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    layout : SampleLayout
        Layout of the samples.
    samples : generator of Samples
        In the order of their indices, in memory of their own. A SpectrodError ends them.
    first : int
        Index of the first sample that may come.
    times_at : callable
        Returns the monotonic time and the UTC of a sample by its index [ns].
    on_failure : callable
        Called with the error that ended the samples early.
    """

    def __init__(
        self,
        fs: float,
        layout: SampleLayout,
        samples: Generator[Samples, None, None],
        first: int,
        times_at: TimesAt,
        on_failure: Callable[[SpectrodError], None],
    ) -> None:
        self.layout = layout
        self._fs, self._samples, self._taken = fs, samples, first
        self._times_at, self._on_failure = times_at, on_failure
        self._rest: Samples | None = None
        self._ended = threading.Event()

    @property
    def taken(self) -> int:
        """Index after the newest sample read; lost samples count. Any thread may call it."""
        return self._taken

    written = taken

    @property
    def exhausted(self) -> bool:
        """True once a read has found the end, or after ``close``."""
        return self._ended.is_set()

    def read(self, max_samples: int, into: NDArray[Any] | None = None) -> Block | None:  # noqa: ARG002
        """Read up to max_samples that are contiguous; None at the end.

        ``into`` is not used: the samples have memory of their own.
        """
        found = None if self.exhausted else self._rest or self._next()
        self._rest = None
        if found is None:
            self.close()
            return None
        index, samples = found
        if samples.shape[1] > max_samples:
            self._rest = index + max_samples, samples[:, max_samples:]
            samples = samples[:, :max_samples]
        lost_samples = index - self._taken
        self._taken = index + samples.shape[1]
        times = self._times_at(index)
        return Block(samples, index, *times, lost_samples > 0, lost_samples, self._fs)

    def _next(self) -> Samples | None:
        try:
            return next(self._samples, None)
        except SpectrodError as error:
            self._on_failure(error)
            return None

    def close(self) -> None:
        """End after the samples read so far; any thread may call it."""
        self._ended.set()

    def release(self) -> None:
        """Release what the samples are made from."""
        self._rest = None
        self._samples.close()


class PacedReader(DirectReader):
    """A ``DirectReader`` whose samples are there from the moment when their last one is due.

    After ``begin`` they are due at the sample rate; missing samples are not waited for. None is
    lost if they are read late. Until then there are none.
    """

    def begin(self, times_at: TimesAt) -> None:
        """Start the clock: the first sample is due from now on."""
        self._times_at = times_at
        self._start_s = time.monotonic()

    _start_s = math.inf
    _delivered = 0
    _least_s = _LEAST_S

    def read(self, max_samples: int, into: NDArray[Any] | None = None) -> Block | None:
        """Read up to max_samples that are due, into the given array if it fits; None if none are.

        Fewer than ``relax`` allows are left for the next call.
        """
        if self.exhausted or self._due_samples() < self._least_samples:
            return None
        if into is not None:
            max_samples = min(max_samples, into.shape[1])
        block = super().read(min(max_samples, self._due_samples()))
        if block is None:
            return None
        self._delivered += block.n_samples
        # The same memory may have the next samples.
        samples = np.empty_like(block.samples) if into is None else into[:, : block.n_samples]
        samples[...] = block.samples
        return replace(block, samples=samples)

    def relax(self, least_s: float) -> None:
        """Return at least this much from now on [s]; 10 ms at least."""
        self._least_s = max(least_s, _LEAST_S)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until samples are due, or for the end; return False after the timeout."""
        due_s = max(0.0, self._due_s - time.monotonic())
        is_in_time = timeout_s is None or due_s <= timeout_s
        left_s = due_s if is_in_time else timeout_s
        return self._ended.wait(None if left_s == math.inf else left_s) or is_in_time

    def awaited(self) -> Wait:
        """Return the time at which samples are due."""
        return Wait(self._due_s)

    @property
    def _least_samples(self) -> int:
        return max(1, round(self._least_s * self._fs))

    def _due_samples(self) -> int:
        since_s = max(0.0, time.monotonic() - self._start_s)
        return math.floor(since_s * self._fs) - self._delivered

    @property
    def _due_s(self) -> float:
        return self._start_s + (self._delivered + self._least_samples) / self._fs
