"""The streaming STFT: blocks of any size in, every frame exactly once out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.samples import as_samples, is_finite, require_finite
from spectrod.fft.stft_frames import frames_span
from spectrod.types import Block, SpectrumBatch, SpectrumSpec
from spectrod.units import Float32Array, Scaling, power_to_dbfs

# A batch large enough to fill a device, small enough to stay in a CPU's caches.
_BATCH_SAMPLES = 1 << 18
_BATCH_FRAMES = 1024


class FrameStream:
    """Frames out of blocks: the framing, batching and gap rules, for a given engine and spec.

    A frame starts every ``spec.hop`` samples. One that would span a gap is not computed: behind a
    gap, frames start anew, and the next batch carries the gap's size.

    Parameters
    ----------
    spec : SpectrumSpec
        What to compute.
    engine : Engine
        What computes it; stays the caller's to close.
    on_nonfinite : {"raise", "gap"}
        What a NaN or an infinity among the samples is: an InputError, or a loss of its block.

    Notes
    -----
    Not thread-safe. Results are the same, bit for bit, however the stream is cut into blocks.
    """

    def __init__(
        self,
        spec: SpectrumSpec,
        engine: Engine,
        on_nonfinite: Literal["raise", "gap"] = "raise",
    ) -> None:
        self.spec = spec
        self.gaps = self.gap_samples = 0
        self._engine_name = engine.name
        self._raises = on_nonfinite == "raise"
        self._max_frames = max(1, min(_BATCH_FRAMES, _BATCH_SAMPLES // (spec.hop * spec.channels)))
        self._plan = engine.plan_power(spec, self._max_frames)
        capacity = frames_span(spec, self._max_frames)
        self._buffer: Float32Array = np.zeros((spec.channels, capacity), np.float32)
        # The next frame starts at _start and _fill of its samples are here; a negative _fill is
        # the number of samples to skip first, which a hop longer than the window leaves.
        self._start: int | None = None
        self._fill = 0
        self.gap_pending: int | None = None
        self._clock: Block | None = None

    @property
    def next_index(self) -> int | None:
        """Index of the sample expected next; None before the first."""
        return None if self._start is None else self._start + self._fill

    def take_over(self, earlier: "FrameStream") -> None:
        """Carry on the counters of the stream before, and a gap that it has not reported yet."""
        self.gaps, self.gap_samples = earlier.gaps, earlier.gap_samples
        self.gap_pending = earlier.gap_pending

    def push(self, block: Block) -> list[SpectrumBatch]:
        """Take samples in and return the spectra they complete, in order."""
        lost_samples = self._lost_before(block)
        if not is_finite(block.samples):
            if self._raises:
                require_finite(block.samples, block.sample_index)
            self._lose(lost_samples + block.n_samples)
            self._restart(block.sample_index + block.n_samples)
            return []
        expected = self.next_index
        if block.discontinuity or expected not in (None, block.sample_index):
            self._lose(lost_samples)
            expected = None
        if expected is None:
            self._restart(block.sample_index)
        self._clock = block
        return list(self._append(block.samples))

    def _lost_before(self, block: Block) -> int:
        """Count the samples missing before a block: no fewer than its index leaves out."""
        skipped = 0 if self.next_index is None else block.sample_index - self.next_index
        return max(block.lost_samples, skipped)

    def _lose(self, lost_samples: int) -> None:
        self.gaps += 1
        self.gap_samples += lost_samples
        self.gap_pending = (self.gap_pending or 0) + lost_samples

    def _restart(self, sample_index: int) -> None:
        self._start, self._fill = sample_index, 0

    def _append(self, samples: Float32Array) -> Iterator[SpectrumBatch]:
        while samples.shape[1]:
            if self._fill < 0:
                n = min(-self._fill, samples.shape[1])
            else:
                n = min(self._buffer.shape[1] - self._fill, samples.shape[1])
                self._buffer[:, self._fill : self._fill + n] = samples[:, :n]
            self._fill += n
            samples = samples[:, n:]
            if n_frames := self.spec.n_frames(self._fill):
                yield self._compute(n_frames)

    def _compute(self, n_frames: int) -> SpectrumBatch:
        span = frames_span(self.spec, n_frames)
        power = self._plan.execute(np.ascontiguousarray(self._buffer[:, :span]), n_frames)
        batch = self._batch(power, n_frames)
        self._advance(n_frames * self.spec.hop)
        return batch

    def _advance(self, n: int) -> None:
        rest = self._buffer[:, n : max(n, self._fill)]
        self._buffer[:, : rest.shape[1]] = rest
        assert self._start is not None
        self._start += n
        self._fill -= n

    def _batch(self, power: Float32Array, n_frames: int) -> SpectrumBatch:
        assert self._start is not None
        assert self._clock is not None
        index = self._start + self.spec.hop * np.arange(n_frames, dtype=np.int64)
        since_ns = np.rint((index - self._clock.sample_index) * (1e9 / self.spec.fs))
        gap, self.gap_pending = self.gap_pending, None
        return SpectrumBatch(
            power_to_dbfs(power) if self.spec.scaling == "dbfs" else power,
            index,
            self._clock.t_mono_ns + since_ns.astype(np.int64),
            self._clock.t_utc_ns + since_ns.astype(np.int64),
            self.spec,
            self._engine_name,
            gap_samples=gap or 0,
            discontinuity=gap is not None,
        )


class Stft:
    """Short-time Fourier transform of a stream: ``push`` blocks of any size, get all frames.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    channels, window, win_length, hop, nfft, scaling
        See ``SpectrumSpec``.
    engine : {"auto", "opencl", "numpy"}
        What computes.
    device : str
        OpenCL device, by part of its name or by number.

    Raises
    ------
    ConfigError, DeviceError
        If a setting breaks a rule or the device is not there.

    Notes
    -----
    Not thread-safe. Holds a device: ``close`` it or use it in a ``with`` statement.
    """

    def __init__(  # noqa: PLR0913 - the analysis has these settings
        self,
        fs: float,
        *,
        channels: int = 1,
        window: str = "hann",
        win_length: int = 4096,
        hop: int = 1024,
        nfft: int = 0,
        scaling: Scaling = "density",
        engine: Literal["auto", "opencl", "numpy"] = "auto",
        device: str = "",
    ) -> None:
        self.spec = SpectrumSpec(fs, channels, window, win_length, hop, nfft, scaling)
        self.engine: Engine = open_engine(engine, device)
        self._stream = FrameStream(self.spec, self.engine)

    def push(self, block: Block | ArrayLike) -> list[SpectrumBatch]:
        """Take samples in and return the spectra they complete.

        Parameters
        ----------
        block : Block, or (channels, n) or (n,) array-like
            Floats in [-1, 1] or integer PCM, see ``as_samples`` [FS]. An array follows directly on
            what was pushed before, and its times are elapsed ones: index / fs.

        Returns
        -------
        batches : list of SpectrumBatch
            In order; empty while no frame is complete.

        Raises
        ------
        InputError
            For a wrong shape or dtype, and for samples that are not finite.
        """
        if isinstance(block, Block):
            samples = as_samples(block.samples, self.spec.channels)
            return self._stream.push(replace(block, samples=samples))
        samples = as_samples(block, self.spec.channels)
        index = self._stream.next_index or 0
        elapsed_ns = round(index * 1e9 / self.spec.fs)
        return self._stream.push(Block(samples, index, elapsed_ns, elapsed_ns))

    def close(self) -> None:
        """Release the device."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
