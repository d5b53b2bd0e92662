"""Errors for users: their texts, and the settings that they are about."""

import errno
import os
import pickle
from pathlib import Path

import pytest

from spectrod.lib.errors import (
    ConfigError,
    EmptyRecordingError,
    NoProductError,
    SettingsError,
    StorageError,
    storage_errors,
)


@pytest.mark.parametrize(
    ("error", "text", "keys"),
    [
        (ConfigError("shape: must be (n,)"), "shape: must be (n,)", ()),
        (ConfigError("must be 1", hop=0), "hop=0: must be 1", ("hop",)),
        (ConfigError("must be 1", rate_hz=0.1 + 0.2), "rate_hz=0.3: must be 1", ("rate_hz",)),
        (ConfigError("is 'b'", "nfft", window="a"), "window='a': is 'b'", ("window", "nfft")),
        (
            ConfigError("not both", on_s=1.0, off_s=2),
            "on_s=1, off_s=2: not both",
            ("on_s", "off_s"),
        ),
        (ConfigError("none", "kind", mask=...), "mask: none", ("mask", "kind")),
        (ConfigError("hop=None: none", "hop"), "hop=None: none", ("hop",)),
        (ConfigError("none", hop=None), "hop=None: none", ("hop",)),
    ],
)
def test_an_error_of_settings_has_their_keys_as_data(error, text, keys):
    """Keys and values make the text, also of an error that comes from another process."""
    for one in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301 - made here
        assert (str(one), one.keys, one.lines) == (text, keys, (text,))


@pytest.mark.parametrize(
    "error",
    [ConfigError("must be 1", hop=0), EmptyRecordingError("torn"), NoProductError("no", "product")],
)
def test_an_error_with_another_text_is_the_same_error(error):
    """Class, exit code and keys of an error stay when its text begins with another name."""
    other = error.of("a.spd")
    assert (str(other), other.lines) == (f"a.spd: {error}", (f"a.spd: {error}",))
    assert (type(other), other.exit_code) == (type(error), error.exit_code)
    assert getattr(other, "keys", None) == getattr(error, "keys", None)


def test_each_line_of_several_mistakes_is_reworded():
    """Lines of several mistakes stay lines, with another text and from another process."""
    lines = [f"key{number}: unknown" for number in range(22)]
    error = SettingsError(lines)
    for one in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301 - made here
        assert (one.lines, str(one)) == (tuple(lines), str(error))
    other = error.of("a.toml")
    assert other.lines == tuple(f"a.toml: {line}" for line in lines)
    assert str(other).startswith("a.toml: key0: unknown; a.toml: key1")
    assert str(other).endswith("; and 2 more")


def test_an_error_of_the_system_names_the_file():
    """An OSError of a block becomes a StorageError of the file; any other exception passes."""
    with (
        pytest.raises(StorageError, match=r"^a/b: No space left on device$") as caught,
        storage_errors(Path("a/b")),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(KeyError), storage_errors("a"):
        raise KeyError
