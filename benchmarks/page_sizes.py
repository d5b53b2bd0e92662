"""Pictures of the page at five sizes, two densities of pixels, three looks, in two browsers.

    python benchmarks/page_sizes.py FOLDER [--browsers chromium,firefox] [--sizes 360x640,...]
        [--densities 1,3]

A made-up publisher sends two channels; ``spectrod web`` serves them; Debian's Chromium and Firefox
show them, with a fresh profile and no pane open, and once more with the pane of measurements. Each
picture is a PNG in FOLDER, and ``BROWSER-LOOK-DENSITY.png`` has all of them beside each other. The
looks are light, dark and high contrast: in Chromium ``prefers-contrast: more``, in Firefox colours
of the user in place of the page's. It ends with status 1, and a line for each, where a page is
wider than its window, a button lies outside of it, a plot is lower than 80 px, the console has an
error, or axe-core, if the browser tests have installed it, finds a violation.
"""

import argparse
import base64
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Protocol

from _report import ROOT
from bench_web import Rows, served
from PIL import Image
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(ROOT / "tests" / "browser"))

from remote import FIREFOX, FirefoxTab, firefox_tab, until

CHROMIUM = "/usr/bin/chromium"
SIZES = "360x640,768x1024,1366x768,1920x1080,3840x2160"
LOOKS = ("light", "dark", "contrast")
TOPICS = "&".join(f"topic=spec/mic/{n}/dbfs/" for n in range(2))
AXE = ROOT / "tests" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
AXE_RUN = """axe.run({
  resultTypes: ["violations"],
  rules: { "color-contrast": { enabled: !matchMedia("(forced-colors: active)").matches } },
}).then(({ violations }) =>
  violations.map(({ id, nodes }) => `${id} at ${nodes[0].target}`).join("; "))"""
"""What axe-core finds; forced colours are the system's, and so is their contrast."""
FIREFOX_LOOKS: dict[str, dict[str, int]] = {
    "light": {"layout.css.prefers-color-scheme.content-override": 1},
    "dark": {"layout.css.prefers-color-scheme.content-override": 0},
    "contrast": {"browser.display.document_color_use": 2},
}
FILL_MS = 4000
TIMEOUT_MS = 180_000.0
SHEET_PX = 480
"""Height of a picture among others."""

DRAWN = """[...document.querySelectorAll(".waterfall canvas")].length === 2
  && [...document.querySelectorAll(".banner")].every((one) => one.hidden) && "drawn\""""
SETTLE = f"new Promise((done) => setTimeout(() => requestAnimationFrame(() => done(1)), {FILL_MS}))"
OPEN = "document.getElementById('measure').click()"
FAULTS = """(() => {
  const found = [];
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) found.push(`${scrollWidth} px wide`);
  for (const one of document.querySelectorAll("header button, header a")) {
    const { left, right, width } = one.getBoundingClientRect();
    if (width > 0 && !one.matches(".skip") && (left < 0 || right > innerWidth + 1)) {
      found.push(`${one.textContent.trim()}: outside`);
    }
  }
  for (const one of document.querySelectorAll(".surface")) {
    const { height } = one.getBoundingClientRect();
    if (height < 80) found.push(`a plot is ${height} px high`);
  }
  return found.join("; ");
})()"""


class Shown(Protocol):
    """A page that a browser shows."""

    def evaluate(self, expression: str) -> str | int | None:
        """Return the value of an expression, or of what it promises."""

    def picture(self) -> bytes:
        """Return a PNG of the window."""

    def problems(self) -> list[str]:
        """Return what the console has said of errors."""


@contextlib.contextmanager
def chromium_pages(look: str) -> Iterator[Callable[[int, int, int, str], Shown]]:
    """Yield a function that opens an address in a window of a size and density."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def opened(width: int, height: int, density: int, address: str) -> Shown:
            for old in browser.contexts:
                old.close()
            context = browser.new_context(
                viewport={"width": width, "height": height},
                device_scale_factor=density,
                color_scheme="dark" if look == "dark" else "light",
                contrast="more" if look == "contrast" else "no-preference",
            )
            return ChromiumPage(context.new_page(), address)

        yield opened
        browser.close()


class ChromiumPage:
    """A page in a context of its own."""

    def __init__(self, page: Page, address: str) -> None:
        self._page = page
        self._said: list[str] = []
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: self._said.append(str(error)))
        page.on("console", lambda one: one.type == "error" and self._said.append(one.text))
        page.goto(address)

    def evaluate(self, expression: str) -> str | int | None:
        """Return the value of an expression, or of what it promises."""
        found: str | int | None = self._page.evaluate(expression)
        return found

    def picture(self) -> bytes:
        """Return a PNG of the window."""
        return bytes(self._page.screenshot(timeout=TIMEOUT_MS))

    def problems(self) -> list[str]:
        """Return what the console has said of errors."""
        return self._said


@contextlib.contextmanager
def firefox_pages(look: str) -> Iterator[Callable[[int, int, int, str], Shown]]:
    """Yield the same of Firefox, which has one window, changed for each."""
    with (
        tempfile.TemporaryDirectory() as folder,
        firefox_tab(Path(folder), FIREFOX_LOOKS[look]) as tab,
    ):

        def opened(width: int, height: int, density: int, address: str) -> Shown:
            tab.open("about:blank")
            tab.resize(width, height, density)
            return FirefoxPage(tab, address)

        yield opened


class FirefoxPage:
    """The page in the only tab."""

    def __init__(self, tab: FirefoxTab, address: str) -> None:
        self._tab = tab
        self._before = len(tab.problems)
        # Its profile remembers panes of the picture before.
        tab.open(address)
        tab.evaluate("localStorage.clear()")
        tab.open("about:blank")
        tab.open(address)

    def evaluate(self, expression: str) -> str | int | None:
        """Return the value of an expression, or of what it promises."""
        found: str | int | None = self._tab.evaluate(expression)
        return found

    def picture(self) -> bytes:
        """Return a PNG of the window."""
        return base64.b64decode(self._tab.picture())

    def problems(self) -> list[str]:
        """Return what the console has said of errors."""
        return list(self._tab.problems[self._before :])


BROWSERS = {"chromium": (CHROMIUM, chromium_pages), "firefox": (FIREFOX, firefox_pages)}


def look_at(page: Shown, path: Path) -> list[str]:
    """Store a picture of the page, and of its pane; return what is wrong with both."""
    page.evaluate(until(DRAWN))
    page.evaluate(SETTLE)
    if AXE.exists():
        page.evaluate(f"(() => {{ {AXE.read_text('utf-8')} }})()")
    faults = []
    for state in ("calm", "measure"):
        if state == "measure":
            page.evaluate(OPEN)
            page.evaluate(SETTLE)
        path.with_name(f"{path.name}-{state}.png").write_bytes(page.picture())
        asked = [FAULTS, *([AXE_RUN] if AXE.exists() else [])]
        found = "; ".join(filter(None, (str(page.evaluate(one)) for one in asked)))
        faults += [f"{path.name}, {state}: {found}"] if found else []
    return faults + [f"{path.name}: {text}" for text in page.problems()]


def write_sheet(pictures: list[Path], path: Path) -> None:
    """Store pictures beside each other, of one height."""
    tiles = []
    for one in pictures:
        with Image.open(BytesIO(one.read_bytes())) as picture:
            width = round(picture.width * SHEET_PX / picture.height)
            tiles.append(picture.convert("RGB").resize((width, SHEET_PX)))
    sheet = Image.new("RGB", (sum(tile.width + 8 for tile in tiles), SHEET_PX), "gray")
    left = 0
    for tile in tiles:
        sheet.paste(tile, (left, 0))
        left += tile.width + 8
    sheet.save(path)


def main() -> None:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--browsers", default="chromium,firefox")
    parser.add_argument("--sizes", default=SIZES, help="of windows [CSS px]")
    parser.add_argument("--densities", default="1,3", help="device pixels in a CSS pixel")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    Image.MAX_IMAGE_PIXELS = None
    faults = []
    with Rows(2, 1025, 20.0) as rows, served(rows.endpoint) as (_, port):
        address = f"http://127.0.0.1:{port}/#v=1&{TOPICS}"
        for browser, look in product(args.browsers.split(","), LOOKS):
            program, pages = BROWSERS[browser]
            if not Path(program).exists():
                print(f"{program} is not installed: no picture of {look}")
                continue
            with pages(look) as opened:
                for density in map(int, args.densities.split(",")):
                    name = f"{browser}-{look}-{density}"
                    made = []
                    for size in args.sizes.split(","):
                        width, height = map(int, size.split("x"))
                        path = args.folder / f"{name}-{size}"
                        faults += look_at(opened(width, height, density, address), path)
                        made += [
                            path.with_name(f"{path.name}-{one}.png") for one in ("calm", "measure")
                        ]
                    write_sheet(made, args.folder / f"{name}.png")
                    print(f"{name}: {len(made)} pictures", flush=True)
    print("\n".join(faults) or "no fault")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
