"""Message version 1: topics, messages, and their bytes. Pure: knows no socket.

``docs/protocol.md`` specifies the protocol; this module and ``spectrod.wire.headers`` implement it
for daemon and client.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.conditions import Condition, from_names
from spectrod.dsp.units import Float64Array
from spectrod.lib.array_values import ArrayValues
from spectrod.lib.errors import WireError
from spectrod.lib.names import NAME_PATTERN, check_name
from spectrod.lib.notebook import Drawn, html_table
from spectrod.lib.text import printable, reason_of
from spectrod.wire import frame_views as views
from spectrod.wire.headers import (
    HEADER_MAX_BYTES,
    LIST_HEADER_MAX_BYTES,
    MEASUREMENTS,
    VERSION,
    WORDS,
    BandsHeader,
    EventHeader,
    FeaturesHeader,
    Header,
    HeartbeatHeader,
    IntervalHeader,
    LevelsHeader,
    MetaHeader,
    SpectrumHeader,
    TonesHeader,
    TransferHeader,
    ValuesHeader,
)
from spectrod.wire.message_table import MessageTable

__all__ = [
    "HEARTBEAT_PERIOD_S",
    "META_PERIOD_S",
    "VERSION",
    "BandFrame",
    "BandsHeader",
    "BinsFrame",
    "EventHeader",
    "EventMessage",
    "FeaturesFrame",
    "FeaturesHeader",
    "Frame",
    "Header",
    "Heartbeat",
    "HeartbeatHeader",
    "IntervalFrame",
    "LevelsFrame",
    "LevelsHeader",
    "Message",
    "MessageTable",
    "Meta",
    "MetaHeader",
    "SpectrumHeader",
    "TonesFrame",
    "TonesHeader",
    "TransferFrame",
    "TransferHeader",
    "decode",
    "encode",
    "encode_header",
    "event_topic",
    "heartbeat_topic",
    "last_topic",
    "topic",
]

HEARTBEAT_PERIOD_S = 1.0
META_PERIOD_S = 10.0

_TOPIC = re.compile(
    rf"({'|'.join(WORDS)}|meta|last)/{NAME_PATTERN}/{NAME_PATTERN}/{NAME_PATTERN}/"
    rf"|(hb|event)/{NAME_PATTERN}/"
)
_EXCERPT_CHARS = 60
_SHOWN = 6
"""Values of an interval that are printed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Values(ArrayValues):
    """Common part of messages with values."""

    topic: str
    header: Any
    values: NDArray[Any]
    missed: int = 0
    restarted: bool = False
    away_s: float = 0.0
    replayed: bool = False

    def __repr__(self) -> str:
        """Return one line: topic, values, UTC of the first sample and number in the topic."""
        h = self.header
        utc = np.datetime64(h.t_utc_ns, "ns")
        return f"<{type(self).__name__} {self.topic}: {self._summary()}, {utc}Z, seq {h.seq}>"

    def _summary(self) -> str:
        return f"{len(self.values)} values in {printable(self.header.unit)}"

    @property
    def source(self) -> str:
        """Name of the source."""
        return self.topic.split("/")[1]

    @property
    def channel(self) -> str:
        """Name of the channel, or its index."""
        return self.topic.split("/")[2]

    @property
    def product(self) -> str:
        """Name of the analysis."""
        return self.topic.split("/")[3]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Spectrum(_Values):
    """Common part of spectra."""

    header: ValuesHeader

    @property
    def conditions(self) -> Condition | None:
        """What checks found in the samples; None where they did not check all of them.

        Conditions that only later versions have are left out.
        """
        names = self.header.conditions
        return None if names is msgspec.UNSET else Condition.CHECKED | from_names(names)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frame(_Spectrum, Drawn):
    """One frame of one channel.

    Attributes
    ----------
    topic : str
        ``spec/SOURCE/CHANNEL/PRODUCT/``; with ``last`` for ``spec`` if it was resent.
    header : SpectrumHeader
    values : (n_values,) float32
        Read-only [header.unit].
    missed : int
        Messages of this topic lost directly before this one; the client sets it.
    restarted : bool
        True if the daemon has restarted since the previous message; the client sets it.
    away_s : float
        After a restart, the time since the previous message by their UTC, else 0; the client sets
        it [s].
    replayed : bool
        True if the message was lost and requested again; the client sets it.
    """

    header: SpectrumHeader

    @property
    def f(self) -> Float64Array:
        """Frequency of each value, shape (n_values,), ascending [Hz]."""
        h = self.header
        bins = np.arange(h.first_bin, h.first_bin + len(self.values), dtype=np.float64)
        return bins * (h.fs / h.nfft) + h.center_frequency_hz

    def plot(self, ax: Any = None) -> Any:
        """Draw the levels over frequency, down to 100 dB below the highest, with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default the axes of a new figure. A notebook shows it where a cell
            ends with it; pyplot does not.

        Returns
        -------
        ax : matplotlib.axes.Axes

        Raises
        ------
        UnavailableError
            If matplotlib is not installed: ``pip install 'spectrod[plot]'``.
        """
        return views.draw(self, ax, self.f)

    def to_xarray(self) -> Any:
        """Return the values, which are not copied, as an ``xarray.DataArray``.

        Frames of a topic become a spectrogram by ``xarray.concat(arrays, "time")``.

        Returns
        -------
        array : xarray.DataArray
            Dimension frequency [Hz], the UTC of the first sample as the coordinate ``time``, and
            unit, source, channel and analysis as attributes.

        Raises
        ------
        UnavailableError
            If xarray is not installed: ``pip install 'spectrod[xarray]'``.
        """
        return views.data_array(self, self.f)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BandFrame(_Spectrum):
    """One frame of one channel in bands, whose frequencies are in the topic's ``Meta``.

    Attributes
    ----------
    topic : str
        ``bands/SOURCE/CHANNEL/PRODUCT/``; with ``last`` for ``bands`` if it was resent.
    header : BandsHeader
    values : (n_bands,) float32
        Read-only [header.unit].
    missed, restarted, away_s, replayed : int, bool, float, bool
        As ``Frame``.
    """

    header: BandsHeader

    def plot(self, meta: "Meta", ax: Any = None) -> Any:
        """Draw the levels of the bands; see ``Frame.plot``.

        Parameters
        ----------
        meta : Meta
            Description of the topic, ``subscription.meta[frame.topic]``.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Raises
        ------
        InputError
            If it describes other bands.
        UnavailableError
            If matplotlib is not installed.
        """
        return views.draw(self, ax, views.frequencies_of(self, meta))

    def to_xarray(self, meta: "Meta") -> Any:
        """Return the values as an ``xarray.DataArray``; see ``plot`` and ``Frame.to_xarray``."""
        return views.data_array(self, views.frequencies_of(self, meta))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IntervalFrame(_Values):
    """Named values of one channel in one interval.

    Attributes
    ----------
    topic : str
        ``WORD/SOURCE/CHANNEL/PRODUCT/`` with the word of the kind; with ``last`` if it was resent.
    header : LevelsHeader or FeaturesHeader
    values : (n_quantities,) float64
        Read-only, in ``header.units``; NaN where there is none.
    missed, restarted, away_s, replayed : int, bool, float, bool
        As ``Frame``.
    """

    header: IntervalHeader

    def _summary(self) -> str:
        h = self.header
        named = zip(h.quantities, self.values, h.units, strict=False)  # a user may have made it
        texts = [f"{name} {value:.4g} {unit}" for name, value, unit in islice(named, _SHOWN)]
        return printable(", ".join(texts)) + (", ..." if len(h.quantities) > _SHOWN else "")

    def _repr_html_(self) -> str:
        """Return a table of all values for notebooks."""
        h = self.header
        named = zip(h.quantities, self.values.tolist(), h.units, strict=False)
        cells = ((printable(name), f"{value:.6g}", printable(unit)) for name, value, unit in named)
        about = f"{self.topic}, {np.datetime64(h.t_utc_ns, 'ns')}Z, {h.interval_s:g} s"
        return html_table(about, ("quantity", "value", "unit"), cells)

    def to_arrow(self) -> Any:
        """Return the message as an ``arro3.core.Table`` of one row; see ``MessageTable``.

        Raises
        ------
        InputError
            If two quantities have one name.
        UnavailableError
            If arro3 is not installed: ``pip install 'spectrod[parquet]'``.
        """
        return MessageTable([self]).to_arrow()

    def to_xarray(self) -> Any:
        """Return the message as an ``xarray.Dataset``; see ``MessageTable.to_xarray``.

        Raises
        ------
        InputError
            If two quantities have one name as variables.
        UnavailableError
            If xarray is not installed: ``pip install 'spectrod[xarray]'``.
        """
        return MessageTable([self]).to_xarray()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return this table as the PyCapsule interface of Arrow has it; see ``to_arrow``."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __getitem__(self, name: str) -> float:
        """Return the value of a quantity; KeyError if the message does not have it."""
        if name not in self.header.quantities:
            raise KeyError(name)
        return float(self.values[self.header.quantities.index(name)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LevelsFrame(IntervalFrame):
    """Sound levels of one channel in one interval; see ``IntervalFrame``."""

    header: LevelsHeader


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinsFrame(IntervalFrame):
    """Named values of one channel in one interval, and values of bins; see ``IntervalFrame``.

    Attributes
    ----------
    spectra : (n_spectra, n_bins) float64
        Read-only; values of bins, a row for each name of ``header.spectra``.
    """

    header: FeaturesHeader | TransferHeader
    spectra: Float64Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    @property
    def f(self) -> Float64Array:
        """Frequency of each bin of ``spectra``, (n_bins,) [Hz]."""
        h = self.header
        bins = np.arange(h.first_bin, h.first_bin + h.n_bins, dtype=np.float64)
        return bins * (h.fs / h.nfft) + h.center_frequency_hz

    def spectrum(self, name: str) -> Float64Array:
        """Return the values of bins of a name, (n_bins,); KeyError if there are none."""
        if name not in self.header.spectra:
            raise KeyError(name)
        return np.asarray(self.spectra[self.header.spectra.index(name)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FeaturesFrame(BinsFrame):
    """Features of one channel in one interval; see ``BinsFrame``."""

    header: FeaturesHeader


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TransferFrame(BinsFrame):
    """Transfer function to one channel, the response, in one interval; see ``BinsFrame``."""

    header: TransferHeader


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TonesFrame(IntervalFrame):
    """Values of the tones of one channel in one interval, and tracks; see ``IntervalFrame``.

    Attributes
    ----------
    tracks : (n_tracks, n_columns) float64
        Read-only; a row for each tone, its columns as ``header.columns`` says.
    """

    header: TonesHeader
    tracks: Float64Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def column(self, name: str) -> Float64Array:
        """Return a column of the tracks, (n_tracks,); KeyError if there is none of this name."""
        if name not in self.header.columns:
            raise KeyError(name)
        return self.tracks[:, self.header.columns.index(name)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Meta:
    """The description of a topic with values.

    Attributes
    ----------
    topic : str
        The described topic, with ``meta`` for ``spec`` or ``bands``.
    header : MetaHeader
    f : (n_values,) float64
        Frequency of each bin, or centre of each band [Hz].
    edges : (2, n_values) float64 or None
        Lower and upper edge of each band [Hz]; None for bins.
    """

    topic: str
    header: MetaHeader
    f: Float64Array
    edges: Float64Array | None = None

    def __repr__(self) -> str:
        """Return one line: topic, values, frequencies, analysis, UTC and number in the topic."""
        h = self.header
        unit = printable(h.unit)
        span = f"{self.f.min():g} to {self.f.max():g} Hz" if len(self.f) else "no frequency"
        values = f"{len(self.f)} {'bands' if h.bands else 'bins'} in {unit}, {span}"
        analysis = f"{h.fs:g} Hz, nfft {h.nfft}, hop {h.hop}, {printable(h.window)}"
        utc = np.datetime64(h.t_utc_ns, "ns")
        return f"<Meta {self.topic}: {values}, {analysis}, {utc}Z, seq {h.seq}>"


@dataclass(frozen=True, slots=True, repr=False)
class Heartbeat:
    """Heartbeat of one source's analysis; its topic is ``hb/SOURCE/``."""

    topic: str
    header: HeartbeatHeader

    def __repr__(self) -> str:
        """Return one line: topic, state, frames, losses so far, UTC and number in the topic."""
        h = self.header
        state = f"{h.state}: {h.waiting_for}" if h.waiting_for else h.state
        losses = ((h.overflows, "overflows"), (h.dropped, "dropped"), (h.suspected, "suspected"))
        counts = "".join(f", {n} {name}" for n, name in losses if n)
        utc = np.datetime64(h.t_utc_ns, "ns")
        text = printable(f"{state}, {h.frames} frames{counts}")
        return f"<Heartbeat {self.topic}: {text}, {utc}Z, seq {h.seq}>"

    @property
    def source(self) -> str:
        """Name of the source."""
        return self.topic.split("/")[1]


@dataclass(frozen=True, slots=True, repr=False)
class EventMessage:
    """An event; its topic is ``event/SOURCE/``, or ``event/-/`` for the daemon."""

    topic: str
    header: EventHeader

    def __repr__(self) -> str:
        """Return one line: topic, kind, text, UTC and number in the topic."""
        h = self.header
        utc = np.datetime64(h.t_utc_ns, "ns")
        text = printable(f"{h.kind}: {h.text}")
        return f"<EventMessage {self.topic}: {text}, {utc}Z, seq {h.seq}>"


Message = Frame | BandFrame | IntervalFrame | Meta | Heartbeat | EventMessage
_H = TypeVar("_H")


_WORDS = {"spectrod.spectrum": "spec"} | {f"spectrod.{word}": word for word in WORDS[1:]}
"""First words of topics by the ``schema`` of their headers."""
_Kind: Any = msgspec.defstruct("_Kind", [("schema", Literal[tuple(_WORDS)])])
"""Kind of a header where the topic does not name it."""

_encoder = msgspec.json.Encoder()
_kind_decoder = msgspec.json.Decoder(_Kind)
_spectrum_decoder = msgspec.json.Decoder(SpectrumHeader)
_bands_decoder = msgspec.json.Decoder(BandsHeader)
_measurement_decoders = {word: msgspec.json.Decoder(one) for word, one in MEASUREMENTS.items()}
_meta_decoder = msgspec.json.Decoder(MetaHeader)
_heartbeat_decoder = msgspec.json.Decoder(HeartbeatHeader)
_event_decoder = msgspec.json.Decoder(EventHeader)


def topic(source: str, channel: str, product: str, *, kind: str = "spec") -> str:
    """Return a channel's topic, ``spec/SOURCE/CHANNEL/PRODUCT/``.

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


def last_topic(name: str) -> str:
    """Return the topic under which the newest message of a topic with values is resent."""
    return "last/" + name.partition("/")[2]


def heartbeat_topic(source: str) -> str:
    """Return a source's heartbeat topic, ``hb/SOURCE/``."""
    return f"hb/{check_name('source name', source)}/"


def event_topic(source: str) -> str:
    """Return the topic of a source's events, ``event/SOURCE/``; ``event/-/`` for the daemon's."""
    return f"event/{check_name('source name', source or '-')}/"


def encode_header(header: Header) -> bytes:
    """Encode a header as UTF-8 JSON, its fields in the order of the schema.

    Raises
    ------
    WireError
        If a text has lone surrogates, or a number needs more than 64 bits.
    """
    try:
        return _encoder.encode(header)
    except (UnicodeEncodeError, OverflowError) as error:
        raise WireError(f"{header.schema}: cannot be encoded: {error}") from error


def encode(message: Message) -> list[bytes]:
    """Encode a message as ZeroMQ parts; raises as ``encode_header``."""
    parts = [message.topic.encode("ascii"), encode_header(message.header)]
    if isinstance(message, Frame | BandFrame | IntervalFrame):
        parts.append(message.values.astype(message.header.dtype, copy=False).tobytes())
        if isinstance(message, BinsFrame) and message.header.spectra:
            parts.append(message.spectra.astype(message.header.dtype, copy=False).tobytes())
        if isinstance(message, TonesFrame):
            parts.append(message.tracks.astype(message.header.dtype, copy=False).tobytes())
    elif isinstance(message, Meta):
        parts.append(message.f.astype(message.header.dtype, copy=False).tobytes())
        if message.edges is not None:
            parts.append(message.edges.astype(message.header.dtype, copy=False).tobytes())
    return parts


def decode(parts: Sequence[bytes]) -> Message:
    """Decode a message from its parts.

    Unknown fields and additional parts are ignored: the protocol can grow without a new version.

    Returns
    -------
    message : Frame, BandFrame, IntervalFrame, Meta, Heartbeat or EventMessage
        The class follows from the topic. Arrays are read-only views of the payload.

    Raises
    ------
    WireError
        If the topic, the header or the payload breaks a rule of the protocol.
    """
    if len(parts) < 2:
        raise WireError(f"message of {len(parts)} parts: must be topic, header and payload")
    name = _decode_topic(parts[0])
    word = name.partition("/")[0]
    max_bytes = LIST_HEADER_MAX_BYTES if word in ("meta", "hb") else HEADER_MAX_BYTES
    if len(parts[1]) > max_bytes:
        raise WireError(f"{name}: header of {len(parts[1])} bytes: must have at most {max_bytes}")
    if word == "last":
        kind = _decode_header(name, parts[1], _kind_decoder)
        word = _WORDS[kind.schema]
    return _READERS[word](name, parts)


def _decode_spectrum(name: str, parts: Sequence[bytes]) -> Frame:
    header = _decode_header(name, parts[1], _spectrum_decoder)
    two_sided = header.first_bin != 0
    rule, first_bin = ("nfft", -(header.nfft // 2)) if two_sided else ("nfft // 2 + 1", 0)
    n_values = header.nfft if two_sided else header.nfft // 2 + 1
    if header.shape != (n_values,):
        raise WireError(f"{name}: shape={list(header.shape)}: must be [{rule}], nfft={header.nfft}")
    if header.first_bin != first_bin:
        raise WireError(f"{name}: first_bin={header.first_bin}: must be 0 or {first_bin}")
    _check_cut(name, header)
    return Frame(name, header, _decode_values(name, parts, header))


def _decode_bands(name: str, parts: Sequence[bytes]) -> BandFrame:
    header = _decode_header(name, parts[1], _bands_decoder)
    if header.shape != (header.n_bands,):
        raise WireError(
            f"{name}: shape={list(header.shape)}: must be [n_bands], n_bands={header.n_bands}"
        )
    _check_cut(name, header)
    return BandFrame(name, header, _decode_values(name, parts, header))


def _decode_measurement(word: str, name: str, parts: Sequence[bytes]) -> IntervalFrame:
    header = _decode_header(name, parts[1], _measurement_decoders[word])
    n = len(header.quantities)
    if header.shape != (n,) or len(header.units) != n:
        raise WireError(
            f"{name}: shape={list(header.shape)} and {len(header.units)} units: must be those of "
            f"{n} quantities"
        )
    frame = _FRAMES[word](name, header, _decode_values(name, parts, header))
    if isinstance(frame, BinsFrame):
        return _with_bins(parts, frame)
    return _with_tracks(parts, frame) if isinstance(frame, TonesFrame) else frame


def _with_bins(parts: Sequence[bytes], frame: BinsFrame) -> BinsFrame:
    """Add the part of values of bins, where the header says that there is one."""
    name, header = frame.topic, frame.header
    if not header.spectra:
        return frame
    n = len(header.spectra)
    if len(header.spectra_units) != n:
        raise WireError(f"{name}: {len(header.spectra_units)} spectra_units: must be {n}")
    shape = (n, header.n_bins)
    spectra = _decode_array(name, parts, 3, shape, header.dtype, what="the values of bins are")
    return replace(frame, spectra=spectra)


def _with_tracks(parts: Sequence[bytes], frame: TonesFrame) -> TonesFrame:
    """Add the part of the tracks."""
    name, header = frame.topic, frame.header
    n = len(header.columns)
    if len(header.column_units) != n:
        raise WireError(f"{name}: {len(header.column_units)} column_units: must be {n}")
    shape = (header.n_tracks, n)
    tracks = _decode_array(name, parts, 3, shape, header.dtype, what="the tracks are")
    return replace(frame, tracks=tracks)


def _check_cut(name: str, header: ValuesHeader) -> None:
    if header.cut_frames and header.cut_frames >= header.averaging_frames:
        raise WireError(
            f"{name}: cut_frames={header.cut_frames}: must be less than "
            f"averaging_frames={header.averaging_frames}"
        )


def _decode_meta(name: str, parts: Sequence[bytes]) -> Meta:
    header = _decode_header(name, parts[1], _meta_decoder)
    f = _decode_values(name, parts, header)
    if not header.bands:
        return Meta(name, header, f)
    edges = _decode_array(
        name, parts, 3, (2, *header.shape), header.dtype, what="the bands' edges are"
    )
    return Meta(name, header, f, edges)


def _decode_heartbeat(name: str, parts: Sequence[bytes]) -> Heartbeat:
    return Heartbeat(name, _decode_header(name, parts[1], _heartbeat_decoder))


def _decode_event(name: str, parts: Sequence[bytes]) -> EventMessage:
    return EventMessage(name, _decode_header(name, parts[1], _event_decoder))


def _frame_of(header: type[IntervalHeader]) -> type[IntervalFrame]:
    fields = header.__struct_fields__
    if "spectra" in fields:
        return BinsFrame
    return TonesFrame if "columns" in fields else IntervalFrame


_FRAMES: Mapping[str, type[IntervalFrame]] = {
    **{word: _frame_of(header) for word, header in MEASUREMENTS.items()},
    "levels": LevelsFrame,
    "features": FeaturesFrame,
    "transfer": TransferFrame,
}
"""Class of each kind of measurement."""
_READERS: Mapping[str, Callable[[str, Sequence[bytes]], Message]] = {
    "spec": _decode_spectrum,
    "bands": _decode_bands,
    **{word: partial(_decode_measurement, word) for word in MEASUREMENTS},
    "meta": _decode_meta,
    "hb": _decode_heartbeat,
    "event": _decode_event,
}


def _decode_topic(part: bytes) -> str:
    # The excerpt first: no more than that is copied from a part of any size.
    name = part[: _EXCERPT_CHARS * 4 + 1].decode("ascii", "backslashreplace")
    if len(part) > _EXCERPT_CHARS * 4 or not _TOPIC.fullmatch(name):
        raise WireError(
            f"topic={name[:_EXCERPT_CHARS]!r}: must be WORD/SOURCE/CHANNEL/PRODUCT/ with the word "
            f"{', '.join(WORDS)}, meta or last, or hb/SOURCE/ or event/SOURCE/"
        )
    return name


def _decode_header(name: str, part: bytes, decoder: msgspec.json.Decoder[_H]) -> _H:
    try:
        return decoder.decode(part)
    # RecursionError: a peer may nest arbitrarily deep in an unknown field.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        excerpt = part[:_EXCERPT_CHARS].decode("utf-8", "backslashreplace")
        raise WireError(printable(f"{name}: header={excerpt!r}: {reason_of(error)}")) from error


def _decode_values(
    name: str, parts: Sequence[bytes], header: ValuesHeader | IntervalHeader | MetaHeader
) -> NDArray[Any]:
    return _decode_array(name, parts, 2, header.shape, header.dtype)


def _decode_array(
    name: str,
    parts: Sequence[bytes],
    k: int,
    shape: tuple[int, ...],
    dtype_name: str,
    *,
    what: str = "the payload is",
) -> NDArray[Any]:
    """View a part as an array; the header's shape causes no allocation."""
    if len(parts) <= k:
        raise WireError(f"{name}: message of {len(parts)} parts: {what} missing")
    dtype = np.dtype(dtype_name)
    expected_bytes = dtype.itemsize
    for length in shape:
        expected_bytes *= length
    if len(parts[k]) != expected_bytes:
        raise WireError(
            f"{name}: payload of {len(parts[k])} bytes: shape={list(shape)} of "
            f"{dtype_name} must have {expected_bytes}"
        )
    values = np.frombuffer(parts[k], dtype).reshape(shape)
    values.flags.writeable = False
    return values
