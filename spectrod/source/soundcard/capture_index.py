"""Gives the samples of a capture process their index and time."""

import logging
from collections.abc import Sequence

from spectrod.source.ring import SampleRing
from spectrod.source.soundcard.capture_process import BlockRecord, StreamSettings
from spectrod.source.soundcard.sample_clock import RATE_OFF_PPM, SampleClock, WallClock

_log = logging.getLogger(__name__)

_AFTERMATH_NS = 5_000_000_000
_LOOK_NS = 1_000_000_000
_CERTAIN_NS = 60_000_000_000
"""How long the rate must have been off, or right again, before it is logged [ns]: the latency of a
sound server may grow for half a minute after a start, at 1800 ppm of PulseAudio's null sink."""


class CaptureIndex:
    """Publishes the blocks of successive streams at the indices that the clock gives.

    The samples are in the ring already. Two kinds of loss appear as gaps; each is counted and
    logged:

    - *overflow*: flagged by the sound system, which does not give its size. The ring records a
      discontinuity at once; samples that the clock finds missing within 5 s become its gap;
    - *suspected*: samples that the clock finds missing without a flag.

    Parameters
    ----------
    ring : SampleRing
        The ring that the streams are written to.
    settings : StreamSettings
        Settings of all the streams.
    name : str
        Name of the source in log lines.
    """

    def __init__(self, ring: SampleRing, settings: StreamSettings, name: str) -> None:
        self.clock = SampleClock(settings.samplerate, settings.block_frames)
        self.suspected_samples = 0
        self._ring, self._fs, self._name = ring, settings.samplerate, name
        self._wall = WallClock()
        self._next_look_ns = 0
        self._flagged_until_ns = 0
        self._is_rate_off = False
        self._rate_since_ns: int | None = None
        # Current stream: index minus position, first position, and the next one to publish.
        self._offset = self._first = self._next = 0

    @property
    def delivered_s(self) -> float:
        """Duration that the newest stream has delivered [s]."""
        return (self._next - self._first) / self._fs

    def start_stream(self, blocks: Sequence[BlockRecord]) -> int:
        """Place a stream that starts with these blocks, which are still to be added.

        Returns
        -------
        lost : int
            Samples per channel that are missing before the stream.
        """
        self._first = self._next = blocks[0].position
        arrivals = [(block.stop - self._first, block.t_mono_ns) for block in blocks]
        # NB: published samples stay; a clock that is one sample behind must not end the capture.
        index = max(self.clock.place(arrivals), self._ring.written)
        self._offset = index - self._first
        return index - self._ring.written

    def add(self, block: BlockRecord) -> None:
        """Publish a block, and those before it whose records are missing."""
        if block.flagged:
            self._note_flag(block.t_mono_ns)
        missed = self.clock.add(self._offset + block.stop, block.t_mono_ns)
        if missed:
            self._count_missed(missed, block.t_mono_ns)
        if block.t_mono_ns >= self._next_look_ns:
            self._next_look_ns = block.t_mono_ns + _LOOK_NS
            self._look_at_clocks(block.t_mono_ns)
        position, self._next = self._next, block.stop
        index = self._offset + position
        t_mono_ns = self.clock.mono_ns(index)
        t_utc_ns = self._wall.utc_ns(t_mono_ns)
        n = block.stop - position
        self._ring.publish(position, n, index, t_mono_ns, t_utc_ns, overflow=block.flagged)

    def _note_flag(self, t_mono_ns: int) -> None:
        if t_mono_ns >= self._flagged_until_ns:  # every block may be flagged
            _log.warning("%s: the sound system lost samples (overflow)", self._name)
        self._flagged_until_ns = t_mono_ns + _AFTERMATH_NS

    def _count_missed(self, n_samples: int, t_mono_ns: int) -> None:
        self._offset += n_samples
        if t_mono_ns < self._flagged_until_ns:
            self._flagged_until_ns = 0
            _log.warning("%s: the overflow was of %d samples", self._name, n_samples)
            return
        self._ring.suspected += 1
        self.suspected_samples += n_samples
        _log.warning(
            "%s: %d samples fewer than time has passed: a loss that was not flagged",
            self._name,
            n_samples,
        )

    def _look_at_clocks(self, t_mono_ns: int) -> None:
        """Follow the wall clock, and check the sample rate."""
        step_s = self._wall.look()
        if step_s is not None:
            _log.warning("%s: the wall clock was set by %+.3f s; UTC follows", self._name, step_s)
        self._look_at_rate(t_mono_ns)

    def _look_at_rate(self, t_mono_ns: int) -> None:
        """Log once when the rate is certainly off, and once when it is certainly right again."""
        error_ppm, uncertainty_ppm = self.clock.rate_error_ppm, self.clock.rate_uncertainty_ppm
        if error_ppm is None or uncertainty_ppm is None:
            return
        is_right = abs(error_ppm) + uncertainty_ppm < RATE_OFF_PPM
        is_other = is_right if self._is_rate_off else self.clock.is_rate_off
        if not is_other:
            self._rate_since_ns = None
        elif self._rate_since_ns is None:
            self._rate_since_ns = t_mono_ns
        elif t_mono_ns - self._rate_since_ns >= _CERTAIN_NS:
            self._rate_since_ns = None
            self._is_rate_off = not self._is_rate_off
            _log.warning(
                "%s: the sample rate is %s: %+.1f ppm from nominal by this machine's clock",
                self._name,
                "off" if self._is_rate_off else "right again",
                error_ppm,
            )
