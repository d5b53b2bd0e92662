"""What a slow client may cost: messages on their way, and rows that wait. Pure; knows no socket."""

from collections import deque

from spectrod.web.limits import Limits
from spectrod.web.streams import DescribedRow

SLOWDOWN_MAX = 1 << 10
"""Factor by which rows come slower at most; a stream's own bound is a row a second."""

_STEP_DOWN_S = 0.5  # time for a slower rate to show before it is halved again
_STEP_UP_S = 5.0


class Credits:
    """Counts messages that were sent and not acknowledged.

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
        self._sent: deque[tuple[int, float]] = deque()
        self.newest = 0

    def may_send(self, now_s: float) -> bool:
        """Return whether the client has acknowledged enough to get another message."""
        if not self._sent:
            return True
        is_late = now_s - self._sent[0][1] >= self._limits.unacked_s
        return len(self._sent) < self._limits.unacked_messages and not is_late

    def note_sent(self, now_s: float) -> int:
        """Return the number of a message that is sent now."""
        self.newest += 1
        self._sent.append((self.newest, now_s))
        return self.newest

    def acknowledge(self, number: int) -> bool:
        """Note that a message and all before it were drawn; False if it was never sent."""
        if not 0 <= number <= self.newest:
            return False
        while self._sent and self._sent[0][0] <= number:
            self._sent.popleft()
        return True

    def silent_s(self, now_s: float) -> float:
        """Return for how long the oldest message is not acknowledged [s]; 0 if all are."""
        return now_s - self._sent[0][1] if self._sent else 0.0


class RowQueue:
    """Rows that wait for a client: bounded, the oldest dropped first and counted.

    While more than half the bound waits, ``slowdown`` doubles every half second, so that fewer
    come; after each 5 s without it halves.

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
        self._halved_s = self._backlog_s = 0.0
        self.dropped = 0
        self.slowdown = 1

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: DescribedRow) -> list[DescribedRow]:
        """Add a row; return those that were dropped for it."""
        self._rows.append(row)
        self._size_bytes += row.size_bytes
        lost = []
        while len(self._rows) > self._limits.queue_rows or (
            self._size_bytes > self._limits.queue_bytes and len(self._rows) > 1
        ):
            lost.append(self._rows.popleft())
            self._size_bytes -= lost[-1].size_bytes
        self.dropped += len(lost)
        return lost

    def take(self) -> list[DescribedRow]:
        """Return all rows, and forget them."""
        rows = list(self._rows)
        self._rows.clear()
        self._size_bytes = 0
        return rows

    def adapt(self, now_s: float) -> None:
        """Change ``slowdown`` by what waits at a monotonic time."""
        is_backlog = (
            len(self._rows) > self._limits.queue_rows // 2
            or self._size_bytes > self._limits.queue_bytes // 2
        )
        if is_backlog:
            self._backlog_s = now_s
            if now_s - self._halved_s >= _STEP_DOWN_S:
                self.slowdown = min(self.slowdown * 2, SLOWDOWN_MAX)
                self._halved_s = now_s
        elif self.slowdown > 1 and now_s - self._backlog_s >= _STEP_UP_S:
            self.slowdown //= 2
            self._backlog_s = now_s
