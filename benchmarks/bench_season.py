"""Time from a jump to a drawn picture in a synthetic year, without a daemon.

    python benchmarks/bench_season.py make FOLDER [--days 365] [--sources 2]
    python benchmarks/bench_season.py show FOLDER [--jumps 40] [--json FILE]

``make`` writes pyramids of a year as the recorder does: cells from a minute on, of 410 values, a
minute of each half hour as of a recorder with a duty cycle, with a few days missing. ``show``
serves the folder and opens the page in Chromium, 1366 x 768, one channel. It jumps to seeded times,
an hour to a year long. A jump is drawn with the second frame after the last tile of the past that
it asked for has come; cold: nothing of it was asked for before (the file system's cache is warm),
warm: the page has been there already.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter

S = 10**9
VALUES = 410
EVERY = 30
"""Minutes from one with sound to the next."""
BEGIN_NS = 1_767_225_600 * S
"""2026-01-01."""
SPEC = SpectrumSpec(
    fs=48000.0, win_length=4096, hop=2048, averaging="mean", rate_hz=1 / 60, align="utc"
)
NAMES = ("north", "south", "east", "west")
GAPS = ((40, 43), (151, 152), (280, 290))
"""Days without sound, from the first to before the second."""


def levels_of(rng: np.random.Generator, f: np.ndarray, day: float, offset_db: float) -> np.ndarray:
    """Return a made-up power of each frequency: noise that falls, storms, a ship, a dawn chorus."""
    hour = 24.0 * (day % 1.0)
    storm = 12.0 * max(0.0, np.sin(day / 9.0) + 0.6 * np.sin(day / 2.3))
    level = -58.0 + offset_db - 14.0 * np.log10(f / 100.0) + storm * (f < 4000.0)
    chorus = 25.0 * np.exp(-((hour - 4.5) ** 2) / 2.0) * (0.5 + 0.5 * np.sin(day / 58.0))
    level += chorus * np.exp(-((np.log2(f / 6000.0)) ** 2) / 0.3)
    if rng.random() < 0.04:
        level += 30.0 * np.exp(-((np.log2(f / 120.0)) ** 2) / 2.0)
    return 10.0 ** ((level + rng.normal(0.0, 1.5, len(f))) / 10.0)


def make_source(folder: Path, name: str, n_days: int, offset_db: float, seed: int) -> None:
    """Write the pyramid of a source, a day of rows at a time."""
    place = folder / "season" / name
    place.mkdir(parents=True)
    about = Description(SPEC, name, ("0",), "benchmark")
    writer = PyramidWriter(place / "pyramid", about, PyramidOptions(60.0, VALUES, 1e9))
    f = np.maximum(SPEC.frequencies, 20.0)
    rng = np.random.default_rng(seed)
    for day in range(n_days):
        if any(begin <= day < end for begin, end in GAPS):
            continue
        minutes = day * 1440 + np.arange(0, 1440, EVERY)
        power = np.stack([levels_of(rng, f, minute / 1440, offset_db) for minute in minutes])
        t_ns = BEGIN_NS + minutes * 60 * S
        index = minutes * 60 * int(SPEC.fs)
        values = power[:, np.newaxis].astype(np.float32)
        writer.write(SpectrumBatch(values, index, t_ns, t_ns, SPEC, "none"))
    writer.finish()


def make(folder: Path, n_days: int, n_sources: int) -> None:
    """Write the year of all sources, each 3 dB above the one before."""
    for n, name in enumerate(NAMES[:n_sources]):
        make_source(folder, name, n_days, 3.0 * n, n)


COUNT_FETCHES = """
window.pastRunning = 0;
window.pastDone = 0;
const whole = window.fetch;
window.fetch = async (...given) => {
  if (!String(given[0]).includes("api/history")) return whole(...given);
  window.pastRunning += 1;
  try {
    return await whole(...given);
  } finally {
    window.pastRunning -= 1;
    window.pastDone = performance.now();
  }
};
"""
JUMP = """hash => new Promise(resolve => {
  const begin = performance.now();
  let quiet = 0, frames = [];
  location.hash = hash;
  const look = time => {
    frames.push(performance.now());
    quiet = window.pastRunning > 0 ? 0 : quiet + 1;
    if (quiet < 30) return requestAnimationFrame(look);
    const since = Math.max(begin, window.pastDone);
    resolve(frames.filter(at => at > since)[1] - begin);
  };
  requestAnimationFrame(look);
})"""
"""Time until a hash is drawn [ms]; 30 frames without a tile on its way end it."""


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Serve a folder; yield the address and the number of the process."""
    listen = ("--listen", "127.0.0.1:0")
    command = [sys.executable, "-m", "spectrod", "web", str(folder), *listen, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1], process.pid
        finally:
            process.terminate()


def resident_mb(pid: int) -> float:
    """Return the peak memory of a process [MB]."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) * 1024 / 1e6


def show(folder: Path, n_jumps: int, chromium: str) -> dict[str, Any]:
    """Open the page and jump; return figures [ms], [MB]."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - of the tests alone

    rng = np.random.default_rng(5)
    spans_s = [3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400]
    ends_ms = BEGIN_NS / 1e6 + 1000 * rng.integers(86400, 365 * 86400, n_jumps)
    hashes = [
        f"v=1&t={end_ms:.0f}&span={spans_s[n % len(spans_s)]}" for n, end_ms in enumerate(ends_ms)
    ]
    with serving(folder) as (address, pid), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.add_init_script(COUNT_FETCHES)
        begin_s = time.perf_counter()
        page.goto(address)
        page.wait_for_function(
            "() => document.querySelectorAll('.day[data-state=data]').length >= 28"
        )
        days_ms = 1e3 * (time.perf_counter() - begin_s)
        page.evaluate(JUMP, hashes[0])
        cold = [page.evaluate(JUMP, one) for one in hashes[1:]]
        warm = [page.evaluate(JUMP, one) for one in hashes[-8:]]
        browser.close()
        return {
            "days_ms": round(days_ms),
            "cold_ms": {"median": round(np.median(cold)), "most": round(max(cold))},
            "warm_ms": {"median": round(np.median(warm)), "most": round(max(warm))},
            "server_mb": round(resident_mb(pid)),
            "load": os.getloadavg()[0],
        }


def main() -> None:
    """Run one of the forms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    forms = parser.add_subparsers(dest="form", required=True)
    maker, shower = forms.add_parser("make"), forms.add_parser("show")
    for one in (maker, shower):
        one.add_argument("folder", type=Path)
    maker.add_argument("--days", type=int, default=365)
    maker.add_argument("--sources", type=int, default=2, choices=range(1, len(NAMES) + 1))
    shower.add_argument("--jumps", type=int, default=40)
    shower.add_argument("--json", type=Path)
    shower.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    if args.form == "make":
        make(args.folder, args.days, args.sources)
        return
    found = show(args.folder, args.jumps, args.chromium)
    text = json.dumps(found, indent=1)
    print(text)
    if args.json:
        args.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
