"""Counters and state of a running pipeline."""

from dataclasses import dataclass
from typing import Literal

from spectrod.lib.text import printable

SLOW_ROW_S = 5.0
"""A source is up without a first row once so much was analysed: the row takes longer [s]."""

State = Literal["starting", "running", "paused", "waiting", "finished", "failed", "stopped"]
"""``waiting``: the source delivers nothing at the moment, and the daemon tries to reopen it.
``paused``: a peer has stopped the computation."""


@dataclass(frozen=True, slots=True)
class CaptureStats:
    """Counters of a source's capture since its start."""

    waiting_for: str = ""
    """Printable reason why no samples arrive; empty while they do."""
    restarts: int = 0
    """Restarts of the capture."""
    attempts: int = 0
    """Attempts to start or restart the capture, successful or not."""
    suspected: int = 0
    """Unflagged losses, found by counting samples against the clock."""
    suspected_samples: int = 0
    """Samples per channel missing in these losses."""
    left_out_files: int = 0
    """Files of the source that were skipped or read only in part."""
    rate_error_ppm: float | None = None
    """Measured over nominal sample rate, minus one, by this machine's monotonic clock [1e-6]."""
    rate_uncertainty_ppm: float | None = None
    """Half width of its 95 % interval [1e-6]."""
    jitter_s: float | None = None
    """Median delay of deliveries behind the earliest ones [s]."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "waiting_for", printable(self.waiting_for))


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot of a pipeline's counters since its start.

    The four kinds of loss are *overflow* (flag of the sound system), *overrun* (the ring was
    overwritten before the analysis read it), *drop* (a sink's queue was full), and *gap* (samples
    missing between two frames, whatever the cause; no frame spans one).

    ``source``, ``engine`` and ``checks`` are ``printable`` texts: they contain texts of devices,
    files and drivers, and are part of logs, messages and replies.
    """

    state: State
    source: str
    """Readable description of the source."""
    engine: str = ""
    """Engine, for example ``opencl:PoCL/AMD EPYC`` or ``numpy``."""
    fs: float = 0.0
    """Sample rate [Hz]; 0 before the source was first opened."""
    channels: int = 0
    """Number of analysed channels; 0 before the source was first opened."""
    samples: int = 0
    """Samples per channel that the source has written to the ring, including lost ones."""
    rows: int = 0
    """Rows computed, of all products: frames, or averages over them."""
    messages: int = 0
    """Messages with values, sent to subscribers or only kept for replay."""
    overflows: int = 0
    """Blocks that arrived with the sound system's overflow flag."""
    overruns: int = 0
    """Times that the ring was overwritten before it was read."""
    dropped: int = 0
    """Rows that a sink dropped because its queue was full."""
    gaps: int = 0
    """Discontinuities seen by the analysis."""
    gap_samples: int = 0
    """Samples per channel missing in these discontinuities, as far as known."""
    ring_peak: float = 0.0
    """Highest fill of the ring when it was read, 0 to 1."""
    engine_failures: int = 0
    """Engine failures after which NumPy continued, without a lost row."""
    self_checks: int = 0
    """Rows that were recomputed by NumPy in float64 for comparison."""
    self_check_error: float | None = None
    """Largest relative L2 error of these rows' power [1]; None before the first."""
    capture: CaptureStats = CaptureStats()
    checks: tuple[str, ...] = ()
    """Current findings of the content checks, such as ``silent: 0``; see
    ``spectrod.source.checks``."""
    clipped_samples: int = 0
    """Samples at full scale in runs of three or more, over all channels."""
    name: str = ""
    """Name of the source in topics."""
    triggers: tuple[str, ...] = ()
    """Names of its triggers; of more than 1024 the first ones."""
    active_triggers: tuple[str, ...] = ()
    """Those of them whose event lasts."""
    trigger_products: tuple[str, ...] = ()
    """Products beside the main one that its triggers examine; of more than 1024 the first ones."""
    heartbeats: int = 0
    """Heartbeats handed to ZeroMQ."""
    analysed: int = 0
    """Samples per channel that the analysis has read, including lost ones."""
    products: tuple[str, ...] = ()
    """All products, the main one first."""
    computed: tuple[str, ...] = ()
    """Products that are computed now: wanted ones, and those without a first row."""
    row_due_samples: int = 0
    """Samples within which a row of the computed products must come; 0 if none is computed."""
    subscribers: int = 0
    """Current subscriptions to spectra of the daemon."""
    unit: str = ""
    """Unit of the main product; those of different channels are joined by commas."""
    cal_id: str = ""
    """Identity of the calibration, likewise; empty without one."""
    last_sample_utc_ns: int = 0
    """System time when the analysis last read samples [ns since 1970]; 0 before the first."""
    last_message_utc_ns: int = 0
    """System time when the last message of values was made [ns since 1970]; 0 before the first."""
    level_dbfs: tuple[float, ...] = ()
    """Level of each channel's samples over the last whole second [dBFS]; empty before the first,
    and of sources that are not checked: those that are read at full speed."""
    peak_dbfs: tuple[float, ...] = ()
    """Highest magnitude of each channel's samples in that second [dBFS]: 0 is full scale."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", printable(self.source))
        object.__setattr__(self, "engine", printable(self.engine))
        object.__setattr__(self, "checks", tuple(map(printable, self.checks)))
