"""Tables in Arrow's memory, which other libraries read by its C interface."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from spectrod.lib.notebook import html_table
from spectrod.lib.text import printable

_ROWS_SHOWN, _COLUMNS_SHOWN = 10, 16
"""Of a table in a notebook: the first ones."""


class ArrowTable(ABC):
    """A table that pandas, polars and DuckDB read without a copy."""

    @abstractmethod
    def to_arrow(self) -> Any:
        """Return the table as an ``arro3.core.Table``, which is made by the first call."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the table as the PyCapsule interface of Arrow has it; columns are not copied."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @abstractmethod
    def __len__(self) -> int: ...

    def __repr__(self) -> str:
        """Return one line: the numbers of rows and columns, and the names of these."""
        names = self.to_arrow().column_names
        columns = printable(", ".join(names))
        return f"<{type(self).__name__}: {len(self)} rows, {len(names)} columns: {columns}>"

    def _repr_html_(self) -> str:
        """Return the first rows for notebooks, with the line of ``repr`` above them."""
        table = self.to_arrow()
        fields = [table.schema.field(n) for n in range(table.num_columns)][:_COLUMNS_SHOWN]
        names = [f"{one.name} [{unit}]" if (unit := _unit(one)) else one.name for one in fields]
        n_rows = min(len(self), _ROWS_SHOWN)
        columns = [table.column(one.name).slice(0, n_rows).to_pylist() for one in fields]
        cells = ([_cell(value) for value in row] for row in zip(*columns, strict=True))
        return html_table(repr(self), [printable(name) for name in names], cells)


def field_metadata(unit: str, channel: str) -> dict[str, str]:
    """Return what is said of a column; what is empty is left out."""
    found = {"unit": unit, "channel": channel}
    return {name: text for name, text in found.items() if text}


def as_texts(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata of a table, what is no text as JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in metadata.items()
    }


def _unit(field: Any) -> str:
    return printable(field.metadata_str.get("unit", ""))


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))
