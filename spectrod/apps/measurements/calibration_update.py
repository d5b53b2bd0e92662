"""Calibration files after a calibration: new level, everything else as it was."""

import copy
import datetime as dt
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from spectrod.apps.measurements.calibrator import CHANGE_MAX_DB
from spectrod.dsp.calibration.channel_calibration import ChannelCalibration
from spectrod.dsp.calibration.file import (
    WAYS,
    load_calibration,
    parse_calibration,
    read_tables,
)
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The result of a calibration.

    Attributes
    ----------
    reference : str
        Reference of the level, such as ``20 uPa``.
    level_db : float
        Level of the calibrator [dB re reference].
    reads_dbfs : float
        Its measured level [dBFS].
    frequency_hz : float
        Its stated frequency [Hz].
    uncertainty_db : float
        Expanded uncertainty, k = 2 [dB].
    date : dt.date
        Day of the calibration.
    serial : str
        Serial number of the microphone; empty if it is not given.
    """

    reference: str
    level_db: float
    reads_dbfs: float
    frequency_hz: float
    uncertainty_db: float
    date: dt.date
    serial: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """The new contents of a calibration file.

    Attributes
    ----------
    text : str
        The file.
    calibration : ChannelCalibration
        What it says of the channel.
    change_db : float or None
        Change of the level of full scale since the last calibration [dB]; None if there is none of
        the same reference.
    last : dt.date or None
        Day of that calibration, if it is known.
    """

    text: str
    calibration: ChannelCalibration
    change_db: float | None
    last: dt.date | None


def updated(path: Path, result: Calibrated, channel: str = "", *, force: bool = False) -> Update:
    """Put the result of a calibration into a file, which need not exist; write nothing.

    Parameters
    ----------
    path : Path
        The calibration file.
    result : Calibrated
        What was measured.
    channel : str
        Name or number of the channel whose table takes the result; empty for the file's own keys.
    force : bool
        Whether to accept another serial number, and a change of more than ``CHANGE_MAX_DB``.

    Raises
    ------
    ConfigError
        If the file is not valid, is of another serial number, or the level has changed too much.
    """
    tables: dict[str, Any] = {}
    old: ChannelCalibration | None = None
    if path.exists():
        tables = read_tables(path)
        known = load_calibration(path)
        old = known.by_channel.get(channel, known.base)
    own = tables.setdefault("channels", {}).setdefault(channel, {}) if channel else tables
    last = own.get("date", tables.get("date"))
    serial = own.get("serial", tables.get("serial", ""))
    if result.serial and serial and result.serial != serial and not force:
        raise ConfigError(
            f"{printable(path)}: is of serial={serial!r}: must be {result.serial!r}, "
            "or --force replaces it"
        )
    _put(own, result)
    response = own.get("response", tables.get("response"))
    if response is not None:  # the sensitivity is now that at the calibrator's frequency
        own["response"] = response | {"at_hz": result.frequency_hz}
    found = parse_calibration(copy.deepcopy(tables), path)
    new = found.by_channel[channel] if channel else found.base
    assert new is not None
    change_db = _change_db(old, new)
    if change_db is not None and abs(change_db) > CHANGE_MAX_DB and not force:
        raise ConfigError(
            f"{printable(path)}: the sensitivity has changed by {-change_db:+.2f} dB since "
            f"{last or 'the last calibration'}: must be within {CHANGE_MAX_DB:g} dB; "
            "check the gain and the microphone, or --force replaces the file"
        )
    is_day = isinstance(last, dt.date)
    return Update(to_toml(tables), new, change_db, last if is_day else None)


def _put(own: dict[str, Any], result: Calibrated) -> None:
    for way, belonging in WAYS.items():
        for key in (way, *belonging):
            own.pop(key, None)
    for key in ("valid_from", "valid_until"):  # of the calibration before
        own.pop(key, None)
    own |= {
        "reference": result.reference,
        "level_db": result.level_db,
        "reads_dbfs": round(result.reads_dbfs, 4),
        "date": result.date,
        "uncertainty_db": round(result.uncertainty_db, 3),
    }
    if result.serial:
        own["serial"] = result.serial


def _change_db(old: ChannelCalibration | None, new: ChannelCalibration) -> float | None:
    if old is None or old.reference != new.reference:
        return None
    return new.full_scale_db - old.full_scale_db


def to_toml(tables: dict[str, Any]) -> str:
    """Write the tables of a calibration file as TOML."""
    text = "".join(_lines("", tables))
    assert tomllib.loads(text) == tables, "TOML is read back otherwise"
    return text


def _lines(name: str, table: dict[str, Any]) -> list[str]:
    keys = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"\n[{name}]\n"] if name and (keys or not table) else []
    lines += [f"{_text(key)} = {_value(value)}\n" for key, value in keys.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _lines(f"{name}.{_text(key)}" if name else _text(key), value)
    return lines


def _text(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").isalnum() else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{value}: must be finite")
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
