"""A season behind one address in Chromium: days, trend, difference and links, without a daemon."""

import contextlib
import datetime as dt
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

TIMEOUT_MS = 60_000
S = 10**9
SPEC = SpectrumSpec(
    fs=1000.0, win_length=1000, nfft=1000, hop=1000, rate_hz=1 / 600, averaging="mean"
)
BEGIN = dt.datetime(2026, 3, 27, 23, tzinfo=dt.UTC)
"""Midnight of 28 March in Berlin, where the 29th has 23 hours."""
DAYS = 4
NORTH_DB, SOUTH_DB = -60.0, -66.0
LEVEL_DB = NORTH_DB + 10.0 * math.log10(501.0 / 0.5)
"""Of all power: a density in 501 bins of 1 Hz, in dBFS."""


def written(folder, name, level_db):
    """Write rows of ten minutes of one density; of the third day nothing."""
    place = folder / "all" / name
    place.mkdir(parents=True)
    writer = PyramidWriter(
        place / "pyramid", Description(SPEC, name, ("0",), "spectrod test"), PyramidOptions(600.0)
    )
    steps = np.array([n for n in range(DAYS * 144 - 6) if n // 144 != 2], np.int64)
    values = np.full((len(steps), 1, SPEC.n_values), 10 ** (level_db / 10), np.float32)
    t_ns = int(BEGIN.timestamp()) * S + steps * 600 * S
    writer.write(SpectrumBatch(values, steps * 600_000, t_ns, t_ns, SPEC, "numpy"))
    writer.finish()


@contextlib.contextmanager
def serving(*paths):
    """Serve archives; yield the address of the page."""
    command = [sys.executable, "-m", "spectrod", "web", *map(str, paths), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def season(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive") / "season"
    written(folder, "north", NORTH_DB)
    written(folder, "south", SOUTH_DB)
    with serving(folder) as address:
        yield address, folder


def opened(open_context, address, fragment="", **options):
    options = {"viewport": {"width": 1366, "height": 768}, "timezone_id": "Europe/Berlin"} | options
    page = open_context(**options).new_page()
    page.errors = []
    page.on("console", lambda message: page.errors.append(message.text))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.goto(address + fragment)
    return page


def labels(page):
    return page.locator(".day").evaluate_all("all => all.map(one => one.ariaLabel)")


def when(page, script):
    page.wait_for_function(script, timeout=TIMEOUT_MS)


DRAWN = '() => document.querySelectorAll(".day[data-state=data]").length >= 3'
MIDDLE = """() => {
  const canvas = document.querySelector('.day[data-state=data] canvas');
  const {data} = canvas.getContext("2d").getImageData(canvas.width >> 1, canvas.height >> 1, 1, 1);
  return [...data];
}"""


def test_days_are_the_first_view_of_an_archive(season, open_context):
    """Local days with their lengths, those without data hatched, and nothing is waited for."""
    address, _ = season
    page = opened(open_context, address)
    when(page, DRAWN)
    assert labels(page) == [
        "2026-03-28: data in 100 % of the day",
        "2026-03-29 23 h: data in 100 % of the day",
        "2026-03-30: data in 4 % of the day",
        "2026-03-31: data in 96 % of the day",
    ]
    assert page.locator(".month h2").all_text_contents() == ["March 2026"]
    assert page.locator(".day").first.evaluate("one => one.style.gridColumnStart") == "6"
    said = page.locator("body").inner_text().lower()
    for word in ("waiting", "daemon", "no data from", "rows none", "none yet"):
        assert word not in said
    assert page.errors == []


def test_the_trend_is_the_level_of_all_power(season, open_context):
    """What is under the pointer is what the values say, and no data where none are."""
    address, _ = season
    page = opened(open_context, address)
    when(page, DRAWN)
    box = page.locator("canvas.trend").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 20)
    readout = page.locator("#season .readout")
    assert readout.inner_text().endswith(f"{LEVEL_DB:.1f} dBFS")
    page.mouse.move(box["x"] + box["width"] * 0.65, box["y"] + 20)
    assert readout.inner_text().endswith("no data")


def test_a_click_opens_the_day(season, open_context):
    """The waterfall ends with the day and is as long; the link keeps it, and Days comes back.

    The line spectrum is that of the day's loudest moment: at its end there need be no data.
    """
    address, _ = season
    page = opened(open_context, address)
    when(page, DRAWN)
    assert page.locator("#events-box").is_visible()
    assert page.locator("#peaks").is_hidden()
    page.locator(".day").nth(1).click()
    end = dt.datetime(2026, 3, 29, 22, tzinfo=dt.UTC)
    page.wait_for_url(lambda url: f"t={int(end.timestamp())}000&span=82800" in url)
    when(page, '() => document.querySelector(".waterfall:not([data-empty])") !== null')
    assert page.locator("#season").is_hidden()
    page.wait_for_url(lambda url: "&ct=" in url)
    loudest_ms = float(page.url.partition("&ct=")[2].partition("&")[0])
    assert end.timestamp() - 82_800 <= loudest_ms / 1000 <= end.timestamp()
    other = opened(open_context, page.url.split("#")[0], "#" + page.url.split("#")[1])
    when(other, '() => document.querySelector(".waterfall:not([data-empty])") !== null')
    page.click("#days")
    when(page, DRAWN)
    assert page.errors == other.errors == []


def test_the_difference_of_two_channels_is_coloured_about_0(season, open_context):
    """North is 6 dB above south: red; the other way round blue, with the scale's ends even."""
    address, _ = season
    north, south = "spec/north/0/density/", "spec/south/0/density/"
    page = opened(open_context, address, f"#v=1&topic={north}&days=1")
    when(page, DRAWN)
    page.locator("#season select").select_option(south)
    ends = '() => document.querySelector(".season-scale").innerText.replace(/\\s+/g, " ").trim()'
    when(page, f'() => ({ends})() === "-6 6 dB"')
    red, _, blue, _ = page.evaluate(MIDDLE)
    assert red > blue + 60
    other = opened(open_context, address, f"#v=1&topic={south}&less={north}&days=1")
    when(other, DRAWN)
    red, _, blue, _ = other.evaluate(MIDDLE)
    assert blue > red + 60
    assert page.errors == other.errors == []


def test_an_archive_that_vanishes_is_said_to_be_gone(season, open_context):
    """In the head of the page, at once enough; when it comes again it is shown again."""
    address, folder = season
    page = opened(open_context, address)
    when(page, DRAWN)
    away = folder.rename(folder.with_name("away"))
    when(page, '() => connection.innerText === "season: is no longer there"')
    assert page.locator("#connection").get_attribute("data-grade") == "bad"
    away.rename(folder)
    when(page, '() => connection.innerText === "season"')
    assert len(labels(page)) == DAYS


@pytest.mark.parametrize("size", [(360, 640), (1920, 1080)])
def test_days_fit_the_screen(season, open_context, size):
    """Seven days a week at any width, each a target for a finger."""
    address, _ = season
    width, height = size
    page = opened(open_context, address, viewport={"width": width, "height": height})
    when(page, DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator(".day").first.bounding_box()
    assert min(box["width"], box["height"]) >= 24


@pytest.fixture(scope="module")
def axe():
    path = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        pytest.fail(f"{path} is missing: make rest-needs installs it")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("width", "look"), [(1366, "light"), (360, "dark"), (320, "light"), (1366, "forced dark")]
)
def test_days_shut_nobody_out(season, open_context, axe, width, look):
    """axe-core finds nothing at any size and theme, and a day is opened by keys alone."""
    address, _ = season
    options = {
        "viewport": {"width": width, "height": 768},
        "color_scheme": "dark" if "dark" in look else "light",
        "forced_colors": "active" if "forced" in look else "none",
    }
    fragment = "#v=1&topic=spec/north/0/density/&topic=spec/south/0/density/&days=1"
    page = opened(open_context, address, fragment, **options)
    when(page, DRAWN)
    found = page.evaluate(f"() => {{ {axe}; return axe.run(); }}")
    assert [
        (one["id"], [node["target"] for node in one["nodes"]]) for one in found["violations"]
    ] == []
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert page.locator('.day[tabindex="0"]').count() == 2
    page.locator(".day").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.ariaLabel")
    assert focused == "2026-03-31: data in 96 % of the day"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    when(page, "() => season.hidden")
    page.wait_for_url(lambda url: "t=1774821600000&span=82800" in url)
    assert page.errors == []


def test_a_day_of_a_difference_opens_that_and_the_other_channel(season, open_context):
    """North is 6 dB above south at the tone; the scale has 0 dB in its middle."""
    address, _ = season
    fragment = "#v=1&topic=spec/north/0/density/&less=spec/south/0/density/&days=1"
    page = opened(open_context, address, fragment)
    when(page, DRAWN)
    page.locator(".day").first.click()
    when(page, '() => document.querySelectorAll(".waterfall:not([data-empty])").length === 2')
    titles = page.locator(".panel h2").all_text_contents()
    assert titles == ["north · 0 · density less south · 0 · density", "south · 0 · density"]
    ends = page.locator(".panel").first.locator(".level-end")
    # At one moment: the range follows what comes.
    hi, lo = ends.evaluate_all("ends => ends.map((one) => Number(one.ariaValueNow))")
    assert lo == -hi
    assert page.locator("#topics input[type=checkbox]:checked").count() == 2
    page.wait_for_url(lambda url: "&ct=" in url)
    when(page, '() => / 6\\.\\d dB$/.test(document.querySelector(".cursor-label").innerText)')
    page.locator("#less").select_option("")
    when(
        page, '() => document.querySelectorAll(".panel h2")[0].innerText === "north · 0 · density"'
    )
    assert page.errors == []


N_EVENTS = 12_000


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return results of a job with events of half a second through all four days."""
    folder = tmp_path_factory.mktemp("job") / "results"
    written(folder / "history", "north", NORTH_DB)
    (folder / "plan.jsonl").write_text("{}\n")
    (folder / "north").mkdir()
    step = (DAYS * dt.timedelta(days=1) - dt.timedelta(hours=1)) / N_EVENTS
    lines = [f"{(BEGIN + n * step).isoformat()},{n},0.5,0,100,200,{n}\n" for n in range(N_EVENTS)]
    table = folder / "north" / "north_20260327_events.csv"
    table.write_text("begin,begin_s,duration_s,channel,f_min_hz,f_max_hz,level\n" + "".join(lines))
    return folder


def test_events_of_results_are_marks_and_a_list(results, open_context):
    """Marks at all heights in their band, one click for those of a place; one goes to its time."""
    with serving(results) as address:
        page = opened(open_context, address, f"#v=1&days=0&axis=linear&span={DAYS * 86400}")
        when(page, f'() => document.querySelector("#events-count").innerText === "{N_EVENTS}"')
        when(page, '() => document.querySelectorAll(".event-marks > [data-band]").length > 80')
        whole = page.locator(".waterfall").bounding_box()
        boxes = page.locator(".event-marks > [data-band]").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(({x, y, width}) => "
            "[x, y, width])"
        )
        left, tops, width = np.array(boxes).T
        # The axis is 0 to 500 Hz.
        assert np.allclose(left - whole["x"], whole["width"] / 5, atol=1.5)
        assert np.allclose(width, whole["width"] / 5, atol=1.5)
        assert np.ptp(tops) > 0.9 * whole["height"]
        page.locator(".event-targets button").last.click()
        assert page.locator("#mark-card").inner_text().partition(" events, the first")[1]
        page.locator("#mark-card").get_by_role("button", name="Close").click()
        page.locator("#events-box summary").click()
        when(page, '() => document.querySelectorAll("#events tbody tr").length === 500')
        page.get_by_role("searchbox", name="Words in events").fill("321.0")
        when(page, '() => document.querySelectorAll("#events tbody tr").length === 12')
        page.locator("#events tbody button").last.click()
        page.wait_for_url(lambda url: "t=" in url)
        assert "2026-03-28" in page.locator("#mark-card").inner_text()
        assert page.errors == []
