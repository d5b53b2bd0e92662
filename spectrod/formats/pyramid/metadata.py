"""Metadata of a pyramid: levels, values and their meaning, as ``pyramid.json``."""

import os
from typing import Any, Literal

import msgspec
import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array, Int64Array
from spectrod.formats.description import Description, spec_fields, stored_spec, stored_spec_of
from spectrod.formats.directory import Directory
from spectrod.formats.pyramid.cell import FLOOR_DB, STEP_DB
from spectrod.formats.pyramid.ladder import CELLS_NS, levels
from spectrod.lib.errors import ConfigError, StorageError, storage_error, storage_errors
from spectrod.lib.json_text import decode_json

NAME = "pyramid.json"
BATCH = "batch"
"""Setting that names the job of ``spectrod batch`` that has made a pyramid, and may again."""
CELL_VALUES_MAX = 1 << 15
"""Largest number of signals times values of a pyramid that is shown: its cells have 200 kB."""
_VERSION = 1
_BYTES_MAX = 1 << 24


class DamagedError(StorageError):
    """A file of a pyramid has content that no version writes."""


class PyramidMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a whole pyramid.

    A value is that of a band, or of ``group`` neighbouring bins, the last of the remaining ones:
    the least of their minima, the mean of their means, the greatest of their maxima.
    """

    schema: Literal["spectrod.pyramid"] = "spectrod.pyramid"
    v: int = _VERSION
    source: str
    recording: str | None = None
    """Name of the daemon's recording that writes it; empty for other writers; None in files of
    earlier versions, which did not store it."""
    signals: tuple[str, ...]
    software: str
    cal_id: str
    cells_ns: tuple[int, ...]
    """Lengths of the levels' cells, finest first [ns]."""
    group: int
    """Number of neighbouring bins or bands per value."""
    n_values: int
    level_unit: str
    """Unit of the levels."""
    step_db: float = STEP_DB
    floor_db: float = FLOOR_DB
    spec: dict[str, Any]
    """Spec of the rows."""
    settings: dict[str, Any] = msgspec.field(default_factory=dict)
    attributes: dict[str, str] = msgspec.field(default_factory=dict)

    def spectrum_spec(self) -> SpectrumSpec:
        """Return the spec of the rows."""
        return stored_spec(self.spec)

    def group_starts(self) -> Int64Array:
        """Return the first bin or band of each value, shape (n_values,)."""
        return np.arange(self.n_values, dtype=np.int64) * self.group

    def frequencies(self) -> Float64Array:
        """Return the mean frequency of each value's bins or bands, shape (n_values,) [Hz]."""
        all_ = self.spectrum_spec().frequencies
        sums = np.add.reduceat(all_, self.group_starts())
        return np.asarray(sums / np.diff([*self.group_starts(), len(all_)]), np.float64)


def row_ns(spec: SpectrumSpec) -> int:
    """Return the time from one row to the next [ns]."""
    return round(spec.row_s * 1e9)


def metadata_of(description: Description, finest_s: float, values_max: int) -> PyramidMetadata:
    """Choose levels and values.

    Raises
    ------
    ConfigError
        If the rows have no power, or a number is not valid.
    """
    spec = description.spec
    if spec.output == "complex":
        raise ConfigError("output='complex': a pyramid is made of power")
    if values_max < 0:
        raise ConfigError(f"values_max={values_max}: must be at least 1, or 0 for all")
    group = -(-spec.n_values // values_max) if values_max else 1
    return PyramidMetadata(
        source=description.source,
        recording=description.recording,
        signals=description.signals,
        software=description.software,
        cal_id=description.cal_id,
        cells_ns=levels(finest_s, row_ns(spec) / 1e9),
        group=group,
        n_values=-(-spec.n_values // group),
        level_unit=spec.scale.unit if spec.scaling == "dbfs" else f"dB re {spec.scale.unit}",
        spec=spec_fields(spec),
        settings=description.settings,
        attributes=description.attributes,
    )


def load(folder: Directory) -> PyramidMetadata | None:
    """Read the metadata of the pyramid in a folder; None if there is none.

    Raises
    ------
    DamagedError
        If its content is no metadata, or larger than 16 MiB.
    StorageError
        If it cannot be read, or is of another version.
    """
    path = folder.path / NAME
    try:
        with os.fdopen(folder.open_file(NAME), "rb") as file:
            content = file.read(_BYTES_MAX + 1)
        if len(content) > _BYTES_MAX:
            raise DamagedError(f"{path}: must have at most {_BYTES_MAX} bytes")
        about = decode_json(content, PyramidMetadata)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(path, error) from error
    except ValueError as error:
        raise DamagedError(f"{path}: damaged: {error}") from error
    if about.v != _VERSION:
        raise StorageError(f"{path}: version {about.v}: must be {_VERSION}")
    try:
        _check(about)
    except StorageError as error:
        raise DamagedError(f"{path}: damaged: {error}") from error
    return about


def _check(about: PyramidMetadata) -> None:
    """Raise StorageError for inconsistent numbers."""
    spec = stored_spec_of(about.spec, about.signals)
    if about.group < 1 or about.n_values != -(-spec.n_values // about.group):
        rule = f"must be all {spec.n_values} of the spec, in groups"
        raise StorageError(f"n_values={about.n_values}, group={about.group}: {rule}")
    if about.cells_ns not in (CELLS_NS[n:] for n in range(len(CELLS_NS))):
        raise StorageError(f"cells_ns={list(about.cells_ns)}: must be levels to that of a day")


def save(folder: Directory, about: PyramidMetadata) -> None:
    """Write the metadata into a folder that has none; raises StorageError."""
    content = msgspec.json.format(msgspec.json.encode(about), indent=1) + b"\n"
    with storage_errors(folder.path / NAME):
        folder.write_new(NAME, content)


def is_same(one: PyramidMetadata, other: PyramidMetadata) -> bool:
    """Return whether cells of both can be in one pyramid, written by any version."""
    if None not in (one.recording, other.recording) and one.recording != other.recording:
        return False
    differing: dict[str, Any] = {
        "software": "",
        "settings": {},
        "attributes": {},
        "recording": None,
    }
    return msgspec.structs.replace(one, **differing) == msgspec.structs.replace(other, **differing)
