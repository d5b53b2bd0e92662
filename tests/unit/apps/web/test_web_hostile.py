"""Messages of a daemon that is broken or hostile: any values, any edges, any axis."""

import json
import sys
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.measure import measured_fields
from spectrod.apps.web.messages import encode_text
from spectrod.apps.web.page_rows import RowMaker
from spectrod.apps.web.page_view import MeasureWish, StreamWish, View

sys.path.insert(0, str(Path(__file__).parents[3] / "web"))
from web_pages import decode
from web_rows import TOPIC, band_frame, frame

FLOAT32_MAX = float(np.finfo(np.float32).max)
VALUES = st.sampled_from(
    [0.0, -0.0, -20.0, 1e-45, FLOAT32_MAX, -FLOAT32_MAX, np.inf, -np.inf, np.nan]
)
UNITS = st.sampled_from(["dBFS", "dB SPL", "FS^2/Hz", "FS^2", "", "/Hz", "dB re \u202e"])
EDGES = st.sampled_from([0.0, -1.0, 20.0, 1e300, -1e300, 1e-300, np.inf, -np.inf, np.nan])
MEASURE = MeasureWish(cursors=(-2e12, 100.0, 2e12), bands=((-2e12, 2e12), (10.0, 11.0)), peaks=9)


def wishes(axis, px):
    """Return wishes for every kind of row."""
    kinds = [("rows", "max", 8), ("rows", "mean", 8), ("rows", "mean", 16), ("max", "mean", 8)]
    kinds += [("min", "max", 16), ("mean", "max", 8), ("mean", "mean", 16)]
    asked = {"topic_id": 3, "f0": -1e9, "f1": 1e9, "px": px, "axis": axis, "measure": MEASURE}
    return [
        StreamWish(id=k, of=of, stat=stat, bits=bits, rows_s=25.0, **asked)
        for k, (of, stat, bits) in enumerate(kinds)
    ]


def check(rows, axis, px):
    """Push rows to a page that shows them in all ways; what it gets is whole."""
    client = PageClient(Limits())
    client.set_view(View(generation=1, streams=wishes(axis, px)), {TOPIC.id: TOPIC})
    for row in rows:
        client.push(TOPIC.id, row)
    for stream in client.streams.values():
        json.loads(encode_text("measured", **measured_fields(stream)))
    found = client.take_rows(0.0)
    assert found is not None
    descriptions, message = found
    texts = [json.loads(encode_text("stream", **one.fields)) for one in descriptions]
    values = {(one["id"], one["generation"]): one["slices"] for one in texts}
    for row in decode(message)[1]:
        slices = values[row["stream"], row["generation"]]
        assert len(row["values"]) == sum(piece["values"] for piece in slices)


@settings(max_examples=40, deadline=None)
@given(
    arrays.arrays(np.float32, st.tuples(st.just(4), st.integers(2, 40)), elements=VALUES),
    UNITS,
    st.sampled_from(["linear", "log", "mel", "octave"]),
    st.sampled_from([1, 7, 4096]),
    st.sampled_from([(48000.0, 0.0), (1e-3, 0.0), (1e10, 1e12), (1e10, -1e12), (1e-3, 1e12)]),
)
def test_any_spectrum_is_shown_without_a_warning(values, unit, axis, px, rate):
    """Whatever its values, unit and frequencies, the page gets rows of the right length."""
    fs, center = rate
    about = {"unit": unit, "fs": fs, "center_frequency_hz": center, "rate_hz": 50.0}
    maker = RowMaker(TOPIC)
    frames = [frame(one, k, **about) for k, one in enumerate(values)]
    check([maker.make(one, None) for one in frames], axis, px)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(1, 12), UNITS, st.sampled_from(["linear", "log", "mel"]))
def test_any_bands_are_shown_without_a_warning(data, n, unit, axis):
    """Edges that are no numbers, not in order or without width break nothing."""
    values = data.draw(arrays.arrays(np.float32, (2, n), elements=VALUES))
    edges = data.draw(arrays.arrays(np.float64, (2, n), elements=EDGES))
    maker = RowMaker(TOPIC)
    frames = [band_frame(one, k, unit=unit) for k, one in enumerate(values)]
    check([maker.make(one, edges) for one in frames], axis, 100)
