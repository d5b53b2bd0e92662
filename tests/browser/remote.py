"""Browsers by their own remote protocols, for what Playwright keeps them from or does not drive.

Playwright's Chromium is always visible, so it never freezes; its Firefox is another build than
Debian's. Both protocols have JSON of the same form: Chromium's DevTools, Firefox's WebDriver BiDi.
"""

import contextlib
import json
import subprocess
import threading
from itertools import count

from websockets.sync.client import connect

TIMEOUT_S = 60.0
CHROMIUM = "/usr/bin/chromium"
FIREFOX = "/usr/bin/firefox-esr"
SIZE = "1280,800"


class Remote:
    """A browser's end of the protocol."""

    def __init__(self, socket):
        self._socket = socket
        self._numbers = count(1)
        self.events = []

    def call(self, method, params, **fields):
        """Send a command; return its result. Events that come before it are kept."""
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": params}
        self._socket.send(json.dumps(command | fields))
        while True:
            message = json.loads(self._socket.recv(TIMEOUT_S))
            if message.get("id") != number:
                self.events.append(message)
                continue
            assert "error" not in message, message
            return message["result"]

    def wait_for(self, method, session):
        """Wait for a session's next event; it and those before it are kept."""
        while True:
            message = json.loads(self._socket.recv(TIMEOUT_S))
            self.events.append(message)
            if message.get("method") == method and message.get("sessionId") == session:
                return


def until(condition):
    """Return JavaScript for a promise of a condition's value, once it is true; asked each frame."""
    return f"""new Promise((resolve) => {{
      const look = () => {{
        const found = {condition};
        found ? resolve(found) : requestAnimationFrame(look);
      }};
      look();
    }})"""


class ChromiumTab:
    """A tab of Debian's Chromium that can be hidden and frozen."""

    def __init__(self, remote, address):
        self._remote = remote
        target = remote.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        params = {"targetId": target, "flatten": True}
        self._session = remote.call("Target.attachToTarget", params)["sessionId"]
        self.call("Runtime.enable", {})
        self.call("Page.enable", {})
        self.call("Page.navigate", {"url": address})
        # Before that there is a moment without an execution context.
        remote.wait_for("Page.loadEventFired", self._session)

    def call(self, method, params):
        return self._remote.call(method, params, sessionId=self._session)

    def evaluate(self, expression):
        params = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        found = self.call("Runtime.evaluate", params)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    @property
    def problems(self):
        """Exceptions and errors on the console so far."""
        events = [one for one in self._remote.events if one.get("sessionId") == self._session]
        thrown = [one for one in events if one["method"] == "Runtime.exceptionThrown"]
        said = [one for one in events if one["method"] == "Runtime.consoleAPICalled"]
        return thrown + [one for one in said if one["params"]["type"] == "error"]


class FirefoxTab:
    """The tab of Debian's Firefox."""

    def __init__(self, remote):
        self._remote = remote
        remote.call("session.new", {"capabilities": {}})
        remote.call(
            "session.subscribe", {"events": ["log.entryAdded", "network.beforeRequestSent"]}
        )
        (context,) = remote.call("browsingContext.getTree", {})["contexts"]
        self._context = context["context"]

    def open(self, address):
        params = {"context": self._context, "url": address, "wait": "complete"}
        self._remote.call("browsingContext.navigate", params)

    def evaluate(self, expression):
        target = {"context": self._context}
        params = {"expression": expression, "target": target, "awaitPromise": True}
        found = self._remote.call("script.evaluate", params)
        assert found["type"] == "success", found
        return found["result"].get("value")

    def resize(self, width, height, density):
        """Give the window a size [CSS px], and a CSS pixel so many device pixels."""
        viewport = {"width": width, "height": height}
        params = {"context": self._context, "viewport": viewport, "devicePixelRatio": density}
        self._remote.call("browsingContext.setViewport", params)

    def picture(self):
        """Return a PNG of the window, in base64."""
        params = {"context": self._context}
        return self._remote.call("browsingContext.captureScreenshot", params)["data"]

    def click(self, x, y):
        """Click a point of the viewport [CSS px]."""
        actions = [
            {"type": "pointerMove", "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        pointer = {"type": "pointer", "id": "mouse", "actions": actions}
        params = {"context": self._context, "actions": [pointer]}
        self._remote.call("input.performActions", params)

    @property
    def problems(self):
        """Errors and warnings on the console so far, those of the content security policy too."""
        said = [one for one in self._remote.events if one["method"] == "log.entryAdded"]
        return [
            one["params"]["text"] for one in said if one["params"]["level"] in {"error", "warn"}
        ]

    @property
    def requests(self):
        """Addresses that were asked for so far."""
        asked = (one for one in self._remote.events if one["method"].startswith("network."))
        return [one["params"]["request"]["url"] for one in asked]


@contextlib.contextmanager
def _running(command, said):
    """Run a browser; yield the address of its protocol, which a line of standard error says."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    try:
        line = next((line for line in process.stderr if said in line), "")
        assert line, f"{command[0]} ended without saying where it listens"
        # A pipe that is full would stop the browser.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield line.partition(said)[2].strip()
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def chromium_tab(folder, address):
    """Run Debian's Chromium with one tab; without a sandbox, which root does not get."""
    options = ["--headless=new", "--no-sandbox", "--no-first-run", f"--window-size={SIZE}"]
    places = ["--remote-debugging-port=0", f"--user-data-dir={folder / 'chromium'}"]
    with (
        _running([CHROMIUM, *options, *places, "about:blank"], "DevTools listening on ") as where,
        connect(where, max_size=None) as socket,
    ):
        yield ChromiumTab(Remote(socket), address)


@contextlib.contextmanager
def firefox_tab(folder, preferences=()):
    """Run Debian's Firefox with one tab and a profile of its own, with some preferences."""
    profile = folder / "firefox"
    profile.mkdir()
    lines = [
        f"user_pref({json.dumps(name)}, {value});\n" for name, value in dict(preferences).items()
    ]
    (profile / "user.js").write_text("".join(lines))
    options = ["--headless", "--no-remote", "--remote-debugging-port", "0"]
    places = ["--profile", profile, f"--window-size={SIZE}"]
    with (
        _running([FIREFOX, *options, *places], "WebDriver BiDi listening on ") as where,
        connect(f"{where}/session", max_size=None) as socket,
    ):
        yield FirefoxTab(Remote(socket))
