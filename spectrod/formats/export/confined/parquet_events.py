"""Parquet files of events of strangers: their rows, as the JSON of other files of events.

What a page of Parquet unpacks to is bounded by nothing, and arro3 panics where a file is damaged.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import arro3.core
import arro3.io
import msgspec

from spectrod.formats.event_fields import EVENT_COLUMNS, EVENT_TEXTS, EVENT_TIMES
from spectrod.formats.export.attributes import iso_time
from spectrod.formats.export.confined.confined_messages import ConfinedAnswer, Content, Question

_MAGIC = b"PAR1"
_BATCH_ROWS = 1024
_CELL_CHARS_MAX = 512
JSON_BYTES_MAX = 1 << 26
"""Longest answer [bytes]."""
_NEEDED = ("begin_s", "duration_s")
_TYPE_CHARS_MAX = 60
_Cells = Sequence[Any]


class ParquetEvents:
    """Reads the rows of one file; see ``confined_child.QuestionHandler``."""

    def needs_bytes(self, question: Question) -> int:
        """Return the memory of the file, and of its rows as they grow."""
        return question.first + 3 * JSON_BYTES_MAX

    def answer(self, question: Question, content: bytes) -> tuple[ConfinedAnswer, Content]:
        """Return the rows of a file of at most ``question.past`` as JSON; raises ValueError."""
        if question.what == "open":
            return ConfinedAnswer(), None
        if len(content) < 12 or (content[:4], content[-4:]) != (_MAGIC, _MAGIC):
            raise ValueError("must be Parquet: begin and end with PAR1")
        found = _json(_without_panic(lambda: _rows(content, question.past)))
        return ConfinedAnswer(n_bytes=len(found)), found


def open_file() -> ParquetEvents:
    """Return what reads a file, whose content comes with the question."""
    return ParquetEvents()


def _without_panic(read: Callable[[], list[bytes]]) -> list[bytes]:
    """Return what is read; raises ValueError where the library panics, for which it has no name."""
    try:
        return read()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError("is damaged") from None


def _rows(content: bytes, n_max: int) -> list[bytes]:
    """Return the JSON of each row, of the known columns."""
    reader = arro3.io.read_parquet(io.BytesIO(content), batch_size=_BATCH_ROWS)
    known = [name for name in (*EVENT_TIMES, *EVENT_COLUMNS) if name in reader.schema.names]
    if missing := [name for name in _NEEDED if name not in known]:
        raise ValueError(f"must have the column {missing[0]!r}")
    found: list[bytes] = []
    n_bytes = 0
    for batch in reader:
        if len(found) + batch.num_rows > n_max:
            raise ValueError(f"must have at most {n_max} events")
        columns = [_cells(name, batch[name]) for name in known]
        rows = [_json_row(known, row) for row in zip(*columns, strict=True)]
        n_bytes += sum(map(len, rows))
        if n_bytes > JSON_BYTES_MAX // 2:
            raise ValueError(f"must have at most {JSON_BYTES_MAX // 2} bytes of text")
        found += rows
    return found


def _json_row(names: Sequence[str], cells: _Cells) -> bytes:
    return msgspec.json.encode(dict(zip(names, cells, strict=True)))


def _json(rows: list[bytes]) -> bytes:
    return b"[" + b",".join(rows) + b"]"


def _cells(name: str, column: Any) -> _Cells:
    """Return the cells of a column; raises ValueError if it is of another type than its name."""
    of: Any = arro3.core.DataType
    kind = column.type
    inner = kind.value_type if of.is_dictionary(kind) else kind
    is_text = of.is_string(inner) or of.is_large_string(inner) or of.is_string_view(inner)
    if of.is_null(kind):
        return [None] * len(column)
    if name in EVENT_TIMES and of.is_timestamp(kind) and kind.tz:
        return list(_times(column.cast(of.timestamp("ns", tz="UTC")).cast(of.int64())))
    if name in (*EVENT_TIMES, *EVENT_TEXTS) and is_text:
        return [_text(one) for one in column.cast(of.string()).to_pylist()]
    if name not in EVENT_TIMES and of.is_numeric(kind):
        return list(column.to_pylist())
    shown = str(kind).removeprefix("arro3.core.DataType")[:_TYPE_CHARS_MAX]
    raise ValueError(f"column {name}: must not be of type {shown}")


def _times(column: Any) -> Iterator[str | None]:
    for utc_ns in column.to_pylist():
        yield None if utc_ns is None else iso_time(utc_ns)


def _text(cell: str | None) -> str | None:
    return None if cell is None else cell[:_CELL_CHARS_MAX]
