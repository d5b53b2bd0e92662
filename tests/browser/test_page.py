"""The page in Chromium, with the real server and a real daemon behind it."""

import contextlib
import itertools
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tabs import MIC, READ_KINDS, Tab, wait_for_rows, wait_until

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
START_MS = 90_000  # a daemon's start, beside other tests on few cores

# Bins of 10 Hz: a tone of 1 kHz lies on one, and reads exactly.
CONFIG = """
[sources.mic]
uri = "signal:sine,1000,-20"
[sources.pair]
uri = "signal:pink,-30"
channels = 2
channel_names = ["left", "right"]
[analysis]
win_length = 4800
nfft = 4800
hop = 1200
[levels.meter]
quantities = ["LAeq"]
interval_s = 0.25
sources = ["mic"]
[levels.hour]
quantities = ["LAeq"]
interval_s = 3600
sources = ["mic"]
[publish]
endpoints = ["{endpoint}"]
[engine]
engine = "numpy"
"""
LEFT, RIGHT = "spec/pair/left/dbfs/", "spec/pair/right/dbfs/"

# Conditions to wait for are functions: a bare expression would be evaluated in the page, whose
# Content-Security-Policy forbids that.


class Daemon:
    """A daemon that can be killed and started again."""

    def __init__(self, folder):
        # Root's control sockets lie in one folder and are named after this file, in 107 bytes.
        self.endpoint = f"ipc://{folder}/{secrets.token_hex(6)}.ipc"
        self._folder = folder
        self._config = folder / "spectrod.toml"
        self._config.write_text(CONFIG.format(endpoint=self.endpoint))
        self._process = None

    def start(self):
        command = [sys.executable, "-m", "spectrod", "run", "--config", str(self._config)]
        environment = os.environ | {
            "XDG_RUNTIME_DIR": str(self._folder),
            "STATE_DIRECTORY": str(self._folder),
        }
        self._process = subprocess.Popen(
            [*command, "--show", "none", "--log-level", "error"],
            env=environment,
            stderr=subprocess.PIPE,
        )

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


@contextlib.contextmanager
def served(endpoint):
    """Run ``spectrod web``; yield the page's address."""
    command = [sys.executable, "-m", "spectrod", "web", endpoint, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("the page is at "), line
        yield line.split()[-1].partition("#")[0]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    daemon = Daemon(tmp_path_factory.mktemp("page"))
    daemon.start()
    try:
        with served(daemon.endpoint) as address:
            yield address
    finally:
        daemon.kill()


@pytest.fixture
def tab(chromium, address):
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    tab = Tab(context, address)
    yield tab
    context.close()
    assert tab.problems == []


@pytest.mark.parametrize(("kind", "f0"), [("linear", 0), ("log", 10)])
def test_a_tone_is_in_its_column_and_reads_its_level(tab, kind, f0):
    """1 kHz of -20 dBFS is drawn within a pixel of its place, and a click there reads both."""
    tab.open(f"v=1&topic={MIC}&axis={kind}&peaks=1")
    wait_for_rows(tab, 10)
    expected = tab.pixel_of(1000, kind, f0, 24000)
    column, width = tab.brightest_column(10)
    bin_width = tab.pixel_of(1010, kind, f0, 24000) - expected
    assert abs(column + 0.5 - expected) <= max(1.0, bin_width / 2), (column, expected, width)
    box = tab.page.locator(".surface").bounding_box()
    tab.page.mouse.click(box["x"] + expected, box["y"] + 40)
    tab.page.locator("#cursors td", has_text="-20.0 dBFS").first.wait_for()
    cells = tab.row_of("cursors", "A")
    assert cells[:2] == ["A", "1.000 kHz"]
    assert "-20.0 dBFS" in cells[2]


def test_zooming_and_panning_by_wheel_drag_and_keys(tab):
    """The wheel keeps the frequency under it, dragging moves it along, Home shows all again."""
    tab.open(f"v=1&topic={MIC}&axis=linear")
    box = tab.page.locator(".surface").bounding_box()
    place = box["width"] / 4
    tab.page.mouse.move(box["x"] + place, box["y"] + 40)
    before = tab.page.locator(".panel .readout").inner_text().split("  ")[0]
    tab.page.mouse.wheel(0, -300)
    tab.page.wait_for_function("() => location.hash.includes('&f=')")
    f0, f1 = (float(part) for part in tab.fragment().split("&f=")[1].split("&")[0].split(":"))
    assert f0 + (f1 - f0) / 4 == pytest.approx(6000, abs=30), before
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + place + 100, box["y"] + 40, steps=5)
    tab.page.mouse.up()
    moved = f0 - 100 / box["width"] * (f1 - f0)  # in the fragment half a second later at most
    tab.page.wait_for_function(
        "f0 => Math.abs(parseFloat(location.hash.split('&f=')[1]) / f0 - 1) < 1e-3", arg=moved
    )
    tab.focus_plot()
    tab.page.keyboard.press("ArrowRight")
    tab.page.wait_for_function(
        "low => Number(location.hash.split('&f=')[1].split(':')[0]) > low", arg=1.002 * moved
    )
    tab.page.keyboard.press("Home")
    tab.page.wait_for_function("() => !location.hash.includes('&f=')")


def test_pause_stops_the_picture_and_live_goes_on(tab):
    """Space stops the waterfall, though rows go on coming; End shows the newest rows again."""
    tab.open()
    wait_for_rows(tab, 10)
    tab.focus_plot()
    tab.page.keyboard.press("Space")
    tab.page.locator(".banner", has_text="paused").wait_for()
    assert tab.page.locator("#pause").inner_text() == "Live"
    picture = "document.querySelector('.times').toDataURL()"
    stopped = tab.page.evaluate(picture)
    number = "performance.getEntriesByType('mark').length"
    tab.page.evaluate("setTimeout(() => performance.mark('later'), 1500)")
    tab.page.wait_for_function(f"() => {number} > 0")
    assert tab.page.evaluate(picture) == stopped
    tab.page.keyboard.press("End")
    tab.page.locator(".banner", has_text="paused").wait_for(state="hidden")
    tab.page.wait_for_function(f"old => {picture} !== old", arg=stopped)


def test_holds_are_asked_for_and_reset(tab):
    """M asks the server for the maxima, R starts them again, and the legend says what is drawn."""
    sockets, sent = [], []

    def watch(socket):
        sockets.append(socket)
        # Playwright wraps what it calls, which a built-in method does not take.
        socket.on("framesent", lambda data: sent.append(data))  # noqa: PLW0108

    def streams(data):
        text = json.loads(data) if isinstance(data, str) else {}
        return [stream["of"] for stream in text.get("streams", ())]

    tab.page.on("websocket", watch)
    tab.open(f"v=1&topic={LEFT}")
    tab.focus_plot()
    holds = ["rows", "rows", "max"]
    with sockets[-1].expect_event("framesent", lambda data: streams(data) == holds) as asked:
        tab.page.keyboard.press("m")
    tab.page.locator(".legend", has_text="max hold").wait_for()
    topic_id = json.loads(asked.value)["streams"][0]["topic_id"]
    reset = {"op": "reset", "topic_id": topic_id}
    assert reset not in [json.loads(text) for text in sent if isinstance(text, str)]
    with sockets[-1].expect_event(
        "framesent", lambda data: isinstance(data, str) and json.loads(data) == reset
    ):
        tab.page.keyboard.press("r")
    tab.page.wait_for_function("() => location.hash.includes('hold=max')")
    tab.page.keyboard.press("m")
    tab.page.locator(".legend", has_text="max hold").wait_for(state="hidden")


def test_the_address_brings_the_same_view_back(tab):
    """After loading the address again the view is what it was, to the last field."""
    fragment = (
        f"v=1&topic={MIC}&topic={LEFT}&layout=over&axis=mel&f=100:5000&db=-90:-10&map=magma"
        "&stat=mean&span=12&split=55&hold=max,min&c=1000,2000&band=900:1100"
    )
    tab.open(fragment)
    tab.page.locator("#band td", has_text="900.0 Hz to 1.100 kHz").first.wait_for()
    tab.page.wait_for_function("() => document.querySelectorAll('.waterfall').length === 2")
    assert tab.page.locator(".panel").count() == 1
    tab.focus_plot()
    tab.page.keyboard.press("]")
    tab.page.wait_for_function("() => location.hash.includes('db=-85:-10')")
    tab.page.reload()
    tab.page.locator(".panel").first.wait_for()
    assert tab.fragment() == "#" + fragment.replace("db=-90", "db=-85")
    assert tab.page.locator("#display select").first.input_value() == "mel"


@pytest.mark.parametrize(
    "fragment",
    [
        "v=1&f=NaN:1e999&db=x&c=,,&span=-1",
        "%E0%A4%A",
        "k=",
        "v=9&topic=%00",
        "topic=spec/none/0/x/",
    ],
)
def test_a_bad_address_does_not_break_the_page(tab, fragment):
    """The page connects and lists its channels whatever its fragment says."""
    tab.open(fragment, waits=False)
    tab.page.locator("#connection[data-grade=good]").wait_for()
    tab.page.locator("#topics label", has_text="mic · 0 · dbfs").wait_for()


def test_a_link_to_a_channel_that_is_not_there_says_so(tab):
    """The page names what the link asks for and what there is instead, until it is there."""
    tab.open("v=1&topic=spec/pair/left/slow/", waits=False)
    said = tab.page.locator("#nothing", has_text="pair · left · slow: there is no such channel now")
    said.wait_for()
    assert said.inner_text().endswith("; there is: pair · left · dbfs")
    tab.page.locator("#topics label", has_text="left").locator("input").check()
    said.wait_for(state="hidden")
    tab.page.locator(".panel h2", has_text="pair · left · dbfs").wait_for()


def test_channels_side_by_side_and_over_each_other(tab):
    """Each channel that is ticked has a panel, or a line and a waterfall in the one panel."""
    tab.open()
    tab.page.locator("#topics label", has_text="left").locator("input").check()
    tab.page.locator("#topics label", has_text="right").locator("input").check()
    tab.page.wait_for_function("() => document.querySelectorAll('.panel').length === 3")
    # The fragment is written twice a second.
    tab.page.wait_for_function("topic => location.hash.includes(`topic=${topic}`)", arg=RIGHT)
    tab.page.locator("#layout").select_option("over")
    tab.page.wait_for_function("() => document.querySelectorAll('.panel').length === 1")
    assert tab.page.locator(".waterfall").count() == 3
    tab.page.wait_for_function(
        "() => [...document.querySelectorAll('.banner')].every(({ hidden }) => hidden)"
    )
    tab.page.locator("#status dl", has_text="pair · right · dbfs").wait_for()


def test_a_key_adds_channels_over_each_other(tab):
    """One of the same product each time, until there is none; another key saves a figure of all."""
    tab.open(f"v=1&topic={RIGHT}")
    for n in (2, 3):
        tab.page.keyboard.press("o")
        tab.page.wait_for_function(
            "n => document.querySelectorAll('.panel').length === 1 &&"
            " document.querySelectorAll('.waterfall').length === n",
            arg=n,
        )
    tab.page.keyboard.press("o")
    tab.page.locator("#notice", has_text="No other channel can be shown").wait_for()
    with tab.page.expect_download() as found:
        tab.page.keyboard.press("g")
    assert found.value.path().read_bytes().startswith(b"\x89PNG")


def test_values_have_meters(tab):
    """LAeq of 1 kHz at -20 dBFS is -20.0 dBFS; that of an hour is listed before its first value."""
    tab.open()
    hour = tab.page.locator("#meters section", has_text="mic · 0 · hour")
    hour.get_by_text("first value by").wait_for()
    tab.page.locator("#meters dd", has_text="-20.0 dBFS").first.wait_for()
    tab.page.keyboard.press("Space")  # the plots stop, the levels do not
    live = re.compile(r"live, \d\d:\d\d:\d\d")
    tab.page.locator("#meters .aside", has_text=live).first.wait_for()


def test_what_is_saved(tab, tmp_path):
    """The CSV has the tone at its frequency and level; the picture is a PNG."""
    tab.open()
    tab.page.locator("summary", has_text="Save").click()
    with tab.page.expect_download() as found:
        tab.page.locator("#save-csv").click()
    path = tmp_path / "line.csv"
    found.value.save_as(path)
    lines = path.read_text().splitlines()
    assert lines[0] == "# mic · 0 · dbfs"
    assert found.value.suggested_filename.startswith("mic-0-dbfs-20")
    rows = [line.split(",") for line in lines if line[0].isdigit()]
    frequency, _, level = max(rows, key=lambda row: float(row[2]))
    assert float(frequency) == pytest.approx(1000, abs=20)
    assert float(level) == pytest.approx(-20.0, abs=0.05)
    with tab.page.expect_download() as found:
        tab.page.locator("#save-picture").click()
    found.value.save_as(tmp_path / "plots.png")
    assert (tmp_path / "plots.png").read_bytes().startswith(b"\x89PNG\r\n")
    names = []
    tab.page.on("download", lambda one: names.append(one.suggested_filename))
    tab.page.locator("#save-three").click()
    wait_until(tab.page, lambda: len(names) == 3)
    assert {name.rpartition(".")[2] for name in names} == {"png", "svg", "csv"}
    # PNG and SVG are of one time, and the CSV's row of that, in milliseconds.
    picture, drawing = (name for name in names if not name.endswith("csv"))
    assert picture[:-4] == drawing[:-4]


def test_a_figure_has_the_words_of_the_page(tab, tmp_path):
    """A figure of a pause has its time, the legend and the readings of the tables, as they are."""
    tab.open(f"v=1&topic={MIC}&c=1000,2000&band=500:1500&hold=max,mean&span=20")
    wait_for_rows(tab, 10)
    tab.row_of("band", "-20")
    tab.page.locator("summary", has_text="Save").click()
    tab.page.locator("#pause").click()
    banner = tab.page.locator(".banner", has_text="paused").inner_text()
    tab.page.locator("#band", has_text=re.compile("Band power, at .*-20")).wait_for()
    with tab.page.expect_download() as found:
        tab.page.locator("#save-drawing").click()
    found.value.save_as(tmp_path / "a.svg")
    root = ET.parse(tmp_path / "a.svg").getroot()  # noqa: S314 - our own
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    words = " ".join(texts)
    assert banner.removeprefix("paused, ").split(" ", 1)[1] + ", paused" in words
    rows = tab.page.locator("#cursors tbody tr").all()
    assert len(rows) == 3
    for row in rows:
        name, *read = row.locator("td").all_inner_texts()
        assert f"{name}: {', '.join(filter(None, read))}" in words
    _, band, level = tab.row_of("band", "-20")
    assert f"Band power {band}: {level}" in words
    for entry in tab.page.locator(".legend > span").all_inner_texts():
        assert entry in words
    assert texts[0] == "mic · 0 · dbfs"


def test_figures_of_a_size_that_is_none_are_refused(tab):
    """A width beyond its bounds, and a picture that no browser draws, have one line each."""
    tab.open(f"v=1&topic={LEFT}&topic={RIGHT}&topic={MIC}")
    tab.page.locator("summary", has_text="Save").click()
    tab.page.get_by_label("Width of a figure").fill("5")
    tab.page.locator("#save-picture").click()
    said = "Width of a figure, mm: 5: must be a whole number, 60 to 420"
    tab.page.locator("#notice", has_text=said).wait_for()
    for label, value in (("Width of a figure", 420), ("Height of its plots", 420), ("dpi", 600)):
        tab.page.get_by_label(label).fill(str(value))
    tab.page.locator("#save-picture").click()
    said = "must have 16384 a side and 64 million at most"
    tab.page.locator("#notice", has_text=said).wait_for()


def test_what_makes_figures_may_not_come(open_context, address):
    """Paper and a button say so, and a button asks for it again."""
    tab = Tab(open_context(), address)
    tab.page.route("**/*-figures.js", lambda route: route.abort())
    tab.open(f"v=1&topic={MIC}")
    wait_for_rows(tab, 10)
    tab.page.evaluate("() => { window.dispatchEvent(new Event('beforeprint')); }")
    assert tab.page.locator("#print").text_content().startswith("What makes figures has not come")
    tab.page.locator("summary", has_text="Save").click()
    tab.page.locator("#save-picture").click()
    said = "Figures: the server does not send what makes them; reload the page"
    tab.page.locator("#notice", has_text=said).wait_for()
    tab.page.unroute("**/*-figures.js")
    with tab.page.expect_download():
        tab.page.locator("#save-picture").click()
    assert {problem.split(":")[0] for problem in tab.problems} == {"Failed to load resource"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_on_paper(open_context, address, scheme):
    """On paper there is a figure of each panel, dark on white, and no control."""
    context = open_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    tab = Tab(context, address)
    tab.open(f"v=1&topic={LEFT}&topic={MIC}")
    tab.page.locator(".panel").nth(1).wait_for()
    wait_for_rows(tab, 10)
    tab.page.emulate_media(media="print")
    figures = tab.page.locator("#print > canvas")

    def are_there():
        # What makes them comes after the page.
        tab.page.evaluate("() => { window.dispatchEvent(new Event('beforeprint')); }")
        return figures.count() == 2

    wait_until(tab.page, are_there)
    assert figures.nth(1).get_attribute("aria-label").startswith("mic · 0 · dbfs, 20")
    shown = tab.page.locator("button, input, select, summary, .panel, #status").all()
    assert not [one for one in shown if one.is_visible()]
    corner, darkest = figures.nth(0).evaluate(
        """canvas => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 100);
          const darkest = data.reduce((least, value) => Math.min(least, value));
          return [[...data.slice(0, 3)], darkest];
        }"""
    )
    assert corner == [255, 255, 255]
    assert darkest == 0  # the title
    tab.page.evaluate("() => { window.dispatchEvent(new Event('afterprint')); }")
    assert figures.count() == 0
    assert tab.problems == []


def test_a_daemon_that_dies_is_told_and_its_return_is_drawn(open_context, tmp_path_factory):
    """A killed daemon is said to be gone; started again its rows come, the break is hatched."""
    daemon = Daemon(tmp_path_factory.mktemp("page"))
    daemon.start()
    try:
        with served(daemon.endpoint) as address:
            tab = Tab(open_context(viewport={"width": 1280, "height": 800}), address)
            tab.open(f"v=1&topic={MIC}&span=60")
            wait_for_rows(tab, 10)
            daemon.kill()
            tab.page.locator(".banner", has_text="no data from mic · 0 · dbfs for").wait_for()
            tab.page.locator("#status dd[data-grade=bad]").first.wait_for()
            tab.page.locator("#connection[data-grade=bad]", has_text="no connection").wait_for()
            tab.page.locator("#status dd", has_text="unknown: no connection").wait_for()
            tab.page.locator("#peaks .empty", has_text="no data now").wait_for()
            daemon.start()
            tab.page.wait_for_function(
                "() => document.querySelector('.banner').hidden", timeout=START_MS
            )
            tab.page.locator("#events-box summary").click()
            tab.page.locator("#events td", has_text="daemon restarted").wait_for()
            tab.page.locator("#status dd[data-grade=bad]").first.wait_for(state="detached")
            kinds = f"({READ_KINDS})()"
            # Two seconds of rows are above the break, so they go on.
            tab.page.wait_for_function(
                f"""async () => {{
                  const runs = await {kinds};
                  const height = runs.reduce((sum, [, lines]) => sum + lines, 0);
                  return runs[0][0] === "rows" && runs[0][1] / height >= 2 / 60;
                }}"""
            )
            runs = tab.page.evaluate(kinds)
            if runs[1][0] == "dropped":
                # The daemon sent before the server had connected again: the page says so, too.
                tab.page.locator("#status dt", has_text="missed").first.wait_for()
                del runs[1]
            assert [kind for kind, _ in runs[:3]] == ["rows", "gap", "rows"]
            # The page says that rows are late after three seconds.
            assert runs[1][1] / sum(lines for _, lines in runs) >= 3 / 60
            assert tab.problems == []
    finally:
        daemon.kill()


# All rules check all elements; lists of other results than violations have one element.
VIOLATIONS = "() => axe.run({ resultTypes: ['violations'] })"


@pytest.fixture(scope="module")
def axe():
    path = HERE / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        pytest.fail(f"{path} is missing: make rest-needs installs it")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("width", "look"),
    [
        *((width, look) for width in (1280, 390, 320) for look in ("light", "dark")),
        *((1280, "forced"), (320, "forced dark"), (1280, "right"), (320, "dark right")),
    ],
)
def test_nobody_is_shut_out(open_context, address, axe, width, look):
    """axe-core finds nothing serious, and nothing is wider than a screen of 320 px."""
    context = open_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if "dark" in look else "light",
        forced_colors="active" if "forced" in look else "none",
        reduced_motion="reduce",
    )
    tab = Tab(context, address)
    rows = "&rows=right" if "right" in look else ""
    tab.open(f"v=1&topic={MIC}&topic={LEFT}&hold=max&c=1000,2000&band=900:1100{rows}")
    tab.page.wait_for_function("() => cursors.textContent.includes(' oct')")
    tab.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    tab.page.evaluate(f"() => {{ {axe} }}")
    # On a narrow screen panes lie over the plots, one at a time.
    for button in ("none", "connection", "time", "measure", "options"):
        if width < 960 and button != "none":
            tab.page.locator(f"#{button}").click()
        found = tab.page.evaluate(VIOLATIONS)
        serious = [
            (button, one["id"], [node["target"] for node in one["nodes"]])
            for one in found["violations"]
            if one["impact"] in {"serious", "critical"}
        ]
        assert serious == []
        assert not tab.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        if width >= 960:
            break
    surface = tab.page.locator(".surface").first
    plot = surface.bounding_box()
    for label in surface.locator(".cursor-label").all():
        box = label.bounding_box()
        assert plot["x"] <= box["x"]
        assert box["x"] + box["width"] <= plot["x"] + plot["width"] + 1
    assert tab.problems == []


SIZES = (
    (360, 640, "dark", "no-preference"),
    (768, 1024, "light", "more"),
    (1366, 768, "dark", "more"),
    (1920, 1080, "light", "no-preference"),
    (3840, 2160, "dark", "no-preference"),
)
"""Windows [CSS px] with a theme and contrast; benchmarks/page_sizes.py has each with each."""


def test_five_sizes_shut_nobody_out(open_context, address, axe):
    """axe-core finds nothing at all, in a page whose window and look change while it is open."""
    tab = Tab(open_context(reduced_motion="reduce", is_calm=True), address)
    tab.open(f"v=1&topic={MIC}&topic={LEFT}&hold=max&c=1000,2000")
    tab.page.wait_for_function("() => cursors.textContent.includes(' oct')")
    tab.page.evaluate(f"() => {{ {axe} }}")
    for width, height, scheme, contrast in SIZES:
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.page.emulate_media(color_scheme=scheme, contrast=contrast)
        tab.page.wait_for_function(
            "look => document.documentElement.dataset.theme === look", arg=scheme
        )
        found = tab.page.evaluate(VIOLATIONS)
        assert [(width, one["id"], one["nodes"]) for one in found["violations"]] == []
        assert found["passes"]
        assert not tab.page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert tab.problems == []


def test_the_plot_works_by_keys_alone(tab):
    """Tab reaches the plots; there ? opens the list of keys, Escape ends it, C sets a cursor."""
    tab.open()
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        if tab.page.evaluate("document.activeElement.className") == "surface":
            break
    assert tab.page.evaluate("document.activeElement.className") == "surface"
    assert tab.page.locator("#pause").get_attribute("title") == "pause or resume (Space)"
    assert tab.page.locator("[data-action=holdMax]").get_attribute("title").endswith(" (M)")
    tab.page.keyboard.press("?")
    tab.page.locator("#help").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.locator("#help").wait_for(state="hidden")
    tab.page.keyboard.press("c")
    tab.page.wait_for_function("() => location.hash.includes('&c=')")
    assert tab.page.evaluate("document.activeElement.className") == "surface"


def test_harmonics_of_the_cursor_have_lines_numbers_and_levels(tab):
    """H marks them, the table has their levels beside the cursor's, and the link keeps them."""
    tab.open(f"v=1&topic={MIC}&axis=linear&f=0:4800&c=1000")
    tab.focus_plot()
    tab.page.keyboard.press("h")
    lines = tab.page.locator(".harmonic:visible")
    lines.nth(2).wait_for()
    assert lines.all_inner_texts() == ["2", "3", "4"]
    assert "harm=1" in tab.fragment()
    surface = tab.page.locator(".surface").bounding_box()
    places = [one.bounding_box()["x"] - surface["x"] for one in lines.all()]
    expected = [surface["width"] * hertz / 4800 for hertz in (2000, 3000, 4000)]
    assert places == pytest.approx(expected, abs=1.0)
    second = tab.page.locator("#cursors tr", has_text="2 A").locator("td")
    second.filter(has_text=re.compile(r"^-\d+\.\d dB re A$")).wait_for()
    tab.page.keyboard.press("h")
    lines.first.wait_for(state="hidden")
    assert tab.problems == []


def test_harmonics_hide_neither_each_other_nor_the_waterfall(tab):
    """Lines are 4 px apart at least, also where frequency goes up; no number is over another."""
    tab.open(f"v=1&topic={MIC}&axis=log&f=10:24000&c=1000&harm=1&rows=right")
    numbers = tab.page.locator(".trace .harmonic > span:visible")
    numbers.nth(3).wait_for()
    shown = [one.bounding_box() for one in numbers.all()]
    assert all(a["x"] + a["width"] <= b["x"] for a, b in itertools.pairwise(shown))
    assert numbers.first.inner_text() == "2"
    lines = tab.page.locator(".waterfall .harmonic:visible")
    places = [one.bounding_box()["y"] for one in lines.all()]
    apart = [above - below for above, below in itertools.pairwise(places)]
    assert 3 < len(places) < 20
    assert min(apart) >= 4 - 0.1
    assert tab.problems == []


def test_a_key_opens_the_legend(tab):
    """L opens the legend, also where the options are hidden; keys go on to work, L closes it."""
    tab.open()
    tab.page.locator("#options").click()
    tab.focus_plot()
    tab.page.keyboard.press("l")
    tab.page.locator("#legend li", has_text="no data").wait_for()
    assert tab.page.evaluate("document.activeElement.className") == "surface"
    colours = tab.page.evaluate(
        "[...document.querySelectorAll('[data-sign=hatching]')].map((one) => one.style.background)"
    )
    assert len(set(colours)) == 3
    assert all("repeating-linear-gradient" in colour for colour in colours)
    tab.page.keyboard.press("l")
    tab.page.locator("#legend li", has_text="no data").wait_for(state="hidden")


def test_words_of_the_page_are_explained(tab):
    """Where they stand, and in the list that ? opens."""
    tab.open()
    tab.page.locator("#status dt", has_text="epoch").first.wait_for()
    epoch = tab.page.locator("#status dt", has_text="epoch").first
    assert "Another number means that the daemon was restarted" in epoch.get_attribute("title")
    assert "A4 = 440 Hz" in tab.page.locator("#peaks th", has_text="note").get_attribute("title")
    assert tab.page.locator("#peaks caption").inner_text() == "Peaks, between the bins"
    assert tab.page.locator("#cursors caption").inner_text() == "Cursors, each on a peak or a bin"
    tab.focus_plot()
    tab.page.keyboard.press("?")
    tab.page.locator("#help summary", has_text="Terms").click()
    tab.page.locator("#help-terms tr", has_text="cents (ct)").wait_for()
