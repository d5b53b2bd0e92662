"""A thousand places of the page, each compared with the rows that were sent: what it says is so."""

import io
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from made_up_daemon import SPEC, TOPIC, MadeUpDaemon
from PIL import Image
from programs import running_web
from tabs import Tab, wait_until

from spectrod.apps.web.slicing import TopicAxis, slices_of
from spectrod.formats.picture.colormaps import colormap

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

SPAN_S = 10
PLACES = 250
"""Places of each of: live, paused, past, two channels over each other."""
BIN_HZ = 10.0
ENBW_HZ = 15.0
F0, F1 = 10.0, 24000.0
LO, HI = -110.0, 0.0
ROW_MS = 100.0
COLUMNS_MS = (10.0, 20.0, 30.0, 40.0, 50.0, 100.0, 150.0)
"""Columns of the past: some cells, the longest that are not longer than a line."""
LIVE_DB, PAST_DB = 0.25 + 0.06, 0.05 + 0.06
"""Half a step of live rows, and of the past; and half the last digit of a text."""

SVG = "{http://www.w3.org/2000/svg}"
FIGURE_DPI = 300

# Notes the waterfalls as they are drawn, with the time at their top.
WATCH = """async () => {
  const { Strip } = await import("./page/panel/strip.js");
  globalThis.rowsOfLine = (await import("./page/rows/rowat.js")).rowsOfLine;
  const draw = Strip.prototype.draw;
  globalThis.strips = new Map();
  Strip.prototype.draw = function (scene) {
    const { info } = this.channel;
    globalThis.strips.set(info.endpoint, { strip: this, newestMs: scene.newestMs });
    return draw.call(this, scene);
  };
}"""
# Readouts of random places of the waterfalls: nothing else happens meanwhile. `x` is counted from
# the lowest frequency, `y` from the newest row.
READ = """([seed, count]) => {
  let state = seed;
  const next = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const surface = document.querySelector(".surface");
  const found = [];
  const all = [...globalThis.strips.values()].filter(({ strip }) => strip.box.isConnected);
  for (let n = 0; n < count; n += 1) {
    const { strip, newestMs } = all[n % all.length];
    const panel = strip.box.closest(".panel");
    const own = panel.querySelector(".surface");
    const { left, top, width, height } = strip.box.getBoundingClientRect();
    // Whole pixels: a box may end within one, whose middle lies beside it.
    const [x, y] = [width, height].map((size) => Math.floor(next() * Math.floor(size)));
    const at = { clientX: left + x + 0.5, clientY: top + y + 0.5, bubbles: true };
    own.dispatchEvent(new PointerEvent("pointermove", at));
    const text = panel.querySelector(".readout").textContent;
    const { endpoint } = strip.channel.info;
    const { width: widthPx, height: heightPx } = strip.canvas;
    const isRight = location.hash.includes("rows=right");
    const [tone, age] = isRight ? [heightPx - 1 - y, widthPx - 1 - x] : [x, y];
    const [tones, ages] = isRight ? [heightPx, widthPx] : [widthPx, heightPx];
    const { line, msPerPx } = strip.pixelAt({ x, y });
    // Of a page that is slow for a moment the server merges rows: which ones, each row says.
    const drawn = globalThis.rowsOfLine(strip.rows, line, msPerPx);
    const rows = drawn.map(({ seq, merged }) => [seq, merged]);
    found.push({ x: tone, y: age, text, endpoint, newestMs, width: tones, height: ages, rows });
  }
  return found;
}"""


class Rows:
    """A daemon of random rows, which are kept."""

    def __init__(self, folder, seed):
        self._random = np.random.default_rng(seed)
        self.values = []
        self.daemon = MadeUpDaemon(folder)
        self.daemon.live = self._next

    def _next(self):
        levels = self._random.uniform(-100.0, -60.0, SPEC.n_values)
        tones = self._random.integers(0, SPEC.n_values, 20)
        levels[tones] = self._random.uniform(-60.0, -5.0, 20)
        self.values.append(np.round(levels, 2).astype(np.float32))
        return self.values[-1]

    def at(self, t_ms):
        """Return the number of the row whose time this is."""
        return int((t_ms - self.daemon.begins_ns(0) / 1e6) // ROW_MS)

    def level(self, numbers, bins):
        """Return the greatest level of some bins in some rows."""
        return max(float(self.values[n][bins].max()) for n in numbers)


def bins_of_pixel(px, width, served=None):
    """Return the bins that a pixel of a logarithmic axis shows: those of all its values.

    ``served`` is the width that the values were made for, if not this one.
    """
    left, right = (F0 * (F1 / F0) ** ((px + k) / width) for k in (0, 1))
    slack = 1e-6 * (right - left)
    found = []
    for first, per_value, values in slices_of(
        TopicAxis(SPEC.n_values, 0.0, BIN_HZ), F0, F1, served or width, "log"
    ):
        starts = first + per_value * np.arange(values)
        stops = np.minimum(starts + per_value, SPEC.n_values)
        is_in = ((stops - 0.5) * BIN_HZ > left + slack) & ((starts - 0.5) * BIN_HZ < right - slack)
        found += [np.arange(*ends) for ends in zip(starts[is_in], stops[is_in], strict=True)]
    return np.concatenate(found)


def bins_of_value(k, width):
    """Return the bins of the value that has a bin."""
    for first, per_value, values in slices_of(
        TopicAxis(SPEC.n_values, 0.0, BIN_HZ), F0, F1, width, "log"
    ):
        if first <= k < first + per_value * values:
            begin = first + (k - first) // per_value * per_value
            return slice(begin, begin + per_value)
    raise AssertionError(k)


def rows_of_line(rows, line, line_ms, length_ms):
    """Return the numbers of the rows, or of those in columns, that a line of a waterfall shows."""
    found = set()
    middle_ms = (line + 0.5) * line_ms
    origin_ms = rows.daemon.begins_ns(0) / 1e6 if length_ms == ROW_MS else 0.0
    about = int((middle_ms - origin_ms) // length_ms)
    for n in range(about - 3, about + 4):
        begin_ms = origin_ms + n * length_ms
        first = np.ceil(begin_ms / line_ms - 0.5)
        last = np.ceil((begin_ms + length_ms) / line_ms - 0.5) - 1
        if last < first:
            first = last = np.floor((begin_ms + length_ms / 2) / line_ms)
        if first <= line <= last:
            found.add(rows.at(begin_ms + length_ms / 2))
    return found


def rows_that_came(rows, one, line, line_ms):
    """Return the numbers of the rows in a line, as rows say, if they are those of its time."""
    numbers = {n for seq, merged in one["rows"] for n in range(seq - merged + 1, seq + 1)}
    due = rows_of_line(rows, line, line_ms, ROW_MS)
    # A row alone is drawn where its time is; of merged ones more are.
    assert due <= numbers if all(merged == 1 for _, merged in one["rows"]) else due & numbers
    return numbers


def check(read, sources, tolerance_db):
    """Compare readouts with the rows that were sent; return how many had a level."""
    n_levels = 0
    for one in read:
        rows, line_ms = sources[one["endpoint"]], 1000.0 * SPAN_S / one["height"]
        line = int(np.floor(one["newestMs"] / line_ms)) - one["y"]
        (level,) = re.findall(r"(-?\d+\.\d dBFS|no data)  20", one["text"])
        if level == "no data":  # of the time before the first row, or after the newest
            assert one["rows"] == []
            continue
        is_past = one["rows"][0][0] == 0
        numbers = (
            rows_of_line(rows, line, line_ms, max(one for one in COLUMNS_MS if one <= line_ms))
            if is_past
            else rows_that_came(rows, one, line, line_ms)
        )
        expected = rows.level(numbers, bins_of_pixel(one["x"], one["width"]))
        assert float(level.split()[0]) == pytest.approx(expected, abs=tolerance_db), one
        n_levels += 1
    return n_levels


def view(*topics, **fields):
    """Return a fragment of a view of all frequencies on a logarithmic axis."""
    about = {"axis": "log", "f": f"{F0:g}:{F1:g}", "span": SPAN_S, "db": f"{LO:g}:{HI:g}"}
    shown = [("topic", one) for one in topics] + list((about | fields).items())
    return "&".join(["v=1", *(f"{name}={value}" for name, value in shown)])


def opened(open_context, link, fragment):
    tab = Tab(open_context(viewport={"width": 1280, "height": 900}), link.partition("#")[0])
    # Modules one by one: those that this imports are then those of the page.
    tab.page.goto(f"{link.partition('#')[0]}?modules#{fragment}")
    tab.page.evaluate(WATCH)
    return tab


def wait_for_rows(tab, rows, count):
    n_before = len(rows.values)
    wait_until(tab.page, lambda: len(rows.values) >= n_before + count)


def saved(tab, button):
    """Press a button that saves; return the name and the content."""
    with tab.page.expect_download() as found:
        tab.page.locator(button).click()
    return found.value.suggested_filename, found.value.path().read_bytes()


def ms_of(time):
    """Return a time of a text [ms since 1970]."""
    return np.datetime64(time.replace(" ", "T"), "us").astype(float) / 1e3


def check_csv(content, rows):
    """Compare a saved line spectrum with its row; return the row's time as it is written."""
    lines = content.decode().splitlines()
    (time,) = re.findall(r"^# (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC$", lines[1])
    number = rows.at(ms_of(time))
    for hertz, count, level in (map(float, line.split(",")) for line in lines[4:]):
        first = round(hertz / BIN_HZ)
        expected = rows.level([number], slice(first, first + int(count)))
        assert level == pytest.approx(expected, abs=LIVE_DB)
    assert len(lines) > 500
    return time


def check_picture(content, drawing, tab, rows, direction):
    """Compare colours of a saved figure's waterfall with the levels of the rows."""
    image = ET.fromstring(drawing).find(f".//{SVG}image")  # noqa: S314 - our own
    x0, y0, width, height = (
        round(float(image.get(name)) * FIGURE_DPI / 96) for name in ("x", "y", "width", "height")
    )
    with Image.open(io.BytesIO(content)) as opened_picture:
        assert opened_picture.info["dpi"] == pytest.approx((FIGURE_DPI, FIGURE_DPI), abs=0.01)
        picture = np.asarray(opened_picture.convert("RGB")).astype(int)
    picture = picture[y0 : y0 + height, x0 : x0 + width]
    if direction == "right":
        picture = picture[::-1, ::-1].transpose(1, 0, 2)
    height, width = picture.shape[:2]
    shown = tab.page.evaluate(
        """([height, span]) => {
          const [{ strip, newestMs }] = globalThis.strips.values();
          const msPerPx = span / height;
          const rows = Array.from({ length: height }, (_, y) => {
            const line = Math.floor(newestMs / msPerPx) - y;
            return globalThis.rowsOfLine(strip.rows, line, msPerPx)
              .map(({ seq, merged }) => [seq, merged]);
          });
          return { newestMs, rows, served: strip.canvas.width };
        }""",
        [height, 1000 * SPAN_S],
    )
    shades = colormap("viridis", 256).astype(int)
    random, line_ms = np.random.default_rng(7), 1000.0 * SPAN_S / height
    n_levels = 0
    for _ in range(PLACES):
        # The frame of the plot covers half a line of its edge.
        x, y = int(random.integers(2, width - 2)), int(random.integers(2, height - 2))
        line = int(np.floor(shown["newestMs"] / line_ms)) - y
        is_shade = np.abs(shades - picture[y, x]).sum(axis=1) == 0
        if not is_shade.any():
            continue  # the time before the first row
        numbers = rows_that_came(rows, {"rows": shown["rows"][y]}, line, line_ms)
        level = rows.level(numbers, bins_of_pixel(x, width, shown["served"]))
        shade = int(np.flatnonzero(is_shade)[0])
        assert abs(shade - (level - LO) / (HI - LO) * 256) <= 1.0 + LIVE_DB / (HI - LO) * 256
        n_levels += 1
    assert n_levels > PLACES / 2


def check_drawing(content, csv, rows):
    """Compare the line of a saved drawing with the row of the CSV beside it."""
    root = ET.fromstring(content)  # noqa: S314 - our own
    (path,) = [one for one in root.iter(f"{SVG}path") if one.get("class") == "line now"]
    plot = root.find(f"{SVG}clipPath/{SVG}rect")
    left, top, width, height = (float(plot.get(key)) for key in ("x", "y", "width", "height"))
    (line,) = path.get("d").split("M")[1:]
    points = np.array([point.split() for point in line.split("L")], float)
    hertz = F0 * (F1 / F0) ** ((points[:, 0] - left) / width)
    levels = HI - (points[:, 1] - top) / height * (HI - LO)
    lines = csv.decode().splitlines()
    number = rows.at(ms_of(lines[1].removeprefix("# ").removesuffix(" UTC")))
    written = np.array([line.split(",") for line in lines[4:]], float)
    # The CSV gives the first bin of each value; a line has its middle.
    middles = written[:, 0] + (written[:, 1] - 1) / 2 * BIN_HZ
    nearest = np.abs(middles[:, None] - hertz).argmin(axis=0)
    np.testing.assert_allclose(middles[nearest], hertz, rtol=1e-4)
    np.testing.assert_allclose(levels, written[nearest, 2], atol=0.6e-3 * (HI - LO) / height)
    assert len(points) > 500
    for k in nearest:
        first = round(written[k, 0] / BIN_HZ)
        expected = rows.level([number], slice(first, first + int(written[k, 1])))
        assert written[k, 2] == pytest.approx(expected, abs=LIVE_DB)


@pytest.fixture
def source(tmp_path):
    rows = Rows(tmp_path, 1)
    with rows.daemon.running():
        yield rows


def test_live_paused_and_past(open_context, source, tmp_path):
    """Readouts, the line spectrum as CSV and the picture are of the rows that were sent."""
    with running_web(source.daemon.endpoint, "--recordings", tmp_path / "none") as (link, _):
        tab = opened(open_context, link, view(TOPIC))
        wait_for_rows(tab, source, 250)
        sources = {source.daemon.endpoint: source}
        live = tab.page.evaluate(READ, [1, PLACES])
        assert check(live, sources, LIVE_DB) > 0.8 * PLACES

        tab.focus_plot()
        tab.page.keyboard.press("Space")
        tab.page.locator(".banner", has_text="paused").wait_for()
        wait_for_rows(tab, source, 60)
        paused = tab.page.evaluate(READ, [2, PLACES])
        assert check(paused, sources, LIVE_DB) > 0.8 * PLACES
        assert len({one["newestMs"] for one in paused}) == 1
        tab.page.locator("summary", has_text="Save").click()
        name, csv = saved(tab, "#save-csv")
        time = check_csv(csv, source)
        stopped = tab.page.locator(".banner").inner_text().removeprefix("paused, ")
        assert abs(ms_of(time) - paused[0]["newestMs"]) <= 2.5 * ROW_MS
        assert re.sub(r"\D", "", time)[:14] in re.sub(r"\D", "", name)
        for option, direction in (("as on the page", "down"), ("to the right", "right")):
            tab.page.get_by_label("Time in a figure").select_option(label=option)
            name, content = saved(tab, "#save-picture")
            assert re.sub(r"\D", "", stopped)[:15] in re.sub(r"\D", "", name)
            drawn, drawing = saved(tab, "#save-drawing")
            assert drawn.removesuffix("svg") == name.removesuffix("png")
            check_picture(content, drawing, tab, source, direction)
            check_drawing(drawing, csv, source)
        for hertz in np.random.default_rng(3).integers(1, 2400, 20) * BIN_HZ:
            tab.page.evaluate(
                "text => { location.hash = text; }",
                view(TOPIC, c=f"{hertz:g}", t=round(paused[0]["newestMs"])),
            )
            label = tab.page.locator(".cursor-label").first
            said = re.compile(
                rf"A {hertz:.1f} Hz|A {hertz / 1000:.3f} kHz|A {hertz / 1000:.2f} kHz"
            )
            tab.page.locator(".cursor-label", has_text=said).first.wait_for()
            level = float(label.inner_text().split()[-2])
            bins = bins_of_value(round(hertz / BIN_HZ), paused[0]["width"])
            expected = source.level([source.at(ms_of(time))], bins)
            assert level == pytest.approx(expected, abs=LIVE_DB)
        assert tab.problems == []

        later = opened(open_context, link, view(TOPIC))
        wait_for_rows(later, source, 20)
        t_ms = round(paused[0]["newestMs"] - 3000)
        later.page.evaluate("text => { location.hash = text; }", view(TOPIC, t=t_ms))
        later.page.locator(".banner", has_text=re.compile("paused|the past")).wait_for()
        read = []

        def is_there():
            read[:] = later.page.evaluate(READ, [4, PLACES])
            return sum("dBFS" in one["text"] for one in read) > 0.6 * PLACES

        wait_until(later.page, is_there)
        assert check(read, sources, PAST_DB) > 0.6 * PLACES
        assert later.problems == []


def band_level(values, k):
    """Return the level of the k-th third octave from 1 kHz of a row, of its bins in it."""
    lower, upper = (1000.0 * 10.0 ** ((k + half) / 10.0) for half in (-0.5, 0.5))
    edges = (np.arange(SPEC.n_values + 1) - 0.5) * BIN_HZ
    shares = np.clip(np.minimum(edges[1:], upper) - np.maximum(edges[:-1], lower), 0.0, None)
    return 10.0 * np.log10((shares * 10.0 ** (values.astype(float) / 10.0)).sum() / ENBW_HZ)


@pytest.mark.parametrize(
    ("shown_hz", "bands"), [((1000, 1050), [0]), ((900, 2500), [0, 1, 2, 3, 4])]
)
def test_bars_of_which_a_view_shows_a_part(open_context, source, tmp_path, shown_hz, bands):
    """They go to the edge of the plot, and their levels are of all of their bins, also later."""
    with running_web(source.daemon.endpoint, "--recordings", tmp_path / "none") as (link, _):
        fragment = view(TOPIC, f=f"{shown_hz[0]}:{shown_hz[1]}", bars="third")
        tab = opened(open_context, link, fragment)
        wait_for_rows(tab, source, 60)
        tab.focus_plot()
        tab.page.keyboard.press("Space")
        tab.page.locator(".banner", has_text="paused").wait_for()
        tab.page.locator("summary", has_text="Save").click()
        paused = check_bars(tab, source, shown_hz, bands)

        # What was measured at a pause is kept for 2 s before it.
        t_ms = round(source.daemon.begins_ns(paused - 35) / 1e6 + ROW_MS / 2)
        tab.page.evaluate(
            "text => { location.hash = text; }",
            view(TOPIC, f=f"{shown_hz[0]}:{shown_hz[1]}", bars="third", t=t_ms),
        )
        tab.page.locator(".banner", has_text="the past").wait_for()
        # Rows of the waterfall end where the view does: others are asked for.
        wait_until(tab.page, lambda: len(bars_of(saved(tab, "#save-drawing")[1])) == len(bands))
        check_bars(tab, source, shown_hz, bands)
        assert tab.problems == []


def bars_of(drawing):
    """Return the ends of bars (n, 2, 2) as shares of the plot, from its left and top."""
    root = ET.fromstring(drawing)  # noqa: S314 - our own
    plot = root.find(f"{SVG}clipPath/{SVG}rect")
    left, top, width, height = (float(plot.get(key)) for key in ("x", "y", "width", "height"))
    paths = [one.get("d") for one in root.iter(f"{SVG}path") if one.get("class") == "line now"]
    bars = [part.split("L") for path in paths for part in path.split("M")[1:]]
    ends = np.array([[point.split() for point in bar] for bar in bars], float).reshape(-1, 2, 2)
    return (ends - (left, top)) / (width, height)


def check_bars(tab, rows, shown_hz, bands):
    """Compare the bars of a drawing with the row that the CSV beside it names; return which."""
    _, csv = saved(tab, "#save-csv")
    time = csv.decode().splitlines()[1].removeprefix("# ").removesuffix(" UTC")
    number = rows.at(ms_of(time))
    values = rows.values[number]
    ends = bars_of(saved(tab, "#save-drawing")[1])
    assert len(ends) == len(bands)
    levels = HI - ends[:, :, 1] * (HI - LO)
    np.testing.assert_allclose(levels[:, 0], [band_level(values, k) for k in bands], atol=0.01)
    assert (levels[:, 0] == levels[:, 1]).all()
    hertz = [np.clip(1000.0 * 10.0 ** ((k - 0.5) / 10.0), *shown_hz) for k in bands]
    at = np.log(np.array(hertz) / shown_hz[0]) / np.log(shown_hz[1] / shown_hz[0])
    np.testing.assert_allclose(ends[:, 0, 0], at, atol=1e-4)
    # Between two bars there is a pixel.
    assert ends[-1, 1, 0] == pytest.approx(1, abs=0.003)
    return number


@pytest.mark.parametrize("direction", ["down", "right"])
def test_two_channels_over_each_other(open_context, source, tmp_path, direction):
    """In one panel each waterfall's readout is of its own channel, and names it."""
    other = Rows(tmp_path, 2)
    with (
        other.daemon.running(),
        running_web(
            source.daemon.endpoint, other.daemon.endpoint, "--recordings", tmp_path / "none"
        ) as (link, _),
    ):
        sources = {rows.daemon.endpoint: rows for rows in (source, other)}
        topics = [f"{TOPIC}@{endpoint}" for endpoint in sources]
        tab = opened(open_context, link, view(*topics, layout="over", rows=direction))
        wait_for_rows(tab, other, 250)
        read = tab.page.evaluate(READ, [5, PLACES])
        assert {one["endpoint"] for one in read} == set(sources)
        assert check(read, sources, LIVE_DB) > 0.6 * PLACES
        assert all(one["text"].startswith("mic · 0 · dbfs") for one in read)
        assert tab.problems == []
