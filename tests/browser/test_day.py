"""A day in one tab: the page keeps no more after it than after its first hours."""

import functools
import http.server
import threading
from pathlib import Path

import pytest
from test_drawing import PAGE, Handler

pytestmark = [pytest.mark.extended, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
WARM_HOURS, HOURS = 9, 24
"""Events and rings are full after 9 h."""
SECONDS_A_FRAME = 60


class PageHandler(Handler):
    """Serves the page itself, too."""

    def translate_path(self, path):
        return str(PAGE / "index.html") if path == "/" else super().translate_path(path)


@pytest.fixture
def address():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), PageHandler) as server:
        thread = threading.Thread(target=functools.partial(server.serve_forever, 0.05))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class Memory:
    """What a tab has after its garbage was collected."""

    def __init__(self, page, browser_session):
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        session.send("HeapProfiler.enable")
        # What a frame in progress holds is garbage at the next collection.
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
            page.evaluate("() => new Promise(requestAnimationFrame)")
        session.send("HeapProfiler.collectGarbage")
        metrics = {
            one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]
        }
        self.heap_mb = metrics["JSHeapUsedSize"] / 1e6
        self.nodes, self.listeners = metrics["Nodes"], metrics["JSEventListeners"]
        processes = browser_session.send("SystemInfo.getProcessInfo")["processInfo"]
        pids = [one["id"] for one in processes if one["type"] == "renderer"]
        self.renderers_mb = sum(_rss_mb(pid) for pid in pids)

    def __repr__(self):
        parts = (f"{name} {value:.1f}" for name, value in vars(self).items())
        return ", ".join(parts)


def _rss_mb(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1e3
    return 0.0


def test_a_day_in_one_tab_takes_no_more_memory_than_its_first_hours(chromium, address):
    """Two channels, measurements, events, gaps, restarts and a person who zooms and pauses."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.add_init_script(path=HERE / "day.js")
    page.goto(f"{address}#v=1&span=300")
    page.locator(".panel").first.wait_for()
    browser = chromium.new_browser_cdp_session()
    call = "([hours, step]) => passHours(hours, step)"
    page.evaluate(call, [WARM_HOURS, SECONDS_A_FRAME])
    before = Memory(page, browser)
    frames = page.evaluate(call, [HOURS - WARM_HOURS, SECONDS_A_FRAME])
    after = Memory(page, browser)
    print(f"{frames} frames; after {WARM_HOURS} h: {before}; after {HOURS} h: {after}")  # noqa: T201 - shown with pytest -s
    shown = page.locator("#events-count").inner_text()
    context.close()
    assert problems == []
    assert shown == "500"
    assert after.heap_mb < before.heap_mb + 2.0
    assert after.nodes < before.nodes + 200
    assert after.listeners <= before.listeners + 20
    assert after.renderers_mb < before.renderers_mb + 40.0
