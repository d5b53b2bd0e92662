"""Files of events: CSV, JSON, Parquet, selection tables of Raven, labels of Audacity, SigMF."""

import csv
import datetime as dt
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from spectrod.formats.event_fields import EVENT_COLUMNS, fields_of, time_names
from spectrod.formats.event_sigmf import sigmf_text
from spectrod.formats.sound.sigmf_writer import DATA_SUFFIX, META_SUFFIX
from spectrod.formats.whole_files import check_writable, whole_file
from spectrod.lib.errors import ConfigError
from spectrod.lib.optional_packages import need
from spectrod.lib.text import printable
from spectrod.measure.triggers.detection import Detection

_RAVEN = (
    *("Selection", "View", "Channel", "Begin Time (s)", "End Time (s)", "Low Freq (Hz)"),
    *("High Freq (Hz)", "Begin File", "File Offset (s)", "Begin Path", "Peak Freq (Hz)", "Level"),
    *("Pulses", "Annotation"),
)
_LOST_MARKS = str.maketrans("\t\r\n\\", "    ")


def _csv_line(cells: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _csv_head(zone: dt.tzinfo | None) -> str:
    return _csv_line((*time_names(zone), *EVENT_COLUMNS))


def _csv_text(_number: int, one: Detection, zone: dt.tzinfo | None) -> str:
    return _csv_line("" if cell is None else cell for cell in fields_of(one, zone).values())


def _json_text(number: int, one: Detection, zone: dt.tzinfo | None) -> str:
    return f"{'' if number == 1 else ','}\n{json.dumps(fields_of(one, zone))}"


def _raven_text(number: int, one: Detection, _zone: dt.tzinfo | None) -> str:
    event, path = one.event, Path(one.file)
    whole_path = str(path.absolute()) if one.file else ""
    cells = [
        *(str(number), "Spectrogram 1", str(one.channel)),
        *(f"{one.joined_s:.6f}", f"{one.joined_s + one.duration_s:.6f}"),
        *(f"{event.f_min_hz:.3f}", f"{event.f_max_hz:.3f}", _cell(path.name)),
        *(f"{one.begin_s:.6f}", _cell(whole_path)),
        "" if event.frequency_hz is None else f"{event.frequency_hz:.3f}",
        f"{event.level:.2f}",
        "" if event.pulses is None else str(event.pulses),
        _cell(event.name),
    ]
    return "\t".join(cells) + "\n"


def _audacity_text(_number: int, one: Detection, _zone: dt.tzinfo | None) -> str:
    event = one.event
    pulses = "" if event.pulses is None else f" {event.pulses} pulses"
    label = f"{event.name} {event.level:.1f} {event.unit}{pulses}".translate(_LOST_MARKS)
    return (
        f"{one.joined_s:.6f}\t{one.joined_s + one.duration_s:.6f}\t{label}\n"
        f"\\\t{event.f_min_hz:.3f}\t{event.f_max_hz:.3f}\n"
    )


def _cell(name: str) -> str:
    """Return a name that leaves the columns of a line as they are."""
    return printable(name).translate(str.maketrans("\t\r\n", "   "))


def _check_parquet(_zone: dt.tzinfo | None) -> str:
    need("arro3.io", "parquet")
    return ""


def _parquet(events: Sequence[Detection]) -> bytes:
    from spectrod.formats import event_parquet  # noqa: PLC0415 - other formats need no meters

    return event_parquet.parquet_bytes(events)


@dataclass(frozen=True, slots=True)
class EventFormat:
    """Text of a kind of files of events: before the first, of each with its number, at the end.

    The time zone of the first two is that of the file; None: UTC. What is at the end has all events
    where one alone has no text.
    """

    begin: Callable[[dt.tzinfo | None], str]
    text: Callable[[int, Detection, dt.tzinfo | None], str] | None
    end: Callable[[Sequence[Detection]], str | bytes] = lambda _: ""


_RAVEN_FORMAT = EventFormat(lambda _: "\t".join(_RAVEN) + "\n", _raven_text)
_AUDACITY_FORMAT = EventFormat(lambda _: "", _audacity_text)
FORMATS = {
    ".csv": EventFormat(_csv_head, _csv_text),
    ".json": EventFormat(lambda _: "[", _json_text, lambda _: "\n]\n"),
    "selections.txt": _RAVEN_FORMAT,
    "raven.txt": _RAVEN_FORMAT,
    "labels.txt": _AUDACITY_FORMAT,
    "audacity.txt": _AUDACITY_FORMAT,
    META_SUFFIX: EventFormat(lambda _: "", None, sigmf_text),
    ".parquet": EventFormat(_check_parquet, None, _parquet),
}
"""Formats by the end of a file's name."""


def format_of(path: Path) -> EventFormat:
    """Return the format of a file by the end of its name; raises ConfigError for another name."""
    name = path.name.lower()
    for end, found in FORMATS.items():
        if name.endswith(end):
            return found
    raise ConfigError(f"{path}: events: the name must end with {', '.join(FORMATS)}")


@contextmanager
def event_file(path: Path, zone: dt.tzinfo | None = None) -> Iterator[Callable[[Detection], None]]:
    """Write events to a file that gets its name at the end of the block, or none if that fails.

    Parameters
    ----------
    path : Path
        The file; the end of its name is the format.
    zone : tzinfo, optional
        Time zone of times of the clock; None: UTC.

    Yields
    ------
    write : callable
        Adds an event.

    Raises
    ------
    ConfigError
        If the format cannot hold these events, or the file is the metadata of a recording.
    UnavailableError
        If the format needs a package that is not installed.
    StorageError
        If the file cannot be written. The block then leaves no file.
    """
    how, number = format_of(path), 0
    kept: list[Detection] = []
    data = path.with_suffix(DATA_SUFFIX)
    if path.suffix.lower() == META_SUFFIX and data.exists():
        raise ConfigError(f"{path}: events: is the metadata of {data.name}; take another name")
    check_writable(path)
    with whole_file(path) as part, part.open("xb") as file:
        _put(file, how.begin(zone))

        def write(one: Detection) -> None:
            nonlocal number
            number += 1
            if how.text is None:
                kept.append(one)
            else:
                _put(file, how.text(number, one, zone))

        yield write
        try:
            _put(file, how.end(kept))
        except ConfigError as error:
            raise ConfigError(f"{path}: events: {error}") from error


def _put(file: IO[bytes], text: str | bytes) -> None:
    file.write(text.encode() if isinstance(text, str) else text)
