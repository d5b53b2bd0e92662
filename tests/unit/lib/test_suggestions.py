"""Suggestions for misspelt names."""

import pytest

from spectrod.lib.suggestions import did_you_mean

FLAGS = ("--f-min", "--f-max", "--colormap", "--levels", "--theme")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("--fmin", "--f-min"),
        ("--f_max", "--f-max"),
        ("--colourmap", "--colormap"),
        ("--cmap", "--colormap"),
        ("--LEVEL", "--levels"),
    ],
)
def test_near_names(name, meant):
    """The nearest known name is suggested, regardless of case and hyphens."""
    assert did_you_mean(name, FLAGS) == f"; did you mean {meant}?"


@pytest.mark.parametrize("name", ["--xyzzy", "", "x" * 10_000])
def test_nothing_near(name):
    """A name that is unlike all known ones, or too long to compare, gets no suggestion."""
    assert did_you_mean(name, FLAGS) == ""
