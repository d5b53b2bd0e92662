"""How long a newcomer waits: from `make run` to a waterfall that moves in Chromium.

    python benchmarks/bench_first_page.py [--json FILE] [--repeats N]

Chromium is running already, as a user's browser is. The time counts from the start of `make run`,
with everything installed and compiled before, to the third different picture of the waterfall's
newest lines. It needs Debian's chromium and the package playwright.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from _report import new_report, write_report
from playwright.sync_api import Browser, sync_playwright

_REPEATS = 5
_TIMEOUT_S = 120.0
_CHROMIUM = "/usr/bin/chromium"
_MAKE = shutil.which("make") or "make"
_LINK = re.compile(r"the page is at (\S+)")
_MOVES = """() => {
  const canvas = document.querySelector(".waterfall canvas");
  const hasRows = document.querySelector(".banner")?.hidden === true;
  if (canvas === null || canvas.width === 0 || !hasRows) return false;
  const copy = new OffscreenCanvas(canvas.width, 16);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, canvas.width, 16);
  if (new Set(data).size < 8) return false;
  window.pictures ??= new Set();
  window.pictures.add(data.join());
  return window.pictures.size >= 3;
}"""


def main() -> None:
    """Measure, print and optionally store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--repeats", type=int, default=_REPEATS, metavar="N")
    args = parser.parse_args()
    if not Path(_CHROMIUM).exists():
        print(f"{_CHROMIUM} is not installed: nothing is measured")
        return
    report = new_report("first page")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        _measure(browser)  # fills the caches of files and kernels
        times = [_measure(browser) for _ in range(args.repeats)]
        browser.close()
    link_s, page_s = zip(*times, strict=True)
    result = {
        "what": "make run to a moving waterfall",
        "median_s": round(statistics.median(page_s), 2),
        "all_s": [round(one, 2) for one in page_s],
        "address_median_s": round(statistics.median(link_s), 2),
    }
    report["results"] = [result]
    print(", ".join(f"{key}: {value}" for key, value in result.items()))
    if args.json:
        write_report(report, args.json)


def _measure(browser: Browser) -> tuple[float, float]:
    """Return the times from the start to the address, and to the moving waterfall [s]."""
    arguments = "--source signal:pink,-20 --show none --log-level error"
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as free:
        endpoint = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        free.close()
        environment = os.environ | {"XDG_RUNTIME_DIR": folder, "STATE_DIRECTORY": folder}
        start_s = time.perf_counter()
        process = subprocess.Popen(
            [_MAKE, "--silent", "run", f"ARGS={arguments} --publish {endpoint}"],
            cwd=Path(__file__).parents[1],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            return _open(browser, process, start_s)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate()


def _open(browser: Browser, process: subprocess.Popen[str], start_s: float) -> tuple[float, float]:
    assert process.stdout is not None
    found = next((match for line in process.stdout if (match := _LINK.search(line))), None)
    if found is None:
        raise SystemExit("make run: ended without an address")
    link_s = time.perf_counter() - start_s
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(_TIMEOUT_S * 1e3)
    page.goto(found[1])
    page.wait_for_function(_MOVES)
    page_s = time.perf_counter() - start_s
    context.close()
    return link_s, page_s


if __name__ == "__main__":
    main()
