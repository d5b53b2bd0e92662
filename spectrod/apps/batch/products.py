"""The products of a unit: spectra, levels, a picture and flags of one time line of samples."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.analysis.engine import Engine
from spectrod.analysis.samples import to_float32
from spectrod.analysis.stream import FrameStream
from spectrod.apps.batch.flags import FlagsWriter, count_flags
from spectrod.apps.batch.job import UNIT_NS, Job, ProductName
from spectrod.apps.batch.minute_checks import MinuteChecks, pause_ends
from spectrod.apps.batch.result_paths import table_suffix
from spectrod.apps.batch.results import UnitFindings
from spectrod.apps.batch.tables import METERS, EventsWriter, MeasuredTable
from spectrod.apps.batch.unit_settings import UnitSettings
from spectrod.config.config import AnalysisConfig
from spectrod.dsp.blocks import Block
from spectrod.dsp.calibration import outside_validity
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.dsp.writer import Writer
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.millidecade import MillidecadeWriter, file_names
from spectrod.formats.export.minutes import minute_frames
from spectrod.formats.longterm.presets import averaged, frames_for, picture_defaults
from spectrod.formats.picture.painter import host_transpose
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.plan import PicturePlan
from spectrod.lib.errors import InputError
from spectrod.lib.time_zones import find_zone, zone_name
from spectrod.measure.triggers.look_ahead import LookAhead
from spectrod.measure.triggers.trigger import Trigger
from spectrod.recording.output_plan import Plan, make_data, make_rows

SUFFIXES: dict[ProductName, str] = {
    "millidecade": ".nc",
    "spectra": "_spectra.nc",
    "picture": "_ltsa.png",
}


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
            name = settings.path(folder, suffixes[product]).name
            found[settings.result_path(product, name)] = product
    return found


def _table_suffixes(job: Job) -> dict[ProductName, str]:
    return {product: table_suffix(product, one) for product, one in job.table_formats.items()}


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
        self._rows: dict[ProductName, Writer[SpectrumBatch]] = {}
        self._of_samples: dict[ProductName, Writer[Block]] = {}
        unit = settings.unit
        outside = outside_validity(settings.calibrations, unit.start_utc_ns, unit.end_utc_ns)
        self.problems: list[str] = [outside] if outside else []
        self._stream: FrameStream | None = None
        self._checks: MinuteChecks | None = None
        if {"millidecade", "flags"} & {*settings.job.products}:
            ends = pause_ends(settings.unit)
            self._checks = MinuteChecks(len(settings.signals), settings.fs, ends)
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
            for product in ("millidecade", "spectra", "detect", "picture")
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
        suffixes = _table_suffixes(settings.job)
        for product, open_meter in METERS.items():
            if product in suffixes:
                path = settings.path(folder, suffixes[product])
                self._of_samples[product] = MeasuredTable(*open_meter(settings), path)
        if "flags" in suffixes and self._checks is not None:
            path = settings.path(folder, suffixes["flags"])
            self._of_samples["flags"] = FlagsWriter(path, self._checks, settings)

    @property
    def engine(self) -> str:
        """Name of the engine in use; empty without spectra."""
        return self._stream.engine.name if self._stream is not None else ""

    def write(self, block: Block) -> None:
        """Analyse a block."""
        if self._checks is not None or self._of_samples:
            as_float = replace(block, samples=to_float32(block.samples, self._format))
            # Daily files are written with what the checks have found by then.
            for product in (self._checks, *self._of_samples.values()):
                if product is not None:
                    product.write(as_float)
        if self._stream is not None:
            for batch in self._stream.push(block):
                self._rows[batch.spec.product].write(batch)  # type: ignore[index]

    def finish(self) -> dict[ProductName, list[Path]]:
        """Complete the files; return those of each product.

        A product without a single row has no file, and a line among ``problems``.
        """
        if self._checks is not None:
            self._checks.finish()
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
            if isinstance(writer, EventsWriter):
                self.problems += [f"{name}: {problem}" for problem in writer.problems]
            made[name] = sorted(set(self._folder.iterdir()) - before)
        return made

    @property
    def findings(self) -> UnitFindings:
        """What its tables of events and flags have, after ``finish``."""
        events = self._rows.get("detect")
        n_events = events.n_events if isinstance(events, EventsWriter) else 0
        minutes = self._checks.minutes if self._checks and "flags" in self._of_samples else []
        flagged, n_clipped = count_flags(minutes)
        return UnitFindings(events=n_events, flagged_minutes=flagged, clipped_samples=n_clipped)

    def abort(self) -> None:
        """Give up all files. Idempotent; no effect after ``finish``."""
        for writer in self._writers.values():
            writer.abort()

    @property
    def _writers(self) -> dict[ProductName, Writer[SpectrumBatch] | Writer[Block]]:
        return {**self._rows, **self._of_samples}

    def _start_rows(self, product: ProductName) -> SpectrumSpec:
        settings, job = self._settings, self._settings.job
        if product == "picture":
            spec = _picture_spec(settings)
            path = settings.path(self._folder, SUFFIXES[product])
            self._rows[product] = make_rows(path, _picture_plan(settings, spec))
            return spec
        if product == "detect":
            spec = _bound(settings, job.analysis, product)
            suffix = _table_suffixes(job)[product]
            self._rows[product] = EventsWriter(settings.path(self._folder, suffix), settings, spec)
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
        writer = make_data(path, settings.describe(spec), options)
        if isinstance(writer, MillidecadeWriter) and self._checks is not None:
            writer.faults = self._checks.quality
        self._rows[product] = writer
        return spec


def check_product(settings: UnitSettings, product: ProductName) -> None:
    """Check that a product can be made of a unit; opens no file and no engine.

    Raises
    ------
    ConfigError
        If its table does not fit the sample rate or the channels.
    """
    job = settings.job
    if product == "millidecade":
        minute_spec(settings)
    elif product == "spectra":
        _bound(settings, job.analysis, product)
    elif product == "detect":
        spec = _bound(settings, job.analysis, product)
        LookAhead(Trigger(job.detect, spec, settings.signals))
    elif product == "picture":
        _look(settings).frequency_axis(_picture_spec(settings))
    elif product == "levels":
        job.levels.bind(settings.measured).open(0)
    elif product == "features":
        job.features.bind(settings.measured).open(0)


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
    about = settings.describe(spec)
    picture = PicturePlan(_look(settings), host_transpose, view="ltsa")
    return Plan(about, about, picture, is_copy=True)


def _of_utc(settings: UnitSettings) -> str:
    """Return what a title says of a unit's name, where the axis has other days and hours."""
    zone = settings.job.picture.time_zone
    return f" ({settings.job.unit} of UTC)" if find_zone(zone).key != "UTC" else ""


def _look(settings: UnitSettings) -> PictureOptions:
    table = settings.job.picture
    defaults: dict[str, Any] = picture_defaults("ltsa", table.theme, has_utc=True)
    return PictureOptions(
        width=table.width,
        height=table.height,
        f_scale=table.f_scale,
        f_min=table.f_min_hz or None,
        f_max=table.f_max_hz or None,
        theme=table.theme,
        time_zone=zone_name(table.time_zone),
        title=f"{settings.deployment.name} {settings.unit.name}{_of_utc(settings)}",
        signals=settings.signals,
        **defaults,
    )
