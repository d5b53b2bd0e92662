"""Topics without rows: what says what their rows are, when the newest ended, and who is told."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectrod.apps.web import silent_topics
from spectrod.apps.web.client import PageClient
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.page_rows import RowMaker
from spectrod.apps.web.page_topics import facts_of
from spectrod.apps.web.page_view import StreamWish, View
from spectrod.apps.web.silent_topics import SilentTopics
from spectrod.apps.web.topic_past import TopicPasts, described_past
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.wire.headers import MetaHeader
from spectrod.wire.schema import Meta

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_rows import COMMON, TOPIC, band_frame, frame, make_rows

S = 10**9
BEGIN_NS = 1_777_680_000 * S
SPEC = SpectrumSpec(fs=1000.0, win_length=1000, hop=1000, nfft=1000, scaling="dbfs")
THIRDS = SpectrumSpec(
    fs=48000.0, win_length=4800, hop=4800, nfft=4800, scaling="dbfs", bands="third-octave"
)
BANDS = replace(TOPIC, id=4, topic="bands/mic/0/dbfs/", kind="bands")
FLOOR = [np.full(33, -90.0)]


def meta(**fields):
    """Return the description of ``frame`` of 33 values."""
    left_out = ("t_mono_ns", "sample_index")
    common = {name: value for name, value in COMMON.items() if name not in left_out}
    about = {"seq": 0, "t_utc_ns": 0, "hop": 960, "device": "card", "channels": 1}
    edges = fields.pop("edges", None)
    header = MetaHeader(**(common | about | fields))
    return Meta("meta/mic/0/dbfs/", header, np.zeros(header.shape[0]), edges)


def written(folder, n=3, *, spec=SPEC, begin_ns=BEGIN_NS, kind="segment", name="one"):
    """Write seconds of rows as the recorder does; ``part``: a segment that grows."""
    place = folder / "all" / "mic"
    place.mkdir(parents=True, exist_ok=True)
    index = np.arange(n, dtype=np.int64) * spec.hop
    t_ns = begin_ns + index * S // round(spec.fs)
    values = np.full((n, 1, spec.n_values), -50.0, np.float32)
    batch = SpectrumBatch(values, index, t_ns, t_ns, spec, "numpy")
    about = Description(spec, "mic", ("0",), "spectrod test")
    if kind == "pyramid":
        writer = PyramidWriter(place / "pyramid", about, PyramidOptions(1.0))
    else:
        writer = SegmentWriter(place / f"{name}.spd", about)
    for k in range(n):
        writer.write(batch.between(k, k + 1))
    writer.finish()
    if kind == "part":
        (place / f"{name}.spd").rename(place / f"{name}.spd.part")
    return place


def found(folder, about=None, ring=None, topic=TOPIC):
    pasts = TopicPasts(RecordingIndex([folder]), ring or Ring(), lambda: {topic.id: topic})
    return pasts.find(topic, about)


def end_ms(seconds):
    return BEGIN_NS / 1e6 + 1e3 * seconds


def test_a_description_says_all_that_rows_do(tmp_path):
    """The fields are those of the stream that the first row will have."""
    past = found(tmp_path, meta())
    (row,) = make_rows(frame(FLOOR[0]))
    assert past.facts.fields == row.facts.fields
    assert (past.facts.row_s, past.facts.half_ms) == (row.facts.row_s, row.facts.half_ms)
    assert past.newest_ms is None
    assert past == described_past(TOPIC, meta())


def test_a_description_of_bands_has_their_edges(tmp_path):
    """As those of rows; without them, or with ones that do not ascend, it says nothing."""
    edges = np.stack([np.arange(10.0, 20.0), np.arange(11.0, 21.0)])
    given = {"bands": "third-octave", "shape": (10,), "unit": "dBFS"}
    past = found(tmp_path, meta(**given, edges=edges), topic=BANDS)
    message = band_frame(np.zeros(10))
    of_rows = facts_of(BANDS, message, edges)
    assert past.facts.fields == of_rows.fields
    for bad in (None, edges[::-1], edges * np.nan):
        assert found(tmp_path, meta(**given, edges=bad), topic=BANDS) is None
    assert found(tmp_path, meta(), topic=BANDS) is None


def test_without_a_description_the_newest_recording_says_it(tmp_path):
    """Of its kind; one that says that a row lasts for years is none."""
    assert found(tmp_path) is None
    written(tmp_path)
    written(tmp_path, spec=replace(SPEC, nfft=2000), begin_ns=BEGIN_NS + 60 * S, name="two")
    for about in (None, meta(hop=1 << 40, fs=1.0)):
        past = found(tmp_path, about)
        assert past.facts.fields["bin_hz"] == 0.5
        assert past.facts.fields["topic_id"] == TOPIC.id
        assert past.newest_ms == end_ms(63)
    assert found(tmp_path, meta()).facts.fields["bin_hz"] == 750.0


def test_a_recording_of_another_kind_or_source_says_nothing(tmp_path):
    """Bands of a product that has bins now, and what another source recorded."""
    written(tmp_path, spec=THIRDS)
    assert found(tmp_path) is None
    assert found(tmp_path, topic=BANDS).facts.axis.edges_hz.shape == (2, THIRDS.n_values)
    assert found(tmp_path, topic=replace(BANDS, source="roof")) is None


@pytest.mark.parametrize("kind", ["segment", "part", "pyramid"])
def test_the_newest_time_is_the_end_of_the_last_row(tmp_path, kind):
    """Also of a segment that grows, where a source is paused while it is recorded."""
    written(tmp_path, 7, kind=kind)
    past = found(tmp_path)
    assert past.newest_ms == end_ms(7)
    assert past.facts.fields["n_bins"] == SPEC.n_values


def test_a_cell_is_no_newer_than_the_row_in_it(tmp_path):
    """A pyramid's cells end later than rows; one that begins after all known rows is newer."""
    half = replace(SPEC, win_length=500, hop=500)
    written(tmp_path, 7, spec=half)
    written(tmp_path, 7, spec=half, kind="pyramid")
    assert found(tmp_path).newest_ms == end_ms(3.5)
    written(tmp_path / "more", 3, spec=half)
    written(tmp_path / "more", 7, spec=half, kind="pyramid")
    assert found(tmp_path / "more").newest_ms == end_ms(4)


def test_the_newest_time_counts_the_memory_of_the_server(tmp_path):
    """Rows that the server has received may be later than what is recorded."""
    written(tmp_path, 3)
    ring = Ring()
    message = frame(FLOOR[0], t_utc_ns=BEGIN_NS + 60 * S)
    ring.push(TOPIC.id, message.header, np.zeros(33, np.uint16))
    past = found(tmp_path, meta(), ring)
    assert past.newest_ms == pytest.approx(end_ms(60.0107), abs=0.1)


def test_torn_recordings_are_left_out_and_logged_once(tmp_path, caplog):
    """A growing file that ends within a row has the rows before it; a broken pyramid has none."""
    place = written(tmp_path, 7, kind="part")
    path = place / "one.spd.part"
    path.write_bytes(path.read_bytes()[:-4000])
    written(tmp_path, 20, kind="pyramid")
    (place / "pyramid" / "pyramid.json").write_text('{"format": 1e999')
    (place / "torn.spd").write_bytes(path.read_bytes()[:100])
    index = RecordingIndex([tmp_path])
    pasts = TopicPasts(index, Ring(), lambda: {TOPIC.id: TOPIC})
    ends = set()
    for _ in range(3):
        index._scanned_s = -float("inf")
        ends.add(pasts.find(TOPIC, None).newest_ms)
    assert ends <= {end_ms(n) for n in range(1, 7)}
    assert len(ends) == 1
    metadata, damaged = sorted(record.message for record in caplog.records)
    assert metadata.startswith(f"{place}/pyramid/pyramid.json")
    assert damaged == f"{place}: 2 files of recordings cannot be read: damaged, or of another kind"


def test_a_pyramid_that_breaks_after_it_was_found_is_logged_once(tmp_path, caplog):
    """The segment beside it says what there is."""
    place = written(tmp_path, 3)
    written(tmp_path, 20, kind="pyramid")
    pasts = TopicPasts(RecordingIndex([tmp_path]), Ring(), lambda: {TOPIC.id: TOPIC})
    assert pasts.find(TOPIC, None).newest_ms == end_ms(20)
    (place / "pyramid" / "pyramid.json").write_text("{")
    assert [pasts.find(TOPIC, None).newest_ms for _ in range(2)] == [end_ms(3)] * 2
    (line,) = [record.message for record in caplog.records]
    assert line.startswith(f"{place}/pyramid/pyramid.json")


def test_files_that_vanish_while_they_are_read_have_their_begin(tmp_path):
    """The index knows them for some seconds."""
    place = written(tmp_path, 7, kind="part")
    index = RecordingIndex([tmp_path])
    pasts = TopicPasts(index, Ring(), lambda: {TOPIC.id: TOPIC})
    assert pasts.find(TOPIC, None).newest_ms == end_ms(7)
    (place / "one.spd.part").unlink()
    assert pasts.find(TOPIC, None).newest_ms == end_ms(0)


class Session:
    """A page that is told something."""

    def __init__(self):
        self.woken = asyncio.Event()

    def wake(self):
        self.woken.set()


class Pages:
    """Pages with a stream each, and what finds the past of their topic."""

    def __init__(self, *bits, limits=None):
        self.sessions = {}
        for one in bits:
            client = PageClient(limits or Limits())
            wish = StreamWish(id=7, topic_id=TOPIC.id, f0=0.0, f1=24e3, px=100, bits=one)
            client.set_view(View(generation=5, streams=(wish,)), {TOPIC.id: TOPIC})
            self.sessions[client] = Session()
        self.past = described_past(TOPIC, meta())
        self.looks = 0
        self._loop = None
        self._looked = asyncio.Event()

    def find(self, topic, about):
        assert (topic, about) == (TOPIC, None)
        self.looks += 1
        self._loop.call_soon_threadsafe(self._looked.set)
        return self.past

    async def next_look(self):
        """Wait until what was found is no longer that of before."""
        for _ in range(2):
            self._looked.clear()
            await self._looked.wait()

    async def run(self, use):
        silent = SilentTopics(
            self.sessions, lambda: {TOPIC.id: TOPIC}, lambda _topic: None, self.find
        )
        self._loop = asyncio.get_running_loop()
        async with asyncio.timeout(20.0):
            running = asyncio.create_task(silent.run())
            try:
                return await use()
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    async def texts(self):
        """Return what each page is told next."""
        found = []
        for client, session in list(self.sessions.items()):
            await session.woken.wait()
            session.woken.clear()
            found += [json.loads(text) for text in client.outbox.take()]
        return found


@pytest.fixture
def at_once(monkeypatch):
    """Streams are described without waiting."""
    monkeypatch.setattr(silent_topics, "SILENT_S", 0.0)
    monkeypatch.setattr(silent_topics, "_TICK_S", 0.001)


@pytest.mark.usefixtures("at_once")
def test_streams_without_rows_are_described_each_once():
    """One look serves all of a topic; the text has the newest time, also if there is none."""
    pages = Pages(8, 16)
    eight, sixteen = asyncio.run(pages.run(pages.texts))
    assert pages.looks == 1
    assert [one["op"] for one in (eight, sixteen)] == ["stream"] * 2
    about = {"id": 7, "view": 5, "topic_id": 3, "n_bins": 33, "newest_ms": None, "of": "rows"}
    for one, bits, step in ((eight, 8, 0.5), (sixteen, 16, 0.01)):
        assert {name: one[name] for name in about} == about
        assert (one["bits"], one["lo"], one["step"]) == (bits, -327.67, step)
        assert sum(piece["values"] for piece in one["slices"]) == 33


@pytest.mark.usefixtures("at_once")
def test_what_has_changed_is_told(monkeypatch):
    """What is known is looked up from time to time, and said where it differs."""
    monkeypatch.setattr(silent_topics, "AGAIN_S", 0.0)
    pages = Pages(16)

    async def use():
        (first,) = await pages.texts()
        await pages.next_look()
        (client,) = pages.sessions
        assert client.outbox.take() == []
        pages.past = replace(pages.past, newest_ms=5.0)
        (second,) = await pages.texts()
        return first, second

    first, second = asyncio.run(pages.run(use))
    assert [first["newest_ms"], second["newest_ms"]] == [None, 5.0]
    assert second["generation"] > first["generation"]


@pytest.mark.usefixtures("at_once")
def test_rows_that_come_are_described_as_they_are():
    """The description of a row replaces the one that was sent without; there is no other then."""
    pages = Pages(16)

    async def use():
        (before,) = await pages.texts()
        (client,) = pages.sessions
        row = RowMaker(TOPIC).make(frame(np.full(65, -20.0)), None)
        client.push(TOPIC.id, row)
        descriptions, _ = client.take_rows(0.0)
        looks = pages.looks
        pages.past = replace(pages.past, newest_ms=9.0)
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert (pages.looks, client.outbox.take()) == (looks, [])
        return before, [one.fields for one in descriptions]

    before, (after,) = asyncio.run(pages.run(use))
    assert (before["n_bins"], after["n_bins"]) == (33, 65)
    assert "newest_ms" not in after
    assert after["generation"] > before["generation"]


@pytest.mark.usefixtures("at_once")
def test_too_many_bands_are_refused():
    """As they are where rows have them."""
    pages = Pages(16, limits=Limits(values=9))
    edges = np.stack([np.arange(10.0, 20.0), np.arange(11.0, 21.0)])
    about = meta(bands="third-octave", shape=(10,), edges=edges)
    pages.past = described_past(BANDS, about)
    (text,) = asyncio.run(pages.run(pages.texts))
    assert (text["op"], text["why"]) == ("refused", "topic_id=3: 10 bands: must be at most 9")


def test_a_stream_that_has_just_begun_waits_for_its_rows(monkeypatch):
    """A page that gets rows within a second is told nothing else."""
    monkeypatch.setattr(silent_topics, "_TICK_S", 0.001)
    monkeypatch.setattr(silent_topics, "SILENT_S", 3600.0)
    pages = Pages(16)

    async def use():
        for _ in range(50):
            await asyncio.sleep(0.001)

    asyncio.run(pages.run(use))
    assert pages.looks == 0
