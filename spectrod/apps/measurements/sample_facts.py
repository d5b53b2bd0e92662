"""What the samples of a source say about it: peaks, offsets, clipping, silence, twins."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.measurements.calibrator import CLIPPED_FS
from spectrod.dsp.blocks import Block

SILENCE_S = 1.0
"""Shortest digital silence that is reported [s]."""
_OFFSET_FS = 0.01
_CLIPPED_SAMPLES = 3


class SampleFacts:
    """Collects facts of all samples of a source; memory does not grow with their number.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    names : sequence of str
        Names of the channels.
    """

    def __init__(self, fs: float, names: tuple[str, ...]) -> None:
        n = len(names)
        self.n_samples = 0
        self._missing = 0
        self._fs, self._names = fs, names
        self._peak = np.zeros(n)
        self._sum = np.zeros(n)
        self._squares = np.zeros(n)
        self._not_finite = np.zeros(n, np.int64)
        self._clipped = [_LongestRun() for _ in names]
        self._silent = [_LongestRun() for _ in names]
        self._twin_of_first = np.ones(n, bool)

    def add(self, block: Block) -> None:
        """Add a block of float32 samples [FS]."""
        samples = block.samples
        self.n_samples += samples.shape[1]
        self._missing += block.lost_samples
        self._twin_of_first &= np.array([np.array_equal(one, samples[0]) for one in samples])
        finite = np.isfinite(samples)
        self._not_finite += (~finite).sum(axis=1)
        samples = np.where(finite, samples, 0.0).astype(np.float64)
        size = np.abs(samples)
        self._peak = np.maximum(self._peak, size.max(axis=1))
        self._sum += samples.sum(axis=1)
        self._squares += np.square(samples).sum(axis=1)
        for k, of_channel in enumerate(size):
            self._clipped[k].add(of_channel >= CLIPPED_FS)
            self._silent[k].add(of_channel == 0.0)

    def levels(self) -> list[dict[str, Any]]:
        """Return peak and root mean square [dBFS], and offset [FS], of each channel.

        As everywhere, 0 dBFS is the root mean square of a full-scale sine (AES17); None: silence.
        """
        n = max(1, self.n_samples)
        return [
            {
                "channel": name,
                "peak_dbfs": _dbfs(float(peak)),
                "rms_dbfs": _dbfs(math.sqrt(2.0 * squares / n)),
                "offset_fs": float(total / n),
            }
            for name, peak, squares, total in zip(
                self._names, self._peak, self._squares, self._sum, strict=True
            )
        ]

    def lines(self) -> list[str]:
        """Return the levels of each channel as a line."""
        return [
            f"{one['channel']}: peak {_text(one['peak_dbfs'])}, rms {_text(one['rms_dbfs'])}, "
            f"offset {one['offset_fs']:+.2g} FS"
            for one in self.levels()
        ]

    def odd(self, between_files: int = 0) -> list[str]:
        """Return a line for each fact that a recording of sound should not have.

        Parameters
        ----------
        between_files : int
            Samples that are known to be missing between files.
        """
        found = []
        if self._missing > between_files:
            found.append(f"gaps of {(self._missing - between_files) / self._fs:.6f} s in all")
        for k, name in enumerate(self._names):
            found += [f"{name}: {what}" for what in self._odd_of(k)]
        twins = [self._names[k] for k in np.flatnonzero(self._twin_of_first) if k]
        if twins and self.n_samples:
            found.append(f"{', '.join(twins)}: the same samples as channel {self._names[0]}")
        return found

    def _odd_of(self, k: int) -> Iterable[str]:
        if self._not_finite[k]:
            yield f"{self._not_finite[k]} samples are infinite or no numbers"
        if not self._peak[k]:
            yield "all samples are zero"
            return
        if self._clipped[k].longest >= _CLIPPED_SAMPLES:
            yield f"clipped: {self._clipped[k].longest} samples in a row at full scale"
        if self._silent[k].longest >= SILENCE_S * self._fs:
            yield f"digital silence of {self._silent[k].longest / self._fs:.3f} s"
        offset = self._sum[k] / max(1, self.n_samples)
        if abs(offset) > _OFFSET_FS:
            yield f"offset of {offset:+.3g} FS"


class _LongestRun:
    """Length of the longest run of true values over all blocks."""

    def __init__(self) -> None:
        self.longest = 0
        self._running = 0

    def add(self, is_true: NDArray[np.bool_]) -> None:
        ends = np.flatnonzero(~is_true)
        if not len(ends):
            self._running += len(is_true)
            self.longest = max(self.longest, self._running)
            return
        between = np.diff(ends).max(initial=1) - 1
        self.longest = max(self.longest, self._running + int(ends[0]), int(between))
        self._running = len(is_true) - 1 - int(ends[-1])
        self.longest = max(self.longest, self._running)


def _dbfs(amplitude: float) -> float | None:
    return 20.0 * math.log10(amplitude) if amplitude else None


def _text(level_dbfs: float | None) -> str:
    return "-inf dBFS" if level_dbfs is None else f"{level_dbfs:.2f} dBFS"
