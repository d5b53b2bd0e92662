"""Source -> ring -> analysis -> sinks: the one place where the stages are wired together."""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Literal, Protocol

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.stream import FrameStream
from spectrod.config import Config
from spectrod.errors import InputError, InternalError, SpectrodError, UnavailableError
from spectrod.ring import SampleRing
from spectrod.source import Source, open_source
from spectrod.stats import State, Stats
from spectrod.types import SpectrumBatch, SpectrumSpec
from spectrod.wakeup import Wakeup
from spectrod.wire.publisher import Publisher

_log = logging.getLogger(__name__)

_RING_SECONDS = 4.0
_RING_MIN_SAMPLES = 1 << 17
_READ_SAMPLES = 1 << 16
# Of many channels a backlog would else be read in one piece that takes longer than it was behind.
_READ_BYTES = 1 << 22


def build_daemon(config: Config) -> "Pipeline":
    """Make the daemon's pipeline: source, engine, publisher; nothing is started.

    Raises
    ------
    SpectrodError
        Of the part that cannot be made.
    """
    source = open_source(config.source, pace="realtime")
    spec = config.analysis.spec(source.fs, source.channels)
    progress = Wakeup()
    publisher = Publisher(
        config.publish.endpoints,
        source.name,
        device=source.description,
        insecure=config.publish.insecure,
        queue_frames=config.publish.queue_frames,
        high_water_mark=config.publish.high_water_mark,
        overflows=lambda: pipeline.ring.overflows,
        progress=progress,
    )
    engine = open_engine(config.engine.engine, config.engine.device)
    pipeline = Pipeline(
        source, spec, engine, publisher=publisher, progress=progress, on_nonfinite="gap"
    )
    return pipeline


class Sink(Protocol):
    """What takes spectra; called by the analysis thread, so it must not block for long."""

    def submit(self, batch: SpectrumBatch) -> None:
        """Take a batch; it must not be changed afterwards."""


class Pipeline:
    """A source, its ring, its analysis and what becomes of the spectra.

    Constructing opens nothing; ``start`` starts every part, ``stop`` stops them in reverse order.
    The source has a thread of its own (or PortAudio's), the analysis one, the publisher one.

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
    publisher : Publisher, optional
        The sink that has a thread to start and stop.
    progress : Wakeup, optional
        Set when the pipeline has finished or failed; share the publisher's to hear of both.
    max_samples : int, optional
        Samples a channel after which the source counts as ended.
    on_nonfinite : {"raise", "gap"}
        Whether samples that are not finite end the stream or interrupt it.
    """

    def __init__(  # noqa: PLR0913 - it is the place where everything meets
        self,
        source: Source,
        spec: SpectrumSpec,
        engine: Engine,
        *,
        sinks: Sequence[Sink] = (),
        publisher: Publisher | None = None,
        progress: Wakeup | None = None,
        max_samples: int | None = None,
        on_nonfinite: Literal["raise", "gap"] = "raise",
    ) -> None:
        self.source, self.engine, self.publisher = source, engine, publisher
        self._sinks = [*sinks, *([publisher] if publisher else [])]
        self._on_nonfinite: Literal["raise", "gap"] = on_nonfinite
        self._max_samples = max_samples
        self._frames = 0
        self._state: State = "starting"
        self._failure: SpectrodError | None = None
        self._stopping = False
        self._done = False
        self.progress = progress or Wakeup()
        capacity = max(_RING_MIN_SAMPLES, round(_RING_SECONDS * spec.fs))
        self.ring = SampleRing(spec.fs, spec.channels, capacity)
        self._read_samples = min(_READ_SAMPLES, _READ_BYTES // (4 * spec.channels))
        self._stream = self._make_stream(spec)
        # The owner's thread appends, the analysis takes: a newer one replaces one not yet taken.
        self._next_stream: deque[FrameStream] = deque(maxlen=1)
        self._thread = threading.Thread(target=self._run, name="spectrod-analysis", daemon=True)

    def start(self) -> None:
        """Start publisher, analysis and source; raises the SpectrodError of what cannot start."""
        if self.publisher:
            self.publisher.start()
        self._state = "running"
        self._thread.start()
        self.source.start(self.ring)

    def stop(self) -> None:
        """Stop source, analysis and publisher; what is queued goes out first. Idempotent."""
        if self._done:
            return
        self._done = True
        self.source.stop()
        self._stopping = True
        self.ring.close()
        if self._thread.is_alive():
            self._thread.join()
        if self.publisher:
            self.publisher.stop()
        self.engine.close()
        self.ring.release()
        if self._state == "running":
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
        self._next_stream.append(self._make_stream(spec))

    def _make_stream(self, spec: SpectrumSpec) -> FrameStream:
        # Frames wait for a batch to fill only while more samples are there to be read.
        try:
            return FrameStream(spec, self.engine, self._on_nonfinite, max_latency_s=float("inf"))
        except MemoryError as error:
            raise _no_memory(spec, error) from error

    @property
    def spec(self) -> SpectrumSpec:
        """What is being computed."""
        return self._stream.spec

    @property
    def finished(self) -> bool:
        """True when nothing more will come: all frames have gone to the sinks, or a part failed."""
        return self._state in ("finished", "failed") or self._publisher_failure is not None

    @property
    def _publisher_failure(self) -> Exception | None:
        return self.publisher.failure if self.publisher else None

    def raise_failure(self) -> None:
        """Raise what ended the pipeline, if it failed."""
        failure = self._failure or self._publisher_failure
        if isinstance(failure, SpectrodError):
            raise failure
        if failure is not None:
            raise InternalError(f"publisher: {failure!r}; please report this") from failure

    def stats(self) -> Stats:
        """Take a snapshot of the counters."""
        publisher = self.publisher
        return Stats(
            state=self._state,
            source=self.source.description,
            engine=self._stream.engine.name,
            fs=self.source.fs,
            channels=self.source.channels,
            samples=self.ring.written,
            frames=self._frames,
            messages=publisher.messages if publisher else 0,
            overflows=self.ring.overflows,
            overruns=self.ring.overruns,
            dropped=publisher.dropped if publisher else 0,
            gaps=self._stream.gaps,
            gap_samples=self._stream.gap_samples,
            ring_peak=self.ring.peak_fill,
            engine_failures=self._stream.engine_failures,
        )

    # ---- the analysis thread

    def _run(self) -> None:
        try:
            self._analyse()
            self._failure = self._failure or self.source.failure
        except InputError as error:
            self._failure = InputError(f"{self.source.description}: {error}")
        except SpectrodError as error:
            self._failure = error
        except MemoryError as error:
            self._failure = _no_memory(self.spec, error)
        except Exception as error:  # noqa: BLE001
            # The top of a thread: whatever it is must reach the main thread, not be lost here.
            _log.exception("analysis failed")
            self._failure = InternalError(f"analysis failed: {error!r}; please report this")
        self._state = "failed" if self._failure else "finished"
        if self.publisher:
            self.publisher.state = self._state  # its last heartbeat tells subscribers
        self.progress.set()

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
                n_left = max(0, n_left - block.lost_samples - block.n_samples)
            self._take_new_stream()
            self._hand_on(self._stream.push(block))
        self._hand_on(self._stream.flush())

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


def _no_memory(spec: SpectrumSpec, error: MemoryError) -> UnavailableError:
    return UnavailableError(
        f"channels={spec.channels}, nfft={spec.nfft}: no memory for the analysis: {error}"
    )
