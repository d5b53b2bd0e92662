"""Tables that are printed line by line, as they are measured."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from spectrod.bench.tables import Column, heading, line

_Row = TypeVar("_Row", bound=Mapping[str, Any])


def print_each(columns: tuple[Column, ...], rows: Iterable[_Row]) -> Iterator[_Row]:
    """Print a heading, then each row before it is yielded."""
    print(heading(columns), flush=True)
    for row in rows:
        print(line(columns, row), flush=True)
        yield row
