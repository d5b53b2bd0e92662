"""Behaviour of all sources: names and failures."""

import pytest

from spectrod.config.config import SourceConfig
from spectrod.lib.errors import ConfigError, InputError, InternalError
from spectrod.source.naming import topic_name
from spectrod.source.open_source import open_source
from spectrod.source.signal import SignalSource


def test_a_source_that_breaks_is_a_failure(caplog, collect):
    """An unexpected error in a source is a failure and not the end of the stream."""

    class Broken(SignalSource):
        def blocks(self, n_max):
            yield next(super().blocks(n_max))
            raise ZeroDivisionError("oops")

    with pytest.raises(InternalError, match=r"source failed: ZeroDivisionError\('oops'\)"):
        collect(Broken("sine,1000,-20", 48000.0, 1, "full"))
    assert "source failed" in caplog.text


def test_names_are_safe_in_topics():
    """Any text can be converted to a part of a topic."""
    assert topic_name("UMIK-1: USB Audio (hw:1,0)") == "UMIK-1-USB-Audio-hw-1-0"
    assert topic_name("///") == "source"
    assert topic_name("x" * 63 + " (long)") == "x" * 63


def test_source_names_are_checked():
    """A source name with characters that topics reserve is refused."""
    settings = SourceConfig(uri="signal:sine,1000,-20", name="roof.mic_2")
    assert open_source(settings, "full").name == "roof.mic_2"
    with pytest.raises(ConfigError, match=r"source.name='a/b': must be 1 to 64 of A-Z a-z 0-9"):
        open_source(SourceConfig(uri="signal:sine,1000,-20", name="a/b"), "full")


def test_unknown_uri_schemes():
    """The error for an unknown scheme lists the valid ones."""
    with pytest.raises(
        ConfigError,
        match="http://x: must be a sound file, folder of them, SigMF recording, -, pcm:PATH",
    ):
        open_source(SourceConfig(uri="http://x"), "full")


@pytest.mark.parametrize("uri", ["x" * 5000, "pcm:" + "x" * 5000])
def test_a_path_that_is_too_long(uri):
    """A path that is too long is one clear error."""
    with pytest.raises(InputError, match="File name too long"):
        open_source(SourceConfig(uri=uri), "full")


def test_a_path_that_is_no_path():
    """A path with a NUL character, which TOML can express, is refused."""
    with pytest.raises(ConfigError, match=r"source.uri='a\\x00b': must not hold a NUL character"):
        open_source(SourceConfig(uri="a\0b"), "full")
