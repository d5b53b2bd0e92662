"""Series: the minutes of a deployment's units that have one rate and the same channels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from spectrod.apps.batch.daily_file import EFFORTS, LEVELS, DailyFile
from spectrod.apps.batch.job import UNIT_NS, Job, digest
from spectrod.apps.batch.products import minute_spec, output_products
from spectrod.apps.batch.results import OutputFile
from spectrod.apps.batch.run import UnitStatus
from spectrod.apps.batch.unit_settings import UnitSettings, settings_of
from spectrod.dsp.bands import Bands
from spectrod.dsp.units import Float32Array
from spectrod.formats.description import Description
from spectrod.formats.export.minute_bands import minute_bands
from spectrod.formats.export.minutes import MINUTE_NS
from spectrod.formats.pyramid.metadata import BATCH
from spectrod.lib.errors import ConfigError

UNITS_MAX = 100_000
"""Most units of a series: 11 years of hours."""
OPEN_MAX = 8
"""Most daily files of a unit that are open: each has a process of its own."""
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
        ordered = sorted(statuses, key=lambda one: one.unit.begin_utc_ns)
        series = Series(job, settings, tuple(_unit(one, settings) for one in ordered), label)
        series.describe_bands()
    except ConfigError:
        return None
    return series


def _unit(status: UnitStatus, settings: UnitSettings) -> SeriesUnit:
    record = status.record
    if record is None or not record.is_computed or status.state != record.state:
        return SeriesUnit(status, ())
    by_path = {one.path: one for one in record.outputs}
    products = output_products(replace(settings, unit=status.unit))
    paths = [path for path, product in products.items() if product == "millidecade"]
    if not all(path in by_path for path in paths):  # not a single minute
        return SeriesUnit(status, ())
    return SeriesUnit(status, tuple(by_path[path] for path in paths))


class UnitMinutes:
    """The minutes of a unit, read from its daily files; a context manager.

    At most ``OPEN_MAX`` of its files are open at a time.

    Parameters
    ----------
    series : Series
        The series.
    unit : SeriesUnit
        A unit of it with files.
    """

    def __init__(self, series: Series, unit: SeriesUnit) -> None:
        self._series, self._files = series, unit.files
        self._first = unit.first_minute % _MINUTES_PER_DAY
        self._open: dict[int, DailyFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def effort_s(self) -> Float32Array:
        """Return the duration of the samples in each minute, (minutes,) [s].

        Raises
        ------
        StorageError
            If a file is not that of its record, or cannot be read.
        """
        return self._read(0, EFFORTS, 0, self._series.unit_minutes)

    def level(self, signal: int, first: int = 0, past: int | None = None) -> Float32Array:
        """Return levels of a signal in minutes [first, past), (minutes, bands) [dB].

        Raises
        ------
        StorageError
            If a file is not that of its record, or cannot be read.
        """
        return self._read(signal, LEVELS, first, past or self._series.unit_minutes)

    def _read(self, signal: int, name: str, first: int, past: int) -> Float32Array:
        return self._daily_file(signal).read(name, self._first + first, self._first + past)

    def _daily_file(self, signal: int) -> DailyFile:
        if signal not in self._open:
            if len(self._open) == OPEN_MAX:
                self._open.pop(next(iter(self._open))).close()
            output = self._files[signal]
            n_bands = len(self._series.bands)
            self._open[signal] = DailyFile(self._series.path_of(output), output, n_bands)
        return self._open[signal]
