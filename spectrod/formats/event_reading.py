"""Reads files of events: those of ``event_files``, and others of Raven, Audacity and SigMF.

The files may be anybody's: all that is read is bounded and checked.
"""

import codecs
import csv
import datetime as dt
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from spectrod.formats.export.confined.confined_messages import Question
from spectrod.formats.export.confined.confined_process import FileProcess
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.json_text import decode_json
from spectrod.lib.optional_packages import need_elsewhere
from spectrod.lib.regular_files import read_regular
from spectrod.lib.text import printable

FILE_BYTES_MAX: Final = 1 << 25
"""Largest file of events [bytes]."""
FILE_EVENTS_MAX: Final = 100_000
"""Events of a file."""
TEXT_MAX: Final = 300
"""Text of an event [characters]."""
_PROCESS_FILES_MAX = 100
_SHOWN_MAX = 60
_TIME_MAX_S = 1e10
_FREQUENCY_MAX_HZ = 1e15
_NO_LIMIT = -1.0
"""Of a frequency, in labels of Audacity."""
_YEARS = range(1970, 2200)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class ReadEvent(msgspec.Struct, frozen=True):
    """An event of a file.

    Attributes
    ----------
    begin_utc_ns : int or None
        UTC of its begin [ns since 1970]; None where the file has no time of the clock.
    begin_s : float
        From the begin of the recording that the file of events is about [s].
    duration_s : float
        Length, 0 or more [s].
    channel : str, int or None
        Its name, or its number from 1 on; None: of no channel alone.
    f_min_hz, f_max_hz : float or None
        Its band; both or none [Hz].
    file : str
        The recording in which it begins; empty if the file does not say it.
    text : str
        What else is known of it, for people.
    """

    begin_utc_ns: int | None
    begin_s: float
    duration_s: float
    channel: str | int | None
    f_min_hz: float | None
    f_max_hz: float | None
    file: str
    text: str


class ParquetRows:
    """Reads Parquet files of one origin, in processes that can do nothing else.

    To start a process takes longer than to read most files, so one reads up to 100; after a file
    that is wrong the next one has a new process. To be closed. Thread: one at a time.
    """

    def __init__(self) -> None:
        self._process: FileProcess | None = None
        self._n_files = 0

    def json(self, content: bytes) -> bytes:
        """Return the rows of the content of a file as JSON; see ``parse_events`` for errors."""
        need_elsewhere("arro3", "parquet")
        if self._process is None:
            self._process, self._n_files = FileProcess("parquet"), 0
        self._n_files += 1
        try:
            question = Question("decode", "", len(content), FILE_EVENTS_MAX)
            answer = self._process.ask(question, content)
            rows = self._process.array(answer.n_bytes)
        except ValueError:
            self.close()
            raise
        if self._n_files == _PROCESS_FILES_MAX:
            self.close()
        return rows

    def close(self) -> None:
        """Let the process end. Idempotent."""
        if self._process is not None:
            self._process.close()
            self._process = None


def read_events(path: Path) -> list[ReadEvent]:
    """Read the events of a file; see ``parse_events``.

    Raises
    ------
    ConfigError
        If the name is of no format.
    InputError
        If the file cannot be read, or ``parse_events`` raises it.
    """
    _reader_of(path)
    try:
        content = read_regular(path, FILE_BYTES_MAX)
    except OSError as error:
        raise InputError(f"{printable(path)}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{printable(path)}: {error}") from error
    return parse_events(path, content)


def parse_events(path: Path, content: bytes, parquet: ParquetRows | None = None) -> list[ReadEvent]:
    """Return the events of the content of a file.

    Parameters
    ----------
    path : Path
        The end of its name is the format: ``.csv``, ``.json`` and ``.parquet`` as ``spectrod
        detect`` writes them, ``.txt`` with a header a selection table of Raven, without one labels
        of Audacity, ``.sigmf-meta`` metadata of SigMF, whose annotations are the events.
    content : bytes
        At most ``FILE_BYTES_MAX``; text is UTF-8.
    parquet : ParquetRows, optional
        Reads Parquet; None: a process of its own.

    Returns
    -------
    events : list of ReadEvent
        In the order of the file.

    Raises
    ------
    ConfigError
        If the name has another end.
    InputError
        If the content is too large, has too many events, or is not of its format; with the line and
        the rule.
    UnavailableError
        If the format needs a package that is not installed, or no process can be started.
    """
    read = _reader_of(path)
    if len(content) > FILE_BYTES_MAX:
        raise InputError(f"{printable(path)}: must have at most {FILE_BYTES_MAX} bytes")
    try:
        if parquet is not None and read is _from_parquet:
            return _bounded(_from_json(parquet.json(content)))
        return _bounded(read(content))
    except ValueError as error:
        raise InputError(f"{printable(path)}: {printable(str(error), TEXT_MAX)}") from error


def _reader_of(path: Path) -> Callable[[bytes], Iterator[ReadEvent]]:
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise ConfigError(f"{printable(path)}: events: the name must end with {_SUFFIXES}")
    return read


def _bounded(events: Iterator[ReadEvent]) -> list[ReadEvent]:
    found: list[ReadEvent] = []
    for one in events:
        if len(found) == FILE_EVENTS_MAX:
            raise ValueError(f"must have at most {FILE_EVENTS_MAX} events")
        found.append(one)
    return found


def _lines(content: bytes) -> list[str]:
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError("must be UTF-8") from None


_Fields = Mapping[str, Any]
_Numbered = Iterable[tuple[int, _Fields]]
_Made = TypeVar("_Made")


def _made(
    items: _Numbered, make: Callable[[_Fields], _Made], what: str = "line"
) -> Iterator[_Made]:
    for number, fields in items:
        try:
            yield make(fields)
        except ValueError as error:
            raise ValueError(f"{what} {number}: {error}") from None


def _cells(lines: list[str], dialect: type[csv.Dialect], needed: tuple[str, ...]) -> _Numbered:
    """Yield the number of each line after the first with its cells by the names of the columns."""
    rows = csv.reader(lines, dialect)
    try:
        names = next(rows, [])
        if missing := [name for name in needed if name not in names]:
            raise ValueError(f"line 1: must have the column {missing[0]!r}")
        for row in rows:
            if row:
                yield rows.line_num, dict(zip(names, row, strict=False))
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from None


class _Tabs(csv.excel_tab):
    """Cells between tabs, in which quotation marks are characters as others."""

    quoting = csv.QUOTE_NONE


def _from_csv(content: bytes) -> Iterator[ReadEvent]:
    cells = _cells(_lines(content), csv.excel, ("begin_s", "duration_s"))
    return _made(cells, _of_fields)


def _from_json(content: bytes) -> Iterator[ReadEvent]:
    return _made(enumerate(decode_json(content, list[dict[str, Any]]), 1), _of_fields, "event")


def _from_parquet(content: bytes) -> Iterator[ReadEvent]:
    """Yield the events of rows, which a process reads that can do nothing else."""
    with closing(ParquetRows()) as parquet:
        return _from_json(parquet.json(content))


def _of_fields(fields: _Fields) -> ReadEvent:
    """Return the event of the fields of ``event_files.fields_of``; empty and missing are alike."""
    time = fields.get("begin_utc") or fields.get("begin") or None
    low, high = _band(fields, "f_min_hz", "f_max_hz")
    return ReadEvent(
        begin_utc_ns=None if time is None else _utc_ns(time),
        begin_s=_needed(fields, "begin_s"),
        duration_s=_length(_needed(fields, "duration_s")),
        channel=_shown(fields, "channel", TEXT_MAX) or None,
        f_min_hz=low,
        f_max_hz=high,
        file=_shown(fields, "file", TEXT_MAX),
        text=_text_of_fields(fields),
    )


def _text_of_fields(fields: _Fields) -> str:
    parts = [name] if (name := _shown(fields, "name", _SHOWN_MAX)) else []
    if (level := _number(fields, "level", 1e9)) is not None:
        parts.append(f"{level:.1f} {_shown(fields, 'unit', _SHOWN_MAX)}".rstrip())
    if (over_db := _number(fields, "over_floor_db", 1e9)) is not None:
        parts.append(f"{over_db:.1f} dB over the floor")
    if (peak_hz := _number(fields, "frequency_hz", _FREQUENCY_MAX_HZ)) is not None:
        parts.append(f"peak at {peak_hz:.0f} Hz")
    if pulses := _shown(fields, "pulses", _SHOWN_MAX):
        parts.append(f"{pulses} pulses")
    return ", ".join(parts)


def _shown(fields: _Fields, name: str, most: int) -> str:
    """Return what a field shows, in at most so many characters; empty where there is nothing."""
    given = fields.get(name)
    return printable(str(given), most) if given else ""


def _from_text(content: bytes) -> Iterator[ReadEvent]:
    lines = _lines(content)
    return _from_raven(lines) if _RAVEN_BEGIN in (lines or [""])[0] else _from_audacity(lines)


_RAVEN_BEGIN, _RAVEN_END = "Begin Time (s)", "End Time (s)"
_RAVEN_TEXTS = ("Annotation", "Species", "Label")


def _from_raven(lines: list[str]) -> Iterator[ReadEvent]:
    return _made(_selections(lines), _of_selection)


def _selections(lines: list[str]) -> _Numbered:
    seen: set[str] = set()
    for number, cells in _cells(lines, _Tabs, (_RAVEN_BEGIN, _RAVEN_END)):
        selection = cells.get("Selection", str(number))
        if selection not in seen:  # it has a line for each of its views
            seen.add(selection)
            yield number, cells


def _of_selection(cells: _Fields) -> ReadEvent:
    begin_s = _needed(cells, _RAVEN_BEGIN)
    channel = _number(cells, "Channel", 1 << 16)
    low, high = _band(cells, "Low Freq (Hz)", "High Freq (Hz)")
    peak_hz = _number(cells, "Peak Freq (Hz)", _FREQUENCY_MAX_HZ)
    texts = [cells.get(name, "") for name in _RAVEN_TEXTS]
    texts.append("" if peak_hz is None else f"peak at {peak_hz:.0f} Hz")
    return ReadEvent(
        begin_utc_ns=None,
        begin_s=begin_s,
        duration_s=_length(_needed(cells, _RAVEN_END) - begin_s),
        channel=None if channel is None else int(channel),
        f_min_hz=low,
        f_max_hz=high,
        file=printable(cells.get("Begin Path") or cells.get("Begin File") or "", TEXT_MAX),
        text=printable(", ".join(filter(None, texts)), TEXT_MAX),
    )


def _from_audacity(lines: list[str]) -> Iterator[ReadEvent]:
    return _made(_labels(lines), _of_label)


def _labels(lines: list[str]) -> _Numbered:
    """Yield labels; a line that begins with a backslash has the frequencies of the one before."""
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("\\"):
            continue
        cells = dict(zip(("begin", "end", "label"), line.split("\t"), strict=False))
        if number < len(lines) and lines[number].startswith("\\\t"):
            cells |= zip(("low", "high"), lines[number].split("\t")[1:], strict=False)
        yield number, cells


def _of_label(cells: _Fields) -> ReadEvent:
    begin_s = _needed(cells, "begin")
    duration_s = _length(_needed(cells, "end") - begin_s)
    low, high = _band(cells, "low", "high")
    text = printable(cells.get("label", ""), TEXT_MAX)
    return ReadEvent(None, begin_s, duration_s, None, low, high, "", text)


_SIGMF_COUNT_MAX: Final = 1 << 52
_SIGMF_FS_MAX: Final = 1e12
_SigmfItems = list[dict[str, Any]]


class _Sigmf(msgspec.Struct, frozen=True):
    """The fields of metadata of SigMF that are read."""

    of_all: dict[str, Any] = msgspec.field(name="global")
    captures: _SigmfItems = msgspec.field(default_factory=list)
    annotations: _SigmfItems = msgspec.field(default_factory=list)


def _from_sigmf(content: bytes) -> Iterator[ReadEvent]:
    """Yield the events of annotations; UTC is that of the capture in which one begins."""
    found = decode_json(content.removeprefix(codecs.BOM_UTF8), _Sigmf)
    fs = _number(found.of_all, "core:sample_rate", _SIGMF_FS_MAX)
    if found.annotations and (fs is None or fs <= 0.0):
        raise ValueError("core:sample_rate: must be a number above 0")
    offset = int(_number(found.of_all, "core:offset", _SIGMF_COUNT_MAX) or 0)
    captures = list(_made(enumerate(found.captures, 1), _sigmf_capture, "capture"))
    captures.sort(key=lambda one: one[0])

    def make(fields: _Fields) -> ReadEvent:
        return _of_annotation(fields, captures, fs or 1.0, offset)

    return _made(enumerate(found.annotations, 1), make, "annotation")


def _sigmf_capture(fields: _Fields) -> tuple[int, int | None]:
    """Return the first sample of a capture, and its UTC [ns since 1970]."""
    time = fields.get("core:datetime")
    return _sigmf_count(fields, "core:sample_start"), None if time is None else _utc_ns(time)


def _sigmf_count(fields: _Fields, name: str) -> int:
    value = _number(fields, name, _SIGMF_COUNT_MAX)
    if value is None or value < 0 or value != int(value):
        raise ValueError(f"{name}: must be a whole number from 0 to {_SIGMF_COUNT_MAX}")
    return int(value)


def _of_annotation(
    fields: _Fields, captures: list[tuple[int, int | None]], fs: float, offset: int
) -> ReadEvent:
    start = _sigmf_count(fields, "core:sample_start")
    count = _sigmf_count(fields, "core:sample_count") if "core:sample_count" in fields else 0
    low, high = _band(fields, "core:freq_lower_edge", "core:freq_upper_edge")
    k = bisect_right(captures, start, key=lambda one: one[0]) - 1
    first, utc_ns = captures[k] if k >= 0 else (0, None)
    texts = [str(fields.get(f"core:{name}") or "") for name in ("label", "comment")]
    return ReadEvent(
        begin_utc_ns=None if utc_ns is None else utc_ns + round((start - first) * 1e9 / fs),
        begin_s=max(0, start - offset) / fs,
        duration_s=count / fs,
        channel=None,
        f_min_hz=low,
        f_max_hz=high,
        file="",
        text=printable(", ".join(filter(None, texts)), TEXT_MAX),
    )


def _number(fields: _Fields, name: str, most: float) -> float | None:
    """Return a number of at most some magnitude; None where it is empty or missing."""
    given = fields.get(name)
    if given is None or given == "":
        return None
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not abs(value) <= most:
        shown = printable(repr(given), _SHOWN_MAX)
        raise ValueError(f"{name}={shown}: must be a number within {most:g}")
    return value


def _needed(fields: _Fields, name: str) -> float:
    value = _number(fields, name, _TIME_MAX_S)
    if value is None:
        raise ValueError(f"{name}: must be a number")
    return value


def _length(duration_s: float) -> float:
    if duration_s < 0.0:
        raise ValueError(f"duration {duration_s:g} s: must be 0 or more")
    return duration_s


def _band(fields: _Fields, low: str, high: str) -> tuple[float | None, float | None]:
    """Return the ends of a band; None of a band that the file leaves open."""
    f_min_hz = _number(fields, low, _FREQUENCY_MAX_HZ)
    f_max_hz = _number(fields, high, _FREQUENCY_MAX_HZ)
    if f_min_hz is None or f_max_hz is None or _NO_LIMIT in {f_min_hz, f_max_hz}:
        return None, None
    if f_max_hz < f_min_hz:
        raise ValueError(f"{high}={f_max_hz:g}: must be at least {low}={f_min_hz:g}")
    return f_min_hz, f_max_hz


def _utc_ns(given: Any) -> int:
    """Return UTC of an ISO 8601 time with its zone, to the microsecond [ns since 1970]."""
    try:
        time = dt.datetime.fromisoformat(str(given))
    except ValueError:
        time = None
    if time is None or time.tzinfo is None or time.year not in _YEARS:
        shown = printable(repr(given), _SHOWN_MAX)
        rule = f"must be {_YEARS[0]} to {_YEARS[-1]} with a zone, as in 2026-05-02T04:00:00Z"
        raise ValueError(f"begin {shown}: {rule}")
    return (time - _EPOCH) // dt.timedelta(microseconds=1) * 1000


_READERS: Final[dict[str, Callable[[bytes], Iterator[ReadEvent]]]] = {
    ".csv": _from_csv,
    ".json": _from_json,
    ".txt": _from_text,
    ".sigmf-meta": _from_sigmf,
    ".parquet": _from_parquet,
}
_SUFFIXES: Final = ", ".join(_READERS)
