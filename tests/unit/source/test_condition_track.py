"""Conditions of rows: those of the samples that they are made of."""

import numpy as np
import pytest

from spectrod.dsp.blocks import Block
from spectrod.dsp.conditions import Condition, combined
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.source import condition_track
from spectrod.source.checks import ContentChecks
from spectrod.source.condition_track import ConditionTrack

FS = 1000.0
GOOD, CLIPPED = Condition.CHECKED, Condition.CHECKED | Condition.CLIPPING


def noise(n, channels=1):
    return np.random.default_rng(3).uniform(-0.1, 0.1, (channels, n)).astype(np.float32)


def block(samples, first=0, lost_samples=0):
    return Block(samples, first, 0, 0, lost_samples=lost_samples)


def rows(n, channels=1, *, first=0, cut_frames=0, **settings):
    """Make rows of 100 samples, one after the other."""
    analysis = {"win_length": 100, "hop": 100, "nfft": 100} | settings
    spec = SpectrumSpec(fs=FS, channels=channels, **analysis)
    index = first + spec.hop * spec.averaging_frames * np.arange(n)
    values = np.zeros((n, spec.n_signals, spec.n_values), np.float32)
    return SpectrumBatch(values, index, index, index, spec, "numpy", cut_frames=cut_frames)


def conditions(track, batch):
    return track.mark(batch).conditions.tolist()


@pytest.mark.parametrize("n", [1000, 997, 60])
def test_rows_have_the_conditions_of_their_samples(n):
    """Clipping marks the rows of its part of 0.25 s at most, of one channel, in any blocks."""
    x = noise(2000, channels=2)
    x[1, 1010:1015] = 1.0
    track = ConditionTrack(2, FS)
    for first in range(0, 2000, n):
        track.write(block(x[:, first : first + n], first))
    found = track.mark(rows(20, 2)).conditions
    assert found.dtype == np.uint8
    assert (found[:, 0] == GOOD).all()
    marked = np.flatnonzero(found[:, 1] == CLIPPED)
    assert 10 in marked
    assert 7 <= marked.min() <= marked.max() <= 13


def test_averages_have_the_conditions_of_all_their_frames():
    """A row that was cut off has those of its own frames only."""
    x = noise(1000)
    x[0, 610:615] = -1.0
    track = ConditionTrack(1, FS)
    track.write(block(x))
    averages = {"averaging": "mean", "averaging_frames": 5}
    assert conditions(track, rows(2, **averages)) == [[GOOD], [CLIPPED]]
    assert conditions(track, rows(1, cut_frames=4, **averages)) == [[GOOD]]
    assert conditions(track, rows(0)) == []


def test_held_conditions_have_their_names():
    """Silence of one channel is missing; one value is stuck; a steady mean is an offset."""
    x = noise(40_000, channels=3)
    x[0, 1000:] = 0.0
    x[1, 1000:] = 0.25
    x[2] += 0.5
    track = ConditionTrack(3, FS)
    track.write(block(x))
    (first,), (last,) = conditions(track, rows(1, 3)), conditions(track, rows(1, 3, first=39_900))
    assert first == [GOOD, GOOD, GOOD]
    assert [one & ~GOOD for one in last] == [Condition.MISSING, Condition.STUCK, Condition.DC]


def test_checks_start_again_after_a_gap():
    """Silence before a gap says nothing of the samples after it."""
    track = ConditionTrack(1, FS)
    track.write(block(np.zeros((1, 2000), np.float32)))
    track.write(block(noise(1000), 3000, lost_samples=1000))
    found = conditions(track, rows(1, first=1900)) + conditions(track, rows(1, first=3000))
    assert found == [[GOOD | Condition.SILENT], [GOOD]]


def test_pairs_of_channels_are_one_signal_of_iq():
    """A signal of I/Q has what either of its channels has."""
    x = noise(100, channels=4)
    x[3, 10:20] = 1.0
    track = ConditionTrack(4, FS)
    track.write(block(x))
    assert conditions(track, rows(1, 4, iq=True)) == [[GOOD, CLIPPED]]


def test_checks_of_others_are_read_and_not_made_again():
    """With checks that have looked already, a block is one part."""
    x = noise(100)
    x[0, 50:60] = 1.0
    checks = ContentChecks(1, FS)
    track = ConditionTrack(1, FS, checks)
    for first in (0, 100):
        samples = x if first == 0 else noise(100)
        checks.look(samples)
        track.write(block(samples, first), is_suspected=first > 0)
    assert conditions(track, rows(2)) == [[CLIPPED], [GOOD | Condition.SUSPECTED]]
    assert checks.clipped_samples == 10


def test_runs_are_bounded(monkeypatch):
    """Of too many runs of faults the oldest count as one, which loses none of them."""
    monkeypatch.setattr(condition_track, "_RUNS_MAX", 3)
    x = noise(6000)
    x[0, 100::1000] = x[0, 101::1000] = x[0, 102::1000] = 1.0
    track = ConditionTrack(1, FS)
    track.write(block(x))
    found = np.ravel(conditions(track, rows(60)))
    assert (found[1::10] == CLIPPED).all()
    assert (found[-7:] == GOOD).all()


def test_conditions_of_rows_together():
    """Any fault counts; a minute is checked if all of it is."""
    both = np.array([[GOOD, CLIPPED, 0], [GOOD, Condition.DC, GOOD]], np.uint8)
    expected = [GOOD, Condition.CLIPPING | Condition.DC, 0]
    assert combined(both).tolist() == expected


def test_parts_of_batches_keep_their_conditions():
    """Rows that are cut out of a batch have their own."""
    x = noise(1000)
    x[0, 510:515] = 1.0
    track = ConditionTrack(1, FS)
    track.write(block(x))
    batch = track.mark(rows(10))
    assert batch.between(5, 6).conditions.tolist() == [[CLIPPED]]
    assert rows(3).between(0, 2).conditions is None
