"""The page's control panel in Chromium: real buttons, a real server, a real daemon."""

import pytest
from programs import SOURCES, running_daemon, running_web

from spectrod.client.control import Control

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

TIMEOUT_MS = 60_000
PRODUCT = '[products.{name}]\naveraging = "max"\nrate_hz = 5.0\n'
CONFIG = SOURCES + PRODUCT.replace("{name}", "slow") + PRODUCT.replace("{name}", "average")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with running_daemon(tmp_path_factory.mktemp("control"), CONFIG) as endpoint:
        yield endpoint


@pytest.fixture
def control(daemon):
    with Control(daemon, timeout_s=30.0) as control:
        yield control


@pytest.fixture(scope="module")
def page(chromium, daemon):
    """Yield the page of a server with control, its panel open; no error may be on the console."""
    problems = []
    with running_web(daemon, "--control") as (link, _):
        page = chromium.new_context(viewport={"width": 1280, "height": 1200}).new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{link}&v=1&topic=spec/mic/0/dbfs/")
        page.locator("#control summary").click()
        page.locator("#events-box summary").click()
        field(page, "setting").locator("option", has_text="hop").wait_for(state="attached")
        yield page
        page.context.close()
    assert problems == []


def field(page, label):
    return page.locator("#control-form label", has_text=label).first.locator("input, select")


def press(page, name, answer):
    """Press a button and wait for the answer below."""
    page.locator(f"[data-control={name}]").click()
    page.locator("#control-answer", has_text=answer).wait_for()


def state_of(control):
    return control.call("status")["sources"][0]["state"]


def test_the_defaults_record_what_is_shown(page, control):
    """Without a choice the product is the one on the screen, not the first by name, as spectra."""
    assert page.locator(".panel h2").inner_text() == "mic · 0 · dbfs"
    assert field(page, "product").input_value() == "dbfs"
    press(page, "record", "recording mic-20")
    recording = control.call("status")["recordings"][-1]
    assert (recording["state"], recording["product"]) == ("recording", "dbfs")
    assert recording["name"].endswith(".spd")
    press(page, "stop", f"recorded {recording['name']}")


def test_a_pause_is_in_the_daemon_and_on_the_page_until_it_is_resumed(page, control):
    """The daemon's state changes, and the page says so where it tells of the source."""
    press(page, "pause", "analysis paused")
    assert state_of(control) == "paused"
    page.locator("#status dd", has_text="paused").first.wait_for()
    press(page, "resume", "analysis resumed")
    assert state_of(control) == "running"
    page.locator("#status dd", has_text="paused").wait_for(state="detached")


def test_a_setting_is_changed_and_a_refusal_has_its_reason(page, control):
    """The daemon has the product's new hold; a wrong one changes nothing, and the page says why."""
    field(page, "product").select_option("slow")
    field(page, "setting").locator("option", has_text="rate_hz").wait_for(state="attached")
    field(page, "setting").select_option(label="averaging")
    assert field(page, "value").input_value() == "max"
    field(page, "value").fill("min")
    press(page, "set", 'products.slow.averaging: "max" -> "min"')
    assert control.call("get", key="products.slow.averaging") == "min"
    field(page, "value").fill("nonsense")
    press(page, "set", "not done: sources.mic: products.slow: averaging='nonsense': must be one of")
    assert control.call("get", key="products.slow.averaging") == "min"
    press(page, "reset", "averages and holds reset")
    page.locator("#events td", has_text='products.slow.averaging: "max" -> "min"').first.wait_for()


def test_what_is_typed_while_settings_are_read_again_stays(page):
    """The settings that are read after a change replace no value that was typed meanwhile."""
    held = []

    def hold(route):
        held.append(route) if route.request.post_data_json["method"] == "get" else route.continue_()

    field(page, "product").select_option("slow")
    field(page, "setting").locator("option", has_text="rate_hz").wait_for(state="attached")
    field(page, "setting").select_option(label="rate_hz")
    page.route("**/api/control", hold)
    field(page, "value").fill("4")
    with page.expect_request(lambda request: '"get"' in (request.post_data or "")):
        press(page, "set", "products.slow.rate_hz: 5.0 -> 4.0")
    field(page, "value").fill("3.5")
    held.pop().continue_()
    page.locator("[data-control=set]:not([disabled])").wait_for()
    page.unroute("**/api/control")
    assert field(page, "value").input_value() == "3.5"
    press(page, "set", "products.slow.rate_hz: 4.0 -> 3.5")


def test_a_recording_begins_and_ends(page, control):
    """The daemon records what was chosen until the page stops it."""
    field(page, "product").select_option("dbfs")
    field(page, "record").select_option("spectra")
    press(page, "record", "recording mic-20")
    recording = control.call("status")["recordings"][-1]
    assert recording["state"] == "recording"
    assert recording["name"].endswith(".spd")
    press(page, "stop", f"recorded {recording['name']}")
    assert control.call("status")["recordings"][-1]["state"] == "finished"
    press(page, "trigger", "not done: recording='', source='mic': no such recording has triggers")


def test_a_mask_is_learned(page, control):
    """The daemon learns for as long as was typed; an event on the page reports the end."""
    field(page, "mask").fill("evening")
    field(page, "learning time").fill("1")
    press(page, "learn", "not done: duration_s=1: has 40 rows: percentile=99 needs at least 100")
    field(page, "learning time").fill("3")
    press(page, "learn", "learning mask evening")
    page.locator("#events td", has_text="evening: finished").first.wait_for()
    (mask,) = control.call("learn.list")
    assert (mask["name"], mask["state"]) == ("evening", "finished")


def test_what_a_product_has_become_is_said(chromium, tmp_path):
    """Another scaling has another name: the page says that the old one is silent, and the new name.

    When the main product becomes bands and spectra again, no message is said to be lost.
    """
    with (
        running_daemon(tmp_path) as daemon,
        running_web(daemon) as (link, _),
        Control(daemon, timeout_s=30.0) as control,
    ):
        page = chromium.new_context().new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{link}#v=1&topic=spec/mic/0/dbfs/")
        key = "sources.mic.analysis."
        banner = page.locator(".banner")
        page.locator("#peaks td", has_text="-20.0 dBFS").first.wait_for()
        control.call("set", changes={key + "scaling": "density"})
        banner.get_by_text("no data from mic · 0 · dbfs for").wait_for()
        banner.get_by_text("new since: mic · 0 · density").wait_for()
        page.locator("#peaks .empty", has_text="no data now").wait_for()
        control.call("set", changes={key + "scaling": "dbfs"})
        banner.wait_for(state="hidden")
        control.call("set", changes={key + "bands": "third-octave"})
        banner.get_by_text("new since: mic · 0 · dbfs (bands)").wait_for()
        control.call("set", changes={key + "bands": ""})
        banner.wait_for(state="hidden")
        page.locator("#peaks td", has_text="-20.0 dBFS").first.wait_for()
        assert "missed" not in page.locator("#status").inner_text()
        page.context.close()


def test_of_two_daemons_the_chosen_one_changes(chromium, daemon, control, tmp_path):
    """Requests go to the daemon whose source is chosen, though both call it mic."""
    with (
        running_daemon(tmp_path) as other,
        running_web(daemon, other, "--control") as (link, _),
        Control(other, timeout_s=30.0) as other_control,
    ):
        page = chromium.new_context().new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(link)
        page.locator("#control summary").click()
        source = field(page, "source")
        source.locator("option", has_text=other).wait_for(state="attached")
        source.select_option(f"mic@{other}")
        press(page, "pause", "analysis paused")
        assert (state_of(control), state_of(other_control)) == ("running", "paused")
        page.context.close()


def test_without_control_nothing_of_it_shows(chromium, daemon):
    """A page of a server without --control has no panel and asks for nothing."""
    with running_web(daemon) as (link, _):
        page = chromium.new_context().new_page()
        page.set_default_timeout(TIMEOUT_MS)
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(link)
        page.locator("#topics label", has_text="mic").first.wait_for()
        assert not page.locator("#control").is_visible()
        assert not [url for url in asked if "api/control" in url]
        page.context.close()
