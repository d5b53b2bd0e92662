"""Events as Parquet: a row for each, in the columns of ``EventTable``."""

from collections.abc import Sequence

from spectrod.formats.values import parquet_bytes as files
from spectrod.formats.values.arrow_tables import EventTable
from spectrod.measure.triggers.detection import Detection


def parquet_bytes(events: Sequence[Detection]) -> bytes:
    """Return the content of a Parquet file; raises UnavailableError without arro3."""
    return files.parquet_bytes(EventTable(events).to_arrow())
