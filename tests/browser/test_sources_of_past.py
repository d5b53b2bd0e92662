"""One time, five sources: live, server, daemon's replay, segment and pyramid show one value."""

import json
import re
import struct
import time

import numpy as np
import pytest
from made_up_daemon import SPEC, TOPIC, MadeUpDaemon, tone
from programs import running_web
from tabs import READ_KINDS, Tab, wait_until

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter

pytestmark = [pytest.mark.extended, pytest.mark.timeout(300)]

STEPS = 6
ROWS_A_STEP = 20
READ = (1, 2, 4)
"""Steps whose level is read, each in its middle."""
LIVE_STEP_DB = 0.5
"""Step of the live rows of a waterfall, which have eight bits."""


def level_of(step):
    """Return the level of the tone in a step of two seconds; none is a multiple of 0.5 dB."""
    return -61.2 + 3.7 * step


@pytest.fixture(scope="module")
def begin_ns():
    """Begin two minutes ago, with a cell of every level of a pyramid up to 5 s."""
    return (time.time_ns() // 10**10 - 12) * 10**10


@pytest.fixture(scope="module")
def past():
    """Levels of all rows (n_rows, n_values)."""
    return np.stack([tone(level_of(n // ROWS_A_STEP)) for n in range(STEPS * ROWS_A_STEP)])


@pytest.fixture
def daemon(tmp_path, begin_ns):
    (tmp_path / "control").mkdir()
    daemon = MadeUpDaemon(tmp_path, begin_ns)
    with daemon.running(tmp_path / "control"):
        yield daemon


def publish(daemon, past):
    """Send all rows, and go on with softer ones."""
    for values in past:
        daemon.give(values)
    daemon.live = lambda: tone(-80.0)


class PastTab(Tab):
    """A tab that notes of which times it got answers about the past, and from which sources."""

    def __init__(self, context, address):
        super().__init__(context, address)
        self.answers = []
        self.page.on("requestfinished", self._note)

    def _note(self, request):
        # The strip of all that is stored asks for levels of all times.
        if "api/history" in request.url and "layers=level" not in request.url:
            body = request.response().body()
            (length,) = struct.unpack_from("<I", body)
            self.answers.append(json.loads(body[4 : 4 + length]))

    def show(self, t_ms):
        """Show a time at the top of the waterfall."""
        fragment = f"v=1&topic={TOPIC}&axis=linear&f=900:1100&span=1&db=-100:0&c=1000&t={t_ms}"
        self.page.evaluate("text => { location.hash = text; }", fragment)
        self.page.locator(".banner", has_text=re.compile("paused|the past")).wait_for()

    def read(self, daemon, step, first=0):
        """Show the middle of a step; return what the cursor reads then, and the time [ms]."""
        t_ms = round(daemon.middle_ms(first + (step + 0.5) * ROWS_A_STEP))
        self.show(t_ms)
        label = self.page.locator(".cursor-label").first
        wait_until(self.page, lambda: self._is_near(label.inner_text(), level_of(step)))
        return label.inner_text(), t_ms

    def sources_of(self, t_ms):
        """Return from which sources the answers about a time were."""
        about = [one for one in self.answers if one["t0"] <= t_ms < one["t1"]]
        return {source for one in about for source in one["sources"]}

    def _is_near(self, text, level):
        """Whether a label has about a level: any step's neighbours are 3.7 dB away."""
        words = text.split()
        return words[-1:] == ["dBFS"] and abs(float(words[-2]) - level) < 1.0


def open_live(open_context, address):
    """Open the page; return once it draws live rows."""
    tab = PastTab(open_context(viewport={"width": 1280, "height": 800}), address.partition("#")[0])
    tab.open(f"v=1&topic={TOPIC}&axis=linear&f=900:1100&span=1&db=-100:0&c=1000")
    return tab


def check(tab, daemon, sources, first=0):
    for step in READ:
        text, t_ms = tab.read(daemon, step, first)
        assert text == f"A 1.000 kHz ≈ {level_of(step):.1f} dBFS"
        wait_until(tab.page, lambda t_ms=t_ms: tab.sources_of(t_ms))
        assert tab.sources_of(t_ms) == sources
    assert tab.problems == []


def test_live_rows_and_the_servers_own_memory(open_context, daemon, past, tmp_path, monkeypatch):
    """A page reads what it has received, a later one what the server has: the same levels."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "without"))
    with running_web(daemon.endpoint, "--recordings", tmp_path / "none") as (link, _):
        daemon.live = lambda: tone(-80.0)
        first = open_live(open_context, link)
        rows, began = iter(past), []

        def next_row():
            began.append(daemon.n_rows)
            return next(rows, tone(-80.0))

        daemon.live = next_row
        wait_until(first.page, lambda: began)
        n_before = began[0]
        wait_until(first.page, lambda: daemon.n_rows > n_before + len(past) + 5)
        for step in READ:
            text, t_ms = first.read(daemon, step, n_before)
            assert first.sources_of(t_ms) == set()
            assert abs(float(text.split()[-2]) - level_of(step)) <= LIVE_STEP_DB / 2 + 0.05
        assert first.problems == []
        check(open_live(open_context, link), daemon, {"ring"}, n_before)


def record(kind, folder, past, begin_ns):
    """Write the rows as the recorder does: a segment, a pyramid, or neither."""
    folder.mkdir(parents=True)
    index = np.arange(len(past), dtype=np.int64) * SPEC.hop
    t_ns = begin_ns + index * 10**9 // 48000
    batch = SpectrumBatch(past[:, np.newaxis], index, t_ns, t_ns, SPEC, "numpy")
    about = Description(SPEC, "mic", ("0",), "spectrod test")
    if kind == "segment":
        writer = SegmentWriter(folder / "one.spd", about)
    elif kind == "pyramid":
        writer = PyramidWriter(folder / "pyramid", about, PyramidOptions(0.25, values_max=4096))
    if kind != "replay":
        writer.write(batch)
        writer.finish()


@pytest.mark.parametrize("kind", ["replay", "segment", "pyramid"])
def test_rows_from_before_the_server(open_context, daemon, past, monkeypatch, kind):
    """Of the daemon's replay, a segment and a pyramid, each alone: the level of each time."""
    publish(daemon, past)
    tmp_path = daemon.folder
    record(kind, tmp_path / "recordings" / "all" / "mic", past, daemon.begins_ns(0))
    where = "control" if kind == "replay" else "without"
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / where))
    with running_web(daemon.endpoint, "--recordings", tmp_path / "recordings") as (link, _):
        check(open_live(open_context, link), daemon, {kind})


def test_a_time_of_which_nothing_is_known_has_no_level(open_context, daemon, past, monkeypatch):
    """Between recording and live rows the cursor reads no data, and no line is drawn."""
    publish(daemon, past)
    folder = daemon.folder / "recordings"
    n_rows = 3 * ROWS_A_STEP
    record("segment", folder / "all" / "mic", past[:n_rows], daemon.begins_ns(0))
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(daemon.folder / "without"))
    with running_web(daemon.endpoint, "--recordings", folder) as (link, _):
        tab = open_live(open_context, link)
        wanted = f"A 1.000 kHz ≈ {level_of(1):.1f} dBFS"
        assert tab.read(daemon, 1)[0] == wanted
        tab.show(round(daemon.middle_ms(n_rows + 30)))
        label = tab.page.locator(".cursor-label", has_text="A 1.000 kHz no data")
        label.wait_for()
        tab.page.locator("#cursors td", has_text="no data").wait_for()
        wait_until(tab.page, lambda: tab.page.evaluate(READ_KINDS)[0][0] == "blank")
        assert tab.read(daemon, 1)[0] == wanted
        assert tab.problems == []
