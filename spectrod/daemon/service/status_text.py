"""Status line of a daemon, for ``systemctl status`` and standard output."""

import math
from collections.abc import Sequence

from spectrod.lib.stats import Stats

_TROUBLES_MAX = 4
LOG_PERIOD_S = 600.0
"""Longest time between two status lines in a log [s]."""


def status_line(stats: Sequence[Stats], troubles: Sequence[str] = ()) -> str:
    """Return one line with a daemon's troubles, state, what it waits for, and its losses.

    Parameters
    ----------
    stats : sequence of Stats
        Counters of each source.
    troubles : sequence of str
        Failures of other parts, such as ``recording night of roof: failed: ...``. The first four
        are at the start of the line, where a narrow terminal shows them.
    """
    shown = list(troubles[:_TROUBLES_MAX])
    if len(troubles) > _TROUBLES_MAX:
        shown.append(f"{len(troubles) - _TROUBLES_MAX} more")
    if len(stats) == 1:
        return " | ".join([*shown, _whole(stats[0])])
    return " | ".join([*shown, *(_brief(one) for one in stats), _subscribers(stats[0])])


def _whole(stats: Stats) -> str:
    """Describe a single source in full."""
    return f"{stats.state}: {_source(stats)}; {_counts(stats)}{_capture(stats)}"


def _source(stats: Stats) -> str:
    if not stats.fs:
        return stats.capture.waiting_for or stats.source
    place = f"{stats.source}, {stats.fs:.10g} Hz x {stats.channels}, {stats.engine}"
    waiting_for = stats.capture.waiting_for
    return f"{place}; {waiting_for}" if waiting_for else place


def _counts(stats: Stats) -> str:
    if not stats.fs:
        return f"tried {stats.capture.attempts} times"
    losses = ", ".join(f"{count} {what}" for what, count in _losses(stats))
    demand = f"{_subscribers(stats)}, computing {_computed(stats)}"
    return f"{stats.rows} rows, {stats.messages} messages; {demand}; {losses}"


def _subscribers(stats: Stats) -> str:
    return "1 subscriber" if stats.subscribers == 1 else f"{stats.subscribers} subscribers"


def _computed(stats: Stats) -> str:
    return ", ".join(stats.computed) or "nothing"


def _losses(stats: Stats) -> list[tuple[str, int]]:
    return [
        ("overflows", stats.overflows),
        ("overruns", stats.overruns),
        ("dropped", stats.dropped),
        ("gaps", stats.gaps),
        ("engine failures", stats.engine_failures),
    ]


def _capture(stats: Stats) -> str:
    """Describe problems of the capture and findings of the content checks; empty without any."""
    capture = stats.capture
    parts = [f"{n} {what}" for what, n in _troubles(stats)]
    if capture.rate_error_ppm is not None:
        bound = capture.rate_uncertainty_ppm
        uncertainty = "" if bound is None else f" +- {bound:.2g}"
        parts.append(f"rate {capture.rate_error_ppm:+.1f}{uncertainty} ppm")
    parts += stats.checks
    return "; " + ", ".join(parts) if parts else ""


def _troubles(stats: Stats) -> list[tuple[str, int]]:
    capture = stats.capture
    counts = [
        ("suspected losses", capture.suspected),
        ("restarts", capture.restarts),
        ("files left out", capture.left_out_files),
        ("clipped samples", stats.clipped_samples),
    ]
    return [(what, n) for what, n in counts if n]


def _brief(stats: Stats) -> str:
    """Describe one of several sources: its state and its problems."""
    if stats.state == "waiting":
        return f"{stats.name} waiting: {stats.capture.waiting_for}"
    losses = ", ".join(f"{n} {what}" for what, n in _losses(stats) if n)
    lost = f", {losses}" if losses else ""
    idle = ", computing nothing" if stats.state == "running" and not stats.computed else ""
    return f"{stats.name} {stats.state}, {stats.messages} messages{idle}{lost}{_capture(stats)}"


class StatusChanges:
    """Selects the status lines for a log: those that tell of a change, and one in ten minutes.

    A change is one of a state or its reason, of an engine, of what is computed and for how many, of
    the findings of the checks, or the first loss of a kind; counts alone are none.
    """

    def __init__(self) -> None:
        self._last: object = None
        self._due_s = -math.inf

    def is_due(self, stats: Sequence[Stats], troubles: Sequence[str], now_s: float) -> bool:
        """Return whether to log the present line.

        Parameters
        ----------
        stats, troubles
            As for ``status_line``.
        now_s : float
            Monotonic time [s].
        """
        present = tuple(troubles), tuple(map(_changeable, stats))
        if present == self._last and now_s < self._due_s:
            return False
        self._last, self._due_s = present, now_s + LOG_PERIOD_S
        return True


def _changeable(stats: Stats) -> tuple[object, ...]:
    kinds = [what for what, n in (*_losses(stats), *_troubles(stats)) if n]
    checks = [check.partition(" (")[0] for check in stats.checks]  # without a level
    is_about = stats.name, stats.state, stats.engine, stats.capture.waiting_for
    return (*is_about, stats.computed, stats.subscribers, *kinds, *checks)
