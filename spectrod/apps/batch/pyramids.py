"""Pyramids of a whole job, which the page's history reads: minutes, and coarser cells to a day."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from spectrod.apps.batch.job import UNIT_NS, Job, digest
from spectrod.apps.batch.results import HISTORY_FOLDER
from spectrod.apps.batch.series import Series, SeriesUnit, UnitMinutes
from spectrod.apps.batch.staging import link, staged
from spectrod.apps.batch.store import Merged
from spectrod.apps.batch.unit_settings import SOFTWARE
from spectrod.dsp.units import NS_PER_S, Float64Array
from spectrod.formats.directory import Directory
from spectrod.formats.export.minutes import MINUTE_NS, MINUTE_S
from spectrod.formats.pyramid.ladder import CELLS_NS, file_cells, name_of
from spectrod.formats.pyramid.metadata import (
    CELL_VALUES_MAX,
    PyramidMetadata,
    metadata_of,
    save,
)
from spectrod.formats.pyramid.pyramid_store import SUFFIX, CellStore
from spectrod.formats.pyramid.slots import coarser_slots, slots_of_levels
from spectrod.lib.errors import StorageError, storage_error
from spectrod.lib.json_text import decode_json
from spectrod.lib.regular_files import read_regular

RECORDING = "archive"
"""Name of the recording in the folder, as of ``[recordings.NAME]``."""
CONTENT_FILE = "content.json"
CONTENT_BYTES_MAX = 1 << 28
VERSION = 1

_AT_ONCE_BYTES = 1 << 23
_ROWS_AT_ONCE = 60
_DAY_NS = UNIT_NS["day"]
_EPOCH = dt.date(1970, 1, 1)


_UnitName = Annotated[str, Meta(pattern=r"^[0-9]{8}(T[0-9]{2})?\Z")]
_CellFile = Annotated[str, Meta(pattern=r"^(1min|5min|15min|1h|4h|1d)/[0-9]{8}\.cells\Z")]


class _Pyramid(Struct, frozen=True):
    """What a pyramid is made of: its form, content of units by name, sizes of files by path."""

    form: str
    units: dict[_UnitName, str]
    files: dict[_CellFile, int]

    def __post_init__(self) -> None:
        for name in (*self.units, *self.files):
            _day_of(name.rpartition("/")[2])  # refuses names that are no dates


class _Content(Struct, frozen=True, kw_only=True):
    """What is in the folder."""

    job: str
    content: str
    pyramids: dict[str, _Pyramid]
    v: int = VERSION


def write_pyramids(job: Job, series: Sequence[Series]) -> Merged:
    """Write the pyramids of a job, or what has changed in them; within ``merging``.

    The folder appears complete; files of days that are the same are taken from the one before.
    Memory is that of an hour of minutes, and of 8 MiB of cells.

    Parameters
    ----------
    job : Job
    series : sequence of Series
        All of the job.

    Raises
    ------
    StorageError
        If the folder is not one of this job, a daily file is not that of its record, or the folder
        cannot be written; the one before stays then.
    """
    path = Path(job.output) / HISTORY_FOLDER
    before = _content_of(path, job)
    content = _digest(job, series)
    n_missing = sum(not unit.files for one in series for unit in one.units)
    n_units = sum(len(one.units) for one in series)
    if before is not None and before.content == content and _are_whole(path, before):
        return Merged(path, 0, n_units - n_missing, n_missing)
    n_written, made = 0, {}
    with staged(path) as part:
        part.mkdir()
        for one in series:
            name = _folder(one)
            old = before.pyramids.get(name) if before is not None else None
            builder = _Builder(one, part / name)
            n_written += builder.build(old, path / name)
            made[name] = builder.content
        found = _Content(job=job.name, content=content, pyramids=made)
        (part / CONTENT_FILE).write_bytes(msgspec.json.encode(found, order="sorted"))
    return Merged(path, n_written, n_units - n_missing - n_written, n_missing)


def pyramid_problems(job: Job, series: Sequence[Series]) -> Iterator[str]:
    """Yield what is wrong with the pyramids of a job: files and minutes that are torn or others."""
    path = Path(job.output) / HISTORY_FOLDER
    try:
        before = _content_of(path, job)
    except StorageError as error:
        yield str(error)
        return
    for one in series if before is not None else ():
        name = _folder(one)
        old = before.pyramids.get(name) if before is not None else None
        if old is None:
            yield f"{path / name}: is missing; merge again"
            continue
        torn = [f"{path / name / file}: is torn" for file in _damaged(path / name, old.files)]
        yield from (f"{text}; merge again" for text in torn)
        if not torn:
            yield from _Builder(one, path / name).problems()


def _folder(series: Series) -> str:
    """Return the folder of a pyramid, as the daemon's recorder names them."""
    recording = f"{RECORDING}_{series.label}" if series.label else RECORDING
    return f"{recording}/{series.deployment}/pyramid"


def _digest(job: Job, series: Sequence[Series]) -> str:
    parts = [[_folder(one), msgspec.to_builtins(_about(one)), _contents(one)] for one in series]
    return digest([VERSION, job.name, SOFTWARE, parts])


def _contents(series: Series) -> dict[str, str]:
    return {unit.name: unit.content for unit in series.units if unit.files}


def _about(series: Series) -> PyramidMetadata:
    values_max = max(1, CELL_VALUES_MAX // len(series.signals))
    return metadata_of(series.describe_bands(), MINUTE_S, values_max)


def _content_of(path: Path, job: Job) -> _Content | None:
    """Return what is in a folder; None if there is none.

    Raises
    ------
    StorageError
        If something else is there, or the folder of another job.
    """
    if not path.is_symlink() and not path.exists():
        return None
    try:
        content = read_regular(path / CONTENT_FILE, CONTENT_BYTES_MAX)
        found = decode_json(content, _Content)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise StorageError(
            f"{path}: is no folder of spectrod batch, or is damaged; remove it"
        ) from error
    except OSError as error:
        raise storage_error(path / CONTENT_FILE, error) from error
    if path.is_symlink():
        raise StorageError(f"{path}: is a link; remove it")
    if found.job != job.name:
        raise StorageError(
            f"{path}: is of the job {found.job!r}, not of {job.name!r}; choose another output"
        )
    return found if found.v == VERSION else None


def _are_whole(path: Path, content: _Content) -> bool:
    return all(
        not _damaged(path / name, one.files) and (path / name / "pyramid.json").is_file()
        for name, one in content.pyramids.items()
    )


def _damaged(folder: Path, files: dict[str, int]) -> list[str]:
    """Return the files that have not the size that they had."""

    def size(name: str) -> int:
        try:
            return (folder / name).stat().st_size
        except OSError:
            return -1

    return [name for name, wanted in files.items() if size(name) != wanted]


class _Builder:
    """Builds one pyramid in a new folder."""

    def __init__(self, series: Series, folder: Path) -> None:
        self._series, self._folder = series, folder
        self._about = _about(series)
        self._offset_db = _offset_db(series)
        self._starts = self._about.group_starts()
        days = {_day(unit) for unit in series.units if unit.files}
        self._days = np.array(sorted(days), np.int64)
        self.content = _Pyramid("", {}, {})

    def build(self, old: _Pyramid | None, old_folder: Path) -> int:
        """Build it; return the number of units whose minutes were written."""
        self._folder.mkdir(parents=True)
        with Directory.open(self._folder) as folder:
            save(folder, self._about)
        about = msgspec.structs.replace(self._about, software="", attributes={}, settings={})
        form, units = digest(msgspec.to_builtins(about)), _contents(self._series)
        days = set(self._days.tolist())
        if old is not None and old.form == form:
            changed = _changed_days(old, units, _damaged(old_folder, old.files))
            for name in old.files:
                if not changed.intersection(_days_of(name)):
                    link(old_folder / name, self._folder / name)
            days = changed
        written = CellStore(Directory.open(self._folder), self._about, is_writer=True)
        read = CellStore(Directory.open(self._folder), self._about, is_writer=False)
        try:
            n_written = self._write_minutes(written, days)
            for level in range(1, len(self._about.cells_ns)):
                self._write_coarser(written, read, level, days)
        finally:
            written.close()
            read.close()
        files = {
            str(path.relative_to(self._folder)): path.stat().st_size
            for path in sorted(self._folder.rglob(f"*{SUFFIX}"))
        }
        self.content = _Pyramid(form, units, files)
        return n_written

    def problems(self) -> Iterator[str]:
        """Yield the units whose minutes are not those of their daily files."""
        try:
            store = CellStore(Directory.open(self._folder), self._about, is_writer=False)
        except OSError as error:
            yield str(storage_error(self._folder, error))
            return
        with closing(store):
            for unit in self._series.units:
                try:
                    is_same = not unit.files or all(
                        _get(store, first, len(slots)).tobytes() == slots.tobytes()
                        for first, slots in self._minutes(unit, store.dtype)
                    )
                except StorageError as error:
                    yield str(error)
                    continue
                if not is_same:
                    yield f"{self._folder}: {unit.name}: is not what was computed; merge again"

    def _write_minutes(self, store: CellStore, days: set[int]) -> int:
        n_written = 0
        for unit in self._series.units:
            if unit.files and _day(unit) in days:
                n_written += 1
                for first, slots in self._minutes(unit, store.dtype):
                    _put(store, 0, first, slots)
        return n_written

    def _minutes(
        self, unit: SeriesUnit, dtype: np.dtype[Any]
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the first cell, and the cells of minutes that follow, of each hour with sound."""
        with UnitMinutes(self._series, unit) as minutes:
            effort_ns = np.rint(minutes.effort_s().astype(np.float64) * NS_PER_S)
            for first in range(0, self._series.unit_minutes, _ROWS_AT_ONCE):
                rows = effort_ns[first : first + _ROWS_AT_ONCE].astype(np.int64)
                if rows.any():
                    levels = self._levels(minutes, first)
                    slots = slots_of_levels(levels, rows, self._starts, dtype)
                    yield unit.first_minute + first, slots

    def _levels(self, minutes: UnitMinutes, first: int) -> Float64Array:
        """Return levels of power in whole bands, (minutes, signals, bands) [dB]."""
        n_bands, past = len(self._offset_db), first + _ROWS_AT_ONCE
        found = [
            minutes.level(signal, first, past)[:, :n_bands] + self._offset_db
            for signal in range(len(self._series.signals))
        ]
        return np.stack(found, axis=1)

    def _write_coarser(
        self, store: CellStore, read: CellStore, level: int, days: Iterable[int]
    ) -> None:
        """Write the files of a level that have changed days, from all their finer cells."""
        cells_ns = self._about.cells_ns
        ratio, n_file = cells_ns[level] // cells_ns[level - 1], file_cells(cells_ns[level])
        n_at_once = max(1, _AT_ONCE_BYTES // (ratio * store.dtype.itemsize))
        for number in sorted({day * _DAY_NS // (cells_ns[level] * n_file) for day in days}):
            span = self._cells(cells_ns[level], number * n_file, n_file)
            for first in range(span.start, span.stop, n_at_once):
                past = min(first + n_at_once, span.stop)
                slots = _get(read, first * ratio, (past - first) * ratio, level - 1)
                _put(store, level, first, coarser_slots(slots, ratio))

    def _cells(self, cell_ns: int, first: int, n_cells: int) -> range:
        """Return the cells of a file from the first of its days with minutes to the last."""
        limits = [first * cell_ns // _DAY_NS, (first + n_cells) * cell_ns // _DAY_NS]
        begin, end = np.searchsorted(self._days, limits)
        if begin == end:
            return range(0)
        span_ns = int(self._days[begin]) * _DAY_NS, (int(self._days[end - 1]) + 1) * _DAY_NS
        return range(span_ns[0] // cell_ns, span_ns[1] // cell_ns)


def _get(store: CellStore, first: int, n_cells: int, level: int = 0) -> NDArray[Any]:
    """Read cells; zeros where there are none."""
    slots = np.zeros(n_cells, store.dtype)
    for start, found in store.read(level, first, first + n_cells):
        slots[start - first : start - first + len(found)] = found
    return slots


def _put(store: CellStore, level: int, first: int, slots: NDArray[Any]) -> None:
    """Write the cells that are there; between them the file keeps holes."""
    limits = np.flatnonzero(np.diff(slots["mark"] != 0, prepend=False, append=False))
    for begin, end in zip(limits[::2].tolist(), limits[1::2].tolist(), strict=True):
        store.put_encoded(level, first + begin, slots[begin:end].view(np.uint8).data)


def _offset_db(series: Series) -> Float64Array:
    """Return what makes the levels of daily files those of power in whole bands, (bands,) [dB].

    The first band of daily files is half below 0 Hz, and the last may be a part of one.
    """
    spec = series.describe_bands().spec
    bands = spec.band_table
    assert bands is not None
    width = series.bands.width[: len(bands)] / bands.width
    return np.asarray(10.0 * np.log10(width * spec.scale.reference_power), np.float64)


def _day(unit: SeriesUnit) -> int:
    return unit.first_minute * MINUTE_NS // _DAY_NS


def _changed_days(old: _Pyramid, units: dict[str, str], damaged: Iterable[str]) -> set[int]:
    """Return the days of units that differ, and of files that are damaged."""
    names = old.units.keys() | units.keys()
    days = {_day_of(name) for name in names if old.units.get(name) != units.get(name)}
    return days.union(*(_days_of(name) for name in damaged))


def _day_of(name: str) -> int:
    """Return the day that a name begins with [days since 1970]."""
    date = dt.date(int(name[:4]), int(name[4:6]), int(name[6:8]))
    return (date - _EPOCH).days


def _days_of(name: str) -> range:
    """Return the days of a file of a level, as ``5min/20260501.cells``."""
    level, _, file = name.partition("/")
    cell_ns = _CELL_NS[level]
    first = _day_of(file)
    return range(first, first + cell_ns * file_cells(cell_ns) // _DAY_NS)


_CELL_NS = {name_of(cell_ns): cell_ns for cell_ns in CELLS_NS}
