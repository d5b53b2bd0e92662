"""Steps of ten tasks on the page: each by pointer and by keyboard alone, done in Chromium.

    python benchmarks/page_tasks.py [--json FILE]

An archive of 45 days, two channels, a minute of each half hour (``bench_season.py make``), with
events of two kinds, is opened without a link; each task begins with the page as a browser shows it
that has never seen it. A step is a click, a drag, a field that is filled in or a press of a key;
presses of the Tab key are counted apart. A task is done when what was asked for is on the page,
which the script checks. It fails where one is not.
"""

import argparse
import datetime as dt
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bench_season
from playwright.sync_api import Browser, Locator, Page, sync_playwright

DAYS = 45
TABS_MAX = 300
IN_FOCUS = "one => one === document.activeElement"
SELECTION = ".selection-card[aria-label=Selection]"
EVENTS = """begin,begin_s,duration_s,channel,f_min_hz,f_max_hz,frequency_hz
2026-01-20T03:00:00+00:00,0,60,0,3000,9000,6000
2026-02-03T04:30:00+00:00,0,60,0,3000,9000,6000
2026-02-04T10:00:00+00:00,0,60,0,50,300,120
2026-02-09T04:30:00+00:00,0,60,0,3000,9000,6000
"""


@dataclass
class Hand:
    """What a person does on the page, counted; ``steps`` and ``tabs`` grow."""

    page: Page
    is_keyboard: bool
    steps: list[str] = field(default_factory=list)
    tabs: int = 0

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)
            self.steps.append(f"key {key}")
            self.page.wait_for_timeout(60)

    def focus(self, target: Locator) -> None:
        """Go to something by the Tab key; by pointer nothing is needed."""
        target.wait_for()
        while self.is_keyboard and not target.evaluate(IN_FOCUS):
            assert self.tabs < TABS_MAX, f"the Tab key does not reach {target}"
            self.page.keyboard.press("Tab")
            self.tabs += 1

    def use(self, target: Locator, name: str) -> None:
        """Click something, or go to it and press Enter or, of a box to tick, the space bar."""
        self.focus(target)
        if self.is_keyboard:
            self.press("Space" if target.get_attribute("type") == "checkbox" else "Enter")
            return
        target.click()
        self.steps.append(f"click {name}")

    def fill(self, target: Locator, text: str, name: str) -> None:
        """Fill in a field, or choose in a list."""
        self.focus(target)
        if target.evaluate("one => one.tagName") == "SELECT":
            target.select_option(text)
        else:
            target.fill(text)
        self.steps.append(f"{name}: {text}")

    def place(self, share: float, hour: float) -> tuple[float, float]:
        """Return a place in the first waterfall: a share of its width, an hour of the day shown."""
        box = self.page.locator(".waterfall").first.bounding_box()
        assert box is not None
        return box["x"] + share * box["width"], box["y"] + (1 - hour / 24) * box["height"]

    def click_at(self, share: float, hour: float) -> None:
        """Click in the first waterfall."""
        self.page.mouse.click(*self.place(share, hour))
        self.steps.append("click in the waterfall")

    def drag_box(self, first: tuple[float, float], last: tuple[float, float]) -> None:
        """Select from a share of the width and an hour to others by a drag with Shift."""
        self.page.keyboard.down("Shift")
        self.page.mouse.move(*self.place(*first))
        self.page.mouse.down()
        self.page.mouse.move(*self.place(*last), steps=4)
        self.page.mouse.up()
        self.page.keyboard.up("Shift")
        self.steps.append("drag with Shift")

    def open_day(self, date: str) -> None:
        """Open a day of the overview, and wait for its loudest moment."""
        if self.is_keyboard:
            self.go_to_day(date)
        self.use(self.page.locator(f".day[aria-label^='{date}']").first, date)
        self.page.wait_for_function("() => location.hash.includes('&ct=')")

    def go_to_day(self, date: str) -> None:
        """Go to the days by the Tab key, and to one of them by the least arrows and pages."""
        stop = self.page.locator('.day[tabindex="0"]').first
        self.focus(stop)
        here = dt.date.fromisoformat((stop.get_attribute("aria-label") or "")[:10])
        weeks, days = divmod((here - dt.date.fromisoformat(date)).days, 7)
        side = ["ArrowLeft"] * days if days <= 4 else ["ArrowRight"] * (7 - days)
        self.press(*["ArrowUp"] * (weeks + (days > 4)), *side)

    def says(self, selector: str, *texts: str) -> None:
        """Wait until an element has these texts."""
        for text in texts:
            self.page.locator(selector, has_text=text).first.wait_for()


def loudest_moment(hand: Hand) -> None:
    """Show the spectrum of the loudest moment of the last day."""
    hand.open_day("2026-02-14")
    hand.says(".panel", "A: 2026-02-14")


def band_level(hand: Hand) -> None:
    """Measure the level of a band between two times; by keys those of the middle."""
    hand.open_day("2026-02-08")
    if hand.is_keyboard:
        hand.press("s")
    else:
        hand.drag_box((0.6, 6.0), (0.9, 3.0))
    hand.says(SELECTION, "Leq of the band")


def same_hour(hand: Hand) -> None:
    """Compare the spectra of one hour of two days; by keys the hour of the loudest moment."""
    hand.open_day("2026-02-08")
    if not hand.is_keyboard:
        hand.click_at(0.8, 4.5)
        hand.page.wait_for_function("() => location.hash.includes('&ct=17705')")
    hand.press("d")
    hand.says(".panel", "A: 2026-02-08")
    hand.says(".panel", "B: 2026-02-07")


def first_event(hand: Hand) -> None:
    """Show the first event of a kind in February."""
    page = hand.page
    hand.use(page.locator("#measure"), "Measure")
    hand.use(page.locator("#events-box > summary"), "Events")
    hand.fill(page.get_by_role("searchbox", name="Words in events"), "6000", "words")
    page.wait_for_function("() => document.querySelectorAll('#events tbody tr').length === 3")
    row = page.locator("#events tbody tr", has=page.get_by_text("2026-02-03"))
    hand.use(row.get_by_role("button"), "the event")
    hand.says("#mark-card", "peak at 6000 Hz")


def left_and_right(hand: Hand) -> None:
    """Show two channels in one panel."""
    page = hand.page
    hand.open_day("2026-02-08")
    hand.press("o")
    page.wait_for_function("() => document.querySelectorAll('.panel').length === 1")
    hand.says(".panel", "south")


def report_figure(hand: Hand) -> None:
    """Save a figure of a day for a report."""
    page = hand.page
    hand.open_day("2026-02-08")
    with page.expect_download() as saved:
        hand.press("g")
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")


def date_and_time(hand: Hand) -> None:
    """Go to a date and a time."""
    page = hand.page
    hand.use(page.locator("#time"), "Time")
    hand.fill(page.locator("#timebar input"), "2026-01-20T03:01:00", "date and time")
    if hand.is_keyboard:
        hand.press("Enter")
    page.wait_for_function("() => location.hash.includes('t=1768878060000')")


def zoom_to_call(hand: Hand) -> None:
    """Fill the plot with a call: its frequencies and its time."""
    hand.open_day("2026-02-08")
    if hand.is_keyboard:
        hand.press("s")
    else:
        hand.drag_box((0.7, 6.5), (0.9, 2.5))
    hand.use(hand.page.locator(SELECTION).get_by_role("button", name="Zoom to it"), "Zoom to it")
    hand.page.wait_for_function("() => location.hash.includes('&f=')")


def difference_of_days(hand: Hand) -> None:
    """Show all days of one channel less those of another."""
    page = hand.page
    hand.fill(page.locator("#season select").first, "spec/south/0/density/", "less")
    page.wait_for_function("() => location.hash.includes('less=')")


def recorded_values(hand: Hand) -> None:
    """Save the levels of a day as a table."""
    page = hand.page
    hand.open_day("2026-02-08")
    with page.expect_download() as saved:
        hand.press("x")
    assert saved.value.suggested_filename.endswith(".csv")


TASKS: tuple[Callable[[Hand], None], ...] = (
    loudest_moment,
    band_level,
    same_hour,
    first_event,
    left_and_right,
    report_figure,
    date_and_time,
    zoom_to_call,
    difference_of_days,
    recorded_values,
)


def done(browser: Browser, address: str, task: Callable[[Hand], None], *, is_keyboard: bool) -> Any:
    """Do a task on a fresh page; return its steps."""
    context = browser.new_context(viewport={"width": 1366, "height": 768}, timezone_id="UTC")
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.goto(address)
    page.locator(".day[data-state=data]").first.wait_for()
    hand = Hand(page, is_keyboard)
    task(hand)
    context.close()
    return {"steps": len(hand.steps), "tabs": hand.tabs, "what": hand.steps}


def measure(folder: Path, chromium: str) -> dict[str, Any]:
    """Do all tasks in both ways; return their steps by name."""
    bench_season.make(folder, DAYS, 2)
    events = folder / "events.csv"
    events.write_text(EVENTS)
    found: dict[str, Any] = {}
    serving = bench_season.serving(folder / "season", "--events", f"north={events}")
    with serving as (address, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for task in TASKS:
            assert task.__doc__ is not None
            ways = {
                way: done(browser, address, task, is_keyboard=way == "keyboard")
                for way in ("pointer", "keyboard")
            }
            found[task.__name__] = {"task": task.__doc__, **ways}
            counts = {way: f"{one['steps']} steps, {one['tabs']} Tab" for way, one in ways.items()}
            print(f"{task.__doc__:70} {counts}", flush=True)
        browser.close()
    return found


def main() -> None:
    """Do the tasks, and print or write the steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), args.chromium)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
