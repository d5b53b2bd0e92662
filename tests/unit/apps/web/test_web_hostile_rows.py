"""Rows of a hostile publisher, within the bounds of the protocol: refused, or served as others."""

import warnings

import msgspec
import numpy as np
import pytest

from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.page_rows import RowMaker
from spectrod.apps.web.page_topics import ROW_MAX_S, TIME_MAX_NS, TopicInfo, check_times
from spectrod.apps.web.page_view import parse_text
from spectrod.apps.web.streams import RowStream, StreamDescription
from spectrod.lib.errors import WireError
from spectrod.wire.schema import decode

NAME = "spec/mic/0/dbfs/"
TOPIC = TopicInfo(3, NAME, "spec", "tcp://a:1", "mic", "0", "dbfs", "dBFS", 48000.0)
HEADER = {
    "v": 1,
    "schema": "spectrod.spectrum",
    "seq": 1,
    "epoch": 5,
    "t_utc_ns": 1_777_680_000 * 10**9,
    "t_mono_ns": 0,
    "sample_index": 0,
    "fs": 48000.0,
    "win_length": 16,
    "nfft": 16,
    "hop": 8,
    "window": "hann",
    "enbw_hz": 70.0,
    "shape": [9],
    "unit": "dBFS",
    "ref": "",
    "engine": "numpy",
}
MORE = (
    *sorted(HEADER),
    "averaging_frames",
    "frame_hop",
    "rate_hz",
    "cut_frames",
    "gap_samples",
    "center_frequency_hz",
)
EXTREMES = (0, -1, 1, 2**31, 2**62, 2**63 - 1, 1 - 2**63, 1e308, 1e-308, 5e-324, 0.5, 10**12, 1e12)


def frame(values=None, **changes):
    values = np.full(9, -50.0, "<f4") if values is None else values
    return decode([NAME.encode(), msgspec.json.encode(HEADER | changes), values.tobytes()])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"t_utc_ns": TIME_MAX_NS + 1}, f"t_utc_ns={TIME_MAX_NS + 1}: must be at most"),
        ({"t_utc_ns": 1 - 2**63}, "must be at most 4611686018427387904 from 1970"),
        ({"rate_hz": 5e-324}, "rows apart: inf s: must be at most 3.16224e\\+07 s"),
        ({"hop": 2**62}, "rows apart: 9.60768e\\+13 s"),
        ({"frame_hop": 2**62, "averaging_frames": 2}, "a row: 9.60768e\\+13 s"),
    ],
)
def test_times_that_cannot_be_reckoned_with_are_refused(changes, text):
    """The protocol allows times of 292 years and durations without a bound; the page does not."""
    check_times(frame().header)
    check_times(frame(hop=int(ROW_MAX_S * 48000), t_utc_ns=-TIME_MAX_NS).header)
    with pytest.raises(WireError, match=text):
        check_times(frame(**changes).header)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_header_says_it_is_refused_or_served(seed):
    """No combination of extremes makes the rows, the ring or a page's stream fail or warn."""
    rng = np.random.default_rng(seed)
    ring = Ring()
    wishes = [
        {"id": 0, "topic_id": 3, "f0": 0, "f1": 24000, "px": 99, "axis": "log", "bits": 16},
        {"id": 1, "topic_id": 3, "f0": 10, "f1": 1e9, "px": 9, "axis": "mel", "stat": "mean"},
    ]
    text = {"op": "view", "generation": 1, "visible": True, "streams": wishes}
    view = parse_text(msgspec.json.encode(text).decode(), Limits())

    def describe(fields):
        return StreamDescription(0, 1, 0, 8, fields)

    n_served = 0
    maker = RowMaker(TOPIC)
    streams = [RowStream(wish, None, describe) for wish in view.streams]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(300):
            changes = {name: EXTREMES[rng.integers(len(EXTREMES))] for name in rng.choice(MORE, 2)}
            try:
                one = frame(np.frombuffer(rng.bytes(36), "<f4"), **changes)
                check_times(one.header)
            except WireError:
                continue
            row = maker.make(one, None)
            ring.push(3, one.header, row.wire_codes)
            for stream in streams:
                for done in stream.push(row):
                    assert done.size_bytes > 0
            row.peaks(10)
            n_served += 1
    assert n_served > 10
