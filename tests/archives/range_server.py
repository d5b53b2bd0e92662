"""A local HTTP server of a few files, which can misbehave."""

import threading
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

MTIME_S = 1_780_000_000


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Print nothing."""

    def do_GET(self):
        of = self.server.of
        of.requests.append((self.path, self.headers.get("Range", "")))
        misbehaves = of.modes.get(self.path, of.mode)
        if misbehaves is not None and misbehaves(self) is not False:
            return
        self.answer(of.files.get(self.path))

    do_PUT = do_GET  # noqa: N815 - for modes that misbehave

    def answer(self, content, status=206, lie=0):
        """Send the part of a file that was asked for; ``lie`` is added to the size it states."""
        if content is None:
            self.empty(404)
            return
        wanted = self.headers.get("Range", "")
        if status != 206 or not wanted:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        first, last = (int(digits) for digits in wanted.removeprefix("bytes=").split("-"))
        if first >= len(content):
            self.empty(416)
            return
        part = content[first : last + 1]
        size = len(content) + lie
        self.send_response(206)
        end = min(last + 1, size)
        self.send_header("Content-Range", f"bytes {first}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - first))
        self.stamp()
        self.end_headers()
        self.wfile.write(part)
        if len(part) < end - first:
            self.close_connection = True

    def stamp(self):
        """Send what names the version of a file."""
        if self.server.of.has_time:
            self.send_header("Last-Modified", formatdate(MTIME_S, usegmt=True))
        self.send_header("ETag", self.server.of.etag)

    def empty(self, status, **headers):
        """Send an answer without content."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def serving(files):
    """Serve files by their paths; ``mode`` and ``modes`` are called before an answer is sent.

    Yields
    ------
    of : SimpleNamespace
        ``url`` without a slash at its end, ``requests`` as (path, range), ``mode`` and ``modes`` by
        path: functions of a handler, which return False to go on.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.of = SimpleNamespace(
        files=dict(files), requests=[], mode=None, modes={}, has_time=True, etag='"one"',
        url=f"http://127.0.0.1:{server.server_port}",
    )  # fmt: skip
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.of
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def index(*links):
    """Return a page of links."""
    return "".join(f'<a href="{link}">x</a>' for link in links).encode()
