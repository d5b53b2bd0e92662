"""Results of units: a small JSON record of each, written after its files."""

import errno
import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from spectrod.apps.batch.output import JobOutput, write
from spectrod.apps.batch.plan import FS_MAX, FS_MIN, Count, Unit, UtcNs
from spectrod.apps.batch.result_paths import PATH, can_be_path
from spectrod.lib.errors import StorageError, storage_error
from spectrod.lib.json_text import decode_json
from spectrod.lib.text import printable

STATE_FOLDER = "state"
"""Folder of records, and of files that are being written, in the folder of the results."""
STORE_FOLDER = "archive.zarr"
"""Folder of the store of all minutes, see ``spectrod.apps.batch.store``."""
HISTORY_FOLDER = "history"
"""Folder of pyramids, see ``spectrod.apps.batch.pyramids``."""
RESERVED_NAMES = (STATE_FOLDER, STORE_FOLDER, HISTORY_FOLDER)
RECORD_BYTES_MAX = 1 << 22
"""Largest record that is read [bytes]."""
PROBLEMS_MAX = 1000
"""Most problems that a record lists."""
VERSION = 1

UnitState = Literal["done", "partial", "failed"]


FLAGS_MAX, FLAG_CHARS_MAX = 256, 200
"""Most different flags of a unit, and the longest [characters]."""
_Tally = Annotated[int, Meta(ge=0, le=1 << 53)]
_Minutes = Annotated[
    dict[Annotated[str, Meta(max_length=FLAG_CHARS_MAX)], _Tally], Meta(max_length=FLAGS_MAX)
]
_Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class OutputFile(Struct, frozen=True, kw_only=True):
    """A file of a unit.

    Attributes
    ----------
    product : str
        What it is, see ``ProductName``.
    path : str
        Its path from the folder of the results on, with ``/``.
    size : int
        [bytes]
    sha256 : str
        Of its content, hexadecimal.
    """

    product: str
    path: Annotated[str, Meta(pattern=PATH)]
    size: Count
    sha256: str


class UnitCosts(Struct, frozen=True, kw_only=True):
    """What a unit took.

    Attributes
    ----------
    wall_s, processor_s : float
        Time from start to end, and of all threads of the process and of its decoders [s].
    read_s, analyse_s, write_s : float
        Parts of the time from start to end: reading and decoding, spectra and levels, completing
        the files [s].
    memory_bytes : int
        Peak memory of the process so far, as resident [bytes].
    """

    wall_s: _Seconds = 0.0
    processor_s: _Seconds = 0.0
    read_s: _Seconds = 0.0
    analyse_s: _Seconds = 0.0
    write_s: _Seconds = 0.0
    memory_bytes: Count = 0


class UnitFindings(Struct, frozen=True, kw_only=True):
    """What tables of a unit have, for reports that need not read them.

    Attributes
    ----------
    events : int
        Events of the product ``detect``.
    flagged_minutes : dict of int
        Minutes with each flag of the product ``flags``.
    clipped_samples : int
        Of that product, of all channels.
    """

    events: _Tally = 0
    flagged_minutes: _Minutes = {}
    clipped_samples: _Tally = 0


class UnitRecord(Struct, frozen=True, kw_only=True):
    """Result of a unit.

    Attributes
    ----------
    deployment, unit : str
        Of the unit, see ``Unit.key``.
    digest : str
        See ``Unit.digest``; the result stands as long as it is the same.
    state : {"done", "partial", "failed"}
        partial: computed, but part of its input could not be read.
    begin_utc_ns : int
        Begin of the day or hour [ns].
    fs : float
        Sample rate [Hz].
    exit_code : int
        0, 65 for partial, or that of the error.
    reason : str
        Why it failed, or the first problem.
    attempts : int
        Failed attempts with this digest, one after the other; of settings that do not fit the
        samples all that the job has.
    problems : tuple of str
        Lines about input that was not read, and products without a row.
    outputs : tuple of OutputFile
        Its files; none if it failed.
    read_samples, missing_samples : int
        Samples per channel that were analysed; those missing between the first and the last.
    gaps : int
        Interruptions between the first and the last sample.
    engine : str
        What computed the spectra.
    software : str
        Name and version of the program.
    host : str
        Name of the machine.
    finished_utc_ns : int
        When it was completed [ns].
    costs : UnitCosts
    findings : UnitFindings
    v : int
        Version of this format.
    """

    deployment: str
    unit: str
    digest: str
    state: UnitState
    begin_utc_ns: UtcNs
    fs: Annotated[float, Meta(ge=FS_MIN, le=FS_MAX)]
    exit_code: Annotated[int, Meta(ge=0, le=255)] = 0
    reason: str = ""
    attempts: Count = 0
    problems: tuple[str, ...] = ()
    outputs: tuple[OutputFile, ...] = ()
    read_samples: Count = 0
    missing_samples: Count = 0
    gaps: Count = 0
    engine: str = ""
    software: str = ""
    host: str = ""
    finished_utc_ns: UtcNs = 0
    costs: UnitCosts = UnitCosts()
    findings: UnitFindings = UnitFindings()
    v: int = VERSION

    @property
    def key(self) -> str:
        """``DEPLOYMENT/NAME`` of its unit."""
        return f"{self.deployment}/{self.unit}"

    @property
    def is_computed(self) -> bool:
        """Whether it has files."""
        return self.state != "failed"


def record_name(unit: Unit) -> str:
    """Return the name of a unit's record in an output."""
    return f"{STATE_FOLDER}/records/{unit.deployment}/{unit.name}.json"


def write_record(output: JobOutput, unit: Unit, record: UnitRecord) -> None:
    """Write the record of a unit, in place of an older one; raises StorageError."""
    text = msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
    write(output, record_name(unit), text)


def read_record(output: JobOutput, unit: Unit) -> UnitRecord | None:
    """Return the record of a unit; None if there is none, or one that is not whole or not of it.

    A record that cannot be decoded is not an error: the unit is computed again.

    Raises
    ------
    StorageError
        If the file cannot be read.
    """
    name = record_name(unit)
    try:
        content = output.read(name, RECORD_BYTES_MAX)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.EFBIG:
            return None
        raise storage_error(output.place(name), error) from error
    try:
        record = parse_record(output.place(name), content)
    except StorageError:
        return None
    return record if _is_of(record, unit) else None


_FILES = {
    "millidecade": r"(_[A-Za-z0-9.-]+)?_UNIT\.nc",
    "spectra": r"_UNIT_spectra\.nc",
    "levels": r"_UNIT_levels\.(csv|nc|parquet)",
    "features": r"_UNIT_features\.(csv|nc|parquet)",
    "detect": r"_UNIT_events\.(csv|parquet)",
    "picture": r"_UNIT_ltsa\.png",
    "flags": r"_UNIT_flags\.(csv|parquet)",
}
"""Names of each product's files after that of the deployment: no two units have one of a name."""


def _is_of(record: UnitRecord, unit: Unit) -> bool:
    """Return whether a record is that of a unit, and names no files but those of such a unit."""
    return record.key == unit.key and all(_is_file_of(one, unit) for one in record.outputs)


def _is_file_of(output: OutputFile, unit: Unit) -> bool:
    ends = _FILES.get(output.product, r"(?!)").replace("UNIT", re.escape(unit.name))
    return can_be_path(output.product, unit.deployment, unit.name, output.path, ends)


def parse_record(place: str, content: bytes) -> UnitRecord:
    """Decode a record; raises StorageError with its place and the rule."""
    if len(content) > RECORD_BYTES_MAX:
        raise StorageError(f"{place}: must have at most {RECORD_BYTES_MAX} bytes")
    try:
        record = decode_json(content, UnitRecord)
    except ValueError as error:
        raise StorageError(f"{place}: is no record: {printable(str(error))}") from error
    if record.v != VERSION:
        raise StorageError(f"{place}: is a record of version {record.v}: must be {VERSION}")
    return record
