"""Recordings in the formats that other programs read.

A format's module, and what it needs, is imported when a file of it is written or read.
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
"""Of files that are written."""
READABLE_SUFFIXES = tuple(_READERS)
"""Of files that are read back."""


def make_export(path: Path, description: Description, options: ExportOptions) -> RowWriter:
    """Begin a file in the format that its suffix names.

    Raises
    ------
    ConfigError
        If the suffix is none of ``EXPORT_SUFFIXES``, or a rule of the format's is broken.
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
    """Open a file that ``make_export`` made, with all its rows, to read it back.

    Raises
    ------
    ConfigError
        If the suffix is none of ``READABLE_SUFFIXES``.
    StorageError
        If it cannot be read, or is not one of spectrod's.
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
