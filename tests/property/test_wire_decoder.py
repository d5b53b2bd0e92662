"""Decoding of messages and requests that are almost valid.

`tests/fuzz` searches further, guided by coverage.
"""

import contextlib
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.lib.errors import WireError
from spectrod.wire.requests import METHODS, Reply, read_request
from spectrod.wire.schema import decode, encode

DATA = Path(__file__).parents[1] / "data"
GOLDEN = [
    golden
    for path in sorted(DATA.glob("golden_v1*.json"))
    for golden in json.loads(path.read_text())
]
FIELDS = sorted({field for golden in GOLDEN for field in json.loads(golden["header"])})

odd_numbers = st.sampled_from([0, -1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308])
odd_texts = st.sampled_from(["", "<f8", "|O", ">f4", "\0", "\N{GRINNING FACE}", "a" * 1000])
values = st.recursive(
    st.none() | st.booleans() | odd_numbers | st.integers() | st.floats() | odd_texts | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def almost_messages(draw):
    """Draw a golden message with some fields of its header changed, and perhaps its payload."""
    golden = draw(st.sampled_from(GOLDEN))
    header = json.loads(golden["header"])
    for field in draw(st.lists(st.sampled_from(FIELDS), max_size=3)):
        if draw(st.booleans()):
            header.pop(field, None)
        else:
            header[field] = draw(values)
    text = json.dumps(header, ensure_ascii=False).encode("utf-8", "surrogatepass")
    payloads = [golden["payload_hex"], golden.get("edges_hex")]
    parts = [golden["topic"].encode(), text, *(bytes.fromhex(part) for part in payloads if part)]
    if draw(st.booleans()):
        parts[-1] = parts[-1][: draw(st.sampled_from([0, 1, len(parts[-1]) // 2]))]
    return parts[: draw(st.integers(1, len(parts)))] if draw(st.booleans()) else parts


@pytest.mark.slow
@settings(max_examples=300)
@given(almost_messages())
def test_an_almost_right_message_is_refused_or_kept_to_the_last_bit(parts):
    """A message that is accepted survives encoding and decoding unchanged."""
    with contextlib.suppress(WireError):
        message = decode(parts)
        assert encode(decode(encode(message))) == encode(message)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["topic"])
@pytest.mark.parametrize("nest", [b"[", b'{"a":'], ids=["arrays", "objects"])
def test_nesting_without_end_is_refused(golden, nest):
    """Endless nesting as a header, or in an unknown field, is refused."""
    name, head = golden["topic"].encode(), golden["header"].encode()
    for header in (nest * 10_000, head[:-1] + b',"later":' + nest * 10_000):
        with pytest.raises(WireError, match=r"header="):
            decode([name, header, b""])


@st.composite
def almost_requests(draw):
    """Draw a request of some method with parameters of another one or of none."""
    fields = {name for method in METHODS.values() for name in method.params.__struct_fields__}
    params = draw(st.dictionaries(st.sampled_from(sorted(fields)) | st.text(), values, max_size=3))
    request = {"v": 1, "id": 1, "method": draw(st.sampled_from(sorted(METHODS))), "params": params}
    for field in draw(st.lists(st.sampled_from(sorted(request)), max_size=2)):
        request[field] = draw(values)
    return json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")


@pytest.mark.slow
@settings(max_examples=300)
@given(almost_requests() | st.binary(max_size=200))
def test_a_request_is_read_or_answered(data):
    """Any request gets a reply that can be encoded."""
    match read_request(data):
        case Reply() as reply:
            assert json.loads(msgspec.json.encode(reply))["ok"] is False
        case request, params:
            assert isinstance(params, METHODS[request.method].params)
