"""Channels from which no rows come: the page shows their past, and goes live with a row."""

import datetime as dt
import os
import re
import time
import wave

import numpy as np
import pytest
import zmq
from made_up_daemon import SPEC, TOPIC, MadeUpDaemon, tone
from programs import SOURCES, running_daemon, running_web
from tabs import HAS_ROWS, MIC, Tab, wait_for_rows
from test_bad_input import record

from spectrod.client.control import Control
from spectrod.lib.errors import UnavailableError

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

RECORDED = f"""{SOURCES}
[recordings.all]
product = "dbfs"
pyramid = true
[sources.other]
uri = "signal:pink,-30"
"""
ROWS = 120
"""Rows that are recorded: three seconds."""
HERTZ, FS = 5000, 48000
VIEW = f"v=1&topic={MIC}&axis=linear&span=10&db=-120:0"
PAST = re.compile(r"the past, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d UTC")


def recording(folder, uri):
    """Run a daemon whose source ``mic`` is recorded; its other source goes on."""
    return running_daemon(folder, RECORDED.replace("signal:sine,1000,-20", str(uri)))


def wait_for(endpoint, is_true):
    """Wait until a condition holds, which is looked at with each heartbeat of the daemon."""
    with zmq.Context() as context, context.socket(zmq.SUB) as heartbeats:
        heartbeats.linger = 0
        heartbeats.subscribe("hb/")
        heartbeats.connect(endpoint)
        while not is_true():
            assert heartbeats.poll(60_000), "no heartbeat"
            heartbeats.recv_multipart()


def of_mic(endpoint, name, key, field):
    """Return what a daemon's status says of the source; None before it answers."""
    try:
        with Control(endpoint, timeout_s=1.0) as control:
            listed = control.call("status")[name]
    except UnavailableError:
        return None
    return next(one[field] for one in listed if one[key] == "mic")


def recorded_rows(endpoint):
    return of_mic(endpoint, "recorders", "source", "rows") or 0


def wav(path):
    """Write a tone of -20 dBFS."""
    samples = 10.0 ** (-20.0 / 20.0) * np.sin(2.0 * np.pi * HERTZ * np.arange(3 * FS) / FS)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(FS)
        file.writeframes(np.rint(32767.0 * samples).astype("<i2").tobytes())


def opened(open_context, link, fragment):
    tab = Tab(open_context(viewport={"width": 1280, "height": 800}), link.partition("#")[0])
    tab.open(fragment, waits=False)
    tab.page.locator(".banner", has_text=PAST).wait_for()
    return tab


def check_tone(tab, hertz, f0, f1, y_css=8):
    """Wait until the waterfall is brightest at a frequency; pyramids have merged some bins."""
    wanted = tab.pixel_of(hertz, "linear", f0, f1)
    deadline_s = time.monotonic() + 20.0
    while abs((found := tab.brightest_column(y_css))[0] + 0.5 - wanted) > 8.0:
        assert time.monotonic() < deadline_s, (found, wanted)


def said_of(state):
    """Return what the line of state says of a source that has had samples."""
    return re.compile(rf"the past, .* UTC; mic: {state}; and 1 more")


def check_past(open_context, link, said):
    """Open a page of the silent channel; return it once its past was found to be shown."""
    tab = opened(open_context, link, f"{VIEW}&f=0:24000&c={HERTZ}")
    check_tone(tab, HERTZ, 0.0, 24000.0)
    tab.page.locator("#connection", has_text=said).wait_for()
    tab.page.locator("#status dd[data-grade=notice]", has_text="none yet").wait_for()
    tab.page.locator("#cursors td", has_text="-20.0 dBFS").first.wait_for()
    tab.page.locator(".panel .legend", has_text=re.compile(r"\d\d:\d\d:\d\d\.\d UTC")).wait_for()
    tab.page.evaluate("text => { location.hash = text; }", f"{VIEW}&f=4000:7000&c={HERTZ}")
    check_tone(tab, HERTZ, 4000.0, 7000.0)
    tab.focus_plot()
    tab.page.keyboard.press("Shift+ArrowRight")  # which the address then has
    tab.page.wait_for_function("() => !location.hash.includes('span=10&')")
    assert "&t=" not in tab.fragment()
    check_tone(tab, HERTZ, 4000.0, 7000.0)
    assert tab.problems == []
    return tab


def test_a_paused_source_shows_what_was_recorded_until_it_goes_on(open_context, tmp_path):
    """Also after the server has started again; the first row makes the page live."""
    with recording(tmp_path, f"signal:sine,{HERTZ},-20") as endpoint:
        wait_for(endpoint, lambda: recorded_rows(endpoint) >= ROWS)
        with Control(endpoint) as control:
            control.call("pause", source="mic")
        web = (endpoint, "--recordings", tmp_path / "recordings")
        with running_web(*web) as (link, _):
            check_past(open_context, link, said_of("paused"))
        with running_web(*web) as (link, _):
            tab = check_past(open_context, link, said_of("paused"))
            with Control(endpoint) as control:
                control.call("resume", source="mic")
            tab.page.wait_for_function(HAS_ROWS)
            tab.page.locator("#connection", has_text=re.compile("^live")).wait_for()
            tab.page.locator(".panel .legend", has_text=re.compile("^live")).wait_for()
            check_tone(tab, HERTZ, 4000.0, 7000.0)
            assert tab.problems == []


def test_a_file_that_has_ended_shows_what_was_recorded(open_context, tmp_path):
    """The daemon goes on with its other source."""
    wav(tmp_path / "tone.wav")
    with recording(tmp_path, tmp_path / "tone.wav") as endpoint:
        wait_for(endpoint, lambda: of_mic(endpoint, "sources", "name", "state") == "finished")
        with running_web(endpoint, "--recordings", tmp_path / "recordings") as (link, _):
            check_past(open_context, link, said_of("finished"))


def test_a_source_that_never_had_a_sample_is_listed_until_it_has_one(open_context, tmp_path):
    """It is named with its state: in the list, in the line of state, and for a link to it."""
    os.mkfifo(tmp_path / "samples")
    absent = f'[sources.mic10]\nuri = "pcm:{tmp_path}/samples"\n[analysis]'
    config = SOURCES.replace("[analysis]", absent)
    with running_daemon(tmp_path, config) as endpoint, running_web(endpoint) as (link, _):
        tab = Tab(open_context(viewport={"width": 1280, "height": 800}), link.partition("#")[0])
        tab.open()
        waiting = tab.page.locator(".channel-groups fieldset", has_text="mic10").locator("p")
        waiting.wait_for()
        state = waiting.inner_text()
        assert state == f"waiting: no program writes to {tmp_path}/samples"
        tab.page.locator("#connection", has_text=f"live; mic10: {state}").wait_for()
        assert "mic10" in tab.page.locator("#status").inner_text()
        tab.open("v=1&topic=spec/mic10/0/dbfs/", waits=False)
        said = "mic10 · 0 · dbfs: no sample has come from this source since its daemon started"
        tab.page.locator("#nothing", has_text=said).wait_for()
        with (tmp_path / "samples").open("wb", buffering=0) as samples:
            samples.write(bytes(2 * FS))
            tab.page.locator(".channel-groups fieldset", has_text="mic10").locator(
                "input"
            ).wait_for()
            waiting.wait_for(state="detached")
            tab.page.locator(".panel").wait_for()
        assert tab.problems == []


def test_a_source_that_never_had_a_sample_shows_what_was_recorded(open_context, tmp_path):
    """By an earlier daemon: its strip, a time that is typed, and its end, until a sample comes."""
    with recording(tmp_path, f"signal:sine,{HERTZ},-20") as endpoint:
        wait_for(endpoint, lambda: recorded_rows(endpoint) >= ROWS)
    os.mkfifo(tmp_path / "samples")
    state = f"waiting: no program writes to {tmp_path}/samples"
    with (
        recording(tmp_path, f"pcm:{tmp_path}/samples") as endpoint,
        running_web(endpoint, "--recordings", tmp_path / "recordings") as (link, _),
    ):
        wait_for(endpoint, lambda: of_mic(endpoint, "sources", "name", "state") == "waiting")
        tab = check_past(open_context, link, f"mic: {state}: it goes on by itself")
        listed = tab.page.locator(".channel-groups fieldset", has_text="mic")
        listed.locator("p", has_text=state).wait_for()
        assert listed.locator("input").is_checked()
        tab.page.locator("#overview:not([data-empty])").wait_for()
        field, banner = tab.page.locator("#timebar input"), tab.page.locator(".banner")
        tab.page.locator("#timebar select").select_option("UTC")
        tab.page.locator("#timebar select[title=UTC]").wait_for()
        rest = dt.datetime.fromisoformat(field.input_value())
        past = rest - dt.timedelta(seconds=1)
        field.fill(past.isoformat())
        banner.filter(has_text=f"the past, {past:%Y-%m-%d %H:%M:%S}.0 UTC").wait_for()
        check_tone(tab, HERTZ, 4000.0, 7000.0)
        tab.page.wait_for_function("() => location.hash.includes('&t=')")
        tab.page.locator("#overview [role=slider]").press("End")
        tab.page.wait_for_function("() => !location.hash.includes('&t=')")  # it rests again
        banner.filter(has_text=PAST).wait_for()
        tab.open("v=1", waits=False)
        tab.page.locator(".panel .legend", has_text="live").wait_for()
        assert not listed.locator("input").is_checked()  # what runs is shown before it
        tab.page.locator("#connection", has_text=f"live; mic: {state}").wait_for()
        tab.open(f"{VIEW}&f=4000:7000", waits=False)
        banner.filter(has_text=PAST).wait_for()
        with (tmp_path / "samples").open("wb", buffering=0) as samples:
            samples.write(bytes(2 * FS))
            listed.locator("p").wait_for(state="hidden")
            tab.page.locator(".panel .legend", has_text=re.compile("^live")).wait_for()
        assert tab.problems == []


def test_a_page_without_any_channel_names_the_sources_that_wait(open_context, tmp_path):
    """The only source waits for a writer, which is what the page says in place of plots."""
    os.mkfifo(tmp_path / "samples")
    config = SOURCES.replace("signal:sine,1000,-20", f"pcm:{tmp_path}/samples")
    with running_daemon(tmp_path, config) as endpoint, running_web(endpoint) as (link, _):
        tab = Tab(open_context(viewport={"width": 1280, "height": 800}), link.partition("#")[0])
        tab.open("", waits=False)
        said = re.compile(rf"^mic: waiting: no program writes to {tmp_path}/samples$")
        tab.page.locator("#nothing", has_text=said).wait_for()
        assert tab.page.locator(".channel-groups legend").all_inner_texts() == ["mic"]
        assert tab.problems == []


def test_a_page_opens_with_what_was_recorded_of_the_only_source(open_context, tmp_path):
    """Torn files beside it are said, and the past of the source is what there is to show."""
    folder = tmp_path / "recordings" / "all" / "mic"
    folder.mkdir(parents=True)
    whole = record(folder, time.time_ns() - 3600 * 10**9)
    (folder / "torn.spd").write_bytes(whole[:100])
    os.mkfifo(tmp_path / "samples")
    config = SOURCES.replace("signal:sine,1000,-20", f"pcm:{tmp_path}/samples")
    web = ("--recordings", tmp_path / "recordings")
    with running_daemon(tmp_path, config) as endpoint, running_web(endpoint, *web) as (link, _):
        tab = opened(open_context, link, "v=1&axis=linear&db=-120:0")
        check_tone(tab, 1000, 0.0, 24000.0)
        tab.page.locator("#notice", has_text="the past: 1 file of recordings cannot be").wait_for()
        said = f"mic: waiting: no program writes to {tmp_path}/samples: it goes on by itself"
        tab.page.locator("#connection", has_text=said).wait_for()
        assert tab.page.locator("#nothing").is_hidden()
        assert tab.problems == []


def test_rows_of_other_settings_replace_what_was_stored(open_context, tmp_path):
    """Of a channel that never had a row the torn files beside the whole one harm nothing."""
    folder = tmp_path / "recordings" / "all" / "mic"
    folder.mkdir(parents=True)
    whole = record(folder, time.time_ns() - 60 * 10**9)
    (folder / "torn.spd").write_bytes(whole[:100])
    (folder / "pyramid").mkdir()
    (folder / "pyramid" / "pyramid.json").write_text('{"format": 1e999')
    daemon = MadeUpDaemon(tmp_path)
    with (
        daemon.running(),
        running_web(daemon.endpoint, "--recordings", tmp_path / "recordings") as (link, _),
    ):
        tab = opened(open_context, link, f"v=1&topic={TOPIC}&axis=linear&span=20&db=-120:0")
        check_tone(tab, 1000, 0.0, 24000.0)
        unread = "the past: 2 files of recordings cannot be read: damaged, or of another kind"
        tab.page.locator("#notice", has_text=unread).wait_for()
        daemon.fields = {"win_length": 2400, "nfft": 2400}
        daemon.live = lambda: tone(-20.0, 2000)[: SPEC.n_values // 2 + 1]
        tab.page.wait_for_function(HAS_ROWS)
        wait_for_rows(tab, 2)
        check_tone(tab, 4000, 0.0, 24000.0, 2)
        assert tab.problems == []
