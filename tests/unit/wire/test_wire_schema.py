import json

import msgspec
import numpy as np
import pytest

from spectrod.dsp import spectrum_rules as rules
from spectrod.dsp.conditions import Condition
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import CHANNELS_MAX
from spectrod.lib.errors import ConfigError, WireError
from spectrod.wire import headers
from spectrod.wire.schema import (
    BandFrame,
    BandsHeader,
    Frame,
    Heartbeat,
    HeartbeatHeader,
    Meta,
    MetaHeader,
    SpectrumHeader,
    decode,
    encode,
    event_topic,
    heartbeat_topic,
    last_topic,
    topic,
)

NAME = "spec/mic/0/dbfs/"


def make_frame(nfft=64, **fields):
    n_bins = nfft // 2 + 1
    header = SpectrumHeader(
        seq=3,
        epoch=9,
        t_utc_ns=1,
        t_mono_ns=2,
        sample_index=64,
        fs=48000.0,
        win_length=nfft,
        nfft=nfft,
        hop=16,
        window="hann",
        enbw_hz=1125.0,
        shape=(n_bins,),
        unit="dBFS",
        ref="0 dBFS = full-scale sine",
        engine="numpy",
    )
    return Frame(NAME, header, np.arange(n_bins, dtype=np.float32), **fields)


def altered(**fields):
    """Parts of a frame whose header has other fields."""
    name, header, payload = encode(make_frame())
    return [name, json.dumps(json.loads(header) | fields).encode(), payload]


@pytest.mark.parametrize("nfft", [64, 65])
def test_a_frame_survives_the_wire(nfft):
    """Values, header and topic come back as they went, for even and odd lengths."""
    sent = make_frame(nfft)
    received = decode(encode(sent))
    assert isinstance(received, Frame)
    assert (received.topic, received.header) == (sent.topic, sent.header)
    np.testing.assert_array_equal(received.values, sent.values)


def test_values_are_read_only_even_from_a_writable_buffer():
    """Nobody can change a received frame under another reader."""
    name, header, payload = encode(make_frame())
    frame = decode([name, header, bytearray(payload)])
    with pytest.raises(ValueError, match="read-only"):
        frame.values[0] = 1.0


def test_frequencies_are_bin_number_times_bin_width():
    """The axis starts at 0 Hz and ends at Nyquist for an even length."""
    f = make_frame().f
    assert f[0] == 0.0
    assert f[-1] == 24000.0
    assert f[1] == 750.0


@pytest.mark.parametrize("nfft", [64, 65])
def test_a_two_sided_axis_starts_below_zero(nfft):
    """Bin ``-(nfft // 2)`` comes first, 0 Hz stands in the middle, as in the analysis."""
    header = msgspec.structs.replace(make_frame(nfft).header, shape=(nfft,), first_bin=-(nfft // 2))
    sent = Frame(NAME, header, np.arange(nfft, dtype=np.float32))
    received = decode(encode(sent))
    assert received.header == header
    spec = SpectrumSpec(48000.0, 2, win_length=nfft, nfft=nfft, iq=True)
    np.testing.assert_allclose(received.f, spec.frequencies, rtol=1e-15)
    assert received.f[nfft // 2] == 0.0


def test_a_frame_names_its_source_and_channel():
    """Both are taken from the topic."""
    frame = make_frame()
    assert (frame.source, frame.channel) == ("mic", "0")


def test_unknown_fields_and_further_parts_are_ignored():
    """The protocol may grow without a new version."""
    name, header, payload = altered(tint="blue", flags=[1, 2])
    assert decode([name, header, payload, b"more"]).header.seq == 3


def test_a_heartbeat_may_have_a_state_of_a_later_version():
    """A new state does not break old subscribers."""
    header = HeartbeatHeader(seq=0, epoch=1, t_utc_ns=2, t_mono_ns=3, state="resting", frames=4)
    received = decode(encode(Heartbeat("hb/mic/", header)))
    assert received == Heartbeat("hb/mic/", header)


@pytest.mark.parametrize(
    ("fields", "conditions"),
    [
        ({}, None),
        ({"conditions": []}, Condition.CHECKED),
        ({"conditions": ["clipping", "dc"]}, Condition.CHECKED | Condition.CLIPPING | Condition.DC),
        ({"conditions": ["humming", "stuck"]}, Condition.CHECKED | Condition.STUCK),
    ],
)
def test_a_frame_has_the_conditions_of_its_samples(fields, conditions):
    """Words of later versions are left out; without the field nobody has checked the samples."""
    assert decode(altered(**fields)).conditions == conditions


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"v": 2}, r"Invalid enum value 2 - at `\$\.v`"),
        ({"schema": "other"}, r"Invalid enum value 'other'"),
        ({"seq": -1}, r"Expected `int` >= 0 - at `\$\.seq`"),
        ({"seq": "0"}, r"Expected `int`, got `str` - at `\$\.seq`"),
        ({"fs": 0}, r"Expected `float` >= 0.001 - at `\$\.fs`"),
        ({"fs": 1e-300}, r"Expected `float` >= 0.001 - at `\$\.fs`"),
        ({"fs": 1e14}, r"Expected `float` <= 10000000000.0 - at `\$\.fs`"),
        ({"enbw_hz": 1e300}, r"Expected `float` <= 10000000000.0 - at `\$\.enbw_hz`"),
        ({"nfft": 0}, r"Expected `int` >= 1"),
        ({"nfft": 2**20 + 1}, r"Expected `int` <= 1048576 - at `\$\.nfft`"),
        ({"win_length": 2**62}, r"Expected `int` <= 1048576 - at `\$\.win_length`"),
        ({"window": "x" * 70_000}, r"header of 70\d\d\d bytes: must have at most 65536"),
        ({"dtype": "\x1b[2J"}, r"Invalid enum value '\\x1b\[2J'"),
        ({"dtype": "O"}, r"Invalid enum value 'O' - at `\$\.dtype`"),
        ({"dtype": "<f8"}, r"payload of 132 bytes: shape=\[33\] of <f8 must have 264"),
        ({"shape": [32]}, r"shape=\[32\]: must be \[nfft // 2 \+ 1\], nfft=64"),
        ({"first_bin": -32}, r"shape=\[33\]: must be \[nfft\], nfft=64"),
        ({"first_bin": -31, "shape": [64]}, r"first_bin=-31: must be 0 or -32"),
        ({"first_bin": 1}, r"Expected `int` <= 0"),
        ({"center_frequency_hz": 2e12}, r"Expected `float` <= 1000000000000\.0 - at"),
        ({"center_frequency_hz": "433.92M"}, r"Expected `float`, got `str`"),
        ({"cut_frames": 1}, r"cut_frames=1: must be less than averaging_frames=1"),
        ({"cut_frames": 9, "averaging_frames": 9}, r"cut_frames=9: must be less than averaging_"),
        ({"shape": [33, 1]}, r"Expected `array` of length 1"),
        ({"conditions": ["dc"] * 33}, r"Expected `array` of length <= 32 - at `\$\.conditions`"),
        ({"conditions": ["x" * 33]}, r"Expected `str` matching regex .* - at `\$\.conditions"),
        ({"conditions": ["\x1b[2J"]}, r"Expected `str` matching regex .* - at `\$\.conditions"),
        ({"conditions": "dc"}, r"Expected `array`, got `str` - at `\$\.conditions`"),
        ({"shape": [10**30]}, r"Expected `int` <= 1048576 - at `\$\.shape"),
        ({"shape": [2**20]}, r"must be \[nfft // 2 \+ 1\]"),
        ({"first_bin": -(2**19) - 1}, r"Expected `int` >= -524288 - at `\$\.first_bin`"),
        ({"nfft": 128, "shape": [65]}, r"payload of 132 bytes: .* must have 260"),
    ],
)
def test_a_header_that_breaks_a_rule_is_refused(fields, rule):
    """The error names topic, value and rule, in one printable line."""
    with pytest.raises(WireError, match=rule) as caught:
        decode(altered(**fields))
    assert str(caught.value).startswith(NAME)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("parts", "rule"),
    [
        ([], "message of 0 parts"),
        ([b"spec/mic/0/dbfs/"], "message of 1 parts: must be topic, header and payload"),
        ([b"spec/mic/0/dbfs", b"{}"], "must be WORD/SOURCE/CHANNEL/PRODUCT/"),
        ([b"\x1b[2Jspec/", b"{}"], "must be WORD/SOURCE/CHANNEL/PRODUCT/"),
        ([b"hb/\xff/", b"{}"], r"hb/\\\\xff/"),
        ([b"hb/mic/", b"{"], "Input data was truncated"),
        ([b"hb/mic/", b"[]"], "Expected `object`, got `array`"),
        # msgspec before 0.23: 'utf-8' codec can't decode ...; since then: Invalid UTF-8 ...
        ([b"hb/mic/", b'{"schema":"\xff"}'], "(?i:utf-8)"),
        ([b"hb/mic/", b"\x00\n\n"], "JSON is malformed"),
    ],
)
def test_malformed_messages_are_refused(parts, rule):
    """Any bytes give one WireError of one line, without control characters."""
    with pytest.raises(WireError, match=rule) as caught:
        decode(parts)
    assert str(caught.value).isprintable()


def test_a_missing_payload_is_refused():
    """The error names a spectrum of two parts."""
    with pytest.raises(WireError, match="the payload is missing"):
        decode(encode(make_frame())[:2])


def test_topics_end_with_a_slash():
    """Else a subscription to mic1 would match mic10."""
    assert topic("mic1", "2", "density") == "spec/mic1/2/density/"
    assert topic("mic1", "2", "density", kind="meta") == "meta/mic1/2/density/"
    assert heartbeat_topic("mic1") == "hb/mic1/"


@pytest.mark.parametrize("name", ["", "a/b", "mic 1", "mikrofon-ü", "a" * 65, "a\n"])
def test_source_names_that_would_break_a_topic_are_refused(name):
    """The error has the name and the rule, for channels too."""
    with pytest.raises(ConfigError, match=r"channel name=.*: must be 1 to 64 of A-Z a-z 0-9"):
        topic("mic", name, "dbfs")
    with pytest.raises(ConfigError, match=r"source name=.*: must be 1 to 64 of A-Z a-z 0-9"):
        topic(name, "0", "dbfs")


def make_bands(n_bands=5):
    fields = msgspec.structs.asdict(make_frame().header)
    for name in ("schema", "first_bin", "center_frequency_hz"):
        del fields[name]
    fields |= {"shape": (n_bands,), "bands": "octave", "n_bands": n_bands, "weighting": "C"}
    values = np.arange(n_bands, dtype=np.float32)
    return BandFrame("bands/mic/0/octaves/", BandsHeader(**fields), values)


def make_meta(n_bands=5):
    header = MetaHeader(
        seq=0,
        epoch=9,
        t_utc_ns=1,
        device="a microphone",
        channels=1,
        fs=48000.0,
        win_length=64,
        nfft=64,
        hop=16,
        window="hann",
        enbw_hz=1125.0,
        shape=(n_bands,),
        unit="dBFS",
        ref="0 dBFS = full-scale sine",
        engine="numpy",
        bands="octave",
    )
    f = np.arange(1.0, n_bands + 1)
    return Meta("meta/mic/0/octaves/", header, f, np.stack([f - 0.5, f + 0.5]))


@pytest.mark.parametrize("n_bands", [1, 4, 5])
def test_bands_and_their_description_survive_the_wire(n_bands):
    """Values, centres and edges come back as they went, read-only."""
    sent, described = make_bands(n_bands), make_meta(n_bands)
    received, meta = decode(encode(sent)), decode(encode(described))
    assert isinstance(received, BandFrame)
    assert (received.topic, received.header) == (sent.topic, sent.header)
    np.testing.assert_array_equal(received.values, sent.values)
    assert meta.header == described.header
    np.testing.assert_array_equal(meta.f, described.f)
    np.testing.assert_array_equal(meta.edges, described.edges)
    assert not meta.f.flags.writeable
    assert not meta.edges.flags.writeable


def test_bands_that_contradict_themselves_are_refused():
    """The number of bands, of values and of bytes must be one."""
    name, header, payload = encode(make_bands())
    other = json.dumps(json.loads(header) | {"n_bands": 4}).encode()
    with pytest.raises(WireError, match=r"shape=\[5\]: must be \[n_bands\], n_bands=4"):
        decode([name, other, payload])
    with pytest.raises(WireError, match=r"payload of 16 bytes: .* must have 20"):
        decode([name, header, payload[:-4]])


def test_a_description_of_bands_needs_their_edges():
    """All of them; a description of bins has none."""
    parts = encode(make_meta())
    with pytest.raises(WireError, match="message of 3 parts: the bands' edges are missing"):
        decode(parts[:3])
    with pytest.raises(WireError, match=r"payload of 40 bytes: shape=\[2, 5\] of <f8 must have 80"):
        decode([*parts[:3], parts[3][:40]])
    bins = json.dumps(json.loads(parts[1]) | {"bands": ""}).encode()
    assert decode([parts[0], bins, *parts[2:]]).edges is None


def test_the_last_message_is_read_by_its_schema():
    """Spectra and bands share the topic's word; nothing else can be sent again."""
    assert isinstance(decode([b"last/mic/0/x/", *encode(make_frame())[1:]]), Frame)
    assert isinstance(decode([b"last/mic/0/x/", *encode(make_bands())[1:]]), BandFrame)
    with pytest.raises(WireError, match=r"Invalid enum value 'spectrod\.meta'"):
        decode([b"last/mic/0/x/", *encode(make_meta())[1:]])
    assert last_topic("bands/mic/0/x/") == "last/mic/0/x/"


def test_a_claim_of_any_size_allocates_nothing():
    """The length of the payload counts, not the claim; more than 2**20 values are no message."""
    name, header, payload = encode(make_bands())
    claim = json.dumps(json.loads(header) | {"n_bands": 2**20, "shape": [2**20]}).encode()
    with pytest.raises(WireError, match=r"payload of 20 bytes: .* must have 4194304"):
        decode([name, claim, payload])
    claim = json.dumps(json.loads(header) | {"n_bands": 2**62, "shape": [2**62]}).encode()
    with pytest.raises(WireError, match=r"Expected `int` <= 1048576"):
        decode([name, claim, payload])


def test_a_description_names_at_most_4096_channels():
    """The largest list of names is accepted; one name more is refused."""
    most = tuple(f"{k:064d}" for k in range(CHANNELS_MAX))
    sent = make_meta()
    header = msgspec.structs.replace(sent.header, channels=CHANNELS_MAX, channel_names=most)
    parts = encode(Meta(sent.topic, header, sent.f, sent.edges))
    assert decode(parts).header == header
    more = json.loads(parts[1]) | {"channel_names": [*most, "x"]}
    parts[1] = json.dumps(more, separators=(",", ":")).encode()
    with pytest.raises(WireError, match=r"length <= 4096 - at `\$\.channel_names`"):
        decode(parts)


def test_a_description_may_say_a_time_zone():
    """One without it, of an older daemon, is read as before; a name has 64 characters at most."""
    sent = make_meta()
    parts = encode(sent)
    assert b"time_zone" not in parts[1]
    assert decode(parts).header.time_zone is msgspec.UNSET

    def said(zone):
        return [
            parts[0],
            json.dumps(json.loads(parts[1]) | {"time_zone": zone}).encode(),
            *parts[2:],
        ]

    assert decode(said("Europe/Berlin")).header.time_zone == "Europe/Berlin"
    with pytest.raises(WireError, match=r"length <= 64 - at `\$\.time_zone`"):
        decode(said("x" * 65))
    with pytest.raises(WireError, match=r"Expected `str`, got `int` - at `\$\.time_zone`"):
        decode(said(2))


def test_every_spectrum_that_can_be_computed_can_be_sent():
    """The limits of messages are those of the analysis: a client refuses no daemon's frames."""
    assert (headers.FS_MIN_HZ, headers.FS_MAX_HZ) == (
        rules.FS_MIN_HZ,
        rules.FS_MAX_HZ,
    )
    assert (headers.LENGTH_MAX, headers.CHANNELS_MAX) == (
        rules.NFFT_MAX,
        rules.CHANNELS_MAX,
    )
    checks = tuple(f"dc: {k} (-100.1 dBFS)" for k in range(2 * headers.CHANNELS_MAX))
    beat = HeartbeatHeader(
        seq=0, epoch=1, t_utc_ns=2, t_mono_ns=3, state="running", frames=4, checks=checks
    )
    assert decode(encode(Heartbeat("hb/mic/", beat))).header == beat


def test_events_have_a_topic_for_those_of_no_source():
    """The daemon's own stand under a hyphen."""
    assert (event_topic("mic"), event_topic("")) == ("event/mic/", "event/-/")
    with pytest.raises(ConfigError, match="source name='a/b': must be 1 to 64"):
        event_topic("a/b")
