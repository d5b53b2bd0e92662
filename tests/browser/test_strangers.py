"""Who comes in: the token and its form, other sites' pages, other names, in Chromium itself."""

import contextlib
import http.server
import re
import threading
from urllib.parse import urlsplit

import pytest
from made_up_daemon import MadeUpDaemon, tone
from programs import running_web
from tabs import Tab, wait_for_rows, wait_until

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    daemon = MadeUpDaemon(tmp_path_factory.mktemp("strangers"))
    daemon.live = lambda: tone(-20.0)
    with daemon.running():
        yield daemon


@pytest.fixture(scope="module")
def guarded(daemon):
    """Yield address and token of a server that asks browsers for one."""
    with running_web(daemon.endpoint, "--allow-host", "spectra.test") as (link, _):
        address, token = link.split("#k=")
        yield address, token


@pytest.fixture(scope="module")
def open_to_all(daemon):
    """Yield the address of a server that asks no browser for a token."""
    with running_web(daemon.endpoint) as (link, _):
        yield link.partition("#")[0]


def waits_for(page, attempts):
    """Wait until the page has tried to connect so many times more."""
    page.evaluate(
        """attempts => { window.hellos = attempts; new PerformanceObserver((list) => {
          hellos -= list.getEntries().filter(({ name }) => name.endsWith("api/hello")).length;
        }).observe({ type: "resource" }); }""",
        attempts,
    )
    page.wait_for_function("() => hellos <= 0")


def test_a_token_is_typed(open_context, guarded):
    """A wrong one is refused with words, what is typed stays; with the right one the page runs."""
    address, token = guarded
    tab = Tab(open_context(viewport={"width": 1280, "height": 800}), address)
    tab.open("", waits=False)
    page = tab.page
    field = page.locator("#token input")
    field.wait_for()
    refused = re.compile(r"^\s*token: missing or wrong; open the")
    page.locator("#connection", has_text=refused).wait_for()
    page.locator("#nothing", has_text="Not connected to the server.").wait_for()
    field.fill("not-the-token-at-all-22")
    page.locator("#token button").click()
    page.locator("#token-error", has_text="this token is not valid").wait_for()
    # The page goes on trying to connect, which must not take the field from who is typing.
    field.focus()
    waits_for(page, 2)
    assert page.evaluate("document.activeElement.name") == "token"
    assert field.input_value() == "not-the-token-at-all-22"
    field.fill(f" {token} ")
    field.press("Enter")
    page.locator("#connection[data-grade=good]").wait_for()
    wait_for_rows(tab, 10)
    assert not page.locator("#token").is_visible()
    assert token not in page.content()
    assert "k=" not in tab.fragment()
    page.reload()
    wait_for_rows(tab, 10)
    cookie = page.context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""
    # Chromium itself notes what was refused.
    assert [text for text in tab.problems if "403" not in text] == []


@pytest.mark.parametrize("is_right", [True, False])
def test_a_link_with_a_token(open_context, guarded, is_right):
    """The right one lets the page run, a wrong one is told; neither stays in the address."""
    address, token = guarded
    tab = Tab(open_context(viewport={"width": 1280, "height": 800}), address)
    given = token if is_right else "x" * len(token)
    tab.open(f"k={given}&span=10", waits=False)
    if is_right:
        wait_for_rows(tab, 10)
        assert not tab.page.locator("#notice").is_visible()
    else:
        tab.page.locator("#notice", has_text="this token is not valid").wait_for()
        tab.page.locator("#token input").wait_for()
    assert "k=" not in tab.fragment()
    assert "span=10" in tab.fragment()
    assert [text for text in tab.problems if "403" not in text] == []


STRANGE = """async (address) => {
  const answers = {};
  const ended = (name, promise) => promise.then((value) => { answers[name] = value; });
  const opened = new Promise((resolve) => {
    const socket = new WebSocket(`${address.replace("http", "ws")}api/stream`);
    socket.onopen = () => resolve("open");
    socket.onclose = () => resolve("closed");
  });
  const read = (path) => fetch(address + path, { credentials: "include" })
    .then((answer) => answer.text(), () => "nothing");
  const post = (path) => fetch(address + path, { method: "POST", mode: "no-cors", body: "x",
    credentials: "include" }).then(() => "sent", () => "nothing");
  const picture = new Promise((resolve) => {
    const image = new Image();
    image.onload = () => resolve("shown");
    image.onerror = () => resolve("nothing");
    image.src = `${address}page/icon.svg`;
  });
  await Promise.all([ended("stream", opened), ended("hello", read("api/hello")),
    ended("history", read("api/history?topic=0&t0=0&t1=1&f0=0&f1=1&w=1&h=1")),
    ended("token", post("api/token")), ended("picture", picture)]);
  return answers;
}"""


def watch_statuses(page):
    """Return a function that gives the status of each answer so far, by the end of its path."""
    asked, answered = {}, {}
    devtools = page.context.new_cdp_session(page)
    devtools.send("Network.enable")

    def note_request(event):
        asked[event["requestId"]] = urlsplit(event["request"]["url"]).path.rpartition("/")[2]

    def note_answer(event):  # also of what is kept from the page; may come before the request
        answered[event["requestId"]] = event["statusCode"]

    devtools.on("Network.requestWillBeSent", note_request)
    devtools.on("Network.responseReceivedExtraInfo", note_answer)
    return lambda: {asked[one]: status for one, status in answered.items() if one in asked}


@contextlib.contextmanager
def other_site():
    """Serve an empty page at another port; yield the port."""

    class Empty(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>another site</title>")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("host", ["strange.test", "127.0.0.1"])
@pytest.mark.parametrize("kind", ["guarded", "open_to_all"])
def test_a_page_of_another_site_gets_nothing(open_context, request, host, kind):
    """Not the stream, no data, no picture: at another name, at another port, with the cookie."""
    context = open_context()
    if kind == "guarded":
        address, token = request.getfixturevalue(kind)
        known = context.new_page()
        known.goto(f"{address}#k={token}")
        known.locator("#connection[data-grade=good]").wait_for()
        known.close()
        assert context.cookies()
    else:
        address = request.getfixturevalue(kind)
    page = context.new_page()
    said = []
    page.on("console", lambda one: said.append(one.text))
    statuses = watch_statuses(page)
    with other_site() as port:
        page.goto(f"http://{host}:{port}/")
        answers = page.evaluate(STRANGE, address)
        wait_until(page, lambda: {"hello", "history", "token"} <= set(statuses()))
    nothing = dict.fromkeys(("hello", "history", "token", "picture"), "nothing")
    assert answers == nothing | {"stream": "closed"}
    assert {statuses()[name] for name in ("hello", "history", "token")} == {403}
    (refused,) = [text for text in said if "api/stream" in text]
    assert refused.endswith("Unexpected response code: 403")


def test_another_name_of_this_machine_is_not_served(open_context, guarded, open_to_all):
    """A name that points here is refused in words (421), one of --allow-host has the page."""
    page = open_context().new_page()
    for address in (guarded[0], open_to_all):
        answer = page.goto(address.replace("127.0.0.1", "rebound.test"))
        assert answer.status == 421
        text = "421 Misdirected Request: Host: names another server; --allow-host NAME adds a name"
        assert page.locator("body").inner_text().strip() == text
    allowed = guarded[0].replace("127.0.0.1", "spectra.test")
    tab = Tab(open_context(), allowed)
    tab.open(f"k={guarded[1]}", waits=False)
    wait_for_rows(tab, 10)
    # Chromium says that without TLS one of the headers does nothing.
    assert [text for text in tab.problems if "Opener-Policy" not in text] == []
