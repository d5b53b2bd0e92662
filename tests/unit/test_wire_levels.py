"""Messages of sound levels: their bytes, rules, JSON Schema, documentation and queue."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest

from spectrod.cli.ctl_text import frame_text
from spectrod.client.tracker import Tracker
from spectrod.errors import ConfigError, WireError
from spectrod.levels import LevelRow, parse_quantity
from spectrod.wire.headers import LevelsHeader
from spectrod.wire.level_encoder import LevelEncoder, LevelQueue
from spectrod.wire.schema import LevelsFrame, decode, encode
from spectrod.wire.source_publisher import SourcePublisher

ROOT = Path(__file__).parents[2]
NAMES = ("LAeq", "LAE", "LUFS_I")


def row(index=0, flags=(0, 0)):
    values = np.array([[-20.5, -30.25], [-17.0, np.nan], [-23.0, -23.0]])
    return LevelRow(
        index, 8000, 8000, 1_700_000_000_000_000_000, 1.0, values, np.array(flags, np.uint8)
    )


def encoder(product="meter"):
    quantities = [parse_quantity(name) for name in NAMES]
    return LevelEncoder(
        "mic", (), product, quantities, fs=8000.0, interval_s=1.0, calibrations=(None, None)
    )


def messages(n=1, limit=8):
    """Return the parts of all messages of n rows."""
    publisher = SourcePublisher("mic", dict, epoch=7, wake=lambda: None, queue_frames=limit)
    for k in range(n):
        publisher.submit_levels(encoder(), row(8000 * k, flags=(5, 0)), 1000 + k)
    return [one.parts for one in publisher.queued_levels()]


def test_levels_survive_the_wire():
    """A message has topic, named values of float64, units, flags and times; encoding is stable."""
    first, second = (decode(parts) for parts in messages())
    assert isinstance(first, LevelsFrame)
    assert (first.topic, second.topic) == ("levels/mic/0/meter/", "levels/mic/1/meter/")
    header = first.header
    assert (header.quantities, header.units) == (NAMES, ("dBFS", "dBFS s", "LUFS"))
    assert (header.seq, header.epoch, header.sample_index) == (0, 7, 0)
    assert (header.t_utc_ns, header.t_mono_ns) == (1_700_000_000_000_000_000, 1000)
    assert (header.flags, second.header.flags) == (("overload", "settling"), ())
    np.testing.assert_array_equal(first.values, [-20.5, -17.0, -23.0])
    assert second["LAeq"] == -30.25
    assert encode(first) == list(messages()[0])
    again = decode([b"last/mic/0/meter/", *messages()[0][1:]])
    assert isinstance(again, LevelsFrame)
    text = "LAeq -20.50 dBFS, LAE -17.00 dBFS s, LUFS_I -23.00 LUFS"
    assert frame_text(first) == f"0  2023-11-14T22:13:20.000Z  {text}"


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"shape": [2]}, r"shape=\[2\] and 3 units: must be those of 3 quantities"),
        ({"units": ["dBFS"]}, r"and 1 units: must be those of 3 quantities"),
        ({"quantities": ["L"] * 65}, "length <= 64"),
        ({"quantities": ["L" * 65] * 3}, "length <= 64"),
        ({"interval_s": 0}, "> 0"),
        ({"dtype": "<c8"}, "Invalid enum value"),
        ({"schema": "spectrod.bands"}, "Invalid enum value"),
        ({"n_samples": -1}, ">= 0"),
    ],
)
def test_headers_that_break_a_rule_are_refused(fields, rule):
    """A header that contradicts itself or a bound is an error."""
    topic, header, payload = messages()[0]
    changed = json.dumps(json.loads(header) | fields).encode()
    with pytest.raises(WireError, match=rule):
        decode([topic, changed, payload])


def test_payloads_of_another_length_are_refused():
    """A payload must have exactly the bytes that the header states."""
    topic, header, payload = messages()[0]
    with pytest.raises(WireError, match="payload of 16 bytes"):
        decode([topic, header, payload[:-8]])


def test_json_schema_and_documentation():
    """The JSON Schema fits a message, and docs/protocol.md names each field."""
    header = json.loads(messages()[0][1])
    schema = json.loads((ROOT / "docs/schema/levels.json").read_text("utf-8"))
    jsonschema.validate(header, schema, cls=jsonschema.Draft202012Validator)
    text = (ROOT / "docs/protocol.md").read_text("utf-8")
    section = text.partition("## Header of sound levels")[2].partition("\n## ")[0]
    assert [name for name in LevelsHeader.__struct_fields__ if f"`{name}`" not in section] == []
    assert list(header) == list(LevelsHeader.__struct_fields__)


def test_a_client_counts_missed_levels():
    """Rows that the queue has dropped are holes in the numbers, and counted in the header."""
    tracker, frames = Tracker("test"), []
    for parts in [*messages(), *messages(5, limit=2)[2:]]:
        if parts[0].startswith(b"levels/mic/0/"):
            tracker.feed(parts)
            frames.append(tracker.step())
    assert [frame.missed for frame in frames] == [0, 3]
    assert frames[-1].header.dropped == 3


def test_a_full_queue_drops_the_oldest_rows():
    """The queue is bounded; a dropped row keeps its number."""
    queue, numbers = LevelQueue(2, Counter()), []
    for k in range(5):
        queue.put_row(encoder(), row(k), k)
    while (queued := queue.take()) is not None:
        numbers.append((queued.seq, queued.dropped, queued.row.first_sample))
    assert numbers == [(3, 3, 3), (4, 3, 4)]
    assert queue.dropped == 3


def test_names_that_would_break_a_topic_are_refused():
    """A product with a slash, or names that are not one a channel, are errors."""
    with pytest.raises(ConfigError, match="product='a/b'"):
        encoder("a/b")
    with pytest.raises(ConfigError, match="channel_names=left: must be 2"):
        LevelEncoder("mic", ("left",), "m", [], fs=1.0, interval_s=1.0, calibrations=(None, None))


def test_rows_without_a_date_have_time_zero():
    """A header needs a time: a row without one has 0."""
    one = replace(row(), begin_utc_ns=None)
    queue = LevelQueue(1, Counter())
    queue.put_row(encoder(), one, 0)
    ((_, parts), _) = encoder().messages(queue.take(), 1)
    assert msgspec.json.decode(parts[1])["t_utc_ns"] == 0
