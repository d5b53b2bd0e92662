"""The page in Debian's Firefox: what it draws, reads, and does not complain about."""

import json
import shutil
from urllib.parse import urlsplit

import pytest
from programs import running_daemon, running_web
from remote import FIREFOX, firefox_tab, until

pytestmark = [
    pytest.mark.extended,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which(FIREFOX) is None, reason="no firefox-esr here"),
]

NAME = "spec/mic/0/dbfs/"
TONE = """(() => {
  const canvas = document.querySelector(".waterfall canvas");
  if (canvas === null || canvas.width === 0) return null;
  // Until the foot has its lines a scroll bar may come, and the plots get another width.
  const isLaidOut = document.getElementById("status").textContent.includes("engine")
    && canvas.width === document.querySelector(".surface").clientWidth;
  if (!isLaidOut) return null;
  const copy = new OffscreenCanvas(canvas.width, 1);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, -10);
  const { data } = context.getImageData(0, 0, canvas.width, 1);
  const light = Array.from({ length: canvas.width }, (_, x) => data[4 * x + 1]);
  const best = Math.max(...light);
  const first = light.indexOf(best), last = light.lastIndexOf(best);
  return last - first < canvas.width / 20 ? `${(first + last + 1) / 2} ${canvas.width}` : null;
})()"""
"""Middle of the brightest columns of a line, and the width [device px]; null while none is."""
STEADY_TONE = f"""(() => {{
  const found = {TONE};
  const {{ text, count }} = globalThis.toneBefore ?? {{ text: null, count: 0 }};
  const isSame = found !== null && found === text;
  globalThis.toneBefore = {{ text: found, count: isSame ? count + 1 : 0 }};
  return globalThis.toneBefore.count >= 10 ? found : null;
}})()"""
"""The same, as soon as ten looks in a row found it: lines of another width are drawn again."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with (
        running_daemon(tmp_path_factory.mktemp("firefox")) as endpoint,
        running_web(endpoint) as (link, _),
    ):
        yield link


@pytest.fixture(scope="module")
def tab(address, tmp_path_factory):  # the server ends after the browser
    with firefox_tab(tmp_path_factory.mktemp("browser")) as tab:
        yield tab
        assert tab.problems == []
        hosts = {urlsplit(one).netloc for one in tab.requests if one.startswith("http")}
        assert hosts == {urlsplit(address).netloc}


@pytest.mark.parametrize("kind", ["linear", "log"])
def test_a_tone_is_in_its_column_and_reads_its_level(tab, address, kind):
    """1 kHz of -20 dBFS is drawn within its bin, and a click there reads both."""
    tab.open("about:blank")
    tab.open(f"{address}#v=1&topic={NAME}&axis={kind}&f=500:1500")
    column, width = (float(text) for text in tab.evaluate(until(STEADY_TONE)).split())
    places = tab.evaluate(
        f"""import("./page/plot/axis.js").then(({{ makeAxis }}) => {{
          const axis = makeAxis({{ kind: "{kind}", f0: 500, f1: 1500, width: {width} }});
          return [1000, 1010].map((hertz) => axis.toPixel(hertz)).join(" ");
        }})"""
    )
    expected, next_bin = (float(text) for text in places.split())
    assert abs(column - expected) <= (next_bin - expected) / 2
    corner = "document.querySelector('.surface').getBoundingClientRect()"
    left, top = (tab.evaluate(f"{corner}.{side}") for side in ("left", "top"))
    tab.click(left + expected, top + 40)
    cursors = "document.getElementById('cursors').textContent"
    text = tab.evaluate(until(f"{cursors}.includes('-20.0 dBFS') && {cursors}"))
    assert "1.000 kHz" in text


PRESS = """(() => {
  const grip = document.querySelector("[data-end=lo]");
  const event = { key: "ArrowDown", bubbles: true, cancelable: true };
  grip.dispatchEvent(new KeyboardEvent("keydown", event));
})()"""
LEVEL = "document.querySelector('[data-end=lo]').ariaValueNow"
HEIGHTS = """(() => {
  const grip = document.querySelector("[data-end=lo]").getBoundingClientRect();
  const panel = document.querySelector(".panel").getBoundingClientRect();
  const { scrollHeight, clientHeight } = document.querySelector("main");
  return [grip.bottom - panel.bottom, scrollHeight, clientHeight].join(" ");
})()"""
"""How far the lower grip reaches over its panel's edge, and the heights of the plots' room."""


def test_a_grip_at_the_end_of_its_bar_makes_nothing_scroll(tab, address):
    """Where scroll bars take room they would come and go with the range, and with them widths."""
    # The lower the bar, the farther its end reaches over the edge.
    tab.open(address)
    panes = json.dumps({"panes": ["state", "time", "measure", "options"]})
    tab.evaluate(f"localStorage.setItem('spectrod', {json.dumps(panes)})")
    tab.open("about:blank")
    tab.open(f"{address}#v=1&topic={NAME}&db=-100:-60")
    tab.evaluate(until(TONE))
    for level in (-101, -102, -103):
        tab.evaluate(PRESS)
        tab.evaluate(until(f"Number({LEVEL}) === {level} && 'there'"))
    over, content, room = (float(text) for text in tab.evaluate(HEIGHTS).split())
    assert over > 0
    assert content <= room


SAVE = """(() => {
  globalThis.blobs = [];
  const make = URL.createObjectURL;
  URL.createObjectURL = (blob) => {
    globalThis.blobs.push(blob);
    return make.call(URL, blob);
  };
  HTMLAnchorElement.prototype.click = () => {};
  document.getElementById("save-picture").click();
  document.getElementById("save-drawing").click();
})()"""
SAVED = """(async () => {
  const [png, svg] = ["image/png", "image/svg+xml"].map((type) =>
    globalThis.blobs.find((blob) => blob.type === type));
  const { width, height } = await createImageBitmap(png);
  const root = new DOMParser().parseFromString(await svg.text(), "image/svg+xml").documentElement;
  const [wide, high] = ["width", "height"].map((name) => parseFloat(root.getAttribute(name)));
  const about = [root.localName, root.querySelectorAll("image").length];
  return [...about, width, width / height - wide / high].join(" ");
})()"""
"""The SVG's root, its pictures, the PNG's width, and how much their shapes differ."""


def test_figures_are_drawn(tab, address):
    """Firefox makes the PNG of 160 mm with 300 dpi, and the SVG of the same shape."""
    tab.open("about:blank")
    tab.open(f"{address}#v=1&topic={NAME}")
    tab.evaluate(until(TONE))
    tab.evaluate(SAVE)
    tab.evaluate(until("globalThis.blobs.length === 2 && 'there'"))
    root, images, width, difference = tab.evaluate(SAVED).split()
    assert (root, images) == ("svg", "2")
    assert int(width) == pytest.approx(160 / 25.4 * 300, abs=2)
    assert abs(float(difference)) < 0.005
