"""The time zone of a source: the page shows its times, live and past, and of recordings alone."""

import datetime as dt
import re
import urllib.parse
from dataclasses import replace

import pytest
from made_up_daemon import MadeUpDaemon, tone
from programs import SOURCES, running_daemon, running_web
from tabs import HAS_ROWS, MIC, Tab, wait_for_rows, wait_until
from test_silent_sources import ROWS, recorded_rows, wait_for

from spectrod.client.control import Control
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_writer import SegmentWriter

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

ZONED = SOURCES.replace("[analysis]", 'time_zone = "Asia/Kolkata"\n[analysis]')


def shown_ms(tab):
    """Return the time of the past that the address has; nan before it has one [ms]."""
    text = urllib.parse.urlparse(tab.page.url).fragment
    return float(dict(urllib.parse.parse_qsl(text)).get("t", "nan"))


def opened(open_context, link):
    """Open the page in a browser in Tokyo, with times of the source."""
    tab = Tab(open_context(timezone_id="Asia/Tokyo"), link.partition("#")[0])
    tab.open(f"v=1&topic={MIC}&span=30")
    tab.page.locator("#timebar select").select_option("source")
    return tab


def test_times_are_those_of_the_zone_in_the_configuration(open_context, tmp_path):
    """Live, paused, at a time that is typed, and of a source that sends no rows any more."""
    with running_daemon(tmp_path, ZONED) as endpoint, running_web(endpoint) as (link, _):
        tab = opened(open_context, link)
        wait_for_rows(tab, 3)
        bar = tab.page.locator("#timebar")
        assert bar.locator("option[value=source]").inner_text() == "source: Asia/Kolkata"
        now = tab.page.evaluate("new Date(Date.now() + 19_800_000).toISOString().slice(0, 13)")
        wait_until(tab.page, lambda: bar.locator("input").input_value()[:13] >= now)
        tab.page.keyboard.press(" ")
        tab.page.locator(".banner", has_text=re.compile(r"paused, .* GMT\+5:30")).wait_for()
        tab.page.keyboard.press(" ")
        bar.locator("input").fill("2026-07-01T12:00:05")
        tab.page.locator(".banner", has_text="the past, 2026-07-01 12:00:05").wait_for()
        wait_until(tab.page, lambda: shown_ms(tab) == 1782887405000)
        with Control(endpoint) as control:
            control.call("pause", source="mic")
        tab.open(f"v=1&topic={MIC}&span=30", waits=False)
        tab.page.locator(".banner", has_text=re.compile(r"the past, .* GMT\+5:30")).wait_for()
        assert tab.problems == []


def test_a_zone_with_two_offsets_comes_and_goes_with_descriptions(open_context, tmp_path):
    """Hours that come twice, or not at all, are the source's; an unknown zone is none."""
    daemon = MadeUpDaemon(tmp_path)
    daemon.meta_fields = {"time_zone": "Europe/Berlin"}
    daemon.live = lambda: tone(-20.0)
    with daemon.running(), running_web(daemon.endpoint) as (link, _):
        tab = opened(open_context, link)
        field = tab.page.locator("#timebar input")
        for text, utc_ms, said in (
            ("2025-10-26T02:30:00", 1761438600000, "comes twice"),
            ("2025-03-30T02:30:00", 1743298200000, "no such time"),
        ):
            field.fill(text)
            wait_until(tab.page, lambda t_ms=utc_ms: shown_ms(tab) == t_ms)
            tab.page.locator("#notice", has_text=said).wait_for()
        tab.page.get_by_role("button", name="Live").first.click()
        tab.page.wait_for_function(HAS_ROWS)
        of_source = tab.page.locator("#timebar option[value=source]")
        daemon.meta_fields = {"time_zone": "<b>Mars</b>"}
        of_source.wait_for(state="hidden")
        wait_until(tab.page, lambda: tab.page.locator("#timebar select").input_value() == "local")
        assert tab.problems == []


def time_in(tab, choice, zone):
    """Return the time in the bar of times, in a zone that is chosen, by the name that it has."""
    bar = tab.page.locator("#timebar")
    tab.page.wait_for_function("() => document.querySelector('#timebar input').value !== ''")
    bar.locator("select").select_option(choice)
    bar.locator(f"select[title='{zone}']").wait_for()
    return dt.datetime.fromisoformat(bar.locator("input").input_value())


def test_recordings_are_shown_in_the_zone_of_their_source(open_context, tmp_path):
    """Without a daemon, those of a folder and one alone; an unknown zone is none."""
    recorded = '[recordings.all]\nproduct = "dbfs"\npyramid = true\n[analysis]'
    with running_daemon(tmp_path, ZONED.replace("[analysis]", recorded, 1)) as endpoint:
        wait_for(endpoint, lambda: recorded_rows(endpoint) >= ROWS)
    folder = tmp_path / "recordings"
    (segment,) = (folder / "all" / "mic").glob("*.spd.part")
    for path in (folder, segment):
        with running_web(path) as (link, _):
            tab = Tab(open_context(timezone_id="Asia/Tokyo"), link)
            tab.page.goto(link)
            of_source = tab.page.locator("#timebar option[value=source]")
            of_source.filter(has_text="source: Asia/Kolkata").wait_for(state="attached")
            offset = time_in(tab, "source", "Asia/Kolkata") - time_in(tab, "UTC", "UTC")
            assert offset == dt.timedelta(hours=5, minutes=30)
            assert tab.problems == []
    about = replace(SegmentReader(segment).description, attributes={"time_zone": "<b>Mars</b>"})
    hostile = tmp_path / "hostile.spd"
    writer = SegmentWriter(hostile, about)
    for batch in SegmentReader(segment).batches():
        writer.write(batch)
    writer.finish()
    with running_web(hostile) as (link, _):
        tab = Tab(open_context(timezone_id="Asia/Tokyo"), link)
        tab.page.goto(link)
        offset = time_in(tab, "local", "Asia/Tokyo") - time_in(tab, "UTC", "UTC")
        assert offset == dt.timedelta(hours=9)
        assert tab.page.locator("#timebar option[value=source]").get_attribute("hidden") is not None
        assert "Mars" not in tab.page.content()
        assert tab.problems == []
