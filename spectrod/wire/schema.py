"""Message version 1: topics, headers, frames, and their bytes. Pure: knows no socket.

``docs/protocol.md`` is the text for subscribers in other languages; this module is the same in
Python. Daemon and client both import it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta as Rule
from numpy.typing import NDArray

from spectrod.errors import WireError
from spectrod.units import Float64Array
from spectrod.wire.names import NAME_PATTERN, check_name

VERSION: Final = 1
HEARTBEAT_PERIOD_S = 1.0
META_PERIOD_S = 10.0

DType = Literal["<f4", "<f8"]
"""All element types that are ever decoded; NumPy's parser of dtypes never sees a peer's text."""

_Count = Annotated[int, Rule(ge=0)]
_Length = Annotated[int, Rule(ge=1)]
_Hertz = Annotated[float, Rule(gt=0)]
_FirstBin = Annotated[int, Rule(le=0)]

_TOPIC = re.compile(
    rf"(spec|meta)/{NAME_PATTERN}/{NAME_PATTERN}/{NAME_PATTERN}/|hb/{NAME_PATTERN}/"
)
_EXCERPT_CHARS = 60


class SpectrumHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a spectrum message says of its payload; fields as in docs/protocol.md."""

    v: Literal[1] = VERSION
    schema: Literal["spectrod.spectrum"] = "spectrod.spectrum"
    seq: _Count
    """Number of this frame in its topic since the epoch began, from 0."""
    epoch: _Count
    """Random number of this start of the daemon."""
    t_utc_ns: int
    """UTC of the frame's first sample [ns since 1970]."""
    t_mono_ns: int
    """The daemon's monotonic clock at the frame's first sample [ns]."""
    sample_index: _Count
    """Absolute index of the frame's first sample; lost samples count."""
    fs: _Hertz
    """Sample rate [Hz]."""
    win_length: _Length
    """Samples under the window."""
    nfft: _Length
    """Transform length; value k lies at (first_bin + k) * fs / nfft."""
    hop: _Length
    """Samples from one frame to the next."""
    window: str
    """Name of the window."""
    enbw_hz: _Hertz
    """Equivalent noise bandwidth [Hz]."""
    dtype: DType = "<f4"
    """Element type of the payload."""
    shape: tuple[_Count]
    """Shape of the payload, C order: ``[nfft // 2 + 1]``, two-sided ``[nfft]``."""
    unit: str
    """Unit of the values, for example ``dBFS``."""
    ref: str
    """What the unit refers to."""
    cal_id: str | None = None
    """Identity of the calibration in use; null if there is none."""
    engine: str
    """What computed the values."""
    gap_samples: _Count = 0
    """Samples missing between the frame before and this one."""
    overflows: _Count = 0
    """Overflows that the sound system has flagged since the epoch began."""
    dropped: _Count = 0
    """Frames that the daemon's send queue has dropped since the epoch began."""
    suspected: _Count = 0
    """Losses since the epoch began that no flag told of, found by counting."""
    first_bin: _FirstBin = 0
    """Number of the first value's bin: ``-(nfft // 2)`` where two-sided."""


class MetaHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change from frame to frame; the payload is the frequency axis [Hz]."""

    v: Literal[1] = VERSION
    schema: Literal["spectrod.meta"] = "spectrod.meta"
    seq: _Count
    epoch: _Count
    t_utc_ns: int
    device: str
    """The source, for a person."""
    channels: _Length
    fs: _Hertz
    win_length: _Length
    nfft: _Length
    hop: _Length
    window: str
    enbw_hz: _Hertz
    axis: str = "frequency"
    axis_unit: str = "Hz"
    dtype: DType = "<f8"
    shape: tuple[_Count]
    unit: str
    ref: str
    cal_id: str | None = None
    engine: str
    first_bin: _FirstBin = 0
    channel_names: tuple[str, ...] = ()
    """The CHANNEL of each of the source's topics, in the order of its channels."""


class HeartbeatHeader(msgspec.Struct, frozen=True, kw_only=True):
    """A sign of life, whether or not there are spectra."""

    v: Literal[1] = VERSION
    schema: Literal["spectrod.heartbeat"] = "spectrod.heartbeat"
    seq: _Count
    epoch: _Count
    t_utc_ns: int
    t_mono_ns: int
    state: str
    """What the daemon is doing, see ``spectrod.stats.State``; later versions may know more."""
    frames: _Count
    """Frames that have reached the publisher since the epoch began."""
    overflows: _Count = 0
    dropped: _Count = 0
    waiting_for: str = ""
    """Why no samples come, for a person; empty while they do."""
    suspected: _Count = 0
    """Losses since the epoch began that no flag told of, found by counting."""
    restarts: _Count = 0
    """Times since the epoch began that the capture broke off and was begun again."""
    rate_error_ppm: float | None = None
    """Measured over nominal sample rate, less one [1e-6]; null if not known."""
    rate_uncertainty_ppm: float | None = None
    """Half width of its 95 % interval [1e-6]; null if not known."""
    checks: tuple[str, ...] = ()
    """What is odd about the samples now, for a person."""
    clipped_samples: _Count = 0
    """Samples at full scale in runs of three or more since the epoch began, over all channels."""


class EventHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Something that has happened; there is no payload."""

    v: Literal[1] = VERSION
    schema: Literal["spectrod.event"] = "spectrod.event"
    seq: _Count
    """Number of this event in its topic, from 0."""
    epoch: _Count
    t_utc_ns: int
    """When it was noted [ns since 1970]."""
    number: _Count
    """Number of this event among all of the daemon's, from 0."""
    kind: str
    """What sort it is, of words with dots between, for example ``source.waiting``."""
    text: str
    """The rest, for a person."""
    source: str = ""
    """Name of the source that it is about; empty if of the daemon."""
    who: str = ""
    """Who asked for it; empty if nobody did."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One frame of one channel.

    Attributes
    ----------
    topic : str
        ``spec/SOURCE/CHANNEL/PRODUCT/``.
    header : SpectrumHeader
    values : (n_values,) float32
        Read-only [header.unit].
    missed : int
        Messages of this topic lost directly before this one; of the new start only, if the daemon
        was restarted; set by the client.
    restarted : bool
        True if the daemon started anew since the message before; set by the client.
    away_s : float
        If so, time from the start of the frame before to that of this one [s]; set by the client.
    replayed : bool
        True if it was missed, and had from the daemon's memory; set by the client.
    """

    topic: str
    header: SpectrumHeader
    values: NDArray[Any]
    missed: int = 0
    restarted: bool = False
    away_s: float = 0.0
    replayed: bool = False

    @property
    def f(self) -> Float64Array:
        """Frequency of each value, shape (n_values,), ascending [Hz]."""
        h = self.header
        bins = np.arange(h.first_bin, h.first_bin + len(self.values), dtype=np.float64)
        return bins * (h.fs / h.nfft)

    @property
    def source(self) -> str:
        """Name of the source."""
        return self.topic.split("/")[1]

    @property
    def channel(self) -> str:
        """Name of the channel, or its index."""
        return self.topic.split("/")[2]


@dataclass(frozen=True, slots=True, eq=False)
class Meta:
    """The description of a spectrum topic.

    Attributes
    ----------
    topic : str
        The topic that it describes, with ``meta`` for ``spec``.
    header : MetaHeader
    f : (n_bins,) float64
        Frequency of each bin [Hz].
    """

    topic: str
    header: MetaHeader
    f: Float64Array = field(repr=False)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life of one source's analysis; its topic is ``hb/SOURCE/``."""

    topic: str
    header: HeartbeatHeader

    @property
    def source(self) -> str:
        """Name of the source."""
        return self.topic.split("/")[1]


@dataclass(frozen=True, slots=True)
class EventMessage:
    """Something that has happened; its topic is ``event/SOURCE/``, or ``event/-/``."""

    topic: str
    header: EventHeader


Message = Frame | Meta | Heartbeat | EventMessage
Header = SpectrumHeader | MetaHeader | HeartbeatHeader | EventHeader
_H = TypeVar("_H", SpectrumHeader, MetaHeader, HeartbeatHeader)

_encoder = msgspec.json.Encoder()
_spectrum_decoder = msgspec.json.Decoder(SpectrumHeader)
_meta_decoder = msgspec.json.Decoder(MetaHeader)
_heartbeat_decoder = msgspec.json.Decoder(HeartbeatHeader)


def topic(source: str, channel: str, product: str, *, kind: str = "spec") -> str:
    """Name a channel's topic, ``spec/SOURCE/CHANNEL/PRODUCT/``.

    The trailing slash matters: a subscription matches a prefix, and ``spec/mic1`` would match
    ``spec/mic10`` too.

    Raises
    ------
    ConfigError
        If a name cannot stand in a topic.
    """
    check_name("source name", source)
    check_name("product", product)
    return f"{kind}/{source}/{check_name('channel name', channel)}/{product}/"


def last_topic(topic: str) -> str:
    """Name the topic under which the newest message of a topic with values is sent again."""
    return "last/" + topic.partition("/")[2]


def event_topic(source: str) -> str:
    """Name the topic of a source's events, ``event/SOURCE/``; of the daemon's own for none."""
    return f"event/{source or '-'}/"


def heartbeat_topic(source: str) -> str:
    """Name a source's heartbeat topic, ``hb/SOURCE/``."""
    return f"hb/{check_name('source name', source)}/"


def encode_header(header: Header) -> bytes:
    """Write a header as UTF-8 JSON, its fields in the order of the schema."""
    return _encoder.encode(header)


def encode(message: Message) -> list[bytes]:
    """Write a message as the parts that ZeroMQ sends."""
    parts = [message.topic.encode("ascii"), encode_header(message.header)]
    if isinstance(message, Frame):
        parts.append(message.values.astype(message.header.dtype, copy=False).tobytes())
    elif isinstance(message, Meta):
        parts.append(message.f.astype(message.header.dtype, copy=False).tobytes())
    return parts


def decode(parts: Sequence[bytes]) -> Message:
    """Read a message from its parts.

    Fields that this version does not know are ignored, and so are parts after the payload: that
    is how the protocol may grow without a new version.

    Returns
    -------
    message : Frame, Meta or Heartbeat
        As its topic says. Arrays are read-only views of the payload.

    Raises
    ------
    WireError
        If the topic, the header or the payload breaks a rule of the protocol.
    """
    if len(parts) < 2:
        raise WireError(f"message of {len(parts)} parts: must be topic, header and payload")
    name = _decode_topic(parts[0])
    if name.startswith("spec/"):
        return _decode_frame(name, parts)
    if name.startswith("meta/"):
        described = _decode_header(name, parts[1], _meta_decoder)
        return Meta(name, described, _decode_payload(name, parts, described))
    return Heartbeat(name, _decode_header(name, parts[1], _heartbeat_decoder))


def _decode_frame(name: str, parts: Sequence[bytes]) -> Frame:
    header = _decode_header(name, parts[1], _spectrum_decoder)
    two_sided = header.first_bin != 0
    rule, first_bin = ("nfft", -(header.nfft // 2)) if two_sided else ("nfft // 2 + 1", 0)
    n_values = header.nfft if two_sided else header.nfft // 2 + 1
    if header.shape != (n_values,):
        raise WireError(f"{name}: shape={list(header.shape)}: must be [{rule}], nfft={header.nfft}")
    if header.first_bin != first_bin:
        raise WireError(f"{name}: first_bin={header.first_bin}: must be 0 or {first_bin}")
    return Frame(name, header, _decode_payload(name, parts, header))


def _decode_topic(part: bytes) -> str:
    name = part.decode("ascii", "backslashreplace")
    if not _TOPIC.fullmatch(name):
        raise WireError(
            f"topic={name[:_EXCERPT_CHARS]!r}: "
            "must be spec/SOURCE/CHANNEL/PRODUCT/, meta/SOURCE/CHANNEL/PRODUCT/ or hb/SOURCE/"
        )
    return name


def _decode_header(name: str, part: bytes, decoder: msgspec.json.Decoder[_H]) -> _H:
    try:
        return decoder.decode(part)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # RecursionError: msgspec's, where a field that nobody knows is nested without end.
        excerpt = part[:_EXCERPT_CHARS].decode("utf-8", "backslashreplace")
        raise WireError(f"{name}: header={excerpt!r}: {error}") from error


def _decode_payload(
    name: str, parts: Sequence[bytes], header: SpectrumHeader | MetaHeader
) -> NDArray[Any]:
    if len(parts) < 3:
        raise WireError(f"{name}: message of {len(parts)} parts: the payload is missing")
    dtype = np.dtype(header.dtype)
    expected_bytes = header.shape[0] * dtype.itemsize
    if len(parts[2]) != expected_bytes:
        raise WireError(
            f"{name}: payload of {len(parts[2])} bytes: shape={list(header.shape)} of "
            f"{header.dtype} must have {expected_bytes}"
        )
    values = np.frombuffer(parts[2], dtype)
    values.flags.writeable = False
    return values
