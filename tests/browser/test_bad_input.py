"""What the page says of torn recordings, hostile messages, and a daemon that is not there."""

import time

import numpy as np
import pytest
from made_up_daemon import SPEC, TOPIC, MadeUpDaemon, tone
from programs import running_web
from tabs import Tab, wait_for_rows

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.wire.headers import EventHeader
from spectrod.wire.schema import EventMessage, encode

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

MARKUP = "<img src=x onerror=alert(1)>\u202egnp.txt\n\x1b[31m"
PRINTED = r"<img src=x onerror=alert(1)>\u202egnp.txt\n\x1b[31m"


@pytest.fixture
def daemon(tmp_path):
    daemon = MadeUpDaemon(tmp_path)
    daemon.live = lambda: tone(-20.0)
    with daemon.running():
        yield daemon


def opened(open_context, link, fragment, **options):
    context = open_context(viewport={"width": 1280, "height": 800})
    tab = Tab(context, link.partition("#")[0])
    tab.open(fragment, **options)
    return tab


def test_a_daemon_that_is_not_there_is_named(open_context, tmp_path, daemon):
    """Alone it is what the page waits for; beside one that runs, the foot of the page names it."""
    absent = f"ipc://{tmp_path}/absent.ipc"
    with running_web(absent) as (link, _):
        tab = opened(open_context, link, "", waits=False)
        waiting = f"Waiting for {absent}: no connection to the daemon"
        tab.page.locator("#nothing", has_text=waiting).wait_for()
        fact = tab.page.locator("#status div", has_text=absent)
        fact.locator("dd[data-grade=bad]", has_text="no connection to the daemon").wait_for()
        assert tab.problems == []
    with running_web(absent, daemon.endpoint) as (link, _):
        tab = opened(open_context, link, f"v=1&topic={TOPIC}")
        wait_for_rows(tab, 10)
        fact = tab.page.locator("#status div", has_text=absent)
        fact.locator("dd[data-grade=bad]", has_text="no connection to the daemon").wait_for()
        assert tab.problems == []


def test_messages_of_a_hostile_daemon_are_texts_and_counts(open_context, daemon):
    """What breaks the protocol is counted on the page, absurd values are drawn, markup is text."""
    with running_web(daemon.endpoint) as (link, _):
        tab = opened(open_context, link, f"v=1&topic={TOPIC}&c=1000&hold=max,min,mean")
        wait_for_rows(tab, 10)
        daemon.send(TOPIC.encode(), b"{}", b"")
        daemon.send(TOPIC.encode(), b"\xff" * 70_000, b"\0" * 4)
        daemon.send(b"spec/\xff\0/", b"[]")
        absurd = tab.page.locator("#status dd", has_text="messages left out: they break the pro")
        absurd.wait_for()
        for value in (np.nan, np.inf, -np.inf, 3e38, -3e38):
            daemon.give(np.full(SPEC.n_values, value, np.float32))
        daemon.give(tone(-20.0), t_utc_ns=-(1 << 61))
        daemon.give(tone(-20.0), t_utc_ns=1 << 61)
        daemon.give(tone(-20.0)[:3], nfft=4, win_length=1, hop=1)
        daemon.fields = dict.fromkeys(("unit", "engine", "cal_id", "ref", "window"), MARKUP)
        tab.page.locator("#status dd", has_text=f"4800, {PRINTED}").wait_for()
        daemon.fields = {}
        daemon.beat_fields = {"state": MARKUP, "waiting_for": MARKUP, "checks": (MARKUP,)}
        now = {"epoch": 1, "seq": 0, "t_utc_ns": time.time_ns()}
        event = EventHeader(**now, number=1, kind=MARKUP, text=MARKUP, source="mic")
        daemon.send(*encode(EventMessage("event/mic/", event)))
        waiting = tab.page.locator("#status dd[data-grade=bad]", has_text=f"waiting: {PRINTED}")
        waiting.wait_for()
        tab.page.locator("#events-box summary").click()
        tab.page.locator("#events td", has_text=PRINTED).first.wait_for()
        assert tab.page.locator("img").count() == 0
        # Rows that are sound are shown as before.
        tab.page.locator("#cursors td", has_text="-20.0 dBFS").first.wait_for()
        wait_for_rows(tab, 10)
        assert tab.problems == []


def test_a_link_that_is_too_long_says_so(open_context, daemon):
    """The page opens as without one, and says why."""
    with running_web(daemon.endpoint) as (link, _):
        tab = opened(open_context, link, "v=1&topic=" + "x" * 9000, waits=False)
        tab.page.locator("#notice", has_text="has 9010 characters, more than 8192").wait_for()
        wait_for_rows(tab, 10)
        assert tab.problems == []


def record(folder, begin_ns):
    """Write ten seconds of a tone of -40 dBFS."""
    index = np.arange(100, dtype=np.int64) * SPEC.hop
    t_ns = begin_ns + index * 10**9 // 48000
    batch = SpectrumBatch(
        np.stack([tone(-40.0)] * 100)[:, np.newaxis], index, t_ns, t_ns, SPEC, "numpy"
    )
    writer = SegmentWriter(folder / "whole.spd", Description(SPEC, "mic", ("0",), "spectrod test"))
    writer.write(batch)
    writer.finish()
    return (folder / "whole.spd").read_bytes()


def test_torn_recordings_are_told_and_whole_ones_shown(open_context, daemon, tmp_path):
    """Of torn files the page says how many and which; the past that can be read is drawn."""
    folder = tmp_path / "recordings" / "all" / "mic"
    folder.mkdir(parents=True)
    begin_ns = time.time_ns() - 60 * 10**9
    whole = record(folder, begin_ns)
    (folder / "torn.spd").write_bytes(whole[:100])
    (folder / "noise.spd").write_bytes(bytes(range(256)) * 64)
    (folder / "flipped.spd").write_bytes(
        whole[: len(whole) // 2] + b"\xff" * 4096 + whole[len(whole) // 2 + 4096 :]
    )
    (folder / "link.spd").symlink_to("/etc/passwd")
    (folder / "pyramid").mkdir()
    (folder / "pyramid" / "pyramid.json").write_text('{"format": 1e999')
    (folder / "growing.spd.part").write_bytes(b"SPD")
    t_ms = begin_ns // 10**6 + 5000
    with running_web(daemon.endpoint, "--recordings", tmp_path / "recordings") as (link, _):
        tab = opened(open_context, link, f"v=1&topic={TOPIC}&c=1000&span=10&t={t_ms}", waits=False)
        unread = "the past: 3 files of recordings cannot be read: damaged, or of another kind"
        tab.page.locator("#notice", has_text=unread).wait_for()
        tab.page.locator("#cursors td", has_text="-40.0 dBFS").first.wait_for()
        assert "/etc/passwd" not in tab.page.content()
        assert tab.problems == []


def test_before_the_first_row_no_waterfall_is_drawn(open_context, daemon):
    """The page waits for data on an empty plot, not on a canvas that is black until it is drawn."""
    daemon.live = None
    with running_web(daemon.endpoint) as (link, _):
        tab = opened(open_context, link, f"v=1&topic={TOPIC}", waits=False)
        tab.page.locator(".banner", has_text="waiting for data").wait_for()
        canvas = tab.page.locator(".waterfall canvas")
        canvas.wait_for(state="hidden")
        daemon.live = lambda: tone(-20.0)
        canvas.wait_for()
        wait_for_rows(tab, 10)
        assert tab.problems == []
