"""Topics and headers of one product of one source, computed once."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from spectrod.daemon.publisher.queue import QueuedFrame
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.conditions import Condition, names_of
from spectrod.dsp.spectrum import SPEC_FIELDS, SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.names import name_channels
from spectrod.lib.text import printable
from spectrod.wire.headers import BandsHeader, MetaHeader, SpectrumHeader, ValuesHeader
from spectrod.wire.schema import Meta, encode, encode_header, topic

_COUNTERS = {one.name for one in dataclasses.fields(SpectrumBatch) if one.type is int} - {
    "gap_samples"
}
"""Counters of a batch, which a header that has a field of the same name takes over. The queue
counts ``gap_samples`` itself, with those of dropped frames."""


@dataclasses.dataclass(frozen=True, slots=True)
class StatedFacts:
    """What the configuration says of a source and its descriptions pass on.

    Attributes
    ----------
    attributes : mapping of str to str
        Where it is, and what it is, by names of ACDD 1.3.
    time_zone : str
        Name of its time zone in the IANA database; empty: none is stated.
    """

    attributes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    time_zone: str = ""


NOTHING_STATED: Final = StatedFacts()


def topic_of(source_name: str, channel: str, spec: SpectrumSpec) -> str:
    """Return the topic of a channel's values.

    Raises
    ------
    ConfigError
        If a name cannot stand in a topic.
    """
    return topic(source_name, channel, spec.product, kind="bands" if spec.bands else "spec")


class TopicEncoder:
    """The topics and the headers of one analysis of one source.

    Parameters
    ----------
    source_name : str
        The SOURCE of the topics.
    channel_names : sequence of str
        Names of the channels in topics; empty for their numbers.
    spec : SpectrumSpec
        The spec of the analysis.
    engine : str
        Name of the engine.

    Attributes
    ----------
    topics, meta_topics : list of str
        One per channel.
    encoded : list of bytes
        ``topics`` as bytes.
    """

    def __init__(
        self, source_name: str, channel_names: Sequence[str], spec: SpectrumSpec, engine: str
    ) -> None:
        self._spec = spec
        self._engine = engine
        self._names = name_channels(channel_names, spec.n_signals)
        self.topics = [topic_of(source_name, name, spec) for name in self._names]
        self.encoded = [name.encode() for name in self.topics]
        self.meta_topics = [
            topic(source_name, name, spec.product, kind="meta") for name in self._names
        ]
        self._f = spec.frequencies
        table = spec.band_table
        self._edges = None if table is None else np.stack([table.lower, table.upper])
        fields: dict[str, Any] = {
            **{name: getattr(spec, name) for name in SPEC_FIELDS},
            "hop": int(spec.row_step),
            "frame_hop": spec.hop,
            "averaging_s": spec.averaging_s if spec.averaging == "exponential" else None,
            "first_bin": -(spec.nfft // 2) if spec.iq else 0,
            "n_bands": spec.n_values,
            "enbw_hz": spec.enbw_hz,
            "shape": (spec.n_values,),
            "engine": printable(engine),
        }
        self._header_type: type[ValuesHeader] = BandsHeader if spec.bands else SpectrumHeader
        self._is_uniform = all(one == spec.scale.calibrated for one in spec.calibration)
        self._counters = _COUNTERS.intersection(self._header_type.__struct_fields__)
        # One set of fields for all channels of the same calibration.
        self._fields = [_of(self._header_type, fields | unit) for unit in _units(spec)]
        self._described = {
            name: _of(MetaHeader, fields | unit | {"channel_names": self._names})
            for name, unit in zip(self.meta_topics, _units(spec), strict=True)
        }

    def describes(self, batch: SpectrumBatch) -> bool:
        """Return whether a batch belongs to this analysis."""
        same_spec = batch.spec is self._spec or batch.spec == self._spec
        return same_spec and batch.engine == self._engine

    def headers(self, frame: QueuedFrame, epoch: int) -> list[bytes]:
        """Return the header of a row of each channel, encoded once for those that are alike."""
        n, conditions = len(self.topics), frame.batch.conditions
        found = [0] * n if conditions is None else conditions[frame.row].tolist()
        keys = list(zip([0] * n if self._is_uniform else range(n), found, strict=True))
        encoded = {key: self._header(frame, epoch, *key) for key in set(keys)}
        return [encoded[key] for key in keys]

    def description(
        self,
        name: str,
        seq: int,
        epoch: int,
        device: str,
        stated: StatedFacts = NOTHING_STATED,
    ) -> list[bytes]:
        """Return the description of one of the topics."""
        header = MetaHeader(
            seq=seq,
            epoch=epoch,
            t_utc_ns=time.time_ns(),
            device=device,
            attributes=dict(stated.attributes) or msgspec.UNSET,
            time_zone=stated.time_zone or msgspec.UNSET,
            **self._described[name],
        )
        return encode(Meta(name, header, self._f, self._edges))

    def _header(self, frame: QueuedFrame, epoch: int, channel: int, conditions: int) -> bytes:
        """Return the header of a row of a channel whose samples have some conditions."""
        batch, row = frame.batch, frame.row
        header = self._header_type(
            seq=frame.seq,
            epoch=epoch,
            t_utc_ns=int(batch.t_utc_ns[row]),
            t_mono_ns=int(batch.t_mono_ns[row]),
            sample_index=int(batch.sample_index[row]),
            gap_samples=frame.gap_samples,
            dropped=frame.dropped,
            conditions=_words(conditions),
            **{name: getattr(batch, name) for name in self._counters},
            **self._fields[channel],
        )
        return encode_header(header)


def _words(conditions: int) -> tuple[str, ...] | msgspec.UnsetType:
    """Return the words for what checks found; unset where they did not check all samples."""
    is_checked = conditions & Condition.CHECKED
    return names_of(conditions & ~Condition.CHECKED) if is_checked else msgspec.UNSET


def _units(spec: SpectrumSpec) -> list[dict[str, Any]]:
    """Return the fields of the unit and calibration of each signal."""
    calibrations = spec.calibration or (None,) * spec.n_signals
    named = zip(spec.scale.units, spec.scale.references, calibrations, strict=True)
    return [{"unit": unit, "ref": ref} | _calibrated(one) for unit, ref, one in named]


def _calibrated(one: ChannelCalibration | None) -> dict[str, Any]:
    if one is None:
        return {}
    found: dict[str, Any] = {"cal_id": one.cal_id}
    return found | ({"response_hz": one.response_hz} if one.response_hz else {})


def _of(header: type[msgspec.Struct], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Choose what a header has fields for; parameters are named as in ``SpectrumSpec``."""
    return {name: fields[name] for name in header.__struct_fields__ if name in fields}
