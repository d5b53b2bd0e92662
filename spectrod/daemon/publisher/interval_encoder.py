"""Topics, headers and queue of the measurements of one source."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.interval_flags import IntervalFlag
from spectrod.dsp.units import REFERENCES
from spectrod.lib.drop_oldest_queue import DropOldestQueue
from spectrod.lib.names import name_channels
from spectrod.measure.levels.level_units import unit_of
from spectrod.measure.measurement import Measurement, Quantity, check_message
from spectrod.wire.headers import MEASUREMENTS
from spectrod.wire.schema import encode_header, topic


class IntervalEncoder:
    """The topics and the headers of one product of measurements of one source.

    Parameters
    ----------
    source_name : str
        The SOURCE of the topics.
    channel_names : sequence of str
        Names of the channels in topics; empty for their numbers.
    product : str
        The PRODUCT of the topics.
    quantities : sequence of Quantity
        The values of each message.
    fs : float
        Sample rate [Hz].
    interval_s : float
        Length of an interval [s].
    calibrations : sequence of (ChannelCalibration or None)
        Calibration of each channel.
    kind : str
        The kind of measurement: the first word of its topics.
    columns : sequence of Quantity
        Columns of the tracks of each message; empty without tracks.
    constants : mapping, optional
        Further fields of the header that are the same in all messages.

    Attributes
    ----------
    product : str
    topics : list of str
        One per channel.
    interval_s : float
        Length of an interval [s].

    Raises
    ------
    ConfigError
        If a name cannot stand in a topic, or the values do not fit into a message.
    """

    def __init__(  # noqa: PLR0913 - all that is constant in its messages
        self,
        source_name: str,
        channel_names: Sequence[str],
        product: str,
        quantities: Sequence[Quantity],
        *,
        fs: float,
        interval_s: float,
        calibrations: Sequence[ChannelCalibration | None],
        kind: str = "levels",
        columns: Sequence[Quantity] = (),
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        self.product, self.interval_s = product, interval_s
        names = name_channels(channel_names, len(calibrations))
        self.topics = [topic(source_name, name, product, kind=kind) for name in names]
        self._header, self._columns = MEASUREMENTS[kind], tuple(columns)
        units = [tuple(unit_of(value, one) for value in quantities) for one in calibrations]
        for one in set(units):
            check_message(quantities, one)
        self._fields: list[dict[str, Any]] = [
            {
                "fs": fs,
                "interval_s": interval_s,
                "quantities": tuple(one.name for one in quantities),
                "units": units_of_channel,
                "shape": (len(quantities),),
                "ref": reference_of(calibration),
                "cal_id": None if calibration is None else calibration.cal_id,
                **(constants or {}),
                **self._of_columns(calibration),
            }
            for calibration, units_of_channel in zip(calibrations, units, strict=True)
        ]

    def _of_columns(self, calibration: ChannelCalibration | None) -> dict[str, Any]:
        if not self._columns:
            return {}
        return {
            "columns": tuple(one.name for one in self._columns),
            "column_units": tuple(unit_of(one, calibration) for one in self._columns),
        }

    def messages(
        self, queued: "QueuedInterval", epoch: int
    ) -> Iterator[tuple[str, tuple[bytes, ...]]]:
        """Yield the topic and the parts of each channel's message; raises WireError."""
        row = queued.row
        values = np.ascontiguousarray(row.message_values.T, dtype="<f8")
        for k, (name, fields) in enumerate(zip(self.topics, self._fields, strict=True)):
            header = self._header(
                seq=queued.seq,
                epoch=epoch,
                t_utc_ns=row.begin_utc_ns or 0,
                t_mono_ns=queued.t_mono_ns,
                sample_index=row.first_sample,
                n_samples=row.n_samples,
                due_samples=row.due_samples,
                flags=tuple(str(one.name).lower() for one in IntervalFlag if row.flags[k] & one),
                dropped=queued.dropped,
                **self._of_row(row, k),
                **fields,
            )
            tables = (one.astype("<f8", order="C").tobytes() for one in row.tables[k : k + 1])
            yield name, (name.encode(), encode_header(header), values[k].tobytes(), *tables)

    def _of_row(self, row: Measurement, channel: int) -> dict[str, Any]:
        """Return the fields that depend on the row and that not all headers have."""
        has_frames = "n_frames" in self._header.__struct_fields__
        found: dict[str, Any] = {"n_frames": row.n_frames} if has_frames else {}
        if self._columns:
            found["n_tracks"] = len(row.tables[channel])
        return found


def reference_of(calibration: ChannelCalibration | None) -> str:
    """Return what the unit of a channel's levels refers to."""
    if calibration is None:
        return REFERENCES["dbfs"]
    return f"0 dB = {calibration.reference.name}"


class QueuedInterval(NamedTuple):
    """One row in the queue."""

    encoder: IntervalEncoder
    row: Measurement
    t_mono_ns: int
    """Monotonic clock at the row's first sample [ns]."""
    seq: int
    """Sequence number in the product's topics; dropped rows count."""
    dropped: int = 0
    """Rows of its product dropped before it."""


ROW_BYTES = 1 << 16
"""Tables of a row that count as another row in a queue [bytes]."""


class IntervalQueue(DropOldestQueue[QueuedInterval]):
    """Queue of rows, bounded in number and in memory; a dropped row keeps its sequence number.

    Parameters
    ----------
    limit : int
        Length of the queue [rows]; a row with tables counts once more for each ``ROW_BYTES``.
    next_seq : Counter
        Number of each product's next row; updated in place.
    """

    def __init__(self, limit: int, next_seq: Counter[str]) -> None:
        super().__init__(limit, _size_of)
        self._next_seq = next_seq
        self._dropped_of = Counter[str]()

    def put_row(self, encoder: IntervalEncoder, row: Measurement, t_mono_ns: int) -> None:
        """Add a row; never waits for room."""
        self.put(QueuedInterval(encoder, row, t_mono_ns, self._next_seq[encoder.product]))
        self._next_seq[encoder.product] += 1

    def _drop(self, item: QueuedInterval) -> int:
        self._dropped_of[item.encoder.product] += 1
        return 1

    def _pass_on(self, item: QueuedInterval) -> QueuedInterval:
        return item._replace(dropped=self._dropped_of[item.encoder.product])


def _size_of(queued: QueuedInterval) -> int:
    return 1 + sum(table.nbytes for table in queued.row.tables) // ROW_BYTES
