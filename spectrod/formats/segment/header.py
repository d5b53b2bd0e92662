"""A segment's header: metadata of all rows, as JSON that can be read without spectrod."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from spectrod.dsp.row_grid import as_number
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.description import Description, StoredDescription, StoredVersion, spec_fields
from spectrod.formats.segment.frame import HEAD_BYTES, NUMBER_MAX
from spectrod.lib.errors import ConfigError, StorageError
from spectrod.lib.json_text import decode_json

SCHEMA = "spectrod.segment"
VERSION = 1
_BLOCK_BYTES = 4096
HEADERS_BYTES_MIN = 2 * _BLOCK_BYTES
"""Length of the two headers before any row."""
_ROW_MAX_S = 1e9
TIMES_BYTES = 3 * 8
"""Size of a row's sample index and two times."""


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a segment in its recording.

    Attributes
    ----------
    recording : int
        A random number below 2^64, the same in all segments of a recording.
    number : int
        Number of the segment, from 0.
    previous : str
        Name of the previous file; empty for the first.
    first_row : int
        Number of the first row in the recording.
    """

    recording: int
    number: int = 0
    previous: str = ""
    first_row: int = 0


@dataclass(frozen=True, slots=True)
class Header:
    """Content of a segment's header.

    Attributes
    ----------
    description : Description
        Description of the recording.
    place : Place
        Position of this segment in the recording.
    created_utc_ns, created_mono_ns : int
        UTC and the monotonic clock at the start of the segment, read together [ns].
    file_name : str
        Name with which the recorder opened the file.
    """

    description: Description
    place: Place
    created_utc_ns: int
    created_mono_ns: int
    file_name: str = ""


def encode_header(header: Header) -> bytes:
    """Encode a header as JSON.

    Raises
    ------
    ConfigError
        If the settings contain a value that JSON cannot represent.
    """
    about, place, spec = header.description, header.place, header.description.spec
    document = {
        "schema": SCHEMA,
        "v": VERSION,
        "recording": f"{place.recording:016x}",
        "segment": place.number,
        "previous": place.previous,
        "first_row": place.first_row,
        "recording_name": about.recording,
        "file_name": header.file_name,
        "created_utc_ns": header.created_utc_ns,
        "created_mono_ns": header.created_mono_ns,
        "software": about.software,
        "source": about.source,
        "signals": about.signals,
        "cal_id": about.cal_id,
        "dtype": value_dtype(spec),
        "shape": [spec.n_signals, spec.n_values],
        "row_samples": as_number(spec.row_step),
        "unit": spec.scale.unit,
        "reference": spec.scale.reference,
        "enbw_hz": spec.enbw_hz,
        "frequency": _frequency(spec),
        "spec": spec_fields(spec),
        "settings": about.settings,
        "attributes": about.attributes,
    }
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"settings of {about.source!r}: must fit in JSON: {error}") from error
    # A file name may contain invalid UTF-8, which becomes question marks.
    return text.encode(errors="replace")


class _HeaderVersion(StoredVersion, frozen=True, kw_only=True):
    """The fields that headers of all versions have."""

    schema: Literal["spectrod.segment"]


_Number = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
_Ns = Annotated[int, msgspec.Meta(ge=-NUMBER_MAX, le=NUMBER_MAX)]


class _HeaderFields(StoredDescription, frozen=True, kw_only=True):
    """The fields of a header's JSON that are read back; the others follow from these."""

    recording: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    segment: _Number
    previous: str
    first_row: _Number
    created_utc_ns: _Ns
    created_mono_ns: _Ns


def decode_header(payload: bytes) -> Header:
    """Read a header back.

    Raises
    ------
    StorageError
        If it is not the JSON of a header, or of another version.
    """
    try:
        version = decode_json(payload, _HeaderVersion).v
        if version != VERSION:
            raise StorageError(f"header of version {version}: must be {VERSION}")
        read = decode_json(payload, _HeaderFields)
        about = read.description()
        _check_row(about.spec)
        place = Place(int(read.recording, 16), read.segment, read.previous, read.first_row)
    except (TypeError, ValueError) as error:
        raise StorageError(f"header that cannot be read: {error}") from error
    return Header(about, place, read.created_utc_ns, read.created_mono_ns)


def _check_row(spec: SpectrumSpec) -> None:
    """Raise StorageError if rows are too long for times."""
    row_s = row_samples(spec) / spec.fs
    if row_s > _ROW_MAX_S:
        rule = f"must be at most {_ROW_MAX_S:g} s"
        raise StorageError(f"header that cannot be read: a row of {row_s:g} s: {rule}")


def value_dtype(spec: SpectrumSpec) -> str:
    """Return the element type of values, as NumPy's dtype string."""
    return "<c8" if spec.output == "complex" else "<f4"


def row_samples(spec: SpectrumSpec) -> int:
    """Return the number of samples from one row to the next, rounded down."""
    return int(spec.row_step)


def row_bytes(spec: SpectrumSpec) -> int:
    """Return the size of a row in a record, including its index and times [bytes]."""
    n_values = spec.n_signals * spec.n_computed
    return n_values * (8 if spec.output == "complex" else 4) + TIMES_BYTES


def padded(payload: bytes) -> bytes:
    """Pad a header's JSON with spaces, so that its record ends at a multiple of 4 KiB."""
    return payload + b" " * (-(HEAD_BYTES + len(payload)) % _BLOCK_BYTES)


def _frequency(spec: SpectrumSpec) -> dict[str, Any]:
    """Return the frequencies of values [Hz]: a rule for bins, a table for bands."""
    bands = spec.band_table
    if bands is None:
        first = float(spec.bin_frequencies[0])
        return {"axis": "bins", "first_hz": first, "step_hz": spec.delta_f}
    return {
        "axis": "bands",
        "lower_hz": bands.lower.tolist(),
        "centre_hz": bands.centre.tolist(),
        "upper_hz": bands.upper.tolist(),
        **({"names": bands.names, "unresolved": bands.unresolved} if bands.names else {}),
    }
