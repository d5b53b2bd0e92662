"""Spectra as a careful user of NumPy computes them: frames, a window, a library's FFT, the square.

Three ways for each FFT library, all with preallocated arrays. *whole*: each step over all frames of
a channel at once, with the library's own threads. *batches*: the same in batches that fit the
caches. *threads*: one thread per core, each with its own batches and arrays, and the library
single-threaded in each.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.parallel import usable_processors
from spectrod.apps.bench.spectra import Spectra

Array = NDArray[Any]
Transform = Callable[[int], Array]
"""Transforms the first m rows of its frames to (m, n); the frames may be overwritten."""
MakeTransform = Callable[[Array, int], Transform]
"""Maps memory for frames, and a number of threads, to a transform."""

BATCH_KIB = (512, 1024, 2048, 4096)
"""Sizes of a batch of frames to try [KiB]."""

_N_CORES = usable_processors()
_FLOOR = np.float32(1e-20)  # -200 dB


def scipy_transform(frames: Array, threads: int) -> Transform:
    """``scipy.fft.rfft``: pocketfft."""
    rfft = import_module("scipy.fft").rfft
    return lambda m: rfft(frames[:m], workers=threads)


def fftw_transform(frames: Array, threads: int) -> Transform:
    """FFTW through pyFFTW, planned by measurement, with its own output memory."""
    pyfftw = import_module("pyfftw")
    out = pyfftw.empty_aligned((len(frames), frames.shape[1] // 2 + 1), np.complex64)
    flags = ("FFTW_MEASURE", "FFTW_DESTROY_INPUT")
    plan = pyfftw.FFTW(frames, out, axes=(1,), flags=flags, threads=threads)

    def transform(m: int) -> Array:
        plan.execute()
        return np.asarray(out)[:m]

    return transform


def mkl_transform(frames: Array, threads: int) -> Transform:
    """MKL through ``mkl_fft``, which cannot set its threads."""
    del threads
    rfft = import_module("mkl_fft").rfft
    out = np.empty((len(frames), frames.shape[1] // 2 + 1), np.complex64)

    def transform(m: int) -> Array:
        rfft(frames[:m], out=out[:m])
        return out[:m]

    return transform


class NumpyFraming:
    """Pipelines around a library's FFT of real rows, with one preallocated result.

    Parameters
    ----------
    spectra : Spectra
        Signal and spectra to compute.
    make_transform : callable
        Creates the library's transform.
    """

    def __init__(self, spectra: Spectra, make_transform: MakeTransform) -> None:
        self.spectra = spectra
        self.out = np.empty(spectra.shape, np.float32)
        self._make_transform = make_transform
        self._window = scaled_window(spectra)
        self._finish = Finish(spectra)

    def batches(self, batch_kib: int) -> Callable[[], Array]:
        """Return a call that computes batch after batch; the library uses all cores."""
        worker = self._worker(batch_kib, _N_CORES)

        def run() -> Array:
            for part in self._parts(batch_kib):
                worker(*part)
            return self.out

        return run

    def threads(self, batch_kib: int) -> Callable[[], Array]:
        """Return a call with one thread per core; the threads take the batches in turns."""
        workers = [self._worker(batch_kib, 1) for _ in range(_N_CORES)]
        pool = ThreadPoolExecutor(_N_CORES)
        parts = list(self._parts(batch_kib))

        def work(number: int) -> None:
            for part in parts[number::_N_CORES]:
                workers[number](*part)

        def run() -> Array:
            list(pool.map(work, range(_N_CORES)))
            return self.out

        return run

    def ways(self) -> Iterator[tuple[str, list[Callable[[], Callable[[], Array]]]]]:
        """Yield the name of each way, with functions that create its candidate pipelines."""
        yield "whole", [partial(self.batches, self._whole_kib)]
        for name, make in (("batches", self.batches), ("threads", self.threads)):
            yield name, [partial(make, kib) for kib in self._batch_sizes()]

    def _batch_sizes(self) -> list[int]:
        """Return the batch sizes that the signal can fill; at least one."""
        return [kib for kib in BATCH_KIB if kib <= self._whole_kib] or [BATCH_KIB[0]]

    @property
    def _whole_kib(self) -> int:
        return -(-self.spectra.n_frames * self._frame_bytes // 1024)

    @property
    def _frame_bytes(self) -> int:
        return 4 * self.spectra.spec.nfft

    def _length(self, batch_kib: int) -> int:
        return max(1, min(self.spectra.n_frames, (batch_kib << 10) // self._frame_bytes))

    def _parts(self, batch_kib: int) -> Iterator[tuple[int, int, int]]:
        """Yield channel, first frame and frame after the last of each batch."""
        length, n_frames = self._length(batch_kib), self.spectra.n_frames
        for channel in range(self.spectra.spec.channels):
            for first in range(0, n_frames, length):
                yield channel, first, min(first + length, n_frames)

    def _worker(self, batch_kib: int, threads: int) -> Callable[[int, int, int], None]:
        """Return a function that computes a batch, with its own memory."""
        spec, length = self.spectra.spec, self._length(batch_kib)
        frames = _aligned((length, spec.nfft))
        transform = self._make_transform(frames, threads)
        read = _Reader(self.spectra, length)
        room = _aligned((length, spec.n_bins)) if spec.bands else None

        def compute(channel: int, first: int, stop: int) -> None:
            m = stop - first
            np.multiply(read(channel, first, m), self._window, out=frames[:m])
            parts = transform(m).view(np.float32)
            np.multiply(parts, parts, out=parts)
            out = self.out[first:stop, channel]
            power = out if room is None else room[:m]
            np.add(parts[:, ::2], parts[:, 1::2], out=power)
            self._finish(power, out)

        return compute


class Finish:
    """Converts the power of bins to the requested product.

    Parameters
    ----------
    spectra : Spectra
        Spectra to compute.

    Attributes
    ----------
    weights : (n_bins, n_bands) float32, or None
        Weights of bands.
    """

    def __init__(self, spectra: Spectra) -> None:
        self._is_db = spectra.is_db
        self._has_nyquist = spectra.spec.nfft % 2 == 0
        self.weights = band_matrix(spectra) if spectra.spec.bands else None

    def __call__(self, power: Array, out: Array | None = None) -> Array:
        """Convert power to the product.

        Parameters
        ----------
        power : (m, n_bins) float32
            Power of bins; overwritten.
        out : (m, n_values) float32, optional
            Memory for bands.

        Returns
        -------
        values : (m, n_values) float32
            ``power`` or, for bands, ``out``.
        """
        power[:, 0] *= 0.5
        if self._has_nyquist:
            power[:, -1] *= 0.5
        values = power if self.weights is None else np.matmul(power, self.weights, out=out)
        if self._is_db:
            np.maximum(values, _FLOOR, out=values)
            np.log10(values, out=values)
            np.multiply(values, np.float32(10.0), out=values)
        return values


class _Reader:
    """Frames of the signal in float32: a view, or a copy of integers."""

    def __init__(self, spectra: Spectra, length: int) -> None:
        self._spectra = spectra
        spec = spectra.spec
        is_float = spectra.samples.dtype == np.float32
        self._room = None if is_float else _aligned(((length - 1) * spec.hop + spec.nfft,))

    def __call__(self, channel: int, first: int, m: int) -> Array:
        """Return m frames of a channel: (m, n)."""
        spec = self._spectra.spec
        start, n = first * spec.hop, (m - 1) * spec.hop + spec.nfft
        samples = self._spectra.samples[channel, start : start + n]
        if self._room is not None:
            self._room[:n] = samples
            samples = self._room[:n]
        return np.lib.stride_tricks.sliding_window_view(samples, spec.nfft)[:: spec.hop]


def scaled_window(spectra: Spectra) -> Array:
    """Return the window times the whole scale, including that of integers: (n,) float32."""
    return (spectra.kernel_spec[1].window / spectra.full_scale).astype(np.float32)


def band_matrix(spectra: Spectra) -> Array:
    """Return the sums as one matrix, (n_bins, n_bands) float32, like librosa's."""
    rows = spectra.kernel_spec[1].bands
    assert rows is not None
    matrix = np.zeros((spectra.spec.n_bins, len(rows.first)), np.float32)
    weights = np.split(rows.weights, np.cumsum(rows.count)[:-1])
    for band, (first, row) in enumerate(zip(rows.first, weights, strict=True)):
        matrix[first : first + len(row), band] = row
    return matrix


def _aligned(shape: tuple[int, ...]) -> Array:
    """Return float32 memory aligned to 64 bytes, for vector instructions."""
    n = int(np.prod(shape))
    room = np.zeros(n + 16, np.float32)
    first = -room.ctypes.data % 64 // 4
    return room[first : first + n].reshape(shape)
