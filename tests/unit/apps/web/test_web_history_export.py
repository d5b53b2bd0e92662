"""``api/export``: tables, pictures and rows of a piece of the past."""

import asyncio
import io
import json
import logging
from urllib.parse import urlencode

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette

from spectrod.apps.web.history import export
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.routes import history_routes
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.page_topics import TopicInfo
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import power_to_level
from spectrod.formats.description import Description
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.formats.segment.segment_writer import SegmentWriter
from spectrod.lib.errors import StorageError

SPEC = SpectrumSpec(fs=1000.0, channels=2, win_length=64, hop=50, nfft=64)
BEGIN_NS = 1_777_680_000 * 10**9
BEGIN_MS = BEGIN_NS // 10**6

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


def rows(n, first=0, spec=SPEC):
    rng = np.random.default_rng(first + 1)
    values = rng.gamma(2.0, 1e-6, (n, 2, spec.n_values)).astype(np.float32)
    index = (first + np.arange(n, dtype=np.int64)) * spec.hop
    t_ns = BEGIN_NS + index * 10**6
    return SpectrumBatch(values, index, t_ns, t_ns, spec, "numpy")


def recorded(folder, *pieces, spec=SPEC):
    """Write each piece of rows as a recording of its own."""
    place = folder / "all" / "pond"
    place.mkdir(parents=True, exist_ok=True)
    about = Description(spec, "pond", ("left", "right"), "spectrod test")
    for piece in pieces:
        writer = SegmentWriter(place / f"{int(piece.sample_index[0])}-{spec.nfft}.spd", about)
        for first in range(0, piece.n_frames, 20):
            writer.write(piece.between(first, min(first + 20, piece.n_frames)))
        writer.finish()


def got(folder, **changes):
    """Ask for a file; return status, headers and body."""
    index = RecordingIndex([folder])
    app = Starlette(routes=history_routes(index, Ring(), lambda: {7: TOPIC}))
    query = {
        "topic": 7,
        "t0": BEGIN_MS,
        "t1": BEGIN_MS + 10_000,
        "f0": 0,
        "f1": 500,
        "w": 10,
        "h": 64,
    }
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/export",
        "root_path": "",
        "query_string": urlencode(query | changes).encode(),
        "headers": [],
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, body


def error_of(folder, **changes):
    status, headers, body = got(folder, **changes)
    assert headers["cache-control"] == "no-store"
    return status, json.loads(body)["error"]


def test_tables_have_the_levels_of_the_picture(tmp_path):
    """A line of the table has the time, the effort and the greatest levels of its column."""
    values = rows(200)
    recorded(tmp_path, values)
    status, headers, body = got(tmp_path, format="csv")
    assert (status, headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert headers["content-disposition"] == f'attachment; filename="spectrod-7-{BEGIN_MS}.csv"'
    lines = body.decode().splitlines()
    assert lines[0] == "# spec/pond/right/density/, dB re FS^2/Hz, max of power"
    names = lines[2].split(",")
    assert names[:3] == ["time_utc", "effort_s", "0"]
    assert float(names[3]) == 15.625
    table = [line.split(",") for line in lines[3:]]
    assert [row[0] for row in table[:2]] == ["2026-05-02T00:00:00.000Z", "2026-05-02T00:00:01.000Z"]
    # Row n has its middle at 50 n + 32 ms: each second has 20 of them.
    power = values.values[:, 1].astype(np.float64).reshape(10, 20, -1).max(axis=1)
    levels = np.array([[float(text) for text in row[2:]] for row in table])
    assert np.abs(levels - power_to_level(power)).max() <= 0.0101


def test_gaps_are_empty_cells_and_grey_pixels(tmp_path):
    """What is missing is neither a level in the table nor a colour of the scale."""
    recorded(tmp_path, rows(20), rows(20, first=100))
    table = got(tmp_path, format="csv")[2].decode().splitlines()[3:]
    assert table[2] == "2026-05-02T00:00:02.000Z,0.000" + "," * 33
    picture = Image.open(io.BytesIO(got(tmp_path, format="png", lo=-90, hi=-30)[2]))
    pixels = np.asarray(picture.convert("RGB"))
    assert (pixels[:, 2] == 128).all()
    assert not (pixels[:, 0] == 128).all(axis=-1).any()


def test_pictures_have_a_pixel_for_each_value_in_the_colours_of_the_map(tmp_path):
    """Time goes to the right, frequency upwards; the ends of the scale are those of the map."""
    values = rows(200)
    values.values[:, 1] = 1e-9
    values.values[100:120, 1, 5] = 1.0
    recorded(tmp_path, values)
    status, headers, body = got(tmp_path, format="png", lo=-90, hi=0, colormap="grey")
    assert (status, headers["content-type"]) == (200, "image/png")
    picture = Image.open(io.BytesIO(body))
    assert picture.size == (10, 33)
    assert (
        "1 s a pixel; -7.8125 to 507.812 Hz; -90 to 0 dB re FS^2/Hz" in picture.text["Description"]
    )
    pixels = np.asarray(picture.convert("L"))
    assert pixels[33 - 1 - 5, 5] == 255
    assert (pixels == 0).sum() == pixels.size - 1


def test_rows_come_back_bit_for_bit(tmp_path):
    """A segment holds the recorded rows of the time, of all channels, with the gaps between."""
    folder = tmp_path / "in"
    recorded(folder, rows(100), rows(100, first=140))
    status, _, body = got(folder, format="spd", t0=BEGIN_MS + 1000, t1=BEGIN_MS + 8000)
    assert status == 200
    path = tmp_path / "out.spd"
    path.write_bytes(body)
    reader = SegmentReader(path)
    batches = list(reader.batches())
    found = np.concatenate([batch.values for batch in batches])
    wanted = np.concatenate([rows(100).values[20:], rows(100, first=140).values[:20]])
    assert np.array_equal(found, wanted)
    assert [batch.gap_samples for batch in batches] == [0, 40 * 50]
    assert reader.description.signals == ("left", "right")


def test_what_cannot_be_exported_is_refused_with_its_rule(tmp_path, monkeypatch):
    """Unknown formats, levels out of order, no rows, several analyses and too many rows."""
    recorded(tmp_path, rows(100))
    formats = "must be one of csv, png, spd"
    assert error_of(tmp_path, format="exe") == (400, f"format='exe': {formats}")
    assert error_of(tmp_path) == (400, f"format='': {formats}")
    assert error_of(tmp_path, format="png") == (400, "lo: is missing")
    text = "lo=0.0, hi=-10.0: hi must be above lo"
    assert error_of(tmp_path, format="png", lo=0, hi=-10) == (400, text)
    status, text = error_of(tmp_path, format="png", lo=-90, hi=0, colormap="rainbow")
    assert status == 400
    assert text.startswith("colormap='rainbow': must be one of ")
    far = {"t0": BEGIN_MS + 10**7, "t1": BEGIN_MS + 10**7 + 1}
    assert error_of(tmp_path, format="spd", **far) == (
        404,
        "t0, t1: no recording holds rows of this time",
    )
    monkeypatch.setattr(export, "ROWS_BYTES_MAX", 10_000)
    text = "t0, t1: more than 0 MiB of rows: choose a shorter time"
    assert error_of(tmp_path, format="spd") == (400, text)
    other = SpectrumSpec(fs=1000.0, channels=2, win_length=64, hop=50, nfft=128)
    recorded(tmp_path, rows(100, first=60, spec=other), spec=other)
    text = "t0, t1: the analysis changed in this time: choose a shorter one"
    assert error_of(tmp_path, format="spd") == (400, text)


def test_errors_of_files_name_no_folder_of_the_server(tmp_path, monkeypatch, caplog):
    """A disk that fails is logged with its path; the page gets a text without it."""

    def fail(*_args, **_options):
        raise StorageError("/srv/secret/x.spd: Input/output error")

    recorded(tmp_path, rows(100))
    monkeypatch.setattr(export, "SegmentWriter", fail)
    with caplog.at_level(logging.WARNING):
        assert error_of(tmp_path, format="spd") == (500, "a file cannot be read or written")
    assert "/srv/secret/x.spd: Input/output error" in caplog.text


@pytest.mark.parametrize("name", ["w", "t0"])
def test_the_rules_of_history_hold_here_as_well(tmp_path, name):
    """Sizes and times have the same bounds as in requests of tiles."""
    assert error_of(tmp_path, format="csv", **{name: "1e99"})[0] == 400
