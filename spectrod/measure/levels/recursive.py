"""Recursive filters as matrix products: results do not depend on how a stream is cut."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectrod.dsp.units import Float64Array

BLOCK_SAMPLES = 64
"""Samples of which one product with the impulse response's matrix computes the output."""

CHUNK_SAMPLES = 4096
"""Samples per channel that ``RecursiveFilter.run`` takes: every product has the same shape, so that
BLAS computes every sample with the same operations."""

_GROUP_VALUES = 1 << 16
"""Samples of all channels that are filtered at a time: intermediate results stay in the cache, and
the allocator reuses their memory instead of returning it to the system."""

_TINY = 1e-150
"""Magnitude below which a state becomes 0: arithmetic with denormal numbers is slow."""


@dataclass(frozen=True, slots=True)
class Section:
    """A filter of first or second order.

    ``y[n] = sum_k b[k] x[n-k] - sum_k a[k] y[n-k]``, k from 0 in b and from 1 in a; a[0] is 1.

    Attributes
    ----------
    b, a : tuple of float
        Coefficients of the numerator and the denominator, equally many: 2 or 3.
    """

    b: tuple[float, ...]
    a: tuple[float, ...]


Cascade = Sequence[Section]


def response(cascade: Cascade, frequencies_hz: Float64Array, fs: float) -> Float64Array:
    """Return the power gain of a cascade of sections, (...) float64, at frequencies [Hz]."""
    delay = np.exp(-2j * np.pi * np.asarray(frequencies_hz) / fs)
    gain = np.ones(delay.shape)
    for section in cascade:
        above = np.polynomial.polynomial.polyval(delay, section.b)
        below = np.polynomial.polynomial.polyval(delay, section.a)
        gain *= np.square(np.abs(above / below))
    return gain


class FilterStack:
    """Cascades of sections of one order that filter the same channels, in float64.

    The arithmetic of each is that of ``RecursiveFilter``; NumPy is called once for all.

    Parameters
    ----------
    cascades : sequence of Cascade
        The sections of each filter, applied in this order; all of one order.
    channels : int
        Number of channels, filtered alike and independently.
    chunk_samples : int
        Samples per channel of a chunk: a power of two, 1 to ``CHUNK_SAMPLES``.

    Notes
    -----
    The cascade is brought into state-space form, ``s[n+1] = A s[n] + B x[n]``, ``y[n] = C s[n] + D
    x[n]``. For blocks of L samples [1]_: ``y = H x + O s`` with the lower triangular matrix H of
    the impulse response and the rows ``C A^i`` of O. The states at the start of all blocks of a
    chunk follow from those of the chunk's start by a scan that doubles its reach in each step
    [2]_.

    References
    ----------
    .. [1] C. S. Burrus, "Block realization of digital filters", IEEE Transactions on Audio and
       Electroacoustics 20, 1972.
    .. [2] G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990.
    """

    def __init__(
        self, cascades: Sequence[Cascade], channels: int, chunk_samples: int = CHUNK_SAMPLES
    ) -> None:
        n = min(BLOCK_SAMPLES, chunk_samples)
        self._blocks = chunk_samples // n, n
        found = [_Matrices.of(cascade, *self._blocks) for cascade in cascades]
        self._from_samples = _stacked([one.from_samples for one in found])
        self._from_state = _stacked([one.from_state for one in found])
        self._drive = _stacked([one.drive for one in found])
        self._leaps = [_stacked(leap) for leap in zip(*(one.leaps for one in found), strict=True)]
        order = self._from_state.shape[2]
        self._state = np.zeros((len(cascades), channels, 1, order))
        self._group = max(1, _GROUP_VALUES // (chunk_samples * len(cascades)))

    def reset(self) -> None:
        """Forget all samples so far."""
        self._state[:] = 0.0

    def run(self, samples: Float64Array) -> Float64Array:
        """Filter the next chunk.

        Parameters
        ----------
        samples : (channels, chunk_samples) float64
            Finite samples.

        Returns
        -------
        filtered : (filters, channels, chunk_samples) float64
        """
        filtered = np.empty((len(self._state), *samples.shape))
        for first in range(0, len(samples), self._group):
            channels = slice(first, first + self._group)
            self._run_group(samples[channels], self._state[:, channels], filtered[:, channels])
        return filtered

    def _run_group(self, samples: Float64Array, state: Float64Array, out: Float64Array) -> None:
        """Filter some channels, and update their state (filters, channels, 1, order) in place."""
        blocks = samples.reshape(len(samples), *self._blocks)
        ends = np.matmul(blocks, self._drive)
        ends[:, :, :1] += np.matmul(state, self._leaps[0])
        reach = 1
        for leap in self._leaps:
            ends[:, :, reach:] += np.matmul(ends[:, :, :-reach], leap)
            reach *= 2
        starts = np.concatenate((state, ends[:, :, :-1]), axis=2)
        filtered = np.matmul(blocks, self._from_samples)
        filtered += np.matmul(starts, self._from_state)
        state[:] = ends[:, :, -1:]
        state[np.abs(state) < _TINY] = 0.0
        out[:] = filtered.reshape(out.shape)


class RecursiveFilter:
    """A cascade of sections that filters several channels; see ``FilterStack``.

    Parameters
    ----------
    cascade : sequence of Section
        The sections, applied in this order.
    channels : int
        Number of channels, filtered alike and independently.
    chunk_samples : int
        Samples per channel of a chunk: a power of two, 1 to ``CHUNK_SAMPLES``.
    """

    def __init__(self, cascade: Cascade, channels: int, chunk_samples: int = CHUNK_SAMPLES) -> None:
        self._stack = FilterStack([cascade], channels, chunk_samples)

    def reset(self) -> None:
        """Forget all samples so far."""
        self._stack.reset()

    def run(self, samples: Float64Array) -> Float64Array:
        """Filter the next chunk, (channels, chunk_samples) float64 as the samples."""
        filtered: Float64Array = self._stack.run(samples)[0]
        return filtered


@dataclass(frozen=True, slots=True)
class _Matrices:
    """Matrices of a cascade for blocks, transposed: a row is a block or a state."""

    from_samples: Float64Array
    from_state: Float64Array
    drive: Float64Array
    leaps: Sequence[Float64Array]

    @classmethod
    def of(cls, cascade: Cascade, n_blocks: int, n: int) -> "_Matrices":
        a, b, c, d = _state_space(cascade)
        powers = [np.eye(len(b))]
        for _ in range(n):
            powers.append(powers[-1] @ a)
        impulse = np.array([d, *(c @ power @ b for power in powers[: n - 1])])
        lag = np.subtract.outer(np.arange(n), np.arange(n))
        return cls(
            np.where(lag >= 0, impulse[lag], 0.0).T.copy(),
            np.array([c @ power for power in powers[:n]]).T.copy(),
            np.array([power @ b for power in powers[n - 1 :: -1]]),
            _leaps(powers[n], n_blocks),
        )


def _stacked(matrices: Sequence[Float64Array]) -> Float64Array:
    """Return matrices as (filters, 1, rows, columns)."""
    return np.stack(matrices)[:, np.newaxis]


def _leaps(block: Float64Array, n_blocks: int) -> list[Float64Array]:
    """Return the transposed transitions over 1, 2, 4, ... blocks, up to half a chunk."""
    leaps: list[Float64Array] = []
    while not leaps or 1 << len(leaps) < n_blocks:
        leaps.append(block.T.copy())
        block = block @ block
    return leaps


def _state_space(cascade: Cascade) -> tuple[Float64Array, Float64Array, Float64Array, float]:
    """Return the matrices A, B, C and D of a cascade; states are those of transposed form II."""
    a, b, c, d = np.zeros((0, 0)), np.zeros(0), np.zeros(0), 1.0
    for section in cascade:
        order = len(section.a) - 1
        own = np.zeros((order, order))
        own[:, 0] = [-value for value in section.a[1:]]
        own[np.arange(order - 1), np.arange(1, order)] = 1.0
        first = section.b[0]
        into = np.array(section.b[1:]) + first * own[:, 0]
        out = np.zeros(order)
        out[0] = 1.0
        above = np.hstack((a, np.zeros((len(b), order))))
        below = np.hstack((np.outer(into, c), own))
        a = np.vstack((above, below))
        b = np.concatenate((b, into * d))
        c = np.concatenate((first * c, out))
        d = first * d
    return a, b, c, d
