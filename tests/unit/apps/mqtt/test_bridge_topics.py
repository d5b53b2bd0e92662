"""MQTT messages of a bridge, by the rules of MQTT and of Home Assistant's documentation."""

import dataclasses
import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

import spectrod
from spectrod.apps.mqtt.discovery import BANDS_MAX, STATE_PART, Discovery, band_name, trigger_part
from spectrod.apps.mqtt.mqtt_topics import OFFLINE, ONLINE, UNREACHABLE, Publication, Topics
from spectrod.wire.headers import EventHeader, LevelsHeader, TriggerFacts
from spectrod.wire.interval_levels import Meter
from spectrod.wire.schema import (
    BandFrame,
    EventMessage,
    Heartbeat,
    LevelsFrame,
    Meta,
    decode,
    encode,
)

TOPICS = Topics("spectrod", "box")
GOLDEN = json.loads((Path(__file__).parents[3] / "data/golden_v1.json").read_text())


def parts_of(golden):
    payloads = [golden["payload_hex"], golden.get("edges_hex")]
    head = [golden["topic"].encode(), golden["header"].encode()]
    return [*head, *(bytes.fromhex(payload) for payload in payloads if payload is not None)]


@pytest.fixture(scope="module")
def golden():
    """Return the golden messages by name."""
    return {message["name"]: decode(parts_of(message)) for message in GOLDEN}


@pytest.fixture(scope="module")
def sensors(golden):
    """Return all components of the golden messages."""
    discovery = Discovery("homeassistant", TOPICS, 10.0, qos=1)
    frame, bands, meta = golden["spectrum"], golden["bands"], golden["bands_meta"]
    assert isinstance(meta, Meta)
    assert isinstance(bands, BandFrame)
    return [
        *discovery.level_sensors(frame.topic, Meter(frame).levels()),
        *discovery.band_sensors(bands.topic, Meter(bands).levels(), meta.f),
        discovery.state_sensor("mic1"),
    ]


def look_up(template, payload):
    """Evaluate a template as Home Assistant does, for the syntax that the bridge uses."""
    name, index = re.fullmatch(r"\{\{ value_json\.(\w+)(?:\[(\d+)\])? \}\}", template).groups()
    value = payload[name]
    return value if index is None else value[int(index)]


def test_levels_of_a_spectrum_have_a_unit_and_losses(golden):
    """A level message has Leq, highest level, unit, weighting, losses and the node's name."""
    frame = golden["spectrum"]
    sent = TOPICS.levels(frame.topic, Meter(frame).levels())
    assert (sent.topic, sent.retain) == ("spectrod/box/mic1/0/dbfs/level", False)
    payload = json.loads(sent.payload)
    assert payload.pop("leq") == payload.pop("max") == -20.0
    assert payload == {
        "node": "box",
        "source": "mic1",
        "channel": "0",
        "product": "dbfs",
        "time": "2026-01-01T00:00:00.000Z",
        "unit": "dBFS",
        "weighting": "Z",
        "averaging": "none",
        "frames": 1,
        "seconds": 0.001,
        "missed": 0,
        "gap_samples": 480,
        "restarts": 0,
    }


def test_bands_are_published_with_their_frequencies(golden):
    """Band levels are published with their frequencies, in ascending order."""
    bands, meta = golden["bands"], golden["bands_meta"]
    sent = TOPICS.levels(bands.topic, Meter(bands).levels(), meta.f)
    assert sent.topic == "spectrod/box/mic1/0/octaves/bands"
    payload = json.loads(sent.payload)
    np.testing.assert_allclose(payload["centre_hz"], meta.f, rtol=1e-5)
    np.testing.assert_allclose(payload["leq"], bands.values, atol=0.0051)
    assert (payload["weighting"], payload["unit"], payload["averaging"]) == ("A", "dBFS", "mean")


def test_nan_and_infinity_are_null(golden):
    """NaN and infinity become null, since JSON cannot express them."""
    bands = golden["bands"]
    values = np.full_like(bands.values, np.nan)
    broken = BandFrame(bands.topic, bands.header, values)
    payload = json.loads(TOPICS.levels(bands.topic, Meter(broken).levels(), np.ones(4)).payload)
    assert payload["leq"] == [None] * 4


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("running", ONLINE),
        ("something new", ONLINE),
        ("waiting", OFFLINE),
        ("paused", OFFLINE),
        (UNREACHABLE, OFFLINE),
    ],
)
def test_a_source_is_available_if_it_gives_spectra(golden, state, expected):
    """A source is available while it gives spectra; unknown states count as running."""
    beat = golden["heartbeat"]
    assert isinstance(beat, Heartbeat)
    availability, reported = TOPICS.source_state("mic1", state, beat.header)
    assert (availability.topic, availability.payload) == (TOPICS.availability("mic1"), expected)
    payload = json.loads(reported.payload)
    assert payload == {
        "node": "box",
        "source": "mic1",
        "state": state,
        "waiting_for": "",
        "checks": ["silent: 1"],
    }
    assert availability.retain
    assert reported.retain


def test_events_of_sources_and_of_the_daemon_are_published(golden):
    """Events of sources and of the daemon are published and not retained."""
    of_source, of_daemon = golden["event"], golden["event_daemon"]
    assert isinstance(of_source, EventMessage)
    sent = TOPICS.event(of_source)
    assert (sent.topic, sent.retain) == ("spectrod/box/mic1/event", False)
    assert json.loads(sent.payload)["kind"] == "source.waiting"
    sent = TOPICS.event(of_daemon)
    assert sent.topic == "spectrod/box/event"
    payload = json.loads(sent.payload)
    assert (payload["who"], payload["node"]) == ("uid 1000", "box")


@pytest.mark.parametrize("t_utc_ns", [-1, 0, 10**19, 10**30])
def test_no_time_ends_the_bridge(golden, t_utc_ns):
    """A timestamp of any value does not stop the bridge."""
    event = golden["event"]
    odd = EventMessage(event.topic, msgspec.structs.replace(event.header, t_utc_ns=t_utc_ns))
    time = json.loads(TOPICS.event(odd).payload)["time"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time)


def test_no_number_or_name_of_a_daemon_ends_the_bridge(golden):
    """Invalid numbers and names from another publisher do not stop the bridge."""
    bands = golden["bands"]
    odd = BandFrame(bands.topic, msgspec.structs.replace(bands.header, fs=5e-324), bands.values)
    payload = json.loads(
        TOPICS.levels(bands.topic, Meter(odd).levels(), np.full(4, np.inf)).payload
    )
    assert (payload["seconds"], payload["centre_hz"]) == (None, [None] * 4)
    event = golden["event"]
    odd = EventMessage(event.topic, msgspec.structs.replace(event.header, source="#"))
    assert TOPICS.event(odd).topic == "spectrod/box/mic1/event"


def test_every_sensor_is_one_that_home_assistant_takes(sensors):
    """Every sensor has a name, the required fields and values that Home Assistant accepts."""
    assert len(sensors) == 2 + 4 + 1
    for sensor in sensors:
        config = json.loads(sensor.config)
        assert re.fullmatch(r"[a-zA-Z0-9_-]+", sensor.identity)
        assert (config["unique_id"], config["platform"]) == (sensor.identity, "sensor")
        assert config["state_topic"].startswith("spectrod/box/mic1/")
        assert config["qos"] in (0, 1, 2)
        assert config.get("entity_category", "diagnostic") == "diagnostic"
        if "unit_of_measurement" in config:
            assert (config["unit_of_measurement"], config["state_class"]) == ("dBFS", "measurement")
            assert config["expire_after"] == 30
            assert "availability" not in config
        else:  # the state of a source is there while the source is not
            assert config["availability"] == [{"topic": "spectrod/box/status"}]
    assert len({sensor.identity for sensor in sensors}) == len(sensors)
    assert len({json.loads(sensor.config)["name"] for sensor in sensors}) == len(sensors)


def test_a_device_message_has_all_components_of_a_source(sensors):
    """What is common stands once; the size is that of the parts."""
    discovery = Discovery("homeassistant", TOPICS, 10.0, qos=1)
    empty, sent = discovery.device("mic1", ()), discovery.device("mic1", sensors)
    assert sent.retain
    match = re.fullmatch(r"homeassistant/device/([a-zA-Z0-9_-]+)/config", sent.topic)
    assert match is not None
    message = json.loads(sent.payload)
    assert message.pop("components") == {one.identity: json.loads(one.config) for one in sensors}
    assert json.loads(empty.payload) == message | {"components": {}}
    assert message == {
        "device": {
            "identifiers": [match[1]],
            "name": "mic1",
            "manufacturer": "spectrod",
            "model": "spectrum analyzer at box",
            "sw_version": spectrod.__version__,
        },
        "origin": {"name": "spectrod mqtt", "sw_version": spectrod.__version__},
        "availability": [
            {"topic": "spectrod/box/status"},
            {"topic": "spectrod/box/mic1/availability"},
        ],
        "availability_mode": "all",
    }
    assert sum(one.size_bytes for one in sensors) - len(", ") == len(sent.payload) - len(
        empty.payload
    )
    assert discovery.device("mic2", ()).topic != sent.topic
    assert discovery.no_device("mic1") == Publication(sent.topic, b"", retain=True)


def test_a_component_that_is_gone_has_a_platform_alone(sensors):
    """Those who listen remove it; the broker keeps the message without it."""
    discovery = Discovery("homeassistant", TOPICS, 10.0, qos=1)
    gone, *others = sensors
    sent = discovery.device("mic1", others, {gone.identity: gone.platform})
    assert not sent.retain
    components = json.loads(sent.payload)["components"]
    assert components.pop(gone.identity) == {"platform": "sensor"}
    kept = json.loads(discovery.device("mic1", others).payload)
    assert components == kept["components"]


def test_a_component_moves_from_its_own_message():
    """Topics of earlier versions, whose identities stay."""
    discovery = Discovery("homeassistant", TOPICS, 10.0, qos=1)
    state = discovery.state_sensor("mic1")
    assert state.identity == "spectrod-box-mic1-state-f831875b"
    moved = discovery.migration(state.identity, state.platform)
    assert moved.topic == "homeassistant/sensor/spectrod-box-mic1-state-f831875b/config"
    assert (json.loads(moved.payload), moved.retain) == ({"migrate_discovery": True}, False)
    found = [one.identity for one in discovery.trigger_sensors("mic1", "a.b")]
    assert found == [
        "spectrod-box-mic1-trigger-a_b-5d159a5a",
        "spectrod-box-mic1-event-a_b-ce80a2a9",
    ]


@pytest.mark.parametrize(
    ("unit", "weighting", "expected"),
    [
        ("dB SPL", "Z", {"unit_of_measurement": "dB", "device_class": "sound_pressure"}),
        ("dB SPL", "A", {"unit_of_measurement": "dBA", "device_class": "sound_pressure"}),
        ("dB re 1 uPa", "Z", {"unit_of_measurement": "dB re 1 uPa"}),
        ("dBFS", "A", {"unit_of_measurement": "dBFS"}),
    ],
)
def test_only_calibrated_levels_in_air_are_sound_pressures(golden, unit, weighting, expected):
    """A sensor has the device class of sound pressure only where its unit is dB SPL."""
    frame = golden["spectrum"]
    header = msgspec.structs.replace(frame.header, unit=unit, weighting=weighting)
    levels = Meter(dataclasses.replace(frame, header=header)).levels()
    discovery = Discovery("ha", TOPICS, 10.0, qos=0)
    for sensor in discovery.level_sensors(frame.topic, levels):
        found = json.loads(sensor.config)
        names = ("unit_of_measurement", "device_class")
        assert {name: found[name] for name in names if name in found} == expected


def test_every_template_finds_its_figure(golden, sensors):
    """Every template finds its value in the message on the sensor's state topic."""
    bands, meta, frame = golden["bands"], golden["bands_meta"], golden["spectrum"]
    sent = [
        TOPICS.levels(frame.topic, Meter(frame).levels()),
        TOPICS.levels(bands.topic, Meter(bands).levels(), meta.f),
        *TOPICS.source_state("mic1", "running", None),
    ]
    payloads = {publication.topic: publication.payload for publication in sent}
    found = []
    for sensor in sensors:
        config = json.loads(sensor.config)
        payload = json.loads(payloads[config["state_topic"]])
        found.append(look_up(config["value_template"], payload))
    expected = [-20.0, -20.0, *(round(float(value), 2) for value in bands.values), "running"]
    assert found == expected


def test_identities_are_the_same_each_time_and_of_each_name_another(golden):
    """Identities are stable and distinct, although Home Assistant allows fewer characters."""
    levels = Meter(golden["spectrum"]).levels()

    def identities(node, topic):
        discovery = Discovery("ha", Topics("p", node), 10.0, qos=0)
        return [sensor.identity for sensor in discovery.level_sensors(topic, levels)]

    names = [("box", "spec/a.b/0/dbfs/"), ("box", "spec/a_b/0/dbfs/"), ("box2", "spec/a_b/0/dbfs/")]
    once = [identities(*name) for name in names]
    assert once == [identities(*name) for name in names]
    assert len({identity for pair in once for identity in pair}) == 6


def levels_frame(names, units, values, **fields):
    header = LevelsHeader(
        **{
            "seq": 1, "epoch": 7, "t_utc_ns": 1_767_225_600_000_000_000, "t_mono_ns": 0,
            "sample_index": 0, "fs": 48000.0, "interval_s": 60.0, "n_samples": 24000,
            "due_samples": 2880000, "quantities": names, "units": units, "shape": (len(names),),
            "ref": "0 dB = 20 uPa", "flags": ("partial",), **fields,
        }
    )  # fmt: skip
    return LevelsFrame("levels/mic1/0/meter/", header, np.array(values), missed=3)


def test_a_component_is_of_what_it_describes(golden):
    """Its identity and its topic say what, and nothing else has both."""
    discovery = Discovery("homeassistant", TOPICS, 10.0, qos=1)
    frame, bands, meta = golden["spectrum"], golden["bands"], golden["bands_meta"]
    levels = levels_frame(("LAeq", "level", "bands", "event"), ("dB",) * 4, np.zeros(4))
    described = {
        frame.topic: discovery.level_sensors(frame.topic, Meter(frame).levels()),
        bands.topic: discovery.band_sensors(bands.topic, Meter(bands).levels(), meta.f),
        levels.topic: discovery.quantity_sensors(levels),
        STATE_PART: [discovery.state_sensor("mic1")],
        trigger_part("mic1", "hum"): discovery.trigger_sensors("mic1", "hum"),
    }
    made = [
        (part, one.identity, json.loads(one.config)["state_topic"])
        for part, components in described.items()
        for one in components
    ]
    assert len(made) == 2 + len(meta.f) + 4 + 1 + 2
    topics = {topic for _, _, topic in made}
    for part, identity, own in made:
        assert discovery.part_of("mic1", identity, own) == part
        assert discovery.part_of("mic2", identity, own) == ""
        assert discovery.part_of("mic1", f"{identity}0", own) == ""
        found = {discovery.part_of("mic1", identity, topic) for topic in topics - {own}}
        assert found == {""}
    for topic in ("", "spectrod/box/mic1/", "spectrod/box/mic1/a/b/c/d", "spectrod/box/mic1/#"):
        assert discovery.part_of("mic1", made[0][1], topic) == ""


def test_each_sound_level_has_a_topic_of_its_own():
    """A value is sent with its unit, time, flags and losses; what is not finite is null."""
    frame = levels_frame(("LAeq", "LUFS_S", "rms"), ("dB SPL", "LUFS", "FS"),
                         [62.347, np.nan, 0.1234567])  # fmt: skip
    level, loudness, rms = Topics("spectrod", "box", retain=True).quantities(frame)
    assert (level.topic, level.retain) == ("spectrod/box/mic1/0/meter/LAeq", True)
    assert json.loads(level.payload) == {
        "node": "box",
        "source": "mic1",
        "channel": "0",
        "product": "meter",
        "quantity": "LAeq",
        "value": 62.35,
        "unit": "dB SPL",
        "time": "2026-01-01T00:00:00.000Z",
        "seconds": 0.5,
        "flags": ["partial"],
        "missed": 3,
        "restarts": 0,
    }
    assert json.loads(loudness.payload)["value"] is None
    assert json.loads(rms.payload)["value"] == 0.123457


def test_each_sound_level_is_a_sensor():
    """A sensor has the unit and, for sound pressure levels alone, the class; LAeq is in dBA."""
    names = ("LAeq", "L90", "LCpeak", "LAE", "LUFS_S", "rms", "of_a_later_version")
    units = ("dB SPL", "dB SPL", "dB SPL", "dB re (20 uPa)^2 s", "LUFS", "FS", "dB SPL")
    frame = levels_frame(names, units, [1.0] * len(names))
    discovery = Discovery("homeassistant", TOPICS, 10.0, qos=1)
    found = [json.loads(one.config) for one in discovery.quantity_sensors(frame)]
    shown = [(one["unit_of_measurement"], one.get("device_class")) for one in found]
    pressure = "sound_pressure"
    assert shown == [
        *(("dBA", pressure), ("dBA", pressure), ("dB", pressure), ("dB re (20 uPa)^2 s", None)),
        *(("LUFS", None), ("FS", None), ("dB", pressure)),
    ]
    topics = {one.topic: json.loads(one.payload) for one in TOPICS.quantities(frame)}
    for name, config in zip(names, found, strict=True):
        assert config["name"] == f"meter {name}"
        assert look_up(config["value_template"], topics[config["state_topic"]]) == 1.0
        assert (config["expire_after"], config["state_class"]) == (180, "measurement")
        assert "availability" not in config  # the device's
    assert len({config["unique_id"] for config in found}) == len(names)


def test_a_message_of_bands_has_64_sensors():
    """All values of a long message are sent; the first 64 are sensors."""
    names = ("LAeq", *(f"LZeq_{k}Hz" for k in range(240)))
    frame = levels_frame(names, ("dBFS",) * 241, [1.0] * 241)
    discovery = Discovery("homeassistant", TOPICS, 10.0, qos=1)
    found = [json.loads(one.config)["name"] for one in discovery.quantity_sensors(frame)]
    assert found == [f"meter {name}" for name in names[:64]]
    assert len(list(TOPICS.quantities(frame))) == 241


def test_names_that_are_no_part_of_a_topic_are_left_out():
    """A quantity whose name would change the topic is neither sent nor described."""
    frame = levels_frame(("LAeq", "a/b", "#", "+", ""), ("dB",) * 5, [1.0] * 5)
    discovery = Discovery("homeassistant", TOPICS, 10.0, qos=1)
    assert len(list(TOPICS.quantities(frame))) == 1
    assert len(list(discovery.quantity_sensors(frame))) == 1


def test_very_many_bands_are_no_sensors(golden):
    """More bands than a dashboard can show are published but get no sensors."""
    bands = golden["bands"]
    many = BandFrame(bands.topic, bands.header, np.zeros(BANDS_MAX + 1, np.float32))
    discovery = Discovery("ha", TOPICS, 10.0, qos=0)
    levels = Meter(many).levels()
    assert list(discovery.band_sensors(bands.topic, levels, np.arange(1.0, BANDS_MAX + 2))) == []


@pytest.mark.parametrize(
    ("hertz", "name"),
    [(31.6228, "31.5 Hz"), (125.893, "125 Hz"), (1000.0, "1 kHz"), (15848.9, "16 kHz")],
)
def test_octaves_have_their_usual_names(hertz, name):
    """Octave sensors have nominal names: the band centred at 125.9 Hz is called 125 Hz."""
    assert band_name(hertz) == name
    assert band_name(123.4) == "123.4 Hz"
    assert band_name(0.0) == "0 Hz"


def test_an_event_of_a_trigger_has_its_numbers():
    """The numbers of a trigger's event are an object of its own; other events have none."""
    facts = TriggerFacts(
        name="hum",
        kind="band",
        state="begun",
        product="dbfs",
        channel="0",
        f_min_hz=45.0,
        f_max_hz=55.0,
        frequency_hz=None,
        level=-30.5,
        threshold=-40.0,
        unit="dBFS",
        begin_utc_ns=1,
        end_utc_ns=2,
        peak_utc_ns=1,
        duration_s=0.5,
    )
    header = EventHeader(
        seq=0, epoch=1, t_utc_ns=0, number=0, kind="trigger.begun", text="x", trigger=facts
    )
    sent = decode(encode(EventMessage("event/mic/", header)))
    assert sent.header.trigger == facts
    payload = json.loads(Topics("p", "n").event(sent).payload)
    assert payload["trigger"] == msgspec.to_builtins(facts)
    plain = EventMessage("event/mic/", msgspec.structs.replace(header, trigger=msgspec.UNSET))
    assert "trigger" not in json.loads(Topics("p", "n").event(plain).payload)
    assert b'trigger":' not in encode(plain)[1]
