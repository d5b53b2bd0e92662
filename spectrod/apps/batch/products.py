"""The products of a unit: spectra, levels, a picture and flags of one time line of samples."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import spectrod
from spectrod.analysis.engine import Engine
from spectrod.analysis.samples import to_float32
from spectrod.analysis.stream import FrameStream
from spectrod.apps.batch.flags import FlagsWriter
from spectrod.apps.batch.job import UNIT_NS, Deployment, Job, ProductName
from spectrod.apps.batch.plan import Unit
from spectrod.config.config import AnalysisConfig
from spectrod.dsp.blocks import Block
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import NS_PER_S
from spectrod.dsp.writer import Writer
from spectrod.formats.description import Description, RowWriter
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.millidecade import file_names
from spectrod.formats.export.minutes import minute_frames
from spectrod.formats.longterm.presets import averaged, frames_for, picture_defaults
from spectrod.formats.picture.painter import host_transpose
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.plan import PicturePlan
from spectrod.formats.values.measurement_description import MeasurementDescription, describe
from spectrod.formats.values.value_writer import open_writer
from spectrod.lib.errors import InputError
from spectrod.lib.names import name_channels
from spectrod.measure.levels import LevelMeter
from spectrod.measure.levels.equalizer import response_notes
from spectrod.measure.levels.level_values import UNCALIBRATED_DB
from spectrod.measure.measurement_config import IntervalMeter, MeasuredSignals
from spectrod.recording.output_plan import Plan, make_data, make_rows
from spectrod.source.files.speakers import find_speakers

SOFTWARE = f"spectrod {spectrod.__version__}"
SUFFIXES: dict[ProductName, str] = {
    "millidecade": ".nc",
    "spectra": "_spectra.nc",
    "picture": "_ltsa.png",
    "flags": "_flags.csv",
}
_NO_LOWER_LIMIT_DB = -1000.0


@dataclass(frozen=True, slots=True)
class UnitSettings:
    """What the products of a unit have in common.

    Attributes
    ----------
    job : Job
    deployment : Deployment
    unit : Unit
    signals : tuple of str
        Names of the analysed channels.
    calibrations : tuple of (ChannelCalibration or None)
        Calibration of each of them; empty without.
    """

    job: Job
    deployment: Deployment
    unit: Unit
    signals: tuple[str, ...]
    calibrations: tuple[ChannelCalibration | None, ...]

    @property
    def fs(self) -> float:
        """Sample rate [Hz]."""
        return self.unit.fs

    @property
    def speakers(self) -> tuple[str, ...]:
        """Speakers of the analysed channels, by the first file; empty if unknown."""
        found = find_speakers(self.unit.pieces[0].path) if self.unit.pieces else ()
        numbers = self.deployment.select or range(self.unit.channels)
        return tuple(found[k] for k in numbers) if len(found) == self.unit.channels else ()

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of data files: the operator's, and times that depend on the inputs alone.

        So the same inputs give the same bytes: a file is dated by its newest input.
        """
        newest_ns = max((piece.mtime_ns for piece in self.unit.pieces), default=0)
        dated = f"{np.datetime64(newest_ns // NS_PER_S, 's')}Z"
        return {
            "history": f"computed by {SOFTWARE} from files of {dated} and before",
            "date_created": dated,
            **self.job.attributes,
        }

    def path(self, folder: Path, suffix: str) -> Path:
        """Return the path of a file of the unit in a folder."""
        return folder / f"{self.deployment.name}_{self.unit.name}{suffix}"

    def describe(self, spec: SpectrumSpec) -> Description:
        """Describe rows of a spec."""
        about = Description(spec, self.deployment.name, self.signals, SOFTWARE)
        return replace(about, attributes=self.attributes)


def settings_of(job: Job, unit: Unit) -> UnitSettings:
    """Return the settings of a unit.

    Raises
    ------
    ConfigError
        If channels, their names or the calibration do not fit the files.
    """
    from spectrod.config.config import SourceConfig  # noqa: PLC0415
    from spectrod.dsp.calibration import calibration_of  # noqa: PLC0415
    from spectrod.source.channels import select_channels  # noqa: PLC0415

    one = job.deployment(unit.deployment)
    selected = select_channels(SourceConfig(select=one.select), unit.channels)
    names = name_channels(one.channel_names, len(selected))
    calibrations = calibration_of(
        one.calibration or None, len(selected), one.channel_names, one.select
    )
    return UnitSettings(job, one, unit, names, calibrations)


def output_products(settings: UnitSettings) -> dict[str, ProductName]:
    """Return the product of each file that a unit can have, by its path in the results.

    Raises
    ------
    ConfigError
        If the files of two signals would have one name.
    """
    folder, unit = Path(settings.deployment.name), settings.unit.name
    suffixes = SUFFIXES | _table_suffixes(settings.job)
    found: dict[str, ProductName] = {}
    for product in settings.job.products:
        if product == "millidecade":
            path = folder / f"{settings.deployment.name}{SUFFIXES[product]}"
            names = [f"{name}_{unit}.nc" for name in file_names(path, settings.signals)]
            found |= dict.fromkeys((f"{folder}/{name}" for name in names), product)
        else:
            found[str(settings.path(folder, suffixes[product]))] = product
    return found


def _table_suffixes(job: Job) -> dict[ProductName, str]:
    return {product: f"_{product}.{one}" for product, one in job.table_formats.items()}


class UnitProducts:
    """All products of a unit: takes blocks, and writes files into a folder.

    Parameters
    ----------
    settings : UnitSettings
        What to make.
    folder : Path
        Where; empty.
    layout : SampleLayout
        Layout of the blocks.
    engine : Engine
        Computes the spectra; the caller closes it.

    Raises
    ------
    ConfigError
        If the settings do not fit the sample rate or the channels.
    StorageError, UnavailableError
        If a file cannot be made.
    """

    def __init__(
        self, settings: UnitSettings, folder: Path, layout: SampleLayout, engine: Engine
    ) -> None:
        self._settings, self._folder, self._format = settings, folder, layout.sample_format
        self._rows: dict[ProductName, RowWriter] = {}
        self._of_samples: dict[ProductName, Writer[Block]] = {}
        self.problems: list[str] = []
        self._stream: FrameStream | None = None
        try:
            self._start(layout, engine)
        except BaseException:
            self.abort()
            raise

    def _start(self, layout: SampleLayout, engine: Engine) -> None:
        """Open the files."""
        settings, folder = self._settings, self._folder
        specs = [
            self._start_rows(product)
            for product in ("millidecade", "spectra", "picture")
            if product in settings.job.products
        ]
        if specs:
            self._stream = FrameStream(
                specs,
                engine,
                sample_format=layout.sample_format,
                interleaved=layout.interleaved,
                max_latency_s=np.inf,
            )
        for product, suffix in _table_suffixes(settings.job).items():
            meter, about = _METERS[product](settings)
            self._of_samples[product] = _MeasuredTable(meter, about, settings.path(folder, suffix))
        if "flags" in settings.job.products:
            path = settings.path(folder, SUFFIXES["flags"])
            self._of_samples["flags"] = FlagsWriter(path, settings.fs, settings.signals)

    @property
    def engine(self) -> str:
        """Name of the engine in use; empty without spectra."""
        return self._stream.engine.name if self._stream is not None else ""

    def write(self, block: Block) -> None:
        """Analyse a block."""
        if self._stream is not None:
            for batch in self._stream.push(block):
                self._rows[batch.spec.product].write(batch)  # type: ignore[index]
        if self._of_samples:
            samples = to_float32(block.samples, self._format)
            as_float = replace(block, samples=samples)
            for product in self._of_samples.values():
                product.write(as_float)

    def finish(self) -> dict[ProductName, list[Path]]:
        """Complete the files; return those of each product.

        A product without a single row has no file, and a line among ``problems``.
        """
        if self._stream is not None:
            for batch in self._stream.finish():
                self._rows[batch.spec.product].write(batch)  # type: ignore[index]
        made: dict[ProductName, list[Path]] = {}
        for name, writer in self._writers.items():
            before = set(self._folder.iterdir())
            try:
                writer.finish()
            except InputError:
                self.problems.append(
                    f"{name}: not a single row: its sound is too short or has gaps"
                )
            made[name] = sorted(set(self._folder.iterdir()) - before)
        return made

    def abort(self) -> None:
        """Give up all files. Idempotent; no effect after ``finish``."""
        for writer in self._writers.values():
            writer.abort()

    @property
    def _writers(self) -> dict[ProductName, RowWriter | Writer[Block]]:
        return {**self._rows, **self._of_samples}

    def _start_rows(self, product: ProductName) -> SpectrumSpec:
        settings, job = self._settings, self._settings.job
        if product == "picture":
            spec = _picture_spec(settings)
            path = settings.path(self._folder, SUFFIXES[product])
            self._rows[product] = make_rows(path, _picture_plan(settings, spec))
            return spec
        options = ExportOptions(job.compression, attributes=settings.attributes, is_copy=True)
        if product == "millidecade":
            options = replace(options, profile="millidecade")
            spec = minute_spec(settings)
            # The writer adds the day.
            path = self._folder / f"{settings.deployment.name}{SUFFIXES[product]}"
        else:
            spec = _bound(settings, job.analysis, product)
            path = settings.path(self._folder, SUFFIXES[product])
        self._rows[product] = make_data(path, settings.describe(spec), options)
        return spec


def minute_spec(settings: UnitSettings, bands: str = "") -> SpectrumSpec:
    """Return the spec of a unit's minutes: of bins, from which the daily files are made."""
    frames = minute_frames(settings.fs) | {"bands": bands}
    return _bound(settings, AnalysisConfig(**frames), "millidecade")


def _bound(settings: UnitSettings, analysis: AnalysisConfig, product: ProductName) -> SpectrumSpec:
    return analysis.spec(
        settings.fs,
        len(settings.signals),
        product=product,
        calibration=settings.calibrations,
    )


def _picture_spec(settings: UnitSettings) -> SpectrumSpec:
    """Return the frames of the long-term average of a whole unit, however much of it there is."""
    n_samples = round(UNIT_NS[settings.job.unit] / NS_PER_S * settings.fs)
    frames = frames_for(settings.fs, n_samples)
    analysis = AnalysisConfig(
        win_length=frames.win_length, hop=frames.hop, nfft=frames.win_length, scaling="density"
    )
    return averaged(_bound(settings, analysis, "picture"), frames)


def _picture_plan(settings: UnitSettings, spec: SpectrumSpec) -> Plan:
    table = settings.job.picture
    defaults: dict[str, Any] = picture_defaults("ltsa", table.theme, has_utc=True)
    look = PictureOptions(
        width=table.width,
        height=table.height,
        f_scale=table.f_scale,
        f_min=table.f_min_hz or None,
        f_max=table.f_max_hz or None,
        theme=table.theme,
        title=f"{settings.deployment.name} {settings.unit.name}",
        signals=settings.signals,
        **defaults,
    )
    about = settings.describe(spec)
    return Plan(about, about, PicturePlan(look, host_transpose, view="ltsa"), is_copy=True)


def _of_levels(settings: UnitSettings) -> tuple[IntervalMeter, MeasurementDescription]:
    """Return what measures the levels of a unit, and what their file says."""
    table, n_channels = settings.job.levels, len(settings.signals)
    calibrations = settings.calibrations or (None,) * n_channels
    responses = [one.response if one else None for one in calibrations]
    limit_db = None if table.lower_limit_db <= _NO_LOWER_LIMIT_DB else table.lower_limit_db
    meter = LevelMeter(
        settings.fs,
        n_channels,
        quantities=table.quantities,
        interval_s=table.interval_s,
        align=table.align,
        time_zone=table.time_zone,
        utc_ns=settings.unit.start_utc_ns,
        full_scale_db=[
            UNCALIBRATED_DB if one is None else one.full_scale_db for one in calibrations
        ],
        channel_weights=table.channel_weights or None,
        speakers=settings.speakers,
        lower_limit_db=limit_db,
        bands=table.bands,
        band_quantities=table.band_quantities,
        band_range_hz=table.band_range_hz,
        responses=responses,
    )
    return meter, MeasurementDescription(
        source=settings.deployment.name,
        channels=settings.signals,
        quantities=meter.quantities,
        calibrations=calibrations,
        fs=settings.fs,
        interval_s=meter.interval_s,
        align=meter.align,
        time_zone=table.time_zone,
        has_utc=True,
        software=SOFTWARE,
        notes=tuple(response_notes(responses, settings.fs)),
        bands=meter.bands,
        extra=dict(settings.attributes),
    )


def _of_features(settings: UnitSettings) -> tuple[IntervalMeter, MeasurementDescription]:
    """Return what measures the features of a unit, and what their file says."""
    signals = MeasuredSignals(
        settings.deployment.name,
        settings.fs,
        settings.signals,
        settings.calibrations or (None,) * len(settings.signals),
    )
    bound = settings.job.features.bind(signals)
    meter = bound.open(0)
    about = describe(bound.signals, bound.facts, meter)
    return meter, replace(about, extra={**about.extra, **settings.attributes})


_METERS = {"levels": _of_levels, "features": _of_features}
"""What makes the meter of each product that is a table, and the description of its file."""


class _MeasuredTable:
    """Measures intervals, and writes them."""

    def __init__(self, meter: IntervalMeter, about: MeasurementDescription, path: Path) -> None:
        self._meter, self._writer = meter, open_writer(path, about)

    def write(self, block: Block) -> None:
        for row in self._meter.push(block.samples, block.lost_samples, block.t_utc_ns):
            self._writer.write(row)

    def finish(self) -> None:
        for row in self._meter.finish():
            self._writer.write(row)
        self._writer.finish()

    def abort(self) -> None:
        self._writer.abort()
