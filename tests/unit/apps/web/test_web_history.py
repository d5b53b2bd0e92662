"""Pieces of the past: from pyramids, segments, the ring, and all together."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from spectrod.apps.web.history.answer import answer
from spectrod.apps.web.history.budget import AbandonedError, Budget
from spectrod.apps.web.history.columns import ColumnSums, SourceRows, TimeGrid, from_wire
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.request import HistoryRequest, parse_request
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.apps.web.pooling import MaxLevels
from spectrod.apps.web.quantize import code_levels, to_codes
from spectrod.apps.web.slicing import TopicAxis, slices_of
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import power_to_level
from spectrod.formats.description import Description
from spectrod.formats.pyramid import PyramidOptions, PyramidReader, PyramidWriter
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import ConfigError, NotFoundError
from spectrod.wire.headers import SpectrumHeader

SPEC = SpectrumSpec(fs=1000.0, channels=2, win_length=64, hop=50, nfft=64)
BEGIN_NS = 1_777_680_000 * 10**9
"""2026-05-02, 00:00 UTC."""
NOW_NS = BEGIN_NS + 400 * 86400 * 10**9
HALF_NS = 32 * 10**6
"""From a row's first sample to its middle."""

TOPIC = TopicInfo(
    7,
    "spec/pond/right/density/",
    "spec",
    "tcp://127.0.0.1:5556",
    "pond",
    "right",
    "density",
    "FS^2/Hz",
    1000.0,
)


def about(spec=SPEC, **settings):
    return Description(spec, "pond", ("left", "right"), "spectrod test", **settings)


def batch_of(values, begin_ns, spec=SPEC, first=0):
    """Make rows 50 ms apart whose middles are that far apart from begin_ns + 25 ms on."""
    index = (first + np.arange(len(values), dtype=np.int64)) * spec.hop
    t_ns = begin_ns + index * 10**6 - HALF_NS + 25 * 10**6
    return SpectrumBatch(values, index, t_ns, t_ns, spec, "numpy")


def noise(n_rows, seed=1, spec=SPEC):
    rng = np.random.default_rng(seed)
    return rng.gamma(2.0, 1e-6, (n_rows, 2, spec.n_values)).astype(np.float32)


def recorded(folder, values, *, segment=True, pyramid=True, name="all", values_max=512):
    """Write rows as the daemon's recorder does."""
    place = folder / name / "pond"
    place.mkdir(parents=True, exist_ok=True)
    if segment:
        writer = SegmentWriter(place / "20260502T000000Z.spd", about())
        for first in range(0, len(values), 20):
            writer.write(batch_of(values[first : first + 20], BEGIN_NS, first=first))
        writer.finish()
    if pyramid:
        options = PyramidOptions(values_max=values_max)
        made = PyramidWriter(place / "pyramid", about(), options)
        for first in range(0, len(values), 1000):
            made.write(batch_of(values[first : first + 1000], BEGIN_NS, first=first))
        made.finish()
    return place


def asked(t0_s, t1_s, width, *, height=64, layers=("max",), f0_hz=-1e6, f1_hz=1e6, name=""):
    t0_ms, t1_ms = BEGIN_NS / 1e6 + 1e3 * t0_s, BEGIN_NS / 1e6 + 1e3 * t1_s
    return HistoryRequest(7, t0_ms, t1_ms, f0_hz, f1_hz, width, height, layers, name)


def answered(request, folder, ring=None, budget=None, topics=None):
    index = RecordingIndex([folder])
    return answer(
        request, topics or {7: TOPIC}, index, ring or Ring(), budget or Budget(), now_ns=NOW_NS
    )


def levels(codes):
    """Convert codes of the wire to levels [dB]; NaN in gaps."""
    return np.where(codes == 65535, np.nan, -327.67 + 0.01 * codes.astype(np.float64))


def expected(values, rows_a_column, n_columns):
    """Return the greatest levels of the right channel in columns of whole rows."""
    power = values[: rows_a_column * n_columns, 1].astype(np.float64)
    return power_to_level(power.reshape(n_columns, rows_a_column, -1).max(axis=1))


def header(values, n, t_utc_ns, spec=SPEC):
    return SpectrumHeader(
        seq=n,
        epoch=1,
        t_utc_ns=t_utc_ns,
        t_mono_ns=t_utc_ns,
        sample_index=n * spec.hop,
        fs=spec.fs,
        win_length=spec.win_length,
        nfft=spec.nfft,
        hop=spec.hop,
        window="hann",
        enbw_hz=spec.enbw_hz,
        shape=(values.size,),
        unit="FS^2/Hz",
        ref="",
        engine="numpy",
    )


def pushed(values, first=0, ring=None, *, is_replayed=False):
    """Push the right channel's rows into a ring, as the hub and the replay do."""
    ring = ring or Ring()
    for n in range(first, len(values)):
        level = power_to_level(values[n, 1].astype(np.float64))
        row = np.rint((level + 327.67) / 0.01).astype(np.uint16)
        t_ns = BEGIN_NS + n * 50 * 10**6 - HALF_NS + 25 * 10**6
        ring.push(7, header(values[n, 1], n, t_ns), row, is_replayed=is_replayed)
    return ring


@pytest.mark.parametrize("source", ["pyramid", "segment", "part", "replay", "ring"])
def test_each_source_gives_the_same_value_for_the_same_cell(tmp_path, source):
    """The greatest of a cell of 1 s is the same from each source, to the step of the codes."""
    values = noise(400)
    ring = None
    if source in {"replay", "ring"}:
        ring = pushed(values, is_replayed=source == "replay")
        ring.push(7, header(values[0, 1], 400, BEGIN_NS + 3600 * 10**9), np.zeros(33, np.uint16))
    else:
        place = recorded(tmp_path, values, segment=source != "pyramid", pyramid=source == "pyramid")
        if source == "part":
            (place / "20260502T000000Z.spd").rename(place / "20260502T000000Z.spd.part")
    got = answered(asked(0, 20, 20), tmp_path, ring)
    assert got.header["sources"] == ["segment" if source == "part" else source]
    assert got.header["left_out"] == []
    assert (got.header["w"], got.header["h"], got.header["cell_ms"]) == (20, 33, 1000.0)
    assert np.abs(levels(got.layers[0]) - expected(values, 20, 20)).max() <= 0.0051
    assert np.abs(got.effort_s - 1.0).max() < 1e-6


def test_a_column_has_both_of_replay_and_live_rows(tmp_path):
    """The column in which live rows begin has the greatest of both, wherever they meet."""
    values = noise(200)
    ring = pushed(values, first=107)
    pushed(values[:107], ring=ring, is_replayed=True)
    for width, rows in ((10, 20), (40, 5), (200, 1)):
        got = answered(asked(0, 10, width), tmp_path, ring)
        assert got.header["sources"] == ["replay", "ring"]
        assert np.abs(levels(got.layers[0]) - expected(values, rows, width)).max() <= 0.0051
        assert np.abs(got.effort_s - 10.0 / width).max() < 1e-6


@pytest.mark.parametrize("source", ["pyramid", "segment", "replay", "ring"])
def test_an_answer_says_until_when_it_knows_rows(tmp_path, source):
    """That is the end of the newest row, or of all columns where there are later rows."""
    values = noise(190)  # 9.5 s; a pyramid has whole cells
    ring = None
    if source in {"replay", "ring"}:
        ring = pushed(values, is_replayed=source == "replay")
        if source == "replay":
            ring.push(7, header(values[0, 1], 0, BEGIN_NS - 3600 * 10**9), np.zeros(33, np.uint16))
    else:
        recorded(tmp_path, values, segment=source == "segment", pyramid=source == "pyramid")
    end_s = 10.0 if source == "pyramid" else 9.5
    for t0, t1 in ((0, 20), (0, 9), (0, 9.5), (3, 12)):
        got = answered(asked(t0, t1, 20), tmp_path, ring)
        until_s, t1_s = ((got.header[name] - BEGIN_NS / 1e6) / 1e3 for name in ("until", "t1"))
        assert until_s == pytest.approx(min(end_s, t1_s), abs=1e-3)
    nothing = answered(asked(30, 40, 10), tmp_path, ring)
    assert nothing.header["until"] == nothing.header["t0"]


def test_what_ends_with_rows_of_the_server_is_not_final_however_old_they_are(tmp_path):
    """A daemon whose clock is late goes on in the columns that end with its newest row."""
    ring, name = pushed(noise(190)), f"{TOPIC.endpoint} {TOPIC.topic}"
    for t0, t1, is_final in ((0, 8, True), (0, 20, False), (8, 16, False)):
        got = answered(asked(t0, t1, 4, name=name), tmp_path, ring)
        assert got.is_final is is_final


def test_means_are_of_power_and_follow_the_same_rule(tmp_path):
    """The mean of a column is that of power, from rows and from cells."""
    values = noise(1200)
    mean = power_to_level(values[:, 1].astype(np.float64).reshape(12, 100, -1).mean(axis=1))
    for segment in (False, True):
        folder = tmp_path / str(segment)
        recorded(folder, values, segment=segment, pyramid=not segment)
        got = answered(asked(0, 60, 12, layers=("max", "mean")), folder)
        assert got.header["cell_ms"] == 5000.0
        assert np.abs(levels(got.layers[1]) - mean).max() <= 0.02
        assert (levels(got.layers[0]) >= levels(got.layers[1]) - 0.01).all()


def test_neighbours_are_the_same_in_a_pyramid_that_has_merged_them(tmp_path):
    """Values of merged bins are the maxima of the same bins from a pyramid and from rows."""
    values = noise(400)
    recorded(tmp_path / "both", values, values_max=8)
    recorded(tmp_path / "rows", values, pyramid=False)
    coarse = answered(asked(0, 20, 20, height=8), tmp_path / "both")
    rows = answered(asked(0, 20, 20, height=7), tmp_path / "rows")
    assert coarse.header["sources"] == ["pyramid"]
    assert rows.header["h"] == coarse.header["h"] == 7
    assert np.abs(levels(coarse.layers[0]) - levels(rows.layers[0])).max() <= 0.011
    fine = answered(asked(0, 2, 20), tmp_path / "both")
    assert fine.header["h"] == 33, "between cells, rows have all their bins"
    assert fine.header["sources"] == ["segment"]


def test_the_newest_part_comes_from_finer_cells_rows_and_the_ring(tmp_path):
    """Each second up to now is there once: cells, then rows of the file, then rows of the ring."""
    values = noise(2000)
    place = tmp_path / "all" / "pond"
    place.mkdir(parents=True)
    pyramid = PyramidWriter(place / "pyramid", about())
    pyramid.write(batch_of(values[:1530], BEGIN_NS))  # 76.5 s: complete to 76 s
    segment = SegmentWriter(place / "x.spd", about())
    segment.write(batch_of(values[:1870], BEGIN_NS))
    got = answered(asked(0, 100, 20), tmp_path, pushed(values, 1000))
    assert got.header["sources"] == ["pyramid", "segment", "ring"]
    assert np.abs(levels(got.layers[0]) - expected(values, 100, 20)).max() <= 0.0051
    assert np.abs(got.effort_s - 5.0).max() < 1e-3
    pyramid.abort()
    segment.abort()


def test_time_after_the_newest_and_before_the_oldest_is_a_gap(tmp_path):
    """Columns without rows have no values and no effort."""
    recorded(tmp_path, noise(400))
    got = answered(asked(-20, 40, 60), tmp_path)
    empty = np.isnan(levels(got.layers[0])).all(axis=1)
    assert empty.tolist() == [True] * 20 + [False] * 20 + [True] * 20
    assert (got.effort_s[empty] == 0.0).all()


def test_columns_narrower_than_rows_repeat_them(tmp_path):
    """Columns of 10 ms show the row that covers their middle, without holes between rows."""
    values = noise(40)
    recorded(tmp_path, values, pyramid=False)
    got = answered(asked(0.5, 1.5, 100), tmp_path)
    assert got.header["cell_ms"] == 10.0
    each = power_to_level(values[10:30, 1].astype(np.float64))
    assert np.abs(levels(got.layers[0]) - np.repeat(each, 5, axis=0)).max() <= 0.0051


def test_a_column_counts_no_time_twice(tmp_path):
    """Two recordings of the same rows, and the ring, give each column its length once."""
    values = noise(400)
    recorded(tmp_path, values, name="one")
    recorded(tmp_path, values, name="two")
    got = answered(asked(0, 20, 4), tmp_path, pushed(values))
    assert np.abs(got.effort_s - 5.0).max() < 1e-3


def test_the_frequency_range_is_that_of_whole_values(tmp_path):
    """f0 and f1 of the answer are the edges of its first and last value."""
    values = noise(400)
    recorded(tmp_path, values, pyramid=False)
    got = answered(asked(0, 20, 20, height=4, f0_hz=100.0, f1_hz=200.0), tmp_path)
    bin_hz = 1000.0 / 64
    assert (got.header["f0"], got.header["h"]) == (5.5 * bin_hz, 4)
    assert got.header["f1"] == 13.5 * bin_hz
    pooled = expected(values, 20, 20)[:, 6:14].reshape(20, 4, 2).max(axis=2)
    assert np.abs(levels(got.layers[0]) - pooled).max() <= 0.0051
    with pytest.raises(ConfigError, match=r"f0=600, f1=700: must overlap the topic's -7.8125 to"):
        answered(asked(0, 20, 20, f0_hz=600.0, f1_hz=700.0), tmp_path)


def test_what_sums_over_bins_need_is_said(tmp_path):
    """Noise bandwidth and weighting are those of live rows, else of the recording, else null."""

    def said(folder, ring=None):
        found = answered(asked(0, 10, 10), folder, ring).header
        return found["enbw_hz"], found["weighting"]

    values = noise(20)
    assert said(tmp_path / "none") == (None, None)
    recorded(tmp_path, values)
    assert said(tmp_path) == (SPEC.enbw_hz, "Z")
    ring = Ring()
    about_live = msgspec.structs.replace(header(values, 0, BEGIN_NS), enbw_hz=3.0, weighting="A")
    ring.push(7, about_live, np.zeros(about_live.shape[0], np.uint16))
    assert said(tmp_path, ring) == (3.0, "A")


def test_the_level_is_the_coarsest_that_fits(tmp_path):
    """A reader of a long span reads coarse cells only."""
    values = noise(24_000)  # 20 min
    recorded(tmp_path, values, segment=False)
    read = []
    original = PyramidReader.cells

    def counting(self, level, begin_ns, end_ns):
        read.append(self.about.cells_ns[level] // 10**9)
        return original(self, level, begin_ns, end_ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PyramidReader, "cells", counting)
        got = answered(asked(0, 1200, 20), tmp_path)
    assert read[0] == 60
    assert np.abs(levels(got.layers[0]) - expected(values, 1200, 20)).max() <= 0.0051


def test_other_topics_are_never_mixed_in(tmp_path):
    """Another product, unit, channel or daemon finds nothing in these recordings."""
    recorded(tmp_path, noise(400))
    for other in (
        {"product": "levels"},
        {"unit": "Pa^2/Hz"},
        {"channel": "middle"},
        {"source": "lake"},
    ):
        got = answered(asked(0, 20, 20), tmp_path, topics={7: replace(TOPIC, **other)})
        assert got.header["sources"] == []
        assert (got.layers[0] == 65535).all()
    far = replace(TOPIC, endpoint="tcp://10.0.0.1:5556")
    assert answered(asked(0, 20, 20), tmp_path, topics={7: far}).header["sources"] == ["pyramid"]
    both = {7: far, 8: replace(TOPIC, id=8)}
    assert answered(asked(0, 20, 20), tmp_path, topics=both).header["sources"] == []


def test_a_topic_is_known_by_its_number_and_its_name(tmp_path):
    """A number that means another topic since a restart is refused, not answered wrongly."""
    recorded(tmp_path, noise(400))
    name = "tcp://127.0.0.1:5556 spec/pond/right/density/"
    assert answered(asked(0, 20, 20, name=name), tmp_path).is_final
    assert not answered(asked(0, 20, 20), tmp_path).is_final
    with pytest.raises(NotFoundError, match=r"topic=7: is tcp://127\.0\.0\.1:5556 spec/pond/right"):
        answered(asked(0, 20, 20, name="tcp://127.0.0.1:5556 spec/x/y/z/"), tmp_path)
    with pytest.raises(NotFoundError, match="topic=7: this server has no topic of this number"):
        answered(asked(0, 20, 20), tmp_path, topics={8: replace(TOPIC, id=8)})


def test_what_may_change_is_not_final(tmp_path):
    """Only pictures that end long enough ago, with all that there is, are final."""
    recorded(tmp_path, noise(400))
    index, request = (
        RecordingIndex([tmp_path]),
        asked(0, 20, 20, name=f"{TOPIC.endpoint} {TOPIC.topic}"),
    )
    for late_s, is_final in ((81.0, False), (82.0, True)):
        now_ns = BEGIN_NS + round(late_s * 1e9)
        got = answer(request, {7: TOPIC}, index, Ring(), Budget(), now_ns=now_ns)
        assert got.is_final is is_final


def test_a_long_span_of_segments_answers_with_the_newest_that_it_may_read(tmp_path):
    """Beyond the bytes, files or time of a request, the answer says what was not read."""
    values = noise(400)
    place = recorded(tmp_path, values, pyramid=False)
    data = (place / "20260502T000000Z.spd").read_bytes()
    later = SegmentWriter(place / "later.spd", about())
    later.write(batch_of(values, BEGIN_NS, first=400))
    later.finish()
    budget = Budget(n_bytes=len(data) * 3 // 2)
    got = answered(asked(0, 40, 40), tmp_path, budget=budget)
    assert got.header["left_out"] == ["1 of 2 segments were not read: at most 256 MiB a request"]
    assert not got.is_final
    empty = np.isnan(levels(got.layers[0])).all(axis=1)
    assert not empty[20:].any()
    assert empty[:20].any()
    for budget, rule in (
        (Budget(files=1), "1 of 2 segments were not read: at most 64 files a request"),
        (Budget(time_s=-1.0), "2 of 2 segments were not read: at most 5 s a request"),
        (
            Budget(cpu_s=-1.0),
            "2 of 2 segments were not read: at most 1 s of processor time a request",
        ),
    ):
        got = answered(asked(0, 40, 40), tmp_path, budget=budget)
        assert got.header["left_out"] == [rule]


def test_only_the_wanted_part_of_a_segment_is_read(tmp_path):
    """A second in the middle of a long file costs a bounded number of bytes, also without index."""
    values = noise(20_000)
    place = recorded(tmp_path, values, pyramid=False)
    size = (place / "20260502T000000Z.spd").stat().st_size
    (place / "20260502T000000Z.spd").rename(place / "20260502T000000Z.spd.part")
    budget = Budget(n_bytes=10**9)
    got = answered(asked(500, 501, 20), tmp_path, budget=budget)
    each = expected(values[10_000:10_020], 1, 20)
    assert np.abs(levels(got.layers[0]) - each).max() <= 0.0051
    assert 10**9 - budget.n_bytes < size / 3


def test_a_cancelled_request_ends(tmp_path):
    """A computation that nobody waits for ends with its next read."""
    recorded(tmp_path, noise(400))
    budget = Budget()
    budget.cancelled.set()
    with pytest.raises(AbandonedError):
        answered(asked(0, 20, 20), tmp_path, budget=budget)


def test_torn_and_damaged_recordings_give_what_is_intact(tmp_path):
    """A file that is cut within a record, and one with a damaged record, lose only those rows."""
    values = noise(400)
    place = recorded(tmp_path, values, pyramid=False)
    path = place / "20260502T000000Z.spd"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.with_suffix(".spd.part").write_bytes(data[: len(data) * 3 // 4])
    path.unlink()
    got = levels(answered(asked(0, 20, 20), tmp_path).layers[0])
    right = np.abs(got - expected(values, 20, 20)).max(axis=1) <= 0.0051
    assert right[:9].all()
    assert 12 <= right.sum() <= 15
    assert np.isnan(got[~right]).all()


def test_a_damaged_pyramid_is_said_and_segments_answer(tmp_path):
    """Cells whose file is of another pyramid are reported; rows take their place."""
    values = noise(400)
    place = recorded(tmp_path, values)
    for path in (place / "pyramid").glob("*/*.cells"):
        path.write_bytes(b"x" * 64 + path.read_bytes()[64:])
    got = answered(asked(0, 20, 20), tmp_path)
    assert got.header["sources"] == ["segment"]
    assert got.header["left_out"] == ["all/pond/pyramid: cannot be read, or is damaged"]
    assert np.abs(levels(got.layers[0]) - expected(values, 20, 20)).max() <= 0.0051


def test_files_that_vanish_are_left_out(tmp_path):
    """A file that is deleted after the scan is named without its folder."""
    place = recorded(tmp_path, noise(400), pyramid=False)
    index = RecordingIndex([tmp_path])
    index.refresh()
    (place / "20260502T000000Z.spd").unlink()
    got = answer(asked(0, 20, 20), {7: TOPIC}, index, Ring(), Budget(), now_ns=NOW_NS)
    assert got.header["left_out"] == ["20260502T000000Z.spd: No such file or directory"]
    assert got.header["sources"] == []


def test_bodies_are_what_the_protocol_says(tmp_path):
    """The body has the header's length, the header, padding to 4, efforts, and the layers."""
    recorded(tmp_path, noise(400))
    got = answered(asked(0, 20, 20, layers=("mean", "max")), tmp_path)
    body = got.encode()
    n_header = int.from_bytes(body[:4], "little")
    assert body[4:12] == b'{"topic"'
    at = -(-(4 + n_header) // 4) * 4
    assert set(body[4 + n_header : at]) <= {0}
    assert np.frombuffer(body, "<f4", 20, at).tolist() == got.effort_s.tolist()
    layers = np.frombuffer(body, "<u2", offset=at + 80).reshape(2, 20, 33)
    assert np.array_equal(layers[1], got.layers[1])


QUERY = {"topic": "7", "t0": "0", "t1": "1", "f0": "0", "f1": "1", "w": "2", "h": "3"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"t0": "nan"}, r"^t0='nan': must be a finite number$"),
        ({"t1": "1e999"}, r"^t1='1e999': must be a finite number$"),
        ({"t1": "5e12"}, r"^t1=5e\+12: must be -4e\+12 to 4e\+12$"),
        ({"t1": "0"}, r"^t0=0.0, t1=0.0: t1 must be above t0$"),
        ({"f1": "-1"}, r"^f0=0.0, f1=-1.0: f1 must be above f0$"),
        ({"f1": "1e14"}, r"^f1=1e\+14: must be -1e\+13 to 1e\+13$"),
        ({"w": "0"}, r"^w='0': must be a whole number, 1 to 2048$"),
        ({"w": "2049"}, r"^w='2049': must be a whole number, 1 to 2048$"),
        ({"h": "-3"}, r"^h='-3': must be a whole number, 1 to 2048$"),
        ({"h": "²"}, r"^h='\\xb2': must be a whole number, 1 to 2048$"),
        ({"topic": "9" * 50}, r"^topic='9{40}\.\.\.': must be a number of at most 40 characters$"),
        ({"layers": "max,max"}, r"^layers='max,max': must be of max, mean, or level alone$"),
        ({"layers": "\n"}, r"^layers='\\n': must be of max, mean, or level alone$"),
        (
            {"w": "2048", "h": "2048", "layers": "max,mean"},
            r"^w=2048, h=2048, 2 layers: must be at most 4194304 values$",
        ),
        ({"name": "x" * 1025}, r"^name='x{40}\.\.\.': must be at most 1024 characters$"),
    ],
)
def test_absurd_requests_are_refused_with_their_rule(change, text):
    """Each parameter is bounded before anything is read, and the text says the rule."""
    assert parse_request(QUERY).width == 2
    with pytest.raises(ConfigError, match=text):
        parse_request(QUERY | change)


def test_missing_parameters_are_named():
    """Each required parameter is named when it is missing."""
    for name in QUERY:
        with pytest.raises(ConfigError, match=f"^{name}: is missing$"):
            parse_request({key: value for key, value in QUERY.items() if key != name})


def live_maxima(values, spec, axis, span, px):
    """Return the levels that a live stream sends of one row, and its slices."""
    bin_hz = spec.fs / spec.nfft
    slices = slices_of(TopicAxis(spec.n_values, 0.0, bin_hz), *span, px, axis)
    codes = MaxLevels(to_codes(power_to_level(values.astype(np.float64)).astype(np.float32)))
    return np.concatenate([code_levels(codes.pool(one)) for one in slices]), slices


@pytest.mark.parametrize("axis", ["linear", "log", "mel", "octave"])
@pytest.mark.parametrize(("nfft", "px"), [(64, 12), (4096, 611), (4095, 300), (4096, 4096)])
def test_the_past_has_the_values_of_live_rows_on_every_axis(tmp_path, axis, nfft, px):
    """For the axis of a page, the past has the slices of a stream, and in them the same levels."""
    spec = SpectrumSpec(fs=48000.0, win_length=nfft, hop=2400, nfft=nfft)
    rows = np.random.default_rng(nfft).gamma(2.0, 1e-6, (20, spec.n_values)).astype(np.float32)
    ring = Ring()
    for n, row in enumerate(rows):
        t_ns = BEGIN_NS + n * 50 * 10**6 + 25 * 10**6 - nfft * 10**9 // 96000
        level = power_to_level(row.astype(np.float64))
        codes = np.rint((level + 327.67) / 0.01).astype(np.uint16)
        ring.push(7, header(row, n, t_ns, spec), codes)
    for span in ((20.0, 24000.0), (900.0, 3100.0), (0.5, 11000.0)):
        request = replace(asked(0, 1, 20, height=px, f0_hz=span[0], f1_hz=span[1]), axis=axis)
        got = answered(request, tmp_path, ring)
        live = [live_maxima(row, spec, axis, span, px) for row in rows]
        assert got.header["slices"] == [one._asdict() for one in live[0][1]]
        assert (got.header["first_hz"], got.header["n_bins"]) == (0.0, spec.n_values)
        assert got.header["bin_hz"] == pytest.approx(spec.fs / nfft)
        expected_db = np.stack([levels for levels, _ in live])
        assert np.abs(levels(got.layers[0]) - expected_db).max() <= 0.0101
        coarse = answered(replace(request, step_codes=10), tmp_path, ring)
        assert np.abs(levels(coarse.layers[0]) - expected_db).max() <= 0.0651
        assert (from_wire(coarse.layers[0]) % 10 == 0).all()


def test_slices_of_a_pyramid_split_none_of_its_values(tmp_path):
    """Where a pyramid has merged bins, slices are of whole merged ones, with their maxima."""
    values = noise(400)
    recorded(tmp_path, values, values_max=8, segment=False)  # groups of five of 33 bins
    got = answered(replace(asked(0, 20, 20, height=4, f0_hz=20.0), axis="log"), tmp_path)
    assert got.header["sources"] == ["pyramid"]
    bins = [
        (first, min(first + one["per_value"], 33))
        for one in got.header["slices"]
        for first in range(
            one["first"], one["first"] + one["per_value"] * one["values"], one["per_value"]
        )
    ]
    assert all(first % 5 == 0 for first, _ in bins)
    each = expected(values, 20, 20)
    pooled = np.stack([each[:, first:stop].max(axis=1) for first, stop in bins], axis=1)
    assert np.abs(levels(got.layers[0]) - pooled).max() <= 0.011


def test_slices_of_bands_say_their_edges(tmp_path):
    """Values of bands have edges of their own, on every axis; there is nothing more to say."""
    spec = SpectrumSpec(fs=48000.0, win_length=4096, hop=4096, channels=2, bands="third-octave")
    place = tmp_path / "all" / "pond"
    place.mkdir(parents=True)
    rows = np.full((20, 2, spec.n_values), 1e-6, np.float32)
    index = np.arange(20, dtype=np.int64) * 4096
    t_ns = BEGIN_NS + index * 10**9 // 48000
    described = Description(spec, "pond", ("left", "right"), "spectrod test")
    writer = SegmentWriter(place / "x.spd", described)
    writer.write(SpectrumBatch(rows, index, t_ns, t_ns, spec, "numpy"))
    writer.finish()
    topics = {7: replace(TOPIC, product=spec.product, unit=f"dB re {spec.scale.unit}")}
    request = replace(asked(0, 2, 10, height=10, f0_hz=100.0, f1_hz=5000.0), axis="log")
    got = answered(request, tmp_path, topics=topics)
    assert got.header["sources"] == ["segment"]
    assert "slices" not in got.header
    lower, upper = got.header["edges_hz"]
    assert len(lower) == got.header["h"]
    assert lower[0] <= 100.0
    assert upper[-1] >= 5000.0


def test_more_values_than_an_answer_may_have_are_refused(tmp_path):
    """Columns by values of each are bounded once it is known how many a column has."""
    spec = SpectrumSpec(fs=48000.0, win_length=16384, hop=16384, nfft=16384)
    ring = Ring()
    ring.push(7, header(np.ones(spec.n_values), 0, BEGIN_NS, spec), np.ones(8193, np.uint16))
    request = replace(asked(0, 40.96, 1024, height=4096, f0_hz=0.0, f1_hz=24000.0), axis="linear")
    with pytest.raises(ConfigError, match=r"w=1024, h=4096: \d+ values a column: must be at most"):
        answered(request, tmp_path, ring)


@pytest.mark.parametrize(("effort_s", "begin"), [(0.4, 16), (1.0, 10)])
def test_a_cell_of_a_part_of_its_time_is_not_smeared_over_what_is_before_rows(effort_s, begin):
    """Before the first row a cell counts where it has sound of all its time."""
    columns = ColumnSums(TimeGrid(0, 10**8, 30), 1, with_mean=False)
    for middle_s, length_s, efforts in (
        (np.arange(1.65, 3.0, 0.1), 0.1, [0.1] * 14),
        (np.array([0.5, 1.5]), 1.0, [1.0, effort_s]),
    ):
        columns.begin_source()
        middle_ns = np.round(middle_s * 1e9).astype(np.int64)
        greatest = np.full((len(efforts), 1), 7, np.int16)
        length_ns = round(length_s * 1e9)
        columns.add(SourceRows(middle_ns, length_ns, np.array(efforts), greatest, None))
        columns.end_source(3 * 10**9)
    known = np.flatnonzero(columns.greatest()[:, 0] == 7)
    assert known.tolist() == [*range(10), *range(begin, 30)]
