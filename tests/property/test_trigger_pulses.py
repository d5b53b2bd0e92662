"""Events of a pattern: series of pulses of the right times, whatever the levels and the batches."""

import math
from itertools import accumulate, groupby, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod import Stft
from spectrod.measure.triggers.pulses import Pulses
from spectrod.measure.triggers.trigger import Trigger
from spectrod.measure.triggers.trigger_config import PulsePattern, TriggerConfig

RELEASE_DB = 3.0
OVER, BELOW, GAP = 1.0, -9.0, None
LEVELS = [*(OVER, BELOW) * 4, 20.0, 16.0, 8.0, -1.0, math.nan, -math.inf, GAP]
HEIGHTS = st.lists(
    st.tuples(st.sampled_from(LEVELS), st.integers(1, 6)),
    min_size=1,
    max_size=60,
).map(lambda runs: [height for height, n in runs for _ in range(n)])
"""Height of each row [dB], in runs; None is a gap before the next row."""
RANGES = st.tuples(st.integers(0, 4), st.integers(1, 4)).map(lambda ends: (ends[0], sum(ends)))
PATTERNS = st.builds(
    PulsePattern, RANGES, RANGES, st.integers(1, 4), st.sampled_from([3.0, 5.0, 10.0, 200.0])
)


def run(heights, pattern, hold_off, hop, span, *, state=None):
    """Return (change, first, stop, pulses) of each change, rows being one second apart."""
    state, found, index = state or Pulses(pattern, hop, RELEASE_DB, hold_off), [], 0
    for height in [*heights, GAP]:
        change = state.end() if height is GAP else state.push(index, index + span, height)
        index += hop
        if change:
            found.append((change, state.first, state.stop, state.n_pulses))
    return found


def expected(heights, pattern):
    """Return (first, stop, pulses) of the events, from all rows at once, without a hold-off."""
    found = []
    for pieces in (
        list(rows) for is_gap, rows in groupby(enumerate(heights), _is_gap) if not is_gap
    ):
        series = []
        for begin, end in _pulses(pieces, pattern.fall_db):
            is_pulse = begin is not None and _in(end - begin, pattern.pulse_s)
            goes_on = bool(series) and begin is not None
            goes_on = goes_on and _in(begin - series[-1][1], pattern.pause_s)
            if not (is_pulse and goes_on):
                found.append(series)
                series = []
            if is_pulse:
                series.append((begin, end))
        found.append(series)
    return [
        (series[0][0], series[-1][1], len(series))
        for series in found
        if len(series) >= pattern.pulses_min
    ]


def _is_gap(row):
    return row[1] is GAP or not math.isfinite(row[1])


def _in(n, limits):
    return limits[0] <= n <= limits[1]


def _pulses(pieces, fall_db):
    """Yield begin and end of each pulse that ends; begin None: not seen."""
    rows, heights = [row for row, _ in pieces], [height for _, height in pieces]
    end = 0
    while (begin := _begin(heights, end, fall_db)) is not None:
        highs = list(accumulate(heights[begin:], max))
        limits = [max(-RELEASE_DB, high - fall_db) for high in highs]
        later = range(1, len(highs))
        length = next((n for n in later if heights[begin + n] < limits[n - 1]), None)
        if length is None:
            return
        end = begin + length
        yield rows[begin] if begin else None, rows[end]


def _begin(heights, end, fall_db):
    """Return where the next pulse begins after the end of one, or in rows from the first on."""
    if end == 0 and heights[0] >= 0.0:
        return 0
    for row in range(end + 1, len(heights)):
        lowest = min(heights[end:row])
        if heights[row] >= (0.0 if lowest < -RELEASE_DB else max(0.0, lowest + fall_db)):
            return row
    return None


@given(HEIGHTS, PATTERNS)
@settings(max_examples=400)
def test_events_are_the_series_of_pulses(heights, pattern):
    """The events are those that all rows at once show; begins and ends alternate."""
    found = run(heights, pattern, 0, 1, 1)
    assert [change for change, *_ in found] == ["begun", "ended"] * (len(found) // 2)
    assert [one[1:] for one in found[1::2]] == expected(heights, pattern)
    for begun, ended in zip(found[::2], found[1::2], strict=True):
        assert begun[1] == ended[1]
        assert begun[3] == pattern.pulses_min <= ended[3]


@given(HEIGHTS, PATTERNS, st.integers(0, 30), st.integers(1, 9), st.integers(0, 20))
def test_the_hold_off_separates_events(heights, pattern, hold_off, hop, more):
    """Events are some of those without a hold-off; the others lie within it, and are counted."""
    every = run(heights, pattern, 0, hop, hop + more)[1::2]
    state = Pulses(pattern, hop, RELEASE_DB, hold_off)
    kept = run(heights, pattern, hold_off, hop, hop + more, state=state)[1::2]
    assert [one for one in every if one in kept] == kept
    assert state.n_left_out == len(every) - len(kept)
    for before, after in pairwise(kept):
        assert after[2] >= before[2] + hold_off


FS, HOP = 1000, 32


def _batch():
    """Return rows of three groups of three short tones, and of a long one, in noise."""
    t = np.arange(20 * FS) / FS
    is_on = (t % 5 < 3) & (t % 1 < 0.5) & (t < 15) | (t > 16) & (t < 19)
    x = 1e-3 * np.random.default_rng(5).standard_normal(len(t)) + 0.1 * is_on * np.sin(700 * t)
    with Stft(FS, engine="numpy", win_length=2 * HOP, hop=HOP, scaling="dbfs") as stft:
        (whole,) = [*stft.push(x.astype(np.float32)[np.newaxis]), *stft.finish()]
    return whole


WHOLE = _batch()
ALARM = TriggerConfig(
    "t", threshold=-40.0, unit="dBFS", pulse_s=(0.3, 0.7), pause_s=(0.3, 0.7), hold_off_s=0.5
)


@given(st.lists(st.integers(0, WHOLE.n_frames), max_size=20), st.integers(0, WHOLE.n_frames))
@settings(max_examples=50)
def test_events_do_not_depend_on_batches(cuts, gap_at):
    """Rows in one batch, or in several, also empty ones, and with a gap have the same events."""

    def events(places):
        trigger, found = Trigger(ALARM, WHOLE.spec, ("0",)), []
        for first, stop in pairwise(sorted({0, gap_at, WHOLE.n_frames, *places})):
            part = WHOLE.between(first, stop)
            found += trigger.push(part.after_gap(1) if first == gap_at else part)
        return found + trigger.end("stopped")

    assert events(cuts) == events([])
