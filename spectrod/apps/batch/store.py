"""One Zarr store of all minutes of a job: a chunk of levels for each unit and channel."""

import errno
import math
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from spectrod.apps.batch.job import Job, digest
from spectrod.apps.batch.results import STORE_FOLDER
from spectrod.apps.batch.series import UNITS_MAX, Series, SeriesUnit, UnitMinutes
from spectrod.apps.batch.staging import link, staged
from spectrod.apps.batch.unit_settings import SOFTWARE
from spectrod.formats.export.attributes import CONVENTIONS, global_attributes, iso_time
from spectrod.formats.export.layout import Variable
from spectrod.formats.export.millidecade import EFFORT, FREQUENCY, TIME, level_attributes
from spectrod.formats.export.minutes import MINUTE_NS, MINUTE_S
from spectrod.formats.export.zarr import codecs_of, consolidate, make_array
from spectrod.formats.export.zarr_reader import METADATA, ZarrArrays
from spectrod.lib.errors import StorageError, storage_error
from spectrod.lib.json_text import decode_json
from spectrod.lib.optional_packages import need
from spectrod.lib.regular_files import read_regular

_T = TypeVar("_T")

VERSION = 1
METADATA_BYTES_MAX = 1 << 28
"""Largest metadata of a store that are read [bytes]."""

_JOB, _CONTENT = "spectrod_job", "spectrod_content"
_ARRAY_BYTES_MAX = 1 << 16
"""Largest metadata of an array of a store [bytes]."""
_COORDINATE_ROWS = 1 << 16
_UNIT = {
    "unit_name": "name of a unit of the plan",
    "unit_state": "done, partial or not computed",
    "unit_content": "digest of the daily files that a unit's chunks are made of",
}


class _RootAttributes(Struct):
    """Of the metadata of a store, what tells whether it is of a job, and of which results."""

    spectrod_job: str
    spectrod_content: str = ""


class _Root(Struct):
    attributes: _RootAttributes


class _Encoding(Struct, kw_only=True):
    """What two arrays have in common whose chunks are interchangeable; but for rows, the shape."""

    shape: list[int]
    data_type: str
    chunk_grid: Any
    chunk_key_encoding: Any
    fill_value: Any
    codecs: Any


@dataclass(frozen=True, slots=True)
class Merged:
    """What a folder of the whole job has been made of.

    Attributes
    ----------
    path : Path
        The folder.
    n_written, n_kept, n_missing : int
        Units that were written; that were there, and are the same; without a result.
    """

    path: Path
    n_written: int
    n_kept: int
    n_missing: int


def write_store(job: Job, series: Sequence[Series]) -> Merged:
    """Write the store of a job, or what has changed in it; within ``merging``.

    The store appears complete; chunks of units that are the same are taken from the one before.
    Memory is that of a day of one channel.

    Parameters
    ----------
    job : Job
    series : sequence of Series
        All of the job.

    Raises
    ------
    StorageError
        If the folder is no store of this job, a daily file is not that of its record, or the store
        cannot be written; the one before stays then.
    UnavailableError
        If zarr is not installed.
    """
    need("zarr", "zarr")
    path = Path(job.output) / STORE_FOLDER
    content = _content(job, series)
    old = _OldStore.of(path, job)
    with ExitStack() as stack:
        if old is not None:
            stack.enter_context(closing(old))
        return _write(job, series, path, content, old)


def _write(
    job: Job, series: Sequence[Series], path: Path, content: str, old: "_OldStore | None"
) -> Merged:
    units = [unit for one in series for unit in one.units]
    n_missing = sum(not unit.files for unit in units)
    if old is not None and old.content == content and all(
        old.has(one, place, unit) for one in series for place, unit in enumerate(one.units)
    ):  # fmt: skip
        return Merged(path, 0, len(units) - n_missing, n_missing)
    with staged(path) as part:
        root = need("zarr", "zarr").open_group(part, mode="w-", zarr_format=3)
        n_kept = sum(_write_series(root, part, one, old) for one in series)
        root.attrs.update(_root_attributes(job, content))
        consolidate(part)
    return Merged(path, len(units) - n_missing - n_kept, n_kept, n_missing)


def store_problems(job: Job, series: Sequence[Series]) -> Iterator[str]:
    """Yield what is wrong with the store of a job: units that are missing, torn or others."""
    path = Path(job.output) / STORE_FOLDER
    try:
        old = _OldStore.of(path, job)
    except StorageError as error:
        yield str(error)
        return
    if old is None:
        return
    with closing(old):
        for one in series:
            for place, unit in enumerate(one.units):
                if unit.files:
                    yield from _unit_problems(old, path, one, place, unit)


def _unit_problems(
    old: "_OldStore", path: Path, series: Series, place: int, unit: SeriesUnit
) -> Iterator[str]:
    name = f"{path}: {series.deployment}/{unit.name}"
    try:
        with UnitMinutes(series, unit) as minutes:
            same = np.array_equal(old.effort_s(series, place), minutes.effort_s())
            for signal in range(len(series.signals)):
                stored = old.level(series, place, signal)
                same &= np.array_equal(stored, minutes.level(signal), equal_nan=True)
    except StorageError as error:
        yield str(error)
    except FileNotFoundError:
        yield f"{name}: is not what was computed; merge again"
    except (OSError, ValueError):
        yield f"{name}: cannot be read; merge again"
    else:
        if not same:
            yield f"{name}: is not what was computed; merge again"


# ---- arrays


def _write_series(root: Any, part: Path, series: Series, old: "_OldStore | None") -> int:
    """Write the group of a series; return how many units were taken from the store before."""
    group = root.create_group(_group_path(series))
    codecs = codecs_of(series.job.compression)
    n_signals, n_bands = len(series.signals), len(series.bands)
    n, n_rows = series.unit_minutes, series.unit_minutes * len(series.units)
    psd = Variable("psd", ("time", "channel", "frequency"), "<f4", _level_attributes(series))
    effort = Variable("effort", ("time",), "<f4", EFFORT)
    shape = (n_rows, n_signals, n_bands)
    levels = make_array(group, psd, shape, (n, 1, n_bands), codecs, math.nan)
    efforts = make_array(group, effort, (n_rows,), (n,), codecs, 0.0)
    folder = part / _group_path(series)
    is_alike = old is not None and old.is_alike(series, folder)
    n_kept, sizes = 0, []
    for place, unit in enumerate(series.units):
        if is_alike and old is not None and (names := old.files_of(series, unit)):
            for source, name in zip(names, _chunks(place, n_signals), strict=True):
                link(source, folder / name)
            n_kept += 1
        elif unit.files:
            rows = slice(place * n, (place + 1) * n)
            with UnitMinutes(series, unit) as minutes:
                efforts[rows] = minutes.effort_s()
                for signal in range(n_signals):
                    levels[rows, signal] = minutes.level(signal)
        sizes.append(_size(folder, place, n_signals) if unit.files else 0)
    for variable in _complete(series, sizes):
        assert variable.data is not None
        chunk = (min(max(1, len(variable.data)), _COORDINATE_ROWS), *variable.data.shape[1:])
        fill = "" if variable.dtype == "str" else 0
        array = make_array(group, variable, variable.data.shape, chunk, codecs, fill)
        array[...] = variable.data
    group.attrs.update(_attributes(series))
    return n_kept


def _complete(series: Series, sizes: Sequence[int]) -> Iterator[Variable]:
    """Yield the variables beside levels and effort, with their data."""
    bands, units = series.bands, series.units
    first = np.array([unit.first_minute for unit in units], np.float64)
    begin = (first[:, np.newaxis] + np.arange(series.unit_minutes)).ravel() * MINUTE_S
    edges = np.stack([bands.lower, bands.upper], axis=1)
    names = np.array(series.signals, dtype=object)
    yield Variable("time", ("time",), "<f8", TIME, begin)
    yield Variable("time_bnds", ("time", "bnds"), "<f8", {}, np.stack([begin, begin + 60.0], 1))
    yield Variable("frequency", ("frequency",), "<f8", FREQUENCY, bands.centre)
    yield Variable("frequency_bnds", ("frequency", "bnds"), "<f8", {}, edges)
    channel = {"long_name": "name of the channel"}
    yield Variable("channel_name", ("channel",), "str", channel, names)
    of_units = {
        "unit_name": [unit.name for unit in units],
        "unit_state": [unit.state for unit in units],
        "unit_content": [unit.content for unit in units],
    }
    for name, texts in of_units.items():
        about = {"long_name": _UNIT[name]}
        yield Variable(name, ("unit",), "str", about, np.array(texts, dtype=object))
    about = {"long_name": "size of a unit's chunks", "units": "byte"}
    yield Variable("unit_bytes", ("unit",), "<i8", about, np.array(sizes, np.int64))


def _group_path(series: Series) -> str:
    return f"{series.deployment}/{series.label}" if series.label else series.deployment


def _chunks(place: int, n_signals: int) -> list[str]:
    """Return the names of the chunks of a unit: effort, and levels of each channel."""
    return [f"effort/c/{place}", *(f"psd/c/{place}/{signal}/0" for signal in range(n_signals))]


def _size(folder: Path, place: int, n_signals: int) -> int:
    return sum(_regular_size(folder / name) for name in _chunks(place, n_signals))


def _regular_size(path: Path) -> int:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "must be a regular file", str(path))
    return found.st_size


# ---- attributes


def _content(job: Job, series: Sequence[Series]) -> str:
    """Return the digest of all that a store holds."""
    parts = [
        [_group_path(one), one.parameters, one.description.cal_id, one.description.attributes,
         one.signals, [[unit.name, unit.state, unit.content] for unit in one.units]]
        for one in series
    ]  # fmt: skip
    return digest([VERSION, job.name, SOFTWARE, parts])


def _root_attributes(job: Job, content: str) -> dict[str, Any]:
    return {
        "Conventions": CONVENTIONS,
        "title": f"Hybrid-millidecade spectra of {job.name}",
        "software": SOFTWARE,
        _JOB: job.name,
        _CONTENT: content,
    }


def _attributes(series: Series) -> dict[str, Any]:
    about = series.description
    texts = {
        "title": f"Hybrid-millidecade spectra of {series.deployment}",
        "references": "https://doi.org/10.1121/10.0003324",
    }
    first, last = series.units[0], series.units[-1]
    end = last.first_minute + series.unit_minutes
    return global_attributes(about, texts | about.attributes) | {
        "time_coverage_start": iso_time(first.first_minute * MINUTE_NS),
        "time_coverage_end": iso_time(end * MINUTE_NS),
        "time_coverage_resolution": "PT60S",
        "spectrod_parameters": series.parameters,
        "units_not_computed": sum(not unit.files for unit in series.units),
    }


def _level_attributes(series: Series) -> dict[str, Any]:
    about = level_attributes(series.description)
    return about | {"coordinates": "channel_name"}


# ---- the store before


class _OldStore:
    """A store that is there, and could be a stranger's."""

    def __init__(self, path: Path, content: str) -> None:
        self._path = path
        self._stack = ExitStack()
        self.content = content
        self._units: dict[str, dict[str, tuple[int, str, int]]] = {}

    @classmethod
    def of(cls, path: Path, job: Job) -> "_OldStore | None":
        """Return the store at a path; None if there is none.

        Raises
        ------
        StorageError
            If something else is there, or the store of another job.
        """
        if not path.is_symlink() and not path.exists():
            return None
        is_link = path.is_symlink()
        root = None if is_link else _json(path / METADATA, _Root, METADATA_BYTES_MAX)
        if root is None:
            raise StorageError(f"{path}: is no store of spectrod batch, or is damaged; remove it")
        about = root.attributes
        if about.spectrod_job != job.name:
            raise StorageError(
                f"{path}: is of the job {about.spectrod_job!r}, not of {job.name!r}; choose "
                "another output"
            )
        return cls(path, about.spectrod_content)

    def close(self) -> None:
        """Close what has been opened. Idempotent."""
        self._stack.close()

    def effort_s(self, series: Series, place: int) -> NDArray[Any]:
        """Return the effort of a unit's minutes [s]; raises OSError or ValueError."""
        return self._arrays.chunk(f"{_group_path(series)}/effort", (place,))

    def level(self, series: Series, place: int, signal: int) -> NDArray[Any]:
        """Return a signal's levels of a unit [dB]; raises OSError or ValueError."""
        return self._arrays.chunk(f"{_group_path(series)}/psd", (place, signal, 0))[:, 0]

    @cached_property
    def _arrays(self) -> ZarrArrays:
        return self._stack.enter_context(closing(ZarrArrays(self._path)))

    def is_alike(self, series: Series, folder: Path) -> bool:
        """Return whether chunks of this store fit into the new arrays of a series."""
        for name in ("psd", "effort"):
            places = self._path / _group_path(series) / name, folder / name
            old, new = (_json(one / METADATA, _Encoding, _ARRAY_BYTES_MAX) for one in places)
            if old is None or new is None or old.shape[1:] != new.shape[1:]:
                return False
            if msgspec.structs.replace(old, shape=new.shape) != new:
                return False
        return True

    def has(self, series: Series, place: int, unit: SeriesUnit) -> bool:
        """Return whether a unit is whole in it, at this place; true of one without files."""
        if not unit.files:
            return True
        found = self._listed(series).get(unit.name)
        return found is not None and found[0] == place and bool(self.files_of(series, unit))

    def files_of(self, series: Series, unit: SeriesUnit) -> list[Path]:
        """Return the chunks of a unit, if they are made of its files and whole; else none."""
        found = self._listed(series).get(unit.name)
        if not unit.files or found is None or found[1] != unit.content:
            return []
        place, _, size = found
        folder, n_signals = self._path / _group_path(series), len(series.signals)
        try:
            is_whole = _size(folder, place, n_signals) == size
        except OSError:
            return []
        return [folder / name for name in _chunks(place, n_signals)] if is_whole else []

    def _listed(self, series: Series) -> dict[str, tuple[int, str, int]]:
        """Return place, content and size of each unit of a group; none if it is damaged."""
        path = _group_path(series)
        if path not in self._units:
            try:
                names = self._arrays.texts(f"{path}/unit_name", UNITS_MAX)
                contents = self._arrays.texts(f"{path}/unit_content", UNITS_MAX)
                sizes = self._sizes(f"{path}/unit_bytes", len(names))
                rows = zip(names, contents, sizes, strict=True)
                self._units[path] = {
                    name: (place, content, size) for place, (name, content, size) in enumerate(rows)
                }
            except (OSError, ValueError):
                self._units[path] = {}
        return self._units[path]

    def _sizes(self, name: str, n: int) -> list[int]:
        form = self._arrays.form(name)
        if (form.shape, form.dtype) != ((n,), np.dtype("<i8")):
            raise ValueError(f"{name} of shape {form.shape}, {form.dtype}")
        sizes: list[int] = self._arrays.read(name, 0, n).tolist()
        return sizes


def _json(path: Path, kind: type[_T], bytes_max: int) -> _T | None:
    """Read an object of JSON; None if there is none of this kind."""
    try:
        return decode_json(read_regular(path, bytes_max), kind)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise storage_error(path, error) from error
