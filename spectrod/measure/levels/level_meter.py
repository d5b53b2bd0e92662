"""A sound level meter for blocks of samples of any length."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.calibration import Response
from spectrod.dsp.interval_flags import IntervalFlag
from spectrod.dsp.units import Float64Array
from spectrod.lib.earlier_name import earlier_name
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.lib.time_zones import find_zone
from spectrod.measure.intervals import (
    DAY_S,
    IntervalBounds,
    IntervalGrid,
    LevelAlign,
    check_days,
    check_intervals,
    period_at,
    period_hours,
)
from spectrod.measure.levels.equalizer import Equalizer
from spectrod.measure.levels.histogram import BYTES_PER_CHANNEL
from spectrod.measure.levels.level_quantities import (
    BAND_RANGE_HZ,
    QUANTITIES_DEFAULT,
    LevelQuantity,
    parse_quantities,
)
from spectrod.measure.levels.level_tally import Part, Tally
from spectrod.measure.levels.level_total import DayTotals, LevelTotal
from spectrod.measure.levels.level_values import UNCALIBRATED_DB, Scale, values_of
from spectrod.measure.levels.loudness import channel_weights as checked_weights
from spectrod.measure.levels.octave_levels import (
    BandChain,
    BandTally,
    band_levels,
    band_values,
)
from spectrod.measure.levels.recursive import CHUNK_SAMPLES
from spectrod.measure.levels.time_weighting import SETTLE_S
from spectrod.measure.levels.weighted_signals import ChunkSignals, Needs, SignalChain
from spectrod.measure.measurement import Measurement, meter_text
from spectrod.measure.sample_chunks import SampleChunks, check_stream, checked_samples

HISTOGRAM_BYTES_MAX = 1 << 29
"""Largest memory of the histograms of percentiles [bytes]."""

_FILTER_SETTLE_S = 0.1
"""Time in which the weightings A and C forget an offset at the start [s]: 6 time constants of
their double pole at 20.6 Hz."""
_RANGED = ("eq", "last", "max", "min", "percentile", "period")
"""Kinds of quantities that the lower limit applies to."""
_LOUDNESS_SETTLE_S = {"LUFS_S": 3.0, "LUFS_Smax": 3.0, "LRA": 60.0}
_MOMENTARY_SETTLE_S = 0.4
_NO_HOURS = (12.0, 4.0, 8.0)


LevelFlag = IntervalFlag
"""Flags of a row of levels."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LevelRow(Measurement):
    """Row of levels: one value of each quantity and channel, and those in bands.

    Attributes
    ----------
    band_values : (band quantities, bands, channels) float64
        NaN where a band has no value; empty without bands.
    is_day : bool
        Whether it is of a local day, beside rows of shorter intervals.
    """

    band_values: Float64Array = field(default_factory=lambda: np.empty((0, 0, 0)))
    is_day: bool = False

    def _further(self) -> str:
        n_bands = self.band_values.shape[1]
        bands = f", {n_bands} band{'' if n_bands == 1 else 's'}" if n_bands else ""
        return f"{bands}{', a day' if self.is_day else ''}"

    @property
    def message_values(self) -> Float64Array:
        """The values in the order of ``LevelMeter.message_quantities``."""
        if not self.band_values.size:
            return self.values
        return np.concatenate((self.values, self.band_values.reshape(-1, self.values.shape[1])))


class LevelMeter:
    """Measures levels of several channels in intervals.

    The results do not depend, to the bit, on how the samples are cut into blocks. They come when
    the chunk of 4096 samples with an interval's last sample is complete.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    channels : int
        Number of channels, 1 to ``CHANNELS_MAX``.
    quantities : sequence of str
        Names of the values, see ``spectrod.measure.levels.level_quantities``.
    interval_s : float
        Length of an interval, 10 ms to 366 days [s].
    align : {"start", "utc", "local"}
        Intervals are counted from sample 0, from 1970-01-01T00:00Z or from local midnight. The
        last two need the time of the samples.
    utc_ns : int, optional
        UTC of the first sample [ns].
    first_sample : int
        Index of the first sample, from which those of rows are counted.
    time_zone : str, optional
        Time zone of Lden and its parts, and of local intervals; see ``find_zone``.
    full_scale_db : float or sequence of float, optional
        Level of a signal whose root mean square is 1.0, of all channels or each [dB]. By default
        3.01: levels are in dBFS, and 0 dBFS is a full-scale sine.
    channel_weights : sequence of float, optional
        Weights of the channels in the loudness; by default those of BS.1770 for the speakers.
    speakers : sequence of str
        Speaker of each channel, as ``FL`` or ``LFE``; see ``spectrod.source.files.speakers``.
        Empty: those usual for 1, 2, 5 and 6 channels.
    lower_limit_db : float, optional
        Level below which a row is flagged as under-range [dB].
    bands : str, optional
        Fractional octaves that are measured as well, by filters of IEC 61260-1: ``octave``,
        ``third-octave``, ``octave/6``, ``octave/12`` or ``octave/24``.
    band_quantities : sequence of str, optional
        Names of the values in each band, Z-weighted; by default ``LZeq``.
    band_range_hz : (float, float), optional
        Nominal mid-band frequencies of the first and the last band [Hz].
    responses : sequence of (Response or None), optional
        Frequency response of each channel, which levels are corrected by. Peaks, rms, dc and
        loudness are those of the digital samples.
    days : bool
        Whether each local day has a row as well, after those of its intervals, which must be
        shorter and ``align`` "local". Lden, Lday, Levening and Lnight are those of days then: rows
        of intervals have NaN there.

    Attributes
    ----------
    bands : BandLevels
        The bands and their quantities; empty without.
    equalizer : Equalizer or None
        What corrects the responses, with its error; None without.

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
        quantities: Sequence[str] = QUANTITIES_DEFAULT,
        interval_s: float = 1.0,
        align: LevelAlign = "start",
        utc_ns: int | None = None,
        first_sample: int = 0,
        time_zone: str = "",
        full_scale_db: float | Sequence[float] | None = None,
        channel_weights: Sequence[float] | None = None,
        speakers: Sequence[str] = (),
        lower_limit_db: float | None = None,
        bands: str = "",
        band_quantities: Sequence[str] = (),
        band_range_hz: tuple[float, float] = BAND_RANGE_HZ,
        responses: Sequence[Response | None] = (),
        days: bool = False,
    ) -> None:
        check_stream(fs, channels)
        self.fs, self.channels, self.interval_s = float(fs), channels, float(interval_s)
        self.quantities = parse_quantities(quantities, self.interval_s, days=days)
        self.bands = band_levels(bands, band_quantities, fs, self.interval_s, band_range_hz)
        self._needs = Needs.of(self.quantities)
        self._scale = Scale(self.fs, _full_scale(full_scale_db, channels))
        if lower_limit_db is not None and not np.isfinite(lower_limit_db):
            raise ConfigError("must be a finite level", lower_limit_db=lower_limit_db)
        self._lower_limit_db = lower_limit_db
        self._zone = find_zone(time_zone)
        self._bounds = IntervalBounds(
            self.fs,
            self.interval_s,
            align,
            self._zone,
            first_sample=first_sample,
            utc_ns=utc_ns,
        )
        self._clock = self._bounds.clock
        self.align = align
        self._check(time_zone)
        self._days: DayTotals | None = None
        if days:
            check_days(self.interval_s, align)
            self._days = DayTotals(IntervalGrid(self.fs, DAY_S, align, self._zone, self._clock))
        if channel_weights is not None and not self._needs.loudness:
            raise ConfigError("no quantity is a loudness, such as LUFS_I", channel_weights=...)
        weights: tuple[float, ...] = ()
        if self._needs.loudness:
            weights = checked_weights(channels, channel_weights, speakers)
        self._chain = SignalChain(self._needs, self.fs, channels, weights)
        self.equalizer = _equalizer(responses, self.fs, channels)
        unsettled = 0 if self.equalizer is None else self.equalizer.half
        self._band_chain = None
        if self.bands.filters:
            self._band_chain = BandChain(self.bands, fs, channels, unsettled)
        settle_s = max(*map(_settle_s, self.quantities), self.bands.settle_s)
        self._settle_samples = round(settle_s * self.fs) + unsettled
        self._unsettled_samples = unsettled
        # Beside the digital samples, the corrected ones.
        signals = channels if self.equalizer is None else 2 * channels
        self._chunks = SampleChunks(signals, first_sample)
        self._run_first = first_sample
        self._period, self._period_end = 0, 0
        self._span: LevelTotal | None = None
        self._closing: list[LevelTotal] = []
        self._total: LevelTotal | None = None
        self._follows_gap = False

    def __repr__(self) -> str:
        """Return one line: rate, channels, quantities and interval."""
        return meter_text(self, self.fs, self.channels, self.quantities, self.interval_s)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return tuple(one.name for one in self.quantities)

    @property
    def message_quantities(self) -> tuple[LevelQuantity, ...]:
        """The values of a message: the quantities, then each quantity in bands, named by band."""
        return (*self.quantities, *self.bands.named_quantities)

    def _check(self, time_zone: str) -> None:
        n_histograms = len(self._needs.percentiles)
        n_histograms += len(self.bands.percentiles) * len(self.bands.filters)
        if 2 * n_histograms * self.channels * BYTES_PER_CHANNEL > HISTOGRAM_BYTES_MAX:
            raise ConfigError(
                f"channels={self.channels}: percentiles of {n_histograms} levels need more than "
                f"{HISTOGRAM_BYTES_MAX >> 20} MiB"
            )
        for one in self.quantities:
            if one.kind == "period" and not time_zone:
                rule = "needs the time zone of its local times"
                raise ConfigError(f"{one.name} {rule}", time_zone=...)
        check_intervals(self.interval_s, self.align, time_zone)

    # ---- samples

    @naming_arrays
    def push(
        self, samples: ArrayLike, missing_samples: int | None = 0, utc_ns: int | None = None
    ) -> list[LevelRow]:
        """Measure the next samples.

        Parameters
        ----------
        samples : (channels, n) or (n,) array_like
            Finite samples, floating-point [FS].
        missing_samples : int or None
            Samples that are missing before them; None if it is unknown how many. The filters then
            start again.
        utc_ns : int, optional
            UTC of the first sample [ns]. Where it differs by more than 10 ms from the time by
            count, the next interval uses it.

        Returns
        -------
        rows : list of LevelRow
            The intervals that are complete.

        Raises
        ------
        ConfigError
            If the shape or dtype is wrong, or a time is needed and there is none.
        InputError
            If a sample is not finite.
        """
        position = self._chunks.position + self._n_pending
        given = checked_samples(samples, self.channels, position)
        rows: list[LevelRow] = []
        if missing_samples != 0:
            rows += self._skip(missing_samples or 0)
        self._set_clock(utc_ns)
        for part in [given] if self.equalizer is None else self.equalizer.push(given):
            for _ in self._chunks.fill(part):
                rows += self._measure()
        return rows

    feed = earlier_name("feed", "push")

    @property
    def _n_pending(self) -> int:
        """Samples that wait for those after them, which correct them."""
        return 0 if self.equalizer is None else self.equalizer.pending

    def _measure_the_rest(self) -> list[LevelRow]:
        """Measure all samples before a gap or the end, after which samples count as 0."""
        rows = []
        for part in [] if self.equalizer is None else self.equalizer.finish():
            for _ in self._chunks.fill(part):
                rows += self._measure()
        rows += self._measure()
        return rows + self._measure_silence()

    def _measure_silence(self) -> list[LevelRow]:
        """Add what lies between the last samples and those after them, which count as 0."""
        end = self._chunks.position
        n_chunks = -((self._run_first - end) // CHUNK_SAMPLES)
        base = self._run_first + n_chunks * CHUNK_SAMPLES
        if not n_chunks or end + self._needs.samples_ahead <= base:
            return []
        silence, _, _ = self._chunks.take()
        signals = self._chain.run(silence[: self.channels], silence[-self.channels :])
        if self._span is not None:
            self._span.tally.add_between(signals, self._between(self._span, base, end))
        return self._close(signals, base)

    def finish(self) -> list[LevelRow]:
        """Measure the samples that are left; the last row is of a partial interval."""
        rows = self._measure_the_rest()
        self._restart()
        if self._span is not None:
            rows += self._take_rows(self._span)
            self._span = None
        return rows + self._day_rows([] if self._days is None else self._days.finish())

    @property
    def total(self) -> LevelTotal | None:
        """The sums of all complete and partial intervals so far; None if there are none."""
        return self._total

    def add_total(self, later: LevelTotal) -> None:
        """Add the sums of a meter of the same settings that has measured later samples."""
        if self._total is None:
            tally, bands = self._tallies()
            self._total = replace(later, tally=tally, bands=bands)
        self._total.add(later)
        self._total.due_samples = self._total.last + 1 - self._total.first

    def summary(self) -> LevelRow:
        """Return the values of all complete and partial intervals so far together.

        Raises
        ------
        InputError
            If there are none.
        """
        if self._total is None:
            raise InputError("no samples: there are no levels")
        return self._row(self._total)

    def _set_clock(self, utc_ns: int | None) -> None:
        if utc_ns is None:
            if not self._bounds.has_utc and (self.align != "start" or self._needs.periods):
                raise ConfigError("utc_ns: intervals on the clock need the time of the samples")
        else:
            self._bounds.set_utc(self._chunks.position + self._n_pending, utc_ns)

    def _skip(self, missing_samples: int) -> list[LevelRow]:
        """Continue after a gap: measure what is left before it, and start the filters again."""
        rows = self._measure_the_rest()
        self._chunks.position += missing_samples
        self._restart()
        self._follows_gap = True
        if self._span is not None:
            self._span.has_gap = self._span.is_settling = True
            if self._chunks.position >= self._span.end:
                rows += self._take_rows(self._span)
                self._span = None
        if self._days is not None and self._span is None:
            rows += self._day_rows(self._days.ended_by(self._chunks.position))
        return rows

    def _restart(self) -> None:
        self._chain.reset()
        if self._band_chain is not None:
            self._band_chain.reset()
        self._run_first = self._chunks.position

    # ---- chunks

    def _measure(self) -> list[LevelRow]:
        """Measure the samples of the chunk, all or the first ones; return complete intervals."""
        chunk, n, base = self._chunks.take()
        if not n:
            return []
        digital, corrected = chunk[: self.channels], chunk[-self.channels :]
        signals = self._chain.run(digital, corrected)
        band_steps = [] if self._band_chain is None else self._band_chain.run(corrected)
        first_settled = self._run_first + self._unsettled_samples - base
        settled = {
            name: first_settled + round(seconds * self.fs) for name, seconds in SETTLE_S.items()
        }
        rows, first = self._close(signals, base), 0
        while first < n:
            span = self._span or self._open(base + first)
            stop = min(n, span.end - base)
            if self._needs.periods:
                stop = min(stop, self._end_of_period(base + first) - base)
            begin = base - self._run_first
            between = self._between(span, base, base + stop)
            part = Part(first, stop, begin, settled, self._period, between)
            span.tally.add(signals, part)
            span.bands.add(band_steps, part)
            span.last = base + stop - 1
            first = stop
            if base + stop == span.end:
                self._span = None
                if stop + self._needs.samples_ahead <= CHUNK_SAMPLES:
                    rows += self._take_rows(span)
                else:
                    self._closing.append(span)
        return rows

    def _between(self, span: LevelTotal, base: int, stop: int) -> slice:
        """Return the values between samples of a chunk that belong to an interval up to ``stop``.

        They reach from the sample before its first one to the sample after its last one, so those
        between two intervals count in both. Those before the chunk's first sample came late.
        """
        ahead = self._needs.samples_ahead
        return slice(max(0, span.first - 1 - base + ahead), min(CHUNK_SAMPLES, stop - base + ahead))

    def _close(self, signals: ChunkSignals, base: int) -> list[LevelRow]:
        """Return the rows of intervals that ended in the last samples of the chunk before."""
        for span in self._closing:
            span.tally.add_between(signals, self._between(span, base, span.end))
        rows = [row for span in self._closing for row in self._take_rows(span)]
        self._closing.clear()
        return rows

    def _end_of_period(self, index: int) -> int:
        """Set the part of the day at a sample; return the index of the first one after it."""
        if index >= self._period_end:
            self._period, end_ns = period_at(self._clock.utc_ns(index), self._zone)
            self._period_end = max(index + 1, self._clock.index_at(end_ns))
        return self._period_end

    def _open(self, index: int) -> LevelTotal:
        """Begin the interval that holds a sample."""
        if self._bounds.has_new_clock:
            self._period_end = 0
        begin, end = self._bounds.begin_at(index)
        is_settling = index < self._run_first + self._settle_samples
        has_gap = self._follows_gap and index > begin
        self._follows_gap = False
        tally, bands = self._tallies()
        self._span = LevelTotal(
            *(index, index, end, end - begin, self._clock.utc_ns(index)),
            *(tally, bands, has_gap, is_settling),
        )
        return self._span

    def _take_rows(self, span: LevelTotal) -> list[LevelRow]:
        """Return the rows of an interval that has ended and of its day; add it to the total."""
        rows = [self._row(span)]
        self.add_total(span)
        if self._days is not None:
            rows += self._day_rows(self._days.add(span, *self._tallies()))
        return rows

    def _day_rows(self, days: Sequence[LevelTotal]) -> list[LevelRow]:
        return [self._row(day) for day in days]

    def _tallies(self) -> tuple[Tally, BandTally]:
        """Return empty sums."""
        settings = self.fs, self.channels
        return Tally(self._needs, *settings), BandTally(self.bands, *settings)

    def _row(self, span: LevelTotal) -> LevelRow:
        tally, hours = span.tally, _NO_HOURS
        if self._needs.periods:
            end_ns = self._clock.utc_ns(span.last + 1)
            hours = period_hours(span.begin_utc_ns, end_ns, self._zone)
        values = values_of(self.quantities, tally, self._scale, hours)
        if self._days is not None and not (span.is_day or span is self._total):
            values[[one.kind == "period" for one in self.quantities]] = np.nan
        return LevelRow(
            span.first,
            tally.n_samples,
            span.due_samples,
            span.begin_utc_ns if self._bounds.has_utc else None,
            tally.n_samples / self.fs,
            values,
            self._flags(span, values),
            band_values=band_values(self.bands, span.bands, self._scale),
            span_samples=span.last + 1 - span.first,
            is_day=span.is_day,
        )

    def _flags(self, span: LevelTotal, values: Float64Array) -> NDArray[np.uint8]:
        common = (
            LevelFlag.SETTLING * span.is_settling
            | LevelFlag.GAP * span.has_gap
            | LevelFlag.PARTIAL * (span.tally.n_samples < span.due_samples)
        )
        flags = np.full(self.channels, common, np.uint8)
        flags[span.tally.n_full_scale > 0] |= np.uint8(LevelFlag.OVERLOAD)
        if self._lower_limit_db is not None:
            ranged = [k for k, one in enumerate(self.quantities) if one.kind in _RANGED]
            below = (values[ranged] < self._lower_limit_db).any(axis=0)
            flags[below] |= np.uint8(LevelFlag.UNDER_RANGE)
        return flags


def _full_scale(given: float | Sequence[float] | None, channels: int) -> Float64Array:
    if given is None:
        return np.full(channels, UNCALIBRATED_DB)
    levels = np.asarray(given, np.float64)
    if levels.shape not in ((), (channels,)) or not np.isfinite(levels).all():
        raise ConfigError(
            f"full_scale_db={given}: must be one finite level, or one for each of the {channels} "
            "channels"
        )
    return np.broadcast_to(levels, (channels,))


def _equalizer(responses: Sequence[Response | None], fs: float, channels: int) -> Equalizer | None:
    if not any(responses):
        return None
    if len(responses) != channels:
        raise ConfigError(f"responses: {len(responses)} values for {channels} channels")
    return Equalizer(responses, fs)


def _settle_s(quantity: LevelQuantity) -> float:
    """Return the time after a start from which a quantity has its final value [s]."""
    if quantity.kind == "loudness":
        return _LOUDNESS_SETTLE_S.get(quantity.name, _MOMENTARY_SETTLE_S)
    if quantity.time is not None:
        return SETTLE_S[quantity.time]
    return 0.0 if quantity.weighting == "Z" else _FILTER_SETTLE_S
