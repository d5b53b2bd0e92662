"""A measurement as a chunk of a recording."""

from dataclasses import dataclass
from typing import ClassVar, Self

from spectrod.dsp.blocks import Chunk
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.measure.measurement import Measurement

_ROW_BYTES = 500
"""Memory of a row beside its values."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementChunk(Chunk):
    """One measurement, with the description of its product.

    Missing samples need no mark: each row has its time and its flags.

    Attributes
    ----------
    row : Measurement
        The row; it has a date.
    about : MeasurementDescription
        Description of all rows of the product.
    """

    unit: ClassVar[str] = "rows"

    row: Measurement
    about: MeasurementDescription

    @property
    def length(self) -> int:
        """See ``Chunk``."""
        return 1

    @property
    def begin_utc_ns(self) -> int:
        """See ``Chunk``."""
        return self.row.begin_utc_ns or 0

    @property
    def last_utc_ns(self) -> int:
        """See ``Chunk``."""
        return self.begin_utc_ns

    @property
    def n_bytes(self) -> int:
        """See ``Chunk``."""
        tables = sum(one.nbytes for one in self.row.tables)
        return self.row.message_values.nbytes + tables + _ROW_BYTES

    @property
    def delay_s(self) -> float:
        """See ``Chunk``."""
        return self.about.interval_s

    @property
    def span_samples(self) -> int:
        """See ``Chunk``."""
        return self.row.n_samples

    def between(self, first: int, stop: int) -> Self:
        """See ``Chunk``; a row is not divided."""
        assert (first, stop) == (0, 1)
        return self

    def index_at(self, t_utc_ns: int) -> int:
        """See ``Chunk``."""
        return int(self.begin_utc_ns < t_utc_ns)

    def after_gap(self, _missing_samples: int) -> Self:
        """See ``Chunk``."""
        return self
