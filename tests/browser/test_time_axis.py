"""The time axis in Chromium: cursors in time, the bar of times, keys; all rows are known."""

import base64
import io
import re
import time
import urllib.parse

import numpy as np
import pytest
from made_up_daemon import MadeUpDaemon, tone
from PIL import Image
from programs import running_web
from tabs import MIC, READ_LINE, Tab, wait_for_rows, wait_until

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

WATCH_WHEEL = """() => addEventListener("wheel", ({ clientX, clientY }) => {
  const { left, top, width, height } =
    document.querySelector(".waterfall").getBoundingClientRect();
  globalThis.shares = [(clientX - left) / width, (clientY - top) / height];
}, { capture: true })"""
"""Notes at which shares of the waterfall the wheel is turned, wherever the page has it."""

# The waterfall's canvas, and where it begins on the screen [device px]. A copy is read.
READ_CANVAS = """() => {
  const canvas = document.querySelector(".waterfall canvas");
  const { left, top } = canvas.getBoundingClientRect();
  const { width, height } = canvas;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const text = Array.from({ length: height }, (_, y) =>
    String.fromCharCode(...data.subarray(4 * y * width, 4 * (y + 1) * width))).join("");
  const place = [left, top].map((at) => Math.round(at * devicePixelRatio));
  return { bytes: btoa(text), width, height, place };
}"""

DIRECTIONS = ["down", "up", "right"]


def level_of(seq):
    """Return the level of the tone in a row [dB]: no two neighbours are alike."""
    return -20.0 - (seq * 7 % 41)


def made_up(seq):
    """Return the levels of a row: its tone moves with its number."""
    return tone(level_of(seq), hertz_of(seq))


def hertz_of(seq):
    return 2000 + 100 * (seq % 60)


@pytest.fixture
def daemon(tmp_path):
    daemon = MadeUpDaemon(tmp_path, begin_ns=time.time_ns())
    with daemon.running():
        yield daemon


@pytest.fixture
def tab(open_context, daemon):
    context = open_context(viewport={"width": 1366, "height": 720}, timezone_id="Europe/Berlin")
    with running_web(daemon.endpoint) as (link, _):
        tab = Tab(context, link.partition("#")[0])
        yield tab
        assert tab.problems == []


def shown(tab):
    """Return the fields of the view in the address."""
    text = urllib.parse.urlparse(tab.page.url).fragment
    return dict(urllib.parse.parse_qsl(text, keep_blank_values=True))


def texts_of(tab, column):
    """Return a column of the table of cursors."""
    found = tab.page.locator(f"#cursors td:nth-child({column})").all_inner_texts()
    return [one.strip() for one in found]


def place_of(tab, t_ms, hertz):
    """Return where a time and a frequency are on the screen; the axis is linear."""
    strip = tab.page.locator(".waterfall").bounding_box()
    view = shown(tab)
    age = (float(view["t"]) - t_ms) / 1000 / float(view.get("span", 30))
    low, high = map(float, view["f"].split(":"))
    tone = (hertz - low) / (high - low)
    x, y = {"up": (tone, 1 - age), "right": (1 - age, 1 - tone)}.get(view.get("rows"), (tone, age))
    return strip["x"] + strip["width"] * x, strip["y"] + strip["height"] * y


def seen(tab):
    """Return the pixels of the page as they are seen, (height, width, 3) int."""
    with Image.open(io.BytesIO(tab.page.screenshot())) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def canvas_of(tab):
    """Return the waterfall's pixels (height, width, 3) int, and where they are on the screen."""
    read = tab.page.evaluate(READ_CANVAS)
    canvas = np.frombuffer(base64.b64decode(read["bytes"]), np.uint8)
    canvas = canvas.reshape(read["height"], read["width"], 4)[..., :3].astype(int)
    x, y = read["place"]
    return canvas, np.s_[y : y + read["height"], x : x + read["width"]]


def wait_for_live_rows(tab, daemon):
    """Wait until the waterfall has as many rows that came live as 5 s have, and some more.

    Older ones were sent before the server or the page was there: they are nowhere, or columns
    of the server's memory that may have two rows each.
    """
    tab.page.wait_for_function(
        "t => Date.parse(document.querySelector('#timebar input').value) >= t",
        arg=daemon.middle_ms(daemon.n_rows + 60),
    )


def brightest(tab, x, y, direction):
    """Return where the brightest pixel of the line of a place is on the screen."""
    picture = seen(tab)[..., 1]
    strip = tab.page.locator(".waterfall").bounding_box()
    if direction == "right":
        begin = round(strip["y"])
        return x, begin + int(picture[begin : begin + int(strip["height"]), round(x)].argmax())
    begin = round(strip["x"])
    return begin + int(picture[round(y), begin : begin + int(strip["width"])].argmax()), y


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_cursors_read_the_rows_that_they_stand_on(tab, daemon, direction):
    """Each of two clicks reads level and time of the row there; B - A is their difference."""
    daemon.live = lambda: made_up(daemon.n_rows)
    tab.open(f"v=1&topic={MIC}&axis=linear&f=1000:9000&span=5&peaks=0&split=15&rows={direction}")
    wait_for_live_rows(tab, daemon)
    tab.focus_plot()
    tab.page.keyboard.press(" ")
    tab.page.wait_for_function("() => location.hash.includes('&t=')")
    last = round((float(shown(tab)["t"]) - daemon.middle_ms(0)) / 100)
    first, second = last - 10, last - 31
    x, y = place_of(tab, daemon.middle_ms(second), hertz_of(second))
    wait_until(tab.page, lambda: brightest(tab, x, y, direction) == pytest.approx((x, y), abs=3))
    for seq, modifiers in ((first, []), (second, ["Shift"])):
        x, y = place_of(tab, daemon.middle_ms(seq), hertz_of(seq))
        for key in modifiers:
            tab.page.keyboard.down(key)
        tab.page.mouse.click(x, y)
        for key in modifiers:
            tab.page.keyboard.up(key)
    want = [f"{level_of(seq):.1f} dBFS" for seq in (first, second)]
    difference = level_of(second) - level_of(first)
    want.append(f"{difference:.1f} dB".replace("-0.0", "0.0"))
    wait_until(tab.page, lambda: texts_of(tab, 3) == want)
    assert texts_of(tab, 5)[2] == "-2.100 s"
    wait_until(tab.page, lambda: "," in shown(tab).get("ct", ""))
    times = [float(one) for one in shown(tab)["ct"].split(",")]
    assert times == pytest.approx([daemon.middle_ms(first), daemon.middle_ms(second)], abs=1.0)
    # Arrow keys move the last cursor by a row, and the level is that row's in this bin.
    later = {"down": "ArrowUp", "up": "ArrowDown", "right": "ArrowRight"}
    tab.page.keyboard.press(later[direction])
    t_ms = daemon.middle_ms(second + 1)
    level = made_up(second + 1)[hertz_of(second) // 10]
    wait_until(tab.page, lambda: texts_of(tab, 3)[1] == f"{level:.1f} dBFS")
    wait_until(tab.page, lambda: abs(float(shown(tab)["ct"].split(",")[1]) - t_ms) <= 1.0)
    # The other arrows move it to higher frequencies: by a 400th of the axis, where bins are finer.
    hertz = float(shown(tab)["c"].split(",")[1])
    tab.page.keyboard.press("ArrowUp" if direction == "right" else "ArrowRight")
    wait_until(tab.page, lambda: float(shown(tab)["c"].split(",")[1]) == hertz + 8000 / 400)
    floor = made_up(second + 1)[hertz_of(second) // 10 + 2]
    wait_until(tab.page, lambda: texts_of(tab, 3)[1] == f"{floor:.1f} dBFS")
    # The same link shows the same.
    before = texts_of(tab, 3)
    tab.page.reload()
    wait_until(tab.page, lambda: texts_of(tab, 3) == before)
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_function("() => !location.hash.includes('&ct=')")
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_function("() => !location.hash.includes('&t=')")


def test_keys_work_without_a_focus_except_those_that_a_button_needs(tab, daemon):
    """With the focus on the body Space pauses; on a button it presses that alone."""
    daemon.live = lambda: tone(-20.0)
    tab.open(f"v=1&topic={MIC}")
    wait_for_rows(tab, 3)
    assert tab.page.evaluate("document.activeElement === document.body")
    tab.page.keyboard.press(" ")
    tab.page.locator(".banner", has_text="paused").wait_for()
    tab.page.keyboard.press("End")
    tab.page.locator(".banner").wait_for(state="hidden")
    tab.page.locator("#options").focus()
    tab.page.keyboard.press(" ")
    tab.page.locator("#side").wait_for(state="hidden")
    assert tab.page.locator(".banner").is_hidden()
    tab.page.keyboard.press("?")
    help_box = tab.page.locator("#help")
    help_box.wait_for()
    assert help_box.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
    assert help_box.bounding_box()["height"] <= 720
    tab.page.keyboard.press("c")  # the list is open: no key acts behind it
    tab.page.keyboard.press("Escape")
    help_box.wait_for(state="hidden")
    assert "&c=" not in tab.page.url


def test_the_bar_of_times_goes_back_and_to_a_local_time(tab, daemon):
    """Buttons go back by their times; a time that is typed is local, also one that comes twice."""
    daemon.live = lambda: tone(-20.0)
    tab.open(f"v=1&topic={MIC}&span=60")
    wait_for_rows(tab, 3)
    bar = tab.page.locator("#timebar")
    bar.locator("[data-back='600000']").click()
    tab.page.locator(".banner", has_text="the past").wait_for()
    first_ms = float(shown(tab)["t"])
    bar.locator("[data-back='3600000']").click()
    wait_until(tab.page, lambda: float(shown(tab)["t"]) == first_ms - 3_600_000)
    bar.locator("[data-back='86400000']").click()
    wait_until(tab.page, lambda: float(shown(tab)["t"]) == first_ms - 90_000_000)
    field = bar.locator("input")
    for text, utc_ms, said in (
        ("2026-07-01T12:00:05", 1782900005000, None),
        ("2025-10-26T02:30:00", 1761438600000, "comes twice"),
        ("2025-03-30T02:30:00", 1743298200000, "no such time"),
    ):
        field.fill(text)
        wait_until(tab.page, lambda t_ms=utc_ms: float(shown(tab)["t"]) == t_ms)
        if said:
            tab.page.locator("#notice", has_text=said).wait_for()
    bar.locator("select").select_option("UTC")
    field.fill("2026-07-01T12:00:05")
    wait_until(tab.page, lambda: float(shown(tab)["t"]) == 1782907205000)
    bar.get_by_role("button", name="Live").click()
    tab.page.wait_for_function("() => !location.hash.includes('&t=')")
    now = tab.page.evaluate("new Date().toISOString().slice(0, 10)")
    wait_until(tab.page, lambda: field.input_value().startswith(now))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_wheel_zooms_time_about_the_pointer(tab, daemon, direction):
    """With Shift over a waterfall of the past, the time under the pointer stays."""
    daemon.live = lambda: tone(-20.0)
    t_ms = round(time.time() * 1000) - 60_000
    tab.open_past(f"v=1&topic={MIC}&span=40&t={t_ms}&rows={direction}")
    tab.page.evaluate(WATCH_WHEEL)
    strip = tab.page.locator(".waterfall").bounding_box()
    tab.page.mouse.move(strip["x"] + 50, strip["y"] + strip["height"] * 0.6)
    tab.page.keyboard.down("Shift")
    tab.page.mouse.wheel(0, -200)
    tab.page.keyboard.up("Shift")
    wait_until(tab.page, lambda: re.search(r"&span=(?!40)", tab.page.url) is not None)
    across, along = tab.page.evaluate("shares")
    share = {"down": along, "up": 1 - along, "right": 1 - across}[direction]
    view = shown(tab)
    before, after = t_ms - 40_000 * share, float(view["t"]) - 1000 * float(view["span"]) * share
    line_ms = 1000 * float(view["span"]) / strip["width" if direction == "right" else "height"]
    assert after == pytest.approx(before, abs=line_ms, rel=0)
    assert float(view["span"]) == pytest.approx(40 * 1.0025**-200, rel=1e-3)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_wheel_zooms_frequencies_about_the_pointer(tab, daemon, direction):
    """Over a waterfall the frequency under the pointer stays, upright where they are."""
    daemon.live = lambda: tone(-20.0)
    tab.open(f"v=1&topic={MIC}&axis=linear&f=0:12000&rows={direction}")
    tab.page.evaluate(WATCH_WHEEL)
    strip = tab.page.locator(".waterfall").bounding_box()
    tab.page.mouse.move(strip["x"] + strip["width"] / 3, strip["y"] + strip["height"] / 4)
    tab.page.mouse.wheel(0, -200)
    wait_until(tab.page, lambda: "f=0:12000" not in tab.page.url)
    across, along = tab.page.evaluate("shares")
    share = 1 - along if direction == "right" else across
    low, high = map(float, shown(tab)["f"].split(":"))
    assert high - low == pytest.approx(12000 * 1.0025**-200, rel=1e-3)
    assert low + share * (high - low) == pytest.approx(12000 * share, abs=30)


@pytest.mark.parametrize("ratio", [1, 2])
@pytest.mark.parametrize("renderer", ["2d", "webgl"])
def test_pixels_of_the_screen_are_those_of_the_rows(open_context, daemon, ratio, renderer):
    """With time to the right: a line and a column of bins for each, as they were sent."""
    daemon.live = lambda: made_up(daemon.n_rows)
    size = {"width": 700, "height": 600}
    context = open_context(viewport=size, device_scale_factor=ratio)
    with running_web(daemon.endpoint) as (link, _):
        tab = Tab(context, link.replace("#", f"?renderer={renderer}#").partition("#")[0])
        tab.open(f"v=1&topic={MIC}&axis=linear&f=1000:9000&span=5&peaks=0&rows=right")
        wait_for_live_rows(tab, daemon)
        tab.focus_plot()
        tab.page.keyboard.press(" ")
        tab.page.wait_for_function("() => location.hash.includes('&t=')")
        tab.page.mouse.move(5, 5)

        # The banner lies over the upper part, and the edges have the outline of the focus.
        def is_still():
            canvas, place = canvas_of(tab)
            inner = np.s_[len(canvas) // 2 : -10 * ratio, 10 * ratio : -10 * ratio]
            return np.array_equal(canvas[inner], seen(tab)[place][inner])

        wait_until(tab.page, is_still)
        canvas, _ = canvas_of(tab)
        height, width = canvas.shape[:2]
        strip = tab.page.locator(".waterfall").bounding_box()
        assert (height, width) == pytest.approx(
            (strip["height"] * ratio, strip["width"] * ratio), abs=ratio
        )
        t_ms, line_ms = float(shown(tab)["t"]), 5000 / width
        last = round((t_ms - daemon.middle_ms(0)) / 100)
        for seq in range(last - 47, last - 2):
            age = int(t_ms // line_ms) - int(daemon.middle_ms(seq) // line_ms)
            light = canvas[:, width - 1 - age].sum(axis=1)
            bright = np.flatnonzero(light == light.max())
            tone_px = height * (1 - (hertz_of(seq) - 1000) / 8000)
            assert abs(bright.mean() + 0.5 - tone_px) <= 1.0 + height / 1600, seq
        assert tab.problems == []


def test_a_zoom_after_the_last_row_has_its_bins(tab, daemon):
    """Where no rows come any more the waterfall has a zoom's values, from the server's memory."""
    daemon.live = lambda: tone(-20.0)
    tab.open(f"v=1&topic={MIC}&axis=linear&span=5&peaks=0")
    wait_for_live_rows(tab, daemon)
    daemon.live = None
    tab.page.locator(".banner", has_text="no data").wait_for()
    tab.page.evaluate("() => { location.hash += '&f=900:1100'; }")
    # A bin is a twentieth of the width; a pixel of all frequencies is wider than two.
    tab.page.wait_for_function(
        f"""() => {{
          const data = ({READ_LINE})(60);
          const light = Array.from({{ length: data.length / 4 }}, (_, x) => data[4 * x + 1]);
          const best = Math.max(...light);
          const count = light.filter((one) => one === best).length;
          return count > light.length / 25 && count < light.length / 15;
        }}"""
    )
