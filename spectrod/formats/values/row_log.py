"""What a file of recorded values needs to be turned into another format: description and rows."""

import re
from collections.abc import Iterator
from math import prod
from typing import BinaryIO, Final

import msgspec
import numpy as np

from spectrod.dsp.calibration import ChannelCalibration, Validity
from spectrod.dsp.interval_flags import FLAGS
from spectrod.dsp.level_reference import Reference
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.lib.errors import InputError
from spectrod.lib.json_text import decode_json
from spectrod.lib.time_zones import zone_name
from spectrod.measure.levels import LevelRow
from spectrod.measure.levels.level_quantities import LevelQuantity
from spectrod.measure.levels.octave_filters import OctaveFilter
from spectrod.measure.levels.octave_levels import BandLevels
from spectrod.measure.measurement import Measurement, Quantity

DESCRIPTION: Final = "# spectrod_description: "
"""Begin of the second line of a file that is to become another format; JSON follows."""
_LINE_MAX_BYTES: Final = 256 << 20
"""Length of the longest line that is read: 1024 values of 4096 channels have half of it."""

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9})(?:Z|([+-])(\d\d):(\d\d)(?::(\d\d))?)", re.ASCII
)
_FLAGS = {name: int(flag) for flag, name in FLAGS.items()}


class _Quantity(msgspec.Struct, frozen=True):
    """A ``Quantity``."""

    name: str
    unit: str
    is_of_all_channels: bool


class _Calibration(msgspec.Struct, frozen=True):
    """What files say about the calibration of a channel."""

    value: float
    unit: str
    cal_id: str
    response_hz: tuple[float, float] | None
    valid_from_utc_ns: int | None = None
    valid_until_utc_ns: int | None = None

    def restore(self) -> ChannelCalibration:
        reference = Reference(self.value, self.unit)
        validity = Validity(self.valid_from_utc_ns, self.valid_until_utc_ns)
        return ChannelCalibration(
            reference, 0.0, None, self.cal_id, self.response_hz, validity=validity
        )


class _Band(msgspec.Struct, frozen=True):
    """Name and frequencies of a fractional octave [Hz]."""

    name: str
    lower_hz: float
    centre_hz: float
    upper_hz: float

    def restore(self) -> OctaveFilter:
        return OctaveFilter(
            self.name, self.lower_hz, self.centre_hz, self.upper_hz, 0, 0.0, 0.0, ()
        )


class _Description(msgspec.Struct, frozen=True):
    """The fields of ``MeasurementDescription``, but for values of bins."""

    source: str
    channels: tuple[str, ...]
    quantities: tuple[_Quantity, ...]
    calibrations: tuple[_Calibration | None, ...]
    fs: float
    interval_s: float
    align: str
    time_zone: str
    has_utc: bool
    software: str
    notes: tuple[str, ...]
    title: str
    extra: dict[str, str | float]
    bands: tuple[_Band, ...]
    band_quantities: tuple[_Quantity, ...]


_KEPT = (
    *("source", "channels", "fs", "interval_s", "align", "time_zone", "has_utc", "software"),
    *("notes", "title", "extra"),
)


def encode_description(about: MeasurementDescription) -> str:
    """Return a description, but for values of bins, as a line of JSON."""
    bands = about.bands
    stored = _Description(
        quantities=tuple(map(_quantity, about.quantities)),
        calibrations=tuple(map(_calibration, about.calibrations)),
        bands=tuple(
            _Band(one.name, one.lower_hz, one.centre_hz, one.upper_hz) for one in bands.filters
        ),
        band_quantities=tuple(map(_quantity, bands.quantities)),
        **{name: getattr(about, name) for name in _KEPT},
    )
    return msgspec.json.encode(stored).decode()


def _quantity(quantity: Quantity) -> _Quantity:
    return _Quantity(quantity.name, quantity.unit, quantity.is_of_all_channels)


def _calibration(calibration: ChannelCalibration | None) -> _Calibration | None:
    if calibration is None:
        return None
    reference = calibration.reference
    return _Calibration(
        reference.value,
        reference.unit,
        calibration.cal_id,
        calibration.response_hz,
        calibration.validity.from_utc_ns,
        calibration.validity.until_utc_ns,
    )


class RowLog:
    """The description and the rows of a file that ``recorded.ValueFileWriter`` has started.

    Parameters
    ----------
    file : binary file
        At its begin.

    Attributes
    ----------
    about : MeasurementDescription
        Description of the rows.

    Raises
    ------
    InputError
        If its header is not that of such a file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.readline(_LINE_MAX_BYTES)  # the origin
        line = file.readline(_LINE_MAX_BYTES)
        start = DESCRIPTION.encode()
        try:
            stored = decode_json(line.removeprefix(start), _Description)
            zone_name(stored.time_zone)
        except ValueError as error:
            raise InputError(f"its description cannot be read: {error}") from error
        self.about = _restored(stored)

    def rows(self) -> Iterator[Measurement]:
        """Yield the rows in order; raises InputError for a line that is not one."""
        for line in iter(lambda: self._file.readline(_LINE_MAX_BYTES), b""):
            if line.startswith(b"#"):
                continue
            break  # the names of the columns
        for number, line in enumerate(iter(lambda: self._file.readline(_LINE_MAX_BYTES), b"")):
            try:
                yield _row(self.about, line.decode().rstrip("\n").split(","))
            except (KeyError, UnicodeDecodeError, ValueError) as error:
                raise InputError(f"row {number} cannot be read: {error}") from error


def _restored(stored: _Description) -> MeasurementDescription:
    bands = BandLevels(
        tuple(one.restore() for one in stored.bands),
        tuple(
            LevelQuantity(one.name, "eq", "exposure" if one.unit == "exposure" else "level")
            for one in stored.band_quantities
        ),
    )
    return MeasurementDescription(
        quantities=stored.quantities,
        calibrations=tuple(one.restore() if one else None for one in stored.calibrations),
        bands=bands,
        **{name: getattr(stored, name) for name in _KEPT},
    )


def _row(about: MeasurementDescription, cells: list[str]) -> LevelRow:
    """Return the row of a line; see ``csv.row_text``."""
    n_channels, bands = len(about.channels), about.bands
    begin, duration, *rest = cells
    flags, texts = rest[:n_channels], rest[n_channels:]
    n_of_each = [1 if one.is_of_all_channels else n_channels for one in about.quantities]
    n_bands = len(bands.quantities), len(bands.filters), n_channels
    numbers = np.array(texts, dtype=np.float64)
    if len(numbers) != sum(n_of_each) + prod(n_bands):
        raise ValueError(f"{len(cells)} cells")
    values = np.empty((len(n_of_each), n_channels))
    first = 0
    for row, n in zip(values, n_of_each, strict=True):
        row[:] = numbers[first : first + n]
        first += n
    return LevelRow(
        first_sample=0,
        n_samples=0,
        due_samples=0,
        begin_utc_ns=_utc_ns(begin),
        duration_s=float(duration),
        values=values,
        flags=np.array([_flags(one) for one in flags], np.uint8),
        band_values=numbers[first:].reshape(n_bands),
    )


def _utc_ns(text: str) -> int:
    """Return the UTC of a text of ``iso_time`` [ns]."""
    match = _TIME.fullmatch(text)
    if not match:
        raise ValueError(f"time={text!r}")
    hours, minutes, seconds = (int(part or 0) for part in match.group(3, 4, 5))
    offset_ns = (3600 * hours + 60 * minutes + seconds) * NS_PER_S
    local_ns = int(np.datetime64(match[1], "ns").astype(np.int64))
    return local_ns + offset_ns if match[2] == "-" else local_ns - offset_ns


def _flags(names: str) -> int:
    return sum(_FLAGS[name] for name in names.split("|") if name)
