"""Files of measurements that the daemon records: complete up to their last row at any time."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from spectrod.formats.directory import Directory
from spectrod.formats.export.export_options import can_name
from spectrod.formats.export.layout import plain
from spectrod.formats.export.netcdf import need_netcdf
from spectrod.formats.origin import VALUES_ORIGIN
from spectrod.formats.part import PartFile
from spectrod.formats.segment.appending import AppendFile, lock
from spectrod.formats.values.convert import convert
from spectrod.formats.values.measurement_chunk import MeasurementChunk
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.row_log import DESCRIPTION, encode_description
from spectrod.formats.values.value_csv import header_text, row_text
from spectrod.lib.errors import InputError, StorageError, storage_error, storage_errors
from spectrod.lib.output_formats import PART_SUFFIX

HDF5: Final = b"\x89HDF\r\n\x1a\n"
"""First bytes of an HDF5 file, and so of NetCDF."""
_BLOCK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RecordedBy:
    """What writes a file.

    Attributes
    ----------
    recording, source : str
        Names of the recording and of the source.
    attributes : dict of str
        The operator's attributes. They replace those of the description; those whose name is not
        valid in all formats are left out.
    """

    recording: str
    source: str
    attributes: dict[str, str]


class ValueFileWriter:
    """Appends rows to ``PATH.part``, which ``finish`` renames to PATH.

    The unfinished file is a CSV file. ``finish`` turns that of a ``.nc`` into NetCDF.

    Rows of a completed ``write`` are in the system's page cache: killing the process loses none.

    Parameters
    ----------
    part : PartFile
        Names of the file; closed with the writer, also if the constructor fails.
    about : MeasurementDescription
        Description of the rows.
    by : RecordedBy
        What writes the file.

    Raises
    ------
    BusyError
        If another program is writing to a file of this name.
    ConfigError
        If the rows have values of bins.
    StorageError
        If the file cannot be created, or an unfinished one of this name exists.
    UnavailableError
        If the format needs a package that is not installed.
    """

    cut_length = 0

    def __init__(self, part: PartFile, about: MeasurementDescription, by: RecordedBy) -> None:
        self._part, self._given, self._n_rows = part, about, 0
        texts = {name: plain(text) for name, text in by.attributes.items() if can_name(name)}
        self._about = replace(about, extra={**about.extra, **texts})
        origin = {"recording": by.recording, "source": by.source, "file_name": part.path.name}
        try:
            header = f"{VALUES_ORIGIN}{json.dumps(origin)}\n"
            if _is_netcdf(part.path):
                need_netcdf()
                header += f"{DESCRIPTION}{encode_description(self._about)}\n"
            header += header_text(part.path, self._about)
            self._file = AppendFile(part)
            self._start(header.encode())
        except BaseException:
            part.close()
            raise

    def _start(self, header: bytes) -> None:
        try:
            self._file.append(header)
            self._file.synchronise()
            self._part.synchronise()
        except OSError as error:
            self._file.remove()
            raise storage_error(self.path, error) from error

    @property
    def path(self) -> Path:
        """The final path; after ``finish`` the one that the file actually has."""
        return self._part.path

    @property
    def size_bytes(self) -> int:
        """Length of the file."""
        return self._file.size

    @property
    def is_gone(self) -> bool:
        """Whether the file was removed, so that a new one is needed."""
        return self._file.is_open and self._file.is_gone

    def fits(self, chunk: MeasurementChunk) -> bool:
        """Return whether a row is of the file's product."""
        return chunk.about is self._given

    def write(self, chunk: MeasurementChunk) -> None:
        """Append a row; raises StorageError, and the file has nothing of the row then."""
        with storage_errors(self.path):
            self._file.append(row_text(self._about, chunk.row).encode())
        self._n_rows += 1

    def flush(self) -> None:
        """Synchronise all rows, so that they survive a power failure; raises StorageError."""
        with storage_errors(self.path):
            self._file.synchronise()

    def finish(self) -> None:
        """Close the file and give it its final name; after a StorageError the rows stay."""
        try:
            self._file.synchronise()
            if _is_netcdf(self.path):
                part = self._part
                part.replace_with(convert(part.directory, part.part.name, self.path))
            self._part.publish()
        except OSError as error:
            raise storage_error(self.path, error) from error
        finally:
            self._close()

    def abort(self) -> None:
        """Close the file as ``PATH.part``, or remove it if it has no rows. Idempotent."""
        if not self._file.is_open:
            return
        if not self._n_rows:
            self._file.remove()
        self._close()

    def _close(self) -> None:
        self._file.close()
        self._part.close()


@dataclass(frozen=True, slots=True)
class RecoveredValues:
    """Result of a recovery.

    Attributes
    ----------
    n_rows : int or None
        Rows in the file; None if all are there.
    cut_bytes : int
        Bytes cut off its end: an incomplete row, or what a power failure has not let be written.
    """

    n_rows: int | None
    cut_bytes: int

    @property
    def summary(self) -> str:
        """Summary of the kept and cut parts, for messages."""
        rows = "all" if self.n_rows is None else self.n_rows
        return f"{rows} rows kept, {self.cut_bytes} bytes cut"


def recover(part: Path, directory: Directory | None = None) -> RecoveredValues:
    """Cut an unfinished file after its last whole row, and give it its final name.

    Parameters
    ----------
    part : Path
        ``NAME.csv.part`` or ``NAME.nc.part``, which must not be a link or being written.
    directory : Directory, optional
        Directory in which the last part of the path is looked up; by default opened from the path.

    Returns
    -------
    recovered : RecoveredValues

    Raises
    ------
    InputError
        If it has no whole row, and stays unchanged; if a row of a ``.nc`` cannot be read.
    StorageError
        If it cannot be read or changed, or a file of its final name exists.
    """
    with (
        storage_errors(part),
        directory.duplicate() if directory else Directory.open(part.parent) as folder,
    ):
        return _recover_in(folder, part)


def _recover_in(folder: Directory, part: Path) -> RecoveredValues:
    name = part.name.removesuffix(PART_SUFFIX)
    if folder.find(name) is not None:
        raise StorageError(f"{part}: {name} exists and is not replaced")
    descriptor = folder.open_file(part.name, os.O_RDWR)
    try:
        if not lock(descriptor):
            raise StorageError(f"{part}: another program is writing it")
        size = os.fstat(descriptor).st_size
        is_netcdf = _is_netcdf(Path(name))
        if is_netcdf and os.pread(descriptor, len(HDF5), 0) == HDF5:  # converted, but for its name
            end, n_rows = size, None
        else:
            end, n_rows = _cut(descriptor, size, part)
            if is_netcdf:
                folder.rename(convert(folder, part.name, part), part.name)
    finally:
        os.close(descriptor)
    folder.rename_noreplace(part.name, name)
    folder.synchronise()
    return RecoveredValues(n_rows, size - end)


def _cut(descriptor: int, size: int, part: Path) -> tuple[int, int]:
    """Cut a file after its last whole row; return its length, and the number of rows."""
    end, n_rows = _whole_rows(descriptor, size)
    if n_rows < 1:
        raise InputError(f"{part}: has no whole row")
    os.ftruncate(descriptor, end)
    os.fdatasync(descriptor)
    return end, n_rows


def _whole_rows(descriptor: int, size: int, *, block_bytes: int = _BLOCK_BYTES) -> tuple[int, int]:
    """Return the end of the last whole line, and the number of rows.

    Blocks that a power failure has left unwritten hold zeros; rows behind them do not count.
    """
    end = n_lines = n_comments = 0
    begins_line = True
    for offset in range(0, size, block_bytes):
        block = os.pread(descriptor, block_bytes, offset)
        intact = block.partition(b"\0")[0]
        n_comments += intact.count(b"\n#") + (begins_line and intact.startswith(b"#"))
        n_lines += intact.count(b"\n")
        begins_line = intact.endswith(b"\n")
        if (last := intact.rfind(b"\n")) >= 0:
            end = offset + last + 1
        if len(intact) < len(block):
            break
    n_comments -= os.pread(descriptor, 1, end) == b"#"  # a torn one
    return end, n_lines - n_comments - 1  # and the names of the columns


def _is_netcdf(path: Path) -> bool:
    return path.suffix == ".nc"
