"""Marks in pictures: frames at their times and frequencies, in one signal, cut at its ends."""

import numpy as np
import pytest

from spectrod.formats.picture.axes import FrequencyAxis
from spectrod.formats.picture.marks import Mark, with_marks
from spectrod.formats.picture.page import Plots
from spectrod.formats.picture.theme import GAP, N_LEVELS

PAPER, INK = N_LEVELS, GAP - 1
F_AXIS = FrequencyAxis("linear", 0.0, 4000.0)


def plots(height=40, width=100, n_samples=1000):
    """Return two plots of level 7 from sample 500 on."""
    entries = np.full((2, height, width), 7, np.uint8)
    return Plots(entries, np.zeros(entries.shape, np.float32), (0.0, 1.0), n_samples, 1.0)


def marked(*mark, **size):
    before = plots(**size)
    after = with_marks(before, [Mark(*mark)], F_AXIS, 500)
    assert np.all(before.entries == 7)
    assert after.values is before.values
    return after.entries


@pytest.mark.parametrize(("height", "width", "n_samples"), [(40, 100, 1000), (41, 103, 1030)])
def test_a_frame_lies_around_the_range(height, width, n_samples):
    """Inside is the range, to a pixel; around it a line of ink, and around that one of paper."""
    entries = marked(1, 700, 900, 1000.0, 2000.0, height=height, width=width, n_samples=n_samples)
    assert np.all(entries[0] == 7)
    top, bottom = round(height / 2), round(height * 3 / 4)
    expected = np.full((height, width), 7)
    expected[top - 2 : bottom + 2, 18:42] = PAPER
    expected[top - 1 : bottom + 1, 19:41] = INK
    expected[top:bottom, 20:40] = 7
    assert np.array_equal(entries[1], expected)


def test_parts_outside_the_plot_are_not_drawn():
    """A range that is wider and higher than the plot leaves it as it is; one that is later, too."""
    assert np.all(marked(0, 0, 9000, -5000.0, 9000.0) == 7)
    assert np.all(marked(0, 9000, 9500, 1000.0, 2000.0) == 7)
    entries = marked(0, 0, 600, 3000.0, 4000.0)[0]
    assert np.all(entries[:10, 10] == INK)
    assert np.all(entries[10, :11] == INK)
    assert np.all(entries[:10, :10] == 7)


def test_a_logarithmic_axis_has_no_zero():
    """A range from 0 Hz begins at the lower end of a logarithmic axis."""
    f_axis = FrequencyAxis("log", 20.0, 2000.0)
    entries = with_marks(plots(), [Mark(0, 700, 900, 0.0, 200.0)], f_axis, 500).entries[0]
    assert np.all(entries[20:, 19] == INK)
    assert entries[19, 30] == INK


def test_without_marks_nothing_changes():
    """The plots are the same object."""
    before = plots()
    assert with_marks(before, [], F_AXIS, 0) is before
