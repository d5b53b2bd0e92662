"""What a running pipeline says of itself."""

from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "running", "finished", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot of a pipeline's counters, all since its start.

    Four kinds of loss have four names: *overflow* (the sound system's flag), *overrun* (our ring
    was overwritten before the analysis read it), *drop* (a sink's queue was full), and *gap*
    (samples missing between two frames, whatever the cause; no frame spans one).
    """

    state: State
    source: str
    """Name and kind of the source, for a person."""
    engine: str
    """What computes the spectra, for example ``opencl:PoCL/AMD EPYC`` or ``numpy``."""
    fs: float
    """Sample rate [Hz]."""
    channels: int
    samples: int
    """Samples a channel that the source has written to the ring, lost ones included."""
    frames: int
    """Frames analysed."""
    messages: int
    """Spectrum messages handed to ZeroMQ."""
    overflows: int
    """Blocks that arrived with the sound system's overflow flag."""
    overruns: int
    """Times the ring was overwritten before it was read."""
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
