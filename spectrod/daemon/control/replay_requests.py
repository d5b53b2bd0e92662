"""Replay of stored messages, and access to the newest one."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from spectrod.daemon.control.dispatch import Answer, Later
from spectrod.daemon.publisher.sent_messages import History, Stored
from spectrod.lib.errors import ConfigError, NotFoundError
from spectrod.lib.stats import Stats
from spectrod.wire.headers import WORDS
from spectrod.wire.requests import LatestParams, Messages, ReplayParams

REPLY_MAX_BYTES: Final = 4 << 20
"""Limit of messages in a reply [bytes]; a reply contains at least one message."""

_LISTED_MAX = 20
"""Maximum of topics that an error lists."""

_OTHERS = ", ".join(f"{word}/..." for word in WORDS[1:-1]) + f" or {WORDS[-1]}/..."


class Lending(Protocol):
    """A source that computes a product while a lease on it lasts."""

    def stats(self) -> Stats:
        """Counters of the source, including its products."""

    def topics(self) -> frozenset[str]:
        """Topics with values that the source can send; empty while unknown."""

    def lease(self, product: str, seconds: float) -> None:
        """Compute a product for a duration [s]."""


def replay(history: History, params: ReplayParams) -> Answer:
    """Return the stored messages of a topic from a number on."""
    # One more than requested shows whether there are more.
    stored = history.since(params.topic, params.first_seq, params.epoch, params.limit + 1)
    if not stored and params.topic not in history.topics():
        raise _unknown(params.topic, history.topics())
    given = _within_bounds(stored, params.limit)
    return _answer(history, given, more=len(given) < len(stored))


def latest(
    history: History, find: Callable[[str], Lending], params: LatestParams
) -> Answer | Later:
    """Return the newest message of a topic, or wait for the first one after a given number.

    The last message of a product that nobody wanted is old, even if the client has not seen it. If
    the request allows waiting, that message is returned only if no newer one arrives.

    Parameters
    ----------
    history : History
    find : callable
        Returns a source by its name; raises NotFoundError.
    params : LatestParams

    Raises
    ------
    ConfigError, NotFoundError
        If the topic is malformed, or unknown.
    """
    source, product = _source_and_product(params.topic, history.topics())
    lending = find(source)
    stats, before = lending.stats(), history.newest(params.topic)
    if product not in stats.products:
        raise _unknown(params.topic, history.topics())
    offered = lending.topics()
    if offered and params.topic not in offered:  # no message would ever come
        raise _unknown(params.topic, offered)
    after_seq = params.after_seq if params.epoch in (0, history.epoch) else -1

    def newer_than(seq: int) -> Answer | None:
        newest = history.newest(params.topic)
        return _answer(history, [newest]) if newest and newest.seq > seq else None

    otherwise = newer_than(after_seq) or _answer(history, [])
    if not params.timeout_s:
        return otherwise
    if before and product not in stats.computed:
        after_seq = max(after_seq, before.seq)

    def watch(wake: Callable[[], None]) -> Callable[[], None]:
        lending.lease(product, params.timeout_s)
        return history.watch(params.topic, lambda _: wake())

    def look() -> Answer | None:
        return newer_than(after_seq)

    return look() or Later(look, watch, params.timeout_s, otherwise)


def _source_and_product(topic: str, known: Iterable[str]) -> tuple[str, str]:
    match topic.split("/"):
        case [word, source, channel, product, ""] if word in WORDS and source and channel:
            return source, product
    raise ConfigError(
        f"topic={topic!r}: must be spec/SOURCE/CHANNEL/PRODUCT/, {_OTHERS}, one whole topic; "
        f"there are: {_listed(known)}"
    )


def _unknown(topic: str, known: Iterable[str]) -> NotFoundError:
    return NotFoundError(f"topic={topic!r}: does not exist; there are: {_listed(known)}")


def _listed(known: Iterable[str]) -> str:
    """List the first ``_LISTED_MAX`` topics, and the number of all others."""
    topics = sorted(known)
    listed = ", ".join(topics[:_LISTED_MAX]) or "none yet"
    n_more = len(topics) - _LISTED_MAX
    return f"{listed} and {n_more} more" if n_more > 0 else listed


def _within_bounds(stored: Iterable[Stored], limit: int) -> list[Stored]:
    given: list[Stored] = []
    size_bytes = 0
    for message in stored:
        size_bytes += message.size_bytes
        if len(given) == limit or (given and size_bytes > REPLY_MAX_BYTES):
            break
        given.append(message)
    return given


def _answer(history: History, stored: Sequence[Stored], *, more: bool = False) -> Answer:
    numbers = tuple(len(message.parts) for message in stored)
    result = Messages(epoch=history.epoch, parts=numbers, more=more)
    return Answer(result, [part for message in stored for part in message.parts])
