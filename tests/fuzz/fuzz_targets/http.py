"""Requests to the monitoring endpoint, which any program that reaches it can send."""

import random
from collections.abc import Iterator

from fuzzing import Target
from mutation import havoc, mutate_text

from spectrod.daemon.monitoring.http_request import (
    HttpRequest,
    HttpResponse,
    encode_response,
    parse_request,
)

_HOSTS = frozenset({"roof.example"})
_WORDS = (
    *(b"GET ", b"HEAD ", b"POST ", b" HTTP/1.1", b" HTTP/1.0", b"/metrics", b"/", b"?", b"%00"),
    *(b"Host: ", b"host:", b"roof.example", b"localhost", b"127.0.0.1:9733", b"[::1]", b"[", b":"),
    *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\0", b"\xff", b" ", b"\t", b"Accept: */*", b","),
    *(b"Content-Length: 0", b"Content-Length: -1", b"Transfer-Encoding: chunked", b";q=0.5"),
)


def check(data: bytes) -> None:
    """Parse a request: it is right, or the reply names a rule in one line."""
    found = parse_request(data, _HOSTS)
    if isinstance(found, HttpResponse):
        assert found.status.value in (400, 405, 421)
        assert found.body.count(b"\n") == 1
        assert encode_response(found).startswith(b"HTTP/1.1 ")
        return
    assert isinstance(found, HttpRequest)
    assert found.method in ("GET", "HEAD")
    assert found.path.startswith("/")
    assert "?" not in found.path
    assert found.path.isascii()
    assert found.path.isprintable()
    assert not any("\r" in text or "\n" in text for text in found.fields.values())
    found.accepts("text/plain")


def seeds() -> list[bytes]:
    """Make the requests of curl and of Prometheus."""
    accept = b"Accept: application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1\r\n"
    return [
        b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9733\r\nUser-Agent: curl/8\r\n\r\n",
        b"HEAD /readyz?x=1 HTTP/1.0\r\nHost: localhost\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: roof.example\r\n" + accept + b"\r\n",
    ]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change words of the request, and bytes."""
    return havoc(data, rng) if rng.random() < 0.3 else mutate_text(data, rng, _WORDS)


def _large() -> Iterator[bytes]:
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    yield head + b"a: b\r\n" * 100_000 + b"\r\n"
    yield head + b"a:" + b" " * 500_000 + b"\x01\r\n\r\n"
    yield head + b"accept: " + b"," * 500_000 + b"\r\n\r\n"
    yield b"GET /" + b"a" * 500_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"


TARGETS = {"http_request": Target(check, seeds, mutate, large=_large)}
