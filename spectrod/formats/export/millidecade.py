"""Daily NetCDF files of hybrid-millidecade spectra, as used in passive acoustic monitoring.

They hold one-minute means of power spectral density in dB, and the seconds of data in each
minute. Names of variables and files are those of MBARI's pbp, of PyPAM and of NCEI's SoundCoop.
"""

import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.conditions import Condition, UInt8Array, combined
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Float32Array, power_to_level
from spectrod.formats.description import Description
from spectrod.formats.export.attributes import CONVENTIONS, global_attributes, iso_time
from spectrod.formats.export.day_gaps import DayGaps
from spectrod.formats.export.disk import Disk
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.layout import EPOCH, Variable
from spectrod.formats.export.minutes import MINUTE_NS, Minute, MinuteMeans
from spectrod.formats.export.netcdf import NetcdfStore, need_netcdf
from spectrod.formats.export.quality import (
    NOT_EVALUATED,
    QUALITY,
    QUESTIONABLE,
    quality_of_bands,
    sensitivity_attributes,
    sensitivity_of,
)
from spectrod.formats.export.site import site_variables
from spectrod.formats.output import WholeFile
from spectrod.formats.whole_files import check_writable, whole_file
from spectrod.lib.errors import ConfigError, InputError

FLOOR_DB = -300.0
"""Lowest level: the logarithm of digital silence does not exist [dB re 1 FS^2/Hz]."""

MINUTES_PER_DAY = 1440
_DAY_NS = MINUTES_PER_DAY * MINUTE_NS
_CHUNK_MINUTES = 60
FREQUENCY = {
    "standard_name": "sound_frequency",
    "long_name": "centre of a band",
    "units": "Hz",
    "bounds": "frequency_bnds",
    "coverage_content_type": "coordinate",
}
TIME = {
    "standard_name": "time",
    "long_name": "begin of a minute, UTC",
    "units": f"seconds {EPOCH}",
    "calendar": "standard",
    "units_metadata": "leap_seconds: none",
    "axis": "T",
    "bounds": "time_bnds",
    "coverage_content_type": "coordinate",
}
EFFORT = {
    "long_name": "duration of the samples that a minute's mean is made of",
    "units": "s",
    "coverage_content_type": "qualityInformation",
}


class MillidecadeWriter(WholeFile):
    """Writes ``NAME_YYYYMMDD.nc`` or ``NAME_SIGNAL_YYYYMMDD.nc`` for each UTC day with rows.

    A file has all minutes of its day; minutes without data are NaN with an effort of 0. It appears
    when the day is over or the recording ends; files of earlier days stay in any case. Memory holds
    one day, 17 MB per signal at 48 kHz. Rows of a day whose file is already written, which come if
    UTC is set back over midnight, are left out, and their seconds are counted in ``left_out_s`` of
    the next file. Thread: one at a time.

    Parameters
    ----------
    path : Path
        ``NAME.nc``, in an existing folder. Existing files with the names of days are replaced.
    description : Description
        Description of the batches; see ``MinuteMeans`` for its requirements.
    options : ExportOptions
        Export options.

    Attributes
    ----------
    faults : mapping of int to (signals,) uint8, or None
        What checks of all samples found, see ``Condition``, by minutes since 1970; a minute that is
        not there has no faults. The caller sets it, and may add minutes until they are written.
        None: conditions are those of the batches, and gaps between rows that no schedule explains.

    Raises
    ------
    ConfigError
        If the description is not suitable, or the files of two signals would have one name.
    StorageError
        If no file can be made at this path.
    UnavailableError
        If h5netcdf is not installed.
    """

    faults: Mapping[int, UInt8Array] | None = None

    def __init__(self, path: Path, description: Description, options: ExportOptions) -> None:
        need_netcdf()
        if not description.has_utc:
            raise ConfigError(
                f"{path}: profile='millidecade': daily files need UTC, and the recording of "
                f"{description.source} has no start time"
            )
        self._means = MinuteMeans(description.spec)
        self._names = file_names(path, description.signals)
        check_writable(path)
        self.path = path
        self.files: list[Path] = []
        self._description = description
        self._options = options
        self._n_frames = 0
        self._day = -1
        self._minutes: dict[int, Minute] = {}
        self._left_out_s = 0.0
        self._gaps = DayGaps(description.spec.fs)

    @property
    def n_frames(self) -> int:
        """Rows written so far."""
        return self._n_frames

    def write(self, batch: SpectrumBatch) -> None:
        """Add a batch of the description's spec.

        Raises
        ------
        ConfigError
            If the batch is of another spec.
        StorageError
            If the file of a day that ends with it cannot be written.
        """
        if batch.spec != self._description.spec:
            raise ConfigError(f"{self.path}: the analysis has changed; a file holds one kind")
        if batch.n_frames == 0:
            return
        self._n_frames += batch.n_frames
        self._gaps.add(batch)
        for minute in self._means.add(batch):
            self._take(minute)

    def finish(self) -> None:
        """Write the file of the last day.

        Raises
        ------
        InputError
            If there were no rows.
        StorageError
            If it cannot be written; files of earlier days are complete.
        """
        if self._n_frames == 0:
            raise InputError(f"{self.path}: nothing to write: not a single row")
        for minute in self._means.flush():
            self._take(minute)
        self._write_day()

    def abort(self) -> None:
        """Discard the present day; files of earlier days are complete. Idempotent."""
        self._minutes = {}

    def _take(self, minute: Minute) -> None:
        day = minute.begin_utc_ns // _DAY_NS
        if day < self._day:
            self._left_out_s += minute.effort_s
            return
        if day > self._day:
            self._write_day()
            self._day = day
        number = minute.begin_utc_ns // MINUTE_NS % MINUTES_PER_DAY
        before = self._minutes.get(number)
        self._minutes[number] = minute if before is None else _merge(before, minute)

    def _write_day(self) -> None:
        """Write the present day, one file per signal; do nothing if there is none."""
        if not self._minutes:
            return
        date = str(np.datetime64(self._day, "D")).replace("-", "")
        for signal, name in enumerate(self._names):
            path = self.path.with_name(f"{name}_{date}.nc")
            with whole_file(path) as part, closing(Disk(part)) as disk:
                store = NetcdfStore(disk, self._options.compression)
                with closing(store):
                    self._fill(store, signal)
            self.files.append(path)
        self._minutes = {}
        self._left_out_s = 0.0
        self._gaps.forget_before((self._day + 1) * _DAY_NS)

    def _fill(self, store: NetcdfStore, signal: int) -> None:
        bands = self._means.bands
        n = len(bands)
        level = np.full((MINUTES_PER_DAY, n), np.nan, np.float32)
        effort = np.zeros(MINUTES_PER_DAY, np.float32)
        for number, minute in self._minutes.items():
            level[number] = to_level(minute.density[signal], self._reference_power)
            effort[number] = minute.effort_s
        day_s = self._day * 86400.0
        begin = day_s + 60.0 * np.arange(MINUTES_PER_DAY)
        edges = np.stack([bands.lower, bands.upper], axis=1)
        attributes = self._attributes(signal)
        site = site_variables(attributes, self._description.source)
        axis = Variable("frequency", ("frequency",), "<f8", FREQUENCY, bands.centre)
        store.create(axis, (n,), ())
        bounds = Variable("frequency_bnds", ("frequency", "bnds"), "<f8", {}, edges)
        store.create(bounds, (n, 2), (2,))
        self._add_sensitivity(store, signal)
        for scalar in site:
            store.create(scalar, (), ())
        psd = self._psd() | _coordinates(site)
        for variable, row in (
            (Variable("time", ("time",), "<f8", TIME), ()),
            (Variable("time_bnds", ("time", "bnds"), "<f8"), (2,)),
            (Variable("effort", ("time",), "<f4", EFFORT | _coordinates(site)), ()),
            (Variable("psd", ("time", "frequency"), "<f4", psd), (n,)),
            (
                Variable(
                    "quality_flag", ("time", "frequency"), "|i1", QUALITY | _coordinates(site)
                ),
                (n,),
            ),
        ):
            store.create(variable, (_CHUNK_MINUTES, *row), row)
        time_bnds = np.stack([begin, begin + 60.0], axis=1)
        store.append(
            {
                "time": begin,
                "time_bnds": time_bnds,
                "effort": effort,
                "psd": level,
                "quality_flag": self._quality(signal),
            }
        )
        store.annotate(attributes | ({"featureType": "timeSeries"} if site else {}))

    def _add_sensitivity(self, store: NetcdfStore, signal: int) -> None:
        """Add the sensitivity of a signal whose calibration is known."""
        calibration, bands = self._calibration(signal), self._means.bands
        values = sensitivity_of(calibration, bands)
        if calibration is None or values is None:
            return
        about = sensitivity_attributes(calibration)
        variable = Variable("sensitivity", ("frequency",), "<f4", about, values)
        store.create(variable, (len(bands),), ())

    def _calibration(self, signal: int) -> ChannelCalibration | None:
        calibrations = self._description.spec.calibration
        return calibrations[signal] if calibrations else None

    def _quality(self, signal: int) -> NDArray[np.int8]:
        bands, spec = self._means.bands, self._description.spec
        flags = np.full((MINUTES_PER_DAY, len(bands)), NOT_EVALUATED, np.int8)
        calibration = self._calibration(signal)
        for number, found in self._conditions().items():
            flags[number] = quality_of_bands(int(found[signal]), bands, spec.delta_f, calibration)
            if calibration is not None and not calibration.validity.covers(*self._span_ns(number)):
                flags[number] = np.maximum(flags[number], np.int8(QUESTIONABLE))
        return flags

    def _span_ns(self, number: int) -> tuple[int, int]:
        begin_ns = self._day * _DAY_NS + number * MINUTE_NS
        return begin_ns, begin_ns + MINUTE_NS

    def _conditions(self) -> dict[int, UInt8Array]:
        """Return the conditions of each minute with rows of the present day."""
        first = self._day * MINUTES_PER_DAY
        if self.faults is not None:
            none, checked = np.uint8(0), np.full(len(self._names), Condition.CHECKED, np.uint8)
            return {one: checked | self.faults.get(first + one, none) for one in self._minutes}
        lost = self._gaps.minutes()
        return {
            number: minute.conditions | np.uint8(Condition.GAP if first + number in lost else 0)
            for number, minute in self._minutes.items()
        }

    @property
    def _reference_power(self) -> float:
        calibrated = self._description.spec.scale.calibrated
        return 1.0 if calibrated is None else calibrated.reference.value**2

    def _psd(self) -> dict[str, Any]:
        return level_attributes(self._description) | {
            "ancillary_variables": "effort quality_flag",
            "_FillValue": np.float32(np.nan),
        }

    def _attributes(self, signal: int) -> dict[str, Any]:
        about = self._description
        texts = {
            "Conventions": f"COARDS, {CONVENTIONS}",
            "title": f"Hybrid-millidecade spectra of {about.source}, {about.signals[signal]}",
            "references": "https://doi.org/10.1121/10.0003324",
        }
        covered = {
            "time_coverage_start": iso_time(self._day * _DAY_NS),
            "time_coverage_end": iso_time((self._day + 1) * _DAY_NS),
            "time_coverage_duration": "P1D",
            "time_coverage_resolution": "PT60S",
            "left_out_s": self._left_out_s,
        }
        return (
            global_attributes(about, texts | about.attributes | self._options.attributes) | covered
        )


def _coordinates(site: list[Variable]) -> dict[str, str]:
    return {"coordinates": " ".join(one.name for one in site)} if site else {}


def level_attributes(description: Description) -> dict[str, Any]:
    """Return the attributes of levels of minutes: unit, reference, calibration, cell methods."""
    calibrated = description.spec.scale.calibrated
    # Level of a density in the notation of UDUNITS; full scale is dimensionless.
    unit, units = "dB re 1 FS^2/Hz", "0.1 lg(re 1 Hz-1)"
    reference = "1 FS^2/Hz; FS = digital full scale (1.0), one-sided"
    if calibrated is not None:
        unit = calibrated.reference.density_level_unit
        units = f"0.1 lg(re {calibrated.reference.udunits_power} Hz-1)"
        reference = f"({calibrated.reference.name})^2/Hz, one-sided"
    return {
        "long_name": f"one-minute mean of power spectral density in {unit}",
        "units": units,
        "spectrod_unit": unit,
        "reference_level": reference,
        "calibration": description.cal_id or "none",
        "cell_methods": "time: mean frequency: mean (of power)",
        "ancillary_variables": "effort",
        "coverage_content_type": "physicalMeasurement",
    }


def to_level(density: NDArray[np.float64], reference_power: float = 1.0) -> Float32Array:
    """Convert densities [FS^2/Hz, or of a calibration] to levels [dB], at least ``FLOOR_DB``."""
    return power_to_level(density, reference_power, FLOOR_DB).astype(np.float32)


def _merge(first: Minute, second: Minute) -> Minute:
    """Merge two means of the same minute, weighted by their effort."""
    effort_s = first.effort_s + second.effort_s
    weighted = first.density * first.effort_s + second.density * second.effort_s
    found = combined(np.array([first.conditions, second.conditions]))
    return Minute(first.begin_utc_ns, weighted / effort_s, min(60.0, effort_s), found)


def file_names(path: Path, signals: tuple[str, ...]) -> list[str]:
    """Return the names of the daily files of each signal without their days.

    Raises
    ------
    ConfigError
        If two would be the same.
    """
    if len(signals) == 1:
        return [path.stem]
    names = [f"{path.stem}_{re.sub(r'[^A-Za-z0-9.-]', '-', signal)}" for signal in signals]
    if len(set(names)) < len(names):
        raise ConfigError(f"signals={signals}: names must differ in letters, digits, . and -")
    return names
