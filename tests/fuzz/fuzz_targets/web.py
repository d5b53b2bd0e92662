"""What a browser sends to ``spectrod web``: heads of requests, queries, texts, calls of methods."""

import random
from collections.abc import Iterator
from urllib.parse import unquote_plus, urlencode

import h11
import msgspec
from fuzzing import Target, nested
from mutation import havoc, mutate_json, mutate_text
from starlette.datastructures import QueryParams

from spectrod.apps.web.control_requests import METHODS, _decode
from spectrod.apps.web.gate import ADDRESS_MAX_CHARS, Gate
from spectrod.apps.web.history.request import VALUES_MAX, parse_levels, parse_request
from spectrod.apps.web.limits import Limits
from spectrod.apps.web.page_origin import ServerNames, network_of
from spectrod.apps.web.page_view import STREAM_ID_MAX, View, parse_text
from spectrod.apps.web.server import HEAD_MAX_BYTES
from spectrod.apps.web.token import Token
from spectrod.lib.errors import ConfigError

_LIMITS = Limits()
_TOKEN = Token("0123456789abcdefghijkl")
_GATES = tuple(
    Gate(
        ServerNames(frozenset({"localhost", "roof.example"}), frozenset({"roof.example"})),
        _TOKEN,
        needs_token=needs_token,
        root_path=root,
    )
    for needs_token, root in ((False, ""), (True, "/spectrod"))
)
_WORDS = (
    *(b"GET ", b"POST ", b" HTTP/1.1", b" HTTP/1.0", b"/api/hello", b"/api/stream", b"//", b"/../"),
    *(b"Host: ", b"localhost", b"[::1]:80", b"roof.example", b"Origin: ", b"null", b"https://"),
    *(
        b"Cookie: ",
        b"spectrod=",
        b"Authorization: Bearer ",
        b"0123456789abcdefghijkl",
        b'="',
        b"\\",
    ),
    *(b"Sec-Fetch-Site: cross-site", b"Upgrade: websocket", b"Content-Length: 5", b"\r\n", b"\0"),
    *(b"Transfer-Encoding: chunked", b"X-Forwarded-For: 1.2.3.4", b"%2e%2e", b"\xff", b"; ", b"?"),
)
_QUERY_WORDS = (
    *(b"topic=", b"t0=", b"t1=", b"f0=", b"f1=", b"w=", b"h=", b"layers=", b"max,mean", b"axis="),
    *(b"step=0.1", b"name=", b"lo=", b"hi=", b"&", b"=", b"%00", b"%FF", b"+", b"nan", b"inf"),
    *(b"1e999", b"-0", b"1_0", "٣".encode(), b"9" * 50, b"mel", b"log", b"linear"),
)
_READ_BYTES = 1 << 14
"""As the server reads."""


def check_head(data: bytes) -> None:
    """Parse a head as the server does: it is refused with a status and one line, or let in."""
    connection = h11.Connection(h11.SERVER, HEAD_MAX_BYTES)
    event = h11.NEED_DATA
    try:
        for place in range(0, len(data), _READ_BYTES):
            connection.receive_data(data[place : place + _READ_BYTES])
            event = connection.next_event()
            if event is not h11.NEED_DATA:
                break
    except h11.RemoteProtocolError:
        return
    if not isinstance(event, h11.Request):
        return
    raw_path, _, query = event.target.partition(b"?")
    is_socket = (b"upgrade", b"websocket") in event.headers
    scope = {
        "type": "websocket" if is_socket else "http",
        "method": event.method.decode("ascii"),
        "path": unquote_plus(raw_path.decode("ascii")),
        "query_string": query,
        "scheme": "ws" if is_socket else "http",
        "headers": list(event.headers),
        "client": ("::1", 5),
    }
    for gate in _GATES:
        visitor = gate.visitor(scope)
        assert len(visitor.address) <= ADDRESS_MAX_CHARS
        assert not visitor.has_token or b"0123456789abcdefghijkl" in data
        refusal = gate.refuse(scope, visitor)
        if refusal is not None:
            assert refusal.status in (403, 421)
            assert refusal.why.isprintable()
        elif gate.needs_token and scope["path"].startswith("/api/"):
            is_open = scope["path"].removeprefix("/spectrod") in ("/api/hello", "/api/token")
            assert visitor.has_token or is_open
    assert network_of(data[:40].decode("latin-1")) is not None


def check_query(data: bytes) -> None:
    """Parse a query of the past: it is refused with its rule, or within its bounds."""
    query = QueryParams(data)
    try:
        found = parse_request(query)
    except ConfigError:
        found = None
    if found is not None:
        assert found.width * found.height * len(found.layers) <= VALUES_MAX
        assert found.t0_ns < found.t1_ns
        assert found.f0_hz < found.f1_hz
        assert hash(found) == hash(parse_request(query))
    try:
        low, high = parse_levels(query)
    except ConfigError:
        return
    assert low < high


def check_text(data: bytes) -> None:
    """Parse a text of a page: it is refused with its rule, or shows what a page may."""
    for text in (data, data.decode("utf-8", "replace")):
        try:
            found = parse_text(text, _LIMITS)
        except ConfigError:
            continue
        if isinstance(found, View):
            assert len(found.streams) <= _LIMITS.streams
            assert all(0 <= wish.id <= STREAM_ID_MAX for wish in found.streams)
            assert all(wish.f0 < wish.f1 for wish in found.streams)
            assert all(wish.ballistics is not None for wish in found.streams)


def check_call(data: bytes) -> None:
    """Decode a call of a method: it is refused, or is one that a page may call."""
    try:
        call = _decode(data)
    except ConfigError:
        return
    assert call.method in METHODS
    assert "timeout_s" not in call.params


def head_seeds() -> list[bytes]:
    """Make the requests of a browser and of a program."""
    page = b"GET / HTTP/1.1\r\nHost: localhost:8000\r\nSec-Fetch-Site: none\r\n\r\n"
    socket = (
        b"GET /api/stream HTTP/1.1\r\nHost: roof.example\r\nOrigin: https://roof.example\r\n"
        b"Upgrade: websocket\r\nConnection: Upgrade\r\nCookie: a=b; spectrod=0123456789abcdefghijkl"
        b"\r\n\r\n"
    )
    call = (
        b"POST /spectrod/api/control HTTP/1.1\r\nHost: [::1]:8000\r\nContent-Length: 2\r\n"
        b"Authorization: Bearer 0123456789abcdefghijkl\r\nOrigin: http://[::1]:8000\r\n\r\n{}"
    )
    return [page, socket, call]


def query_seeds() -> list[bytes]:
    """Make queries of a page and of a picture."""
    one = {"topic": 3, "t0": 1.7e12, "t1": 1.7e12 + 6e4, "f0": 0, "f1": 24000, "w": 900, "h": 512}
    more = one | {"layers": "max,mean", "axis": "log", "step": "0.1", "name": "tcp://a:1 spec/a/0"}
    return [urlencode(one).encode(), urlencode(more | {"lo": -90, "hi": 0}).encode()]


def text_seeds() -> list[bytes]:
    """Make a view, an acknowledgement and a reset."""
    stream = {"id": 1, "topic_id": 2, "f0": 0.0, "f1": 24e3, "px": 900, "of": "max", "bits": 16}
    measure = {"cursors": [1000.0], "bands": [[20.0, 2e4]], "peaks": 5}
    view = {"op": "view", "generation": 7, "streams": [stream | {"measure": measure}]}
    texts = (view, {"op": "ack", "message": 9}, {"op": "reset", "topic_id": 2})
    return [msgspec.json.encode(text) for text in texts]


def call_seeds() -> list[bytes]:
    """Make calls with and without an endpoint."""
    calls = (
        {"method": "set", "params": {"changes": {"analysis.hop": 512}}},
        {"method": "record.start", "params": {"name": "a.png"}, "endpoint": "tcp://127.0.0.1:1"},
    )
    return [msgspec.json.encode(call) for call in calls]


def mutate_head(data: bytes, rng: random.Random) -> bytes:
    """Change words of a head, and bytes."""
    return havoc(data, rng) if rng.random() < 0.2 else mutate_text(data, rng, _WORDS)


def mutate_query(data: bytes, rng: random.Random) -> bytes:
    """Change words of a query, and bytes."""
    if rng.random() < 0.2:
        return havoc(data, rng)
    changed = mutate_text(data.replace(b"&", b"\n"), rng, _QUERY_WORDS)
    return changed.replace(b"\n", b"&")


def mutate_object(data: bytes, rng: random.Random) -> bytes:
    """Change members of an object, also of the first one in a list, and bytes."""
    if rng.random() < 0.2:
        return havoc(data, rng)
    begin, mark, rest = data.partition(b'"streams":[')
    if not mark or rng.random() < 0.4:
        return mutate_json(data, rng)
    inner, end, after = rest.rpartition(b"]")
    return begin + mark + mutate_json(inner, rng) + end + after


def _large_heads() -> Iterator[bytes]:
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    yield head + b"a: b\r\n" * 100_000 + b"\r\n"
    yield head + b"Cookie: " + b'a="\\' * 200_000 + b"\r\n\r\n"
    yield head + b"Cookie: " + b"a=b; " * 200_000 + b"\r\n\r\n"


TARGETS = {
    "web_head": Target(check_head, head_seeds, mutate_head, large=_large_heads),
    "history_query": Target(check_query, query_seeds, mutate_query),
    "page_text": Target(check_text, text_seeds, mutate_object, large=nested),
    "page_call": Target(check_call, call_seeds, mutate_object, large=nested),
}
