"""Levels over time beside the waterfall in Chromium: numbers, time axis, gaps, link and memory."""

import math
import re

import numpy as np
import pytest
from made_up_daemon import TOPIC, MadeUpDaemon, tone
from programs import running_web
from tabs import Tab, wait_until

from spectrod.wire.headers import LevelsHeader
from spectrod.wire.schema import IntervalFrame, encode

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

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
