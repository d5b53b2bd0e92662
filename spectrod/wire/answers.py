"""What stands behind a control socket: who asks, what answers, and how that becomes a reply."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import msgspec

from spectrod.errors import (
    BusyError,
    DeniedError,
    InternalError,
    NotFoundError,
    SpectrodError,
    StorageError,
    UnavailableError,
)
from spectrod.text import printable, printable_all
from spectrod.wire.requests import VERSION, ErrorCode, Params, Reply, Request, Right, failed

_log = logging.getLogger(__name__)

# Of all others, the text names value and rule: "refused".
_CODES: Final[tuple[tuple[type[SpectrodError], ErrorCode], ...]] = (
    (NotFoundError, "not_found"),
    (DeniedError, "denied"),
    (BusyError, "busy"),
    (StorageError, "storage"),
    (UnavailableError, "unavailable"),
    (InternalError, "internal"),
)

_T = TypeVar("_T")


class Peer(Protocol):
    """Who asks."""

    @property
    def name(self) -> str:
        """For the log: a key's name, or user and process."""

    @property
    def right(self) -> Right | None:
        """What it may do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method gives."""

    result: Any = None
    """What JSON can say: built-in types, and msgspec's structs."""
    parts: Sequence[bytes] = ()
    """Of whole messages, to follow the reply."""


@dataclass(frozen=True, slots=True)
class Later:
    """An answer that is not there yet."""

    look: Callable[[], "Answer | Later | None"]
    """Gives it once it is there; called by the server's thread."""
    watch: Callable[[Callable[[], None]], Callable[[], None]]
    """Has a callable called, by any thread, whenever it may be there; returns what ends that.

    Raises SpectrodError of what cannot come any more.
    """
    timeout_s: float
    otherwise: Answer | Reply
    """If it does not come in time."""


class Handler(Protocol):
    """What answers requests that have passed all checks."""

    def read(self, method: str, params: Params, peer: Peer) -> Answer | Later:
        """Answer a method that changes nothing; raises SpectrodError. Must not wait."""

    def change(self, method: str, params: Params, peer: Peer) -> Answer:
        """Carry out a method that changes something; raises SpectrodError. May take its time."""


def guarded(request: Request, act: Callable[[], _T]) -> _T | Reply:
    """Do what a request asks for, or make the reply that says why not."""
    try:
        return act()
    except SpectrodError as error:
        return failed(request.id, _code(error), printable(str(error)))
    except Exception as error:  # noqa: BLE001
        # A bug in one method must end neither the thread nor the daemon with it.
        _log.exception("control: %s failed", request.method)
        return failed(request.id, "internal", f"{printable(repr(error))}: please report this")


def succeeded(request: Request, answer: Answer) -> Reply:
    """Make the reply to a request that was carried out."""
    return Reply(v=VERSION, id=request.id, ok=True, result=answer.result)


def encode_reply(reply: Reply) -> bytes:
    """Write a reply as JSON in UTF-8; if it has file names of other bytes, all of it printable."""
    try:
        return msgspec.json.encode(reply)
    except UnicodeEncodeError:
        return msgspec.json.encode(printable_all(msgspec.to_builtins(reply)))


def _code(error: SpectrodError) -> ErrorCode:
    return next((code for kind, code in _CODES if isinstance(error, kind)), "refused")
