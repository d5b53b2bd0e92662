"""Origin of spectrod's files: the recording and the source that a file names in itself."""

import datetime as dt
import os
import re
from dataclasses import dataclass
from typing import Final

import msgspec

from spectrod.formats.segment.frame import HEAD_BYTES, Kind, parse_head
from spectrod.formats.sound.notes import NO_RECORDING
from spectrod.formats.sound.wav_header import HEADER_BYTES
from spectrod.lib.json_text import decode_json
from spectrod.lib.output_formats import load, recorded_format

_HEADER_BYTES_MAX: Final = 1 << 24
"""Limit of a segment's header; a longer one is not read."""
_RECORDS_MAX: Final = 8
"""Limit of records before the first rows: two headers and some engines."""
_FLAC_BYTES: Final = 1 << 16
"""Bytes to read of a FLAC file, which include its comment."""
VALUES_ORIGIN: Final = "# spectrod_origin: "
"""Begin of the first line of a file of measurements that the daemon records; JSON follows."""
_HDF5: Final = b"\x89HDF"
_VALUES_BYTES: Final = 4096
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_STREAMINFO_BEGIN: Final = 8
"""Begin of the first block's content in a FLAC file."""
_LENGTH_MAX_S: Final = 1e10
_COMMENT: Final = re.compile(
    rb"Recorded at (\d\d:\d\d:\d\d)\.\d{1,9} (\d\d/\d\d/\d{4}) \(UTC\) by [^\n]{1,400}? from "
    rb"(\S{1,800})\.(?: (?:Recording (\S{1,800}), file|File) (\S{1,800})\.(?=\s))?"
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a file.

    Attributes
    ----------
    source : str
        Name of the source.
    recording : str or None
        Name of the daemon's recording that wrote it; empty if no recording did; None if the file
        does not say, as files of older versions.
    file_name : str
        Name with which the recorder opened the file; empty if the file does not say.
    begin_utc_ns : int or None
        UTC of the first row or sample, for sound in whole seconds [ns since 1970]; None if unknown.
    length_s : float or None
        Length of a sound file [s]; None if it does not say, and of other files.
    """

    source: str
    recording: str | None
    file_name: str
    begin_utc_ns: int | None
    length_s: float | None = None


def read_origin(descriptor: int, suffix: str) -> Origin | None:
    """Read the origin of an open file; None if spectrod did not write it.

    Parameters
    ----------
    descriptor : int
        Descriptor of a regular file; its position is not used.
    suffix : str
        Suffix of a format that the daemon records continuously.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    how = recorded_format(suffix)
    found: Origin | None = load(how.origin)(descriptor)
    return found


class _OriginFields(msgspec.Struct):
    """The part of a segment's header that gives its origin."""

    source: str
    recording_name: str | None = None
    file_name: str = ""


class _ValuesOrigin(msgspec.Struct):
    """The first line of a CSV file of measurements."""

    recording: str
    source: str
    file_name: str


def of_segment(descriptor: int) -> Origin | None:
    """Read the origin of a segment, see ``read_origin``."""
    framed = parse_head(os.pread(descriptor, HEAD_BYTES, 0))
    if framed is None or framed.head.kind != Kind.HEADER or framed.n_bytes > _HEADER_BYTES_MAX:
        return None
    payload = os.pread(descriptor, framed.payload_bytes, HEAD_BYTES)
    if not framed.holds(payload):
        return None
    try:
        found = decode_json(payload, _OriginFields)
    except ValueError:
        return None
    begin = None if found.recording_name is not None else _begin_of_rows(descriptor)
    return Origin(found.source, found.recording_name, found.file_name, begin)


def _begin_of_rows(descriptor: int) -> int | None:
    """Return the UTC of a segment's first row [ns]."""
    offset = 0
    for _ in range(_RECORDS_MAX):
        framed = parse_head(os.pread(descriptor, HEAD_BYTES, offset))
        if framed is None:
            return None
        if framed.head.kind == Kind.ROWS:
            return framed.head.t_utc_ns
        offset += framed.n_bytes
    return None


def of_wav(descriptor: int) -> Origin | None:
    """Read the origin of a WAV file, see ``read_origin``."""
    page = os.pread(descriptor, HEADER_BYTES, 0)
    source, recording = _guano(page, "spectrod|Source"), _guano(page, "spectrod|Recording")
    if source is None:
        return None
    known = "" if recording == NO_RECORDING else recording
    name = _guano(page, "Original Filename") or ""
    begin, length = _guano(page, "Timestamp"), _guano(page, "Length")
    return Origin(source, known, name, _utc_ns(begin or ""), _seconds(length or ""))


def of_values(descriptor: int) -> Origin | None:
    """Read the origin of a file of measurements, see ``read_origin``.

    It is the first line of a file of lines, and the last one behind the content of NetCDF.
    """
    page, start = os.pread(descriptor, _VALUES_BYTES, 0), VALUES_ORIGIN.encode()
    if page.startswith(_HDF5):
        size = os.fstat(descriptor).st_size
        page = os.pread(descriptor, _VALUES_BYTES, max(0, size - _VALUES_BYTES))
        page = page[page.rfind(start) :]
    line = page.partition(b"\n")[0]
    try:
        found = decode_json(line.removeprefix(start), _ValuesOrigin)
    except ValueError:
        return None
    is_ours = line.startswith(start)
    return Origin(found.source, found.recording, found.file_name, None) if is_ours else None


def _guano(page: bytes, key: str) -> str | None:
    found = re.search(rb"^%s: ([^\n]*)$" % re.escape(key.encode()), page, re.MULTILINE)
    return found[1].decode(errors="replace") if found else None


def of_flac(descriptor: int) -> Origin | None:
    """Read the origin of a FLAC file, see ``read_origin``."""
    start = os.pread(descriptor, _FLAC_BYTES, 0)
    found = _COMMENT.search(start) if start.startswith(b"fLaC") else None
    if found is None:
        return None
    clock, day, source, recording, name = (
        (one or b"").decode(errors="replace") for one in found.groups()
    )
    try:
        begin = dt.datetime.strptime(f"{day} {clock}", "%d/%m/%Y %H:%M:%S").replace(tzinfo=dt.UTC)
    except ValueError:
        return None
    length = _flac_seconds(start[_STREAMINFO_BEGIN:])
    return Origin(source, recording if name else None, name, _ns(begin), length)


def _seconds(text: str) -> float | None:
    try:
        length = float(text)
    except ValueError:
        return None
    return length if 0.0 < length < _LENGTH_MAX_S else None


def _flac_seconds(streaminfo: bytes) -> float | None:
    """Return the length of a FLAC file; None if it states none.

    In STREAMINFO (RFC 9639, section 8.2) 20 bits of rate, 3 of channels, 5 of bits and 36 of
    samples begin at byte 10.
    """
    packed = int.from_bytes(streaminfo[10:18], "big")
    rate, n_samples = packed >> 44, packed & ((1 << 36) - 1)
    return n_samples / rate if rate and n_samples else None


def _utc_ns(text: str) -> int | None:
    try:
        begin = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return _ns(begin) if begin.tzinfo else None


def _ns(begin: dt.datetime) -> int:
    return (begin - _EPOCH) // dt.timedelta(microseconds=1) * 1000
