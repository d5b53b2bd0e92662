"""Tables for a terminal, printed line by line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    key : str
        Name of the value in a row.
    heading : str
        Text above the column.
    width : int
        Width in characters; cells are aligned to the right.
    text : callable
        Formats the value.
    """

    key: str
    heading: str
    width: int
    text: Callable[[Any], str] = str


def heading(columns: Sequence[Column]) -> str:
    """Format the line above a table."""
    return " ".join(f"{column.heading:>{column.width}}" for column in columns).rstrip()


def line(columns: Sequence[Column], row: Mapping[str, Any]) -> str:
    """Format a row; missing values are empty, and the reason of a failure ends the line."""
    cells = (_cell(column, row.get(column.key)) for column in columns)
    return " ".join([*cells, row.get("failed", "")]).rstrip()


def _cell(column: Column, value: Any) -> str:
    return f"{'' if value is None else column.text(value):>{column.width}}"


def fixed(digits: int) -> Callable[[float], str]:
    """Return a function that formats a number with this many digits after the point."""
    return lambda value: f"{value:.{digits}f}"


def error(value: float) -> str:
    """Format a relative error."""
    return f"{value:.1e}"
