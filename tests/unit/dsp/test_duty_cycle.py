import numpy as np
import pytest

from spectrod.dsp.duty_cycle import NOTHING, OWN_TIME, find_duty_cycle

DAY_S = 86400.0


def cycle_of(begins_s, on_s=55.0, **settings):
    begins_s = np.asarray(begins_s, np.float64)
    return find_duty_cycle(begins_s, begins_s + on_s, **settings)


def regular(n, period_s=600.0, lost=()):
    return np.delete(period_s * np.arange(n), list(lost))


def test_equal_distances_are_a_schedule():
    """The period is that of most begins; where a recording is missing, the pause is no part."""
    found = cycle_of(regular(432, lost=(100, 101, 250)))
    assert (found.period_s, found.on_s) == (600.0, 55.0)
    assert np.flatnonzero(~found.is_scheduled).tolist() == [99, 247]
    np.testing.assert_array_equal(found.pauses_s, np.full(426, 545.0))


def test_a_loss_within_a_recording_is_no_pause_of_the_schedule():
    """Two parts of a recording begin closer than half a period; the pause after them is one."""
    begins_s = np.insert(regular(50), 11, 6030.0)
    found = cycle_of(begins_s, np.where(np.isin(np.arange(51), [10, 11]), 25.0, 55.0))
    assert np.flatnonzero(~found.is_scheduled).tolist() == [10]
    edges_s = np.linspace(0.0, 30000.0, 3001)
    np.testing.assert_array_equal(np.unique(found.recording_of(edges_s)), np.arange(51))


def test_names_of_whole_seconds_and_a_drifting_clock_are_a_schedule():
    """Begins that deviate by seconds each, and by minutes over a year, follow one period."""
    n = 5000
    jitter_s = np.random.default_rng(1).uniform(-0.9, 0.9, n)
    found = cycle_of(np.round(600.1 * np.arange(n) + jitter_s))
    assert found.period_s == pytest.approx(600.0, abs=1.0)
    assert found.is_scheduled.all()


@pytest.mark.parametrize("n_losses", [3, 4, 50, 1001])
def test_losses_at_any_times_are_no_schedule(n_losses):
    """Begins at random do not have one distance, however many they are."""
    begins_s = np.cumsum(np.random.default_rng(n_losses).exponential(600.0, n_losses) + 60.0)
    assert cycle_of(begins_s) is None


@pytest.mark.parametrize("n", [1, 2])
def test_one_pause_is_no_schedule(n):
    """Between two recordings any pause is one period."""
    assert cycle_of(regular(n)) is None


def test_times_of_minutes_need_a_tolerance_of_minutes():
    """A period of 150 s is one of 2 and 3 minutes by turns, if minutes are all that is known."""
    begins_s = 60.0 * np.floor(150.0 * np.arange(51) / 60.0)
    assert cycle_of(begins_s) is None
    assert cycle_of(begins_s, resolution_s=60.0).is_scheduled.all()


@pytest.mark.parametrize("width", [433, 1000, 1201, 4000, 3456])
def test_no_column_is_without_a_recording(width):
    """Columns below the period stand for the recording of their period, but for lost ones."""
    found = cycle_of(regular(432, lost=(100, 101, 250)))
    edges_s = np.linspace(0.0, 3 * DAY_S, width + 1)
    recordings = found.recording_of(edges_s)
    period = (0.5 * (edges_s[:-1] + edges_s[1:]) // 600.0).astype(int)
    is_lost = np.isin(period, [100, 101, 250])
    np.testing.assert_array_equal(recordings == NOTHING, is_lost)
    begins_s = found.begins_s[recordings[~is_lost]]
    np.testing.assert_array_equal(begins_s, 600.0 * period[~is_lost])


@pytest.mark.parametrize(
    ("on_s", "width", "why"),
    [
        (55.0, 432, "columns of a period"),
        (55.0, 400, "columns of more than a period"),
        (590.0, 1000, "columns longer than two pauses"),
        (300.0, 8000, "recordings of 9 columns"),
    ],
)
def test_columns_keep_their_time_where_they_can_show_it(on_s, width, why):
    """Columns that all have sound, or that show recordings by themselves, keep their own time."""
    found = cycle_of(regular(432), on_s)
    assert (found.recording_of(np.linspace(0.0, 3 * DAY_S, width + 1)) == OWN_TIME).all(), why


def test_a_picture_may_begin_and_end_in_a_pause():
    """The first recording stands for the pause before it, the last for its period."""
    found = cycle_of(regular(100))
    recordings = found.recording_of(np.linspace(-1200.0, 61200.0, 1041))
    centres_s = -1200.0 + 60.0 * (np.arange(1040) + 0.5)
    is_within = (centres_s >= -545.0) & (centres_s < 60000.0)
    np.testing.assert_array_equal(recordings >= 0, is_within)


def test_a_recording_longer_than_a_period_keeps_its_time():
    """A few hours in a row between short recordings are not one column."""
    begins_s = np.append(regular(100), 70000.0)
    ends_s = begins_s + np.append(np.full(100, 55.0), 7200.0)
    found = find_duty_cycle(begins_s, ends_s)
    recordings = found.recording_of(np.linspace(0.0, 77200.0, 773))
    assert recordings[:600].tolist() == np.repeat(np.arange(100), 6)[:600].tolist()
    assert (recordings[700:] == OWN_TIME).all()
