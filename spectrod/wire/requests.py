"""Control requests and replies, version 1: shared by client and daemon. Pure.

``docs/control.md`` specifies the protocol; this module implements it. A request is one part of
JSON, ``{v, id, method, params}``; a reply is one part of JSON, ``{v, id, ok, result}`` or ``{v, id,
ok, error}``, and for ``replay`` and ``latest`` after it the parts of whole messages.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta as Rule
from msgspec import Struct

from spectrod.lib.text import reason_of

VERSION: Final = 1
REQUEST_MAX_BYTES: Final = 64 * 1024

Right = Literal["read", "control"]
"""``control`` includes ``read``."""

ErrorCode = Literal[
    "bad_request",  # not JSON, not {v, id, method, params}, or too large
    "unknown_method",
    "bad_params",
    "denied",  # the peer's key has no right to it
    "too_many",  # more requests than the limit
    "not_found",  # no such source, product, topic, recording
    "refused",  # a rule is broken; the text names value and rule
    "unavailable",
    "storage",
    "busy",
    "internal",
]

NUMBER_MAX: Final = (1 << 63) - 1
"""Upper bound on integers in parameters."""
DURATION_MAX_S: Final = 366 * 86400.0
"""Upper bound on the duration of a recording [s]."""
LEARNING_MAX_S: Final = 7 * 86400.0
"""Upper bound on the time to learn a mask from [s]."""

_Id = int | Annotated[str, Rule(max_length=64)]
_Name = Annotated[str, Rule(max_length=64)]
_Topic = Annotated[str, Rule(max_length=256)]
_Count = Annotated[int, Rule(ge=0, le=NUMBER_MAX)]


class MethodParams(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters of a method: unknown fields are refused, not ignored."""


class NoParams(MethodParams, frozen=True):
    """Parameters of a method without any."""


class SourceParams(MethodParams, frozen=True):
    """A source; empty means all, or the only one where one is needed."""

    source: _Name = ""


class ProductParams(SourceParams, frozen=True):
    """A product of the source; empty means all."""

    product: _Name = ""


MetricsFormat = Literal["list", "prometheus", "openmetrics"]


class MetricsParams(MethodParams, frozen=True):
    """Format of the metrics: a list of objects, or text that Prometheus reads."""

    format: MetricsFormat = "list"


class GetParams(MethodParams, frozen=True):
    """A part of the settings in force, ``SECTION`` or ``SECTION.KEY``; empty means all."""

    key: Annotated[str, Rule(max_length=200)] = ""


class SetParams(MethodParams, frozen=True):
    """Keys of the configuration, as ``changed_keys`` names them, and their new values."""

    changes: Annotated[dict[str, Any], Rule(min_length=1, max_length=64)]


class AddSourceParams(MethodParams, frozen=True):
    """A source to add, with the settings of a table ``[sources.NAME]``."""

    name: _Name
    settings: dict[str, Any]


class RemoveSourceParams(MethodParams, frozen=True):
    """A source to remove."""

    name: _Name


class StartRecordingParams(ProductParams, frozen=True):
    """A new recording: one file with one product of one source, or with its samples."""

    name: Annotated[str, Rule(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,99})?\Z")] = ""
    """Name of a file in the state folder; its suffix gives the format, a picture without one. Empty
    for a name of source, product and time."""
    duration_s: Annotated[float, Rule(gt=0, le=DURATION_MAX_S)] | None = None


class StopRecordingParams(MethodParams, frozen=True):
    """A recording; empty means all."""

    name: Annotated[str, Rule(max_length=100)] = ""


class TriggerParams(SourceParams, frozen=True):
    """A configured recording of a source; empty means all with triggers."""

    name: _Name = ""


class StartLearningParams(ProductParams, frozen=True, kw_only=True):
    """A mask to learn from a product; an empty product means the main one."""

    name: Annotated[str, Rule(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")]
    """Name of the mask: of a file in the state folder, without its suffix."""
    duration_s: Annotated[float, Rule(gt=0, le=LEARNING_MAX_S)] = 600.0
    percentile: Annotated[float, Rule(ge=50, le=99.99)] = 99.0
    margin_db: Annotated[float, Rule(ge=-100, le=100)] = 6.0
    replace: bool = False
    """Whether a mask of this name may exist, and is replaced."""


class AbortLearningParams(MethodParams, frozen=True):
    """A mask that is being learned; empty means the only one."""

    name: _Name = ""


class EventsParams(MethodParams, frozen=True):
    """Events from a number on."""

    since: _Count = 0
    limit: Annotated[int, Rule(ge=1, le=1000)] = 100


class ReplayParams(MethodParams, frozen=True):
    """Messages of a topic from a sequence number on; epoch 0 is the current one."""

    topic: _Topic
    first_seq: _Count
    epoch: _Count = 0
    limit: Annotated[int, Rule(ge=1, le=1000)] = 256


class LatestParams(MethodParams, frozen=True):
    """The newest message of a topic after a sequence number; waits up to timeout_s for one."""

    topic: _Topic
    after_seq: Annotated[int, Rule(ge=-1, le=NUMBER_MAX)] = -1
    epoch: _Count = 0
    timeout_s: Annotated[float, Rule(ge=0, le=60)] = 0.0


class Method(Struct, frozen=True):
    """Parameters and right of a method."""

    params: type[MethodParams]
    right: Right
    summary: str


METHODS: Final[Mapping[str, Method]] = {
    "status": Method(NoParams, "read", "state, counts and losses of each source"),
    "metrics": Method(MetricsParams, "read", "every counter, by name with its unit"),
    "get": Method(GetParams, "read", "settings in force"),
    "events": Method(EventsParams, "read", "past events"),
    "learn.list": Method(NoParams, "read", "masks that are or were being learned"),
    "replay": Method(ReplayParams, "read", "missed messages, by sequence number"),
    "latest": Method(LatestParams, "read", "the newest message of a topic"),
    "set": Method(SetParams, "control", "change settings of the running daemon"),
    "reload": Method(NoParams, "control", "read the configuration and the keys again"),
    "pause": Method(SourceParams, "control", "stop computing, sending and recording a source"),
    "resume": Method(SourceParams, "control", "resume a paused source"),
    "reset": Method(ProductParams, "control", "reset averages and holds"),
    "source.add": Method(AddSourceParams, "control", "add a source"),
    "source.remove": Method(RemoveSourceParams, "control", "remove a source"),
    "record.start": Method(
        StartRecordingParams,
        "control",
        "start a picture, a file of spectra or of sound in the state folder",
    ),
    "record.stop": Method(StopRecordingParams, "control", "stop recordings and finish their files"),
    "learn.start": Method(StartLearningParams, "control", "start to learn a mask for triggers"),
    "learn.abort": Method(AbortLearningParams, "control", "stop learning a mask"),
    "record.trigger": Method(TriggerParams, "control", "save pre-roll and post-roll around now"),
}


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request of a peer."""

    v: Literal[1] = VERSION
    id: _Id
    """Repeated in the reply."""
    method: Annotated[str, Rule(max_length=64)]
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Failure(Struct, frozen=True, kw_only=True):
    """Why a request failed; nothing has changed then."""

    code: ErrorCode
    message: str


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to a request."""

    v: Literal[1]
    id: _Id | None
    """None if the request's id could not be read."""
    ok: bool
    result: Any = None
    error: Failure | None = None


class Messages(Struct, frozen=True, kw_only=True):
    """Result of ``replay`` and ``latest``: describes the parts after the reply's JSON."""

    epoch: int
    """Epoch of this start of the daemon; sequence numbers are valid only in their epoch."""
    parts: tuple[int, ...]
    """Number of parts of each message, in order; empty if there was none, or none in time."""
    more: bool = False
    """For replay: there are more; request again from the last sequence number plus one."""


class _Identity(Struct):
    """The part of a request that a reply needs."""

    id: _Id


_requests = msgspec.json.Decoder(Request)
_identities = msgspec.json.Decoder(_Identity)
_params = {name: msgspec.json.Decoder(method.params) for name, method in METHODS.items()}
# Deep nesting raises RecursionError, invalid UTF-8 UnicodeDecodeError.
_BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_request(part: bytes) -> tuple[Request, MethodParams] | Reply:
    """Decode a request, or return the reply with the error; never raises.

    Parameters
    ----------
    part : bytes
        Any bytes of a peer.

    Returns
    -------
    request, params : Request, MethodParams
        The parameters have the type that ``METHODS`` names.
    reply : Reply
        Returned instead if a rule is broken.
    """
    if len(part) > REQUEST_MAX_BYTES:
        text = f"request of {len(part)} bytes: must be at most {REQUEST_MAX_BYTES}"
        return failed(None, "bad_request", text)
    try:
        request = _requests.decode(part)
    except _BAD_JSON as error:
        return failed(_identity(part), "bad_request", f"request: {reason_of(error)}")
    if request.method not in METHODS:
        text = f"method={request.method!r}: must be one of {', '.join(METHODS)}"
        return failed(request.id, "unknown_method", text)
    try:
        return request, _params[request.method].decode(request.params)
    except _BAD_JSON as error:
        return failed(request.id, "bad_params", f"{request.method}: {reason_of(error)}")


def failed(request_id: _Id | None, code: ErrorCode, message: str) -> Reply:
    """Return the reply to a request that failed."""
    return Reply(v=VERSION, id=request_id, ok=False, error=Failure(code=code, message=message))


def _identity(part: bytes) -> _Id | None:
    try:
        return _identities.decode(part).id
    except _BAD_JSON:
        return None
