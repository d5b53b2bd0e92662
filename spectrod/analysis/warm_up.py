"""The first launches of an analysis, before samples wait for them."""

import numpy as np

from spectrod.analysis.engine import Engine
from spectrod.analysis.stream import FrameStream
from spectrod.types import Block, SpectrumSpec

_MANY_FRAMES = 32
_SAMPLES_MAX = 1 << 23


def warm_up(engine: Engine, *specs: SpectrumSpec) -> None:
    """Compute frames of silence, and have the engine keep what its driver compiled for them.

    Drivers compile at the first launch of each shape (PoCL: for seconds, on a busy machine for
    longer than a ring holds), and when binaries are asked for; here neither is in anybody's way.

    Parameters
    ----------
    engine : Engine
        What will compute.
    *specs : SpectrumSpec
        What it will compute: frames one by one, as they come, and many at a time, as when it has
        fallen behind.
    """
    for spec in specs:
        _compute_silence(engine, spec)
    engine.keep_programs()


def _compute_silence(engine: Engine, spec: SpectrumSpec) -> None:
    stream = FrameStream(spec, engine, max_latency_s=float("inf"))
    n_many = min(_MANY_FRAMES, _SAMPLES_MAX // (spec.hop * spec.channels))
    index = 0
    for n_samples in (spec.win_length, n_many * spec.hop):
        if n_samples:
            silence = np.zeros((spec.channels, n_samples), np.float32)
            stream.push(Block(silence, index, 0, 0))
            stream.flush()
            index += n_samples
