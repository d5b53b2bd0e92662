"""Writes raw blocks of a capture process into the sample ring, with index and time."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.capture.layout import RawBlock
from spectrod.ring import SampleRing
from spectrod.sample_layout import SampleLayout
from spectrod.source.capture_process import StreamSettings
from spectrod.source.clock import RATE_OFF_PPM, SampleClock, WallClock
from spectrod.source.pcm import NATIVE_FORMATS

_log = logging.getLogger(__name__)

_AFTERMATH_NS = 5_000_000_000
_LOOK_NS = 1_000_000_000


class BlockWriter:
    """Writes the blocks of successive streams at the indices that the clock gives.

    Three kinds of loss appear as gaps in the ring; each is counted and logged:

    - *overflow*: flagged by the sound system, which does not give its size. The ring records a
      discontinuity at once; samples that the clock finds missing within 5 s become its gap;
    - *suspected*: samples that the clock finds missing without a flag;
    - *overrun*: blocks overwritten before this process fetched them, because it was delayed.

    Parameters
    ----------
    ring : SampleRing
        The ring to write to.
    settings : StreamSettings
        Settings of all the streams.
    selected : sequence of int
        Channels to write, in this order.
    name : str
        Name of the source in log lines.
    """

    def __init__(
        self, ring: SampleRing, settings: StreamSettings, selected: Sequence[int], name: str
    ) -> None:
        self.clock = SampleClock(settings.samplerate, settings.block_frames)
        self.suspected_samples = self.overruns = 0
        self._ring, self._settings, self._name = ring, settings, name
        sample_format = NATIVE_FORMATS[settings.format]
        self._layout = SampleLayout(sample_format, settings.channels, interleaved=True)
        self._selected = None if [*selected] == [*range(settings.channels)] else [*selected]
        self._wall = WallClock()
        self._next_look_ns = 0
        self._flagged_until_ns = self._overrun_said_until_ns = 0
        self._is_rate_off = False
        # Current stream: ring index of its frame 0, and the next expected frame.
        self._offset = self._next_frame = 0

    @property
    def suspected(self) -> int:
        """Losses that the clock has revealed and no flag reported."""
        return self._ring.suspected

    @property
    def delivered_s(self) -> float:
        """Duration that the newest stream has delivered [s]."""
        return self._next_frame / self._settings.samplerate

    def begin(self, blocks: Sequence[RawBlock]) -> int:
        """Place a stream that starts with these blocks, which are still to be written.

        Returns
        -------
        lost : int
            Samples per channel that are missing before the stream.
        """
        arrivals = [(block.frame + block.n_frames, block.t_mono_ns) for block in blocks]
        # NB: written samples stay; a clock that is one sample behind must not end the capture.
        self._offset = max(self.clock.place(arrivals), self._ring.written)
        self._next_frame = 0
        return self._offset - self._ring.written

    def write(self, block: RawBlock) -> None:
        """Write a block, after counting the losses before it."""
        if block.frame != self._next_frame:
            self._count_overrun(block.frame - self._next_frame, block.t_mono_ns)
        self._next_frame = block.frame + block.n_frames
        if block.flagged:
            self._note_flag(block.t_mono_ns)
        missed = self.clock.add(self._offset + self._next_frame, block.t_mono_ns)
        if missed:
            self._count_missed(missed, block.t_mono_ns)
        if block.t_mono_ns >= self._next_look_ns:
            self._next_look_ns = block.t_mono_ns + _LOOK_NS
            self._look_at_clocks()
        index = self._offset + block.frame
        t_mono_ns = self.clock.mono_ns(index)
        t_utc_ns = self._wall.utc_ns(t_mono_ns)
        self._ring.write(self._samples(block), index, t_mono_ns, t_utc_ns, overflow=block.flagged)

    def _samples(self, block: RawBlock) -> NDArray[Any]:
        memory = np.frombuffer(block.data, np.uint8)
        samples = self._layout.arranged(memory, block.n_frames)
        return samples if self._selected is None else samples[self._selected]

    def _count_overrun(self, n_frames: int, t_mono_ns: int) -> None:
        self.overruns += 1
        if t_mono_ns < self._overrun_said_until_ns:  # overruns may come in quick succession
            return
        self._overrun_said_until_ns = t_mono_ns + _AFTERMATH_NS
        _log.warning(
            "%s: %d samples were overwritten before they were fetched (overrun): "
            "this process was held up",
            self._name,
            n_frames,
        )

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

    def _look_at_clocks(self) -> None:
        """Follow the wall clock, and check the sample rate."""
        step_s = self._wall.look()
        if step_s is not None:
            _log.warning("%s: the wall clock was set by %+.3f s; UTC follows", self._name, step_s)
        self._look_at_rate()

    def _look_at_rate(self) -> None:
        """Log once when the rate is certainly off, and once when it is certainly right again."""
        error_ppm, uncertainty_ppm = self.clock.rate_error_ppm, self.clock.rate_uncertainty_ppm
        if error_ppm is None or uncertainty_ppm is None:
            return
        is_right = abs(error_ppm) + uncertainty_ppm < RATE_OFF_PPM
        if (is_right and self._is_rate_off) or (self.clock.is_rate_off and not self._is_rate_off):
            self._is_rate_off = not self._is_rate_off
            _log.warning(
                "%s: the sample rate is %s: %+.1f ppm from nominal by this machine's clock",
                self._name,
                "off" if self._is_rate_off else "right again",
                error_ppm,
            )
