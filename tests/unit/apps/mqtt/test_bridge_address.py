import os

import pytest

from spectrod.apps.mqtt.address import (
    BrokerAddress,
    check_topic_prefix,
    parse_broker,
    read_password,
)
from spectrod.lib.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mqtt://box", ("box", 1883, False, None)),
        ("mqtts://box", ("box", 8883, True, None)),
        ("mqtt://me@box:1884/", ("box", 1884, False, "me")),
        ("mqtts://a%40b@[::1]:1", ("::1", 1, True, "a@b")),
    ],
)
def test_a_broker_is_scheme_user_host_and_port(text, expected):
    """A broker's URL consists of scheme, user, host and port; default ports are those of MQTT."""
    assert parse_broker(text) == BrokerAddress(text, *expected)


@pytest.mark.parametrize(
    "text", ["", "box", "tcp://box", "mqtt://", "mqtt://box:0x1", "mqtt://box:70000", "mqtt://b/c"]
)
def test_a_malformed_broker_is_refused_with_the_rule(text):
    """A malformed broker URL is refused in one line that names the rule."""
    with pytest.raises(ConfigError, match=r"broker=.*must be mqtt://\[USER@\]HOST\[:PORT\]"):
        parse_broker(text)


def test_a_password_in_the_url_is_refused_and_not_repeated():
    """A password in the URL, visible in the list of processes, is refused and not repeated."""
    with pytest.raises(ConfigError, match=r"\.\.\..*give --password-file") as caught:
        parse_broker("mqtt://me:s3cret@box")
    assert "s3cret" not in str(caught.value)


def test_a_password_is_not_in_a_traceback():
    """A password appears in neither tracebacks nor logs."""
    address = BrokerAddress("mqtt://box", "box", 1, tls=False, user="me", password="s3cret")  # noqa: S106
    assert "s3cret" not in repr(address)


@pytest.mark.parametrize(
    ("content", "password"), [("a b\n", "a b"), ("x", "x"), ("é\r\n", "é"), ("\ufeffx\n", "x")]
)
def test_a_password_is_its_files_text_without_the_newline(tmp_path, content, password):
    """A password is its file's text without the final newline; spaces count."""
    path = tmp_path / "password"
    path.write_bytes(content.encode())
    path.chmod(0o600)
    assert read_password(path) == password


def test_a_password_that_others_may_read_is_refused(tmp_path):
    """A password file that others may read is refused, with the command that repairs it.

    Credentials of systemd belong to root and are readable by a unit's group.
    """
    path = tmp_path / "password"
    path.write_text("x")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=r"mode=0644: others must not read it; chmod 600"):
        read_password(path)
    if os.geteuid() == 0:
        path.chmod(0o440)
        assert read_password(path) == "x"


def test_an_unreadable_password_is_an_error(tmp_path):
    """A password file that is missing or not text is an error that names it."""
    with pytest.raises(ConfigError, match="No such file"):
        read_password(tmp_path / "none")
    path = tmp_path / "password"
    path.write_bytes(b"\xff")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="must be UTF-8"):
        read_password(path)
    path.write_bytes(b"x" * 65536)
    with pytest.raises(ConfigError, match="must be a password, at most 65535 bytes"):
        read_password(path)


@pytest.mark.parametrize("prefix", ["", "a/", "/a", "a//b", "a/+", "#", "$SYS/a", "a\0b"])
def test_topics_cannot_start_with_reserved_characters(prefix):
    """A topic prefix must not have wildcards, empty levels or the broker's own $ prefix."""
    with pytest.raises(ConfigError, match=r"prefix=.*must be levels separated by /"):
        check_topic_prefix("prefix", prefix)
    assert check_topic_prefix("prefix", "home/upstairs") == "home/upstairs"
