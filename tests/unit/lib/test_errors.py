"""Errors for users: their texts, and the settings that they are about."""

import pickle

import pytest

from spectrod.lib.errors import ConfigError


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
