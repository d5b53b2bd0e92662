"""Recordings in the formats of other programs.

The module of a format and its dependencies are imported when a file is written or read.
"""

from importlib import import_module
from pathlib import Path

from spectrod.errors import ConfigError
from spectrod.formats.description import Description, RowReader, RowWriter
from spectrod.formats.export.options import ExportOptions

_WRITERS = {
    ".nc": ("netcdf", "NetcdfWriter"),
    ".h5": ("netcdf", "NetcdfWriter"),
    ".zarr": ("zarr", "ZarrWriter"),
    ".npz": ("npz", "NpzWriter"),
    ".npy": ("npy", "NpyWriter"),
    ".csv": ("csv", "CsvWriter"),
}
_READERS = {
    ".nc": ("netcdf", "open_netcdf"),
    ".h5": ("netcdf", "open_netcdf"),
    ".zarr": ("zarr", "open_zarr"),
    ".npz": ("npz", "open_npz"),
    ".csv": ("csv", "open_csv"),
}
EXPORT_SUFFIXES = tuple(_WRITERS)
"""Suffixes of files that can be written."""
READABLE_SUFFIXES = tuple(_READERS)
"""Suffixes of files that can be read."""


def make_export(path: Path, description: Description, options: ExportOptions) -> RowWriter:
    """Start a file in the format of its suffix.

    Raises
    ------
    ConfigError
        If the suffix is not in ``EXPORT_SUFFIXES``, or a rule of the format is broken.
    StorageError
        If no file can be made at this path.
    UnavailableError
        If the format needs a package that is not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise ConfigError(f"{path}: suffix must be one of {', '.join(EXPORT_SUFFIXES)}")
    if options.profile and suffix != ".nc":
        raise ConfigError(f"{path}: profile={options.profile!r}: must be a .nc file")
    module, name = ("millidecade", "MillidecadeWriter") if options.profile else _WRITERS[suffix]
    writer: RowWriter = _get(module, name)(path, description, options)
    return writer


def open_export(path: Path) -> RowReader:
    """Open a file that ``make_export`` made, to read all its rows.

    Raises
    ------
    ConfigError
        If the suffix is not in ``READABLE_SUFFIXES``.
    StorageError
        If it cannot be read, or was not made by spectrod.
    UnavailableError
        If the format needs a package that is not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise ConfigError(f"{path}: suffix must be one of {', '.join(READABLE_SUFFIXES)}")
    reader: RowReader = _get(*_READERS[suffix])(path)
    return reader


def _get(module: str, name: str) -> type:
    found: type = getattr(import_module(f"{__name__}.{module}"), name)
    return found
