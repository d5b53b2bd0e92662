"""Control requests and replies, version 1: what both ends of the control socket agree on. Pure.

``docs/control.md`` is the text for clients in other languages; this module is the same in Python.
A request is one part of JSON, ``{v, id, method, params}``; a reply is one part of JSON,
``{v, id, ok, result}`` or ``{v, id, ok, error}``, and for ``replay`` and ``latest`` after it the
parts of whole messages.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta as Rule
from msgspec import Struct

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
"""Of whole numbers in parameters."""
DURATION_MAX_S: Final = 366 * 86400.0
"""Of a recording."""

_Id = int | Annotated[str, Rule(max_length=64)]
_Name = Annotated[str, Rule(max_length=64)]
_Topic = Annotated[str, Rule(max_length=256)]
_Count = Annotated[int, Rule(ge=0, le=NUMBER_MAX)]


class Params(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters of a method: what is not known is refused, not passed over."""


class NoParams(Params, frozen=True):
    """Of a method that needs none."""


class SourceParams(Params, frozen=True):
    """Which source; empty means all, or the only one where one is needed."""

    source: _Name = ""


class ProductParams(SourceParams, frozen=True):
    """Which product of it; empty means all of them."""

    product: _Name = ""


class GetParams(Params, frozen=True):
    """Which part of the settings in force, ``SECTION``, ``SECTION.KEY``; empty means all."""

    key: Annotated[str, Rule(max_length=200)] = ""


class SetParams(Params, frozen=True):
    """Keys of the configuration, as ``changed_keys`` names them, and their new values."""

    changes: Annotated[dict[str, Any], Rule(min_length=1, max_length=64)]


class AddSourceParams(Params, frozen=True):
    """A source to begin with, as a table ``[sources.NAME]`` would name it."""

    name: _Name
    settings: dict[str, Any]


class RemoveSourceParams(Params, frozen=True):
    """A source to end."""

    name: _Name


class StartRecordingParams(ProductParams, frozen=True):
    """A file to be written from now on, of one product of one source, or of its samples."""

    name: Annotated[str, Rule(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,99})?\Z")] = ""
    """File in the state folder, without a folder; its suffix says what it holds, a picture if it
    has none. Empty takes source, product and time."""
    duration_s: Annotated[float, Rule(gt=0, le=DURATION_MAX_S)] | None = None


class StopRecordingParams(Params, frozen=True):
    """Which recording; empty means all."""

    name: Annotated[str, Rule(max_length=100)] = ""


class TriggerParams(SourceParams, frozen=True):
    """Which of the configuration's recordings, on which source; empty means all with triggers."""

    name: _Name = ""


class EventsParams(Params, frozen=True):
    """Events from a number on."""

    since: _Count = 0
    limit: Annotated[int, Rule(ge=1, le=1000)] = 100


class ReplayParams(Params, frozen=True):
    """Messages of a topic from a sequence number on, of one epoch; 0 takes the current one."""

    topic: _Topic
    first_seq: _Count
    epoch: _Count = 0
    limit: Annotated[int, Rule(ge=1, le=1000)] = 256


class LatestParams(Params, frozen=True):
    """The newest message of a topic that is newer than one had before; waits for it so long."""

    topic: _Topic
    after_seq: Annotated[int, Rule(ge=-1, le=NUMBER_MAX)] = -1
    epoch: _Count = 0
    timeout_s: Annotated[float, Rule(ge=0, le=60)] = 0.0


class Method(Struct, frozen=True):
    """What a method takes, and what right it needs."""

    params: type[Params]
    right: Right
    summary: str


METHODS: Final[Mapping[str, Method]] = {
    "status": Method(NoParams, "read", "state, counts and losses of each source"),
    "metrics": Method(NoParams, "read", "every counter, by name with its unit"),
    "get": Method(GetParams, "read", "settings in force"),
    "events": Method(EventsParams, "read", "what has happened"),
    "replay": Method(ReplayParams, "read", "messages that were missed, by sequence number"),
    "latest": Method(LatestParams, "read", "the newest message of a topic"),
    "set": Method(SetParams, "control", "change settings of the running daemon"),
    "reload": Method(NoParams, "control", "read the configuration and the keys again"),
    "pause": Method(SourceParams, "control", "compute, send and record nothing of a source"),
    "resume": Method(SourceParams, "control", "go on"),
    "reset": Method(ProductParams, "control", "begin averages and holds anew"),
    "source.add": Method(AddSourceParams, "control", "begin with one more source"),
    "source.remove": Method(RemoveSourceParams, "control", "end a source"),
    "record.start": Method(
        StartRecordingParams, "control", "begin a picture, .spd, .wav or .flac in the state folder"
    ),
    "record.stop": Method(StopRecordingParams, "control", "finish what was begun"),
    "record.trigger": Method(TriggerParams, "control", "record around now"),
}


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a peer asks for."""

    v: Literal[1] = VERSION
    id: _Id
    """Comes back in the reply."""
    method: Annotated[str, Rule(max_length=64)]
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Failure(Struct, frozen=True, kw_only=True):
    """Why a request was not carried out; then nothing has changed."""

    code: ErrorCode
    message: str


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a request."""

    v: Literal[1]
    id: _Id | None
    """None where the request's could not be read."""
    ok: bool
    result: Any = None
    error: Failure | None = None


class Messages(Struct, frozen=True, kw_only=True):
    """Result of ``replay`` and ``latest``: what the parts after the reply's JSON are."""

    epoch: int
    """Of this start of the daemon; sequence numbers of another one mean nothing here."""
    parts: tuple[int, ...]
    """How many parts each message has, in their order; empty: there was none, or not in time."""
    more: bool = False
    """Of replay: there are more; ask again from the last one's sequence number plus one."""


class _Identity(Struct):
    """As much of a request as a reply to it needs."""

    id: _Id


_requests = msgspec.json.Decoder(Request)
_identities = msgspec.json.Decoder(_Identity)
_params = {name: msgspec.json.Decoder(method.params) for name, method in METHODS.items()}
# Deep nesting ends in RecursionError, texts that are not UTF-8 in UnicodeDecodeError.
_BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_request(part: bytes) -> tuple[Request, Params] | Reply:
    """Read a request, or make the reply that says why it is none; never raises.

    Parameters
    ----------
    part : bytes
        Whatever a peer has sent.

    Returns
    -------
    request, params : Request, Params
        The parameters are of the type that ``METHODS`` names.
    reply : Reply
        In their place, if a rule is broken.
    """
    if len(part) > REQUEST_MAX_BYTES:
        text = f"request of {len(part)} bytes: must be at most {REQUEST_MAX_BYTES}"
        return failed(None, "bad_request", text)
    try:
        request = _requests.decode(part)
    except _BAD_JSON as error:
        return failed(_identity(part), "bad_request", f"request: {error}")
    if request.method not in METHODS:
        text = f"method={request.method!r}: must be one of {', '.join(METHODS)}"
        return failed(request.id, "unknown_method", text)
    try:
        return request, _params[request.method].decode(request.params)
    except _BAD_JSON as error:
        return failed(request.id, "bad_params", f"{request.method}: {error}")


def failed(request_id: _Id | None, code: ErrorCode, message: str) -> Reply:
    """Make the reply to a request that is not carried out."""
    return Reply(v=VERSION, id=request_id, ok=False, error=Failure(code=code, message=message))


def _identity(part: bytes) -> _Id | None:
    try:
        return _identities.decode(part).id
    except _BAD_JSON:
        return None
