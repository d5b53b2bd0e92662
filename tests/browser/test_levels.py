"""The bar of levels in Chromium: its ends by mouse, touch and keys, colours, linked panels."""

import re
import time

import pytest
from programs import running_daemon, running_web
from tabs import MIC, Tab, wait_for_rows

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

CONFIG = """
[sources.mic]
uri = "signal:sine,1000,-20"
[sources.pair]
uri = "signal:white,-30"
channels = 2
channel_names = ["left", "right"]
[sources.spl]
uri = "signal:white,-30"
calibration = "{folder}/microphone.toml"
[sources.loud]
uri = "signal:sine,1000,0"
[levels.meter]
quantities = ["LAeq", "LCpeak"]
interval_s = 0.25
sources = ["mic", "loud", "spl"]
[analysis]
win_length = 4800
nfft = 4800
hop = 1200
[publish]
endpoints = ["{{endpoint}}"]
[engine]
engine = "numpy"
"""
CALIBRATION = 'reference = "20 uPa"\nfull_scale_db = 110.0\nfull_scale = "sine"\n'
LEFT, RIGHT, SPL = "spec/pair/left/dbfs/", "spec/pair/right/dbfs/", "spec/spl/0/dbfs/"
# Colours along the bar, and those that the palette has at the levels of these places.
COLOURS = """async () => {
  const canvas = document.querySelector(".level-bar canvas");
  const { codeColors } = await import("./page/plot/palette.js");
  const { codeOf } = await import("./page/rows/levels.js");
  const [lo, hi] = ["lo", "hi"].map((end) => document.querySelector(`[data-end=${end}]`));
  const value = (grip) => Number(grip.getAttribute("aria-valuenow"));
  const place = (grip) => new DOMMatrix(getComputedStyle(grip).transform).m42;
  const perPx = (value(hi) - value(lo)) / (place(lo) - place(hi));
  const colours = codeColors("viridis", value(lo), value(hi));
  const { data } = canvas.getContext("2d").getImageData(8, 0, 1, canvas.height);
  const rows = [];
  for (let y = 0; y < canvas.height; y += 1) {
    const level = value(hi) - (y + 0.5 - place(hi)) * perPx;
    if (Math.min(Math.abs(y - place(hi)), Math.abs(y - place(lo))) < 3) continue;
    const near = [-2, 0, 2].map((px) => colours[codeOf(level + px * perPx)]);
    const drawn = (255 << 24 | data[4 * y + 2] << 16 | data[4 * y + 1] << 8 | data[4 * y]) >>> 0;
    const parts = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
    const between = parts(drawn).every((part, k) => {
      const found = near.map((one) => parts(one)[k]);
      return part >= Math.min(...found) && part <= Math.max(...found);
    });
    rows.push([level, between]);
  }
  return rows;
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")
    (folder / "microphone.toml").write_text(CALIBRATION)
    config = CONFIG.format(folder=folder)
    with running_daemon(folder, config) as endpoint, running_web(endpoint) as (link, _):
        yield link.partition("#")[0]


@pytest.fixture
def tab(open_context, address):
    tab = Tab(open_context(viewport={"width": 1280, "height": 800}, has_touch=True), address)
    yield tab
    assert tab.problems == []


def wait_for_layout(tab):
    """Wait for rows, and for the state's lines, which come with them and make the plots lower."""
    wait_for_rows(tab, 10)
    tab.page.locator("#status dt", has_text="engine").wait_for(state="attached")


def end(tab, name, panel=0):
    """Return the grip of an end of a panel's range."""
    return tab.page.locator(".panel").nth(panel).locator(f"[data-end={name}]")


def level(tab, name, panel=0):
    return float(end(tab, name, panel).get_attribute("aria-valuenow"))


def middle_of(grip):
    box = grip.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def released(tab):
    """Wait until nobody holds the bar, and it and the address say one range; return that."""
    tab.page.wait_for_function(
        """() => {
          const [lo, hi] = (new URLSearchParams(location.hash.slice(1)).get("db") ?? "").split(":");
          const value = (end) => document.querySelector(`[data-end=${end}]`).ariaValueNow;
          const isSaid = (text, end) => Number(text).toFixed(1) === value(end);
          const isHeld = document.querySelector("[data-held]") !== null;
          return !isHeld && isSaid(lo, "lo") && isSaid(hi, "hi");
        }"""
    )
    return level(tab, "lo"), level(tab, "hi")


def wait_for_address(tab, pattern):
    tab.page.wait_for_function(
        "text => new RegExp(text).test(decodeURIComponent(location.hash))", arg=pattern
    )
    return re.search(pattern, tab.page.evaluate("decodeURIComponent(location.hash)"))


def test_an_end_is_dragged_to_a_level_and_colours_and_axis_follow(tab):
    """The grip stays under the mouse, the other end where it is; the bar has the palette."""
    tab.open(f"v=1&topic={MIC}&db=-120:0&span=4")
    wait_for_layout(tab)
    grip = end(tab, "hi")
    x, y = middle_of(grip)
    height = tab.page.locator(".level-bar").bounding_box()["height"]
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x, y + height / 4, steps=4)
    tab.page.wait_for_function(
        "() => Number(document.querySelector('[data-end=hi]').ariaValueNow) < -20"
    )
    assert middle_of(grip)[1] == pytest.approx(y + height / 4, abs=2)
    tab.page.mouse.up()
    lo, hi = released(tab)
    assert lo == -120
    # A quarter of the bar, whose scale is 1.3 times the range.
    assert hi == pytest.approx(-120 * 1.3 / 4, abs=1.0)
    assert re.fullmatch(r"-\d+ dBFS", end(tab, "hi").get_attribute("aria-valuetext"))
    colours = tab.page.evaluate(COLOURS)
    assert len(colours) > 100
    assert [one for one in colours if not one[1]] == []
    said = f"-120 dBFS to {end(tab, 'hi').get_attribute('aria-valuetext')}"
    tab.page.locator(f".trace-lines[aria-label*='{said}']").wait_for(state="attached")


def test_between_the_ends_both_are_dragged_the_wheel_zooms_and_a_double_click_is_automatic(tab):
    """The wheel keeps the level under it; the range after a double click is that of the signal."""
    tab.open(f"v=1&topic={LEFT}&db=-100:-20")
    wait_for_layout(tab)
    tab.page.mouse.move(*middle_of(tab.page.locator(".level-middle")))
    tab.page.mouse.wheel(0, -200)
    tab.page.wait_for_function("() => !location.hash.includes('db=-100:-20')")
    lo, hi = released(tab)
    assert hi - lo < 60
    assert (lo + hi) / 2 == pytest.approx(-60, abs=1)
    x, y = middle_of(tab.page.locator(".level-middle"))
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x, y + 30, steps=3)
    tab.page.mouse.up()
    tab.page.wait_for_function(f"() => !location.hash.includes('db={lo:g}:{hi:g}')")
    found = released(tab)
    assert found[1] - found[0] == pytest.approx(hi - lo)
    assert found[0] < lo - 2
    tab.page.mouse.dblclick(*middle_of(tab.page.locator(".level-middle")))
    tab.page.wait_for_function("() => !location.hash.includes('db=')")
    auto = tab.page.locator(".level-buttons button", has_text="Auto")
    assert auto.get_attribute("aria-pressed") == "true"
    # White noise of -30 dBFS in 2401 bins of 1.5 times their distance: about -62 dBFS a bin.
    assert level(tab, "lo") < -65 < -60 < level(tab, "hi") < -30
    auto.click()
    wait_for_address(tab, r"db=(-[\d.]+):(-[\d.]+)$")


def test_the_level_axis_of_the_line_spectrum_is_dragged_and_zoomed(tab):
    """What is under the mouse stays there; a double click is automatic."""
    tab.open(f"v=1&topic={MIC}&db=-100:0")
    wait_for_layout(tab)
    box = tab.page.locator(".level-ruler").bounding_box()
    x, y = box["x"] + 20, box["y"] + box["height"] / 2
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x, y + box["height"] / 5, steps=3)
    tab.page.mouse.up()
    tab.page.wait_for_function("() => !location.hash.includes('db=-100:0')")
    lo, hi = released(tab)
    assert hi == pytest.approx(20, abs=1)
    assert hi - lo == 100
    box = tab.page.locator(".level-ruler").bounding_box()
    y = box["y"] + 0.7 * box["height"]
    tab.page.mouse.move(x, y)
    tab.page.mouse.wheel(0, -200)
    tab.page.wait_for_function(
        "hi => Number(document.querySelector('[data-end=hi]').ariaValueNow) < hi - 5", arg=hi
    )
    near = released(tab)
    # The mouse is 70 % down the axis.
    assert near[0] + 0.3 * (near[1] - near[0]) == pytest.approx(lo + 30, abs=1.5)
    tab.page.mouse.dblclick(x, y)
    tab.page.wait_for_function("() => !location.hash.includes('db=')")


def test_an_end_is_dragged_by_a_finger_and_the_page_stays(tab):
    """A finger on a grip moves the end; the page does not scroll."""
    tab.page.set_viewport_size({"width": 360, "height": 640})
    tab.open(f"v=1&topic={MIC}&db=-100:0")
    box = tab.page.locator(".level-bar").bounding_box()
    assert box["width"] > 3 * box["height"], "on a narrow screen the bar lies above the plots"
    wait_for_layout(tab)
    x, y = middle_of(end(tab, "lo"))
    devtools = tab.page.context.new_cdp_session(tab.page)
    now_s = time.time()
    for step, (kind, places) in enumerate(
        [("Start", [(x, y)]), *(("Move", [(x + far, y)]) for far in range(10, 70, 10)), ("End", [])]
    ):
        points = [{"x": px, "y": py, "id": 0} for px, py in places]
        event = {"type": f"touch{kind}", "touchPoints": points, "timestamp": now_s + 0.02 * step}
        devtools.send("Input.dispatchTouchEvent", event)
    tab.page.wait_for_function("() => !location.hash.includes('db=-100:0')")
    lo, hi = released(tab)
    assert hi == 0
    # 60 px of a bar whose scale is 1.3 times the range.
    assert lo == pytest.approx(-100 + 60 / box["width"] * 130, abs=1.5)
    assert tab.page.evaluate("scrollY") == 0


def test_keys_move_an_end_by_decibels_and_say_its_value(tab):
    """Arrows move one end, with Shift both, Delete is automatic; other keys are those of a plot."""
    tab.open(f"v=1&topic={MIC}&db=-100:0")
    grip = end(tab, "lo")
    assert grip.get_attribute("role") == "slider"
    assert grip.get_attribute("aria-label") == "Min level of mic · 0 · dbfs"
    grip.focus()
    tab.page.keyboard.press("ArrowUp")
    wait_for_address(tab, "db=-99:0$")
    tab.page.keyboard.press("PageDown")
    wait_for_address(tab, "db=-109:0$")
    tab.page.keyboard.press("Shift+ArrowDown")
    wait_for_address(tab, "db=-110:-1$")
    tab.page.wait_for_function(
        "() => document.querySelector('[data-end=lo]').ariaValueText === '-110 dBFS'"
    )
    tab.page.keyboard.press("Delete")
    tab.page.wait_for_function("() => !location.hash.includes('db=')")
    tab.page.wait_for_function(
        "() => document.querySelector('[data-end=lo]').ariaValueText.endsWith(', automatic')"
    )
    tab.page.keyboard.press("m")
    wait_for_address(tab, "hold=max")


def test_keys_and_turns_of_the_wheel_between_two_frames_all_count(tab):
    """Where frames are slow, each goes on from the one before, not from what was drawn last."""
    tab.open(f"v=1&topic={MIC}&db=-100:0")
    tab.page.evaluate(
        """() => {
          const grip = document.querySelector("[data-end=lo]");
          const key = () => new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true });
          for (let k = 0; k < 3; k += 1) grip.dispatchEvent(key());
        }"""
    )
    wait_for_address(tab, "db=-97:0$")
    spans = [97.0]
    for turns in (1, 3):
        tab.page.evaluate(
            """turns => {
              const bar = document.querySelector(".level-bar");
              const { left, right, top, bottom } = bar.getBoundingClientRect();
              const place = { clientX: (left + right) / 2, clientY: (top + bottom) / 2 };
              const turn = () => new WheelEvent("wheel", { deltaY: 100, bubbles: true, ...place });
              for (let k = 0; k < turns; k += 1) bar.dispatchEvent(turn());
            }""",
            turns,
        )
        spans.append(wait_for_other_span(tab, spans[-1]))
    assert spans[2] / spans[1] == pytest.approx((spans[1] / spans[0]) ** 3, rel=0.01)


def wait_for_other_span(tab, span):
    """Wait until the address has another range than one of a span, and return its span."""
    found = tab.page.wait_for_function(
        """span => {
          const [lo, hi] = (new URLSearchParams(location.hash.slice(1)).get("db") ?? "").split(":");
          return hi - lo !== span && hi - lo;
        }""",
        arg=span,
    )
    return found.json_value()


def test_panels_of_one_unit_share_a_range_until_they_are_parted(open_context, address):
    """Left and right have one range, dB SPL another; the switch is in the link, and remembered."""
    context = open_context(viewport={"width": 1366, "height": 1400})
    tab = Tab(context, address)
    tab.open(f"v=1&topic={LEFT}&topic={RIGHT}&topic={SPL}")
    # The unit and the reference of each come with its first rows.
    for panel, unit in enumerate(("dBFS", "dBFS", "dB SPL")):
        tab.page.locator(".panel").nth(panel).locator(".unit", has_text=unit).wait_for()
    # Until their rows have been looked at, panels have a range up to 0 dB.
    tab.page.wait_for_function(
        "() => Number(document.querySelector('[data-end=hi]').ariaValueNow) < 0"
    )
    end(tab, "hi").focus()
    tab.page.keyboard.press("ArrowUp")
    wait_for_address(tab, r"range=-[\d.]+:-[\d.]+:dBFS 0 dBFS = full-scale sine$")
    tab.page.wait_for_function(
        """() => {
          const ends = [...document.querySelectorAll("[data-end=hi]")];
          const texts = ends.map((one) => one.ariaValueText);
          return texts[0] === texts[1] && !texts[0].endsWith("automatic");
        }"""
    )
    assert end(tab, "hi", 2).get_attribute("aria-valuetext").endswith("dB SPL, automatic")
    shared = end(tab, "hi", 1).get_attribute("aria-valuetext")
    tab.page.locator(".level-buttons button", has_text="Linked").first.click()
    wait_for_address(tab, "levels=own")
    end(tab, "hi").focus()
    tab.page.keyboard.press("PageUp")
    tab.page.wait_for_function(
        "old => document.querySelector('[data-end=hi]').ariaValueText !== old", arg=shared
    )
    assert end(tab, "hi", 1).get_attribute("aria-valuetext") == shared
    other = Tab(context, address)
    other.open("", waits=False)
    parted = other.page.locator(".level-buttons button[aria-pressed=false]", has_text="Linked")
    parted.first.wait_for(state="attached")
    given = Tab(context, address)
    given.open(f"v=1&topic={LEFT}&topic={RIGHT}")
    # A link says what it shows.
    linked = given.page.locator(".level-buttons button[aria-pressed=true]", has_text="Linked")
    linked.first.wait_for(state="attached")
    assert tab.problems + other.problems + given.problems == []


def box_of(tab, name):
    return tab.page.locator("#meters section", has_text=f"{name} · 0 · meter")


def test_meters_have_scales_of_their_units_and_say_their_values(tab):
    """A tone of -20 dBFS is on a scale of dBFS, noise of 80 dB SPL on one of SPL, in its zone."""
    tab.open(f"v=1&topic={MIC}")
    mic = box_of(tab, "mic").get_by_role("meter", name="LAeq")
    mic.wait_for()
    tab.page.wait_for_function(
        "one => one.ariaValueText === '-20.0 dBFS'", arg=mic.element_handle()
    )
    assert [mic.get_attribute(f"aria-value{one}") for one in ("min", "max", "now")] == [
        "-80",
        "0",
        "-20.0",
    ]
    spl = box_of(tab, "spl").get_by_role("meter", name="LAeq")
    spl.wait_for()
    assert [spl.get_attribute(f"aria-value{one}") for one in ("min", "max")] == ["20", "100"]
    assert spl.get_attribute("aria-valuetext").endswith(" dB SPL")
    share = "one => 1 - parseFloat(one.style.clipPath.split(' ')[1]) / 100"
    assert mic.locator(".meter-fill").evaluate(share) == pytest.approx(0.75, abs=0.002)
    numbers = box_of(tab, "mic").locator(".meter-ticks:not([hidden]) span").all_inner_texts()
    assert numbers[0] == "-80"
    assert numbers[-1] == "0"
    trend = box_of(tab, "mic").get_by_role("img", name=re.compile("^LAeq, last 5 min: -20"))
    trend.wait_for()


def test_the_lamp_of_a_source_that_clips_stays_lit_until_it_is_clicked(tab):
    """It names the first time; after a click that of the next overload; others have no lamp."""
    tab.open(f"v=1&topic={MIC}")
    lamp = box_of(tab, "loud").locator(".clip-lamp")
    tab.page.wait_for_function(
        "one => /^clipped at .*, \\d+ intervals$/.test(one.textContent)", arg=lamp.element_handle()
    )
    first = lamp.inner_text().split(",")[0]
    # The next second has another name.
    tab.page.wait_for_function(
        "one => Number(one.textContent.match(/(\\d+) int/)[1]) >= 5", arg=lamp.element_handle()
    )
    assert lamp.inner_text().startswith(first)
    lamp.click()
    tab.page.wait_for_function(
        "([one, first]) => one.textContent.startsWith('clipped at ')"
        " && !one.textContent.startsWith(first)",
        arg=[lamp.element_handle(), first],
    )
    assert box_of(tab, "mic").locator(".clip-lamp").is_hidden()


def test_a_spectrum_is_stored_subtracted_and_there_after_a_reload(tab, tmp_path):
    """A steady tone less itself is 0 dB; limits of a file are drawn, bad ones named."""
    tab.open(f"v=1&topic={MIC}&axis=linear&f=500:2000")
    wait_for_layout(tab)
    tab.page.locator("#traces-box summary").click()
    tab.page.locator("#store-spectrum").click()
    tab.page.locator(".legend span", has_text="mic · 0 · dbfs 20").wait_for()
    name = tab.page.get_by_label("Name of mic")
    name.fill("quiet")
    name.press("Enter")
    tab.page.locator(".legend span", has_text="quiet").wait_for()
    tab.page.get_by_role("button", name="Difference to quiet").click()
    tab.page.locator(".legend span", has_text="difference to quiet").wait_for()
    assert tab.page.locator(".unit").inner_text() == "Δ dB"
    box = tab.page.locator(".surface").bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 40)
    tab.page.locator(".readout", has_text=re.compile(r" 0\.0 dB  20")).wait_for()
    tab.page.reload()
    tab.page.locator(".legend span", has_text="quiet").wait_for()
    assert tab.page.locator(".unit").inner_text() == "dBFS"
    tab.page.locator("#traces-box summary").click()
    path = tmp_path / "NR 50.csv"
    path.write_text("100;-20\nx;y\n")
    tab.page.locator("#limits-file").set_input_files(path)
    text = "NR 50.csv, line 2: x;y: must be a frequency above 0 Hz and a level of -1000 to 1000 dB"
    tab.page.locator("#notice", has_text=text).wait_for()
    path.write_text("hz,db\n100,-20\n10000,-60\n")
    tab.page.locator("#limits-file").set_input_files(path)
    tab.page.locator(".legend span", has_text="NR 50").wait_for()
    tab.page.get_by_role("button", name="Remove quiet").click()
    tab.page.locator(".legend span", has_text="quiet").wait_for(state="detached")
    assert tab.page.locator(".stored li").count() == 1
