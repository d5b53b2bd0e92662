"""Source -> ring -> analysis -> sinks: wires the stages of one source."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Protocol

import numpy as np

from spectrod.analysis.engine import Engine
from spectrod.analysis.live_engine import LiveEngine
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.samples import to_float32
from spectrod.analysis.self_check import ERROR_MAX, SelfCheck
from spectrod.analysis.stream import FrameStream
from spectrod.daemon.attached_sinks import AttachedSink, AttachedSinks, FailureHandler
from spectrod.daemon.demand import Demand
from spectrod.dsp.blocks import Block, RangeTrimmer
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S, Float32Array
from spectrod.dsp.writer import Sink
from spectrod.lib.errors import (
    DeviceError,
    InputError,
    SpectrodError,
    UnavailableError,
)
from spectrod.lib.job_pool import JobPool, PoolJob, Steps, Wait
from spectrod.lib.latency import LatencyHistogram
from spectrod.lib.names import find_product
from spectrod.lib.stats import SLOW_ROW_S, CaptureStats, State, Stats
from spectrod.lib.wakeup import Wakeup
from spectrod.lib.worker import Worker
from spectrod.source.condition_track import ConditionTrack
from spectrod.source.open_source import Source

_log = logging.getLogger(__name__)

_READ_SAMPLES = 1 << 18
# Cap the read size so that catching up stays incremental with many channels.
_READ_BYTES = 1 << 22
_RESETS_MAX = 64
_NOTE_PERIOD_S = 1.0
_IDLE_S = 0.5
_TAPPED_S = 0.1
"""Pause between reads while nothing is computed [s]; the second one if something takes the samples.
"""
_IDLE_SPAN = 8
"""Pause at most this fraction of the time that the ring holds."""
_IDLE_BACKLOG_S = 1.0


def _raise(error: SpectrodError) -> None:
    raise error


class ChannelLevels(Protocol):
    """Levels of samples; see ``spectrod.source.checks``."""

    @property
    def rms_dbfs(self) -> tuple[float, ...]:
        """Level of each channel [dBFS]."""

    @property
    def peak_dbfs(self) -> tuple[float, ...]:
        """Highest magnitude of each channel [dBFS]."""


class Checks(Protocol):
    """Checks that only report on samples; see ``spectrod.source.checks``."""

    @property
    def active(self) -> tuple[str, ...]:
        """Conditions that are active now."""

    @property
    def clipped_samples(self) -> int:
        """Samples at full scale in runs of three or more, over all channels."""

    @property
    def level(self) -> "ChannelLevels":
        """Level and peak of each channel in the last second."""

    def look(self, samples: Float32Array) -> list[str]:
        """Check (channels, n) samples [FS]; return log lines on started and ended conditions."""


class Pipeline:
    """A source, its ring, its analysis, and the sinks and taps attached to it.

    The constructor opens nothing; ``start`` starts all parts, ``stop`` stops them in reverse order.
    The source has its own thread or process, the analysis has a thread, or both share a pool's.

    Parameters
    ----------
    source : Source
        The opened source, not started.
    specs : SpectrumSpec or sequence of them
        Spectra to compute, each with its own product; rate and channels are those of the source.
    engine : Engine or LiveEngine
        Computes the spectra. The pipeline owns it from here on; ``stop`` closes it.
    demand : Demand, optional
        Products to compute, and whether to pause, in addition to what attached sinks want; all by
        default.
    progress : Wakeup, optional
        Set when the pipeline has finished or failed.
    first_sample : int
        Index of the first sample to analyse; earlier ones are dropped.
    max_samples : int, optional
        Samples per channel from there on after which the source counts as ended.
    on_nonfinite : {"raise", "gap"}
        End the stream at samples that are not finite, or treat them as a gap.
    checks : Checks, optional
        Checks all samples; the findings are logged.
    conditions : ConditionTrack, optional
        Marks rows with the conditions of their samples.
    self_check : SelfCheck, optional
        Checks rows against NumPy; an engine whose rows are wrong counts as failed.
    on_change : callable
        Called by a thread of the source when ``Source.capture`` changes; must not block.
    on_end : callable
        Called by the analysis thread when the pipeline has finished or failed, not when stopped.
    note : callable
        Called by the analysis thread with the kind of an event (``spectrod.lib.events``) and its
        text: a gap, at most once per second; a failure of the engine; findings of the checks.
    pool : JobPool, optional
        Runs the analysis, which has a thread of its own without it.

    Attributes
    ----------
    range : RangeTrimmer
        Samples to analyse, and how many of them were read and are missing so far.
    capture_latency : LatencyHistogram
        Time from the last sample of a block to its reading by the analysis; of live sources only.
    analysis_latency : LatencyHistogram
        Time that the analysis of a block took, with waiting for the device.
    """

    def __init__(  # noqa: PLR0913 - wires all stages
        self,
        source: Source,
        specs: SpectrumSpec | Sequence[SpectrumSpec],
        engine: Engine | LiveEngine,
        *,
        demand: Demand | None = None,
        progress: Wakeup | None = None,
        first_sample: int = 0,
        max_samples: int | None = None,
        on_nonfinite: Literal["raise", "gap"] = "raise",
        checks: Checks | None = None,
        conditions: ConditionTrack | None = None,
        self_check: SelfCheck | None = None,
        on_change: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
        note: Callable[[str, str], None] = lambda _kind, _text: None,
        pool: JobPool | None = None,
    ) -> None:
        self.source, self.engine = source, engine
        self._open_stream = (
            engine.open_stream
            if isinstance(engine, LiveEngine)
            else partial(FrameStream, engine=engine)
        )
        self._sinks = AttachedSinks[SpectrumBatch]()
        self._taps = AttachedSinks[Block]()
        self._on_nonfinite: Literal["raise", "gap"] = on_nonfinite
        self.range = RangeTrimmer(first_sample, max_samples)
        self._checks, self._self_check = checks, self_check
        self._conditions, self._n_suspected = conditions, 0
        self._on_change, self._on_end = on_change, on_end
        self._note = note
        self._noted = (0, 0, 0, 0)
        self._note_due_s = -math.inf
        self._rows = 0
        self._read_utc_ns = 0
        self.capture_latency, self.analysis_latency = LatencyHistogram(), LatencyHistogram()
        self._state: State = "starting"
        self.failure: SpectrodError | None = None
        self._stopping = False
        self._done = self._has_stopped = False
        self.progress = progress or Wakeup()
        self.ring = source.open_reader()
        try:
            self._stream = self.prepare(specs)
        except BaseException:
            self.ring.release()
            raise
        self._coming_specs = self._stream.specs
        self._read_samples = max(1, min(_READ_SAMPLES, _READ_BYTES // (4 * self.spec.channels)))
        # The owner's thread appends, the analysis takes: a new item replaces one not yet taken.
        self._next_stream: deque[FrameStream] = deque(maxlen=1)
        self._resets: deque[str] = deque(maxlen=_RESETS_MAX)
        self.demand = demand or Demand()
        self.demand.touch()  # apply requests from before this pipeline
        self._idle_from = 0
        self._proven: frozenset[str] = frozenset()
        self._worker: Worker | PoolJob
        if pool:
            self._worker = pool.job("analysis", self._steps(), self._ended)
            self.demand.call(self._worker.wake)
        else:
            self._worker = Worker("analysis", self._run, self._ended)

    def start(self) -> None:
        """Start source and analysis; raises the SpectrodError of a part that cannot start."""
        # The source first: the analysis may wait only for samples that a started source delivers.
        self.source.start(self.ring, self._on_change)
        self._state = "running"
        self._worker.start()

    def run(self) -> None:
        """Start the source, and analyse it to its end in this thread, instead of ``start``.

        It saves the start of a thread, and waiting for it: as long as a short source takes. Raises
        the SpectrodError of a source that cannot start.
        """
        self._state = "running"
        self.source.start(self.ring, self._on_change)
        Worker("analysis", self._run, self._ended).run()

    def ask_to_stop(self) -> None:
        """Let the analysis end soon if a pool runs it, of many at once; call ``stop`` after it."""
        if isinstance(self._worker, PoolJob) and not self._has_stopped:
            self._done = self._stopping = True
            self.ring.close()
            self.demand.touch()

    def stop(self) -> None:
        """Stop source and analysis; samples already read still go to the sinks. Idempotent."""
        if self._has_stopped:
            return
        self._has_stopped = self._done = True
        self.source.stop()
        self._stopping = True
        self.ring.close()
        self.demand.touch()
        self._worker.wait()
        self.engine.close()
        self.ring.release()
        if self._state == "starting":
            self._state = "stopped"

    def end(self) -> None:
        """End the source; the analysis finishes after the samples already delivered."""
        self.source.stop()
        self.ring.close()
        self.demand.touch()

    def lease(self, product: str, seconds: float) -> None:
        """Compute a product for a duration, for occasional requests; any thread.

        Raises
        ------
        ConfigError
            If there is no such product.
        """
        self.demand.lease(self._find(product).product, seconds)

    def _find(self, product: str) -> SpectrumSpec:
        return find_product(product, {spec.product: spec for spec in self._coming_specs})

    def reset(self, product: str = "") -> None:
        """Restart averages and holds, of a product or of all, from the next block on.

        Any thread. Of more than 64 requests between two blocks, the oldest are dropped.

        Raises
        ------
        ConfigError
            If there is no such product.
        """
        self._find(product)
        self._resets.append(product)

    def attach(
        self,
        sink: Sink[SpectrumBatch],
        product: str = "",
        on_failure: FailureHandler = _raise,
        *,
        wants: bool = True,
    ) -> None:
        """Pass all batches of a product to a sink, from the next block on, until ``detach``.

        Any thread.

        Parameters
        ----------
        sink : Sink of SpectrumBatch
            Must accept changes of the product's spec.
        product : str
            An existing product; empty: all.
        on_failure : callable
            Called by the analysis thread with the sink's exception, after the sink was detached. By
            default the failure ends the pipeline.
        wants : bool
            Compute the product for this sink. Otherwise the sink gets only batches that are
            computed for others.

        Raises
        ------
        ConfigError
            If there is no such product.
        """
        self._find(product)
        self._sinks.attach(AttachedSink(sink, on_failure, product, wants))
        self.demand.touch()

    def detach(self, sink: Sink[SpectrumBatch]) -> None:
        """Detach a sink; on return it is not called any more. Must not be called by a sink."""
        self._sinks.detach(sink)
        self.demand.touch()

    def tap(self, tap: Sink[Block], on_failure: FailureHandler = _raise) -> None:
        """Pass all samples to a tap, from the next block on, until ``untap``.

        Any thread. Samples are read even if nothing is computed.

        Parameters
        ----------
        tap : Sink of Block
            Receives blocks before they are analysed, as the ring returns them, with their gaps.
        on_failure : callable
            Called by the analysis thread with the tap's exception, after the tap was detached. By
            default the failure ends the pipeline.
        """
        self._taps.attach(AttachedSink(tap, on_failure))

    def untap(self, tap: Sink[Block]) -> None:
        """Remove a tap; on return it is not called any more. Must not be called by a tap."""
        self._taps.detach(tap)

    def reconfigure(self, specs: SpectrumSpec | Sequence[SpectrumSpec]) -> None:
        """Change the analysis of a running pipeline, from the next block on.

        Raises
        ------
        ConfigError, UnavailableError
            If the engine cannot compute it, or memory is short; the old analysis continues.
        """
        self.change_to(self.prepare(specs))

    def prepare(self, specs: SpectrumSpec | Sequence[SpectrumSpec]) -> FrameStream:
        """Create an analysis for ``change_to``; raises like ``reconfigure``."""
        # Frames wait for a full batch only while more samples are readable.
        layout = self.ring.layout
        try:
            return self._open_stream(
                specs,
                on_nonfinite=self._on_nonfinite,
                sample_format=layout.sample_format,
                interleaved=layout.interleaved,
                max_latency_s=float("inf"),
            )
        except MemoryError as error:
            raise _no_memory(specs, error) from error

    def change_to(self, stream: FrameStream) -> None:
        """Continue with a prepared analysis from the next block on."""
        self._coming_specs = stream.specs
        self._next_stream.append(stream)
        self.demand.touch()

    @property
    def spec(self) -> SpectrumSpec:
        """Spec of the first product."""
        return self._stream.spec

    @property
    def specs(self) -> tuple[SpectrumSpec, ...]:
        """Specs of all products."""
        return self._stream.specs

    @property
    def _products(self) -> tuple[str, ...]:
        return tuple(spec.product for spec in self.specs)

    @property
    def coming_specs(self) -> tuple[SpectrumSpec, ...]:
        """Specs of all products from the next block on."""
        return self._coming_specs

    @property
    def longest_block_s(self) -> float:
        """Longest block that taps receive [s]; rows of its samples follow it."""
        return self._read_samples / self.spec.fs

    @property
    def finished(self) -> bool:
        """True if no batch will follow: all were passed on, or the pipeline ended early."""
        return self._state in ("finished", "failed", "stopped")

    def raise_failure(self) -> None:
        """Raise the failure that ended the pipeline, if any."""
        if self.failure is not None:
            raise self.failure

    def left_out_samples(self) -> dict[str, int]:
        """Return the number of samples outside all frames, of each product; see ``FrameStream``.

        Call it after the pipeline has finished.
        """
        stream = self._stream
        products = (spec.product for spec in stream.specs)
        return dict(zip(products, stream.left_out_samples(), strict=True))

    def stats(self) -> Stats:
        """Return a snapshot of the counters; any thread may call it."""
        capture, checks = self.source.capture(), self._checks
        computed = self._stream.wanted
        return Stats(
            state=self._state_with(capture),
            source=self.source.description,
            engine=self._stream.engine.name,
            fs=self.source.fs,
            channels=self.source.channels,
            samples=self.ring.written,
            analysed=self.ring.taken,
            rows=self._rows,
            overflows=self.ring.overflows,
            overruns=self.ring.overruns,
            gaps=self._stream.gaps,
            gap_samples=self._stream.gap_samples,
            ring_peak=self.ring.peak_fill,
            engine_failures=self._stream.engine_failures,
            self_checks=self._self_check.count if self._self_check else 0,
            self_check_error=self._self_check.largest_error if self._self_check else None,
            capture=capture,
            checks=checks.active if checks else (),
            clipped_samples=checks.clipped_samples if checks else 0,
            level_dbfs=checks.level.rms_dbfs if checks else (),
            peak_dbfs=checks.level.peak_dbfs if checks else (),
            last_sample_utc_ns=self._read_utc_ns,
            name=self.source.name,
            products=self._products,
            unit=self.specs[0].scale.unit,
            cal_id=self.specs[0].scale.cal_id,
            computed=computed,
            row_due_samples=_row_due_samples(self._stream, computed),
        )

    def _state_with(self, capture: CaptureStats) -> State:
        if self._state != "running":
            return self._state
        if capture.waiting_for:
            return "waiting"
        if self.demand.is_paused:
            return "paused"
        has_run_long = self.range.read_samples >= SLOW_ROW_S * self.source.fs
        return "running" if self._rows or has_run_long else "starting"

    # ---- the analysis thread, or a job

    def _run(self) -> None:
        for pause_s in self._analyse_all():
            if pause_s > 0.0:
                self.demand.wait(pause_s)
            else:
                self.ring.wait()

    def _steps(self) -> Steps:
        for pause_s in self._analyse_all():
            yield Wait(time.monotonic() + pause_s) if pause_s > 0.0 else self.ring.awaited()
            self.ring.wait(0.0)

    def _analyse_all(self) -> Iterator[float]:
        """Analyse all samples; yield when there are none, see ``_pause_s``."""
        try:
            yield from self._analyse()
        except InputError as error:
            raise InputError(f"{self.source.description}: {error}") from error
        except MemoryError as error:
            raise _no_memory(self.specs, error) from error
        if self.source.failure:
            raise self.source.failure

    def _ended(self, failure: SpectrodError | None) -> None:
        self.failure = failure
        self._state = self._last_state()
        if self._state != "stopped":
            self._on_end()
        self.progress.set()

    def _last_state(self) -> State:
        if self.failure:
            return "failed"
        return "stopped" if self._done else "finished"

    def _analyse(self) -> Iterator[float]:
        while not (self.ring.exhausted or self._stopping or self.range.left == 0):
            n = min(self._read_samples, self.range.left or self._read_samples)
            read = self.ring.read(n, self._stream.reserve(n))
            if read is None:
                # It is unknown when more samples come, so no frame waits for them.
                self._hand_on(self._stream.flush())
                self._run_self_check()
                yield self._pause_s()
            elif (block := self.range.trim(read)) is not None:
                self._note_arrival(block)
                self._take_changes()
                self._show(block)
                self._hand_on(self._push(block))
                self._note_losses()
        self._hand_on(self._stream.finish())

    def _push(self, block: Block) -> list[SpectrumBatch]:
        before_s = time.perf_counter()
        batches = self._stream.push(block)
        self.analysis_latency.add(time.perf_counter() - before_s)
        return batches

    def _note_arrival(self, block: Block) -> None:
        self._read_utc_ns = time.time_ns()
        if self.source.is_live:
            end_ns = block.t_mono_ns + block.n_samples / self.spec.fs * NS_PER_S
            self.capture_latency.add((time.monotonic_ns() - end_ns) / NS_PER_S)

    def _run_self_check(self) -> None:
        """Recompute a row, when no samples wait."""
        check = self._self_check
        if not (check and check.is_ready):
            return
        error = check.run(self._stream.layout)
        name = self._stream.engine.name
        if error is None or error <= ERROR_MAX or name == NumpyEngine.name:
            return  # the device may have failed since the row
        text = f"{name}: a row is wrong: error {error:.2g} relative to float64, over {ERROR_MAX:g}"
        self._note("engine.wrong", text)
        self._stream.distrust(DeviceError(text))

    def _pause_s(self) -> float:
        """Return how long to wait for a change while nothing is computed [s]; 0: for samples."""
        before, self._idle_from = self._idle_from, self.ring.taken
        # Do not throttle non-live sources.
        is_fast = self._idle_from - before > _IDLE_BACKLOG_S * self.spec.fs
        pause_s = 0.0
        if not (is_fast or self._stream.wanted or self.demand.has_changed):
            longest_s = _TAPPED_S if self._taps else _IDLE_S
            pause_s = min(longest_s, self.ring.span_s / _IDLE_SPAN)
        self.ring.relax(pause_s)
        return pause_s

    def _show(self, block: Block) -> None:
        """Show samples to all that look at them before they are analysed."""
        if self._checks or self._conditions or self._taps:
            as_float = to_float32(block.samples, self._stream.layout.sample_format)
            if self._checks:
                self._check(self._checks.look(as_float))
            if self._conditions:
                before, self._n_suspected = self._n_suspected, self._suspected
                as_floats = replace(block, samples=as_float)
                self._conditions.write(as_floats, is_suspected=self._n_suspected > before)
            if self._taps:
                # Copy: a tap may keep the block, while the stream reuses its memory.
                own = as_float.copy() if as_float is block.samples else as_float
                self._taps.write(replace(block, samples=own))
        if self._self_check:
            self._self_check.take(block, self._stream)

    @property
    def _suspected(self) -> int:
        return self.ring.overflows + self.ring.suspected

    def _check(self, lines: list[str]) -> None:
        for line in lines:
            _log.warning("%s: %s", self.source.name, line)
            self._note("source.checks", line)

    def _note_losses(self) -> None:
        stream = self._stream
        now = (stream.gaps, stream.gap_samples, stream.engine_failures, self.ring.overruns)
        if now == self._noted or time.monotonic() < self._note_due_s:
            return
        gaps, samples, failures, overruns = np.subtract(now, self._noted).tolist()
        self._noted, self._note_due_s = now, time.monotonic() + _NOTE_PERIOD_S
        if overruns:
            _log.warning(
                "%s: samples were overwritten before they were analysed (overrun, %d so far): "
                "this process was held up",
                self.source.name,
                self.ring.overruns,
            )
        if gaps:
            self._note("source.gap", f"{samples} samples lost in {gaps} gaps")
        if failures:
            self._note("engine.failed", f"going on with {stream.engine.name}")

    def _take_changes(self) -> None:
        """Apply the requests of other threads."""
        if self._next_stream:
            self._take_new_stream()
        while self._resets:
            self._hand_on(self._stream.reset(self._resets.popleft()))
        if self.demand.take_change():
            unproven = {*self._products} - self._proven
            used = [product for product in self._products if self._sinks.want(product)]
            self._hand_on(self._stream.want(self.demand.wanted(unproven, used)))

    def _take_new_stream(self) -> None:
        self._hand_on(self._stream.finish())
        stream = self._next_stream.pop()
        stream.inherit_counts(self._stream)
        self._stream = stream
        if self._self_check:
            self._self_check.reset()
        self._proven = frozenset()
        self.demand.touch()

    def _hand_on(self, batches: list[SpectrumBatch]) -> None:
        if self._self_check:
            self._self_check.note(batches)
        overflows, suspected = self.ring.overflows, self.ring.suspected
        for batch in batches:
            self._rows += batch.n_frames
            if overflows or suspected:
                batch = replace(batch, overflows=overflows, suspected=suspected)  # noqa: PLW2901
            if self._conditions:
                batch = self._conditions.mark(batch)  # noqa: PLW2901
            self._sinks.write(batch, batch.spec.product)
            if batch.spec.product not in self._proven:
                self._proven |= {batch.spec.product}
                self.demand.touch()


def _row_due_samples(stream: FrameStream, products: Sequence[str]) -> int:
    """Return the samples within which a row of these products must come; 0 without products."""
    specs = [spec for spec in stream.specs if spec.product in products]
    # Two rows and a window, because a product may become wanted within a row. Rows aligned to the
    # clock are this far apart at most, at their start and where the clock is stepped.
    due = (2 * math.ceil(spec.row_step) + spec.win_length for spec in specs)
    return min(due, default=0)


def _no_memory(
    specs: SpectrumSpec | Sequence[SpectrumSpec], error: MemoryError
) -> UnavailableError:
    several = (specs,) if isinstance(specs, SpectrumSpec) else specs
    largest = max(several, key=lambda spec: spec.nfft)
    return UnavailableError(
        f"channels={largest.channels}, nfft={largest.nfft}: no memory for the analysis: {error}"
    )
