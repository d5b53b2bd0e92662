"""A daily file of a result, which another process reads and this one takes to be a stranger's."""

import hashlib
import os
from pathlib import Path

import numpy as np

from spectrod.apps.batch.results import OutputFile
from spectrod.dsp.units import Float32Array
from spectrod.formats.export.millidecade import MINUTES_PER_DAY
from spectrod.formats.export.netcdf import NetcdfShelf
from spectrod.lib.errors import StorageError, storage_error
from spectrod.lib.regular_files import open_regular

DAILY_BYTES_MAX = 1 << 28
"""Largest daily file that is read [bytes]: 37,000 bands without compression."""
LEVELS, EFFORTS = "psd", "effort"


class DailyFile:
    """The minutes of a day and a signal, as ``MillidecadeWriter`` writes them.

    Parameters
    ----------
    path : Path
        The file.
    output : OutputFile
        What its record says of it.
    n_bands : int
        Bands of its levels.

    Raises
    ------
    StorageError
        If it is not that of its record, or its arrays are not those of a daily file.
    UnavailableError
        If h5py is not installed, or no process can be started.
    """

    def __init__(self, path: Path, output: OutputFile, n_bands: int) -> None:
        self._path = path
        self._shapes = {LEVELS: (MINUTES_PER_DAY, n_bands), EFFORTS: (MINUTES_PER_DAY,)}
        try:
            with open_regular(path) as file:
                n_bytes = os.fstat(file.fileno()).st_size
                if n_bytes > DAILY_BYTES_MAX:
                    raise self._unreadable()
                found = hashlib.file_digest(file, "sha256").hexdigest()
                if (n_bytes, found) != (output.size, output.sha256):
                    raise StorageError(
                        f"{path}: is not what was computed: its content has changed; remove it, "
                        "and run the job again"
                    )
                self._shelf = NetcdfShelf(file.fileno())
        except OSError as error:
            raise storage_error(path, error) from error
        except ValueError as error:
            raise self._unreadable() from error
        try:
            self._check()
        except (TypeError, ValueError) as error:
            self.close()
            raise self._unreadable() from error

    def read(self, name: str, first: int = 0, past: int = MINUTES_PER_DAY) -> Float32Array:
        """Return levels [dB] or efforts [s] of minutes [first, past); raises StorageError."""
        try:
            rows: Float32Array = self._shelf.read(name, first, past)
        except (TypeError, ValueError) as error:
            raise self._unreadable() from error
        return rows

    def unit(self) -> str:
        """Return the unit of the levels, empty if it is not stated; raises StorageError."""
        try:
            return self._shelf.unit_of(LEVELS)
        except ValueError as error:
            raise self._unreadable() from error

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._shelf.close()

    def _check(self) -> None:
        for name, shape in self._shapes.items():
            form = self._shelf.form(name)
            if (form.shape, form.dtype) != (shape, np.dtype("<f4")):
                raise ValueError(f"{name} of shape {form.shape}, {form.dtype}")
            if form.piece_bytes > 4 * MINUTES_PER_DAY * shape[-1]:
                raise ValueError(f"{name}: chunks of {form.piece_bytes} bytes")

    def _unreadable(self) -> StorageError:
        return StorageError(f"{self._path}: cannot be read as a daily file of this job")
