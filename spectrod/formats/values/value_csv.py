"""Measurements as CSV: header lines that begin with #, then one line for each interval."""

import json
from contextlib import closing
from pathlib import Path

from spectrod.dsp.measurement_columns import DURATION, FLAGS_NAME, of_channels
from spectrod.formats.export.attributes import elapsed_time, iso_time
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.measurement_table import (
    begin_ns,
    flag_texts,
    header,
    number_names,
    numbers,
    time_name,
)
from spectrod.formats.values.value_writer import ValueWriter
from spectrod.lib.errors import ConfigError
from spectrod.measure.measurement import Measurement


class ValueCsvWriter(ValueWriter):
    """Writes measurements to a CSV file; see ``ValueWriter`` for parameters and errors.

    Each line goes to the file at once. Values have the digits that read back exactly.
    """

    def _open(self, part: Path) -> None:
        text = header_text(self.path, self.description)
        self._file = self._stack.enter_context(closing(part.open("x", encoding="utf-8")))
        self._file.write(text)

    def _write(self, row: Measurement) -> None:
        self._file.write(row_text(self.description, row))
        self._file.flush()

    def _close(self) -> None:
        self._file.flush()


def header_text(path: Path, about: MeasurementDescription) -> str:
    """Return the lines before the first row.

    Raises
    ------
    ConfigError
        See ``check_values``.
    """
    check_values(path, about)
    lines = [f"# {name}: {json.dumps(value)}" for name, value in header(about).items()]
    return "\n".join((*lines, ",".join(column_names(about)))) + "\n"


def check_values(path: Path, about: MeasurementDescription) -> None:
    """Check that rows have no values of bins; raises ConfigError."""
    if about.spectra:
        rule = "must be .nc, .h5 or .parquet"
        raise ConfigError(f"{path}: {about.spectra[0]} has a value for each bin: {rule}")


def row_text(about: MeasurementDescription, row: Measurement) -> str:
    """Return the line of a row, with its end."""
    begin_of_row = begin_ns(about, row)
    begin = iso_time(begin_of_row, about.zone) if about.has_utc else elapsed_time(begin_of_row)
    values = (repr(row.duration_s), *flag_texts(row), *map(repr, numbers(about, row)))
    return ",".join((begin, *values)) + "\n"


def column_names(about: MeasurementDescription) -> list[str]:
    """Return the names of the columns, see ``number_names``."""
    before = (time_name(about), DURATION, *of_channels(about.channels, FLAGS_NAME))
    return [*before, *number_names(about)]
