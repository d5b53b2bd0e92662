"""Levels in fractional octaves by filters in the time domain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.units import Float64Array
from spectrod.lib.earlier_name import earlier_name
from spectrod.lib.errors import ConfigError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.levels.level_values import UNCALIBRATED_DB
from spectrod.measure.levels.octave_filters import OctaveFilter, decimator, octave_filters
from spectrod.measure.levels.recursive import CHUNK_SAMPLES, FilterStack, RecursiveFilter
from spectrod.measure.sample_chunks import SampleChunks, check_stream

INTERVAL_MIN_S, INTERVAL_MAX_S = 0.001, 86400.0


class OctaveFilterBank:
    """Filters several channels into fractional octaves, chunk by chunk, in float64.

    Bands are filtered at the lowest of the rates fs, fs / 2, fs / 4, ... that holds them.

    Parameters
    ----------
    filters : sequence of OctaveFilter
        From ``octave_filters``, all of the same sample rate of the signal.
    channels : int
        Number of channels, filtered alike and independently.
    """

    def __init__(self, filters: Sequence[OctaveFilter], channels: int) -> None:
        n_stages = max(one.stage for one in filters)
        self._decimators = [
            RecursiveFilter(decimator(), channels, CHUNK_SAMPLES >> stage)
            for stage in range(n_stages)
        ]
        self._stacks = [
            (stage, FilterStack([one.cascade for one in found], channels, CHUNK_SAMPLES >> stage))
            for (stage, _), found in groupby(filters, lambda one: (one.stage, _order(one)))
        ]

    def reset(self) -> None:
        """Forget all samples so far."""
        for decimate in self._decimators:
            decimate.reset()
        for _, stack in self._stacks:
            stack.reset()

    def run(self, samples: Float64Array) -> Iterator[Float64Array]:
        """Filter the next chunk.

        Parameters
        ----------
        samples : (channels, CHUNK_SAMPLES) float64
            Finite samples.

        Yields
        ------
        bands : (bands, channels, CHUNK_SAMPLES >> stage) float64
            The signal in the next bands, at their rate: sample j is at sample ``j << stage``. All
            are to be taken before the next chunk.
        """
        decimated = [samples]
        for decimate in self._decimators:
            decimated.append(np.ascontiguousarray(decimate.run(decimated[-1])[:, ::2]))
        for stage, stack in self._stacks:
            yield stack.run(decimated[stage])


def _order(one: OctaveFilter) -> int:
    return sum(len(section.a) - 1 for section in one.cascade)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OctaveRow:
    """Levels of one interval.

    Attributes
    ----------
    first_sample, n_samples : int
        First sample of the interval since the start, and its number of samples.
    levels : (bands, channels) float64
        Equivalent continuous levels; NaN for a band without a sample in the interval [dB].
    is_settling : (bands,) bool
        Whether the interval begins before the band's filter has settled after the start or a gap.
    """

    first_sample: int
    n_samples: int
    levels: Float64Array
    is_settling: NDArray[np.bool_]

    def __repr__(self) -> str:
        """Return one line: the samples, sizes, and how many bands have not settled."""
        n_bands, n_channels = self.levels.shape
        n_settling = np.count_nonzero(self.is_settling)
        settling = f", {n_settling} settling" if n_settling else ""
        return (
            f"<OctaveRow: sample {self.first_sample}, {self.n_samples} samples, {n_bands} x "
            f"{n_channels} levels{settling}>"
        )


class OctaveMeter:
    """Measures equivalent continuous levels in fractional octaves, in intervals.

    The results do not depend, to the bit, on how the samples are cut into blocks. They come when
    the chunk of 4096 samples with an interval's last sample is complete.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Number of channels, 1 to ``CHANNELS_MAX``.
    fraction : {1, 3, 6, 12, 24}
        Bands in an octave.
    interval_s : float
        Length of an interval, 1 ms to a day [s].
    f_min_hz, f_max_hz : float
        Nominal mid-band frequencies of the first and the last band [Hz].
    full_scale_db : float
        Level of a signal whose root mean square is 1.0 [dB]. By default 3.01: levels are in dBFS,
        and 0 dBFS is a full-scale sine.

    Attributes
    ----------
    filters : tuple of OctaveFilter
        The bands, ascending.

    Raises
    ------
    ConfigError
        If a parameter violates a rule.
    """

    def __init__(  # noqa: PLR0913 - all are settings of one instrument
        self,
        fs: float,
        channels: int = 1,
        *,
        fraction: int = 3,
        interval_s: float = 1.0,
        f_min_hz: float = 20.0,
        f_max_hz: float = 20000.0,
        full_scale_db: float = UNCALIBRATED_DB,
    ) -> None:
        check_stream(fs, channels)
        if not INTERVAL_MIN_S <= interval_s <= INTERVAL_MAX_S or interval_s * fs < 1.0:
            raise ConfigError(
                f"must be {INTERVAL_MIN_S:g} s to a day, and at least a sample",
                interval_s=interval_s,
            )
        self.filters = octave_filters(fs, fraction, f_min_hz, f_max_hz)
        self._fs, self._channels, self._interval_s = fs, channels, interval_s
        self._full_scale_db = full_scale_db
        self._interval_samples = interval_s * fs
        self._settle = np.array([one.settle_s * fs for one in self.filters])
        self._bank = OctaveFilterBank(self.filters, channels)
        self._chunks = SampleChunks(channels)
        self._run_first = self._first = 0
        self._n_interval = 0
        self._sums = np.zeros((len(self.filters), channels))
        self._counts = np.zeros(len(self.filters), np.int64)
        self._n_samples = 0

    def __repr__(self) -> str:
        """Return one line: rate, channels, bands and interval."""
        first, last = self.filters[0].name, self.filters[-1].name
        channels = f"{self._channels} channel{'' if self._channels == 1 else 's'}"
        return (
            f"<OctaveMeter: {self._fs:.6g} Hz, {channels}, {len(self.filters)} bands from {first} "
            f"to {last} each {self._interval_s:.6g} s>"
        )

    @naming_arrays
    def push(self, samples: ArrayLike, missing_samples: int = 0) -> list[OctaveRow]:
        """Measure the next samples.

        Parameters
        ----------
        samples : (channels, n) or (n,) array_like
            Finite samples, floating-point [FS].
        missing_samples : int
            Samples that are missing before them. The filters then start again.

        Returns
        -------
        rows : list of OctaveRow
            The intervals that are complete.

        Raises
        ------
        ConfigError
            If the shape or dtype is wrong.
        InputError
            If a sample is not finite.
        """
        given = self._chunks.checked(samples)
        rows = self._skip(missing_samples) if missing_samples > 0 else []
        for _ in self._chunks.fill(given):
            rows += self._measure()
        return rows

    feed = earlier_name("feed", "push")

    def finish(self) -> list[OctaveRow]:
        """Measure the samples that are left; the last row is of a partial interval."""
        rows = self._measure()
        if self._n_samples:
            rows.append(self._take_row())
        self._restart()
        return rows

    def _skip(self, missing_samples: int) -> list[OctaveRow]:
        rows = self._measure()
        end = self._end
        self._chunks.position += missing_samples
        if self._chunks.position >= end and self._n_samples:
            rows.append(self._take_row())
        self._restart()
        return rows

    def _restart(self) -> None:
        self._bank.reset()
        self._run_first = self._chunks.position

    @property
    def _end(self) -> int:
        """First sample after the interval in work."""
        return ceil((self._n_interval + 1) * self._interval_samples)

    def _open(self, index: int) -> None:
        """Begin the interval that holds a sample."""
        self._first = index
        self._n_interval = floor(index / self._interval_samples)
        if self._end <= index:  # the quotient was rounded down
            self._n_interval += 1

    def _measure(self) -> list[OctaveRow]:
        chunk, n, base = self._chunks.take()
        if not n:
            return []
        squares = [one for bands in self._bank.run(chunk) for one in np.square(bands, out=bands)]
        rows, first = [], 0
        while first < n:
            if not self._n_samples:
                self._open(base + first)
            stop = min(n, self._end - base)
            self._add(squares, first, stop)
            first = stop
            if base + stop == self._end:
                rows.append(self._take_row())
        return rows

    def _add(self, squares: list[Float64Array], first: int, stop: int) -> None:
        for band, one in enumerate(self.filters):
            step = 1 << one.stage
            part = squares[band][:, -(-first // step) : -(-stop // step)]
            self._sums[band] += part.sum(axis=1)
            self._counts[band] += part.shape[1]
        self._n_samples += stop - first

    def _take_row(self) -> OctaveRow:
        with np.errstate(divide="ignore", invalid="ignore"):
            levels = 10.0 * np.log10(self._sums / self._counts[:, np.newaxis])
        is_settling = self._first < self._run_first + self._settle
        row = OctaveRow(self._first, self._n_samples, levels + self._full_scale_db, is_settling)
        self._sums, self._counts = np.zeros_like(self._sums), np.zeros_like(self._counts)
        self._n_samples = 0
        return row
