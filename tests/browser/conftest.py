"""Debian's Chromium, driven by Playwright, and a picture of each page that a failure leaves."""

import os
import re
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Error, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))

# The same engine as Chromium's in headless mode, for half of the processor time.
CHROMIUM = "/usr/bin/chromium-headless-shell"
PICTURES = os.environ.get("SPECTROD_TEST_PICTURES", "")
"""Folder for pictures of all tests, else those of failures are in pytest's temporary one.

Tests run without SPECTROD_*.
"""
# Names of no site: the tests' strangers, and names that the server has or has not been given.
RESOLVER = "--host-resolver-rules=MAP *.test 127.0.0.1"
# What stays open for somebody who has opened all panes of the page.
OPEN_PANES = """if (location.protocol !== "about:" && localStorage.getItem("spectrod") === null) {
  const panes = ["state", "time", "measure", "options"];
  localStorage.setItem("spectrod", JSON.stringify({ panes }));
}"""


@pytest.fixture(scope="module")
def chromium():
    """Yield a browser; without a sandbox, which root in a container does not get.

    Contexts of its ``new_context`` have the page with all panes open; with ``is_calm``, as a
    browser shows it that has never seen it.

    Playwright keeps an event loop running in the main thread: beyond the module, ``asyncio.run`` of
    other tests would fail.
    """
    with sync_playwright() as playwright:
        options = ["--no-sandbox", RESOLVER]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        new_context = browser.new_context

        def with_open_panes(*, is_calm=False, **given):
            context = new_context(**given)
            if not is_calm:
                context.add_init_script(OPEN_PANES)
            return context

        browser.new_context = with_open_panes
        yield browser
        browser.close()


@pytest.fixture
def open_context(chromium):
    """Return a function that makes a context, which is closed after the test and its picture."""
    contexts = []

    def opened(**options):
        contexts.append(chromium.new_context(**options))
        return contexts[-1]

    yield opened
    for context in contexts:
        context.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Keep pictures of the pages that are open when a test fails, or ends if a folder is named."""
    has_passed = False
    try:
        result = yield
        has_passed = True
        return result
    finally:
        browser = item.funcargs.get("chromium")
        is_wanted = PICTURES or not has_passed
        if is_wanted and browser is not None and browser.is_connected():
            keep_pictures(item, browser)


def keep_pictures(item, browser):
    """Store a PNG of each page of a browser, named after the test."""
    own = item.config._tmp_path_factory.getbasetemp() / "pictures"
    folder = Path(PICTURES) if PICTURES else own
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{item.path.stem}-{item.name}")[:150].strip("-")
    pages = [page for context in browser.contexts for page in context.pages]
    for number, page in enumerate(pages):
        suffix = f"-{number}" if number else ""
        try:
            page.screenshot(path=folder / f"{name}{suffix}.png", timeout=10_000)
        except Error as error:  # a page that hangs or has crashed is the test's to report
            item.add_report_section("call", "picture", f"none of {page.url}: {error}")
