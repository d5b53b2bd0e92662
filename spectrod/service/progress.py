"""Whether a daemon is up, and whether it gets on: what readiness and the watchdog rest on."""

from collections.abc import Mapping, Sequence

from spectrod.stats import Stats

_ENDED = ("finished", "failed", "stopped")

_Marks = tuple[str, tuple[int, ...]]


def is_up(stats: Sequence[Stats]) -> bool:
    """Say whether each source that has not ended has its first message out or is waited for."""
    up = [bool(one.messages) or one.state == "waiting" for one in stats]
    return any(up) and all(
        is_one_up or one.state in _ENDED for is_one_up, one in zip(up, stats, strict=True)
    )


class ProgressWatch:
    """Says whether every source has got on since it last said so.

    One that delivers must have advanced in samples, frames *and* messages: any stage that stands
    still shows. There is no exception, so a source that is silent for longer than the service
    manager's limit counts as stuck, and so does a hop longer than it. One that is waited for must
    have been tried again, and the publisher must have sent a heartbeat of it. One that has begun or
    ceased to be waited for has got on, and so has one that has ended.
    """

    def __init__(self) -> None:
        self._marks: Mapping[int, _Marks] = {}

    def has_advanced(self, stats: Sequence[Stats]) -> bool:
        """Compare with the counters at which this was last true; at first, with none."""
        marks = {number: _marks(one) for number, one in enumerate(stats)}
        advanced = all(_is_beyond(mark, self._marks.get(number)) for number, mark in marks.items())
        if advanced:
            self._marks = marks
        return advanced


def _marks(stats: Stats) -> _Marks:
    """Name what it does, and the counters that must rise meanwhile."""
    if stats.state in _ENDED:
        return "ended", ()
    if stats.state == "waiting":
        return "waiting", (stats.capture.attempts, stats.heartbeats)
    return "running", (stats.samples, stats.frames, stats.messages)


def _is_beyond(now: _Marks, before: _Marks | None) -> bool:
    if before is None:
        return all(now[1])
    if now[0] != before[0]:
        return True
    return all(late > early for late, early in zip(now[1], before[1], strict=True))
