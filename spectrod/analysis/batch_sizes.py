"""How many frames a batch has, and how many samples the buffer of a stream must hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from spectrod.analysis.engine import IN_FLIGHT_MAX, Engine
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec

_BATCH_FRAMES_MAX = 1 << 16
_REACH_BYTES_MIN = 1 << 16


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """Sizes of the batches of one spec.

    Attributes
    ----------
    full : int
        Frames of a full batch.
    block : int
        Maximum number of frames of a batch of a long block, >= full.
    """

    full: int
    block: int


def batch_sizes(
    spec: SpectrumSpec, layout: SampleLayout, engine: Engine, batch_frames: int | None
) -> BatchSizes:
    """Return the requested size, or sizes that suit the engine."""
    if batch_frames is not None:
        return BatchSizes(batch_frames, batch_frames)
    full = _frames_of(engine.batch_bytes, spec, layout)
    return BatchSizes(full, max(full, _frames_of(engine.block_batch_bytes, spec, layout)))


def _frames_of(n_bytes: int, spec: SpectrumSpec, layout: SampleLayout) -> int:
    """Return the number of frames whose samples or results, the larger of them, have a size."""
    value_bytes = 8 if spec.output == "complex" else 4
    row_bytes = spec.n_signals * spec.n_computed * value_bytes
    frame_bytes = max(spec.hop * layout.step_bytes, row_bytes // spec.averaging_frames, 1)
    return max(1, min(_BATCH_FRAMES_MAX, n_bytes // frame_bytes))


def reach(specs: Sequence[SpectrumSpec], sizes: Sequence[BatchSizes], layout: SampleLayout) -> int:
    """Count the samples needed at once: of batches in flight, and of the batch being filled."""
    longest = max(_reach(spec, size.full, layout) for spec, size in zip(specs, sizes, strict=True))
    if any(spec.averaging_frames > 1 for spec in specs):  # a frame waits for the next
        longest += max(spec.hop for spec in specs)
    return longest


def _reach(spec: SpectrumSpec, batch_frames: int, layout: SampleLayout) -> int:
    between = ceil(spec.row_step / spec.averaging_frames)  # frames, at the mean
    advance = batch_frames * between if batch_frames > 1 else min(between, spec.win_length)
    n_samples = spec.win_length + (IN_FLIGHT_MAX + 1) * advance + _beyond(spec)
    return max(n_samples, _REACH_BYTES_MIN // layout.step_bytes)


def _beyond(spec: SpectrumSpec) -> int:
    """Return how much farther away the next row may be than the mean frame distance [samples]."""
    if spec.grid.is_even or spec.averaging == "none":
        return 0
    return max(0, ceil(spec.row_step) - (spec.averaging_frames - 1) * spec.hop)
