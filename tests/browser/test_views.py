"""Views with names in Chromium: kept by the browser, handed over as files and links."""

import json
import re

import pytest
from made_up_daemon import TOPIC, MadeUpDaemon, tone
from programs import running_web
from tabs import Tab, wait_until

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

# As the page writes it, in its own order of fields.
VIEW = f"v=1&topic={TOPIC}&axis=linear&f=100:5000&map=cividis&span=17&hold=max&c=1000,2000"
NAME = "tram, night <b>"

# A file is dropped as a person does it: onto whatever is there.
DROP = """([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name));
  const about = { dataTransfer: transfer, bubbles: true, cancelable: true };
  const place = document.querySelector(".surface");
  const wasTaken = !place.dispatchEvent(new DragEvent("dragover", about));
  const wasMarked = "dropping" in document.body.dataset;
  place.dispatchEvent(new DragEvent("drop", about));
  return wasTaken && wasMarked && !("dropping" in document.body.dataset);
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("views")
    daemon = MadeUpDaemon(folder)
    daemon.live = lambda: tone(-20.0)
    with (
        daemon.running(),
        running_web(daemon.endpoint, "--recordings", folder / "none") as (link, _),
    ):
        yield link.partition("#")[0]


def opened(context, address, fragment):
    tab = Tab(context, address)
    tab.open(fragment)
    tab.page.locator("#views-box > summary").click()
    tab.page.locator("#traces-box > summary").click()
    return tab


def saved_view(open_context, address):
    """Return a tab that has saved a view with a stored spectrum, and times of UTC."""
    tab = opened(open_context(timezone_id="Asia/Tokyo"), address, VIEW)
    tab.page.get_by_label("Time zone").first.select_option("UTC")
    tab.page.locator("#store-spectrum").click()
    tab.page.get_by_label("Name of mic").fill("quiet")
    tab.page.get_by_label("Name of mic").press("Enter")
    tab.page.get_by_label("Name of a new view").fill(NAME)
    tab.page.locator("#save-view").click()
    tab.page.get_by_label(f"Name of view {NAME}").wait_for()
    return tab


def file_of(tab):
    with tab.page.expect_download() as found:
        tab.page.get_by_label(f"Save view {NAME} as a file").click()
    assert found.value.suggested_filename == "tram-night-b.spectrod-view.json"
    return found.value.path().read_text()


def wait_for_zone(tab, zone):
    chosen = tab.page.get_by_label("Time zone").first
    wait_until(tab.page, lambda: chosen.input_value() == zone)


def check_shown(tab):
    """Check that a tab shows the view that was saved, with its stored spectrum and zone."""
    wait_until(tab.page, lambda: tab.fragment() == f"#{VIEW}")
    tab.page.locator(".legend > span", has_text="quiet").wait_for()
    tab.page.locator(".legend > span", has_text="max hold").wait_for()
    wait_for_zone(tab, "UTC")
    assert tab.page.get_by_label("Show quiet").is_checked()
    tab.page.locator("#cursors td", has_text="2.000 kHz").wait_for()


def test_a_view_is_there_after_a_reload(open_context, address):
    """A view that was saved opens after a reload with all that it has; it is renamed, removed."""
    tab = saved_view(open_context, address)
    tab.page.get_by_label("Show quiet").uncheck()
    tab.open(f"v=1&topic={TOPIC}")
    tab.page.get_by_label("Time zone").first.select_option("local")
    tab.page.locator("#views-box > summary").click()
    tab.page.locator("#traces-box > summary").click()
    tab.page.get_by_label(f"Open view {NAME}").click()
    check_shown(tab)
    title = tab.page.get_by_label(f"Name of view {NAME}")
    title.fill("other")
    title.press("Enter")
    tab.page.get_by_label("Replace view other").click()
    tab.page.locator("#views [role=status]", has_text="other is what is shown now").wait_for()
    tab.page.get_by_label("Remove view other").click()
    tab.page.locator("#views").get_by_role("button", name="Undo").click()
    tab.page.get_by_label("Name of view other").wait_for()
    assert not tab.page.locator("#views").get_by_role("button", name="Undo").is_visible()
    tab.page.get_by_label("Remove view other").click()
    tab.page.locator("#views .empty", has_text="None yet").wait_for()
    assert tab.problems == []


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_colleague_opens_the_file(open_context, address, is_dropped):
    """Another browser shows the same from the file, by its dialogue or dropped on the plots."""
    text = file_of(saved_view(open_context, address))
    other = opened(open_context(timezone_id="America/Lima"), address, f"v=1&topic={TOPIC}")
    if is_dropped:
        assert other.page.evaluate(DROP, ["a.json", text])
    else:
        content = {"name": "a.json", "mimeType": "application/json", "buffer": text.encode()}
        other.page.locator("#view-file").set_input_files(content)
    check_shown(other)
    said = f"{NAME} is open"
    other.page.locator("#views [role=status]", has_text=said).wait_for()
    assert other.page.locator("#notice").is_visible() == is_dropped
    assert other.problems == []


def test_the_file_of_a_stranger_changes_nothing(open_context, address):
    """A file with a wrong value is refused by a line that names it; nothing of it is loaded."""
    text = file_of(saved_view(open_context, address))
    other = opened(open_context(), address, f"v=1&topic={TOPIC}&span=20")
    before = other.fragment()
    given = json.loads(text)
    given["view"]["map"] = "https://stranger.test/map.js"
    given["traces"][0]["name"] = "<img src=https://stranger.test/x>"
    given["zone"] = "<script>"
    assert other.page.evaluate(DROP, ["a.json", json.dumps(given)])
    line = re.compile(
        r"^a\.json: view\.map: \"https://stranger\.test/map\.js\": must be one of .*; "
        r"zone: \"<script>\": must be one of local, UTC, source$"
    )
    other.page.locator("#notice", has_text=line).wait_for()
    assert other.fragment() == before
    given = json.loads(text)
    given["traces"][0]["name"] = "<img src=https://stranger.test/x>"
    other.page.evaluate(DROP, ["b.json", json.dumps(given)])
    other.page.locator(".legend > span", has_text="<img src=").wait_for()
    assert other.page.locator("img").count() == 0
    assert other.problems == []


def test_a_full_storage_says_so(open_context, address):
    """A browser that has no room left says that a view is not saved; the list is as before."""
    tab = opened(open_context(), address, f"v=1&topic={TOPIC}")
    tab.page.evaluate(
        """() => {
          for (let size = 2 ** 22, n = 0; size >= 1; size /= 2) {
            for (;;) {
              try {
                localStorage.setItem(`fill${n}`, "x".repeat(size));
                n += 1;
              } catch {
                break;
              }
            }
          }
        }"""
    )
    tab.page.get_by_label("Name of a new view").fill("a")
    tab.page.locator("#save-view").click()
    said = "a: not saved: the storage of this browser is full; remove views or stored spectra"
    tab.page.locator("#views [data-grade=bad]", has_text=said).wait_for()
    tab.page.locator("#views .empty", has_text="None yet").wait_for()
    assert tab.problems == []


def test_a_link_has_the_zone(open_context, address):
    """The link of a view opens it with its zone elsewhere, which that browser does not keep."""
    tab = saved_view(open_context, address)
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.page.locator("#views").get_by_role("button", name="Copy link").click()
    tab.page.locator("#views [role=status]", has_text="the link is copied").wait_for()
    read = "() => navigator.clipboard.readText()"
    link = tab.page.evaluate(read)
    assert link == f"{address}#{VIEW}&zone=UTC"
    other = Tab(open_context(timezone_id="America/Lima"), address)
    other.open(link.partition("#")[2])
    wait_for_zone(other, "UTC")
    other.open(f"v=1&topic={TOPIC}")
    wait_for_zone(other, "local")
    assert other.problems == []


def test_the_link_of_a_selection(open_context, address):
    """The card of a selection copies a link that has it."""
    tab = Tab(open_context(), address)
    box = f"v=1&topic={TOPIC}&sel=1764256700000:1764256750000:50:60"
    tab.open(box)
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.page.locator(".selection-card").get_by_role("button", name="Copy link").click()
    tab.page.locator(".selection-card", has_text="the link is copied").wait_for()
    assert tab.page.evaluate("() => navigator.clipboard.readText()") == f"{address}#{box}"
    assert tab.problems == []


def test_a_band_that_was_named_is_chosen_again_also_in_a_page_without_a_link(open_context, address):
    """Typed ends get a name, which shows them again and which the browser keeps; a link has it."""
    tab = opened(open_context(), address, f"v=1&topic={TOPIC}")
    for label, hertz in (("Min frequency", "300"), ("Max frequency", "900")):
        tab.page.get_by_label(label).fill(hertz)
        tab.page.get_by_label(label).press("Enter")
        # The page has taken an end before the other one is typed.
        wait_until(tab.page, lambda hz=hertz: re.search(rf"[=:]{hz}\b", tab.fragment()) is not None)
    assert "f=300:900" in tab.fragment()
    tab.page.get_by_label("Name of the band that is shown").fill("owl")
    tab.page.get_by_role("button", name="Name band").click()
    wait_until(tab.page, lambda: "named=300:900:owl" in tab.fragment())
    band = tab.page.get_by_role("combobox", name="Band")
    wait_until(tab.page, lambda: band.input_value() == "own owl")
    tab.open(f"v=1&topic={TOPIC}")
    band.select_option("owl: 300.0 Hz to 900.0 Hz")
    wait_until(tab.page, lambda: "f=300:900" in tab.fragment())
    band.select_option("all frequencies")
    wait_until(tab.page, lambda: "f=300:900" not in tab.fragment())
    band.select_option("own owl")
    tab.page.get_by_role("button", name="Remove band").click()
    band.locator("option", has_text="owl").wait_for(state="detached")
    assert tab.problems == []
