"""Triggers of recordings: times of events, and what finds them in samples."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np

from spectrod.config.schedule import NEVER_NS
from spectrod.config.settings import RecordingConfig
from spectrod.dsp.blocks import Block, duration_ns
from spectrod.dsp.units import FULL_SCALE_SINE_FS2, NS_PER_S, Float64Array, dbfs_to_amplitude

_KEPT: Final = 64
_WINDOW_S: Final = 0.125

Checked = Callable[[], tuple[tuple[str, ...], int]]
"""Returns the present faults of the samples, and the number of clipped samples so far."""

OnEvent = Callable[[int, int, str], None]
"""Takes the first and the last time of an event [ns since 1970], and what it is."""


class Triggers:
    """Times of events, each with the time before and after it that is recorded.

    Events whose times meet are merged. Any thread may use it. At most the last 64 unmerged events
    are kept, which covers more time than a recorder lags behind.

    Parameters
    ----------
    pre_roll_s, post_roll_s : float
        Recorded time before and after an event [s].
    latency_s : float
        Longest time from the first sample of an event of spectra until it is added [s].
    """

    def __init__(self, pre_roll_s: float, post_roll_s: float, latency_s: float = 0.0) -> None:
        self._pre_roll_ns = round(pre_roll_s * NS_PER_S)
        # A level is known at the end of its 125 ms; the pre-roll counts from their beginning.
        self.held_ns = self._pre_roll_ns + round(max(_WINDOW_S, latency_s) * NS_PER_S)
        """Time after which data that are not around an event cannot become so any more."""
        self._post_roll_ns = round(post_roll_s * NS_PER_S)
        self._spans: deque[tuple[int, int]] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()
        self.count = 0
        """Number of events that were not merged with the one before."""

    def add(self, first_ns: int, last_ns: int) -> bool:
        """Add an event; return whether it was not merged with the one before.

        Parameters
        ----------
        first_ns, last_ns : int
            First and last time of the event [ns since 1970].
        """
        begin_ns, end_ns = first_ns - self._pre_roll_ns, last_ns + self._post_roll_ns + 1
        with self._lock:
            last = self._spans[-1] if self._spans else None
            if last and last[0] <= end_ns and begin_ns <= last[1]:
                self._spans[-1] = min(last[0], begin_ns), max(last[1], end_ns)
                return False
            self._spans.append((begin_ns, end_ns))
            self.count += 1
            return True

    def at(self, t_utc_ns: int) -> tuple[bool, int]:
        """Return whether a time is within an event, and until when that is known to hold.

        The second value is ``NEVER_NS`` if only a future event can change the first.
        """
        until_ns = NEVER_NS
        with self._lock:
            for begin_ns, end_ns in self._spans:
                if begin_ns <= t_utc_ns < end_ns:
                    return True, end_ns
                if t_utc_ns < begin_ns:
                    until_ns = min(until_ns, begin_ns)
        return False, until_ns


class LevelTrigger:
    """Detects intervals of 125 ms in which a channel's level reaches a threshold.

    The level is the root mean square over all frequencies, relative to a full-scale sine (0 dBFS).
    A gap restarts the 125 ms. One thread.

    Parameters
    ----------
    threshold_dbfs : float
        Threshold level [dBFS].
    fs : float
        Sample rate [Hz].
    on_level : callable
        Receives the times of the first and last sample of such an interval [ns since 1970].
    """

    def __init__(
        self, threshold_dbfs: float, fs: float, on_level: Callable[[int, int], None]
    ) -> None:
        self._fs, self._on_level = fs, on_level
        self._window = max(1, round(_WINDOW_S * fs))
        mean_square = FULL_SCALE_SINE_FS2 * dbfs_to_amplitude(threshold_dbfs) ** 2
        self._threshold = mean_square * self._window
        self._sum: Float64Array | float = 0.0
        self._n = 0

    def look(self, block: Block) -> None:
        """Examine the next samples."""
        if block.discontinuity:
            self._sum, self._n = 0.0, 0
        done = 0
        while done < block.n_samples:
            n = min(self._window - self._n, block.n_samples - done)
            piece = block.samples[:, done : done + n]
            self._sum = self._sum + np.einsum("cn,cn->c", piece, piece, dtype=np.float64)
            done, self._n = done + n, self._n + n
            if self._n == self._window:
                if np.max(self._sum) >= self._threshold:
                    last_ns = block.t_utc_ns + duration_ns(done - 1, self._fs)
                    self._on_level(last_ns - duration_ns(self._n - 1, self._fs), last_ns)
                self._sum, self._n = 0.0, 0


class EventFinder:
    """Finds the events of a recording: levels and faults of samples, and those of triggers.

    Parameters
    ----------
    config : RecordingConfig
        The recording's configuration, whose triggers it looks for.
    fs : float
        Sample rate [Hz].
    checked : callable
        Returns the present faults of the samples.
    on_event : callable
        Receives the events.
    """

    def __init__(
        self, config: RecordingConfig, fs: float, checked: Checked, on_event: OnEvent
    ) -> None:
        self._kinds = frozenset(config.triggers) - {*config.named_triggers}
        self._named = frozenset(config.named_triggers)
        self._checked, self._on_event = checked, on_event
        text = f"level of {config.trigger_dbfs:g} dBFS or more"
        self._level = LevelTrigger(
            config.trigger_dbfs, fs, lambda first_ns, last_ns: on_event(first_ns, last_ns, text)
        )
        self._faults: frozenset[str] = frozenset()
        self._n_clipped: int | None = None

    @property
    def needs_samples(self) -> bool:
        """Whether it looks for events in samples."""
        return bool(self._kinds - {"control"})

    @property
    def needs_triggers(self) -> bool:
        """Whether it takes events of triggers."""
        return bool(self._named)

    def write(self, block: Block) -> None:
        """Look at the next samples, before they are recorded."""
        if "level" in self._kinds:
            self._level.look(block)
        active, n_clipped = self._checked()
        faults = frozenset(text.partition(":")[0] for text in active) - {"clipping"}
        found = set(faults - self._faults)
        if self._n_clipped is not None and n_clipped > self._n_clipped:
            found.add("clipping")
        self._faults, self._n_clipped = faults, n_clipped
        for kind in sorted(found & self._kinds):
            self._on_event(block.t_utc_ns, block.t_utc_ns, kind)

    def take_event(self, name: str, first_ns: int, last_ns: int, text: str) -> None:
        """Take the times of an event of a trigger so far [ns since 1970]."""
        if name in self._named:
            self._on_event(first_ns, last_ns, f"{name}: {text}")
