"""What a running pipeline says of itself."""

from dataclasses import dataclass
from typing import Literal

from spectrod.text import printable

State = Literal["starting", "running", "paused", "waiting", "finished", "failed", "stopped"]
"""``waiting``: the source delivers nothing at the moment and is being sought again. ``paused``: it
was asked that nothing be computed."""


@dataclass(frozen=True, slots=True)
class CaptureStats:
    """What a source says of how its samples arrive, all since its start."""

    waiting_for: str = ""
    """Why no samples come, for a person, made ``printable``; empty while they do."""
    restarts: int = 0
    """Times that the capture broke off and was begun again."""
    attempts: int = 0
    """Times that it was tried to begin, or to begin again, with whatever success."""
    overruns: int = 0
    """Times that the ring between the capture's process and ours was overwritten before we read."""
    suspected: int = 0
    """Losses that no flag told of, found by counting samples against the clock."""
    suspected_samples: int = 0
    """Samples a channel missing in them."""
    left_out_files: int = 0
    """Files of the source that are left out or read in part."""
    rate_error_ppm: float | None = None
    """Measured over nominal sample rate, less one, by this machine's monotonic clock [1e-6]."""
    rate_uncertainty_ppm: float | None = None
    """Half width of its 95 % interval [1e-6]."""
    jitter_s: float | None = None
    """How far deliveries lie behind the soonest ones, at the median [s]."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "waiting_for", printable(self.waiting_for))


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot of a pipeline's counters, all since its start.

    Four kinds of loss have four names: *overflow* (the sound system's flag), *overrun* (our ring
    was overwritten before the analysis read it), *drop* (a sink's queue was full), and *gap*
    (samples missing between two frames, whatever the cause; no frame spans one).

    ``source``, ``engine`` and ``checks`` are texts for a person, made ``printable``: devices, files
    and drivers have a say in them, and they go into logs, messages and replies.
    """

    state: State
    source: str
    """Kind of the source and what it is, for a person."""
    engine: str
    """What computes the spectra, for example ``opencl:PoCL/AMD EPYC`` or ``numpy``."""
    fs: float
    """Sample rate [Hz]; 0 while the source was never there."""
    channels: int
    """That are analysed; 0 while the source was never there."""
    samples: int
    """Samples a channel that the source has written to the ring, lost ones included."""
    frames: int
    """Rows computed, of all products: frames, or averages over them."""
    messages: int
    """Spectrum messages handed to ZeroMQ."""
    overflows: int
    """Blocks that arrived with the sound system's overflow flag."""
    overruns: int
    """Times one of our rings was overwritten before it was read."""
    dropped: int
    """Frames that a sink dropped because its queue was full."""
    gaps: int
    """Discontinuities seen by the analysis."""
    gap_samples: int
    """Samples a channel missing in them, as far as is known."""
    ring_peak: float
    """Highest fill of the ring when it was read, 0 to 1."""
    engine_failures: int = 0
    """Times that the engine failed and NumPy went on, with no frame lost."""
    capture: CaptureStats = CaptureStats()
    checks: tuple[str, ...] = ()
    """What is odd about the samples now, such as ``silent: 0``; see ``spectrod.source.checks``."""
    clipped_samples: int = 0
    """Samples at full scale in runs of three or more, over all channels."""
    name: str = ""
    """What topics call the source."""
    heartbeats: int = 0
    """Signs of life handed to ZeroMQ."""
    analysed: int = 0
    """Samples a channel that the analysis has taken, lost ones included."""
    products: tuple[str, ...] = ()
    """What can be computed, the main one first."""
    computed: tuple[str, ...] = ()
    """What of it is computed now: what somebody wants, and what has not given its first row."""
    row_due_samples: int = 0
    """Samples within which a row must come of what is computed; 0 if nothing is."""
    subscribers: int = 0
    """Subscriptions to spectra of the daemon that live now."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", printable(self.source))
        object.__setattr__(self, "engine", printable(self.engine))
        object.__setattr__(self, "checks", tuple(map(printable, self.checks)))
