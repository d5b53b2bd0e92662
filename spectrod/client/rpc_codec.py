"""Encoding of control requests and decoding of replies. Knows no socket."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

import msgspec

from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    DeniedError,
    InternalError,
    NotFoundError,
    SpectrodError,
    StorageError,
    UnavailableError,
    WireError,
)
from spectrod.lib.text import printable, reason_of
from spectrod.wire.requests import VERSION, Messages

_EXCERPT_CHARS = 60
_ERRORS: Final[Mapping[str, type[SpectrodError]]] = {
    "bad_request": ConfigError,
    "unknown_method": ConfigError,
    "bad_params": ConfigError,
    "denied": DeniedError,
    "too_many": BusyError,
    "not_found": NotFoundError,
    "refused": ConfigError,
    "unavailable": UnavailableError,
    "storage": StorageError,
    "busy": BusyError,
    "internal": InternalError,
}


class _Failure(msgspec.Struct, frozen=True):
    """As ``requests.Failure``, with codes that a later version may have added."""

    code: str
    message: str


class _Reply(msgspec.Struct, frozen=True):
    v: int
    id: int | str | None
    ok: bool
    result: Any = None
    error: _Failure | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Reply)


def encode_call(number: int, method: str, params: Mapping[str, Any]) -> bytes:
    """Encode a request.

    Raises
    ------
    ConfigError
        If JSON cannot represent a parameter.
    """
    request = {"v": VERSION, "id": number, "method": method, "params": dict(params)}
    try:
        return _encoder.encode(request)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"{method}: parameters that JSON cannot represent: {error}") from error


def decode_reply(number: int, parts: Sequence[bytes]) -> tuple[Any, Sequence[bytes]] | None:
    """Decode a reply.

    Returns
    -------
    result, parts : object and sequence of bytes, or None
        Result of the method and the parts after it; None if it is the reply to an earlier request
        that was given up.

    Raises
    ------
    WireError
        If it is no reply.
    SpectrodError
        Error of the daemon, its class by the error code: see ``docs/control.md``.
    """
    try:
        reply = _decoder.decode(parts[0])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        excerpt = parts[0][:_EXCERPT_CHARS].decode("utf-8", "backslashreplace")
        raise WireError(printable(f"reply={excerpt!r}: {reason_of(error)}")) from error
    if reply.v != VERSION:
        raise WireError(f"reply: v={reply.v}: must be {VERSION}")
    if reply.id is not None and reply.id != number:
        return None
    if reply.error is not None:
        kind = _ERRORS.get(reply.error.code, SpectrodError)
        raise kind(printable(reply.error.message))
    if not reply.ok:
        raise WireError("reply: ok=false: must name the error")
    return reply.result, parts[1:]


def messages_of(result: Any, parts: Sequence[bytes]) -> tuple[list[Sequence[bytes]], bool]:
    """Decode the result of ``replay`` and ``latest``.

    Returns
    -------
    messages : list of sequences of bytes
        Parts of each message, in order.
    more : bool
        Whether there are more.

    Raises
    ------
    WireError
        If the result does not describe the parts.
    """
    try:
        described = msgspec.convert(result, Messages)
    except msgspec.ValidationError as error:
        raise WireError(printable(f"reply: result: {error}")) from error
    if sum(described.parts) != len(parts) or min(described.parts, default=1) < 1:
        raise WireError(f"reply: parts={list(described.parts)}: must be those of {len(parts)}")
    ends = list(accumulate(described.parts))
    starts = [0, *ends[:-1]]
    return [parts[i:j] for i, j in zip(starts, ends, strict=False)], described.more
