"""From blocks of any size to every frame exactly once: framing, batching, gaps, failures."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.batch_sizes import BatchSizes, batch_sizes, reach
from spectrod.analysis.cursor import Timing
from spectrod.analysis.engine import IN_FLIGHT_MAX, Engine, fallback_for
from spectrod.analysis.frame_launcher import FrameLauncher
from spectrod.analysis.percentile_plan import make_plan
from spectrod.analysis.row_positions import Missing
from spectrod.analysis.samples import is_finite, memory_of, require_finite
from spectrod.dsp.blocks import Block, SampleFormat
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError, DeviceError

if TYPE_CHECKING:
    from spectrod.analysis.sample_buffer import SampleBuffer

_LONG_BLOCK_BYTES = 1 << 20
"""Minimum size of a block that is read in place [bytes]: a launch takes as long as a shorter copy.
"""
_LONG_BLOCK_WINDOWS = 8
"""Minimum length of such a block [windows]: its first frames start in earlier blocks."""
_FOREVER = float("inf")

_log = logging.getLogger(__name__)


class FrameStream:
    """Computes frames from blocks, for one or several specs at once, with a given engine.

    A frame starts every ``spec.hop`` samples. A frame that would span a gap is not computed: after
    a gap, frames and averages restart, and the next batch of each spec reports the gap's size.
    Samples are copied once, to the end of a buffer in which all frames are read in place. Frames
    that lie in a long block are read from its own memory, before ``push`` returns.

    An average that a gap or ``finish`` cuts makes a shorter row, in a batch of its own whose
    ``cut_frames`` is the number of its frames.

    Unwanted specs can be skipped, see ``want``: then only the samples for the next frame are kept.

    If the engine fails and has a fallback, the fallback continues: the samples of all undelivered
    frames are still available. An unfinished average restarts with the first of these frames, and
    the next batch is marked as a discontinuity.

    Parameters
    ----------
    specs : SpectrumSpec or sequence of them
        What to compute; all with the same rate and number of channels.
    engine : Engine
        Engine, which the caller closes.
    on_nonfinite : {"raise", "gap"}
        Effect of a NaN or an infinity: an InputError, or the loss of its block.
    sample_format : {"float32", "int16", "int24", "int32"}
        Format of the blocks; int24 is (channels, n, 3) uint8, little-endian.
    interleaved : bool
        Order of samples in the buffer; blocks of the same order are copied fastest.
    max_latency_s : float
        How long complete frames may wait for a full batch, in time of the samples [s]; infinity for
        no limit.
    batch_frames : int, optional
        Frames of a full batch; by default a number that suits the engine.
    out : (rows, signals, spec.n_computed) array, optional
        Memory for all rows of the only spec, in order, best that of ``Engine.result_memory``. Rows
        that were computed elsewhere are in their batch alone. A failure of the engine is raised.
    next_engine : callable
        Called with every block; returns an engine once, when the stream is to move to it: from the
        next frame on, that engine computes. All frames so far are NumPy's.

    Attributes
    ----------
    specs : tuple of SpectrumSpec
        As given.
    engine : Engine
        Engine in use.
    launchers : list of FrameLauncher
        One per spec, in their order.
    gaps, gap_samples : int
        Interruptions, and the samples missing in them.
    cut_frames : int
        Frames of averages that made no row, because of a failure, a reset or the end of demand.
    engine_failures : int
        Number of times that an engine failed and its fallback continued.

    Raises
    ------
    ConfigError
        If the specs are incompatible, or a setting breaks a rule.
    DeviceError
        If the engine cannot compute it and has no fallback.

    Notes
    -----
    Not thread-safe. Results are bit-identical for any division of the stream into blocks and
    batches, and independent of other specs.
    """

    def __init__(  # noqa: PLR0913 - a stream has these settings
        self,
        specs: SpectrumSpec | Sequence[SpectrumSpec],
        engine: Engine,
        on_nonfinite: Literal["raise", "gap"] = "raise",
        *,
        sample_format: SampleFormat = "float32",
        interleaved: bool = False,
        max_latency_s: float = 0.0,
        batch_frames: int | None = None,
        out: NDArray[Any] | None = None,
        next_engine: Callable[[], Engine | None] = lambda: None,
    ) -> None:
        self.specs = _checked_specs(specs)
        _check_batching(max_latency_s, batch_frames)
        self.engine = engine
        self._next_engine = next_engine
        self._batch_frames = batch_frames
        self._out = out
        self.gaps = self.gap_samples = self.cut_frames = self.engine_failures = 0
        self._raises = on_nonfinite == "raise"
        self._layout = SampleLayout(sample_format, self.spec.channels, interleaved)
        self._wait_samples = max_latency_s * self.spec.fs
        self._n_first = max(map(_n_first, self.specs))
        # Absolute index of a sample minus its position in the buffer.
        self._offset: int | None = None
        self._clock: Block | None = None
        self._buffer: SampleBuffer
        self.launchers: list[FrameLauncher] = []
        try:
            self._open()
        except DeviceError as error:
            self.engine = self._fallback_for(error)
            self.engine_failures += 1
            self._open()

    def _open(self) -> None:
        self._buffer, sizes = self._sized_buffer(self.engine)
        self.launchers = [
            FrameLauncher(spec, self.engine, self._buffer, size, self._out)
            for spec, size in zip(self.specs, sizes, strict=True)
        ]

    def _sized_buffer(self, engine: Engine) -> "tuple[SampleBuffer, list[BatchSizes]]":
        """Make a buffer of an engine; also return the sizes of each spec's batches."""
        layout = self._layout
        sizes = [batch_sizes(spec, layout, engine, self._batch_frames) for spec in self.specs]
        return engine.sample_buffer(layout, 2 * reach(self.specs, sizes, layout)), sizes

    @property
    def layout(self) -> SampleLayout:
        """Layout of the samples."""
        return self._layout

    @property
    def spec(self) -> SpectrumSpec:
        """The first of the specs."""
        return self.specs[0]

    @property
    def wanted(self) -> tuple[str, ...]:
        """Products that are computed."""
        return tuple(one.spec.product for one in self.launchers if one.positions.is_wanted)

    @property
    def next_index(self) -> int | None:
        """Index of the next expected sample; None before the first."""
        return None if self._offset is None else self._offset + self._buffer.end

    @property
    def gap_pending(self) -> int | None:
        """Samples of gaps that no batch of the first spec has reported yet; None without a gap."""
        return self.launchers[0].pending.gap_samples

    def left_out_samples(self) -> list[int]:
        """Count, for each spec, the samples in no row because they do not fill a frame.

        These are samples before each gap and, so far, at the end. Samples that a hop longer than
        the window skips do not count.
        """
        return [launcher.positions.left_out_samples for launcher in self.launchers]

    def remainder(self) -> list[tuple[int, int]]:
        """Return, for each spec, the samples and frames that no row has yet.

        Returns
        -------
        remainder : list of (int, int)
            Samples from the start of the next frame on, and frames of an unfinished average.
        """
        return [launcher.positions.remainder() for launcher in self.launchers]

    def inherit_counts(self, earlier: "FrameStream") -> None:
        """Continue the counters of an earlier stream and its unreported gaps and skipped rows.

        Each spec inherits from the same product; new products report the gap of the first spec.
        """
        self.gaps, self.gap_samples = earlier.gaps, earlier.gap_samples
        self.cut_frames += earlier.cut_frames
        self.engine_failures += earlier.engine_failures
        launchers = {launcher.spec.product: launcher for launcher in earlier.launchers}
        for launcher in self.launchers:
            if before := launchers.get(launcher.spec.product):
                launcher.inherit_counts(before)
            else:
                launcher.unreported = Missing(earlier.gap_pending)

    def want(self, products: frozenset[str] | None) -> list[SpectrumBatch]:
        """Set the products to compute from the next samples on; None: all.

        Frames of other products are skipped: nothing is computed, and the next batch reports the
        number of these rows in ``skipped_rows``, and all gaps in between. A row that is wanted only
        after its first frame is skipped as a whole, so all computed rows are the same as without
        skipping, except exponential averages, which restart.

        Returns all batches that were complete before, in order; raises as ``flush``.
        """
        out = self.flush()
        for launcher in self.launchers:
            is_wanted = products is None or launcher.spec.product in products
            if is_wanted != launcher.positions.is_wanted:
                self.cut_frames += launcher.positions.want(is_wanted=is_wanted)
        return out

    def reset(self, product: str = "") -> list[SpectrumBatch]:
        """Restart averages and holds of one or all products with the next frame.

        Returns all batches that were complete before, in order; raises as ``flush``.
        """
        out = self.flush()
        for launcher in self.launchers:
            if product in ("", launcher.spec.product):
                self.cut_frames += launcher.positions.reset()
        return out

    def push(self, block: Block) -> list[SpectrumBatch]:
        """Add samples; return the batches that they complete or that are due, in order.

        Raises
        ------
        InputError
            For non-finite samples, unless they count as a gap.
        DeviceError
            If the engine fails and has no fallback.
        """
        out: list[SpectrumBatch] = []
        if engine := self._next_engine():
            self._move_to(engine, out)
        own = self._buffer_over(block.samples)
        try:
            if self._admit(block, own, out):
                self._clock = block
                self._append(block.samples, own, out)
        finally:
            for launcher in self.launchers:
                launcher.forget_ahead()
        self._advance(self._wait_samples, out)
        return out

    def flush(self) -> list[SpectrumBatch]:
        """Return all complete frames that wait for a batch; the stream may continue."""
        out: list[SpectrumBatch] = []
        self._advance(0.0, out)
        return out

    def distrust(self, error: DeviceError) -> None:
        """Let the engine's fallback compute all frames that are not delivered, as after a failure.

        Parameters
        ----------
        error : DeviceError
            What is wrong with the engine; raised if it has no fallback.
        """
        self._fall_back(error)

    def finish(self) -> list[SpectrumBatch]:
        """Return the result of ``flush``, and unfinished averages as shorter rows.

        Averages restart with the next samples.
        """
        out: list[SpectrumBatch] = []
        for launcher in self.launchers:
            self._submit_rest(launcher, out)
            launcher.positions.finish()
        return out + self.flush()

    # ---- gaps

    def _admit(self, block: Block, own: "SampleBuffer | None", out: list[SpectrumBatch]) -> bool:
        """Count the losses of a block; return whether to use its samples."""
        lost_samples = self._lost_before(block)
        if self._layout.sample_format == "float32" and not self._is_finite(block, own):
            if self._raises:
                require_finite(block.samples, block.sample_index)
            self._lose(lost_samples + block.n_samples, out)
            self._offset = block.sample_index + block.n_samples - self._buffer.end
            return False
        if self._interrupts(block):
            self._lose(lost_samples, out)
        self._offset = block.sample_index - self._buffer.end
        return True

    def _interrupts(self, block: Block) -> bool:
        return block.discontinuity or self.next_index not in (None, block.sample_index)

    def _launch_ahead(self, block: Block, own: "SampleBuffer | None") -> list[FrameLauncher]:
        """Launch the frames of a long block before it is admitted; return the launchers that did.

        Samples that its first frames need lie after the buffer's end then, where the next ones go.
        """
        head = None if own is None or self._interrupts(block) else self.reserve(self._n_first)
        if own is None or head is None or head.shape[1] < self._n_first:
            return []
        head[...] = block.samples[:, : self._n_first]
        return [
            launcher for launcher in self.launchers if launcher.launch_ahead(own, self._n_first)
        ]

    def _is_finite(self, block: Block, own: "SampleBuffer | None") -> bool:
        """Return whether all samples of a block are finite, by its rows or by its samples."""
        try:
            launched = self._launch_ahead(block, own)
            if launched and launched[0].shows_finite_ahead():
                return True
        except DeviceError as error:
            self._fall_back(error)
        return is_finite(block.samples)

    def _lost_before(self, block: Block) -> int:
        """Count the samples missing before a block, at least those that its index skips."""
        skipped = 0 if self.next_index is None else block.sample_index - self.next_index
        return max(block.lost_samples, skipped)

    def _lose(self, lost_samples: int, out: list[SpectrumBatch]) -> None:
        self.gaps += 1
        self.gap_samples += lost_samples
        for launcher in self.launchers:
            self._submit_rest(launcher, out)
            self.cut_frames += launcher.positions.interrupt(lost_samples)

    def _submit_rest(self, launcher: FrameLauncher, out: list[SpectrumBatch]) -> None:
        self._align(launcher)
        launcher.positions.skip_unwanted()
        for n_frames, is_cut in launcher.positions.split_tail():
            self._submit(launcher, n_frames, out, is_cut=is_cut)

    # ---- samples

    def reserve(self, n_max: int) -> NDArray[Any] | None:
        """Return memory to put the next samples into, which ``push`` then need not copy.

        Parameters
        ----------
        n_max : int
            Maximum number of samples per channel.

        Returns
        -------
        memory : (channels, n) or (channels, n, 3) array, optional
            1 to n_max samples of the layout, valid until the next method call. None if ``push``
            must make room first.
        """
        buffer = self._buffer
        if buffer.fill in (buffer.capacity // 2, buffer.capacity):
            return None
        return buffer.room[:, :n_max]

    def _append(
        self, samples: NDArray[Any], block: "SampleBuffer | None", out: list[SpectrumBatch]
    ) -> None:
        if block is None:
            self._copy(samples, out)
            return
        # The frames that start before the block end in these samples.
        self._copy(samples[:, : self._n_first], out)
        self._submit_due(0.0, out)
        timing = self._timing
        block.shift(timing.clock.sample_index - timing.offset)
        if all(launcher.positions.next >= block.start for launcher in self.launchers):
            self._compute_in_place(block, out)
        else:
            self._copy(samples[:, self._n_first :], out)

    def _buffer_over(self, samples: NDArray[Any]) -> "SampleBuffer | None":
        """Return a buffer over a long block's own memory; None if its samples are to be copied."""
        is_long = (
            self.engine.block_batch_bytes > 0
            and samples.nbytes >= _LONG_BLOCK_BYTES
            and samples.shape[1] >= _LONG_BLOCK_WINDOWS * self._n_first
        )
        # Frames may have to wait for a batch of the requested size.
        may_wait = self._batch_frames is not None and self._wait_samples > 0.0
        if not is_long or may_wait or np.may_share_memory(samples, self._buffer.data):
            return None
        found = memory_of(samples)
        if found is None or not self._is_of_layout(found[1]):
            return None
        try:
            return self.engine.sample_buffer_over(self._layout, found[0])
        except DeviceError as error:
            self._fall_back(error)
            return None

    def _is_of_layout(self, layout: SampleLayout) -> bool:
        """Return whether samples of a layout have that of the stream; one channel has no order."""
        return layout.sample_format == self._layout.sample_format and (
            layout.channels == 1 or layout.interleaved == self._layout.interleaved
        )

    def _compute_in_place(self, block: "SampleBuffer", out: list[SpectrumBatch]) -> None:
        """Compute the frames in a block; then keep the samples that later frames need."""
        buffer = self._buffer
        try:
            for launcher in self.launchers:
                launcher.read_from(block)
            self._advance(0.0, out)
        finally:  # after an exception frames may be in flight, and the block is the caller's
            for launcher in self.launchers:
                launcher.read_from(buffer)
            self._wait_in_flight()
        first = min(block.end, self._needs)
        buffer.restart(first)
        self._store(block.data[:, block.place(first) :], out)

    def _copy(self, samples: NDArray[Any], out: list[SpectrumBatch]) -> None:
        first, n = 0, samples.shape[1]
        while first < n:
            first += self._skip(n - first)
            part = samples[:, first : first + self._room(out)]
            self._store(part, out)
            first += part.shape[1]

    def _store(self, samples: NDArray[Any], out: list[SpectrumBatch]) -> None:
        """Copy samples to the buffer's room; launch full batches while others are copied."""
        step = max(one.batch_frames * one.spec.hop + one.spec.win_length for one in self.launchers)
        with closing(self._buffer.append_steps(samples, step)) as appended:
            for _ in appended:
                for launcher in self.launchers:
                    launcher.positions.end = self._buffer.end
                self._advance(_FOREVER, out)

    def _skip(self, n: int) -> int:
        """Skip the samples that a hop longer than the window leaves out; return their number."""
        skipped = min(n, max(0, self._needs - self._buffer.end))
        if skipped:
            assert self._offset is not None
            self._offset += skipped
            for launcher in self.launchers:
                launcher.positions.shift(skipped)
        return skipped

    @property
    def _needs(self) -> int:
        return min(launcher.needs for launcher in self.launchers)

    def _room(self, out: list[SpectrumBatch]) -> int:
        """Make room; return the number of samples that may be appended.

        The buffer has two halves. When it is full, all frames in flight and all later frames start
        in the second half. Samples of later frames move to the front; frames in flight continue to
        read in place, and are waited for before new samples overwrite them, when they are usually
        done.
        """
        buffer = self._buffer
        half = buffer.capacity // 2
        if buffer.fill == buffer.capacity:
            while buffer.end - self._needs > half:
                self._deliver(min(self.launchers, key=lambda launcher: launcher.needs), out)
            buffer.move(min(buffer.end, *(one.positions.next for one in self.launchers)))
        if buffer.fill == half:
            self._wait_in_flight()
        return int(buffer.room.shape[1])

    def _wait_in_flight(self) -> None:
        try:
            for launcher in self.launchers:
                launcher.wait_in_flight()
        except DeviceError as error:
            self._fall_back(error)

    # ---- frames

    def _advance(self, wait_samples: float, out: list[SpectrumBatch]) -> None:
        """Submit full batches and frames that have waited long enough; deliver the latter."""
        self._submit_due(wait_samples, out)
        for launcher in self.launchers:
            while launcher.in_flight and launcher.waited(launcher.needs) >= wait_samples:
                self._deliver(launcher, out)

    def _submit_due(self, wait_samples: float, out: list[SpectrumBatch]) -> None:
        """Submit full batches and frames that have waited long enough."""
        for launcher in self.launchers:
            self._align(launcher)
            launcher.positions.skip_unwanted()
            for n_frames in _batches(launcher, wait_samples):
                is_cut = launcher.positions.finishes_lead(n_frames)
                self._submit(launcher, n_frames, out, is_cut=is_cut)
                self._align(launcher)

    def _align(self, launcher: FrameLauncher) -> None:
        if launcher.spec.align != "start" and self._clock is not None:
            launcher.positions.align(self._timing)

    @property
    def _timing(self) -> Timing:
        assert self._offset is not None
        assert self._clock is not None
        return Timing(self._offset, self._clock)

    def _submit(
        self,
        launcher: FrameLauncher,
        n_frames: int,
        out: list[SpectrumBatch],
        *,
        is_cut: bool = False,
    ) -> None:
        """Submit the next frames, or deliver a batch if no more may be in flight.

        Which frames come next then depends on whether the engine has failed: the caller asks again.
        """
        if len(launcher.in_flight) >= IN_FLIGHT_MAX:
            self._deliver(launcher, out)
        else:
            try:
                launcher.submit(n_frames, self._timing, is_cut=is_cut)
            except DeviceError as error:
                self._fall_back(error)
        launcher.positions.skip_unwanted()  # the rest of a row that a failure has broken

    def _deliver(self, launcher: FrameLauncher, out: list[SpectrumBatch]) -> None:
        try:
            batch = launcher.deliver()
        except DeviceError as error:
            self._fall_back(error)
            # All frames in flight may have been of a row that the failure has broken.
            batch = launcher.deliver() if launcher.in_flight else None
        if batch is not None:
            out.append(batch)

    def _move_to(self, engine: Engine, out: list[SpectrumBatch]) -> None:
        """Compute all later frames on another engine; averages continue."""
        self._advance(0.0, out)
        try:
            buffer, sizes = self._sized_buffer(engine)
            plans = [
                make_plan(engine, spec, buffer, size.block)
                for spec, size in zip(self.specs, sizes, strict=True)
            ]
        except DeviceError as error:
            _log.warning("%s cannot be used, continuing with NumPy: %s", engine.name, error)
            return
        old = self._buffer
        first = min(old.end, self._needs)
        buffer.append(old.data[:, old.place(first) : old.fill])
        if self._offset is not None:
            self._offset += first
        for launcher, plan, size in zip(self.launchers, plans, sizes, strict=True):
            launcher.positions.shift(first)
            launcher.move_to(engine, plan, buffer, size)
        self._buffer, self.engine = buffer, engine

    def _fall_back(self, error: DeviceError) -> None:
        """Recompute frames in flight, and compute all later ones, on the engine's fallback."""
        self.engine = self._fallback_for(error)
        self.engine_failures += 1
        for launcher in self.launchers:
            self.cut_frames += launcher.replay(self.engine)

    def _fallback_for(self, error: DeviceError) -> Engine:
        if self._out is not None:  # some of its rows are those of the failed engine
            raise error
        return fallback_for(self.engine, error)


def _batches(launcher: FrameLauncher, wait_samples: float) -> Iterator[int]:
    """Yield the sizes of batches to submit: full ones, and frames that may not wait.

    If none may wait, the sizes are about equal: a small batch takes long for its frames.
    """
    positions = launcher.positions
    while n_frames := positions.n_due:
        if n_frames >= launcher.batch_frames:
            n_batches = -(-n_frames // launcher.batch_frames)
            yield launcher.batch_frames if wait_samples else -(-n_frames // n_batches)
        elif positions.finishes_lead(n_frames) or launcher.waited(positions.next) >= wait_samples:
            yield n_frames
        else:
            return


def _checked_specs(specs: SpectrumSpec | Sequence[SpectrumSpec]) -> tuple[SpectrumSpec, ...]:
    several = (specs,) if isinstance(specs, SpectrumSpec) else tuple(specs)
    if not several:
        raise ConfigError("specs: must be at least one")
    for name in ("fs", "channels"):
        values = {getattr(spec, name) for spec in several}
        if len(values) > 1:
            raise ConfigError(f"{name}: must be the same for all specs, not {sorted(values)}")
    return several


def _check_batching(max_latency_s: Any, batch_frames: Any) -> None:
    if not (isinstance(max_latency_s, (int, float, np.floating)) and max_latency_s >= 0.0):
        raise ConfigError(f"max_latency_s={max_latency_s!r}: must be 0 s or more")
    whole = isinstance(batch_frames, (int, np.integer))
    if batch_frames is not None and not (whole and batch_frames >= 1):
        raise ConfigError(f"batch_frames={batch_frames!r}: must be at least 1, a whole number")


def _n_first(spec: SpectrumSpec) -> int:
    """Return in how many samples all frames end that start before them and may be submitted.

    The newest frame of an average may have to wait for the next one.
    """
    return spec.win_length + (spec.hop if spec.averaging_frames > 1 else -1)
