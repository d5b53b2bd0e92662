"""``spectrod devices`` with real sound servers: values for the configuration."""

import json
import re
import time
from contextlib import closing

import pytest

from spectrod.cli import main
from spectrod.source.soundcard.capture_process import CaptureProcess
from spectrod.source.soundcard.devices import (
    choose_input,
    describe_inputs,
    lasting_selector,
    list_inputs,
    parse_selector,
)

pytestmark = [pytest.mark.slow, pytest.mark.audio]


def audio_inputs(capsys):
    assert main(["devices", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["audio_inputs"]


def test_inputs_are_listed_with_their_formats(sound_server, capsys, monkeypatch):
    """Each input has a line to copy with rates and formats, and one is marked as default."""
    monkeypatch.setenv("SPECTROD_SOURCE_URI", "soundcard:pulse")
    found = audio_inputs(capsys)
    assert found["error"] is None
    devices = {device["name"]: device for device in found["devices"]}
    pulse = devices["pulse"]
    assert pulse["uri"] == "soundcard:api=ALSA,name=pulse"
    assert [name for name, device in devices.items() if device["used"]] == ["pulse"]
    assert {8000, 44100, 48000, 96000} <= set(pulse["rates"])
    assert {"s16le", "f32le"} <= set(pulse["formats"])
    assert (pulse["in_use"], pulse["error"]) == ("", "")
    assert main(["devices"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^\* +\d+ soundcard:api=ALSA,name=pulse$", text, re.MULTILINE)
    assert re.search(r"^ +takes 8000 .* Hz, s16le .*f32le$", text, re.MULTILINE)


def test_identities_find_their_inputs_in_the_next_scan(sound_server):
    """Each listed URI selects its own input in a new list."""
    before = [entry.device for entry in list_inputs()]
    with closing(CaptureProcess()) as process:
        after = describe_inputs(process.scan())
    assert len(before) >= 2
    for device in before:
        assert choose_input(lasting_selector(device), after) == device


def test_a_missing_input_is_reported_with_the_list(sound_server, capsys, monkeypatch):
    """If the wanted input is missing, the list is printed with the reason."""
    monkeypatch.setenv("SPECTROD_SOURCE_URI", "soundcard:serial=4711")
    found = audio_inputs(capsys)
    assert "soundcard:serial=4711: no such audio input; there are 0 '" in found["error"]
    assert found["devices"]
    assert not any(device["used"] for device in found["devices"])


def test_jack_inputs_are_listed(jack_server):
    """JACK's ports are an input of their own host API."""
    jack_server.start()
    inputs = [entry.device for entry in list_inputs()]
    device = choose_input(parse_selector("api=jack"), inputs)
    assert device.host_api == "JACK Audio Connection Kit"
    assert device.uri == "soundcard:api=JACK Audio Connection Kit,name=system"


def test_portaudio_that_hangs_costs_five_seconds(sound_server, capsys):
    """A sound server that hangs gives one line after five seconds, and the rest is complete."""
    sound_server.pause()
    try:
        started = time.monotonic()
        assert main(["devices"]) == 0
        assert time.monotonic() - started < 9.0
    finally:
        sound_server.resume()
    text = capsys.readouterr().out
    assert re.search("no device is usable: .*did not answer within 5 s", text)
    assert "OpenCL devices" in text
