"""The server's own memory of live rows."""

import msgspec
import numpy as np
import pytest

from spectrod.apps.web.history.answer import answer
from spectrod.apps.web.history.budget import Budget
from spectrod.apps.web.history.columns import NOTHING, from_wire, to_wire
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.request import parse_request
from spectrod.apps.web.history.row_ring import CELL_NS, Ring
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.dsp.units import power_to_level
from spectrod.lib.errors import ConfigError
from spectrod.wire.headers import BandsHeader, SpectrumHeader

S = 10**9
BEGIN_NS = 1_777_680_000 * S
BANDS = BandsHeader(
    seq=0,
    epoch=1,
    t_utc_ns=BEGIN_NS,
    t_mono_ns=0,
    sample_index=0,
    fs=1000.0,
    win_length=1000,
    nfft=1024,
    hop=500,
    window="hann",
    enbw_hz=1.5,
    shape=(3,),
    unit="dBFS",
    ref="",
    engine="numpy",
    bands="third-octave",
    n_bands=3,
)
EDGES = (np.array([10.0, 20.0, 40.0]), np.array([20.0, 40.0, 80.0]))


def header(t_utc_ns, n_values=9, **settings):
    fields = {
        "seq": 0,
        "epoch": 1,
        "t_utc_ns": t_utc_ns,
        "t_mono_ns": 0,
        "sample_index": 0,
        "fs": 1000.0,
        "win_length": 16,
        "nfft": 16,
        "hop": 100,
        "window": "hann",
        "enbw_hz": 1.5,
        "shape": (n_values,),
        "unit": "dBFS",
        "ref": "",
        "engine": "numpy",
    }
    return SpectrumHeader(**(fields | settings))


def test_codes_of_the_wire_come_back():
    """All 65536 codes convert there and back, and the one of no data is the least."""
    codes = np.arange(65536, dtype=np.uint16)
    inner = from_wire(codes)
    assert inner[65535] == NOTHING == inner.min()
    assert inner[32767] == 0
    assert np.array_equal(to_wire(inner), codes)


def test_rows_have_the_times_of_their_middles():
    """A row's time is the middle of all frames in it, as in pyramids."""
    ring = Ring()
    ring.push(1, header(BEGIN_NS), np.full(9, 100, np.uint16))
    many = header(BEGIN_NS, averaging_frames=5, frame_hop=8, win_length=16)
    ring.push(2, many, np.full(9, 100, np.uint16))
    (one,) = ring.rows(1, 0, 1 << 62)
    assert one.middle_ns.tolist() == [BEGIN_NS + 8 * 10**6]
    (two,) = ring.rows(2, 0, 1 << 62)
    assert two.middle_ns.tolist() == [BEGIN_NS + 24 * 10**6]


def test_only_the_rows_of_a_span_are_given():
    """The begin of a span is in it, its end is not."""
    ring = Ring()
    for n in range(300):
        ring.push(1, header(BEGIN_NS + n * S // 10), np.full(9, n, np.uint16))
    middle_ns = BEGIN_NS + 8 * 10**6
    found = list(ring.rows(1, middle_ns + 13 * S, middle_ns + 15 * S))
    codes = np.concatenate([part.greatest[:, 0] for part in found])
    assert to_wire(codes).tolist() == list(range(130, 150))
    assert list(ring.rows(2, 0, 1 << 62)) == []


def test_rows_that_follow_each_other_are_not_copied_and_others_are_found():
    """Nobody can change what the memory has; a row whose time jumps is in its own span alone."""
    ring = Ring()
    for n, second in enumerate([0, 1, 60, 2, 3]):
        ring.push(1, header(BEGIN_NS + second * S), np.full(9, n, np.uint16))
    (first,) = ring.rows(1, 0, BEGIN_NS + 2 * S)
    (again,) = ring.rows(1, 0, BEGIN_NS + 2 * S)
    assert np.shares_memory(first.greatest, again.greatest)
    for one in (first.greatest, first.mean, first.middle_ns, first.effort_s):
        with pytest.raises(ValueError, match="read-only"):
            one[0] = 0
    (found,) = ring.rows(1, 0, BEGIN_NS + 30 * S)
    assert to_wire(found.greatest[:, 0]).tolist() == [0, 1, 3, 4]
    assert np.all(np.diff(found.middle_ns) == S)


def test_cells_are_the_maximum_and_the_mean_of_their_rows():
    """A cell of a second has the greatest level and the mean power of its rows."""
    rng, ring = np.random.default_rng(1), Ring()
    power = rng.gamma(2.0, 1e-6, (35, 9))
    for n, row in enumerate(power):
        code = np.rint((power_to_level(row) + 327.67) / 0.01).astype(np.uint16)
        ring.push(1, header(BEGIN_NS + n * S // 10), code)
    (cells,) = ring.cells(1, 0, 1 << 62)
    assert cells.middle_ns.tolist() == [BEGIN_NS + n * S + CELL_NS // 2 for n in range(3)]
    assert cells.effort_s.tolist() == [1.0, 1.0, 1.0]
    whole = power[:30].reshape(3, 10, 9)
    greatest = power_to_level(whole.max(axis=1))
    assert np.abs(cells.greatest * 0.01 - greatest).max() <= 0.0051
    assert np.abs(cells.mean * 0.01 - power_to_level(whole.mean(axis=1))).max() <= 0.02


def test_memory_is_bounded_and_the_oldest_rows_go_first():
    """However much is pushed, of however many topics, memory stays below its limit."""
    ring = Ring(rows_bytes=1 << 20, cells_bytes=1 << 18)
    for n in range(800):
        for topic_id in range(3):
            ring.push(
                topic_id, header(BEGIN_NS + n * S, 1000, nfft=2048), np.zeros(1000, np.uint16)
            )
    assert ring.n_bytes <= (1 << 20) + (1 << 18)
    (newest, *_) = reversed(list(ring.rows(0, 0, 1 << 62)))
    assert newest.middle_ns[-1] == BEGIN_NS + 799 * S + 8 * 10**6
    assert min(part.middle_ns[0] for part in ring.rows(0, 0, 1 << 62)) > BEGIN_NS + 500 * S


def test_the_largest_row_takes_no_more_memory_than_the_limit():
    """A row of 2^20 values is stored alone, and each one replaces the one before."""
    ring = Ring(rows_bytes=4 << 20, cells_bytes=8 << 20)
    row = np.zeros(1 << 20, np.uint16)
    for n in range(6):
        ring.push(1, header(BEGIN_NS + n * S, row.size, nfft=1 << 21), row)
    assert ring.n_bytes <= 12 << 20
    assert len(list(ring.rows(1, 0, 1 << 62))) == 1


def test_another_analysis_has_another_axis():
    """After a change of the analysis, rows before and after keep their own frequencies."""
    ring = Ring()
    ring.push(1, header(BEGIN_NS), np.zeros(9, np.uint16))
    ring.push(1, header(BEGIN_NS + S, 17, nfft=32), np.zeros(17, np.uint16))
    before, after = ring.rows(1, 0, 1 << 62)
    assert (len(before.axis), len(after.axis)) == (9, 17)
    assert ring.axis(1) is after.axis
    assert ring.axis(2) is None


def test_bands_have_the_edges_of_their_description():
    """Bands without edges, or with those of others, are refused; with theirs, they are kept."""
    ring, row = Ring(), np.zeros(3, np.uint16)
    with pytest.raises(ConfigError, match=r"^edges of bands third-octave: must be 3$"):
        ring.push(1, BANDS, row)
    with pytest.raises(ConfigError, match=r"^edges of bands third-octave: must be 3$"):
        ring.push(1, BANDS, row, (EDGES[0][:2], EDGES[1][:2]))
    ring.push(1, BANDS, row, EDGES)
    later = msgspec.structs.replace(BANDS, t_utc_ns=BEGIN_NS + S // 2)
    ring.push(1, later, row, EDGES)
    (part,) = ring.rows(1, 0, 1 << 62)
    assert part.axis.is_bands
    assert part.axis.upper.tolist() == [20.0, 40.0, 80.0]
    assert len(part.middle_ns) == 2


@pytest.mark.parametrize(
    "edges",
    [
        ([10.0, 40.0, 20.0], [20.0, 80.0, 40.0]),
        ([10.0, 20.0, 40.0], [20.0, 20.0, 80.0]),
        ([10.0, 20.0, np.nan], [20.0, 40.0, 80.0]),
    ],
    ids=["order", "empty", "nan"],
)
def test_edges_that_do_not_ascend_are_refused(edges):
    """A search among them would find anything."""
    lower, upper = map(np.array, edges)
    with pytest.raises(ConfigError, match=r"^edges of bands third-octave: must ascend$"):
        Ring().push(1, BANDS, np.zeros(3, np.uint16), (lower, upper))


@pytest.mark.parametrize("unit", ["dBFS", "FS^2", "FS^2/Hz", "Pa^2/Hz"])
@pytest.mark.parametrize("is_bands", [False, True])
def test_levels_of_live_rows_are_those_of_their_power(tmp_path, unit, is_bands):
    """Without a recording, too: the sum of all bins by noise bandwidth, density or band."""
    ring, rng = Ring(), np.random.default_rng(5)
    n_values = 3 if is_bands else 9
    codes = rng.integers(-9000, -2000, (20, n_values)).astype(np.int16)
    for n, row in enumerate(codes):
        t_ns = BEGIN_NS + n * S // 10
        if is_bands:
            about = msgspec.structs.replace(BANDS, t_utc_ns=t_ns, hop=100, unit=unit)
            ring.push(3, about, to_wire(row), EDGES)
        else:
            ring.push(3, header(t_ns, unit=unit), to_wire(row))
    kind = "bands" if is_bands else "spec"
    topic = TopicInfo(3, f"{kind}/mic/0/x/", kind, "ipc://a", "mic", "0", "x", unit, 1000.0)
    query = {"topic": 3, "t0": BEGIN_NS / 1e6, "t1": BEGIN_NS / 1e6 + 3000, "f0": 0, "f1": 500}
    query |= {"w": 1, "h": 1, "layers": "level"}
    request = parse_request({name: str(value) for name, value in query.items()})
    recordings = RecordingIndex([tmp_path])
    got = answer(request, {3: topic}, recordings, ring, Budget(), now_ns=BEGIN_NS + 10 * S)
    power = 10.0 ** (codes / 1000.0)
    bins_hz = EDGES[1] - EDGES[0] if is_bands else 62.5
    per_bin = bins_hz if unit.endswith("/Hz") else 1.0 if is_bands else 62.5 / 1.5
    total = (power.mean(axis=0) * per_bin).sum() / (0.5 if unit.startswith("FS^2") else 1.0)
    (code,) = from_wire(got.layers[0]).ravel()
    assert code / 100 == pytest.approx(power_to_level(total), abs=0.0051)
    assert got.header["unit"] == ("dB re Pa^2" if unit.startswith("Pa") else "dBFS")
    assert got.header["row_s"] is None


def test_levels_of_a_topic_of_which_nothing_is_known_are_no_data(tmp_path):
    """Neither recordings nor rows: one column without a level, and without sound."""
    topic = TopicInfo(3, "spec/mic/0/x/", "spec", "ipc://a", "mic", "0", "x", "dBFS", 1000.0)
    query = {"topic": 3, "t0": 0, "t1": 1000, "f0": 0, "f1": 500, "w": 1, "h": 1, "layers": "level"}
    request = parse_request({name: str(value) for name, value in query.items()})
    got = answer(request, {3: topic}, RecordingIndex([tmp_path]), Ring(), Budget(), now_ns=S)
    assert from_wire(got.layers[0]).ravel().tolist() == [NOTHING]
    assert got.effort_s.sum() == 0.0
