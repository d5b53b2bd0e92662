"""Arbitrary bytes as requests become a request or a reply, without an exception."""

import json
import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from spectrod.wire.requests import (
    METHODS,
    REQUEST_MAX_BYTES,
    Reply,
    Request,
    failed,
    read_request,
)


def nested(floats):
    """Generate any value that Python's JSON encoder accepts."""
    scalars = st.none() | st.booleans() | st.integers() | floats | st.text()
    return st.recursive(
        scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
    )


ids = st.integers(-(2**63), 2**64 - 1) | st.text(max_size=64)
params = st.dictionaries(
    st.sampled_from(
        ["source", "product", "key", "changes", "name", "settings", "topic", "limit", "since"]
    )
    | st.text(),
    nested(st.floats(allow_nan=False, allow_infinity=False)),
)


def check(part):
    """Read a request, and check the result against the protocol."""
    read = read_request(part)
    if isinstance(read, Reply):
        assert not read.ok
        assert read.error.code in ("bad_request", "unknown_method", "bad_params")
        assert read.error.message
        decoded = msgspec.json.decode(msgspec.json.encode(read), type=Reply)
        assert decoded == read
    else:
        request, given_params = read
        assert isinstance(request, Request)
        assert isinstance(given_params, METHODS[request.method].params)
    return read


@given(st.binary(max_size=300))
def test_random_bytes_are_no_request_and_no_failure(part):
    """Random bytes, nearly none of which are JSON, give an error reply and no failure."""
    check(part)


@given(nested(st.floats()))
def test_any_json_is_read_or_refused(value):
    """Any JSON is read or refused, also with Python's numbers that JSON forbids."""
    check(json.dumps(value).encode("utf-8", "surrogatepass"))


@given(ids, st.sampled_from(sorted(METHODS)) | st.text(), params)
def test_a_refused_request_keeps_its_id(id_, method, given_params):
    """A refused request's reply has its id, so a client can match several requests."""
    part = json.dumps({"v": 1, "id": id_, "method": method, "params": given_params})
    read = check(part.encode())
    assert (read if isinstance(read, Reply) else read[0]).id == id_


@given(st.sampled_from(sorted(METHODS)), st.randoms(use_true_random=False))
def test_a_request_with_flipped_bytes_is_read_or_refused(method, rng):
    """A request with flipped bytes is read or refused."""
    part = bytearray(json.dumps({"id": 1, "method": method, "params": {"source": "x"}}).encode())
    for _ in range(rng.randint(1, 8)):
        part[rng.randrange(len(part))] = rng.randrange(256)
    check(bytes(part))


def test_a_request_nested_or_long_without_end_is_refused():
    """A deeply nested or very long request is refused within bounds of stack and number size."""
    rng = random.Random(6)  # noqa: S311 - no secrets
    for opening in (b"[", b'{"a":', b'[{"a":'):
        n = REQUEST_MAX_BYTES // len(opening) - 100
        for head in (b"", b'{"id":1,"method":"set","params":{"changes":{"a":'):
            check(head + opening * n)
            check(head + opening * rng.randrange(n))
    for digits in (20, 400, 5000, 60_000):
        check(b'{"id":' + b"9" * digits + b',"method":"status"}')
        check(b'{"id":1,"method":"events","params":{"since":' + b"9" * digits + b"}}")
    read = read_request(b" " * (REQUEST_MAX_BYTES + 1))
    assert read == failed(None, "bad_request", "request of 65537 bytes: must be at most 65536")


def numbers_of(kind):
    """Yield the types of numbers that a type allows."""
    if isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType):
        yield kind
    elif isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            yield from numbers_of(one)


def test_every_number_in_parameters_has_both_bounds():
    """Every number in parameters has a lower and an upper bound, which protect memory and time."""
    names = set()
    for name, method in METHODS.items():
        for field in msgspec.inspect.type_info(method.params).fields:
            for number in numbers_of(field.type):
                names.add(field.name)
                assert (number.ge, number.gt) != (None, None), (name, field.name)
                assert (number.le, number.lt) != (None, None), (name, field.name)
    assert {"duration_s", "timeout_s", "since", "limit", "first_seq", "after_seq"} <= names
