"""The file of a job, ``JOB.toml``: read with every mistake in it, by line and column."""

import datetime as dt
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Meta

from spectrod.analysis.engine import EngineKind
from spectrod.apps.batch.job import (
    ATTEMPTS_MAX,
    DEPLOYMENTS_MAX,
    INPUTS_MAX,
    MEASURED_INTERVAL_S,
    Deployment,
    Job,
    MergedName,
    PictureTable,
    ProductName,
    ResultLayout,
    RowFormat,
    TableFormat,
    TimeOrigin,
    UnitLength,
)
from spectrod.apps.batch.result_paths import PARTITIONED_FORMAT, TABLE_WORDS
from spectrod.apps.batch.results import RESERVED_NAMES
from spectrod.config.config import AnalysisConfig, LevelsConfig
from spectrod.config.config_files import parse, read
from spectrod.config.layers import Layer, Mistakes, TableChecker, broken_keys
from spectrod.config.toml_text import Path as KeyPath
from spectrod.config.values import shown
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.export_options import COMPRESSION_MAX, ExportOptions
from spectrod.lib.errors import ConfigError
from spectrod.lib.names import check_channel_names, check_name
from spectrod.lib.site import SITE_KEYS, Site
from spectrod.lib.suggestions import did_you_mean
from spectrod.lib.time_format import check_time_format
from spectrod.lib.time_zones import find_zone
from spectrod.measure.features.features_config import FeaturesConfig
from spectrod.measure.triggers.trigger_config import TriggerConfig, of_stored_sound
from spectrod.source.store.bucket_address import bucket_address
from spectrod.source.store.urls import HTTP_SCHEMES, OBJECT_SCHEMES, check_url, is_url

JOB, ANALYSIS, LEVELS, FEATURES = "job", "analysis", "levels", "features"
DETECT, FLAGS, PICTURE = "detect", "flags", "picture"
ATTRIBUTES, DEPLOYMENTS = "attributes", "deployments"

_UTC_MAX = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SCHEME = "file://"
_Instant = Annotated[dt.datetime, Meta(tz=True)]
_Text = Annotated[str, Meta(min_length=1)]

_JOB_KEYS: dict[str, Any] = {
    "name": str,
    "output": _Text,
    "unit": UnitLength,
    "products": Annotated[tuple[ProductName, ...], Meta(min_length=1)],
    "layout": ResultLayout,
    "merged": tuple[MergedName, ...],
    "engine": EngineKind,
    "device": str,
    "attempts": Annotated[int, Meta(ge=1, le=ATTEMPTS_MAX)],
    "compression": Annotated[int, Meta(ge=0, le=COMPRESSION_MAX)],
}
_DEPLOYMENT_KEYS: dict[str, Any] = {
    "inputs": Annotated[tuple[_Text, ...], Meta(min_length=1, max_length=INPUTS_MAX)],
    "recursive": bool,
    "select": tuple[Annotated[int, Meta(ge=0, lt=4096)], ...],
    "channel_names": tuple[str, ...],
    "calibration": str,
    "begin": _Instant,
    "end": _Instant,
    "time": TimeOrigin,
    "time_format": str,
    "time_zone": str,
    "clock_offset_s": Annotated[float, Meta(ge=-1e10, le=1e10)],
    **SITE_KEYS,
}


def _keys_of(struct: type[msgspec.Struct], *without: str) -> dict[str, Any]:
    return {key.name: key.type for key in msgspec.structs.fields(struct) if key.name not in without}


SECTIONS: dict[str, dict[str, Any]] = {
    JOB: _JOB_KEYS,
    ANALYSIS: _keys_of(AnalysisConfig),
    LEVELS: {**_keys_of(LevelsConfig, "name", "sources"), "format": TableFormat},
    FEATURES: {**_keys_of(FeaturesConfig, "name", "sources"), "format": TableFormat},
    DETECT: {
        **_keys_of(TriggerConfig, "name", "sources", "product", "mask"),
        "time_zone": str,
        "format": RowFormat,
    },
    FLAGS: {"format": RowFormat},
    PICTURE: _keys_of(PictureTable),
    DEPLOYMENTS: _DEPLOYMENT_KEYS,
}
"""Types of the keys of each section; of ``deployments`` those of each table in it."""
_PLAIN = (JOB, ANALYSIS, LEVELS, FEATURES, DETECT, FLAGS, PICTURE)
"""Sections that are one table."""


def read_job(path: Path) -> Job:
    """Read the file of a job; relative paths in it start at its folder.

    Raises
    ------
    SettingsError
        Names every mistake, with line and column.
    ConfigError
        If it cannot be read, or is no TOML.
    """
    text = parse(path, read(path))
    mistakes = Mistakes()
    reader = _JobReader(Layer(str(path), text=text), mistakes, path.absolute().parent)
    job = reader.job(text.data)
    mistakes.raise_any()
    assert job is not None
    return job


class _JobReader:
    """Reads one file."""

    def __init__(self, layer: Layer, mistakes: Mistakes, folder: Path) -> None:
        self._mistakes, self._folder = mistakes, folder
        plain = {section: SECTIONS[section] for section in _PLAIN}
        self._checker = TableChecker(layer, mistakes, plain)

    def job(self, data: Mapping[str, Any]) -> Job | None:
        """Return the job; None if there is a mistake."""
        for section in data:
            if section not in (*SECTIONS, ATTRIBUTES):
                known = ", ".join(f"[{one}]" for one in (*SECTIONS, ATTRIBUTES))
                meant = did_you_mean(section, (*SECTIONS, ATTRIBUTES))
                self._checker.add(
                    (section,), f"[{section}]: unknown section; known: {known}{meant}"
                )
        tables = {
            section: self._table((section,), SECTIONS[section], data.get(section, {}))
            for section in _PLAIN
        }
        self._check_tables(tables)
        attributes = self._attributes(data.get(ATTRIBUTES, {}))
        deployments = self._deployments(data.get(DEPLOYMENTS, {}))
        self._require(data.get(JOB, {}), tables[JOB])
        if tables[JOB].get("layout") == "partitioned":
            self._check_partitions(tables, deployments)
        if len(self._mistakes):
            return None
        return self._made(tables, attributes, deployments)

    def _made(
        self,
        tables: Mapping[str, dict[str, Any]],
        attributes: dict[str, str],
        deployments: tuple[Deployment, ...],
    ) -> Job:
        formats = {f"{name}_format": tables[name].get("format", "csv") for name in TABLE_WORDS}
        job = dict(tables[JOB])
        job["output"] = self._output(job["output"])
        return Job(
            **job,
            deployments=deployments,
            attributes=attributes,
            analysis=AnalysisConfig(**tables[ANALYSIS]),
            levels=_levels(tables[LEVELS]),
            features=_features(tables[FEATURES]),
            **formats,
            detect=_detect(tables[DETECT]),
            detect_zone=tables[DETECT].get("time_zone", ""),
            picture=PictureTable(**tables[PICTURE]),
        )

    # ---- tables

    def _table(self, path: KeyPath, types: Mapping[str, Any], values: Any) -> dict[str, Any]:
        """Return the values of a table that are right."""
        return self._checker.table(path, ".".join(map(str, path)), types, values)

    def _require(self, asked: Any, job: Mapping[str, Any]) -> None:
        """Check the keys of ``[job]``, of which ``job`` are right by themselves."""
        for key in ("name", "output"):
            if isinstance(asked, dict) and key not in asked:
                self._checker.add((JOB,), f"{JOB}.{key}: is missing")
        if "name" in job:
            self._try((JOB, "name"), lambda: check_name(f"{JOB}.name", job["name"]))
        if job.get("merged") and "millidecade" not in job.get("products", ("millidecade",)):
            rule = f"{JOB}.merged={list(job['merged'])}: needs 'millidecade' among the products"
            self._checker.add((JOB, "merged"), rule)
        if "output" in job:
            self._try((JOB, "output"), lambda: self._output(job["output"]))
            if job.get("merged") and is_url(job["output"]):
                rule = (
                    f"{JOB}.merged={list(job['merged'])}: needs an output that is a folder: a "
                    "bucket cannot replace a whole folder at once; spectrod batch merge copies "
                    "results from a bucket into one"
                )
                self._checker.add((JOB, "merged"), rule)

    def _check_partitions(
        self, tables: Mapping[str, dict[str, Any]], deployments: Sequence[Deployment]
    ) -> None:
        """Check that there are tables for partitions, and that their folders are free."""
        made = tables[JOB].get("products", ())
        formats = [tables[one].get("format") for one in TABLE_WORDS if one in made]
        if PARTITIONED_FORMAT not in formats:
            rule = f"needs a table of its products with format = '{PARTITIONED_FORMAT}'"
            self._checker.add((JOB, "layout"), f"{JOB}.layout='partitioned': {rule}")
        for name in (one.name for one in deployments):
            if name in TABLE_WORDS.values():
                rule = f"{JOB}.layout='partitioned' has a folder of this name: take another one"
                self._checker.add((DEPLOYMENTS, name), f"{DEPLOYMENTS}.{name}: {rule}")

    def _check_tables(self, tables: Mapping[str, dict[str, Any]]) -> None:
        """Check the rules between keys of each table."""
        checks = {
            ANALYSIS: _check_analysis,
            LEVELS: _check_levels,
            FEATURES: _check_features,
            DETECT: _check_detect,
            PICTURE: _check_zone,
        }
        for section, check in checks.items():
            for key, message in broken_keys(check, tables[section], set()):
                path = (section, key) if key else (section,)
                self._checker.add(path, f"{section}: {message}")

    def _attributes(self, values: Any) -> dict[str, str]:
        if not isinstance(values, dict):
            self._checker.add((ATTRIBUTES,), f"{ATTRIBUTES}={shown(values)}: must be a table")
            return {}
        found = self._table((ATTRIBUTES,), dict.fromkeys(values, str), values)
        for name in found:
            self._try((ATTRIBUTES, name), lambda name=name: ExportOptions(attributes={name: ""}))
        return found

    # ---- deployments

    def _deployments(self, tables: Any) -> tuple[Deployment, ...]:
        if not isinstance(tables, dict) or not tables:
            self._checker.add(
                (DEPLOYMENTS,), "[deployments.NAME]: is missing: a job needs at least one"
            )
            return ()
        if len(tables) > DEPLOYMENTS_MAX:
            text = f"[deployments.NAME]: {len(tables)} tables: must be at most {DEPLOYMENTS_MAX}"
            self._checker.add((DEPLOYMENTS,), text)
            return ()
        return tuple(self._deployment(name, table) for name, table in tables.items())

    def _deployment(self, name: str, table: Any) -> Deployment:
        path = (DEPLOYMENTS, name)
        self._try(path, lambda: _check_deployment_name(name))
        found = self._table(path, _DEPLOYMENT_KEYS, table)
        prefix = f"{DEPLOYMENTS}.{name}"
        if isinstance(table, dict) and "inputs" not in table:
            self._checker.add(path, f"{prefix}.inputs: is missing")
        inputs = []
        for number, text in enumerate(found.pop("inputs", ())):
            self._try((*path, "inputs", number), lambda text=text: inputs.append(self._input(text)))
        self._try((*path, "time_format"), lambda: _check_time_format(prefix, found))
        for key, rule in _broken_times(found):
            self._checker.add((*path, key), f"{prefix}.{rule}")
        if "channel_names" in found:
            names = found["channel_names"]
            self._try((*path, "channel_names"), lambda: check_channel_names(names))
        site = Site(**{key: found.pop(key) for key in SITE_KEYS if key in found})
        asked = SITE_KEYS.keys() & table.keys() if isinstance(table, dict) else ()
        if all(getattr(site, key) not in {None, ""} for key in asked):
            self._try(path, lambda: _check_site(prefix, site))
        begin, end = found.pop("begin", None), found.pop("end", None)
        if found.get("calibration"):
            self._try((*path, "calibration"), lambda: self._read_calibration(found))
        return Deployment(
            name=name,
            inputs=tuple(inputs),
            begin_utc_ns=_utc_ns(begin),
            end_utc_ns=_utc_ns(end),
            site=site,
            **found,
        )

    def _read_calibration(self, table: dict[str, Any]) -> None:
        """Make the path of a calibration absolute, and check that file."""
        table["calibration"] = self._absolute("calibration", table["calibration"])
        _check_calibration(table["calibration"])

    def _input(self, text: str) -> str:
        if text.startswith(_SCHEME):
            text = text.removeprefix(_SCHEME)
        elif is_url(text):
            check_url(text)
            return text
        elif "://" in text:
            schemes = ", ".join(f"{one}://" for one in (*OBJECT_SCHEMES, *HTTP_SCHEMES))
            raise ConfigError(
                f"inputs={text!r}: must be a folder, a file, a pattern or a file:// of them, or an "
                f"address with {schemes}"
            )
        return self._absolute("inputs", text)

    def _output(self, text: str) -> str:
        if "://" not in text:
            return self._absolute("output", text)
        try:
            return bucket_address(text)
        except ConfigError as error:
            raise ConfigError(f"{JOB}.output: {error}") from error

    def _absolute(self, key: str, text: str) -> str:
        """Return an absolute path; raises ConfigError if it cannot be one."""
        if "\0" in text:
            raise ConfigError(f"{key}={text!r}: must be a path, which has no NUL")
        try:
            return os.path.normpath(self._folder / Path(text).expanduser())
        except RuntimeError as error:
            raise ConfigError(f"{key}={text!r}: must begin with ~ and a known user") from error

    # ---- mistakes

    def _try(self, path: KeyPath, check: Any) -> None:
        """Add the mistake that a check raises, if it does."""
        try:
            check()
        except ConfigError as error:
            self._checker.add(path, str(error))


def _check_analysis(table: dict[str, Any]) -> None:
    AnalysisConfig(**table).spec(None, 1)


def _check_levels(table: dict[str, Any]) -> None:
    _levels(table).check()


def _levels(table: Mapping[str, Any]) -> LevelsConfig:
    keys = _without(table, "format")
    return LevelsConfig(LEVELS, **{"interval_s": MEASURED_INTERVAL_S, **keys})


def _check_features(table: dict[str, Any]) -> None:
    features = _features(table)
    features.check_intervals()
    features.check()


def _features(table: Mapping[str, Any]) -> FeaturesConfig:
    keys = _without(table, "format")
    return FeaturesConfig(FEATURES, **{"interval_s": MEASURED_INTERVAL_S, **keys})


def _check_detect(table: dict[str, Any]) -> None:
    _check_zone(table)
    _detect(table).check()


def _detect(table: Mapping[str, Any]) -> TriggerConfig:
    return TriggerConfig(DETECT, **of_stored_sound(_without(table, "time_zone", "format")))


def _without(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _check_zone(table: dict[str, Any]) -> None:
    find_zone(table.get("time_zone", ""))


def _check_deployment_name(name: str) -> None:
    check_name("name of a deployment", name)
    if name in RESERVED_NAMES or name.startswith("."):
        others = " or ".join(map(repr, RESERVED_NAMES))
        raise ConfigError(
            f"name of a deployment={name!r}: must not begin with a dot or be {others}"
        )


def _check_site(prefix: str, site: Site) -> None:
    try:
        site.check()
    except ConfigError as error:
        raise ConfigError(f"{prefix}.{error}") from error


def _check_calibration(path: str) -> None:
    from spectrod.dsp.calibration import load_calibration  # noqa: PLC0415 - most jobs have none

    load_calibration(path)


def _check_time_format(prefix: str, table: Mapping[str, Any]) -> None:
    text = table.get("time_format", "")
    check_time_format(text)
    if text and table.get("time") == "header":
        raise ConfigError(f"{prefix}.time_format={text!r}: is for names, and time='header'")


def _broken_times(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys of times that break a rule, with ``KEY=VALUE: RULE``."""
    begin, end = table.get("begin"), table.get("end")
    for key, value in (("begin", begin), ("end", end)):
        if value is not None and not _EPOCH <= value < _UTC_MAX:
            yield key, f"{key}={value.isoformat()}: must be from 1970 to 2199"
    if begin is not None and end is not None and begin >= end:
        yield "end", f"end={end.isoformat()}: must be after begin={begin.isoformat()}"
    zone = table.get("time_zone")
    if zone:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            yield "time_zone", f"time_zone={zone!r}: must be a time zone, as Europe/Berlin"


def _utc_ns(when: dt.datetime | None) -> int | None:
    if when is None:
        return None
    return (when - _EPOCH) // dt.timedelta(microseconds=1) * (NS_PER_S // 10**6)
