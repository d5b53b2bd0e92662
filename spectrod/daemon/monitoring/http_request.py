"""HTTP requests and replies of the monitoring endpoint. Pure: knows no socket.

References
----------
.. [1] RFC 9110 and RFC 9112 (HTTP semantics, HTTP/1.1).
"""

import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

REQUEST_MAX_BYTES: Final = 8192
_FIELDS_MAX: Final = 64
_END = b"\r\n\r\n"
_REQUEST_LINE = re.compile(r"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[01]")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_TEXT: Final = "text/plain; charset=utf-8"
_METHODS: Final = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request without a body.

    Attributes
    ----------
    method : {"GET", "HEAD"}
    path : str
        Without the query.
    fields : mapping of str to str
        By lower-case name.
    """

    method: str
    path: str
    fields: Mapping[str, str]

    def accepts(self, media_type: str) -> bool:
        """Return whether the client names a media type in Accept, whatever its weight."""
        several = self.fields.get("accept", "").lower().split(",")
        return any(one.partition(";")[0].strip() == media_type for one in several)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A reply: status, media type, body."""

    status: HTTPStatus
    content_type: str
    body: bytes


def text_response(status: HTTPStatus, text: str) -> HttpResponse:
    """Return a reply of plain text."""
    return HttpResponse(status, _TEXT, f"{text}\n".encode())


def is_whole(data: bytes | bytearray) -> bool:
    """Return whether data hold the whole head of a request."""
    return _END in data


def parse_request(data: bytes, hosts: Collection[str]) -> HttpRequest | HttpResponse:
    """Parse the head of a request.

    Parameters
    ----------
    data : bytes
        At least the whole head; what follows is ignored, since no request has a body.
    hosts : collection of str
        Lower-case names that Host may have beside ``localhost`` and addresses: a name that another
        site's DNS resolves to this machine would let its pages read the metrics in a browser.

    Returns
    -------
    request : HttpRequest
    response : HttpResponse
        Returned instead if a rule is broken.
    """
    line, *rest = data.partition(_END)[0].decode("latin-1").split("\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        return _bad("the first line must be METHOD /PATH HTTP/1.1")
    if match[1] not in _METHODS:
        return text_response(HTTPStatus.METHOD_NOT_ALLOWED, "method: must be GET or HEAD")
    fields = _read_fields(rest)
    if fields is None:
        return _bad(f"must have at most {_FIELDS_MAX} fields, NAME: VALUE, and each once")
    if "transfer-encoding" in fields or fields.get("content-length", "0") != "0":
        return _bad("must have no body")
    if not _is_known(fields.get("host", ""), hosts):
        rule = "must be an address, localhost, or a name of http.hosts"
        return text_response(HTTPStatus.MISDIRECTED_REQUEST, f"Host: {rule}")
    return HttpRequest(match[1], match[2].partition("?")[0], fields)


def _read_fields(lines: Sequence[str]) -> dict[str, str] | None:
    """Return the fields by lower-case name; None if a rule is broken."""
    found = [_FIELD.fullmatch(text) for text in lines]
    fields = {match[1].lower(): match[2].strip(" \t") for match in found if match}
    is_right = len(lines) <= _FIELDS_MAX and len(fields) == len(lines)
    return fields if is_right else None


def _bad(rule: str) -> HttpResponse:
    return text_response(HTTPStatus.BAD_REQUEST, f"request: {rule}")


def _is_known(host: str, hosts: Collection[str]) -> bool:
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match[1].lower()
    if name == "localhost" or name in hosts:
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def encode_response(response: HttpResponse, *, has_body: bool = True) -> bytes:
    """Return a reply as bytes; without its body for HEAD. The connection closes after it."""
    allow = f"Allow: {', '.join(_METHODS)}\r\n" if response.status == 405 else ""
    head = (
        f"HTTP/1.1 {response.status.value} {response.status.phrase}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        f"{allow}"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n"
        "\r\n"
    )
    return head.encode("latin-1") + (response.body if has_body else b"")
