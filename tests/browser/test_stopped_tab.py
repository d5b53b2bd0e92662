"""Tabs that Chromium freezes, starves or stops: the server stays small, the page catches up."""

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from programs import running_daemon, running_web
from remote import chromium_tab, until
from websockets.sync.client import connect

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

TIMEOUT_MS = 60_000
SECONDS = 10
GROWTH_MAX_BYTES = 4 << 20
"""Half of the values that come in that time: the page's queue has 1 MiB, the rest is for chance."""
CONFIG = """
[sources.mic]
uri = "signal:pink,-20"
channels = 4
[analysis]
win_length = 4096
nfft = 4096
hop = 480
[publish]
endpoints = ["{endpoint}"]
[engine]
engine = "numpy"
"""
"""Four channels of 2049 values, 100 rows a second: 820 kB/s of values."""
SHOWN = "&".join(f"topic=spec/mic/{channel}/dbfs/" for channel in range(4)) + "&span=1"
"""A second of time, so that the page wants every row."""
HAS_ROWS = "[...document.querySelectorAll('.banner')].every(({ hidden }) => hidden)"
MOVES = """old => {
  const now = document.querySelector(".times").toDataURL();
  return old === "" ? now : now !== old;
}"""


class Observer:
    """Reads the server's states, one a second, as a page that shows nothing."""

    def __init__(self, socket):
        self._socket = socket

    def wait_for(self, is_true):
        """Wait for a state from now on that fulfils a condition."""
        begin_ms = 1e3 * time.time()
        while True:
            state = json.loads(self._socket.recv(60))
            if state["op"] == "state" and state["now_ms"] >= begin_ms and is_true(state):
                return

    def wait_for_clients(self, count):
        self.wait_for(lambda state: state["clients"] == count)

    def wait(self, seconds):
        """Wait for so many seconds of the server's clock."""
        end_ms = 1e3 * (time.time() + seconds)
        self.wait_for(lambda state: state["now_ms"] >= end_ms)


class Server:
    """The server of the page, seen from outside."""

    def __init__(self, link, process, socket):
        self.link, self._process = link, process
        self.observer = Observer(socket)

    @property
    def resident_bytes(self):
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) * 1024

    def growth_bytes(self):
        """Return how much the server grows in some seconds, in which it keeps rows as well."""
        before = self.resident_bytes
        self.observer.wait(SECONDS)
        return self.resident_bytes - before


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with (
        running_daemon(tmp_path_factory.mktemp("stopped"), CONFIG) as endpoint,
        running_web(endpoint) as (link, process),
        # Without a bound on its queue it answers pings, too, while no test reads.
        connect(
            link.replace("http", "ws") + "api/stream", origin=link[:-1], max_queue=None
        ) as socket,
    ):
        yield Server(link, process, socket)


@pytest.fixture
def page(chromium, server):
    """Yield the page with rows on it; no error may be on the console."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.goto(f"{server.link}#v=1&{SHOWN}")
    page.wait_for_function("() => document.querySelectorAll('.panel').length === 4")
    wait_until_it_moves(page)
    yield page
    context.close()
    assert problems == []


def wait_until_it_moves(page):
    """Wait until no panel misses rows, and the time axis goes on."""
    page.wait_for_function(f"() => {HAS_ROWS}")
    before = page.evaluate(MOVES, "")
    page.wait_for_function(MOVES, arg=before)


def dropped_rows(page):
    """Return how many rows the page says that the server dropped for it."""
    texts = page.locator("#status dt", has_text="dropped for this page").locator("+ dd")
    return sum(int(text.split()[0]) for text in texts.all_inner_texts())


def test_a_frozen_tab_closes_its_stream_and_catches_up(server, tmp_path):
    """Chromium's own freeze ends the stream; thawed, the page opens one and goes on."""
    with chromium_tab(tmp_path, f"{server.link}#v=1&{SHOWN}") as tab:
        tab.evaluate(until("document.querySelectorAll('.panel').length === 4"))
        tab.evaluate(until(HAS_ROWS))
        server.observer.wait_for_clients(2)
        usual = max(0, server.growth_bytes())
        tab.call("Page.setWebLifecycleState", {"state": "frozen"})
        server.observer.wait_for_clients(1)
        assert server.growth_bytes() < usual + GROWTH_MAX_BYTES
        tab.call("Page.setWebLifecycleState", {"state": "active"})
        tab.call("Page.bringToFront", {})
        server.observer.wait_for_clients(2)
        tab.evaluate(until(HAS_ROWS))
        line = "document.querySelector('#status dl[aria-label=connections] dd').textContent"
        assert tab.evaluate(line) == "connected"
        assert tab.problems == []


# Chromium slows a tab by spinning on a core; beside other programs the server then gets too
# little time, and it grows by what waits in its socket.
@pytest.mark.alone
def test_a_starved_tab_gets_fewer_rows(page, server):
    """A tab at a fiftieth of its speed does not make the server grow, and recovers."""
    usual = max(0, server.growth_bytes())
    devtools = page.context.new_cdp_session(page)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": 50})
    assert server.growth_bytes() < usual + GROWTH_MAX_BYTES
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    wait_until_it_moves(page)


def renderers(browser):
    session = browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return [one["id"] for one in found if one["type"] == "renderer"]


# Beside other programs the page may get so few rows before that nothing has to be dropped.
@pytest.mark.alone
def test_a_stopped_renderer_is_bounded_and_told_what_it_missed(page, server, chromium):
    """A renderer that is stopped takes nothing more; continued, it says how many rows it missed."""
    usual = max(0, server.growth_bytes())  # what an earlier page had may be given back meanwhile
    before = dropped_rows(page)  # other programs may have kept the page from its work
    pids = renderers(chromium)
    # Whatever happens here, they go on: a browser with a stopped renderer does not end.
    safeguard = threading.Timer(60.0, lambda: [os.kill(pid, signal.SIGCONT) for pid in pids])
    safeguard.start()
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        growth = server.growth_bytes()
    finally:
        safeguard.cancel()
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert growth < usual + GROWTH_MAX_BYTES
    wait_until_it_moves(page)
    page.locator("#status dt", has_text="dropped for this page").first.wait_for()
    assert dropped_rows(page) > before
    page.locator("#events-box summary").click()
    page.locator("#events td", has_text="rows dropped").first.wait_for()
