"""Figures of the page as SVG, without a browser: XML, and the values of its lines and pixels."""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from spectrod.formats.picture.colormaps import colormap

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "spectrod" / "apps" / "web" / "page"
SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
WIDTH, PLOTS, SCALE = 600, 380, 2.0
LO, HI = -120.0, 0.0
BIN_HZ, N_BINS = 10.0, 101
ROW_MS, N_ROWS = 100.0, 20
HOSTILE = "</text><script>alert(1)</script> & \"' \x00\x1b\ud800\ufffe ]]> <!-- ]>\U0001f600"
PLAIN = "</text><script>alert(1)</script> & \"' \ufffd\ufffd\ufffd\ufffd ]]> <!-- ]>\U0001f600"

# Canvases of Node are their raw pixels: what a browser compresses as PNG is compared as it is.
RUN = """
import { readFileSync } from "node:fs";
const [page] = process.argv.slice(1);
globalThis.ImageData = class { constructor(data, width) { Object.assign(this, { data, width }); } };
globalThis.document = { createElement: () => ({
  getContext() { return { putImageData: ({ data }) => { this.data = data; } }; },
  toDataURL() { return `data:image/png;base64,${Buffer.from(this.data).toString("base64")}`; },
}) };
const { makeAxis } = await import(`${page}/plot/axis.js`);
const { drawFigure, figureHeight } = await import(`${page}/plot/figure.js`);
const { SvgPen } = await import(`${page}/plot/figurepens.js`);
const given = JSON.parse(readFileSync(0, "utf8"));
const { figure, size, rows } = given;
figure.axis = makeAxis({ ...figure.axis, width: 321 });
const ring = {
  length: rows.length,
  total: rows.length,
  at: (i) => ({ seq: 1, merged: 1, flags: 0, gapSamples: 0, missed: 0, ...rows[i] }),
  timeAt: (i) => rows[i].tMs,
};
for (const strip of figure.strips) strip.rows = ring;
const pen = new SvgPen((text, { size: px }) => 0.6 * px * [...text].length);
const end = drawFigure(pen, figure, size);
const height = figureHeight(figure, size, pen);
const svg = pen.document({ width: size.width, height, title: figure.title });
console.log(JSON.stringify({ svg, end, height }));
"""


def described(n_bins=N_BINS, bits=16):
    slices = [{"first": 0, "per_value": 1, "values": n_bins}]
    fields = {"id": 1, "first_hz": 0.0, "bin_hz": BIN_HZ, "n_bins": n_bins, "edges_hz": None}
    more = {"bits": bits, "lo": -327.67, "step": 0.01, "row_s": ROW_MS / 1e3, "fs": 2000.0}
    return fields | more | {"slices": slices, "unit": "dBFS", "statistic": "max"}


def rows_of(seed):
    """Return rows of random levels, the newest first, and their codes (N_ROWS, N_BINS)."""
    codes = np.random.default_rng(seed).integers(21000, 32000, (N_ROWS, N_BINS))
    about = described()
    times = [1e12 - ROW_MS / 2 - k * ROW_MS for k in range(N_ROWS)]
    rows = [
        {"tMs": t_ms, "values": row.tolist(), "description": about}
        for t_ms, row in zip(times, codes, strict=True)
    ]
    return rows, codes


def figure_of(values, *, kind="linear", f0=100.0, f1=900.0, **fields):
    """Return a figure of one line, with one waterfall of the last 2 s."""
    style = {"name": "now", "colour": "#0b57a4", "width": 1.5, "dash": None}
    strip = {"title": "", "newestMs": 1e12, "spanMs": N_ROWS * ROW_MS, "times": [], "entries": []}
    usual = {
        "title": "mic",
        "time": "2026-11-27 15:00:00.0 to 15:00:02.0 UTC",
        "zone": "UTC",
        "axis": {"kind": kind, "f0": f0, "f1": f1},
        "direction": "down",
        "split": 40,
        "levels": {"lo": LO, "hi": HI, "text": "Level, dBFS"},
        "colour": {"map": "viridis", "lo": LO, "hi": HI, "text": "Level, dBFS"},
        "layers": [{"values": values, "description": described(), "style": style}],
        "legends": [[{"text": "live", "stroke": "#0b57a4", "dash": None}]],
        "readings": [],
        "events": [],
        "cursors": [],
        "band": None,
        "over": None,
        "strips": [strip | {"box": None}],
    }
    return usual | fields


def drawn(figure, rows=(), **size):
    """Return the root of a figure's SVG, and its height."""
    command = [shutil.which("node"), "--input-type=module", "--eval", RUN, "--", str(PAGE)]
    given = {"width": WIDTH, "plotsHeight": PLOTS, "scale": SCALE} | size
    done = subprocess.run(
        command,
        input=json.dumps({"figure": figure, "size": given, "rows": list(rows)}),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made = json.loads(done.stdout)
    assert made["end"] == made["height"]
    root = ET.fromstring(made["svg"])  # noqa: S314 - our own
    return root, made["height"]


def parts_of(path):
    """Return the parts of a path of lines, each an array of points (n, 2)."""
    parts = path.get("d").split("M")[1:]
    return [np.array([point.split() for point in part.split("L")], float) for part in parts]


def plot_of(root):
    """Return the frame of the line spectrum: left, top, width, height."""
    clip = root.find(f"{SVG}clipPath/{SVG}rect")
    return [float(clip.get(name)) for name in ("x", "y", "width", "height")]


@pytest.mark.parametrize(("kind", "warp"), [("linear", np.array), ("log", np.log)])
def test_lines_have_the_values_of_their_row(kind, warp):
    """Each point of a figure's line is a value at its frequency and level; no data parts it."""
    codes = np.random.default_rng(5).integers(21000, 32000, N_BINS)
    codes[40] = 65535
    root, _ = drawn(figure_of(codes.tolist(), kind=kind))
    left, top, width, height = plot_of(root)
    (path,) = [one for one in root.iter(f"{SVG}path") if one.get("class") == "line now"]
    before, after = parts_of(path)
    bins = np.array([*range(9, 40), *range(41, 92)])
    points = np.concatenate([before, after])
    assert len(before) == 31
    place = (warp(bins * BIN_HZ) - warp(100.0)) / (warp(900.0) - warp(100.0))
    np.testing.assert_allclose(points[:, 0], left + place * width, atol=0.6e-3)
    levels = HI - (points[:, 1] - top) / height * (HI - LO)
    # Half of the last of three decimals, in decibels.
    np.testing.assert_allclose(levels, -327.67 + 0.01 * codes[bins], atol=0.6e-3 * 120 / height)


def test_bands_are_bars_from_edge_to_edge():
    """A band's bar has its edges, its level and a tinted area below; one without data has none."""
    edges = 100.0 * 2.0 ** (np.arange(4) / 3)
    lower, upper = edges[:-1].tolist(), edges[1:].tolist()
    about = figure_of([30000, 65535, 25000], kind="log", f0=100.0, f1=200.0)
    bands = described(3) | {"edges_hz": [lower, upper], "kind": "bands"}
    about["layers"][0] |= {"description": bands}
    about["layers"][0]["style"] |= {"isFilled": True}
    root, _ = drawn(about)
    left, top, width, height = plot_of(root)
    (path,) = [one for one in root.iter(f"{SVG}path") if one.get("class") == "line now"]
    bars = parts_of(path)
    areas = [one for one in root.iter(f"{SVG}rect") if one.get("fill-opacity") == "0.2"]
    assert len(bars) == len(areas) == 2
    for bar, area, k, code in zip(bars, areas, (0, 2), (30000, 25000), strict=True):
        y = top + (HI - (-327.67 + 0.01 * code)) / (HI - LO) * height
        # Wide bars keep a pixel between them.
        x0, x1 = left + k / 3 * width, left + (k + 1) / 3 * width
        assert bar[0, 0] == pytest.approx(x0, abs=1e-3)
        assert x1 - 1.001 <= bar[1, 0] <= x1 + 1e-3
        assert bar[:, 1] == pytest.approx(y, abs=1e-3)
        assert float(area.get("y")) + float(area.get("height")) == pytest.approx(top + height)


@pytest.mark.parametrize("direction", ["down", "up", "right"])
def test_the_waterfall_has_the_colours_of_its_rows(direction):
    """Each pixel of a figure's waterfall has the shade of the level of its row and bin."""
    rows, codes = rows_of(6)
    root, _ = drawn(figure_of(codes[0].tolist(), direction=direction), rows)
    image = root.findall(f".//{SVG}image")[0]
    width, height = (round(float(image.get(name)) * SCALE) for name in ("width", "height"))
    content = base64.b64decode(image.get(HREF).partition("base64,")[2])
    pixels = np.frombuffer(content, np.uint8).reshape(height, width, 4)[..., :3].astype(int)
    if direction == "up":
        pixels = pixels[::-1]
    if direction == "right":
        pixels = pixels[::-1, ::-1].transpose(1, 0, 2)
    height, width = pixels.shape[:2]
    shades = colormap("viridis", 256).astype(int)
    random = np.random.default_rng(8)
    for k in range(N_ROWS):
        y = int((k + 0.5) * height / N_ROWS)
        x = int(random.integers(width))
        edges = 100.0 + np.array([x, x + 1]) * 800.0 / width
        first, last = np.floor(edges / BIN_HZ + 0.5).astype(int)
        level = -327.67 + 0.01 * codes[k, first : last + 1].max()
        shade = int((level - LO) / (HI - LO) * 256)
        assert np.abs(shades[shade - 1 : shade + 2] - pixels[y, x]).sum(axis=1).min() == 0


def test_hostile_names_are_texts():
    """Names with markup, and signs that no XML has, are text; nothing else is in the drawing."""
    about = figure_of([30000] * N_BINS, title=HOSTILE)
    about["readings"] = [HOSTILE]
    about["legends"] = [[{"text": HOSTILE, "stroke": '"/><script/>', "dash": [1, 2]}]]
    about["layers"][0]["style"] |= {"name": HOSTILE, "colour": '"onload="alert(1)'}
    about["levels"]["text"] = about["colour"]["text"] = HOSTILE
    about["strips"][0] |= {"title": HOSTILE}
    root, _ = drawn(about)
    assert root.find(f"{SVG}title").text == PLAIN
    texts = " ".join(one.text for one in root.iter(f"{SVG}text"))
    assert texts.count("<script>alert(1)</script>") >= 3
    names = {one.tag.removeprefix(SVG) for one in root.iter()}
    assert names == {"svg", "title", "rect", "path", "text", "image", "clipPath", "g"}
    for one in root.iter():
        assert not [name for name in one.attrib if name.startswith("on")]
        assert one.get(HREF, "data:image/png;base64,").startswith("data:image/png;base64,")


def test_a_long_legend_and_title_are_whole():
    """Words that do not fit beside each other take more lines; none is left out or wider."""
    title = " ".join(f"channel-{k}" for k in range(40))
    legend = [{"text": f"stored {k} {'x' * 150}", "stroke": "#000", "dash": None} for k in range(3)]
    root, height = drawn(figure_of([30000] * N_BINS, title=title, legends=[legend]))
    texts = [one for one in root.iter(f"{SVG}text") if one.get("transform") is None]
    joined = " ".join(one.text for one in texts)
    assert all(f"channel-{k}" in joined for k in range(40))
    assert joined.count("x") >= 3 * 150
    for one in texts:
        if one.get("text-anchor") is None:
            wide = 0.6 * float(one.get("font-size")) * len(one.text)
            assert float(one.get("x")) + wide <= WIDTH
    assert height > drawn(figure_of([30000] * N_BINS))[1]


@pytest.mark.parametrize(
    ("direction", "expected_box", "axis", "line_at"),
    [
        ("down", (1 / 4, 1 / 2, 1 / 4, 1 / 4), 1, 1 / 4),
        ("up", (1 / 4, 1 / 4, 1 / 4, 1 / 4), 1, 3 / 4),
        ("right", (1 / 4, 1 / 2, 1 / 4, 1 / 4), 0, 3 / 4),
    ],
)
def test_events_are_at_their_times_and_bands(direction, expected_box, axis, line_at):
    """An event with a length and a band is a box of both, one without a line; texts come last."""
    rows, codes = rows_of(9)
    texts_of_events = ["Event 15:00:01.0, mic, gap: lost"]
    about = figure_of(codes[0].tolist(), direction=direction, events=texts_of_events)
    end = about["strips"][0]["newestMs"]
    box = {"t0": end - 1500, "t1": end - 1000, "f0": 300, "f1": 500}
    line = {"t0": end - 500, "t1": end - 500, "f0": None, "f1": None}
    about["strips"][0] |= {"entries": [box, line]}
    root, _ = drawn(about, rows)
    image = root.find(f".//{SVG}image")
    left, top, width, height = (float(image.get(k)) for k in ("x", "y", "width", "height"))
    (drawn_box,) = [one for one in root.iter(f"{SVG}rect") if one.get("stroke") == "#b3261e"]
    found = [float(drawn_box.get(k)) for k in ("x", "y", "width", "height")]
    x, y, wide, high = expected_box
    expected = [left + x * width, top + y * height, wide * width, high * height]
    assert found == pytest.approx(expected, abs=0.6)  # the picture is on whole pixels of the figure
    marks = [one for one in root.iter(f"{SVG}path") if one.get("class") == "event"]
    (across,) = [one for one in marks if one.get("stroke") is not None]
    at = (left + line_at * width, top + line_at * height)[axis]
    assert parts_of(across)[0][:, axis] == pytest.approx(at, abs=0.6)
    assert len(marks) == 3
    tips = [parts_of(one)[0][0] for one in marks if one.get("stroke") is None]
    assert tips[1][axis] == pytest.approx(at, abs=0.6)
    edge = left if axis == 1 else top + height
    assert [tip[1 - axis] for tip in tips] == pytest.approx([edge, edge], abs=0.6)
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert texts.index("Event 15:00:01.0, mic, gap: lost") == texts.index("live") + 1


@pytest.mark.parametrize("direction", ["down", "up", "right"])
def test_scales_name_their_units(direction):
    """Axes, colours and time have names with units, and cursors their letters and lines."""
    rows, codes = rows_of(7)
    cursors = [{"name": "A", "hz": 500.0}]
    about = figure_of(codes[0].tolist(), direction=direction, cursors=cursors, band=[200, 300])
    about["strips"][0] |= {"times": [{"name": "A", "tMs": 1e12 - 1000}]}
    root, _ = drawn(about, rows)
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert {"Frequency, Hz", "Level, dBFS", "A"} < set(texts)
    if direction == "right":
        assert "Time, UTC, 2001-09-09" in texts
        assert texts.count("Frequency, Hz") == 2
    else:
        assert {"Time, UTC", "2001-09-09"} < set(texts)
    assert texts.count("Level, dBFS") == 2
    left, _, width, _ = plot_of(root)
    cursor = next(one for one in root.iter(f"{SVG}path") if one.get("class") == "cursor A")
    assert parts_of(cursor)[0][:, 0] == pytest.approx(left + width / 2, abs=1e-3)
