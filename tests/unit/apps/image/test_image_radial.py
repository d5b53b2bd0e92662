"""Texts of radii, edges and bands, and their rules."""

from math import inf

import pytest

from spectrod.apps.image.radial import Edge, RadialFilter, Radius
from spectrod.lib.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "cycles"), [("32", 32.0), ("32.5cyc", 32.5), ("0.25nyq", 25.0), ("1e1", 10.0)]
)
def test_radii(text, cycles):
    """A radius is in cycles along the longer side, here of 200 pixels, or in parts of Nyquist."""
    assert Radius.parse(text).cycles(200) == cycles


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "-0.5nyq", "9e-7", "1.1e9"])
def test_radii_out_of_range(text):
    """A radius must be positive and have a square in float32."""
    with pytest.raises(ConfigError, match=r"radius=\S+: must be from 1e-06 to 1e\+09"):
        Radius.parse(text)


@pytest.mark.parametrize("text", ["", "x", "nyq", "3 px", "0.5nyqcyc"])
def test_radii_that_are_none(text):
    """A text that is not a radius is refused with the valid forms."""
    with pytest.raises(ConfigError, match=r"radius='.*': must be a number of cycles along"):
        Radius.parse(text)


@pytest.mark.parametrize(
    ("text", "edge"),
    [
        ("ideal", Edge("ideal")),
        ("gauss", Edge("gauss")),
        ("butterworth,2.5", Edge("butterworth", order=2.5)),
        ("cosine,8", Edge("cosine", width=Radius(8.0))),
        ("cosine,0.1nyq", Edge("cosine", width=Radius(0.1, "nyq"))),
    ],
)
def test_edges(text, edge):
    """Each edge has its text form."""
    assert Edge.parse(text) == edge


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steep", "edge='steep': must be ideal, gauss, butterworth,ORDER or cosine,WIDTH"),
        ("gauss,2", "edge='gauss,2': must be ideal, gauss,"),
        ("cosine", "edge='cosine': must be ideal,"),
        ("butterworth", "edge='butterworth': must be"),
        ("butterworth,x", "edge='butterworth,x': must be"),
        ("butterworth,0", "order=0: must be more than 0, at most 100"),
        ("butterworth,nan", "order=nan: must be more than 0"),
        ("butterworth,101", "order=101: must be more than 0, at most 100"),
        ("cosine,0", r"radius=0: must be from 1e-06 to 1e\+09"),
        ("cosine,x", "radius='x': must be a number"),
    ],
)
def test_bad_edges(text, message):
    """A malformed edge is refused with the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        Edge.parse(text)


def test_edges_without_sense():
    """An edge with an unknown name, or with a width that it does not use, is refused."""
    with pytest.raises(ConfigError, match="edge='sharp': must be one of ideal, gauss,"):
        Edge("sharp")
    with pytest.raises(ConfigError, match="must be given for a cosine edge, and only there"):
        Edge("gauss", width=Radius(1.0))


def test_frequencies_that_pass():
    """A low-pass starts at zero and keeps the mean; a high-pass has no upper end."""
    low, high = RadialFilter(outer=Radius(5.0)), RadialFilter(inner=Radius(5.0))
    assert (low.cycles(100), high.cycles(100)) == ((0.0, 5.0), (5.0, inf))
    assert (low.keeps_mean, high.keeps_mean) == (True, False)


@pytest.mark.parametrize("inner", [Radius(25.0), Radius(26.0), Radius(0.25, "nyq")])
def test_bands_upside_down(inner):
    """A band's lower radius must be below its upper one in any units."""
    band = RadialFilter(inner, Radius(25.0))
    with pytest.raises(ConfigError, match=r"band=2\d 25 cycles: must be two radii, lower first"):
        band.check(200)


def test_no_radius():
    """A filter must have a radius."""
    with pytest.raises(ConfigError, match="a filter without a radius"):
        RadialFilter()


def test_cosines_that_reach_below_zero():
    """A cosine edge ends at or above zero."""
    edge = Edge.parse("cosine,10.1")
    RadialFilter(outer=Radius(5.05), edge=edge).check(100)
    with pytest.raises(ConfigError, match=r"width=10.1 cycles: must be at most twice the radius 5"):
        RadialFilter(outer=Radius(5.0), edge=edge).check(100)
