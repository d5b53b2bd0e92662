"""A job: the deployments of an archive, and what is computed of them."""

import hashlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

import spectrod
from spectrod.config.settings import AnalysisConfig
from spectrod.dsp.units import NS_PER_S
from spectrod.lib.site import Site
from spectrod.measure.features.features_config import FeaturesConfig
from spectrod.measure.levels.levels_config import LevelsConfig
from spectrod.measure.triggers.trigger_config import TriggerConfig, of_stored_sound

UnitLength = Literal["day", "hour"]
ProductName = Literal["millidecade", "spectra", "levels", "features", "detect", "picture", "flags"]
MergedName = Literal["zarr", "pyramid"]
TimeOrigin = Literal["auto", "header", "name"]
TableFormat = Literal["csv", "nc", "parquet"]
RowFormat = Literal["csv", "parquet"]
ResultLayout = Literal["folders", "partitioned"]

UNIT_NS: dict[UnitLength, int] = {"day": 86400 * NS_PER_S, "hour": 3600 * NS_PER_S}
"""Length of a unit [ns]."""
DEPLOYMENTS_MAX = 1000
INPUTS_MAX = 1000
"""Most inputs of a deployment."""
ATTEMPTS_MAX = 100
MEASURED_INTERVAL_S = 60.0
"""Default interval of levels and features [s]."""

DIGEST_CHARS = 32
"""Length of a digest: half of a SHA-256 in hexadecimal."""


class Deployment(Struct, frozen=True, kw_only=True):
    """A recorder at a place, or several recorders that took turns there.

    Attributes
    ----------
    name : str
        Name of its folder and in the names of its files.
    inputs : tuple of str
        Folders, files and patterns, absolute.
    recursive : bool
        Search the subfolders of folders.
    select : tuple of int
        Channels that are analysed, counted from 0; empty: all.
    channel_names : tuple of str
        Names of the analysed channels; empty: their numbers.
    calibration : str
        Calibration file, absolute; empty: none.
    begin_utc_ns, end_utc_ns : int or None
        Part of the sound that is analysed, UTC [ns]; None: all.
    time : {"auto", "header", "name"}
        Where files state their start time; auto: header before name.
    time_format : str
        Format of times in names, which then alone count; empty: forms of recorders.
    time_zone : str
        Time zone of times that state none, such as ``Europe/Berlin``; empty: UTC.
    clock_offset_s : float
        Added to all times of the recorder's clock [s].
    site : Site
        Where the recorder is.
    """

    name: str
    inputs: tuple[str, ...]
    recursive: bool = True
    select: tuple[int, ...] = ()
    channel_names: tuple[str, ...] = ()
    calibration: str = ""
    begin_utc_ns: int | None = None
    end_utc_ns: int | None = None
    time: TimeOrigin = "auto"
    time_format: str = ""
    time_zone: str = ""
    clock_offset_s: float = 0.0
    site: Site = Site()


class PictureTable(Struct, frozen=True):
    """Table ``[picture]``: the long-term average of a unit, see ``PictureOptions``."""

    width: Annotated[int, Meta(ge=200, le=8000)] = 1440
    height: Annotated[int, Meta(ge=0, le=8000)] = 0
    f_scale: Literal["linear", "log", "mel", "octave", "bark", "erb"] = "log"
    f_min_hz: Annotated[float, Meta(ge=0)] = 0.0
    """Lowest frequency [Hz]; 0: the axis's default."""
    f_max_hz: Annotated[float, Meta(ge=0)] = 0.0
    """Highest frequency [Hz]; 0: the Nyquist frequency."""
    theme: Literal["light", "dark"] = "light"
    time_zone: str = ""
    """Time zone of the time axis; empty: UTC."""


class Job(Struct, frozen=True, kw_only=True):
    """Everything that a job's file says.

    Attributes
    ----------
    name : str
        Name of the job.
    output : str
        Folder of all results, absolute; or the address of a bucket, see ``bucket_address``.
    deployments : tuple of Deployment
        At least one, with different names.
    unit : {"day", "hour"}
        Time in UTC that one unit of work covers.
    products : tuple of str
        What is made of each unit.
    layout : {"folders", "partitioned"}
        Where Parquet files of tables are: in the folders of deployments, or in
        ``TABLE/deployment=NAME/date=YYYY-MM-DD/``. All other files are in the former.
    merged : tuple of str
        What is made of all units together, of the product ``millidecade``.
    engine, device : str
        See ``open_engine``. Results of different engines differ in the last digits.
    attempts : int
        How often a unit is tried before it is set aside.
    compression : int
        See ``ExportOptions``.
    attributes : dict of str
        The operator's attributes in all data files.
    analysis : AnalysisConfig
        Of the products ``spectra`` and ``detect``.
    levels : LevelsConfig
        Of the product ``levels``; its name and sources are not used.
    levels_format : {"csv", "nc", "parquet"}
        Files of levels.
    features : FeaturesConfig
        Of the product ``features``; its name and sources are not used.
    features_format : {"csv", "nc", "parquet"}
        Files of features.
    detect : TriggerConfig
        Of the product ``detect``; its sources and its product are not used.
    detect_format : {"csv", "parquet"}
        Files of events.
    detect_zone : str
        Time zone of times of events; empty: UTC, which Parquet always has.
    flags_format : {"csv", "parquet"}
        Files of flags.
    picture : PictureTable
        Of the product ``picture``.
    """

    name: str
    output: str
    deployments: tuple[Deployment, ...]
    unit: UnitLength = "day"
    products: tuple[ProductName, ...] = ("millidecade",)
    layout: ResultLayout = "folders"
    merged: tuple[MergedName, ...] = ()
    engine: Literal["auto", "opencl", "numpy", "float64"] = "auto"
    device: str = ""
    attempts: int = 3
    compression: int = 1
    attributes: dict[str, str] = msgspec.field(default_factory=dict)
    analysis: AnalysisConfig = msgspec.field(default_factory=AnalysisConfig)
    levels: LevelsConfig = msgspec.field(
        default_factory=lambda: LevelsConfig("levels", interval_s=MEASURED_INTERVAL_S)
    )
    levels_format: TableFormat = "csv"
    features: FeaturesConfig = msgspec.field(
        default_factory=lambda: FeaturesConfig("features", interval_s=MEASURED_INTERVAL_S)
    )
    features_format: TableFormat = "csv"
    detect: TriggerConfig = msgspec.field(
        default_factory=lambda: TriggerConfig("detect", **of_stored_sound({}))
    )
    detect_format: RowFormat = "csv"
    detect_zone: str = ""
    flags_format: RowFormat = "csv"
    picture: PictureTable = msgspec.field(default_factory=PictureTable)

    def deployment(self, name: str) -> Deployment:
        """Return a deployment by its name; it must exist."""
        return next(one for one in self.deployments if one.name == name)

    @property
    def time_zone(self) -> str:
        """Zone of the report's times: that of pictures, else of levels or features; empty: UTC."""
        tables = self.picture, self.levels, self.features
        return next((one.time_zone for one in tables if one.time_zone), "")

    @property
    def table_formats(self) -> dict[ProductName, TableFormat]:
        """Format of the file of each product that is a table."""
        found: dict[ProductName, TableFormat] = {
            "levels": self.levels_format,
            "features": self.features_format,
            "detect": self.detect_format,
            "flags": self.flags_format,
        }
        return {product: one for product, one in found.items() if product in self.products}

    @property
    def plan_digest(self) -> str:
        """Digest of what decides the plan: the unit's length, inputs and times."""
        deployments = [
            [one.name, one.inputs, one.recursive, one.begin_utc_ns, one.end_utc_ns, one.time,
             one.time_format, one.time_zone, one.clock_offset_s]
            for one in self.deployments
        ]  # fmt: skip
        return digest([self.unit, deployments])

    def parameters(self, name: str) -> dict[str, Any]:
        """Return what decides the results of a deployment beside its samples; built-in types.

        Tables of products that are not made do not count.
        """
        one = self.deployment(name)
        found: dict[str, Any] = {
            "software": f"spectrod {spectrod.__version__}",
            "unit": self.unit,
            "products": sorted(self.products),
            "engine": [self.engine, self.device],
            "compression": self.compression,
            "attributes": self.attributes | one.site.attributes,
            "deployment": [one.name, one.select, one.channel_names],
        }
        found |= self._other_files
        tables: dict[ProductName, Any] = {
            "spectra": self.analysis,
            "levels": [self.levels, self.levels_format],
            "features": [self.features, self.features_format],
            "detect": [self.detect, self.analysis, self.detect_zone],
            "picture": self.picture,
        }
        found |= {product: table for product, table in tables.items() if product in self.products}
        built_in: dict[str, Any] = msgspec.to_builtins(found)
        return built_in

    @property
    def _other_files(self) -> dict[str, str]:
        """Layout and formats that are not the defaults: results of jobs without them stand."""
        found = {"layout": self.layout} if self.layout != "folders" else {}
        made = {"detect": self.detect_format, "flags": self.flags_format}
        return found | {
            f"{product}_format": one
            for product, one in made.items()
            if product in self.products and one != "csv"
        }


def digest(value: Any) -> str:
    """Return the digest of a value of built-in types, or of structs of them."""
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:DIGEST_CHARS]
