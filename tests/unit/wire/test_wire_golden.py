import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from spectrod.dsp.bands import get_bands
from spectrod.wire.headers import EventHeader, HeartbeatHeader
from spectrod.wire.jsonschema import schemas
from spectrod.wire.schema import BandFrame, EventMessage, Frame, Heartbeat, Meta, decode, encode

ROOT = Path(__file__).parents[3]
GOLDEN = json.loads((ROOT / "tests/data/golden_v1.json").read_text())
FIRST = json.loads((ROOT / "tests/data/golden_v1_first.json").read_text())


SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (ROOT / "docs/schema").iterdir()}


def parts_of(golden):
    payloads = [golden["payload_hex"], golden.get("edges_hex")]
    head = [golden["topic"].encode(), golden["header"].encode()]
    return [*head, *(bytes.fromhex(payload) for payload in payloads if payload is not None)]


@pytest.fixture
def messages():
    return {golden["name"]: decode(parts_of(golden)) for golden in GOLDEN}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["name"])
def test_golden_messages_are_encoded_to_the_same_bytes(golden):
    """Version 1 stays version 1: decoding and encoding changes no byte."""
    assert encode(decode(parts_of(golden))) == parts_of(golden)


@pytest.mark.parametrize("golden", FIRST, ids=lambda golden: golden["name"])
def test_messages_of_the_first_daemons_are_still_read(golden):
    """All that they say is understood as it was."""
    name, header, *payload = parts_of(golden)
    now_name, now_header, *now_payload = encode(decode(parts_of(golden)))
    assert (now_name, now_payload) == (name, payload)
    now = json.loads(now_header)
    assert {key: now[key] for key in json.loads(header)} == json.loads(header)


def test_values_print_as_one_line(messages):
    """Topic, values, time and number are there, and no array."""
    assert repr(messages["spectrum"]) == (
        "<Frame spec/mic1/0/dbfs/: 33 values in dBFS, 2026-01-01T00:00:00.000000000Z, seq 7>"
    )
    assert repr(messages["bands"]) == (
        "<BandFrame bands/mic1/0/octaves/: 4 values in dBFS, 2026-01-01T00:00:00.000000000Z, seq 2>"
    )
    assert np.asarray(messages["bands"]) is messages["bands"].values
    beat = HeartbeatHeader(
        seq=5, epoch=1, t_utc_ns=10**9, t_mono_ns=0, state="waiting", frames=7, dropped=2,
        waiting_for="no such device",
    )  # fmt: skip
    assert repr(Heartbeat("hb/mic1/", beat)) == (
        "<Heartbeat hb/mic1/: waiting: no such device, 7 frames, 2 dropped, "
        "1970-01-01T00:00:01.000000000Z, seq 5>"
    )
    assert repr(messages["meta"]) == (
        "<Meta meta/mic1/0/dbfs/: 33 bins in dBFS, 0 to 24000 Hz, 48000 Hz, nfft 64, hop 32, hann, "
        "2026-01-01T00:00:00.100000000Z, seq 1>"
    )
    assert "4 bands in dBFS, 1995.26 to 15848.9 Hz" in repr(messages["bands_meta"])
    event = EventHeader(
        seq=3, epoch=1, t_utc_ns=10**9, number=9, kind="source.waiting", text="no\nsuch device"
    )
    assert repr(EventMessage("event/mic1/", event)) == (
        "<EventMessage event/mic1/: source.waiting: no\\nsuch device, "
        "1970-01-01T00:00:01.000000000Z, seq 3>"
    )


def test_fields_that_came_later_have_defaults():
    """An older daemon has no suspected losses, and only one-sided spectra."""
    spectrum, meta, heartbeat = (decode(parts_of(golden)).header for golden in FIRST)
    for header in (spectrum, meta):
        assert (header.weighting, header.averaging, header.averaging_frames) == ("Z", "none", 1)
        assert (header.averaging_s, header.frame_hop) == (None, 0)
    assert meta.bands == ""
    assert (spectrum.suspected, spectrum.first_bin) == (0, 0)
    assert (meta.first_bin, meta.channel_names) == (0, ())
    assert (spectrum.center_frequency_hz, meta.center_frequency_hz) == (0.0, 0.0)
    assert (heartbeat.waiting_for, heartbeat.checks, heartbeat.rate_error_ppm) == ("", (), None)
    assert heartbeat.interval_topics == ()
    assert (heartbeat.triggers, heartbeat.active_triggers) == ((), ())
    assert heartbeat.trigger_products == ()


def test_the_golden_spectrum_is_read_as_its_sine(messages):
    """6 kHz at -20 dBFS stands in bin 8, its Hann neighbours 6.02 dB below."""
    frame = messages["spectrum"]
    assert isinstance(frame, Frame)
    assert frame.f[8] == 6000.0
    assert int(frame.values.argmax()) == 8
    np.testing.assert_allclose(frame.values[7:10], [-26.0206, -20.0, -26.0206], atol=1e-4)
    header = frame.header
    assert (header.gap_samples, header.overflows, header.dropped) == (480, 1, 2)
    assert (header.suspected, header.first_bin) == (3, 0)
    assert frame.header.cal_id is None


def test_the_golden_meta_is_read_as_its_axis(messages):
    """The payload of a description is the frequency of each bin."""
    meta = messages["meta"]
    assert isinstance(meta, Meta)
    np.testing.assert_array_equal(meta.f, messages["spectrum"].f)
    assert meta.header.channels == 2


def test_the_golden_heartbeat_is_read(messages):
    """A heartbeat has a source's state and counts."""
    beat = messages["heartbeat"]
    assert isinstance(beat, Heartbeat)
    assert (beat.header.state, beat.header.frames) == ("running", 8)
    assert (beat.header.rate_error_ppm, beat.header.rate_uncertainty_ppm) == (-12.5, 0.25)
    assert (beat.header.checks, beat.header.restarts) == (("silent: 1",), 1)
    assert (beat.header.triggers, beat.header.active_triggers) == (("alarm", "bell"), ("bell",))
    assert beat.header.trigger_products == ("pulses",)


def test_the_golden_bands_are_read_as_the_same_sine(messages):
    """A-weighted octaves of the sine: its power is in those about 4 and 8 kHz."""
    frame, meta = messages["bands"], messages["bands_meta"]
    assert isinstance(frame, BandFrame)
    assert (frame.source, frame.channel, frame.product) == ("mic1", "0", "octaves")
    assert (frame.header.bands, frame.header.n_bands, frame.header.weighting) == ("octave", 4, "A")
    assert (frame.header.averaging, frame.header.averaging_frames) == ("mean", 4)
    assert (frame.header.hop, frame.header.frame_hop) == (128, 32)
    np.testing.assert_allclose(frame.values, [-200.0, -27.355, -20.822, -184.179], atol=1e-3)
    table = get_bands("octave", 48000.0, 64)
    # Powers of ten differ between processors in the last bit.
    np.testing.assert_array_max_ulp(meta.f, table.centre)
    np.testing.assert_array_max_ulp(meta.edges, np.array([table.lower, table.upper]))


def test_the_golden_events_are_read(messages):
    """Events of a source and of the daemon itself, with characters beyond ASCII."""
    one, own = messages["event"], messages["event_daemon"]
    assert isinstance(one, EventMessage)
    assert (one.header.number, one.header.kind) == (5, "source.waiting")
    assert (own.topic, own.header.source, own.header.who) == ("event/-/", "", "uid 1000")
    assert "\N{MICRO SIGN}" in own.header.text


@pytest.mark.parametrize(("again", "first"), [("last", "spectrum"), ("last_bands", "bands")])
def test_a_resent_message_differs_only_in_its_topic(messages, again, first):
    """Header and payload under ``last/`` are those of the message."""
    assert messages[again].topic == "last/" + messages[first].topic.partition("/")[2]
    assert type(messages[again]) is type(messages[first])
    assert encode(messages[again])[1:] == encode(messages[first])[1:]


@pytest.mark.parametrize("golden", [*GOLDEN, *FIRST], ids=lambda golden: golden["name"])
def test_the_json_schemas_fit_the_golden_headers(golden):
    """Those of the first daemons too; and they refuse a header that lacks its first field."""
    header = json.loads(golden["header"])
    schema = SCHEMAS[header["schema"].removeprefix("spectrod.")]
    jsonschema.validate(header, schema, cls=jsonschema.Draft202012Validator)
    del header["seq"]
    with pytest.raises(jsonschema.ValidationError, match="'seq' is a required property"):
        jsonschema.validate(header, schema, cls=jsonschema.Draft202012Validator)


def test_the_json_schemas_are_those_of_the_code():
    """``python -m spectrod.wire.jsonschema docs/schema`` changes nothing; each field has a text."""
    assert json.loads(json.dumps(schemas())) == SCHEMAS
    for schema in SCHEMAS.values():
        fields = schema["properties"].items()
        assert [name for name, field in fields if "description" not in field] == ["v", "schema"]


def test_the_documented_bytes_are_the_golden_message():
    """The hex dump in docs/protocol.md is that of the golden spectrum, to the byte."""
    text = (ROOT / "docs/protocol.md").read_text().partition("part 0, topic")[2]
    rows = [line[10:58] for line in text.splitlines() if line[:8].strip("0123456789abcdef") == ""]
    assert bytes.fromhex("".join(rows)) == b"".join(parts_of(GOLDEN[0]))


def test_the_document_names_every_field():
    """docs/protocol.md has each field of each golden header."""
    text = (ROOT / "docs/protocol.md").read_text()
    fields = {field for golden in GOLDEN for field in json.loads(golden["header"])}
    assert [field for field in sorted(fields) if f"`{field}`" not in text] == []
