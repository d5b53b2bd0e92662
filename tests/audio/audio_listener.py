"""A listener to a sound card source that compares every sample and every count with the truth."""

import itertools
import threading
import time
from dataclasses import replace

import numpy as np

from spectrod.analysis.samples import to_float32
from spectrod.apps.bench.sequence_signal import NumberCheck, read_numbers
from spectrod.config.config import SourceConfig
from spectrod.source.ring import SampleRing
from spectrod.source.soundcard.soundcard import SoundCardSource

BLOCK = 480
FS = 48000


class WatchedRing(SampleRing):
    """Compares published data with their sequence numbers, and records their arrival times."""

    def __init__(self, source, on_write):
        super().__init__(source.fs, source.layout, shared=source.open_memory())
        self.check = NumberCheck()
        self.arrivals = []
        self.first_number = None
        self.gaps = []
        self._on_write = on_write

    def publish(self, position, n, sample_index, t_mono_ns, t_utc_ns, *, overflow=False):
        now_ns = time.monotonic_ns()
        if sample_index != self.written:
            self.gaps.append((self.written, sample_index))
        samples = self._new(n)
        self._copy(position, samples)
        floats = to_float32(samples, self.layout.sample_format)
        self.check.look(floats, sample_index)
        if self.first_number is None:
            self.first_number = int(read_numbers(floats)[0])
        super().publish(position, n, sample_index, t_mono_ns, t_utc_ns, overflow=overflow)
        self.arrivals.append((self.written, now_ns, sample_index, t_mono_ns, t_utc_ns))
        self._on_write()


class Listener:
    """A running source whose every change can be waited for; a context manager."""

    def __init__(self, selector="pulse", **settings):
        settings = {"samplerate": FS, "channels": 2, "format": "s16le"} | settings
        self._news = threading.Condition()
        self.changes = []
        self.source = SoundCardSource(selector, SourceConfig(**settings))
        self.ring = WatchedRing(self.source, self._notify)

    def __enter__(self):
        self.source.start(self.ring, self._note_change)
        return self

    def __exit__(self, *_):
        self.source.stop()
        self.ring.release()

    def read(self, max_samples):
        """Read a block from the ring, its samples as floats."""
        block = self.ring.read(max_samples)
        floats = to_float32(block.samples, self.ring.layout.sample_format)
        return replace(block, samples=floats)

    def _notify(self):
        with self._news:
            self._news.notify_all()

    def _note_change(self):
        self.changes.append((time.monotonic(), self.source.capture()))
        self._notify()

    def wait(self, is_so, limit_s, what):
        """Wait for a condition; return when it was found to hold [monotonic s]."""
        with self._news:
            assert self._news.wait_for(is_so, limit_s), (
                f"not {what} within {limit_s:g} s: {self.source.capture()}"
            )
        return time.monotonic()

    @property
    def is_waiting(self):
        return bool(self.source.capture().waiting_for)

    @property
    def silences(self):
        """Return the times at which the source reported that no samples came."""
        states = [False, *(bool(capture.waiting_for) for _, capture in self.changes)]
        return sum(now and not before for before, now in itertools.pairwise(states))

    def wait_for_seconds(self, seconds, limit_s=None):
        """Wait until a number of seconds of samples has come, without gaps."""
        n_before = len(self.ring.arrivals)

        def enough():
            come = self.ring.arrivals[n_before:]
            return sum(end - start for end, _, start, _, _ in come) >= seconds * self.source.fs

        return self.wait(enough, limit_s or seconds + 60.0, f"{seconds:g} s more of samples")

    def wait_until_waiting(self, since, limit_s=1.0):
        """Wait until the source reports that no samples come; return how long that took [s]."""
        return (
            self.wait(lambda: self.is_waiting, since + limit_s - time.monotonic(), "waiting")
            - since
        )

    def wait_until_back(self, since, limit_s=3.0):
        """Wait until samples come again; return how long that took [s]."""
        written = self.ring.written

        def is_back():
            return not self.is_waiting and self.ring.written > written

        return self.wait(is_back, since + limit_s - time.monotonic(), "back") - since

    def lateness_s(self, first=0, stop=None):
        """Return how late the earliest samples of a range of indices are, by those indices [s]."""
        stop = self.ring.written if stop is None else stop
        late = [t * 1e-9 - end / FS for end, t, *_ in self.ring.arrivals if first < end <= stop]
        return min(late)

    def time_errors_s(self):
        """Return each block's monotonic time against its index and the first block's [s]."""
        _, _, index, t_mono_ns, _ = np.array(self.ring.arrivals, dtype=np.int64).T
        return (t_mono_ns - t_mono_ns[0]) * 1e-9 - (index - index[0]) / FS
