"""Frequency axes of all kinds."""

import numpy as np
import pytest

from spectrod.apps.view.axes import frequency_axis
from spectrod.apps.view.scales import AXIS_KINDS, find_ticks

FS, NFFT = 48000.0, 4096


@pytest.mark.parametrize("kind", AXIS_KINDS)
@pytest.mark.parametrize("columns", [1, 72, 300])
@pytest.mark.parametrize("span", [(0.0, 1.0), (0.25, 0.75), (63 / 64, 1.0)])
def test_a_tone_is_in_the_column_of_its_frequency(kind, columns, span):
    """A tone in any visible bin is in its frequency's column, or beside it where bins are wide."""
    axis = frequency_axis(FS, NFFT, columns, 0, span, 0.0, kind)
    delta_f = FS / NFFT
    first, last = int(np.ceil(axis.lowest_hz / delta_f)), int(axis.highest_hz / delta_f)
    for k in np.unique(np.linspace(first, last, 25).astype(int)):
        if k * delta_f >= axis.highest_hz and span[1] < 1.0:
            continue  # the first bin beyond the part
        levels = np.full(NFFT // 2 + 1, -100.0)
        levels[k] = 0.0
        shown = np.flatnonzero(axis.reduce(levels) == 0.0)
        assert shown.size
        assert np.abs(shown - axis.column(k * delta_f)).min() <= 1


@pytest.mark.parametrize("kind", AXIS_KINDS)
def test_no_bin_is_hidden(kind):
    """Every bin from the start of the axis to Nyquist is in a column."""
    axis = frequency_axis(FS, NFFT, 100, 0, (0.0, 1.0), 0.0, kind)
    shown = np.zeros(NFFT // 2 + 1, bool)
    for first, last in axis.bounds.reshape(-1, 2):
        shown[first:last] = True
    assert shown[int(np.ceil(axis.lowest_hz * NFFT / FS)) :].all()


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("log", ["20", "50", "100", "200", "500", "1k", "2k", "5k", "10k", "20k"]),
        ("octave", ["31.5", "63", "125", "250", "500", "1k", "2k", "4k", "8k", "16k"]),
        ("linear", ["0", "5k", "10k", "15k", "20k"]),
    ],
)
def test_labels(kind, labels):
    """Labels are round, and on an octave axis the nominal frequencies of ISO 266."""
    ticks = frequency_axis(FS, NFFT, 80, 0, (0.0, 1.0), 0.0, kind).ticks()
    assert [label for _, label in ticks] == labels


def test_octaves_are_at_their_exact_frequencies():
    """The label 125 stands at 1000 * 10^-0.9 Hz, which is 125.89 Hz."""
    ticks = {tick.label: tick.hz for tick in find_ticks("octave", 20.0, 24000.0, 80)}
    assert ticks["125"] == pytest.approx(125.8925, abs=1e-4)
    assert ticks["16k"] == pytest.approx(15848.93, abs=1e-2)


def test_mel_is_linear_below_1_khz():
    """On a mel axis 0, 500 and 1000 Hz are equally far apart, and 0 Hz is labelled once."""
    axis = frequency_axis(FS, NFFT, 1000, 0, (0.0, 1.0), 0.0, "mel")
    at = [axis.column(hz) for hz in (0.0, 500.0, 1000.0)]
    assert at[1] - at[0] == pytest.approx(at[2] - at[1], abs=1)
    labels = [label for _, label in axis.ticks()]
    assert (labels[0], labels[-1], len(labels)) == ("0", "20k", len(set(labels)))


@pytest.mark.parametrize("kind", AXIS_KINDS)
def test_a_small_part_has_labels(kind):
    """A part that is too small for the labels of its kind has multiples of a round step."""
    for first in np.linspace(0.3, 0.98, 20):
        ticks = frequency_axis(FS, NFFT, 80, 0, (first, first + 1 / 64), 0.0, kind).ticks()
        assert len(ticks) >= 3
        assert len({label for _, label in ticks}) == len(ticks)


def test_a_two_sided_axis_is_linear():
    """A two-sided spectrum has a linear axis, whatever kind is asked for."""
    axes = [frequency_axis(FS, 64, 40, -32, (0.0, 1.0), 1e6, kind) for kind in AXIS_KINDS]
    assert {axis.kind for axis in axes} == {"linear"}
    assert len({tuple(axis.ticks()) for axis in axes}) == 1
