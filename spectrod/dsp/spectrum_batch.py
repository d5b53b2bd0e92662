"""Rows of spectra, computed in one launch."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.blocks import Chunk
from spectrod.dsp.conditions import UInt8Array
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_views import TIME, check_signal, data_array, draw_rows
from spectrod.dsp.units import Float64Array, Int64Array
from spectrod.lib.array_values import ArrayValues
from spectrod.lib.errors import InputError, InternalError
from spectrod.lib.notebook import Drawn


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SpectrumBatch(Chunk, ArrayValues, Drawn):
    """Spectra of consecutive frames; a batch never spans a gap.

    Attributes
    ----------
    values : (rows, signals, values) float32, or complex64 for complex spectra
        Values in ``spec.unit``. A row is a frame, or an average over ``spec.averaging_frames``.
    sample_index : (rows,) int64
        Absolute index of the first sample of each row's first frame.
    t_mono_ns, t_utc_ns : (rows,) int64
        Monotonic clock and UTC of that sample [ns].
    spec : SpectrumSpec
        Definition of the values.
    engine : str
        Engine that computed them, for example ``"opencl:PoCL/AMD EPYC"`` or ``"numpy"``.
    gap_samples : int
        Samples missing between the preceding frame and the first of these; 0 if none.
    discontinuity : bool
        True if the first frame does not follow the preceding one or the skipped rows: samples are
        missing, or an average was interrupted.
    skipped_rows : int
        Rows directly before the first one that were not computed because nobody wanted them.
    cut_frames : int
        Frames of the only row, an average that a gap or the end cut off; 0 for whole rows.
    broadband : (rows, signals) float32, optional
        Power of all bins, in ``spec.broadband_unit``; None without ``spec.broadband``.
    conditions : (rows, signals) uint8, optional
        What checks found in the samples of each row, see ``Condition``; None if nobody checked.
    overflows, suspected : int
        Losses of samples from the start of the source until these rows were computed: those that
        the sound system flagged, and those found by counting against the clock.
    """

    unit: ClassVar[str] = "rows"

    values: NDArray[Any]
    sample_index: Int64Array
    t_mono_ns: Int64Array
    t_utc_ns: Int64Array
    spec: SpectrumSpec
    engine: str
    gap_samples: int = 0
    discontinuity: bool = False
    skipped_rows: int = 0
    cut_frames: int = 0
    broadband: NDArray[Any] | None = None
    conditions: UInt8Array | None = None
    overflows: int = 0
    suspected: int = 0

    def __post_init__(self) -> None:
        if (self.broadband is not None) != self.spec.broadband:
            rule = "must be there" if self.spec.broadband else "must be None"
            raise InternalError(f"broadband values of {self.spec.product}: {rule}")

    def __repr__(self) -> str:
        """Return one line: sizes, the first sample, what they are and the unit."""
        rows, signals, values = self.values.shape
        begin = f" from sample {self.sample_index[0]}" if rows else ""
        after = f" after {self.gap_samples} missing" if self.gap_samples else ""
        return (
            f"<SpectrumBatch: {rows} rows of {signals} x {values} values{begin}{after}, "
            f"{self.spec.product} in {self.spec.scale.unit}, {self.engine}>"
        )

    def plot(self, ax: Any = None, signal: int = 0) -> Any:
        """Draw the levels of one signal with matplotlib: one row over frequency, more over time.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default the axes of a new figure, see ``Spectrogram.plot``.
        signal : int
            Which one, if there are several; 0 is the first.

        Returns
        -------
        ax : matplotlib.axes.Axes

        Raises
        ------
        ConfigError
            If there is no such signal.
        InputError
            If there are no rows.
        UnavailableError
            If matplotlib is not installed: ``pip install 'spectrod[plot]'``.
        """
        if not self.n_frames:
            raise InputError("a batch without rows cannot be drawn")
        check_signal(signal, self.values.shape[1])
        return draw_rows(ax, self.spec, self._centres_s, self.values[:, signal].T)

    def to_xarray(self) -> Any:
        """Return the values, which are not copied, as an ``xarray.DataArray``.

        Batches of a stream are joined by ``xarray.concat(arrays, "time")``.

        Returns
        -------
        array : xarray.DataArray
            Dimensions time, channel, frequency, with the middle of each row since the first sample
            of the stream [s], ``sample_index`` and ``t_utc_ns`` of its first sample, frequencies
            in Hz, and unit and analysis as attributes.

        Raises
        ------
        UnavailableError
            If xarray is not installed: ``pip install 'spectrod[xarray]'``.
        """
        index = {"long_name": "index of a row's first sample; missing ones count"}
        utc = {"long_name": "UTC of a row's first sample, if the begin of the stream has one"}
        coordinates = {
            "time": ("time", self._centres_s, TIME),
            "sample_index": ("time", self.sample_index, index),
            "t_utc_ns": ("time", self.t_utc_ns, utc | {"comment": "ns since 1970"}),
        }
        return data_array(self.spec, self.values, ("time", "channel", "frequency"), coordinates)

    @property
    def _centres_s(self) -> Float64Array:
        """Middle of each row since the first sample of the stream, (rows,) [s]."""
        n_frames = self.cut_frames or self.spec.averaging_frames
        span = (n_frames - 1) * self.spec.hop + self.spec.win_length
        return (self.sample_index.astype(np.float64) + span / 2.0) / self.spec.fs

    @property
    def n_frames(self) -> int:
        """Rows of this batch: frames, or averages over them."""
        return int(self.values.shape[0])

    @property
    def length(self) -> int:
        """See ``Chunk``."""
        return self.n_frames

    @property
    def begin_utc_ns(self) -> int:
        """See ``Chunk``; a row's time is that of its first sample."""
        return int(self.t_utc_ns[0])

    @property
    def last_utc_ns(self) -> int:
        """See ``Chunk``."""
        return int(self.t_utc_ns[-1])

    @property
    def n_bytes(self) -> int:
        """See ``Chunk``."""
        return int(self.values.nbytes) + 3 * int(self.t_utc_ns.nbytes)

    @property
    def delay_s(self) -> float:
        """See ``Chunk``; a row arrives when all its frames are complete."""
        return self.spec.row_s + self.spec.win_length / self.spec.fs

    @property
    def span_samples(self) -> int:
        """See ``Chunk``."""
        step = int(self.spec.row_step)
        n_rows = self.n_frames + self.skipped_rows
        if self.cut_frames:  # the cut frames are in the only row
            return self.gap_samples + step * (n_rows - 1) + self.spec.hop * self.cut_frames
        return self.gap_samples + step * n_rows

    def between(self, first: int, stop: int) -> Self:
        """See ``Chunk``."""
        if (first, stop) == (0, self.n_frames):
            return self
        rows = slice(first, stop)
        part = replace(
            self,
            values=self.values[rows],
            sample_index=self.sample_index[rows],
            t_mono_ns=self.t_mono_ns[rows],
            t_utc_ns=self.t_utc_ns[rows],
            broadband=None if self.broadband is None else self.broadband[rows],
            conditions=None if self.conditions is None else self.conditions[rows],
        )
        return part.as_first() if first else part

    def index_at(self, t_utc_ns: int) -> int:
        """See ``Chunk``; the times ascend."""
        return int(np.searchsorted(self.t_utc_ns, t_utc_ns))

    def after_gap(self, missing_samples: int) -> Self:
        """See ``Chunk``."""
        gap_samples = self.gap_samples + missing_samples
        return replace(self, gap_samples=gap_samples, discontinuity=True)

    def as_first(self) -> Self:
        """Return the batch with nothing missing before it."""
        return replace(self, gap_samples=0, skipped_rows=0, discontinuity=False)

    def runs(self, numbers: Int64Array) -> Iterator[tuple[int, Self]]:
        """Split into runs of rows with the same number; yields each with that number.

        Parameters
        ----------
        numbers : (rows,) int64
            Number of each row; they need not ascend.
        """
        stops = np.flatnonzero(np.diff(numbers)) + 1
        first = 0
        for stop in (*stops.tolist(), self.n_frames):
            if first < stop:
                yield int(numbers[first]), self.between(first, stop)
            first = stop


def without_broadband(
    computed: NDArray[Any], spec: SpectrumSpec
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Split rows, (..., n_computed), into values, (..., n_values), and broadband ones, (...)."""
    if not spec.broadband:
        return computed, None
    return computed[..., :-1], computed[..., -1]
