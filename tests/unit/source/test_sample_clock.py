"""The sample clock: rate, monotonic times, and detection of losses without false ones."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.source.soundcard.clock_times import Line, Timeline
from spectrod.source.soundcard.sample_clock import SampleClock, WallClock

FS = 48_000.0
BLOCK = 480
BLOCK_S = BLOCK / FS


def due_times(seconds, ppm=0.0, fs=FS, block=BLOCK):
    """Return the index after each block and when it is due [s]."""
    index = np.arange(1, int(seconds * fs / block) + 1) * block
    return index, index / fs / (1 + ppm * 1e-6)


def stalled(due, stalls):
    """Delay all arrivals in each (start, end) to its end."""
    late = due.copy()
    for start, end in stalls:
        late = np.where((late >= start) & (late < end), end, late)
    return late


def drive(clock, index, t, placed=25):
    """Feed all callbacks; return (when, samples) of each loss, and the times seen."""
    t_ns = np.maximum.accumulate((t * 1e9).astype(np.int64)).tolist()
    first = list(zip(index[:placed].tolist(), t_ns[:placed], strict=True))
    assert clock.place(first) == 0
    shift, found, times = 0, [], []
    for end, now in zip(index.tolist(), t_ns, strict=True):
        lost = clock.add(end + shift, now)
        shift += lost
        times.append(clock.mono_ns(end + shift))
        if lost:
            found.append((now * 1e-9, lost))
    return found, np.array(times)


def lose(due, at, blocks):
    """Return the callbacks that remain after some blocks from a time on are lost."""
    return ~((due > at) & (due <= at + (blocks + 0.01) * BLOCK_S))


# ---- losses


@pytest.mark.slow
@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    ppm=st.floats(-300, 300),
    stalls=st.lists(st.tuples(st.floats(0.5, 25), st.floats(0.01, 0.9)), max_size=12),
    burst_s=st.sampled_from([0.0, 0.05, 0.5, 2.0]),
    jitter=st.sampled_from([0.0, 0.2, 1.0]),
    block=st.sampled_from([480, 1024, 4801]),
)
def test_lateness_is_never_a_loss(seed, ppm, stalls, burst_s, jitter, block):
    """Jitter, stalls and bursts in any mixture give no loss, and times never decrease."""
    rng = np.random.default_rng(seed)
    index, due = due_times(25.0, ppm, block=block)
    # A timer's callbacks are late by up to a block anyway; with 0.2 more the promise holds.
    jitter = min(jitter, 0.2) if burst_s else jitter
    t = due + rng.uniform(0, jitter * block / FS, len(due))
    t = stalled(t, [(start, start + length) for start, length in stalls])
    if burst_s:
        t = np.ceil(t / burst_s) * burst_s
    found, times = drive(SampleClock(FS, block), index, t)
    assert found == []
    assert (np.diff(times) > 0).all()


@pytest.mark.slow
@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    ppm=st.floats(-300, 300),
    at=st.floats(3.0, 15.0),
    blocks=st.integers(2, 60),
    jitter=st.sampled_from([0.0, 0.2, 1.0]),
)
def test_lost_blocks_are_found(seed, ppm, at, blocks, jitter):
    """A loss of two blocks or more is found within 2 s of delivery and sized to a block."""
    rng = np.random.default_rng(seed)
    index, due = due_times(20.0, ppm)
    kept = lose(due, at, blocks)
    t = (due + rng.uniform(0, jitter * BLOCK_S, len(due)))[kept]
    n_lost = (len(due) - len(t)) * BLOCK
    found, times = drive(SampleClock(FS, BLOCK), index[: len(t)], t)
    assert len(found) == 1
    assert found[0][0] - at - blocks * BLOCK_S < 2.0
    assert abs(found[0][1] - n_lost) < BLOCK
    assert (np.diff(times) > 0).all()


def test_loss_behind_a_stall_is_found():
    """A stall after which samples are missing is a loss of exactly those."""
    index, due = due_times(30.0)
    t = stalled(due, [(9.5, 10.3)])
    kept = lose(due, 9.6, 40)
    found, _ = drive(SampleClock(FS, BLOCK), index[: kept.sum()], t[kept])
    assert [lost for _, lost in found] == [pytest.approx(40 * BLOCK, abs=BLOCK)]


@pytest.mark.parametrize("block", [480, 2048])
@pytest.mark.parametrize("loss_at", [5.05, 5.3, 5.55, 5.8])
def test_loss_right_after_a_shift_is_found(block, loss_at):
    """A loss behind a pause of 2 s is found, though the arrivals have just moved in their block."""
    index, due = due_times(20.0, block=block)
    moved = np.where(due > 4.0, due + 0.4 * block / FS, due)
    t = stalled(moved, [(loss_at, loss_at + 2.0)])
    kept = lose(due, loss_at + 0.6, 130)
    found, _ = drive(SampleClock(FS, block), index[: kept.sum()], t[kept])
    lost = (~kept).sum() * block
    assert [samples for _, samples in found] == [pytest.approx(lost, abs=block)]


def test_loss_in_bursts_is_found():
    """A loss among deliveries every 2 s is found after a few of them."""
    index, due = due_times(60.0)
    kept = lose(due, 30.0, 5)
    t = np.ceil(due[kept] / 2.0) * 2.0
    found, _ = drive(SampleClock(FS, BLOCK), index[: kept.sum()], t)
    assert [lost for _, lost in found] == [5 * BLOCK]
    assert found[0][0] < 42.0


def test_each_of_several_losses_is_found():
    """Losses three seconds apart are reported separately."""
    index, due = due_times(20.0)
    kept = lose(due, 5.0, 4) & lose(due, 8.0, 9) & lose(due, 11.0, 2)
    found, _ = drive(SampleClock(FS, BLOCK), index[: kept.sum()], due[kept])
    assert [round(lost / BLOCK) for _, lost in found] == [4, 9, 2]


@pytest.mark.parametrize("true_fs", [44_100.0, 47_000.0, 47_900.0, 48_480.0, 50_000.0, 96_000.0])
@pytest.mark.parametrize("block", [480, 4800])
def test_wrong_rate_is_a_slope(true_fs, block):
    """A rate that is far off appears in ``rate_error_ppm`` within 12 s and is no loss."""
    rng = np.random.default_rng(5)
    index, due = due_times(12.0 * true_fs / FS, block=block)
    due *= FS / true_fs
    clock = SampleClock(FS, block)
    found, times = drive(clock, index, due + rng.exponential(0.002, len(due)))
    assert found == []
    assert (np.diff(times) > 0).all()
    assert clock.rate_error_ppm == pytest.approx(
        (true_fs / FS - 1) * 1e6, abs=2 * clock.rate_uncertainty_ppm
    )
    assert clock.is_rate_off == (abs(clock.rate_error_ppm) > 200 + clock.rate_uncertainty_ppm)
    assert clock.is_rate_off or block == 4800


@pytest.mark.parametrize("change", [-0.08, -0.02, -0.006, -0.003, -0.001, 0.0003, 0.005, 0.1])
def test_rate_that_changes_is_no_loss(change):
    """A change of the rate within a stream is no loss."""
    rng = np.random.default_rng(8)
    index, due = due_times(120.0)
    t = due + np.maximum(0.0, due - 60.0) * change + rng.uniform(0, 0.001, len(due))
    found, times = drive(SampleClock(FS, BLOCK), index, t)
    assert found == []
    assert (np.diff(times) > 0).all()


def test_sound_that_catches_up_slowly_is_no_loss():
    """Late samples that arrive at one and a half times the rate are not lost."""
    index, due = due_times(30.0)
    t = np.maximum(due, 12.0 + (due - 10.0) / 1.5)
    t[due < 10.0] = due[due < 10.0]
    found, _ = drive(SampleClock(FS, BLOCK), index, t)
    assert found == []


def test_latency_that_falls_moves_times_only():
    """If the latency falls, times follow within seconds, and no loss is reported."""
    index, due = due_times(40.0)
    t = due + np.where(due < 20.0, 0.3, 0.0)
    t = np.maximum.accumulate(np.where((due >= 20.0) & (due < 20.3), 20.3, t))
    clock = SampleClock(FS, BLOCK)
    found, times = drive(clock, index, t)
    assert found == []
    assert (np.diff(times) > 0).all()
    np.testing.assert_allclose(times[due > 35.0] * 1e-9, due[due > 35.0], atol=2e-3)


# ---- rate, jitter, times


@pytest.mark.parametrize("ppm", [-97.0, 0.0, 41.0])
def test_rate_is_measured(ppm):
    """After a minute of uniform jitter the rate is right to 5 ppm and inside its interval."""
    rng = np.random.default_rng(int(ppm) & 255)
    index, due = due_times(60.0, ppm)
    clock = SampleClock(FS, BLOCK)
    drive(clock, index, due + rng.uniform(0, BLOCK_S, len(due)))
    assert clock.rate_error_ppm == pytest.approx(ppm, abs=min(5.0, clock.rate_uncertainty_ppm))
    assert not clock.is_rate_off
    assert clock.jitter_s == pytest.approx(BLOCK_S / 2, abs=BLOCK_S / 5)


@pytest.mark.parametrize("ppm", [-60.0, 0.0, 85.0])
def test_shifts_within_a_block_bend_no_rate(ppm):
    """With a new phase of callbacks every 20 s, as after stalls, the rate is right to 2 ppm."""
    rng = np.random.default_rng(12)
    index, due = due_times(240.0, ppm)
    t = due + rng.uniform(0, BLOCK_S, 13)[(due / 20).astype(int)]
    clock = SampleClock(FS, BLOCK)
    found, times = drive(clock, index, t + rng.exponential(1e-4, len(due)))
    assert found == []
    assert (np.diff(times) > 0).all()
    assert clock.rate_error_ppm == pytest.approx(ppm, abs=2.0)


@pytest.mark.parametrize("tick_s", [0.001, 0.00999])
def test_saw_tooth_of_a_timer_is_no_rate(tick_s):
    """The rate is right although a timer's callbacks form a saw-tooth."""
    rng = np.random.default_rng(13)
    index, due = due_times(300.0, 90.0)
    t = np.ceil(due / tick_s) * tick_s + rng.exponential(2e-5, len(due))
    clock = SampleClock(FS, BLOCK)
    found, _ = drive(clock, index, t)
    assert found == []
    assert clock.rate_error_ppm == pytest.approx(90.0, abs=min(10.0, clock.rate_uncertainty_ppm))


def test_nothing_is_claimed_before_it_is_known():
    """In the first seconds no rate and no rate error are reported."""
    index, due = due_times(5.0, 5000.0)
    clock = SampleClock(FS, BLOCK)
    assert (clock.rate_error_ppm, clock.rate_uncertainty_ppm, clock.jitter_s) == (None, None, None)
    drive(clock, index, due)
    assert clock.rate_error_ppm is None
    assert not clock.is_rate_off


@pytest.mark.slow
def test_rate_survives_losses_and_its_memory_is_bounded():
    """Over half an hour with a loss per minute, the rate is right to 1 ppm with 256 points."""
    rng = np.random.default_rng(2)
    index, due = due_times(1800.0, 30.0)
    kept = np.ones(len(due), bool)
    for at in range(30, 1800, 60):
        kept &= lose(due, at, 7)
    t = due + rng.uniform(0, BLOCK_S, len(due))
    clock = SampleClock(FS, BLOCK)
    found, _ = drive(clock, index[: kept.sum()], t[kept])
    assert [lost for _, lost in found] == [pytest.approx(7 * BLOCK, abs=1.5 * BLOCK)] * 30
    assert clock.rate_error_ppm == pytest.approx(30.0, abs=1.0)
    assert len(clock._fit._points) <= 256


def test_times_are_those_of_the_soonest():
    """Times follow the earliest callbacks, to a tenth of a block."""
    rng = np.random.default_rng(4)
    index, due = due_times(30.0, 80.0)
    _, times = drive(SampleClock(FS, BLOCK), index, due + rng.uniform(0, BLOCK_S, len(due)))
    np.testing.assert_allclose(times[-500:] * 1e-9, due[-500:], atol=BLOCK_S / 10)


def test_index_and_time_are_inverse():
    """``index_at`` inverts ``mono_ns`` to the sample, in every piece of the line."""
    index, due = due_times(20.0, 200.0)
    clock = SampleClock(FS, BLOCK)
    drive(clock, index, due)
    for i in range(0, int(index[-1]), 7919):
        assert abs(clock.index_at(clock.mono_ns(i)) - i) <= 1


def test_times_do_not_change_later():
    """Later corrections do not change the time of recent samples."""
    rng = np.random.default_rng(9)
    index, due = due_times(30.0, 250.0)
    clock = SampleClock(FS, BLOCK)
    clock.place([(int(index[0]), round(due[0] * 1e9))])
    seen = {}
    for end, s in zip(index.tolist(), due + rng.uniform(0, BLOCK_S, len(due)), strict=True):
        clock.add(end, round(s * 1e9))
        seen[end] = clock.mono_ns(end - BLOCK)
        if (old := end - 100 * BLOCK) in seen:
            assert clock.mono_ns(old - BLOCK) == seen[old]


# ---- a restarted stream


@pytest.mark.parametrize("gap_s", [0.05, 1.0, 17.3, 900.0])
def test_next_stream_is_placed_by_the_clock(gap_s):
    """After a restart, indices advance by the elapsed time at the measured rate, to a block."""
    rng = np.random.default_rng(6)
    index, due = due_times(60.0 + gap_s + 1.0, 60.0)
    t = due + rng.uniform(0, BLOCK_S, len(due))
    clock = SampleClock(FS, BLOCK)
    drive(clock, index[:6000], t[:6000])
    again = 6000 + round(gap_s / BLOCK_S)
    begin = int(index[again - 1])
    first = zip((index - begin)[again : again + 20], t[again : again + 20], strict=True)
    # Over 900 s the rate, known to 5 ppm after a minute, adds 4.5 ms.
    placed = clock.place([(int(n), round(s * 1e9)) for n, s in first])
    assert abs(placed - begin) < BLOCK


def test_next_stream_never_overlaps_the_last():
    """A stream that seems to start before the last one's end is placed after it."""
    index, due = due_times(10.0)
    clock = SampleClock(FS, BLOCK)
    drive(clock, index, due)
    assert clock.place([(BLOCK, round(5.0 * 1e9))]) == index[-1]


def test_losses_are_found_after_a_break():
    """Losses are found after a restart as before, and the rate estimate continues."""
    index, due = due_times(60.0, 45.0)
    clock = SampleClock(FS, BLOCK)
    drive(clock, index[:2000], due[:2000])
    clock.place([(BLOCK, round(due[2500] * 1e9))])
    kept = lose(due, 40.0, 6)
    lost = 0
    for n, s in zip(index[2500 : kept.sum()].tolist(), due[kept][2500:], strict=True):
        lost += clock.add(n + lost, round(s * 1e9))
    assert lost == pytest.approx(6 * BLOCK, abs=10)
    assert clock.rate_error_ppm == pytest.approx(45.0, abs=clock.rate_uncertainty_ppm)


# ---- the piecewise line


@given(
    st.lists(
        st.tuples(st.integers(1, 50_000), st.floats(-2e9, 2e9), st.floats(-0.1, 0.1)), max_size=100
    )
)
def test_timeline_rises_whatever_it_follows(corrections):
    """Corrections of seconds bend the line without a decrease or a step."""
    period = 1e9 / FS
    timeline = Timeline(Line(0, 0, period))
    index, before = 0, 0
    for ahead, error_ns, slope in corrections:
        t_ns = timeline.mono_ns(index)
        timeline.follow(Line(index, t_ns + round(error_ns), period * (1 + slope)), index)
        assert timeline.mono_ns(index) == t_ns
        index += ahead
        assert timeline.mono_ns(index) > before
        assert timeline.mono_ns(index) - t_ns < 1.5 * 1.1 * period * ahead + 1
        before = timeline.mono_ns(index)


# ---- the wall clock


class Clocks:
    """A monotonic and a wall clock; each read of the first takes some time."""

    def __init__(self):
        self.now, self.offset, self.reading_ns = 10**12, 1_700_000_000 * 10**9, [100]

    def monotonic_ns(self):
        self.now += self.reading_ns[0]
        self.reading_ns = self.reading_ns[1:] or self.reading_ns
        return self.now

    def time_ns(self):
        return self.now + self.offset


@pytest.mark.parametrize("step_s", [-3600.0, -0.01, 0.0021, 1.0, 1e6])
def test_a_step_of_the_clock_is_reported_once_and_followed(step_s):
    """A step of the wall clock is reported once with its size."""
    clocks = Clocks()
    wall = WallClock(clocks.monotonic_ns, clocks.time_ns)
    assert wall.look() is None
    clocks.offset += round(step_s * 1e9)
    clocks.now += 10**9
    assert wall.look() == pytest.approx(step_s, abs=1e-6)
    assert wall.look() is None
    assert wall.utc_ns(clocks.now) == pytest.approx(clocks.time_ns(), abs=1000)


def test_slewing_is_followed_in_silence():
    """Slewing of 400 ppm for an hour is followed without a report."""
    clocks = Clocks()
    wall = WallClock(clocks.monotonic_ns, clocks.time_ns)
    for _ in range(360):
        clocks.now += 10 * 10**9
        clocks.offset += 4 * 10**6
        assert wall.look() is None
    assert wall.utc_ns(clocks.now) == pytest.approx(clocks.time_ns(), abs=1000)


def test_preemption_between_reads_bends_nothing():
    """If a thread is preempted between reads of the two clocks, they are read again."""
    clocks = Clocks()
    wall = WallClock(clocks.monotonic_ns, clocks.time_ns)
    clocks.reading_ns = [100, 50_000_000, 100, 50_000_000, 100, 100]
    assert wall.look() is None
    assert wall.utc_ns(clocks.now) == pytest.approx(clocks.time_ns(), abs=1000)


def test_wall_clock_is_this_machines():
    """By default the wall clock is this machine's UTC."""
    wall = WallClock()
    assert wall.utc_ns(time.monotonic_ns()) == pytest.approx(time.time_ns(), abs=10**8)
