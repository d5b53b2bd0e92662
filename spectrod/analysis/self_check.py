"""Checks rows that were sent against NumPy in float64, now and then, while a source runs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from spectrod.analysis.numpy_engine import Float64Engine, NumpyEngine, numpy_duration_s
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.bands import is_host_only
from spectrod.dsp.blocks import Block
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Float32Array, Float64Array, level_to_power
from spectrod.lib.errors import InputError

PERIOD_S: Final = 60.0
"""Time of samples from one check to the next [s]."""
FIRST_S: Final = 10.0
"""Time of samples before the first check [s]."""
ERROR_MAX: Final = 1e-4
"""Bound of the relative L2 error of a row's power [1], 0.0004 dB.

Kernels in float32 have 3e-7, and levels that are rounded to float32 1.8e-6 (half of the 1.5e-5 dB
between two of them at -200 dB): a larger error is not one of rounding."""
_DURATION_MAX_S: Final = 0.005
_POWER_MIN: Final = 1e-30


def row_error(row: Float32Array, reference: Float32Array, unit: str) -> float:
    """Return the relative L2 error of a row's power; infinity if the row is not finite.

    Parameters
    ----------
    row, reference : (signals, values) float32
        Values of a spec with power [unit].
    unit : str
        Unit of the values; levels are converted to power.
    """
    power, expected = _power(row, unit), _power(reference, unit)
    norm = max(float(np.linalg.norm(expected)), _POWER_MIN)
    error = float(np.linalg.norm(power - expected)) / norm
    return error if np.isfinite(error) else float("inf")


def _power(row: Float32Array, unit: str) -> Float64Array:
    values = row.astype(np.float64)
    return level_to_power(values) if unit.startswith("dB") else values


def can_check(spec: SpectrumSpec) -> bool:
    """Return whether rows of a spec are of one frame each, and cheap enough to be recomputed."""
    is_single = spec.averaging == "none" and spec.output == "power"
    is_cheap = numpy_duration_s(spec, spec.hop) <= _DURATION_MAX_S
    return is_single and is_cheap and not is_host_only(spec.bands)


class SelfCheck:
    """Recomputes one row of a stream every minute of its samples, of each product in turn.

    Samples are copied only from the time when a check is due until a row of them is there. Products
    with averages, and frames that are estimated to take NumPy more than 5 ms, are not checked. Used
    by the thread of the analysis.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    period_s, first_s : float
        See ``PERIOD_S`` and ``FIRST_S``.

    Attributes
    ----------
    count : int
        Rows checked so far.
    largest_error : float or None
        Largest error so far, see ``row_error``; None before the first check.
    """

    def __init__(self, fs: float, period_s: float = PERIOD_S, first_s: float = FIRST_S) -> None:
        self.count = 0
        self.largest_error: float | None = None
        self._period = round(period_s * fs)
        self._until_due = round(first_s * fs)
        self._turn = 0
        self._spec: SpectrumSpec | None = None
        self._blocks: list[Block] = []
        self._row: tuple[int, Float32Array] | None = None

    def reset(self) -> None:
        """Drop the row that is being checked; call it when the analysis changes."""
        self._spec, self._blocks, self._row = None, [], None

    def take(self, block: Block, stream: FrameStream) -> None:
        """Look at the next samples, before a stream analyses them; copy them if a check is due."""
        if self._until_due > 0:
            self._until_due -= block.span_samples
            return
        if self._row is not None:
            return
        if self._spec is None:
            wanted = stream.wanted
            able = [spec for spec in stream.specs if spec.product in wanted and can_check(spec)]
            if not able or stream.engine.name == NumpyEngine.name:
                return
            self._spec = able[self._turn % len(able)]
            self._turn += 1
        if block.discontinuity or not self._follows(block):
            self._blocks = []
        self._blocks.append(replace(block, samples=block.samples.copy()))
        while self._length - self._blocks[0].n_samples >= self._enough:
            del self._blocks[0]

    def note(self, batches: Iterable[SpectrumBatch]) -> None:
        """Look at new batches for a row whose samples were all copied."""
        spec = self._spec
        if spec is None or self._row is not None or not self._blocks:
            return
        first = self._blocks[0].sample_index
        last = self._blocks[-1].sample_index + self._blocks[-1].n_samples - spec.win_length
        for batch in batches:
            if batch.spec.product != spec.product or batch.engine == NumpyEngine.name:
                continue
            for index, row in zip(batch.sample_index.tolist(), batch.values, strict=True):
                if first <= index <= last:
                    self._row = (index, row.copy())
                    return

    @property
    def is_ready(self) -> bool:
        """Whether ``run`` has a row to recompute."""
        return self._row is not None

    def run(self, layout: SampleLayout) -> float | None:
        """Recompute the row; return its error, or None if its samples make no row.

        Parameters
        ----------
        layout : SampleLayout
            Layout of the samples.
        """
        spec, row, blocks = self._spec, self._row, self._blocks
        self.reset()
        self._until_due = self._period
        if spec is None or row is None:
            return None
        reference = _recompute(spec, blocks, row[0], layout)
        if reference is None:
            return None
        error = row_error(row[1], reference, spec.scale.unit)
        self.count += 1
        self.largest_error = max(error, self.largest_error or 0.0)
        return error

    @property
    def _enough(self) -> int:
        """Samples that hold a whole frame wherever the next one starts."""
        assert self._spec is not None
        return 2 * self._spec.win_length + 2 * self._spec.hop

    @property
    def _length(self) -> int:
        return sum(block.n_samples for block in self._blocks)

    def _follows(self, block: Block) -> bool:
        if not self._blocks:
            return True
        before = self._blocks[-1]
        return before.sample_index + before.n_samples == block.sample_index


def _recompute(
    spec: SpectrumSpec, blocks: Sequence[Block], index: int, layout: SampleLayout
) -> Float32Array | None:
    """Return the row of the frame that starts at a sample; None if it has no row."""
    samples = np.concatenate([block.samples for block in blocks], axis=1)
    start = index - blocks[0].sample_index
    block = replace(
        blocks[0],
        samples=samples[:, start : start + spec.win_length],
        sample_index=index,
        discontinuity=False,
        lost_samples=0,
    )
    alone = replace(spec, rate_hz=0.0, align="start")
    stream = FrameStream(
        alone,
        Float64Engine(),
        sample_format=layout.sample_format,
        interleaved=layout.interleaved,
    )
    try:
        batches = stream.push(block)
    except InputError:  # samples that are not finite make a gap
        return None
    rows: Float32Array | None = batches[0].values[0] if batches else None
    return rows
