"""The page over a slow line and on a slow computer: live rows keep coming."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from programs import running_daemon, running_web

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from _slow_line import SlowLine

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

TIMEOUT_MS = 120_000
BYTES_S = 50_000
SECONDS = 30
FREEZE_MAX_MS = 2000
SLOWER = 4.0
"""How many times slower than an idle one the computer is to be."""
CONFIG = """
[sources.array]
uri = "signal:pink,-30"
channels = 4
[analysis]
win_length = 4096
hop = 960
[publish]
endpoints = ["{endpoint}"]
[engine]
engine = "numpy"
"""

# Notes when rows of each stream came, as its own handlers do, and how large messages are.
WATCH = """
globalThis.came = [];
globalThis.sizes = [];
const Plain = WebSocket;
globalThis.WebSocket = class extends Plain {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", async ({ data }) => {
      if (typeof data === "string") return;
      const at = performance.now();
      const view = new DataView(data);
      globalThis.sizes.push(data.byteLength);
      let offset = 8;
      for (let left = view.getUint16(2, true); left > 0; left -= 1) {
        const [stream, rows, bits, values] = [0, 4, 6, 8].map((n) =>
          n === 8 ? view.getUint32(offset + n, true) : view.getUint16(offset + n, true));
        globalThis.came.push([stream, at]);
        offset += 16 + 32 * rows + Math.ceil((rows * values * bits) / 32) * 4;
      }
    });
  }
};
"""
# Longest times without rows, of each waterfall.
GAPS = """() => {
  const waterfalls = new Map();
  for (const [stream, at] of globalThis.came) {
    if (stream % 8 !== 0) continue;
    if (!waterfalls.has(stream)) waterfalls.set(stream, { last: at, gap: 0 });
    const one = waterfalls.get(stream);
    one.gap = Math.max(one.gap, at - one.last);
    one.last = at;
  }
  const now = performance.now();
  return [...waterfalls.values()].map(({ last, gap }) => Math.max(gap, now - last));
}"""


def slower():
    """Return how many times slower the page must be made: other work on the machine counts."""
    return max(1.0, SLOWER / max(1.0, os.getloadavg()[0] / os.cpu_count()))


@pytest.mark.alone
def test_four_charts_go_on_over_a_slow_line_on_a_slow_computer(chromium, tmp_path):
    """At 50 kB/s and a quarter of the processor no waterfall waits for rows for over 2 s."""
    with (
        running_daemon(tmp_path, CONFIG) as endpoint,
        running_web(endpoint, "--recordings", tmp_path / "none") as (link, _),
        SlowLine(urlsplit(link).port, BYTES_S).running() as port,
    ):
        page = chromium.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.set_default_timeout(TIMEOUT_MS)
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.add_init_script(WATCH)
        throttle = page.context.new_cdp_session(page)
        throttle.send("Emulation.setCPUThrottlingRate", {"rate": slower()})
        topics = "&".join(f"topic=spec/array/{n}/dbfs/" for n in range(4))
        page.goto(f"http://127.0.0.1:{port}/#v=1&{topics}", timeout=TIMEOUT_MS)
        page.wait_for_function("() => new Set(globalThis.came.map(([stream]) => stream)).size >= 8")
        page.evaluate("() => { globalThis.came.length = globalThis.sizes.length = 0; }")
        until = page.evaluate("performance.now()") + 1000 * SECONDS
        page.wait_for_function("until => performance.now() >= until", arg=until)
        gaps = page.evaluate(GAPS)
        sizes = page.evaluate("globalThis.sizes")
        page.context.close()
    assert len(gaps) == 4
    assert max(gaps) <= FREEZE_MAX_MS
    assert max(sizes) <= 66_000
    assert problems == []
