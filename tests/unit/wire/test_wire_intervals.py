"""Messages of measurements: bytes, rules, JSON Schema, documentation, queue."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest

from spectrod.apps.ctl.ctl_replay import frame_text
from spectrod.client.tracker import Tracker
from spectrod.daemon.publisher.interval_encoder import (
    ROW_BYTES,
    IntervalEncoder,
    IntervalQueue,
    QueuedInterval,
)
from spectrod.daemon.publisher.source_publisher import SourcePublisher
from spectrod.dsp.calibration import ChannelCalibration, parse_reference
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.lib.errors import ConfigError, WireError
from spectrod.lib.stats import Stats
from spectrod.measure.kinds import KINDS
from spectrod.measure.levels import LevelRow, parse_quantity
from spectrod.measure.measurement import MESSAGE_VALUES_MAX
from spectrod.measure.measurement_config import MeasuredSignals
from spectrod.measure.tones.tone_quantities import TRACK_COLUMNS
from spectrod.wire.headers import (
    HEADER_MAX_BYTES,
    INTERVAL_TOPICS_MAX,
    MEASUREMENTS,
    QUANTITIES_MAX,
)
from spectrod.wire.schema import (
    LevelsFrame,
    decode,
    encode,
)

ROOT = Path(__file__).parents[3]
NAMES = ("LAeq", "LAE", "LUFS_I")


def row(index=0, flags=(0, 0)):
    values = np.array([[-20.5, -30.25], [-17.0, np.nan], [-23.0, -23.0]])
    return LevelRow(
        index, 8000, 8000, 1_700_000_000_000_000_000, 1.0, values, np.array(flags, np.uint8)
    )


def encoder(product="meter"):
    quantities = [parse_quantity(name) for name in NAMES]
    return IntervalEncoder(
        "mic", (), product, quantities, fs=8000.0, interval_s=1.0, calibrations=(None, None)
    )


def messages(n=1, limit=8):
    """Return the parts of all messages of n rows."""
    publisher = SourcePublisher("mic", dict, epoch=7, wake=lambda: None, queue_frames=limit)
    for k in range(n):
        publisher.write_interval(encoder(), row(8000 * k, flags=(5, 0)), 1000 + k)
    return [one.parts for one in publisher.queued_intervals()]


def test_a_message_is_bounded():
    """1024 values are sent; more, or names and units over 60 KiB, are refused."""
    fields = {"fs": 8000.0, "interval_s": 1.0, "calibrations": (None,)}

    def named(n, chars):
        one = parse_quantity("LAeq")
        return [replace(one, name=f"{k:0{chars}d}") for k in range(n)]

    values = LevelRow(0, 1, 1, 0, 1.0, np.zeros((1024, 1)), np.zeros(1, np.uint8))
    largest = IntervalEncoder("mic", (), "meter", named(1024, 40), **fields)
    ((_, parts),) = largest.messages(QueuedInterval(largest, values, 0, 0), 7)
    assert len(parts[1]) <= HEADER_MAX_BYTES
    assert len(decode(parts).values) == MESSAGE_VALUES_MAX == QUANTITIES_MAX
    with pytest.raises(ConfigError, match=r"^1025 values: a message has at most 1024; choose"):
        IntervalEncoder("mic", (), "meter", named(1025, 8), **fields)
    rule = r"^1024 values: their names and units have \d+ bytes, a message at most 61440; choose"
    with pytest.raises(ConfigError, match=rule):
        IntervalEncoder("mic", (), "meter", named(1024, 64), **fields)


def test_levels_survive_the_wire():
    """A message has topic, named values of float64, units, flags and times; encoding is stable."""
    first, second = (decode(parts) for parts in messages())
    assert isinstance(first, LevelsFrame)
    assert (first.topic, second.topic) == ("levels/mic/0/meter/", "levels/mic/1/meter/")
    header = first.header
    assert (header.quantities, header.units) == (NAMES, ("dBFS", "dB re 0.5 FS^2 s", "LUFS"))
    assert (header.seq, header.epoch, header.sample_index) == (0, 7, 0)
    assert (header.t_utc_ns, header.t_mono_ns) == (1_700_000_000_000_000_000, 1000)
    assert (header.flags, second.header.flags) == (("overload", "settling"), ())
    np.testing.assert_array_equal(first.values, [-20.5, -17.0, -23.0])
    assert second["LAeq"] == -30.25
    assert repr(first) == (
        "<LevelsFrame levels/mic/0/meter/: LAeq -20.5 dBFS, LAE -17 dB re 0.5 FS^2 s, "
        "LUFS_I -23 LUFS, 2023-11-14T22:13:20.000000000Z, seq 0>"
    )
    many = ("a",) * 7
    longer = replace(first, header=msgspec.structs.replace(header, quantities=many, units=many))
    assert "LAeq" not in repr(replace(longer, values=np.zeros(7)))
    assert repr(replace(longer, values=np.zeros(7))).count("a 0 a, ") == 6
    assert encode(first) == list(messages()[0])
    again = decode([b"last/mic/0/meter/", *messages()[0][1:]])
    assert isinstance(again, LevelsFrame)
    text = "LAeq -20.50 dBFS, LAE -17.00 dB re 0.5 FS^2 s, LUFS_I -23.00 LUFS"
    assert frame_text(first) == f"0  2023-11-14T22:13:20.000Z  {text}"


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"shape": [2]}, r"shape=\[2\] and 3 units: must be those of 3 quantities"),
        ({"units": ["dBFS"]}, r"and 1 units: must be those of 3 quantities"),
        ({"quantities": ["L"] * 1025}, "length <= 1024"),
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


TRACKS = np.array([[7.0, 440.5, 1e-3, -20.0, 0.01, 3.0], [9.0, 900.0, 2e-3, -40.0, 0.02, 0.0]])
H1 = np.array([[0.5, 0.75], [-6.0, np.nan], [90.0, -180.0]])
FRAMES = {"win_length": 512, "low_hz": 50.0, "high_hz": 4000.0}
SETTINGS = {
    "levels": {"quantities": NAMES},
    "features": {"quantities": ("centroid", "NDSI"), **FRAMES},
    "tones": {"quantities": ("SINAD", "level"), **FRAMES},
    "transfer": {
        "quantities": ("delay", "mean_coherence"),
        "win_length": 512,
        "low_hz": 10.0,
        "high_hz": 62.5,
    },
}
"""Keys of a product of each kind."""
TABLES = {"tones": TRACKS, "transfer": H1}
EXPECTED = {
    "levels": {"quantities": NAMES, "units": ("dBFS", "dB re 0.5 FS^2 s", "LUFS")},
    "features": {
        "quantities": ("centroid", "NDSI_1000-2000Hz_2000-8000Hz"),
        "units": ("Hz", "1"),
        "n_frames": 30,
        "win_length": 512,
        "band_hz": (50.0, 4000.0),
    },
    "tones": {
        "units": ("dB", "dBFS"),
        "columns": tuple(TRACK_COLUMNS),
        "column_units": ("1", "Hz", "Hz", "dBFS", "dB", "s"),
        "n_tracks": 2,
    },
    "transfer": {
        "units": ("s", "1"),
        "spectra_units": ("1", "dB", "deg"),
        "reference": "mic",
        "averaging": "mean",
        "averaging_s": None,
    },
}
"""Fields of the headers of these products."""


def parts_of(word, table=None, **keys):
    """Return the parts of a message of a product of the second of two channels.

    Its values are 0.25, 1.25 and so on.
    """
    fs = 16_000.0
    config = KINDS[word]("p", interval_s=1.0, **SETTINGS.get(word, {}) | keys)
    known = config.bind(MeasuredSignals("", fs, ("mic", "ear"), (None, None)))
    names, table = known.signals.channels, TABLES.get(word) if table is None else table
    quantities = known.open(0).message_quantities
    encoder = IntervalEncoder(
        *("mic", names, "p", quantities),
        fs=fs,
        interval_s=1.0,
        calibrations=known.signals.calibrations,
        kind=word,
        columns=known.columns,
        constants=known.header_fields,
    )
    one = replace(
        row(),
        values=np.arange(len(quantities))[:, np.newaxis] + np.full(len(names), 0.25),
        flags=np.zeros(len(names), "u1"),
        n_frames=30,
        tables=() if table is None else (table,) * len(names),
    )
    *_, (_, parts) = encoder.messages(QueuedInterval(encoder, one, 0, 0), 1)
    return parts


@pytest.mark.parametrize("word", KINDS)
def test_messages_survive_the_wire(word):
    """Header, values and tables come back; encoding is stable; subscribers and caches take them."""
    topic, *rest = parts = parts_of(word)
    frame = decode(parts)
    assert type(frame.header) is MEASUREMENTS[word]
    assert (frame.topic, frame.channel) == (f"{word}/mic/ear/p/", "ear")
    for name, value in EXPECTED.get(word, {}).items():
        assert getattr(frame.header, name) == value
    for k, name in enumerate(frame.header.quantities):
        assert frame[name] == k + 0.25
    assert encode(frame) == list(parts)
    assert type(decode([topic.replace(word.encode(), b"last", 1), *rest])) is type(frame)
    tracker = Tracker("test")
    tracker.feed(parts)
    assert encode(tracker.step()) == list(parts)


KURTOSIS = np.array([[-1.0, 0.25, np.nan]])


def kurtosis_parts():
    """Return the parts of a message of features with values of three bins."""
    return parts_of("features", KURTOSIS, spectra=("kurtosis",), low_hz=125.0, high_hz=187.5)


def test_values_of_bins_survive_the_wire():
    """With spectra there is a part of values of bins, whose frequencies the header gives."""
    frame = decode(kurtosis_parts())
    np.testing.assert_array_equal(frame.spectra, KURTOSIS)
    np.testing.assert_array_equal(frame.spectrum("kurtosis"), KURTOSIS[0])
    np.testing.assert_array_equal(frame.f, np.array([4, 5, 6]) * 16_000.0 / 512)
    with pytest.raises(KeyError, match="flatness"):
        frame.spectrum("flatness")
    assert encode(frame)[2:] == list(kurtosis_parts()[2:])
    assert decode(parts_of("features")).spectra.size == 0


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"n_bins": 4}, r"payload of 24 bytes: shape=\[1, 4\] of <f8 must have 32"),
        ({"n_bins": 1048577}, "<= 1048576"),
        ({"first_bin": -524289}, ">= -524288"),
        ({"spectra_units": []}, "0 spectra_units: must be 1"),
        ({"spectra": ["kurtosis"] * 65}, "length <= 64"),
    ],
)
def test_values_of_bins_that_break_a_rule_are_refused(fields, rule):
    """A part of values of bins must be as the header says, which has bounds."""
    topic, header, *payloads = kurtosis_parts()
    changed = json.dumps(json.loads(header) | fields).encode()
    with pytest.raises(WireError, match=rule):
        decode([topic, changed, *payloads])
    with pytest.raises(WireError, match="message of 3 parts: the values of bins are missing"):
        decode(kurtosis_parts()[:3])


def test_values_of_a_response_survive_the_wire():
    """The values of bins of a transfer function have names, and the frequencies of its bins."""
    topic, header, *payloads = parts_of("transfer")
    frame = decode([topic, header, *payloads])
    np.testing.assert_array_equal(frame.spectra, H1)
    np.testing.assert_array_equal(frame.spectrum("h1_phase"), [90.0, -180.0])
    np.testing.assert_array_equal(frame.f, [31.25, 62.5])
    with pytest.raises(WireError, match=r"payload of 48 bytes: shape=\[3, 3\] of <f8 must have 72"):
        decode([topic, json.dumps(json.loads(header) | {"n_bins": 3}).encode(), *payloads])


@pytest.mark.parametrize("n_tracks", [0, 1, 2])
def test_tracks_survive_the_wire(n_tracks):
    """A message of tones has a part of tracks, also of none."""
    frame = decode(parts_of("tones", TRACKS[:n_tracks]))
    np.testing.assert_array_equal(frame.tracks, TRACKS[:n_tracks])
    np.testing.assert_array_equal(frame.column("frequency"), TRACKS[:n_tracks, 1])
    with pytest.raises(KeyError, match="phase"):
        frame.column("phase")


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"n_tracks": 3}, r"payload of 96 bytes: shape=\[3, 6\] of <f8 must have 144"),
        ({"n_tracks": 1025}, "<= 1024"),
        ({"n_tracks": -1}, ">= 0"),
        ({"column_units": ["1"]}, "1 column_units: must be 6"),
        ({"columns": ["c"] * 65}, "length <= 64"),
        ({"columns": []}, "length >= 1"),
        ({"columns": ["a"], "column_units": ["1"]}, r"shape=\[2, 1\] of <f8 must have 16"),
    ],
)
def test_tracks_that_break_a_rule_are_refused(fields, rule):
    """A part of tracks must be as the header says, which has bounds."""
    topic, header, *payloads = parts_of("tones")
    changed = json.dumps(json.loads(header) | fields).encode()
    with pytest.raises(WireError, match=rule):
        decode([topic, changed, *payloads])


def test_tones_without_the_part_of_tracks_are_refused():
    """A message of tones without its last part is an error, even if it has no tracks."""
    with pytest.raises(WireError, match="message of 3 parts: the tracks are missing"):
        decode(parts_of("tones", TRACKS[:0])[:3])


@pytest.mark.parametrize("word", KINDS)
def test_json_schema_and_documentation(word):
    """The JSON Schema fits a message, and docs/protocol.md names each field."""
    found = json.loads(parts_of(word)[1])
    schema = json.loads((ROOT / f"docs/schema/{word}.json").read_text("utf-8"))
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)
    text = (ROOT / "docs/protocol.md").read_text("utf-8")

    def section(of):
        return text.partition(f"(`{of}/`)\n")[2].partition("\n## ")[0]

    described = section("levels") + section(word)
    if "n_frames" in found:
        described += section("features")
    names = MEASUREMENTS[word].__struct_fields__
    assert [one for one in names if f"`{one}`" not in described] == []
    assert list(found) == list(names)


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
    queue, numbers = IntervalQueue(2, Counter()), []
    for k in range(5):
        queue.put_row(encoder(), row(k), k)
    while (queued := queue.take()) is not None:
        numbers.append((queued.seq, queued.dropped, queued.row.first_sample))
    assert numbers == [(3, 3, 3), (4, 3, 4)]
    assert queue.dropped == 3


def test_large_tables_count_as_many_rows():
    """The queue is bounded in memory too, and a row that is larger than all of it fits alone."""
    queue = IntervalQueue(4, Counter())
    large = np.zeros((1, 2 * ROW_BYTES // 8))
    for k in range(4):
        queue.put_row(encoder(), replace(row(k), tables=(large,)), k)
    assert (len(queue), queue.dropped) == (1, 3)
    queue.put_row(encoder(), replace(row(9), tables=(large,) * 9), 9)
    assert (len(queue), queue.dropped) == (1, 4)


def test_names_that_would_break_a_topic_are_refused():
    """A product with a slash, or names that are not one a channel, are errors."""
    with pytest.raises(ConfigError, match="product='a/b'"):
        encoder("a/b")
    with pytest.raises(ConfigError, match="channel_names=left: must be 2"):
        IntervalEncoder(
            "mic", ("left",), "m", [], fs=1.0, interval_s=1.0, calibrations=(None, None)
        )


def test_rows_without_a_date_have_time_zero():
    """A header needs a time: a row without one has 0."""
    one = replace(row(), begin_utc_ns=None)
    queue = IntervalQueue(1, Counter())
    queue.put_row(encoder(), one, 0)
    ((_, parts), _) = encoder().messages(queue.take(), 1)
    assert msgspec.json.decode(parts[1])["t_utc_ns"] == 0


@pytest.mark.parametrize(
    ("reference", "unit"),
    [
        ("20 uPa", "dB re (20 uPa)^2 s"),
        ("1 uPa", "dB re (1 uPa)^2 s"),
        ("1 V", "dB re (1 V)^2 s"),
        ("5e-8 m/s", "dB re (5e-08 m/s)^2 s"),
        (None, "dB re 0.5 FS^2 s"),
    ],
)
def test_the_unit_of_an_exposure_is_a_square_times_a_second(reference, unit):
    """Messages and files have the same unit of LAE: that of an integral of squares over time."""
    calibration = reference and ChannelCalibration(parse_reference(reference), 100.0)
    quantity = parse_quantity("LAE")
    encoder = IntervalEncoder(
        "mic", (), "p", [quantity], fs=8e3, interval_s=1.0, calibrations=(calibration,)
    )
    found = LevelRow(0, 8000, 8000, None, 1.0, np.zeros((1, 1)), np.zeros(1, np.uint8))
    ((_, parts),) = encoder.messages(QueuedInterval(encoder, found, 0, 0), 1)
    about = MeasurementDescription(
        source="x", channels=("0",), quantities=(quantity,), calibrations=(calibration,), fs=8e3,
        interval_s=1.0, align="start", time_zone="", has_utc=False, software="",
    )  # fmt: skip
    assert json.loads(parts[1])["units"] == [unit]
    assert about.unit(quantity) == unit


def offering(*encoders):
    """Return a publisher that offers products of measurements."""
    stats = Stats("running", "test signal", "numpy", 8000.0, 2)
    publisher = SourcePublisher("mic", lambda: stats, epoch=7, wake=lambda: None, queue_frames=1)
    publisher.offer([], encoders)
    return publisher


def test_a_heartbeat_lists_the_topics_of_intervals():
    """Each topic is there with its interval, up to 1024 of them, while it is offered."""
    publisher = offering(encoder())
    listed = decode(publisher.heartbeat()).header.interval_topics
    names = ["levels/mic/0/meter/", "levels/mic/1/meter/"]
    assert [(one.topic, one.interval_s) for one in listed] == [(name, 1.0) for name in names]
    publisher.offer([], [encoder(f"meter{k}") for k in range(600)])
    assert len(decode(publisher.heartbeat()).header.interval_topics) == INTERVAL_TOPICS_MAX
    publisher.offer([])
    assert decode(publisher.heartbeat()).header.interval_topics == ()


@pytest.mark.parametrize("topic", ["levels/mic/0/slm", "levels/mic/0/slm/\n", "levels//0/slm/"])
def test_a_heartbeat_with_a_topic_that_is_none_is_refused(topic):
    """Readers part the topic at its slashes, and may rely on them."""
    publisher = offering(encoder())
    name, header = publisher.heartbeat()
    broken = json.loads(header)
    broken["interval_topics"][0]["topic"] = topic
    with pytest.raises(WireError, match="matching regex"):
        decode([name, json.dumps(broken).encode()])
