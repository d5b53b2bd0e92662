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


class RecursiveFilter:
    """A cascade of sections that filters several channels, chunk by chunk, in float64.

    Parameters
    ----------
    cascade : sequence of Section
        The sections, applied in this order.
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

    def __init__(self, cascade: Cascade, channels: int, chunk_samples: int = CHUNK_SAMPLES) -> None:
        n = min(BLOCK_SAMPLES, chunk_samples)
        self._blocks = chunk_samples // n, n
        a, b, c, d = _state_space(cascade)
        order = len(b)
        powers = [np.eye(order)]
        for _ in range(n):
            powers.append(powers[-1] @ a)
        impulse = np.array([d, *(c @ power @ b for power in powers[: n - 1])])
        lag = np.subtract.outer(np.arange(n), np.arange(n))
        # All are transposed: a row is a block or a state.
        self._from_samples = np.where(lag >= 0, impulse[lag], 0.0).T.copy()
        self._from_state = np.array([c @ power for power in powers[:n]]).T.copy()
        self._drive = np.array([power @ b for power in powers[n - 1 :: -1]])
        self._leaps = _leaps(powers[n], self._blocks[0])
        self._state = np.zeros((channels, 1, order))
        self._group = max(1, _GROUP_VALUES // chunk_samples)

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
        filtered : (channels, chunk_samples) float64
        """
        filtered = np.empty_like(samples)
        for first in range(0, len(samples), self._group):
            channels = slice(first, first + self._group)
            filtered[channels] = self._run_group(samples[channels], self._state[channels])
        return filtered

    def _run_group(self, samples: Float64Array, state: Float64Array) -> Float64Array:
        """Filter some channels, and update their state (channels, 1, order) in place."""
        blocks = samples.reshape(len(samples), *self._blocks)
        ends = np.matmul(blocks, self._drive)
        ends[:, :1] += np.matmul(state, self._leaps[0])
        reach = 1
        for leap in self._leaps:
            ends[:, reach:] += np.matmul(ends[:, :-reach], leap)
            reach *= 2
        starts = np.concatenate((state, ends[:, :-1]), axis=1)
        filtered = np.matmul(blocks, self._from_samples)
        filtered += np.matmul(starts, self._from_state)
        state[:] = ends[:, -1:]
        state[np.abs(state) < _TINY] = 0.0
        shaped: Float64Array = filtered.reshape(samples.shape)
        return shaped


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
