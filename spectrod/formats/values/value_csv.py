"""Measurements as CSV: header lines that begin with #, then one line for each interval."""

import json
from contextlib import closing
from pathlib import Path

from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.attributes import elapsed_time, iso_time
from spectrod.formats.values.measurement_description import MeasurementDescription, flag_names
from spectrod.formats.values.value_writer import ValueWriter
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels import LevelRow
from spectrod.measure.measurement import Measurement


class ValueCsvWriter(ValueWriter):
    """Writes measurements to a CSV file; see ``ValueWriter`` for parameters and errors.

    Each line goes to the file at once. Values have the digits that read back exactly.
    """

    def _open(self, part: Path) -> None:
        header = header_text(self.path, self.description)
        self._file = self._stack.enter_context(closing(part.open("x", encoding="utf-8")))
        self._file.write(header)

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
        If the rows have values of bins.
    """
    if about.spectra:
        raise ConfigError(
            f"{path}: {about.spectra[0]} has a value for each bin: must be .nc or .h5"
        )
    lines = [f"# {name}: {json.dumps(value)}" for name, value in about.attributes().items()]
    units = {one.name: about.unit(one) for one in (*about.quantities, *about.bands.quantities)}
    lines.append(f"# units: {json.dumps(units)}")
    if about.bands.filters:
        bands = {
            one.name: [one.lower_hz, one.centre_hz, one.upper_hz] for one in about.bands.filters
        }
        lines.append(f"# bands_lower_centre_upper_hz: {json.dumps(bands)}")
    return "\n".join((*lines, ",".join(column_names(about)))) + "\n"


def row_text(about: MeasurementDescription, row: Measurement) -> str:
    """Return the line of a row, with its end."""
    if row.begin_utc_ns is not None and about.has_utc:
        begin = iso_time(row.begin_utc_ns)
    else:
        begin = elapsed_time(round(row.first_sample * NS_PER_S / about.fs))
    cells = [begin, repr(row.duration_s), *("|".join(flag_names(int(f))) for f in row.flags)]
    for quantity, values in zip(about.quantities, row.values.tolist(), strict=True):
        cells += map(repr, values[:1] if quantity.is_of_all_channels else values)
    if isinstance(row, LevelRow):
        cells += map(repr, row.band_values.ravel().tolist())
    return ",".join(cells) + "\n"


def column_names(about: MeasurementDescription) -> list[str]:
    """Return the names of the columns.

    They are ``QUANTITY``, in bands ``QUANTITY_BAND``, and of several channels end with
    ``@CHANNEL``. Bands follow the quantities: all bands of the first quantity, then of the next.
    """

    def of_channels(name: str) -> list[str]:
        if len(about.channels) == 1:
            return [name]
        return [f"{name}@{channel}" for channel in about.channels]

    names = ["time" if about.has_utc else "elapsed_s", "duration_s", *of_channels("flags")]
    for one in about.quantities:
        names += [one.name] if one.is_of_all_channels else of_channels(one.name)
    for one in about.bands.named_quantities:
        names += of_channels(one.name)
    return names
