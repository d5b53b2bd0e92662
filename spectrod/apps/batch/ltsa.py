"""Long-term average of a whole deployment, pooled from its daily files in bounded memory."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spectrod.apps.batch.daily_file import EFFORTS, LEVELS, DailyFile
from spectrod.apps.batch.results import OutputFile
from spectrod.dsp.bands import Bands
from spectrod.dsp.duty_cycle import NOTHING, OWN_TIME, DutyCycle, find_duty_cycle
from spectrod.dsp.units import NS_PER_S, Float64Array, Int64Array
from spectrod.formats.export.minute_bands import minute_bands
from spectrod.formats.export.minutes import minute_frames
from spectrod.formats.picture.colormaps import Uint8Array, colormap
from spectrod.formats.picture.png import encode_png
from spectrod.lib.errors import StorageError

WIDTH, HEIGHT = 1200, 300
"""Size of the picture [px]; spans of fewer minutes have a column for each."""
F_MIN_HZ = 10.0
"""Lowest frequency of the logarithmic axis [Hz]."""
_MINUTE_S = 60
_MINUTE_NS = _MINUTE_S * NS_PER_S
_GAP = 0
SHADES = 255
"""Colours of levels."""
_GAP_COLOUR = (208, 214, 220)
_RANGE_PERCENT = (1.0, 99.5)
_RANGE_MIN_DB = 10.0
_LN10_10 = np.log(10.0) / 10.0


@dataclass(frozen=True, slots=True, eq=False)
class LongTermAverage:
    """Mean power over the columns and rows of a picture.

    Attributes
    ----------
    level : (rows, columns) float64
        Power spectral density [dB, see ``unit``], highest frequency first; NaN without data.
    begin_utc_ns, end_utc_ns : int
        Time at the left and at the right edge [ns].
    f_min_hz, f_max_hz : float
        Frequency at the lower and at the upper edge, of a logarithmic axis [Hz].
    unit : str
        Unit of levels.
    unreadable : tuple of str
        Names of files that could not be read.
    period_s : float
        Period of the recorder's schedule, if columns stand for one, see ``pool_days``; otherwise 0
        [s].
    range_db : tuple of float, optional
        Levels of the first and last colour [dB]; those of its own by default.
    """

    level: Float64Array
    begin_utc_ns: int
    end_utc_ns: int
    f_min_hz: float
    f_max_hz: float
    unit: str
    unreadable: tuple[str, ...] = ()
    period_s: float = 0.0
    range_db: tuple[float, float] | None = None

    @property
    def limits(self) -> tuple[float, float]:
        """Levels of the first and last colour [dB]."""
        return limits_of(self.level) if self.range_db is None else self.range_db

    def png(self, colours: Uint8Array | None = None) -> bytes:
        """Return the picture; grey where there are no data.

        Parameters
        ----------
        colours : (255, 3) uint8, optional
            From the lowest to the highest level.
        """
        low, high = self.limits
        shares = np.clip((self.level - low) / (high - low), 0.0, 1.0)
        has_data = np.isfinite(shares)
        entries = np.full(shares.shape, _GAP, np.uint8)
        entries[has_data] = 1 + np.rint(shares[has_data] * (SHADES - 1)).astype(np.uint8)
        table = colormap("inferno", SHADES) if colours is None else colours
        return encode_png(entries, bytes(_GAP_COLOUR) + table.tobytes(), ())


def limits_of(level: Float64Array) -> tuple[float, float]:
    """Return whole levels between which almost all lie, at least 10 dB apart; NaN do not count."""
    found = level[np.isfinite(level)]
    if not found.size:
        return 0.0, _RANGE_MIN_DB
    low, high = np.percentile(found, _RANGE_PERCENT)
    return float(np.floor(low)), float(max(np.ceil(high), np.floor(low) + _RANGE_MIN_DB))


@dataclass(frozen=True, slots=True)
class PooledDay:
    """A daily file that is pooled.

    Attributes
    ----------
    fetch : callable
        Returns a context manager with the path of the file, see ``JobOutput.fetched``.
    output : OutputFile
        What its record says of it.
    day_utc_ns : int
        Begin of its day [ns].
    fs : float
        Sample rate of its sound [Hz].
    """

    fetch: Callable[[], AbstractContextManager[Path]]
    output: OutputFile
    day_utc_ns: int
    fs: float

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.output.path.rpartition("/")[2]

    @property
    def bands(self) -> Bands:
        """Bands of its levels."""
        return minute_bands(self.fs, minute_frames(self.fs)["nfft"])


def pool_days(
    days: Sequence[PooledDay], begin_utc_ns: int, end_utc_ns: int, f_max_hz: float = 0.0
) -> LongTermAverage:
    """Pool daily files of one signal to a picture, one file in memory at a time.

    A pixel is the mean power of the minutes that begin in its column, weighted by their effort, and
    over the bands of its row, weighted by the width that they share with it. Columns that are
    shorter than the pauses of a recorder's schedule have the minutes of the recording of their
    period, see ``DutyCycle.recording_of``.

    Parameters
    ----------
    days : sequence of PooledDay
        Files of ``MillidecadeWriter``, at least one. One that is not that of its record, or cannot
        be read, is left out, and named.
    begin_utc_ns, end_utc_ns : int
        Span of the picture [ns]; widened to whole minutes.
    f_max_hz : float
        Highest frequency [Hz]; 0: the highest one of the files.
    """
    begin = begin_utc_ns // _MINUTE_NS
    n_minutes = max(1, -(-end_utc_ns // _MINUTE_NS) - begin)
    f_max_hz = f_max_hz or max(day.fs for day in days) / 2.0
    pool = _Pool(begin, n_minutes, min(WIDTH, n_minutes), f_max_hz)
    unreadable = []
    for day in days:
        try:
            # What a damaged file makes of numbers is found by a check, and not warned of.
            quiet = np.errstate(over="ignore", invalid="ignore")
            with (
                day.fetch() as path,
                closing(DailyFile(path, day.output, len(day.bands))) as file,
                quiet,
            ):
                pool.add(file, day)
        except StorageError:
            unreadable.append(day.name)
    level, period_s = pool.columns()
    return LongTermAverage(
        level=level,
        begin_utc_ns=begin * _MINUTE_NS,
        end_utc_ns=(begin + n_minutes) * _MINUTE_NS,
        f_min_hz=float(pool.edges_hz[0]),
        f_max_hz=float(pool.edges_hz[-1]),
        unit=pool.unit,
        unreadable=tuple(unreadable),
        period_s=period_s,
    )


class _Pool:
    """Sums of power and effort of each pixel."""

    def __init__(self, begin: int, n_minutes: int, n_columns: int, f_max_hz: float) -> None:
        self.unit = ""
        self.edges_hz = np.geomspace(min(F_MIN_HZ, f_max_hz / 10.0), f_max_hz, HEIGHT + 1)
        self._begin, self._n_minutes = begin, n_minutes
        self._power = np.zeros((n_columns, HEIGHT))
        self._effort = np.zeros((n_columns, HEIGHT))
        self._spans: list[Int64Array] = []

    def add(self, file: DailyFile, day: PooledDay) -> None:
        """Add a file's minutes; StorageError if they are no numbers or cannot be read."""
        effort = file.read(EFFORTS)
        minutes = day.day_utc_ns // _MINUTE_NS - self._begin + np.arange(len(effort))
        used = np.flatnonzero((effort > 0.0) & (minutes >= 0) & (minutes < self._n_minutes))
        if not used.size:
            return
        self._spans.append(_spans(minutes[used]))
        column, first = np.unique(
            minutes[used] * len(self._power) // self._n_minutes, return_index=True
        )
        level = file.read(LEVELS)[used].astype(np.float64)
        seconds = effort[used, np.newaxis].astype(np.float64)
        # Minutes first: in a season's picture a day has few columns, but thousands of bands.
        power = np.add.reduceat(np.exp(level * _LN10_10) * seconds, first, axis=0)
        weights = self._weights(np.stack([day.bands.lower, day.bands.upper], axis=1))
        of_rows = power @ weights.T
        effort_s = np.add.reduceat(seconds, first, axis=0) * (weights.sum(axis=1) > 0.0)
        if not (np.isfinite(of_rows).all() and np.isfinite(effort_s).all()):
            raise StorageError(f"{day.name}: levels must be numbers")
        self._power[column] += of_rows
        self._effort[column] += effort_s
        self.unit = self.unit or file.unit()

    def _weights(self, bounds: Float64Array) -> Float64Array:
        """Return the share of each band in each row, (rows, bands); zeros where there is none."""
        lower, upper = self.edges_hz[:-1, np.newaxis], self.edges_hz[1:, np.newaxis]
        shared = np.clip(np.minimum(upper, bounds[:, 1]) - np.maximum(lower, bounds[:, 0]), 0, None)
        total = shared.sum(axis=1, keepdims=True)
        weights: Float64Array = np.divide(
            shared, total, out=np.zeros_like(shared), where=total > 0.0
        )
        return weights

    def columns(self) -> tuple[Float64Array, float]:
        """Return levels and the period that columns stand for.

        Levels have the shape (rows, columns), highest frequency first; NaN without data [dB]. The
        period is 0 if columns stand for their own time [s].
        """
        cycle = self._cycle()
        power, effort, period_s = self._power, self._effort, 0.0
        if cycle is not None:
            edges_s = np.linspace(0.0, self._n_minutes * _MINUTE_S, len(power) + 1)
            recording = cycle.recording_of(edges_s, _MINUTE_S)
            if (recording != OWN_TIME).any():
                power, effort = (self._of(cycle, recording, own) for own in (power, effort))
                period_s = cycle.period_s
        mean = np.full(power.shape, np.nan)
        np.divide(power, effort, out=mean, where=effort > 0.0)
        return 10.0 * np.log10(mean.T[::-1]), period_s

    def _cycle(self) -> DutyCycle | None:
        """Find the schedule of the minutes with data."""
        if not self._spans:
            return None
        spans = np.concatenate(self._spans)
        begins, ends = spans[np.argsort(spans[:, 0], kind="stable")].T * float(_MINUTE_S)
        is_apart = begins[1:] > ends[:-1]
        first, last = np.append([True], is_apart), np.append(is_apart, [True])
        return find_duty_cycle(begins[first], ends[last], _MINUTE_S)

    def _of(self, cycle: DutyCycle, recording: Int64Array, own: Float64Array) -> Float64Array:
        """Return the sums of columns with those of whole recordings where they are shown."""
        is_shown = recording >= 0
        numbers, of_column = np.unique(recording[is_shown], return_inverse=True)
        begins, ends = (
            np.asarray(limits_s[numbers] / _MINUTE_S, np.int64)
            for limits_s in (cycle.begins_s, cycle.ends_s)
        )
        first = begins * len(own) // self._n_minutes
        stop = (ends - 1) * len(own) // self._n_minutes + 1
        # Padded: an index may be the one after the last.
        padded = np.concatenate([own, np.zeros((1, HEIGHT))])
        sums = np.add.reduceat(padded, np.stack([first, stop], axis=1).ravel(), axis=0)[::2]
        table = own.copy()
        table[is_shown] = sums[of_column]
        table[recording == NOTHING] = 0.0
        return table


def _spans(minutes: Int64Array) -> Int64Array:
    """Return the begin and end of each run of successive minutes, (runs, 2)."""
    breaks = np.flatnonzero(np.diff(minutes) > 1)
    begins = minutes[np.append(0, breaks + 1)]
    return np.stack([begins, minutes[np.append(breaks, len(minutes) - 1)] + 1], axis=1)
