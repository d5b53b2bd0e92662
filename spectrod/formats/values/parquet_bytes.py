"""Tables in Arrow's memory as Parquet."""

import io
from collections.abc import Mapping
from typing import Any

from spectrod.formats.values.parquet_footer import sort_metadata
from spectrod.lib.optional_packages import need

COMPRESSION = "zstd(3)"


def parquet_bytes(
    table: Any, metadata: Mapping[str, str] | None = None, *, software: str = "spectrod"
) -> bytes:
    """Return the content of a Parquet file; the same table makes the same bytes.

    Parameters
    ----------
    table : arro3.core.Table
    metadata : mapping of str to str, optional
        What is said of all rows.
    software : str
        What has made it.

    Raises
    ------
    UnavailableError
        If arro3 is not installed: ``pip install 'spectrod[parquet]'``.
    """
    memory, texts = io.BytesIO(), dict(metadata or {})
    need("arro3.io", "parquet").write_parquet(
        table, memory, compression=COMPRESSION, created_by=software, key_value_metadata=texts
    )
    sort_metadata(memory, texts)
    return memory.getvalue()
