"""Sound cards: found by name or index, closed once."""

from types import SimpleNamespace

import pytest

from spectrod.errors import UnavailableError
from spectrod.ring import SampleRing
from spectrod.source.soundcard import InputDevice, SoundCardSource, choose_input

INPUTS = [
    InputDevice(0, "HDA Intel: ALC254 (hw:0,0)", "ALSA", 2, 48000.0, is_default=False),
    InputDevice(4, "UMIK-1: USB Audio", "ALSA", 1, 48000.0, is_default=True),
]


@pytest.mark.parametrize(
    ("wanted", "index"), [("", 4), ("hda", 0), ("0", 0), ("4", 4), ("umik", 4), ("5", 0)]
)
def test_inputs_are_chosen_by_name_or_index(wanted, index):
    """An input is found by its index, else by part of its name, or as the default."""
    assert choose_input(wanted, INPUTS).index == index


def test_unknown_inputs_list_what_there_is():
    """A name that fits nothing is answered with what would fit."""
    with pytest.raises(UnavailableError, match=r"soundcard:x: no such .* are 0 'HDA .*', 4 'UMIK"):
        choose_input("x", INPUTS)
    with pytest.raises(UnavailableError, match="soundcard: no audio input on this machine"):
        choose_input("", [])


def test_a_card_that_is_stopped_twice_is_closed_once(monkeypatch):
    """PortAudio frees a stream that it closes, so a second close must not reach it."""
    closed = []
    stream = SimpleNamespace(start=lambda: None, close=lambda: closed.append(1))
    portaudio = SimpleNamespace(
        check_input_settings=lambda **_: None,
        InputStream=lambda **_: stream,
        PortAudioError=OSError,
    )
    monkeypatch.setattr("spectrod.source.soundcard.load_portaudio", lambda: portaudio)
    monkeypatch.setattr("spectrod.source.soundcard.list_inputs", lambda: INPUTS)
    source = SoundCardSource()
    source.start(SampleRing(48000.0, 1, 1024))
    source.stop()
    source.stop()
    assert closed == [1]
