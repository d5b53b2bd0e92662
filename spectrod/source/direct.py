"""Reads a source that can wait without a thread and a ring: the analysis asks for the samples."""

import threading
from collections.abc import Callable, Generator
from typing import Any

from numpy.typing import NDArray

from spectrod.errors import SpectrodError
from spectrod.sample_layout import SampleLayout
from spectrod.types import Block
from spectrod.wakeup import Wakeup

Samples = tuple[int, NDArray[Any]]
"""Index of the first sample, and (channels, n) or (channels, n, 3) samples."""


class DirectReader:
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

    overflows = suspected = overruns = 0
    peak_fill = 0.0

    def __init__(
        self,
        fs: float,
        layout: SampleLayout,
        samples: Generator[Samples, None, None],
        first: int,
        times_at: Callable[[int], tuple[int, int]],
        on_failure: Callable[[SpectrodError], None],
    ) -> None:
        self.layout = layout
        self.data = Wakeup()
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
        self.data.set()

    def release(self) -> None:
        """Release what the samples are made from."""
        self._rest = None
        self._samples.close()
        self.data.close()
