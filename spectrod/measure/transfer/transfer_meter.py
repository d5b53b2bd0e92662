"""A meter of transfer functions between channels in intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.earlier_name import earlier_name
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.signatures import naming_arrays
from spectrod.measure.frame_meter import FrameMeter
from spectrod.measure.frame_spectra import Complex128Array
from spectrod.measure.frames import ComplexFrames
from spectrod.measure.intervals import LevelAlign
from spectrod.measure.measurement import Measurement, Quantity, meter_text
from spectrod.measure.quantity_names import ChannelQuantity, known_quantities
from spectrod.measure.sample_chunks import checked_samples
from spectrod.measure.transfer.alignment import Alignment
from spectrod.measure.transfer.calibrated import power_factors
from spectrod.measure.transfer.cross_sums import CrossSums
from spectrod.measure.transfer.delay import Delay, delay_of_average
from spectrod.measure.transfer.transfer_function import TransferFunction, bins_within
from spectrod.measure.transfer.transfer_quantities import (
    UNITS,
    spectrum_of,
)

_NO_DELAY = Delay(np.nan, np.nan, np.nan)


@dataclass(frozen=True, slots=True)
class TransferSettings:
    """What is measured between a reference and its responses.

    Attributes
    ----------
    channels : tuple of int
        Channel of the reference, and of each response.
    n_channels : int
        Channels of the samples.
    quantities : tuple of str
        Names of values, see ``transfer_quantities``.
    spectra : tuple of str
        Names of values of each bin; empty without.
    averaging_s : float
        Time constant of an exponential average [s]; 0 for the mean of each interval.
    band_hz : tuple of float or None
        Lowest and highest frequency that counts [Hz]; None for all but 0 Hz.
    delay_samples : int
        Delay of the responses that is removed; see ``Alignment``.
    calibrations : tuple of (ChannelCalibration or None)
        Of the reference and each response; empty without any.
    """

    channels: tuple[int, ...]
    n_channels: int
    quantities: tuple[str, ...]
    spectra: tuple[str, ...] = ()
    averaging_s: float = 0.0
    band_hz: tuple[float, float] | None = None
    delay_samples: int = 0
    calibrations: tuple[ChannelCalibration | None, ...] = ()


class TransferTally:
    """Averages the cross spectra of the frames of an interval, or of all so far.

    A gap ends the averages: after it the next frame is the first.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the frames of the reference and the responses, in this order.
    quantities : sequence of ChannelQuantity
        The values of each response.
    settings : TransferSettings

    Attributes
    ----------
    quantities : tuple of ChannelQuantity
    tables : tuple of (spectra, bins) float64
        Values of the bins of the band of each response, after ``values``; empty without spectra.
    """

    def __init__(
        self,
        spec: SpectrumSpec,
        quantities: Sequence[ChannelQuantity],
        settings: TransferSettings,
    ) -> None:
        self.quantities = tuple(quantities)
        self.tables: tuple[Float64Array, ...] = ()
        self._spec, self._settings = spec, settings
        self._is_mean = settings.averaging_s == 0.0
        step_s = spec.hop / spec.fs
        decay = 1.0 if self._is_mean else float(np.exp(-step_s / settings.averaging_s))
        self._sums = CrossSums(spec, decay)
        frequencies = spec.frequencies
        calibrations = settings.calibrations or (None,) * spec.channels
        self._factors = [power_factors(one, frequencies) for one in calibrations]
        self._chosen = bins_within(spec.frequencies, settings.band_hz)
        self._must_clear = False

    def clear(self) -> None:
        """Begin the next interval."""
        if self._is_mean or self._must_clear:
            self._sums.clear()
        self._must_clear = False

    def skip(self, n_intervals: int) -> None:
        """Pass over intervals without any sample, which end the averages."""
        self._must_clear |= n_intervals > 0

    def interrupt(self) -> None:
        """Let the next frame be the first of the averages: channels may have shifted in a gap."""
        self._must_clear = True

    def add(self, rows: Complex128Array) -> None:
        """Add frames, (frames, channels, bins)."""
        if self._must_clear:
            self._sums.clear()
            self._must_clear = False
        self._sums.add(rows)

    def values(self) -> Float64Array:
        """Return the values of the averages, (quantities, responses), and set ``tables``."""
        n_responses = self._spec.channels - 1
        n_table = len(self._settings.spectra), self._chosen.stop - self._chosen.start
        values = np.full((n_responses, len(self.quantities)), np.nan)
        tables = np.full((n_responses, *n_table), np.nan)
        if self._sums.n_frames >= 2:  # the coherence of one frame is always 1
            for k in range(n_responses):
                digital = self._sums.result(k)
                found = digital.scaled(self._factors[0], self._factors[1 + k])
                values[k] = self._values(found, digital)
                for row, name in zip(tables[k], self._settings.spectra, strict=True):
                    row[:] = spectrum_of(found, name)[self._chosen]
        self.tables = tuple(tables) if self._settings.spectra else ()
        return values.T

    def _values(self, found: TransferFunction, digital: TransferFunction) -> list[float]:
        band_hz = self._settings.band_hz
        known: dict[str, Callable[[], float]] = {
            "level_difference": lambda: found.level_difference_db(band_hz),
            "mean_coherence": lambda: found.mean_coherence(band_hz),
            "significant_coherence": lambda: found.significant_coherence,
            "averages": lambda: found.n_averages,
        }
        values = {one.name: known[one.name]() for one in self.quantities if one.name in known}
        if len(values) < len(self.quantities):
            delay = self._delay(digital)
            removed_s = self._settings.delay_samples / self._spec.fs
            values |= {"delay": delay.seconds + removed_s, "delay_peak": delay.peak}
        return [values[one.name] for one in self.quantities]

    def _delay(self, found: TransferFunction) -> Delay:
        reach = max(1, self._spec.win_length // 2 - 1)
        try:
            return delay_of_average(found, self._spec, (-reach, reach), self._settings.band_hz)
        except InputError:  # no power
            return _NO_DELAY


class TransferIntervalMeter:
    """Measures transfer functions from a reference to responses in intervals.

    Times and indices of rows are those of the earlier channels where a delay is removed.

    Parameters
    ----------
    meter : FrameMeter
        Measures the reference and the responses.
    settings : TransferSettings

    Attributes
    ----------
    quantities, spec, interval_s, align
        As of ``meter``.
    """

    def __init__(self, meter: FrameMeter, settings: TransferSettings) -> None:
        self.quantities, self.spec = meter.quantities, meter.spec
        self.interval_s, self.align = meter.interval_s, meter.align
        self._meter, self._settings = meter, settings
        self._alignment = Alignment(settings.delay_samples)
        self._n_pushed = 0

    def __repr__(self) -> str:
        """Return one line: rate, channels, quantities and interval."""
        spec = self.spec
        return meter_text(self, spec.fs, spec.n_signals, self.quantities, self.interval_s)

    @property
    def message_quantities(self) -> tuple[Quantity, ...]:
        """The values of a message."""
        return self.quantities

    @naming_arrays
    def push(
        self, samples: ArrayLike, missing_samples: int | None = 0, utc_ns: int | None = None
    ) -> list[Measurement]:
        """Measure the next samples of all channels; see ``FrameMeter.push``."""
        given = checked_samples(samples, self._settings.n_channels, self._n_pushed)
        self._n_pushed += (missing_samples or 0) + given.shape[1]
        if missing_samples != 0:
            missing_samples = (missing_samples or 0) + self._alignment.n_held or None
            self._alignment.restart()
        if utc_ns is not None:
            utc_ns -= round(self._alignment.n_held / self._meter.spec.fs * 1e9)
        aligned = self._alignment.push(given[list(self._settings.channels)])
        return [self._pairs(row) for row in self._meter.push(aligned, missing_samples, utc_ns)]

    feed = earlier_name("feed", "push")

    def finish(self) -> list[Measurement]:
        """Return the row of the unfinished interval, which is partial."""
        return [self._pairs(row) for row in self._meter.finish()]

    def _pairs(self, row: Measurement) -> Measurement:
        """Return a row whose flags are those of both channels of each pair."""
        flags: NDArray[np.uint8] = row.flags[1:] | row.flags[0]
        return replace(row, flags=flags)


def transfer_meter(  # noqa: PLR0913 - the settings of a meter
    spec: SpectrumSpec,
    settings: TransferSettings,
    *,
    interval_s: float,
    align: LevelAlign = "start",
    time_zone: str = "",
    utc_ns: int | None = None,
    first_sample: int = 0,
) -> TransferIntervalMeter:
    """Make a meter of transfer functions.

    Parameters
    ----------
    spec : SpectrumSpec
        Definition of the frames of the reference and the responses, as densities.
    settings : TransferSettings
    interval_s, align, time_zone, utc_ns, first_sample
        See ``FrameMeter``.

    Raises
    ------
    ConfigError
        If a parameter breaks a rule.
    """
    chosen = settings.channels
    if len(chosen) != spec.channels or not 0 <= min(chosen) <= max(chosen) < settings.n_channels:
        raise ConfigError(
            f"channels={chosen}: must be {spec.channels} numbers, as the frames have channels, "
            f"below n_channels={settings.n_channels}"
        )
    if spec.iq or spec.channels < 2:
        raise ConfigError("spec: must be of two or more real channels")
    tally = TransferTally(spec, known_quantities(settings.quantities, interval_s, UNITS), settings)
    meter = FrameMeter(
        spec,
        tally,
        interval_s=interval_s,
        align=align,
        time_zone=time_zone,
        utc_ns=utc_ns,
        first_sample=first_sample,
        frames=ComplexFrames(spec, is_continuous=settings.averaging_s > 0.0),
    )
    return TransferIntervalMeter(meter, settings)
