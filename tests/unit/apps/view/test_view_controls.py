"""Keys of the live view."""

import numpy as np
import pytest

from spectrod.apps.view.axes import ALL, LevelRange, frequency_axis, level_range
from spectrod.apps.view.colour import Style
from spectrod.apps.view.controls import HELP, Look
from spectrod.apps.view.render import HistoryRow, Scene, render
from spectrod.apps.view.selection import ProductSelection
from spectrod.dsp.units import FLOOR_DBFS
from spectrod.wire.schema import Frame, SpectrumHeader

NFFT = 4096
FS = 48000.0


def make_scene(**fields):
    levels = np.full(NFFT // 2 + 1, -110.0)
    levels[85:88] = -26.0, -20.0, -26.0
    header = SpectrumHeader(
        seq=41,
        epoch=1,
        t_utc_ns=0,
        t_mono_ns=0,
        sample_index=0,
        fs=FS,
        win_length=NFFT,
        nfft=NFFT,
        hop=1024,
        window="hann",
        enbw_hz=17.6,
        shape=(NFFT // 2 + 1,),
        unit="dBFS",
        ref="",
        engine="numpy",
        dropped=0,
        overflows=0,
    )
    scene = {
        "now_s": 100.0,
        "alive": True,
        "frame": Frame("spec/mic/0/dbfs/", header, levels.astype(np.float32)),
        "levels": levels,
        "history": [HistoryRow(100.0, levels)],
        "channels": ["mic/0"],
    }
    return Scene("ipc://x", **(scene | fields))


def pressed(*keys, unit="dBFS", shown=()):
    look = Look()
    for key in keys:
        assert look.press(key, unit, shown)
    return look


@pytest.mark.parametrize(
    ("keys", "bottom_db", "top_db"),
    [
        (["up"], -110.0, 10.0),
        (["down", "down"], -140.0, -20.0),
        (["["], -110.0, 0.0),
        (["]"], -130.0, 0.0),
        (["["] * 30, -20.0, 0.0),
        (["]"] * 30, -240.0, 0.0),
        (["up"] * 30, -20.0, 100.0),
        (["down"] * 60, -300.0, -180.0),
        (["down", "r"], -120.0, 0.0),
    ],
)
def test_levels(keys, bottom_db, top_db):
    """Arrows move the level range, brackets change its width within bounds, and r resets it."""
    assert pressed(*keys).shown_levels("dBFS") == LevelRange(bottom_db, top_db)


def test_levels_that_fit():
    """Automatic levels hold nearly all values, in tens of decibels, and ignore silence."""
    shown = [np.linspace(-87.0, -33.0, 1000), np.full(1000, FLOOR_DBFS)]
    assert pressed("a", shown=shown).levels == LevelRange(-90.0, -30.0)
    assert pressed("a", shown=[np.full(10, -45.0)]).levels == LevelRange(-60.0, -40.0)
    for nothing in ([], [np.full(10, FLOOR_DBFS)]):
        assert pressed("a", shown=nothing).levels is None
    assert pressed("a", shown=nothing).shown_levels("FS^2/Hz") == level_range("FS^2/Hz")


@pytest.mark.parametrize(
    ("keys", "span"),
    [
        (["+"], (0.25, 0.75)),
        (["+", "right"], (0.375, 0.875)),
        (["+", "left", "left", "left"], (0.0, 0.5)),
        (["+", "+", *["right"] * 20], (0.75, 1.0)),
        (["+", "-"], ALL),
        (["-"], ALL),
        (["right"], ALL),
        (["+", *["left"] * 9, "-"], ALL),
        (["+", "r"], ALL),
    ],
)
def test_frequencies(keys, span):
    """Zoom is centred and moves by a quarter, both within the available range."""
    assert pressed(*keys).span == pytest.approx(span)


def test_zoom_has_an_end():
    """The shown part is at least a 64th of the axis."""
    first, last = pressed(*["+"] * 50).span
    assert last - first == pytest.approx(1 / 64)


@pytest.mark.parametrize("first_bin", [0, -NFFT // 2])
@pytest.mark.parametrize("span", [(0.25, 0.75), (0.0, 1 / 64), (63 / 64, 1.0), ALL])
def test_a_part_of_the_axis(span, first_bin):
    """Columns of a part are those of the whole at the corresponding larger width."""
    n_whole = 6400
    whole = frequency_axis(FS, NFFT, n_whole, first_bin)
    first, last = (round(n_whole * end) for end in span)
    part = frequency_axis(FS, NFFT, last - first, first_bin, span)
    np.testing.assert_array_equal(part.bounds, whole.bounds[2 * first : 2 * last])
    assert all(0 <= column < part.columns for column, _ in part.ticks())


def test_pressed_keys_change_the_display():
    """Levels and frequencies are the selected ones; pause and products are displayed."""
    scene = make_scene(look=pressed("down", "+"), products=["dbfs", "slow"])
    text = render(scene, 100, 30, Style())
    assert any(line.startswith(("  -130│", "  -120│")) for line in text)
    labels = next(line for line in text if line.startswith(" Hz")).split()[1:]
    assert (labels[0], labels[-1]) == ("200", "2k")
    assert text[-1].startswith("q quit  p product (dbfs)  ? help")
    scene.look.press(" ", "dBFS", [])
    assert render(scene, 100, 30, Style())[-1] == "paused; space resumes"
    scene.look.press(" ", "dBFS", [])
    assert render(scene, 100, 30, Style())[-1].startswith("q quit")


@pytest.mark.parametrize(("width", "height"), [(100, 30), (99, 10), (40, 12), (20, 3), (1, 1)])
def test_help_fits(width, height):
    """The help replaces the picture within its room and can be closed."""
    scene = make_scene(look=pressed("?"))
    lines = render(scene, width, height, Style())
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    if (width, height) in ((100, 30), (99, 10)):
        text = "\n".join(lines)
        assert all(what in text for _, what in HELP)
    scene.look.press("?", "dBFS", [])
    assert render(scene, width, height, Style()) != lines


@pytest.mark.parametrize(("width", "height"), [(40, 8), (29, 24), (12, 8), (39, 9)])
def test_a_small_terminal_shows_whole_words(width, height):
    """A small room shows whole words: the peak, and the room that a picture needs."""
    lines = render(make_scene(), width, height, Style())
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    text = " ".join(lines)
    assert text.startswith("1007.8 Hz -20.0 dBFS too small for a picture: needs 31 x 10 characters")
    if width > 12:
        assert text.endswith("q quit")
    gone = render(make_scene(alive=False, silence_s=2.0), width, height, Style())
    assert " ".join(gone).startswith("no signal since 2.0 s")


@pytest.mark.parametrize("key", ["x", "", "\x1b", "Z"])
def test_other_keys_do_nothing(key):
    """An unknown key changes nothing."""
    look = Look()
    assert not look.press(key, "dBFS", [])
    assert look == Look()


def test_products_follow_each_other():
    """The first product is shown, p selects the next one, and a selected one stays."""
    products = ProductSelection()
    assert products.hear(["fast", "slow", "fast"]) == "fast"
    assert products.known == ["fast", "slow"]
    products.next()
    for _ in range(100):
        assert products.hear(["fast"]) == "slow"
    products.next()
    assert products.hear(["slow"]) == "fast"


def test_a_product_that_stays_away_is_left():
    """An absent product is replaced after a while, a selected one when it is forgotten."""
    products = ProductSelection()
    assert products.hear(["old"]) == "old"
    shown = [products.hear(["new"]) for _ in range(16)]
    assert shown == ["old"] * 15 + ["new"]


def test_a_chosen_product_is_forgotten_after_a_minute(monkeypatch):
    """A selected product that the daemon no longer sends is forgotten after a minute."""
    now_s = 0.0
    monkeypatch.setattr("spectrod.apps.view.selection.time.monotonic", lambda: now_s)
    products = ProductSelection()
    products.hear(["a", "b"])
    products.next()
    kept = products.hear(["a"])
    now_s = 61.0
    assert kept == "a" or products.hear(["a"]) == "a"
    assert products.hear(["a"]) == "a"
    assert products.known == ["a"]
