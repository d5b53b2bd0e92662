"""Events as Parquet: a row for each, in the columns of ``EventTable``."""

import io
from collections.abc import Sequence

from spectrod.formats.values.arrow_tables import EventTable
from spectrod.lib.optional_packages import need
from spectrod.measure.triggers.detection import Detection


def parquet_bytes(events: Sequence[Detection]) -> bytes:
    """Return the content of a Parquet file; raises UnavailableError without arro3."""
    memory = io.BytesIO()
    table = EventTable(events).to_arrow()
    need("arro3.io", "parquet").write_parquet(
        table, memory, compression="zstd(3)", created_by="spectrod"
    )
    return memory.getvalue()
