"""Draw the page of `spectrod web` in Chromium, with a daemon that plays a recording of a dawn.

    python scripts/page_picture.py RECORDING PICTURE.png

Needs playwright and Debian's Chromium. The daemon and the page run on ports of their own.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

SPECTROD = Path(sys.executable).with_name("spectrod")
CHROMIUM = "/usr/bin/chromium"
SIZE = {"width": 1280, "height": 800}
ROWS_S = 40
"""Time that the waterfall needs to fill [s]."""
START_S = 30
VIEW = "#v=1&axis=linear&map=magma&hold=max&f=0:8000&c=4500"
COLOURS = 48


def free_port() -> int:
    """Return a TCP port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(stack: ExitStack, *words: str | Path) -> None:
    """Start a program that ends with the stack."""
    environment = os.environ | {"SPECTROD_SOURCE_NAME": "garden"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = stack.enter_context(subprocess.Popen(words, env=environment, **quiet))
    stack.callback(process.terminate)


def wait_for(address: str) -> None:
    """Wait until a server replies; it ends the script if it has not after some seconds."""
    end = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(address).close()  # noqa: S310 - our own server
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def open_page(stack: ExitStack, address: str) -> Page:
    """Open the page as soon as its server listens."""
    playwright = stack.enter_context(sync_playwright())
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    stack.callback(browser.close)
    page = browser.new_page(viewport=SIZE, color_scheme="dark")
    page.goto(address)
    return page


def main() -> None:
    """Play the recording, wait until the waterfall is full, and save what the page shows."""
    recording, picture = sys.argv[1:]
    data, port = f"tcp://127.0.0.1:{free_port()}", free_port()
    with ExitStack() as stack:
        start(stack, SPECTROD, "run", "--source", recording, "--loop", "--publish", data)
        start(stack, SPECTROD, "web", data, "--listen", f"127.0.0.1:{port}")
        wait_for(f"http://127.0.0.1:{port}/api/hello")
        page = open_page(stack, f"http://127.0.0.1:{port}/{VIEW}")
        page.locator("#measure").click()
        page.wait_for_timeout(1000 * ROWS_S)
        page.screenshot(path=picture)
    # A palette makes the file small.
    Image.open(picture).quantize(COLOURS).save(picture, optimize=True)


if __name__ == "__main__":
    main()
