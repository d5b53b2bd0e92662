"""What is right: spectra in float64 on the host, as every stage computes them on a device.

Tests measure stages by it, and the engine without a device computes with it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.stft.stft_stage import (
    FULL_SCALE,
    Average,
    BandRows,
    RowPlaces,
    StftSpec,
    StftTables,
    frame_places,
)
from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.spectrum_rules import Averaging
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError

CHUNK_VALUES = 1 << 17
"""Values of float64 in one step: 1 MiB of frames, as much of spectra, so that caches hold them."""

Values = NDArray[Any]

Chunk = tuple[int, int]
"""Frames [start, stop) that are computed in one step."""


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic:
    """How spectra are computed: a precision, and the transforms of a library.

    Attributes
    ----------
    real : type
        ``numpy.float64`` or ``numpy.float32``: of samples, windowed frames and power.
    rfft, fft : callable
        Transforms of the last axis to a length, as ``numpy.fft`` has them.
    """

    real: type[np.floating[Any]]
    rfft: Callable[..., Values]
    fft: Callable[..., Values]


FLOAT64 = Arithmetic(np.float64, np.fft.rfft, np.fft.fft)


class HostAverage:
    """A running average over frames in float64; goes on from one call to the next.

    Rows, and what becomes of them, are as ``spectrod.analysis.stft.stft_stage.Average`` says. A
    value that is not a number makes a row that is none: of a mean, maximum or minimum only the one
    that it is in.

    Parameters
    ----------
    averaging : {"mean", "max", "min", "exponential"}
        Over frames.
    frames : int
        Frames a row, >= 1.
    smoothing : float
        Weight of a new frame in an exponential average, above 0 to 1.

    Attributes
    ----------
    done : int
        Frames that the unfinished row has, 0 to frames - 1.
    frames : int
        Frames a row; may be changed, to no fewer than ``done`` and those that come next.
    state : (channels, values) float64, optional
        Average so far, of a mean the sum; None before a first frame.

    Raises
    ------
    ConfigError
        If frames < 1.
    """

    def __init__(self, averaging: Averaging, frames: int, smoothing: float = 1.0) -> None:
        if frames < 1:
            raise ConfigError(f"frames={frames}: must be at least 1")
        self.done = 0
        self._averaging = averaging
        self.frames = frames
        self._smoothing = smoothing
        self.state: Float64Array | None = None

    def clear(self) -> None:
        """Begin again, as after a gap."""
        self.done = 0
        self.state = None

    def push(self, values: Float64Array) -> Float64Array:
        """Take frames, and return the rows that they finish.

        Parameters
        ----------
        values : (frames, channels, values) float64 or float32
            In their order.

        Returns
        -------
        rows : (rows, channels, values) float64
            ``(done + frames) // self.frames`` of them.
        """
        exact = values.astype(np.float64, copy=False)
        rows = [row for frame in exact if (row := self._push_one(frame)) is not None]
        return np.array(rows).reshape(len(rows), *values.shape[1:])

    def _push_one(self, frame: Float64Array) -> Float64Array | None:
        self.state = frame if self.state is None else self._joined(self.state, frame)
        self.done += 1
        if self.done < self.frames:
            return None
        row = self.state / self.frames if self._averaging == "mean" else self.state
        self.done = 0
        if self._averaging != "exponential":
            self.state = None
        return row

    def _joined(self, state: Float64Array, frame: Float64Array) -> Float64Array:
        if self._averaging == "mean":
            return state + frame
        if self._averaging == "max":
            return np.maximum(state, frame)
        if self._averaging == "min":
            return np.minimum(state, frame)
        return state + self._smoothing * (frame - state)


class ReferenceStft:
    """Frames to rows of results in float64, rounded once at the end; memory is bounded.

    Parameters
    ----------
    spec : StftSpec
        What to compute. ``interleaved`` makes no difference: arrays have strides.
    tables : StftTables
        What goes with it.
    chunk_values : int
        Values of float64 in one step.
    """

    def __init__(
        self, spec: StftSpec, tables: StftTables, *, chunk_values: int = CHUNK_VALUES
    ) -> None:
        self.spec, self._chunk_values = spec, chunk_values
        self._tables = tables
        self._factors = bin_factors(spec, tables)
        # Full scale is a power of 2: as exact as a division of all samples.
        window = tables.window / FULL_SCALE[spec.sample_format]
        self._window = {real: window.astype(real, copy=False) for real in (np.float64, np.float32)}

    def average(self, frames: int) -> HostAverage | None:
        """Start what ``rows`` needs to average frames to rows; None where nothing is averaged."""
        if self.spec.averaging == "none":
            return None
        return HostAverage(self.spec.averaging, frames, self._tables.smoothing)

    def rows(  # noqa: PLR0913, PLR0917 - as a launch on a device
        self,
        samples: NDArray[Any],
        first: int,
        hop: int,
        n_frames: int,
        average: HostAverage | None = None,
        places: RowPlaces | None = None,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Compute the rows of a number of frames.

        Parameters
        ----------
        samples : (channels * parts, n) array
            Of the format's dtype, with any strides; int24 as (channels * parts, n, 3) uint8.
        first : int
            Position of the first frame's first sample.
        hop : int
            From one frame's first sample to the next's.
        n_frames : int
            Frames, >= 0; all their samples are there.
        average : HostAverage, optional
            Where ``spec.averaging`` is not "none"; goes on with it.
        places : RowPlaces, optional
            Where rows begin, if not where the frames' hops lead.
        out : (rows, channels, n_values) array, optional
            Destination of the rows; by default new memory.

        Returns
        -------
        rows : (rows, channels, n_values) float32 or complex64
            Rows are frames, or what the average makes of them.
        """
        channels = len(samples) // self.spec.parts
        so_far = Average(None, average.frames, average.done) if average else None
        if out is None:
            n_rows = so_far.rows(n_frames) if so_far else n_frames
            dtype = np.complex64 if self.spec.output == "complex" else np.float32
            out = np.empty((n_rows, channels, self.spec.n_values), dtype)
        begins = first + frame_places(hop, n_frames, so_far, places)
        chunks = list(self._chunks(n_frames, channels * max(hop, self.spec.nfft)))

        def values(chunk: Chunk, room: Values | None = None) -> Values:
            return self._chunk(samples, begins, None if places else hop, chunk, room)

        if average is None:
            self._write(out, chunks, values)
        else:
            self._write_averages(out, self._in_order(chunks, values), average)
        return out

    def _write(
        self, out: Values, chunks: Sequence[Chunk], values: Callable[[Chunk, Values], Values]
    ) -> None:
        # Samples that are not finite make values that are not; that is no news to warn of.
        with np.errstate(all="ignore"):
            for chunk in chunks:
                rows = out[slice(*chunk)]
                self._finish(values(chunk, rows), rows)

    def _write_averages(
        self, out: Values, in_order: Iterator[Values], average: HostAverage
    ) -> None:
        n_done = 0
        with np.errstate(all="ignore"):
            for found in in_order:
                rows = average.push(found)
                self._finish(rows, out[n_done : n_done + len(rows)])
                n_done += len(rows)

    def _in_order(
        self, chunks: Sequence[Chunk], values: Callable[[Chunk], Values]
    ) -> Iterator[Values]:
        """Yield the values of each chunk."""
        return map(values, chunks)

    def _chunks(self, n_frames: int, frame_values: int) -> Iterator[Chunk]:
        step = max(1, self._chunk_values // frame_values)
        return ((start, min(start + step, n_frames)) for start in range(0, n_frames, step))

    def _chunk(
        self,
        samples: NDArray[Any],
        begins: NDArray[np.int64],
        hop: int | None,
        chunk: Chunk,
        room: Values | None,  # noqa: ARG002 - rows have no room for float64
    ) -> Values:
        """Return the values of the frames [start, stop) of those that begin at some samples.

        ``room`` has the shape of the values, which may be computed there.
        """
        return self._values(samples, begins[slice(*chunk)], hop)

    def _values(self, samples: NDArray[Any], begins: NDArray[np.int64], hop: int | None) -> Values:
        """Spectra, or their power in bins or bands: (frames, channels, n_values)."""
        return self._values_by(FLOAT64, samples, begins, hop)

    def _values_by(
        self,
        by: Arithmetic,
        samples: NDArray[Any],
        begins: NDArray[np.int64],
        hop: int | None,
        room: Values | None = None,
    ) -> Values:
        """Compute values with a precision, see ``_values``; in ``room`` if they can be there."""
        spec = self.spec
        first = int(begins[0])
        span = samples[:, first : int(begins[-1]) + spec.win_length]
        values = _as_numbers(span, spec.sample_format, by.real)
        if spec.iq:
            values = values[0::2] + 1j * values[1::2]
        frames = _frames(values, spec.win_length, begins - first, hop)
        room_for_frames = self._memory(frames.shape, values.dtype)
        windowed = np.multiply(frames, self._window[by.real], out=room_for_frames)
        if spec.iq:
            spectra = np.fft.fftshift(by.fft(windowed, spec.nfft), axes=-1)
        else:
            spectra = by.rfft(windowed, spec.nfft)
        del windowed  # its memory, still in the cache, is used for the arrays that come
        if spec.output == "complex":
            return spectra
        if room is not None and (spec.n_bands or room.dtype != by.real):
            room = None
        return self._summed(_squared(spectra, room))

    def _memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Values:
        """Return memory for windowed frames, which is free again after their transform."""
        return np.empty(shape, dtype)

    def _summed(self, power: Values) -> Values:
        if self._tables.weights is not None:
            power *= self._factors.astype(power.dtype, copy=False)
        elif not self.spec.iq:
            power[..., _without_twin(self.spec)] /= 2
        if self.spec.n_bands == 0:
            return power
        assert self._tables.bands is not None
        return band_sums(self._tables.bands, power)

    def _finish(self, values: Values, rows: Values) -> None:
        """Write values, which are overwritten, to the rows of results, which they may be."""
        if self.spec.decibels:
            np.log10(values, out=values)
            values *= 10.0
            np.maximum(values, self._tables.floor_db, out=values)
        if values is not rows:
            rows[...] = values


def as_float64(samples: NDArray[Any], sample_format: SampleFormat) -> Float64Array:
    """Convert a format's samples to (channels, n) float64 in [-1, 1]; int24 is (channels, n, 3)."""
    return _as_numbers(samples, sample_format, np.float64) / FULL_SCALE[sample_format]


def _as_numbers(
    samples: NDArray[Any], sample_format: SampleFormat, real: type[np.floating[Any]]
) -> NDArray[Any]:
    """Convert a format's samples, as integers if it has such, to numbers of a precision."""
    if sample_format == "int24":
        low, middle, high = np.moveaxis(samples.astype(np.int32), -1, 0)
        samples = low | middle << 8 | (high ^ 0x80) - 0x80 << 16
    numbers: NDArray[Any] = samples.astype(real, copy=False)
    return numbers


def _frames(values: Values, length: int, places: NDArray[np.int64], hop: int | None) -> Values:
    """Return the frames of (channels, n) values that begin at places: (frames, channels, length).

    Places that are a hop apart give a view.
    """
    if hop is None:
        every = np.lib.stride_tricks.sliding_window_view(values, length, 1)
        return every[:, places].transpose(1, 0, 2)
    # ``sliding_window_view`` takes four times as long, while other threads wait for Python's lock.
    channel, value = values.strides
    return np.lib.stride_tricks.as_strided(
        values, (len(places), len(values), length), (hop * value, channel, value)
    )


def band_sums(bands: BandRows, power: Values) -> Float64Array:
    """Sum over bins, (..., n_bins) to (..., n_bands) float64."""
    sums = np.empty((*power.shape[:-1], len(bands.first)))
    weights = np.split(bands.weights, np.cumsum(bands.count)[:-1])
    for band, (first, row) in enumerate(zip(bands.first, weights, strict=True)):
        sums[..., band] = power[..., first : first + len(row)] @ row
    return sums


def _squared(spectra: Values, out: Values | None) -> Values:
    """Return ``|X|^2``, (..., bins), in the spectra's precision; overwrites them, in C order."""
    parts = spectra.view(spectra.real.dtype)
    parts *= parts
    power: Values = np.add(parts[..., 0::2], parts[..., 1::2], out=out)
    return power


def bin_factors(spec: StftSpec, tables: StftTables) -> Float64Array:
    """Return the weights, (n_bins,), halved for bins of a real spectrum that have no twin."""
    factors = np.ones(spec.n_bins) if tables.weights is None else np.array(tables.weights)
    if not spec.iq:
        factors[_without_twin(spec)] /= 2
    return factors


def _without_twin(spec: StftSpec) -> slice:
    """Return the bins of a real spectrum at 0 Hz and, if it is one, at half the rate."""
    return slice(0, None, spec.n_bins - 1) if spec.nfft % 2 == 0 else slice(0, 1)
