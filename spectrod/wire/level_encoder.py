"""Topics, headers and queue of the sound levels of one source."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spectrod.calibration import ChannelCalibration
from spectrod.drop_oldest_queue import DropOldestQueue
from spectrod.levels import LevelFlag, LevelQuantity, LevelRow
from spectrod.names import name_channels
from spectrod.units import REFERENCES
from spectrod.wire.headers import LevelsHeader
from spectrod.wire.schema import encode_header, topic

UNCALIBRATED = "dBFS"


class LevelEncoder:
    """The topics and the headers of one product of sound levels of one source.

    Parameters
    ----------
    source_name : str
        The SOURCE of the topics.
    channel_names : sequence of str
        Names of the channels in topics; empty for their numbers.
    product : str
        The PRODUCT of the topics.
    quantities : sequence of LevelQuantity
        The values of each message.
    fs : float
        Sample rate [Hz].
    interval_s : float
        Length of an interval [s].
    calibrations : sequence of (ChannelCalibration or None)
        Calibration of each channel.

    Attributes
    ----------
    product : str
    topics : list of str
        One per channel.

    Raises
    ------
    ConfigError
        If a name cannot stand in a topic.
    """

    def __init__(  # noqa: PLR0913 - all that is constant in its messages
        self,
        source_name: str,
        channel_names: Sequence[str],
        product: str,
        quantities: Sequence[LevelQuantity],
        *,
        fs: float,
        interval_s: float,
        calibrations: Sequence[ChannelCalibration | None],
    ) -> None:
        self.product = product
        names = name_channels(channel_names, len(calibrations))
        self.topics = [topic(source_name, name, product, kind="levels") for name in names]
        self._fields: list[dict[str, Any]] = [
            {
                "fs": fs,
                "interval_s": interval_s,
                "quantities": tuple(one.name for one in quantities),
                "units": tuple(unit_of(one, calibration) for one in quantities),
                "shape": (len(quantities),),
                "ref": reference_of(calibration),
                "cal_id": None if calibration is None else calibration.cal_id,
            }
            for calibration in calibrations
        ]

    def messages(
        self, queued: "QueuedLevels", epoch: int
    ) -> Iterator[tuple[str, tuple[bytes, bytes, bytes]]]:
        """Yield the topic and the parts of each channel's message; raises WireError."""
        row = queued.row
        values = np.ascontiguousarray(row.values.T, dtype="<f8")
        for k, (name, fields) in enumerate(zip(self.topics, self._fields, strict=True)):
            header = LevelsHeader(
                seq=queued.seq,
                epoch=epoch,
                t_utc_ns=row.begin_utc_ns or 0,
                t_mono_ns=queued.t_mono_ns,
                sample_index=row.first_sample,
                n_samples=row.n_samples,
                due_samples=row.due_samples,
                flags=tuple(str(one.name).lower() for one in LevelFlag if row.flags[k] & one),
                dropped=queued.dropped,
                **fields,
            )
            yield name, (name.encode(), encode_header(header), values[k].tobytes())


def reference_of(calibration: ChannelCalibration | None) -> str:
    """Return what the unit of a channel's levels refers to."""
    if calibration is None:
        return REFERENCES["dbfs"]
    return f"0 dB = {calibration.reference.name}"


def unit_of(quantity: LevelQuantity, calibration: ChannelCalibration | None) -> str:
    """Return the unit of a quantity of a channel."""
    if quantity.unit != "level":
        return quantity.unit
    unit = UNCALIBRATED if calibration is None else calibration.unit
    return f"{unit} s" if quantity.kind == "exposure" else unit


class QueuedLevels(NamedTuple):
    """One row in the queue."""

    encoder: LevelEncoder
    row: LevelRow
    t_mono_ns: int
    """Monotonic clock at the row's first sample [ns]."""
    seq: int
    """Sequence number in the product's topics; dropped rows count."""
    dropped: int = 0
    """Rows of its product dropped before it."""


class LevelQueue(DropOldestQueue[QueuedLevels]):
    """Queue of rows, bounded in number; a dropped row keeps its sequence number.

    Parameters
    ----------
    limit : int
        Length of the queue [rows].
    next_seq : Counter
        Number of each product's next row; updated in place.
    """

    def __init__(self, limit: int, next_seq: Counter[str]) -> None:
        super().__init__(limit)
        self._next_seq = next_seq
        self._dropped_of = Counter[str]()

    def put_row(self, encoder: LevelEncoder, row: LevelRow, t_mono_ns: int) -> None:
        """Add a row; never waits for room."""
        self.put(QueuedLevels(encoder, row, t_mono_ns, self._next_seq[encoder.product]))
        self._next_seq[encoder.product] += 1

    def _drop(self, item: QueuedLevels) -> int:
        self._dropped_of[item.encoder.product] += 1
        return 1

    def _pass_on(self, item: QueuedLevels) -> QueuedLevels:
        return item._replace(dropped=self._dropped_of[item.encoder.product])
