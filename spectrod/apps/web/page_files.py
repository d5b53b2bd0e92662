"""Files of the page, read once: a path from outside is only looked up, never opened."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from spectrod.apps.web.compressed import accepts_gzip, compressed

PAGE_FOLDER: Final = Path(__file__).parent / "page"
FIRST_FILE: Final = "index.html"
_LEVEL: Final = 9
_TYPES: Final[Mapping[str, str]] = {
    # Not from the system's table, which on some machines has text/plain for .js: with nosniff a
    # browser then runs no module.
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page: its content, media type, and a tag that changes with the content.

    ``compressed`` is the content in gzip; empty where that is no smaller.
    """

    content: bytes
    media_type: str
    etag: str
    compressed: bytes = b""


def read_page(folder: Path = PAGE_FOLDER) -> Mapping[str, PageFile]:
    """Return the files below a folder by path; those of unknown types are no part of the page."""
    return {
        path.relative_to(folder).as_posix(): _page_file(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in _TYPES and path.is_file()
    }


def _page_file(path: Path) -> PageFile:
    content = path.read_bytes()
    tag = hashlib.sha256(content).hexdigest()[:32]
    smaller = compressed(content, _LEVEL)
    # Weak: the tag is of the content, in whichever coding it is sent.
    return PageFile(
        content,
        _TYPES[path.suffix],
        f'W/"{tag}"',
        smaller if len(smaller) < len(content) else b"",
    )


def file_response(request: Request, file: PageFile) -> Response:
    """Return a file, or 304 if the browser has this version; it asks each time."""
    headers = {"etag": file.etag, "cache-control": "no-cache", "vary": "Accept-Encoding"}
    known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
    if file.etag in known:
        return Response(status_code=304, headers=headers)
    if file.compressed and accepts_gzip(request):
        coded = headers | {"content-encoding": "gzip"}
        return Response(file.compressed, media_type=file.media_type, headers=coded)
    return Response(file.content, media_type=file.media_type, headers=headers)
