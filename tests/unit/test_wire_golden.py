import json
from pathlib import Path

import numpy as np
import pytest

from spectrod.wire.schema import Frame, Heartbeat, Meta, decode, encode

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/data/golden_v1.json").read_text())
FIRST = json.loads((ROOT / "tests/data/golden_v1_first.json").read_text())


def parts_of(golden):
    payload = golden["payload_hex"]
    head = [golden["topic"].encode(), golden["header"].encode()]
    return head if payload is None else [*head, bytes.fromhex(payload)]


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


def test_fields_that_came_later_have_defaults():
    """Of a daemon that does not know them, nothing was suspected and all spectra are one-sided."""
    spectrum, meta, heartbeat = (decode(parts_of(golden)).header for golden in FIRST)
    assert (spectrum.suspected, spectrum.first_bin) == (0, 0)
    assert (meta.first_bin, meta.channel_names) == (0, ())
    assert (heartbeat.waiting_for, heartbeat.checks, heartbeat.rate_error_ppm) == ("", (), None)


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
    """A heartbeat tells a source's state and counts."""
    beat = messages["heartbeat"]
    assert isinstance(beat, Heartbeat)
    assert (beat.header.state, beat.header.frames) == ("running", 8)
    assert (beat.header.rate_error_ppm, beat.header.rate_uncertainty_ppm) == (-12.5, 0.25)
    assert (beat.header.checks, beat.header.restarts) == (("silent: 1",), 1)


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
