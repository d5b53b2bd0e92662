"""CSV files: a header of lines that begin with #, then one line per row."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.spectrum_batch import SpectrumBatch, without_broadband
from spectrod.formats.description import Description
from spectrod.formats.export.attributes import (
    DESCRIPTION,
    Coverage,
    elapsed_time,
    global_attributes,
    iso_time,
)
from spectrod.formats.export.export_description import decode_description
from spectrod.formats.export.export_rows import COLUMNS, Rows, batches_of, unchecked
from spectrod.formats.export.export_writer import ExportWriter, chunk_rows
from spectrod.formats.export.layout import (
    BROADBAND,
    frames_of,
    frequency_edges,
    names_of_bands,
    plain,
    row_effort_s,
)
from spectrod.lib.errors import StorageError, storage_errors
from spectrod.lib.text import reason_of

_NUMBERS = (
    "sample_index",
    "t_mono_ns",
    "effort_s",
    "gap_samples",
    "skipped_rows",
    "cut_frames",
    "discontinuity",
)
_ENGINE = "# engine: "
_END = "# end: "
_NUMBER_MAX = 64  # characters of a time, an index or another number before the values
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{9}Z", re.ASCII)
_ELAPSED = re.compile(r"-?\d{1,10}\.\d{9}", re.ASCII)
_DESCRIPTION = f"# {DESCRIPTION}: "


class CsvWriter(ExportWriter):
    """Writes a recording to a CSV file; see ``ExportWriter`` for parameters and errors.

    Values have as many digits as float32 needs to be read back exactly. A line ``# engine`` stands
    before the rows of that engine; the last line is ``# end``.
    """

    def _open(self, part: Path) -> None:
        self._file = self._stack.enter_context(closing(part.open("x", encoding="utf-8")))
        self._engine = -1
        spec = self.description.spec
        self._coverage = Coverage(self.description)
        for name, value in global_attributes(self.description, self.options.attributes).items():
            self._file.write(f"# {name}: {value if name == DESCRIPTION else json.dumps(value)}\n")
        lower, upper = frequency_edges(spec).T
        for name, about in (
            ("unit", spec.scale.unit),
            ("reference", spec.scale.reference),
            *([("broadband_unit", spec.scale.broadband_unit)] if spec.broadband else []),
            *([("frequency_hz", spec.frequencies.tolist())] if names_of_bands(spec) else []),
            ("frequency_lower_hz", lower.tolist()),
            ("frequency_upper_hz", upper.tolist()),
        ):
            self._file.write(f"# {name}: {json.dumps(about)}\n")
        has_utc = self.description.has_utc
        self._time = iso_time if has_utc else elapsed_time
        names = [
            "time" if has_utc else "elapsed_s",
            *_NUMBERS,
            *map(_quoted, value_names(self.description)),
        ]
        self._file.write(",".join(names) + "\n")

    def _write(self, rows: Rows) -> None:
        columns = rows.columns
        spec = self.description.spec
        self._coverage.add(rows)
        effort = row_effort_s(spec, frames_of(rows, spec))
        numbers = [columns.get(name, effort).tolist() for name in _NUMBERS]
        flat = _with_broadband(rows).reshape(len(rows), -1).view("<f4")
        engines = columns["engine_index"].tolist()
        for engine, utc_ns, values, *row in zip(
            engines, columns["t_utc_ns"].tolist(), flat, *numbers, strict=True
        ):
            if engine != self._engine:
                self._file.write(f"{_ENGINE}{json.dumps(self.engines[engine])}\n")
                self._engine = engine
            head = f"{self._time(utc_ns)},{','.join(map(repr, row))}"
            self._file.write(f"{head},{','.join(map(str, values))}\n")

    def _close(self) -> None:
        rest = {"rows": self.n_frames, **self._coverage.attributes(), **self._end_attributes()}
        self._file.write(f"{_END}{json.dumps(rest)}\n")
        self._file.flush()


class CsvReader:
    """Reads a recording back from a CSV file.

    Parameters
    ----------
    path : Path
        An unchanged file of ``CsvWriter``.

    Raises
    ------
    StorageError
        If it cannot be opened, or is not such a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with storage_errors(path):
            self._file = path.open(encoding="utf-8-sig")
        try:
            self._description = decode_description(self._header())
        except (OSError, ValueError) as error:
            self.close()
            raise StorageError(f"{path}: cannot be read: {error}") from error
        except StorageError as error:
            self.close()
            raise StorageError(f"{path}: {error}") from error
        self._body = self._file.tell()

    @property
    def description(self) -> Description:
        """Metadata of the whole recording."""
        return self._description

    def batches(self) -> Iterator[SpectrumBatch]:
        """Yield all rows in order, a chunk at a time.

        Raises
        ------
        StorageError
            If a line is not a row, or the file ends early.
        """
        at_once = chunk_rows(self._description)
        self._file.seek(self._body)
        lines: list[str] = []
        engine, n_rows = "", 0
        while line := self._read_line():
            if not line.startswith("#"):
                lines.append(line)
            if lines and (len(lines) == at_once or line.startswith("#")):
                n_rows += len(lines)
                yield from batches_of(self._rows(lines), self._description.spec, [engine], 0)
                lines = []
            if line.startswith(_ENGINE):
                engine = str(self._json(line, _ENGINE))
            elif line.startswith(_END):
                self._check_end(line, n_rows)
                return
        raise StorageError(f"{self.path}: ends early, after {n_rows + len(lines)} rows")

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()

    def _header(self) -> str:
        """Skip the lines before the rows; return the description in them."""
        description = ""
        while (line := self._file.readline()).startswith("#"):
            if line.startswith(_DESCRIPTION):
                description = line.removeprefix(_DESCRIPTION)
        return description

    def _read_line(self) -> str:
        try:
            return self._file.readline()
        except (OSError, ValueError) as error:
            raise StorageError(f"{self.path}: cannot be read: {error}") from error

    def _json(self, line: str, prefix: str) -> Any:
        try:
            return json.loads(line.removeprefix(prefix))
        except (ValueError, RecursionError) as error:
            raise StorageError(f"{self.path}: {prefix.strip()} {reason_of(error)}") from error

    def _check_end(self, line: str, n_rows: int) -> None:
        end = self._json(line, _END)
        if not isinstance(end, dict) or end.get("rows") != n_rows:
            raise StorageError(
                f"{self.path}: has {n_rows} rows: another number than its end states"
            )

    def _rows(self, lines: list[str]) -> Rows:
        spec = self._description.spec
        n_before = 1 + len(_NUMBERS)
        try:
            fields = [line.split(",", n_before) for line in lines]
            _check_lengths(text for row in fields for text in row[:n_before])
            before = zip(*(row[:n_before] for row in fields), strict=True)
            numbers: dict[str, Any] = dict(zip(("time", *_NUMBERS), before, strict=True))
            read = _utc_ns if self._description.has_utc else _elapsed_ns
            numbers["t_utc_ns"] = [read(text) for text in numbers["time"]]
            numbers["engine_index"] = [0] * len(lines)
            columns = {
                name: np.array(numbers[name]).astype(dtype) for name, dtype in COLUMNS.items()
            }
            values = np.loadtxt([row[-1] for row in fields], np.float32, delimiter=",", ndmin=2)
            if spec.output == "complex":
                values = values.view(np.complex64)
            values = values.reshape(len(lines), spec.n_signals, spec.n_computed)
            values, broadband = without_broadband(values, spec)
            return Rows(values, columns, unchecked(values.shape[:2]), broadband)
        except (IndexError, OverflowError, ValueError) as error:
            raise StorageError(f"{self.path}: not rows of spectra: {error}") from error


def _check_lengths(texts: Iterable[str]) -> None:
    """Reject long numbers: NumPy makes all strings of a column as long as the longest."""
    longest = max(map(len, texts))
    if longest > _NUMBER_MAX:
        raise ValueError(f"a number of {longest} characters: must have at most {_NUMBER_MAX}")


def value_names(description: Description) -> list[str]:
    """Return the names of the value columns: channel, frequency, and real or imaginary part.

    Fractional-octave bands have their names as frequencies, other bands and bins numbers [Hz]. The
    broadband value of a channel follows its bands.
    """
    spec = description.spec
    parts = (":re", ":im") if spec.output == "complex" else ("",)
    frequencies = [*(names_of_bands(spec) or map(repr, spec.frequencies.tolist()))]
    if spec.broadband:
        frequencies.append(BROADBAND)
    return [f"{c}:{f}{part}" for c in description.signals for f in frequencies for part in parts]


def _with_broadband(rows: Rows) -> NDArray[Any]:
    if rows.broadband is None:
        return np.ascontiguousarray(rows.values)
    return np.concatenate([rows.values, rows.broadband[..., np.newaxis]], axis=2)


def open_csv(path: Path) -> CsvReader:
    """Open a CSV file that ``CsvWriter`` made; see ``CsvReader`` for errors."""
    return CsvReader(path)


def _utc_ns(text: str) -> int:
    """Parse a time in the format of ``iso_time``; raises ValueError."""
    if not _TIME.fullmatch(text):
        raise ValueError(f"time {text!r}: must be as 2026-11-20T21:47:03.123456789Z")
    return int(np.datetime64(text[:-1], "ns").astype(np.int64))


def _elapsed_ns(text: str) -> int:
    """Parse a time in the format of ``elapsed_time``; raises ValueError."""
    if not _ELAPSED.fullmatch(text):
        raise ValueError(f"time {text!r}: must be as 12.500000000")
    return int(text.replace(".", ""))


def _quoted(text: str) -> str:
    """Return text as a CSV field (RFC 4180), in one line."""
    text = " ".join(plain(text).splitlines())
    if any(character in text for character in ',"'):
        return '"' + text.replace('"', '""') + '"'
    return text
