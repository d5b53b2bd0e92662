"""The one interface between the streaming engine and the kernels that turn samples into spectra.

A family (``spectrod.analysis.stft.stft_local``, ``spectrod.analysis.stft.stft_simd``,
``spectrod.analysis.stft.stft_general``) says what it can compute, and makes a stage of it for a
device. A stage reads frames where the samples lie, and writes nothing but what is asked for.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.blocks import SampleFormat
from spectrod.dsp.sample_layout import SAMPLE_BYTES
from spectrod.dsp.spectrum_rules import NFFT_MAX, NFFT_MIN, Averaging, Output
from spectrod.dsp.units import FLOOR_DBFS, Float64Array
from spectrod.lib.errors import ConfigError

if TYPE_CHECKING:  # NumPy computes without OpenCL
    from spectrod.fft.stage import Key

FULL_SCALE: dict[SampleFormat, float] = {
    "int16": 2.0**15,
    "int24": 2.0**23,
    "int32": 2.0**31,
    "float32": 1.0,
}


@dataclass(frozen=True, slots=True)
class StftSpec:
    """What shapes the code of a stage.

    The order of what is computed: frame, window, transform, ``|X|^2``, weights, bands, average,
    decibels; each but the first three only where asked for.

    Attributes
    ----------
    nfft : int
        Transform length, ``NFFT_MIN`` to ``NFFT_MAX``; frames are padded to it with zeros.
    win_length : int
        Samples under the window, 1 to nfft.
    sample_format : {"int16", "int24", "int32", "float32"}
        Of the samples.
    interleaved : bool
        Whether the samples of all channels at one time are neighbours; if not, those of a channel.
    iq : bool
        Each two channels are the real and the imaginary part of one signal. Its spectrum has nfft
        bins, two-sided and in ascending order: bin i is at ``(i - nfft // 2) fs / nfft``. A real
        one has bins 0 to nfft // 2.
    output : {"power", "complex"}
        ``|X|^2`` as float32, or X as complex64, of which nothing that follows can be asked.
    weighted : bool
        Whether each bin's power has a factor of its own.
    n_bands : int
        Weighted sums over bins instead of the bins; 0 for none.
    averaging : {"none", "mean", "max", "min", "exponential"}
        Over frames, see ``Average``.
    placed : bool
        Whether launches say where rows begin, see ``RowPlaces``.
    decibels : bool
        ``10 log10`` of what would be written otherwise, no lower than the tables' floor. NaN stays.

    Raises
    ------
    ConfigError
        With the name, the value and the rule, if one is broken.
    """

    nfft: int
    win_length: int
    sample_format: SampleFormat = "float32"
    interleaved: bool = False
    iq: bool = False
    output: Output = "power"
    weighted: bool = False
    n_bands: int = 0
    averaging: Averaging = "none"
    decibels: bool = False
    placed: bool = False

    def __post_init__(self) -> None:
        if not NFFT_MIN <= self.nfft <= NFFT_MAX:
            raise ConfigError(f"nfft={self.nfft}: must be {NFFT_MIN} to {NFFT_MAX}")
        if not 1 <= self.win_length <= self.nfft:
            raise ConfigError(f"win_length={self.win_length}: must be 1 to nfft={self.nfft}")
        if self.sample_format not in SAMPLE_BYTES:
            raise ConfigError(
                f"sample_format={self.sample_format!r}: must be one of {', '.join(SAMPLE_BYTES)}"
            )
        if self.averaging not in get_args(Averaging):
            raise ConfigError(
                f"averaging={self.averaging!r}: must be one of {', '.join(get_args(Averaging))}"
            )
        if self.n_bands < 0:
            raise ConfigError(f"n_bands={self.n_bands}: must not be negative")
        if self.output not in get_args(Output):
            raise ConfigError(
                f"output={self.output!r}: must be one of {', '.join(get_args(Output))}"
            )
        of_power = self.weighted or self.n_bands or self.averaging != "none" or self.decibels
        if self.output == "complex" and of_power:
            raise ConfigError("output='complex': has no weights, bands, averages or decibels")

    @property
    def key(self) -> "Key":
        """What a result of the tuner is for: all that is made of frames of a length shares it."""
        return self.nfft, "stft-iq" if self.iq else "stft", "single"

    @property
    def loaded_full_scale(self) -> float:
        """Full scale of samples as kernels load them: 24 bits are the upper ones of 32."""
        return FULL_SCALE["int32" if self.sample_format == "int24" else self.sample_format]

    @property
    def n_bins(self) -> int:
        """Bins of a frame's spectrum."""
        return self.nfft if self.iq else self.nfft // 2 + 1

    @property
    def n_values(self) -> int:
        """Values of a row of the result: bands, or bins where there are none."""
        return self.n_bands or self.n_bins

    @property
    def state_values(self) -> int:
        """Values of a channel in an average's state: two of each that adds up."""
        if self.averaging == "none":
            return 0
        return self.n_values * (2 if self.averaging in {"mean", "exponential"} else 1)

    @property
    def value_bytes(self) -> int:
        """Bytes of a value of the result."""
        return 8 if self.output == "complex" else 4

    @property
    def parts(self) -> int:
        """Channels of samples that make one channel of results: two where I/Q."""
        return 2 if self.iq else 1

    @property
    def complex_length(self) -> int:
        """Length of a frame's complex transform: two real samples count as one complex value."""
        return self.nfft if self.iq else self.nfft // 2


@dataclass(frozen=True, slots=True, eq=False)
class BandRows:
    """Sparse rows: band b is the sum of ``weights[offset_b + i] * power[first[b] + i]``.

    Attributes
    ----------
    first, count : (n_bands,) int64
        First bin of a band, and how many it has, one or more; all within the spectrum.
    weights : (count.sum(),) float64
        Of one band after the other.
    """

    first: NDArray[np.int64]
    count: NDArray[np.int64]
    weights: Float64Array


@dataclass(frozen=True, slots=True, eq=False)
class StftTables:
    """The numbers that go with a ``StftSpec``, in float64; stages round them.

    Attributes
    ----------
    window : (win_length,) float64
        With the whole scale in it: the power of a bin is ``|X|^2`` of samples in [-1, 1] times it.
        A real spectrum's is so scaled for the bins that have a twin; of bin 0, and of bin nfft / 2
        where nfft is even, the power is half of ``|X|^2``. Complex spectra are X, of all bins.
    weights : (n_bins,) float64, optional
        Factors of the power where ``weighted``.
    bands : BandRows, optional
        Where ``n_bands``.
    smoothing : float
        Weight of a new frame in an exponential average, above 0 to 1.
    floor_db : float
        Lowest level.
    """

    window: Float64Array
    weights: Float64Array | None = None
    bands: BandRows | None = None
    smoothing: float = 1.0
    floor_db: float = FLOOR_DBFS


@dataclass(frozen=True, slots=True)
class Samples:
    """Where samples lie in a buffer.

    Sample p of channel c is the one numbered ``c * pitch + p``, or ``p * pitch + c`` where the
    channels are interleaved.

    Attributes
    ----------
    buffer : pyopencl.Buffer
        Device memory. No byte outside the frames is read.
    pitch : int
        From a channel to the next, or interleaved: from a sample to the next.
    first : int
        Position p of the first frame's first sample; later frames follow every hop.
    """

    buffer: Any
    pitch: int
    first: int = 0


@dataclass(frozen=True, slots=True)
class Average:
    """Where an average over frames stands before a launch.

    Every ``frames`` frames a row is written. A mean, maximum or minimum is over the frames since
    the row before. An exponential one never ends, ``y += smoothing * (power - y)``, and
    starts with the first frame's power. Frames are taken in their order, one after the other in
    float32, so that results do not depend on how a stream is cut into launches. Sums carry along
    what their rounding lost: that of 10^5 equal frames would be wrong by 1e-3 without it.

    Attributes
    ----------
    state : pyopencl.Buffer
        (channels, 1 or 2, ``StftSpec.n_values``) float32: the unfinished row, of a mean its sum, or
        the exponential average; of those that add up also what rounding has added. Read where
        ``primed``, and written by the launch wherever the next one must be primed.
    frames : int
        Frames a row, >= 1.
    done : int
        Frames that the unfinished row has already, 0 to frames - 1.
    primed : bool
        Whether state holds any: done > 0, or exponential and not at the stream's beginning.
    """

    state: Any
    frames: int
    done: int = 0
    primed: bool = False

    def rows(self, n_frames: int) -> int:
        """Return the number of rows that a number of further frames finish."""
        return (self.done + n_frames) // self.frames


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """Where rows of frames begin that are not their frames' hops apart.

    Row r of a launch, from 0, begins ``floor((phase + r * numerator) / denominator)`` samples after
    row 0, of which the launch may have the last frames only. Its frames follow every hop from
    there. Without an average each frame is a row.

    Attributes
    ----------
    numerator, denominator : int
        Samples from one row to the next, >= 1 of them.
    phase : int
        0 to denominator - 1. Products with as many rows as there are must be less than 2^63.
    """

    numerator: int
    denominator: int = 1
    phase: int = 0

    def begin(self, row: int) -> int:
        """Place of a row, from that of row 0."""
        return (self.phase + row * self.numerator) // self.denominator

    def of(self, row: int) -> "RowPlaces":
        """Return the places from a row on."""
        phase = (self.phase + row * self.numerator) % self.denominator
        return replace(self, phase=phase)

    @property
    def arguments(self) -> tuple[int, int, int]:
        """The numbers that kernels take, in their order."""
        return self.numerator, self.denominator, self.phase


_NO_PLACES = RowPlaces(1)
"""What kernels are given that do not read it."""


def frame_places(
    hop: int, n_frames: int, average: Average | None = None, places: RowPlaces | None = None
) -> NDArray[np.int64]:
    """Return where the frames of a launch begin, from the first of them [samples]."""
    frames, done = (average.frames, average.done) if average else (1, 0)
    if places is None or n_frames == 0:
        return np.arange(n_frames, dtype=np.int64) * hop
    number = np.arange(done, done + n_frames)
    rows = number // frames
    begins = np.array([places.begin(row) for row in range(int(rows[-1]) + 1)], np.int64)
    return begins[rows] + (number % frames - done) * hop


@dataclass(frozen=True, slots=True)
class StftLaunch:
    """Frames that are computed together, and the rows that they are of.

    Attributes
    ----------
    samples : Samples
        channels * spec.parts channels.
    hop : int
        From one frame's first sample to the next's, of a row where ``spec.placed``, >= 1.
    n_frames, channels : int
        Counts of frames and of channels of results, >= 1.
    average : Average, optional
        Where ``spec.averaging`` is not "none".
    places : RowPlaces, optional
        Where ``spec.placed``.
    """

    samples: Samples
    hop: int
    n_frames: int
    channels: int
    average: Average | None = None
    places: RowPlaces | None = None

    @property
    def row_state(self) -> tuple[int, int, bool]:
        """Frames per row, how many of them the first row has already, and whether state is read."""
        average = self.average
        return (average.frames, average.done, average.primed) if average else (1, 0, False)

    @property
    def state(self) -> Any:
        """State of the average; None without one."""
        return self.average.state if self.average else None

    @property
    def place_arguments(self) -> tuple[int, int, int]:
        """The numbers by which kernels find rows; such as they do not read where not placed."""
        return (self.places or _NO_PLACES).arguments

    def side_by_side(self, averaging: Averaging) -> "list[StftLaunch]":
        """Divide it into one or two launches whose rows may be computed side by side.

        Of the rows of one launch the first may read an average's state or the last one write it,
        not both. The second of two finishes no row.
        """
        average, places = self.average, self.places
        if average is None or averaging == "exponential" or not average.primed:
            return [self]
        rest, n_rows = (average.done + self.n_frames) % average.frames, average.rows(self.n_frames)
        if rest == 0 or n_rows == 0:
            return [self]
        first = self.n_frames - rest
        away = (
            first * self.hop if places is None else places.begin(n_rows) - average.done * self.hop
        )
        later = replace(
            self,
            samples=replace(self.samples, first=self.samples.first + away),
            n_frames=rest,
            average=replace(average, done=0, primed=False),
            places=places and places.of(n_rows),
        )
        return [replace(self, n_frames=first), later]


class StftStage(Protocol):
    """Frames to rows of results, compiled for one device; one thread at a time.

    Attributes
    ----------
    spec : StftSpec
        What it computes.
    """

    spec: StftSpec

    def scratch_bytes(self, n_frames: int, channels: int) -> int:
        """Bytes of device memory that ``launch`` needs besides; 0 for none."""
        ...

    def launch(self, out: Any, launch: StftLaunch, scratch: Any = None) -> list[Any]:
        """Queue the computation; return the events of the kernels, in order.

        A frame's result depends on its own samples alone, bit for bit: not on its place in the
        launch, on hop, n_frames or channels, or on where the samples lie.

        Parameters
        ----------
        out : pyopencl.Buffer
            (rows, channels, n_values), dense, from its first byte on; rows are frames, or what
            the average makes of them. Nothing past them is touched.
        launch : StftLaunch
            The frames.
        scratch : pyopencl.Buffer, optional
            At least ``scratch_bytes(n_frames, channels)`` bytes, where that is not 0.
        """
        ...
