"""What ``spectrod run --web`` tells the page's server of the daemon's settings."""

from pathlib import Path

import pytest

from spectrod.apps.web.beside_daemon import _recordings, _without_keys
from spectrod.config.config import Config, PublishConfig
from spectrod.config.settings import ControlConfig, RecordingConfig, SecurityConfig
from spectrod.lib.errors import ConfigError

KEYS = SecurityConfig(server_key="/etc/spectrod/server.key", client_keys="/etc/spectrod/keys")
STRICT = SecurityConfig(server_key="a", client_keys="b", require="always")


@pytest.mark.parametrize(
    ("endpoints", "security", "chosen"),
    [
        (("tcp://127.0.0.1:5556",), SecurityConfig(), "tcp://127.0.0.1:5556"),
        (("tcp://*:5556",), SecurityConfig(), "tcp://127.0.0.1:5556"),
        (("tcp://0.0.0.0:5556",), SecurityConfig(), "tcp://127.0.0.1:5556"),
        (("tcp://[::]:5556",), SecurityConfig(), "tcp://[::1]:5556"),
        (("tcp://[fe80::1]:5556",), SecurityConfig(), "tcp://[fe80::1]:5556"),
        (("tcp://127.0.0.1:*", "ipc:///run/a.ipc"), SecurityConfig(), "ipc:///run/a.ipc"),
        (("tcp://*:5556", "tcp://127.0.0.1:5557"), KEYS, "tcp://127.0.0.1:5557"),
        (("tcp://127.0.0.1:5556", "ipc:///run/a.ipc"), STRICT, "ipc:///run/a.ipc"),
    ],
)
def test_the_page_connects_where_it_needs_no_key(endpoints, security, chosen):
    """To a fixed port, by loopback where the daemon listens on all addresses."""
    settings = Config(publish=PublishConfig(endpoints=endpoints), security=security)
    assert _without_keys(settings) == chosen


@pytest.mark.parametrize(
    ("endpoint", "security"),
    [
        ("tcp://127.0.0.1:*", SecurityConfig()),
        ("tcp://*:5556", KEYS),
        ("tcp://127.0.0.1:1", STRICT),
    ],
)
def test_a_daemon_that_the_page_cannot_reach_is_an_error(endpoint, security):
    """The text says what to do."""
    settings = Config(publish=PublishConfig(endpoints=(endpoint,)), security=security)
    with pytest.raises(ConfigError, match=r"web: all endpoints of \[publish\] ask for keys"):
        _without_keys(settings)


def test_the_page_shows_the_past_from_all_folders_of_the_daemon():
    """Those of recordings, each once, after that of the state folder."""
    settings = Config(
        control=ControlConfig(state_folder="/var/lib/roof"),
        recordings=(
            RecordingConfig(name="a"),
            RecordingConfig(name="b", folder="/srv/b"),
            RecordingConfig(name="c", folder="/srv/b"),
        ),
    )
    assert _recordings(settings) == [Path("/var/lib/roof/recordings"), Path("/srv/b")]
