"""Writers and readers of formats that hold named arrays with attributes."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.value_names import values_name
from spectrod.formats.description import Description
from spectrod.formats.export.attributes import (
    CHECKED_ROWS,
    DESCRIPTION,
    Coverage,
    decode_engines,
    encode_engines,
    global_attributes,
)
from spectrod.formats.export.export_description import decode_description
from spectrod.formats.export.export_rows import COLUMNS, Rows, batches_of, unchecked
from spectrod.formats.export.export_writer import CHUNK_BYTES, ExportWriter, chunk_rows
from spectrod.formats.export.layout import (
    BROADBAND,
    CONDITIONS,
    ENGINES,
    Variable,
    columns,
    variables,
)
from spectrod.formats.export.site import with_site
from spectrod.lib.errors import StorageError

_CHUNK_NUMBERS = 4096
PIECE_BYTES_MAX = 80_000_000
"""Limit of a row or a chunk that is read: a file of 1 MB may unpack to a thousand times that."""

_DAMAGE = (LookupError, OSError, OverflowError, RuntimeError, TypeError, ValueError)
"""Exceptions that libraries raise for damaged files."""


class ArrayFile(Protocol):
    """A file of arrays that is being written."""

    def create(self, variable: Variable, chunk: tuple[int, ...], row: tuple[int, ...]) -> None:
        """Add an array: complete, or empty with this shape of rows; stored in chunks."""

    def append(self, parts: dict[str, NDArray[Any]]) -> None:
        """Append rows to all growing arrays."""

    def annotate(self, attributes: dict[str, Any]) -> None:
        """Set attributes of the file, text or numbers."""

    def close(self) -> None:
        """Write the remaining data. Raises OSError if a write failed."""


@dataclass(frozen=True, slots=True)
class Form:
    """Shape and type of a stored array, known before its data are read.

    Attributes
    ----------
    shape : tuple of int
        Shape, rows first.
    dtype : dtype
        Type of the elements.
    piece_bytes : int
        Size of the unit that is unpacked at once: a row, or a chunk.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    piece_bytes: int


class Shelf(Protocol):
    """A file of arrays that is being read.

    Damage raises LookupError, OSError, OverflowError, RuntimeError, TypeError or ValueError.
    """

    def text(self, name: str) -> str:
        """Return an attribute of the file; see ``GridReader`` for errors."""

    def form(self, name: str) -> Form:
        """Return shape and type of an array without its data; see ``GridReader`` for errors."""

    def read(self, name: str, first: int, past: int) -> NDArray[Any]:
        """Return some rows of an array, fewer at its end; see ``GridReader`` for errors."""

    def close(self) -> None:
        """Close the file."""


class GridWriter(ExportWriter):
    """Writes recordings to a store; see ``ExportWriter`` for parameters and errors."""

    def _open(self, part: Path) -> None:
        self._store = self._open_store(part)
        about = self.description
        self._coverage = Coverage(about)
        attributes = global_attributes(about, self.options.attributes)
        for variable in with_site(variables(about), attributes, about.source):
            self._store.create(variable, *self._chunk_and_row(variable))
        self._store.annotate(attributes)

    @abstractmethod
    def _open_store(self, part: Path) -> ArrayFile:
        """Make the store; push cleanup for errors on ``self._stack``."""

    def _write(self, rows: Rows) -> None:
        self._store.append(columns(rows, self.description.spec))
        self._coverage.add(rows)

    def _close(self) -> None:
        self._store.annotate(self._coverage.attributes() | self._end_attributes())
        self._store.annotate({CHECKED_ROWS: self._coverage.checked_rows})
        self._store.annotate({ENGINES: encode_engines(self.engines)})
        self._store.close()

    def _chunk_and_row(self, variable: Variable) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shapes of a chunk (rows that are read together) and of a row."""
        if variable.data is not None:
            return variable.data.shape, variable.data.shape[1:]
        row: tuple[int, ...]
        spec = self.description.spec
        if variable.name in {BROADBAND, CONDITIONS}:
            row = (spec.n_signals,)
            return (max(1, _CHUNK_NUMBERS // spec.n_signals), *row), row
        if variable.name != values_name(spec):
            row = (2,) if len(variable.dims) == 2 else ()
            return (_CHUNK_NUMBERS, *row), row
        row = (spec.n_signals, spec.n_values)
        # A chunk of a large row holds as many signals as fit: a chunk may be a file of its own.
        n_signals = min(spec.n_signals, max(1, CHUNK_BYTES // (4 * spec.n_values)))
        return (self._chunk_rows, n_signals, spec.n_values), row


class GridReader:
    """Reads recordings from a shelf.

    Parameters
    ----------
    path : Path
        Path of the file, for errors.
    open_shelf : callable
        Opens the shelf.

    Raises
    ------
    StorageError
        If it cannot be opened, or is not a recording of spectrod.
    """

    def __init__(self, path: Path, open_shelf: Callable[[Path], Shelf]) -> None:
        self.path = path
        try:
            self._shelf = open_shelf(path)
        except _DAMAGE as error:
            raise self._unreadable(error) from error
        try:
            self._description = decode_description(self._shelf.text(DESCRIPTION))
            self._engines = decode_engines(self._shelf.text(ENGINES))
            self._has_conditions = self._says_what_was_checked()
            self._check_forms()
        except (*_DAMAGE, StorageError) as error:
            self.close()
            raise StorageError(
                f"{path}: damaged, or not one of spectrod's recordings: {_reason(error)}"
            ) from error

    @property
    def description(self) -> Description:
        """Metadata of the whole recording."""
        return self._description

    def batches(self) -> Iterator[SpectrumBatch]:
        """Yield all rows in order, a chunk at a time.

        Raises
        ------
        StorageError
            If the file cannot be read to its end, or its arrays do not match.
        """
        n = chunk_rows(self._description)
        first, engine = 0, 0
        while True:
            rows = self._read(first, first + n)
            if len(rows) == 0:
                return
            yield from batches_of(rows, self._description.spec, self._engines, engine)
            engine = int(rows.columns["engine_index"][-1])
            first += len(rows)

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._shelf.close()

    def _says_what_was_checked(self) -> bool:
        """Return whether the file has conditions of rows: those of earlier versions have none."""
        try:
            self._shelf.text(CHECKED_ROWS)
        except _DAMAGE:
            return False
        return True

    def _check_forms(self) -> None:
        """Raise StorageError if arrays do not match the description, or are too large to unpack."""
        spec = self._description.spec
        name = values_name(spec)
        values = self._shelf.form(name)
        kind = "<c8" if spec.output == "complex" else "<f4"
        if values.shape[1:] != (spec.n_signals, spec.n_values) or values.dtype != kind:
            raise StorageError(
                f"{name} of shape {values.shape}, {values.dtype}: not those described"
            )
        forms = {one: self._shelf.form(one) for one in COLUMNS}
        expected = {one: (values.shape[:1], np.dtype(COLUMNS[one])) for one in COLUMNS}
        if spec.broadband:
            forms[BROADBAND] = self._shelf.form(BROADBAND)
            expected[BROADBAND] = (values.shape[:2], np.dtype("<f4"))
        if self._has_conditions:
            forms[CONDITIONS] = self._shelf.form(CONDITIONS)
            expected[CONDITIONS] = (values.shape[:2], np.dtype(np.uint8))
        for one, form in forms.items():
            if (form.shape, form.dtype) != expected[one]:
                shape, dtype = expected[one]
                raise StorageError(
                    f"{one} of shape {form.shape}, {form.dtype}: must be {shape}, {dtype}"
                )
        for one, form in {name: values, **forms}.items():
            if form.piece_bytes > PIECE_BYTES_MAX:
                rule = f"must be at most {PIECE_BYTES_MAX}"
                raise StorageError(f"{one}: rows or chunks of {form.piece_bytes} bytes: {rule}")

    def _read(self, first: int, past: int) -> Rows:
        spec = self._description.spec
        try:
            values = self._shelf.read(values_name(spec), first, past)
            numbers = {name: self._shelf.read(name, first, past) for name in COLUMNS}
            broadband = self._shelf.read(BROADBAND, first, past) if spec.broadband else None
            if self._has_conditions:
                conditions = self._shelf.read(CONDITIONS, first, past)
            else:
                conditions = unchecked(values.shape[:2])
        except _DAMAGE as error:
            raise self._unreadable(error) from error
        engine = numbers["engine_index"]
        if len(engine) and not 0 <= engine.min() <= engine.max() < len(self._engines):
            raise StorageError(f"{self.path}: engine_index: must be below {len(self._engines)}")
        return Rows(values, numbers, conditions, broadband)

    def _unreadable(self, error: Exception) -> StorageError:
        return StorageError(f"{self.path}: cannot be read: {_reason(error)}")


def _reason(error: Exception) -> str:
    """Return an error's text in one line."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(reason.split())
