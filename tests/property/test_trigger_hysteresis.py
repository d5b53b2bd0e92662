"""Events of a trigger: begins and ends alternate, and durations hold, whatever the levels."""

import math
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from spectrod.measure.triggers.hysteresis import Hysteresis

HEIGHTS = st.lists(
    st.one_of(st.floats(-10, 10), st.just(math.nan), st.none()), min_size=1, max_size=200
)
"""Height of each row [dB]; None: a gap before the next row."""


def run(heights, release_db, least, hold_off, hop, span, *, state=None):
    """Return (change, first, stop, row) of each change, and the state at the end."""
    state, found, index = state or Hysteresis(release_db, least, hold_off), [], 0
    for row, height in enumerate(heights):
        if height is None:
            change = state.end()
            index += 3 * hop
        else:
            change = state.push(index, index + span, height)
            index += hop
        if change:
            found.append((change, state.first, state.stop, row))
    change = state.end()
    if change:
        found.append((change, state.first, state.stop, len(heights)))
    return found


@given(
    HEIGHTS,
    st.floats(0, 5),
    st.integers(0, 30),
    st.integers(0, 50),
    st.integers(1, 9),
    st.integers(1, 20),
)
def test_events_alternate_and_last_as_long_as_they_must(
    heights, release_db, least, hold_off, hop, span
):
    """Begins and ends alternate; events last long enough, and are reported after the hold-off.

    Rows below may lie within an event, between two that are not below and share samples.
    """
    found = run(heights, release_db, least, hold_off, hop, span)
    assert [change for change, *_ in found] == ["begun", "ended"] * (len(found) // 2)
    events = list(zip(found[::2], found[1::2], strict=True))
    first_of = _first_samples(heights, hop)
    for (_, first, stop, row), (_, first_at_end, stop_at_end, last_row) in events:
        assert first == first_at_end
        assert least <= stop - first <= stop_at_end - first_at_end
        assert row <= last_row
        during = range(row, last_row)
        assert not any(heights[k] is None or math.isnan(heights[k]) for k in during)
        held = [k for k in during if heights[k] >= -release_db]
        for one, other in pairwise(held):
            assert other == one + 1 or first_of[other] < first_of[one] + span
    for (_, ended), (begun, _) in pairwise(events):
        assert begun[1] > ended[1]
        last = heights[ended[3]]
        if last is not None and not math.isnan(last):
            assert begun[1] >= ended[2]
        if hold_off:
            assert first_of[begun[3]] >= ended[2] + hold_off


def _first_samples(heights, hop):
    return [0, *accumulate(3 * hop if height is None else hop for height in heights)]


@given(HEIGHTS, st.integers(0, 30), st.integers(1, 50), st.integers(1, 9), st.integers(1, 20))
def test_events_with_a_hold_off_are_some_of_those_without_and_the_others_are_counted(
    heights, least, hold_off, hop, span
):
    """The hold-off moves no begin and no end: it leaves events out, and counts them."""
    every = [one[1:3] for one in run(heights, 1.0, least, 0, hop, span) if one[0] == "ended"]
    state = Hysteresis(1.0, least, hold_off)
    kept = [one[1:3] for one in run(heights, 1.0, least, hold_off, hop, span, state=state)][1::2]
    assert set(kept) <= set(every)
    assert state.n_left_out == len(every) - len(kept)


@given(HEIGHTS, st.integers(1, 9))
def test_without_times_each_run_of_rows_is_an_event(heights, hop):
    """Without hysteresis, duration and hold-off, events are the runs of rows that are not below."""
    found = run(heights, 0.0, 0, 0, hop, hop)
    runs, was_held = 0, False
    for height in heights:
        is_held = height is not None and height >= 0.0
        runs += is_held and not was_held
        was_held = is_held
    assert len(found) == 2 * runs
