"""Whether a daemon is up, and whether it gets on: what readiness and the watchdog rest on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spectrod.stats import Stats

_ENDED = ("finished", "failed", "stopped")
_HELD_UP = ("waiting", "paused")


def is_up(stats: Sequence[Stats]) -> bool:
    """Say whether each source that has not ended is paused, waited for, or has a message out."""
    up = [bool(one.messages) or one.state in _HELD_UP for one in stats]
    return any(up) and all(
        is_one_up or one.state in _ENDED for is_one_up, one in zip(up, stats, strict=True)
    )


class ProgressWatch:
    """Says whether every source has got on since it last said so.

    A source that delivers must have brought samples, the analysis must have taken them, and the
    publisher must have sent a heartbeat of it. If rows of it are computed, rows *and* messages must
    have advanced too once the samples taken must have made one, however long a row is, so that any
    stage that stands still shows. There is no exception, so a source that is silent for longer than
    the service manager's limit counts as stuck. One that is waited for must have been tried again,
    with a heartbeat. One that has begun or ceased to be waited for has got on, and so has one that
    has ended; one that is new must have its first message out.
    """

    def __init__(self) -> None:
        self._marks: Mapping[str, _Marks] = {}

    def has_advanced(self, stats: Sequence[Stats]) -> bool:
        """Compare with the counters at which this was last true; at first, with none."""
        marks = {one.name: _marks(one) for one in stats}
        advanced = all(_is_beyond(mark, self._marks.get(name)) for name, mark in marks.items())
        if advanced:
            self._marks = {
                name: _renewed(mark, self._marks.get(name)) for name, mark in marks.items()
            }
        return advanced


@dataclass(frozen=True, slots=True)
class _Marks:
    """What a source does, and its counters."""

    doing: str
    always: tuple[int, ...] = ()
    """Must rise."""
    rows: tuple[int, ...] = ()
    """Must rise when a row is due: rows and messages."""
    analysed: int = 0
    """Samples taken, when the rows last rose or none were computed."""
    row_due_samples: int = 0


def _marks(stats: Stats) -> _Marks:
    if stats.state in _ENDED:
        return _Marks("ended")
    if stats.state == "waiting":
        return _Marks("waiting", (stats.capture.attempts, stats.heartbeats))
    return _Marks(
        "running",
        (stats.samples, stats.analysed, stats.heartbeats),
        (stats.frames, stats.messages),
        stats.analysed,
        stats.row_due_samples,
    )


def _is_beyond(now: _Marks, before: _Marks | None) -> bool:
    if before is None:
        return all(now.always) and (not now.row_due_samples or all(now.rows))
    if now.doing != before.doing:
        return True
    return _all_rose(now.always, before.always) and not _is_overdue(now, before)


def _is_overdue(now: _Marks, before: _Marks) -> bool:
    """Say whether rows should have come and have not."""
    is_due = 0 < now.row_due_samples < now.analysed - before.analysed
    return is_due and not _all_rose(now.rows, before.rows)


def _renewed(now: _Marks, before: _Marks | None) -> _Marks:
    """Make what to compare with next: rows that were due are still due until they come."""
    if before is None or now.doing != before.doing or not now.row_due_samples:
        return now
    if _all_rose(now.rows, before.rows):
        return now
    return replace(now, rows=before.rows, analysed=before.analysed)


def _all_rose(now: tuple[int, ...], before: tuple[int, ...]) -> bool:
    return all(late > early for late, early in zip(now, before, strict=True))
