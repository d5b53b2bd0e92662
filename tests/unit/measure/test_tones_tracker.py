"""Tracks of peaks: identity, birth, end, assignment and bounds."""

import numpy as np
import pytest

from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.tones.tone_tracker import NO_TRACK, PeakTracker


def push(tracker, *frequencies):
    """Add peaks of equal level; return identities, and identities of ended tracks."""
    identity, ended = tracker.push(frequencies, np.zeros(len(frequencies)))
    return identity.tolist(), [track.identity for track in ended]


def test_a_gliding_tone_keeps_its_identity():
    """A tone that moves by less than the step in each frame is one track."""
    tracker = PeakTracker(max_step_hz=12.0)
    for frame in range(50):
        identity, ended = push(tracker, 500.0, 1000.0 + 10.0 * frame)
        assert (identity, ended) == ([0, 1], [])
    assert tracker.tracks[1].n_frames == 50
    assert tracker.tracks[1].frequency_hz == 1490.0


def test_a_step_beyond_the_limit_starts_a_track():
    """The old track ends after max_missed frames without a peak, and never returns."""
    tracker = PeakTracker(max_step_hz=10.0, max_missed=2)
    assert push(tracker, 100.0) == ([0], [])
    assert push(tracker, 110.5) == ([1], [])
    assert push(tracker, 110.5) == ([1], [])
    assert push(tracker, 110.5) == ([1], [0])
    assert push(tracker, 100.0) == ([2], [])


def test_a_missed_frame_keeps_the_identity():
    """A peak after max_missed frames without one continues its track."""
    tracker = PeakTracker(max_step_hz=10.0, max_missed=2)
    assert push(tracker, 100.0) == ([0], [])
    assert push(tracker) == ([], [])
    assert push(tracker) == ([], [])
    assert push(tracker, 101.0) == ([0], [])
    assert tracker.tracks[0].n_frames == 2


def test_nearest_pairs_join_first_and_one_to_one():
    """A peak near two tracks joins the nearer; of equal distances the older track is first."""
    tracker = PeakTracker(max_step_hz=30.0)
    assert push(tracker, 100.0, 120.0) == ([0, 1], [])
    assert push(tracker, 112.0) == ([1], [])
    assert push(tracker, 106.0, 100.0) == ([1, 0], [])
    assert push(tracker, 103.0) == ([0], [])


def test_bounded_tracks_start_with_the_strongest():
    """Of more peaks than tracks, the weakest start none; they may later."""
    tracker = PeakTracker(max_step_hz=5.0, max_missed=0, max_tracks=2)
    identity, _ = tracker.push([100.0, 200.0, 300.0], [-30.0, -10.0, -20.0])
    assert identity.tolist() == [NO_TRACK, 0, 1]
    identity, ended = tracker.push([100.0, 300.0], [-30.0, -20.0])
    assert identity.tolist() == [2, 1]
    assert [track.identity for track in ended] == [0]


def test_finish_ends_all_tracks():
    """All tracks end in order of birth, and later peaks start new ones."""
    tracker = PeakTracker(max_step_hz=5.0)
    push(tracker, 10.0, 20.0)
    assert [track.identity for track in tracker.finish()] == [0, 1]
    assert tracker.tracks == []
    assert push(tracker, 10.0) == ([2], [])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"max_step_hz": 0.0}, "max_step_hz=0: must be a positive number of Hz"),
        ({"max_step_hz": np.nan}, "max_step_hz=nan"),
        ({"max_step_hz": 1.0, "max_missed": -1}, "max_missed=-1: must be at least 0 frames"),
        ({"max_step_hz": 1.0, "max_tracks": 1025}, "max_tracks=1025: must be 1 to 1024"),
    ],
)
def test_bad_parameters(arguments, text):
    """Each rule that is violated is one error."""
    with pytest.raises(ConfigError, match=text):
        PeakTracker(**arguments)


@pytest.mark.parametrize(
    ("frequency", "level", "text"),
    [
        ([1.0], [1.0, 2.0], r"peaks of shapes \(1,\) and \(2,\): must both be \(n,\)"),
        ([np.inf], [0.0], "peaks: hold values that are not finite"),
        (np.arange(1025.0), np.zeros(1025), "1025 peaks: must be at most 1024"),
    ],
)
def test_bad_peaks(frequency, level, text):
    """Peaks of different lengths, infinite and too many ones are refused; nothing changes."""
    tracker = PeakTracker(max_step_hz=1.0)
    with pytest.raises(InputError, match=text):
        tracker.push(frequency, level)
    assert push(tracker, 5.0) == ([0], [])


def test_skipped_frames_are_frames_without_peaks():
    """Passing over frames at once ends the tracks that the same frames without peaks would end."""
    for n in range(5):
        one, other = (PeakTracker(10.0, max_missed=2) for _ in range(2))
        for tracker in (one, other):
            tracker.push([100.0, 200.0], [0.0, -10.0])
            tracker.push([100.0], [0.0])
        ended = [track.identity for _ in range(n) for track in one.push([], [])[1]]
        assert [track.identity for track in other.skip(n)] == sorted(ended)
        identities = [tracker.push([100.0], [0.0])[0].tolist() for tracker in (one, other)]
        assert identities[0] == identities[1] == ([0] if n <= 2 else [2])
