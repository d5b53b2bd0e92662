"""Answers in gzip, for browsers that accept it: slow links are the page's worst ones."""

import gzip
from typing import Final

from starlette.requests import Request

LEVEL: Final = 1
"""Of answers that are made once: a higher one takes three times as long for a tenth less."""


def accepts_gzip(request: Request) -> bool:
    """Return whether a request accepts gzip: it is listed, and not with a weight of 0."""
    for coding in request.headers.get("accept-encoding", "").lower().split(","):
        name, *parameters = (part.strip() for part in coding.split(";"))
        if name == "gzip":
            return not any(_is_zero(one) for one in parameters)
    return False


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip("0. ") == ""


def compressed(body: bytes, level: int = LEVEL) -> bytes:
    """Return a body in gzip; the same body always has the same bytes."""
    return gzip.compress(body, level, mtime=0)


def decompressed(body: bytes) -> bytes:
    """Return what ``compressed`` made a body in gzip of; not for bodies of others."""
    return gzip.decompress(body)
