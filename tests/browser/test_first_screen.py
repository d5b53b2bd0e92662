"""What a browser shows that has never seen the page: plots and five controls, on any screen."""

import json

import pytest
from made_up_daemon import MadeUpDaemon, tone
from programs import running_daemon, running_web
from tabs import MIC, Tab, wait_for_rows

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

NAMES = ["west", "south", "east", "north", *(str(number) for number in range(12, 0, -1))]
ARRAY = f"""
[sources.mic10]
uri = "signal:sine,1000,-20"
[sources.mic2]
uri = "signal:pink,-30"
channels = {len(NAMES)}
channel_names = {json.dumps(NAMES)}
[analysis]
win_length = 4800
nfft = 4800
hop = 4800
[publish]
endpoints = ["{{endpoint}}"]
[engine]
engine = "numpy"
"""
"""Sources and channels whose order is neither that of text nor that of numbers."""

CONTROLS = """() => [...document.querySelectorAll("button, input, select, summary, a[href]")]
  .filter((one) => one.checkVisibility() && !one.closest(".panel, .skip"))
  .filter((one) => one.getBoundingClientRect().top >= 0).map((one) => one.id)"""
OVERFLOW = """() => {
  const { scrollWidth, scrollHeight } = document.scrollingElement;
  const main = document.querySelector("main");
  const hidden = main.scrollHeight - main.clientHeight;
  return [scrollWidth - innerWidth, scrollHeight - innerHeight, hidden];
}"""
SIZES = [(360, 640), (640, 360), (1366, 768), (1920, 1080), (3840, 2160)]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    daemon = MadeUpDaemon(tmp_path_factory.mktemp("calm"))
    daemon.live = lambda: tone(-20.0)
    with daemon.running():
        yield daemon


@pytest.fixture(scope="module")
def address(daemon):
    with running_web(daemon.endpoint) as (link, _):
        yield link.partition("#")[0]


@pytest.fixture(scope="module")
def array(tmp_path_factory):
    folder = tmp_path_factory.mktemp("array")
    with running_daemon(folder, ARRAY) as endpoint, running_web(endpoint) as (link, _):
        yield link.partition("#")[0]


def opened(open_context, address, size, fragment="v=1", **options):
    width, height = size
    viewport = {"width": width, "height": height}
    tab = Tab(open_context(is_calm=True, viewport=viewport, **options), address)
    tab.open(fragment)
    return tab


@pytest.mark.parametrize("size", SIZES)
def test_the_first_screen_is_the_plots_and_five_controls(open_context, address, size):
    """Nothing scrolls, and the plots have nearly all of the screen."""
    tab = opened(open_context, address, size)
    wait_for_rows(tab, 10)
    controls = ["connection", "pause", "time", "measure", "options"]
    assert tab.page.evaluate(CONTROLS) == controls
    assert tab.page.evaluate(OVERFLOW) == [0, 0, 0]
    width, height = size
    plots = tab.page.locator(".plot").bounding_box()
    assert plots["width"] >= width - 40
    assert plots["height"] >= height - (150 if width < 960 else 120)
    assert tab.problems == []


def test_what_buttons_open_stays_open_in_the_browser(open_context, address):
    """Beside the plots, on a wide screen; Time, Measure, Options and the line of state."""
    tab = opened(open_context, address, (1366, 768))
    for button, pane in [("connection", "status"), ("time", "timebar"), ("options", "side")]:
        tab.page.locator(f"#{button}").click()
        tab.page.locator(f"#{pane}").wait_for()
    tab.open()
    tab.page.locator("#side").wait_for()
    assert tab.page.locator("#status").is_visible()
    assert tab.page.locator("#timebar").is_visible()
    assert not tab.page.locator("#tables").is_visible()
    tab.page.locator("#options").click()
    tab.page.locator("#side").wait_for(state="hidden")
    assert tab.problems == []


def test_on_a_phone_a_tap_on_options_shows_them(open_context, address):
    """On the screen, over the plots, which stay; another button replaces them, Escape ends it."""
    tab = opened(open_context, address, (360, 640), has_touch=True)
    before = tab.page.locator(".plot").bounding_box()
    tab.page.locator("#options").tap()
    channels = tab.page.locator("#topics label").first
    box = channels.bounding_box()
    assert 0 <= box["y"] <= 640 - 53 - box["height"]
    tab.page.locator("#measure").tap()
    tab.page.locator("#side").wait_for(state="hidden")
    tab.page.locator("#peaks td", has_text="-20.0 dBFS").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.locator("#tables").wait_for(state="hidden")
    assert tab.page.evaluate("document.activeElement.id") == "measure"
    assert tab.page.locator(".plot").bounding_box() == before
    assert tab.page.evaluate(OVERFLOW) == [0, 0, 0]
    assert tab.problems == []


def test_a_report_moves_no_plot(open_context, address):
    """It lies over them: what cannot be saved is said, and the plots are where they were."""
    tab = opened(open_context, address, (1366, 768))
    before = tab.page.locator(".plot").bounding_box()
    tab.page.evaluate("location.hash = 'v=1&t=1000000'")
    tab.page.wait_for_function("() => pause.textContent === 'Live'")
    tab.page.evaluate("document.getElementById('save-csv').click()")
    tab.page.locator("#notice", has_text="there is no data at this time").wait_for()
    assert tab.page.locator(".plot").bounding_box() == before
    tab.page.locator("#pause").click()
    tab.page.locator("#connection", has_text="live").wait_for()
    tab.page.evaluate("topic => { location.hash = `v=1&topic=${topic}&topic=spec/a/b/c/`; }", MIC)
    tab.page.locator("#nothing", has_text="a · b · c: there is no such channel now").wait_for()
    assert tab.page.locator(".plot").bounding_box() == before
    assert tab.problems == []


def test_channels_are_listed_by_source_in_their_order_and_searched(open_context, array):
    """By name, channels as configured; words find them; of eight none is cut, none is added."""
    tab = opened(open_context, array, (1366, 768))
    tab.page.locator("#options").click()
    # Each channel is listed when the daemon has described it.
    tab.page.locator("#topics label").nth(len(NAMES)).wait_for()
    groups = tab.page.locator("#topics fieldset")
    assert groups.locator("legend").all_inner_texts() == ["mic2", "mic10"]
    names = groups.first.locator("label").evaluate_all("all => all.map((one) => one.title)")
    assert names == [f"mic2 · {name} · dbfs" for name in NAMES]
    tab.page.get_by_label("Find a channel").fill("MIC2 est")
    found = tab.page.locator("#topics label:visible")
    assert found.evaluate_all("all => all.map((one) => one.title)") == ["mic2 · west · dbfs"]
    tab.page.get_by_label("Find a channel").fill("")
    for name in NAMES[2:8]:
        tab.page.get_by_label(f"mic2 · {name} · dbfs").check()
    tab.page.wait_for_function("() => document.querySelectorAll('.panel').length === 8")
    tab.page.locator("#topics p", has_text="8 of 17 shown, the most at once").wait_for()
    assert tab.page.get_by_label("mic10 · 0 · dbfs").is_disabled()
    tab.page.locator("#options").click()
    assert tab.page.evaluate(OVERFLOW) == [0, 0, 0]
    heights = [one.bounding_box()["height"] for one in tab.page.locator(".waterfall").all()]
    assert min(heights) > 100
    assert tab.problems == []


def test_the_line_of_state_says_at_once_that_the_daemon_is_gone(open_context, tmp_path_factory):
    """Red, with what to do; when it is there again the line says that the page is live."""
    daemon = MadeUpDaemon(tmp_path_factory.mktemp("gone"))
    daemon.live = lambda: tone(-20.0)
    with running_web(daemon.endpoint) as (link, _):
        with daemon.running():
            tab = opened(open_context, link.partition("#")[0], (360, 640), f"v=1&topic={MIC}")
            tab.page.locator("#connection[data-grade=good]", has_text="live").wait_for()
            before = tab.page.locator(".plot").bounding_box()
        text = "no connection to the daemon: start it, and the page goes on"
        tab.page.locator("#connection[data-grade=bad]", has_text=text).wait_for()
        assert tab.page.locator(".plot").bounding_box() == before
        assert tab.page.evaluate(OVERFLOW) == [0, 0, 0]
        assert tab.page.get_by_role("heading", level=1).count() == 1  # for those who hear it
        assert tab.problems == []


def test_on_a_wall_the_plots_are_alone_until_something_is_dead(open_context, tmp_path_factory):
    """No control, and the line of state as soon as the daemon has gone; W ends it."""
    daemon = MadeUpDaemon(tmp_path_factory.mktemp("wall"))
    daemon.live = lambda: tone(-20.0)
    with running_web(daemon.endpoint) as (link, _):
        with daemon.running():
            tab = opened(open_context, link.partition("#")[0], (1366, 768), f"v=1&topic={MIC}")
            tab.page.keyboard.press("w")
            tab.page.locator("#connection").wait_for(state="hidden")
            assert tab.page.evaluate(CONTROLS) == []
            assert tab.page.evaluate(OVERFLOW) == [0, 0, 0]
        tab.page.locator("#connection[data-grade=bad]", has_text="start it").wait_for()
        tab.page.keyboard.press("w")
        tab.page.locator("#options").wait_for()
        assert tab.problems == []
