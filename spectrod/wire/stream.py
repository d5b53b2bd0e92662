"""What the messages of one product of one source have in common, worked out once."""

import time
from collections.abc import Sequence
from typing import Any

from spectrod.types import SpectrumBatch, SpectrumSpec
from spectrod.wire.names import name_channels
from spectrod.wire.queue import QueuedFrame
from spectrod.wire.schema import Meta, MetaHeader, SpectrumHeader, encode, topic


def topic_of(source_name: str, channel: str, spec: SpectrumSpec) -> str:
    """Name the topic of a channel's values.

    Raises
    ------
    ConfigError
        If a name cannot stand in a topic.
    """
    return topic(source_name, channel, spec.product, kind="bands" if spec.bands else "spec")


class Stream:
    """The topics and the headers of one analysis of one source."""

    def __init__(
        self, source_name: str, channel_names: Sequence[str], spec: SpectrumSpec, engine: str
    ) -> None:
        self.spec = spec
        self.engine = engine
        self._names = name_channels(channel_names, spec.n_signals)
        self.topics = [topic_of(source_name, name, spec) for name in self._names]
        self.encoded = [name.encode() for name in self.topics]
        self.meta_topics = [
            topic(source_name, name, spec.product, kind="meta") for name in self._names
        ]
        self._frequencies = spec.frequencies
        self._fields: dict[str, Any] = {
            "fs": spec.fs,
            "win_length": spec.win_length,
            "nfft": spec.nfft,
            "hop": spec.hop,
            "window": spec.window,
            "enbw_hz": spec.enbw_hz,
            "shape": (spec.n_bins,),
            "unit": spec.unit,
            "ref": spec.reference,
            "engine": engine,
            "first_bin": -(spec.nfft // 2) if spec.iq else 0,
        }

    def describes(self, batch: SpectrumBatch) -> bool:
        """Say whether a batch belongs to this analysis."""
        same_spec = batch.spec is self.spec or batch.spec == self.spec
        return same_spec and batch.engine == self.engine

    def header(self, frame: QueuedFrame, epoch: int) -> SpectrumHeader:
        """Make the header of a row, which is the same for all channels."""
        batch, row = frame.batch, frame.row
        return SpectrumHeader(
            seq=frame.seq,
            epoch=epoch,
            t_utc_ns=int(batch.t_utc_ns[row]),
            t_mono_ns=int(batch.t_mono_ns[row]),
            sample_index=int(batch.sample_index[row]),
            gap_samples=frame.gap_samples,
            overflows=frame.overflows,
            dropped=frame.dropped,
            suspected=frame.suspected,
            **self._fields,
        )

    def description(self, name: str, seq: int, epoch: int, device: str) -> list[bytes]:
        """Make the description of one of the topics."""
        header = MetaHeader(
            seq=seq,
            epoch=epoch,
            t_utc_ns=time.time_ns(),
            device=device,
            channels=self.spec.channels,
            channel_names=self._names,
            **self._fields,
        )
        return encode(Meta(name, header, self._frequencies))
