"""Whether a page that stays open keeps its memory: hours of rows in minutes.

    python benchmarks/page_memory.py [--hours 12] [--speed 24] [--charts 2] [--rows 25] [--bins 513]
        [--json FILE]

A publisher sends the rows of so many hours, ``--rows`` a second by their times, so many times as
fast; ``spectrod web`` serves them; Chromium shows them, with two cursors and two holds. Once an
hour of theirs: the rows that came, the JavaScript heap after a collection, DOM nodes and listeners,
and the resident memory of the renderer and of the server. It fails where the heap or the nodes grow
by more than a tenth from the first third of the hours to the last, or where no rows come.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from _report import new_report, write_report
from bench_web import Rows, memory_mb, served
from playwright.sync_api import Browser, Page, sync_playwright

_CHROMIUM = "/usr/bin/chromium"
_GROWTH_MAX = 1.1
_FIRST_S = 120.0

_WATCH = (Path(__file__).parent / "page_watch.js").read_text("utf-8")


class PastRows(Rows):
    """Rows of the last hours, sent faster than they were."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__(args.charts, args.bins, args.rows * args.speed)
        self._start_ns = time.time_ns() - round(args.hours * 3.6e12)
        self._row_s = 1.0 / args.rows

    def _analysis(self, seq: int) -> dict[str, Any]:
        t_utc_ns = self._start_ns + round(1e9 * seq * self._row_s)
        return super()._analysis(seq) | {"t_utc_ns": t_utc_ns, "hop": round(48e3 * self._row_s)}


def main() -> int:
    """Measure, print and optionally store; 1 if the memory grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=12.0)
    parser.add_argument("--speed", type=float, default=24.0)
    parser.add_argument("--charts", type=int, default=2)
    parser.add_argument("--rows", type=float, default=25.0, help="of each channel a second")
    parser.add_argument("--bins", type=int, default=513)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report = new_report("page-memory")
    with PastRows(args) as rows, served(rows.endpoint) as (pid, port), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        report["results"] = _watch(args, browser, port, pid)
        browser.close()
    if args.json:
        write_report(report, args.json)
    grown = [key for key in ("heap_mb", "nodes") if _growth(report["results"], key) > _GROWTH_MAX]
    print("grows: " + ", ".join(grown) if grown else "flat")
    return 1 if grown else 0


def _watch(args: argparse.Namespace, browser: Browser, port: int, pid: int) -> list[dict[str, Any]]:
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.add_init_script(_WATCH)
    topics = "&".join(f"topic=spec/mic/{n}/dbfs/" for n in range(args.charts))
    page.goto(f"http://127.0.0.1:{port}/#v=1&{topics}&c=1000,5000&hold=max,mean")
    page.wait_for_selector(".waterfall:not([data-empty])", timeout=1e3 * _FIRST_S)
    renderer = _renderer(browser)
    hour_s = 3600.0 / args.speed
    done = []
    for hour in range(1, 1 + round(args.hours)):
        page.evaluate("seen.begin()")  # else what it notes would grow
        page.wait_for_timeout(1e3 * hour_s)
        rows_s = page.evaluate("seen.figures().rows_s")
        assert rows_s > 0.0, "no rows come"
        one = {"hour": hour, "rows_s": rows_s} | _figures(page)
        one |= {"renderer_mb": memory_mb(renderer), "server_mb": memory_mb(pid)}
        one |= {"load": round(os.getloadavg()[0], 1)}
        print(", ".join(f"{key}: {value}" for key, value in one.items()), flush=True)
        done.append(one)
    return done


def _renderer(browser: Browser) -> int:
    """Return the process of the page: the browser's renderer with the most processor time."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    found = [one for one in processes if one["type"] == "renderer"]
    return int(max(found, key=lambda one: one["cpuTime"])["id"])


def _figures(page: Page) -> dict[str, Any]:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    names = {"nodes": "Nodes", "listeners": "JSEventListeners"}
    counts = {key: round(metrics[name]) for key, name in names.items()}
    return {"heap_mb": round(metrics["JSHeapUsedSize"] / 1e6, 2)} | counts


def _growth(results: list[dict[str, Any]], key: str) -> float:
    """Return the last third's median as a multiple of the first one's."""
    third = max(1, len(results) // 3)
    first, last = results[:third], results[-third:]
    at_end, at_begin = (statistics.median(float(r[key]) for r in part) for part in (last, first))
    return at_end / at_begin


if __name__ == "__main__":
    sys.exit(main())
