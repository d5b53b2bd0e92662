"""Measurements as CSV for spreadsheets: cells that they take for dates and numbers.

Spreadsheets take a time with a zone or with nanoseconds for text, cut comments into cells, and show
all digits. So there are no comments: the zone and units are in the names of the columns.

No number has three decimals: 1.234 is a thousand where the point separates these, and so is 1,234
where the comma does. A file in the other form is read as text then, not as other numbers.
"""

import csv
import math
from contextlib import closing
from pathlib import Path

from spectrod.dsp.measurement_columns import FLAGS_NAME, of_channels
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.attributes import iso_time
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.measurement_table import (
    begin_ns,
    flag_texts,
    number_names,
    numbers,
)
from spectrod.formats.values.value_csv import check_values
from spectrod.formats.values.value_writer import ValueWriter
from spectrod.lib.time_zones import offset_s, shown_zone
from spectrod.measure.levels.level_units import unit_of
from spectrod.measure.measurement import Measurement, Quantity

_NS_PER_MS = 1_000_000
_DECIMALS = 4
"""Of levels, frequencies and angles: none is known better than 0.001 dB, Hz or degrees."""
_DIGITS = 6
"""Significant digits of other values."""
_FIXED = ("dB", "LU", "Hz", "deg")
"""How units begin whose values have ``_DECIMALS``."""


class SpreadsheetWriter(ValueWriter):
    """Writes measurements to a CSV file for spreadsheets; see ``ValueWriter``.

    Times are rounded to milliseconds. In a time zone a column has the offset from UTC [h], which
    tells an hour that comes twice apart. Values that are not finite are empty cells.
    """

    separator, decimal_mark = ",", "."

    def _open(self, part: Path) -> None:
        about = self.description
        check_values(self.path, about)
        self._units = _units(about)
        file = part.open("x", encoding="utf-8", newline="")
        self._file = self._stack.enter_context(closing(file))
        self._csv = csv.writer(self._file, delimiter=self.separator, lineterminator="\n")
        names = zip(number_names(about), self._units, strict=True)
        self._csv.writerow(
            [
                *_time_names(about),
                "duration [s]",
                *of_channels(about.channels, FLAGS_NAME),
                *(name if unit == "1" else f"{name} [{unit}]" for name, unit in names),
            ]
        )

    def _write(self, row: Measurement) -> None:
        about = self.description
        values = zip(numbers(about, row), self._units, strict=True)
        self._csv.writerow(
            [
                *(self._marked(one) for one in _times(about, begin_ns(about, row))),
                self._marked(_padded(f"{row.duration_s:.9g}")),
                *flag_texts(row),
                *(self._marked(_number(value, unit)) for value, unit in values),
            ]
        )
        self._file.flush()

    def _close(self) -> None:
        self._file.flush()

    def _marked(self, number: str) -> str:
        return number.replace(".", self.decimal_mark)


class CommaSpreadsheetWriter(SpreadsheetWriter):
    """The same with decimal commas, and semicolons between cells."""

    separator, decimal_mark = ";", ","


def _time_names(about: MeasurementDescription) -> list[str]:
    if not about.has_utc:
        return ["elapsed [s]"]
    if about.zone is None:
        return ["time (UTC)"]
    return [f"time ({shown_zone(about.time_zone)})", "offset from UTC [h]"]


def _times(about: MeasurementDescription, t_ns: int) -> list[str]:
    rounded_ns = (t_ns + _NS_PER_MS // 2) // _NS_PER_MS * _NS_PER_MS
    if not about.has_utc:
        return [f"{rounded_ns / NS_PER_S:.{_DECIMALS}f}"]
    date, _, rest = iso_time(rounded_ns, about.zone).partition("T")
    seconds, _, decimals = rest.partition(".")
    text = f"{date} {seconds}"
    if rounded_ns % NS_PER_S:
        text += f".{decimals[:3]}"
    if about.zone is None:
        return [text]
    return [text, f"{offset_s(rounded_ns, about.zone) / 3600:g}"]


def _units(about: MeasurementDescription) -> list[str]:
    """Return the unit of each column of ``numbers``."""
    found = []
    for one in about.quantities:
        found += _of_channels(about, one)[: 1 if one.is_of_all_channels else None]
    for one in about.bands.named_quantities:
        found += _of_channels(about, one)
    return found


def _of_channels(about: MeasurementDescription, quantity: Quantity) -> list[str]:
    return [unit_of(quantity, one) for one in about.calibrations]


def _number(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return ""
    if unit.startswith(_FIXED):
        return f"{value:.{_DECIMALS}f}"
    return _padded(f"{value:.{_DIGITS}g}")


def _padded(number: str) -> str:
    """Return a number with a fourth decimal if it has three."""
    mantissa, mark, exponent = number.partition("e")
    _, _, decimals = mantissa.partition(".")
    return f"{mantissa}0{mark}{exponent}" if len(decimals) == 3 else number
