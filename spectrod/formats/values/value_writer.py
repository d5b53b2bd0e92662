"""Base class of writers of measurements, and the choice of one by suffix."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal, get_args

from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.whole_files import WholeFileWriter, check_writable, whole_file
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.output_formats import VALUE_FORMATS, load
from spectrod.lib.suggestions import did_you_mean
from spectrod.measure.measurement import Measurement

_FORMATS = {one.suffix: one for one in VALUE_FORMATS}
CsvForm = Literal["exact", "spreadsheet", "spreadsheet-comma"]
"""Of CSV files: values that read back to the bit, or cells that spreadsheets take for dates and
numbers, with points or with commas in the numbers."""
CSV_FORMS: tuple[CsvForm, ...] = get_args(CsvForm)
_SPREADSHEETS = {
    "spreadsheet": "spectrod.formats.values.spreadsheet_csv:SpreadsheetWriter",
    "spreadsheet-comma": "spectrod.formats.values.spreadsheet_csv:CommaSpreadsheetWriter",
}
SUFFIXES = tuple(_FORMATS)
"""Suffixes of files of measurements, those of figures included."""
FIGURE_SUFFIXES = tuple(one.suffix for one in VALUE_FORMATS if one.content == "figure")
"""Suffixes of figures of measurements."""


class ValueWriter(WholeFileWriter, ABC):
    """Writes measurements to a file that gets its name when it is complete.

    Parameters
    ----------
    path : Path
        Path of the file, in an existing folder. An existing file is replaced at the end.
    description : MeasurementDescription
        Description of all rows.
    part : Path, optional
        A new file to write to, which the caller gives its name or removes.

    Raises
    ------
    StorageError
        If no file can be made at this path.
    UnavailableError
        If the format needs a package that is not installed.
    """

    def __init__(
        self, path: Path, description: MeasurementDescription, part: Path | None = None
    ) -> None:
        super().__init__(path)
        self.description = description
        self._n_rows = 0
        if part is None:
            check_writable(path)
        with self._aborted_if_it_fails():
            self._open(part or self._stack.enter_context(whole_file(path)))

    def write(self, row: Measurement) -> None:
        """Write a row; raises StorageError, and leaves no file then."""
        self._n_rows += 1
        with self._aborted_if_it_fails():
            self._write(row)

    def write_total(self, row: Measurement) -> None:
        """Take the row of all intervals together, which figures show and tables do not."""

    def finish(self) -> None:
        """Give the complete file its name.

        Raises
        ------
        InputError
            If there were no rows; no file is made then.
        StorageError
            If writing fails; no file is left then.
        """
        if not self._n_rows:
            self.abort()
            raise InputError(f"{self.path}: nothing to write: no samples")
        with self._stack.pop_all():
            self._close()

    @abstractmethod
    def _open(self, part: Path) -> None:
        """Start the file at this path; push its cleanup on ``self._stack``."""

    @abstractmethod
    def _write(self, row: Measurement) -> None:
        """Write a row."""

    @abstractmethod
    def _close(self) -> None:
        """Write what is left."""


def check_suffix(path: Path) -> None:
    """Check that levels can be written to a file of this name; raises ConfigError."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        rule = f"suffix must be one of {', '.join(SUFFIXES)}{did_you_mean(suffix, SUFFIXES)}"
        raise ConfigError(f"{path}: levels: {rule}")


def open_writer(
    path: Path, description: MeasurementDescription, csv_form: CsvForm = "exact"
) -> ValueWriter:
    """Start a file of measurements by its suffix; see ``ValueWriter`` for errors."""
    check_suffix(path)
    suffix = path.suffix.lower()
    entry_point = _FORMATS[suffix].writer
    if suffix == ".csv":
        entry_point = _SPREADSHEETS.get(csv_form, entry_point)
    writer: ValueWriter = load(entry_point)(path, description)
    return writer
