"""One page: its view, its streams, and what waits to be sent to it. Opens no socket."""

from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from spectrod.apps.web.holds import Hold, HoldKind
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.messages import ROWS_OF_BLOCK_MAX, RowsBlock, encode_rows, encode_text
from spectrod.apps.web.outbox import Outbox
from spectrod.apps.web.page_rows import SpectrumRow
from spectrod.apps.web.page_topics import RowFacts, TopicInfo
from spectrod.apps.web.page_view import StreamWish, View
from spectrod.apps.web.quantize import CODE_FLOOR_DB
from spectrod.apps.web.slow_client import Credits, RowQueue
from spectrod.apps.web.streams import DescribedRow, RowStream, StreamDescription
from spectrod.dsp.ballistics import Ballistics

_HoldKey = tuple[int, HoldKind, Ballistics]
"""Number of the topic, kind and ballistics of a hold."""


class PageClient:
    """What the server keeps for one page; its memory is bounded by ``limits``.

    Parameters
    ----------
    limits : Limits
        Bounds.

    Attributes
    ----------
    outbox : Outbox
        Texts that wait.
    credits : Credits
        Messages that were sent.
    queue : RowQueue
        Rows that wait.
    streams : dict of int to RowStream
        By the page's numbers.
    visible : bool
        Whether the page says that it is seen; True before its first view.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.outbox = Outbox()
        self.credits = Credits(limits)
        self.queue = RowQueue(limits)
        self.streams: dict[int, RowStream] = {}
        self.visible = True
        self._values: frozenset[int] | None = None
        self._holds: dict[_HoldKey, Hold] = {}
        self._view_generation = 0
        self._n_descriptions = 0

    # ---- what the page says

    def set_view(self, view: View, topics: Mapping[int, TopicInfo]) -> None:
        """Show what a view says; a stream that it changes no more than in speed goes on."""
        self._view_generation = view.generation
        self.visible = view.visible
        self._values = None if view.values is None else frozenset(view.values)
        most = self._limits.rows_s
        wishes = [
            replace(wish, rows_s=min(wish.rows_s, most))
            for wish in view.streams
            if self._is_known(wish, topics)
        ]
        kept = {(wish.topic_id, wish.of, wish.ballistics) for wish in wishes}
        self._holds = {key: hold for key, hold in self._holds.items() if key in kept}
        self.streams = {wish.id: self._stream_for(wish) for wish in wishes}
        self._set_speed()

    def reset_holds(self, topic_id: int) -> None:
        """Begin the holds of a topic again."""
        for (of_topic, *_), hold in self._holds.items():
            if of_topic == topic_id:
                hold.reset()

    def refuse(self, what: str, why: str) -> None:
        """Say why something is not done."""
        self.outbox.set(("refused", what, why), encode_text("refused", what=what, why=why))

    # ---- what it wants

    def topics(self) -> set[int]:
        """Return the topics whose rows it shows."""
        return {stream.wish.topic_id for stream in self.streams.values()}

    def wants_values(self, topic_id: int) -> bool:
        """Return whether it shows the measurements of a topic."""
        return self._values is None or topic_id in self._values

    @property
    def value_topics(self) -> Collection[int] | None:
        """Topics whose measurements it shows; None: all."""
        return self._values

    # ---- what comes

    def describe(self, number: int, facts: RowFacts, **more: Any) -> None:
        """Describe a stream before any of its rows, which may never come.

        Parameters
        ----------
        number : int
            The page's number of the stream.
        facts : RowFacts
            What is known of the topic's rows.
        **more
            Further fields of the text.
        """
        stream = self.streams.get(number)
        if stream is None:  # it was refused with another one of its topic
            return
        if facts.axis.edges_hz is not None and facts.axis.n_bins > self._limits.values:
            self._refuse_bands(stream.wish.topic_id, facts.axis.n_bins)
            return
        # Bytes of rows that come will have their own range: no level is below this one.
        described = stream.describe(facts, CODE_FLOOR_DB)
        self.outbox.set(("stream", number), encode_text("stream", **described.fields, **more))

    def push(self, topic_id: int, row: SpectrumRow) -> None:
        """Take a row of a topic."""
        if row.facts.axis.edges_hz is not None and row.facts.axis.n_bins > self._limits.values:
            self._refuse_bands(topic_id, row.facts.axis.n_bins)
        self._hold(topic_id, row)
        for stream in self.streams.values():
            if stream.wish.topic_id == topic_id:
                for done in stream.push(row):
                    self._put(done)

    def adapt(self, now_s: float) -> None:
        """Slow down or speed up by what waits at a monotonic time."""
        self.queue.adapt(now_s)
        self._set_speed()

    def is_gone(self, now_s: float) -> bool:
        """Return whether a visible page has not drawn anything for too long."""
        return self.visible and self.credits.silent_s(now_s) >= self._limits.silent_s

    # ---- what is sent

    def take_rows(self, now_s: float) -> tuple[list[StreamDescription], bytes] | None:
        """Return the next binary message, and what must be described before it.

        Returns
        -------
        descriptions, message : list of StreamDescription, bytes
            None if no row waits, or the page has not drawn enough.
        """
        if not len(self.queue) or not self.credits.may_send(now_s):
            return None
        rows = self.queue.take(self.credits.message_bytes)
        number = self.credits.note_sent(now_s, sum(row.size_bytes for row in rows))
        return _new_descriptions(rows), encode_rows(number, _blocks(rows), self.queue.dropped)

    # ---- inside

    def _is_known(self, wish: StreamWish, topics: Mapping[int, TopicInfo]) -> bool:
        topic = topics.get(wish.topic_id)
        if topic is None or not topic.has_rows:
            self.refuse("view", f"topic_id={wish.topic_id}: must be the id of a topic with spectra")
            return False
        return True

    def _stream_for(self, wish: StreamWish) -> RowStream:
        stream = self.streams.get(wish.id)
        if stream is not None and _draws_the_same(stream.wish, wish):
            stream.wish = wish
            return stream
        if stream is not None and stream.wish.topic_id == wish.topic_id:
            for done in stream.finish():  # or the new view would begin with a hole
                self._put(done)
        hold = None
        if wish.of != "rows":
            key = (wish.topic_id, wish.of, wish.ballistics)
            hold = self._holds.setdefault(key, Hold(wish.of, wish.ballistics))
        return RowStream(wish, hold, self._describe)

    def _describe(self, fields: dict[str, Any]) -> StreamDescription:
        self._n_descriptions += 1
        values = sum(piece["values"] for piece in fields["slices"])
        numbers = {"generation": self._n_descriptions, "view": self._view_generation}
        return StreamDescription(
            fields["id"], self._n_descriptions, values, fields["bits"], fields | numbers
        )

    def _put(self, done: DescribedRow) -> None:
        for lost in self.queue.put(done):
            stream = self.streams.get(lost.description.stream)
            if stream is not None:
                stream.note_dropped()

    def _set_speed(self) -> None:
        for stream in self.streams.values():
            stream.slowdown, stream.is_hidden = self.queue.slowdown, not self.visible

    def _hold(self, topic_id: int, row: SpectrumRow) -> None:
        for (of_topic, *_), hold in self._holds.items():
            if of_topic == topic_id:
                hold.add(row)
        most = self._limits.hold_bytes
        if sum(hold.size_bytes for hold in self._holds.values()) > most:
            self.refuse("view", f"topic_id={topic_id}: all holds must have at most {most} bytes")
            self._holds = {key: hold for key, hold in self._holds.items() if key[0] != topic_id}
            self._drop_streams(topic_id)

    def _refuse_bands(self, topic_id: int, n_bands: int) -> None:
        why = f"topic_id={topic_id}: {n_bands} bands: must be at most {self._limits.values}"
        self.refuse("view", why)
        self._drop_streams(topic_id)

    def _drop_streams(self, topic_id: int) -> None:
        kept = {n: one for n, one in self.streams.items() if one.wish.topic_id != topic_id}
        self.streams = kept


def _draws_the_same(a: StreamWish, b: StreamWish) -> bool:
    """Return whether two wishes differ at most in what their description does not say."""
    return replace(a, rows_s=b.rows_s, measure=b.measure) == b


def _new_descriptions(rows: list[DescribedRow]) -> list[StreamDescription]:
    """Return the descriptions of rows that were not sent yet, in order; they count as sent."""
    found = []
    for one in rows:
        if not one.description.is_sent:
            one.description.is_sent = True
            found.append(one.description)
    return found


def _blocks(rows: list[DescribedRow]) -> list[RowsBlock]:
    """Return rows by their description, each block's in order."""
    by_stream = sorted(rows, key=lambda one: (one.description.stream, one.description.generation))
    blocks = []
    for _, group in groupby(by_stream, key=lambda one: id(one.description)):
        of_one = list(group)
        d = of_one[0].description
        for start in range(0, len(of_one), ROWS_OF_BLOCK_MAX):
            some = [one.row for one in of_one[start : start + ROWS_OF_BLOCK_MAX]]
            blocks.append(RowsBlock(d.stream, d.generation, d.values, d.bits, some))
    return blocks
