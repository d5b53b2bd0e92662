"""Levels over time beside the waterfall in Chromium: numbers, time axis, gaps, link and memory."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from made_up_daemon import TOPIC, MadeUpDaemon, tone
from programs import running_web
from tabs import HAS_ROWS, Tab, wait_until

from spectrod.wire.headers import LevelsHeader
from spectrod.wire.schema import IntervalFrame, encode

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

SVG = "{http://www.w3.org/2000/svg}"
LEVELS = [-20.3, -50.2, -30.7, None, -41.5, -24.6]
"""LAeq of intervals of a second; the fourth did not come."""
FRAGMENT = f"v=1&topic={TOPIC}&span=20&line=meter/LAeq&line=meter/L90"
# Columns of a colour [canvas px] on the middle line of an interval, as shares of the width.
LINE_AT = """([t_ms, newest_ms]) => {
  const canvas = document.querySelector(".lines canvas");
  const y = Math.floor(((newest_ms - t_ms) / 20000) * canvas.height);
  const copy = new OffscreenCanvas(canvas.width, 1);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, -y);
  const { data } = context.getImageData(0, 0, canvas.width, 1);
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--series0").trim();
  const parts = [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
  const is = (x) => parts.every((part, k) => Math.abs(data[4 * x + k] - part) < 40);
  const found = Array.from({ length: canvas.width }, (_, x) => x).filter(is);
  return found.map((x) => (x + 0.5) / canvas.width);
}"""

# Lines of a colour [canvas px] in the column of a share of the time, as shares of the height.
LEVELS_AT = """share => {
  const canvas = document.querySelector(".lines canvas");
  const x = Math.floor((1 - share) * canvas.width);
  const copy = new OffscreenCanvas(1, canvas.height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, -x, 0);
  const { data } = context.getImageData(0, 0, 1, canvas.height);
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--series0").trim();
  const parts = [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
  const is = (y) => parts.every((part, k) => Math.abs(data[4 * y + k] - part) < 40);
  const found = Array.from({ length: canvas.height }, (_, y) => y).filter(is);
  return found.map((y) => (y + 0.5) / canvas.height);
}"""


def level_message(seq, t_ns, laeq):
    """Return the parts of a levels message with LAeq and L90, 3 dB below."""
    header = LevelsHeader(
        seq=seq,
        epoch=1,
        t_utc_ns=t_ns,
        t_mono_ns=0,
        sample_index=seq * 48000,
        fs=48000.0,
        interval_s=1.0,
        n_samples=48000,
        due_samples=48000,
        quantities=("LAeq", "L90"),
        units=("dBFS", "dBFS"),
        shape=(2,),
        ref="0 dBFS = full-scale sine",
    )
    values = np.array([laeq, laeq - 3.0])
    return encode(IntervalFrame("levels/mic/0/meter/", header, values))


@pytest.fixture
def daemon(tmp_path):
    daemon = MadeUpDaemon(tmp_path)
    with daemon.running():
        yield daemon


@pytest.fixture
def tab(open_context, daemon):
    with running_web(daemon.endpoint) as (link, _):
        tab = Tab(open_context(viewport={"width": 1366, "height": 768}), link.partition("#")[0])
        tab.open(FRAGMENT, waits=False)
        tab.page.locator(".panel").first.wait_for()
        yield tab
        assert tab.problems == []


def give(tab, daemon):
    """Send rows of ten seconds and the levels in them; return the first level's time [ms]."""
    topic = TOPIC.encode()
    wait_until(tab.page, lambda: any(map(topic.startswith, daemon.subscriptions.copy())))
    for _ in range(100):
        daemon.give(tone(-20.0))
    begin_ns = daemon.begins_ns(10)
    for n, level in enumerate(LEVELS):
        if level is not None:
            parts = level_message(n, begin_ns + n * 10**9, level)
            shown = tab.page.locator(".lines-head li", has_text=f"LAeq: {level:.1f} dBFS")

            def is_shown(parts=parts, shown=shown):
                # Until the server has subscribed nobody receives it; the same one twice is one.
                daemon.send(*parts)
                return shown.count() > 0

            wait_until(tab.page, is_shown)
    return begin_ns / 1e6


def test_lines_have_the_numbers_at_their_times(tab, daemon):
    """The legend has the level of a time, and the line stands at it; a gap has none."""
    begin_ms = give(tab, daemon)
    # Of the past the top is at a given time, which rows that are still to come do not move.
    newest_ms = round(daemon.middle_ms(99))
    tab.page.evaluate("tMs => { location.hash += `&t=${tMs}`; }", newest_ms)
    tab.page.locator(".banner", has_text=re.compile("the past|paused")).wait_for()
    first = tab.page.locator(".lines-head li").first
    for n, level in enumerate(LEVELS):
        t_ms = begin_ms + 1000 * n + 500
        text = "no value" if level is None else f"{level:.1f} dBFS"

        def is_said(t_ms=t_ms, text=text):
            # What comes late above the plots, such as the bar of times, may still move them.
            box = tab.page.locator(".lines").first.bounding_box()
            tab.page.mouse.move(
                box["x"] + 20, box["y"] + (newest_ms - t_ms) / 20000 * box["height"]
            )
            return f"LAeq: {text}" in first.inner_text()

        wait_until(tab.page, is_said)
        shares = tab.page.evaluate(LINE_AT, [t_ms, newest_ms])
        if level is None:
            assert shares == []
        else:
            # The scale is from -55 to -20 dBFS: round numbers about all that is shown.
            assert math.isclose(sum(shares) / len(shares), (level + 55) / 35, abs_tol=0.015)


def test_with_time_to_the_right_lines_are_below_the_waterfall(tab, daemon):
    """Each level is at its time, and at its height between the ends of the scale."""
    begin_ms = give(tab, daemon)
    newest_ms = round(daemon.middle_ms(99))
    tab.page.evaluate("tMs => { location.hash += `&rows=right&t=${tMs}`; }", newest_ms)
    tab.page.locator(".banner", has_text=re.compile("the past|paused")).wait_for()
    strip = tab.page.locator(".waterfall").first
    first, plot = tab.page.locator(".lines-head li").first, tab.page.locator(".lines").first
    for n, level in enumerate(LEVELS):
        share = (newest_ms - (begin_ms + 1000 * n + 500)) / 20000
        text = "no value" if level is None else f"{level:.1f} dBFS"

        def is_said(share=share, text=text):
            box = plot.bounding_box()
            assert box["y"] > strip.bounding_box()["y"]
            tab.page.mouse.move(box["x"] + (1 - share) * box["width"], box["y"] + 20)
            return f"LAeq: {text}" in first.inner_text()

        wait_until(tab.page, is_said)
        shares = tab.page.evaluate(LEVELS_AT, share)
        if level is None:
            assert shares == []
        else:
            middle = sum(shares) / len(shares)
            assert math.isclose(1 - middle, (level + 55) / 35, abs_tol=0.04)
    box, other = plot.bounding_box(), strip.bounding_box()
    assert [box["x"], box["width"]] == pytest.approx([other["x"], other["width"]], abs=1)


def saved_drawing(tab, path):
    """Return the root of the SVG that the page saves."""
    with tab.page.expect_download() as found:
        tab.page.locator("#save-drawing").click()
    found.value.save_as(path)
    return ET.parse(path).getroot()  # noqa: S314 - our own


def drawn_lines(root, name):
    """Return the lines of a column in a drawing as shares of their plot, from its left and top."""
    clips = [one for one in root.iter(f"{SVG}g") if one.get("clip-path")]
    (clip,) = [g for g in clips for path in g if path.get("class") == f"level {name}"]
    number = clip.get("clip-path").removeprefix("url(#").removesuffix(")")
    (box,) = [one[0] for one in root.iter(f"{SVG}clipPath") if one.get("id") == number]
    left, top, width, height = (float(box.get(key)) for key in ("x", "y", "width", "height"))
    (path,) = [one for one in clip if one.get("class") == f"level {name}"]
    lines = [part.split("L") for part in path.get("d").split("M")[1:]]
    points = [[[float(number) for number in point.split()] for point in line] for line in lines]
    return [[((x - left) / width, (y - top) / height) for x, y in line] for line in points], path


@pytest.mark.parametrize("direction", ["down", "up", "right"])
def test_a_figure_has_the_numbers_at_their_times(tab, daemon, tmp_path, direction):
    """Each corner of a line is a value at an end of its interval; gaps part lines."""
    begin_ms = give(tab, daemon)
    newest_ms = round(daemon.middle_ms(99))
    rows = "" if direction == "down" else f"&rows={direction}"
    tab.page.evaluate("part => { location.hash += part; }", f"{rows}&t={newest_ms}")
    tab.page.locator(".banner", has_text=re.compile("the past|paused")).wait_for()
    tab.page.locator("summary", has_text="Save").click()
    root = saved_drawing(tab, tmp_path / "a.svg")
    for name, less in (("meter/LAeq", 0.0), ("meter/L90", 3.0)):
        lines, path = drawn_lines(root, name)
        found = []
        for line in lines:
            shares = {
                "down": [(1 - y, x) for x, y in line],
                "up": [(y, x) for x, y in line],
                "right": [(x, 1 - y) for x, y in line],
            }[direction]
            found.append([(newest_ms - 20_000 * (1 - t), 35 * tone - 55) for t, tone in shares])
        expected = [[], []]
        for n, level in enumerate(LEVELS):
            if level is not None:
                ends = (begin_ms + 1000 * n, begin_ms + 1000 * (n + 1))
                expected[n > 3].extend((t_ms, level - less) for t_ms in ends)
        assert [len(line) for line in found] == [len(line) for line in expected]
        for line, wanted in zip(found, expected, strict=True):
            assert (np.abs(np.subtract(line, wanted)) <= (1, 1e-3)).all()
        assert path.get("stroke").startswith("#")
    assert path.get("stroke-dasharray") is not None
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert {"meter/LAeq", "meter/L90"} <= set(texts)
    assert texts.count("dBFS") == 1
    assert {"-40", "-20"} <= set(texts)


def test_a_figure_has_the_values_at_a_cursor(tab, daemon, tmp_path):
    """They are those that the page says, and the cursor's time is a line through the levels."""
    begin_ms = round(give(tab, daemon))
    newest_ms = round(daemon.middle_ms(99))
    part = f"&t={newest_ms}&c=1000&ct={begin_ms + 1500}"
    tab.page.evaluate("part => { location.hash += part; }", part)
    names = tab.page.locator(".lines-head li")
    names.filter(has_text=f"LAeq: {LEVELS[1]} dBFS").wait_for()
    tab.page.locator("summary", has_text="Save").click()
    root = saved_drawing(tab, tmp_path / "a.svg")
    texts = [one.text for one in root.iter(f"{SVG}text")]
    for entry in names.all_inner_texts():
        assert entry in texts
    note = tab.page.locator(".lines-head p").inner_text()
    assert f"Levels over time, {note}:" in texts
    ((line,), _) = drawn_lines(root, "cursor A")
    age_ms = newest_ms - begin_ms - 1500
    assert [y for _, y in line] == pytest.approx([age_ms / 20_000] * 2, abs=1e-3)


def test_a_figure_without_a_value_says_so(tab, daemon, tmp_path):
    """Its plot of levels is there, without a scale."""
    wait_until(tab.page, lambda: any(map(TOPIC.encode().startswith, daemon.subscriptions.copy())))
    for _ in range(20):
        daemon.give(tone(-20.0))
    tab.page.wait_for_function(HAS_ROWS)
    tab.page.locator("summary", has_text="Save").click()
    root = saved_drawing(tab, tmp_path / "a.svg")
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert "meter/LAeq: no value yet" in texts
    assert not [one for one in root.iter(f"{SVG}path") if "level" in one.get("class", "")]


def test_the_choice_is_in_the_link_and_is_remembered(tab, daemon):
    """A column that is switched off leaves address and plot; a page without a link has the rest."""
    give(tab, daemon)
    tab.page.locator("summary", has_text="Levels over time").click()
    tab.page.get_by_role("checkbox", name="meter/L90").uncheck()
    tab.page.wait_for_function("() => !location.hash.includes('meter/L90')")
    assert "line=meter/LAeq" in tab.fragment()
    tab.page.wait_for_function("() => document.querySelectorAll('.lines-head li').length === 1")
    tab.open("", waits=False)
    tab.page.wait_for_function("() => document.querySelectorAll('.lines-head li').length === 1")
    tab.page.locator("summary", has_text="Levels over time").click()
    tab.page.get_by_role("checkbox", name="meter/LAeq").click()
    tab.page.locator(".lines").wait_for(state="hidden")
