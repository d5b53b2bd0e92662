"""Fingers, the wheel and drags on the plots in Chromium, and holds of a sweep as they are drawn."""

import math
import time

import pytest
from made_up_daemon import MadeUpDaemon, tone
from programs import running_web
from tabs import MIC, Tab, wait_for_rows, wait_until

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

NUMBERS = """name => {
  const found = new URLSearchParams(location.hash.slice(1)).get(name);
  return found === null ? [] : found.split(/[:,]/).map(Number);
}"""
LEVEL = """([x, colour, low, high]) => {
  const canvas = document.querySelector(".trace-lines");
  const copy = new OffscreenCanvas(1, canvas.height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, -Math.round(x), 0);
  const { data } = context.getImageData(0, 0, 1, canvas.height);
  const hex = getComputedStyle(document.documentElement).getPropertyValue(`--${colour}`).trim();
  const wanted = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const isWanted = (y) => data[4 * y + 3] > 64
    && wanted.every((value, part) => Math.abs(value - data[4 * y + part]) < 24);
  const found = Array.from({ length: canvas.height }, (_, y) => y).filter(isWanted);
  const middle = found.reduce((sum, y) => sum + y + 0.5, 0) / found.length;
  return high - (middle / canvas.height) * (high - low);
}"""
"""Level at which a column of the line spectrum has the colour of a line; NaN where it has none."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    daemon = MadeUpDaemon(tmp_path_factory.mktemp("gestures"))
    daemon.live = lambda: tone(-20.0)
    with daemon.running():
        yield daemon


@pytest.fixture(scope="module")
def address(daemon):
    with running_web(daemon.endpoint) as (link, _):
        yield link.partition("#")[0]


@pytest.fixture
def tab(open_context, address):
    """Yield a tab on a screen that is touched."""
    tab = Tab(open_context(viewport={"width": 1280, "height": 800}, has_touch=True), address)
    yield tab
    assert tab.problems == []


class Fingers:
    """Touches the plots at shares of their width and height; the times of the events are given."""

    def __init__(self, tab):
        self._devtools = tab.page.context.new_cdp_session(tab.page)
        self.box = tab.page.locator(".surface").bounding_box()
        self._now_s = time.time()

    def send(self, kind, *places, after_s=0.02):
        self._now_s += after_s
        points = [
            {"x": self.box["x"] + x, "y": self.box["y"] + y, "id": number}
            for number, (x, y) in enumerate(places)
        ]
        event = {"type": f"touch{kind}", "touchPoints": points, "timestamp": self._now_s}
        self._devtools.send("Input.dispatchTouchEvent", event)

    def tap(self, x, y, after_s=1.0):
        self.send("Start", (x, y), after_s=after_s)
        self.send("End")


def numbers(tab, name):
    return tab.page.evaluate(NUMBERS, name)


def wait_for_numbers(tab, name, count):
    """Wait until the address has so many numbers of a name; return them."""
    tab.page.wait_for_function(f"([name, n]) => ({NUMBERS})(name).length === n", arg=[name, count])
    return numbers(tab, name)


def test_a_pinch_zooms_about_its_middle(tab):
    """Fingers twice as far apart show half of the span, with the frequency between them there."""
    tab.open(f"v=1&topic={MIC}&axis=linear")
    fingers = Fingers(tab)
    quarter = fingers.box["width"] / 4
    fingers.send("Start", (quarter - 50, 60))
    fingers.send("Start", (quarter - 50, 60), (quarter + 50, 60))
    for far in range(55, 105, 5):
        fingers.send("Move", (quarter - far, 60), (quarter + far, 60))
    fingers.send("End", (quarter - 100, 60))
    fingers.send("End")
    wait_for_numbers(tab, "f", 2)
    tab.page.wait_for_function(
        f"() => {{ const [low, high] = ({NUMBERS})('f'); return high - low < 12100; }}"
    )
    low, high = numbers(tab, "f")
    assert high - low == pytest.approx(12000, rel=0.01)
    assert low + (high - low) / 4 == pytest.approx(6000, abs=60)
    assert numbers(tab, "c") == []


@pytest.mark.parametrize("direction", ["down", "right"])
def test_two_fingers_on_a_waterfall_keep_what_is_under_them(tab, direction):
    """Frequencies and times: dragged apart in both directions a quarter of each is shown."""
    top_ms = round(time.time() * 1000) - 600_000
    tab.open_past(f"v=1&topic={MIC}&axis=linear&span=40&t={top_ms}&split=10&rows={direction}")
    fingers = Fingers(tab)
    waterfall = tab.page.locator(".waterfall").bounding_box()
    width, height = waterfall["width"], waterfall["height"]
    first = waterfall["y"] - fingers.box["y"]

    def at(tone, age):
        x, y = (1 - age, 1 - tone) if direction == "right" else (tone, age)
        return x * width, first + y * height

    # Two tenths of the height are more than the 40 px from which on a pinch zooms.
    assert 0.2 * height > 40
    fingers.send("Start", at(0.4, 0.2))
    fingers.send("Start", at(0.4, 0.2), at(0.6, 0.5))
    for step in range(1, 11):
        fingers.send("Move", at(0.4 - 0.02 * step, 0.2), at(0.6, 0.5 + 0.03 * step))
    fingers.send("End", at(0.2, 0.2))
    fingers.send("End")
    tab.page.wait_for_function(f"() => Math.abs(({NUMBERS})('span')[0] - 20) < 0.5")
    low, high = wait_for_numbers(tab, "f", 2)
    assert high - low == pytest.approx(12000, rel=0.02)
    # 9600 Hz stay under the first finger; the times that were under both do as well.
    assert low + 0.2 * (high - low) == pytest.approx(9600, abs=200)
    (found_ms,) = numbers(tab, "t")
    assert found_ms - 0.2 * 20_000 == pytest.approx(top_ms - 0.2 * 40_000, abs=500)


def test_a_tap_sets_a_cursor_a_long_press_another_and_a_double_tap_shows_all(tab):
    """Two quick taps at different places are two taps; a double tap leaves the cursors alone."""
    tab.open(f"v=1&topic={MIC}&axis=linear&f=0:12000")
    fingers = Fingers(tab)
    width = fingers.box["width"]
    fingers.tap(width * 1000 / 12000, 60)
    assert wait_for_numbers(tab, "c", 1) == pytest.approx([1000], abs=11)
    fingers.send("Start", (width * 3000 / 12000, 60), after_s=1.0)
    assert wait_for_numbers(tab, "c", 2) == pytest.approx([1000, 3000], abs=11)
    fingers.send("End")
    fingers.tap(width * 900 / 12000, 60)
    fingers.tap(width * 4000 / 12000, 60, after_s=0.1)
    tab.page.wait_for_function(f"() => Math.abs(({NUMBERS})('c')[1] - 4000) < 11")
    before = numbers(tab, "c")
    assert before == pytest.approx([900, 4000], abs=11)
    assert numbers(tab, "f") == [0, 12000]
    fingers.tap(width * 8000 / 12000, 60)
    fingers.tap(width * 8000 / 12000 + 3, 62, after_s=0.1)
    wait_for_numbers(tab, "f", 0)
    assert numbers(tab, "c") == before


@pytest.mark.parametrize("direction", ["down", "up", "right"])
def test_a_finger_drags_the_waterfall_into_the_past_and_back(tab, daemon, direction):
    """Against the rows shows what is older, by the time of the way; with them, what is live."""
    tab.open(f"v=1&topic={MIC}&axis=linear&span=20&rows={direction}")
    wait_for_rows(tab, 10)
    fingers = Fingers(tab)
    strip = tab.page.locator(".waterfall").bounding_box()
    top, height, width = strip["y"] - fingers.box["y"], strip["height"], strip["width"]
    # Places are those of ages, from the newest row on.
    length = width if direction == "right" else height
    oldest, way = length * 0.8, length / 2

    def at(age):
        if direction == "right":
            return width - age, top + 30
        return 300, top + (age if direction == "down" else height - age)

    began_ms = daemon.middle_ms(daemon.n_rows)
    fingers.send("Start", at(oldest))
    for step in range(1, 11):
        fingers.send("Move", at(oldest - way * step / 10))
    fingers.send("End")
    (t_ms,) = wait_for_numbers(tab, "t", 1)
    tab.page.wait_for_function(
        f"t => ({NUMBERS})('t')[0] <= t", arg=daemon.middle_ms(daemon.n_rows) - 9_500
    )
    (t_ms,) = numbers(tab, "t")
    assert began_ms - 12_500 <= t_ms <= daemon.middle_ms(daemon.n_rows) - 9_500
    tab.page.locator(".banner", has_text="the past").wait_for()
    assert numbers(tab, "f") == numbers(tab, "c") == []
    newest, end = oldest - way, length - 2
    shown = [t_ms]
    while shown:  # on a busy machine live rows get farther away than one drag reaches
        fingers.send("Start", at(newest), after_s=1.0)
        for step in range(1, 11):
            fingers.send("Move", at(newest + (end - newest) * step / 10))
        fingers.send("End")
        tab.page.wait_for_function(
            f"t => !(({NUMBERS})('t')[0] <= t)",  # undefined is not either
            arg=shown[0],
        )
        shown = numbers(tab, "t")
    tab.page.locator(".banner", has_text="the past").wait_for(state="hidden")


def test_with_time_to_the_right_gestures_are_where_the_plots_say(tab, daemon):
    """Drags in a waterfall pan frequency upright, and select a box; the spectrum is as ever."""
    t_ms = round(daemon.middle_ms(daemon.n_rows)) - 600_000
    fragment = f"v=1&topic={MIC}&axis=linear&span=20&rows=right&f=3000:9000&t={t_ms}"
    tab.open_past(fragment)
    mouse, strip = tab.page.mouse, tab.page.locator(".waterfall").bounding_box()
    surface = tab.page.locator(".surface").bounding_box()

    def at(share_x, share_y):
        return strip["x"] + share_x * strip["width"], strip["y"] + share_y * strip["height"]

    # Upwards by a quarter of the height: what is under the pointer goes with it.
    mouse.move(*at(0.5, 0.75))
    mouse.down()
    mouse.move(*at(0.5, 0.5), steps=20)
    mouse.up()
    per_px = 6000 / strip["height"]
    tab.page.wait_for_function(
        f"most => Math.abs(({NUMBERS})('f')[0] - 1500) < most", arg=2 * per_px
    )
    low, high = numbers(tab, "f")
    assert high - low == pytest.approx(6000, abs=1)
    assert numbers(tab, "t") == pytest.approx([t_ms], abs=1)
    # In the line spectrum a drag upwards is none, and one to the right shows lower frequencies.
    mouse.move(surface["x"] + 300, surface["y"] + 60)
    mouse.down()
    mouse.move(surface["x"] + 330, surface["y"] + 30, steps=10)
    mouse.up()
    due = low - 30 * 6000 / surface["width"]
    tab.page.wait_for_function(f"due => Math.abs(({NUMBERS})('f')[0] - due) < 10", arg=due)
    moved = numbers(tab, "f")
    assert numbers(tab, "t") == pytest.approx([t_ms], abs=1)
    # A box between a quarter and three quarters of the time, in the upper half.
    tab.page.keyboard.down("Shift")
    mouse.move(*at(0.25, 0.5))
    mouse.down()
    mouse.move(*at(0.75, 0.1), steps=10)
    mouse.up()
    tab.page.keyboard.up("Shift")
    wait_for_numbers(tab, "sel", 4)
    tab.page.wait_for_function(
        f"due => Math.abs(({NUMBERS})('sel')[1] - due) < 100", arg=t_ms - 5_000
    )
    t0, _, f0, f1 = numbers(tab, "sel")
    assert t0 == pytest.approx(t_ms - 15_000, abs=100)
    expected = [moved[0] + share * 6000 for share in (0.5, 0.9)]
    assert [f0, f1] == pytest.approx(expected, abs=2 * per_px)
    box = tab.page.locator(".selection").bounding_box()
    assert box["x"] == pytest.approx(at(0.25, 0)[0], abs=3)
    assert box["y"] == pytest.approx(at(0, 0.1)[1], abs=3)
    assert [box["width"], box["height"]] == pytest.approx(
        [strip["width"] / 2, 0.4 * strip["height"]], abs=4
    )


def test_a_window_of_another_size_has_canvases_of_its_size(tab, daemon):
    """With time to the right; its axis is below the waterfall, that of frequencies at its left."""
    tab.open(f"v=1&topic={MIC}&axis=linear&span=20&rows=right")
    wait_for_rows(tab, 10)
    fits = """() => [...document.querySelectorAll(".waterfall")].every((box) => {
      const { width, height } = box.querySelector("canvas");
      return width === box.clientWidth && height === box.clientHeight;
    })"""
    for width, height in ((700, 900), (360, 640), (1280, 800)):
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.page.wait_for_function(
            f"width => document.documentElement.clientWidth === width && ({fits})()", arg=width
        )
        strip, times, tones = (
            tab.page.locator(name).bounding_box() for name in (".waterfall", ".times", ".tones")
        )
        assert [times["x"], times["width"]] == pytest.approx([strip["x"], strip["width"]], abs=0.5)
        assert times["y"] >= strip["y"] + strip["height"]
        assert tones["x"] + tones["width"] == pytest.approx(strip["x"], abs=0.5)
        assert tones["y"] == pytest.approx(strip["y"], abs=0.5)


def boxes_of_cursors(page):
    """Return the boxes of plots, cursors and band, all of one layout."""
    cursors = [
        f"{plot}[data-cursor={name}]"
        for plot in (".waterfall .cursor", ".trace .cursor", ".time-cursor")
        for name in "AB"
    ]
    return page.evaluate(
        """names => Object.fromEntries(names.map((name) =>
          [name, document.querySelector(name).getBoundingClientRect().toJSON()]))""",
        [".waterfall", ".trace", ".waterfall .band", *cursors],
    )


def misplaced(boxes):
    """Return what lies elsewhere: cursors A and B at 1/4 and 3/4, a band from 3/8 to 1/2."""
    strip, trace, band = boxes[".waterfall"], boxes[".trace"], boxes[".waterfall .band"]
    places = [
        (band["y"], strip["y"] + strip["height"] / 2, 2),
        (band["height"], strip["height"] / 8, 2),
    ]
    for name, share in (("A", 0.25), ("B", 0.75)):
        level = boxes[f".waterfall .cursor[data-cursor={name}]"]
        upright = boxes[f".trace .cursor[data-cursor={name}]"]
        moment = boxes[f".time-cursor[data-cursor={name}]"]
        places += [
            (level["y"] + 1, strip["y"] + (1 - share) * strip["height"], 2),
            (level["width"], strip["width"], 1),
            (upright["x"] + 1, trace["x"] + share * trace["width"], 2),
            (upright["height"], trace["height"], 1),
            (moment["x"] + 1, strip["x"] + (1 - share) * strip["width"], 2),
            (moment["height"], strip["height"], 1),
        ]
    return [one for one in places if abs(one[0] - one[1]) > one[2]]


def test_cursors_lie_where_each_plot_has_them(tab, daemon):
    """With time to the right, upright in the line spectrum and level in each waterfall."""
    t_ms = round(daemon.middle_ms(daemon.n_rows)) - 600_000
    tab.open(
        f"v=1&topic={MIC}&axis=linear&span=20&rows=right&f=0:8000&t={t_ms}&c=2000,6000"
        f"&ct={t_ms - 5000},{t_ms - 15000}&band=3000:4000",
        waits=False,
    )
    tab.page.locator(".waterfall .cursor").first.wait_for()
    # On a busy machine what is said above the plots comes late, and moves them.
    wait_until(tab.page, lambda: not misplaced(boxes_of_cursors(tab.page)))
    # Options turn it, and back: then the lines go through all of it again.
    tab.page.get_by_label("Newest row").select_option("down")
    tab.page.wait_for_function("() => !location.hash.includes('rows=')")
    tab.page.wait_for_function(
        """() => document.querySelector(".surface > .overlay > .cursor").offsetHeight
          > document.querySelector(".trace").offsetHeight + 100"""
    )
    assert tab.page.locator(".waterfall .cursor").count() == 0
    tab.page.get_by_label("Newest row").select_option("right")
    tab.page.wait_for_function("() => location.hash.includes('rows=right')")
    tab.page.locator(".waterfall .cursor").first.wait_for()


@pytest.mark.parametrize("turn", [(0, -200), (-200, 0)], ids=["as it is", "as Shift turns it"])
def test_shift_and_the_wheel_change_the_time_span(tab, turn):
    """Also where browser or system make Shift and the wheel a sideways turn."""
    tab.open(f"v=1&topic={MIC}&axis=linear&span=40&f=0:12000")
    box = tab.page.locator(".surface").bounding_box()
    tab.page.mouse.move(box["x"] + 100, box["y"] + 40)
    tab.page.keyboard.down("Shift")
    tab.page.mouse.wheel(*turn)
    tab.page.keyboard.up("Shift")
    tab.page.wait_for_function(f"() => ({NUMBERS})('span')[0] !== 40")
    assert numbers(tab, "span") == pytest.approx([40 * 1.0025**-200], rel=1e-3)
    assert numbers(tab, "f") == [0, 12000]


def test_holds_keep_the_levels_of_a_sweep_until_the_reset(tab, daemon):
    """Where the sweep passed, max hold reads its level, min hold that of the dip behind it."""
    low, high = -125.0, -20.0
    tab.open(
        f"v=1&topic={MIC}&axis=linear&f=500:1500&db={low}:{high}&split=90&hold=max,min&peaks=0"
    )
    columns = {hertz: tab.pixel_of(hertz, "linear", 500, 1500) for hertz in (800, 1200)}

    def is_drawn(hertz, line, level):
        """Whether a line is at a level; it is two pixels wide, a pixel a quarter of a decibel."""
        given = [columns[hertz], line, low, high]
        return abs((tab.page.evaluate(LEVEL, given) or math.inf) - level) < 0.6

    for place in range(40, 161):
        row = tone(-20.0)
        row[place - 3] = -100.0 - place / 10
        row[place] = -40.0 + place / 10
        daemon.give(row)
    swept = [
        (hertz, *held)
        for hertz in columns
        for held in (("max", -40.0 + hertz / 100), ("min", -100.3 - hertz / 100))
    ]
    wait_until(tab.page, lambda: all(is_drawn(*one) for one in swept))
    n_rows = daemon.n_rows
    wait_until(tab.page, lambda: daemon.n_rows > n_rows + 10)
    assert all(is_drawn(*one) for one in swept)
    tab.focus_plot()
    tab.page.keyboard.press("r")
    wait_until(tab.page, lambda: not any(is_drawn(*one) for one in swept))
    # From now on they hold what comes after the reset.
    louder, softer = tone(-20.0), tone(-20.0)
    louder[75:126], softer[75:126] = -55.0, -98.0

    def hold_again():
        daemon.give(louder)
        daemon.give(softer)
        held = (("max", -55.0), ("min", -98.0))
        return all(is_drawn(hertz, *one) for hertz in columns for one in held)

    wait_until(tab.page, hold_again)
