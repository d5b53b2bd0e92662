"""The time zone of a daemon's source: the page shows its times, live and past."""

import re
import urllib.parse

import pytest
from made_up_daemon import MadeUpDaemon, tone
from programs import SOURCES, running_daemon, running_web
from tabs import HAS_ROWS, MIC, Tab, wait_for_rows, wait_until

from spectrod.client.control import Control

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

ZONED = SOURCES.replace("[analysis]", 'time_zone = "Asia/Kolkata"\n[analysis]')


def shown_ms(tab):
    """Return the time of the past that the address has [ms]."""
    text = urllib.parse.urlparse(tab.page.url).fragment
    return float(dict(urllib.parse.parse_qsl(text))["t"])


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
