"""What the page costs a line, a browser and its server, and how soon it shows something.

    python benchmarks/bench_page.py [--charts 4] [--rows 50] [--bins 2049] [--seconds 60]
        [--size 1920x1080] [--line BYTES_S] [--delay MS] [--slower 1] [--renderer 2d] [--json FILE]

A publisher sends made-up rows of all channels; ``spectrod web`` serves them; Chromium shows them,
with the past that the server itself remembers, over a line that passes so many bytes a second on
all connections together, each later by half the delay of a round trip. Load average is printed, as
frames and processor times are of this machine as busy as it is.
"""

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

from _report import new_report, write_report
from _slow_line import SlowLine
from bench_web import Rows, cpu_s, memory_mb, served
from playwright.sync_api import Browser, Page, sync_playwright

_CHROMIUM = "/usr/bin/chromium"
_TIMEOUT_MS = 120_000.0
_SETTLE_S = 5.0

_WATCH = (Path(__file__).parent / "page_watch.js").read_text("utf-8")


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--charts", type=int, default=4)
    parser.add_argument("--rows", type=float, default=50.0, help="of each channel a second")
    parser.add_argument("--bins", type=int, default=2049)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pages", type=int, default=1, help="tabs that show all charts")
    parser.add_argument("--size", default="1920x1080", help="of the window [px]")
    parser.add_argument("--line", type=float, metavar="BYTES_S", help="default: not limited")
    parser.add_argument("--delay", type=float, default=0.0, metavar="MS", help="of a round trip")
    parser.add_argument("--slower", type=float, default=1.0, help="factor of the processor's time")
    parser.add_argument("--renderer", choices=("2d", "webgl"))
    parser.add_argument("--picture", metavar="FILE", help="of the page at the end, a PNG")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if not Path(_CHROMIUM).exists():
        print(f"{_CHROMIUM} is not installed: nothing is measured")
        return
    report = new_report("page")
    with Rows(args.charts, args.bins, args.rows) as rows, served(rows.endpoint) as (pid, port):
        line = SlowLine(port, args.line, args.delay / 1e3)
        with line.running() as near, sync_playwright() as playwright:
            options = ["--no-sandbox"]
            browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=options)
            result = _measure(args, browser, near, pid)
            browser.close()
    report["results"] = [result]
    print("\n".join(f"{key}: {value}" for key, value in result.items()))
    if args.json:
        write_report(report, args.json)


def _measure(args: argparse.Namespace, browser: Browser, near: int, pid: int) -> dict[str, Any]:
    pages = [_open(args, browser, near) for _ in range(args.pages)]
    started = [page.evaluate("seen.start()") for page in pages]
    again = _reload(pages[0])
    page = pages[0]
    page.wait_for_timeout(_SETTLE_S * 1e3)
    session = browser.new_browser_cdp_session()
    for one in pages:
        one.evaluate("seen.begin()")
    start_s, server_s, browser_s = time.monotonic(), cpu_s(pid), _browser_s(session)
    # Not the page's timers: they would end later than a page that is busy.
    page.wait_for_timeout(args.seconds * 1e3)
    done = [one.evaluate("seen.figures()") for one in pages]
    seconds = time.monotonic() - start_s
    shares = {
        "server_processor_share": round((cpu_s(pid) - server_s) / seconds, 3),
        "server_memory_mb": memory_mb(pid),
        "browser_processor_share": round((_browser_s(session) - browser_s) / seconds, 3),
        "heap_mb": _heap_mb(page),
        "load": round(os.getloadavg()[0], 1),
    }
    if args.picture:
        page.screenshot(path=args.picture)
    asked = {name: getattr(args, name) for name in ("charts", "rows", "bins", "pages", "size")}
    asked |= {name: getattr(args, name) for name in ("line", "delay", "slower")}
    starts = {key: statistics.median(one[key] for one in started) for key in started[0]}
    whole = {f"reload_{key}": value for key, value in again.items()}
    return asked | starts | whole | _worst(done) | shares


def _worst(done: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all pages as those of one: the slowest, with the longest waits."""
    least = {key: min(one[key] for one in done) for key in ("waterfalls", "rows_s", "frames_s")}
    return {key: max(one[key] for one in done) for key in done[0]} | least


def _open(args: argparse.Namespace, browser: Browser, near: int) -> Page:
    width, _, height = args.size.partition("x")
    context = browser.new_context(viewport={"width": int(width), "height": int(height)})
    page = context.new_page()
    page.set_default_timeout(_TIMEOUT_MS)
    page.add_init_script(_WATCH)
    if args.slower > 1.0:
        session = context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": args.slower})
    topics = "&".join(f"topic=spec/mic/{n}/dbfs/" for n in range(args.charts))
    query = f"?renderer={args.renderer}" if args.renderer else ""
    page.goto(f"http://127.0.0.1:{near}/{query}#v=1&{topics}")
    _wait_for_rows(page)
    return page


def _reload(page: Page) -> dict[str, Any]:
    page.reload()
    _wait_for_rows(page)
    found: dict[str, Any] = page.evaluate("seen.start()")
    return found


def _wait_for_rows(page: Page) -> None:
    page.wait_for_function("() => seen.first !== null")


def _browser_s(session: Any) -> float:
    """Return the processor time of the browser's processes so far [s]."""
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return float(sum(process["cpuTime"] for process in processes))


def _heap_mb(page: Page) -> float:
    """Return the JavaScript heap after a collection [MB]."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return round(next(m["value"] for m in metrics if m["name"] == "JSHeapUsedSize") / 1e6, 1)


if __name__ == "__main__":
    main()
