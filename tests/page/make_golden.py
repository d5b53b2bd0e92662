"""Write messages of the server for tests of the page: ``python tests/page/make_golden.py``.

Each NAME.bin in golden/ is a binary message. NAME.json has its descriptions, its rows as they are
to be read, and the levels that were measured: no value is more than half a step from its level.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
from web_pages import decode
from web_rows import TOPIC, band_frame, frame

from spectrod.apps.web.client import PageClient
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.messages import encode_text
from spectrod.apps.web.page_rows import RowMaker
from spectrod.apps.web.page_view import StreamWish, View

FOLDER = Path(__file__).parent / "golden"
_NAMES = {"t_ms": "tMs", "gap_samples": "gapSamples", "client_dropped": "clientDropped"}


def spectrum(k, n_bins=65):
    """Return the levels of a tone that moves, above noise [dB]."""
    levels = np.random.default_rng(k).uniform(-110.0, -100.0, n_bins)
    levels[10 + k] = -20.0
    return np.round(levels, 2).astype(np.float32)


def wish(number, **fields):
    """Return a stream of a view."""
    asked = {"id": number, "topic_id": TOPIC.id, "f0": 0.0, "f1": 24e3, "px": 1000}
    return StreamWish(**(asked | fields))


def missing(levels):
    """Return levels without data in two bins, and with the ends of the scale in two."""
    levels[3:7] = np.nan, np.nan, -np.inf, np.inf
    return levels


FRAMES = [frame(spectrum(k), 100 + k) for k in range(4)]
LOSSES = [
    frame(spectrum(0), 2**32 + 5),
    frame(spectrum(1), 2**32 + 9, missed=3, gap_samples=96000),
    frame(spectrum(2), 0, epoch=2, restarted=True),
]
EDGES = np.array([[10.0, 20.0, 40.0], [20.0, 40.0, 80.0]])
CASES = {
    "bytes": ([wish(1)], FRAMES, None),
    "codes": ([wish(255, bits=16)], FRAMES, None),
    "no_data": ([wish(1), wish(2, bits=16)], [frame(missing(spectrum(0)), 1)], None),
    "losses": ([wish(7, bits=16, px=20)], LOSSES, None),
    "log_slices": ([wish(1, axis="log", px=12, f0=100.0)], FRAMES, None),
    "merged": ([wish(1, rows_s=25.0), wish(2, bits=16, rows_s=12.5)], FRAMES, None),
    "bands": ([wish(1, bits=16)], [band_frame([-10.0, np.nan, -30.5], 4)], EDGES),
}


def make(wishes, frames, edges):
    """Return the message of a case, and what is in it."""
    client = PageClient(Limits())
    client.set_view(View(generation=1, streams=wishes), {TOPIC.id: TOPIC})
    maker = RowMaker(TOPIC)
    for one in frames:
        client.push(TOPIC.id, maker.make(one, edges))
    described, message = client.take_rows(0.0)
    descriptions = {}
    for one in described:
        text = json.loads(encode_text("stream", **one.fields))
        descriptions[text["id"], text["generation"]] = text
    number, rows = decode(message)
    read = [as_read(row, descriptions[row["stream"], row["generation"]], frames) for row in rows]
    return message, {"message": number, "descriptions": [*descriptions.values()], "rows": read}


def as_read(row, description, frames):
    """Return a row as the page is to read it, with its levels; null: no data."""
    numbers = [one.header.seq % 2**32 for one in frames]
    last = numbers.index(row["seq"]) + 1
    levels = np.fmax.reduce([one.values for one in frames[last - row["merged"] : last]])
    lo, step = description["lo"], description["step"]
    hi = lo + (254 if description["bits"] == 8 else 65534) * step
    pooled = [
        pool(levels[start : start + piece["per_value"]].clip(lo, hi))
        for piece in description["slices"]
        for start in piece["first"] + piece["per_value"] * np.arange(piece["values"])
    ]
    known = {_NAMES.get(name, name): value for name, value in row.items() if name != "zero"}
    return known | {"values": row["values"].tolist(), "levels": pooled}


def pool(levels):
    """Return the greatest level; None without data."""
    return None if np.isnan(levels).all() else round(float(np.nanmax(levels)), 2)


def make_all():
    """Return the bytes of all files by name."""
    files = {}
    for name, case in CASES.items():
        message, read = make(*case)
        files[f"{name}.bin"] = message
        files[f"{name}.json"] = (json.dumps(read, allow_nan=False) + "\n").encode()
    return files


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, data in make_all().items():
        (FOLDER / file).write_bytes(data)
