"""Times that can be compared: taken in turns, so that what drifts hits all alike."""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

Timer = Callable[[], float]
"""Runs something once and returns its time [s]."""

TURN_S, TURN_RUNS = 10e-3, 5
"""Shortest time of a turn [s], and fewest runs in it."""


def span_seconds(events: Sequence[Any]) -> float:
    """Time from the start of the first event to the end of the last [s]; waits for it.

    Parameters
    ----------
    events : sequence of pyopencl.Event
        Of one in-order queue with profiling, in their order; at least one.
    """
    events[-1].wait()
    return float(events[-1].profile.end - events[0].profile.start) * 1e-9


def turn(timer: Timer, turn_s: float = TURN_S, runs: int = TURN_RUNS) -> float:
    """Run something for a few milliseconds, at least ``runs`` times; return the best time [s].

    Its predecessor's values have left the caches by then, and its threads are asleep.
    """
    deadline = time.perf_counter() + turn_s
    times: list[float] = []
    while len(times) < runs or time.perf_counter() < deadline:
        times.append(timer())
    return min(times)


def median_seconds(
    timers: Sequence[Timer],
    rounds: int,
    seconds: float,
    *,
    turn_s: float = TURN_S,
    turn_runs: int = TURN_RUNS,
) -> list[float]:
    """Time several things in turns.

    Parameters
    ----------
    timers : sequence of callables
        Each runs its thing once and returns its time [s].
    rounds : int
        Most turns of each.
    seconds : float
        After this time no round begins; three are always run.
    turn_s : float
        Shortest time of a turn [s].
    turn_runs : int
        Fewest runs in a turn.

    Returns
    -------
    medians : list of float
        Of the turns of each [s].
    """
    deadline = time.perf_counter() + seconds
    times: list[list[float]] = []
    while len(times) < 3 or (len(times) < rounds and time.perf_counter() < deadline):
        times.append([turn(timer, turn_s, turn_runs) for timer in timers])
    return [median(column) for column in zip(*times, strict=True)]
