"""Files of arrays that libraries in C decode: HDF5's bytes, metadata and chunks of Zarr stores.

They are read as the program reads them: by a process of their own, whose crashes and loops must end
in a line of the program.
"""

import hashlib
import io
import random
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import google_crc32c
import h5py
from fuzzing import LARGE_BYTES, MEMORY_MAX_BYTES, Scratch, Target, nested
from mutation import havoc, mutate_hdf5, mutate_json

from spectrod.apps.batch.daily_file import EFFORTS, LEVELS, DailyFile
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.merged import write_merged
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.results import OutputFile
from spectrod.apps.batch.run import status_of
from spectrod.apps.batch.series import Series, series_of
from spectrod.apps.batch.store import _OldStore
from spectrod.apps.batch.unit import compute_unit
from spectrod.formats.export.export_options import ExportOptions
from spectrod.lib.errors import InputError, StorageError
from spectrod.recording.inputs import open_recording
from spectrod.recording.output_plan import make_data

sys.path.insert(0, str(Path(__file__).parents[2] / "archives"))
sys.path.insert(0, str(Path(__file__).parents[2] / "segments"))
from segment_rows import describe, make_batch, make_spec
from small_archives import FS, sound, write

_SCRATCH = Scratch()
_END_OF_NAME = b"\n"


def _read(path: Path) -> None:
    try:
        reader = open_recording(path)
    except (InputError, StorageError):
        return
    try:
        spec = reader.description.spec
        for batch in reader.batches():
            assert batch.values.shape[1:] == (spec.n_signals, spec.n_values)
    except StorageError:
        return
    finally:
        reader.close()


def check_netcdf(data: bytes) -> None:
    """Read a NetCDF file."""
    _read(_SCRATCH.put("input.nc", data))


def check_daily_file(data: bytes) -> None:
    """Read all of a daily file, of which a record says the same."""
    path = _SCRATCH.put("north_20260501.nc", data)
    sha256 = hashlib.sha256(data).hexdigest()
    output = OutputFile(product="millidecade", path="north/a.nc", size=len(data), sha256=sha256)
    n_bands = len(_archive()[1].bands)
    try:
        file = DailyFile(path, output, n_bands)
    except StorageError:
        return
    try:
        assert file.read(LEVELS).shape == (1440, n_bands)
        assert file.read(EFFORTS).shape == (1440,)
        assert isinstance(file.unit(), str)
    except StorageError:
        return
    finally:
        file.close()


def check_zarr(data: bytes) -> None:
    """Read a store of which one file, metadata or a chunk, has other bytes."""
    with _Changed(_recording(), data) as folder:
        _read(folder)


def check_archive_store(data: bytes) -> None:
    """Ask the store of an archive, of which one file has other bytes, what it has."""
    folder, series = _archive()
    store = folder / "results" / "archive.zarr"
    with _Changed(store, data):
        try:
            old = _OldStore.of(store, series.job)
        except StorageError:
            return
        assert old is not None
        try:
            for place, unit in enumerate(series.units):
                old.has(series, place, unit)
                old.is_alike(series, store / series.deployment)
                assert old.effort_s(series, place).shape
                assert old.level(series, place, 0).ndim == 2
        except (OSError, ValueError, StorageError):
            return
        finally:
            old.close()


class _Changed:
    """A folder in which a file has other bytes for a while: ``NAME`` and a line feed are first."""

    def __init__(self, folder: Path, data: bytes) -> None:
        self._folder = folder
        name, _, self._content = data.partition(_END_OF_NAME)
        names = _names(folder)
        self._path = folder / names[name if name in names else min(names)]
        self._before = self._path.read_bytes()

    def __enter__(self) -> Path:
        self._path.write_bytes(self._content)
        return self._folder

    def __exit__(self, *_: object) -> None:
        self._path.write_bytes(self._before)


@cache
def _names(folder: Path) -> dict[bytes, Path]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)).encode(): path.relative_to(folder) for path in paths}


def _export(path: Path) -> None:
    spec = make_spec()
    writer = make_data(path, describe(spec), ExportOptions())
    writer.write(make_batch(spec, 0, 3))
    writer.write(make_batch(spec, 10, 2, gap_samples=70, discontinuity=True, engine="opencl:x"))
    writer.finish()


@cache
def _recording() -> Path:
    path = _SCRATCH.folder / "input.zarr"
    _export(path)
    return path


@cache
def _archive() -> tuple[Path, Series]:
    """Compute and merge an archive of a day; return its folder, and its series."""
    folder = _SCRATCH.folder / "archive"
    write(folder / "card", sound(70 * FS), 60)
    job_path = folder / "job.toml"
    job_path.write_text(
        f'[job]\nname = "test"\noutput = "{folder}/results"\nengine = "numpy"\n'
        f'merged = ["zarr"]\n[deployments.north]\ninputs = ["{folder}/card"]\n'
    )
    job = read_job(job_path)
    units = plan_job(job).units
    for unit in units:
        compute_unit(job, unit)
    statuses = [status_of(job, unit) for unit in units]
    assert list(write_merged(job, statuses))
    (series,) = series_of(job, statuses)
    return folder, series


# ---- inputs


def _plain(data: bytes) -> bytes:
    """Store the arrays of a file in structures without checksums, which the oldest format has."""
    out = io.BytesIO()
    with h5py.File(io.BytesIO(data), "r") as old, h5py.File(out, "w", libver="earliest") as new:
        new.attrs.update(old.attrs)
        for name, one in old.items():
            if isinstance(one, h5py.Dataset) and one.dtype.kind in "iuf" and one.size:
                chunks = one.chunks and tuple(map(min, one.chunks, one.shape))
                how = {"compression": "gzip", "shuffle": True} if chunks else {}
                new.create_dataset(name, data=one[...], chunks=chunks, **how)
    return out.getvalue()


def netcdf_seeds() -> list[bytes]:
    """Make a recording, and one with structures without checksums."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.nc"
        _export(path)
        data = path.read_bytes()
    return [data, _plain(data)]


def daily_file_seeds() -> list[bytes]:
    """Take the daily file of an archive, and one with structures without checksums."""
    (path,) = (_archive()[0] / "results" / "north").glob("*.nc")
    data = path.read_bytes()
    return [data, _plain(data)]


def _seeds_of(folder: Path, *arrays: str) -> list[bytes]:
    """Take the metadata of the root, and of some arrays with a chunk of each."""
    chosen = {folder / "zarr.json"}
    for name in arrays:
        chosen.add(folder / name / "zarr.json")
        chosen.add(
            next(path for path in sorted((folder / name / "c").rglob("*")) if path.is_file())
        )
    return [
        name + _END_OF_NAME + (folder / path).read_bytes()
        for name, path in _names(folder).items()
        if folder / path in chosen
    ]


def zarr_seeds() -> list[bytes]:
    """Take files of a recording: of values, and of numbers of two types."""
    return _seeds_of(_recording(), "psd", "sample_index", "engine_index")


def archive_store_seeds() -> list[bytes]:
    """Take files of an archive's store: of levels, texts and numbers."""
    store = _archive()[0] / "results" / "archive.zarr"
    return _seeds_of(store, "north/psd", "north/unit_name", "north/unit_bytes")


def mutate_stored(data: bytes, rng: random.Random) -> bytes:
    """Change metadata by their members, and chunks by their bytes, with a right checksum."""
    name, end, content = data.partition(_END_OF_NAME)
    if name.endswith(b".json"):
        return name + end + mutate_json(content, rng)
    return repair_stored(name + end + havoc(content, rng))


def repair_stored(data: bytes) -> bytes:
    """Put the checksum of a chunk right."""
    name, end, content = data.partition(_END_OF_NAME)
    if name.endswith(b".json"):
        return data
    packed = content[:-4]
    return name + end + packed + struct.pack("<I", google_crc32c.value(packed))


def _bombs() -> Iterator[bytes]:
    """Replace a chunk of each array by one that unpacks to more than memory may hold."""
    packed = zlib.compress(bytes(2 * MEMORY_MAX_BYTES))
    for name in ("psd", "sample_index"):
        out = io.BytesIO(netcdf_seeds()[1])
        with h5py.File(out, "r+") as file:
            array = file[name]
            array.id.write_direct_chunk((0,) * array.ndim, packed)
        yield out.getvalue()[: 2 * LARGE_BYTES]


def _nested_metadata() -> Iterator[bytes]:
    for name in (b"zarr.json", b"psd/zarr.json"):
        for deep in nested():
            yield name + _END_OF_NAME + deep
            yield name + _END_OF_NAME + b'{"attributes":' + deep


TARGETS = {
    "netcdf": Target(check_netcdf, netcdf_seeds, mutate_hdf5, max_bytes=131072, large=_bombs),
    "daily_file": Target(check_daily_file, daily_file_seeds, mutate_hdf5, max_bytes=131072),
    "zarr": Target(
        check_zarr,
        zarr_seeds,
        mutate_stored,
        repair_stored,
        max_bytes=65536,
        large=_nested_metadata,
    ),
    "archive_store": Target(
        check_archive_store, archive_store_seeds, mutate_stored, repair_stored, max_bytes=65536
    ),
}
