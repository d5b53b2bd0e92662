"""Measurements as partitions: a Parquet file for each date, as DuckDB, Spark and Hive read them."""

from pathlib import Path
from typing import Final

from spectrod.formats.export.attributes import iso_time
from spectrod.formats.values.arrow_rows import check_names
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.value_writer import ValueWriter, open_writer
from spectrod.formats.whole_files import check_writable
from spectrod.lib.errors import ConfigError, InputError, storage_errors
from spectrod.lib.optional_packages import need
from spectrod.measure.measurement import Measurement

SUFFIX: Final = ".parquet"
"""Suffix of partitions."""
_DATE_CHARS = len("2026-05-01")


class ByDateWriter:
    """Writes measurements to ``date=YYYY-MM-DD/NAME``, by the UTC of their first samples.

    Each file appears when its date is over, whole, and replaces one of its name. What fails later
    leaves those of earlier dates.

    Parameters
    ----------
    path : Path
        Name of the files, in the folder that gets one for each date; it must exist.
    description : MeasurementDescription
        Description of all rows.

    Raises
    ------
    ConfigError
        If the name does not end with ``SUFFIX``.
    InputError
        If the date of the samples is unknown, or local days have rows beside shorter intervals.
    StorageError
        If nothing can be written in the folder.
    UnavailableError
        If the format needs a package that is not installed.
    """

    def __init__(self, path: Path, description: MeasurementDescription) -> None:
        if path.suffix.lower() != SUFFIX:
            raise ConfigError(f"--by-date: {path}: must end in {SUFFIX}")
        if not description.has_utc:
            raise InputError(
                f"--by-date: {path}: the date of the samples is unknown: name --start-time"
            )
        if description.has_days:
            rule = "times ascend, so it has no days beside their intervals"
            raise InputError(f"--by-date: {path}: {rule}")
        need("arro3.io", "parquet")
        check_names(description, path)
        check_writable(path)
        self.path, self._description = path, description
        self._writer: ValueWriter | None = None
        self._date = ""

    @property
    def pattern(self) -> Path:
        """The paths of all files, for messages."""
        return self._place("*")

    def write(self, row: Measurement) -> None:
        """Write a row; see ``ValueWriter``. InputError if its date is over."""
        date = iso_time(row.begin_utc_ns or 0)[:_DATE_CHARS]
        if date < self._date:
            raise InputError(f"{self.pattern}: {date} after {self._date}: times must ascend")
        if self._writer is None or date != self._date:
            self._end_date()
            place = self._place(date)
            with storage_errors(place.parent):
                place.parent.mkdir(exist_ok=True)
            self._writer, self._date = open_writer(place, self._description), date
        self._writer.write(row)

    def write_total(self, row: Measurement) -> None:
        """Take the row of all intervals together, which tables do not show."""

    def finish(self) -> None:
        """Complete the last date; see ``ValueWriter``."""
        if not self._date:
            raise InputError(f"{self.pattern}: nothing to write: no samples")
        self._end_date()

    def abort(self) -> None:
        """Leave no file of the date that is not over. Idempotent."""
        if self._writer is not None:
            self._writer.abort()

    def _end_date(self) -> None:
        if self._writer is not None:
            self._writer.finish()

    def _place(self, date: str) -> Path:
        return self.path.parent / f"date={date}" / self.path.name
