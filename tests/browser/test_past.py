"""The past on the page in Chromium: recordings, the daemon and the server are real."""

import contextlib
import math
import os
import re
import subprocess
import sys
import time
import urllib.parse

import numpy as np
import pytest
from programs import SOURCES

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

TIMEOUT_MS = 60_000
MINUTES = 9
"""The recording ends a minute before the live rows begin."""
SPEC = SpectrumSpec(fs=48000.0, win_length=4800, nfft=4800, hop=4800, scaling="dbfs")
NAME = "spec/mic/0/dbfs/"
BRIGHTEST = """y => {
  const canvas = document.querySelector(".waterfall canvas");
  if (canvas === null || canvas.width === 0) return NaN;
  const copy = new OffscreenCanvas(canvas.width, 1);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, -Math.round(y * canvas.height));
  const { data } = context.getImageData(0, 0, canvas.width, 1);
  const light = Array.from({ length: canvas.width }, (_, x) => data[4 * x + 1]);
  const best = Math.max(...light);
  if (best - Math.min(...light) < 60) return NaN;
  return (light.indexOf(best) + light.lastIndexOf(best) + 1) / 2 / canvas.width;
}"""
"""Brightest place of a line of the waterfall, as shares of its height and width; NaN without."""


def recorded(folder, begin_ns):
    """Write minutes of a tone of 5 kHz, -20 dBFS, as the recorder does."""
    place = folder / "all" / "mic"
    place.mkdir(parents=True)
    about = Description(SPEC, "mic", ("0",), "spectrod test")
    n_rows = MINUTES * 600
    values = np.full((n_rows, 1, SPEC.n_values), -120.0, np.float32)
    values[:, :, 499:502] = (-26.0, -20.0, -26.0)
    index = np.arange(n_rows, dtype=np.int64) * SPEC.hop
    t_ns = begin_ns + index * 10**9 // 48000
    batch = SpectrumBatch(values, index, t_ns, t_ns, SPEC, "numpy")
    segment = SegmentWriter(place / "one.spd", about)
    segment.write(batch)
    segment.finish()
    pyramid = PyramidWriter(place / "pyramid", about, PyramidOptions(values_max=1024))
    pyramid.write(batch)
    pyramid.finish()


@contextlib.contextmanager
def running(*arguments, **settings):
    """Run spectrod; kill it in the end."""
    process = subprocess.Popen([sys.executable, "-m", "spectrod", *arguments], **settings)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def address(tmp_path):
    """Run a daemon of 1 kHz, and a server that has ten minutes of 5 kHz before it."""
    endpoint = f"ipc://{tmp_path}/spectrum.ipc"
    (tmp_path / "c.toml").write_text(SOURCES.format(endpoint=endpoint))
    recorded(tmp_path / "recordings", time.time_ns() - (MINUTES + 1) * 60 * 10**9)
    environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path), "STATE_DIRECTORY": str(tmp_path)}
    run = ["run", "--config", tmp_path / "c.toml", "--show", "none", "--log-level", "error"]
    web = ["web", endpoint, "--listen", "127.0.0.1:0", "--recordings", tmp_path / "recordings"]
    with (
        running(*run, env=environment),
        running(*web, stdout=subprocess.PIPE, text=True) as server,
    ):
        line = server.stdout.readline()
        assert line.startswith("the page is at "), line
        yield line.split()[-1]


@pytest.fixture
def page(chromium, address):  # the server ends after the page
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    yield page
    context.close()
    assert problems == []


def wait_for_tone(page, height, hertz):
    """Wait until a line of the waterfall is brightest at a frequency of a linear axis."""
    return page.wait_for_function(
        f"([y, share]) => Math.abs(({BRIGHTEST})(y) - share) < 0.01", arg=[height, hertz / 24000]
    )


def test_the_waterfall_goes_on_behind_the_live_rows(page, address):
    """Below what the page has received stands what was recorded, and a gap where nothing was."""
    page.goto(f"{address}#v=1&topic={NAME}&axis=linear&span=600&db=-120:0")
    wait_for_tone(page, 0.001, 1000)
    wait_for_tone(page, 0.5, 5000)
    # The minute before the page came; the hatching of gaps is as light all over.
    middle = page.evaluate(BRIGHTEST, 0.07)
    assert math.isnan(middle) or abs(middle - 0.5) < 0.01


def test_scrolling_back_and_returning_to_live(page, address):
    """Shift and an arrow key go back into recordings, with the line spectrum; End is live again."""
    page.goto(f"{address}#v=1&topic={NAME}&axis=linear&span=120&db=-120:0")
    wait_for_tone(page, 0.001, 1000)
    page.locator(".surface").first.focus()
    for _ in range(8):
        page.keyboard.press("Shift+ArrowDown")
    page.locator(".banner", has_text="the past").wait_for()
    wait_for_tone(page, 0.1, 5000)
    box = page.locator(".surface").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 5000 / 24000, box["y"] + 40)
    page.locator("#cursors td", has_text="-20.0 dBFS").first.wait_for()
    page.keyboard.press("End")
    wait_for_tone(page, 0.001, 1000)


def test_a_link_to_a_time_shows_it(page, address):
    """A fragment with a time opens in the past, down to single rows."""
    t_ms = round(1000 * time.time()) - 300_000
    page.goto(f"{address}#v=1&topic={NAME}&axis=linear&span=5&db=-120:0&t={t_ms}")
    for height in (0.05, 0.5, 0.95):
        wait_for_tone(page, height, 5000)


def test_the_time_that_is_shown_is_saved(page, address):
    """Buttons save levels of what is on the screen, as X does, and the recorded rows themselves."""
    t_ms = round(1000 * time.time()) - 300_000
    page.goto(f"{address}#v=1&topic={NAME}&axis=linear&span=5&db=-120:0&t={t_ms}")
    wait_for_tone(page, 0.5, 5000)
    with page.expect_download() as pressed:
        page.keyboard.press("x")
    page.locator("summary", has_text="Save").click()
    for button, ending in (("#save-shown", ".csv"), ("#save-rows", ".spd")):
        with page.expect_download() as saved:
            page.locator(button).click()
        assert saved.value.suggested_filename.endswith(ending)
        content = saved.value.path().read_bytes()
        if ending == ".csv":
            assert pressed.value.path().read_bytes() == content
            table = [line.split(",") for line in content.decode().splitlines() if line[0] != "#"]
            place = 2 + int(np.argmin(np.abs(np.array(table[0][2:], float) - 5000)))
            assert {row[place] for row in table[1:] if row[place]} == {"-20.00"}
        else:
            assert content.startswith(b"SPD\x01")


def test_a_selection_is_measured_from_recorded_rows_zoomed_to_and_saved(page, address):
    """Leq and peak of a tone on a bin are its level, at its frequency, of all rows of the box."""
    t_ms = round(1000 * time.time()) - 300_000
    page.goto(f"{address}#v=1&topic={NAME}&axis=linear&span=60&db=-120:0&t={t_ms}")
    wait_for_tone(page, 0.5, 5000)
    box = page.locator(".waterfall").bounding_box()
    x0, x1 = (box["x"] + box["width"] * hertz / 24000 for hertz in (4000, 6000))
    y0, y1 = (box["y"] + box["height"] * share for share in (0.25, 0.75))
    page.locator("#selecting").click()
    page.mouse.move(x0, y0)
    page.mouse.down()
    page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2)
    page.mouse.move(x1, y1)
    page.mouse.up()
    card = page.locator(".selection-card[aria-label=Selection]")
    # Three bins of the Hann window have -20 dBFS together: 1 + 2 * 10^-0.6 over 1.5 bins.
    said = "Leq of the band -20.0 dBFS; peak -20.0 dBFS at 5.000 kHz"
    card.locator("li", has_text=said).wait_for()
    rows = int(re.search(r"\((\d+) rows", card.inner_text())[1])
    assert rows == pytest.approx(300, abs=600 * 4 / box["height"] + 3)
    assert page.locator("#selecting").get_attribute("aria-pressed") == "false"
    for button, ending in (("PNG", ".png"), ("CSV", ".csv")):
        with page.expect_download() as found:
            card.get_by_role("button", name=button).click()
        assert found.value.suggested_filename.endswith(ending)
        saved = found.value.path().read_bytes()
        assert saved.startswith(b"\x89PNG" if ending == ".png" else b"# spec/mic/0/dbfs/, dBFS")
    page.wait_for_function("() => location.hash.includes('&sel=')")
    page.reload()
    card.locator("li", has_text="Leq of the band -20.0 dBFS").wait_for()
    card.get_by_role("button", name="Zoom to it").click()
    card.wait_for(state="hidden")
    page.wait_for_function("() => location.hash.includes('&f=')")
    fields = dict(urllib.parse.parse_qsl(page.url.partition("#")[2]))
    low, high = map(float, fields["f"].split(":"))
    assert (low, high) == pytest.approx((4000, 6000), abs=2 * 24000 / box["width"])
    assert float(fields["span"]) == pytest.approx(30, abs=240 / box["height"])


def test_the_strip_of_all_that_is_stored_jumps_moves_and_resizes(page, address):
    """A click goes to that time, a drag of the window or of its end changes what is shown."""
    page.goto(f"{address}#v=1&topic={NAME}&axis=linear&span=60&db=-120:0")
    wait_for_tone(page, 0.001, 1000)
    strip, window = page.locator("#overview"), page.locator(".overview-window")
    window.wait_for()
    wait_for_stored(page)
    box = strip.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + 8)
    wait_for_tone(page, 0.5, 5000)
    first_ms, whole_ms = shown_ms(page), (MINUTES + 1) * 60_000
    assert abs(time.time() * 1000 - 0.6 * whole_ms - first_ms) < 0.15 * whole_ms
    grip = window.bounding_box()
    y = grip["y"] + grip["height"] / 2
    page.mouse.move(grip["x"] + grip["width"] / 2, y)
    page.mouse.down()
    page.mouse.move(grip["x"] + grip["width"] / 2 + 40, y)
    page.mouse.up()
    page.wait_for_function(
        "t => Number(new URLSearchParams(location.hash).get('t')) > t", arg=first_ms
    )
    moved_ms = shown_ms(page) - first_ms
    assert moved_ms == pytest.approx(40 / box["width"] * whole_ms, rel=0.25)
    window.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "t => Number(new URLSearchParams(location.hash).get('t')) === t",
        arg=round(first_ms + moved_ms) - 30_000,
    )
    assert window.get_attribute("aria-valuetext").endswith(" UTC")
    page.keyboard.press("End")
    page.wait_for_function("() => !location.hash.includes('&t=')")


def shown_ms(page):
    """Return the time at the top of the waterfall."""
    page.wait_for_function("() => location.hash.includes('&t=')")
    return float(dict(urllib.parse.parse_qsl(page.url.partition("#")[2]))["t"])


def wait_for_stored(page):
    """Wait until the strip covers the recording: it may not be indexed at first."""
    page.wait_for_function(
        """least => {
          const { ariaValueMin, ariaValueMax } = document.querySelector(".overview-window");
          return ariaValueMax - ariaValueMin > least;
        }""",
        arg=MINUTES * 60,
    )
