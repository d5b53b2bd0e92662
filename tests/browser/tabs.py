"""The page in a tab of Playwright's Chromium, and what tests read of its canvases."""

import time
from urllib.parse import urlsplit

TIMEOUT_MS = 20_000
MIC = "spec/mic/0/dbfs/"

# A copy is read: reading a canvas again and again makes the browser draw it in another way.
READ_LINE = """y => {
  const canvas = document.querySelector(".waterfall canvas");
  if (canvas === null || canvas.width === 0) return new Uint8ClampedArray(0);
  const copy = new OffscreenCanvas(canvas.width, 1);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, -Math.round(y * devicePixelRatio));
  return context.getImageData(0, 0, canvas.width, 1).data;
}"""

# Runs of lines of the waterfall from the top, each as its kind and its number of lines.
READ_KINDS = """async () => {
  const canvas = document.querySelector(".waterfall canvas");
  const { MARKS } = await import("./page/plot/palette.js");
  const marks = MARKS[document.documentElement.dataset.theme];
  const { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const value = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  const blank = new Set([value(marks.none), value(marks.stripe)]);
  const runs = [];
  for (let y = 0; y < height; y += 1) {
    const line = new Set(pixels.subarray(y * width, (y + 1) * width));
    const kind = line.has(value(marks.gap)) ? "gap" : line.has(value(marks.dropped)) ? "dropped"
      : [...line].every((one) => blank.has(one)) ? "blank" : "rows";
    if (runs.at(-1)?.[0] === kind) runs.at(-1)[1] += 1;
    else runs.push([kind, 1]);
  }
  return runs;
}"""


HAS_ROWS = """() => document.querySelector(".banner").hidden
  && document.querySelector(".waterfall:not([data-empty])") !== null"""
"""Whether a panel shows live rows; its banner is hidden before it knows of any."""
HAS_DETAILS = """() => {
  const details = document.querySelector("#status");
  return details.hidden || details.innerText.includes("sample rate");
}"""
"""Whether the details of the state are complete, which move the plots when they come."""


class Tab:
    """The page in a tab, which notes errors and requests to elsewhere."""

    def __init__(self, context, address):
        self.page = context.new_page()
        self.page.set_default_timeout(TIMEOUT_MS)
        self._address = address
        self.problems = []
        host = urlsplit(address).netloc
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on(
            "console",
            lambda said: (
                self.problems.append(said.text) if said.type in {"error", "warning"} else None
            ),
        )
        self.page.on(
            "request",
            lambda asked: (
                None
                if urlsplit(asked.url).netloc == host or asked.url.startswith(("data:", "blob:"))
                else self.problems.append(f"request to {asked.url}")
            ),
        )

    def open(self, fragment=f"v=1&topic={MIC}", *, waits=True):
        self.page.goto("about:blank")
        self.page.goto(f"{self._address}#{fragment}")
        if waits:
            self.page.locator(".panel").first.wait_for()
            self.page.wait_for_function(HAS_ROWS)
            self.page.wait_for_function(HAS_DETAILS)

    def open_past(self, fragment):
        self.open(fragment, waits=False)
        self.page.locator(".banner", has_text="the past").wait_for()
        self.page.wait_for_function(HAS_DETAILS)

    def row_of(self, table, text):
        """Return the texts of the first row of a table that has a text in it."""
        row = self.page.locator(f"#{table} tbody tr", has_text=text).first
        row.wait_for()
        return row.locator("td").all_inner_texts()

    def fragment(self):
        return self.page.evaluate("location.hash")

    def focus_plot(self):
        self.page.locator(".surface").first.focus()

    def brightest_column(self, y_css):
        """Return the brightest column of the waterfall at a height, and its width [device px].

        Waits until rows are drawn there: until then all columns are alike.
        """
        return self.page.wait_for_function(
            f"""y => {{
              const data = ({READ_LINE})(y);
              const light = Array.from({{ length: data.length / 4 }}, (_, x) => data[4 * x + 1]);
              const best = Math.max(...light);
              const first = light.indexOf(best), last = light.lastIndexOf(best);
              const isNarrow = light.length > 0 && last - first < light.length / 20;
              return isNarrow && [(first + last) / 2, light.length];
            }}""",
            arg=y_css,
        ).json_value()

    def pixel_of(self, hertz, kind, f0, f1):
        """Return where the axis module puts a frequency [device px]."""
        return self.page.evaluate(
            """async ([hertz, kind, f0, f1]) => {
              const { makeAxis } = await import("./page/plot/axis.js");
              const { width } = document.querySelector(".waterfall canvas");
              return makeAxis({ kind, f0, f1, width }).toPixel(hertz);
            }""",
            [hertz, kind, f0, f1],
        )


def wait_for_rows(tab, y_css):
    """Wait until the waterfall has scrolled to a height."""
    tab.page.wait_for_function(f"y => new Set(({READ_LINE})(y)).size > 8", arg=y_css)


def wait_until(page, is_true):
    """Wait until what events have told this process fulfils a condition; asked each frame."""
    deadline_s = time.monotonic() + TIMEOUT_MS / 1e3
    while not is_true():
        assert time.monotonic() < deadline_s, is_true
        page.evaluate("() => new Promise(requestAnimationFrame)")
