"""Named values as a table on standard output."""

import sys

from spectrod.cli.tables import Column, heading, line
from spectrod.formats.export.attributes import iso_time
from spectrod.formats.values.measurement_description import MeasurementDescription, flag_names
from spectrod.lib.time_zones import shown_zone
from spectrod.measure.levels import LevelRow
from spectrod.measure.measurement import Measurement, Quantity

_TIME_WIDTH, _LOCAL_TIME_WIDTH = 23, 28
_DIGITS = {"FS": 6, "s": 6, "1": 4}


class PrintedTable:
    """Prints measurements: a line for each interval and channel.

    Parameters
    ----------
    about : MeasurementDescription
        Description of the rows.
    is_live : bool
        Whether to write each line at once.
    """

    def __init__(self, about: MeasurementDescription, *, is_live: bool) -> None:
        self._about, self._is_live = about, is_live
        self._has_heading = False
        channel_width = max(7, *(len(name) for name in about.channels))
        self._columns = [
            self._time_column(),
            Column("duration", "length [s]", 10, lambda value: f"{value:.6g}"),
            *([Column("channel", "channel", channel_width)] if len(about.channels) > 1 else []),
            *(self._column(one) for one in about.quantities),
            Column("flags", "flags", 0),
        ]

    def _time_column(self) -> Column:
        about = self._about
        if not about.has_utc:
            return Column("time", "time [s]", _TIME_WIDTH)
        zone = shown_zone(about.time_zone)
        width = max(_LOCAL_TIME_WIDTH, len(zone)) if zone else _TIME_WIDTH
        return Column("time", zone or "UTC", width)

    def _column(self, quantity: Quantity) -> Column:
        digits = _DIGITS.get(quantity.unit, 2)
        return Column(
            quantity.name, quantity.name, max(9, len(quantity.name)), lambda v: f"{v:.{digits}f}"
        )

    def show(self, row: Measurement) -> None:
        """Print the lines of an interval."""
        about = self._about
        if about.has_utc and row.begin_utc_ns is not None:
            begin = _hundredths(iso_time(row.begin_utc_ns, about.zone))
        else:
            begin = f"{row.first_sample / about.fs:.3f}"
        self._show(begin, row)

    def show_total(self, row: Measurement) -> None:
        """Print the lines of all intervals together."""
        self._show("all", row)
        if isinstance(row, LevelRow) and self._about.bands.filters:
            self._show_bands(row)

    def _show_bands(self, row: LevelRow) -> None:
        """Print the levels of each band and channel."""
        about = self._about
        quantities = [self._column(one) for one in about.bands.quantities]
        columns = [Column("band", "band", 9), Column("channel", "channel", 7), *quantities]
        if len(about.channels) == 1:
            del columns[1]
        print(f"\n# all intervals, in bands; levels in {self._units()}")
        print(heading(columns))
        for band, one in enumerate(about.bands.filters):
            for k, channel in enumerate(about.channels):
                values = row.band_values[:, band, k].tolist()
                names = (column.key for column in quantities)
                cells = {"band": one.name, "channel": channel}
                print(line(columns, cells | dict(zip(names, values, strict=True))))

    def _show(self, begin: str, row: Measurement) -> None:
        about = self._about
        if not self._has_heading:
            self._has_heading = True
            print(f"# {about.source}; {self._what()}")
            print(heading(self._columns))
        for k, channel in enumerate(about.channels):
            values = {
                one.name: float(row.values[number, k])
                for number, one in enumerate(about.quantities)
            }
            cells = {
                "time": begin,
                "duration": row.duration_s,
                "channel": channel,
                "flags": ",".join(flag_names(int(row.flags[k]))),
                **values,
            }
            print(line(self._columns, cells))
        if self._is_live:
            sys.stdout.flush()

    def _what(self) -> str:
        if any(one.unit in ("level", "exposure") for one in self._about.quantities):
            return f"levels in {self._units()}"
        return self._about.title.lower()

    def _units(self) -> str:
        units = self._about.units
        if len(set(units)) == 1:
            return units[0]
        return ", ".join(
            f"{unit} ({name})" for name, unit in zip(self._about.channels, units, strict=True)
        )


def _hundredths(time: str) -> str:
    """Shorten a text of ``iso_time`` from nanoseconds to hundredths of a second."""
    seconds, _, rest = time.partition(".")
    return f"{seconds}.{rest[:2]}{rest[9:]}"
