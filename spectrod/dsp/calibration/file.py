"""Calibration files: TOML into frozen structs, and the calibration of each channel."""

import datetime as dt
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from spectrod.dsp.calibration.channel_calibration import (
    FULL_SCALE_DB_MAX,
    FULL_SCALE_DB_MIN,
    ChannelCalibration,
    full_scale_level_db,
    identity,
)
from spectrod.dsp.calibration.response import FREQUENCY_MAX_HZ, Response, make_response
from spectrod.dsp.calibration.response_text import parse_response
from spectrod.dsp.calibration.sensitivity import parse_sensitivity
from spectrod.dsp.calibration.validity import parse_validity
from spectrod.dsp.level_reference import Reference, parse_reference
from spectrod.lib.errors import ConfigError
from spectrod.lib.regular_files import read_regular
from spectrod.lib.text import printable, reason_of

FILE_BYTES_MAX = 1 << 18
"""Size of a calibration file [bytes]: TOML of this size is parsed in half a second."""

RESPONSE_BYTES_MAX = 1 << 20
"""Size of the file of a response [bytes]."""

RESPONSES_ROWS_MAX = 400_000
"""Rows of all responses of a calibration file; channels with the same table count once."""

CHANNELS_MAX = 4096
"""Tables ``[channels.NAME]`` of a file."""

FULL_SCALE_SINE_RMS_DB = 10.0 * math.log10(0.5)
"""Level of a full-scale sine, 0 dBFS, re digital 1.0 rms [dB] (AES17)."""

WAYS = {
    "sensitivity": ("gain_db", "full_scale_v"),
    "full_scale_db": ("full_scale",),
    "level_db": ("reads_dbfs",),
}
"""The key that begins each way to state the level of full scale, and the keys that belong to it."""

_KEY = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class ResponseTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Table ``[response]``: the frequency response, in the file or in another one."""

    table: tuple[tuple[float, float], ...] = ()
    """Rows of frequency [Hz] and level [dB]."""
    file: str = ""
    """File of such rows; a relative path starts at the folder of the calibration file."""
    kind: Literal["response", "correction"] = "response"
    """A response is subtracted from readings, a correction is added."""
    at_hz: Annotated[float, Meta(ge=0, le=FREQUENCY_MAX_HZ)] = 1000.0
    """Frequency of the stated sensitivity [Hz]; 0: the levels are relative to it as they are."""


class ChannelTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Keys of a calibration file, and of its tables ``[channels.NAME]``."""

    reference: str = ""
    sensitivity: str = ""
    gain_db: Annotated[float, Meta(ge=-200, le=200)] = 0.0
    full_scale_v: Annotated[float, Meta(ge=1e-6, le=1e5)] | None = None
    """Peak voltage at the converter that makes digital 1.0 [V]."""
    full_scale_db: float | None = None
    """Level at digital full scale [dB re reference]."""
    full_scale: Literal["", "rms", "sine"] = ""
    """What has that level: a root mean square of 1.0, or a sine of amplitude 1.0."""
    level_db: float | None = None
    """A level [dB re reference] that ..."""
    reads_dbfs: Annotated[float, Meta(ge=-200, le=20)] | None = None
    """... is displayed as this without calibration [dBFS]."""
    response: ResponseTable | None = None
    serial: Annotated[str, Meta(max_length=40, pattern=r"^[A-Za-z0-9._-]*$")] = ""
    date: dt.date | None = None
    uncertainty_db: Annotated[float, Meta(ge=0, le=100)] | None = None
    notes: Annotated[str, Meta(max_length=2000)] = ""
    valid_from: Any = None
    valid_until: Any = None
    """Dates of UTC, both included, or times with a zone; see ``parse_validity``."""

    def is_stated(self) -> bool:
        """Whether it states a level of full scale at all."""
        return bool(self.sensitivity) or self.full_scale_db is not None or self.level_db is not None

    def calibration(self, responses: "Responses") -> ChannelCalibration:
        """Return the calibration; raises ConfigError if a rule is violated."""
        if not self.reference:
            raise ConfigError(
                "reference: is missing; must be a value with a unit, such as '20 uPa' (air) or "
                "'1 uPa' (water)"
            )
        reference = parse_reference(self.reference)
        level_db = self._full_scale_level_db(reference)
        if not FULL_SCALE_DB_MIN <= level_db <= FULL_SCALE_DB_MAX:
            raise ConfigError(
                f"level of digital full scale: {level_db:g} {reference.level_unit}: must be "
                f"{FULL_SCALE_DB_MIN:g} to {FULL_SCALE_DB_MAX:g}"
            )
        response = None if self.response is None else responses.of(self.response)
        return ChannelCalibration(
            reference,
            level_db,
            response,
            identity(self.serial, reference, level_db, response),
            None if response is None else response.range_hz,
            self.uncertainty_db,
            parse_validity(self.valid_from, self.valid_until),
        )

    def _full_scale_level_db(self, reference: Reference) -> float:
        self._require_one_way()
        if self.sensitivity:
            return self._level_of_chain(reference)
        if self.full_scale_db is not None:
            if not self.full_scale:
                raise ConfigError(
                    "full_scale: is missing; must be 'rms' or 'sine', which differ by 3.01 dB"
                )
            is_sine = self.full_scale == "sine"
            return self.full_scale_db - (FULL_SCALE_SINE_RMS_DB if is_sine else 0.0)
        assert self.level_db is not None
        if self.reads_dbfs is None:
            raise ConfigError("reads_dbfs: is missing; must be the level [dBFS] of level_db")
        return self.level_db - self.reads_dbfs - FULL_SCALE_SINE_RMS_DB

    def _level_of_chain(self, reference: Reference) -> float:
        sensitivity, unit = parse_sensitivity(self.sensitivity)
        if unit != reference.base_unit:
            raise ConfigError(
                f"sensitivity={self.sensitivity!r}: must be per {reference.base_unit}, the unit of "
                f"reference={self.reference!r}"
            )
        if self.full_scale_v is None:
            raise ConfigError(
                "full_scale_v: is missing; must be the peak voltage that makes digital 1.0"
            )
        return full_scale_level_db(sensitivity, self.gain_db, self.full_scale_v, reference)

    def _require_one_way(self) -> None:
        keys = [key for key in WAYS if getattr(self, key) not in ("", None)]
        if len(keys) != 1:
            stated = " and ".join(keys) or "no level of full scale"
            raise ConfigError(f"{stated}: must be exactly one of {', '.join(WAYS)}")
        for way, belonging in WAYS.items():
            for key in belonging:
                if way != keys[0] and getattr(self, key) not in (None, "", 0.0):
                    raise ConfigError(f"{key}: belongs to {way}, not to {keys[0]}")


@dataclass(frozen=True, slots=True)
class Calibration:
    """The contents of a calibration file.

    Attributes
    ----------
    path : str
        The file.
    base : ChannelCalibration, optional
        Calibration of channels without a table of their own; None if there is none for them.
    by_channel : mapping of str to ChannelCalibration
        Calibration of single channels, by name or by number in the source, from 0.
    """

    path: str
    base: ChannelCalibration | None
    by_channel: Mapping[str, ChannelCalibration]

    def channel(self, index: int, name: str = "") -> ChannelCalibration | None:
        """Return the calibration of a channel.

        Parameters
        ----------
        index : int
            Number of the channel in the source, from 0.
        name : str
            Name of the channel, which counts before its number.
        """
        for key in (name, str(index)):
            if key and key in self.by_channel:
                return self.by_channel[key]
        return self.base

    def channels(
        self, n_channels: int, names: Sequence[str] = (), select: Sequence[int] = ()
    ) -> tuple[ChannelCalibration | None, ...]:
        """Return the calibration of each channel of an analysis; None where there is none.

        Parameters
        ----------
        n_channels : int
            Number of channels, or of I/Q signals.
        names : sequence of str
            Their names; empty without names.
        select : sequence of int
            Their numbers in the source; empty for all of the source's.

        Raises
        ------
        ConfigError
            If the file has a channel that does not exist, or calibrates none of them.
        """
        numbers = list(select) if len(select) == n_channels else list(range(n_channels))
        self._require_known(names, [] if select else numbers)
        names = names or [""] * n_channels
        found = tuple(self.channel(index, name) for index, name in zip(numbers, names, strict=True))
        if not any(found):
            raise ConfigError(f"{self.path}: calibrates none of the {n_channels} channels")
        return found

    def _require_known(self, names: Sequence[str], numbers: Sequence[int]) -> None:
        known = {*names, *map(str, numbers)}
        for key in self.by_channel:
            if key not in known and not (key.isdecimal() and not numbers):
                has = ", ".join([*names, *map(str, numbers)][:8])
                raise ConfigError(f"{self.path}: channels.{key}: there is no such channel; {has}")


CalibrationLike = str | PathLike[str] | Calibration | None


def calibration_of(
    given: CalibrationLike,
    n_channels: int,
    names: Sequence[str] = (),
    select: Sequence[int] = (),
) -> tuple[ChannelCalibration | None, ...]:
    """Return the calibration of each channel, of a file or of its contents; none for None.

    See ``Calibration.channels``; raises like ``load_calibration``.
    """
    if given is None:
        return ()
    calibration = given if isinstance(given, Calibration) else load_calibration(given)
    return calibration.channels(n_channels, names, select)


def load_calibration(path: str | PathLike[str]) -> Calibration:
    """Read a calibration file.

    Parameters
    ----------
    path : str or PathLike
        A TOML file of at most ``FILE_BYTES_MAX``; see ``docs/measurement.md``.

    Raises
    ------
    ConfigError
        If it cannot be read or violates a rule, with the file's name, the value and the rule.
    """
    path = Path(path).expanduser()
    return parse_calibration(read_tables(path), path)


def read_tables(path: Path) -> dict[str, Any]:
    """Read the tables of a file without looking at what they mean; raises ConfigError."""
    content = _read(path, FILE_BYTES_MAX)
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # also integers of over 4300 digits
        raise ConfigError(
            f"{printable(path)}: is no TOML: {printable(reason_of(error))}"
        ) from error


def parse_calibration(tables: dict[str, Any], path: Path) -> Calibration:
    """Return the calibration in the tables of a file, which are consumed; raises ConfigError."""
    shown = printable(path)
    try:
        return _calibration(shown, path.parent, tables)
    except ConfigError as error:
        raise ConfigError(f"{shown}: {error}") from error


def _calibration(shown: str, folder: Path, tables: dict[str, Any]) -> Calibration:
    own = tables.pop("channels", {})
    if not isinstance(own, dict) or not all(isinstance(one, dict) for one in own.values()):
        raise ConfigError("channels: must be tables [channels.NAME]")
    if len(own) > CHANNELS_MAX:
        raise ConfigError(f"channels: {len(own)} tables: must be at most {CHANNELS_MAX}")
    base = _converted("", tables)
    responses = Responses(folder)
    by_channel = {}
    for name, table in own.items():
        if not _KEY.fullmatch(name):
            raise ConfigError(
                f"channels.{printable(name, 70)}: must be 1 to 64 of A-Z a-z 0-9 . _ -"
            )
        merged = _converted(f"channels.{name}: ", _merged(tables, table))
        by_channel[name] = _of_table(f"channels.{name}: ", merged, responses)
    if not base.is_stated() and by_channel:
        return Calibration(shown, None, by_channel)
    return Calibration(shown, _of_table("", base, responses), by_channel)


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Put a channel's keys over those of the file; another way to state the level replaces it."""
    stated = [way for way in WAYS if way in own]
    kept = dict(base)
    for way, belonging in WAYS.items():
        if stated and way not in stated:
            for key in (way, *belonging):
                kept.pop(key, None)
    return kept | own


def _converted(where: str, table: dict[str, Any]) -> ChannelTable:
    try:
        return msgspec.convert(table, ChannelTable)
    except msgspec.ValidationError as error:
        rule, _, key = printable(str(error)).partition(" - at `$.")
        raise ConfigError(f"{where}{key.rstrip('`') + ': ' if key else ''}{rule}") from error


def _of_table(where: str, table: ChannelTable, responses: "Responses") -> ChannelCalibration:
    try:
        return table.calibration(responses)
    except ConfigError as error:
        raise ConfigError(f"{where}{error}") from error


class Responses:
    """The responses of a calibration file: each is read once, and their rows are bounded.

    Parameters
    ----------
    folder : Path
        Folder of the calibration file, where relative paths start.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[ResponseTable, Response] = {}
        self._n_rows = 0

    def of(self, table: ResponseTable) -> Response:
        """Return the response of a table; raises ConfigError."""
        found = self._found.get(table)
        if found is None:
            found = self._found[table] = _response(table, self._folder)
            self._n_rows += len(found.levels_db)
            if self._n_rows > RESPONSES_ROWS_MAX:
                raise ConfigError(
                    f"response: {self._n_rows} rows of all channels: must be at most "
                    f"{RESPONSES_ROWS_MAX}"
                )
        return found


def _response(table: ResponseTable, folder: Path) -> Response:
    if bool(table.table) == bool(table.file):
        raise ConfigError("response: must have either table or file")
    rows: Sequence[tuple[float, float]] = table.table
    if table.file:
        path = folder / table.file
        content = _read(path, RESPONSE_BYTES_MAX)
        try:
            rows = parse_response(content)
        except ConfigError as error:
            raise ConfigError(f"response: {printable(path)}: {error}") from error
    sign = 1.0 if table.kind == "response" else -1.0
    return make_response(rows, at_hz=table.at_hz, sign=sign)


def _read(path: Path, bytes_max: int) -> bytes:
    """Read a regular file of bounded size."""
    try:
        return read_regular(path, bytes_max)
    except FileNotFoundError:
        raise ConfigError(f"{printable(path)}: there is no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{printable(path)}: {reason}") from error
