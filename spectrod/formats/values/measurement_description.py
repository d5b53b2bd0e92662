"""What a file of measurements says about all its rows."""

import datetime as dt
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import spectrod
from spectrod.dsp.calibration import ChannelCalibration, common_validity
from spectrod.dsp.interval_flags import FLAGS
from spectrod.dsp.units import Float64Array
from spectrod.formats.export.layout import plain
from spectrod.lib.time_zones import find_zone
from spectrod.measure.levels.level_units import level_unit, unit_of
from spectrod.measure.levels.octave_levels import NO_BANDS, BandLevels
from spectrod.measure.measurement import Quantity
from spectrod.measure.measurement_config import IntervalMeter, MeasuredSignals, MeasurementFacts


@dataclass(frozen=True, slots=True)
class MeasurementDescription:
    """Metadata of a file of measurements.

    Attributes
    ----------
    source : str
        Description of the source.
    channels : tuple of str
        Names of the channels.
    quantities : tuple of Quantity
        The values of each row.
    calibrations : tuple of (ChannelCalibration or None)
        Calibration of each channel.
    fs : float
        Sample rate [Hz].
    interval_s : float
        Length of an interval [s].
    align : str
        See ``LevelMeter``.
    time_zone : str
        Name of the time zone of times and of the parts of the day; empty: UTC.
    has_utc : bool
        Whether times are UTC; otherwise they count from the first sample.
    software : str
        Name and version of the program.
    notes : tuple of str
        Further statements about all values.
    title : str
        What the values are.
    extra : dict
        Further attributes, such as those of the frames.
    spectra : tuple of str
        Names of values of bins that rows have, in their ``tables``; empty without.
    spectra_units : tuple of str
        Unit of each of these values.
    frequencies : (n_bins,) float64
        Frequency of each bin [Hz].
    bands : BandLevels
        Fractional octaves and the quantities in them; empty without.
    has_days : bool
        Whether local days have rows beside those of shorter intervals.
    """

    source: str
    channels: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    calibrations: tuple[ChannelCalibration | None, ...]
    fs: float
    interval_s: float
    align: str
    time_zone: str
    has_utc: bool
    software: str
    notes: tuple[str, ...] = ()
    title: str = "Sound levels"
    extra: dict[str, str | float] = field(default_factory=dict)
    spectra: tuple[str, ...] = ()
    spectra_units: tuple[str, ...] = ()
    frequencies: Float64Array = field(default_factory=lambda: np.empty(0))
    bands: BandLevels = NO_BANDS
    has_days: bool = False

    def without_spectra(self) -> "MeasurementDescription":
        """Return the description of rows without values of bins, and a note that says so."""
        if not self.spectra:
            return self
        note = f"values of bins ({', '.join(self.spectra)}) are not recorded"
        return replace(
            self,
            spectra=(),
            spectra_units=(),
            frequencies=np.empty(0),
            notes=(*self.notes, note),
        )

    @property
    def zone(self) -> dt.tzinfo | None:
        """The time zone of times in text; None: UTC, or no date is known."""
        return find_zone(self.time_zone) if self.time_zone and self.has_utc else None

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of the levels of each channel, such as ``dB SPL`` or ``dBFS``."""
        return tuple(level_unit(one) for one in self.calibrations)

    def unit(self, quantity: Quantity) -> str:
        """Return the unit of a quantity; that of every channel where they have several."""
        units = [unit_of(quantity, one) for one in self.calibrations]
        return ", ".join(units if len(set(units)) > 1 else units[:1])

    def attributes(self) -> dict[str, Any]:
        """Return the metadata by name, as text and numbers."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        cal_ids = [one.cal_id for one in self.calibrations if one is not None]
        found = {
            "title": f"{self.title} of {self.source}",
            "source": f"sound of {self.source}, measured by {self.software}",
            "history": f"{now} written by {self.software}",
            "date_created": now,
            "software": self.software,
            "calibration": ", ".join(cal_ids) or "none: of digital full scale",
            "level_unit": ", ".join(self.units),
            "sample_rate_hz": self.fs,
            "interval_s": self.interval_s,
            "align": self.align,
        }
        if not any(one.unit in ("level", "exposure") for one in self.quantities):
            del found["level_unit"]
        ranges = [one.response_hz for one in self.calibrations if one and one.response_hz]
        if ranges:  # of all channels: the part that all tables cover
            found["calibration_response_min_hz"] = max(low for low, _ in ranges)
            found["calibration_response_max_hz"] = min(high for _, high in ranges)
        found |= common_validity(self.calibrations).attributes
        found |= self.extra
        if self.time_zone:
            found["time_zone"] = self.time_zone
        if self.notes:
            found["comment"] = "; ".join(self.notes)
        return {name: plain(v) if isinstance(v, str) else v for name, v in found.items()}


def describe(
    signals: MeasuredSignals, facts: MeasurementFacts, meter: IntervalMeter
) -> MeasurementDescription:
    """Describe the rows of a meter.

    Parameters
    ----------
    signals : MeasuredSignals
        Those that the rows are of.
    facts : MeasurementFacts
    meter : IntervalMeter
    """
    return MeasurementDescription(
        source=signals.source,
        channels=signals.channels,
        quantities=tuple(meter.quantities),
        calibrations=signals.calibrations,
        fs=signals.fs,
        interval_s=meter.interval_s,
        align=meter.align,
        time_zone=facts.time_zone,
        has_utc=signals.has_utc,
        software=f"spectrod {spectrod.__version__}",
        notes=facts.notes,
        title=facts.title,
        extra=dict(facts.attributes),
        spectra=tuple(facts.spectra),
        spectra_units=tuple(facts.spectra.values()),
        frequencies=facts.frequencies,
        bands=facts.bands or NO_BANDS,
        has_days=facts.has_days,
    )


def flag_names(flags: int) -> list[str]:
    """Return the names of the flags in a sum of them."""
    return [name for flag, name in FLAGS.items() if flags & flag]
