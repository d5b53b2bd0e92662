"""JSON from outside: every defect is a ValueError."""

from typing import Any

import pytest
from msgspec import Struct

from spectrod.lib.json_text import decode_json


class Named(Struct):
    """An object with one member; others are skipped."""

    name: str


def test_what_is_of_the_kind_is_returned():
    """Bytes and text are decoded alike, and unknown members are skipped."""
    for content in ('{"name":"a","more":[]}', b'{"name":"a","more":[]}'):
        assert decode_json(content, Named) == Named("a")
    assert decode_json("[1]", object) == [1]


@pytest.mark.parametrize("kind", [Named, object, dict[str, Any]])
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"name":"\xff"}', b'{"\xff":1}', b'{"more":' + b"[" * 10**6, b'{"a":' * 10**6],
)
def test_every_defect_is_a_value_error(kind, content):
    """What is cut off, not UTF-8 or nested deeply raises nothing else, also where it is skipped."""
    with pytest.raises(ValueError, match=r"\S"):
        decode_json(content, kind)


def test_deep_nesting_is_named():
    """The text says what is wrong, not how Python found it."""
    with pytest.raises(ValueError, match=r"^nested too deeply$"):
        decode_json(b"[" * 10**6, object)
