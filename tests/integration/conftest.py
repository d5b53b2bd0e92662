"""Real sound servers for tests, on machines that have no sound card."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "audio"))
from audio_servers import JackServer, SoundServer


@pytest.fixture
def silent_server(tmp_path_factory, monkeypatch):
    """Prepare a private PulseAudio that does not run yet; its environment is this process's."""
    server = SoundServer(tmp_path_factory.mktemp("pulse"))
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()


@pytest.fixture
def sound_server(silent_server):
    """Run a private PulseAudio with a null sink."""
    silent_server.start()
    return silent_server


@pytest.fixture
def jack_server(tmp_path_factory, monkeypatch):
    """Prepare a private JACK with a dummy driver; its environment is this process's."""
    server = JackServer(tmp_path_factory.mktemp("jack"))
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()
