"""Source -> ring -> analysis -> sinks: the one place where one source's stages are wired."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, Protocol

from spectrod.analysis.engine import Engine
from spectrod.analysis.stream import FrameStream
from spectrod.errors import InputError, InternalError, SpectrodError, UnavailableError
from spectrod.ring import SampleRing
from spectrod.source import Source
from spectrod.stats import CaptureStats, State, Stats
from spectrod.types import Block, SpectrumBatch, SpectrumSpec
from spectrod.units import Float32Array
from spectrod.wakeup import Wakeup

_log = logging.getLogger(__name__)

_RING_SECONDS = 4.0
_RING_MIN_SAMPLES = 1 << 17
_READ_SAMPLES = 1 << 16
# Of many channels a backlog would else be read in one piece that takes longer than it was behind.
_READ_BYTES = 1 << 22


class Sink(Protocol):
    """What takes spectra; called by the analysis thread, so it must not block for long."""

    def submit(self, batch: SpectrumBatch) -> None:
        """Take a batch; it must not be changed afterwards."""


class Checks(Protocol):
    """What looks at samples and only reports: ``spectrod.source.checks``."""

    @property
    def active(self) -> tuple[str, ...]:
        """What is odd now."""

    @property
    def clipped_samples(self) -> int:
        """Samples at full scale in runs of three or more, over all channels."""

    def look(self, samples: Float32Array) -> list[str]:
        """Take (channels, n) samples [FS]; return lines for the log: what begins, what ends."""


class Pipeline:
    """A source, its ring, its analysis and what becomes of the spectra.

    Constructing opens nothing; ``start`` starts every part, ``stop`` stops them in reverse order.
    The source has a thread or a process of its own, the analysis a thread.

    Parameters
    ----------
    source : Source
        Opened, not started.
    spec : SpectrumSpec
        What to compute; rate and channels are the source's.
    engine : Engine
        What computes; the pipeline's from here on, closed by ``stop``.
    sinks : sequence of Sink
        Called for each batch, in order, by the analysis thread.
    progress : Wakeup, optional
        Set when the pipeline has finished or failed.
    max_samples : int, optional
        Samples a channel after which the source counts as ended.
    on_nonfinite : {"raise", "gap"}
        Whether samples that are not finite end the stream or interrupt it.
    checks : Checks, optional
        Looks at all samples, for what is odd about them; what it finds is logged.
    on_end : callable
        Called by the analysis thread when the pipeline has finished or failed, not when stopped.
    """

    def __init__(  # noqa: PLR0913 - it is the place where everything meets
        self,
        source: Source,
        spec: SpectrumSpec,
        engine: Engine,
        *,
        sinks: Sequence[Sink] = (),
        progress: Wakeup | None = None,
        max_samples: int | None = None,
        on_nonfinite: Literal["raise", "gap"] = "raise",
        checks: Checks | None = None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.source, self.engine = source, engine
        self._sinks = tuple(sinks)
        self._on_nonfinite: Literal["raise", "gap"] = on_nonfinite
        self._max_samples = max_samples
        self._checks = checks
        self._on_end = on_end
        self._frames = 0
        self._state: State = "starting"
        self.failure: SpectrodError | None = None
        self._stopping = False
        self._done = False
        self.progress = progress or Wakeup()
        capacity = max(_RING_MIN_SAMPLES, round(_RING_SECONDS * spec.fs))
        self.ring = SampleRing(spec.fs, spec.channels, capacity)
        self._read_samples = min(_READ_SAMPLES, _READ_BYTES // (4 * spec.channels))
        self._stream = self.prepare(spec)
        # The owner's thread appends, the analysis takes: a newer one replaces one not yet taken.
        self._next_stream: deque[FrameStream] = deque(maxlen=1)
        self._thread = threading.Thread(target=self._run, name="spectrod-analysis", daemon=True)

    def start(self) -> None:
        """Start analysis and source; raises the SpectrodError of what cannot start."""
        self._state = "running"
        self._thread.start()
        self.source.start(self.ring)

    def stop(self) -> None:
        """Stop source and analysis; what has been read goes to the sinks first. Idempotent."""
        if self._done:
            return
        self._done = True
        self.source.stop()
        self._stopping = True
        self.ring.close()
        if self._thread.is_alive():
            self._thread.join()
        self.engine.close()
        self.ring.release()
        if self._state == "starting":
            self._state = "stopped"

    def end(self) -> None:
        """End the source; what it has delivered is still analysed, then ``finished`` is true."""
        self.source.stop()

    def reconfigure(self, spec: SpectrumSpec) -> None:
        """Change the analysis of a running pipeline, from the next block on.

        Raises
        ------
        ConfigError, UnavailableError
            If the engine cannot do it, or there is no memory for it; the old analysis goes on.
        """
        self.change_to(self.prepare(spec))

    def prepare(self, spec: SpectrumSpec) -> FrameStream:
        """Make an analysis that ``change_to`` will take; raises as ``reconfigure``."""
        # Frames wait for a batch to fill only while more samples are there to be read.
        try:
            return FrameStream(spec, self.engine, self._on_nonfinite, max_latency_s=float("inf"))
        except MemoryError as error:
            raise _no_memory(spec, error) from error

    def change_to(self, stream: FrameStream) -> None:
        """Go on with an analysis that was prepared, from the next block on."""
        self._next_stream.append(stream)

    @property
    def spec(self) -> SpectrumSpec:
        """What is being computed."""
        return self._stream.spec

    @property
    def finished(self) -> bool:
        """True when nothing more will come: all has gone to the sinks, or it ended early."""
        return self._state in ("finished", "failed", "stopped")

    def raise_failure(self) -> None:
        """Raise what ended the pipeline, if it failed."""
        if self.failure is not None:
            raise self.failure

    def stats(self) -> Stats:
        """Take a snapshot of the counters; any thread may call it."""
        capture, checks = self.source.capture(), self._checks
        return Stats(
            state=self._state_with(capture),
            source=self.source.description,
            engine=self._stream.engine.name,
            fs=self.source.fs,
            channels=self.source.channels,
            samples=self.ring.written,
            frames=self._frames,
            messages=0,
            overflows=self.ring.overflows,
            overruns=self.ring.overruns + capture.overruns,
            dropped=0,
            gaps=self._stream.gaps,
            gap_samples=self._stream.gap_samples,
            ring_peak=self.ring.peak_fill,
            engine_failures=self._stream.engine_failures,
            capture=capture,
            checks=checks.active if checks else (),
            clipped_samples=checks.clipped_samples if checks else 0,
            name=self.source.name,
        )

    def _state_with(self, capture: CaptureStats) -> State:
        if self._state != "running":
            return self._state
        if capture.waiting_for:
            return "waiting"
        return "running" if self._frames else "starting"

    # ---- the analysis thread

    def _run(self) -> None:
        try:
            self._analyse()
            self.failure = self.source.failure
        except InputError as error:
            self.failure = InputError(f"{self.source.description}: {error}")
        except SpectrodError as error:
            self.failure = error
        except MemoryError as error:
            self.failure = _no_memory(self.spec, error)
        except Exception as error:  # noqa: BLE001
            # The top of a thread: whatever it is must reach the main thread, not be lost here.
            _log.exception("analysis failed")
            self.failure = InternalError(f"analysis failed: {error!r}; please report this")
        self._state = self._last_state()
        if self._state != "stopped":
            self._on_end()
        self.progress.set()

    def _last_state(self) -> State:
        if self.failure:
            return "failed"
        return "stopped" if self._done else "finished"

    def _analyse(self) -> None:
        n_left, n_max = self._max_samples, self._read_samples
        while not (self.ring.exhausted or self._stopping or n_left == 0):
            block = self.ring.read(n_max if n_left is None else min(n_max, n_left))
            if block is None:
                # Nobody knows when more will come: no frame waits for that.
                self._hand_on(self._stream.flush())
                self.ring.data.wait()
                continue
            if n_left is not None:
                block = _up_to(n_left, block)
                if block is None:
                    break
                n_left -= block.lost_samples + block.n_samples
            self._take_new_stream()
            self._check(block)
            self._hand_on(self._stream.push(block))
        self._hand_on(self._stream.flush())

    def _check(self, block: Block) -> None:
        if self._checks:
            for line in self._checks.look(block.samples):
                _log.warning("%s: %s", self.source.name, line)

    def _take_new_stream(self) -> None:
        if self._next_stream:
            self._hand_on(self._stream.flush())
            stream = self._next_stream.pop()
            stream.take_over(self._stream)
            self._stream = stream

    def _hand_on(self, batches: list[SpectrumBatch]) -> None:
        for batch in batches:
            self._frames += batch.n_frames
            for sink in self._sinks:
                sink.submit(batch)


def _up_to(n: int, block: Block) -> Block | None:
    """Leave of a block what lies within n samples, missing ones included; None if none does."""
    n_within = n - block.lost_samples
    return replace(block, samples=block.samples[:, :n_within]) if n_within > 0 else None


def _no_memory(spec: SpectrumSpec, error: MemoryError) -> UnavailableError:
    return UnavailableError(
        f"channels={spec.channels}, nfft={spec.nfft}: no memory for the analysis: {error}"
    )
