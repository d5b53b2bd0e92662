"""Where events begin and end, row by row."""

import itertools
import math

import numpy as np
import pytest

from spectrod.measure.triggers.hysteresis import Hysteresis
from spectrod.measure.triggers.trigger_config import HOLD_OFF_WAITED_S, TriggerConfig

HOP, WINDOW = 10, 40


def events(heights, *, hop=HOP, window=WINDOW, hold_off=0, least=0):
    """Return the first sample and the one after the last of each event."""
    state, found = Hysteresis(3.0, least, hold_off), []
    for row, height in enumerate(heights):
        if state.push(row * hop, row * hop + window, height) == "ended":
            found.append((state.first, state.stop))
    if state.end():
        found.append((state.first, state.stop))
    return found


def conditions(heights, hop, window):
    """Return the same by a plain rule: runs of rows, those that share samples joined."""
    found, lasts = [], False
    for row, height in enumerate(heights):
        first, stop = row * hop, row * hop + window
        if height >= (-3.0 if lasts else 0.0):
            found.append((found.pop()[0] if lasts else first, stop))
            lasts = True
        else:  # the next row may share samples with the last one of the run
            lasts = lasts and first + hop < found[-1][1]
    return found


@pytest.mark.parametrize("dip", range(1, 6))
def test_a_dip_within_a_window_is_no_end(dip):
    """Rows on both sides of a dip of one or two rows share samples, of three they touch."""
    heights = [-9.0, 5.0, 5.0, *[-9.0] * dip, 5.0, -9.0, -9.0, -9.0, -9.0]
    again = (3 + dip) * HOP
    one, two = [(10, again + WINDOW)], [(10, 60), (again, again + WINDOW)]
    assert events(heights) == (one if dip < 3 else two)


@pytest.mark.parametrize(("hop", "window"), [(10, 40), (10, 33), (10, 10), (10, 15), (7, 20)])
def test_no_two_events_share_a_sample(hop, window):
    """Of random heights, events are the runs of a plain rule; without overlap each run is one."""
    heights = np.random.default_rng(3).normal(-2.0, 4.0, 3000).tolist()
    found = events(heights, hop=hop, window=window)
    assert found == conditions(heights, hop, window)
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(found))
    assert len(found) > 100


def test_rows_that_are_not_known_end_the_event():
    """At once, as a gap does, also within a window."""
    assert events([5.0, math.nan, 5.0, -9.0, -9.0, -9.0]) == [(0, 40), (20, 60)]


def test_a_dip_counts_as_a_part_of_the_least_length():
    """A sound that dips lasts; two that share no samples are too short each."""
    assert events([5.0, -9.0, 5.0, *[-9.0] * 4], least=60) == [(0, 60)]
    assert events([5.0, *[-9.0] * 4, 5.0, *[-9.0] * 4], least=60) == []


@pytest.mark.parametrize(
    ("keys", "longest_s"),
    [
        ({"hold_off_s": 5.0}, 5.0),
        ({"hold_off_s": 5.0, "for_s": 8.0}, 8.0),
        ({"hold_off_s": 3600.0}, HOLD_OFF_WAITED_S),
    ],
)
def test_an_event_may_have_begun_in_the_hold_off_of_another(keys, longest_s):
    """Whoever keeps data for its begin keeps them for so long, at most a minute of it."""
    assert TriggerConfig("call", **keys).known_after_s == longest_s
