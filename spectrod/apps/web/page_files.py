"""Files of the page, read once: a path from outside is only looked up, never opened.

Beside the files themselves there are two that the first file is made to load, all modules as one
and the style, and those that the modules load later, all with names that change with their content,
so that a browser keeps them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from spectrod.apps.web.compressed import accepts_gzip, compressed
from spectrod.apps.web.page_bundle import bundle, short_style

PAGE_FOLDER: Final = Path(__file__).parent / "page"
FIRST_FILE: Final = "index.html"
MODULES_FILE: Final = "modules.html"
"""The first file as it lies in the folder: it loads the modules one by one, with their comments."""
_MAIN: Final = "main.js"
_STYLE: Final = "style.css"
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

    ``compressed`` is the content in gzip; empty where that is no smaller. A file that
    ``is_named_by_content`` never changes.
    """

    content: bytes
    media_type: str
    etag: str
    compressed: bytes = b""
    is_named_by_content: bool = False


def read_page(folder: Path = PAGE_FOLDER) -> Mapping[str, PageFile]:
    """Return the files below a folder by path; those of unknown types are no part of the page.

    Raises
    ------
    ValueError
        If the modules cannot be joined, see ``spectrod.apps.web.page_bundle.bundle``.
    """
    contents = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in _TYPES and path.is_file()
    }
    files = {name: _page_file(name, content) for name, content in contents.items()}
    if FIRST_FILE not in files:
        return files
    modules = {name: text.decode() for name, text in contents.items() if name.endswith(".js")}
    made = bundle(modules, _MAIN, _kept_name)
    kept = {name: text.encode() for name, text in made.later.items()}
    first = contents[FIRST_FILE]
    for name, text in ((_MAIN, made.text), (_STYLE, short_style(contents[_STYLE].decode()))):
        file = _kept_name(name, text)
        kept[file] = text.encode()
        first = first.replace(f'"page/{name}"'.encode(), f'"page/{file}"'.encode())
    for file, content in kept.items():
        files[file] = replace(_page_file(file, content), is_named_by_content=True)
    return files | {MODULES_FILE: files[FIRST_FILE], FIRST_FILE: _page_file(FIRST_FILE, first)}


def _kept_name(path: str, text: str) -> str:
    """Return the name of a file that changes with its content."""
    return f"{_tag(text.encode())}-{PurePosixPath(path).name}"


def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _page_file(name: str, content: bytes) -> PageFile:
    smaller = compressed(content, _LEVEL)
    # Weak: the tag is of the content, in whichever coding it is sent.
    return PageFile(
        content,
        _TYPES[Path(name).suffix],
        f'W/"{_tag(content)}"',
        smaller if len(smaller) < len(content) else b"",
    )


def file_response(request: Request, file: PageFile) -> Response:
    """Return a file, or 304 if the browser has this version; of most files it asks each time."""
    lasts = "max-age=31536000, immutable" if file.is_named_by_content else "no-cache"
    headers = {"etag": file.etag, "cache-control": lasts, "vary": "Accept-Encoding"}
    known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
    if file.etag in known:
        return Response(status_code=304, headers=headers)
    if file.compressed and accepts_gzip(request):
        coded = headers | {"content-encoding": "gzip"}
        return Response(file.compressed, media_type=file.media_type, headers=coded)
    return Response(file.content, media_type=file.media_type, headers=headers)
