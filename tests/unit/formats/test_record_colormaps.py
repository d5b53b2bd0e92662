import numpy as np
import pytest

from spectrod.formats.picture.colormaps import colormap, colormap_names
from spectrod.formats.picture.theme import GAP, N_LEVELS, THEMES, ink_entries, palette
from spectrod.lib.errors import ConfigError

# First and last colours as published by the maps' authors.
ENDS = {
    "viridis": ((68, 1, 84), (253, 231, 37)),
    "magma": ((0, 0, 4), (252, 253, 191)),
    "inferno": ((0, 0, 4), (252, 255, 164)),
    "cividis": ((0, 34, 78), (254, 232, 56)),
    "turbo": ((48, 18, 59), (122, 4, 3)),
    "grey": ((0, 0, 0), (255, 255, 255)),
}


def luminance(table):
    linear = (table / 255.0) ** 2.2
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("name", ENDS)
def test_maps_have_their_published_ends(name):
    """Each map starts and ends with its published colours, at any number of entries."""
    for n_entries in (2, 239, 240, 256):
        table = colormap(name, n_entries)
        assert table.shape == (n_entries, 3)
        assert (tuple(table[0]), tuple(table[-1])) == ENDS[name]


@pytest.mark.parametrize("name", sorted(ENDS.keys() - {"turbo"}))
def test_louder_is_lighter(name):
    """Lightness increases monotonically, so levels keep their order in print and for everyone."""
    assert (np.diff(luminance(colormap(name, 64))) > 0.0).all()


def test_turbo_is_lightest_in_the_middle():
    """Turbo, the one map without monotonic lightness, is lightest in the middle."""
    light = luminance(colormap("turbo", 64))
    assert 20 < np.argmax(light) < 44
    assert light[0] < 0.1 > light[-1]


@pytest.mark.parametrize("name", ENDS)
def test_reversed_maps_are_reversed(name):
    """The suffix _r reverses a map."""
    np.testing.assert_array_equal(colormap(f"{name}_r", 256), colormap(name, 256)[::-1])


def test_names_are_those_tested():
    """The tests cover every map."""
    assert set(colormap_names()) == set(ENDS)


def test_unknown_names_are_listed():
    """An unknown name is refused with the list of names."""
    with pytest.raises(ConfigError, match=r"colormap='jet': must be one of viridis, .*, grey, or"):
        colormap("jet", 256)


@pytest.mark.parametrize("theme", THEMES)
def test_palette_has_data_inks_and_gap(theme):
    """The 256 palette entries hold the map, then the ramp from paper to ink, then the gaps."""
    entries = np.frombuffer(palette("viridis", THEMES[theme]), np.uint8).reshape(256, 3)
    np.testing.assert_array_equal(entries[:N_LEVELS], colormap("viridis", N_LEVELS))
    assert tuple(entries[N_LEVELS]) == THEMES[theme].paper
    assert tuple(entries[GAP - 1]) == THEMES[theme].ink
    assert tuple(entries[GAP]) == THEMES[theme].gap


def test_ink_never_is_data_nor_gap():
    """Every coverage of ink has an entry of the ramp, with paper and full ink at the ends."""
    entries = ink_entries(np.arange(256, dtype=np.uint8))
    assert entries[0] == N_LEVELS
    assert entries[-1] == GAP - 1
    assert (np.diff(entries.astype(int)) >= 0).all()
