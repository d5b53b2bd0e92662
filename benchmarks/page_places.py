"""Random places of the page, each compared with the rows that it is of: what it says is so.

    python benchmarks/page_places.py [--places 1000] [--seed 1] [--recorded 300] [--json FILE]

Rows of random levels are recorded, five minutes of them, with a pyramid; a made-up daemon goes on
where the recording ends. Debian's Chromium shows them: live, paused, past, over the seam between
recording, server and page, one channel or two over each other, on each axis, at random zooms of
frequency and time. A place is one that is read: the level under the pointer, in a waterfall, a line
spectrum or a third-octave bar, a line of a saved CSV, the colour of a pixel of a saved PNG, a bar
of a saved SVG, the Leq and the peak of a selection, a meter. It is equal to the rows to half a step
of the wire (0.5 dB of live waterfalls, 0.1 dB of the past, docs/web.md) and half of the last digit
that is written, or a shade of the PNG. It ends with an error at the first that is not, or that is
missing.
"""

import argparse
import contextlib
import json
import math
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _page_figures import Bar, bars_of, shares_of_colour, waterfalls_of
from _report import ROOT
from _third_octaves import band_level, bands_within, bins_of, edges_of
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, sync_playwright

from spectrod.apps.web.history.columns import TimeGrid
from spectrod.dsp.bands import hz_to_mel, mel_to_hz
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.wire.headers import LevelsHeader
from spectrod.wire.schema import IntervalFrame, encode

sys.path.insert(0, str(ROOT / "tests" / "browser"))

from made_up_daemon import SPEC, TOPIC, MadeUpDaemon
from programs import running_web

TIMEOUT_MS = 60_000.0
BIN_HZ = 10.0
ROW_MS = 100.0
ENBW_HZ = 15.0
LO_DB, HI_DB = -110.0, 0.0
TEXT_DB = 0.05
LIVE_DB, PAST_DB, FINE_DB = 0.25, 0.05, 0.005
"""Half a step of live waterfalls, of the past, and of line spectra and cells of pyramids."""
CAPTION_PX = 100
"""Height that the caption of a waterfall takes in a figure."""
ROUND = 250
"""Places of one server: its memory of live rows is bounded, older ones are cells of a second."""
TIME_ROWS = 0.51
"""Half of the last digit of a time that is written, in rows."""
MODES = ("live", "paused", "past", "seam")
AXES = ("log", "linear", "mel", "octave")
DIRECTIONS = ("down", "up", "right")

WATCH = """
globalThis.past = { running: 0, doneMs: 0, doneFrame: 0, frames: 0 };
const countFrames = () => {
  globalThis.past.frames += 1;
  requestAnimationFrame(countFrames);
};
countFrames();
const plainFetch = globalThis.fetch;
globalThis.fetch = async (...given) => {
  const { past } = globalThis;
  past.running += 1;
  try {
    return await plainFetch(...given);
  } finally {
    past.running -= 1;
    past.doneMs = performance.now();
    past.doneFrame = past.frames;
  }
};
"""
NOTE_STRIPS = """async () => {
  const { CursorRows } = await import("./page/rows/cursorrow.js");
  const { Strip } = await import("./page/panel/strip.js");
  const { rowAt, rowsOfLine } = await import("./page/rows/rowat.js");
  globalThis.rowsOfLine = (rows, line, msPerPx) =>
    rowsOfLine(rows, line, msPerPx).map(({ seq, merged, flags, tMs, description }) => {
      const { row_s, slices, epoch } = description;
      return { seq, merged, flags, tMs, row_s, slices, isLive: epoch !== undefined };
    });
  globalThis.rowsAbout = (rows, line, msPerPx) =>
    [-1, 0, 1].flatMap((k) => globalThis.rowsOfLine(rows, line + k, msPerPx));
  globalThis.seamOf = (rows) => {
    const isPast = (i) => rows.at(i).description.epoch === undefined;
    const first = Array.from({ length: rows.length }, (_, i) => i).find(isPast) ?? 0;
    if (first === 0) return null;
    const { tMs, merged, description } = rows.at(first - 1);
    return tMs - 500 * merged * description.row_s;
  };
  globalThis.spectraOf = ({ strip: { channel, rows: shownRows, lengthPx }, scene }) => {
    const shown = rowAt(shownRows, scene.newestMs, scene.spanMs / lengthPx);
    const asked = globalThis.asked.get(channel.info.endpoint);
    const rows = [channel.newest, channel.kept?.trace, shown, asked].filter(Boolean);
    return rows.map(({ merged, description: { slices, row_s } }) => ({
      endpoint: channel.info.endpoint, slices, length_s: merged * row_s,
    }));
  };
  // Rows of which the line spectrum shows more than the waterfall has.
  const { at } = CursorRows.prototype;
  globalThis.asked = new Map();
  CursorRows.prototype.at = function (about, ...given) {
    const row = at.call(this, about, ...given);
    globalThis.asked.set(about.topic.endpoint, row);
    return row;
  };
  const { draw, figure } = Strip.prototype;
  globalThis.strips = new Map();
  globalThis.figures = new Map();
  // Of a live waterfall rows go on coming: those that a figure shows are noted.
  Strip.prototype.figure = function (events) {
    const made = figure.call(this, events);
    const { length } = made.rows;
    const noted = Array.from({ length }, (_, i) => ({ ...made.rows.at(i), values: null }));
    const rows = { length, at: (i) => noted[i], timeAt: (i) => noted[i].tMs };
    globalThis.figures.set(this.channel.info.endpoint, { ...made, rows });
    return made;
  };
  Strip.prototype.draw = function (scene) {
    globalThis.strips.set(this.channel.info.endpoint, { strip: this, scene });
    return draw.call(this, scene);
  };
}"""
"""Notes the waterfalls as they are drawn, on the screen and in figures, with what they show."""
ROWS_OF_FIGURE = """([heights, places]) => [...globalThis.figures].flatMap(([endpoint, one], k) => {
  const { newestMs } = one;
  const msPerPx = one.spanMs / heights[k];
  return places[k].map(([x, y]) => {
    const line = Math.floor(newestMs / msPerPx) - y;
    return {
      x, y, k, endpoint, newestMs,
      rows: globalThis.rowsOfLine(one.rows, line, msPerPx),
      about: globalThis.rowsAbout(one.rows, line, msPerPx),
    };
  });
})"""
"""Rows of places of the waterfalls of the last figure."""
SETTLED = """([sinceMs, sinceFrame]) => {
  const { running, doneMs, doneFrame, frames } = globalThis.past;
  const isQuiet = performance.now() - Math.max(sinceMs, doneMs) > 400;
  return running === 0 && isQuiet && frames - Math.max(sinceFrame, doneFrame) > 10;
}"""
"""Whether nothing of the past is on its way: an axis is asked for when it has stayed for 0.2 s, and
with a frame, which takes long on a machine that is busy."""
READ = """([seed, count, name]) => {
  let state = seed;
  const next = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const all = [...globalThis.strips.values()].filter(({ strip }) => strip.box.isConnected);
  return Array.from({ length: count }, (_, n) => {
    const { strip, scene } = all[n % all.length];
    const panel = strip.box.closest(".panel");
    const ofPanel = all.filter((one) => panel.contains(one.strip.box));
    const box = name === "line" ? panel.querySelector(".trace-lines") : strip.box;
    const { left, top, width, height } = box.getBoundingClientRect();
    // Whole pixels: a box may end within one, whose middle lies beside it.
    let [x, y] = [width, height].map((size) => Math.floor(next() * Math.floor(size)));
    const age = Math.floor(strip.ageOf(globalThis.seamOf(strip.rows) ?? NaN) - 2 + 5 * next());
    const isWithin = age >= 0 && age < Math.floor(strip.places.length);
    const isAtSeam = name === "fall" && n % 3 === 0 && isWithin;
    if (isAtSeam) {
      const { tone } = strip.places.pixelAt({ x, y });
      ({ x, y } = strip.places.toScreen({ tone: tone + 0.5, age: age + 0.5 }));
      [x, y] = [x, y].map(Math.floor);
    }
    const at = { clientX: left + x + 0.5, clientY: top + y + 0.5, bubbles: true };
    panel.querySelector(".surface").dispatchEvent(new PointerEvent("pointermove", at));
    const { line, msPerPx } = strip.pixelAt({ x, y });
    return {
      x, y, isAtSeam, text: panel.querySelector(".readout").textContent,
      endpoint: strip.channel.info.endpoint, newestMs: scene.newestMs,
      width: strip.canvas.width, height: strip.canvas.height,
      spectra: ofPanel.flatMap(globalThis.spectraOf),
      rows: globalThis.rowsOfLine(strip.rows, line, msPerPx),
      about: globalThis.rowsAbout(strip.rows, line, msPerPx),
    };
  });
}"""
"""Readouts of random places, of waterfalls or line spectra: nothing else happens meanwhile. A third
of those of waterfalls is within two lines of the seam of past and live rows, if it is shown."""

Levels = NDArray[np.float32]


class Truth:
    """Random rows by their number, which anybody computes again.

    Parameters
    ----------
    seed : int
        Of the rows from ``n_recorded`` on; those before are the same of all.
    n_recorded : int
        Rows of the recording.
    begin_ns : int
        Time of the first one [ns since 1970].
    """

    def __init__(self, seed: int, n_recorded: int, begin_ns: int) -> None:
        self.n_recorded, self.begin_ms = n_recorded, begin_ns / 1e6
        self.daemon: Any = None
        self.is_always_shown = False
        self._seed = seed
        self._rows: dict[int, Levels] = {}

    def row(self, n: int) -> Levels:
        """Return the levels of a row (n_values,) [dB]."""
        if n not in self._rows:
            random = np.random.default_rng([0 if n < self.n_recorded else self._seed, n])
            levels = random.uniform(-100.0, -60.0, SPEC.n_values)
            levels[random.integers(0, SPEC.n_values, 20)] = random.uniform(-60.0, -5.0, 20)
            self._rows[n] = np.round(levels, 2).astype(np.float32)
        return self._rows[n]

    def between(self, begin_ms: float, end_ms: float) -> range:
        """Return the rows whose middles are in a time."""
        first, stop = (
            int(np.ceil((ms - self.begin_ms) / ROW_MS - 0.5 - 1e-9)) for ms in (begin_ms, end_ms)
        )
        return range(max(first, 0), max(stop, 0))

    def number_at(self, t_ms: float) -> int:
        """Return the row that a time is in."""
        return int((t_ms - self.begin_ms) // ROW_MS)

    @property
    def n_sent(self) -> int:
        """Rows that there are so far."""
        return self.n_recorded + int(self.daemon.n_rows)


@dataclass(frozen=True)
class View:
    """A view of the page: what a link says.

    Attributes
    ----------
    axis : str
        Kind of the axis of frequencies.
    f0, f1 : float
        Its ends [Hz].
    span_s : float
        Time that a waterfall shows [s].
    split : int
        Share of the line spectrum in the height [%].
    is_over : bool
        Whether two channels are over each other.
    direction : str
        Of time: ``down``, ``up`` or ``right``.
    """

    axis: str
    f0: float
    f1: float
    span_s: float
    split: int
    is_over: bool
    direction: str = "down"

    def turned(self, x: int, y: int, width: int, height: int) -> tuple[int, int]:
        """Return column and line of a pixel of a waterfall of a width and a height on the screen.

        With the numbers of columns and of lines for these, the pixel of a column and a line.
        """
        if self.direction == "right":
            return height - 1 - y, width - 1 - x
        return x, height - 1 - y if self.direction == "up" else y

    def link(self, endpoints: list[str], **more: str) -> str:
        """Return the fragment of an address."""
        fields = [("topic", f"{TOPIC}@{one}") for one in endpoints[: 1 + self.is_over]]
        fields += {
            "layout": "over" if self.is_over else "side",
            "axis": self.axis,
            "f": f"{self.f0:.12g}:{self.f1:.12g}",
            "span": f"{self.span_s:.12g}",
            "split": str(self.split),
            "rows": self.direction,
            "db": f"{LO_DB:g}:{HI_DB:g}",
        }.items()
        return "&".join(f"{name}={value}" for name, value in [("v", "1"), *fields, *more.items()])

    def hertz(self, share: float) -> float:
        """Return the frequency at a share of the width [Hz]."""
        if self.axis == "linear":
            return self.f0 + share * (self.f1 - self.f0)
        if self.axis == "mel":
            low, high = (float(hz_to_mel(np.array(hz))) for hz in (self.f0, self.f1))
            return float(mel_to_hz(np.array(low + share * (high - low))))
        return float(self.f0 * (self.f1 / self.f0) ** share)

    def bins_most(self, px: int, width: int) -> float:
        """Return the most bins that a pixel touches if no value is wider than it, or than a bin."""
        return 3.0 * (1.0 + (self.hertz((px + 1) / width) - self.hertz(px / width)) / BIN_HZ)

    def bins(self, px: int, width: int, slices: list[dict[str, int]]) -> NDArray[np.int64]:
        """Return the bins of all values of some slices that a pixel touches."""
        left, right = self.hertz(px / width), self.hertz((px + 1) / width)
        slack = 1e-6 * (right - left)
        found = [np.zeros(0, np.int64)]
        for piece in slices:
            step = piece["per_value"]
            starts = piece["first"] + step * np.arange(piece["values"])
            stops = np.minimum(starts + step, SPEC.n_values)
            is_in = (stops - 0.5) * BIN_HZ > left + slack
            is_in &= (starts - 0.5) * BIN_HZ < right - slack
            found += [np.arange(*ends) for ends in zip(starts[is_in], stops[is_in], strict=True)]
        return np.concatenate(found)


def random_view(random: np.random.Generator, recorded_s: float, *, is_over: bool) -> View:
    """Return a view of a random zoom: from 40 bins to all, from 2 s to more than is recorded."""
    axis = str(random.choice(AXES))
    lowest = 10.0 if axis in {"log", "octave"} else 0.0
    share = float(random.choice([1.0, 10.0 ** random.uniform(-1.6, 0.0)]))
    if axis in {"log", "octave"}:
        octaves = np.log2(24000.0 / lowest)
        f0 = lowest * 2.0 ** (octaves * (1.0 - share) * random.uniform())
        f1 = max(f0 * 2.0 ** (octaves * share), f0 + 400.0)
    else:
        f0 = (24000.0 - lowest) * (1.0 - share) * random.uniform()
        f1 = f0 + max(400.0, share * 24000.0)
    f1 = min(f1, 24000.0)
    span_s = float(2.0 * (0.7 * recorded_s) ** random.uniform())
    return View(axis, round(float(min(f0, f1 - 400.0)), 3), round(float(f1), 3), round(span_s, 2),
                int(random.integers(25, 60)), is_over, str(random.choice(DIRECTIONS)))  # fmt: skip


@dataclass
class Checker:
    """Compares what the page says with rows; ``counts`` of places by their kinds grow."""

    page: Page
    truths: dict[str, Truth]
    random: np.random.Generator
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def truth(self) -> Truth:
        """Rows of the first channel."""
        return next(iter(self.truths.values()))

    def show(self, view: View, **more: str) -> None:
        """Show a view, and wait until all of the past that it needs has come."""
        link = view.link(list(self.truths), **more)
        self.page.evaluate("link => { location.hash = link; }", link)
        self.page.wait_for_function("() => globalThis.strips.size > 0")
        self.settle()

    def settle(self) -> None:
        """Wait until nothing of the past is on its way, and is drawn."""
        since = self.page.evaluate("[performance.now(), globalThis.past.frames]")
        self.page.wait_for_function(SETTLED, arg=since)
        self.page.evaluate("() => new Promise(requestAnimationFrame)")

    def read(self, count: int, name: str) -> list[dict[str, Any]]:
        """Read places of waterfalls (``fall``) or line spectra (``line``)."""
        seed = int(self.random.integers(1, 1 << 30))
        found: list[dict[str, Any]] = self.page.evaluate(READ, [seed, count, name])
        return found

    def falls(self, view: View, count: int, mode: str) -> None:
        """Compare levels under the pointer in waterfalls."""
        for one in self.read(count, "fall"):
            truth = self.truths[one["endpoint"]]
            size = one["width"], one["height"]
            one["x"], one["y"] = view.turned(one["x"], one["y"], *size)
            one["width"], one["height"] = size[::-1] if view.direction == "right" else size
            line_ms = 1000.0 * view.span_s / one["height"]
            begin_ms = line_ms * (np.floor(one["newestMs"] / line_ms) - one["y"])
            numbers = rows_of(truth, one, begin_ms, line_ms)
            (level,) = re.findall(r"(-?\d+\.\d dBFS|no data)  20", one["text"])
            if level == "no data":
                check_nothing(truth, one, begin_ms, line_ms)
                continue
            levels = []
            for row, those in zip(one["rows"], numbers, strict=True):
                bins = view.bins(one["x"], one["width"], row["slices"])
                # Rows that came at another zoom keep its values; the past has those of this one.
                assert is_live(row) or len(bins) <= view.bins_most(one["x"], one["width"]), one
                levels += [float(truth.row(n)[bins].max()) for n in those]
            is_past = not any(is_live(row) for row in one["rows"])
            compare(float(level.split()[0]), max(levels), PAST_DB if is_past else LIVE_DB, one)
            place = "live rows begin" if one["isAtSeam"] else f"time {view.direction}"
            self.counts[f"{mode}, waterfall, {place}"] += 1

    def lines(self, view: View, count: int, mode: str) -> None:
        """Compare levels under the pointer in line spectra, of any channel of their panel."""
        for one in self.read(count, "line"):
            found = re.search(r"(-?\d+\.\d) dBFS  (20.*) UTC$", one["text"])
            if found is None:
                continue
            t_ms, level = ms_of(found[2]), float(found[1])
            expected = [
                max(float(truth.row(n)[bins].max()) for n in those)
                for own in one["spectra"]
                for truth in [self.truths[own["endpoint"]]]
                for bins in [view.bins(one["x"], one["width"], own["slices"])]
                if len(bins) > 0
                for those in rows_about(truth, t_ms, own["length_s"])
            ]
            error = min(abs(level - one) for one in expected)
            assert error <= LIVE_DB + TEXT_DB, (one, level, expected)
            self.counts[f"{mode}, line spectrum"] += 1

    def csv(self, count: int, mode: str) -> None:
        """Compare lines of the saved line spectra."""
        with self.page.expect_download() as saved:
            self.page.locator("#save-csv").click()
        lines = saved.value.path().read_text("utf-8").splitlines()
        t_ms = ms_of(lines[1].removeprefix("# ").removesuffix(" UTC"))
        spectra = self.page.evaluate("() => [...globalThis.strips.values()].flatMap(spectraOf)")
        endpoint = next(iter(self.truths))
        lengths = {one["length_s"] for one in spectra if one["endpoint"] == endpoint}
        sets = [those for one in lengths for those in rows_about(self.truth, t_ms, one)]
        for k in self.random.integers(4, len(lines), count):
            hertz, bins, level = map(float, lines[k].split(","))
            first = round(hertz / BIN_HZ)
            cut = slice(first, first + int(bins))
            expected = [max(float(self.truth.row(n)[cut].max()) for n in those) for those in sets]
            assert min(abs(level - one) for one in expected) <= LIVE_DB, (lines[:4], lines[k])
            self.counts[f"{mode}, CSV"] += 1

    def save(self, button: str) -> bytes:
        """Press a button that saves; return the content."""
        with self.page.expect_download() as saved:
            self.page.locator(button).click()
        return saved.value.path().read_bytes()

    def png(self, view: View, count: int, mode: str) -> None:
        """Compare colours of a saved figure's waterfalls with the levels of the rows."""
        self.page.evaluate("() => globalThis.figures.clear()")
        drawing = self.save("#save-drawing")
        pictures = waterfalls_of(self.save("#save-picture"), drawing, view.direction)
        assert len(pictures) == 1 + view.is_over, len(pictures)
        # The frame of a plot covers half a line of its edge.
        sizes = [(one.shape[1] - 4, one.shape[0] - 4) for one in pictures]
        places = [(2 + self.random.integers((0, 0), size, (count, 2))).tolist() for size in sizes]
        heights = [one.shape[0] for one in pictures]
        for one in self.page.evaluate(ROWS_OF_FIGURE, [heights, places]):
            self._pixel(view, pictures[one["k"]], one, mode)

    def _pixel(self, view: View, picture: Any, one: dict[str, Any], mode: str) -> None:
        height, width = picture.shape[:2]
        truth, line_ms = self.truths[one["endpoint"]], 1000.0 * view.span_s / height
        begin_ms = line_ms * (np.floor(one["newestMs"] / line_ms) - one["y"])
        shares = shares_of_colour(picture[one["y"], one["x"]])
        numbers = rows_of(truth, one, begin_ms, line_ms)
        if not one["rows"]:
            assert not len(shares), one  # also no caption has a colour of the map
            check_nothing(truth, one, begin_ms, line_ms)
            return
        if not len(shares):  # the mark of a gap, or the caption of one of several
            x, y = view.turned(one["x"], one["y"], width, height)
            across = height if view.direction == "right" else width
            is_caption = view.is_over and x < across / 2 and y < CAPTION_PX
            assert is_caption or any(row["flags"] for row in one["rows"]), one
            return
        bins = [view.bins(one["x"], width, row["slices"]) for row in one["rows"]]
        levels = [
            float(truth.row(n)[own].max())
            for own, those in zip(bins, numbers, strict=True)
            for n in those
        ]
        errors = np.abs(LO_DB + (shares + 0.5 / 256) * (HI_DB - LO_DB) - max(levels))
        shade_db = (HI_DB - LO_DB) / 256
        assert errors.min() <= shade_db + LIVE_DB, (errors, max(levels), one)
        self.counts[f"{mode}, PNG, time {view.direction}"] += 1

    def thirds(self, view: View, count: int, mode: str) -> None:
        """Compare third-octave bars: under the pointer, and in a saved drawing of one channel."""
        times = set()
        for one in self.read(count, "line"):
            found = re.search(r"(-?\d+\.\d) dBFS  (20.*) UTC$", one["text"])
            left, right = (view.hertz((one["x"] + k) / one["width"]) for k in (0, 1))
            expected = [
                max(found_db)
                for t_ms in ([] if found is None else [ms_of(found[2])])
                for bands in self._bands(one["spectra"], t_ms)
                if (found_db := [db for f1, f2, db in bands if f2 > left and f1 < right])
            ]
            if found is None:  # no whole band is there
                continue
            error = min(abs(float(found[1]) - db) for db in expected)
            assert error <= bar_step_db(mode) + TEXT_DB, (found[0], expected, one)
            self.counts[f"{mode}, third octave"] += 1
            times.add(ms_of(found[2]))
        if mode != "live" and not view.is_over and len(times) == 1:
            spectra = self.page.evaluate("() => [...globalThis.strips.values()].flatMap(spectraOf)")
            own = [one for one in spectra if one["endpoint"] == next(iter(self.truths))]
            self._drawn_bars(view, list(self._bands(own, times.pop())), mode)

    def _bands(
        self, spectra: list[dict[str, Any]], t_ms: float
    ) -> Iterator[list[tuple[float, float, float]]]:
        """Yield edges and levels of the bands of each row that a line spectrum may be of."""
        for own in spectra:
            truth, slices = self.truths[own["endpoint"]], own["slices"]
            starts, stops = bins_of(slices, SPEC.n_values)
            edges = edges_of(slices, SPEC.n_values, BIN_HZ)
            bands = bands_within(float(edges[0][0]), float(edges[1][-1]), BIN_HZ)
            for those in rows_about(truth, t_ms, own["length_s"]):
                power = np.mean([10.0 ** (truth.row(n).astype(float) / 10.0) for n in those], 0)
                sums = np.concatenate([[0.0], np.cumsum(power)])
                means = (sums[stops] - sums[starts]) / (stops - starts)
                yield [(*band, band_level(means, edges, band, ENBW_HZ)) for band in bands]

    def _drawn_bars(
        self, view: View, rows: list[list[tuple[float, float, float]]], mode: str
    ) -> None:
        """Compare ends and tops of the bars of a saved drawing."""
        bars = bars_of(self.save("#save-drawing"))
        shown = [[one for one in row if one[1] > view.f0 and one[0] < view.f1] for row in rows]
        error, row = min((bar_error(bars, row), row) for row in shown)
        assert len(bars) == len(row), (len(bars), row)
        assert error <= bar_step_db(mode), (error, bars, row)
        for bar, (f1, f2, _) in zip(bars, row, strict=True):
            left, right = view.hertz(bar.left), view.hertz(bar.right + bar.px)
            px_hz = view.hertz(bar.left + bar.px) - left
            assert abs(left - max(f1, view.f0)) <= 0.05 * px_hz, (bar, f1)
            assert right - min(f2, view.f1) <= 1.05 * (right - view.hertz(bar.right)), (bar, f2)
            assert right - min(f2, view.f1) >= -0.05 * px_hz, (bar, f2)
        self.counts[f"{mode}, drawn third octave"] += len(bars)

    def selection(self, view: View, mode: str) -> None:
        """Compare Leq, peak and number of rows of a selection of whole bins."""
        truth = self.truth
        top_s = int((truth.begin_ms + ROW_MS * truth.n_recorded) // 1000)
        length_s = int(self.random.integers(2, max(3, truth.n_recorded // 20)))
        t0_s = top_s - length_s - int(self.random.integers(0, truth.n_recorded // 20))
        first = int(self.random.integers(1, SPEC.n_values - 60))
        last = first + int(self.random.integers(0, 50))
        f0, f1 = (first - 0.4) * BIN_HZ, (last + 0.4) * BIN_HZ
        box = f"{1000 * t0_s}:{1000 * (t0_s + length_s)}:{f0:.6g}:{f1:.6g}"
        self.show(view, t=str(1000 * (t0_s + length_s)), sel=box)
        item = self.page.locator(".selection-card[aria-label=Selection] li", has_text="Leq").first
        item.wait_for()
        said = re.search(
            r"band (-?\d+\.\d) dBFS; peak (-?\d+\.\d) dBFS at ([\d.]+) (k?)Hz, (\S+) UTC"
            r" \((\d+) rows",
            item.inner_text(),
        )
        assert said is not None, item.inner_text()
        rows, near = (
            np.stack([truth.row(n)[first : last + 1] for n in self._box(t0_s, length_s, columns)])
            for columns in (min(1024, round(1000 * length_s / ROW_MS)), 256)
        )
        power = (10.0 ** (rows.astype(float) / 10.0)).sum(axis=1).mean() * BIN_HZ / ENBW_HZ
        compare(float(said[1]), 10.0 * np.log10(power), 2 * FINE_DB, said[0])
        compare(float(said[2]), float(near.max()), FINE_DB, said[0])
        places = np.argwhere(near >= near.max() - FINE_DB)[:, 1] + first
        hertz = float(said[3]) * (1000.0 if said[4] else 1.0)
        assert min(abs(hertz - BIN_HZ * k) for k in places) <= BIN_HZ / 2, said[0]
        assert int(said[6]) == len(rows), (said[0], len(rows))
        self.counts[f"{mode}, selection"] += 4

    def _box(self, t0_s: int, length_s: int, columns: int) -> range:
        """Return the rows of the columns that cover a selection, as docs/web-protocol.md says."""
        grid = TimeGrid.covering(t0_s * 10**9, (t0_s + length_s) * 10**9, columns)
        found = self.truth.between(grid.t0_ns / 1e6, grid.t1_ns / 1e6)
        return range(found.start, min(found.stop, self.truth.n_sent))

    def meter(self, mode: str) -> None:
        """Compare a meter with the level that was sent."""
        level = float(np.round(self.random.uniform(-79.0, -1.0), 3))
        self.truth.daemon.send(*level_message(self.counts.total(), level))
        shown = self.page.locator("#meters dd", has_text=f"{level:.1f} dBFS")
        shown.first.wait_for(state="attached")
        self.counts[f"{mode}, meter"] += 1

    def bar(self, mode: str) -> None:
        """Compare the ends of the bar of levels with those of the link."""
        ends = self.page.locator(".panel [role=slider][aria-valuenow]")
        texts = [float(one.get_attribute("aria-valuenow") or "nan") for one in ends.all()[:2]]
        assert sorted(texts) == [LO_DB, HI_DB], texts
        self.counts[f"{mode}, bar"] += 2


def bar_step_db(mode: str) -> float:
    """Return half a step of the rows of bars, and of the sums of the page [dB].

    Rows of a live waterfall, of which a pause or a time near the seam has some, are of eight bits.
    """
    return (PAST_DB if mode == "past" else LIVE_DB) + FINE_DB + 1e-3


def bar_error(bars: list[Bar], row: list[tuple[float, float, float]]) -> float:
    """Return the greatest difference of tops of bars and levels [dB]; infinite of other numbers."""
    if len(bars) != len(row) or not row:
        return math.inf
    tops = [HI_DB - bar.top * (HI_DB - LO_DB) for bar in bars]
    return max(abs(top - db) for top, (_, _, db) in zip(tops, row, strict=True))


def rows_about(truth: Truth, t_ms: float, length_s: float) -> Iterator[range]:
    """Yield the rows that one of a line spectrum, with its time and its length, may be of.

    A row that was sent is of one row, or of some that were merged; a column of the past of those
    whose middles it has, or of the one that it lies in.
    """
    at, length = (t_ms - truth.begin_ms) / ROW_MS, round(1000.0 * length_s / ROW_MS, 6)
    # The middle of a column that does not begin with a row is half a row from theirs at most.
    slack = TIME_ROWS + (0.0 if length == int(length) else 0.5)
    for count in {max(1, int(length)), math.ceil(length)}:
        for first in range(max(0, int(at - count / 2) - 2), int(at - count / 2) + 4):
            if abs(first + count / 2 - at) < slack:
                yield range(first, first + count)


def rows_of(truth: Truth, one: dict[str, Any], begin_ms: float, line_ms: float) -> list[range]:
    """Return the numbers of each row that is drawn in a line, which must be those of its time."""
    for row in one["rows"]:
        first_ms, last_ms = ends_of(row)
        assert first_ms < begin_ms + line_ms + 1e-3, (row, begin_ms, line_ms)
        assert last_ms > begin_ms - 1e-3, (row, begin_ms, line_ms)
    if truth.is_always_shown:
        check_whole(truth, one, begin_ms, line_ms)
    return [numbers_of(truth, row) for row in one["rows"]]


def ends_of(row: dict[str, Any]) -> tuple[float, float]:
    """Return begin and end of a row that is drawn [ms since 1970]."""
    half_ms = 500.0 * row["merged"] * row["row_s"]
    return row["tMs"] - half_ms, row["tMs"] + half_ms


def numbers_of(truth: Truth, row: dict[str, Any]) -> range:
    """Return the numbers of the rows that one that is drawn is of."""
    if is_live(row):
        last = truth.n_recorded + int(row["seq"])
        middle_ms = truth.begin_ms + ROW_MS * (last + 1 - row["merged"] / 2)
        assert abs(middle_ms - row["tMs"]) < 1.0, row
        return range(last - row["merged"] + 1, last + 1)
    # Columns of the past: rows whose middles they have, or the one that they are of. One in which
    # live rows begin ends there, and has the levels of all its rows.
    begin_ms, _ = ends_of(row)
    column_ms = 1000.0 * row["row_s"]
    own = truth.between(begin_ms, begin_ms + column_ms)
    at = truth.number_at(begin_ms + column_ms / 2)
    return own if len(own) and column_ms >= ROW_MS else range(at, at + 1)


def is_live(row: dict[str, Any]) -> bool:
    """Return whether a row was sent, not made of the past."""
    return bool(row["isLive"])


def check_whole(truth: Truth, one: dict[str, Any], begin_ms: float, line_ms: float) -> None:
    """Check that no row is missing that has its middle in a line.

    A column of the past is no longer than a line, and drawn where its own middle is: its rows are
    in the line, or in one beside it.
    """
    if not one["rows"]:
        return
    due = set(truth.between(begin_ms, begin_ms + line_ms))
    there = {n for row in one["about"] for n in numbers_of(truth, row)}
    newest = truth.n_recorded + max(row["seq"] for row in one["about"])
    missing = {n for n in due - there if n <= newest or n < truth.n_recorded}
    assert not missing, (missing, one, begin_ms, line_ms)


def check_nothing(truth: Truth, one: dict[str, Any], begin_ms: float, line_ms: float) -> None:
    """Check that a line without data is before the first row, or newer than what has come.

    The server has no live rows of a time in which no page showed their channel.
    """
    end_ms = begin_ms + line_ms
    if not truth.is_always_shown and end_ms > truth.begin_ms + ROW_MS * truth.n_recorded:
        return
    first_ms = truth.begin_ms + max(ROW_MS, line_ms)
    last_ms = min(one["newestMs"] - 2000.0, truth.begin_ms + ROW_MS * (truth.n_sent - 30))
    assert end_ms <= first_ms or begin_ms >= last_ms, (one, end_ms - first_ms, begin_ms - last_ms)


def compare(level: float, expected: float, step_db: float, about: object) -> None:
    """Compare a level that is written with one digit."""
    assert abs(level - expected) <= step_db + TEXT_DB + 1e-6, (level, expected, about)


def ms_of(text: str) -> float:
    """Return a time of a text [ms since 1970]."""
    return float(np.datetime64(text.replace(" ", "T"), "us").astype(float)) / 1e3


def level_message(seq: int, level: float) -> list[bytes]:
    """Return the parts of a message with one level of the first channel."""
    header = LevelsHeader(
        seq=seq,
        epoch=1,
        t_utc_ns=time.time_ns(),
        t_mono_ns=0,
        sample_index=seq * 48000,
        fs=48000.0,
        interval_s=1.0,
        n_samples=48000,
        due_samples=48000,
        quantities=("LAeq",),
        units=("dBFS",),
        shape=(1,),
        ref="0 dBFS = full-scale sine",
    )
    frame = IntervalFrame("levels/mic/0/meter/", header, np.array([level]))
    return [bytes(part) for part in encode(frame)]


def record(folder: Path, truth: Truth, begin_ns: int) -> None:
    """Write the recorded rows and their pyramid, as the recorder does."""
    place = folder / "all" / "mic"
    place.mkdir(parents=True)
    about = Description(SPEC, "mic", ("0",), "page_places")
    segment = SegmentWriter(place / "one.spd", about)
    pyramid = PyramidWriter(place / "pyramid", about, PyramidOptions(1.0, values_max=0))
    for first in range(0, truth.n_recorded, 600):
        numbers = range(first, min(first + 600, truth.n_recorded))
        values = np.stack([truth.row(n) for n in numbers])[:, np.newaxis]
        index = np.array(numbers, np.int64) * SPEC.hop
        t_ns = begin_ns + index * 10**9 // 48000
        for writer in (segment, pyramid):
            writer.write(SpectrumBatch(values, index, t_ns, t_ns, SPEC, "numpy"))
    segment.finish()
    pyramid.finish()


@contextlib.contextmanager
def world(folder: Path, seed: int, recorded_s: int) -> Iterator[tuple[str, dict[str, Truth]]]:
    """Run two daemons behind one recording, and the page's server; yield its address and rows."""
    n_recorded = round(1000 * recorded_s / ROW_MS)
    # Live rows come four times as fast as they say: they must not be of the future.
    begin_ns = (time.time_ns() // 10**9 - 3 * recorded_s - 1200) * 10**9
    truths: dict[str, Truth] = {}
    with contextlib.ExitStack() as stack:
        for n in range(2):
            truth = Truth(seed + n, n_recorded, begin_ns)
            truth.is_always_shown = n == 0
            truth.daemon = MadeUpDaemon(folder, begin_ns + n_recorded * round(ROW_MS * 1e6))
            truths[truth.daemon.endpoint] = stack.enter_context(feeding(truth))
        record(folder, next(iter(truths.values())), begin_ns)
        web = running_web(*truths, "--recordings", folder)
        link, _ = stack.enter_context(web)
        yield link.partition("#")[0], truths


@contextlib.contextmanager
def feeding(truth: Truth) -> Iterator[Truth]:
    """Run a daemon whose rows begin with its first subscriber: none is lost."""
    daemon = truth.daemon
    with daemon.running():
        daemon.live = None
        yield truth


def begin_rows(truths: dict[str, Truth]) -> None:
    """Let rows come."""
    for truth in truths.values():
        truth.daemon.live = lambda own=truth: own.row(own.n_sent)


def wait_for_server(page: Page, truths: dict[str, Truth]) -> None:
    """Wait until the server receives rows of all channels: none is lost."""
    deadline_s = time.monotonic() + TIMEOUT_MS / 1e3
    topic = TOPIC.encode()
    for truth in truths.values():
        while not any(topic.startswith(one) and one for one in truth.daemon.subscriptions.copy()):
            assert time.monotonic() < deadline_s, "the server does not subscribe"
            page.evaluate("() => new Promise(requestAnimationFrame)")


def wait_for_rows(page: Page, truth: Truth, count: int) -> None:
    """Wait until so many rows more were sent."""
    until = truth.n_sent + count
    deadline_s = time.monotonic() + TIMEOUT_MS / 1e3
    while truth.n_sent < until:
        assert time.monotonic() < deadline_s, "no rows are sent"
        page.evaluate("() => new Promise(requestAnimationFrame)")


def open_page(browser: Browser, address: str, truths: dict[str, Truth]) -> Page:
    """Open the page with its modules one by one: those that a script imports are then its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, timezone_id="UTC")
    context.add_init_script(WATCH)
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    view = View("log", 10.0, 24000.0, 10.0, 40, is_over=True)
    page.goto(f"{address}?modules#{view.link(list(truths))}")
    page.evaluate(NOTE_STRIPS)
    for button, pane in (("#measure", "#tables"), ("#options", "#side")):
        if not page.locator(pane).is_visible():
            page.locator(button).click()
    page.locator("summary", has_text="Save").first.click()
    return page


@contextlib.contextmanager
def shown(checker: Checker, mode: str, view: View, **more: str) -> Iterator[None]:
    """Show a view in one way, while rows come."""
    page, truth = checker.page, checker.truth
    t1 = {} if mode in {"live", "paused"} else {"t": str(time_of(checker, mode, view.span_s))}
    # The page knows what the values of an axis are of from the first row on it.
    begin_rows(checker.truths)
    checker.show(view, **t1, **more)
    wait_for_rows(page, truth, 20)
    checker.settle()
    if mode == "paused":
        page.evaluate("() => document.querySelector('.surface').focus()")
        page.keyboard.press("Space")
        page.locator(".banner", has_text="paused").first.wait_for()
        checker.settle()
    yield
    # The server's memory of rows is not of all day: older ones would be cells of a second.
    stop_rows(checker.truths)


def look(checker: Checker, mode: str, view: View, n_places: int, *, has_png: bool) -> None:
    """Compare places of one view, shown in one way."""
    with shown(checker, mode, view):
        checker.falls(view, n_places - n_places // 4, mode)
        checker.lines(view, n_places // 4, mode)
        checker.bar(mode)
        if has_png:
            checker.png(view, n_places // 2, mode)


def look_at_bars(checker: Checker, mode: str, view: View) -> None:
    """Compare third-octave bars of a view; those of which it shows a part are whole ones."""
    bands = bands_within(BIN_HZ, BIN_HZ * SPEC.n_values, BIN_HZ)
    if not any(f2 > view.f0 and f1 < view.f1 for f1, f2 in bands):
        return
    with shown(checker, mode, view, bars="third"):
        checker.thirds(view, 6, mode)


def time_of(checker: Checker, mode: str, span_s: float) -> int:
    """Return a time of the recording, or one whose view has its end in it [ms since 1970]."""
    truth, random = checker.truth, checker.random
    length_ms = ROW_MS * truth.n_recorded
    t_ms = truth.begin_ms + length_ms * (random.uniform(0.1, 1.0) if mode == "past" else 1.0)
    t_ms += random.uniform(0.0, 1000.0 * span_s) if mode == "seam" else 0.0
    newest_ms = truth.begin_ms + ROW_MS * truth.n_sent - 3000.0
    return round(min(t_ms, newest_ms))


def stop_rows(truths: dict[str, Truth]) -> None:
    """Let no more rows come for a while."""
    for truth in truths.values():
        truth.daemon.live = None


def run(checker: Checker, n_places: int, recorded_s: int) -> None:
    """Look at views until there are so many places."""
    n = 0
    while checker.counts.total() < n_places:
        view = random_view(checker.random, recorded_s, is_over=n % 3 == 2)
        mode = MODES[n % len(MODES)]
        try:
            look(checker, mode, view, 12, has_png=n % 3 == 1 or n % 6 == 5)
            if not view.is_over and mode != "live":
                checker.csv(5, mode)
            if n % 3 == 0 or n % 6 == 2:
                look_at_bars(checker, mode, view)
        except AssertionError:
            truth = checker.truth
            seam_ms = truth.begin_ms + ROW_MS * truth.n_recorded
            print(f"{mode}, place {checker.counts.total()}: {view}, live from {seam_ms:.0f} on")
            raise
        if n % 4 == 1:
            checker.selection(view, mode)
        if n % 4 == 2:
            checker.meter(mode)
        n += 1


def measure(browser: Browser, n_places: int, seed: int, recorded_s: int) -> dict[str, int]:
    """Compare places; return how many of each kind."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address, truths = stack.enter_context(world(folder, seed, recorded_s))
        page = open_page(browser, address, truths)
        stack.callback(page.context.close)
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        wait_for_server(page, truths)
        begin_rows(truths)
        for truth in truths.values():
            wait_for_rows(page, truth, 80)
        checker = Checker(page, truths, np.random.default_rng(seed))
        run(checker, n_places, recorded_s)
        assert problems == [], problems
        return dict(sorted(checker.counts.items()))


def main() -> None:
    """Compare, and print or write how many places were equal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--places", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recorded", type=int, default=300, metavar="S", help="of the recording")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    begin_s = time.monotonic()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        counts: Counter[str] = Counter()
        for seed in range(args.seed, args.seed + args.places):
            rest = args.places - counts.total()
            if rest > 0:
                counts.update(measure(browser, min(rest, ROUND), seed, args.recorded))
        browser.close()
    found: dict[str, Any] = {"places": sum(counts.values()), **counts}
    found |= {"seconds": round(time.monotonic() - begin_s), "load": round(os.getloadavg()[0], 1)}
    print("\n".join(f"{key}: {value}" for key, value in found.items()))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
