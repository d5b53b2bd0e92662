"""Series: the minutes of a deployment's units that have one rate and the same channels."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from spectrod.bands import Bands
from spectrod.batch.job import UNIT_NS, Job, digest
from spectrod.batch.products import UnitSettings, minute_spec, settings_of
from spectrod.batch.results import OutputFile
from spectrod.batch.run import UnitStatus
from spectrod.batch.unit import file_digest
from spectrod.errors import ConfigError, StorageError, storage_error
from spectrod.formats.description import Description
from spectrod.formats.export.millidecade import file_names
from spectrod.formats.export.minute_bands import minute_bands
from spectrod.formats.export.minutes import MINUTE_NS
from spectrod.formats.export.netcdf import NetcdfShelf
from spectrod.formats.export.npz import damage_as_value_error
from spectrod.formats.pyramid.metadata import BATCH
from spectrod.units import Float32Array

UNITS_MAX = 100_000
"""Most units of a series: 11 years of hours."""
NOT_COMPUTED = "not computed"

_MINUTES_PER_DAY = 1440


@dataclass(frozen=True, slots=True, eq=False)
class SeriesUnit:
    """A unit of a series, in its place.

    Attributes
    ----------
    status : UnitStatus
        Where it stands.
    files : tuple of OutputFile
        Its daily file of each signal; empty if it has none.
    """

    status: UnitStatus
    files: tuple[OutputFile, ...]

    @property
    def name(self) -> str:
        """``20260501`` or ``20260501T04``."""
        return self.status.unit.name

    @property
    def first_minute(self) -> int:
        """Its first minute [min since 1970]."""
        return self.status.unit.begin_utc_ns // MINUTE_NS

    @property
    def state(self) -> str:
        """``done``, ``partial`` or ``not computed``."""
        record = self.status.record
        is_there = record is not None and self.status.state == record.state and record.is_computed
        return self.status.state if is_there else NOT_COMPUTED

    @property
    def reason(self) -> str:
        """Why it is partial or not computed; empty if it is done, or waits for its first run."""
        return self.status.reason

    @property
    def content(self) -> str:
        """Digest of the content of its files; empty without."""
        return digest([one.sha256 for one in self.files]) if self.files else ""


@dataclass(frozen=True, eq=False)
class Series:
    """Minutes of one deployment on one axis of bands: what a store and a pyramid are made of.

    Attributes
    ----------
    job : Job
    settings : UnitSettings
        Of one of its units; all have the same signals, calibrations and rate.
    units : tuple of SeriesUnit
        In the order of time, also those without a result.
    label : str
        Empty, or what tells this series from the deployment's others: ``48000hz_2ch``.
    """

    job: Job
    settings: UnitSettings
    units: tuple[SeriesUnit, ...]
    label: str

    @property
    def deployment(self) -> str:
        """Name of the deployment."""
        return self.settings.deployment.name

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the channels."""
        return self.settings.signals

    @cached_property
    def bands(self) -> Bands:
        """The bands of the daily files."""
        spec = self.description.spec
        return minute_bands(spec.fs, spec.nfft)

    @cached_property
    def description(self) -> Description:
        """Describes the daily files; dated by the newest input."""
        return self._describe("")

    def describe_bands(self) -> Description:
        """Describe rows of whole hybrid millidecades, which pyramids have."""
        about = self._describe("millidecade")
        return replace(
            about, spec=replace(about.spec, broadband=False), settings={BATCH: self.job.name}
        )

    @property
    def unit_minutes(self) -> int:
        """Minutes of a unit."""
        return UNIT_NS[self.job.unit] // MINUTE_NS

    @property
    def parameters(self) -> str:
        """Digest of the job's parameters of this deployment."""
        return digest(self.job.parameters(self.deployment))

    def path_of(self, output: OutputFile) -> Path:
        """Return the path of a file of a unit."""
        return Path(self.job.output) / output.path

    def _describe(self, bands: str) -> Description:
        newest = max(
            (one.status.unit for one in self.units),
            key=lambda unit: max((piece.mtime_ns for piece in unit.pieces), default=0),
        )
        dated = replace(self.settings, unit=newest)
        return dated.describe(minute_spec(self.settings, bands))


def series_of(job: Job, statuses: Sequence[UnitStatus]) -> Iterator[Series]:
    """Yield the series of a job in the order of deployments, rates and channels.

    Units that no setting fits, or that no daily files can describe, are in none, as none of them
    can be computed.

    Raises
    ------
    ConfigError
        If a series has more than ``UNITS_MAX`` units.
    """
    of_deployment: dict[str, list[UnitStatus]] = {}
    for one in statuses:
        of_deployment.setdefault(one.unit.deployment, []).append(one)
    for name in (one.name for one in job.deployments):
        parts: dict[tuple[float, int], list[UnitStatus]] = {}
        for one in of_deployment.get(name, ()):
            parts.setdefault((one.unit.fs, one.unit.channels), []).append(one)
        for (fs, channels), some in sorted(parts.items()):
            label = f"{fs:.10g}hz_{channels}ch" if len(parts) > 1 else ""
            if len(some) > UNITS_MAX:
                raise ConfigError(
                    f"deployments.{name}: {len(some)} units: must be at most {UNITS_MAX} in a "
                    "store; make several deployments of it"
                )
            found = _series(job, some, label)
            if found is not None:
                yield found


def _series(job: Job, statuses: Sequence[UnitStatus], label: str) -> Series | None:
    try:
        settings = settings_of(job, statuses[0].unit)
        names = file_names(Path(settings.deployment.name), settings.signals)
        ordered = sorted(statuses, key=lambda one: one.unit.begin_utc_ns)
        series = Series(job, settings, tuple(_unit(one, names) for one in ordered), label)
        series.describe_bands()
    except ConfigError:
        return None
    return series


def _unit(status: UnitStatus, names: Sequence[str]) -> SeriesUnit:
    unit, record = status.unit, status.record
    if record is None or not record.is_computed or status.state != record.state:
        return SeriesUnit(status, ())
    by_path = {one.path: one for one in record.outputs if one.product == "millidecade"}
    paths = [f"{unit.deployment}/{name}_{unit.name}.nc" for name in names]
    if not all(path in by_path for path in paths):  # not a single minute
        return SeriesUnit(status, ())
    return SeriesUnit(status, tuple(by_path[path] for path in paths))


class UnitMinutes:
    """The minutes of a unit, read from its daily files; a context manager.

    Parameters
    ----------
    series : Series
        The series.
    unit : SeriesUnit
        A unit of it with files.

    Raises
    ------
    StorageError
        If a file is not that of its record, or cannot be read.
    """

    def __init__(self, series: Series, unit: SeriesUnit) -> None:
        self._series = series
        self._paths = [series.path_of(one) for one in unit.files]
        self._first = unit.first_minute % _MINUTES_PER_DAY
        self._shelves: list[NetcdfShelf] = []
        for path, one in zip(self._paths, unit.files, strict=True):
            if file_digest(path) != (one.size, one.sha256):
                raise StorageError(
                    f"{path}: is not what was computed: its content has changed; remove it, and "
                    "run the job again"
                )

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for path in self._paths:
                self._shelves.append(stack.enter_context(closing(_opened(path))))
                self._check(path, self._shelves[-1])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def effort_s(self) -> Float32Array:
        """Return the duration of the samples in each minute, (minutes,) [s]."""
        return self._read(0, "effort", 0, self._series.unit_minutes)

    def level(self, signal: int, first: int = 0, past: int | None = None) -> Float32Array:
        """Return levels of a signal in minutes [first, past), (minutes, bands) [dB]."""
        return self._read(signal, "psd", first, past or self._series.unit_minutes)

    def _read(self, signal: int, name: str, first: int, past: int) -> Float32Array:
        path = self._paths[signal]
        try:
            with damage_as_value_error():
                rows = self._shelves[signal].read(name, self._first + first, self._first + past)
                return np.asarray(rows, np.float32).reshape(past - first, *rows.shape[1:])
        except OSError as error:
            raise storage_error(path, error) from error
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            raise _unreadable(path) from error

    def _check(self, path: Path, shelf: NetcdfShelf) -> None:
        try:
            with damage_as_value_error():
                shapes = shelf.form("psd").shape, shelf.form("effort").shape
        except (LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise _unreadable(path) from error
        n_bands = len(self._series.bands)
        if shapes != ((_MINUTES_PER_DAY, n_bands), (_MINUTES_PER_DAY,)):
            raise _unreadable(path)


def _opened(path: Path) -> NetcdfShelf:
    try:
        with damage_as_value_error():
            return NetcdfShelf(path)
    except (LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise _unreadable(path) from error


def _unreadable(path: Path) -> StorageError:
    return StorageError(f"{path}: cannot be read as a daily file of this job")
