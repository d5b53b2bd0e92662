"""Tables for a terminal: one line per row, printed as it comes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes
    ----------
    key : str
        Name of the value in a row.
    heading : str
        What stands above it.
    width : int
        Characters, aligned to the right.
    text : callable
        From the value to what is printed.
    """

    key: str
    heading: str
    width: int
    text: Callable[[Any], str] = str


def heading(columns: Sequence[Column]) -> str:
    """Write the line above a table."""
    return " ".join(f"{column.heading:>{column.width}}" for column in columns).rstrip()


def line(columns: Sequence[Column], row: Mapping[str, Any]) -> str:
    """Write a row; what it has no value of stays empty, and why it failed ends it."""
    cells = (_cell(column, row.get(column.key)) for column in columns)
    return " ".join([*cells, row.get("failed", "")]).rstrip()


def _cell(column: Column, value: Any) -> str:
    return f"{'' if value is None else column.text(value):>{column.width}}"


def fixed(digits: int) -> Callable[[float], str]:
    """Return what writes a number with so many digits after the point."""
    return lambda value: f"{value:.{digits}f}"


def error(value: float) -> str:
    """Write a relative error."""
    return f"{value:.1e}"
