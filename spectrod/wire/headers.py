"""Headers of messages, version 1: their fields, types, rules and defaults. Pure data.

Fields are encoded in the order of their definition; new fields are added at the end of a header,
with a default for messages of older daemons. Fields without a text mean what they mean in
``SpectrumHeader``. Analysis parameters have the names of ``SpectrumSpec``'s fields, by which the
publisher fills them in and ``record`` reads them.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta as Rule

from spectrod.lib.names import ZONE_MAX_CHARS

VERSION: Final = 1

DType = Literal["<f4", "<f8"]
"""All element types that are decoded; NumPy's dtype parser never reads a peer's text."""

FS_MIN_HZ: Final = 1e-3
FS_MAX_HZ: Final = 1e10
"""Sample rates that a message may have [Hz]."""
LENGTH_MAX: Final = 1 << 20
"""Upper bound on ``nfft``, ``win_length``, ``n_bands`` and the number of values in a message."""
CHANNELS_MAX: Final = 4096
"""Upper bound on ``channels`` and on the number of names in ``channel_names``."""
QUANTITIES_MAX: Final = 1024
"""Upper bound on the number of values in a message of an interval."""
COLUMNS_MAX: Final = 64
"""Upper bound on the number of columns of tracks, and on the rows of values of bins."""
TRACKS_MAX: Final = 1024
"""Upper bound on the number of tracks in a message of tones."""
NAME_MAX_CHARS: Final = 64
"""Length of a name in a topic [characters]."""
CHECKS_MAX: Final = 4 * CHANNELS_MAX
"""Upper bound on the number of texts in ``checks``."""
HEADER_MAX_BYTES: Final = 64 * 1024
"""Size of the header of a message with values or of an event [bytes]."""
LIST_HEADER_MAX_BYTES: Final = 512 * 1024
"""Size of the header of a description or of a heartbeat, which list channels [bytes]."""
PART_MAX_BYTES: Final = 2 * 8 * LENGTH_MAX
"""Size of the largest part of a message, the lower and upper edges of bands [bytes]."""

_INT64_MAX = (1 << 63) - 1
_Count = Annotated[int, Rule(ge=0, le=_INT64_MAX)]
_Positive = Annotated[int, Rule(ge=1, le=_INT64_MAX)]
_Length = Annotated[int, Rule(ge=1, le=LENGTH_MAX)]
# -2^63 is what NumPy's times take for "not a time".
_Time = Annotated[int, Rule(ge=-_INT64_MAX, le=_INT64_MAX)]
_SampleRate = Annotated[float, Rule(ge=FS_MIN_HZ, le=FS_MAX_HZ)]
_Bandwidth = Annotated[float, Rule(gt=0, le=FS_MAX_HZ)]
_Seconds = Annotated[float, Rule(gt=0)]
_Rate = Annotated[float, Rule(ge=0, le=FS_MAX_HZ)]
CENTER_FREQUENCY_MAX_HZ: Final = 1e12
"""Upper bound on ``center_frequency_hz``, of both signs [Hz]."""
_CenterFrequency = Annotated[float, Rule(ge=-CENTER_FREQUENCY_MAX_HZ, le=CENTER_FREQUENCY_MAX_HZ)]
_Frequency = Annotated[float, Rule(gt=0, le=FS_MAX_HZ)]
CONDITIONS_MAX: Final = 32
"""Upper bound on the number of words in ``conditions``."""
_Condition = Annotated[str, Rule(pattern=r"^[a-z_]{1,32}$(?!\n)")]
_Conditions = Annotated[tuple[_Condition, ...], Rule(max_length=CONDITIONS_MAX)]
_FirstBin = Annotated[int, Rule(ge=-(LENGTH_MAX // 2), le=0)]
_AnyBin = Annotated[int, Rule(ge=-(LENGTH_MAX // 2), le=LENGTH_MAX)]
_BinCount = Annotated[int, Rule(ge=0, le=LENGTH_MAX)]
_Channels = Annotated[int, Rule(ge=1, le=CHANNELS_MAX)]
_ChannelName = Annotated[str, Rule(max_length=NAME_MAX_CHARS)]
_ChannelNames = Annotated[tuple[_ChannelName, ...], Rule(max_length=CHANNELS_MAX)]
_QuantityNames = Annotated[tuple[_ChannelName, ...], Rule(max_length=QUANTITIES_MAX)]
_ColumnNames = Annotated[tuple[_ChannelName, ...], Rule(max_length=COLUMNS_MAX)]
_TrackCount = Annotated[int, Rule(ge=0, le=TRACKS_MAX)]
_Columns = Annotated[tuple[_ChannelName, ...], Rule(min_length=1, max_length=COLUMNS_MAX)]
_Delay = Annotated[int, Rule(ge=-LENGTH_MAX, le=LENGTH_MAX)]
INTERVAL_TOPICS_MAX: Final = 1024
"""Topics of intervals that a heartbeat lists."""
ATTRIBUTES_MAX: Final = 64
"""Attributes of a description."""
ATTRIBUTE_MAX_CHARS: Final = 512
"""Length of a value among them [characters]."""
_Attribute = Annotated[str, Rule(max_length=ATTRIBUTE_MAX_CHARS)]
_Attributes = Annotated[dict[_ChannelName, _Attribute], Rule(max_length=ATTRIBUTES_MAX)]
_ZoneName = Annotated[str, Rule(max_length=ZONE_MAX_CHARS)]
# Python's $ also matches before a final newline.
_Topic = Annotated[str, Rule(pattern=r"^([A-Za-z0-9._-]{1,64}/){4}$(?!\n)")]
_Checks = Annotated[tuple[str, ...], Rule(max_length=CHECKS_MAX)]
TRIGGERS_MAX: Final = 1024
"""Triggers that a heartbeat lists."""
_TriggerName = Annotated[str, Rule(pattern=r"^[A-Za-z0-9._-]{1,64}$(?!\n)")]
_TriggerNames = Annotated[tuple[_TriggerName, ...], Rule(max_length=TRIGGERS_MAX)]


class _ValuesHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of every message with values."""

    v: Literal[1] = VERSION
    schema: str = ""
    seq: _Count
    """Number of this message in its topic since the epoch began, from 0."""
    epoch: _Count
    """Random number of this start of the daemon."""
    t_utc_ns: _Time
    """UTC of the frame's first sample [ns since 1970]."""
    t_mono_ns: _Time
    """The daemon's monotonic clock at the frame's first sample [ns]."""
    sample_index: _Count
    """Absolute index of the frame's first sample; lost samples count."""
    fs: _SampleRate
    """Sample rate [Hz]."""
    win_length: _Length
    """Samples under the window."""
    nfft: _Length
    """Transform length."""
    hop: _Positive
    """Samples from one message to the next."""
    window: str
    """Name of the window."""
    enbw_hz: _Bandwidth
    """Equivalent noise bandwidth of the window, and so of a bin [Hz]."""
    dtype: DType = "<f4"
    """Element type of the payload."""
    shape: tuple[_Length]
    """Number of values."""
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
    """Overflows flagged by the sound system since the epoch began."""
    dropped: _Count = 0
    """Messages of this topic that the daemon's send queue has dropped since the epoch began."""
    suspected: _Count = 0
    """Losses since the epoch began that nothing flagged, found by counting."""
    conditions: _Conditions | msgspec.UnsetType = msgspec.UNSET
    """What checks found in the samples of this message, such as ``clipping``; absent where they
    did not check all of them."""


class SpectrumHeader(_ValuesHeader, frozen=True, kw_only=True, gc=False):
    """A spectrum: one value a bin.

    Value k lies at center_frequency_hz + (first_bin + k) * fs / nfft.
    """

    schema: Literal["spectrod.spectrum"] = "spectrod.spectrum"
    first_bin: _FirstBin = 0
    """Number of the first value's bin: ``-(nfft // 2)`` where two-sided."""
    weighting: str = "Z"
    """Frequency weighting, ``A``, ``C``, or ``Z`` for none."""
    averaging: str = "none"
    """Of power over frames: ``none``, ``mean``, ``max``, ``min``, ``exponential``, ``floor``, or
    ``L90`` for what is exceeded 90 % of the time."""
    averaging_frames: _Positive = 1
    """Frames in a row of the average; 1 without averaging."""
    averaging_s: _Seconds | None = None
    """Time constant of an exponential average [s]; else null."""
    frame_hop: _Count = 0
    """Samples from one frame to the next within an average; 0: as hop."""
    cut_frames: _Count = 0
    """Frames of this message's average if a gap or the end cut it off; 0: as averaging_frames."""
    rate_hz: _Rate = 0.0
    """Messages a second, exactly: hop is rounded down then; 0: hop samples from one to the next."""
    align: str = "start"
    """``utc``: messages of rate_hz begin at multiples of 1 / rate_hz in UTC; else ``start``."""
    center_frequency_hz: _CenterFrequency = 0.0
    """Frequency to which the receiver of I/Q samples is tuned, added to that of each bin [Hz]."""


class BandsHeader(_ValuesHeader, frozen=True, kw_only=True, gc=False):
    """A spectrum in bands: one value a band; the description has their frequencies."""

    schema: Literal["spectrod.bands"] = "spectrod.bands"
    bands: str
    """Name of the bands, for example ``third-octave``."""
    n_bands: _Length
    """How many bands there are: the number of values."""
    weighting: str = "Z"
    averaging: str = "none"
    averaging_frames: _Positive = 1
    averaging_s: _Seconds | None = None
    frame_hop: _Count = 0
    cut_frames: _Count = 0
    rate_hz: _Rate = 0.0
    align: str = "start"


class IntervalHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of every measurement: named values of one channel in one interval."""

    v: Literal[1] = VERSION
    schema: str = ""
    seq: _Count
    epoch: _Count
    t_utc_ns: _Time
    """UTC of the interval's first sample [ns since 1970]."""
    t_mono_ns: _Time
    """The daemon's monotonic clock at the interval's first sample [ns]."""
    sample_index: _Count
    """Absolute index of the interval's first sample; lost samples count."""
    fs: _SampleRate
    interval_s: _Seconds
    """Length of an interval [s]."""
    n_samples: _Count
    """Samples that were measured."""
    due_samples: _Count
    """Samples of the whole interval."""
    quantities: _QuantityNames
    """Name of each value, for example ``LAeq``."""
    units: _QuantityNames
    """Unit of each value, for example ``dB SPL``."""
    dtype: DType = "<f8"
    shape: tuple[_Length]
    ref: str
    """What the unit of levels refers to."""
    cal_id: str | None = None
    flags: tuple[str, ...] = ()
    """Names of the interval's flags: ``overload``, ``under_range``, ``settling``, ``gap``,
    ``partial``."""
    dropped: _Count = 0


class LevelsHeader(IntervalHeader, frozen=True, kw_only=True):
    """Sound levels of one channel in one interval: one named value a quantity."""

    schema: Literal["spectrod.levels"] = "spectrod.levels"


class _FramesHeader(IntervalHeader, frozen=True, kw_only=True):
    """Fields of every message with values of an interval's frames."""

    window: str
    win_length: _Length
    nfft: _Length
    hop: _Positive
    """Samples from one frame to the next."""
    n_frames: _Count
    """Frames that were measured."""
    band_hz: tuple[float, float]
    """Lowest and highest frequency that counts [Hz]."""


class _BinsHeader(_FramesHeader, frozen=True, kw_only=True):
    """Fields of every message that may have values of bins as one more part."""

    spectra: _ColumnNames = ()
    """Name of each row of the part with values of bins, for example ``kurtosis``; empty: no such
    part."""
    spectra_units: _ColumnNames = ()
    """Unit of each of these rows."""
    first_bin: _AnyBin = 0
    """Number of the first bin of these rows."""
    n_bins: _BinCount = 0
    """Bins of these rows; 0 without any."""
    center_frequency_hz: _CenterFrequency = 0.0


class FeaturesHeader(_BinsHeader, frozen=True, kw_only=True):
    """Features of one channel in one interval: one named value a quantity."""

    schema: Literal["spectrod.features"] = "spectrod.features"


class TransferHeader(_BinsHeader, frozen=True, kw_only=True):
    """Transfer function from a reference to one channel, its response, in one interval."""

    schema: Literal["spectrod.transfer"] = "spectrod.transfer"
    reference: _ChannelName
    """The CHANNEL of the reference; that of the topic is the response."""
    reference_cal_id: str | None = None
    """Identity of the reference's calibration; null if there is none."""
    averaging: str = "mean"
    """Of the cross spectra: ``mean`` of the interval, or ``exponential`` over all frames."""
    averaging_s: _Seconds | None = None
    """Time constant of an exponential average [s]; else null."""
    delay_samples: _Delay = 0
    """Delay of the response that was removed before the frames [samples]."""


class TonesHeader(_FramesHeader, frozen=True, kw_only=True):
    """Values of the tones of one channel in one interval, and its tracks as one more part."""

    schema: Literal["spectrod.tones"] = "spectrod.tones"
    n_tracks: _TrackCount
    """Rows of the part of the tracks."""
    columns: _Columns
    """Name of each of their columns, for example ``frequency``."""
    column_units: _Columns
    """Unit of each column."""


class MetaHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Description of a topic: all that is constant; the payload is the frequency axis [Hz]."""

    v: Literal[1] = VERSION
    schema: Literal["spectrod.meta"] = "spectrod.meta"
    seq: _Count
    epoch: _Count
    t_utc_ns: _Time
    """When it was sent [ns since 1970]."""
    device: str
    """The source, for a person."""
    channels: _Channels
    """How many channels of the source are analysed."""
    fs: _SampleRate
    win_length: _Length
    nfft: _Length
    hop: _Positive
    window: str
    enbw_hz: _Bandwidth
    axis: str = "frequency"
    """What the payload is."""
    axis_unit: str = "Hz"
    """Unit of the payload."""
    dtype: DType = "<f8"
    shape: tuple[_Length]
    unit: str
    """Unit of the values that are described."""
    ref: str
    cal_id: str | None = None
    engine: str
    """What computes the values."""
    first_bin: _FirstBin = 0
    channel_names: _ChannelNames = ()
    """The CHANNEL of each of the source's topics, in the order of its channels."""
    bands: str = ""
    """Name of the bands; empty: the values are bins. Bands have their edges as one more part."""
    weighting: str = "Z"
    averaging: str = "none"
    averaging_frames: _Positive = 1
    averaging_s: _Seconds | None = None
    frame_hop: _Count = 0
    rate_hz: _Rate = 0.0
    align: str = "start"
    center_frequency_hz: _CenterFrequency = 0.0
    response_hz: tuple[_Frequency, _Frequency] | msgspec.UnsetType = msgspec.UNSET
    """Lowest and highest frequency at which the frequency response is known and corrected [Hz];
    absent without a response. Values beyond have the stated sensitivity alone."""
    attributes: _Attributes | msgspec.UnsetType = msgspec.UNSET
    """Where the source is, and what it is, by names of ACDD 1.3; absent where nothing is stated."""
    time_zone: _ZoneName | msgspec.UnsetType = msgspec.UNSET
    """Time zone of the place where the source is, by its name in the IANA database, which the
    receiver may not know; absent where none is stated."""


class IntervalTopic(msgspec.Struct, frozen=True):
    """A topic of measurements, which may be long before its first message."""

    topic: _Topic
    interval_s: _Seconds
    """Length of an interval [s]."""


_IntervalTopics = Annotated[tuple[IntervalTopic, ...], Rule(max_length=INTERVAL_TOPICS_MAX)]


class HeartbeatHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Periodic state of a source, also while it sends no spectra."""

    v: Literal[1] = VERSION
    schema: Literal["spectrod.heartbeat"] = "spectrod.heartbeat"
    seq: _Count
    """Number of this message in its topic since the epoch began, from 0."""
    epoch: _Count
    """Random number of this start of the daemon."""
    t_utc_ns: _Time
    """When it was sent [ns since 1970]."""
    t_mono_ns: _Time
    """The daemon's monotonic clock when it was sent [ns]."""
    state: str
    """State of the source, see ``spectrod.lib.stats.State``; later versions may add others."""
    frames: _Count
    """Frames that have reached the publisher since the epoch began."""
    overflows: _Count = 0
    """Overflows flagged by the sound system since the epoch began."""
    dropped: _Count = 0
    """Frames that the daemon's send queue has dropped since the epoch began."""
    waiting_for: str = ""
    """Why no samples come, for a person; empty while they do."""
    suspected: _Count = 0
    """Losses since the epoch began that nothing flagged, found by counting."""
    restarts: _Count = 0
    """Restarts of the capture since the epoch began."""
    rate_error_ppm: float | None = None
    """Measured over nominal sample rate, less one [1e-6]; null if not known."""
    rate_uncertainty_ppm: float | None = None
    """Half width of its 95 % interval [1e-6]; null if not known."""
    checks: _Checks = ()
    """Current findings of the content checks, for a person."""
    clipped_samples: _Count = 0
    """Samples at full scale in runs of three or more since the epoch began, over all channels."""
    interval_topics: _IntervalTopics = ()
    """Topics of intervals that the source offers; of more than 1024 the first ones."""
    triggers: _TriggerNames = ()
    """Names of the source's triggers; of more than 1024 the first ones."""
    active_triggers: _TriggerNames = ()
    """Those of them whose event lasts."""
    trigger_products: _TriggerNames = ()
    """Products beside the main one that its triggers examine; of more than 1024 the first ones."""


class TriggerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of an event of a trigger: of its begin, or of its end."""

    name: str
    """Name of the trigger."""
    kind: str
    """Kind of the trigger: ``band``, ``bin``, ``mask``, ``tone``, ``tone-missing``."""
    state: Literal["begun", "ended"]
    """Whether the event begins or has ended."""
    reason: str = ""
    """Why it ended: ``released``, ``gap`` or ``stopped``; empty where it begins."""
    product: str
    """Product that the trigger examines."""
    channel: str
    """Channel of the value, the CHANNEL of topics."""
    f_min_hz: float
    """Lower end of the frequencies that the trigger examines [Hz]."""
    f_max_hz: float
    """Upper end of the frequencies that the trigger examines [Hz]."""
    frequency_hz: float | None
    """Frequency of the value [Hz]; null for the level of the whole range."""
    level: float
    """Value that lay furthest over the threshold so far, in ``unit``."""
    threshold: float
    """Threshold of that value, in ``unit``."""
    floor: float | None = None
    """Noise floor of that value, in ``unit``; null without one."""
    unit: str
    """Unit of the levels."""
    begin_utc_ns: _Time
    """UTC of the condition's first sample [ns since 1970]."""
    end_utc_ns: _Time
    """UTC of the condition's last sample so far [ns since 1970]."""
    peak_utc_ns: _Time
    """UTC of the first sample of the row with the value [ns since 1970]."""
    duration_s: Annotated[float, Rule(ge=0)]
    """Length of the condition so far [s]."""
    pulses: _Positive | None = None
    """Pulses so far, of a trigger with a pattern: the times are those of all of them; else null."""


class EventHeader(msgspec.Struct, frozen=True, kw_only=True):
    """An event; there is no payload."""

    v: Literal[1] = VERSION
    schema: Literal["spectrod.event"] = "spectrod.event"
    seq: _Count
    """Number of this event in its topic, from 0."""
    epoch: _Count
    """Random number of this start of the daemon."""
    t_utc_ns: _Time
    """Time of the event [ns since 1970]."""
    number: _Count
    """Number of this event among all of the daemon's, from 0."""
    kind: str
    """Kind of the event, words separated by dots, for example ``source.waiting``."""
    text: str
    """Description, for a person."""
    source: str = ""
    """Name of the source; empty for an event of the daemon."""
    who: str = ""
    """Peer that caused it; empty if none did."""
    trigger: TriggerFacts | msgspec.UnsetType = msgspec.UNSET
    """Of ``trigger.begun`` and ``trigger.ended`` the numbers; else absent."""


MEASUREMENTS: Final[Mapping[str, type[IntervalHeader]]] = {
    "levels": LevelsHeader,
    "features": FeaturesHeader,
    "tones": TonesHeader,
    "transfer": TransferHeader,
}
"""Header of each kind of measurement by the first word of its topics, the end of ``schema``."""
WORDS: Final = ("spec", "bands", *MEASUREMENTS)
"""First words of topics with values."""

ValuesHeader = SpectrumHeader | BandsHeader
Header = ValuesHeader | IntervalHeader | MetaHeader | HeartbeatHeader | EventHeader
