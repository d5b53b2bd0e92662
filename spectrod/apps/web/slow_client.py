"""What a slow client may cost: messages on their way, and rows that wait. Pure; knows no socket."""

import math
from collections import deque

from spectrod.apps.web.limits import Limits
from spectrod.apps.web.streams import DescribedRow

SLOWDOWN_MAX = 1 << 10
"""Factor by which rows come slower at most; a stream's own bound is a row a second."""

WINDOW_MIN_BYTES = 1 << 14
"""Bytes of rows that may be on their way to the slowest client."""
WINDOW_MAX_BYTES = 1 << 20
MESSAGE_MAX_BYTES = 1 << 16
"""Size of a message of more than one row [bytes]."""
_WINDOW_BYTES = 1 << 15  # before anything is known of the client
_WINDOW_GROWTH = 1.25

_STEP_DOWN_S = 0.5  # time for a slower rate to show before it is halved again
_STEP_UP_S = 5.0
_WAIT_S = 0.5
_DRAINING = 0.95
"""Of the bytes that waited half a second before: with fewer the present rate is slow enough."""


class Credits:
    """Counts messages that were sent and not acknowledged, and their bytes.

    The bytes on their way are bounded by a window. It halves when a message is late, by more than
    the shortest time that one has taken, so that on a slow line no message waits long behind
    others; it grows by a quarter when a window's worth was acknowledged in time. A message takes
    half of it, and 64 KiB at most.

    Parameters
    ----------
    limits : Limits
        Has the numbers.

    Attributes
    ----------
    newest : int
        Number of the last message that was sent; 0 before the first.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sent: deque[tuple[int, float, int]] = deque()
        self._unacked_bytes = self._acked_bytes = 0
        self._narrowed = 0
        self._least_s = math.inf
        self.window_bytes = _WINDOW_BYTES
        self.newest = 0

    @property
    def message_bytes(self) -> int:
        """Size of the next message [bytes]; a single row may be longer."""
        return min(self.window_bytes // 2, MESSAGE_MAX_BYTES)

    def may_send(self, now_s: float) -> bool:
        """Return whether the client has acknowledged enough to get another message."""
        if not self._sent:
            return True
        number, sent_s, _ = self._sent[0]
        if now_s - sent_s >= self._unacked_max_s:
            self._narrow(number)
            return False
        has_room = self._unacked_bytes < self.window_bytes
        return has_room and len(self._sent) < self._limits.unacked_messages

    def note_sent(self, now_s: float, n_bytes: int = 0) -> int:
        """Return the number of a message of some bytes that is sent now."""
        self.newest += 1
        self._sent.append((self.newest, now_s, n_bytes))
        self._unacked_bytes += n_bytes
        return self.newest

    @property
    def _unacked_max_s(self) -> float:
        """Time after which a message is late: a long line's delay is not the window's fault [s]."""
        bound_s = self._limits.unacked_s
        return bound_s + (min(self._least_s, bound_s) if self._least_s < math.inf else 0.0)

    def acknowledge(self, number: int, now_s: float) -> bool:
        """Note that a message and all before it were drawn; False if it was never sent."""
        if not 0 <= number <= self.newest:
            return False
        while self._sent and self._sent[0][0] <= number:
            _, sent_s, n_bytes = self._sent.popleft()
            self._unacked_bytes -= n_bytes
            self._acked_bytes += n_bytes
            self._least_s = min(self._least_s, now_s - sent_s)
        if self._acked_bytes >= self.window_bytes:
            self._acked_bytes = 0
            wider = int(self.window_bytes * _WINDOW_GROWTH)
            self.window_bytes = min(wider, WINDOW_MAX_BYTES)
        return True

    def _narrow(self, number: int) -> None:
        """Halve the window, once for all messages that were sent before it showed."""
        self._acked_bytes = 0
        if number > self._narrowed:
            self._narrowed = self.newest
            self.window_bytes = max(self.window_bytes // 2, WINDOW_MIN_BYTES)

    def silent_s(self, now_s: float) -> float:
        """Return for how long the oldest message is not acknowledged [s]; 0 if all are."""
        return now_s - self._sent[0][1] if self._sent else 0.0


class RowQueue:
    """Rows that wait for a client: bounded, the oldest dropped first and counted.

    While more than half the bound waits, or some row has waited for half a second, ``slowdown``
    doubles every half second in which what waits has not become less, so that fewer come; after
    each 5 s without it halves.

    Parameters
    ----------
    limits : Limits
        Has the numbers.

    Attributes
    ----------
    dropped : int
        Rows dropped so far.
    slowdown : int
        Factor by which rows should come slower, at least 1.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rows: deque[DescribedRow] = deque()
        self._size_bytes = 0
        self._looked_s = self._backlog_s = 0.0
        self._looked_bytes = 0
        self._put_s: deque[float] = deque()  # when each row was put, to a look's accuracy
        self._now_s = math.inf  # rows before the first look have not waited
        self.dropped = 0
        self.slowdown = 1

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: DescribedRow) -> list[DescribedRow]:
        """Add a row; return those that were dropped for it."""
        self._rows.append(row)
        self._put_s.append(self._now_s)
        self._size_bytes += row.size_bytes
        lost = []
        while len(self._rows) > self._limits.queue_rows or (
            self._size_bytes > self._limits.queue_bytes and len(self._rows) > 1
        ):
            lost.append(self._next())
        self.dropped += len(lost)
        return lost

    def take(self, bytes_max: int = 1 << 62) -> list[DescribedRow]:
        """Return the oldest rows, as many as fit into some bytes but at least one; forget them."""
        rows: list[DescribedRow] = []
        taken_bytes = 0
        while self._rows and (not rows or taken_bytes + self._rows[0].size_bytes <= bytes_max):
            rows.append(self._next())
            taken_bytes += rows[-1].size_bytes
        return rows

    def _next(self) -> DescribedRow:
        row = self._rows.popleft()
        self._put_s.popleft()
        self._size_bytes -= row.size_bytes
        return row

    def adapt(self, now_s: float) -> None:
        """Change ``slowdown`` by what waits at a monotonic time."""
        self._now_s = now_s
        is_backlog = (
            len(self._rows) > self._limits.queue_rows // 2
            or self._size_bytes > self._limits.queue_bytes // 2
            or (len(self._rows) > 0 and now_s - self._put_s[0] >= _WAIT_S)
        )
        if is_backlog:
            self._backlog_s = now_s
            if now_s - self._looked_s >= _STEP_DOWN_S:
                if self._size_bytes > _DRAINING * self._looked_bytes:
                    self.slowdown = min(self.slowdown * 2, SLOWDOWN_MAX)
                self._looked_s, self._looked_bytes = now_s, self._size_bytes
        elif self.slowdown > 1 and now_s - self._backlog_s >= _STEP_UP_S:
            self.slowdown //= 2
            self._backlog_s, self._looked_bytes = now_s, 0
