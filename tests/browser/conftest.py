"""Debian's Chromium, driven by Playwright."""

import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent))

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture(scope="module")
def chromium():
    """Yield a browser; without a sandbox, which root in a container does not get.

    Playwright keeps an event loop running in the main thread: beyond the module, ``asyncio.run`` of
    other tests would fail.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
