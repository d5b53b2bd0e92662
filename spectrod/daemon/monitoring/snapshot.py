"""What metrics are made of: one reading of a daemon's counters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectrod.daemon.monitoring.process_usage import ProcessUse
from spectrod.lib.latency import LatencyCounts
from spectrod.lib.stats import Stats


@dataclass(frozen=True, slots=True)
class ProductLevel:
    """A level in the newest message of a topic.

    Attributes
    ----------
    source, channel, product : str
        Parts of its topic.
    quantity : str
        Name of a sound level, such as ``LAeq``; ``broadband`` for that of a whole spectrum.
    unit : str
        Unit of the level, such as ``dBFS`` or ``dB re 20 uPa``.
    level_db : float
    """

    source: str
    channel: str
    product: str
    quantity: str
    unit: str
    level_db: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One reading of a daemon.

    Attributes
    ----------
    version, python : str
    start_utc_s : float
        System time of the daemon's start [s since 1970].
    process : ProcessUse
    stats : sequence of Stats
        Counters of each source.
    channels : mapping of str to tuple of str
        Names of the channels of each source's samples.
    latencies : mapping of str to mapping of str to LatencyCounts
        By source and stage.
    levels : sequence of ProductLevel
    recorders : sequence of mapping
        Status of each configured recording, as in the control protocol.
    triggers : sequence of mapping
        Status of each trigger, as in the control protocol.
    requested_recordings : int
        Recordings that peers asked for and that are being written.
    subscriptions, unsendable, history_bytes, client_keys : int
    refused, requests : mapping of str to int
        Refused connections, and requests and replies over the control socket, by kind.
    connections : mapping of str to mapping of str to int
        By transport, as in the control protocol.
    is_reloaded : bool
        False if the last attempt to read the configuration failed.
    configured_utc_s : float
        System time when the configuration was last read without an error [s since 1970].
    """

    version: str
    python: str
    start_utc_s: float
    process: ProcessUse
    stats: Sequence[Stats]
    channels: Mapping[str, Sequence[str]]
    latencies: Mapping[str, Mapping[str, LatencyCounts]]
    levels: Sequence[ProductLevel]
    recorders: Sequence[Mapping[str, Any]]
    triggers: Sequence[Mapping[str, Any]]
    requested_recordings: int
    subscriptions: int
    unsendable: int
    history_bytes: int
    client_keys: int
    refused: Mapping[str, int]
    requests: Mapping[str, int]
    connections: Mapping[str, Mapping[str, int]]
    is_reloaded: bool
    configured_utc_s: float
