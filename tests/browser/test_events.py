"""Events in Chromium: marks on the plots, the list, and the card of what is selected."""

import time

import numpy as np
import pytest
from made_up_daemon import TOPIC, MadeUpDaemon, tone
from programs import running_web
from tabs import Tab

from spectrod.wire.headers import EventHeader, TriggerFacts
from spectrod.wire.schema import EventMessage, encode

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

LONG = "a text of many words that nobody may cut, " * 8 + "the end"
LENGTH_S = 2.0
# Where the box of a mark begins and ends in frequency, its height, and the waterfall's [CSS px].
BOX = """() => {
  const rect = (of) => document.querySelector(of).getBoundingClientRect();
  const [box, all] = [rect(".event-marks > [data-band][data-length]"), rect(".waterfall")];
  return [box.left - all.left, box.right - all.left, box.height, all.height];
}"""


def trigger_event(number, end_ns):
    """Return the parts of an event of a trigger that has been active for ``LENGTH_S``."""
    facts = TriggerFacts(
        name="hum",
        kind="band",
        state="ended",
        reason="released",
        product="dbfs",
        channel="0",
        f_min_hz=900.0,
        f_max_hz=1100.0,
        frequency_hz=None,
        level=-20.0,
        threshold=-40.0,
        unit="dBFS",
        begin_utc_ns=end_ns - round(LENGTH_S * 1e9),
        end_utc_ns=end_ns,
        peak_utc_ns=end_ns,
        duration_s=LENGTH_S,
    )
    return _encoded(number, "trigger.ended", LONG, end_ns, trigger=facts)


def plain_event(number, text):
    return _encoded(number, "source.waiting", text, time.time_ns())


def _encoded(number, kind, text, t_ns, **more):
    about = {"seq": number, "epoch": 1, "t_utc_ns": t_ns, "number": number, "source": "mic"}
    return encode(EventMessage("event/mic/", EventHeader(kind=kind, text=text, **about, **more)))


@pytest.fixture
def daemon(tmp_path):
    daemon = MadeUpDaemon(tmp_path)
    daemon.live = lambda: tone(-20.0)
    with daemon.running():
        yield daemon


@pytest.fixture
def tab(open_context, daemon):
    with running_web(daemon.endpoint) as (link, _):
        context = open_context(viewport={"width": 1366, "height": 768})
        tab = Tab(context, link.partition("#")[0])
        tab.open(f"v=1&topic={TOPIC}&axis=linear&span=60")
        yield tab
        assert tab.problems == []


def newest_ns(daemon):
    return daemon.begins_ns(daemon.n_rows - 1)


def test_a_triggers_mark_lies_at_its_time_and_band(tab, daemon):
    """The box covers 900 to 1100 Hz of 24 kHz and 2 s of 60, and its card has all of the text."""
    daemon.send(*trigger_event(1, newest_ns(daemon) - 3_000_000_000))
    tab.page.locator(".event-marks > [data-band][data-length]").wait_for()
    left, right, height, whole = tab.page.evaluate(BOX)
    places = [tab.pixel_of(hertz, "linear", 0, 24000) for hertz in (900, 1100)]
    assert np.allclose([left, right], places, atol=1.0)
    assert abs(height - LENGTH_S / 60 * whole) < 2.0
    tab.page.locator(".event-targets button").first.click()
    card = tab.page.locator("#mark-card")
    card.wait_for()
    assert LONG in card.inner_text()
    card.get_by_role("button", name="Select and measure").click()
    tab.page.locator("section[aria-label=Selection]").wait_for()
    tab.page.wait_for_function("() => location.hash.includes(':900:1100')")
    card.wait_for(state="hidden")


def test_with_time_to_the_right_marks_lie_there_and_are_clicked_below(tab, daemon):
    """The box is 200 Hz high and 2 s wide; what is clicked is in the time axis, at its middle."""
    tab.open(f"v=1&topic={TOPIC}&axis=linear&f=0:2000&span=60&rows=right")
    end_ns = newest_ns(daemon) - 3_000_000_000
    daemon.send(*trigger_event(1, end_ns))
    tab.page.locator(".event-marks > [data-band][data-length]").wait_for()
    tab.focus_plot()
    tab.page.keyboard.press(" ")
    tab.page.locator(".banner", has_text="paused").wait_for()
    strip = tab.page.locator(".waterfall").bounding_box()
    box = tab.page.locator(".event-marks > [data-band][data-length]").bounding_box()
    assert box["height"] == pytest.approx(strip["height"] / 10, abs=2)
    assert box["y"] == pytest.approx(strip["y"] + strip["height"] * 9 / 20, abs=2)
    assert box["width"] == pytest.approx(LENGTH_S / 60 * strip["width"], abs=2)
    target = tab.page.locator(".event-targets button").first
    place = target.bounding_box()
    assert place["x"] + 12 == pytest.approx(box["x"] + box["width"] / 2, abs=2)
    assert place["y"] >= strip["y"] + strip["height"] - 1
    target.click()
    tab.page.locator("#mark-card").wait_for()
    name = tab.page.locator(".event-marks span", has_text="trigger.ended").bounding_box()
    assert strip["x"] <= name["x"] <= strip["x"] + strip["width"] - name["width"]


def test_the_list_wraps_filters_and_goes_to_what_is_chosen(tab, daemon):
    """Words leave one event of two; its button, by keyboard, selects it, and Escape ends that."""
    daemon.send(*trigger_event(1, newest_ns(daemon) - 3_000_000_000))
    daemon.send(*plain_event(2, "no such device"))
    tab.page.locator("#events-box summary").click()
    tab.row_of("events", "no such device")
    cell = tab.page.locator("#events td", has_text="the end")
    assert cell.inner_text() == LONG
    assert cell.evaluate("one => one.scrollWidth <= one.clientWidth")
    tab.page.get_by_role("searchbox", name="Words in events").fill("DEVICE waiting")
    tab.page.wait_for_function("() => document.querySelectorAll('#events tbody tr').length === 1")
    tab.page.locator("#events tbody button").focus()
    tab.page.keyboard.press("Enter")
    card = tab.page.locator("#mark-card")
    card.wait_for()
    assert "no such device" in card.inner_text()
    card.get_by_role("button", name="Close").focus()
    tab.page.keyboard.press("Escape")
    card.wait_for(state="hidden")


def test_filters_and_order_of_the_list_stay(tab, daemon):
    """They are in the address, and the list is open again after a reload."""
    texts = ["first", "second", "another"]
    for number, text in enumerate(texts):
        daemon.send(*plain_event(number + 1, f"no such device, {text}"))
    tab.page.locator("#events-box summary").click()
    tab.row_of("events", "another")
    rows = tab.page.locator("#events tbody tr")
    tab.page.get_by_label("Order of events").select_option("oldest")
    tab.page.get_by_role("searchbox", name="Words in events").fill("device")
    tab.page.wait_for_url(lambda url: "&evwords=device&evorder=oldest" in url)
    tab.page.reload()
    tab.row_of("events", "another")
    assert [text.split()[-1] for text in rows.all_inner_texts()] == texts
    assert tab.page.get_by_role("searchbox", name="Words in events").input_value() == "device"


def test_a_page_that_is_opened_later_has_the_events_before(tab, daemon):
    """After a reload the list has an event that came before, once."""
    daemon.send(*plain_event(1, "no such device"))
    tab.page.locator("#events-box summary").click()
    tab.row_of("events", "no such device")
    tab.page.reload()
    tab.row_of("events", "no such device")
    assert tab.page.locator("#events tbody tr").count() == 1


def test_a_screen_reader_hears_of_an_event(tab, daemon):
    """The live region has the kind and the text of an event."""
    daemon.send(*plain_event(1, "no such device"))
    said = "() => document.querySelector('#live-region').textContent"
    tab.page.wait_for_function(f"() => ({said})().includes('source.waiting, mic: no such device')")
