"""Dispatch of control requests: the peer, the handler, and how its answer becomes a reply."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import msgspec

from spectrod.daemon.access.peer import Peer
from spectrod.lib.errors import (
    BusyError,
    DeniedError,
    InternalError,
    NotFoundError,
    SpectrodError,
    StorageError,
    UnavailableError,
)
from spectrod.lib.text import printable, printable_all
from spectrod.wire.requests import VERSION, ErrorCode, MethodParams, Reply, Request, failed

_log = logging.getLogger(__name__)

# All other classes become "refused": their text names the value and the rule.
_CODES: Final[tuple[tuple[type[SpectrodError], ErrorCode], ...]] = (
    (NotFoundError, "not_found"),
    (DeniedError, "denied"),
    (BusyError, "busy"),
    (StorageError, "storage"),
    (UnavailableError, "unavailable"),
    (InternalError, "internal"),
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a method."""

    result: Any = None
    """JSON-serialisable: built-in types and msgspec's structs."""
    parts: Sequence[bytes] = ()
    """Parts of whole messages, sent after the reply."""


@dataclass(frozen=True, slots=True)
class Later:
    """Deferred answer."""

    look: Callable[[], "Answer | Later | None"]
    """Returns the answer once it is available, else None; called by the server's thread."""
    watch: Callable[[Callable[[], None]], Callable[[], None]]
    """Registers a callback that any thread calls when the answer may be available; returns a
    function that unregisters it.

    Raises SpectrodError if the answer cannot come any more.
    """
    timeout_s: float
    otherwise: Answer | Reply
    """Answer after the timeout."""


class Handler(Protocol):
    """Handler of requests that have passed all checks."""

    def call(self, method: str, params: MethodParams, peer: Peer) -> Answer | Later:
        """Execute a method; raises SpectrodError. One with the right ``read`` must not block."""


def guarded(request: Request, act: Callable[[], _T]) -> _T | Reply:
    """Call a function for a request; return its result, or the reply with its error."""
    try:
        return act()
    except SpectrodError as error:
        return failed(request.id, error_code(error), printable(str(error)))
    except Exception as error:  # noqa: BLE001
        # A bug in one method must not end the thread, and the daemon with it.
        _log.exception("control: %s failed", request.method)
        return failed(request.id, "internal", f"{printable(repr(error))}: please report this")


def succeeded(request: Request, answer: Answer) -> Reply:
    """Return the reply to a request that succeeded."""
    return Reply(v=VERSION, id=request.id, ok=True, result=answer.result)


def encode_reply(reply: Reply) -> bytes:
    """Encode a reply as JSON in UTF-8; escape all its texts if one is not valid UTF-8."""
    try:
        return msgspec.json.encode(reply)
    except UnicodeEncodeError:
        return msgspec.json.encode(printable_all(msgspec.to_builtins(reply)))


def error_code(error: SpectrodError) -> ErrorCode:
    """Return the code of an error in replies."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), "refused")
