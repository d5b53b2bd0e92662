"""What somebody may have meant."""

import pytest

from spectrod.suggestions import did_you_mean

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
    """The nearest of the known names is suggested, whatever its case and its hyphens."""
    assert did_you_mean(name, FLAGS) == f"; did you mean {meant}?"


@pytest.mark.parametrize("name", ["--xyzzy", "", "x" * 10_000])
def test_nothing_near(name):
    """Nothing is suggested for what is like none of them, nor for a name too long to compare."""
    assert did_you_mean(name, FLAGS) == ""
