"""Whether a daemon is up and makes progress: the basis of readiness and the watchdog."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spectrod.lib.stats import SLOW_ROW_S, Stats

_ENDED = ("finished", "failed", "stopped")
_HELD_UP = ("waiting", "paused")


def is_up(stats: Sequence[Stats]) -> bool:
    """Return whether every source that has not ended has spectra, or is paused or waiting.

    It has spectra once it has sent a message. If a first row takes longer than 5 s of samples, it
    is enough that so many were analysed.
    """
    up = [_is_one_up(one) for one in stats]
    return any(up) and all(
        is_one_up or one.state in _ENDED for is_one_up, one in zip(up, stats, strict=True)
    )


def _is_one_up(stats: Stats) -> bool:
    has_run_long = bool(stats.fs) and stats.analysed >= SLOW_ROW_S * stats.fs
    return bool(stats.messages) or has_run_long or stats.state in _HELD_UP


class ProgressWatch:
    """Detects whether every source has made progress since the last detection.

    A running source must have delivered samples, the analysis must have read them, and the
    publisher must have sent a heartbeat. If rows are computed, rows *and* messages must also have
    advanced when the samples are enough for a row, however long it is, so any stage that hangs is
    found. There is no exception: a source that is silent for longer than the service manager's
    limit counts as stuck. A waiting source must have been tried again, with a heartbeat. A change
    between waiting and running counts as progress, and so does the end of a source; a new source
    is compared with zeros.
    """

    def __init__(self) -> None:
        self._marks: Mapping[str, _Marks] = {}

    def has_advanced(self, stats: Sequence[Stats]) -> bool:
        """Compare with the counters of the last progress; the first call has none."""
        marks = {one.name: _marks(one) for one in stats}
        advanced = all(_is_beyond(mark, self._marks.get(name)) for name, mark in marks.items())
        if advanced:
            self._marks = {
                name: _renewed(mark, self._marks.get(name)) for name, mark in marks.items()
            }
        return advanced


@dataclass(frozen=True, slots=True)
class _Marks:
    """State of a source, and its counters."""

    doing: str
    always: tuple[int, ...] = ()
    """Counters that must increase."""
    rows: tuple[int, ...] = ()
    """Counters that must increase when a row is due: rows and messages."""
    analysed: int = 0
    """Samples analysed when the rows last increased or none were computed."""
    row_due_samples: int = 0


def _marks(stats: Stats) -> _Marks:
    if stats.state in _ENDED:
        return _Marks("ended")
    if stats.state == "waiting":
        return _Marks("waiting", (stats.capture.attempts, stats.heartbeats))
    return _Marks(
        "running",
        (stats.samples, stats.analysed, stats.heartbeats),
        (stats.rows, stats.messages),
        stats.analysed,
        stats.row_due_samples,
    )


def _is_beyond(now: _Marks, before: _Marks | None) -> bool:
    before = before or _zeros(now)
    if now.doing != before.doing:
        return True
    return _all_rose(now.always, before.always) and not _is_overdue(now, before)


def _is_overdue(now: _Marks, before: _Marks) -> bool:
    """Return whether rows are overdue."""
    is_due = 0 < now.row_due_samples < now.analysed - before.analysed
    return is_due and not _all_rose(now.rows, before.rows)


def _renewed(now: _Marks, before: _Marks | None) -> _Marks:
    """Return the marks for the next comparison: rows that are due remain due until they come."""
    before = before or _zeros(now)
    if now.doing != before.doing or not now.row_due_samples:
        return now
    if _all_rose(now.rows, before.rows):
        return now
    return replace(now, rows=before.rows, analysed=before.analysed)


def _zeros(marks: _Marks) -> _Marks:
    """Return the marks of a source that has done nothing yet."""
    always, rows = (0,) * len(marks.always), (0,) * len(marks.rows)
    return _Marks(marks.doing, always, rows, row_due_samples=marks.row_due_samples)


def _all_rose(now: tuple[int, ...], before: tuple[int, ...]) -> bool:
    return all(late > early for late, early in zip(now, before, strict=True))
