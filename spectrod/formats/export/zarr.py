"""Zarr stores, version 3: a folder of chunks."""

import contextlib
import os
import secrets
import shutil
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.formats.export.grid import GridWriter
from spectrod.formats.export.layout import Variable
from spectrod.formats.path_links import written_path
from spectrod.formats.whole_files import sync
from spectrod.lib.errors import StorageError, storage_error, storage_errors
from spectrod.lib.optional_packages import need

_ROOT = "zarr.json"


class ZarrWriter(GridWriter):
    """Writes a recording to a Zarr store; see ``ExportWriter`` for parameters and errors."""

    def _check(self) -> None:
        need("zarr", "zarr")
        check_folder(self.path)

    def _whole(self) -> AbstractContextManager[Path]:
        return whole_folder(self.path)

    def _open_store(self, part: Path) -> "ZarrStore":
        return ZarrStore(part, self.options.compression)


class ZarrStore:
    """A Zarr store that is being written; see ``grid.ArrayFile``.

    Each chunk is a file, which is written once, complete.

    Parameters
    ----------
    part : Path
        Folder of the store.
    compression : int
        Level of Blosc with Zstandard, 0 for none.
    """

    def __init__(self, part: Path, compression: int) -> None:
        self._zarr = zarr = need("zarr", "zarr")
        self._codecs = codecs_of(compression)
        self._part = part
        self._group = zarr.open_group(part, mode="w-", zarr_format=3)
        self._arrays: dict[str, Any] = {}
        self._waiting: dict[str, list[NDArray[Any]]] = {}

    def create(self, variable: Variable, chunk: tuple[int, ...], row: tuple[int, ...]) -> None:
        """Add an array: complete, or empty with this shape of rows; stored in chunks."""
        shape = (0, *row) if variable.data is None else variable.data.shape
        fill = lost_value(variable.dtype)
        array = make_array(self._group, variable, shape, chunk, self._codecs, fill)
        if variable.data is not None:
            array[...] = variable.data
        else:
            self._arrays[variable.name] = array
            self._waiting[variable.name] = []

    def append(self, parts: dict[str, NDArray[Any]]) -> None:
        """Append rows to growing arrays; rows that do not fill a chunk wait for more."""
        for name, rows in parts.items():
            if len(rows) == 0:
                continue
            waiting = self._waiting[name]
            waiting.append(rows)
            chunk = self._arrays[name].chunks[0]
            n = sum(map(len, waiting))
            if n >= chunk:
                joined = np.concatenate(waiting)
                self._add(name, joined[: n - n % chunk])
                self._waiting[name] = [joined[n - n % chunk :]]

    def annotate(self, attributes: dict[str, Any]) -> None:
        """Set attributes of the store."""
        self._group.attrs.update(attributes)

    def close(self) -> None:
        """Write the remaining rows; raises OSError if a write failed."""
        for name, waiting in self._waiting.items():
            if waiting:
                self._add(name, np.concatenate(waiting))
        consolidate(self._part)

    def _add(self, name: str, rows: NDArray[Any]) -> None:
        if len(rows) == 0:
            return
        array = self._arrays[name]
        first = array.shape[0]
        array.resize((first + len(rows), *array.shape[1:]))
        array[first:] = rows


def codecs_of(compression: int, shuffle: str = "shuffle") -> list[Any]:
    """Return the codecs of a chunk: Blosc with Zstandard (0 for none), and a checksum."""
    codecs = need("zarr", "zarr").codecs
    found = [codecs.Crc32cCodec()]
    if compression:
        found.insert(0, codecs.BloscCodec(cname="zstd", clevel=compression, shuffle=shuffle))
    return found


def make_array(
    group: Any,
    variable: Variable,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    codecs: list[Any],
    fill_value: complex | str,
) -> Any:
    """Add an empty array of this shape to a group, and return it."""
    return group.create_array(
        variable.name,
        shape=shape,
        chunks=chunk,
        dtype=str if variable.dtype == "str" else variable.dtype,
        fill_value=fill_value,
        config={"write_empty_chunks": True},
        compressors=codecs,
        dimension_names=variable.dims,
        attributes=variable.json_attributes,
    )


def consolidate(part: Path) -> None:
    """Copy all metadata of a store to its root."""
    with warnings.catch_warnings():
        # Ignore that version 3 does not define it yet: xarray warns if it is missing.
        warnings.simplefilter("ignore")
        need("zarr", "zarr").consolidate_metadata(part)


def lost_value(dtype: str) -> complex | int | str:
    """Return a fill value for chunks whose file is lost.

    No row can contain it; of flags it says that nothing was checked.
    """
    if dtype == "str":
        return ""
    kind = np.dtype(dtype)
    return int(np.iinfo(kind).min) if kind.kind in "iu" else np.nan


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Fill a folder under a temporary name beside the final one, then rename it.

    An existing Zarr store of the same name is replaced. It is renamed first and deleted last, so
    that after a power failure there is the old store, the new one, or both under temporary names.
    A link stays, and its target is replaced, see ``written_path``.

    Raises
    ------
    StorageError
        For any OSError, with the final name and the system's reason; for a link of another user.
    """
    target = written_path(path)
    part = target.with_name(f".spectrod-{secrets.token_hex(6)}.part")
    try:
        yield part
        _sync_all(part)
        old = part.with_suffix(".old")
        if target.exists():
            target.rename(old)
        part.rename(target)
        sync(target.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_folder(path: Path) -> None:
    """Raise StorageError if the folder cannot be made, or would replace more than a Zarr store."""
    if path.exists() and not (path / _ROOT).is_file():
        raise StorageError(f"{path}: exists, and is no Zarr store that can be replaced")
    probe = written_path(path).with_name(f".spectrod-{secrets.token_hex(6)}.part")
    with storage_errors(path):
        probe.mkdir()
        probe.rmdir()


def _sync_all(folder: Path) -> None:
    """Synchronise everything in a folder, so that it survives a power failure."""
    for root, _, names in os.walk(folder):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))
