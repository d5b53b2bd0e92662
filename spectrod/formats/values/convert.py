"""NetCDF files of the values that the daemon has recorded as lines."""

import contextlib
import os
from pathlib import Path

from spectrod.formats.directory import Directory
from spectrod.formats.values.row_log import RowLog
from spectrod.formats.values.value_netcdf import ValueNetcdfWriter

_NEW_SUFFIX = ".new"


def convert(directory: Directory, log_name: str, path: Path) -> str:
    """Make the NetCDF file of a file of lines, beside it.

    The first line, which gives the origin, stands behind the content of the new file, where readers
    of HDF5 ignore it.

    Parameters
    ----------
    directory : Directory
        Directory of both files.
    log_name : str
        Name of the file of lines.
    path : Path
        Path of the file that is made of it, for messages.

    Returns
    -------
    name : str
        Name of the new file, which is complete and survives a power failure.

    Raises
    ------
    InputError
        If a line cannot be read.
    OSError, StorageError
        If a file cannot be read or written.
    UnavailableError
        If the packages for NetCDF are not installed.
    """
    name = log_name + _NEW_SUFFIX
    # What a kill has left of an earlier attempt.
    with contextlib.suppress(FileNotFoundError):
        directory.remove(name)
    try:
        with os.fdopen(directory.open_file(log_name), "rb") as file:
            origin = file.readline()
            file.seek(0)
            _write(RowLog(file), path, Path(f"/proc/self/fd/{directory.fileno()}/{name}"))
        _append(directory, name, b"\n" + origin)
    except BaseException:
        with contextlib.suppress(OSError):
            directory.remove(name)
        raise
    return name


def _write(log: RowLog, path: Path, new: Path) -> None:
    writer = ValueNetcdfWriter(path, log.about, new)
    try:
        for row in log.rows():
            writer.write(row)
        writer.finish()
    finally:
        writer.abort()  # no effect after finish


def _append(directory: Directory, name: str, line: bytes) -> None:
    descriptor = directory.open_file(name, os.O_RDWR)
    try:
        os.lseek(descriptor, 0, os.SEEK_END)
        os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
